/* wall/rlimit.c: see rlimit.h */
#include "wall/rlimit.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

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

static int
set_one(int resource, const char *name, uint64_t value, struct err *err)
{
    struct rlimit now = { 0, 0 }, want = { value, value };

    if (kernel_prlimit(resource, NULL, &now) < 0)
        return err_sys(err, errno, "wall.rlimit", "read %s", name);
    if (now.rlim_max != RLIM_INFINITY && want.rlim_max > now.rlim_max)
        want.rlim_cur = want.rlim_max = now.rlim_max;
    if (kernel_prlimit(resource, &want, NULL) < 0)
        return err_sys(err, errno, "wall.rlimit", "set %s", name);
    /* there are environments that answer the call with a success that is none */
    now = (struct rlimit){ ~want.rlim_cur, ~want.rlim_max };
    if (kernel_prlimit(resource, NULL, &now) == 0 && now.rlim_cur == want.rlim_cur && now.rlim_max == want.rlim_max)
        return 0;
    return err_not_done(err, "wall.rlimit", "%s is not what it was set to", name);
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
    if (ordinary_priority(err) < 0)
        return -1;
    /* One byte is too little for a core file. A handler (core_pattern with a pipe) is root of the host, and 0 does not
     * bind it; for a limit of 1, which handlers have themselves, the kernel starts none. */
    if (set_one(RLIMIT_CORE, "RLIMIT_CORE", 1, err) < 0)
        return -1;
    if (set_one(RLIMIT_MEMLOCK, "RLIMIT_MEMLOCK", 8 << 20, err) < 0)
        return -1;
    if (set_one(RLIMIT_MSGQUEUE, "RLIMIT_MSGQUEUE", 0, err) < 0)
        return -1;
    /* a cgroup's share does not bind what has a real-time priority; a user of audio programs may have one to give */
    if (set_one(RLIMIT_RTPRIO, "RLIMIT_RTPRIO", 0, err) < 0 || set_one(RLIMIT_NICE, "RLIMIT_NICE", 0, err) < 0)
        return -1;
    if (plan->nofile > 0 && set_one(RLIMIT_NOFILE, "RLIMIT_NOFILE", plan->nofile, err) < 0)
        return -1;
    if (plan->nproc > 0 && set_one(RLIMIT_NPROC, "RLIMIT_NPROC", plan->nproc, err) < 0)
        return -1;
    if (plan->fsize > 0 && set_one(RLIMIT_FSIZE, "RLIMIT_FSIZE", plan->fsize, err) < 0)
        return -1;
    if (plan->data > 0 && set_one(RLIMIT_DATA, "RLIMIT_DATA", plan->data, err) < 0)
        return -1;
    return 0;
}
