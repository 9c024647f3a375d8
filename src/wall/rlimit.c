/* wall/rlimit.c: see rlimit.h */
#include "wall/rlimit.h"

#include <errno.h>

#include "base/kernel.h"

static int
set_one(int resource, const char *name, uint64_t value, struct err *err)
{
    struct rlimit now, want = { value, value };

    if (kernel_prlimit(resource, NULL, &now) < 0)
        return err_sys(err, errno, "wall.rlimit", "read %s", name);
    if (now.rlim_max != RLIM_INFINITY && want.rlim_max > now.rlim_max)
        want.rlim_cur = want.rlim_max = now.rlim_max;
    if (kernel_prlimit(resource, &want, NULL) < 0)
        return err_sys(err, errno, "wall.rlimit", "set %s", name);
    return 0;
}

int
rlimit_apply(const struct rlimit_plan *plan, struct err *err)
{
    if (set_one(RLIMIT_CORE, "RLIMIT_CORE", 0, err) < 0)
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
