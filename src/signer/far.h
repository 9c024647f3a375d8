/* signer/far.h: keys that a server signs with (behind.h, remote/main.c)
 *
 * Where the server is and what it knows its caller by are kept in the vault's store, as the value of a signing key:
 * "http\nURL\nCA\nPOINT\nBEARER". CA is a file of certificates or "-".
 */
#ifndef CLOCHE_SIGNER_FAR_H
#define CLOCHE_SIGNER_FAR_H

#include "base/err.h"
#include "sign/key.h"

#define FAR_FORM "http\n"

/* The key that @text of @n bytes, which begins with FAR_FORM, says. NULL with @err (sign.remote...). */
struct sign_key *far_key(const uint8_t *text, size_t n, struct err *err);

#endif
