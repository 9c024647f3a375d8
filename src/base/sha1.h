/* base/sha1.h: SHA-1, for formats that name it (Java key stores, RFC 6455)
 *
 * Collisions are known: nothing of ours may depend on it. Pure; cannot fail.
 */
#ifndef CLOCHE_BASE_SHA1_H
#define CLOCHE_BASE_SHA1_H

#include <stddef.h>
#include <stdint.h>

#define SHA1_SIZE 20

struct sha1 {
    uint32_t h[5];
    uint64_t n;
    uint8_t block[64];
};

void sha1_begin(struct sha1 *s);
void sha1_add(struct sha1 *s, const void *data, size_t n);
/* Once; @s is used up. */
void sha1_end(struct sha1 *s, uint8_t out[SHA1_SIZE]);

#endif
