/* warden/approvals_ask.c: questions about approvals and grants (approvals.h) */
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "warden/approvals.h"
#include "warden/record.h"

#define FRAME_MAX (EDGE_PARAMS_MAX + 8192)

/* --- answers ------------------------------------------------------------------------------------------------------ */

void
answer_verdict(struct warden *w, struct asker to, const struct edge_verdict *v)
{
    cleanup_buf struct buf b = BUF_INIT(FRAME_MAX);
    size_t at = answer_begin(&b, EDGE_GATE, to);

    edge_verdict_put(&b, v);
    answer_send(w, to, &b, at, -1);
}

void
answer_approval(struct warden *w, struct asker to, const struct edge_approval *r, bool names)
{
    cleanup_free char *less = names && r->params[0] != '\0' ? deed_names(r->params) : NULL;
    cleanup_buf struct buf b = BUF_INIT(FRAME_MAX);
    size_t at = answer_begin(&b, EDGE_APPROVAL, to);
    struct edge_approval shown = *r;

    if (names)
        shown.params = less != NULL ? less : "";
    edge_approval_put(&b, &shown);
    answer_send(w, to, &b, at, -1);
}

struct told { struct warden *w; struct asker to; bool whole, names; };

static void
tell_approval(void *ctx, const struct edge_approval *r)
{
    const struct told *t = ctx;
    struct edge_approval shown = *r;

    if (!t->whole && strlen(r->params) > EDGE_PARAMS_SHORT)
        shown.params = "";
    answer_approval(t->w, t->to, &shown, t->names);
}

static void
tell_grant(void *ctx, const struct edge_grant *g)
{
    const struct told *t = ctx;
    cleanup_buf struct buf b = BUF_INIT(4096);
    size_t at = answer_begin(&b, EDGE_GRANT, t->to);

    edge_grant_put(&b, g);
    answer_send(t->w, t->to, &b, at, -1);
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

static int
refuse(struct warden *w, const struct err *err)
{
    answer_no(w, w->asker, err);
    return 0;
}

/* Of a tool that is none of the questions: what MCP offers. */
static int
on_gate(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;
    struct wire_in in = ask_in(f);
    const char *id = wire_cstr(&in, EDGE_NAME_MAX, NULL), *tool = wire_cstr(&in, GATE_NAME_MAX, NULL);
    const char *text = wire_cstr(&in, EDGE_OP_MAX, NULL);
    const struct box *b = NULL;
    struct edge_verdict v;
    struct err err = ERR_INIT;
    struct deed d;
    json_t *params;

    if (!wire_done(&in) || !gate_tool_well(tool))
        return -1;
    params = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(params)) {
        json_decref(params);
        return -1;
    }
    if (id[0] != '\0' && (b = living(w, id)) == NULL) {
        json_decref(params);
        not_found(id, &err);
        return refuse(w, &err);
    }
    if (deed_make(tool, b != NULL ? b->r.id : "", params, "", 0, &d, &err) < 0)
        return refuse(w, &err);
    if (gate_decide(w, &d, f, (f->flags & EDGE_ASYNC) != 0, &v, &err) == GATE_ALLOWED && gate_judges(w))
        v.pass = pass_new(w, &d);
    if (err.kind != ERR_NONE)
        answer_no(w, w->asker, &err);
    else if (v.says != GATE_WAIT || (f->flags & EDGE_ASYNC) != 0)
        answer_verdict(w, w->asker, &v);
    deed_free(&d);
    return 0;
}

static int
follow(struct warden *w, struct err *err)
{
    struct approvals *q = w->approvals;
    struct follow_count n = { .all = 0 };

    for (size_t i = 0; i < q->n_followers; i++)
        follow_counts(w, &q->followers[i].who, &q->followers[i].proof, &n);
    if (follow_may(w, &n, "gate.followers", err) < 0)
        return -1;
    q->followers[q->n_followers++] = (struct approval_follower){
        .to = w->asker, .proof = w->proof, .who = w->who, .names = w->who.role == EDGE_AUDITOR,
    };
    follow_look(w);
    return 0;
}

/* @r NULL: nothing is told, they are counted. */
static void
each_follower(struct warden *w, const struct edge_approval *r, struct follow_count *c)
{
    struct approvals *q = w->approvals;

    for (size_t i = q->n_followers; i-- > 0;) {
        struct approval_follower *f = &q->followers[i];
        struct err err = ERR_INIT;
        struct who who;
        if (who_still(w, f->to.front, &f->proof, EDGE_ASK_APPROVALS, &who, &err) < 0) {
            answer_no(w, f->to, &err);
            *f = q->followers[--q->n_followers];
        } else if (r != NULL) {
            answer_approval(w, f->to, r, f->names);
        } else {
            follow_counts(w, &f->who, &f->proof, c);
        }
    }
}

void
approval_tell(struct warden *w, const struct edge_approval *r)
{
    each_follower(w, r, NULL);
}

void
approvals_judge(struct warden *w, struct follow_count *c)
{
    each_follower(w, NULL, c);
}

static int
on_approvals(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;
    struct wire_in in = ask_in(f);
    uint8_t following = wire_u8(&in), state = wire_u8(&in);
    uint16_t limit = wire_be16(&in);
    const char *id = wire_cstr(&in, EDGE_ID, NULL), *cursor = wire_cstr(&in, EDGE_CURSOR_MAX, NULL);
    struct told t = { .w = w, .to = w->asker, .names = w->who.role == EDGE_AUDITOR };
    bool own = w->who.role == EDGE_AGENT || w->who.role == EDGE_KEY, more;
    char caller[EDGE_CALLER_MAX + 1] = "", after[EDGE_ID + 1] = "";
    struct state_approvals_query q = { .id = id, .caller = caller, .after = after, .state = state, .limit = limit };
    struct err err = ERR_INIT;
    int n;

    if (!wire_done(&in) || following > 1 || state >= APPROVAL_STATES || limit == 0 || limit > EDGE_APPROVALS_OPEN ||
        (id[0] != '\0' && !edge_is_id(id)) || (cursor[0] != '\0' && !edge_cursor(cursor, after, &q.after_ms)))
        return -1;
    if (own)
        caller_of(&w->who, caller);
    if (own && following != 0) {
        err_set(&err, ERR_DENIED, "auth.role", "an agent may not follow what others ask");
        return refuse(w, &err);
    }
    t.whole = id[0] != '\0';
    n = state_approvals_from(w->approvals->store, &q, tell_approval, &t, &more, &err);
    if (n < 0)
        return refuse(w, &err);
    if (id[0] != '\0' && n == 0) {
        err_set(&err, ERR_NOT_FOUND, "gate.not-found", "there is no approval \"%s\"", id);
        return refuse(w, &err);
    }
    if (following != 0 && follow(w, &err) < 0)
        return refuse(w, &err);
    answer_end(w, w->asker, (uint32_t)n, more);
    return 0;
}

static void
ignore(void *ctx, const struct edge_approval *r)
{
    (void)ctx;
    (void)r;
}

static int
not_open(struct warden *w, const char *id)
{
    struct err err = ERR_INIT;
    int n = state_approvals(w->approvals->store, id, 0, "", 1, ignore, NULL, &err);

    if (n == 0)
        err_set(&err, ERR_NOT_FOUND, "gate.not-found", "there is no approval \"%s\"", id);
    else if (n > 0)
        err_set(&err, ERR_DENIED, "gate.decided", "it is decided already");
    err_hint(&err, "GET /v1/approvals/%s shows it", id);
    return refuse(w, &err);
}

/* A denial waits for nothing. */
static bool
recorded(struct warden *w, const struct frame *f, const struct approval *a, const struct edge_decision *d)
{
    struct audit_entry e;

    if (!d->approve)
        return false;
    audit_capability(&e, NULL, "approve", "something is to be approved");
    audit_put_cstr(&e, "approval", a->r.id);
    audit_put_cstr(&e, "scope", approval_scope_name(d->scope));
    return record_first(w, f, box_of_id(w, a->r.box), &e, RECORD_WAIT);
}

static int
on_decide(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;
    struct wire_in in = ask_in(f);
    struct told t = { .w = w, .to = w->asker, .whole = true };
    struct edge_decision d;
    struct err err = ERR_INIT;
    struct approval *a;
    char id[EDGE_ID + 1];

    if (!edge_decision_get(&in, &d))
        return -1;
    memcpy(id, d.id, sizeof(id));
    for (a = w->approvals->open; a != NULL; a = a->next)
        if (strcmp(a->r.id, id) == 0 && a->r.state == APPROVAL_PENDING)
            break;
    if (a == NULL)
        return not_open(w, id);
    if (approval_may(w, a, &err) < 0)
        return refuse(w, &err);
    if (recorded(w, f, a, &d))
        return 0;
    if (approval_decide(w, a, &d, &err) < 0)
        return refuse(w, &err);
    (void)state_approvals(w->approvals->store, id, 0, "", 1, tell_approval, &t, NULL);
    answer_end(w, w->asker, 1, false);
    if (d.approve)
        approval_release(w, a);
    return 0;
}

static int
on_grants(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;
    struct wire_in in = ask_in(f);
    const char *id = wire_cstr(&in, EDGE_ID, NULL);
    struct told t = { .w = w, .to = w->asker };
    struct err err = ERR_INIT;
    char who[160];
    int n;

    if (!wire_done(&in) || (id[0] != '\0' && !edge_is_id(id)))
        return -1;
    (void)state_gate_prune(w->approvals->store, time_now(w), NULL);
    if (id[0] != '\0') {
        if (state_grant_forget(w->approvals->store, id, &err) < 0)
            return refuse(w, &err);
        who_text(w, &w->who, who);
        warden_note(w, NULL, "gate_revoked", "grant %s, by %s", id, who);
        answer_end(w, w->asker, 0, false);
        return 0;
    }
    n = state_grants(w->approvals->store, tell_grant, &t, &err);
    if (n < 0)
        return refuse(w, &err);
    answer_end(w, w->asker, (uint32_t)n, false);
    return 0;
}

static int
on_cancel(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;
    struct wire_in in = ask_in(f);
    struct asker to = { .front = w->asker.front, .ticket = wire_be32(&in) };

    if (!wire_done(&in) || to.ticket == 0)
        return -1;
    approvals_cancel(w, to);
    box_maker_gone(w, to);
    return 0;
}

const struct msg_rule approval_rules[] = {
    /* type               once   flags       states min  max length                                     handler */
    { EDGE_ASK_GATE,      false, EDGE_ASYNC, 1,     23,  23 + EDGE_NAME_MAX + GATE_NAME_MAX + EDGE_OP_MAX, on_gate },
    { EDGE_ASK_APPROVALS, false, 0,          1,     22,  22 + EDGE_ID + EDGE_CURSOR_MAX,                on_approvals },
    { EDGE_ASK_DECIDE,    false, 0,          1,     24,  24 + EDGE_ID + EDGE_REASON_MAX,                on_decide },
    { EDGE_ASK_GRANTS,    false, 0,          1,     13,  13 + EDGE_ID,                                  on_grants },
    { EDGE_ASK_CANCEL,    false, 0,          1,     12,  12,                                            on_cancel },
};
const size_t approval_n_rules = ARRAY_LEN(approval_rules);
