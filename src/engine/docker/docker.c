/* engine/docker/docker.c: the docker engine: a daemon's container around a tree of ours (see docker.h) */
#include "engine/docker/docker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "engine/native/built_on.h"

#define PATIENCE_MS 10000       /* for processes that were killed */
#define ATTEMPTS    500         /* of 20 ms, for the daemon to remove a container that has ended */

/* What a daemon leaves as it is, and why that is no hole. The names are those of `prove`. Podman's are the first two
 * more. */
static const struct sandbox_differs differs[] = {
    { "posture.namespace.cgroup", "cgroup:*", "Podman gives a container none on cgroup v1: the path of its cgroup can "
                                              "be read inside" },
    { "outside.neighbour.namespaces", "cgroup", "Podman gives a container none on cgroup v1" },
    { "posture.identity.map", "0 0 4294967295", "a daemon gives a container no user namespace; its user owns nothing "
                                                "on the host, and has no capability" },
    { "posture.namespace.user", "user:*", "a daemon gives a container none; making one inside is refused" },
    { "outside.neighbour.namespaces", "user", "neither has one of its own" },
    { "outside.groups", "its own group", "a daemon gives a user's group once more as a supplementary one" },
    { "posture.securebits", "0", "a daemon sets none; all capability sets are empty, the bounding set too" },
    { NULL, NULL, NULL },
};
#define PODMANS 2

static const struct built_on words = {
    .name = "docker",
    .network = "does not share the host's network",
    .no_network = "use --allow-domain HOST, or --engine native: its Landlock keeps the host's abstract sockets away",
    .no_root = "run it as root (who may speak to the daemon is root anyway), or use --engine native, which an ordinary "
               "user can",
};

/* --- what native.c asks of it ------------------------------------------------------------------------------------- */

static void
limits(const struct native *native, struct cgroup_limits *out)
{
    (void)native;
    out->pids_counted = false;      /* the daemon's cgroup counts */
}

static int
check(struct native *native, const struct policy *p, struct err *err)
{
    struct docker *sb = (struct docker *)native;
    struct native_plan *plan = &native->plan;

    snprintf(sb->name, sizeof(sb->name), "%s%s", p->container_prefix.p != NULL ? p->container_prefix.p : DOCKER_PREFIX,
             native->id);
    if (built_on_check_plan(&words, plan, err) < 0 || docker_check_socket(&sb->daemon, plan, err) < 0)
        return -1;
    docker_sweep(&sb->daemon);
    return docker_empty_image(&sb->daemon, err);
}

static int
begin(struct native *native, const struct policy *p, const struct cgroup_limits *limits_, struct err *err)
{
    (void)p;
    return docker_container((struct docker *)native, limits_, err);
}

static bool
tidy(struct native *native)
{
    struct docker *sb = (struct docker *)native;

    close_fd(&sb->listener);
    close_fd(&sb->hand);        /* a guest that waits for its transport ends */
    close_fd(&sb->guest);
    if (sb->name[0] == '\0')    /* nothing was made */
        return true;
    /* a janitor that came later is confined too: then the container's own end, which is the guest's, is all */
    if (sb->confined)
        return native->janitor.pid <= 0 && docker_folder_remove(native->id);
    return docker_remove(&sb->daemon, sb->name) > 0 && docker_folder_remove(native->id);
}

static const struct native_way way = {
    .flags = 0,
    .limits = limits,
    .check = check,
    .child = docker_child,
    .begin = begin,
    .tidy = tidy,
};

/* --- operations --------------------------------------------------------------------------------------------------- */

static void
end(struct sandbox *base)
{
    struct docker *sb = docker_of(base);
    struct cgroup_now now;

    if (sb->guest < 0 || sb->native.ending)
        return;
    /* what the cgroup counted goes with it */
    cgroup_read(&sb->native.cgroup, &sb->native.last);
    cgroup_now(&sb->native.cgroup, &now);
    sb->cpu_us = now.cpu_us;
    (void)syscall(SYS_pidfd_send_signal, sb->guest, SIGKILL, NULL, 0);
    native_end(base);
}

/* Process 1 of a pid namespace takes the whole namespace along, and is gone last. */
static void
kill_all(struct sandbox *base)
{
    struct docker *sb = docker_of(base);
    struct pollfd p = { .fd = sb->guest, .events = POLLIN };

    end(base);
    while (sb->guest >= 0 && poll(&p, 1, PATIENCE_MS) < 0 && errno == EINTR)
        continue;
    native_kill(base);
}

static void
destroy(struct sandbox *base)
{
    struct docker *sb = docker_of(base);
    const struct timespec pause = { 0, 20 * 1000 * 1000 };

    kill_all(base);
    for (int i = 0; sb->made && !sb->confined && i < ATTEMPTS && docker_remove(&sb->daemon, sb->name) == 0; i++)
        nanosleep(&pause, NULL);
    native_destroy(base);
}

static int
build(struct docker *sb, const struct policy *p, const char *id, struct err *err)
{
    native_init(&sb->native, id);
    sb->listener = sb->hand = sb->guest = -1;
    sb->pid = -1;
    sb->native.way = &way;
    sb->native.plan.by_runtime = sb->native.plan.same_ids = true;
    if (built_on_check(&words, p, err) == 0 && docker_find(&sb->daemon, err) == 0)
        return native_build(&sb->native, p, err);
    native_destroy(&sb->native.base);
    return -1;
}

static int
create(const struct policy *p, const char *id, struct sandbox **out, struct err *err)
{
    struct docker *sb = calloc(1, sizeof(*sb));

    if (sb == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (build(sb, p, id, err) < 0)
        return -1;
    sb->native.base.facts.differs = differs + (sb->daemon.is_podman ? 0 : PODMANS);
    sb->native.base.facts.same_ids = true;
    *out = &sb->native.base;
    return 0;
}

static pid_t
guest(const struct sandbox *base)
{
    return ((const struct docker *)base)->pid;
}

static void
usage(struct sandbox *base, struct sandbox_usage *out)
{
    native_usage(base, out);
    out->cpu_us = docker_of(base)->cpu_us;
}

static void
confined(struct sandbox *base)
{
    docker_of(base)->confined = true;
}

static int
makers(const struct policy *p, struct engine_makers *out, struct err *err)
{
    struct docker_daemon daemon;

    (void)p;
    if (docker_find(&daemon, err) < 0)
        return -1;
    snprintf(out->daemon, sizeof(out->daemon), "%s %s", daemon.name, daemon.version);
    return 0;
}

static int
can(const struct policy *p, const char *runtime, struct err *err)
{
    struct docker_daemon daemon;

    (void)runtime;
    return built_on_check(&words, p, err) < 0 ? -1 : docker_find(&daemon, err);
}

static void
sweep(void)
{
    struct docker_daemon daemon;

    if (docker_left() && docker_find(&daemon, NULL) == 0)
        docker_sweep(&daemon);
}

static int
gone(struct sandbox *base, struct err *err)
{
    (void)base;
    err_set(err, ERR_SYSTEM, "guest.gone", "the container ended before its command did");
    return err_hint(err, "somebody removed it, the daemon was stopped, or the host ran out of memory");
}

const struct engine engine_docker = {
    .name = "docker",
    .containers = true,
    .images = true,
    .can = can,
    .probe = docker_probe,
    .rules = native_rules,
    .makers = makers,
    .left = docker_left,
    .sweep = sweep,
    .create = create,
    .guest = guest,
    .connect = native_connect,
    .setup = native_setup,
    .usage = usage,
    .now = native_now,
    .over_memory = native_over_memory,
    .pause = native_pause,
    .resume = native_resume,
    .confined = confined,
    .tend = native_tend,
    .setup_failed = native_setup_failed,
    .gone = gone,
    .abandon = native_abandon,
    .end = end,
    .kill = kill_all,
    .destroy = destroy,
};
