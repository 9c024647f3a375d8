/* launcher/launcher_confine.c: what is left to the launcher
 *
 * It keeps its user and its capabilities: it opens listeners, reads the configuration and certificates again, asks
 * /proc who a connection is from, and ends processes that are another user's. What it cannot any more is start a
 * program, make a namespace, mount, trace, or ask the kernel for anything that is not listed here.
 */
#include <sys/syscall.h>

#include "base/array.h"
#include "launcher/launcher.h"
#include "wall/service.h"

#define N(a) ARRAY_LEN(a)

static const unsigned allowed[] = {
    /* memory, time, the end */
    SYS_brk, SYS_mmap, SYS_mremap, SYS_munmap, SYS_mprotect, SYS_madvise, SYS_clock_gettime, SYS_nanosleep,
    SYS_clock_nanosleep, SYS_exit_group, SYS_restart_syscall,
    SYS_sysinfo,        /* limits that are a part of the memory */
    /* files: configuration, certificates, /proc, sockets' names */
    SYS_openat, SYS_close, SYS_read, SYS_write, SYS_writev, SYS_lseek, SYS_fcntl, SYS_ioctl, SYS_fstat,
    SYS_newfstatat, SYS_readlinkat, SYS_getcwd, SYS_memfd_create, SYS_unlinkat, SYS_umask,
    SYS_getdents64,     /* runtimes.d */
    SYS_mkdirat, SYS_getrandom, SYS_fsync, SYS_linkat,  /* the key of digests (state_key), where none is there yet */
#if defined(SYS_open)
    SYS_open, SYS_stat, SYS_lstat, SYS_readlink,
#endif
    /* sockets */
    SYS_socketpair, SYS_bind, SYS_listen, SYS_connect, SYS_accept4, SYS_getsockname, SYS_getsockopt,
    SYS_setsockopt, SYS_sendmsg, SYS_recvmsg, SYS_sendto, SYS_shutdown, SYS_epoll_ctl, SYS_epoll_pwait, SERVICE_POLL,
#if defined(SYS_epoll_wait)
    SYS_epoll_wait,
#endif
    /* processes */
    SYS_kill, SYS_wait4, SYS_waitid, SYS_getpid, SYS_geteuid,
};

int
launcher_confine(struct err *err)
{
    const struct service_plan plan = { .calls = allowed, .n_calls = N(allowed), .inet_sockets = true,
                                       .unix_sockets = true };

    return service_filter(&plan, err);
}
