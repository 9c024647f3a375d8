/* engine/docker/container.c: the container: asked for, started, looked at, removed
 *
 * What was asked for is looked at before anything of the sandbox runs in it: a daemon may have settings that change it
 * (users mapped, defaults), and who believed it would promise walls that are not there.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/kernel.h"
#include "engine/docker/docker.h"

#define GUEST_ATTEMPTS 600      /* of 100 ms, for the guest to come */
#define SHM          (64L * 1024 * 1024)
#define PODMAN_PIDS  32768
#define PODMAN_FILES 1048576

/* Podman gives limits of its own where none are said, which a root without CAP_SYS_RESOURCE cannot give: what everybody
 * has. The guest is told its own later (guest/handed.h). */
static json_t *
ulimits(const struct cgroup_limits *limits)
{
    json_int_t pids = limits->pids > 0 && limits->pids < PODMAN_PIDS ? (json_int_t)limits->pids : PODMAN_PIDS;
    struct rlimit now = { .rlim_max = PODMAN_FILES };
    json_int_t files;

    (void)kernel_prlimit(RLIMIT_NOFILE, NULL, &now);
    files = now.rlim_max < PODMAN_FILES ? (json_int_t)now.rlim_max : PODMAN_FILES;
    return json_pack("[{s:s, s:I, s:I}, {s:s, s:I, s:I}]", "Name", "nofile", "Soft", files, "Hard", files, "Name",
                     "nproc", "Soft", pids, "Hard", pids);
}

static json_t *
host_config(const struct docker *sb, const struct cgroup_limits *limits)
{
    json_t *o = json_object();
    char source[128];

    snprintf(source, sizeof(source), DOCKER_RUN "/%s", sb->native.id);
    json_object_set_new(o, "Mounts", json_pack("[{s:s, s:s, s:s, s:b, s:{s:s}}]", "Type", "bind", "Source", source,
                                               "Target", DOCKER_INSIDE, "ReadOnly", 1, "BindOptions", "Propagation",
                                               "rprivate"));
    json_object_set_new(o, "NetworkMode", json_string("none"));
    json_object_set_new(o, "AutoRemove", json_true());
    json_object_set_new(o, "ReadonlyRootfs", json_true());
    json_object_set_new(o, "Privileged", json_false());
    json_object_set_new(o, "CapDrop", json_pack("[s]", "ALL"));
    /* the daemon's own list refuses what the name guard needs (pidfd_getfd); ours is shorter, and the guest, which is
     * all that runs until then, sets it before it hears anything */
    json_object_set_new(o, "SecurityOpt", json_pack("[s, s]", "no-new-privileges", "seccomp=unconfined"));
    json_object_set_new(o, "IpcMode", json_string("private"));
    json_object_set_new(o, "CgroupnsMode", json_string("private"));
    json_object_set_new(o, "RestartPolicy", json_pack("{s:s}", "Name", "no"));
    json_object_set_new(o, "LogConfig", json_pack("{s:s}", "Type", "none"));
    json_object_set_new(o, "ShmSize", json_integer(SHM));
    if (sb->daemon.is_podman)
        json_object_set_new(o, "Ulimits", ulimits(limits));
    if (limits->memory > 0) {
        json_object_set_new(o, "Memory", json_integer((json_int_t)limits->memory));
        json_object_set_new(o, "MemorySwap", json_integer((json_int_t)limits->memory));
    }
    if (limits->cpu_milli > 0)
        json_object_set_new(o, "NanoCpus", json_integer((json_int_t)limits->cpu_milli * 1000000));
    if (limits->pids > 0)
        json_object_set_new(o, "PidsLimit", json_integer((json_int_t)limits->pids));
    return o;
}

static json_t *
request(const struct docker *sb, const struct cgroup_limits *limits)
{
    const struct native_plan *plan = &sb->native.plan;
    char user[32], owner[DOCKER_OWNER_MAX];
    json_t *o = json_object();

    docker_owner(owner);
    snprintf(user, sizeof(user), "%u:%u", plan->ids.outside_uid, plan->ids.outside_gid);
    json_object_set_new(o, "Image", json_string(DOCKER_EMPTY));
    json_object_set_new(o, "Entrypoint", json_pack("[s]", DOCKER_INSIDE "/" DOCKER_GUEST));
    json_object_set_new(o, "Cmd", json_pack("[s, s, s]", DOCKER_INSIDE "/" DOCKER_FILTER, "/",
                                            DOCKER_INSIDE "/" DOCKER_SOCKET));
    json_object_set_new(o, "User", json_string(user));
    json_object_set_new(o, "Hostname", json_string(plan->hostname));
    json_object_set_new(o, "WorkingDir", json_string("/"));
    json_object_set_new(o, "Healthcheck", json_pack("{s:[s]}", "Test", "NONE"));
    json_object_set_new(o, "Labels", json_pack("{s:s, s:s}", "dev.cloche.sandbox", sb->native.id, "dev.cloche.owner",
                                               owner));
    json_object_set_new(o, "HostConfig", host_config(sb, limits));
    return o;
}

static int
make(struct docker *sb, const struct cgroup_limits *limits, struct err *err)
{
    json_t *body = request(sb, limits), *said = NULL;
    char path[256];
    unsigned status;
    int r;

    snprintf(path, sizeof(path), "/containers/create?name=%s", sb->name);
    sb->made = true;
    r = docker_ask(&sb->daemon, &(struct docker_ask){ .method = "POST", .path = path, .body = body }, &status, &said,
                   err);
    if (r == 0 && status != 201)
        r = docker_refused(&sb->daemon, status, said, "docker.create", "a container", err);
    json_decref(said);
    json_decref(body);
    return r;
}

static int
start(const struct docker *sb, struct err *err)
{
    char path[256];
    json_t *said = NULL;
    unsigned status;
    int r;

    snprintf(path, sizeof(path), "/containers/%s/start", sb->name);
    r = docker_ask(&sb->daemon, &(struct docker_ask){ .method = "POST", .path = path }, &status, &said, err);
    if (r == 0 && status != 204 && status != 304)
        r = docker_refused(&sb->daemon, status, said, "docker.start", "start the container", err);
    json_decref(said);
    return r;
}

/* The number of its process 1, as this host counts; 0: it runs no more. */
static int
number(struct docker *sb, struct err *err)
{
    char path[256];
    json_t *said = NULL;
    unsigned status;
    json_int_t pid;

    snprintf(path, sizeof(path), "/containers/%s/json", sb->name);
    if (docker_ask(&sb->daemon, &(struct docker_ask){ .method = "GET", .path = path }, &status, &said, err) < 0)
        return -1;
    pid = json_integer_value(json_object_get(json_object_get(said, "State"), "Pid"));
    json_decref(said);
    if (status != 200 || pid <= 0 || pid > INT32_MAX)
        return err_set(err, ERR_SYSTEM, "docker.gone", "the container ended before the guest in it had started");
    sb->pid = (pid_t)pid;
    return 0;
}

/* The guest comes; nobody else in the container could, and nobody else may. */
static int
meet(struct docker *sb, struct err *err)
{
    struct pollfd p = { .fd = sb->listener, .events = POLLIN };
    struct ucred who;
    socklen_t n = sizeof(who);
    int came = 0;

    for (int i = 0; i < GUEST_ATTEMPTS && came == 0; i++) {
        came = poll(&p, 1, 100);
        if (came == 0 && i % 10 == 9 && number(sb, err) < 0)
            return -1;
    }
    sb->hand = came > 0 ? accept4(sb->listener, NULL, NULL, SOCK_CLOEXEC) : -1;
    close_fd(&sb->listener);
    if (sb->hand < 0)
        return err_set(err, ERR_SYSTEM, "docker.guest", "the guest in the container does not come");
    if (number(sb, err) < 0)
        return -1;
    if (getsockopt(sb->hand, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0 || who.pid != sb->pid ||
        who.uid != sb->native.plan.ids.outside_uid) {
        err_set(err, ERR_UNSUPPORTED, "docker.users", "process %d of user %u came from the container; process %d of "
                "user %u is its first one", (int)who.pid, who.uid, (int)sb->pid, sb->native.plan.ids.outside_uid);
        return err_hint(err, "a daemon that maps users (userns-remap), or runs in another pid namespace, is not for "
                             "this engine in this release");
    }
    sb->guest = (int)syscall(SYS_pidfd_open, sb->pid, 0);
    if (sb->guest < 0)
        return err_sys(err, errno, "docker.guest", "pidfd_open");
    /* its end of the socket is open: it lives, and the number was its own */
    p = (struct pollfd){ .fd = sb->hand, .events = POLLIN };
    return poll(&p, 1, 0) == 0 ? 0 : err_set(err, ERR_SYSTEM, "docker.gone", "the guest in the container has ended");
}

/* "KEY:\tVALUE\n" in what the kernel says of a process. */
static bool
has_line(const char *text, const char *key, const char *value)
{
    char want[64];
    const char *at;

    snprintf(want, sizeof(want), "\n%s:\t%s", key, value);
    at = strstr(text, want);
    return at != NULL && (at[strlen(want)] == '\n' || at[strlen(want)] == '\t');
}

static bool
shares(const struct docker *sb, const char *name)
{
    char path[64], own[64], its[64];
    ssize_t n, m;

    snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
    n = readlink(path, own, sizeof(own));
    snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)sb->pid, name);
    m = readlink(path, its, sizeof(its));
    return n <= 0 || m <= 0 || (n == m && memcmp(own, its, (size_t)n) == 0);
}

/* The namespace that it has not of its own, or NULL. */
static const char *
lacks_namespace(struct docker *sb)
{
    static const char *const names[] = { "mnt", "pid", "net", "ipc", "uts", "cgroup" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (!shares(sb, names[i]))
            continue;
        if (!sb->daemon.is_podman || strcmp(names[i], "cgroup") != 0)
            return names[i];
        plan_warn(&sb->native.plan, "Podman gives the sandbox no cgroup namespace here: it can read the path of its "
                  "cgroup");
    }
    return NULL;
}

/* What holds whatever runs in it, as the kernel has it and not as the daemon says. */
static int
look(struct docker *sb, struct err *err)
{
    static const char *const none[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };
    cleanup_buf struct buf text = BUF_INIT(65536);
    char path[64], id[16];
    const char *lacks = lacks_namespace(sb), *status;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)sb->pid);
    if (io_read_file(AT_FDCWD, path, &text) < 0 || buf_nul(&text) < 0)
        return err_sys(err, errno, "docker.wall", "%s", path);
    status = (const char *)text.p;
    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        if (!has_line(status, none[i], "0000000000000000"))
            lacks = none[i];
    snprintf(id, sizeof(id), "%u", sb->native.plan.ids.outside_uid);
    if (!has_line(status, "Uid", id))
        lacks = "Uid";
    if (!has_line(status, "NoNewPrivs", "1"))
        lacks = "NoNewPrivs";
    return lacks == NULL ? 0 : err_set(err, ERR_UNSUPPORTED, "docker.wall",
                                       "the container is not as it was asked for: %s", lacks);
}

int
docker_container(struct docker *sb, const struct cgroup_limits *limits, struct err *err)
{
    if (docker_folder_make(sb, err) < 0 || make(sb, limits, err) < 0 || start(sb, err) < 0 || meet(sb, err) < 0 ||
        look(sb, err) < 0)
        return -1;
    cgroup_adopt(&sb->native.cgroup, sb->pid, limits);
    return 0;
}

int
docker_remove(const struct docker_daemon *d, const char *name)
{
    char path[256];
    unsigned status;

    snprintf(path, sizeof(path), "/containers/%s?force=true&v=true", name);
    if (docker_ask(d, &(struct docker_ask){ .method = "DELETE", .path = path }, &status, NULL, NULL) < 0)
        return -1;
    return status == 404;       /* 204 is asked once more; 409: it is on its way out */
}
