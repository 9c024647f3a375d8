/* egress/confine.h: what cloche-egress gives up before it reads the first byte of a stranger */
#ifndef CLOCHE_EGRESS_CONFINE_H
#define CLOCHE_EGRESS_CONFINE_H

#include <stddef.h>

#include "base/err.h"

/* Many open files, little memory: how many connections there may be with them. Each has two sockets, and while bytes
 * wait in it one or two pipes, for which a tenth is kept. Before confine(), which takes the right to raise limits. */
size_t confine_limits(void);

/* Root, capabilities, being looked into, core dumps; all files but the few that resolving names reads (Landlock, where
 * the kernel has it); all system calls but those of this program's loop, in every thread (seccomp: another one kills
 * it). 0 or -1 with @err. */
int confine(struct err *err);

#endif
