/* machine/enter.h: from process 1 of the machine to the guest */
#ifndef CLOCHE_MACHINE_ENTER_H
#define CLOCHE_MACHINE_ENTER_H

#include <sys/types.h>

#include "base/err.h"
#include "machine/config.h"

/* In a child with namespaces of its own: /proc and /dev of the tree at MACHINE_ROOT, which becomes the root; the
 * sandbox's user; then the guest, with the descriptor @port as its transport. @maker is a socket to who writes the map
 * of its user namespace (machine_map()). Returns only with @err. */
void machine_enter(const struct machine_config *c, int port, int maker, struct err *err);
/* In its maker: until the child @pid has asked for that. 0, or -1 with @err. */
int machine_map(const struct machine_config *c, pid_t pid, int child, struct err *err);

#endif
