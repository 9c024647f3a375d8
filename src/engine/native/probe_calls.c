/* engine/native/probe_calls.c: trying single system calls and access control (see probe.h) */
#include "engine/native/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/kernel.h"
#include "wall/landlock.h"
#include "wall/ns.h"

#ifndef SECCOMP_ADDFD_FLAG_SEND
#define SECCOMP_ADDFD_FLAG_SEND (1UL << 1)
#endif

enum { K_LANDLOCK_VERSION = 1, K_RESOLVE_IN_ROOT = 0x10, K_RESOLVE_NO_MAGICLINKS = 0x02 };

static void
try_openat2(struct feature_state *f)
{
    struct { uint64_t flags, mode, resolve; } how = {
        .flags = O_PATH | O_CLOEXEC,
        .resolve = K_RESOLVE_IN_ROOT | K_RESOLVE_NO_MAGICLINKS,
    };
    cleanup_close int fd = (int)syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how));

    probe_note(&f[FEATURE_OPENAT2], "openat2(RESOLVE_IN_ROOT)", fd);
}

static void
try_clone3_pidfd(struct feature_state *f)
{
    struct { uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls; } args;
    int clone_pidfd = -1, start_pidfd = -1;
    cleanup_close int opened = -1;
    long pid;

    memset(&args, 0, sizeof(args));
    args.flags = 0x1000;    /* CLONE_PIDFD */
    args.pidfd = (uint64_t)(uintptr_t)&clone_pidfd;
    args.exit_signal = SIGCHLD;
    pid = syscall(SYS_clone3, &args, sizeof(args));
    if (pid == 0)
        _exit(0);
    if (probe_note(&f[FEATURE_CLONE3], "clone3(CLONE_PIDFD)", pid)) {
        while (waitpid((pid_t)pid, NULL, 0) < 0 && errno == EINTR)
            continue;
        close_fd(&clone_pidfd);
    }
    /* the engine's own way, with its own fallback */
    pid = ns_clone(0, -1, &start_pidfd, NULL);
    if (pid == 0)
        _exit(0);
    if (probe_note(&f[FEATURE_START], "clone3(CLONE_PIDFD), clone(CLONE_PIDFD)", pid)) {
        while (waitpid((pid_t)pid, NULL, 0) < 0 && errno == EINTR)
            continue;
        close_fd(&start_pidfd);
    }
    opened = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (probe_note(&f[FEATURE_PIDFD], "pidfd_open", opened))
        probe_note(&f[FEATURE_PIDFD], "pidfd_send_signal", syscall(SYS_pidfd_send_signal, opened, 0, NULL, 0));
}

/* An empty executable memfd answers ENOEXEC when executing it is allowed, EACCES when it is not: nothing has to
 * be run to know. */
static void
try_memfd_exec(struct feature_state *f)
{
    char *const argv[] = { NULL };
    cleanup_close int fd = (int)syscall(SYS_memfd_create, "doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

    if (fd < 0 && errno == EINVAL)      /* Linux < 6.3 does not know MFD_EXEC and makes them executable anyway */
        fd = (int)syscall(SYS_memfd_create, "doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (!probe_note(&f[FEATURE_MEMFD_EXEC], "memfd_create(MFD_EXEC)", fd))
        return;
    syscall(SYS_execveat, fd, "", argv, argv, AT_EMPTY_PATH);
    if (errno == ENOSYS || errno == EPERM) {    /* hidden by an outer filter: as the engine does (launch.c) */
        char path[40];
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        execve(path, argv, argv);
    }
    probe_note(&f[FEATURE_MEMFD_EXEC], "execveat(memfd)", errno == ENOEXEC ? 0 : -1);
}

void
probe_try_calls(struct feature_state *f)
{
    try_openat2(f);
    try_clone3_pidfd(f);
    try_memfd_exec(f);
    probe_note(&f[FEATURE_CLOSE_RANGE], "close_range", syscall(SYS_close_range, ~0U, ~0U, 0));
}

/* Handle reads only, allow nothing, and see whether an open that worked before is refused. */
void
probe_try_landlock(struct feature_state *f)
{
    struct { uint64_t handled_access_fs; } attr = { .handled_access_fs = 1 << 3 /* READ_DIR */ };
    struct feature_state *s = &f[FEATURE_LANDLOCK];
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, K_LANDLOCK_VERSION);
    struct landlock_support support;
    cleanup_close int rules = -1;
    cleanup_close int dir = -1;

    if (!probe_note(s, "landlock_create_ruleset(VERSION)", abi))
        return;
    snprintf(s->detail, sizeof(s->detail), "ABI %ld", abi);
    landlock_probe(&support);
    for (int i = FEATURE_LANDLOCK_TRUNCATE; i <= FEATURE_LANDLOCK_SCOPE; i++) {
        unsigned want =
            i == FEATURE_LANDLOCK_SCOPE ? LANDLOCK_HAS_ABSTRACT | LANDLOCK_HAS_SIGNAL : LANDLOCK_HAS_TRUNCATE;
        f[i].status = (support.features & want) == want ? FEATURE_YES : FEATURE_NO;
    }
    rules = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
    if (!probe_note(s, "landlock_create_ruleset", rules) ||
        !probe_note(s, "prctl(PR_SET_NO_NEW_PRIVS)", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) ||
        !probe_note(s, "landlock_restrict_self", syscall(SYS_landlock_restrict_self, rules, 0)))
        return;
    dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0) {
        errno = 0;
        probe_note(s, "landlock_restrict_self accepted, but a denied open was let through", -1);
    }
}

/* A filter with which system call @nr answers @action and everything else is allowed. */
static long
install_filter(unsigned nr, unsigned action, unsigned flags)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = { .len = ARRAY_LEN(code), .filter = code };

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
}

void
probe_try_seccomp(struct feature_state *f)
{
    struct feature_state *s = &f[FEATURE_SECCOMP];

    if (!probe_note(s, "seccomp(SECCOMP_SET_MODE_FILTER)",
                    install_filter(SYS_getpgid, SECCOMP_RET_ERRNO | EXDEV, 0)))
        return;
    if (syscall(SYS_getpgid, 0) != -1 || errno != EXDEV) {
        errno = 0;
        probe_note(s, "a filter was accepted, but does not filter", -1);
    }
}

/* Answer the one notification that the child makes: with a descriptor of ours, sent in the same step. */
static void
serve_notification(struct feature_state *f, int listener)
{
    struct pollfd wait = { .fd = listener, .events = POLLIN };
    struct seccomp_notif request;
    struct seccomp_notif_addfd add;
    struct seccomp_notif_resp answer;

    memset(&request, 0, sizeof(request));
    if (poll(&wait, 1, PROBE_CHILD_SECONDS * 1000) != 1 ||
        !probe_note(&f[FEATURE_USER_NOTIFY], "ioctl(SECCOMP_IOCTL_NOTIF_RECV)",
                    kernel_ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request)))
        return;
    memset(&add, 0, sizeof(add));
    add.id = request.id;
    add.srcfd = (uint32_t)listener;
    add.flags = SECCOMP_ADDFD_FLAG_SEND;
    if (probe_note(&f[FEATURE_ADDFD_SEND], "ioctl(SECCOMP_IOCTL_NOTIF_ADDFD)",
                   kernel_ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add)))
        return;
    memset(&answer, 0, sizeof(answer));
    answer.id = request.id;
    answer.error = -EPERM;
    probe_note(&f[FEATURE_USER_NOTIFY], "ioctl(SECCOMP_IOCTL_NOTIF_SEND)",
               kernel_ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer));
}

void
probe_try_notify(struct feature_state *f)
{
    cleanup_close int listener =
        (int)install_filter(SYS_getpgid, SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER);
    pid_t pid;

    if (!probe_note(&f[FEATURE_USER_NOTIFY], "seccomp(SECCOMP_FILTER_FLAG_NEW_LISTENER)", listener))
        return;
    pid = fork();
    if (pid < 0)
        return;
    if (pid == 0)
        _exit(syscall(SYS_getpgid, 0) < 0);
    serve_notification(f, listener);
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}
