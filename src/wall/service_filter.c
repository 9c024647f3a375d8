/* wall/service_filter.c: the system call filter of cloche's own processes: see service.h */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <asm/sockios.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "wall/service.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "this architecture has no filter yet"
#endif

#define N(a) ARRAY_LEN(a)
#define VALUES_MAX 16

/* A call that no program of ours makes. A filter answers it with an error that the kernel never gives, so we see that
 * the filter is there. Each kind has its own error: a process that denies starts one that has a list. */
#define SEEN_CALL        SYS_get_robust_list
#define SEEN_BY_LIST     EOWNERDEAD
#define SEEN_BY_DENIALS  ENOTRECOVERABLE

/* Calls on a list that are more than they seem: what an argument has to be, under a mask. */
static const struct argument {
    unsigned call, which;
    uint32_t mask;
    size_t n;
    uint32_t values[VALUES_MAX];
} arguments[] = {
    /* F_SETOWN, F_SETSIG and O_ASYNC make a kill(2) of it, of any process of the same user */
    { SYS_fcntl, 1, UINT32_MAX, 14,
      { F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC, F_GETLK, F_SETLK, F_SETLKW, F_OFD_GETLK, F_OFD_SETLK,
        F_SETPIPE_SZ, F_GETPIPE_SZ, F_ADD_SEALS, F_GET_SEALS } },
    /* one of datagrams reaches every socket that has a path or a name, without connect(2) */
    { SYS_socketpair, 1, 0xf, 2, { SOCK_STREAM, SOCK_SEQPACKET } },
    /* a process like this one, in its namespaces; where its number is told is no matter */
    { SYS_clone, 0, ~(uint32_t)(CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | CLONE_PARENT_SETTID), 1, { SIGCHLD } },
    /* whether something is a terminal, and nothing else of one, or of a device; TCGETS2 is newer than some headers */
    { SYS_ioctl, 1, UINT32_MAX, 3, { TIOCGWINSZ, TCGETS, 0x802c542a } },
    /* it is as undumpable as it was, and its children end with it */
    { SYS_prctl, 0, UINT32_MAX, 2, { PR_SET_PDEATHSIG, PR_SET_NAME } },
    /* no code that was not there */
    { SYS_mmap, 2, PROT_EXEC, 1, { 0 } },
    { SYS_mprotect, 2, PROT_EXEC, 1, { 0 } },
};

/* The same for code of others, all of whose calls stay but some (service_deny_module()): an argument that is one of
 * @values passes, or does not. */
static const struct {
    struct argument of;
    bool passes;
} module_arguments[] = {
    { { SYS_fcntl, 1, UINT32_MAX, 3, { F_SETOWN, F_SETSIG, F_SETOWN_EX } }, false },
    { { SYS_ioctl, 1, UINT32_MAX, 2, { FIOSETOWN, SIOCSPGRP } }, false },
    /* a thread, in the namespaces that there are; no process, which would outlive its parent */
    { { SYS_clone, 0, CLONE_THREAD | CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                          CLONE_NEWPID | CLONE_NEWNET, 1, { CLONE_THREAD } }, true },
    { { SYS_prctl, 0, UINT32_MAX, 3, { PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_PTRACER } }, false },
    /* limits of its own alone */
    { { SYS_prlimit64, 0, UINT32_MAX, 1, { 0 } }, true },
};

struct program { size_t n; struct sock_filter at[26 + 2 * SERVICE_CALLS_MAX + N(arguments) * (4 + 2 * VALUES_MAX)]; };

static void
service_filter_put(struct program *p, uint16_t code, uint32_t k, size_t yes, size_t no)
{
    p->at[p->n++] = (struct sock_filter)BPF_JUMP(code, k, (uint8_t)yes, (uint8_t)no);
}

/* @call is answered with @answer. */
static void
put_answer(struct program *p, unsigned call, uint32_t answer)
{
    service_filter_put(p, BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
    service_filter_put(p, BPF_RET | BPF_K, answer, 0, 0);
}

/* @call is answered with @match where that argument, of which the kernel looks at the lower half, is one of @values;
 * with @otherwise where it is none. */
static void
put_argument(struct program *p, const struct argument *a, uint32_t match, uint32_t otherwise)
{
    const uint32_t low = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0;

    service_filter_put(p, BPF_JMP | BPF_JEQ | BPF_K, a->call, 0, 3 + 2 * a->n);
    service_filter_put(p, BPF_LD | BPF_W | BPF_ABS,
                       (uint32_t)offsetof(struct seccomp_data, args[0]) + a->which * 8 + low, 0, 0);
    service_filter_put(p, BPF_ALU | BPF_AND | BPF_K, a->mask, 0, 0);
    for (size_t i = 0; i < a->n; i++) {
        service_filter_put(p, BPF_JMP | BPF_JEQ | BPF_K, a->values[i], 0, 1);
        service_filter_put(p, BPF_RET | BPF_K, match, 0, 0);
    }
    service_filter_put(p, BPF_RET | BPF_K, otherwise, 0, 0);
}

static void
put_call(struct program *p, unsigned call)
{
    for (size_t i = 0; i < N(arguments); i++) {
        if (arguments[i].call == call) {
            put_argument(p, &arguments[i], SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS);
            return;
        }
    }
    put_answer(p, call, SECCOMP_RET_ALLOW);
}

/* The call's number, where it is one of this architecture's; @otherwise. */
static void
put_number(struct program *p, uint32_t otherwise, uint32_t seen)
{
    service_filter_put(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
    service_filter_put(p, BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
    service_filter_put(p, BPF_RET | BPF_K, otherwise, 0, 0);
    service_filter_put(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
    put_answer(p, SEEN_CALL, SECCOMP_RET_ERRNO | seen);
}

/* The list, then socket(2) by its family, then nothing. */
static void
write_program(struct program *p, const struct service_plan *plan)
{
    struct argument family = { .call = SYS_socket, .which = 0, .mask = UINT32_MAX };

    if (plan->inet_sockets) {
        family.values[family.n++] = AF_INET;
        family.values[family.n++] = AF_INET6;
    }
    if (plan->unix_sockets)
        family.values[family.n++] = AF_UNIX;
    put_number(p, SECCOMP_RET_KILL_PROCESS, SEEN_BY_LIST);
    for (size_t i = 0; i < plan->n_calls; i++)
        put_call(p, plan->calls[i]);
    if (family.n > 0)
        put_argument(p, &family, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS);
    service_filter_put(p, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
}

static int
install(const struct program *p, int seen, struct err *err)
{
    const struct sock_fprog f = { .filter = (struct sock_filter *)(uintptr_t)p->at, .len = (unsigned short)p->n };

    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0U, &f) < 0)
        return err_sys(err, errno, "service.filter", "system call filter");
    if (syscall(SEEN_CALL, 0, NULL, NULL) < 0 && errno == seen)
        return 0;
    return err_not_done(err, "service.filter", "the system call filter was accepted, and is not there");
}

/* 1: go on; 0: there is nothing more to do, -1 with @err. */
static int
ready(size_t n_calls, struct err *err)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(err, errno, "service.rights", "no_new_privs");
    if (SERVICE_SANITIZED)      /* a sanitizer's own calls are not on the list */
        return 0;
    return n_calls > SERVICE_CALLS_MAX ? err_set(err, ERR_LIMIT, "service.filter", "%zu calls; the limit is %d",
                                                 n_calls, SERVICE_CALLS_MAX) : 1;
}

int
service_filter(const struct service_plan *plan, struct err *err)
{
    struct program program = { .n = 0 };
    int r = ready(plan->n_calls, err);

    if (r <= 0)
        return r;
    write_program(&program, plan);
    return install(&program, SEEN_BY_LIST, err);
}

static int
deny(const unsigned *calls, size_t n, bool module, struct err *err)
{
    const uint32_t refused = SECCOMP_RET_ERRNO | EPERM;
    struct program p = { .n = 0 };
    int r = ready(n, err);

    if (r <= 0)
        return r;
    put_number(&p, refused, SEEN_BY_DENIALS);
#if defined(__x86_64__)
    /* x32 has the same calls under other numbers */
    service_filter_put(&p, BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1);
    service_filter_put(&p, BPF_RET | BPF_K, refused, 0, 0);
#endif
    for (size_t i = 0; i < n; i++)
        put_answer(&p, calls[i], refused);
    for (size_t i = 0; module && i < N(module_arguments); i++)
        put_argument(&p, &module_arguments[i].of, module_arguments[i].passes ? SECCOMP_RET_ALLOW : refused,
                     module_arguments[i].passes ? refused : SECCOMP_RET_ALLOW);
    if (module)     /* its flags are in memory; a C library without it takes clone(2) */
        put_answer(&p, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
    service_filter_put(&p, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    return install(&p, SEEN_BY_DENIALS, err);
}

int
service_deny(const unsigned *calls, size_t n, struct err *err)
{
    return deny(calls, n, false, err);
}

int
service_deny_module(const unsigned *calls, size_t n, struct err *err)
{
    return deny(calls, n, true, err);
}
