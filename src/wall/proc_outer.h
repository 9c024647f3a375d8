/* wall/proc_outer.h: a /proc for a sandbox where the outer one is partly covered
 *
 * A container runtime covers parts of its /proc, and the kernel then gives no uncovered one to a mount namespace of a
 * lesser user namespace, subset=pid or not. A root that may mount in the outer mount namespace is not asked that: it
 * makes the sandbox's /proc from a process inside the sandbox's pid namespace and hands the detached mount in. */
#ifndef CLOCHE_WALL_PROC_OUTER_H
#define CLOCHE_WALL_PROC_OUTER_H

#include <stdbool.h>

#include "base/err.h"

/* Whether something is mounted below our /proc. Unreadable counts as no. */
bool proc_is_covered(void);

/* A detached procfs (O_CLOEXEC) of the pid namespace of the process @pidfd, which is a child's or a deeper one, with
 * hidepid=invisible unless @open, and subset=pid where @subset. -1 with @err. Needs CAP_SYS_ADMIN in the user namespace
 * that owns our mount namespace; the caller is single-threaded. */
int proc_from_outside(int pidfd, bool subset, bool open, struct err *err);

#endif
