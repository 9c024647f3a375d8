/* signer/pkcs11.h: a key of secp256k1 in a PKCS#11 token (OASIS PKCS#11 2.40), for the one process that has its module
 */
#ifndef CLOCHE_SIGNER_PKCS11_H
#define CLOCHE_SIGNER_PKCS11_H

#include <stdbool.h>

#include "base/err.h"
#include "proto/edge_sign.h"

struct pkcs11;      /* opaque */

/* Load the module, which then is code of this process; open a session of the token with that label, log in, and find
 * the one private key of that label, with its public one. @point is that. NULL with @err (sign.token.module, .token,
 * .pin, .object, .call). */
struct pkcs11 *pkcs11_open(const struct token_where *where, uint8_t point[65], struct err *err);
/* CKM_ECDSA over 32 bytes. 0 or -1 with @err (sign.token.call): @perhaps says whether the token may have signed. */
int pkcs11_sign(struct pkcs11 *p, const uint8_t digest[32], uint8_t rs[64], bool *perhaps, struct err *err);
/* The session ends; the module stays. */
void pkcs11_close(struct pkcs11 *p);

#endif
