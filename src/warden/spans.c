/* warden/spans.c: see spans.h */
#include "warden/spans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "warden/approvals.h"
#include "warden/record.h"

#define COMMAND_MAX (16UL * EDGE_WORDS_BYTES)   /* of its words: a mask may be longer than what it hides */

static int
numbers(const void *w, struct buf *b)
{
    return count_put(w, b);
}

void
span_open(struct warden *w)
{
    teller_init(&w->tell, &w->loop, numbers, w);
}

int
span_on_edge(struct warden *w, const struct launch_export *m)
{
    if (w->passed < 0)
        return -1;
    teller_open(&w->tell, m, take_fd(&w->passed));
    return 0;
}

struct work
span_work(const struct warden *w, const struct box *b)
{
    struct work out = b != NULL ? b->work : w->work;

    if (b != NULL)
        memcpy(out.span, b->span, sizeof(out.span));
    return out;
}

/* Begun, for @work, @us ago. False: nobody is told. */
static bool
begin(const struct warden *w, const struct work *work, const char *name, uint64_t us, struct export_span *s)
{
    if (!teller_is(&w->tell) || !work->sampled || work->trace[0] == '\0')
        return false;
    *s = (struct export_span){ .kind = EXPORT_INSIDE, .name = name, .end_us = clock_wall_us() };
    s->begin_us = s->end_us - us;
    memcpy(s->trace, work->id, sizeof(s->trace));
    memcpy(s->parent, work->span, sizeof(s->parent));
    teller_id(s->span, sizeof(s->span));
    return true;
}

/* --- a sandbox ---------------------------------------------------------------------------------------------------- */

void
span_asked_for(struct box *b)
{
    if (!teller_is(&b->w->tell))
        return;
    b->work = b->w->work;
    teller_id(b->span, sizeof(b->span));
}

void
span_made(struct box *b, const struct err *why)
{
    struct export_span s;

    if (!begin(b->w, &b->work, "sandbox create", clock_us() - b->asked_for_us, &s))
        return;
    memcpy(s.span, b->span, sizeof(s.span));
    s.failed = why != NULL;
    export_text(&s, "cloche.sandbox.id", b->r.id);
    export_text(&s, "error.type", why != NULL ? why->code : NULL);
    teller_span(&b->w->tell, &s);
}

void
span_ended(struct box *b)
{
    const struct work work = span_work(b->w, b);
    const uint64_t now = clock_ms();
    struct export_span s;

    record_box_gone(b->w, b);
    if (!begin(b->w, &work, "sandbox end", b->stop_ms != 0 ? clock_since(now, b->stop_ms) * 1000 : 0, &s))
        return;
    s.failed = b->why == NULL;
    export_text(&s, "cloche.sandbox.id", b->r.id);
    export_number(&s, "cloche.sandbox.age_ms",
                  b->r.begun_at == 0 ? 0 : (int64_t)clock_since(time_steady(b->w), b->r.begun_at));
    export_text(&s, "error.type", b->why == NULL ? "keeper-ended" : NULL);
    teller_span(&b->w->tell, &s);
}

/* --- what runs in it ---------------------------------------------------------------------------------------------- */

char *
span_command(const struct box *b, const struct edge_op *op)
{
    cleanup_buf struct buf all = BUF_INIT(EDGE_WORDS_BYTES), clean = BUF_INIT(COMMAND_MAX);
    struct str text;

    for (size_t i = 0; i < op->n_argv; i++)
        buf_printf(&all, "%s%s", i > 0 ? " " : "", op->argv[i]);
    text = (struct str){ (const char *)all.p, all.n };
    if (!buf_ok(&all))
        return NULL;
    if (masks_redact((void *)(uintptr_t)&b->masks, text, &clean))
        text = (struct str){ (const char *)clean.p, buf_ok(&clean) ? clean.n : 0 };
    return text.n > 0 ? strndup(text.p, text.n < EXPORT_TEXT_MAX ? text.n : EXPORT_TEXT_MAX) : NULL;
}

void
span_operation(struct warden *w, struct box *b, const struct keep_op_said *m, const struct work *work,
               const uint8_t span[EDGE_SPAN], const char *command)
{
    const bool signaled = (m->flags & EDGE_SIGNALED) != 0, timed_out = (m->flags & EDGE_TIMED_OUT) != 0,
               over_memory = (m->flags & EDGE_OOM) != 0;
    struct export_span s;
    char name[32];

    snprintf(name, sizeof(name), "sandbox %s", op_name(m->kind));
    if (!begin(w, work, name, m->ms * 1000, &s))
        return;
    memcpy(s.span, span, sizeof(s.span));
    s.failed = m->error[0] != '\0' || timed_out || over_memory || (m->kind == OP_EXEC && m->code != 0);
    export_text(&s, "cloche.sandbox.id", b->r.id);
    export_number(&s, "cloche.operation.id", (int64_t)m->number);
    export_text(&s, "process.command_line", command);
    if (m->error[0] == '\0' && m->kind == OP_EXEC)
        export_number(&s, signaled ? "cloche.operation.signal" : "process.exit.code", m->code);
    export_number(&s, m->kind == OP_EXEC ? "cloche.operation.output_bytes" : "cloche.operation.count",
                  (int64_t)m->bytes);
    export_text(&s, "error.type", m->error[0] != '\0' ? m->error : timed_out ? "timed-out"
                                  : over_memory ? "out-of-memory" : NULL);
    teller_span(&w->tell, &s);
}

/* --- what was decided --------------------------------------------------------------------------------------------- */

void
span_approval(struct warden *w, const struct edge_approval *a, const struct work *work)
{
    struct export_span s;

    if (!begin(w, work, "approval", clock_since(clock_wall_ms(), a->created_ms) * 1000, &s))
        return;
    s.failed = a->state != APPROVAL_APPROVED;
    export_text(&s, "cloche.sandbox.id", a->box);
    export_text(&s, "cloche.approval.id", a->id);
    export_text(&s, "cloche.approval.state", approval_state_name(a->state));
    export_text(&s, "cloche.approval.tool", a->tool);
    export_text(&s, "cloche.approval.risk", gate_risk_name(a->risk));
    if (strcmp(a->tool, APPROVAL_NETWORK) != 0)     /* there it is the host, as the sandbox's code said it */
        export_text(&s, "cloche.approval.rule", a->rule);
    teller_span(&w->tell, &s);
}

/* As a text of its own, without what must not be in a record of @b. "" where that takes more room. */
static const char *
clean(const struct box *b, struct str text, char room[EXPORT_TEXT_MAX + 1])
{
    cleanup_buf struct buf out = BUF_INIT(EXPORT_TEXT_MAX);

    if (masks_redact((void *)(uintptr_t)&b->masks, text, &out))
        text = (struct str){ (const char *)out.p, buf_ok(&out) ? out.n : 0 };
    snprintf(room, EXPORT_TEXT_MAX + 1, "%.*s", text.n <= EXPORT_TEXT_MAX ? (int)text.n : 0,
             text.p != NULL ? text.p : "");
    return room;
}

void
span_noted(struct warden *w, struct box *b, const struct audit_entry *e)
{
    static const struct { const char *key, *name; } names[] = {
        { "host", "server.address" }, { "port", "server.port" }, { "decision", "cloche.decision" },
        { "rule", "cloche.rule" }, { "reason", "cloche.reason" }, { "via", "cloche.via" },
        { "method", "http.request.method" }, { "tool", "cloche.tool" }, { "count", "cloche.count" },
    };
    static char rooms[ARRAY_LEN(names)][EXPORT_TEXT_MAX + 1];   /* there is one thread */
    struct export_span s;
    bool host = false;
    struct work work;

    if (!teller_is(&w->tell))
        return;
    for (size_t i = 0; i < e->n_meta; i++)
        host |= strcmp(e->meta[i].key, "host") == 0;
    if (!host)
        return;
    work = record_under_way(w, b);
    if (!begin(w, &work, "connection", 0, &s))
        return;
    s.kind = EXPORT_CONNECTION;
    export_text(&s, "cloche.sandbox.id", b->r.id);
    for (size_t i = 0; i < e->n_meta; i++) {
        const struct audit_meta *m = &e->meta[i];
        for (size_t k = 0; k < ARRAY_LEN(names); k++) {
            if (strcmp(names[k].key, m->key) != 0)
                continue;
            if (m->kind == AUDIT_STRING)
                export_text(&s, names[k].name, clean(b, m->text, rooms[k]));
            else
                export_number(&s, names[k].name, m->number);
        }
    }
    for (size_t i = 0; i < s.n_notes; i++)
        s.failed |= strcmp(s.notes[i].key, "cloche.decision") == 0 && strcmp(s.notes[i].text, "deny") == 0;
    teller_span(&w->tell, &s);
}
