/* warden/approvals_ask.c: questions about approvals and grants (approvals.h) */
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "warden/approvals.h"
#include "warden/record.h"

/* --- answers ------------------------------------------------------------------------------------------------------ */

/* @names: of variables without their values. */
static void
answer_approval(struct warden *w, struct asker to, const struct edge_approval *r, bool names)
{
    cleanup_free char *less = names && r->params[0] != '\0' ? deed_names(r->params) : NULL;
    struct edge_approval shown = *r;

    if (names)
        shown.params = less;
    ANSWER(w, to, EDGE_APPROVAL, .approval = shown);
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

    ANSWER(t->w, t->to, EDGE_GRANT, .grant = *g);
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

static int
approvals_ask_refuse(struct warden *w, const struct err *err)
{
    answer_no(w, w->asker, err);
    return 0;
}

/* Of a tool that is none of the questions: what MCP offers. */
int
asked_gate(struct warden *w, const struct ask_gate *m)
{
    json_t *params = json_loads(m->params, JSON_REJECT_DUPLICATES, NULL);
    bool async = (w->question->flags & EDGE_ASYNC) != 0;
    struct box *b = NULL;
    struct edge_verdict v;
    struct err err = ERR_INIT;
    struct deed d;

    if (!json_is_object(params)) {
        json_decref(params);
        return -1;
    }
    if (m->id[0] != '\0' && (b = living(w, m->id)) == NULL) {
        json_decref(params);
        not_found(m->id, &err);
        return approvals_ask_refuse(w, &err);
    }
    if (deed_call(w, m->tool, b != NULL ? b->r.id : "", params, &d, &err) < 0)
        return approvals_ask_refuse(w, &err);
    if (gate_decide(w, &d, async, &v, &err) == GATE_ALLOWED) {
        v.pass = gate_judges(w) ? pass_new(w, &d) : v.pass;
        call_let_through(w, b, m->tool, m->params);
    }
    if (err.kind != ERR_NONE)
        answer_no(w, w->asker, &err);
    else if (v.says != GATE_WAIT || async)
        ANSWER(w, w->asker, EDGE_GATE, .verdict = v);
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

int
asked_approvals(struct warden *w, const struct ask_approvals *m)
{
    struct told t = { .w = w, .to = w->asker, .names = w->who.role == EDGE_AUDITOR };
    bool own = w->who.role == EDGE_AGENT || w->who.role == EDGE_KEY, more;
    char caller[EDGE_CALLER_MAX + 1] = "", after[EDGE_ID + 1] = "";
    struct state_approvals_query q = { .id = m->id, .caller = caller, .after = after, .state = m->state,
                                       .limit = m->limit };
    struct err err = ERR_INIT;
    int n;

    (void)edge_cursor(m->after, after, &q.after_ms);
    if (own)
        caller_of(&w->who, caller);
    if (own && m->follow) {
        err_set(&err, ERR_DENIED, "auth.role", "an agent may not follow what others ask");
        return approvals_ask_refuse(w, &err);
    }
    t.whole = m->id[0] != '\0';
    n = state_approvals_from(w->approvals->store, &q, tell_approval, &t, &more, &err);
    if (n < 0)
        return approvals_ask_refuse(w, &err);
    if (m->id[0] != '\0' && n == 0) {
        err_set(&err, ERR_NOT_FOUND, "gate.not-found", "there is no approval \"%s\"", m->id);
        return approvals_ask_refuse(w, &err);
    }
    if (m->follow && follow(w, &err) < 0)
        return approvals_ask_refuse(w, &err);
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
    return approvals_ask_refuse(w, &err);
}

/* Who decides by a digest decides about nothing else. */
static int
was_shown(const struct approval *a, const struct edge_decision *d, struct err *err)
{
    if (d->digest[0] == '\0' || strcmp(d->digest, a->r.digest) == 0)
        return 0;
    err_set(err, ERR_DENIED, "gate.digest", "this is not what was shown: its digest is another one");
    return err_hint(err, "nothing was decided; GET /v1/approvals/%s shows it", a->r.id);
}

/* A denial waits for nothing. */
static bool
recorded(struct warden *w, const struct approval *a, const struct edge_decision *d)
{
    struct audit_entry e;

    if (!d->approve)
        return false;
    record_begin(w, &e, "something is to be approved");
    audit_put_cstr(&e, "approval", a->r.id);
    audit_put_cstr(&e, "scope", approval_scope_name(d->scope));
    return record_first(w, box_of_id(w, a->r.box), &e);
}

int
asked_decide(struct warden *w, const struct edge_decision *m)
{
    struct told t = { .w = w, .to = w->asker, .whole = true };
    struct err err = ERR_INIT;
    struct approval *a;
    char id[EDGE_ID + 1];

    memcpy(id, m->id, sizeof(id));
    for (a = w->approvals->open; a != NULL; a = a->next)
        if (strcmp(a->r.id, id) == 0 && a->r.state == APPROVAL_PENDING)
            break;
    if (a == NULL)
        return not_open(w, id);
    if (approval_may(w, a, &err) < 0 || was_shown(a, m, &err) < 0)
        return approvals_ask_refuse(w, &err);
    if (recorded(w, a, m))
        return 0;
    if (approval_decide(w, a, m, &err) < 0)
        return approvals_ask_refuse(w, &err);
    (void)state_approvals(w->approvals->store, id, 0, "", 1, tell_approval, &t, NULL);
    answer_end(w, w->asker, 1, false);
    if (m->approve)
        approval_release(w, a);
    return 0;
}

int
asked_grants(struct warden *w, const struct ask_id *m)
{
    struct told t = { .w = w, .to = w->asker };
    struct err err = ERR_INIT;
    char who[160];
    int n;

    (void)state_gate_prune(w->approvals->store, time_now(w), NULL);
    if (m->id[0] != '\0') {
        if (state_grant_forget(w->approvals->store, m->id, &err) < 0)
            return approvals_ask_refuse(w, &err);
        who_text(w, &w->who, who);
        warden_note(w, NULL, "gate_revoked", "grant %s, by %s", m->id, who);
        answer_end(w, w->asker, 0, false);
        return 0;
    }
    n = state_grants(w->approvals->store, tell_grant, &t, &err);
    if (n < 0)
        return approvals_ask_refuse(w, &err);
    answer_end(w, w->asker, (uint32_t)n, false);
    return 0;
}

int
asked_cancel(struct warden *w, const struct ask_cancel *m)
{
    struct asker to = { .front = w->asker.front, .ticket = m->ticket };

    approvals_cancel(w, to);
    box_maker_gone(w, to);
    return 0;
}
