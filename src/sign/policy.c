/* sign/policy.c: see policy.h */
#include "sign/policy.h"

#include <stddef.h>
#include <string.h>

#include "base/array.h"
#include "sign/address.h"

enum kind { OF_CHAINS, OF_ADDRESSES, OF_SELECTORS, OF_WEI, OF_COUNT, OF_GAS, OF_BOOL };

#define AT(member) .at = offsetof(struct sign_policy, member)

/* A row a member: where it is, and of a list where its length and the pointer to it are. */
static const struct member {
    const char *name;
    enum kind kind;
    size_t at, n_at, list_at;
} members[] = {
    { "allowedChainIds", OF_CHAINS, AT(chains), offsetof(struct sign_policy, rules.n_chains),
      offsetof(struct sign_policy, rules.chains) },
    { "allowedContracts", OF_ADDRESSES, AT(allowed), offsetof(struct sign_policy, rules.n_allowed),
      offsetof(struct sign_policy, rules.allowed) },
    { "deniedContracts", OF_ADDRESSES, AT(denied), offsetof(struct sign_policy, rules.n_denied),
      offsetof(struct sign_policy, rules.denied) },
    { "allowedMethodSelectors", OF_SELECTORS, AT(selectors), offsetof(struct sign_policy, rules.n_selectors),
      offsetof(struct sign_policy, rules.selectors) },
    { "maxTransactionValueWei", OF_WEI, AT(rules.max_value) },
    { "maxFeeWei", OF_WEI, AT(rules.max_fee) },
    { "maxSpendPerHourWei", OF_WEI, AT(rules.spend_hour) },
    { "maxSpendPerDayWei", OF_WEI, AT(rules.spend_day) },
    { "maxTransactionsPerHour", OF_COUNT, AT(rules.per_hour) },
    { "maxTransactionsPerDay", OF_COUNT, AT(rules.per_day) },
    { "humanConfirmationThresholdWei", OF_WEI, AT(rules.confirm_above) },
    { "requireHumanConfirmation", OF_BOOL, AT(rules.confirm_all) },
    { "defaultGasLimit", OF_GAS, AT(gas) },
    { "defaultMaxFeePerGasWei", OF_WEI, AT(max_fee) },
    { "defaultMaxPriorityFeePerGasWei", OF_WEI, AT(tip) },
};

static int
wrong(struct err *err, const char *name, const char *what)
{
    return err_set(err, ERR_POLICY, "sign.policy", "%.64s: %s", name, what);
}

static struct str
text_of(const json_t *v)
{
    return (struct str){ json_string_value(v), json_string_length(v) };
}

/* "0x" and the digits of @n bytes. */
static bool
hex(struct str s, uint8_t *out, size_t n)
{
    return s.n == 2 + 2 * n && s.p[0] == '0' && s.p[1] == 'x' && str_unhex((struct str){ s.p + 2, 2 * n }, out);
}

/* One element of a list, in @to: false, it is none. */
static bool
element(enum kind kind, const json_t *v, void *to)
{
    uint64_t chain;

    if (kind == OF_ADDRESSES)
        return json_is_string(v) && sign_address_parse(text_of(v), to);
    if (kind == OF_SELECTORS)
        return json_is_string(v) && hex(text_of(v), to, CALL_SELECTOR);
    chain = json_is_integer(v) && json_integer_value(v) > 0 ? (uint64_t)json_integer_value(v) : 0;
    memcpy(to, &chain, sizeof(chain));
    return chain > 0 && chain <= TX_CHAIN_MAX;
}

static int
take_list(struct sign_policy *p, const struct member *m, const json_t *v, struct err *err)
{
    const size_t size = m->kind == OF_CHAINS ? sizeof(uint64_t) : m->kind == OF_ADDRESSES ? TX_ADDRESS : CALL_SELECTOR;
    uint8_t *list = (uint8_t *)p + m->at;
    size_t n = json_array_size(v);

    if (!json_is_array(v) || n > RULES_ENTRIES_MAX)
        return wrong(err, m->name, "it is no list of at most 256 entries");
    for (size_t i = 0; i < n; i++)
        if (!element(m->kind, json_array_get(v, i), list + i * size))
            return wrong(err, m->name, m->kind == OF_CHAINS ? "a chain is a number from 1 on"
                                       : m->kind == OF_ADDRESSES
                                           ? "an address is 0x and 40 hexadecimal digits, whose checksum is right"
                                           : "a selector is 0x and 8 hexadecimal digits");
    memcpy((uint8_t *)p + m->n_at, &n, sizeof(n));
    memcpy((uint8_t *)p + m->list_at, &list, sizeof(list));
    return 0;
}

static int
take_wei(struct sign_policy *p, const struct member *m, const json_t *v, struct err *err)
{
    struct u256 wei;

    if (json_is_integer(v) && json_integer_value(v) >= 0)
        wei = u256_of((uint64_t)json_integer_value(v));
    else if (!json_is_string(v) || !u256_parse(text_of(v), &wei))
        return wrong(err, m->name, "an amount is a text of decimal digits: \"100000000000000000\"");
    memcpy((uint8_t *)p + m->at, &wei, sizeof(wei));
    return 0;
}

static int
take_number(struct sign_policy *p, const struct member *m, const json_t *v, struct err *err)
{
    uint64_t n = json_is_integer(v) && json_integer_value(v) >= 0 ? (uint64_t)json_integer_value(v) : UINT64_MAX;
    uint32_t count = (uint32_t)n;

    if (m->kind == OF_COUNT && n > RULES_PER_DAY_MAX)
        return wrong(err, m->name, "it is no number from 0 to 10000");
    if (n > INT64_MAX)
        return wrong(err, m->name, "it is no number from 0 on");
    if (m->kind == OF_COUNT)
        memcpy((uint8_t *)p + m->at, &count, sizeof(count));
    else
        memcpy((uint8_t *)p + m->at, &n, sizeof(n));
    return 0;
}

static int
take(struct sign_policy *p, const struct member *m, const json_t *v, struct err *err)
{
    bool truth = json_is_true(v);

    switch (m->kind) {
    case OF_WEI: return take_wei(p, m, v, err);
    case OF_COUNT:
    case OF_GAS: return take_number(p, m, v, err);
    case OF_BOOL:
        memcpy((uint8_t *)p + m->at, &truth, sizeof(truth));
        return json_is_boolean(v) ? 0 : wrong(err, m->name, "it is neither true nor false");
    default: return take_list(p, m, v, err);
    }
}

static int
take_all(struct sign_policy *p, const json_t *top, struct err *err)
{
    const char *name;
    json_t *v;

    json_object_foreach((json_t *)(uintptr_t)top, name, v) {
        size_t i = 0;

        while (i < ARRAY_LEN(members) && strcmp(members[i].name, name) != 0)
            i++;
        if (i == ARRAY_LEN(members))
            return wrong(err, name, "a signing policy has no such member");
        if (take(p, &members[i], v, err) < 0)
            return -1;
    }
    return 0;
}

int
sign_policy_read(const void *text, size_t n, struct sign_policy *out, struct err *err)
{
    json_error_t why;
    json_t *top = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
    int r;

    *out = (struct sign_policy){ .rules = sign_rules_standard() };
    if (top == NULL)
        return err_set(err, ERR_POLICY, "sign.policy", "line %d: %.100s", why.line, why.text);
    r = json_is_object(top) ? take_all(out, top, err) : wrong(err, "the whole", "it is no object");
    json_decref(top);
    return r;
}

static void
put_wei(json_t *top, const char *name, const struct u256 *v)
{
    char text[U256_TEXT_MAX + 1];

    u256_text(v, text);
    (void)json_object_set_new(top, name, json_string(text));
}

char *
sign_policy_text(void)
{
    const struct sign_rules r = sign_rules_standard();
    json_t *top = json_pack("{s:[], s:[], s:[], s:[]}", "allowedChainIds", "allowedContracts", "deniedContracts",
                            "allowedMethodSelectors");
    char *text;

    put_wei(top, "maxTransactionValueWei", &r.max_value);
    (void)json_object_set_new(top, "maxTransactionsPerHour", json_integer(r.per_hour));
    (void)json_object_set_new(top, "maxTransactionsPerDay", json_integer(r.per_day));
    put_wei(top, "humanConfirmationThresholdWei", &r.confirm_above);
    (void)json_object_set_new(top, "requireHumanConfirmation", json_boolean(r.confirm_all));
    put_wei(top, "maxFeeWei", &r.max_fee);
    put_wei(top, "maxSpendPerHourWei", &r.spend_hour);
    put_wei(top, "maxSpendPerDayWei", &r.spend_day);
    text = json_dumps(top, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    json_decref(top);
    return text;
}
