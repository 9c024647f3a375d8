/* wall/seccomp.c: see seccomp.h */
#include "wall/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "wall/seccomp_programs.h"

const struct sock_fprog *
seccomp_program(const struct seccomp_plan *plan)
{
    size_t i = (size_t)plan->list;

    if ((unsigned)plan->list > SECCOMP_LIST_MAX || (unsigned)plan->unix_sockets > SECCOMP_UNIX_PAIRS)
        return NULL;
    i = i * 3 + (size_t)plan->unix_sockets;
    i = i * 2 + plan->ptrace;
    i = i * 2 + plan->nested_userns;
    i = i * 2 + plan->network_closed;
    return &seccomp_programs[i];
}

#if defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#endif

/* What is opened is asked first, of calls by the native entry alone; the list's program follows as it is, and looks at
 * everything anew. Its jumps are relative: it may stand anywhere. */
bool
seccomp_build(const struct seccomp_plan *plan, struct seccomp_code *out)
{
    const struct sock_fprog *list = seccomp_program(plan);
    const size_t skip = 2 * plan->n_opened + 1;     /* after the architecture: the number, and two for each */
    struct sock_filter *to = out->at;

    if (list == NULL || plan->n_opened > SECCOMP_OPENED_MAX || list->len + skip + 2 > SECCOMP_CODE_MAX)
        return false;
    out->program = *list;
    if (plan->n_opened == 0)
        return true;
    *to++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    *to++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 0, (uint8_t)skip);
    *to++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < plan->n_opened; i++) {
        *to++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, plan->opened[i], 0, 1);
        *to++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    memcpy(to, list->filter, list->len * sizeof(*to));
    out->program = (struct sock_fprog){ .len = (unsigned short)(list->len + skip + 2), .filter = out->at };
    return true;
}

/* The other architectures' numbers are the list's affair, which kills for them. */
static int
refuse_memfd(struct err *err)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { .len = ARRAY_LEN(code), .filter = code };

    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0u, &program) < 0
               ? err_sys(err, errno, "wall.seccomp.install", "no memory files") : 0;
}

/* There are environments that answer the call with a success that is none. Every list refuses this one, which the
 * kernel would answer with EFAULT. */
static int
in_force(struct err *err)
{
    if (syscall(SYS_get_robust_list, 0, NULL, NULL) < 0 && errno == EPERM)
        return 0;
    return err_not_done(err, "wall.seccomp.unsupported", "the system call filter was accepted, and is not there");
}

int
seccomp_install(const struct seccomp_plan *plan, struct err *err)
{
    static struct seccomp_code code;    /* the one thread's; only the head of it is touched where nothing is opened */
    const struct sock_fprog *program = &code.program;

    if (!seccomp_build(plan, &code))
        return err_set(err, ERR_POLICY, "wall.seccomp.plan", "no system call filter for list %d, unix sockets %d, "
                       "%zu calls opened", (int)plan->list, (int)plan->unix_sockets, plan->n_opened);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) < 0)
        return err_sys(err, errno, "wall.seccomp.install", "no_new_privs");
    if (plan->no_memfd && refuse_memfd(err) < 0)
        return -1;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0u, program) < 0) {
        int saved = errno;

        if (saved == ENOSYS || saved == EINVAL) {
            err_set(err, ERR_UNSUPPORTED, "wall.seccomp.unsupported",
                    "this kernel cannot filter system calls (seccomp(2) says %s)",
                    saved == ENOSYS ? "ENOSYS" : "EINVAL");
            return err_hint(err, "needs CONFIG_SECCOMP_FILTER, and no outer filter that hides seccomp(2)");
        }
        return err_sys(err, saved, "wall.seccomp.install", "system call filter of %u instructions", program->len);
    }
    return in_force(err);
}

