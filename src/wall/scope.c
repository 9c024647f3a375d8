/* wall/scope.c: see scope.h */
#include "wall/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "wall/cgroup.h"

#define BUSCTL     "/usr/bin/busctl"
#define WAIT_STEPS 400          /* of 5 ms */
#define WORDS_MAX  40
#define STOP_TRIES 10           /* every 200 ms */

/* Who listens there, as a pid of ours; 0 when that is nobody, or one outside our pid namespace. */
static pid_t
listener(const char *path)
{
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    struct ucred peer;
    socklen_t n = sizeof(peer);

    if ((size_t)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path) >= sizeof(addr.sun_path))
        return 0;
    if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
        return 0;
    return peer.pid;
}

bool
scope_available(void)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char bus[256];
    struct statfs fs;

    if (geteuid() == 0 || runtime == NULL || runtime[0] != '/')
        return false;
    if (statfs("/sys/fs/cgroup", &fs) < 0 || (long)fs.f_type != CGROUP2_SUPER_MAGIC)
        return false;
    snprintf(bus, sizeof(bus), "%s/bus", runtime);
    return access(BUSCTL, X_OK) == 0 && listener(bus) > 0;
}

bool
scope_holds_memory(void)
{
    cleanup_buf struct buf text = BUF_INIT(4096);
    char path[160];

    snprintf(path, sizeof(path), "/sys/fs/cgroup/user.slice/user-%u.slice/user@%u.service/cgroup.controllers",
             (unsigned)geteuid(), (unsigned)geteuid());
    return io_read_file(AT_FDCWD, path, &text) == 0 && buf_nul(&text) == 0 && strstr((char *)text.p, "memory") != NULL;
}

/* The words of the call; numbers are written into @text. */
struct call {
    char *words[WORDS_MAX];
    size_t n, properties;
    char text[8][64];
    size_t n_text;
};

static void
word(struct call *c, const char *w)
{
    /* posix_spawn takes words that it never changes */
    if (c->n + 1 < WORDS_MAX)
        c->words[c->n++] = (char *)(uintptr_t)w;
    c->words[c->n] = NULL;
}

static const char *
number(struct call *c, uint64_t v)
{
    char *t = c->text[c->n_text++ % 8];

    snprintf(t, sizeof(c->text[0]), "%" PRIu64, v);
    return t;
}

static void
property(struct call *c, const char *name, const char *type, const char *value)
{
    word(c, name);
    word(c, type);
    word(c, value);
    c->properties++;
}

static void
call(struct call *c, const char *method, const char *signature)
{
    static const char *const head[] = {
        BUSCTL, "--user", "--quiet", "call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
        "org.freedesktop.systemd1.Manager",
    };

    for (size_t i = 0; i < ARRAY_LEN(head); i++)
        word(c, head[i]);
    word(c, method);
    word(c, signature);
}

static void
build(struct call *c, pid_t pid, const char *unit, const struct cgroup_limits *limits)
{
    size_t count_at;

    call(c, "StartTransientUnit", "ssa(sv)a(sa(sv))");
    word(c, unit);
    word(c, "fail");
    count_at = c->n;
    word(c, "");
    word(c, "PIDs");
    word(c, "au");
    word(c, "1");
    word(c, number(c, (uint64_t)pid));
    c->properties++;
    property(c, "CollectMode", "s", "inactive-or-failed");
    if (limits->memory > 0) {
        property(c, "MemoryMax", "t", number(c, limits->memory));
        property(c, "MemorySwapMax", "t", "0");
    }
    if (limits->pids > 0)
        property(c, "TasksMax", "t", number(c, limits->pids));
    if (limits->cpu_milli > 0)
        property(c, "CPUQuotaPerSecUSec", "t", number(c, limits->cpu_milli * 1000));
    c->words[count_at] = (char *)(uintptr_t)number(c, c->properties);
    word(c, "0");
}

static int
ask(struct call *c, struct err *err)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char bus[300];
    char *env[] = { bus, NULL };
    posix_spawn_file_actions_t actions;
    int status, failed;
    pid_t pid;

    /* nothing else of the environment: DBUS_SESSION_BUS_ADDRESS may name a bus without systemd */
    snprintf(bus, sizeof(bus), "XDG_RUNTIME_DIR=%s", runtime != NULL ? runtime : "");
    posix_spawn_file_actions_init(&actions);
    for (int fd = 0; fd < 3; fd++)
        posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
    failed = posix_spawn(&pid, BUSCTL, &actions, NULL, c->words, env);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0)
        return err_sys(err, failed, "wall.scope", BUSCTL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    err_set(err, ERR_UNSUPPORTED, "wall.scope", "systemd's user manager refused a scope for the sandbox");
    return err_hint(err, "see whether systemd-run --user --scope true works; without XDG_RUNTIME_DIR it is not asked");
}

/* The unit exists at once; the process is moved when systemd comes to it. */
static int
wait_moved(pid_t pid, const char *unit, char *path, size_t size, struct err *err)
{
    const struct timespec step = { 0, 5 * 1000 * 1000 };
    siginfo_t info = { .si_pid = 0 };
    char file[64];

    snprintf(file, sizeof(file), "/proc/%d/cgroup", (int)pid);
    for (int i = 0; i < WAIT_STEPS; i++) {
        cleanup_buf struct buf text = BUF_INIT(16384);
        char *line, *end;
        if (io_read_file(AT_FDCWD, file, &text) < 0 || buf_nul(&text) < 0)
            return err_sys(err, errno, "wall.scope", "%s", file);
        line = strstr((char *)text.p, "0::");
        end = line != NULL ? strchr(line, '\n') : NULL;
        if (end != NULL)
            *end = '\0';
        if (end != NULL && strstr(line, unit) != NULL)
            return (size_t)snprintf(path, size, "/sys/fs/cgroup%s", line + 3) < size
                       ? 0 : err_set(err, ERR_LIMIT, "wall.scope", "the scope's path is too long");
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid)
            return err_set(err, ERR_SYSTEM, "wall.scope", "the sandbox ended before systemd moved it");
        nanosleep(&step, NULL);
    }
    return err_set(err, ERR_UNSUPPORTED, "wall.scope", "systemd did not move the sandbox into %s", unit);
}

int
scope_start(pid_t pid, const char *unit, const struct cgroup_limits *limits, char *path, size_t size, struct err *err)
{
    struct call c = { .n = 0 };

    build(&c, pid, unit, limits);
    if (ask(&c, err) < 0)
        return -1;
    if (wait_moved(pid, unit, path, size, err) == 0)
        return 0;
    scope_stop(unit);
    return -1;
}

void
scope_stop(const char *unit)
{
    const struct timespec step = { 0, 200 * 1000 * 1000 };
    struct call c = { .n = 0 };

    call(&c, "StopUnit", "ss");
    word(&c, unit);
    word(&c, "replace");
    for (int i = 0; i < STOP_TRIES && ask(&c, NULL) < 0; i++)
        nanosleep(&step, NULL);
}
