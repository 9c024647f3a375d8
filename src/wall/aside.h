/* wall/aside.h: two steps of setting up a sandbox at the same time
 *
 * A new network namespace costs about as much as everything else that the child makes, and nothing else needs it. So
 * one thread makes the root file system while the other makes the network. It is a bare thread of the kernel's, without
 * libc's knowledge: it shares memory, descriptors, working directory and root with its maker, and also errno.
 */
#ifndef CLOCHE_WALL_ASIDE_H
#define CLOCHE_WALL_ASIDE_H

#include "base/err.h"

typedef int aside_job(void *ctx, struct err *err);      /* 0 or -1 with @err */

/* Run @beside on a thread of its own while the caller runs @here; both have ended when this returns. 0, or -1 with the
 * error of the one that failed (@here first). Namespaces, credentials and filters that a job changes are those of its
 * own thread; what @beside makes comes back as a descriptor. Where no thread can be made @beside runs first, in the
 * caller's own thread.
 *
 * Caller: a single-threaded process. @beside must not use the heap or stdio. errno is shared: @beside must make no call
 * whose failure it survives, since @here looks at errno. */
int aside_run(aside_job *here, void *here_ctx, aside_job *beside, void *beside_ctx, struct err *err);

#endif
