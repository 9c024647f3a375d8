/* sign: golden values of ethers 6 and of the EIPs, refusals, and the order of the rules (R46) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "sign/address.h"
#include "sign/key.h"
#include "sign/message.h"
#include "sign/rules.h"
#include "sign/typed.h"

#define GWEI 1000000000ULL
#define ETH  (GWEI * GWEI)
#define FIVES "3535353535353535353535353535353535353535"

static uint8_t fives[TX_ADDRESS];

static int
begin(void **state)
{
    (void)state;
    memset(fives, 0x35, sizeof(fives));
    return 0;
}

static struct sign_key *
key_of_byte(uint8_t v)
{
    struct err err = ERR_INIT;
    uint8_t bytes[SIGN_KEY_SIZE];
    struct sign_key *k;

    memset(bytes, v, sizeof(bytes));
    k = sign_key_new(bytes, &err);
    assert_non_null(k);
    return k;
}

static struct tx
a_transfer(enum tx_type type)
{
    struct tx tx = { .type = type, .chain = 1, .nonce = 9, .gas = 21000, .value = u256_of(ETH) };

    memcpy(tx.to, fives, sizeof(fives));
    if (type == TX_LEGACY || type == TX_ACCESS_LIST)
        tx.gas_price = u256_of(20 * GWEI);
    if (type == TX_DYNAMIC_FEE) {
        tx.max_fee = u256_of(20 * GWEI);
        tx.tip = u256_of(GWEI);
    }
    return tx;
}

static void
assert_hex(const uint8_t *p, size_t n, const char *expected)
{
    char *text = malloc(2 * n + 1);

    assert_non_null(text);
    str_hex(p, n, text);
    assert_string_equal(text, expected);
    free(text);
}

/* --- bytes and numbers ------------------------------------------------------------------------------------------ */

static void
test_keccak(void **state)
{
    uint8_t out[KECCAK_SIZE], many[1000] = { 0 };
    struct keccak k;

    (void)state;
    keccak256("", 0, out);
    assert_hex(out, sizeof(out), "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470");
    keccak256("abc", 3, out);
    assert_hex(out, sizeof(out), "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45");
    keccak_init(&k);
    for (size_t i = 0; i < sizeof(many); i += 8)
        keccak_add(&k, many + i, 8);
    keccak_end(&k, out);
    keccak256(many, sizeof(many), many);
    assert_memory_equal(out, many, sizeof(out));
}

static void
test_numbers(void **state)
{
    static const char *const bad[] = { "", "-1", "+1", " 1", "01", "1 ", "0x", "0xg", "1.5", "1e18", "0X1",
                                       "115792089237316195423570985008687907853269984665640564039457584007913129639936",
                                       "0x10000000000000000000000000000000000000000000000000000000000000000" };
    const char *largest = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
    char text[U256_TEXT_MAX + 1];
    struct u256 v, one = u256_of(1);
    uint64_t small;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(u256_parse(str_of(bad[i]), &v));
    assert_true(u256_parse(str_of(largest), &v));
    u256_text(&v, text);
    assert_string_equal(text, largest);
    assert_false(u256_add(&v, &one, &v));
    assert_false(u256_mul(&v, 2, &v));
    assert_false(u256_to_u64(&v, UINT64_MAX, &small));
    assert_true(u256_parse(STR_LIT("0xde0b6b3a7640000"), &v));
    assert_true(u256_to_u64(&v, UINT64_MAX, &small));
    assert_true(small == ETH);
    assert_false(u256_to_u64(&v, ETH - 1, &small));
    v = u256_of(0);
    u256_text(&v, text);
    assert_string_equal(text, "0");
}

static void
test_there_is_one_encoding(void **state)
{
    static const struct { const char *bytes; size_t n; } bad[] = {
        { "\x81\x05", 2 },              /* one small byte is itself */
        { "\xb8\x01\x80", 3 },          /* a short length in the long form */
        { "\xb9\x00\x38", 3 },          /* zeros in front of a length */
        { "\x83\x01\x02", 3 },          /* not all there */
        { "\xbf\xff\xff\xff\xff\xff\xff\xff\xff", 9 }, { "\xf8\x37", 2 }, { "\xc1", 1 }, { "\xff", 1 },
    };
    static const uint8_t deep[] = { 0xc9, 0xc8, 0xc7, 0xc6, 0xc5, 0xc4, 0xc3, 0xc2, 0xc1, 0xc0 };
    struct rlp from;
    struct rlp_item item;
    struct u256 v;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        from = (struct rlp){ (const uint8_t *)bad[i].bytes, bad[i].n };
        assert_false(rlp_next(&from, &item));
        assert_int_equal(from.n, bad[i].n);
        assert_false(rlp_valid(from));
    }
    from = (struct rlp){ (const uint8_t *)"\x82\x00\x01", 3 };
    assert_false(rlp_next_u256(&from, &v));
    assert_true(rlp_valid((struct rlp){ deep + 2, sizeof(deep) - 2 }));
    assert_false(rlp_valid((struct rlp){ deep + 1, sizeof(deep) - 1 }));
}

/* --- transactions ----------------------------------------------------------------------------------------------- */

static void
assert_signed(const struct tx *tx, const char *expected)
{
    struct sign_key *k = key_of_byte(0x46);
    cleanup_buf struct buf raw = BUF_INIT(TX_BYTES_MAX), again = BUF_INIT(TX_BYTES_MAX);
    struct err err = ERR_INIT;
    struct tx_signature s;
    struct tx read;
    uint8_t digest[TX_HASH], by[TX_ADDRESS], owner[TX_ADDRESS];

    assert_int_equal(tx_digest(tx, digest, &err), 0);
    assert_int_equal(sign_key_sign(k, digest, &s, &err), 0);
    assert_int_equal(tx_write(tx, &s, &raw, &err), 0);
    assert_hex(raw.p, raw.n, expected);
    /* what was written is read as the same, and signed by the same */
    assert_int_equal(tx_read(raw.p, raw.n, &read, &s, &err), 0);
    assert_int_equal(tx_write(&read, &s, &again, &err), 0);
    assert_int_equal(again.n, raw.n);
    assert_memory_equal(again.p, raw.p, raw.n);
    assert_true(sign_recover(digest, &s, by));
    sign_key_address(k, owner);
    assert_memory_equal(by, owner, sizeof(by));
    sign_key_free(k);
}

static void
test_transactions(void **state)
{
    static const uint8_t zeros[32];
    cleanup_buf struct buf keys = BUF_INIT(64), entry = BUF_INIT(128), list = BUF_INIT(128);
    struct tx tx = a_transfer(TX_LEGACY);
    struct err err = ERR_INIT;
    uint8_t digest[TX_HASH];

    (void)state;
    assert_int_equal(tx_digest(&tx, digest, &err), 0);
    assert_hex(digest, sizeof(digest), "daf5a779ae972f972197303d7b574746c7ef83eadac0f2791ad23db92e4c8e53");
    assert_signed(&tx, "f86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a76400008025a028ef6134"
                  "0bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa636276a067cbe9d8997f761aecb703304b3800ccf555c9f3dc6"
                  "4214b297fb1966a3b6d83");
    tx = a_transfer(TX_DYNAMIC_FEE);
    assert_int_equal(tx_digest(&tx, digest, &err), 0);
    assert_hex(digest, sizeof(digest), "577f072b4be21dbe73cdd90f32675d67d2fdfefdecfbc579f52025caf096400a");
    assert_signed(&tx, "02f8730109843b9aca008504a817c800825208943535353535353535353535353535353535353535880de0b6b3a764000080"
                  "c080a04e87ced8b47d801c979c6baa52bbd78b42c9db2515c9d1f473e06f65d49aaa90a02357671517c59544ebd95012d1988c1"
                  "02292eb570cc840ac9af72bb4c52e5edd");
    rlp_put_bytes(&keys, zeros, sizeof(zeros));
    rlp_put_bytes(&entry, fives, sizeof(fives));
    rlp_put_list(&entry, keys.p, keys.n);
    rlp_put_list(&list, entry.p, entry.n);
    tx = a_transfer(TX_ACCESS_LIST);
    tx.access = (struct rlp){ list.p, list.n };
    assert_signed(&tx, "01f8a701098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a764000080f838f794"
                  FIVES "e1a0000000000000000000000000000000000000000000000000000000000000000001a019b0c8f2d36ee3e2f550d87070"
                  "9e6976680dcd1ccea3578024141b1ebddb8b6fa02f0555ae6b2a30946d5a91df8fd8422a7b47ed2f7ae87ff8eb216b11c9e5f"
                  "a8b");
}

static void
test_what_is_no_transaction(void **state)
{
    struct err err = ERR_INIT;
    uint8_t digest[TX_HASH];
    struct tx rows[7];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        rows[i] = a_transfer(TX_DYNAMIC_FEE);
    rows[0].chain = 0;
    rows[1].chain = TX_CHAIN_MAX + 1;
    rows[2].nonce = UINT64_MAX;
    rows[3].tip = u256_of(21 * GWEI);
    rows[4].access = (struct rlp){ (const uint8_t *)"\x01", 1 };
    rows[5].type = TX_BLOB;                 /* without a blob */
    rows[6].type = TX_SET_CODE;             /* without an authorisation */
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(tx_digest(&rows[i], digest, &err), -1);
        assert_true(err_is(&err, "sign.tx.invalid"));
    }
}

static void
test_messages(void **state)
{
    struct sign_key *k = key_of_byte(0x46);
    struct err err = ERR_INIT;
    struct tx_signature s;
    uint8_t digest[KECCAK_SIZE], address[TX_ADDRESS];
    char text[SIGN_ADDRESS_TEXT + 1];

    (void)state;
    message_digest("hello", 5, digest);
    assert_int_equal(sign_key_sign(k, digest, &s, &err), 0);
    assert_hex(s.r, 32, "f63c93dc642a4839770b35abf9cb304ac2f1b5463d9a9abd87546feaa0af992e");
    assert_hex(s.s, 32, "659cf087c433e45c45f6135cb819ab1922c6359dbb1b8c8d7a54141de2cd4beb");
    assert_int_equal(s.parity, 0);
    sign_key_address(k, address);
    sign_address_text(address, text);
    assert_string_equal(text, "0x9d8A62f656a8d1615C1294fd71e9CFb3E4855A4F");
    assert_true(sign_address_parse(str_of(text), address));
    text[4] ^= 0x20;
    assert_false(sign_address_parse(str_of(text), address));
    sign_key_free(k);
}

static void
test_no_key(void **state)
{
    struct err err = ERR_INIT;
    uint8_t bytes[SIGN_KEY_SIZE] = { 0 };

    (void)state;
    assert_null(sign_key_new(bytes, &err));
    memset(bytes, 0xff, sizeof(bytes));
    assert_null(sign_key_new(bytes, &err));
    assert_true(err_is(&err, "sign.key.invalid"));
}

/* --- typed data ------------------------------------------------------------------------------------------------- */

#define TYPES "\"EIP712Domain\":[{\"name\":\"name\",\"type\":\"string\"},{\"name\":\"version\",\"type\":\"string\"}," \
    "{\"name\":\"chainId\",\"type\":\"uint256\"},{\"name\":\"verifyingContract\",\"type\":\"address\"}]," \
    "\"Person\":[{\"name\":\"name\",\"type\":\"string\"},{\"name\":\"wallet\",\"type\":\"address\"}]," \
    "\"Mail\":[{\"name\":\"from\",\"type\":\"Person\"},{\"name\":\"to\",\"type\":\"Person\"}," \
    "{\"name\":\"contents\",\"type\":\"string\"}]"
#define DOMAIN "\"domain\":{\"name\":\"Ether Mail\",\"version\":\"1\",\"chainId\":1," \
    "\"verifyingContract\":\"0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC\"}"
#define COW "{\"name\":\"Cow\",\"wallet\":\"0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD826\"}"
#define BOB "{\"name\":\"Bob\",\"wallet\":\"0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB\"}"
#define MAIL(types, domain, message) \
    "{\"types\":{" types "},\"primaryType\":\"Mail\"," domain ",\"message\":" message "}"

static int
read_typed(const char *text, struct typed *out, struct err *err)
{
    json_error_t where;
    json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    int rc;

    assert_non_null(j);
    rc = typed_read(j, out, err);
    json_decref(j);
    return rc;
}

static void
test_typed_data(void **state)
{
    struct err err = ERR_INIT;
    struct typed t;
    uint8_t cow[KECCAK_SIZE];
    struct tx_signature s;
    struct sign_key *k;

    (void)state;
    assert_int_equal(read_typed(MAIL(TYPES, DOMAIN, "{\"from\":" COW ",\"to\":" BOB ",\"contents\":\"Hello, Bob!\"}"),
                                &t, &err), 0);
    assert_hex(t.digest, sizeof(t.digest), "be609aee343fb3c4b28e1df9e632fca64fcfaede20f02e86244efddf30957bd2");
    assert_true(t.chain == 1 && t.has_contract && t.contract[0] == 0xcc);
    keccak256("cow", 3, cow);
    k = sign_key_new(cow, &err);
    assert_non_null(k);
    assert_int_equal(sign_key_sign(k, t.digest, &s, &err), 0);
    assert_hex(s.r, 32, "4355c47d63924e8a72e509b65029052eb6c299d53a04e167c5775fd466751c9d");
    assert_hex(s.s, 32, "07299936d304c153f6443dfa05f40ff007d72911b6f72307f996231605b91562");
    assert_int_equal(s.parity, 1);
    sign_key_free(k);
}

static void
test_typed_data_that_is_refused(void **state)
{
    static const struct { const char *text, *code; } rows[] = {
        { MAIL(TYPES, DOMAIN, "{\"from\":" COW ",\"to\":" BOB "}"), "sign.typed.value" },
        { MAIL(TYPES, DOMAIN, "{\"from\":" COW ",\"to\":" BOB ",\"contents\":\"x\",\"more\":1}"), "sign.typed.value" },
        { MAIL(TYPES, DOMAIN, "{\"from\":" COW ",\"to\":null,\"contents\":\"x\"}"), "sign.typed.value" },
        { MAIL(TYPES ",\"Left\":[]", DOMAIN, "{\"from\":" COW ",\"to\":" BOB ",\"contents\":\"x\"}"), "sign.typed.type" },
        { MAIL(TYPES ",\"address\":[]", DOMAIN, "{\"from\":" COW ",\"to\":" BOB ",\"contents\":\"x\"}"), "sign.typed.type" },
        { MAIL(TYPES, "\"domain\":{\"name\":\"a\",\"version\":\"1\",\"verifyingContract\":"
               "\"0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC\"}",
               "{\"from\":" COW ",\"to\":" BOB ",\"contents\":\"x\"}"), "sign.typed.domain" },
        { MAIL("\"EIP712Domain\":[{\"name\":\"chainId\",\"type\":\"uint256\"},{\"name\":\"name\",\"type\":\"string\"}],"
               "\"Mail\":[]", "\"domain\":{\"chainId\":1,\"name\":\"a\"}", "{}"), "sign.typed.domain" },
        { MAIL("\"EIP712Domain\":[{\"name\":\"chainId\",\"type\":\"uint256\"}],\"Mail\":[{\"name\":\"m\",\"type\":\"Mail\"}]",
               "\"domain\":{\"chainId\":1}", "{\"m\":{\"m\":{}}}"), "sign.typed.value" },
        { "{\"types\":{},\"primaryType\":\"Mail\",\"domain\":{},\"message\":{}}", "sign.typed.type" },
        { "[]", "sign.typed.form" },
    };
    struct err err = ERR_INIT;
    struct typed t;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(read_typed(rows[i].text, &t, &err), -1);
        assert_string_equal(err.code, rows[i].code);
    }
}

#define ONE(type, value) \
    MAIL("\"EIP712Domain\":[{\"name\":\"chainId\",\"type\":\"uint256\"}],\"Mail\":[{\"name\":\"v\",\"type\":\"" type "\"}]", \
         "\"domain\":{\"chainId\":1}", "{\"v\":" value "}")

static void
test_values_of_types(void **state)
{
    static const char *const good[] = {
        ONE("uint8", "255"), ONE("int8", "-128"), ONE("int8", "\"127\""), ONE("uint256", "\"0xff\""), ONE("int256", "\"-1\""),
        ONE("bytes3", "\"0x010203\""), ONE("bytes", "\"0x\""), ONE("uint8[]", "[1,2]"), ONE("uint8[2][]", "[[1,2],[3,4]]"),
        ONE("bool", "true"), ONE("string", "\"\""),
    }, *const bad[] = {
        ONE("uint8", "256"), ONE("uint8", "-1"), ONE("int8", "128"), ONE("int8", "-129"), ONE("int8", "\"-0\""),
        ONE("uint8", "1.5"), ONE("uint8", "\"\""), ONE("uint7", "1"), ONE("uint264", "1"), ONE("uint08", "1"), ONE("bytes0", "\"0x\""),
        ONE("bytes33", "\"0x00\""), ONE("bytes3", "\"0x0102\""), ONE("bytes", "\"0x0\""), ONE("bytes", "\"00\""),
        ONE("uint8[2]", "[1]"), ONE("uint8[02]", "[1,2]"), ONE("uint8[0]", "[]"), ONE("[]", "[]"), ONE("bool", "1"), ONE("string", "1"),
        ONE("address", "\"0xcd2a3d9F938E13CD947Ec05AbC7FE734Df8DD826\""), ONE("fixed", "1"), ONE("", "1"),
    };
    struct err err = ERR_INIT;
    struct typed t;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        if (read_typed(good[i], &t, &err) < 0)
            fail_msg("%s: %s", good[i], err.msg);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (read_typed(bad[i], &t, &err) == 0)
            fail_msg("%s: taken", bad[i]);
}

/* --- calls and rules -------------------------------------------------------------------------------------------- */

/* transfer or approve of @amount (its lowest byte) to fives. */
static size_t
a_call(uint8_t out[68], const char *selector, uint8_t amount)
{
    memset(out, 0, 68);
    memcpy(out, selector, CALL_SELECTOR);
    memcpy(out + 4 + 12, fives, sizeof(fives));
    out[67] = amount;
    return 68;
}

static void
test_calls(void **state)
{
    uint8_t data[68];
    struct call c;

    (void)state;
    assert_true(call_read(data, a_call(data, "\xa9\x05\x9c\xbb", 7), &c));
    assert_int_equal(c.class, CALL_MOVES);
    assert_true(c.has_party && memcmp(c.party, fives, sizeof(fives)) == 0 && c.amount.b[31] == 7);
    assert_true(call_read(data, a_call(data, "\x09\x5e\xa7\xb3", 7), &c));
    assert_int_equal(c.class, CALL_ALLOWS);
    assert_true(call_read(data, a_call(data, "\x09\x5e\xa7\xb3", 0), &c));      /* of an NFT it is number 0 */
    assert_int_equal(c.class, CALL_ALLOWS);
    assert_true(call_read(data, a_call(data, "\xa2\x2c\xb4\x65", 1), &c));      /* setApprovalForAll */
    assert_int_equal(c.class, CALL_ALLOWS);
    assert_true(call_read(data, a_call(data, "\x01\x02\x03\x04", 1), &c));
    assert_int_equal(c.class, CALL_UNKNOWN);
    data[4] = 1;                                /* not an address: a byte above it */
    memcpy(data, "\xa9\x05\x9c\xbb", 4);
    assert_false(call_read(data, 68, &c));
    assert_false(call_read(data, 67, &c));
    assert_false(call_read(data, 3, &c));
    assert_true(call_read(data, 0, &c));
    assert_int_equal(c.class, CALL_NONE);
}

static const struct tx *
milli(struct tx *tx, uint64_t thousandths)
{
    *tx = a_transfer(TX_DYNAMIC_FEE);
    tx->value = u256_of(thousandths * (ETH / 1000));
    return tx;
}

static void
judge(const struct sign_rules *r, const struct tx *tx, const char *rule, bool needs_person)
{
    struct sign_verdict v;

    sign_judge(r, NULL, 0, tx, false, 1000, &v);
    assert_string_equal(v.rule, rule);
    assert_int_equal(v.allowed, strcmp(rule, "allowed") == 0);
    assert_int_equal(v.needs_person, needs_person);
    assert_true(v.reason[0] != '\0');
}

static void
test_rules(void **state)
{
    const uint64_t chains[] = { 5, 10 };
    struct sign_rules r = sign_rules_standard();
    uint8_t other[1][TX_ADDRESS] = { { 1 } }, us[1][TX_ADDRESS], data[68];
    const uint8_t selectors[1][CALL_SELECTOR] = { { 1, 2, 3, 4 } };
    struct tx tx;

    (void)state;
    memcpy(us[0], fives, TX_ADDRESS);
    judge(NULL, milli(&tx, 1), "no_policy", false);
    judge(&r, milli(&tx, 10), "allowed", false);
    judge(&r, milli(&tx, 11), "allowed", true);
    judge(&r, milli(&tx, 100), "allowed", true);
    judge(&r, milli(&tx, 101), "value_cap", false);
    milli(&tx, 1)->gas > 0 ? (void)(tx.gas = 10000000) : (void)0;
    judge(&r, &tx, "fee_cap", false);
    milli(&tx, 1);
    memset(tx.max_fee.b, 0xff, sizeof(tx.max_fee.b));
    judge(&r, &tx, "fee_cap", false);
    milli(&tx, 1);
    tx.creates = true;
    judge(&r, &tx, "contract_creation", false);
    milli(&tx, 0);
    tx.data = data;
    tx.n_data = a_call(data, "\x09\x5e\xa7\xb3", 7);
    judge(&r, &tx, "allowed", true);            /* an allowance: always a person */
    tx.n_data = 2;
    judge(&r, &tx, "method_selector_format", false);
    tx.n_data = 68;
    r.selectors = selectors;
    r.n_selectors = 1;
    judge(&r, &tx, "method_selector_allowlist", false);
    r.n_selectors = 0;
    r.denied = us;
    r.n_denied = 1;
    memcpy(tx.to, other, TX_ADDRESS);
    judge(&r, &tx, "contract_denylist", false); /* as who may spend */
    judge(&r, milli(&tx, 1), "contract_denylist", false);
    r.n_denied = 0;
    r.allowed = (const uint8_t (*)[TX_ADDRESS])other;
    r.n_allowed = 1;
    judge(&r, &tx, "contract_allowlist", false);
    r.n_allowed = 0;
    r.chains = chains;
    r.n_chains = 2;
    judge(&r, &tx, "chain_id_allowlist", false);
    tx.chain = 10;
    judge(&r, &tx, "allowed", false);
    tx.chain = 0;
    tx.type = TX_LEGACY;
    r.n_chains = 0;
    judge(&r, &tx, "chain_id_allowlist", false);
    r.per_hour = 0;
    judge(&r, milli(&tx, 1), "rate_limit_hourly", false);
}

static void
test_windows(void **state)
{
    struct sign_rules r = sign_rules_standard();
    struct sign_past past[50];
    struct sign_verdict v;
    struct tx tx;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(past); i++)
        past[i] = (struct sign_past){ .at_ms = 100000000, .spent = u256_of(ETH / 1000) };
    sign_judge(&r, past, 9, milli(&tx, 1), false, 100000000, &v);
    assert_true(v.allowed);
    sign_judge(&r, past, 10, &tx, false, 100000000, &v);
    assert_string_equal(v.rule, "rate_limit_hourly");
    sign_judge(&r, past, 10, &tx, false, 100000000 + 3600000, &v);
    assert_true(v.allowed);
    sign_judge(&r, past, 50, &tx, false, 100000000 + 3600000, &v);
    assert_string_equal(v.rule, "rate_limit_daily");
    sign_judge(&r, past, 50, &tx, false, 100000000 + 86400000, &v);
    assert_true(v.allowed);
    sign_judge(&r, past, 10, &tx, false, 1000, &v);         /* the clock was set back */
    assert_string_equal(v.rule, "rate_limit_hourly");
    sign_judge(&r, NULL, 0, &tx, true, 1000, &v);
    assert_string_equal(v.rule, "replay_protection");
    r.spend_hour = u256_of(5 * (ETH / 1000));
    sign_judge(&r, past, 3, &tx, false, 100000000, &v);     /* 3, 1 and a fee of 0.42 */
    assert_true(v.allowed);
    sign_judge(&r, past, 4, &tx, false, 100000000, &v);
    assert_string_equal(v.rule, "spend_hourly");
    r.spend_hour = u256_of(0);
    r.spend_day = u256_of(5 * (ETH / 1000));
    sign_judge(&r, past, 4, &tx, false, 100000000 + 3600000, &v);
    assert_string_equal(v.rule, "spend_daily");
}

/* --- backends ---------------------------------------------------------------------------------------------------- */

/* One that says what it was given, in the form of s that was asked for. */
struct told {
    struct tx_signature made;
    bool high;
    int fails;
    unsigned freed;
};

static int
told_sign(void *ctx, const uint8_t digest[TX_HASH], uint8_t rs[64], struct err *err)
{
    static const uint8_t order[32] = {
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe,
        0xba, 0xae, 0xdc, 0xe6, 0xaf, 0x48, 0xa0, 0x3b, 0xbf, 0xd2, 0x5e, 0x8c, 0xd0, 0x36, 0x41, 0x41 };
    const struct told *t = ctx;
    int borrow = 0;

    (void)digest;
    if (t->fails != 0) {
        (void)err_set(err, ERR_SYSTEM, "test.told", "no");
        return t->fails;
    }
    memcpy(rs, t->made.r, 32);
    memcpy(rs + 32, t->made.s, 32);
    for (int i = 31; t->high && i >= 0; i--) {      /* order - s */
        int v = order[i] - t->made.s[i] - borrow;
        borrow = v < 0;
        rs[32 + i] = (uint8_t)(v + (borrow ? 256 : 0));
    }
    return 0;
}

static void
told_free(void *ctx)
{
    ((struct told *)ctx)->freed++;
}

/* What a backend says leaves in the low form, with the parity that recovers to the key, or not at all. */
static void
test_backends(void **state)
{
    static const struct sign_backend backend = { .sign = told_sign, .free = told_free };
    static const char point[] = "044bc2a31265153f07e70e0bab08724e6b85e217f8cd628ceb62974247bb493382"
                                "ce28cab79ad7119ee1ad3ebcdb98a16805211530ecc6cfefa1b88e6dff99232a";
    const struct tx tx = a_transfer(TX_DYNAMIC_FEE);
    uint8_t digest[TX_HASH], other[TX_HASH] = { 1 }, plain[SIGN_POINT], ours[TX_ADDRESS], theirs[TX_ADDRESS];
    struct sign_key *own = key_of_byte(0x46), *k;
    struct told told = { .high = false };
    struct tx_signature good, s;
    struct err err = ERR_INIT;

    (void)state;
    assert_true(str_unhex(str_of(point), plain));
    k = sign_key_of(&backend, &told, plain, &err);
    assert_non_null(k);
    assert_true(sign_key_lives(k));
    sign_key_address(own, ours);
    sign_key_address(k, theirs);
    assert_memory_equal(ours, theirs, sizeof(ours));
    assert_int_equal(tx_digest(&tx, digest, &err), 0);
    assert_int_equal(sign_key_sign(own, digest, &good, &err), 0);
    for (int high = 0; high < 2; high++) {
        told.made = good;
        told.high = high != 0;
        assert_int_equal(sign_key_sign(k, digest, &s, &err), 0);
        assert_memory_equal(s.r, good.r, 32);
        assert_memory_equal(s.s, good.s, 32);
        assert_int_equal(s.parity, good.parity);
    }
    told.high = false;
    assert_int_equal(sign_key_sign(k, other, &s, &err), SIGN_PERHAPS);      /* of another digest */
    assert_string_equal(err.code, "sign.failed");
    told.made.r[5] ^= 1;
    assert_int_equal(sign_key_sign(k, digest, &s, &err), SIGN_PERHAPS);
    memset(&told.made, 0, sizeof(told.made));
    assert_int_equal(sign_key_sign(k, digest, &s, &err), SIGN_PERHAPS);     /* none at all */
    memset(&told.made, 0xff, sizeof(told.made));
    assert_int_equal(sign_key_sign(k, digest, &s, &err), SIGN_PERHAPS);
    for (told.fails = -1; told.fails >= SIGN_PERHAPS; told.fails--)
        assert_int_equal(sign_key_sign(k, digest, &s, &err), told.fails);
    assert_string_equal(err.code, "test.told");
    sign_key_free(k);
    assert_int_equal(told.freed, 1);
    plain[64] ^= 1;
    assert_null(sign_key_of(&backend, &told, plain, &err));         /* no point of the curve */
    assert_int_equal(told.freed, 2);
    sign_key_free(own);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_backends),
        cmocka_unit_test(test_keccak),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_there_is_one_encoding),
        cmocka_unit_test(test_transactions),
        cmocka_unit_test(test_what_is_no_transaction),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_no_key),
        cmocka_unit_test(test_typed_data),
        cmocka_unit_test(test_typed_data_that_is_refused),
        cmocka_unit_test(test_values_of_types),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_windows),
    };

    return cmocka_run_group_tests(tests, begin, NULL);
}
