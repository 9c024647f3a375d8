/* sign/message.c: see message.h */
#include "sign/message.h"

#include <stdio.h>

#define PREFIX "\x19" "Ethereum Signed Message:\n"

void
message_digest(const void *text, size_t n, uint8_t out[KECCAK_SIZE])
{
    struct keccak k;
    char length[24];
    int digits = snprintf(length, sizeof(length), "%zu", n);

    keccak_init(&k);
    keccak_add(&k, PREFIX, sizeof(PREFIX) - 1);
    keccak_add(&k, length, (size_t)digits);
    keccak_add(&k, text, n);
    keccak_end(&k, out);
}
