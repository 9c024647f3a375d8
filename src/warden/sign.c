/* warden/sign.c: one request to sign: what it says, and what the policy says of it (sign.h) */
#include "warden/sign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "sign/message.h"
#include "warden/record.h"

#define DAY_MS (24 * 3600000ULL)

void
sign_tx_free(struct sign_tx *t)
{
    free(t->data);
    free(t->text);
    buf_free(&t->access);
    t->data = NULL;
    t->text = NULL;
}

void
sign_asked_free(struct sign_asked *a)
{
    sign_tx_free(&a->what);
    json_decref(a->shown);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static void
fail(struct sign_asked *a, const char *what)
{
    if (a->failure != NULL)
        return;
    snprintf(a->text, sizeof(a->text), "%s", what);
    /* it may quote a stranger's text, cut anywhere */
    for (char *p = a->text; *p != '\0'; p++)
        if (*p < ' ' || *p > '~')
            *p = '?';
    a->failure = a->text;
}

/* "0x" (or "0X") and hexadecimal digits of whole bytes, at most @max; how many, or -1. */
static int
hex_bytes(const char *text, uint8_t *out, size_t max)
{
    size_t n = strlen(text);

    if (n < 2 || n % 2 != 0 || text[0] != '0' || (text[1] != 'x' && text[1] != 'X') || n / 2 - 1 > max)
        return -1;
    return str_unhex((struct str){ text + 2, n - 2 }, out) ? (int)(n / 2 - 1) : -1;
}

/* The receiver's bytes are judged whatever their letters are; an address whose checksum is wrong is not signed for. */
static void
read_to(struct sign_asked *a)
{
    uint8_t same[TX_ADDRESS];

    if (hex_bytes(a->m->to, a->what.tx.to, TX_ADDRESS) != TX_ADDRESS)
        fail(a, "to is no address");
    else if (!sign_address_parse(str_of(a->m->to), same))
        fail(a, "the checksum of the address to is wrong");
}

static void
read_value(struct sign_asked *a)
{
    const char *text = a->m->value;
    struct u256 v;

    a->value_negative = text[0] == '-' && u256_parse(str_of(text + 1), &v) && !u256_is_zero(&v);
    a->value_well = u256_parse(str_of(text), &a->what.tx.value);
    if (!a->value_well)
        fail(a, "value is no amount");
}

/* What is no data is judged as a call that is none. */
static int
read_data(struct sign_asked *a, struct err *err)
{
    int n;

    a->what.data = malloc(strlen(a->m->data) / 2 + 1);
    if (a->what.data == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    n = hex_bytes(a->m->data, a->what.data, SIGN_DATA_BYTES);
    if (n < 0) {
        fail(a, "data is not 0x and hexadecimal digits of whole bytes");
        a->what.data[0] = 0;
        n = 1;
    }
    a->what.tx.data = a->what.data;
    a->what.tx.n_data = (size_t)n;
    return 0;
}

/* {"address": "0x...", "storageKeys": ["0x...", ...]}; the whole of an entry, in its encoding, behind what is there. */
static bool
put_access(const json_t *entry, struct buf *out)
{
    const json_t *keys = json_object_get(entry, "storageKeys"), *address = json_object_get(entry, "address");
    cleanup_buf struct buf in = BUF_INIT(SIGN_TEXT_MAX), list = BUF_INIT(SIGN_TEXT_MAX);
    uint8_t who[TX_ADDRESS], key[U256_SIZE];

    if (!json_is_array(keys) || !json_is_string(address) || json_object_size(entry) != 2 ||
        !sign_address_parse(str_of(json_string_value(address)), who))
        return false;
    for (size_t i = 0; i < json_array_size(keys); i++) {
        const char *text = json_string_value(json_array_get(keys, i));

        if (text == NULL || hex_bytes(text, key, sizeof(key)) != (int)sizeof(key))
            return false;
        rlp_put_bytes(&list, key, sizeof(key));
    }
    rlp_put_bytes(&in, who, sizeof(who));
    rlp_put_list(&in, list.p, list.n);
    rlp_put_list(out, in.p, in.n);
    return buf_ok(&list) && buf_ok(&in) && buf_ok(out);
}

static void
read_access(struct sign_asked *a)
{
    json_t *list = a->m->access[0] != '\0' ? json_loads(a->m->access, JSON_REJECT_DUPLICATES, NULL) : NULL;
    bool well = a->m->access[0] == '\0' || json_is_array(list);

    a->what.access = (struct buf)BUF_INIT(SIGN_TEXT_MAX);
    for (size_t i = 0; well && i < json_array_size(list); i++)
        well = put_access(json_array_get(list, i), &a->what.access);
    json_decref(list);
    if (!well)
        fail(a, "accessList is not a list of addresses, each with its storageKeys");
    else
        a->what.tx.access = (struct rlp){ a->what.access.p, a->what.access.n };
}

/* An amount that may be left out. */
static void
read_amount(struct sign_asked *a, const char *text, const struct u256 *otherwise, const char *name, const char *member,
            struct u256 *out)
{
    char why[160];

    if (text[0] == '\0' && otherwise != NULL && !u256_is_zero(otherwise)) {
        *out = *otherwise;
    } else if (text[0] == '\0') {
        snprintf(why, sizeof(why), "the request has no %s, and the signing policy no %s", name, member);
        fail(a, why);
    } else if (!u256_parse(str_of(text), out)) {
        snprintf(why, sizeof(why), "%s is no amount", name);
        fail(a, why);
    }
}

static void
read_fees(struct sign_asked *a, const struct sign_policy *policy)
{
    const struct ask_sign *m = a->m;
    struct tx *tx = &a->what.tx;

    tx->type = m->gas_price[0] == '\0' ? TX_DYNAMIC_FEE : m->access[0] != '\0' ? TX_ACCESS_LIST : TX_LEGACY;
    if (tx->type != TX_DYNAMIC_FEE) {
        if (m->max_fee[0] != '\0' || m->tip[0] != '\0')
            fail(a, "gasPrice and maxFeePerGas exclude each other");
        read_amount(a, m->gas_price, NULL, "gasPrice", "", &tx->gas_price);
        return;
    }
    read_amount(a, m->max_fee, &policy->max_fee, "maxFeePerGas", "defaultMaxFeePerGasWei", &tx->max_fee);
    if (m->tip[0] == '\0' && u256_is_zero(&policy->tip))
        tx->tip = u256_of(0);           /* none is a tip too */
    else
        read_amount(a, m->tip, &policy->tip, "maxPriorityFeePerGas", "", &tx->tip);
    if (u256_cmp(&tx->tip, &tx->max_fee) > 0)
        fail(a, "maxPriorityFeePerGas is above maxFeePerGas");
}

static void
read_gas(struct sign_asked *a, const struct sign_policy *policy)
{
    const struct u256 otherwise = u256_of(policy->gas);
    struct u256 gas = u256_of(0);
    uint64_t least;

    read_amount(a, a->m->gas, &otherwise, "gasLimit", "defaultGasLimit", &gas);
    if (!u256_to_u64(&gas, UINT64_MAX, &a->what.tx.gas))
        fail(a, "gasLimit is larger than any");
    if (a->failure == NULL && (!tx_intrinsic_gas(&a->what.tx, &least) || a->what.tx.gas < least))
        fail(a, "gasLimit is less than the transaction takes before it does anything");
}

int
sign_read(struct warden *w, const struct ask_sign *m, uint64_t nonce, struct sign_asked *out, struct err *err)
{
    const struct sign_policy *policy = &w->signing->policy;
    struct err why = ERR_INIT;
    uint8_t digest[TX_HASH];

    *out = (struct sign_asked){ .request = m->request, .m = m };
    out->what.tx.chain = m->chain;
    out->what.tx.nonce = m->has_nonce ? m->nonce : nonce;
    out->what.given = !m->has_nonce;
    read_to(out);
    read_value(out);
    if (read_data(out, err) < 0)
        return -1;
    read_access(out);
    read_fees(out, policy);
    read_gas(out, policy);
    if (m->chain == 0 || out->failure != NULL)
        return 0;
    if (tx_digest(&out->what.tx, digest, &why) < 0)
        fail(out, why.msg);
    else
        str_hex(digest, sizeof(digest), out->what.hash);
    return 0;
}

/* Typed data is read here to be judged and shown; what is signed is hashed from the same reading. */
int
sign_read_text(const struct ask_sign_text *m, struct sign_asked *out, struct err *err)
{
    struct err why = ERR_INIT;
    uint8_t digest[TX_HASH];
    json_t *said = NULL;

    *out = (struct sign_asked){ .request = m->request, .value_well = true, .what = { .form = m->form } };
    if (m->form == SIGN_MESSAGE) {
        out->what.text = strdup(m->text);
        message_digest(m->text, strlen(m->text), digest);
        said = json_string(m->text);
    } else {
        said = json_loads(m->text, JSON_REJECT_DUPLICATES, NULL);
        if (said == NULL || typed_read(said, &out->what.typed, &why) < 0)
            fail(out, said == NULL ? "typedData is no JSON" : why.msg);
        memcpy(digest, out->what.typed.digest, sizeof(digest));
        out->what.typed.primary = NULL;         /* it is in what was read */
    }
    if (out->failure == NULL)
        str_hex(digest, sizeof(digest), out->what.hash);
    out->shown = json_pack("{s:s, s:o?}", "requestId", m->request, m->form == SIGN_MESSAGE ? "message" : "typedData",
                           said);
    if (out->shown != NULL && (m->form == SIGN_TYPED || out->what.text != NULL))
        return 0;
    return err_set(err, ERR_DENIED, "sign.text", "it holds text that is not UTF-8, or there is no memory for it");
}

/* --- judging ------------------------------------------------------------------------------------------------------ */

struct past { struct sign_past *v; size_t n; };

static void
add_past(void *ctx, uint64_t at_ms, const uint8_t spent[STATE_SPENT])
{
    struct past *p = ctx;

    p->v[p->n].at_ms = at_ms;
    memcpy(p->v[p->n++].spent.b, spent, STATE_SPENT);
}

static void
judge(const struct sign_rules *rules, const struct past *past, const struct sign_tx *what, bool seen, uint64_t now,
      struct sign_verdict *out)
{
    const struct typed *t = &what->typed;

    if (what->form == SIGN_TX)
        sign_judge(rules, past->v, past->n, &what->tx, seen, now, out);
    else
        sign_judge_text(rules, past->v, past->n, what->form == SIGN_TYPED, t->chain,
                        t->has_contract ? t->contract : NULL, seen, now, out);
}

int
sign_verdict(struct warden *w, const char *request, const struct sign_tx *what, struct sign_verdict *out,
             struct err *err)
{
    uint64_t now = time_steady(w);     /* limits are not to be had by setting a clock */
    struct past past = { .v = calloc(STATE_SIGN_MAX, sizeof(struct sign_past)) };
    int seen = past.v == NULL ? err_set(err, ERR_SYSTEM, "memory", "out of memory")
                              : state_sign_seen(w->state, request, err);

    if (seen < 0 || state_sign_since(w->state, now > DAY_MS ? now - DAY_MS : 0, add_past, &past, err) < 0) {
        free(past.v);
        return -1;
    }
    judge(&w->signing->policy.rules, &past, what, seen > 0, now, out);
    free(past.v);
    if (strcmp(out->rule, "replay_protection") == 0)
        snprintf(out->reason, sizeof(out->reason), "Replay detected: request %s already processed", request);
    return 0;
}

static bool
is_before_value(const char *rule)
{
    static const char *const rules[] = { "replay_protection", "chain_id_allowlist", "contract_creation",
                                         "contract_denylist", "contract_allowlist" };

    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (strcmp(rules[i], rule) == 0)
            return true;
    return false;
}

int
sign_verdict_asked(struct warden *w, const struct sign_asked *a, struct sign_verdict *out, struct err *err)
{
    char text[SIGN_ADDRESS_TEXT + 1];

    if (a->m == NULL && a->failure != NULL) {       /* nobody knows what it says */
        *out = (struct sign_verdict){ .rule = "typed_data_format" };
        snprintf(out->reason, sizeof(out->reason), "%s", a->failure);
        return 0;
    }
    if (sign_verdict(w, a->request, &a->what, out, err) < 0)
        return -1;
    if (a->m == NULL)
        return 0;
    sign_address_text(a->what.tx.to, text);
    /* the receiver in the client's letters */
    if (strcmp(out->rule, "contract_allowlist") == 0)
        snprintf(out->reason, sizeof(out->reason), "Contract %s not in allowlist", a->m->to);
    else if (strcmp(out->rule, "contract_denylist") == 0 && strstr(out->reason, text) != NULL)
        snprintf(out->reason, sizeof(out->reason), "Contract %s is denylisted", a->m->to);
    if (a->value_well || is_before_value(out->rule))
        return 0;
    *out = (struct sign_verdict){ .rule = a->value_negative ? "value_non_negative" : "value_parse_error" };
    snprintf(out->reason, sizeof(out->reason), "%s", a->value_negative ? "Transaction value must not be negative"
                                                                       : "Invalid transaction value format");
    return 0;
}

/* --- saying ------------------------------------------------------------------------------------------------------- */

json_t *
sign_call(const struct tx *tx)
{
    char selector[2 + 2 * CALL_SELECTOR + 1] = "0x", party[SIGN_ADDRESS_TEXT + 1], amount[U256_TEXT_MAX + 1];
    struct call call;
    json_t *out;

    if (!call_read(tx->data, tx->n_data, &call) || call.class == CALL_NONE)
        return NULL;
    str_hex(call.selector, CALL_SELECTOR, selector + 2);
    out = json_pack("{s:s, s:s}", "selector", selector, "call", call.text != NULL ? call.text
                                                                                  : "not known: it may do anything");
    if (call.class == CALL_ALLOWS)
        (void)json_object_set_new(out, "warning", json_string("lets somebody else move tokens from then on"));
    if (call.has_party) {
        sign_address_text(call.party, party);
        (void)json_object_set_new(out, "party", json_string(party));
    }
    if (call.has_amount) {
        u256_text(&call.amount, amount);
        (void)json_object_set_new(out, "amount", json_string(amount));
    }
    return out;
}

json_t *
sign_decision(const struct sign_verdict *v)
{
    return json_pack("{s:b, s:s, s:b, s:s}", "allowed", v->allowed, "reason", v->reason, "requiresHumanConfirmation",
                     v->needs_person, "matchedRule", v->rule);
}

void
sign_answer(struct warden *w, struct asker to, bool done, json_t *body)
{
    cleanup_free char *text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
    struct err err = ERR_INIT;

    json_decref(body);
    if (text == NULL) {
        err_set(&err, ERR_SYSTEM, "memory", "out of memory");
        answer_no(w, to, &err);
        return;
    }
    ANSWER(w, to, EDGE_SIGNED, .done = done, .json = text);
}

void
sign_answer_no(struct warden *w, struct asker to, const char *error, const struct sign_verdict *v, bool confirmed)
{
    sign_answer(w, to, false, json_pack("{s:b, s:s, s:o, s:b}", "success", 0, "error", error, "policyDecision",
                                        sign_decision(v), "humanConfirmed", confirmed));
}

void
sign_entry(struct audit_entry *e, enum audit_type type, enum audit_severity severity, const char *summary,
           const char *request)
{
    *e = (struct audit_entry){ .type = type, .severity = severity, .summary = str_of(summary) };
    audit_put_cstr(e, "requestId", request);
}
