/* scribe/confine.c: what is left to the scribe: two folders, as their owner, and its socket */
#include <sys/syscall.h>

#include "base/array.h"
#include "scribe/scribe.h"
#include "wall/service.h"

#define N(a) ARRAY_LEN(a)

static const unsigned allowed[] = {
    SYS_brk, SYS_clock_gettime, SYS_clock_nanosleep, SYS_close, SYS_exit_group, SYS_fchmod, SYS_fcntl, SYS_fdatasync,
    SYS_flock, SYS_fstat, SYS_fsync, SYS_ftruncate, SYS_getdents64, SYS_geteuid, SYS_getpid, SYS_madvise, SYS_mmap,
    SYS_mremap, SYS_munmap, SYS_newfstatat, SYS_openat, SYS_pread64, SYS_recvmsg, SYS_renameat2, SYS_restart_syscall,
    SYS_sendmsg, SYS_unlinkat, SYS_write, SERVICE_MKDIR, SERVICE_POLL,
    SYS_sysinfo,        /* qsort() of glibc asks how much memory there is when it sorts more than a few files */
#if defined(SYS_time)
    SYS_time,
#endif
};

int
scribe_confine(const char *audit, const char *transcripts, struct err *err)
{
    const struct landlock_rule files[] = {
        { .fd = -1, .path = audit, .access = LANDLOCK_WRITE, .optional = true },
        { .fd = -1, .path = transcripts, .access = LANDLOCK_WRITE, .optional = true },
    };
    const struct service_plan plan = { .calls = allowed, .n_calls = N(allowed), .files = files, .n_files = N(files),
                                       .keep_user = true };

    return service_confine(&plan, err);
}
