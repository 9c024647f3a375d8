/* vault/serve.h: the vault of one run
 *
 * Reads the store, makes the CA when there is none yet, gives everything up that it could reach anything with, then
 * answers two sockets until the supervisor's ends.
 */
#ifndef CLOCHE_VAULT_SERVE_H
#define CLOCHE_VAULT_SERVE_H

#include "base/err.h"

/* @supervisor: SOCK_SEQPACKET, the supervisor's edge (wire.h). 0 at its end, -1 with @err. */
int vault_serve(int supervisor, struct err *err);

/* No network, no files, no capabilities, not dumpable. 0 or -1 with @err. */
int vault_confine(struct err *err);

#endif
