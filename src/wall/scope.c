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
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "wall/cgroup.h"

#define BUSCTL     "/usr/bin/busctl"
#define WAIT_STEPS 400          /* of 5 ms */
#define WORDS_MAX  40

bool
scope_available(void)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char bus[256];
    struct statfs fs;
    struct stat st;

    if (geteuid() == 0 || runtime == NULL || runtime[0] != '/')
        return false;
    if (statfs("/sys/fs/cgroup", &fs) < 0 || (long)fs.f_type != CGROUP2_SUPER_MAGIC)
        return false;
    snprintf(bus, sizeof(bus), "%s/bus", runtime);
    return stat(bus, &st) == 0 && S_ISSOCK(st.st_mode) && access(BUSCTL, X_OK) == 0;
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
build(struct call *c, pid_t pid, const char *unit, const struct cgroup_limits *limits)
{
    static const char *const head[] = {
        BUSCTL, "--user", "--quiet", "call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
        "org.freedesktop.systemd1.Manager", "StartTransientUnit", "ssa(sv)a(sa(sv))",
    };
    size_t count_at;

    for (size_t i = 0; i < sizeof(head) / sizeof(head[0]); i++)
        word(c, head[i]);
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
    posix_spawn_file_actions_t actions;
    int status, failed;
    pid_t pid;

    posix_spawn_file_actions_init(&actions);
    for (int fd = 0; fd < 3; fd++)
        posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
    failed = posix_spawn(&pid, BUSCTL, &actions, NULL, c->words, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0)
        return err_sys(err, failed, "wall.scope", BUSCTL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return err_set(err, ERR_UNSUPPORTED, "wall.scope", "systemd's user manager refused a scope for the sandbox");
    return 0;
}

/* The unit exists at once; the process is moved when systemd comes to it. */
static int
wait_moved(pid_t pid, const char *unit, char *path, size_t size, struct err *err)
{
    const struct timespec step = { 0, 5 * 1000 * 1000 };
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
        nanosleep(&step, NULL);
    }
    return err_set(err, ERR_UNSUPPORTED, "wall.scope", "systemd did not move the sandbox into %s", unit);
}

int
scope_start(pid_t pid, const char *id, const struct cgroup_limits *limits, char *path, size_t size, struct err *err)
{
    struct call c = { .n = 0 };
    char unit[96];

    snprintf(unit, sizeof(unit), "cloche-%s.scope", id);
    build(&c, pid, unit, limits);
    if (ask(&c, err) < 0)
        return -1;
    return wait_moved(pid, unit, path, size, err);
}
