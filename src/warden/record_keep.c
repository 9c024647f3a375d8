/* warden/record_keep.c: what keepers say for the audit record
 *
 * A keeper parses what its sandbox's guest says. Its entries are about its own sandbox, whatever it says, are marked as
 * its word, and have only the types that a keeper can know about.
 */
#include <stdlib.h>
#include <string.h>

#include "warden/entry.h"
#include "warden/record_priv.h"
#include "warden/spans.h"

#define SHARES 16       /* of the room for what is not written yet */

void
record_remember_trace(const struct warden *w)
{
    struct record *r = w->record;
    struct traced *t = &r->traced[r->n_traced++ % RECORD_TRACED];

    free(t->command);
    *t = (struct traced){ .operation = r->operation, .work = w->work };
}

/* NULL: that is not known any more. */
static struct traced *
traced(const struct warden *w, uint64_t operation)
{
    for (size_t i = 0; i < RECORD_TRACED; i++)
        if (w->record->traced[i].operation == operation)
            return &w->record->traced[i];
    return NULL;
}

void
record_traced(struct warden *w, const struct box *b, const struct edge_op *op)
{
    struct traced *t = w->work.sampled && teller_is(&w->tell) ? traced(w, w->record->operation) : NULL;

    if (t == NULL)
        return;
    teller_id(t->span, sizeof(t->span));
    memcpy(t->box, b->r.id, sizeof(t->box));
    if (w->tell.commands && op->n_argv > 0)
        t->command = span_command(b, op);
}

static void
traced_over(struct traced *t)
{
    t->box[0] = '\0';
    free(t->command);
    t->command = NULL;
}

void
record_box_gone(struct warden *w, const struct box *b)
{
    for (size_t i = 0; i < RECORD_TRACED; i++)
        if (strcmp(w->record->traced[i].box, b->r.id) == 0)
            traced_over(&w->record->traced[i]);
}

struct work
record_under_way(const struct warden *w, const struct box *b)
{
    const struct traced *found = NULL;
    struct work out = span_work(w, b);

    for (size_t i = 0; i < RECORD_TRACED; i++) {
        const struct traced *t = &w->record->traced[i];
        if (t->box[0] == '\0' || strcmp(t->box, b->r.id) != 0)
            continue;
        if (found != NULL)
            return span_work(w, b);
        found = t;
        out = t->work;
        memcpy(out.span, t->span, sizeof(out.span));
    }
    return out;
}

bool
record_can(const struct warden *w, const struct box *b)
{
    return !record_required(w, b) || (!w->record->down && w->record->why[0] == '\0');
}

bool
record_heard_again(struct warden *w, bool again)
{
    bool was = w->record->again;

    w->record->again = again;
    return was;
}

/* What values are recognised by. Only about its own sandbox, whose entries alone are read with it. */
int
record_on_masks(struct warden *w, const struct keep_masks *m)
{
    struct masks *set = &w->heard->masks;
    struct wire_in in = wire_in_of(m->prints, m->n_prints);

    masks_free(set);
    memcpy(set->key, m->key, MASK_KEY);
    set->all = m->all;
    while (in.n > 0) {
        struct mask print = { .n = 0 };
        if (!proto_get_some(&in, &mask_shape, &print))
            return -1;
        masks_add_print(set, &print);
    }
    return 0;
}

static bool
keeper_may(const struct audit_entry *e)
{
    switch (e->type) {
    case AUDIT_POLICY_DECISION:
    case AUDIT_SECRET_OUTBOUND:
    case AUDIT_SECRET_INBOUND:
    case AUDIT_FALLBACK:
    case AUDIT_FETCH_ERROR:
        return true;
    case AUDIT_CAPABILITY:      /* a rule about hosts that an approval added: nothing else that is done is its to say */
        return e->n_meta > 0 && strcmp(e->meta[0].key, "capability") == 0 && e->meta[0].kind == AUDIT_STRING &&
               str_eq(e->meta[0].text, STR_LIT("network_rule"));
    default:
        return false;
    }
}

/* Whether what its keeper says unasked may wait: when half of the room is in use, each has a share of it, so that one
 * that was taken over pushes nobody else's entries out. */
static bool
has_room(const struct record *r, const struct box *b)
{
    size_t own = 0;

    for (const struct item *i = r->first; i != NULL && r->bytes > RECORD_QUEUE_MAX / 2; i = i->next)
        own += strcmp(i->by, b->r.id) == 0 ? i->n : 0;
    return own <= RECORD_QUEUE_MAX / SHARES;
}

int
record_on_noted(struct warden *w, const struct keep_noted *m)
{
    struct wire_in in = wire_in_of(m->entry, m->n_entry);
    struct audit_entry e;

    if (!entry_get(&in, &e) || !wire_done(&in) || !keeper_may(&e))
        return -1;
    span_noted(w, w->heard, &e);
    if (has_room(w->record, w->heard)) {
        record_said(w, w->heard, &e);
    } else {
        w->record->lost++;
        w->counts.audit_failed++;
    }
    return 0;
}

int
record_on_op_said(struct warden *w, const struct keep_op_said *m)
{
    struct traced *t = traced(w, m->number);
    struct audit_entry e;

    if (!keep_answers(&w->heard->asked.said))
        return -1;
    if (m->kind == OP_ATTACH || m->kind == OP_DESKTOP)
        attach_closed(w, w->heard->r.id, m, NULL);
    audit_capability(&e, NULL, op_name(m->kind), "an operation ended");
    if (m->error[0] != '\0' || (m->flags & (EDGE_TIMED_OUT | EDGE_OOM)) != 0)
        e.severity = AUDIT_WARN;
    audit_put_cstr(&e, "event", "result");
    audit_put_number(&e, "operation", (int64_t)m->number);
    if (m->error[0] != '\0')
        audit_put_cstr(&e, "error", m->error);
    else if (m->kind == OP_EXEC)
        audit_put_number(&e, (m->flags & EDGE_SIGNALED) != 0 ? "signal" : "exit_code", m->code);
    if ((m->flags & EDGE_TIMED_OUT) != 0)
        audit_put_bool(&e, "timed_out", true);
    if ((m->flags & EDGE_OOM) != 0)
        audit_put_bool(&e, "oom_killed", true);
    audit_put_number(&e, "duration_ms", (int64_t)m->ms);
    audit_put_number(&e, m->kind == OP_EXEC ? "output_bytes" : "count", (int64_t)m->bytes);
    if (t != NULL)
        w->work = t->work;
    record_said(w, w->heard, &e);
    w->work = (struct work){ .trace = "" };
    if (t == NULL)
        return 0;
    if (t->box[0] != '\0')
        span_operation(w, w->heard, m, &t->work, t->span, t->command);
    traced_over(t);
    return 0;
}
