/* signer/behind.h: keys that are not in this process: what is common to the backends (sign/key.h) that ask another one
 *
 *      cloche-signer ── digest ──► cloche-signer token ── C_Sign ──► a PKCS#11 module (token.c)
 *                    ── digest ──► cloche-remote ── POST ──► a server (far.c)
 *
 * The process is a child, started before the signer gives up its rights; it says the key's public point first.
 */
#ifndef CLOCHE_SIGNER_BEHIND_H
#define CLOCHE_SIGNER_BEHIND_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "proto/edge_sign.h"
#include "sign/key.h"

#define BEHIND_WAIT_S 20            /* for a signature; a person may have to touch a device */

/* What is started: this program again with @word, or, where that is NULL, @program: beside this one, or in @folder's
 * place of a build tree. */
struct behind_program {
    const char *word, *program, *folder;
    bool once;                      /* it ends when it has refused a signature, and is started anew with the signer */
    const char *what;               /* for people: "the process with the PKCS#11 module" */
};

/* What is kept of such a key ends with two lines: its public point as it was when it was added, "0x04..." (BEHIND_NEW
 * while that is to be found out), and a secret. */
#define BEHIND_POINT (2 + 2 * SIGN_POINT)
#define BEHIND_NEW   "-"

/* The key behind such a process, which is told @m first. It is the one of @point, as that is kept. NULL with @err,
 * which may be what the process said; sign.key.other: another key is there, which @where is called. */
struct sign_key *behind_key(const struct behind_program *program, uint8_t type, const struct shape *shape,
                            const void *m, const char *point, const char *where, struct err *err);
/* That point, of what is kept; nobody is asked. False: there is none. */
bool behind_kept(const uint8_t *text, size_t n, uint8_t out[SIGN_POINT]);
/* sign.key.other, of @where. */
int behind_other(const char *where, const uint8_t wanted[TX_ADDRESS], const struct sign_key *is, struct err *err);
/* The next line of @rest, without its end, into @out; false: there is none, it is empty, or too long. */
bool behind_line(struct str *rest, char *out, size_t cap);

#endif
