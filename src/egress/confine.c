/* egress/confine.c: see confine.h */
#include "egress/confine.h"

#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/array.h"
#include "egress/egress.h"
#include "wall/service.h"

/* listeners, the loop, the resolver's sockets, a store of pipes, the pool of servers' connections */
#define FILES_OURS   (256 + POOL_MAX)
#define FILES_WANTED (EGRESS_CONNS_MAX * 3 + FILES_OURS)
#define N(a) ARRAY_LEN(a)

static const unsigned allowed[] = {
    SYS_accept4, SYS_brk, SYS_clock_gettime, SYS_close, SYS_connect, SYS_dup3, SYS_epoll_ctl, SYS_exit_group,
    SYS_fcntl, SYS_fstat, SYS_futex, SYS_getpid, SYS_getrandom, SYS_getsockname, SYS_getsockopt, SYS_gettimeofday,
    SYS_lseek, SYS_madvise, SYS_mmap, SYS_mremap, SYS_munmap, SYS_newfstatat, SYS_openat, SYS_pipe2, SYS_read,
    SYS_recvfrom, SYS_recvmsg, SYS_sendmsg, SYS_sendto, SYS_setsockopt, SYS_shutdown, SYS_splice, SYS_write,
    SYS_writev, SERVICE_EPOLL_WAIT,
#if defined(SYS_time)
    SYS_time,
#endif
};

size_t
confine_limits(void)
{
    const struct rlimit memory = { EGRESS_MEMORY, EGRESS_MEMORY };
    struct rlimit files = { FILES_WANTED, FILES_WANTED };
    size_t n;

    /* what may be had: root raises it */
    if (setrlimit(RLIMIT_NOFILE, &files) < 0 && getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        files.rlim_cur = FILES_OURS;
    if (!SERVICE_SANITIZED)         /* a sanitizer's shadow would count */
        (void)setrlimit(RLIMIT_DATA, &memory);
    n = files.rlim_cur < FILES_OURS ? 0 : ((size_t)files.rlim_cur - FILES_OURS) / 20 * 9;
    return n < EGRESS_CONNS_MAX ? n : EGRESS_CONNS_MAX;
}

int
confine(struct err *err)
{
    const struct service_plan plan = { .calls = allowed, .n_calls = N(allowed), .dies = true, .inet_sockets = true,
                                       .files = service_resolver_files, .n_files = SERVICE_RESOLVER_FILES };

    return service_confine(&plan, err);
}
