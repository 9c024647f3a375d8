/* sign/key.h: a private key of secp256k1, and what it signs
 *
 * Where the key is, is its backend's: in this process (sign_key_new()), or behind something that signs for it. What a
 * backend says is not trusted: a signature is brought to the low form of s, and leaves only when it recovers to the
 * key's own address. A hash that somebody else made is never signed: callers make it of what they show (tx.h,
 * message.h, typed.h).
 */
#ifndef CLOCHE_SIGN_KEY_H
#define CLOCHE_SIGN_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "sign/address.h"
#include "sign/tx.h"

#define SIGN_KEY_SIZE 32

#define SIGN_POINT 65       /* 4, x and y */

/* What a refusal returns where it is not certain that there is no signature. */
#define SIGN_PERHAPS (-2)

struct sign_key;        /* opaque */

struct sign_backend {
    /* r and s of @digest, each with its highest byte first; s in either form. 0; -1 with @err: there
     * certainly is no signature; SIGN_PERHAPS with @err. */
    int (*sign)(void *ctx, const uint8_t digest[TX_HASH], uint8_t rs[64], struct err *err);
    bool (*lives)(const void *ctx);     /* it may sign again; NULL: always */
    void (*free)(void *ctx);
};

/* The key whose public point is @point, in @backend. @ctx is the key's from now on, also when it fails: NULL with
 * @err: no point of the curve (sign.key.invalid), or no memory. */
struct sign_key *sign_key_of(const struct sign_backend *backend, void *ctx, const uint8_t point[SIGN_POINT],
                             struct err *err);
/* A key in this process: libsecp256k1 signs, with the nonces of RFC 6979, so the same bytes have the same signature. It
 * is wiped when it is freed, and on no core file. NULL with @err: not 1 to the group's order less 1
 * (sign.key.invalid), or no memory. @bytes stay the caller's, to wipe. */
struct sign_key *sign_key_new(const uint8_t bytes[SIGN_KEY_SIZE], struct err *err);
void sign_key_free(struct sign_key *k);
bool sign_key_lives(const struct sign_key *k);

void sign_key_point(const struct sign_key *k, uint8_t out[SIGN_POINT]);
/* The address of that public point; false: it is none of the curve. */
bool sign_point_address(const uint8_t point[SIGN_POINT], uint8_t out[TX_ADDRESS]);
void sign_key_address(const struct sign_key *k, uint8_t out[TX_ADDRESS]);
void sign_key_address_text(const struct sign_key *k, char out[SIGN_ADDRESS_TEXT + 1]);
/* @digest is of one of this room's own forms. 0; -1 with @err: there certainly is none; SIGN_PERHAPS with @err: there
 * may be one, of which nobody here knows; or what came is not the key's (sign.failed). */
int sign_key_sign(const struct sign_key *k, const uint8_t digest[TX_HASH], struct tx_signature *out, struct err *err);
/* Whose key made @s of @digest. False: nobody's. */
bool sign_recover(const uint8_t digest[TX_HASH], const struct tx_signature *s, uint8_t out[TX_ADDRESS]);

#endif
