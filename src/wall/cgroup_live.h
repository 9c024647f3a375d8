/* wall/cgroup_live.h: limits of a sandbox that lives
 *
 * A change is a list of files that are written in order. Where one of them cannot be, those before it are written again
 * with what was there, in reverse: all of the limits are the new ones, or none is.
 */
#ifndef CLOCHE_WALL_CGROUP_LIVE_H
#define CLOCHE_WALL_CGROUP_LIVE_H

#include "wall/cgroup.h"

#define CGROUP_STEPS 6

struct cgroup_step {
    int dir;                /* borrowed from the cgroup */
    const char *file;
    char text[48];          /* what is written, */
    char was[96];           /* and what was there */
    bool maybe;             /* some kernels have no such file, and no such limit */
    bool squeezes;          /* when it is written no more memory may be in use than that */
};

/* What has to be written where @to is not as @from; pure. How many. */
size_t cgroup_steps(const struct cgroup *cg, const struct cgroup_limits *from, const struct cgroup_limits *to,
                    struct cgroup_step out[CGROUP_STEPS]);

/* Hold it to @to in the place of @from (memory, cpu_milli, pids; the rest does not count). 0; or -1 with @err, and
 * nothing is changed: limits.no-cgroup (no cgroup of ours holds that limit: which, and why), limits.in-use (more memory
 * is in use: how much), wall.cgroup (the kernel refused). */
int cgroup_change(const struct cgroup *cg, const struct cgroup_limits *from, const struct cgroup_limits *to,
                  struct err *err);

#endif
