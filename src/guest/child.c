/* guest/child.c: see child.h */
#include "guest/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest/deny.h"
#include "guest/look.h"
#include "guest/own_domain.h"
#include "guest/signals.h"

#define CHILD_STACK (64 * 1024)
#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define FD_FALLBACK_MAX 4096    /* without close_range: the guest's own descriptors stay far below */

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

/* Not on the stack: there the whole array would be zeroed, page by page. One child at a time, and the guest waits. */
static char scratch[PATH_MAX];
static unsigned char child_stack[CHILD_STACK] __attribute__((aligned(16)));

static void __attribute__((noreturn))
give_up(struct child_plan *plan, enum exec_stage stage, int sys_errno)
{
    plan->failed_stage = stage;
    plan->failed_errno = sys_errno != 0 ? sys_errno : EIO;
    _exit(127);
}

/* Everything that the guest opened is CLOEXEC already; this holds even if one was not. */
static void
close_on_exec_all(void)
{
    if (syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
        return;
    for (int fd = 3; fd < FD_FALLBACK_MAX; fd++)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* Raw calls: musl's own wrappers stop every thread of the process first, and here that would be the guest. */
static int
become_user(const struct msg_exec *x)
{
    if (x->gid != MSG_KEEP) {
        if (geteuid() == 0 && syscall(SYS_setgroups, 0, NULL) < 0)
            return -1;
        if (syscall(SYS_setresgid, x->gid, x->gid, x->gid) < 0)
            return -1;
    }
    if (x->uid != MSG_KEEP && syscall(SYS_setresuid, x->uid, x->uid, x->uid) < 0)
        return -1;
    return 0;
}

static int
enter_cwd(const char *cwd)
{
    if (cwd[0] == '\0')
        return 0;
    if (chdir(cwd) < 0)
        return -1;
    /* A directory outside the root (reached through a leaked descriptor) shows as "(unreachable)...". */
    if (syscall(SYS_getcwd, scratch, sizeof(scratch)) > 0 && scratch[0] != '/') {
        errno = ENOENT;
        return -1;
    }
    return 0;
}

/* A script without a `#!` line: shells run it as sh would, and so does execvp. */
static void
exec_one(struct child_plan *plan, const char *path)
{
    char *const *env = (char *const *)(uintptr_t)plan->env;

    execve(path, (char *const *)(uintptr_t)plan->argv, env);
    if (errno != ENOEXEC)
        return;
    plan->argv[-1] = "/bin/sh";
    plan->argv[0] = path;
    execve("/bin/sh", (char *const *)(uintptr_t)(plan->argv - 1), env);
    errno = ENOEXEC;
}

static const char *
path_of(const char *const *env)
{
    for (; *env != NULL; env++)
        if (strncmp(*env, "PATH=", 5) == 0)
            return *env + 5;
    return DEFAULT_PATH;
}

/* execve says ENOENT of a file that is there as well: what its `#!` line or its ELF header names is not. */
static bool
is_there(const char *path)
{
    return syscall(SYS_faccessat, AT_FDCWD, path, X_OK) == 0;
}

/* execvpe, but the errno that it ends with is the one to report: a file that exists and may not be run beats
 * the many places where it does not exist. @lacks: a file exists whose interpreter does not. */
static int
exec_search(struct child_plan *plan, bool *lacks)
{
    const char *file = plan->argv[0];
    size_t file_n = strlen(file);
    int kept = ENOENT;
    char *path = scratch;

    if (file_n == 0)
        return ENOENT;
    if (strchr(file, '/') != NULL) {
        exec_one(plan, file);
        kept = errno;
        *lacks = kept == ENOENT && is_there(file);
        return kept;
    }
    for (const char *dir = path_of(plan->env);; dir++) {
        size_t n = strcspn(dir, ":");

        if (n + 1 + file_n < sizeof(scratch)) {
            memcpy(path, dir, n);
            path[n] = '/';
            /* An empty entry of PATH is the current directory. */
            memcpy(path + n + (n > 0), file, file_n + 1);
            exec_one(plan, path);
            if (errno == EACCES)
                kept = EACCES;
            else if (errno == ENOENT)
                *lacks = *lacks || is_there(path);
            else if (errno != ENOTDIR && errno != ENAMETOOLONG && errno != ELOOP)
                return errno;
        }
        dir += n;
        if (*dir == '\0')
            return kept;
    }
}

static void
take_stdio(struct child_plan *plan)
{
    for (int i = 0; i < 3; i++)
        if (dup2(plan->stdio[i], i) < 0)
            give_up(plan, EXEC_STAGE_STDIO, errno);
    if (plan->terminal && ioctl(0, TIOCSCTTY, 0) < 0)
        give_up(plan, EXEC_STAGE_PTY, errno);
}

/* A v1 hierarchy's `tasks`, or v2's cgroup.procs: whoever writes 0 is in. */
static int
join(const struct child_plan *plan)
{
    for (size_t i = 0; i < plan->n_joins; i++)
        if (write(plan->joins[i], "0", 1) != 1)
            return -1;
    return 0;
}

static int
child_main(void *arg)
{
    struct child_plan *plan = arg;
    const struct msg_exec *x = plan->exec;
    int own = -1, why;
    bool lacks = false;

    signals_default();
    if (join(plan) < 0)
        give_up(plan, EXEC_STAGE_JOIN, errno);
    (void)setsid();
    take_stdio(plan);
    /* before the limit on descriptors */
    if (plan->light && own_domain_make(plan->terminal ? 0 : -1, &own) < 0)
        give_up(plan, EXEC_STAGE_SPAWN, errno);
    for (size_t i = 0; i < x->n_rlimits; i++) {
        const struct rlimit64_pair { uint64_t soft, hard; } r = { x->rlimits[i].soft, x->rlimits[i].hard };

        if (syscall(SYS_prlimit64, 0, x->rlimits[i].resource, &r, NULL) < 0)
            give_up(plan, EXEC_STAGE_RLIMIT, errno);
    }
    if (x->umask != MSG_KEEP)
        (void)umask((mode_t)x->umask);
    if (become_user(x) < 0)
        give_up(plan, EXEC_STAGE_USER, errno);
    if (enter_cwd(x->cwd) < 0)
        give_up(plan, EXEC_STAGE_CWD, errno);
    if (plan->light && own_domain_enter(own) < 0)
        give_up(plan, EXEC_STAGE_SPAWN, errno);
    if ((x->flags & MSG_EXEC_LOOK) != 0 && look_enter() < 0)
        give_up(plan, EXEC_STAGE_LOOK, errno);
    close_on_exec_all();
    signals_unblock();
    /* last: from here to execve nothing is called that the filter traps */
    if (plan->guard != NULL && (why = guard_child_install(plan->guard, plan->guard_sock)) != 0)
        give_up(plan, EXEC_STAGE_GUARD, why);
    if (deny_enter() < 0)
        give_up(plan, EXEC_STAGE_DENY, errno);
    why = exec_search(plan, &lacks);
    give_up(plan, lacks && why == ENOENT ? EXEC_STAGE_INTERPRETER : EXEC_STAGE_EXEC, why);
}

pid_t
child_spawn(struct child_plan *plan)
{
    plan->failed_errno = 0;
    return clone(child_main, child_stack + sizeof(child_stack), CLONE_VM | CLONE_VFORK | SIGCHLD, plan);
}
