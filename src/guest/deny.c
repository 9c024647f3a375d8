/* guest/deny.c: see deny.h */
#include "guest/deny.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wire/msg.h"

#if defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#endif
#define X32_BIT 0x40000000u         /* the same calls by other numbers */

static struct sock_filter filter[2 * MSG_DENIED_MAX + 8];
static unsigned short filter_n;     /* 0: nothing is denied */

static void
put(uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
    filter[filter_n++] = (struct sock_filter){ code, yes, no, k };
}

/* Another architecture's entry is closed whole, as in the filter around everything: a machine's root has not that. */
void
deny_setup(const uint8_t *numbers, uint16_t n)
{
    filter_n = 0;
    if (n == 0 || n > MSG_DENIED_MAX)
        return;
    put(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
    put(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0);
    put(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
    put(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
    put(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
    put(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS, 0, 0);
    for (size_t i = 0; i < n; i++) {
        put(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)numbers[2 * i] << 8 | numbers[2 * i + 1], 0, 1);
        put(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM, 0, 0);
    }
    put(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

/* no_new_privs is there already, but for a machine's root, which needs none to set a filter. */
int
deny_enter(void)
{
    const struct sock_fprog program = { .len = filter_n, .filter = filter };

    if (filter_n == 0)
        return 0;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0U, &program) < 0 ? -1 : 0;
}
