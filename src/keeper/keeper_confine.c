/* keeper/keeper_confine.c: what is left to a keeper once its sandbox is made
 *
 * Before that it needs every right of its user, and would hand a filter down. From then on it hears its guest, and what
 * is not listed here ends it: it starts no program, makes no namespace and no mount, reaches no socket by name or
 * address, looks into no other process. The sandbox lives already: nothing of this reaches it. What cloche-egress needs
 * to be started anew is cloche-starter's (starter.h). A process of its own it still makes, for a volume's size, for a
 * copy of its files or in a janitor's place; that has the same list.
 *
 * Its user's files stay open to it: it writes transcripts and logs, the cgroup's files, and reads settings again.
 */
#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/array.h"
#include "keeper/keeper.h"
#include "program/peer.h"
#include "wall/service.h"

#define N(a) ARRAY_LEN(a)

static const unsigned allowed[] = {
    /* memory, time, the end */
    SYS_brk, SYS_mmap, SYS_mremap, SYS_munmap, SYS_mprotect, SYS_madvise, SYS_clock_gettime, SYS_nanosleep,
    SYS_clock_nanosleep, SYS_exit_group, SYS_restart_syscall, SYS_getrandom,
    SYS_sysinfo,        /* limits that are a part of the memory */
    /* files: transcripts, logs, the cgroup, /proc, settings, which are written too (cloche approvals --always) */
    SYS_openat, SYS_close, SYS_read, SYS_pread64, SYS_readv, SYS_write, SYS_writev, SYS_lseek, SYS_ftruncate, SYS_fsync,
    SYS_flock,          /* a transcript's lock, of a sandbox that was made ahead */
    SYS_fcntl, SYS_ioctl, SYS_fstat, SYS_newfstatat, SYS_faccessat, SYS_readlinkat, SYS_getdents64, SYS_getcwd,
    SYS_unlinkat, SYS_fstatfs, SYS_mkdirat, SYS_fchmod, SYS_fchown,
#if defined(SYS_open)
    SYS_open, SYS_stat, SYS_lstat, SYS_readlink, SYS_mkdir, SYS_rmdir, SYS_unlink, SYS_rename,
#endif
#if defined(SYS_renameat)
    SYS_renameat,
#else
    SYS_renameat2,
#endif
    /* folders of a sandbox's: a volume is looked into, one of light mode's goes */
    SYS_openat2, SYS_fchmodat, SYS_getxattr, SYS_setxattr,
#if defined(SYS_chmod)
    SYS_chmod,
#endif
    SYS_memfd_create,   /* an editor's keys for the sandbox (keeper_attach.c): a file that cannot be executed here */
    /* sockets that are there, and pairs of new ones */
    SYS_socketpair, SYS_accept4, SYS_getsockopt, SYS_setsockopt, SYS_sendmsg, SYS_recvmsg, SYS_sendto,
    SYS_shutdown, SYS_epoll_ctl, SYS_epoll_pwait, SERVICE_POLL,
#if defined(SYS_epoll_wait)
    SYS_epoll_wait,
#endif
    /* processes */
    SYS_pidfd_send_signal,      /* kill(2) of one that is no child, whose number may be another one's (docker) */
    SYS_kill, SYS_wait4, SYS_waitid, SYS_getpid, SYS_getuid, SYS_geteuid, SYS_capget,
    /* its files are copied (keeper_snapshot.c): links, owners, times, attributes; no node of a device */
    SYS_symlinkat, SYS_linkat, SYS_fchownat, SYS_utimensat, SYS_flistxattr, SYS_fgetxattr, SYS_fsetxattr, SYS_pwrite64,
    SYS_copy_file_range, SYS_statx,
    /* a janitor in the place of one that was killed, and who looks into a volume */
    SYS_clone, SYS_rt_sigprocmask, SYS_prctl, SYS_setsid, SYS_pipe2, SYS_dup3, SYS_close_range, SYS_gettid,
    SYS_set_tid_address, SYS_set_robust_list,
#if defined(SYS_fork)
    SYS_fork, SYS_dup2,
#endif
};

int
keeper_confine(struct err *err)
{
    const struct service_plan plan = { .calls = allowed, .n_calls = N(allowed) };

    /* who may ask over the sandbox's own socket is compared with what we were before */
    if (peer_remember() < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return err_sys(err, errno, "keeper.confine", "/proc/self/status, or not dumpable");
    return service_filter(&plan, err);
}
