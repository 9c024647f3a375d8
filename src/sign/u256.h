/* sign/u256.h: numbers of 256 bits: amounts in wei, fees
 *
 * Kept as they are signed: 32 bytes, the highest first. There is no negative one, and no arithmetic that wraps. Pure.
 */
#ifndef CLOCHE_SIGN_U256_H
#define CLOCHE_SIGN_U256_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

#define U256_SIZE     32
#define U256_TEXT_MAX 78        /* decimal digits of the largest */

struct u256 {
    uint8_t b[U256_SIZE];
};

/* "123" or "0x7b": the whole of @s, no sign, no blank. Decimal without zeros in front, but "0"; hexadecimal with at
 * least one digit. False when it is not so, or is too large. */
bool u256_parse(struct str s, struct u256 *out);
struct u256 u256_of(uint64_t v);
/* At most 32 bytes, the highest first. False: more. */
bool u256_of_bytes(const uint8_t *p, size_t n, struct u256 *out);
/* False when it is larger than @max. */
bool u256_to_u64(const struct u256 *v, uint64_t max, uint64_t *out);

/* As memcmp. */
int u256_cmp(const struct u256 *a, const struct u256 *b);
bool u256_is_zero(const struct u256 *v);
/* @a + @b; false on overflow, and nothing in @out. */
bool u256_add(const struct u256 *a, const struct u256 *b, struct u256 *out);
/* @a * @by; false on overflow, and nothing in @out. */
bool u256_mul(const struct u256 *a, uint64_t by, struct u256 *out);

/* Bytes without zeros in front: none for 0. */
size_t u256_bytes(const struct u256 *v);
/* Decimal, NUL-terminated. */
void u256_text(const struct u256 *v, char out[U256_TEXT_MAX + 1]);

#endif
