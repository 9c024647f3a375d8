/* vault/confine.c: what is left to the vault: two sockets, memory, randomness, the time */
#include <sys/syscall.h>

#include "base/array.h"
#include "vault/serve.h"
#include "wall/service.h"

#define N(a) ARRAY_LEN(a)

static const unsigned allowed[] = {
    SYS_brk, SYS_clock_gettime, SYS_close, SYS_exit_group, SYS_fcntl, SYS_futex, SYS_getpid, SYS_getrandom,
    SYS_gettimeofday, SYS_madvise, SYS_mmap, SYS_mremap, SYS_munmap, SYS_recvmsg, SYS_restart_syscall, SYS_sendmsg,
    SERVICE_POLL,
#if defined(SYS_time)
    SYS_time,
#endif
};

int
vault_confine(struct err *err)
{
    const struct service_plan plan = { .calls = allowed, .n_calls = N(allowed), .dies = true };

    return service_confine(&plan, err);
}
