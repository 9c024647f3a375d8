/* warden/who.c: who asks, and who may ask what
 *
 * A front presents a credential and has a handle for it, which it may use again (epoch.h); the handle is good on that
 * front's edge only, and what it stands for is looked up in each question: a token that was revoked or is over, and a
 * key that was replaced, open nothing any more from then on. A question that the table below does not name is nobody's.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "warden/approvals.h"
#include "warden/record.h"
#include "warden/trace_id.h"

#define REFUSALS   20           /* that are noted within a minute; of the others how many there were */
#define MINUTE_MS  60000

/* --- who may ask what --------------------------------------------------------------------------------------------- */

#define OPERATOR (1U << EDGE_OPERATOR)
#define AGENT    (1U << EDGE_AGENT)
#define APPROVER (1U << EDGE_APPROVER)
#define AUDITOR  (1U << EDGE_AUDITOR)
#define KEY      (1U << EDGE_KEY)
#define ATTACH   (1U << EDGE_ATTACH)
#define ANYBODY  (1U << EDGE_NOBODY | OPERATOR | AGENT | APPROVER | AUDITOR | KEY | ATTACH)

struct wire_in
ask_in(const struct frame *f)
{
    return wire_in_of(f->payload + edge_caller_MOST, f->length - edge_caller_MOST);
}

/* Each question read, judged by the gate where that is to judge it, and answered. */
#define HELD_GATED(name) \
    if (gate_is_on(w)) { \
        struct err err = ERR_INIT; \
        struct deed d; \
        if (gate_holds(w, deed_##name(w, &m, &d, &err), &d, &err)) \
            return 0; \
    }
#define HELD_WAITS(name)
#define HELD_FREE(name)
#define HEAR(number, value, message, name, roles_, gate, ...) \
    static int \
    hear_##name(void *ctx, const struct frame *f) \
    { \
        struct warden *w = ctx; \
        struct wire_in in = ask_in(f); \
        struct message m; \
        if (!message##_get(&in, &m)) \
            return -1; \
        HELD_##gate(name) \
        return asked_##name(w, &m); \
    }
EDGE_QUESTIONS(HEAR)

/* An agent and a key reach their own sandboxes only, whatever they ask (who_reaches, who_owner). */
#define RECORDED(what, way_) .recorded = what, .way = way_
#define BY_KIND .recorded = NULL            /* as what it does */
#define NOTED   .recorded = NULL            /* as an event, when it is done */
#define LOOKS   .recorded = NULL            /* it changes nothing */
#define FLAGS_GATED EDGE_ASYNC
#define FLAGS_WAITS EDGE_ASYNC
#define FLAGS_FREE  0
#define QUESTION(number, value, message, name, roles_, gate, ...) \
    { .rule = { .type = number, .flags = FLAGS_##gate, .states = 1, .min_length = edge_caller_LEAST + message##_LEAST, \
                .max_length = edge_caller_MOST + message##_MOST, .handler = hear_##name }, \
      .roles = roles_, __VA_ARGS__ },
static const struct question {
    struct msg_rule rule;
    unsigned roles;
    const char *recorded;       /* before it is done, as that; NULL: it is not, or by its own handler */
    enum record_way way;
} questions[] = { EDGE_QUESTIONS(QUESTION) };

/* NULL: there is no such question. */
static const struct question *
question_of(uint8_t type)
{
    for (size_t i = 0; i < ARRAY_LEN(questions); i++)
        if (questions[i].rule.type == type)
            return &questions[i];
    return NULL;
}

static unsigned
roles_of(uint8_t type)
{
    const struct question *q = question_of(type);

    return q != NULL ? q->roles : 0;
}

const char *
question_recorded(uint8_t type, enum record_way *way)
{
    const struct question *q = question_of(type);

    *way = q != NULL ? q->way : RECORD_WAIT;
    return q != NULL ? q->recorded : NULL;
}

bool
who_reaches(const struct who *who, const struct edge_box *r)
{
    switch (who->role) {
    case EDGE_OPERATOR:
    case EDGE_AUDITOR: return true;
    case EDGE_AGENT: return strcmp(r->owner, who->id) == 0;
    case EDGE_KEY:
    case EDGE_ATTACH: return strcmp(r->id, who->box) == 0;
    default: return false;
    }
}

const char *
who_owner(const struct who *who)
{
    return who->role == EDGE_OPERATOR || who->role == EDGE_AUDITOR ? NULL : who->id;
}

void
who_text(const struct warden *w, const struct who *who, char out[EDGE_WHO_MAX + 1])
{
    const struct token *t = token_of(w, who->id);
    const char *name = t != NULL ? t->r.name : "";

    if (who->role == EDGE_KEY)
        snprintf(out, EDGE_WHO_MAX + 1, "the key of %s", who->box);
    else if (who->role == EDGE_ATTACH)
        snprintf(out, EDGE_WHO_MAX + 1, "session %s", who->id);
    else if (who->role == EDGE_NOBODY || who->id[0] == '\0')
        snprintf(out, EDGE_WHO_MAX + 1, "%s", who->role == EDGE_OPERATOR ? "the owner" : "nobody");
    else
        snprintf(out, EDGE_WHO_MAX + 1, "%s %s%s%s", edge_role_name(who->role), who->id, name[0] != '\0' ? " " : "",
                 name);
}

/* --- judging ------------------------------------------------------------------------------------------------------ */

/* Strangers may try credentials as often as they like, but not push what matters out of the record. */
void
who_refused(struct warden *w, const char *fmt, ...)
{
    uint64_t minute = clock_ms() / MINUTE_MS;
    char who[160], what[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);

    if (w->refused_ms != minute) {
        if (w->refused > REFUSALS)
            warden_note(w, NULL, "auth_refused", "%u more were refused", w->refused - REFUSALS);
        w->refused_ms = minute;
        w->refused = 0;
    }
    who_text(w, &w->who, who);
    w->counts.refused++;
    if (w->refused++ < REFUSALS)
        warden_note(w, NULL, "auth_refused", "%s: %s", who, what);
}

/* Who that is for on that front's edge, now. 0 or -1 with @err. */
static int
who_of(struct warden *w, const struct front_edge *e, const struct proof *by, struct who *out, struct err *err)
{
    uint64_t until;

    *out = WHO_NOBODY;
    if (by->is)
        return credential_who(w, by->hash, out, &until, err);
    if (e->owner)
        *out = (struct who){ .role = EDGE_OPERATOR };
    return 0;
}

int
who_may_not(enum edge_role role, struct err *err)
{
    err_set(err, ERR_DENIED, "auth.role", "the role \"%s\" may not do this", edge_role_name(role));
    return err_hint(err, "docs/daemon.md says what each role may");
}

int
who_still(struct warden *w, uint32_t front, const struct proof *by, uint8_t question, struct who *out, struct err *err)
{
    if (who_of(w, &w->fronts[front], by, out, err) < 0)
        return -1;
    if ((roles_of(question) & 1U << out->role) != 0)
        return 0;
    return err_set(err, ERR_DENIED, "auth.role", "the role \"%s\" may not do this", edge_role_name(out->role));
}

/* What stands behind a question's handle: 0 or -1 with @err. */
static int
proof_of(struct warden *w, struct front_edge *e, uint32_t number, struct proof *out, struct err *err)
{
    const struct handle *h;

    *out = (struct proof){ .is = false };
    if (number == 0 || gate_pass(w, e, number, out))
        return 0;
    h = handle_find(&e->handles, number);
    if (h == NULL) {
        err_set(err, ERR_DENIED, "auth.again", "too many callers at once");
        return err_hint(err, "try again");
    }
    out->is = true;
    memcpy(out->hash, h->hash, sizeof(out->hash));
    return 0;
}

/* Takes something back that this front asked itself, by its number. That needs no credential: who asked may be gone
 * because theirs opens nothing any more. */
static bool
withdraws(uint8_t question)
{
    return question == EDGE_ASK_CANCEL || question == EDGE_ASK_UNFOLLOW;
}

/* 1: go on; 0: refused, which was said; -1: malformed. */
static int
judge(struct warden *w, struct front_edge *e, const struct frame *f, const struct proof *by)
{
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct err err = ERR_INIT;
    struct edge_caller caller;

    w->who = WHO_NOBODY;
    w->proof = (struct proof){ .is = false };
    w->approvals->pass = NULL;
    if (!proto_get_some(&in, &edge_caller_shape, &caller))
        return -1;
    w->asker = (struct asker){ .front = (uint32_t)(e - w->fronts), .ticket = caller.ticket };
    if (f->type == EDGE_ASK_WHO || withdraws(f->type))
        return 1;       /* who it is, is the first one's question */
    if (by != NULL) {
        w->proof = *by;
        if (caller.who != 0)    /* one that waited has the pass that it had */
            (void)gate_pass(w, e, caller.who, &(struct proof){ .is = false });
    }
    if ((by != NULL || proof_of(w, e, caller.who, &w->proof, &err) == 0) &&
        who_of(w, e, &w->proof, &w->who, &err) == 0) {
        if ((roles_of(f->type) & 1U << w->who.role) != 0)
            return 1;
        if (w->who.role == EDGE_NOBODY) {
            err_set(&err, ERR_DENIED, "auth.required", "this needs a credential");
            err_hint(&err, "Authorization: Bearer TOKEN; `cloche token create` makes one");
        } else {
            who_may_not(w->who.role, &err);
            who_refused(w, "a question that its role may not ask");
        }
    }
    answer_no(w, w->asker, &err);
    return 0;
}

enum msg_verdict
front_asks(struct warden *w, struct front_edge *e, const struct frame *f, const struct proof *by)
{
    const struct question *q = question_of(f->type);
    struct msg_gate gate = { .n_rules = 1, .state = 1 };
    const struct frame *before = w->question;
    enum msg_verdict verdict;

    if (q == NULL)
        return MSG_UNKNOWN;
    gate.rules = &q->rule;
    verdict = msg_check(&gate, f);
    if (verdict != MSG_OK)
        return verdict;
    w->question = f;
    switch (judge(w, e, f, by)) {
    case 1: verdict = msg_dispatch(&gate, f, w); break;
    case 0: break;
    default: verdict = MSG_HANDLER;
    }
    w->question = before;
    return verdict;
}

/* Of nobody: the front wants to know whether we hear it. */
static enum msg_verdict
on_ping(struct warden *w, struct front_edge *e, const struct frame *f)
{
    const struct asker to = { .front = (uint32_t)(e - w->fronts) };

    if (f->length != 0 || f->flags != 0)
        return MSG_TOO_LONG;
    warden_flush(w);
    if (w->behind.kind != ERR_NONE)
        answer(w, to, EDGE_BEHIND, EDGE_BEHIND_SHAPE(), &(const struct edge_why){ .why = w->behind }, -1);
    else
        answer(w, to, EDGE_HEARD, &nothing_shape, NULL, -1);
    return MSG_OK;
}

enum msg_verdict
front_heard(struct warden *w, struct front_edge *e, const struct frame *f)
{
    struct frame rest = *f;
    enum msg_verdict verdict;

    if (f->type == EDGE_PING)
        return on_ping(w, e, f);
    if (f->length < EDGE_WORK)
        return MSG_TOO_SHORT;
    trace_digits(f->payload, EDGE_TRACE, w->work.trace);
    memcpy(w->work.id, f->payload, EDGE_TRACE);
    memcpy(w->work.span, f->payload + EDGE_TRACE, EDGE_SPAN);
    w->work.sampled = f->payload[EDGE_WORK - 1] == 1;
    rest.payload += EDGE_WORK;
    rest.length -= EDGE_WORK;
    verdict = front_asks(w, e, &rest, NULL);
    w->work = (struct work){ .trace = "" };     /* what comes next happens by itself */
    return verdict;
}

/* --- handles ------------------------------------------------------------------------------------------------------ */

static bool
is_good(void *ctx, const uint8_t hash[SHA256_SIZE])
{
    struct err err = ERR_INIT;
    struct who who;
    uint64_t until;

    return credential_who(ctx, hash, &who, &until, &err) == 0;
}

int
asked_who(struct warden *w, const struct ask_who *m)
{
    struct handles *handles = &w->fronts[w->asker.front].handles;
    uint8_t hash[SHA256_SIZE];
    struct err err = ERR_INIT;
    uint32_t number;
    uint64_t until, ended = handles->ended;

    sha256_of(m->text, strlen(m->text), hash);
    explicit_bzero(w->in, sizeof(w->in));
    if (credential_who(w, hash, &w->who, &until, &err) < 0) {
        who_refused(w, "%s", err.msg);
        answer_no(w, w->asker, &err);
        return 0;
    }
    number = handle_of(handles, hash, is_good, w);
    if (number == 0)
        return -1;      /* that edge ends, and the numbers of the next one are its own */
    if (handles->ended != ended)
        epoch_next(&w->epochs->credentials);
    ANSWER(w, w->asker, EDGE_WHO, .who = number, .role = w->who.role, .until_ms = time_on_wall(w, until),
           .box = w->who.box);
    return 0;
}
