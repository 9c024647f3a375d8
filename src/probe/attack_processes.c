/* probe/attack_processes.c: privilege, other processes, the terminal */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "probe/attack.h"

#ifndef TIOCLINUX
#define TIOCLINUX 0x541C
#endif

/* --- privilege ------------------------------------------------------------------------------------------------- */

enum outcome
attack_become_root(struct attempt *a)
{
    bool user = getuid() == 0, group = getgid() == 0;       /* a root that is no other's, and could become none */

    if (judge(a, "setgroups", setgroups(0, NULL)) == SUCCEEDED ||
        (!group && judge(a, "setgid(0)", setgid(0)) == SUCCEEDED) ||
        (!user && judge(a, "setuid(0)", setuid(0)) == SUCCEEDED))
        return SUCCEEDED;
    if (user && group)
        return outcome_of(a, NOT_APPLICABLE, "it is uid 0 without a capability already");
    return judge(a, "setresuid(0, 0, 0)", setresuid(0, 0, 0));
}

enum outcome
attack_raise_capabilities(struct attempt *a)
{
    struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct now[2] = { { 0 } }, all[2];

    if (syscall(SYS_capget, &h, now) == 0 &&
        (now[0].effective | now[1].effective | now[0].permitted | now[1].permitted) != 0)
        return outcome_of(a, SUCCEEDED, "this process has capabilities: %08x%08x", now[1].permitted, now[0].permitted);
    memset(all, 0xff, sizeof(all));
    all[1].effective = all[1].permitted = all[1].inheritable = 0x1ff;
    if (judge(a, "capset(all)", syscall(SYS_capset, &h, all)) == SUCCEEDED)
        return SUCCEEDED;
    return judge(a, "PR_CAP_AMBIENT_RAISE", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0));
}

enum outcome
attack_setuid_program(struct attempt *a)
{
    static const char *const programs[] = {
        "/usr/bin/su", "/bin/su", "/usr/bin/sudo", "/usr/bin/passwd", "/usr/bin/mount", "/bin/mount", "/usr/bin/newgrp",
        "/usr/bin/chsh", "/usr/bin/gpasswd", "/usr/bin/pkexec", "/usr/bin/fusermount3",
    };
    enum outcome o = absent(a, "a setuid program");

    if (prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0)
        return outcome_of(a, SUCCEEDED, "no_new_privs can be taken off");
    for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
        struct statvfs fs;
        struct stat st;

        if (stat(programs[i], &st) < 0 || (st.st_mode & S_ISUID) == 0 || access(programs[i], X_OK) < 0)
            continue;
        if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
            o = outcome_of(a, BLOCKED, "%s is there, but no_new_privs is on", programs[i]);
        else if (statvfs(programs[i], &fs) == 0 && (fs.f_flag & ST_NOSUID) != 0)
            o = outcome_of(a, BLOCKED, "%s lies on a nosuid mount", programs[i]);
        else
            return outcome_of(a, SUCCEEDED, "%s would run as uid %u", programs[i], (unsigned)st.st_uid);
    }
    return o;
}

enum outcome
attack_drop_seccomp(struct attempt *a)
{
    int mode = prctl(PR_GET_SECCOMP, 0, 0, 0, 0);

    if (mode == 0)
        return outcome_of(a, SUCCEEDED, "no system call filter is on this process");
    if (judge(a, "prctl(PR_SET_SECCOMP, disabled)", prctl(PR_SET_SECCOMP, 0, 0, 0, 0)) == SUCCEEDED)
        return SUCCEEDED;
    return outcome_of(a, BLOCKED, "mode %d stays", mode);
}

enum outcome
attack_read_search(struct attempt *a)
{
    char path[300];

    if (a->scratch[0] == '\0')
        return outcome_of(a, BLOCKED, "nothing is writable here");
    snprintf(path, sizeof(path), "%s/closed", a->scratch);
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0);
    if (fd < 0)
        return judge(a, "create", -1);
    return try_open(a, path, O_RDONLY);
}

/* --- processes ------------------------------------------------------------------------------------------------- */

static enum outcome
no_target(struct attempt *a)
{
    return outcome_of(a, a->p->host_pid == 0 ? NOT_APPLICABLE : BLOCKED, "its number is not a process outside, here");
}

enum outcome
attack_signal_host(struct attempt *a)
{
    if (!host_process_here(a))
        return no_target(a);
    if (judge(a, "kill(PID outside, 0)", kill(a->p->host_pid, 0)) == SUCCEEDED)
        return SUCCEEDED;
    cleanup_close int pidfd = (int)syscall(SYS_pidfd_open, a->p->host_pid, 0);
    return pidfd < 0 ? BLOCKED : judge(a, "pidfd_send_signal", syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0));
}

static enum outcome
read_process(struct attempt *a, pid_t pid)
{
    static const char *const files[] = { "environ", "mem", "maps", "auxv", "stack", "syscall", "io" };
    enum outcome o = BLOCKED;
    char path[64];

    for (size_t i = 0; i < ARRAY_LEN(files) && o != SUCCEEDED; i++) {
        cleanup_close int fd = -1;
        char byte;

        snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, files[i]);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            outcome_of(a, BLOCKED, "%s: %s", path, strerror(errno));
            continue;
        }
        /* some check at open, some at read; address 0 of mem is never mapped: opening it is the permission */
        if (strcmp(files[i], "mem") == 0 || read(fd, &byte, 1) == 1)
            o = outcome_of(a, SUCCEEDED, "%s can be read", path);
    }
    return o;
}

enum outcome
attack_read_host_process(struct attempt *a)
{
    return host_process_here(a) ? read_process(a, a->p->host_pid) : no_target(a);
}

enum outcome
attack_read_first(struct attempt *a)
{
    return first_process(a) > 0 ? read_process(a, first_process(a)) : no_target(a);
}

enum outcome
attack_trace_first(struct attempt *a)
{
    /* SEIZE does not stop it, and ends with us */
    if (first_process(a) <= 0)
        return no_target(a);
    return judge(a, "ptrace(PTRACE_SEIZE)", ptrace(PTRACE_SEIZE, first_process(a), NULL, NULL));
}

enum outcome
attack_write_first(struct attempt *a)
{
    char path[64];

    if (first_process(a) <= 0)
        return no_target(a);
    snprintf(path, sizeof(path), "/proc/%d/mem", (int)first_process(a));
    return try_open(a, path, O_RDWR);
}

enum outcome
attack_signal_first(struct attempt *a)
{
    pid_t pid = first_process(a);

    if (pid <= 0)
        return no_target(a);
    if (pid == 1 && !a->p->bare)
        return outcome_of(a, BLOCKED, "process 1 of a namespace takes no signal but what it asked for");
    return judge(a, "kill(guest, 0)", kill(pid, 0));
}

enum outcome
attack_steal_transport(struct attempt *a)
{
    pid_t pid = first_process(a);
    char path[64];

    if (pid <= 0)
        return no_target(a);
    cleanup_close int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    for (int fd = 0; fd < 16; fd++) {
        cleanup_close int taken = pidfd >= 0 ? (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0) : -1;
        if (taken >= 0)
            return outcome_of(a, SUCCEEDED, "descriptor %d of process %d was taken", fd, (int)pid);
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
        cleanup_close int opened = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (opened >= 0)
            return outcome_of(a, SUCCEEDED, "%s opens", path);
    }
    return outcome_of(a, BLOCKED, "pidfd_getfd and /proc/%d/fd: %s", (int)pid, strerror(errno));
}

/* All of it to what it is already. */
static bool
changes_scheduling(struct attempt *a, pid_t pid)
{
    struct { uint32_t size, policy; uint64_t flags; int32_t nice; uint32_t priority; uint64_t times[3]; } attr;
    struct { int priority; } param = { 0 };
    long policy = syscall(SYS_sched_getscheduler, pid), io = syscall(SYS_ioprio_get, 1L, pid);

    if (syscall(SYS_sched_getparam, pid, &param) == 0 &&
        (judge(a, "sched_setparam", syscall(SYS_sched_setparam, pid, &param)) == SUCCEEDED ||
         judge(a, "sched_setscheduler", syscall(SYS_sched_setscheduler, pid, policy, &param)) == SUCCEEDED))
        return true;
    memset(&attr, 0, sizeof(attr));
    if (syscall(SYS_sched_getattr, pid, &attr, sizeof(attr), 0L) == 0 &&
        judge(a, "sched_setattr", syscall(SYS_sched_setattr, pid, &attr, 0L)) == SUCCEEDED)
        return true;
    return io >= 0 && judge(a, "ioprio_set", syscall(SYS_ioprio_set, 1L, pid, io)) == SUCCEEDED;
}

/* To what they are already. */
static enum outcome
changes_limits(struct attempt *a, pid_t pid)
{
    struct rlimit64 { uint64_t cur, max; } limit;
    unsigned char mask[128];
    long n;

    errno = 0;
    int nice_now = getpriority(PRIO_PROCESS, (id_t)pid);
    if (errno == 0 && judge(a, "setpriority", setpriority(PRIO_PROCESS, (id_t)pid, nice_now)) == SUCCEEDED)
        return SUCCEEDED;
    if (syscall(SYS_prlimit64, pid, RLIMIT_STACK, NULL, &limit) == 0 &&
        judge(a, "prlimit", syscall(SYS_prlimit64, pid, RLIMIT_STACK, &limit, NULL)) == SUCCEEDED)
        return SUCCEEDED;
    if (changes_scheduling(a, pid))
        return SUCCEEDED;
    n = syscall(SYS_sched_getaffinity, pid, sizeof(mask), mask);
    if (n > 0 && judge(a, "sched_setaffinity", syscall(SYS_sched_setaffinity, pid, n, mask)) == SUCCEEDED)
        return SUCCEEDED;
    return outcome_of(a, BLOCKED, "%s", strerror(errno));
}

enum outcome
attack_host_priority(struct attempt *a)
{
    return host_process_here(a) ? changes_limits(a, a->p->host_pid) : no_target(a);
}

/* It looks after limits and names: without descriptors, or time, it would not see what is done inside. */
enum outcome
attack_guest_limits(struct attempt *a)
{
    pid_t pid = first_process(a);

    return pid > 0 ? changes_limits(a, pid) : absent(a, "the guest");
}

/* --- terminal -------------------------------------------------------------------------------------------------- */

enum outcome
attack_caller_terminal(struct attempt *a)
{
    cleanup_close int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);

    if (fd >= 0)
        return outcome_of(a, SUCCEEDED, "/dev/tty opens");
    return outcome_of(a, a->p->bare ? NOT_APPLICABLE : BLOCKED, "/dev/tty: %s", strerror(errno));
}

/* Those that this process has not made: no other child of the probe's is alive, and none has one. */
enum outcome
attack_host_terminals(struct attempt *a)
{
    cleanup_dir DIR *dir = opendir("/dev/pts");
    struct dirent *e;
    char path[300];

    while (dir != NULL && (e = readdir(dir)) != NULL) {
        if (!all_digits(e->d_name))
            continue;
        snprintf(path, sizeof(path), "/dev/pts/%s", e->d_name);
        return outcome_of(a, SUCCEEDED, "%s is there, and %s", path,
                          access(path, W_OK) == 0 ? "opens" : "does not open for this user");
    }
    return outcome_of(a, BLOCKED, "%s", dir != NULL ? "/dev/pts has none" : strerror(errno));
}

/* A terminal of our own as the controlling one; the descriptors live as long as the child. -1 without one. */
static int
own_terminal(struct attempt *a)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY), slave;
    char name[64];

    if (master < 0 || unlockpt(master) < 0 || ptsname_r(master, name, sizeof(name)) != 0)
        return outcome_of(a, NOT_APPLICABLE, "no terminal to be had: %s", strerror(errno)), -1;
    slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    setsid();
    if (slave < 0 || ioctl(slave, TIOCSCTTY, 0) < 0)
        return outcome_of(a, NOT_APPLICABLE, "no controlling terminal to be had: %s", strerror(errno)), -1;
    return slave;
}

/* The request as it is, and with bits above 32, which the kernel cuts off and a careless filter compares. */
static enum outcome
both_widths(struct attempt *a, const char *name, unsigned long request, void *argument)
{
    int slave = own_terminal(a);
    char what[96];

    if (slave < 0)
        return NOT_APPLICABLE;
    if (judge_reached(a, name, syscall(SYS_ioctl, slave, request, argument)) == SUCCEEDED)
        return SUCCEEDED;
    for (int bit = 32; bit < 64; bit += 31) {
        snprintf(what, sizeof(what), "%s | 1 << %d", name, bit);
        if (judge_reached(a, what, syscall(SYS_ioctl, slave, request | 1UL << bit, argument)) == SUCCEEDED)
            return SUCCEEDED;
    }
    return BLOCKED;
}

enum outcome
attack_push_input(struct attempt *a)
{
    char byte = 'x';

    return both_widths(a, "TIOCSTI", TIOCSTI, &byte);
}

enum outcome
attack_console_paste(struct attempt *a)
{
    char subcode = 127;     /* none has this number */

    return both_widths(a, "TIOCLINUX", TIOCLINUX, &subcode);
}

enum outcome
attack_line_discipline(struct attempt *a)
{
    int n_tty = 0;          /* what it has already: no module is loaded */

    return both_widths(a, "TIOCSETD", TIOCSETD, &n_tty);
}
