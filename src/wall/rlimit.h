/* wall/rlimit.h: per-process ceilings that need no cgroup */
#ifndef CLOCHE_WALL_RLIMIT_H
#define CLOCHE_WALL_RLIMIT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct rlimit_plan {
    uint64_t nofile;        /* 0: leave */
    uint64_t nproc;         /* 0: leave. Counted per user inside the user namespace (Linux >= 5.14) */
};

/* Soft and hard limit both; a limit above the hard one is lowered to it, never refused. Core dumps are off:
 * a dump would carry memory to wherever the host's core_pattern sends it. */
int rlimit_apply(const struct rlimit_plan *plan, struct err *err);

/* What that sets, for who has somebody else set it. How many. */
#define RLIMIT_ROWS 7
struct rlimit_row {
    int resource;
    const char *name;
    uint64_t most;
};
size_t rlimit_rows(const struct rlimit_plan *plan, struct rlimit_row out[RLIMIT_ROWS]);

/* Whoever called us may be spared when memory runs out (a service with OOMScoreAdjust=, a pod with guaranteed memory);
 * the child @pid, and what it will start, is not. 0 or -1 with @err. */
int rlimit_oom_ordinary(pid_t pid, struct err *err);

#endif
