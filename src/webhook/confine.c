/* webhook/confine.c: what is left to cloche-webhook: sockets of its own to other hosts, the resolver's files */
#include <sys/syscall.h>

#include "wall/service.h"
#include "webhook/webhook.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static const unsigned allowed[] = {
    SYS_bind, SYS_brk, SYS_clock_gettime, SYS_close, SYS_connect, SYS_epoll_ctl, SYS_epoll_pwait, SYS_exit,
    SYS_exit_group, SYS_fcntl, SYS_fstat, SYS_futex, SYS_getpeername, SYS_getpid, SYS_getrandom, SYS_getsockname,
    SYS_getsockopt, SYS_gettimeofday, SYS_lseek, SYS_madvise, SYS_mmap, SYS_mremap, SYS_munmap, SYS_newfstatat,
    SYS_openat, SYS_read, SYS_recvfrom, SYS_recvmsg, SYS_restart_syscall, SYS_rt_sigprocmask, SYS_rt_sigreturn,
    SYS_sendmsg, SYS_sendto, SYS_setsockopt, SYS_shutdown, SYS_write, SYS_writev,
#if defined(SYS_epoll_wait)
    SYS_epoll_wait,
#endif
#if defined(SYS_time)
    SYS_time,
#endif
};

int
webhook_confine(struct err *err)
{
    static const struct landlock_rule files[] = {
        { .fd = -1, .path = "/etc/hosts", .access = LANDLOCK_READ, .optional = true },
        { .fd = -1, .path = "/etc/host.conf", .access = LANDLOCK_READ, .optional = true },
        { .fd = -1, .path = "/etc/nsswitch.conf", .access = LANDLOCK_READ, .optional = true },
        { .fd = -1, .path = "/etc/resolv.conf", .access = LANDLOCK_READ, .optional = true },
        { .fd = -1, .path = "/etc/services", .access = LANDLOCK_READ, .optional = true },
    };
    const struct service_plan plan = { .calls = allowed, .n_calls = N(allowed), .inet_sockets = true, .files = files,
                                       .n_files = N(files) };

    return service_confine(&plan, err);
}
