/* probe/attack_kernel.c: kernel interfaces
 *
 * The arguments are chosen so that the kernel checks the permission first and then finds them wrong: EPERM is the
 * wall, anything else means that the door was open. Nothing is set, loaded or restarted where it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "probe/attack.h"

#define COUNT(rows) ARRAY_LEN(rows)

static enum outcome
open_any(struct attempt *a, const char *const paths[], size_t n, int flags)
{
    enum outcome o = absent(a, "any of them");

    for (size_t i = 0; i < n; i++) {
        if (access(paths[i], F_OK) < 0)
            continue;
        o = try_open(a, paths[i], flags);
        if (o == SUCCEEDED)
            return o;
    }
    return o;
}

enum outcome
attack_use_bpf(struct attempt *a)
{
    unsigned char attr[128] = { 0 };

    return judge_reached(a, "bpf(BPF_MAP_CREATE)", syscall(SYS_bpf, 0, attr, sizeof(attr)));
}

enum outcome
attack_use_perf(struct attempt *a)
{
    struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_DUMMY };

    attr.exclude_kernel = 1;
    return judge_reached(a, "perf_event_open", syscall(SYS_perf_event_open, &attr, 0, -1, -1, 8 /* CLOEXEC */));
}

enum outcome
attack_use_userfaultfd(struct attempt *a)
{
    return judge_reached(a, "userfaultfd", syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* USER_MODE_ONLY */));
}

enum outcome
attack_use_io_uring(struct attempt *a)
{
    unsigned char params[256] = { 0 };

    return judge_reached(a, "io_uring_setup", syscall(SYS_io_uring_setup, 1, params));
}

enum outcome
attack_use_keys(struct attempt *a)
{
    if (judge_reached(a, "keyctl", syscall(SYS_keyctl, 0 /* GET_KEYRING_ID */, -2 /* own process */, 0)) == SUCCEEDED)
        return SUCCEEDED;
    /* the process keyring ends with this process */
    if (judge_reached(a, "add_key", syscall(SYS_add_key, "user", "cloche-probe", "x", 1, -2)) == SUCCEEDED)
        return SUCCEEDED;
    return judge_reached(a, "request_key", syscall(SYS_request_key, "user", "cloche-probe-absent", NULL, 0));
}

#if defined(__x86_64__)
static long
int80_getpid(void)
{
    long r;

    __asm__ volatile("int $0x80" : "=a"(r) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
    return r;
}

enum outcome
attack_other_abi(struct attempt *a)
{
    int status = 0;
    pid_t pid;

    if (syscall(0x40000000L + SYS_getpid) >= 0)
        return outcome_of(a, SUCCEEDED, "the x32 entry is open");
    pid = fork();
    if (pid < 0)
        return outcome_of(a, NOT_APPLICABLE, "fork: %s", strerror(errno));
    if (pid == 0)
        _exit(int80_getpid() == getpid() ? 1 : 2);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
        return outcome_of(a, SUCCEEDED, "the 32-bit entry (int 0x80) is open");
    if (WIFSIGNALED(status))
        return outcome_of(a, BLOCKED, "int 0x80 ends the process (signal %d); x32 is refused", WTERMSIG(status));
    return outcome_of(a, BLOCKED, "both are refused");
}
#else
enum outcome
attack_other_abi(struct attempt *a)
{
    return outcome_of(a, NOT_APPLICABLE, "this architecture has no other entry that is known here");
}
#endif

enum outcome
attack_unknown_calls(struct attempt *a)
{
    for (long nr = 470; nr < 1024; nr++)
        if (syscall(nr, -1L, -1L, -1L, -1L, -1L, -1L) >= 0 || (errno != ENOSYS && errno != EPERM))
            return outcome_of(a, SUCCEEDED, "number %ld answers: %s", nr, strerror(errno));
    return outcome_of(a, BLOCKED, "470 to 1023 are not there");
}

enum outcome
attack_load_module(struct attempt *a)
{
    if (judge_reached(a, "init_module", syscall(SYS_init_module, NULL, 0UL, NULL)) == SUCCEEDED ||
        judge_reached(a, "finit_module", syscall(SYS_finit_module, -1, "", 0)) == SUCCEEDED)
        return SUCCEEDED;
    return judge_reached(a, "delete_module", syscall(SYS_delete_module, "cloche_probe_absent", O_NONBLOCK));
}

enum outcome
attack_kexec(struct attempt *a)
{
    if (judge_reached(a, "kexec_load", syscall(SYS_kexec_load, 0UL, 0UL, NULL, 0xdead0000UL)) == SUCCEEDED)
        return SUCCEEDED;
#ifdef SYS_kexec_file_load
    return judge_reached(a, "kexec_file_load", syscall(SYS_kexec_file_load, -1, -1, 0UL, NULL, ~0UL));
#else
    return BLOCKED;
#endif
}

enum outcome
attack_restart(struct attempt *a)
{
    return judge_reached(a, "reboot (with wrong magic numbers)", syscall(SYS_reboot, 0, 0, 0, NULL));
}

enum outcome
attack_swap(struct attempt *a)
{
    if (judge_reached(a, "swapon (a file that does not exist)", syscall(SYS_swapon, "/cloche-probe/absent", 0)) ==
        SUCCEEDED)
        return SUCCEEDED;
    return judge_reached(a, "acct (a file that does not exist)", syscall(SYS_acct, "/cloche-probe/absent"));
}

enum outcome
attack_set_clock(struct attempt *a)
{
    struct timex t = { .modes = 0 };

    if (adjtimex(&t) < 0)
        return judge(a, "adjtimex", -1);
    t.modes = ADJ_STATUS;       /* to what it is: changes nothing */
    return judge(a, "adjtimex (status, to what it is)", adjtimex(&t));
}

enum outcome
attack_set_hostname(struct attempt *a)
{
    char name[256] = "";

    if (gethostname(name, sizeof(name) - 1) < 0)
        return judge(a, "gethostname", -1);
    return judge(a, "sethostname (to what it is)", sethostname(name, strlen(name)));
}

enum outcome
attack_kernel_log(struct attempt *a)
{
    static const char *const logs[] = { "/dev/kmsg", "/proc/kmsg" };

    if (judge(a, "syslog", klogctl(10, NULL, 0)) == SUCCEEDED || open_any(a, logs, COUNT(logs), O_RDONLY) == SUCCEEDED)
        return SUCCEEDED;
    return open_any(a, logs, 1, O_WRONLY) == SUCCEEDED ? SUCCEEDED : BLOCKED;
}

enum outcome
attack_kernel_memory(struct attempt *a)
{
    static const char *const windows[] = { "/dev/mem", "/dev/kmem", "/dev/port", "/proc/kcore", "/dev/kvm" };

    return open_any(a, windows, COUNT(windows), O_RDONLY);
}

enum outcome
attack_sysctls(struct attempt *a)
{
    static const char *const settings[] = {
        "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hotplug",
        "/proc/sys/kernel/randomize_va_space", "/proc/sys/kernel/yama/ptrace_scope", "/proc/sys/kernel/hostname",
        "/proc/sys/kernel/domainname", "/proc/sys/kernel/ns_last_pid", "/proc/sys/kernel/shmmax",
        "/proc/sys/kernel/unprivileged_bpf_disabled", "/proc/sys/fs/protected_hardlinks", "/proc/sys/vm/drop_caches",
        "/proc/sys/vm/overcommit_memory", "/proc/sys/vm/panic_on_oom", "/proc/sys/net/ipv4/ip_forward",
        "/proc/sys/net/ipv4/ip_unprivileged_port_start", "/proc/sys/user/max_user_namespaces",
        "/proc/sys/fs/binfmt_misc/register", "/proc/irq/default_smp_affinity", "/proc/mtrr",
    };

    return open_any(a, settings, COUNT(settings), O_WRONLY);
}

enum outcome
attack_sysrq(struct attempt *a)
{
    static const char *const trigger[] = { "/proc/sysrq-trigger", "/proc/sys/kernel/sysrq" };

    return open_any(a, trigger, COUNT(trigger), O_WRONLY);
}

static const char *const hierarchies[] = {
    "", "/memory", "/pids", "/cpu", "/cpu,cpuacct", "/cpuacct", "/cpuset", "/devices", "/freezer", "/blkio", "/net_cls",
    "/systemd", "/unified", "/rdma", "/perf_event", "/hugetlb", "/misc",
};

static enum outcome
open_cgroup_files(struct attempt *a, const char *const names[], size_t n)
{
    enum outcome o = absent(a, "/sys/fs/cgroup");
    char path[128];

    for (size_t h = 0; h < COUNT(hierarchies); h++)
        for (size_t i = 0; i < n; i++) {
            snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", hierarchies[h], names[i]);
            if (access(path, F_OK) < 0)
                continue;
            o = try_open(a, path, O_WRONLY);
            if (o == SUCCEEDED)
                return o;
        }
    return o;
}

enum outcome
attack_cgroup_files(struct attempt *a)
{
    static const char *const names[] = {
        "release_agent", "notify_on_release", "devices.allow", "memory.max", "memory.limit_in_bytes", "pids.max",
        "cpu.max", "cgroup.subtree_control", "cgroup.freeze", "cgroup.kill",
    };

    return open_cgroup_files(a, names, COUNT(names));
}

enum outcome
attack_cgroup_leave(struct attempt *a)
{
    static const char *const names[] = { "cgroup.procs", "tasks", "cgroup.threads" };

    return open_cgroup_files(a, names, COUNT(names));
}

enum outcome
attack_cgroup_mount(struct attempt *a)
{
    const char *at = a->scratch[0] != '\0' ? a->scratch : "/tmp";

    own_mounts(a);
    /* the unified hierarchy exists anyway: mounting it makes no new one */
    if (mount("cgroup2", at, "cgroup2", 0, NULL) < 0)
        return judge(a, "mount(cgroup2)", -1);
    umount2(at, MNT_DETACH);
    return outcome_of(a, SUCCEEDED, "cgroup2 was mounted");
}

enum outcome
attack_execute_data(struct attempt *a)
{
    int now = personality(0xffffffff);

    if (now < 0)
        return judge(a, "personality", -1);
    return judge(a, "personality(READ_IMPLIES_EXEC)", personality((unsigned long)now | READ_IMPLIES_EXEC));
}

enum outcome
attack_kernel_helpers(struct attempt *a)
{
    static const char *const files[] = {
        "/sys/kernel/uevent_helper", "/sys/power/state", "/sys/power/disk", "/sys/kernel/security/apparmor/.load",
        "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/kernel/profiling", "/sys/module/kernel/parameters/panic",
    };
    static const char *const folders[] = { "/sys/kernel/debug", "/sys/kernel/tracing", "/sys/fs/bpf",
                                           "/sys/firmware/efi/efivars" };
    enum outcome o = open_any(a, files, COUNT(files), O_WRONLY);

    for (size_t i = 0; i < COUNT(folders) && o != SUCCEEDED; i++)
        if (access(folders[i], W_OK | X_OK) == 0)
            o = outcome_of(a, SUCCEEDED, "%s is writable", folders[i]);
    return o;
}
