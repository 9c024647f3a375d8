/* warden/approvals.c: the queue of what waits for somebody's approval (see approvals.h) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "warden/approvals.h"
#include "warden/record.h"
#include "warden/spans.h"

#define NO_MS (APPROVAL_NO_S * 1000UL)

/* --- one ---------------------------------------------------------------------------------------------------------- */

static void
free_approval(struct approval *a)
{
    const char *texts[] = { a->r.caller, a->r.caller_text, a->r.tool, a->r.params, a->r.rule, a->r.description, a->r.by,
                            a->r.by_text, a->r.reason };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        free((void *)(uintptr_t)texts[i]);
    free(a->question);
    free(a);
}

/* In memory. NULL: no memory. */
static struct approval *
approvals_add(struct warden *w, const struct edge_approval *r)
{
    struct approval *a = calloc(1, sizeof(*a));
    const char **texts[9], *from[] = { r->caller, r->caller_text, r->tool, r->params, r->rule, r->description, r->by,
                                       r->by_text, r->reason };

    if (a == NULL)
        return NULL;
    a->r = *r;
    texts[0] = &a->r.caller;
    texts[1] = &a->r.caller_text;
    texts[2] = &a->r.tool;
    texts[3] = &a->r.params;
    texts[4] = &a->r.rule;
    texts[5] = &a->r.description;
    texts[6] = &a->r.by;
    texts[7] = &a->r.by_text;
    texts[8] = &a->r.reason;
    for (size_t i = 0; i < 9; i++)
        *texts[i] = strdup(from[i]);
    for (size_t i = 0; i < 9; i++) {
        if (*texts[i] == NULL) {
            free_approval(a);
            return NULL;
        }
    }
    a->next = w->approvals->open;
    w->approvals->open = a;
    return a;
}

static void
take_out(struct warden *w, struct approval *a)
{
    struct approval **at = &w->approvals->open;

    while (*at != a)
        at = &(*at)->next;
    *at = a->next;
    if (w->approvals->approved == a)
        w->approvals->approved = NULL;
    free_approval(a);
}

static timer_fn on_late;

/* Its time may be the next that is over. */
static void
expect(struct warden *w, const struct approval *a)
{
    struct timer *t = &w->approvals->late;

    t->due = on_late;
    t->owner = w;
    if (t->at_ms == 0 || a->until_ms < t->at_ms)
        loop_at(&w->loop, t, a->until_ms);
}

/* Values of variables are there to be looked at while somebody decides, and no longer. @grant: with it, or NULL. */
static int
store_with(struct warden *w, const struct approval *a, const struct edge_grant *grant, struct err *err)
{
    bool pending = a->r.state == APPROVAL_PENDING;
    cleanup_free char *names = pending ? NULL : deed_names(a->r.params);
    struct edge_approval r = a->r;

    if (!pending)
        r.params = names != NULL ? names : "{}";
    if ((grant != NULL ? state_approval_grant(w->approvals->store, &r, grant, err)
                       : state_approval_put(w->approvals->store, &r, err)) < 0)
        return -1;
    approval_tell(w, &r);
    return 0;
}

static int
store(struct warden *w, const struct approval *a, struct err *err)
{
    return store_with(w, a, NULL, err);
}

static int
too_many(struct err *err, const char *what, const char *whose, size_t n)
{
    err_set(err, ERR_LIMIT, "gate.too-many", "%zu %s %s wait for approval already", n, what, whose);
    return err_hint(err, "wait until some of them are decided");
}

/* Connections and operations are counted apart. */
static int
room_for_one(const struct warden *w, const char *principal, bool net, struct err *err)
{
    const char *what = net ? "connections" : "operations";
    size_t own = 0, all = 0;

    for (const struct approval *a = w->approvals->open; a != NULL; a = a->next) {
        if ((a->net != 0) != net)
            continue;
        all++;
        own += strcmp(a->principal, principal) == 0 ? 1 : 0;
    }
    if (own >= (net ? APPROVALS_NET_CALLER : APPROVALS_CALLER))
        return too_many(err, what, "of this caller", own);
    return all >= (net ? APPROVALS_NET : APPROVALS_MAX) ? too_many(err, what, "of all", all) : 0;
}

struct approval *
approval_new(struct warden *w, const struct deed *d, const struct gate_verdict *v, uint32_t net, struct err *err)
{
    struct edge_approval r = { .state = APPROVAL_PENDING, .risk = v->risk, .created_ms = clock_wall_ms(),
                               .tool = d->tool, .params = d->text, .rule = v->rule, .description = v->description,
                               .by = "", .by_text = "", .reason = "" };
    char caller[EDGE_CALLER_MAX + 1], principal[EDGE_CALLER_MAX + 1], who[160];
    struct approval *a;

    caller_of(&w->who, caller);
    principal_of(w, &w->who, principal);
    who_text(w, &w->who, who);
    r.caller = caller;
    r.caller_text = who;
    if (room_for_one(w, principal, net != 0, err) < 0)
        return NULL;
    if (strlen(d->text) > EDGE_PARAMS_MAX) {
        err_set(err, ERR_LIMIT, "gate.too-large", "what has to be approved has at most %d bytes", EDGE_PARAMS_MAX);
        return NULL;
    }
    if (new_id(r.id) < 0) {
        err_set(err, ERR_SYSTEM, "serve.random", "getrandom");
        return NULL;
    }
    memcpy(r.box, d->box, sizeof(r.box));
    memcpy(r.digest, d->digest, sizeof(r.digest));
    r.until_ms = r.created_ms + (uint64_t)v->timeout_s * 1000;
    a = approvals_add(w, &r);
    if (a == NULL) {
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
        return NULL;
    }
    memcpy(a->principal, principal, sizeof(a->principal));
    snprintf(a->rule_digest, sizeof(a->rule_digest), "%s", gate_rule(w, d->tool, v->rule));
    a->net = net;
    a->work = span_work(w, net != 0 ? box_of_id(w, r.box) : NULL);
    a->until_ms = clock_ms() + (uint64_t)v->timeout_s * 1000;
    expect(w, a);
    if (store(w, a, err) < 0) {
        take_out(w, a);
        return NULL;
    }
    hook_tell(w, &a->r);
    warden_note_id(w, r.box, "gate_asked", "%s: %s by %s: %s, rule %s, sha256 %s", r.id, r.tool, who,
                gate_risk_name(r.risk), r.rule, r.digest);
    return a;
}

int
approval_hold(struct warden *w, struct approval *a)
{
    const struct frame *f = w->question;

    a->question = malloc(f->length > 0 ? f->length : 1);
    if (a->question == NULL)
        return -1;
    memcpy(a->question, f->payload, f->length);
    a->work = w->work;
    a->n_question = f->length;
    a->type = f->type;
    a->to = w->asker;
    a->proof = w->proof;
    return 0;
}

struct approval *
approval_find(struct warden *w, const char *caller, const struct deed *d, enum approval_state state)
{
    for (struct approval *a = w->approvals->open; a != NULL; a = a->next)
        if (a->r.state == state && strcmp(a->r.caller, caller) == 0 && strcmp(a->r.digest, d->digest) == 0)
            return a;
    return NULL;
}

int
approval_use(struct warden *w, struct approval *a, struct err *err)
{
    if (clock_ms() >= a->until_ms) {
        take_out(w, a);
        return err_set(err, ERR_DENIED, "gate.void", "the approval was not used in time");
    }
    a->r.used = true;
    if (store(w, a, err) < 0) {
        a->r.used = false;
        return -1;
    }
    warden_note_id(w, a->r.box, "gate_used", "%s: %s, sha256 %s", a->r.id, a->r.tool, a->r.digest);
    if (a != w->approvals->approved)
        take_out(w, a);
    return 0;
}

/* --- its end ------------------------------------------------------------------------------------------------------ */

static void
answer_refused(struct warden *w, const struct approval *a)
{
    bool late = a->r.state == APPROVAL_TIMEOUT;
    struct err err = ERR_INIT;
    struct edge_verdict v = { .says = GATE_DENIED, .risk = a->r.risk, .rule = a->r.rule };

    if (a->type == EDGE_ASK_GATE) {
        memcpy(v.approval, a->r.id, sizeof(v.approval));
        snprintf(v.reason, sizeof(v.reason), "%s", a->r.reason);
        ANSWER(w, a->to, EDGE_GATE, .verdict = v);
        return;
    }
    err_set(&err, ERR_DENIED, late ? "gate.timeout" : "gate.denied", "not approved: %s", a->r.reason);
    err_hint(&err, "GET /v1/approvals/%s shows it", a->r.id);
    answer_no(w, a->to, &err);
}

/* For @ms from now on. */
static void
remember_no(struct warden *w, const struct approval *a, uint64_t ms)
{
    struct denial *n = &w->approvals->denials[w->approvals->n_denials++ % DENIALS_MAX];

    n->until_ms = clock_ms() + ms;
    memcpy(n->principal, a->principal, sizeof(n->principal));
    memcpy(n->digest, a->r.digest, sizeof(n->digest));
    memcpy(n->id, a->r.id, sizeof(n->id));
    snprintf(n->reason, sizeof(n->reason), "%s", a->r.reason);
}

void
approval_refuse(struct warden *w, struct approval *a, enum approval_state state, const char *by, const char *by_text,
                const char *reason)
{
    struct err err = ERR_INIT;

    a->r.state = state;
    a->r.decided_ms = clock_wall_ms();
    box_text(&a->r.by, by);
    box_text(&a->r.by_text, by_text);
    box_text(&a->r.reason, reason);
    if (store(w, a, &err) < 0)
        log_say(LEVEL_ERROR, "%s [%s]", err.msg, err.code);
    warden_note_id(w, a->r.box, state == APPROVAL_TIMEOUT ? "gate_timeout" : "gate_denied",
                "%s: %s, by %s: %s", a->r.id, a->r.tool, by_text[0] != '\0' ? by_text : "nobody", reason);
    hook_tell(w, &a->r);
    span_approval(w, &a->r, &a->work);
    if (by[0] != '\0')
        remember_no(w, a, NO_MS);
    if (a->to.ticket != 0)
        answer_refused(w, a);
    if (a->net != 0)
        net_answer(w, a, false, SCOPE_ONCE);
    take_out(w, a);
    (void)state_gate_prune(w->approvals->store, time_now(w), NULL);
}

void
approvals_hear(struct warden *w, const struct frame *f, struct asker to, const struct proof *by, const struct work *in)
{
    struct front_edge *e = &w->fronts[to.front];
    struct asker asker = w->asker;
    struct who who = w->who;
    struct proof proof = w->proof;
    struct work work = w->work;
    bool again = record_heard_again(w, false);      /* the decision may be; this is another question */

    w->work = *in;
    if (e->edge.fd >= 0 && front_asks(w, e, f, by) != MSG_OK)
        shutdown(e->edge.fd, SHUT_RDWR);
    (void)record_heard_again(w, again);
    w->work = work;
    w->asker = asker;
    w->who = who;
    w->proof = proof;
}

static void
hear_again(struct warden *w, struct approval *a)
{
    const struct frame f = { .type = a->type, .length = (uint32_t)a->n_question, .payload = a->question };

    w->approvals->approved = a;
    approvals_hear(w, &f, a->to, &a->proof, &a->work);
    w->approvals->approved = NULL;
}

/* A wider scope than this once: its grant in @g, whose texts are those of @a. 1; 0: this once; -1 with @err. */
static int
grant_of(const struct warden *w, const struct approval *a, const struct edge_decision *d, struct edge_grant *g,
         struct err *err)
{
    bool critical = a->r.risk == GATE_CRITICAL;

    *g = (struct edge_grant){ .created_ms = time_now(w), .caller = a->r.caller, .tool = a->r.tool,
                              .rule = a->r.rule, .by_text = a->r.by_text, .rule_digest = a->rule_digest };
    if (d->scope == SCOPE_ONCE)
        return 0;
    if (a->narrow) {
        err_set(err, ERR_USAGE, "gate.scope", "the sandbox's rules name requests to this host, and a yes to the host "
                "would be one to all others too");
        return err_hint(err, "approve it once, or change the sandbox's policy");
    }
    /* its keeper holds it to that: a rule, as of cloche net allow */
    if (a->net != 0 && d->scope == SCOPE_SANDBOX)
        return d->seconds == 0 ? 0
               : err_set(err, ERR_USAGE, "gate.scope", "a host is approved once, for as long as the sandbox lives "
                         "(without expires), or for its caller");
    if (a->r.rule[0] == '\0' || (d->scope == SCOPE_SANDBOX && a->r.box[0] == '\0'))
        return err_set(err, ERR_USAGE, "gate.scope", a->r.rule[0] == '\0'
                       ? "no rule is about this tool, so it can be approved once only"
                       : "there is no sandbox yet, so it can be approved once, or for its caller");
    if ((critical || d->scope == SCOPE_CALLER) && d->seconds == 0)
        return err_set(err, ERR_USAGE, "gate.scope", "what is CRITICAL, or for every sandbox, needs an end: expires");
    if (critical && d->seconds > GRANT_CRITICAL_S)
        return err_set(err, ERR_USAGE, "gate.scope", "what is CRITICAL can be approved for a day at most");
    if (new_id(g->id) < 0)
        return err_set(err, ERR_SYSTEM, "serve.random", "getrandom");
    if (d->scope == SCOPE_SANDBOX)
        memcpy(g->box, a->r.box, sizeof(g->box));
    g->until_ms = d->seconds > 0 ? g->created_ms + (uint64_t)d->seconds * 1000 : 0;
    return 1;
}

static int
approve(struct warden *w, struct approval *a, const struct edge_decision *d, struct err *err)
{
    uint64_t until_ms = a->until_ms, wall_until_ms = a->r.until_ms;
    struct edge_grant g;
    int wider = grant_of(w, a, d, &g, err);

    if (wider < 0)
        return -1;
    (void)gate_grants_count(w, a->r.box);       /* what is over is off the record before another one is on it */
    a->r.state = APPROVAL_APPROVED;
    a->r.decided_ms = clock_wall_ms();
    a->r.used = a->to.ticket != 0 || a->net != 0;
    a->scope = d->scope;
    a->until_ms = clock_ms() + APPROVAL_USE_S * 1000UL;
    a->r.until_ms = a->r.decided_ms + APPROVAL_USE_S * 1000UL;
    if (store_with(w, a, wider > 0 ? &g : NULL, err) < 0) {
        /* it is not on record, so it is not done, and waits as before */
        a->r.state = APPROVAL_PENDING;
        a->r.decided_ms = 0;
        a->r.used = false;
        a->until_ms = until_ms;
        a->r.until_ms = wall_until_ms;
        return -1;
    }
    expect(w, a);
    hook_tell(w, &a->r);
    span_approval(w, &a->r, &a->work);
    warden_note_id(w, a->r.box, "gate_approved", "%s: %s, by %s, %s, sha256 %s", a->r.id, a->r.tool, a->r.by_text,
                   approval_scope_name(d->scope), a->r.digest);
    if (wider > 0)
        warden_note_id(w, g.box, "gate_granted", "%s: %s where rule %s asks, for %s, by %s", g.id, g.tool, g.rule,
                       a->r.caller_text, g.by_text);
    return 0;
}

int
approval_may(struct warden *w, const struct approval *a, struct err *err)
{
    char by[EDGE_CALLER_MAX + 1];

    caller_of(&w->who, by);
    /* what asks for a connection runs in the sandbox, and is not whoever made that. An operator that is judged has no
     * second voice in the keys of its own sandboxes */
    if (a->net == 0 && (strcmp(by, a->r.caller) == 0 ||
                        (gate_for_all(w->approvals->gate) && is_own_key(w, a->r.caller, &w->who)))) {
        err_set(err, ERR_DENIED, "gate.own", "nobody approves or denies what they asked for themselves");
        return err_hint(err, "another operator or approver has to: `cloche token create --role approver`");
    }
    if (clock_ms() >= a->until_ms)
        return err_set(err, ERR_DENIED, "gate.decided", "it was not decided in time, and is denied");
    if (!gate_stands(w, a)) {
        err_set(err, ERR_DENIED, "gate.changed", "the rules or the sandbox's policy are being changed, after "
                "it was asked");
        return err_hint(err, "who asks has to ask again when that is done");
    }
    return 0;
}

int
approval_decide(struct warden *w, struct approval *a, const struct edge_decision *d, struct err *err)
{
    char by[EDGE_CALLER_MAX + 1], who[160];

    caller_of(&w->who, by);
    who_text(w, &w->who, who);
    if (!d->approve) {
        approval_refuse(w, a, APPROVAL_DENIED, by, who, d->reason[0] != '\0' ? d->reason : "denied");
        return 0;
    }
    box_text(&a->r.by, by);
    box_text(&a->r.by_text, who);
    box_text(&a->r.reason, d->reason);
    return approve(w, a, d, err);
}

void
approval_release(struct warden *w, struct approval *a)
{
    if (a->r.state != APPROVAL_APPROVED || (a->to.ticket == 0 && a->net == 0))
        return;
    if (a->net != 0)
        net_answer(w, a, true, a->scope);
    else
        hear_again(w, a);
    take_out(w, a);
}

/* --- time, and who went ------------------------------------------------------------------------------------------- */

void
approvals_front_gone(struct warden *w, uint32_t front)
{
    struct approvals *q = w->approvals;

    for (struct approval *a = q->open, *next; a != NULL; a = next) {
        next = a->next;
        if (a->to.ticket != 0 && a->to.front == front) {
            a->to.ticket = 0;
            approval_refuse(w, a, APPROVAL_DENIED, "", "", "who asked is gone");
        }
    }
    for (size_t i = q->n_followers; i-- > 0;)
        if (q->followers[i].to.front == front)
            q->followers[i] = q->followers[--q->n_followers];
    for (size_t i = 0; i < PASSES_MAX; i++)
        if (q->passes[i].front == front)
            q->passes[i].number = 0;        /* its handles are others now */
}

void
approvals_cancel(struct warden *w, struct asker to)
{
    struct approvals *q = w->approvals;

    for (struct approval *a = q->open; a != NULL; a = a->next) {
        if (a->to.ticket == to.ticket && a->to.front == to.front) {
            a->to.ticket = 0;
            approval_refuse(w, a, APPROVAL_DENIED, "", "", "who asked is gone");
            break;
        }
    }
    for (size_t i = q->n_followers; i-- > 0;)
        if (q->followers[i].to.front == to.front && q->followers[i].to.ticket == to.ticket)
            q->followers[i] = q->followers[--q->n_followers];
}

void
approvals_caller_ended(struct warden *w, const struct who *who)
{
    static const char why[] = "the credential of who asked opens nothing any more";
    char caller[EDGE_CALLER_MAX + 1];
    struct err ended = ERR_INIT;

    err_set(&ended, ERR_DENIED, "auth.ended", "%s", why);
    caller_of(who, caller);
    for (struct approval *a = w->approvals->open, *next; a != NULL; a = next) {
        next = a->next;
        if (a->net != 0 || a->r.state != APPROVAL_PENDING || strcmp(a->r.caller, caller) != 0)
            continue;
        if (a->to.ticket != 0)
            answer_no(w, a->to, &ended);
        a->to.ticket = 0;
        approval_refuse(w, a, APPROVAL_DENIED, "", "", why);
    }
}

static void
on_late(struct timer *t)
{
    struct warden *w = t->owner;
    uint64_t now = clock_ms();

    for (struct approval *a = w->approvals->open, *next; a != NULL; a = next) {
        next = a->next;
        if (now < a->until_ms)
            expect(w, a);
        else if (a->r.state == APPROVAL_PENDING)
            approval_refuse(w, a, APPROVAL_TIMEOUT, "", "", "nobody decided in time");
        else
            take_out(w, a);
    }
}
/* As principal_of(), of who asked before the warden was started. */
static void
principal_again(struct warden *w, struct approval *a)
{
    struct who who = { .role = EDGE_KEY };

    snprintf(a->principal, sizeof(a->principal), "%s", a->r.caller);
    if (strncmp(a->r.caller, "key:", 4) == 0) {
        snprintf(who.box, sizeof(who.box), "%s", a->r.caller + 4);
        principal_of(w, &who, a->principal);
    }
}

struct load { struct warden *w; bool no_memory; };

static void
load_one(void *ctx, const struct edge_approval *r)
{
    struct load *l = ctx;
    uint64_t now = time_now(l->w);
    struct approval *a;

    if (r->used || (r->state == APPROVAL_APPROVED && now >= r->until_ms))
        return;
    a = approvals_add(l->w, r);
    if (a == NULL) {
        l->no_memory = true;
        return;
    }
    principal_again(l->w, a);
    if (r->until_ms <= now)
        return;
    a->until_ms = clock_ms() + (r->until_ms - now < APPROVAL_USE_S * 1000UL ? r->until_ms - now
                                                                           : APPROVAL_USE_S * 1000UL);
    expect(l->w, a);
}

/* What somebody denied a moment before this warden began. */
static void
load_no(void *ctx, const struct edge_approval *r)
{
    struct load *l = ctx;
    uint64_t now = time_now(l->w), over = r->decided_ms + NO_MS;
    struct approval a = { .r = *r };

    if (r->by[0] == '\0' || now >= over)
        return;
    principal_again(l->w, &a);
    remember_no(l->w, &a, over - now < NO_MS ? over - now : NO_MS);
}

int
approvals_load(struct warden *w, struct err *err)
{
    struct load l = { .w = w };

    if (state_approvals(w->approvals->store, "", APPROVAL_DENIED, "", DENIALS_MAX, load_no, &l, err) < 0 ||
        state_approvals(w->approvals->store, "", APPROVAL_PENDING, "", STATE_APPROVALS_MAX, load_one, &l, err) < 0 ||
        state_approvals(w->approvals->store, "", APPROVAL_APPROVED, "", STATE_APPROVALS_MAX, load_one, &l, err) < 0)
        return -1;
    if (l.no_memory)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    for (struct approval *a = w->approvals->open, *next; a != NULL; a = next) {
        next = a->next;
        if (a->r.state == APPROVAL_PENDING)
            approval_refuse(w, a, APPROVAL_DENIED, "", "", "the daemon was restarted: nobody waits any more");
    }
    return 0;
}
