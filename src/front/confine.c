/* front/confine.c: what is left to the front: sockets that it was given, memory, the time. It can open no file, make no
 * socket, start nothing. */
#include <sys/syscall.h>

#include "base/array.h"
#include "front/front.h"
#include "wall/service.h"

#define N(a) ARRAY_LEN(a)

static const unsigned allowed[] = {
    SYS_brk, SYS_clock_gettime, SYS_close, SYS_epoll_ctl, SYS_exit_group, SYS_fcntl, SYS_futex, SYS_getrandom,
    SYS_madvise, SYS_mmap, SYS_mremap, SYS_munmap, SYS_pread64, SYS_read, SYS_recvfrom, SYS_recvmsg, SYS_sendmsg,
    SYS_sendto, SYS_setsockopt, SYS_shutdown, SYS_socketpair, SYS_write, SERVICE_EPOLL_WAIT,
#if defined(SYS_time)
    SYS_time,
#endif
};

int
front_confine(struct err *err)
{
    const struct service_plan plan = { .calls = allowed, .n_calls = N(allowed) };

    return service_confine(&plan, err);
}
