/* wall/aside.h: two steps of setting up a sandbox at the same time
 *
 * A new network namespace costs about as much as everything else that the child makes, and nothing else needs it. So
 * one thread makes the network while the other makes the root file system. Both share memory, descriptors, working
 * directory and root; each has its own errno, and its own namespaces, credentials and filters.
 */
#ifndef CLOCHE_WALL_ASIDE_H
#define CLOCHE_WALL_ASIDE_H

#include "base/err.h"

typedef int aside_job(void *ctx, struct err *err);      /* 0 or -1 with @err */

/* Run @beside on a thread of its own while the caller runs @here; both have ended when this returns. 0, or -1 with the
 * error of the one that failed (@here's first), also where a filter around us killed @beside's thread: then the process
 * must end. What @beside makes in its own thread's namespaces comes back as a descriptor. Where no thread can be made
 * @beside runs first, in the caller's own thread.
 *
 * Caller: a single-threaded process. */
int aside_run(aside_job *here, void *here_ctx, aside_job *beside, void *beside_ctx, struct err *err);

#endif
