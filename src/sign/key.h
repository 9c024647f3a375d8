/* sign/key.h: a private key of secp256k1, and what it signs
 *
 * libsecp256k1 does the arithmetic; nonces are those of RFC 6979, so the same bytes have the same signature. A hash
 * that somebody else made is never signed: callers make it of what they show (tx.h, message.h, typed.h).
 */
#ifndef CLOCHE_SIGN_KEY_H
#define CLOCHE_SIGN_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "sign/tx.h"

#define SIGN_KEY_SIZE 32

struct sign_key;        /* opaque: its bytes are wiped when it is freed, and are on no core file */

/* NULL with @err: not 1 to the group's order less 1 (sign.key.invalid), or no memory. @bytes stay the caller's, to
 * wipe. */
struct sign_key *sign_key_new(const uint8_t bytes[SIGN_KEY_SIZE], struct err *err);
void sign_key_free(struct sign_key *k);

void sign_key_address(const struct sign_key *k, uint8_t out[TX_ADDRESS]);
/* @digest is of one of this room's own forms. 0, or -1 with @err (sign.failed). */
int sign_key_sign(const struct sign_key *k, const uint8_t digest[TX_HASH], struct tx_signature *out, struct err *err);
/* Whose key made @s of @digest. False: nobody's. */
bool sign_recover(const uint8_t digest[TX_HASH], const struct tx_signature *s, uint8_t out[TX_ADDRESS]);

#endif
