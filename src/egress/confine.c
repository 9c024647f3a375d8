/* egress/confine.c: see confine.h */
#include "egress/confine.h"

#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "egress/egress.h"
#include "wall/caps.h"
#include "wall/landlock.h"

#define NOBODY 65534
#define FILES_OURS   256        /* listeners, the loop, the resolver's sockets, a store of pipes */
#define FILES_WANTED (EGRESS_CONNS_MAX * 3 + FILES_OURS)
#define N(a) (sizeof(a) / sizeof((a)[0]))

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "this architecture has no filter yet"
#endif

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
/* it looks for leaks by ptrace(2), which nobody may do to this process */
const char *__asan_default_options(void);
const char *
__asan_default_options(void)
{
    return "detect_leaks=0";
}
#else
#define SANITIZED 0
#endif

static const unsigned allowed[] = {
    SYS_accept4, SYS_bind, SYS_brk, SYS_clock_gettime, SYS_close, SYS_connect, SYS_dup3, SYS_epoll_ctl,
    SYS_epoll_pwait, SYS_exit, SYS_exit_group, SYS_fcntl, SYS_fstat, SYS_futex, SYS_getpeername, SYS_getpid,
    SYS_getrandom, SYS_getsockname, SYS_getsockopt, SYS_gettimeofday, SYS_lseek, SYS_madvise, SYS_mmap, SYS_mremap,
    SYS_munmap, SYS_newfstatat, SYS_openat, SYS_pipe2, SYS_read, SYS_recvfrom, SYS_recvmsg, SYS_restart_syscall,
    SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sendmsg, SYS_sendto, SYS_setsockopt, SYS_shutdown, SYS_splice,
    SYS_write, SYS_writev,
#if defined(SYS_epoll_wait)
    SYS_epoll_wait,
#endif
#if defined(SYS_time)
    SYS_time,
#endif
};

static int
filter(struct err *err)
{
    /* architecture, then socket(2) by its family, then the list, then nothing */
    struct sock_filter program[16 + 2 * N(allowed)];
    struct sock_fprog f = { .filter = program };
    size_t n = 0;

    program[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    program[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
    program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    program[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < N(allowed); i++) {
        program[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
        program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    program[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 4);
    /* the family's lower half is what the kernel looks at */
    program[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]));
    program[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 1, 0);
    program[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1);
    program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    f.len = (unsigned short)n;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0U, &f) < 0)
        return err_sys(err, errno, "egress.filter", "system call filter");
    return 0;
}

static int
files(struct err *err)
{
    static const struct landlock_rule rules[] = {
        { .fd = -1, .path = "/etc/hosts", .access = LANDLOCK_READ, .optional = true },
        { .fd = -1, .path = "/etc/host.conf", .access = LANDLOCK_READ, .optional = true },
        { .fd = -1, .path = "/etc/nsswitch.conf", .access = LANDLOCK_READ, .optional = true },
        { .fd = -1, .path = "/etc/resolv.conf", .access = LANDLOCK_READ, .optional = true },
        { .fd = -1, .path = "/etc/services", .access = LANDLOCK_READ, .optional = true },
    };
    const struct landlock_plan plan = { .rules = rules, .n_rules = N(rules), .restrict_files = true,
                                        .scope_abstract = true, .scope_signal = true };
    struct landlock_support support;

    landlock_probe(&support);
    return support.abi == 0 ? 0 : landlock_restrict(&plan, &support, err);
}

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
    if (!SANITIZED)         /* a sanitizer's shadow would count */
        (void)setrlimit(RLIMIT_DATA, &memory);
    n = files.rlim_cur < FILES_OURS ? 0 : ((size_t)files.rlim_cur - FILES_OURS) / 20 * 9;
    return n < EGRESS_CONNS_MAX ? n : EGRESS_CONNS_MAX;
}

int
confine(struct err *err)
{
    const struct rlimit none = { 0, 0 };

    if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
                           setresuid(NOBODY, NOBODY, NOBODY) < 0))
        return err_sys(err, errno, "egress.rights", "become nobody");
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
        return err_sys(err, errno, "egress.rights", "not dumpable");
    if (caps_drop_all(err) < 0 || files(err) < 0)
        return -1;
    return SANITIZED ? 0 : filter(err);     /* a sanitizer's own calls are not on the list */
}
