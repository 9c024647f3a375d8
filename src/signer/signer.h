/* signer/signer.h: cloche-signer: the process that has a key that signs (docs/signing.md)
 *
 * Started by cloche serve with the warden's edge at descriptor 3: cloche-signer serve KEY POLICY. It reads both, gives
 * up everything that it could reach anything with, and then makes transactions of the fields that the warden says. What
 * is signed is made here, of what was judged here; nobody else makes a hash for it. As `cloche signer` it puts keys
 * into the vault's store.
 */
#ifndef CLOCHE_SIGNER_SIGNER_H
#define CLOCHE_SIGNER_SIGNER_H

#include "base/buf.h"
#include "base/err.h"
#include "sign/key.h"
#include "sign/policy.h"

/* serve.c: until the warden's end: 0; -1: it broke the dialogue, or there is no memory. */
int signer_serve(int warden, const struct sign_key *key, const struct buf *text);
/* confine.c: no network, no files, no capabilities, not dumpable. 0 or -1 with @err. */
int signer_confine(struct err *err);

/* load.c: the key @name of the vault's store; NULL with @err. */
struct sign_key *signer_key(const char *name, struct err *err);
/* 64 hexadecimal digits, "0x" before them or not; or where a token has it (token.h). NULL with @err. */
struct sign_key *signer_key_of(const uint8_t *text, size_t n, struct err *err);
/* Of such a text the public point, without asking anybody: as it is kept, or as it is of a key that is here. 0 or -1
 * with @err. */
int signer_point_of(const uint8_t *text, size_t n, uint8_t out[SIGN_POINT], struct err *err);
/* The policy in the file @path, as its text; it is one. 0 or -1 with @err. */
int signer_policy(const char *path, struct buf *text, struct err *err);

/* cmd.c: `cloche signer`. The exit code. */
int signer_cmd(int argc, char **argv);

#endif
