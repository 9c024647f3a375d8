/* sign/key.h: a private key of secp256k1, and what it signs
 *
 * libsecp256k1 does the arithmetic; nonces are those of RFC 6979, so the same bytes have the same signature. Nothing here
 * signs a hash that somebody else made: callers hand in what the hash is of (tx.h, message.h, typed.h).
 */
#ifndef CLOCHE_SIGN_KEY_H
#define CLOCHE_SIGN_KEY_H

#include <stdint.h>

#include "base/err.h"
#include "sign/tx.h"

#define SIGN_KEY_SIZE 32
#define SIGN_ADDRESS_TEXT (2 + 2 * TX_ADDRESS)

struct sign_key;        /* opaque: its bytes are wiped when it is freed, and are on no core file */

/* NULL with @err: not 1 to the group's order less 1 (sign.key.invalid), or no memory. @bytes stay the caller's, to wipe. */
struct sign_key *sign_key_new(const uint8_t bytes[SIGN_KEY_SIZE], struct err *err);
void sign_key_free(struct sign_key *k);

void sign_key_address(const struct sign_key *k, uint8_t out[TX_ADDRESS]);
/* @digest is of one of this room's own forms. 0, or -1 with @err (sign.failed). */
int sign_key_sign(const struct sign_key *k, const uint8_t digest[TX_HASH], struct tx_signature *out, struct err *err);
/* Whose key made @s of @digest. False: nobody's. */
bool sign_recover(const uint8_t digest[TX_HASH], const struct tx_signature *s, uint8_t out[TX_ADDRESS]);

/* "0x" and 40 digits with the letters' case as their checksum (EIP-55), NUL-terminated. */
void sign_address_text(const uint8_t address[TX_ADDRESS], char out[SIGN_ADDRESS_TEXT + 1]);
/* The same back: all letters small, all large, or with the right checksum. */
bool sign_address_parse(struct str s, uint8_t out[TX_ADDRESS]);

#endif
