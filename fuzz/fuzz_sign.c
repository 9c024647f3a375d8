/* sign: a transaction that is read is written as the same bytes; all else is read or refused
 *
 * Input: a letter (t a transaction, c data of a call, j typed data, n an amount, p a policy), then that.
 */
#include "fuzz.h"

#include <string.h>

#include "sign/address.h"
#include "sign/calldata.h"
#include "sign/policy.h"
#include "sign/typed.h"

static void
transaction(const uint8_t *data, size_t n)
{
    const struct sign_rules rules = sign_rules_standard();
    struct buf again = BUF_INIT(TX_BYTES_MAX + 16);
    struct sign_verdict verdict = { .allowed = true };
    struct tx_signature s;
    struct err err = ERR_INIT;
    uint64_t gas;
    struct tx tx;

    (void)rlp_valid((struct rlp){ data, n });
    if (tx_read(data, n, &tx, &s, &err) == 0) {
        FUZZ_ASSERT(tx_write(&tx, &s, &again, &err) == 0 && again.n == n && memcmp(again.p, data, n) == 0);
        sign_judge(&rules, NULL, 0, &tx, false, 0, &verdict);
        FUZZ_ASSERT(!verdict.allowed || (tx.chain != 0 && !tx.creates && u256_cmp(&tx.value, &rules.max_value) <= 0));
        (void)tx_intrinsic_gas(&tx, &gas);
    }
    buf_free(&again);
}

static void
call(const uint8_t *data, size_t n)
{
    struct call c;

    if (call_read(data, n, &c))
        FUZZ_ASSERT((c.class == CALL_NONE) == (n == 0) && (c.text != NULL || (!c.has_party && !c.has_amount)));
}

static void
typed(const uint8_t *data, size_t n)
{
    json_t *json = json_loadb((const char *)data, n, JSON_REJECT_DUPLICATES, NULL);
    struct err err = ERR_INIT;
    struct typed t;

    if (json != NULL && typed_read(json, &t, &err) == 0)
        FUZZ_ASSERT(t.chain != 0 && t.primary != NULL);
    json_decref(json);
}

static void
amount(const uint8_t *data, size_t n)
{
    char text[U256_TEXT_MAX + 1];
    uint8_t address[TX_ADDRESS];
    struct u256 v, again;

    if (u256_parse((struct str){ (const char *)data, n }, &v)) {
        u256_text(&v, text);
        FUZZ_ASSERT(u256_parse(str_of(text), &again) && u256_cmp(&v, &again) == 0);
    }
    (void)sign_address_parse((struct str){ (const char *)data, n }, address);
}

static void
policy(const uint8_t *data, size_t n)
{
    static struct sign_policy p;
    struct err err = ERR_INIT;

    if (sign_policy_read(data, n, &p, &err) == 0)
        FUZZ_ASSERT(p.rules.n_chains <= RULES_ENTRIES_MAX && p.rules.n_selectors <= RULES_ENTRIES_MAX &&
                    p.rules.per_day <= RULES_PER_DAY_MAX && p.rules.per_hour <= RULES_PER_DAY_MAX);
    else
        FUZZ_ASSERT(err.kind != ERR_NONE);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    switch (n > 0 ? data[0] : 0) {
    case 't': transaction(data + 1, n - 1); break;
    case 'c': call(data + 1, n - 1); break;
    case 'j': typed(data + 1, n - 1); break;
    case 'n': amount(data + 1, n - 1); break;
    case 'p': policy(data + 1, n - 1); break;
    default: break;
    }
    return 0;
}
