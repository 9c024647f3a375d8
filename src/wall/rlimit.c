/* wall/rlimit.c: see rlimit.h */
#include "wall/rlimit.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/kernel.h"

#ifndef SCHED_DEADLINE
#define SCHED_DEADLINE 6
#endif
#ifndef SCHED_RESET_ON_FORK
#define SCHED_RESET_ON_FORK 0x40000000
#endif
#define IOPRIO_PROCESS   1      /* linux/ioprio.h, which older headers lack */
#define IOPRIO_SHIFT     13
#define IOPRIO_REAL_TIME 1

size_t
rlimit_rows(const struct rlimit_plan *plan, struct rlimit_row out[RLIMIT_ROWS])
{
    const struct { struct rlimit_row row; bool wanted; } all[] = {
        /* One byte is too little for a core file. A handler (core_pattern with a pipe) is root of the host, and 0 does
         * not bind it; for a limit of 1, which handlers have themselves, the kernel starts none. */
        { { RLIMIT_CORE, "RLIMIT_CORE", 1 }, true },
        { { RLIMIT_MEMLOCK, "RLIMIT_MEMLOCK", 8 << 20 }, true },
        { { RLIMIT_MSGQUEUE, "RLIMIT_MSGQUEUE", 0 }, true },
        /* a cgroup's share does not bind what has a real-time priority; a user of audio programs may have one to
         * give */
        { { RLIMIT_RTPRIO, "RLIMIT_RTPRIO", 0 }, true },
        { { RLIMIT_NICE, "RLIMIT_NICE", 0 }, true },
        { { RLIMIT_NOFILE, "RLIMIT_NOFILE", plan->nofile }, plan->nofile > 0 },
        { { RLIMIT_NPROC, "RLIMIT_NPROC", plan->nproc }, plan->nproc > 0 },
    };
    size_t n = 0;

    _Static_assert(ARRAY_LEN(all) <= RLIMIT_ROWS, "room for each");
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (all[i].wanted)
            out[n++] = all[i].row;
    return n;
}

static int
set_one(const struct rlimit_row *row, struct err *err)
{
    struct rlimit now = { 0, 0 }, want = { row->most, row->most };

    if (kernel_prlimit(row->resource, NULL, &now) < 0)
        return err_sys(err, errno, "wall.rlimit", "read %s", row->name);
    if (now.rlim_max != RLIM_INFINITY && want.rlim_max > now.rlim_max)
        want.rlim_cur = want.rlim_max = now.rlim_max;
    if (kernel_prlimit(row->resource, &want, NULL) < 0)
        return err_sys(err, errno, "wall.rlimit", "set %s", row->name);
    /* there are environments that answer the call with a success that is none */
    now = (struct rlimit){ ~want.rlim_cur, ~want.rlim_max };
    if (kernel_prlimit(row->resource, NULL, &now) == 0 && now.rlim_cur == want.rlim_cur &&
        now.rlim_max == want.rlim_max)
        return 0;
    return err_not_done(err, "wall.rlimit", "%s is not what it was set to", row->name);
}

/* Whoever started us may have been given precedence over everybody; what runs inside has none, and a limit of the CPU
 * does not bind what has a real-time priority. To give it up needs no right. */
static int
ordinary_priority(struct err *err)
{
    const struct sched_param none = { .sched_priority = 0 };
    long policy = syscall(SYS_sched_getscheduler, 0);

    if (policy >= 0)
        policy &= ~(long)SCHED_RESET_ON_FORK;
    if ((policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE) &&
        syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &none) < 0)
        return err_sys(err, errno, "wall.rlimit", "give up a real-time priority");
    if (getpriority(PRIO_PROCESS, 0) < 0 && setpriority(PRIO_PROCESS, 0, 0) < 0)
        return err_sys(err, errno, "wall.rlimit", "give up a higher priority");
    if (syscall(SYS_ioprio_get, IOPRIO_PROCESS, 0) >> IOPRIO_SHIFT == IOPRIO_REAL_TIME &&
        syscall(SYS_ioprio_set, IOPRIO_PROCESS, 0, 0) < 0)
        return err_sys(err, errno, "wall.rlimit", "give up a real-time priority of the disk's");
    return 0;
}

int
rlimit_oom_ordinary(pid_t pid, struct err *err)
{
    cleanup_close int own = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);
    char path[64], first = '0';

    /* where it cannot be read there is no /proc, and nobody had one to set it by */
    if (own < 0 || read(own, &first, 1) != 1 || first != '-')
        return 0;
    snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
    return io_write_file(AT_FDCWD, path, "0") < 0 ? err_sys(err, errno, "wall.rlimit", "write %s", path) : 0;
}

int
rlimit_apply(const struct rlimit_plan *plan, struct err *err)
{
    struct rlimit_row rows[RLIMIT_ROWS];
    size_t n;

    if (ordinary_priority(err) < 0)
        return -1;
    n = rlimit_rows(plan, rows);
    for (size_t i = 0; i < n; i++)
        if (set_one(&rows[i], err) < 0)
            return -1;
    return 0;
}
