/* sign/typed.c: see typed.h
 *
 * Theory: hashStruct(s) is Keccak-256 of typeHash and one word of 32 bytes for each member. A struct's and an array's
 * word is a hash of its own words, so encoding walks down the value with the type beside it. TYPED_DEPTH_MAX and
 * TYPED_VALUES_MAX bound how deep and how much, and types are bounded by number; nothing is kept but the words of the
 * struct or array at hand.
 */
#include "sign/typed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/str.h"
#include "sign/address.h"

#define DOMAIN "EIP712Domain"
#define WORD   U256_SIZE

struct reading {
    const json_t *types;
    size_t values;
    const char *used[TYPED_TYPES_MAX];
    size_t n_used;
    struct {                    /* of the structs that came up: a message may have many values of one */
        const char *type;
        uint8_t hash[WORD];
    } known[TYPED_TYPES_MAX + 1];
    size_t n_known;
    struct err *err;
};

static int encode(struct reading *r, const char *type, size_t n_type, const json_t *v, size_t depth, uint8_t out[WORD]);

/* @type may be any text of a stranger's: it is cut. */
static int
typed_bad(struct reading *r, const char *code, const char *what, const char *name)
{
    return err_set(r->err, ERR_POLICY, code, "typed data: %.*s: %s", TYPED_NAME_MAX, name, what);
}

static bool
name_valid(const char *s, size_t n)
{
    if (n == 0 || n > TYPED_NAME_MAX || (s[0] >= '0' && s[0] <= '9'))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') || (s[i] >= '0' && s[i] <= '9') ||
              s[i] == '_' || s[i] == '$'))
            return false;
    return true;
}

/* Name and type of member @i of @members; false when it is none. */
static bool
member_at(const json_t *members, size_t i, const char **name, const char **type)
{
    const json_t *m = json_array_get(members, i);

    *name = json_string_value(json_object_get(m, "name"));
    *type = json_string_value(json_object_get(m, "type"));
    return *name != NULL && *type != NULL && json_object_size(m) == 2 && name_valid(*name, strlen(*name)) &&
           strlen(*type) <= TYPED_NAME_MAX;
}

/* The members of the struct @type[0..n), or NULL: it is none. */
static const json_t *
struct_of(const struct reading *r, const char *type, size_t n)
{
    char name[TYPED_NAME_MAX + 1];

    if (!name_valid(type, n))
        return NULL;
    memcpy(name, type, n);
    name[n] = '\0';
    return json_object_get(r->types, name);
}

/* --- types ------------------------------------------------------------------------------------------------------ */

static size_t
base_length(const char *type)
{
    return strcspn(type, "[");
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char *
key_of(const struct reading *r, const char *type, size_t n)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)r->types, key, value)
        if (strlen(key) == n && memcmp(key, type, n) == 0)
            return key;
    return NULL;
}

static bool
is_among(const char *const *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return false;
}

/* The structs that @type leads to, itself first: all that are reached are looked at in turn. */
static int
reached(struct reading *r, const char *type, const char *list[TYPED_TYPES_MAX], size_t *n)
{
    const char *name, *of;

    list[0] = type;
    *n = 1;
    for (size_t at = 0; at < *n; at++) {
        const json_t *members = json_object_get(r->types, list[at]);

        if (!json_is_array(members) || json_array_size(members) > TYPED_MEMBERS_MAX)
            return typed_bad(r, "sign.typed.type", "a type is a list of at most 64 members", list[at]);
        for (size_t i = 0; i < json_array_size(members); i++) {
            const char *key;

            if (!member_at(members, i, &name, &of))
                return typed_bad(r, "sign.typed.type", "a member is {\"name\", \"type\"} with a plain name", list[at]);
            for (size_t k = 0; k < i; k++)
                if (strcmp(json_string_value(json_object_get(json_array_get(members, k), "name")), name) == 0)
                    return typed_bad(r, "sign.typed.type", "a member is there twice", name);
            key = key_of(r, of, base_length(of));
            if (key == NULL || is_among(list, *n, key))
                continue;
            if (*n == TYPED_TYPES_MAX)
                return typed_bad(r, "sign.typed.type", "more than 64 types", key);
            list[(*n)++] = key;
        }
    }
    qsort(list + 1, *n - 1, sizeof(*list), by_name);
    return 0;
}

static int
type_hash(struct reading *r, const char *type, uint8_t out[WORD])
{
    const char *list[TYPED_TYPES_MAX], *name, *of;
    struct keccak k;
    size_t n;

    for (size_t i = 0; i < r->n_known; i++)
        if (strcmp(r->known[i].type, type) == 0) {
            memcpy(out, r->known[i].hash, WORD);
            return 0;
        }
    if (reached(r, type, list, &n) < 0)
        return -1;
    keccak_init(&k);
    for (size_t i = 0; i < n; i++) {
        const json_t *members = json_object_get(r->types, list[i]);

        if (!is_among(r->used, r->n_used, list[i]))
            r->used[r->n_used++] = list[i];
        keccak_add(&k, list[i], strlen(list[i]));
        keccak_add(&k, "(", 1);
        for (size_t m = 0; m < json_array_size(members); m++) {
            (void)member_at(members, m, &name, &of);
            keccak_add(&k, ",", m > 0);
            keccak_add(&k, of, strlen(of));
            keccak_add(&k, " ", 1);
            keccak_add(&k, name, strlen(name));
        }
        keccak_add(&k, ")", 1);
    }
    keccak_end(&k, out);
    r->known[r->n_known].type = type;
    memcpy(r->known[r->n_known++].hash, out, WORD);
    return 0;
}

/* --- values ----------------------------------------------------------------------------------------------------- */

/* "0x..." of whole bytes. */
static int
hex_bytes(struct reading *r, const char *name, const json_t *v, struct buf *out)
{
    const char *s = json_string_value(v);
    size_t n = json_string_length(v);

    if (s == NULL || n < 2 || n % 2 != 0 || s[0] != '0' || s[1] != 'x')
        return typed_bad(r, "sign.typed.value", "bytes are written 0x and an even number of digits", name);
    for (size_t i = 2; i < n; i += 2) {
        uint8_t byte;

        if (!str_unhex((struct str){ s + i, 2 }, &byte))
            return typed_bad(r, "sign.typed.value", "bytes are written 0x and hexadecimal digits", name);
        (void)buf_put_u8(out, byte);
    }
    return buf_ok(out) ? 0 : typed_bad(r, "sign.typed.value", "it is too large", name);
}

/* Of "uint8", "int256" the bits; 0: there are no such. */
static unsigned
bits_of(const char *type, size_t n, const char *word)
{
    uint64_t bits = 256;
    size_t skip = strlen(word);

    if (n < skip || memcmp(type, word, skip) != 0)
        return 0;
    if (n == skip)
        return 256;
    if (type[skip] == '0' || !str_parse_u64((struct str){ type + skip, n - skip }, 256, &bits) || bits % 8 != 0)
        return 0;
    return (unsigned)bits;
}

/* The two's complement of @v, and whether it is within a signed number of @bits bits. */
static bool
negate(struct u256 *v, unsigned bits)
{
    static const struct u256 one = { { [U256_SIZE - 1] = 1 } };
    struct u256 limit = { { 0 } };

    limit.b[U256_SIZE - bits / 8] = 0x80;
    if (u256_cmp(v, &limit) > 0)
        return false;
    if (u256_is_zero(v))
        return true;
    for (size_t i = 0; i < U256_SIZE; i++)
        v->b[i] = (uint8_t)~v->b[i];
    return u256_add(v, &one, v);
}

static bool
fits(const struct u256 *v, unsigned bits, bool is_signed)
{
    size_t n = u256_bytes(v);

    return n < bits / 8 || (n == bits / 8 && (!is_signed || v->b[U256_SIZE - n] < 0x80));
}

/* A number of JSON, or a text "123", "-123", "0x7b". */
static int
number(struct reading *r, const char *name, const json_t *v, unsigned bits, bool is_signed, uint8_t out[WORD])
{
    struct u256 n;
    char digits[32];
    struct str text = { json_string_value(v), json_string_length(v) };
    bool is_negative;

    if (json_is_integer(v)) {
        snprintf(digits, sizeof(digits), "%" JSON_INTEGER_FORMAT, json_integer_value(v));
        text = str_of(digits);
    }
    is_negative = text.n > 1 && text.p[0] == '-' && text.p[1] != '0';
    if (is_negative)
        text = (struct str){ text.p + 1, text.n - 1 };
    if (text.p == NULL || !u256_parse(text, &n) || (is_negative && !is_signed) ||
        !(is_negative ? negate(&n, bits) : fits(&n, bits, is_signed)))
        return typed_bad(r, "sign.typed.value", "it is no number of this type", name);
    memcpy(out, n.b, WORD);
    return 0;
}

static int
bytes_n(struct reading *r, const char *type, size_t n_type, const json_t *v, uint8_t out[WORD])
{
    uint8_t room[WORD];
    cleanup_buf struct buf b = BUF_INIT_IN(room, WORD);
    uint64_t n = 0;

    if (type[5] == '0' || !str_parse_u64((struct str){ type + 5, n_type - 5 }, WORD, &n) || n == 0)
        return typed_bad(r, "sign.typed.type", "there is no such type", type);
    if (hex_bytes(r, type, v, &b) < 0)
        return -1;
    if (b.n != n)
        return typed_bad(r, "sign.typed.value", "it has another number of bytes", type);
    memset(out, 0, WORD);
    memcpy(out, b.p, b.n);
    return 0;
}

static int
atom(struct reading *r, const char *type, size_t n, const json_t *v, uint8_t out[WORD])
{
    const struct str t = { type, n };
    unsigned bits;

    memset(out, 0, WORD);
    if (str_eq_c(t, "string")) {
        if (!json_is_string(v))
            return typed_bad(r, "sign.typed.value", "it is no text", type);
        keccak256(json_string_value(v), json_string_length(v), out);
        return 0;
    }
    if (str_eq_c(t, "bytes")) {
        cleanup_buf struct buf b = BUF_INIT(TYPED_BYTES_MAX);

        if (hex_bytes(r, type, v, &b) < 0)
            return -1;
        keccak256(b.p, b.n, out);
        return 0;
    }
    if (str_eq_c(t, "bool")) {
        out[WORD - 1] = json_is_true(v);
        return json_is_boolean(v) ? 0 : typed_bad(r, "sign.typed.value", "it is neither true nor false", type);
    }
    if (str_eq_c(t, "address")) {
        const struct str text = { json_string_value(v), json_string_length(v) };

        return sign_address_parse(text, out + WORD - TX_ADDRESS)
                   ? 0 : typed_bad(r, "sign.typed.value", "it is no address, or its checksum is wrong", type);
    }
    if ((bits = bits_of(type, n, "uint")) > 0)
        return number(r, type, v, bits, false, out);
    if ((bits = bits_of(type, n, "int")) > 0)
        return number(r, type, v, bits, true, out);
    if (str_starts(t, STR_LIT("bytes")))
        return bytes_n(r, type, n, v, out);
    return typed_bad(r, "sign.typed.type", "there is no such type", type);
}

static int
hash_struct(struct reading *r, const char *type, const json_t *v, size_t depth, uint8_t out[WORD])
{
    const json_t *members = json_object_get(r->types, type);
    uint8_t room[WORD * 16], word[WORD];
    cleanup_buf struct buf words = BUF_INIT_IN(room, (TYPED_MEMBERS_MAX + 1) * WORD);
    const char *name, *of;

    if (type_hash(r, type, word) < 0)
        return -1;
    if (!json_is_object(v))
        return typed_bad(r, "sign.typed.value", "it is no object", type);
    if (json_object_size(v) > json_array_size(members))
        return typed_bad(r, "sign.typed.value", "it has members that its type does not name", type);
    (void)buf_append(&words, word, WORD);
    for (size_t i = 0; i < json_array_size(members); i++) {
        const json_t *value;

        (void)member_at(members, i, &name, &of);
        value = json_object_get(v, name);
        if (value == NULL)
            return typed_bad(r, "sign.typed.value", "this member is missing", name);
        if (encode(r, of, strlen(of), value, depth + 1, word) < 0)
            return err_wrap(r->err, "%s.%s", type, name);
        (void)buf_append(&words, word, WORD);
    }
    if (!buf_ok(&words))
        return err_set(r->err, ERR_SYSTEM, "memory", "out of memory");
    keccak256(words.p, words.n, out);
    return 0;
}

/* "T[]" or "T[3]": @at is where the last pair of brackets opens. */
static int
hash_array(struct reading *r, const char *type, size_t at, size_t n, const json_t *v, size_t depth, uint8_t out[WORD])
{
    struct keccak k;
    uint8_t word[WORD];
    uint64_t length = 0;

    if (!json_is_array(v))
        return typed_bad(r, "sign.typed.value", "it is no array", type);
    if (n - at > 2 && (type[at + 1] == '0' ||
                       !str_parse_u64((struct str){ type + at + 1, n - at - 2 }, TYPED_VALUES_MAX, &length)))
        return typed_bad(r, "sign.typed.type", "there is no such type", type);
    if (n - at > 2 && json_array_size(v) != length)
        return typed_bad(r, "sign.typed.value", "it has another number of elements", type);
    keccak_init(&k);
    for (size_t i = 0; i < json_array_size(v); i++) {
        if (encode(r, type, at, json_array_get(v, i), depth + 1, word) < 0)
            return err_wrap(r->err, "[%zu]", i);
        keccak_add(&k, word, WORD);
    }
    keccak_end(&k, out);
    return 0;
}

static int
encode(struct reading *r, const char *type, size_t n, const json_t *v, size_t depth, uint8_t out[WORD])
{
    if (depth > TYPED_DEPTH_MAX || ++r->values > TYPED_VALUES_MAX)
        return typed_bad(r, "sign.typed.too-large", "too deep, or too many values", type);
    if (n > 2 && type[n - 1] == ']') {
        size_t at = n - 1;

        while (at > 0 && type[at] != '[')
            at--;
        return at == 0 ? typed_bad(r, "sign.typed.type", "there is no such type", type)
                       : hash_array(r, type, at, n, v, depth, out);
    }
    if (struct_of(r, type, n) != NULL)
        return hash_struct(r, key_of(r, type, n), v, depth, out);
    return atom(r, type, n, v, out);
}

/* --- the whole -------------------------------------------------------------------------------------------------- */

/* What the standard allows in a domain, in the order that it demands where the types do not say it. */
static const struct {
    const char *name, *type;
} domain_members[] = {
    { "name", "string" }, { "version", "string" }, { "chainId", "uint256" }, { "verifyingContract", "address" },
    { "salt", "bytes32" },
};

/* A type of the domain that says anything else would give those words another meaning. */
static int
domain_check(struct reading *r, const json_t *domain, struct typed *out)
{
    const json_t *members = json_object_get(r->types, DOMAIN), *chain = json_object_get(domain, "chainId");
    const struct str contract = { json_string_value(json_object_get(domain, "verifyingContract")),
                                  json_string_length(json_object_get(domain, "verifyingContract")) };
    const char *name, *of;
    uint8_t word[WORD];
    struct u256 n;
    size_t known = 0;

    for (size_t i = 0; i < json_array_size(members); i++) {
        if (!member_at(members, i, &name, &of))
            return typed_bad(r, "sign.typed.type", "a member is {\"name\", \"type\"} with a plain name", DOMAIN);
        for (; known < ARRAY_LEN(domain_members); known++)
            if (strcmp(domain_members[known].name, name) == 0)
                break;
        if (known == ARRAY_LEN(domain_members) || strcmp(domain_members[known].type, of) != 0)
            return typed_bad(r, "sign.typed.domain", "this is not of a domain, or out of order", name);
    }
    if (chain == NULL)
        return typed_bad(r, "sign.typed.domain", "it names no chain: it would be valid on all", "domain.chainId");
    if (number(r, "domain.chainId", chain, 256, false, word) < 0)
        return -1;
    if (!u256_of_bytes(word, WORD, &n) || !u256_to_u64(&n, TX_CHAIN_MAX, &out->chain) || out->chain == 0)
        return typed_bad(r, "sign.typed.domain", "there is no such chain", "domain.chainId");
    out->has_contract = contract.p != NULL;
    return !out->has_contract || sign_address_parse(contract, out->contract)
               ? 0 : typed_bad(r, "sign.typed.value", "it is no address", "domain.verifyingContract");
}

/* A struct with the name of a plain type would be read as the one here, and as the other elsewhere. */
static bool
is_plain(const char *s)
{
    size_t n = strlen(s);

    return strcmp(s, "string") == 0 || strcmp(s, "bool") == 0 || strcmp(s, "address") == 0 ||
           strncmp(s, "bytes", 5) == 0 || bits_of(s, n, "uint") > 0 || bits_of(s, n, "int") > 0;
}

static int
names_check(struct reading *r)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)r->types, key, value)
        if (is_plain(key) || !name_valid(key, strlen(key)))
            return typed_bad(r, "sign.typed.type", "no struct can have this name", key);
    return 0;
}

static int
all_used(struct reading *r)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)r->types, key, value)
        if (!is_among(r->used, r->n_used, key))
            return typed_bad(r, "sign.typed.type", "nothing leads to this type", key);
    return 0;
}

void
typed_digest(const uint8_t words[2 * TX_HASH], uint8_t out[TX_HASH])
{
    uint8_t bytes[2 + 2 * WORD] = { 0x19, 0x01 };

    memcpy(bytes + 2, words, 2 * (size_t)WORD);
    keccak256(bytes, sizeof(bytes), out);
}

int
typed_read(const json_t *data, struct typed *out, struct err *err)
{
    const json_t *domain = json_object_get(data, "domain"), *message = json_object_get(data, "message");
    struct reading r = { .types = json_object_get(data, "types"), .err = err };

    *out = (struct typed){ .primary = json_string_value(json_object_get(data, "primaryType")) };
    if (json_object_size(data) != 4 || !json_is_object(r.types) || !json_is_object(domain) ||
        !json_is_object(message) || out->primary == NULL)
        return typed_bad(&r, "sign.typed.form", "it has types, primaryType, domain and message, and no more",
                         "the whole");
    if (json_object_size(r.types) > TYPED_TYPES_MAX)
        return typed_bad(&r, "sign.typed.type", "more than 64 types", "types");
    if (names_check(&r) < 0)
        return -1;
    if (json_object_get(r.types, DOMAIN) == NULL || key_of(&r, out->primary, strlen(out->primary)) == NULL ||
        strcmp(out->primary, DOMAIN) == 0)
        return typed_bad(&r, "sign.typed.type", "types have to have EIP712Domain and the primary type", out->primary);
    if (domain_check(&r, domain, out) < 0 || hash_struct(&r, DOMAIN, domain, 0, out->words) < 0 ||
        hash_struct(&r, out->primary, message, 0, out->words + WORD) < 0 || all_used(&r) < 0)
        return -1;
    typed_digest(out->words, out->digest);
    return 0;
}
