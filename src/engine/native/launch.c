/* engine/native/launch.c: see launch.h
 *
 * Theory of operation. The child starts with every capability in its own user namespace and the host's tree in
 * view, and ends as the guest with neither. Each step needs what the next one gives up:
 *
 *   1. die with the parent; wait for the id maps
 *   2. become the sandbox's user                       capabilities stay: they belong to the namespace
 *   3. host name; beside each other the network (lo)   needs CAP_NET_ADMIN, CAP_SYS_ADMIN
 *      and the root file system, pivot
 *      (meanwhile the parent makes the cgroups and the guest's image), then join the cgroups (v1)
 *   4. descriptors: 0-2 /dev/null, 3 transport         nothing of the host stays open
 *   5. limits, capabilities to zero, no_new_privs      last use of CAP_SETPCAP
 *   6. Landlock, then seccomp                          Landlock opens paths, which the filter could refuse
 *   7. exec the guest
 */
#include "engine/native/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/memfile.h"
#include "engine/native/fill.h"
#include "guest/guest_image.h"
#include "wall/aside.h"
#include "wall/caps.h"
#include "wall/capture.h"
#include "wall/cgroup.h"
#include "wall/sockmem.h"
#include "wire/packet.h"

#define FD_GUEST  4
#define FD_GUEST_PATH "/proc/self/fd/4"
#define FD_STATUS 5
#define FD_TEMP   20    /* no descriptor that we keep is parked below */

_Noreturn void
launch_give_up(int status, const struct err *err)
{
    packet_say_err(status, err);
    _exit(125);
}

int
launch_say(int go, char what, const int *fds, size_t n, struct err *err)
{
    union { char bytes[CMSG_SPACE(GO_FDS_MAX * sizeof(int))]; struct cmsghdr align; } control = { { 0 } };
    struct iovec iov = { &what, 1 };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

    if (n > 0) {
        struct cmsghdr *c;
        m.msg_control = control.bytes;
        m.msg_controllen = (socklen_t)CMSG_SPACE(n * sizeof(int));
        c = CMSG_FIRSTHDR(&m);
        if (c == NULL || n > GO_FDS_MAX)
            return err_set(err, ERR_LIMIT, "wall.go", "%zu descriptors for the child", n);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = (socklen_t)CMSG_LEN(n * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n * sizeof(int));
    }
    return sendmsg(go, &m, MSG_NOSIGNAL) == 1 ? 0 : err_sys(err, errno, "wall.go", "tell the child");
}

int
launch_hear(int go, char what, int fds[GO_FDS_MAX], struct err *err)
{
    union { char bytes[CMSG_SPACE(GO_FDS_MAX * sizeof(int))]; struct cmsghdr align; } control;
    char said = 0;
    struct iovec iov = { &said, 1 };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes,
                        .msg_controllen = sizeof(control.bytes) };
    struct cmsghdr *c;
    ssize_t got;
    size_t n = 0;

    got = io_recvmsg(go, &m, MSG_CMSG_CLOEXEC);
    if (got < 0)
        return err_sys(err, errno, "wall.go", "wait for the other side");
    if (got == 0)
        return err_set(err, ERR_SYSTEM, "wall.go", "the other side is gone");
    c = CMSG_FIRSTHDR(&m);
    if (c != NULL && c->cmsg_type == SCM_RIGHTS) {
        n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(fds, CMSG_DATA(c), n * sizeof(int));
    }
    return said == what ? (int)n : err_set(err, ERR_PROTOCOL, "wall.go", "the other side said something else");
}

int
launch_first_steps(const struct launch *l, struct err *err)
{
    int fds[GO_FDS_MAX], n;

    /* The parent may have died before this took effect: then the socket is at its end. Without a pid namespace the
     * guest must not be killed before what it started: there it sees the end of its transport and ends them. */
    if (!l->plan->light && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return err_sys(err, errno, "wall.pdeathsig", "PR_SET_PDEATHSIG");
    n = launch_hear(l->go, GO_MAPPED, fds, err);
    if (n > 0)
        l->plan->root.proc_tree = fds[0];
    return n < 0 ? -1 : 0;
}

int
launch_meet_parent(const struct launch *l, struct err *err)
{
    int fds[GO_FDS_MAX];
    int n = launch_hear(l->go, GO_ENTER, fds, err);

    if (n < 1)
        return n < 0 ? -1 : err_set(err, ERR_PROTOCOL, "wall.go", "the guest's image did not come");
    return cgroup_join(fds + 1, (size_t)n - 1, err) < 0 ? -1 : fds[0];
}

/* Leave 0-2 on /dev/null, 3 the transport, 4 the guest, 5 the status pipe, and nothing else. */
static int
descriptors(const struct launch *l, int guest, int *status, struct err *err)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int high[4] = { -1, -1, -1, -1 };
    const int from[4] = { null, l->transport, guest, *status };

    if (null < 0)
        return err_sys(err, errno, "wall.fds", "/dev/null");
    for (size_t i = 0; i < 4; i++) {
        high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, FD_TEMP);
        if (high[i] < 0)
            return err_sys(err, errno, "wall.fds", "duplicate");
    }
    for (int fd = 0; fd < 3; fd++)
        if (dup2(high[0], fd) < 0)
            return err_sys(err, errno, "wall.fds", "standard descriptors");
    if (dup2(high[1], 3) < 0 || dup3(high[2], FD_GUEST, O_CLOEXEC) < 0 || dup3(high[3], FD_STATUS, O_CLOEXEC) < 0)
        return err_sys(err, errno, "wall.fds", "guest's descriptors");
    *status = FD_STATUS;
    if (io_close_from(FD_STATUS + 1) < 0)
        return err_sys(err, errno, "wall.fds", "close_range");
    return fcntl(high[0], F_GETFD) < 0
               ? 0 : err_not_done(err, "wall.fds", "descriptors are still there after close_range");
}

static int
landlock(const struct native_plan *plan, struct err *err)
{
    cleanup_free struct landlock_rule *rules = calloc(plan->n_rules, sizeof(*rules));
    struct landlock_plan l = plan->landlock;

    if (rules == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");

    if (plan->landlock_support.abi == 0)
        return 0;       /* plan_make has refused, or decided that the other walls hold */
    for (size_t i = 0; i < plan->n_rules; i++) {
        const struct plan_tree *tree = plan->rules[i].tree;
        rules[i] = (struct landlock_rule){ .fd = -1, .path = plan->rules[i].path, .access = plan->rules[i].access,
                                           .optional = plan->rules[i].optional };
        if (tree != NULL) {
            rules[i].check_identity = true;
            rules[i].dev = tree->dev;
            rules[i].ino = tree->ino;
        }
    }
    l.rules = rules;
    l.n_rules = plan->n_rules;
    return landlock_restrict(&l, &plan->landlock_support, err);
}

/* Light mode: nobody but the caller; as root another user of the host, who owns the workspace or nothing. The working
 * directory is entered first, since that user may not be able to reach it by path. */
static int
light_user(const struct native_plan *plan, struct err *err)
{
    const struct ns_ids host = { plan->ids.outside_uid, plan->ids.outside_gid, 0, 0, plan->ids.deny_setgroups };

    /* who has another real or saved uid beside the effective one could become that one again */
    if (!plan->privileged)
        return ns_is(&host) ? 0 : ns_become(&host, err);
    if (chdir(plan->workdir) < 0)
        return err_sys(err, errno, "wall.workdir", "working directory %s", plan->workdir);
    if (ns_become(&host, err) < 0)
        return -1;
    return caps_raise(err);
}

/* The network namespace is not made with the others, by clone: it alone costs half of that, and the root file system
 * is built meanwhile. Until then the child is in the host's network, and runs nothing but this file. */
struct surroundings {
    const struct native_plan *plan;
    int disk;           /* root_enter() */
    int ns;
    int listeners[CAPTURE_LISTENERS];
};

static int
network(void *ctx, struct err *err)
{
    struct surroundings *net = ctx;

    net->ns = ns_network(err);
    if (net->ns < 0)
        return -1;
    return net->plan->capture
               ? capture_open(net->plan->ports, net->plan->n_ports, CAPTURE_FIRST, net->listeners, err) : 0;
}

_Static_assert(CAPTURE_PORTS_MAX == POLICY_TCP_PORTS_MAX && CAPTURE_LISTENERS <= GO_FDS_MAX, "room for every port");

/* The listeners to the parent; none of them stays here. */
static int
hand_out(int go, int listeners[CAPTURE_LISTENERS], size_t n_ports, struct err *err)
{
    int r = launch_say(go, GO_LISTENERS, listeners, CAPTURE_PORT + n_ports, err);

    for (size_t i = 0; i < CAPTURE_LISTENERS; i++)
        close_fd(&listeners[i]);
    return r;
}

/* What its memory is watched by. Where the socket cannot be had the parent says what follows from that. */
static int
hand_out_memory(const struct launch *l, int *disk, struct err *err)
{
    cleanup_close int sockets = l->plan->own_net && l->plan->tell_memory ? sockmem_open(NULL) : -1;
    cleanup_close int tmpfs = take_fd(disk);
    const int fds[] = { tmpfs, sockets };

    return l->plan->tell_memory ? launch_say(l->go, GO_MEMORY, fds, sockets >= 0 ? 2 : 1, err) : 0;
}

/* The sandbox's own copies of files, which the parent reads when it is gone; none of them stays here. */
static int
hand_out_own(const struct launch *l, struct err *err)
{
    int fds[PLAN_OWN_MAX], r;

    if (l->plan->n_own == 0)
        return 0;
    for (size_t i = 0; i < l->plan->n_own; i++)
        fds[i] = l->plan->own[i].fd;
    r = launch_say(l->go, GO_OWN, fds, l->plan->n_own, err);
    for (size_t i = 0; i < l->plan->n_own; i++)
        close_fd(&l->plan->own[i].fd);
    return r;
}

/* What the parent has of the root file system. */
static int
hand_out_root(const struct launch *l, int *disk, struct err *err)
{
    return hand_out_memory(l, disk, err) < 0 || hand_out_own(l, err) < 0 ? -1 : 0;
}

static int
root_file_system(void *ctx, struct err *err)
{
    struct surroundings *s = ctx;

    return root_enter(&s->plan->root, &s->disk, err);
}

int
launch_surroundings(const struct launch *l, struct err *err)
{
    const struct native_plan *plan = l->plan;
    struct surroundings net = { .plan = plan, .disk = -1, .ns = -1 };

    if (!plan->own_net || plan->net_is_there)
        return root_file_system(&net, err) < 0 ? -1 : hand_out_root(l, &net.disk, err);
    if (aside_run(root_file_system, &net, network, &net, err) < 0)
        return -1;
    if (ns_enter_network(net.ns, err) < 0)
        return -1;
    close_fd(&net.ns);
    if (hand_out_root(l, &net.disk, err) < 0)
        return -1;
    return plan->capture ? hand_out(l->go, net.listeners, plan->n_ports, err) : 0;
}

/* What is made belongs to the sandbox's user. Everything else stays root's. */
int
launch_as_user(const struct launch *l, int (*job)(const struct launch *l, struct err *err), struct err *err)
{
    const struct native_plan *plan = l->plan;
    int r;

    /* runsc gives what it starts other ids, and leaves it the caller's groups */
    if (setgroups(0, NULL) < 0)
        return err_sys(err, errno, "wall.user", "setgroups");
    setfsgid(plan->ids.outside_gid);
    setfsuid(plan->ids.outside_uid);
    if (setfsuid(plan->ids.outside_uid) != (int)plan->ids.outside_uid ||
        setfsgid(plan->ids.outside_gid) != (int)plan->ids.outside_gid)
        return err_set(err, ERR_SYSTEM, "wall.user", "this process cannot make files as uid %u", plan->ids.outside_uid);
    if (caps_raise(err) < 0)
        return -1;
    r = job(l, err);
    setfsuid(0);
    setfsgid(0);
    /* a change of uid forgets it (prctl(2)); who died meanwhile is missed by launch_meet_parent() */
    if (r == 0 && (caps_raise(err) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0))
        return err_sys(err, errno, "wall.pdeathsig", "PR_SET_PDEATHSIG");
    return r;
}

static int
namespaces(const struct launch *l, struct err *err)
{
    const struct native_plan *plan = l->plan;
    struct utsname now;

    /* a uid change drops capabilities unless told otherwise */
    prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
    if (plan->light)
        return light_user(plan, err);
    if (ns_become(&plan->ids, err) < 0)
        return -1;
    /* a change of uid forgets it (prctl(2)) */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return err_sys(err, errno, "wall.pdeathsig", "PR_SET_PDEATHSIG");
    if (sethostname(plan->hostname, strlen(plan->hostname)) < 0) {
        err_sys(err, errno, "wall.uts", "host name");
        return err_hint(err, "a filter around this process refuses it, as Podman's does: start the container with "
                        "--security-opt seccomp=unconfined --security-opt unmask=ALL, or use --mode light");
    }
    if (uname(&now) < 0 || strncmp(now.nodename, plan->hostname, sizeof(now.nodename)) != 0)
        return err_not_done(err, "wall.uts", "the host name is not what it was set to");
    return launch_surroundings(l, err);
}

void
launch_child(const struct launch *l)
{
    char name[] = "cloche-guest";
    char *const argv[] = { name, NULL };
    char *const none_named[] = { NULL };
    char *const *env = l->plan->root_names != NULL ? l->plan->root_names : none_named;  /* guest/own_domain.h */
    struct err err = ERR_INIT;
    int status = l->status, guest;
    sigset_t none;

    prctl(PR_SET_NAME, name);       /* what it does from here on is not its maker's doing */
    /* while /proc is the host's: the kernel keeps it for the next execve, which is the guest's */
    if (label_next_exec(l->plan->labels, &err) < 0)
        launch_give_up(status, &err);
    if (launch_first_steps(l, &err) < 0 || namespaces(l, &err) < 0 || (guest = launch_meet_parent(l, &err)) < 0 ||
        fill_places(l->plan, &err) < 0 || descriptors(l, guest, &status, &err) < 0)
        launch_give_up(status, &err);
    if (!(l->plan->light && l->plan->privileged) && chdir(l->plan->workdir) < 0) {
        err_sys(&err, errno, "wall.workdir", "working directory %s", l->plan->workdir);
        err_hint(&err, "--workdir must name a folder that exists inside the sandbox");
        launch_give_up(status, &err);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (setsid() < 0 || getsid(0) != getpid()) {
        err_sys(&err, errno, "wall.session", "setsid");
        launch_give_up(status, &err);
    }
    if (rlimit_apply(&l->rlimits, &err) < 0 || caps_drop_all(&err) < 0 || landlock(l->plan, &err) < 0 ||
        seccomp_install(&l->plan->seccomp, &err) < 0)
        launch_give_up(status, &err);
    syscall(SYS_execveat, FD_GUEST, "", argv, env, AT_EMPTY_PATH);
    if (errno == ENOSYS || errno == EPERM)      /* hidden by an outer filter: /proc is the sandbox's own here */
        execve(FD_GUEST_PATH, argv, env);
    err_sys(&err, errno, "wall.guest", "start the guest");
    launch_give_up(status, &err);
}

int
launch_guest_image(struct err *err)
{
    int fd = memfile_sealed("cloche-guest", true, guest_image, guest_image_size), why = errno;

    if (fd >= 0)
        return fd;
    err_sys(err, why, "wall.guest.memfd", "the guest's memory file");
    return err_hint(err, why == EACCES  ? "vm.memfd_noexec=2 forbids executable memory files; set it to 1 or 0"
                         : why == EBUSY ? "the machine was too busy to seal it; try again"
                                        : "the guest runs from a sealed memory file, which needs Linux 3.17 and no "
                                          "outer filter that hides memfd_create");
}
