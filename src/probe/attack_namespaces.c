/* probe/attack_namespaces.c: mounts and namespaces
 *
 * Bare, each mount is made in a mount namespace of the child's own; what is unmounted, is unmounted there.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "probe/attack.h"

#ifndef CLONE_NEWCGROUP
#define CLONE_NEWCGROUP 0x02000000
#endif
#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif

static const struct { const char *name; int flag; } spaces[] = {
    { "mnt", CLONE_NEWNS },   { "pid", CLONE_NEWPID }, { "net", CLONE_NEWNET },       { "ipc", CLONE_NEWIPC },
    { "uts", CLONE_NEWUTS },  { "user", CLONE_NEWUSER }, { "cgroup", CLONE_NEWCGROUP }, { "time", CLONE_NEWTIME },
};

static const char *
target(const struct attempt *a)
{
    return a->scratch[0] != '\0' ? a->scratch : "/tmp";
}

enum outcome
attack_mount_tmpfs(struct attempt *a)
{
    own_mounts(a);
    if (mount("cloche-probe", target(a), "tmpfs", 0, "size=4096") < 0)
        return judge(a, "mount(tmpfs)", -1);
    umount2(target(a), MNT_DETACH);
    return outcome_of(a, SUCCEEDED, "a tmpfs was mounted");
}

enum outcome
attack_mount_bind(struct attempt *a)
{
    own_mounts(a);
    if (mount("/", target(a), NULL, MS_BIND | MS_REC, NULL) < 0)
        return judge(a, "mount(MS_BIND)", -1);
    umount2(target(a), MNT_DETACH);
    return outcome_of(a, SUCCEEDED, "/ was bound elsewhere");
}

enum outcome
attack_remount_writable(struct attempt *a)
{
    static const char *const places[] = { "/usr", "/", "/proc/sys", "/proc", "/etc" };
    enum outcome o = BLOCKED;

    own_mounts(a);
    for (size_t i = 0; i < ARRAY_LEN(places) && o != SUCCEEDED; i++)
        o = judge(a, "mount(MS_REMOUNT)", mount(NULL, places[i], NULL, MS_REMOUNT | MS_BIND, NULL));
    return o;
}

enum outcome
attack_unmount_masks(struct attempt *a)
{
    static const char *const masks[] = {
        "/proc/sys", "/proc/kcore", "/proc/keys", "/proc/sysrq-trigger", "/dev/pts", "/dev", "/proc", "/sys",
    };
    enum outcome o = BLOCKED;

    own_mounts(a);
    for (size_t i = 0; i < ARRAY_LEN(masks) && o != SUCCEEDED; i++)
        o = judge(a, "umount2", umount2(masks[i], MNT_DETACH));
    return o;
}

enum outcome
attack_fresh_procfs(struct attempt *a)
{
    own_mounts(a);
    if (mount("proc", target(a), "proc", 0, NULL) < 0)
        return judge(a, "mount(proc)", -1);
    umount2(target(a), MNT_DETACH);
    return outcome_of(a, SUCCEEDED, "a fresh procfs was mounted");
}

enum outcome
attack_new_mount_api(struct attempt *a)
{
    unsigned char attr[32] = { 0 };
    long fd;

    fd = syscall(SYS_fsopen, "tmpfs", 1);
    if (judge_reached(a, "fsopen", fd) == SUCCEEDED)
        return SUCCEEDED;
    fd = syscall(SYS_open_tree, AT_FDCWD, "/", 1 | O_CLOEXEC);
    if (judge_reached(a, "open_tree(OPEN_TREE_CLONE)", fd) == SUCCEEDED)
        return SUCCEEDED;
    if (judge_reached(a, "move_mount", syscall(SYS_move_mount, -1, "", -1, "", 0x44)) == SUCCEEDED)
        return SUCCEEDED;
    return judge_reached(a, "mount_setattr", syscall(SYS_mount_setattr, -1, "", AT_EMPTY_PATH, attr, sizeof(attr)));
}

enum outcome
attack_pivot(struct attempt *a)
{
    own_mounts(a);
    return judge_reached(a, "pivot_root", syscall(SYS_pivot_root, ".", "."));
}

enum outcome
attack_change_root(struct attempt *a)
{
    struct stat before, after;

    if (stat("/", &before) < 0)
        return outcome_of(a, NOT_APPLICABLE, "/: %s", strerror(errno));
    if (chroot(target(a)) < 0)
        return judge(a, "chroot", -1);
    /* the working directory stayed outside of the new root: climb */
    for (int i = 0; i < 64; i++)
        if (chdir("..") < 0)
            break;
    if (chroot(".") == 0 && stat("/", &after) == 0 && after.st_ino == before.st_ino)
        return outcome_of(a, SUCCEEDED, "chroot, and out of it again");
    return outcome_of(a, SUCCEEDED, "chroot was permitted");
}

enum outcome
attack_unshare_user(struct attempt *a)
{
    return judge(a, "unshare(CLONE_NEWUSER)", unshare(CLONE_NEWUSER));
}

enum outcome
attack_unshare_others(struct attempt *a)
{
    char what[64];

    for (size_t i = 0; i < ARRAY_LEN(spaces); i++) {
        if (spaces[i].flag == CLONE_NEWUSER)
            continue;
        snprintf(what, sizeof(what), "unshare(%s)", spaces[i].name);
        if (judge(a, what, unshare(spaces[i].flag)) == SUCCEEDED)
            return SUCCEEDED;
    }
    return BLOCKED;
}

static enum outcome
try_clone(struct attempt *a, size_t i, bool three)
{
    uint64_t args[11] = { 0 };
    char what[64];
    long pid;

    args[0] = (uint64_t)spaces[i].flag;
    args[4] = SIGCHLD;
    pid = three ? syscall(SYS_clone3, args, sizeof(args))
                : syscall(SYS_clone, (unsigned long)spaces[i].flag | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0)
        _exit(0);
    snprintf(what, sizeof(what), "clone%s(%s)", three ? "3" : "", spaces[i].name);
    if (judge(a, what, pid) == BLOCKED)
        return BLOCKED;
    while (waitpid((pid_t)pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return SUCCEEDED;
}

enum outcome
attack_clone_namespaces(struct attempt *a)
{
    for (size_t i = 0; i < ARRAY_LEN(spaces); i++)
        if (spaces[i].flag != CLONE_NEWTIME &&
            (try_clone(a, i, false) == SUCCEEDED || try_clone(a, i, true) == SUCCEEDED))
            return SUCCEEDED;
    return BLOCKED;
}

static enum outcome
enter(struct attempt *a, pid_t pid)
{
    char path[64], what[96];

    for (size_t i = 0; i < ARRAY_LEN(spaces); i++) {
        snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, spaces[i].name);
        cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            outcome_of(a, BLOCKED, "%s: %s", path, strerror(errno));
            continue;
        }
        snprintf(what, sizeof(what), "setns(%s)", path);
        if (judge(a, what, setns(fd, 0)) == SUCCEEDED)
            return SUCCEEDED;
    }
    cleanup_close int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    return pidfd < 0 ? BLOCKED : judge(a, "setns(pidfd)", setns(pidfd, CLONE_NEWNET | CLONE_NEWNS));
}

enum outcome
attack_enter_namespaces(struct attempt *a)
{
    pid_t own = getpid();

    /* our own first: allowed or not, entering what we are in changes nothing, and shows whether setns is closed */
    if (enter(a, own) == SUCCEEDED)
        return SUCCEEDED;
    if (first_process(a) > 0 && enter(a, first_process(a)) == SUCCEEDED)
        return SUCCEEDED;
    return host_process_here(a) ? enter(a, a->p->host_pid) : BLOCKED;
}
