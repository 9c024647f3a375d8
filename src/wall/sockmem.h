/* wall/sockmem.h: what the kernel holds in the buffers of a network namespace's sockets
 *
 * Theory: what was sent and not yet read is memory that belongs to no process. A cgroup counts it, but does not say of
 * unix sockets how much of the kernel's memory that is. The kernel tells it socket by socket (sock_diag(7)), also of
 * those whose descriptor is nowhere but in a message.
 */
#ifndef CLOCHE_WALL_SOCKMEM_H
#define CLOCHE_WALL_SOCKMEM_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* A socket (O_CLOEXEC) to ask by, for the network namespace of the caller: whoever has it asks about that one. -1 with
 * @err. */
int sockmem_open(struct err *err);

/* Bytes in buffers of unix sockets now. They are in the network namespace's own table; to look through the whole host's
 * table of connections takes a millisecond. 0, or -1 with @err: it does not tell (a kernel without sock_diag). Never
 * waits for anybody but the kernel. */
int sockmem_unix(int fd, uint64_t *bytes, struct err *err);
/* The same of all kinds. */
int sockmem_total(int fd, uint64_t *bytes, struct err *err);

/* The part of an answer in @p, @n bytes of netlink messages, added to @bytes. 1: more is to come, 0: that was all, -1:
 * the kernel refused (errno), or it is malformed (EPROTO). Pure. */
int sockmem_add(const void *p, size_t n, uint64_t *bytes);

#endif
