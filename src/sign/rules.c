/* sign/rules.c: see rules.h
 *
 * A table of rules in their order; the first that says no decides. What a rule needs to know is worked out before.
 */
#include "sign/rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "sign/address.h"

#define HOUR_MS 3600000ULL
#define DAY_MS  (24 * HOUR_MS)
#define BLOB_GAS 131072ULL      /* of each blob (EIP-4844) */

struct judging {
    const struct sign_rules *rules;
    const struct tx *tx;
    bool seen;
    bool call_valid, cost_valid;
    struct call call;
    struct u256 fee, cost;
    uint64_t made_hour, made_day;
    struct u256 spent_hour, spent_day;      /* this one too */
    bool spent_valid;
    char *reason;
};

struct sign_rules
sign_rules_standard(void)
{
    const struct u256 milli_eth = u256_of(1000000000000000ULL);
    struct sign_rules r = { .per_hour = 10, .per_day = 50 };

    (void)u256_mul(&milli_eth, 100, &r.max_value);
    (void)u256_mul(&milli_eth, 100, &r.max_fee);
    (void)u256_mul(&milli_eth, 10, &r.confirm_above);
    return r;
}

bool
sign_cost(const struct tx *tx, struct u256 *fee, struct u256 *all)
{
    const struct u256 *price = tx->type == TX_LEGACY || tx->type == TX_ACCESS_LIST ? &tx->gas_price : &tx->max_fee;
    struct u256 blobs;

    /* 33 bytes each in the list */
    return u256_mul(price, tx->gas, fee) && u256_mul(&tx->max_blob_fee, tx->blobs.n / 33 * BLOB_GAS, &blobs) &&
           u256_add(fee, &blobs, fee) && u256_add(fee, &tx->value, all);
}

static bool __attribute__((format(printf, 2, 3)))
no(struct judging *j, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(j->reason, RULES_REASON_MAX + 1, fmt, args);
    va_end(args);
    return false;
}

static bool
is_in(const uint8_t (*list)[TX_ADDRESS], size_t n, const uint8_t address[TX_ADDRESS])
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(list[i], address, TX_ADDRESS) == 0)
            return true;
    return false;
}

/* --- the rules, in their order ---------------------------------------------------------------------------------- */

static bool
not_seen(struct judging *j)
{
    return !j->seen || no(j, "Replay detected: request ID already processed");
}

static bool
chain(struct judging *j)
{
    if (j->tx->chain == 0)
        return no(j, "Chain 0 is none: the transaction would be valid on all");
    if (j->rules->n_chains == 0)
        return true;
    for (size_t i = 0; i < j->rules->n_chains; i++)
        if (j->rules->chains[i] == j->tx->chain)
            return true;
    return no(j, "Chain %llu not in allowlist", (unsigned long long)j->tx->chain);
}

static bool
creation(struct judging *j)
{
    return !j->tx->creates || no(j, "The transaction makes a contract and names nobody");
}

static bool
not_denied(struct judging *j)
{
    char text[SIGN_ADDRESS_TEXT + 1];
    const uint8_t *who = is_in(j->rules->denied, j->rules->n_denied, j->tx->to) ? j->tx->to : NULL;

    if (who == NULL && j->call.has_party && is_in(j->rules->denied, j->rules->n_denied, j->call.party))
        who = j->call.party;
    if (who == NULL)
        return true;
    sign_address_text(who, text);
    return no(j, "Contract %s is denylisted", text);
}

static bool
allowed(struct judging *j)
{
    char text[SIGN_ADDRESS_TEXT + 1];

    if (j->rules->n_allowed == 0 || is_in(j->rules->allowed, j->rules->n_allowed, j->tx->to))
        return true;
    sign_address_text(j->tx->to, text);
    return no(j, "Contract %s not in allowlist", text);
}

static bool
value_cap(struct judging *j)
{
    char is[U256_TEXT_MAX + 1], max[U256_TEXT_MAX + 1];

    if (u256_cmp(&j->tx->value, &j->rules->max_value) <= 0)
        return true;
    u256_text(&j->tx->value, is);
    u256_text(&j->rules->max_value, max);
    return no(j, "Value %s exceeds max %s", is, max);
}

static bool
fee_cap(struct judging *j)
{
    char is[U256_TEXT_MAX + 1], max[U256_TEXT_MAX + 1];

    if (!j->cost_valid)
        return no(j, "The fee is larger than any amount");
    if (u256_cmp(&j->fee, &j->rules->max_fee) <= 0)
        return true;
    u256_text(&j->fee, is);
    u256_text(&j->rules->max_fee, max);
    return no(j, "Fee %s exceeds max %s", is, max);
}

static bool
call_format(struct judging *j)
{
    return j->call_valid || no(j, "%s", j->tx->n_data < CALL_SELECTOR
           ? "Calldata must be a complete 4-byte hex selector followed by whole hex bytes"
           : "Calldata lacks arguments of the call that it is, or has others than that call can have");
}

static bool
selector(struct judging *j)
{
    const uint8_t *s = j->call.selector;

    if (j->rules->n_selectors == 0 || j->call.class == CALL_NONE)
        return true;
    for (size_t i = 0; i < j->rules->n_selectors; i++)
        if (memcmp(j->rules->selectors[i], s, CALL_SELECTOR) == 0)
            return true;
    return no(j, "Method selector 0x%02x%02x%02x%02x not in allowlist", s[0], s[1], s[2], s[3]);
}

static bool
hourly(struct judging *j)
{
    return j->made_hour < j->rules->per_hour ||
           no(j, "Rate limit: %llu/%u per hour", (unsigned long long)j->made_hour, j->rules->per_hour);
}

static bool
daily(struct judging *j)
{
    return j->made_day < j->rules->per_day ||
           no(j, "Rate limit: %llu/%u per day", (unsigned long long)j->made_day, j->rules->per_day);
}

static bool
spending(struct judging *j, const struct u256 *spent, const struct u256 *max, const char *window)
{
    char is[U256_TEXT_MAX + 1], most[U256_TEXT_MAX + 1];

    if (u256_is_zero(max))
        return true;
    if (!j->spent_valid)
        return no(j, "What was spent is larger than any amount");
    if (u256_cmp(spent, max) <= 0)
        return true;
    u256_text(spent, is);
    u256_text(max, most);
    return no(j, "Spending limit: %s of %s per %s", is, most, window);
}

static bool
spend_hour(struct judging *j)
{
    return spending(j, &j->spent_hour, &j->rules->spend_hour, "hour");
}

static bool
spend_day(struct judging *j)
{
    return spending(j, &j->spent_day, &j->rules->spend_day, "day");
}

static const struct {
    const char *name;
    bool (*says_yes)(struct judging *j);
} rules_in_order[] = {
    { "replay_protection", not_seen },
    { "chain_id_allowlist", chain },
    { "contract_creation", creation },
    { "contract_denylist", not_denied },
    { "contract_allowlist", allowed },
    { "value_cap", value_cap },
    { "fee_cap", fee_cap },
    { "method_selector_format", call_format },
    { "method_selector_allowlist", selector },
    { "rate_limit_hourly", hourly },
    { "rate_limit_daily", daily },
    { "spend_hourly", spend_hour },
    { "spend_daily", spend_day },
};

/* --- what they need to know ------------------------------------------------------------------------------------- */

static void
count(struct judging *j, const struct sign_past *past, size_t n_past, uint64_t now_ms)
{
    j->spent_hour = j->spent_day = j->cost;
    j->spent_valid = j->cost_valid;
    for (size_t i = 0; i < n_past; i++) {
        uint64_t age = past[i].at_ms < now_ms ? now_ms - past[i].at_ms : 0;

        if (age < DAY_MS) {
            j->made_day++;
            j->spent_valid = j->spent_valid && u256_add(&j->spent_day, &past[i].spent, &j->spent_day);
        }
        if (age < HOUR_MS) {
            j->made_hour++;
            j->spent_valid = j->spent_valid && u256_add(&j->spent_hour, &past[i].spent, &j->spent_hour);
        }
    }
}

/* A fee is money too: who makes blocks gets it. Allowances last, a delegation gives the whole account, and a call may
 * move tokens: no threshold in wei says what they are worth. Of calls that were listed somebody has thought before. */
static bool
needs_person(const struct judging *j)
{
    const enum call_class class = j->call.class;

    return j->rules->confirm_all || u256_cmp(&j->tx->value, &j->rules->confirm_above) > 0 ||
           u256_cmp(&j->fee, &j->rules->confirm_above) > 0 || class == CALL_ALLOWS || j->tx->type == TX_SET_CODE ||
           (j->rules->n_selectors == 0 && (class == CALL_UNKNOWN || class == CALL_MOVES));
}

void
sign_judge(const struct sign_rules *rules, const struct sign_past *past, size_t n_past, const struct tx *tx,
           bool seen, uint64_t now_ms, struct sign_verdict *out)
{
    struct judging j = { .rules = rules, .tx = tx, .seen = seen, .reason = out->reason };

    *out = (struct sign_verdict){ .allowed = false };
    if (rules == NULL) {
        out->rule = "no_policy";
        snprintf(out->reason, sizeof(out->reason), "No signing policy is set");
        return;
    }
    j.call_valid = call_read(tx->data, tx->n_data, &j.call);
    j.cost_valid = sign_cost(tx, &j.fee, &j.cost);
    count(&j, past, n_past, now_ms);
    for (size_t i = 0; i < ARRAY_LEN(rules_in_order); i++)
        if (!rules_in_order[i].says_yes(&j)) {
            out->rule = rules_in_order[i].name;
            return;
        }
    out->allowed = true;
    out->needs_person = needs_person(&j);
    out->rule = "allowed";
    snprintf(out->reason, sizeof(out->reason), "All policy checks passed");
}

void
sign_judge_text(const struct sign_rules *rules, const struct sign_past *past, size_t n_past, bool typed,
                uint64_t chain_of, const uint8_t *contract, bool seen, uint64_t now_ms, struct sign_verdict *out)
{
    static const char *const of_typed[] = { "chain_id_allowlist", "contract_denylist", "contract_allowlist" };
    static const char *const of_all[] = { "replay_protection", "rate_limit_hourly", "rate_limit_daily" };
    struct tx tx = { .type = TX_DYNAMIC_FEE, .chain = chain_of };
    struct judging j = { .rules = rules, .tx = &tx, .seen = seen, .cost_valid = true, .reason = out->reason };

    *out = (struct sign_verdict){ .allowed = false };
    if (contract != NULL)
        memcpy(tx.to, contract, TX_ADDRESS);
    count(&j, past, n_past, now_ms);
    for (size_t i = 0; i < ARRAY_LEN(rules_in_order); i++) {
        bool counts = false;

        for (size_t k = 0; k < ARRAY_LEN(of_all); k++)
            counts |= strcmp(rules_in_order[i].name, of_all[k]) == 0;
        for (size_t k = 0; typed && k < ARRAY_LEN(of_typed); k++)
            counts |= strcmp(rules_in_order[i].name, of_typed[k]) == 0;
        if (counts && !rules_in_order[i].says_yes(&j)) {
            out->rule = rules_in_order[i].name;
            return;
        }
    }
    out->allowed = out->needs_person = true;
    out->rule = "allowed";
    snprintf(out->reason, sizeof(out->reason), "All policy checks passed");
}
