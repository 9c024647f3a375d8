/* engine/docker/child.c: who goes into the container, and who waits for its end (see docker.h)
 *
 * Two processes of ours, with root's rights; neither has a connection to the daemon. The first goes into the
 * container's network and mount namespace, and builds there:
 *
 *   1. in the host's view: detached copies of what of the host's the sandbox sees; /proc of its pid namespace
 *   2. in its network: the listeners
 *   3. in its mount namespace, as the sandbox's user as far as files are concerned: the tree (wall/root.h), which takes
 *      the place of the container's root, also for the guest
 *
 * Then the other hands the guest its transport, and lives as long as the guest does.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "engine/docker/docker.h"
#include "guest/handed.h"
#include "wall/capture.h"
#include "wall/mnt.h"
#include "wall/proc_outer.h"

#define EXIT_BROKEN 125

static int
fail(struct err *err, const char *what)
{
    return err_sys(err, errno, "docker.enter", "%s", what);
}

/* As the tree is built inside, where no path is the host's. */
static int
take_along(struct native_plan *plan, struct err *err)
{
    for (size_t i = 0; i < plan->n_items; i++) {
        struct root_item *item = &plan->items[i];
        unsigned flags = (item->writable ? 0 : MNT_RO) | (item->recursive ? MNT_RECURSIVE : 0);
        if (item->op != ROOT_BIND || item->tree >= 0 || (item->optional && access(item->source, F_OK) < 0))
            continue;
        item->tree = mnt_clone(AT_FDCWD, item->source, flags, -1, err);
        if (item->tree < 0)
            return err_wrap(err, "%s", item->source);
    }
    return 0;
}

/* A mount of layers that are named by this host's /proc: made before we go in. */
static int overlay = -1;

static int
have_overlay(void *ctx, struct err *err)
{
    int fd = fcntl(overlay, F_DUPFD_CLOEXEC, 10);

    (void)ctx;
    return fd < 0 ? fail(err, "copy-on-write workspace") : fd;
}

static int
make_overlay(const struct launch *l, struct err *err)
{
    struct root_plan *root = &l->plan->root;

    if (root->overlay_mount == NULL)
        return 0;
    overlay = root->overlay_mount(root->overlay_ctx, err);
    root->overlay_mount = have_overlay;
    return overlay < 0 ? -1 : 0;
}

/* The namespace @name of the guest's; the pidfd says that it is still the guest. */
static int
namespace_of(const struct docker *sb, const char *name, struct err *err)
{
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)sb->pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? fail(err, path) : fd;
}

static int
go_in(const struct docker *sb, struct launch *l, struct err *err)
{
    struct pollfd guest = { .fd = sb->guest, .events = POLLIN };
    struct native_plan *plan = l->plan;
    cleanup_close int net = namespace_of(sb, "net", err), mnt = namespace_of(sb, "mnt", err);
    int listeners[CAPTURE_LISTENERS];

    if (net < 0 || mnt < 0 || poll(&guest, 1, 0) != 0)
        return err_set(err, ERR_SYSTEM, "docker.gone", "the container ended while its sandbox was made");
    plan->root.proc_tree = proc_from_outside(sb->guest, plan->root.proc_subset, plan->root.proc_open, err);
    if (plan->root.proc_tree < 0 || take_along(plan, err) < 0 || launch_as_user(l, make_overlay, err) < 0)
        return -1;
    if (ns_enter_network(net, err) < 0 ||
        (plan->capture && capture_open(plan->ports, plan->n_ports, CAPTURE_FIRST, listeners, err) < 0))
        return -1;
    if (setns(mnt, CLONE_NEWNS) < 0)
        return fail(err, "the container's mount namespace");
    plan->net_is_there = true;
    if (launch_as_user(l, launch_surroundings, err) < 0)
        return -1;
    if (chdir(plan->workdir) < 0) {
        err_sys(err, errno, "wall.workdir", "working directory %s", plan->workdir);
        return err_hint(err, "--workdir must name a folder that exists inside the sandbox");
    }
    return plan->capture ? launch_say(l->go, GO_LISTENERS, listeners, CAPTURE_PORT + plan->n_ports, err) : 0;
}

static _Noreturn void
builder(const struct docker *sb, const struct launch *l)
{
    struct launch own = *l;
    struct err err = ERR_INIT;

    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || go_in(sb, &own, &err) < 0)
        launch_give_up(l->status, &err);
    _exit(0);
}

/* What a daemon starts is not ours to limit without CAP_SYS_RESOURCE: the guest does it. */
static void
fill_limits(struct handed *h, const struct rlimit_plan *limits)
{
    struct rlimit_row rows[RLIMIT_ROWS];
    size_t n = rlimit_rows(limits, rows);

    _Static_assert(RLIMIT_ROWS <= HANDED_LIMITS, "room for each");
    for (size_t i = 0; i < n; i++) {
        h->limits[i].resource = (uint32_t)rows[i].resource;
        h->limits[i].used = 1;
        h->limits[i].most = rows[i].most;
    }
}

/* What the guest waits for, in one message (guest/handed.h). */
static int
hand(const struct docker *sb, const struct launch *l, struct err *err)
{
    union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr align; } control = { { 0 } };
    static struct handed h;
    size_t n = strlen(l->plan->workdir);
    struct iovec iov = { &h, offsetof(struct handed, workdir) + n };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);

    if (n >= sizeof(h.workdir))
        return err_set(err, ERR_LIMIT, "wall.workdir", "the working directory's path is too long");
    fill_limits(&h, &l->rlimits);
    memcpy(h.workdir, l->plan->workdir, n);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &l->transport, sizeof(int));
    return sendmsg(sb->hand, &m, MSG_NOSIGNAL) == (ssize_t)iov.iov_len ? 0 : fail(err, "hand over the transport");
}

/* Nothing but the guest's end is waited for, and nothing else is kept. */
static _Noreturn void
wait_for_guest(int guest)
{
    int low = fcntl(guest, F_DUPFD_CLOEXEC, 3);
    struct pollfd p = { .fd = 3, .events = POLLIN };

    if (low < 0 || dup2(low, 3) < 0 || io_close_from(4) < 0)
        _exit(EXIT_BROKEN);
    while (poll(&p, 1, -1) <= 0)
        continue;
    _exit(0);
}

_Noreturn void
docker_child(const struct native *native, const struct launch *l)
{
    const struct docker *sb = (const struct docker *)native;
    char name[] = "cloche-docker";
    struct err err = ERR_INIT;
    int guest, status;
    pid_t pid;

    prctl(PR_SET_NAME, name);
    if (launch_first_steps(l, &err) < 0)
        launch_give_up(l->status, &err);
    pid = fork();
    if (pid < 0) {
        fail(&err, "fork");
        launch_give_up(l->status, &err);
    }
    if (pid == 0)
        builder(sb, l);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        _exit(EXIT_BROKEN);     /* it has said why */
    if ((guest = launch_meet_parent(l, &err)) < 0 || hand(sb, l, &err) < 0)
        launch_give_up(l->status, &err);
    close(guest);               /* the container has it */
    wait_for_guest(sb->guest);
}
