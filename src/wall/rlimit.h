/* wall/rlimit.h: per-process ceilings that need no cgroup */
#ifndef CLOCHE_WALL_RLIMIT_H
#define CLOCHE_WALL_RLIMIT_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct rlimit_plan {
    uint64_t nofile;        /* 0: leave */
    uint64_t nproc;         /* 0: leave. Counted per user inside the user namespace (Linux >= 5.14) */
    uint64_t fsize;         /* 0: leave */
    uint64_t data;          /* 0: leave; bytes of private writable memory of one process */
};

/* Soft and hard limit both; a limit above the hard one is lowered to it, never refused. Core dumps are off:
 * a dump would carry memory to wherever the host's core_pattern sends it. */
int rlimit_apply(const struct rlimit_plan *plan, struct err *err);

/* Whoever called us may be spared when memory runs out (a service with OOMScoreAdjust=, a pod with guaranteed memory);
 * the child @pid, and what it will start, is not. 0 or -1 with @err. */
int rlimit_oom_ordinary(pid_t pid, struct err *err);

#endif
