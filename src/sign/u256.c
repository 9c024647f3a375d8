/* sign/u256.c: see u256.h */
#include "sign/u256.h"

#include <string.h>

/* @v * @by + @add, in place; false on overflow. */
static bool
times(struct u256 *v, unsigned by, unsigned add)
{
    unsigned carry = add;

    for (size_t i = U256_SIZE; i-- > 0;) {
        carry += v->b[i] * by;
        v->b[i] = (uint8_t)carry;
        carry >>= 8;
    }
    return carry == 0;
}

bool
u256_parse(struct str s, struct u256 *out)
{
    bool is_hex = s.n > 2 && s.p[0] == '0' && s.p[1] == 'x';
    struct u256 v = { { 0 } };

    if (s.n == 0 || (!is_hex && s.n > 1 && s.p[0] == '0'))
        return false;
    for (size_t i = is_hex ? 2 : 0; i < s.n; i++) {
        int digit = str_hex_digit(s.p[i]);

        if (digit < 0 || (!is_hex && digit > 9) || !times(&v, is_hex ? 16 : 10, (unsigned)digit))
            return false;
    }
    *out = v;
    return true;
}

struct u256
u256_of(uint64_t v)
{
    struct u256 out = { { 0 } };

    for (size_t i = 0; i < 8; i++)
        out.b[U256_SIZE - 1 - i] = (uint8_t)(v >> (8 * i));
    return out;
}

bool
u256_of_bytes(const uint8_t *p, size_t n, struct u256 *out)
{
    if (n > U256_SIZE)
        return false;
    memset(out->b, 0, U256_SIZE);
    if (n > 0)
        memcpy(out->b + U256_SIZE - n, p, n);
    return true;
}

bool
u256_to_u64(const struct u256 *v, uint64_t max, uint64_t *out)
{
    uint64_t low = 0;

    if (u256_bytes(v) > 8)
        return false;
    for (size_t i = U256_SIZE - 8; i < U256_SIZE; i++)
        low = low << 8 | v->b[i];
    if (low > max)
        return false;
    *out = low;
    return true;
}

int
u256_cmp(const struct u256 *a, const struct u256 *b)
{
    return memcmp(a->b, b->b, U256_SIZE);
}

bool
u256_is_zero(const struct u256 *v)
{
    return u256_bytes(v) == 0;
}

bool
u256_add(const struct u256 *a, const struct u256 *b, struct u256 *out)
{
    struct u256 sum;
    unsigned carry = 0;

    for (size_t i = U256_SIZE; i-- > 0;) {
        carry += (unsigned)a->b[i] + b->b[i];
        sum.b[i] = (uint8_t)carry;
        carry >>= 8;
    }
    if (carry != 0)
        return false;
    *out = sum;
    return true;
}

bool
u256_mul(const struct u256 *a, uint64_t by, struct u256 *out)
{
    struct u256 product;
    unsigned __int128 carry = 0;

    for (size_t i = U256_SIZE; i-- > 0;) {
        carry += (unsigned __int128)a->b[i] * by;
        product.b[i] = (uint8_t)carry;
        carry >>= 8;
    }
    if (carry != 0)
        return false;
    *out = product;
    return true;
}

size_t
u256_bytes(const struct u256 *v)
{
    size_t zeros = 0;

    while (zeros < U256_SIZE && v->b[zeros] == 0)
        zeros++;
    return U256_SIZE - zeros;
}

/* @v / 10, in place; what is left over. */
static unsigned
tenth(struct u256 *v)
{
    unsigned rest = 0;

    for (size_t i = 0; i < U256_SIZE; i++) {
        rest = rest << 8 | v->b[i];
        v->b[i] = (uint8_t)(rest / 10);
        rest %= 10;
    }
    return rest;
}

void
u256_text(const struct u256 *v, char out[U256_TEXT_MAX + 1])
{
    struct u256 left = *v;
    char digits[U256_TEXT_MAX];
    size_t n = 0;

    do
        digits[n++] = (char)('0' + tenth(&left));
    while (!u256_is_zero(&left));
    for (size_t i = 0; i < n; i++)
        out[i] = digits[n - 1 - i];
    out[n] = '\0';
}
