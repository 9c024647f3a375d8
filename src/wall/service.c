/* wall/service.c: see service.h */
#include "wall/service.h"

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

#include "wall/caps.h"

#define NOBODY 65534

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "this architecture has no filter yet"
#endif

#if defined(__SANITIZE_ADDRESS__)
/* it looks for leaks by ptrace(2), which nobody may do to this process */
const char *__asan_default_options(void);
const char *
__asan_default_options(void)
{
    return "detect_leaks=0";
}
#endif

static int
filter(const struct service_plan *plan, struct err *err)
{
    /* architecture, then the list, then socket(2) by its family, then nothing */
    struct sock_filter program[16 + 2 * SERVICE_CALLS_MAX];
    struct sock_fprog f = { .filter = program };
    size_t n = 0;

    if (plan->n_calls > SERVICE_CALLS_MAX)
        return err_set(err, ERR_LIMIT, "service.filter", "%zu calls; the limit is %d", plan->n_calls,
                       SERVICE_CALLS_MAX);
    program[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    program[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
    program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    program[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < plan->n_calls; i++) {
        program[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, plan->calls[i], 0, 1);
        program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    if (plan->inet_sockets) {
        program[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 4);
        /* the family's lower half is what the kernel looks at */
        program[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]));
        program[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 1, 0);
        program[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1);
        program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    f.len = (unsigned short)n;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0U, &f) < 0)
        return err_sys(err, errno, "service.filter", "system call filter");
    return 0;
}

static int
files(const struct service_plan *plan, struct err *err)
{
    const struct landlock_plan rules = { .rules = plan->files, .n_rules = plan->n_files, .restrict_files = true,
                                         .scope_abstract = true, .scope_signal = true };
    struct landlock_support support;

    landlock_probe(&support);
    return support.abi == 0 ? 0 : landlock_restrict(&rules, &support, err);
}

const struct landlock_rule service_resolver_files[SERVICE_RESOLVER_FILES] = {
    { .fd = -1, .path = "/etc/hosts", .access = LANDLOCK_READ, .optional = true },
    { .fd = -1, .path = "/etc/host.conf", .access = LANDLOCK_READ, .optional = true },
    { .fd = -1, .path = "/etc/nsswitch.conf", .access = LANDLOCK_READ, .optional = true },
    { .fd = -1, .path = "/etc/resolv.conf", .access = LANDLOCK_READ, .optional = true },
    { .fd = -1, .path = "/etc/services", .access = LANDLOCK_READ, .optional = true },
};

int
service_confine(const struct service_plan *plan, struct err *err)
{
    const struct rlimit none = { 0, 0 };

    if (!plan->keep_user && geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
                                             setresuid(NOBODY, NOBODY, NOBODY) < 0))
        return err_sys(err, errno, "service.rights", "become nobody");
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
        return err_sys(err, errno, "service.rights", "not dumpable");
    if (caps_drop_all(err) < 0 || files(plan, err) < 0)
        return -1;
    return SERVICE_SANITIZED ? 0 : filter(plan, err);   /* a sanitizer's own calls are not on the list */
}
