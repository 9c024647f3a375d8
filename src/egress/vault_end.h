/* egress/vault_end.h: cloche-egress opens TLS and handles secrets in this run */
#ifndef CLOCHE_EGRESS_VAULT_END_H
#define CLOCHE_EGRESS_VAULT_END_H

#include "egress/egress.h"

/* Before the process gives its rights away: begin the dialogue with the vault on @fd (taken over), read the host's
 * trusted certificates and the @n files @extra. Sets e->vault and e->tls. 0, or -1 with @err. */
int vault_end_open(struct egress *e, int fd, const char *const *extra, size_t n, struct err *err);
void vault_end_close(struct egress *e);

#endif
