/* wall/service_filter.c: the system call filter of cloche's own processes: see service.h */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wall/service.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "this architecture has no filter yet"
#endif

int
service_filter(const struct service_plan *plan, struct err *err)
{
    /* architecture, then the list, then socket(2) by its family, then nothing */
    struct sock_filter program[16 + 2 * SERVICE_CALLS_MAX];
    struct sock_fprog f = { .filter = program };
    uint32_t families[3];
    size_t n = 0, n_families = 0;

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(err, errno, "service.rights", "no_new_privs");
    if (SERVICE_SANITIZED)      /* a sanitizer's own calls are not on the list */
        return 0;
    if (plan->inet_sockets) {
        families[n_families++] = AF_INET;
        families[n_families++] = AF_INET6;
    }
    if (plan->unix_sockets)
        families[n_families++] = AF_UNIX;
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
    if (n_families > 0) {
        program[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0,
                                                    (uint8_t)(1 + 2 * n_families));
        /* the family's lower half is what the kernel looks at */
        program[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]));
        for (size_t i = 0; i < n_families; i++) {
            program[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, families[i], 0, 1);
            program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        }
    }
    program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    f.len = (unsigned short)n;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0U, &f) < 0)
        return err_sys(err, errno, "service.filter", "system call filter");
    return 0;
}
