/* post/confine.c: what is left to cloche-webhook and cloche-otlp: sockets to other hosts, the resolver's files */
#include <sys/syscall.h>

#include "base/array.h"
#include "post/post.h"
#include "wall/service.h"

#define N(a) ARRAY_LEN(a)

static const unsigned allowed[] = {
    SYS_brk, SYS_clock_gettime, SYS_close, SYS_connect, SYS_epoll_ctl, SYS_exit_group, SYS_fcntl, SYS_fstat,
    SYS_futex, SYS_getpid, SYS_getrandom, SYS_getsockname, SYS_getsockopt, SYS_gettimeofday, SYS_lseek, SYS_madvise,
    SYS_mmap, SYS_mremap, SYS_munmap, SYS_newfstatat, SYS_openat, SYS_read, SYS_recvfrom, SYS_recvmsg, SYS_sendmsg,
    SYS_sendto, SYS_setsockopt, SYS_write, SYS_writev, SERVICE_EPOLL_WAIT,
#if defined(SYS_time)
    SYS_time,
#endif
};

int
post_confine(struct err *err)
{
    const struct service_plan plan = { .calls = allowed, .n_calls = N(allowed), .inet_sockets = true,
                                       .files = service_resolver_files, .n_files = SERVICE_RESOLVER_FILES };

    return service_confine(&plan, err);
}
