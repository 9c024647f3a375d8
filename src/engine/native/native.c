/* engine/native/native.c: the native engine: namespaces, mounts, Landlock and seccomp of the running kernel
 *
 * One sandbox is one child process (the guest) and what it starts. Everything that the kernel does not take back by
 * itself when that child dies (cgroup directories) has a janitor (wall/cgroup.h); nothing else outlives it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/str.h"
#include "engine/native/ahead.h"
#include "engine/native/launch.h"
#include "engine/native/native.h"
#include "engine/native/orphans.h"
#include "engine/leavings.h"
#include "engine/native/light_folder.h"
#include "engine/native/plan.h"
#include "wire/msg.h"
#include "wall/caps.h"
#include "wall/cgroup.h"
#include "wall/own_id.h"
#include "wall/proc_outer.h"
#include "wall/sockmem.h"
#include "wire/packet.h"

#define CLONE_WALL (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

/* The kernel counts nothing for uid 0 of the host; a root that cannot give the sandbox another uid is that one. */
bool
native_counts_pids(void)
{
    return geteuid() != 0 || caps_give_identity();
}

/* The kernel counts tmpfs pages as memory of whoever writes them; a disk limit must not become an out-of-memory
 * kill. So the hard limit is memory and disk together, and native_over_memory() watches what is not files. */
void
native_cgroup_limits(const struct policy *p, struct cgroup_limits *out)
{
    out->cpu_milli = p->limits.cpu_milli.v;
    /* the tool presets are wide; where somebody asked for a limit (or runs a stranger's code) it must hold */
    out->ask_systemd = p->verb == VERB_CODE || p->mode.v == MODE_MAX || p->limits.memory.from.kind >= ORIGIN_FILE ||
                       p->limits.cpu_milli.from.kind >= ORIGIN_FILE || p->limits.pids.from.kind >= ORIGIN_FILE;
    /* our guest and a supervisor's exec are tasks too */
    out->pids = p->limits.pids.v > 0 ? p->limits.pids.v + 1 : 0;
    out->pids_counted = p->mode.v != MODE_LIGHT && native_counts_pids();
    out->memory = out->sockets = p->limits.memory.v;
    if (out->memory > 0 && p->mode.v != MODE_LIGHT &&
        __builtin_add_overflow(out->memory, p->limits.disk.v, &out->memory))
        out->memory = 0;
}

static int said_why(struct native *sb, struct err *err);

static int
random_id(char out[33], struct err *err)
{
    unsigned char raw[16];

    if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
        return err_sys(err, errno, "wall.random", "getrandom");
    str_hex(raw, sizeof(raw), out);
    return 0;
}

/* What a policy asks for and this host cannot enforce: refused, unless the policy says to go on. */
static int
check_limits(struct native *sb, const struct policy *p, struct err *err)
{
    bool no_memory = p->limits.memory.v > 0 && !sb->cgroup.memory;
    bool no_cpu = p->limits.cpu_milli.v > 0 && !sb->cgroup.cpu;

    /* without a cgroup: pids by RLIMIT_NPROC (exact), memory by the guest's watchdog (sampled), CPU not at all */
    sb->supervise_memory = no_memory;
    if (p->limits.pids.v > 0 && !sb->cgroup.pids && !sb->plan.light && sb->plan.ids.outside_uid == 0 &&
        own_id_is_hosts_root())
        plan_warn(&sb->plan, "the limit of processes may not hold: the sandbox's user is uid 0 outside, which the "
                  "kernel does not count");
    if (!no_cpu)
        return 0;
    if (p->fallback.v == FALLBACK_REFUSE && p->limits.cpu_milli.from.kind >= ORIGIN_FILE) {
        err_set(err, ERR_UNSUPPORTED, "wall.cpu.unsupported", "a CPU limit needs a cgroup, which is not there: %s",
                sb->cgroup.why_not);
        return err_hint(err, "run inside a delegated cgroup (systemd-run --user --scope -p Delegate=yes cloche ...), "
                        "drop --cpus, or accept --fallback warn");
    }
    plan_warn(&sb->plan, "the CPU limit is not enforced: %s", sb->cgroup.why_not);
    return 0;
}

/* What it is to go into is there before the child is, its cgroup too. */
static bool
made_by_others(const struct native *sb)
{
    return sb->way != NULL && sb->way->begin != NULL;
}

/* While the child builds its root: the cgroup (v1), the guest's image; then let it enter. */
static int
let_in(struct native *sb, const struct policy *p, const struct cgroup_limits *limits, struct err *err)
{
    cleanup_close int guest = -1;
    int fds[GO_FDS_MAX] = { -1, -1, -1, -1 };
    size_t n = 1;

    if (!made_by_others(sb) && sb->cgroup.kind != CGROUP_V2 && cgroup_make(&sb->cgroup, sb->pid, limits, err) < 0) {
        /* systemd refuses to move a child that has given up: then why it did is the reason */
        struct pollfd gone = { .fd = sb->pidfd, .events = POLLIN };
        if (poll(&gone, 1, 0) > 0)
            said_why(sb, err);
        return -1;
    }
    if (check_limits(sb, p, err) < 0)
        return -1;
    native_net_make(sb);
    guest = ahead_image(err);
    if (guest < 0)
        return -1;
    fds[0] = guest;
    for (size_t i = 0; i < CGROUP_HIERARCHIES; i++)
        if (sb->cgroup.tasks[i] >= 0)
            fds[n++] = sb->cgroup.tasks[i];
    if (launch_say(sb->go, GO_ENTER, fds, n, err) == 0)
        return 0;
    (void)said_why(sb, err);     /* the child has given up: its own story is the better one */
    return -1;
}

/* What the child opened inside for egress to accept on. When it failed, its own story is the better one. */
static int
take_listeners(struct native *sb, struct err *err)
{
    int fds[GO_FDS_MAX];
    int n = launch_hear(sb->go, GO_LISTENERS, fds, err);

    if (n < 0)
        return (void)said_why(sb, err), -1;
    for (int i = 0; i < n && i < CAPTURE_LISTENERS; i++)
        sb->listeners[i] = fds[i];
    if ((size_t)n == CAPTURE_PORT + sb->plan.n_ports)
        return 0;
    return err_set(err, ERR_PROTOCOL, "wall.capture", "%d listeners came", n);
}

/* The child's ends of the sandbox's own copies. */
static int
take_own(struct native *sb, struct err *err)
{
    int fds[GO_FDS_MAX], n;

    if (sb->plan.n_own == 0)
        return 0;
    n = launch_hear(sb->go, GO_OWN, fds, err);
    if (n < 0)
        return (void)said_why(sb, err), -1;
    for (int i = 0; i < n && i < PLAN_OWN_MAX; i++) {
        const struct plan_own *own = &sb->plan.own[i];
        const struct str said = { (const char *)sb->plan.said.p + own->said_at, own->said_n };

        sb->own[i] = (struct sandbox_own){ .folder = own->tree->host, .folder_fd = own->tree->fd,
                                           .relative = own->relative, .text = own->text, .n = own->n,
                                           /* cut, it is not read to its end, and git_keep() adds nothing */
                                           .elsewhere = sb->plan.said_cut ? STR_LIT("[") : said,
                                           .copy = fds[i] };
    }
    return (size_t)n == sb->plan.n_own ? 0 : err_set(err, ERR_PROTOCOL, "wall.own", "%d files came", n);
}

/* Somebody asked for it, or runs a stranger's code: it must hold. The tool presets are wide. */
static bool
memory_is_promised(const struct policy *p)
{
    return p->limits.memory.v > 0 &&
           (p->limits.memory.from.kind >= ORIGIN_FILE || p->mode.v == MODE_MAX || p->verb == VERB_CODE);
}

/* What native_over_memory() looks at. Without a cgroup what processes map and the sandbox's own files are the guest's
 * to look at, sockets ours. */
static int
supervise(struct native *sb, const struct policy *p, struct err *err)
{
    struct err why = ERR_INIT;
    int fds[GO_FDS_MAX], n;
    uint64_t held;

    if (sb->plan.tell_memory) {
        n = launch_hear(sb->go, GO_MEMORY, fds, err);
        if (n < 0)
            return (void)said_why(sb, err), -1;
        sb->disk = n > 0 ? fds[0] : -1;
        sb->sockmem = n > 1 ? fds[1] : -1;
        /* best effort; the daemon's sandboxes are many, and nobody waits for their end */
        if (sb->janitor.pid > 0 && n <= JANITOR_HELD_MAX && !sb->named)
            (void)launch_say(sb->janitor.end, GO_MEMORY, fds, (size_t)n, NULL);
        if (n < 2)
            err_set(&why, ERR_UNSUPPORTED, "wall.sockmem", "no socket of that kind can be made");
        else if (sockmem_unix(sb->sockmem, &held, &why) < 0)
            close_fd(&sb->sockmem);
    }
    if (!sb->supervise_memory || !memory_is_promised(p))
        return 0;
    if (sb->sockmem < 0 && sb->plan.own_net && p->fallback.v == FALLBACK_REFUSE) {
        err_set(err, ERR_UNSUPPORTED, "wall.memory.unsupported",
                "a memory limit needs a cgroup, which is not there (%s), or a kernel that tells what sockets hold (%s)",
                sb->cgroup.why_not, why.msg);
        return err_hint(err, "run inside a delegated cgroup (systemd-run --user --scope -p Delegate=yes cloche ...), "
                        "drop --memory, or accept --fallback warn");
    }
    plan_warn(&sb->plan, "the memory limit is watched, not enforced by a cgroup (%.120s): bursts, and programs that "
              "hide what they hold, can pass it%s", sb->cgroup.why_not,
              sb->sockmem < 0 ? ", and buffers of sockets do not count" : "");
    return 0;
}

/* Where that fails the child tries itself, and says why not. */
static int
say_mapped(struct native *sb, struct err *err)
{
    bool makes = !sb->plan.light && caps_give_identity() && proc_is_covered();
    cleanup_close int proc = makes ? proc_from_outside(sb->pidfd, sb->plan.root.proc_subset, sb->plan.root.proc_open,
                                                       NULL) : -1;

    return launch_say(sb->go, GO_MAPPED, &proc, proc >= 0, err);
}

/* Into a network that is there already, where there is one and nothing is to be set up in it that takes its owner. Sets
 * sb->pid, in the child 0. */
static int
clone_child(struct native *sb, uint64_t flags, struct err *err)
{
    cleanup_close int net = sb->plan.own_net && !sb->plan.capture ? ahead_network() : -1;
    cleanup_close int own = net >= 0 ? ns_own_network() : -1;
    int cgroup = made_by_others(sb) ? -1 : sb->cgroup.main >= 0 ? sb->cgroup.main
                 : sb->cgroup.kind == CGROUP_V2 ? sb->cgroup.dirs[0] : -1;

    if (own >= 0 && ns_enter_network(net, err) < 0)
        return -1;
    sb->plan.net_is_there = own >= 0;
    sb->pid = ns_clone(flags, cgroup, &sb->pidfd, err);
    if (sb->pid != 0 && own >= 0 && ns_enter_network(own, err) < 0)
        return -1;
    return sb->pid < 0 ? -1 : 0;
}

static int
start(struct native *sb, const struct policy *p, const struct cgroup_limits *limits, struct err *err)
{
    cleanup_close int go_end = -1, status_write = -1, guest_end = -1;
    struct launch l = { .plan = &sb->plan };
    /* the child makes its network itself (launch.c) */
    uint64_t flags = sb->way != NULL ? sb->way->flags : sb->plan.light ? 0 : CLONE_WALL;
    int go[2], status[2], pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, go) < 0)
        return err_sys(err, errno, "wall.go", "socketpair");
    sb->go = go[0];
    go_end = go[1];
    if (pipe2(status, O_CLOEXEC) < 0)
        return err_sys(err, errno, "wall.pipe", "pipe");
    sb->status = status[0];
    status_write = status[1];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, errno, "wall.transport", "socketpair");
    sb->transport = pair[0];
    guest_end = pair[1];
    l.rlimits = (struct rlimit_plan){ .nofile = p->limits.nofile.v };
    /* exact inside our user namespace; outside one it would count the caller's other processes */
    l.rlimits.nproc = sb->nproc = sb->plan.light || p->limits.pids.v == 0 ? 0 : p->limits.pids.v + 1;
    l.go = go_end;
    l.status = status_write;
    l.transport = guest_end;
    if (sb->plan.light && orphans_begin(&sb->earlier, &sb->n_earlier, err) < 0)
        return -1;
    if (clone_child(sb, flags, err) < 0)
        return -1;
    if (sb->pid == 0) {
        /* the child's copy of the other end must go, or it would wait for itself */
        close(sb->go);
        if (sb->way != NULL)
            sb->way->child(sb, &l);
        launch_child(&l);
    }
    /* ours of its ends too: a child that dies before it says anything is then seen to be gone */
    close_fd(&go_end);
    close_fd(&status_write);
    close_fd(&guest_end);
    if (rlimit_oom_ordinary(sb->pid, err) < 0)
        return -1;
    if (!sb->plan.light && sb->way == NULL && ns_write_maps(sb->pid, &sb->plan.ids, err) < 0)
        return -1;
    if (say_mapped(sb, err) < 0)
        return -1;
    if (let_in(sb, p, limits, err) < 0 || supervise(sb, p, err) < 0 || take_own(sb, err) < 0)
        return -1;
    return sb->plan.capture ? take_listeners(sb, err) : 0;
}

/* Nothing is left of what others made for it. */
static bool
others_tidied(struct native *sb)
{
    return sb->way == NULL || sb->way->tidy == NULL || sb->way->tidy(sb);
}

/* What outlives a sandbox if nobody removes it. */
static bool
tidy(void *ctx)
{
    struct native *sb = ctx;
    bool gone = cgroup_remove(&sb->net_cgroup);

    gone = others_tidied(sb) && gone;
    gone = cgroup_remove(&sb->cgroup) && gone;
    gone = light_folder_remove(&sb->plan, NULL) == 0 && gone;
    if (gone)
        leavings_forget(sb);
    return gone;
}

static bool
needs_janitor(const struct native *sb, bool light)
{
    return made_by_others(sb) || sb->cgroup.kind != CGROUP_NONE || sb->net_cgroup.kind != CGROUP_NONE || light;
}

void
native_tend(struct sandbox *base)
{
    struct native *sb = native_of(base);

    native_commands_tend(sb);
    if (needs_janitor(sb, sb->plan.light))
        (void)janitor_renew(&sb->janitor, tidy, sb);    /* where that fails it is tried again */
}

static int
build(struct native *sb, const struct policy *p, struct err *err)
{
    struct cgroup_limits limits;

    bool named = sb->id[0] != '\0';

    if (!named && random_id(sb->id, err) < 0)
        return -1;
    sb->memory_limit = p->limits.memory.v;
    native_cgroup_limits(p, &limits);
    if (sb->way != NULL)
        sb->way->limits(sb, &limits);
    sb->named = limits.one_by_one = limits.commands = named;    /* it is to outlive its commands */
    if (!made_by_others(sb))
        cgroup_find(&sb->cgroup, sb->id, &limits);
    native_net_find(sb, p);
    if (p->mode.v == MODE_LIGHT && light_folder_plan(&sb->plan, sb->id, err) < 0)
        return -1;
    leavings_note(sb);
    if (plan_make(&sb->plan, p, sb->id, err) < 0)
        return -1;
    if (sb->way != NULL && sb->way->check(sb, p, err) < 0)
        return -1;
    /* before anything that it may have to remove, and just before the child: what is written after the two
     * forks is copied once */
    if (needs_janitor(sb, p->mode.v == MODE_LIGHT) && janitor_start(&sb->janitor, tidy, sb, err) < 0)
        return -1;
    if (sb->plan.light && light_folder_make(&sb->plan, err) < 0)
        return -1;
    if (made_by_others(sb) && sb->way->begin(sb, p, &limits, err) < 0)
        return -1;
    if (!made_by_others(sb) && sb->cgroup.kind == CGROUP_V2 && cgroup_make(&sb->cgroup, -1, &limits, err) < 0)
        return -1;
    sb->plan.root.proc_open = limits.memory > 0 && !cgroup_holds_memory(&sb->cgroup);
    sb->plan.tell_memory = limits.memory > 0 && !sb->plan.light;
    sb->plan.seccomp.no_memfd = sb->plan.root.proc_open && memory_is_promised(p);
    return start(sb, p, &limits, err);
}

void
native_init(struct native *sb, const char *id)
{
    if (id != NULL)
        snprintf(sb->id, sizeof(sb->id), "%s", id);
    sb->pid = -1;
    plan_init(&sb->plan);
    sb->pidfd = sb->go = sb->status = sb->transport = sb->disk = sb->sockmem = -1;
    for (size_t i = 0; i < CAPTURE_LISTENERS; i++)
        sb->listeners[i] = -1;
    for (size_t i = 0; i < PLAN_OWN_MAX; i++)
        sb->own[i].copy = -1;
    sb->cgroup = sb->net_cgroup = (struct cgroup)CGROUP_INIT;
    sb->janitor = (struct janitor)JANITOR_INIT;
}

int
native_build(struct native *sb, const struct policy *p, struct err *err)
{
    if (build(sb, p, err) < 0) {
        sb->abandoned = true;
        native_destroy(&sb->base);
        return -1;
    }
    native_fill_facts(sb);
    return 0;
}

static int
native_create(const struct policy *p, const char *id, struct sandbox **out, struct err *err)
{
    struct native *sb = calloc(1, sizeof(*sb));

    if (sb == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    native_init(sb, id);
    if (native_build(sb, p, err) < 0)
        return -1;
    *out = &sb->base;
    return 0;
}

int
native_connect(struct sandbox *base, int *guest_fd, struct err *err)
{
    (void)err;
    *guest_fd = native_of(base)->transport;
    return 0;
}

/* Why the child gave up: -1 with @err; 0 when it did not. */
static int
said_why(struct native *sb, struct err *err)
{
    struct pollfd p = { .fd = sb->status, .events = POLLIN };

    /* an end without an error: the guest was started; whatever happened since is the guest's story */
    return sb->status >= 0 && poll(&p, 1, 5000) > 0 && packet_hear_err(sb->status, err) == 1 ? -1 : 0;
}

int
native_setup_failed(struct sandbox *base, struct err *err)
{
    return said_why(native_of(base), err);
}

static int
native_gone(struct sandbox *base, struct err *err)
{
    struct native *sb = native_of(base);
    siginfo_t info = { .si_pid = 0 };

    /* left unreaped: native_kill waits for it and counts what it used */
    waitid(P_PID, (id_t)sb->pid, &info, WEXITED | WNOWAIT);
    if (info.si_code == CLD_EXITED && info.si_status == GUEST_EXIT_PROTOCOL)
        return err_set(err, ERR_PROTOCOL, "guest.protocol", "the guest refused what cloche sent it: this is a defect");
    if (info.si_code == CLD_EXITED)
        return err_set(err, ERR_SYSTEM, "guest.gone", "the guest ended with status %d before its command did",
                       info.si_status);
    err_set(err, ERR_SYSTEM, "guest.gone", "the guest was ended by signal %d before its command did", info.si_status);
    return err_hint(err, "something outside killed process 1 of the sandbox, or the host ran out of memory");
}

void
native_abandon(struct sandbox *base)
{
    native_of(base)->abandoned = true;
}

static uint64_t
micros(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

void
native_end(struct sandbox *base)
{
    struct native *sb = native_of(base);

    if (sb->pid <= 0 || sb->ending)
        return;
    sb->ending = true;
    if (sb->cgroup.kind == CGROUP_SCOPE)
        cgroup_read(&sb->cgroup, &sb->last);
    /* process 1 of a pid namespace takes the whole namespace along */
    if (!sb->plan.light)
        kill(sb->pid, SIGKILL);
}

void
native_kill(struct sandbox *base)
{
    struct native *sb = native_of(base);
    struct rusage usage;
    int status;

    if (sb->pid <= 0)
        return;
    native_end(base);
    /* Without a pid namespace the guest ends its descendants when its transport closes, so it is given the time. */
    if (sb->plan.light) {
        struct pollfd p = { .fd = sb->pidfd, .events = POLLIN };
        close_fd(&sb->transport);
        poll(&p, 1, 5000);
        kill(sb->pid, SIGKILL);
    }
    /* returns when the last one is gone */
    while (wait4(sb->pid, &status, 0, &usage) < 0)
        if (errno != EINTR)
            break;
    if (sb->plan.light)
        orphans_kill(sb->earlier, sb->n_earlier, sb->janitor.pid);
    sb->cpu_us = micros(usage.ru_utime) + micros(usage.ru_stime);
    sb->pid = base->facts.pid = -1;
}

void
native_destroy(struct sandbox *base)
{
    struct native *sb = native_of(base);
    bool gone;

    native_kill(base);
    close_fd(&sb->transport);
    close_fd(&sb->pidfd);
    close_fd(&sb->go);
    close_fd(&sb->status);
    close_fd(&sb->disk);
    close_fd(&sb->sockmem);
    for (size_t i = 0; i < CAPTURE_LISTENERS; i++)
        close_fd(&sb->listeners[i]);
    for (size_t i = 0; i < PLAN_OWN_MAX; i++)
        close_fd(&sb->own[i].copy);
    native_commands_free(sb);
    gone = cgroup_destroy(&sb->net_cgroup);
    gone = cgroup_destroy(&sb->cgroup) && gone;
    gone = others_tidied(sb) && gone;
    gone = gone && light_folder_remove(&sb->plan, NULL) == 0;
    if (gone)
        leavings_forget(sb);
    janitor_dismiss(&sb->janitor, gone);
    if (sb->abandoned && sb->plan.cow.id[0] != '\0')
        cow_discard(&sb->plan.cow, NULL);
    plan_free(&sb->plan);
    free(sb->earlier);
    free(sb);
}

const struct engine engine_native = {
    .name = "native",
    .images = true,
    .probe = native_probe,
    .lacks = native_lacks,
    .rules = native_rules,
    .prepare = ahead_make,
    .image = launch_guest_image,
    .have_image = ahead_have_image,
    .create = native_create,
    .connect = native_connect,
    .setup = native_setup,
    .usage = native_usage,
    .now = native_now,
    .over_memory = native_over_memory,
    .alone = native_alone,
    .limits = native_limits,
    .limits_back = native_limits_back,
    .command_begin = native_command_begin,
    .command_sent = native_command_sent,
    .command_look = native_command_look,
    .command_end = native_command_end,
    .pause = native_pause,
    .resume = native_resume,
    .tend = native_tend,
    .setup_failed = native_setup_failed,
    .gone = native_gone,
    .abandon = native_abandon,
    .end = native_end,
    .kill = native_kill,
    .destroy = native_destroy,
};
