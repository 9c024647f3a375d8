/* wall/proc_outer.c: see proc_outer.h */
#include "wall/proc_outer.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/kernel.h"
#include "wall/mnt.h"
#include "wall/ns.h"

#define MOUNTINFO_MAX (4UL * 1024 * 1024)
#ifndef STATX_MNT_ID_UNIQUE     /* Linux 6.8 */
#define STATX_MNT_ID_UNIQUE 0x00004000U
#endif
#ifndef SYS_listmount           /* the same number on every architecture */
#define SYS_listmount 458
#endif

struct report {
    int fd;
    struct err err;
};

/* Whether the kernel says that no mount lies below our /proc: asked of it alone, for to print all mounts of a host
 * takes long. False where it does not say (listmount(2), Linux 6.8). */
static bool
surely_bare(void)
{
    uint64_t below;
    struct statx x;
    struct {
        uint32_t size, spare;
        uint64_t mnt_id, after;
    } of = { .size = sizeof(of) };      /* struct mnt_id_req of linux/mount.h, which older headers lack */

    if (kernel_statx(AT_FDCWD, "/proc", 0, STATX_MNT_ID_UNIQUE, &x) < 0 || (x.stx_mask & STATX_MNT_ID_UNIQUE) == 0)
        return false;
    of.mnt_id = x.stx_mnt_id;
    return syscall(SYS_listmount, &of, &below, 1UL, 0UL) == 0;
}

bool
proc_is_covered(void)
{
    cleanup_buf struct buf text = BUF_INIT(MOUNTINFO_MAX);

    return !surely_bare() && io_read_file(AT_FDCWD, "/proc/self/mountinfo", &text) == 0 &&
           memmem(text.p, text.n, " /proc/", 7) != NULL;
}

static void
reap(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* In the pid namespace that the procfs is to show: a procfs is of its maker's. */
static _Noreturn void
make(bool subset, bool open, int to)
{
    const struct mnt_option options[] = { { "subset", "pid" }, { "hidepid", "invisible" } };
    struct report r = { .fd = -1, .err = ERR_INIT };

    r.fd = mnt_new("proc", options + (subset ? 0 : 1), (subset ? 1u : 0u) + (open ? 0u : 1u), MNT_NOEXEC, &r.err);
    _exit(io_write_full(to, &r, sizeof(r)) < 0);
}

/* setns(2) moves only what is forked next, hence one process for the move and one for the mount. Both share our table
 * of descriptors, so that the number of the mount is all that has to be told. */
static _Noreturn void
enter(int pidfd, bool subset, bool open, int to)
{
    struct report r = { .fd = -1, .err = ERR_INIT };
    int child = -1;
    pid_t pid = -1;

    if (setns(pidfd, CLONE_NEWPID) < 0)
        err_sys(&r.err, errno, "wall.proc", "setns(pid namespace of the sandbox)");
    else if ((pid = ns_clone(CLONE_FILES, -1, &child, &r.err)) == 0)
        make(subset, open, to);
    if (pid < 0)
        _exit(io_write_full(to, &r, sizeof(r)) < 0);
    reap(pid);
    close(child);
    _exit(0);
}

int
proc_from_outside(int pidfd, bool subset, bool open, struct err *err)
{
    cleanup_close int from = -1, to = -1, helper = -1;
    struct report r = { .fd = -1, .err = ERR_INIT };
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_sys(err, errno, "wall.pipe", "pipe");
    from = ends[0];
    to = ends[1];
    pid = ns_clone(CLONE_FILES, -1, &helper, err);
    if (pid == 0)
        enter(pidfd, subset, open, to);
    if (pid < 0)
        return -1;
    reap(pid);
    if (io_read_full(from, &r, sizeof(r)) < 0)
        return err_set(err, ERR_SYSTEM, "wall.proc", "the process that makes /proc ended early");
    if (r.fd < 0 && err != NULL)
        *err = r.err;
    return r.fd;
}
