/* warden/confine.c: what is left to the warden: its sockets, the state file that is open already, memory, the time */
#include <sys/syscall.h>

#include "base/array.h"
#include "wall/service.h"
#include "warden/warden.h"

#define N(a) ARRAY_LEN(a)

static const unsigned allowed[] = {
    SYS_brk, SYS_clock_gettime, SYS_close, SYS_epoll_ctl, SYS_exit_group, SYS_fcntl, SYS_fdatasync, SYS_fstat,
    SYS_fsync, SYS_ftruncate, SYS_getrandom, SYS_gettimeofday, SYS_lseek, SYS_madvise, SYS_mmap, SYS_mremap,
    SYS_munmap, SYS_newfstatat, SYS_pread64, SYS_pwrite64, SYS_read, SYS_recvmsg, SYS_restart_syscall, SYS_sendmsg,
    SYS_shutdown, SYS_socketpair, SYS_write, SERVICE_EPOLL_WAIT, SERVICE_POLL,
#if defined(SYS_time)
    SYS_time,
#endif
};

int
warden_confine(struct err *err)
{
    const struct service_plan plan = { .calls = allowed, .n_calls = N(allowed) };

    return service_confine(&plan, err);
}
