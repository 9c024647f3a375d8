/* base/memfile.h: files in memory that nobody can change any more, for what is handed to another process */
#ifndef CLOCHE_BASE_MEMFILE_H
#define CLOCHE_BASE_MEMFILE_H

#include <stdbool.h>
#include <stddef.h>

/* A file without a path that holds the @n bytes at @p, sealed (memfile_seal), read from its start, O_CLOEXEC. @name is
 * what /proc shows. @exec: it may be executed, also where vm.memfd_noexec is 1 (2 forbids it: EACCES). The descriptor,
 * which is the caller's, or -1 with errno. */
int memfile_sealed(const char *name, bool exec, const void *p, size_t n);

/* Seal the memory file @fd against writes, other sizes, other seals, and (on Linux 6.3) that it can be executed or not
 * any more. The kernel refuses that with EBUSY while
 * anything holds one of its pages, be it only that they are being moved; it looks for some 140 ms
 * (memfd_wait_for_pins()), which is too short on a busy machine, so this asks it for about three seconds. 0 or -1 with
 * errno. */
int memfile_seal(int fd);

#endif
