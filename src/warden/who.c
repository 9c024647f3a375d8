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
#define ANYBODY  (1U << EDGE_NOBODY | OPERATOR | AGENT | APPROVER | AUDITOR | KEY)

/* An agent and a key reach their own sandboxes only, whatever they ask (who_reaches, who_owner). */
static const struct { uint8_t question; unsigned roles; } may[] = {
    { EDGE_ASK_CREATE,   OPERATOR | AGENT },
    { EDGE_ASK_GET,      OPERATOR | AGENT | AUDITOR | KEY },
    { EDGE_ASK_LIST,     OPERATOR | AGENT | AUDITOR },
    { EDGE_ASK_DELETE,   OPERATOR | AGENT },
    { EDGE_ASK_PAUSE,    OPERATOR | AGENT },
    { EDGE_ASK_RESUME,   OPERATOR | AGENT },
    { EDGE_ASK_RECOVER,  OPERATOR | AGENT },
    { EDGE_ASK_OP,       OPERATOR | AGENT | KEY },
    { EDGE_ASK_RUN,      OPERATOR | AGENT | KEY },
    { EDGE_ASK_STOP_ALL, OPERATOR },
    { EDGE_ASK_EVENTS,   OPERATOR | AGENT | AUDITOR },
    { EDGE_ASK_WHO,      ANYBODY },
    { EDGE_ASK_TOKEN,    OPERATOR },
    { EDGE_ASK_KEY,      OPERATOR | AGENT },
    { EDGE_ASK_AUDIT,    OPERATOR | AGENT | AUDITOR },
    { EDGE_ASK_UNFOLLOW, OPERATOR | AGENT | AUDITOR },
    { EDGE_ASK_TRANSCRIPT, OPERATOR | AGENT | AUDITOR | KEY },
    { EDGE_ASK_POLICY,   OPERATOR | AGENT | AUDITOR },
    { EDGE_ASK_CHANGE,   OPERATOR },
    { EDGE_ASK_STATS,    OPERATOR | AUDITOR },
    { EDGE_ASK_USAGE,    OPERATOR | AGENT | AUDITOR },
    { EDGE_ASK_FOLLOW,   OPERATOR | AGENT | AUDITOR },
    { EDGE_ASK_VOLUMES,  OPERATOR | AGENT | AUDITOR },
    { EDGE_ASK_GATE,     OPERATOR | AGENT | KEY },
    { EDGE_ASK_APPROVALS, OPERATOR | AGENT | APPROVER | AUDITOR | KEY },
    { EDGE_ASK_DECIDE,   OPERATOR | APPROVER },
    { EDGE_ASK_GRANTS,   OPERATOR | APPROVER },
    { EDGE_ASK_CANCEL,   ANYBODY },
    { EDGE_ASK_EXPOSE,   OPERATOR | AGENT },
    { EDGE_ASK_PORTS,    OPERATOR | AGENT | AUDITOR },
    { EDGE_ASK_UNEXPOSE, OPERATOR | AGENT },
    { EDGE_ASK_PREVIEW,  ANYBODY },      /* whoever has the capability */
};

/* The questions themselves. None of them may be a once-message. */
static const struct { const struct msg_rule *rules; const size_t *n; } tables[] = {
    { ask_rules, &ask_n_rules },
    { run_rules, &run_n_rules },
    { who_rules, &who_n_rules },
    { token_rules, &token_n_rules },
    { record_rules, &record_n_rules },
    { life_rules, &life_n_rules },
    { volume_rules, &volume_n_rules },
    { watch_rules, &watch_n_rules },
    { approval_rules, &approval_n_rules },
    { port_rules, &port_n_rules },
};

static unsigned
roles_of(uint8_t question)
{
    for (size_t i = 0; i < ARRAY_LEN(may); i++)
        if (may[i].question == question)
            return may[i].roles;
    return 0;
}

bool
who_reaches(const struct who *who, const struct edge_box *r)
{
    switch (who->role) {
    case EDGE_OPERATOR:
    case EDGE_AUDITOR: return true;
    case EDGE_AGENT: return strcmp(r->owner, who->id) == 0;
    case EDGE_KEY: return strcmp(r->id, who->box) == 0;
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

int
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

/* 1: go on; 0: refused, which was said; -1: malformed. */
static int
judge(struct warden *w, struct front_edge *e, const struct frame *f, const struct proof *by)
{
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct err err = ERR_INIT;
    uint32_t number;

    w->asker = (struct asker){ .front = (uint32_t)(e - w->fronts), .ticket = wire_be32(&in) };
    w->who = WHO_NOBODY;
    w->proof = (struct proof){ .is = false };
    w->approvals->pass = NULL;
    if (in.bad || w->asker.ticket == 0)
        return -1;
    if (f->type == EDGE_ASK_WHO)
        return 1;       /* that is what it asks */
    number = wire_be32(&in);
    if (in.bad)
        return -1;
    if (by != NULL)
        w->proof = *by;
    if ((by != NULL || proof_of(w, e, number, &w->proof, &err) == 0) &&
        who_of(w, e, &w->proof, &w->who, &err) == 0) {
        if ((roles_of(f->type) & 1U << w->who.role) != 0)
            return 1;
        if (w->who.role == EDGE_NOBODY) {
            err_set(&err, ERR_DENIED, "auth.required", "this needs a credential");
            err_hint(&err, "Authorization: Bearer TOKEN; `cloche token create` makes one");
        } else {
            err_set(&err, ERR_DENIED, "auth.role", "the role \"%s\" may not do this", edge_role_name(w->who.role));
            err_hint(&err, "docs/daemon.md says what each role may");
            who_refused(w, "a question that its role may not ask");
        }
    }
    answer_no(w, w->asker, &err);
    return 0;
}

enum msg_verdict
front_asks(struct warden *w, struct front_edge *e, const struct frame *f, const struct proof *by)
{
    enum msg_verdict verdict = MSG_UNKNOWN;

    for (size_t i = 0; i < ARRAY_LEN(tables) && verdict == MSG_UNKNOWN; i++) {
        struct msg_gate gate = { .rules = tables[i].rules, .n_rules = *tables[i].n, .state = 1 };
        verdict = msg_check(&gate, f);
        if (verdict != MSG_OK)
            continue;
        switch (judge(w, e, f, by)) {
        case 1: return gate_holds(w, f) ? MSG_OK : msg_dispatch(&gate, f, w);
        case 0: return MSG_OK;
        default: return MSG_HANDLER;
        }
    }
    return verdict;
}

/* Of nobody: the front wants to know whether we hear it. */
static enum msg_verdict
on_ping(struct warden *w, struct front_edge *e, const struct frame *f)
{
    uint8_t room[FRAME_HEADER];
    struct buf frame = BUF_INIT_IN(room, sizeof(room));

    if (f->length != 0 || f->flags != 0)
        return MSG_TOO_LONG;
    answer_send(w, (struct asker){ .front = (uint32_t)(e - w->fronts) }, &frame,
                frame_begin(&frame, EDGE_PONG, 0, 0), -1);
    return MSG_OK;
}

enum msg_verdict
front_heard(struct warden *w, struct front_edge *e, const struct frame *f)
{
    struct frame rest = *f;
    enum msg_verdict verdict;

    if (f->type == EDGE_PING)
        return on_ping(w, e, f);
    if (f->length < EDGE_TRACE)
        return MSG_TOO_SHORT;
    trace_digits(f->payload, EDGE_TRACE, w->trace);
    rest.payload += EDGE_TRACE;
    rest.length -= EDGE_TRACE;
    verdict = front_asks(w, e, &rest, NULL);
    w->trace[0] = '\0';         /* what comes next happens by itself */
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

static int
on_who(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;
    struct wire_in in = wire_in_of(f->payload + 4, f->length - 4);
    struct handles *handles = &w->fronts[w->asker.front].handles;
    uint8_t kind = wire_u8(&in), hash[SHA256_SIZE];
    const char *text = wire_cstr(&in, EDGE_CREDENTIAL_MAX, NULL);
    cleanup_buf struct buf b = BUF_INIT(256);
    struct err err = ERR_INIT;
    uint32_t number;
    uint64_t until, ended = handles->ended;
    size_t at;

    if (!wire_done(&in) || (kind != EDGE_BEARER && kind != EDGE_SANDBOX_KEY) ||
        !edge_credential_well((enum edge_credential)kind, text))
        return -1;      /* a front sends none that is not well-formed */
    sha256_of(text, strlen(text), hash);
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
    at = answer_begin(&b, EDGE_WHO, w->asker);
    buf_put_be32(&b, number);
    buf_put_u8(&b, (uint8_t)w->who.role);
    buf_put_be64(&b, time_on_wall(w, until));
    wire_put_cstr(&b, w->who.box, EDGE_ID);
    answer_send(w, w->asker, &b, at, -1);
    return 0;
}

const struct msg_rule who_rules[] = {
    /* type          once   flags states min max length                handler */
    { EDGE_ASK_WHO,  false, 0,    1,     10, 10 + EDGE_CREDENTIAL_MAX, on_who },
};
const size_t who_n_rules = ARRAY_LEN(who_rules);
