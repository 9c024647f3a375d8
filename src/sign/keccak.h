/* sign/keccak.h: Keccak-256 as Ethereum uses it
 *
 * The padding of the submission to NIST (0x01), not that of SHA3-256 (0x06): no library that Debian 12 has offers it.
 * ("The Keccak reference", version 3.0.) Pure.
 */
#ifndef CLOCHE_SIGN_KECCAK_H
#define CLOCHE_SIGN_KECCAK_H

#include <stddef.h>
#include <stdint.h>

#define KECCAK_SIZE 32

struct keccak {
    uint64_t lanes[25];
    size_t at;              /* bytes of the present block that are in */
};

void keccak_init(struct keccak *k);
void keccak_add(struct keccak *k, const void *p, size_t n);
void keccak_end(struct keccak *k, uint8_t out[KECCAK_SIZE]);
/* All at once. */
void keccak256(const void *p, size_t n, uint8_t out[KECCAK_SIZE]);

#endif
