/* prove/prove_filter.c: what the system call filter of another process lets through (see prove_trial.h)
 *
 * The kernel hands a filter out to who may trace its process (ptrace(2), PTRACE_SECCOMP_GET_FILTER: root, and not
 * everywhere). It is run here, on calls that none of cloche's own processes has any use for.
 */
#include "prove/prove_trial.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "wall/service.h"

#define GET_FILTER  0x420cL     /* newer than some headers */
#define FILTERS_MAX 8

static const struct {
    const char *name;
    uint32_t nr;
    uint64_t args[6];
} never[] = {
    { "execve", SYS_execve, { 0 } },
    { "execveat", SYS_execveat, { 0 } },
    { "clone", SYS_clone, { 0x10000000 /* CLONE_NEWUSER */ } },
    { "ptrace", SYS_ptrace, { 0 } },
    { "kill", SYS_kill, { 1, SIGKILL } },
    { "mount", SYS_mount, { 0 } },
    { "unlinkat", SYS_unlinkat, { 0 } },
    { "renameat2", SYS_renameat2, { 0 } },
    { "process_vm_readv", SYS_process_vm_readv, { 0 } },
    { "open_by_handle_at", SYS_open_by_handle_at, { 0 } },
    { "bpf", SYS_bpf, { 0 } },
    { "setns", SYS_setns, { 0 } },
    { "unshare", SYS_unshare, { 0 } },
    { "setuid", SYS_setuid, { 0 } },
    { "socket(AF_NETLINK)", SYS_socket, { AF_NETLINK, SOCK_RAW } },
    { "socketpair of datagrams", SYS_socketpair, { AF_UNIX, SOCK_DGRAM } },
    { "ioctl(TIOCSTI)", SYS_ioctl, { 0, TIOCSTI } },
    { "socket(AF_UNIX)", SYS_socket, { AF_UNIX, SOCK_STREAM } },
    { "socket(AF_PACKET)", SYS_socket, { AF_PACKET, SOCK_RAW } },
    { "mmap(PROT_EXEC)", SYS_mmap, { 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS } },
    { "mprotect(PROT_EXEC)", SYS_mprotect, { 0, 4096, PROT_READ | PROT_EXEC } },
    { "prctl(PR_SET_DUMPABLE)", SYS_prctl, { PR_SET_DUMPABLE, 1 } },
    { "fcntl(F_SETOWN)", SYS_fcntl, { 0, F_SETOWN, 1 } },
};

/* Calls that cloche-egress and cloche-vault need: said again here, for from their own lists a slip would be learned. Of
 * all other numbers none passes. */
static const uint32_t both_need[] = {
    SYS_brk, SYS_clock_gettime, SYS_close, SYS_exit_group, SYS_fcntl, SYS_futex, SYS_getpid, SYS_getrandom,
    SYS_gettimeofday, SYS_madvise, SYS_mmap, SYS_mremap, SYS_munmap, SYS_recvmsg, SYS_sendmsg,
#ifdef SYS_time
    SYS_time,
#endif
};
static const uint32_t vault_needs[] = { SYS_restart_syscall, SERVICE_POLL };
static const uint32_t egress_needs[] = {
    SYS_accept4, SYS_connect, SYS_dup3, SYS_epoll_ctl, SYS_fstat, SYS_getsockname, SYS_getsockopt, SYS_lseek,
    SYS_newfstatat, SYS_openat, SYS_pipe2, SYS_read, SYS_recvfrom, SYS_sendto, SYS_setsockopt, SYS_shutdown,
    SYS_splice, SYS_write, SYS_writev, SERVICE_EPOLL_WAIT,
};
#define NUMBERS 1024U

static bool
among(uint32_t nr, const uint32_t *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (v[i] == nr)
            return true;
    return false;
}

static bool
is_needed(uint32_t nr, bool egress)
{
    return among(nr, both_need, ARRAY_LEN(both_need)) ||
           (egress ? among(nr, egress_needs, ARRAY_LEN(egress_needs)) : among(nr, vault_needs, ARRAY_LEN(vault_needs)));
}

/* What a filter says of @data: classic BPF, as far as filters of ours use it. Whatever else is in it stops the call, as
 * far as we know. */
static uint32_t
run(const struct sock_filter *f, size_t n, const struct seccomp_data *data)
{
    uint32_t a = 0, memory[BPF_MEMWORDS] = { 0 };

    for (size_t at = 0; at < n; at++) {
        const struct sock_filter *i = &f[at];

        switch (i->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            if (i->k > sizeof(*data) - sizeof(a))
                return SECCOMP_RET_KILL_PROCESS;
            memcpy(&a, (const char *)data + i->k, sizeof(a));
            break;
        case BPF_LD | BPF_IMM:
            a = i->k;
            break;
        case BPF_LD | BPF_MEM:
            a = memory[i->k % BPF_MEMWORDS];
            break;
        case BPF_ST:
            memory[i->k % BPF_MEMWORDS] = a;
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= i->k;
            break;
        case BPF_JMP | BPF_JA:
            at += i->k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            at += a == i->k ? i->jt : i->jf;
            break;
        case BPF_JMP | BPF_JGT | BPF_K:
            at += a > i->k ? i->jt : i->jf;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            at += a >= i->k ? i->jt : i->jf;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            at += (a & i->k) != 0 ? i->jt : i->jf;
            break;
        case BPF_RET | BPF_K:
            return i->k;
        default:
            return SECCOMP_RET_KILL_PROCESS;
        }
    }
    return SECCOMP_RET_KILL_PROCESS;
}

struct filters {
    struct sock_filter at[FILTERS_MAX * BPF_MAXINSNS];
    size_t ends[FILTERS_MAX], n;
};

static bool
passes(const struct filters *f, uint32_t nr, const uint64_t args[6])
{
    struct seccomp_data data = { .nr = (int)nr,
#if defined(__x86_64__)
                                 .arch = AUDIT_ARCH_X86_64,
#else
                                 .arch = AUDIT_ARCH_AARCH64,
#endif
    };

    memcpy(data.args, args, sizeof(data.args));
    for (size_t k = 0; k < f->n; k++) {
        size_t begin = k > 0 ? f->ends[k - 1] : 0;
        uint32_t said = run(f->at + begin, f->ends[k] - begin, &data) & SECCOMP_RET_ACTION_FULL;
        if (said != SECCOMP_RET_ALLOW && said != SECCOMP_RET_LOG)
            return false;
    }
    return true;
}

static const char *
let_through(const struct filters *f, bool egress)
{
    static const uint64_t zeros[6] = { 0 };
    static char number[32];

    for (size_t i = 0; i < ARRAY_LEN(never); i++)
        if (passes(f, never[i].nr, never[i].args))
            return never[i].name;
    for (uint32_t nr = 0; nr < NUMBERS; nr++) {
        if (is_needed(nr, egress) || !passes(f, nr, zeros))
            continue;
        snprintf(number, sizeof(number), "system call %u", nr);
        return number;
    }
    return NULL;
}

/* Every filter of the process that is stopped, one behind the other. How many; 0: they are not to be had. */
static size_t
read_filters(pid_t pid, struct sock_filter *out, size_t room, size_t *ends)
{
    size_t n = 0, at = 0;

    for (; n < FILTERS_MAX; n++) {
        long length = syscall(SYS_ptrace, GET_FILTER, (long)pid, n, NULL);

        if (length < 0)
            return errno == ENOENT ? n : 0;
        if ((size_t)length > room - at || syscall(SYS_ptrace, GET_FILTER, (long)pid, n, out + at) != length)
            return 0;
        at += (size_t)length;
        ends[n] = at;
    }
    return n;
}

const char *
trial_filter_lets(pid_t pid, bool egress)
{
    static struct filters filters;
    int status;

    filters.n = 0;
    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
        return NULL;
    if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) == 0 && waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status))
        filters.n = read_filters(pid, filters.at, ARRAY_LEN(filters.at), filters.ends);
    (void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
    return filters.n > 0 ? let_through(&filters, egress) : NULL;
}
