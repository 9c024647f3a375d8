/* base/sha256.h: SHA-256 (FIPS 180-4)
 *
 * For what has to be hashed in a program that is linked against no library of cryptography. Uses the CPU's own
 * instructions where it has them. Nothing here is secret: running time and memory may depend on the bytes.
 */
#ifndef CLOCHE_BASE_SHA256_H
#define CLOCHE_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE 32
#define SHA256_TEXT 64      /* in hexadecimal */

struct sha256 {
    uint32_t state[8];
    uint64_t n;             /* bytes so far */
    uint8_t rest[64];       /* of them those that are no whole block yet */
};

void sha256_init(struct sha256 *h);
void sha256_add(struct sha256 *h, const void *data, size_t n);
void sha256_end(struct sha256 *h, uint8_t out[SHA256_SIZE]);
/* All at once. */
void sha256_of(const void *data, size_t n, uint8_t out[SHA256_SIZE]);
/* HMAC-SHA256 (RFC 2104) of all at once, by a key of SHA256_SIZE bytes. */
void sha256_hmac(const uint8_t key[SHA256_SIZE], const void *data, size_t n, uint8_t out[SHA256_SIZE]);
/* In lower-case hexadecimal and, for people's sake, with a NUL behind it. */
void sha256_text(const uint8_t hash[SHA256_SIZE], char out[SHA256_TEXT + 1]);

#endif
