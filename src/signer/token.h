/* signer/token.h: keys in a PKCS#11 token (behind.h)
 *
 * Where the key is and the token's PIN are kept in the vault's store, as the value of a signing key:
 * "pkcs11\nMODULE\nTOKEN\nOBJECT\nPOINT\nPIN".
 */
#ifndef CLOCHE_SIGNER_TOKEN_H
#define CLOCHE_SIGNER_TOKEN_H

#include "base/err.h"
#include "sign/key.h"

#define TOKEN_FORM "pkcs11\n"

/* The key that @text of @n bytes, which begins with TOKEN_FORM, says; its process lives as long as it. Before the
 * caller confines itself. NULL with @err (sign.token...). */
struct sign_key *token_key(const uint8_t *text, size_t n, struct err *err);
/* token_serve.c: the process, with its end at @signer, until that ends. 0; -1 it broke the dialogue. */
int token_serve(int signer);

#endif
