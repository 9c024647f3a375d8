/* adapters/confine.c: what is left to an adapter: sockets that it was given, memory, the time. It can open no file,
 * make no socket, start nothing. */
#include <sys/syscall.h>

#include "adapters/host.h"
#include "base/array.h"
#include "wall/service.h"

#define N(a) ARRAY_LEN(a)

static const unsigned allowed[] = {
    SYS_brk, SYS_clock_gettime, SYS_close, SYS_epoll_ctl, SYS_exit_group, SYS_fcntl, SYS_getrandom, SYS_madvise,
    SYS_mmap, SYS_mremap, SYS_munmap, SYS_recvmsg, SYS_sendmsg, SERVICE_EPOLL_WAIT,
};

int
adapters_confine(struct err *err)
{
    const struct service_plan plan = { .calls = allowed, .n_calls = N(allowed) };

    return service_confine(&plan, err);
}
