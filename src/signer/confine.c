/* signer/confine.c: what is left to the signer: one socket, memory, randomness, the time */
#include <sys/syscall.h>

#include "base/array.h"
#include "signer/signer.h"
#include "wall/service.h"

#define N(a) ARRAY_LEN(a)

static const unsigned allowed[] = {
    SYS_brk, SYS_clock_gettime, SYS_close, SYS_exit_group, SYS_madvise, SYS_mmap, SYS_mremap, SYS_munmap, SYS_recvmsg,
    SYS_sendmsg,
};

int
signer_confine(struct err *err)
{
    const struct service_plan plan = { .calls = allowed, .n_calls = N(allowed), .dies = true };

    return service_confine(&plan, err);
}
