/* warden/sign_ask.c: the questions about signing (sign.h) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "warden/record.h"
#include "warden/sign.h"

/* --- what waits for a person -------------------------------------------------------------------------------------- */

static void
drop(struct signing *g, struct sign_pending *p)
{
    struct sign_pending **at = &g->pendings;

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    sign_tx_free(&p->what);
    json_decref(p->shown);
    json_decref(p->call);
    free(p);
}

struct approval *
sign_approval(struct warden *w, const struct sign_pending *p)
{
    for (struct approval *a = w->approvals->open; a != NULL; a = a->next)
        if (strcmp(a->r.id, p->approval) == 0)
            return clock_ms() < a->until_ms ? a : NULL;
    return NULL;
}

static void
tidy(struct warden *w)
{
    size_t n = 0;

    for (struct sign_pending *p = w->signing->pendings, *next; p != NULL; p = next) {
        next = p->next;
        if (sign_approval(w, p) == NULL && (clock_ms() >= p->forget_ms || ++n > SIGN_PENDINGS))
            drop(w->signing, p);
    }
}

static struct sign_pending *
pending_of(const struct warden *w, const char *request)
{
    struct sign_pending *p = w->signing->pendings;

    while (p != NULL && strcmp(p->request, request) != 0)
        p = p->next;
    return p;
}

static void
set(json_t *o, const char *name, const char *text)
{
    if (text[0] != '\0')
        (void)json_object_set_new(o, name, json_string(text));
}

/* As it came. */
static json_t *
shown_of(const struct ask_sign *m)
{
    json_t *o = json_pack("{s:s, s:I, s:s, s:s, s:s}", "requestId", m->request, "chainId", (json_int_t)m->chain, "to",
                          m->to, "value", m->value, "data", m->data);

    if (o == NULL)
        return NULL;
    if (m->has_nonce)
        (void)json_object_set_new(o, "nonce", json_integer((json_int_t)m->nonce));
    set(o, "gasLimit", m->gas);
    set(o, "gasPrice", m->gas_price);
    set(o, "maxFeePerGas", m->max_fee);
    set(o, "maxPriorityFeePerGas", m->tip);
    if (m->access[0] != '\0')
        (void)json_object_set_new(o, "accessList", json_loads(m->access, 0, NULL));
    (void)json_object_set_new(o, "createdAt", json_integer((json_int_t)m->created_ms));
    return o;
}

static void
set_wei(json_t *o, const char *name, const struct u256 *v)
{
    char text[U256_TEXT_MAX + 1];

    u256_text(v, text);
    (void)json_object_set_new(o, name, json_string(text));
}

/* All that is signed, as it is read and not as it was written, and the hash of it. */
static json_t *
params_of(struct warden *w, const struct sign_asked *a)
{
    const struct tx *tx = &a->what.tx;
    char from[SIGN_ADDRESS_TEXT + 1], to[SIGN_ADDRESS_TEXT + 1], hash[2 + 2 * TX_HASH + 1], gas[24];
    struct u256 fee, cost;
    json_t *o;

    sign_address_text(w->signing->address, from);
    sign_address_text(tx->to, to);
    snprintf(hash, sizeof(hash), "0x%s", a->what.hash);
    snprintf(gas, sizeof(gas), "%llu", (unsigned long long)tx->gas);
    o = json_pack("{s:s, s:I, s:s, s:s, s:s, s:I, s:s, s:s}", "requestId", a->request, "chainId",
                  (json_int_t)tx->chain, "from", from, "to", to, "data", a->m->data, "nonce", (json_int_t)tx->nonce,
                  "gasLimit", gas, "signingHash", hash);
    if (o != NULL) {
        set_wei(o, "valueWei", &tx->value);
        if (a->m->access[0] != '\0')
            (void)json_object_set_new(o, "accessList", json_loads(a->m->access, 0, NULL));
        if (tx->type != TX_DYNAMIC_FEE) {
            set_wei(o, "gasPriceWei", &tx->gas_price);
        } else {
            set_wei(o, "maxFeePerGasWei", &tx->max_fee);
            set_wei(o, "maxPriorityFeePerGasWei", &tx->tip);
        }
        if (sign_cost(tx, &fee, &cost))
            set_wei(o, "costsAtMostWei", &cost);
        (void)json_object_set_new(o, "calls", sign_call(tx));
    }
    return o;
}

static int
deed_of(struct warden *w, const struct sign_asked *a, struct deed *d, struct err *err)
{
    static const char *const tools[] = { [SIGN_TX] = SIGN_TOOL, [SIGN_MESSAGE] = SIGN_TOOL_TEXT,
                                         [SIGN_TYPED] = SIGN_TOOL_TYPED };
    char from[SIGN_ADDRESS_TEXT + 1], hash[2 + 2 * TX_HASH + 1];
    json_t *o = a->m != NULL ? params_of(w, a) : json_copy(a->shown);

    if (a->m == NULL && o != NULL) {
        sign_address_text(w->signing->address, from);
        snprintf(hash, sizeof(hash), "0x%s", a->what.hash);
        (void)json_object_set_new(o, "from", json_string(from));
        (void)json_object_set_new(o, "signingHash", json_string(hash));
    }
    return deed_make(w, tools[a->what.form], w->who.role == EDGE_KEY ? w->who.box : "", o, "", 0, d, err);
}

/* --- a request ---------------------------------------------------------------------------------------------------- */

static void
reject(struct warden *w, const char *request, const char *error, const struct sign_verdict *v,
       enum audit_severity severity, bool confirmed)
{
    char summary[512], who[EDGE_WHO_MAX + 1];
    struct audit_entry e;

    who_text(w, &w->who, who);
    snprintf(summary, sizeof(summary), "Rejected: %s", error);
    sign_entry(&e, AUDIT_SIGNING_REJECTED, severity, summary, request);
    audit_put_cstr(&e, "matchedRule", v->rule);
    audit_put_bool(&e, "humanConfirmed", confirmed);
    audit_put_cstr(&e, "who", who);
    record_say(w, w->who.role == EDGE_KEY ? box_of_id(w, w->who.box) : NULL, &e);
    sign_answer_no(w, w->asker, error, v, confirmed);
}

/* True: put aside until its entry is on the disk. */
static bool
recorded(struct warden *w, const struct sign_asked *a, const struct sign_verdict *v)
{
    char summary[512], who[EDGE_WHO_MAX + 1];
    struct audit_entry e;

    who_text(w, &w->who, who);
    if (a->m != NULL)
        snprintf(summary, sizeof(summary), "Sign request %s: chain=%llu to=%s value=%s", a->request,
                 (unsigned long long)a->m->chain, a->m->to, a->m->value);
    else
        snprintf(summary, sizeof(summary), "Sign request %s: %s", a->request,
                 a->what.form == SIGN_TYPED ? "typed data" : "a message");
    sign_entry(&e, AUDIT_SIGNING_SUBMITTED, AUDIT_INFO, summary, a->request);
    audit_put_number(&e, "chainId", (int64_t)(a->m != NULL ? a->m->chain : a->what.typed.chain));
    if (a->m != NULL) {
        audit_put_cstr(&e, "to", a->m->to);
        audit_put_cstr(&e, "value", a->m->value);
    }
    audit_put_bool(&e, "allowed", v->allowed);
    audit_put_cstr(&e, "reason", v->reason);
    audit_put_cstr(&e, "hash", a->what.hash);
    audit_put_cstr(&e, "who", who);
    return record_first(w, w->who.role == EDGE_KEY ? box_of_id(w, w->who.box) : NULL, &e);
}

static const char confirm[] = "Human confirmation required. Use approve endpoint.";

/* A person is to be asked. */
static int
ask_person(struct warden *w, struct sign_asked *a, const struct deed *d, const struct sign_verdict *v, struct err *err)
{
    const struct gate_verdict gate = { .ask = true, .risk = GATE_CRITICAL, .timeout_s = SIGN_PERSON_S, .rule = "",
                                       .description = "a signature that the signing policy asks a person about" };
    struct sign_pending *p = calloc(1, sizeof(*p));
    struct approval *approval = p != NULL ? approval_new(w, d, &gate, 0, err) : NULL;

    if (approval == NULL) {
        free(p);
        return p == NULL ? err_set(err, ERR_SYSTEM, "memory", "out of memory") : -1;
    }
    snprintf(p->request, sizeof(p->request), "%s", a->request);
    memcpy(p->approval, approval->r.id, sizeof(p->approval));
    memcpy(p->digest, d->digest, sizeof(p->digest));
    memcpy(p->box, d->box, sizeof(p->box));
    memcpy(p->address, w->signing->address, sizeof(p->address));
    caller_of(&w->who, p->caller);
    p->created_ms = approval->r.created_ms;
    p->until_ms = approval->r.until_ms;
    p->forget_ms = approval->until_ms + SIGN_KNOWN_MS;
    p->verdict = *v;
    /* should there be none of it, another may have it */
    if (a->what.given)
        (void)state_sign_free_put(w->state, w->signing->address, a->what.tx.chain, a->what.tx.nonce, NULL);
    p->shown = json_incref(a->shown);
    p->call = sign_call(&a->what.tx);
    p->what = a->what;
    a->what.data = NULL;        /* these are its own now */
    a->what.text = NULL;
    a->what.access = (struct buf)BUF_INIT(0);
    p->next = w->signing->pendings;
    w->signing->pendings = p;
    sign_answer_no(w, w->asker, confirm, v, false);
    return 0;
}

static void
replay(struct warden *w, const char *request)
{
    struct sign_verdict no = { .rule = "replay_protection" };

    snprintf(no.reason, sizeof(no.reason), "Replay detected: request %s already processed", request);
    reject(w, request, no.reason, &no, AUDIT_WARN, false);
}

/* What is asked, and by whom. */
#define WHAT_MAX (EDGE_CALLER_MAX + SHA256_TEXT + 1)

static void
what_of(struct warden *w, const struct deed *d, char out[WHAT_MAX + 1])
{
    char caller[EDGE_CALLER_MAX + 1];

    caller_of(&w->who, caller);
    snprintf(out, WHAT_MAX + 1, "%s %s", d->digest, caller);
}

/* Who decides may name the id alone, and may have looked before: it is never something else, whatever became of what
 * was asked first, and whether or not a person is asked about the other. 1: it is that, or new; 0: it was answered; -1
 * with @err. */
static int
is_same(struct warden *w, const struct sign_asked *a, const struct deed *d, struct err *err)
{
    char what[WHAT_MAX + 1];
    int r;

    what_of(w, d, what);
    r = state_sign_asked_other(w->state, a->request, what, err);
    if (r > 0)
        replay(w, a->request);
    return r < 0 ? -1 : r == 0;
}

/* Of one that waits, or waited, with that id. 1: a person has confirmed just this; 0: it was answered; -1 with @err. */
static int
again(struct warden *w, const struct sign_asked *a, const struct deed *d, struct sign_pending *p,
      struct approval *approval, struct err *err)
{
    char caller[EDGE_CALLER_MAX + 1];

    caller_of(&w->who, caller);
    if (strcmp(caller, p->caller) != 0 || strcmp(d->digest, p->digest) != 0) {
        replay(w, a->request);
        return 0;
    }
    if (approval->r.state != APPROVAL_APPROVED || !gate_stands(w, approval)) {
        sign_answer_no(w, w->asker, confirm, &p->verdict, false);
        return 0;
    }
    if (sign_room(w, err) < 0 || approval_use(w, approval, err) < 0)
        return -1;
    drop(w->signing, p);
    return 1;
}

/* What was judged: 0 or -1 with @err. */
static int
go_on(struct warden *w, struct sign_asked *a, const struct deed *d, struct sign_verdict *v, struct err *err)
{
    struct sign_pending *p = pending_of(w, a->request);
    struct approval *approval = p != NULL ? sign_approval(w, p) : NULL;
    char failure[200], what[WHAT_MAX + 1];
    bool confirmed = false;
    int r;

    if (v->allowed && a->failure != NULL) {
        snprintf(failure, sizeof(failure), "Signing failed: %s", a->failure);
        reject(w, a->request, failure, v, AUDIT_ERROR, false);
        return 0;
    }
    if (!v->allowed) {
        reject(w, a->request, v->reason, v, AUDIT_WARN, false);
        return 0;
    }
    if (approval != NULL) {
        r = again(w, a, d, p, approval, err);
        if (r <= 0)
            return r;
        confirmed = true;
    } else if (p != NULL) {
        drop(w->signing, p);
    }
    if (!confirmed && (r = is_same(w, a, d, err)) <= 0)
        return r;
    if (v->needs_person && !confirmed) {
        if (gate_settled(w, d, "") < 0) {
            *v = (struct sign_verdict){ .rule = "human_rejected" };
            snprintf(v->reason, sizeof(v->reason), "A person rejected it");
            reject(w, a->request, v->reason, v, AUDIT_WARN, false);
            return 0;
        }
        what_of(w, d, what);
        return state_sign_asked_put(w->state, a->request, time_steady(w), what, err) < 0 ? -1
                                                                                         : ask_person(w, a, d, v, err);
    }
    return sign_now(w, a->request, d->box, &a->what, v, confirmed, err);
}

static int
no_signer(struct warden *w)
{
    struct err err = ERR_INIT;

    err_set(&err, ERR_UNSUPPORTED, "sign.none", "Signing service not configured");
    err_hint(&err, "signing-key and signing-policy of cloche serve (docs/signing.md)");
    answer_no(w, w->asker, &err);
    return 0;
}

/* A request that was read. @a is freed. */
static int
asked(struct warden *w, struct sign_asked *a)
{
    struct sign_verdict v = { .allowed = false };
    struct deed d = { .params = NULL };
    struct err err = ERR_INIT;

    if (deed_of(w, a, &d, &err) < 0 || sign_verdict_asked(w, a, &v, &err) < 0 ||
        (!recorded(w, a, &v) && go_on(w, a, &d, &v, &err) < 0))
        answer_no(w, w->asker, &err);
    deed_free(&d);
    sign_asked_free(a);
    return 0;
}

int
asked_sign(struct warden *w, const struct ask_sign *m)
{
    struct err err = ERR_INIT;
    struct sign_asked a = { .m = NULL };
    uint64_t nonce;

    if (!w->signing->ready)
        return no_signer(w);
    tidy(w);
    nonce = sign_nonce_next(w, m->request, m->chain, &err);
    if (err.kind != ERR_NONE || sign_read(w, m, nonce, &a, &err) < 0) {
        answer_no(w, w->asker, &err);
        sign_asked_free(&a);
        return 0;
    }
    a.shown = shown_of(m);
    return asked(w, &a);
}

int
asked_sign_text(struct warden *w, const struct ask_sign_text *m)
{
    struct err err = ERR_INIT;
    struct sign_asked a;

    if (!w->signing->ready)
        return no_signer(w);
    tidy(w);
    if (sign_read_text(m, &a, &err) < 0) {
        answer_no(w, w->asker, &err);
        sign_asked_free(&a);
        return 0;
    }
    return asked(w, &a);
}

/* --- a person decides --------------------------------------------------------------------------------------------- */

static void
no_such(struct warden *w, bool approve)
{
    struct sign_verdict v = { .rule = "approval_not_found", .reason = "Approval not found" };

    if (approve)
        sign_answer_no(w, w->asker, "No pending approval found for this request ID", &v, false);
    else
        sign_answer(w, w->asker, true, json_pack("{s:b}", "rejected", 0));
}

/* Signed, or refused because the limits are what they are by now. */
static int
approved(struct warden *w, struct sign_pending *p, struct approval *approval, struct err *err)
{
    struct sign_verdict v = { .allowed = false };
    int r;

    if (approval_use(w, approval, err) < 0 || sign_verdict(w, p->request, &p->what, &v, err) < 0)
        return -1;
    if (v.allowed) {
        r = sign_now(w, p->request, p->box, &p->what, &v, true, err);
    } else {
        reject(w, p->request, v.reason, &v, AUDIT_WARN, true);
        r = 0;
    }
    drop(w->signing, p);
    return r;
}

static int
rejected(struct warden *w, struct sign_pending *p, struct approval *approval, struct err *err)
{
    const struct edge_decision no = { .approve = false, .scope = SCOPE_ONCE, .reason = "rejected" };
    char summary[SIGN_REQUEST_MAX + 64], who[EDGE_WHO_MAX + 1];
    struct audit_entry e;

    /* the id is used up */
    if (state_sign_put(w->state, p->request, time_steady(w), NULL, err) < 0 ||
        approval_decide(w, approval, &no, err) < 0)
        return -1;
    who_text(w, &w->who, who);
    snprintf(summary, sizeof(summary), "Human rejected request %s", p->request);
    sign_entry(&e, AUDIT_SIGNING_REJECTED, AUDIT_INFO, summary, p->request);
    audit_put_cstr(&e, "who", who);
    record_say(w, box_of_id(w, p->box), &e);
    drop(w->signing, p);
    sign_answer(w, w->asker, true, json_pack("{s:b}", "rejected", 1));
    return 0;
}

static int
decide(struct warden *w, bool approve, struct sign_pending *p, struct approval *approval, struct err *err)
{
    const struct edge_decision yes = { .approve = true, .scope = SCOPE_ONCE, .reason = "" };
    struct audit_entry e;

    if (approval_may(w, approval, err) < 0)
        return -1;
    if (!approve)
        return rejected(w, p, approval, err);
    if (memcmp(p->address, w->signing->address, sizeof(p->address)) != 0) {
        err_set(err, ERR_DENIED, "sign.account", "it was asked of another account: the signer has another key by now");
        err_hint(err, "reject it; it may be asked again under another requestId");
        return -1;
    }
    if (sign_room(w, err) < 0)
        return -1;
    record_begin(w, &e, "something is to be approved");
    audit_put_cstr(&e, "approval", p->approval);
    audit_put_cstr(&e, "scope", approval_scope_name(SCOPE_ONCE));
    if (record_first(w, box_of_id(w, p->box), &e))
        return 0;
    if (approval->r.state == APPROVAL_PENDING && approval_decide(w, approval, &yes, err) < 0)
        return -1;
    return approved(w, p, approval, err);
}

/* An id is its caller's to choose: who decides may say what they have seen under it. */
static bool
same_hash(const struct sign_pending *p, const char *hash)
{
    return strncmp(hash, "0x", 2) == 0 && strcasecmp(hash + 2, p->what.hash) == 0;
}

int
asked_sign_decide(struct warden *w, const struct ask_sign_decide *m)
{
    const bool approve = m->approve;
    struct sign_pending *p;
    struct approval *approval;
    struct err err = ERR_INIT;

    if (!w->signing->ready)
        return no_signer(w);
    p = pending_of(w, m->request);
    approval = p != NULL ? sign_approval(w, p) : NULL;
    if (p != NULL && m->hash[0] != '\0' && !same_hash(p, m->hash)) {
        err_set(&err, ERR_DENIED, "sign.other", "what waits under this id is something else");
        answer_no(w, w->asker, &err);
    } else if (p == NULL) {
        no_such(w, approve);
    } else if (approval != NULL) {
        if (decide(w, approve, p, approval, &err) < 0)
            answer_no(w, w->asker, &err);
    } else {
        if (approve && clock_wall_ms() >= p->until_ms)
            sign_answer_no(w, w->asker, "Approval expired", &p->verdict, false);
        else
            no_such(w, approve);
        drop(w->signing, p);
    }
    return 0;
}

/* --- looking ------------------------------------------------------------------------------------------------------ */

/* Two forms of it are in use; this is both. */
static json_t *
item_of(const struct sign_pending *p)
{
    char hash[2 + 2 * TX_HASH + 1];

    snprintf(hash, sizeof(hash), "0x%s", p->what.hash);
    return json_pack("{s:s, s:O, s:o, s:I, s:I, s:O?, s:O?, s:O?, s:s, s:s, s:O?}", "requestId", p->request, "request",
                     p->shown, "decision", sign_decision(&p->verdict), "createdAt", (json_int_t)p->created_ms,
                     "expiresAt", (json_int_t)p->until_ms, "chainId", json_object_get(p->shown, "chainId"), "to",
                     json_object_get(p->shown, "to"), "value", json_object_get(p->shown, "value"), "signingHash", hash,
                     "approval", p->approval, "calls", p->call);
}

static void
tell_pending(struct warden *w)
{
    const bool own = w->who.role == EDGE_AGENT || w->who.role == EDGE_KEY;
    char caller[EDGE_CALLER_MAX + 1];
    uint32_t n = 0;

    caller_of(&w->who, caller);
    for (const struct sign_pending *p = w->signing->pendings; p != NULL; p = p->next) {
        const struct approval *a = sign_approval(w, p);
        json_t *item = a == NULL || a->r.state != APPROVAL_PENDING || (own && strcmp(caller, p->caller) != 0)
                           ? NULL : item_of(p);
        cleanup_free char *text = item != NULL ? json_dumps(item, JSON_COMPACT) : NULL;

        json_decref(item);
        if (text == NULL)
            continue;
        ANSWER(w, w->asker, EDGE_SIGN_ITEM, .done = false, .json = text);
        n++;
    }
    answer_end(w, w->asker, n, false);
}

int
asked_sign_look(struct warden *w, const struct ask_sign_look *m)
{
    char text[SIGN_ADDRESS_TEXT + 1];

    if (!w->signing->ready)
        return no_signer(w);
    if (m->what == SIGN_PENDING) {
        tell_pending(w);
        return 0;
    }
    sign_address_text(w->signing->address, text);
    sign_answer(w, w->asker, true, json_pack("{s:s}", "address", text));
    return 0;
}
