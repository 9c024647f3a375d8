/* wall/ns.c: see ns.h */
#include "wall/ns.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

#define HOLDER_STACK 8192

static int
explain_clone(struct err *err, uint64_t flags)
{
    int why = errno;

    if (why == EPERM || why == ENOSPC || why == EINVAL || why == ENOSYS || why == EUSERS || why == EACCES) {
        err_set(err, ERR_UNSUPPORTED, "wall.namespaces.unavailable", "this host does not let %s make %s namespaces: %s",
                flags & CLONE_NEWNET ? "this user" : geteuid() == 0 ? "root" : "an ordinary user",
                flags & CLONE_NEWNET ? "network" : "user", strerror(why));
        return err_hint(err, "`cloche doctor` says which setting forbids it; `--mode light` needs no namespaces");
    }
    return err_sys(err, why, "wall.clone", "clone");
}

pid_t
ns_clone(uint64_t flags, int cgroup_fd, int *pidfd, struct err *err)
{
    int fd = -1;
    struct clone_args args = {
        .flags = (__u64)flags | CLONE_PIDFD,
        .pidfd = (__u64)(uintptr_t)&fd,
        .exit_signal = flags & CLONE_PARENT ? 0 : SIGCHLD,      /* then it is ours, and so is none here */
    };
    long pid;

    if (cgroup_fd >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (unsigned)cgroup_fd;
    }
    pid = syscall(SYS_clone3, &args, sizeof(args));
    if (pid < 0 && (errno == ENOSYS || errno == EPERM || errno == EINVAL) && cgroup_fd < 0) {
        /* outer sandboxes hide clone3, because filters cannot see its flags (some by another error); clone takes the
         * same */
        pid = syscall(SYS_clone, (unsigned long)(flags | CLONE_PIDFD | SIGCHLD), NULL, &fd, NULL, 0UL);
    }
    if (pid < 0)
        return explain_clone(err, flags);
    if (pid > 0)
        *pidfd = fd;
    return (pid_t)pid;
}

static int
write_proc(pid_t pid, const char *file, const char *text, struct err *err)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    if (io_write_file(AT_FDCWD, path, text) < 0) {
        int why = errno;
        err_sys(err, why, "wall.userns.map", "write %s", path);
        if (why == EPERM || why == EACCES)
            err_hint(err, "something (AppArmor, an outer container) forbids user id maps; see `cloche doctor`");
        return -1;
    }
    return 0;
}

/* @and, which is not 0, is itself too. */
static int
write_maps(pid_t pid, const struct ns_ids *ids, uint32_t and, struct err *err)
{
    char also[64] = "", map[128];

    if (ids->deny_setgroups && write_proc(pid, "setgroups", "deny", err) < 0)
        return -1;
    if (and != 0)
        snprintf(also, sizeof(also), "%u %u 1\n", and, and);
    snprintf(map, sizeof(map), "%u %u 1\n%s", ids->inside_gid, ids->outside_gid, also);
    if (write_proc(pid, "gid_map", map, err) < 0)
        return -1;
    snprintf(map, sizeof(map), "%u %u 1\n%s", ids->inside_uid, ids->outside_uid, also);
    return write_proc(pid, "uid_map", map, err);
}

int
ns_write_maps(pid_t pid, const struct ns_ids *ids, struct err *err)
{
    return write_maps(pid, ids, 0, err);
}

/* Whether we are who we were to become: there are environments that answer the calls with a success that is none. */
static int
check_became(const struct ns_ids *ids, struct err *err)
{
    uid_t u[3] = { 0 };
    gid_t g[3] = { 0 };

    if (getresuid(&u[0], &u[1], &u[2]) < 0 || getresgid(&g[0], &g[1], &g[2]) < 0)
        return err_sys(err, errno, "wall.userns", "getresuid");
    for (size_t i = 0; i < 3; i++)
        if (u[i] != ids->inside_uid || g[i] != ids->inside_gid) {
            return err_not_done(err, "wall.userns", "still uid %u, gid %u after becoming uid %u, gid %u",
                    u[i], g[i], ids->inside_uid, ids->inside_gid);
        }
    if (!ids->deny_setgroups && getgroups(0, NULL) != 0)
        return err_set(err, ERR_UNSUPPORTED, "wall.userns", "groups are still there after they were given up");
    return 0;
}

bool
ns_is(const struct ns_ids *ids)
{
    uid_t u[3];
    gid_t g[3];

    if (getresuid(&u[0], &u[1], &u[2]) < 0 || getresgid(&g[0], &g[1], &g[2]) < 0)
        return false;
    for (size_t i = 0; i < 3; i++)
        if (u[i] != ids->inside_uid || g[i] != ids->inside_gid)
            return false;
    return ids->deny_setgroups || getgroups(0, NULL) == 0;
}

int
ns_become(const struct ns_ids *ids, struct err *err)
{
    if (!ids->deny_setgroups && setgroups(0, NULL) < 0)
        return err_sys(err, errno, "wall.userns", "drop supplementary groups");
    if (setresgid(ids->inside_gid, ids->inside_gid, ids->inside_gid) < 0)
        return err_sys(err, errno, "wall.userns", "become gid %u", ids->inside_gid);
    if (setresuid(ids->inside_uid, ids->inside_uid, ids->inside_uid) < 0)
        return err_sys(err, errno, "wall.userns", "become uid %u", ids->inside_uid);
    return check_became(ids, err);
}

int
ns_network(struct err *err)
{
    cleanup_close int fd = -1;
    struct ifreq request = { 0 };
    int ns;

    if (unshare(CLONE_NEWNET) < 0)
        return explain_clone(err, CLONE_NEWNET);
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_sys(err, errno, "wall.netns", "socket");
    memcpy(request.ifr_name, "lo", sizeof("lo"));
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    if (ioctl(fd, SIOCSIFFLAGS, &request) < 0)
        return err_sys(err, errno, "wall.netns", "bring up lo");
    /* without a look at /proc, which another thread may be replacing */
    ns = ioctl(fd, SIOCGSKNS);
    return ns < 0 ? err_sys(err, errno, "wall.netns", "SIOCGSKNS") : ns;
}

int
ns_own_network(void)
{
    return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

int
ns_enter_network(int ns, struct err *err)
{
    cleanup_close int now = -1, fd = -1;
    struct stat want, is;

    if (setns(ns, CLONE_NEWNET) < 0)
        return err_sys(err, errno, "wall.netns", "setns");
    /* a new socket is of the network that we are in */
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    now = fd < 0 ? -1 : ioctl(fd, SIOCGSKNS);
    if (now < 0 || fstat(now, &is) < 0 || fstat(ns, &want) < 0)
        return err_sys(err, errno, "wall.netns", "SIOCGSKNS");
    return is.st_ino == want.st_ino ? 0 : err_set(err, ERR_UNSUPPORTED, "wall.netns",
                                                  "still in the other network after entering the sandbox's own");
}

/* It only holds a namespace open. It shares our memory, errno too: nothing but raw calls that do not fail. */
static int
hold(void *parent)
{
    /* it must not outlive a parent that is killed meanwhile */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != (pid_t)(intptr_t)parent)
        _exit(1);
    for (;;)
        (void)syscall(SYS_ppoll, NULL, 0UL, NULL, NULL, 0UL);
}

/* A child in a user namespace of its own that does nothing, on @stack_end until it is killed. Without a copy of our
 * memory, which would cost several times what the namespace does: then, and with every page that is written later. */
static pid_t
holder(char *stack_end, struct err *err)
{
    sigset_t all, before;
    pid_t pid;

    /* it has our handlers, which would run in our memory */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid = clone(hold, stack_end, CLONE_VM | CLONE_NEWUSER | SIGCHLD, (void *)(intptr_t)getpid());
    if (pid < 0)
        explain_clone(err, CLONE_NEWUSER);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return pid;
}

int
ns_idmap(uint32_t from_uid, uint32_t to_uid, uint32_t from_gid, uint32_t to_gid, uint32_t also, struct err *err)
{
    /* Inside this namespace the on-disk owner's number stands for @to outside: that is the direction in which the
     * kernel reads the map of an idmapped mount (mount_setattr(2), MOUNT_ATTR_IDMAP). */
    struct ns_ids ids = { from_uid, from_gid, to_uid, to_gid, false };
    _Alignas(16) char stack[HOLDER_STACK];
    cleanup_close int ns = -1;
    char path[64];
    int saved;
    pid_t pid = holder(stack + sizeof(stack), err);

    if (pid < 0)
        return -1;
    if (write_maps(pid, &ids, also, err) == 0) {
        snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
        ns = open(path, O_RDONLY | O_CLOEXEC);
        if (ns < 0)
            err_sys(err, errno, "wall.idmap", "open %s", path);
    }
    saved = errno;
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    errno = saved;
    return take_fd(&ns);
}
