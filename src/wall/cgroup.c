/* wall/cgroup.c: see cgroup.h */
#include "wall/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/str.h"
#include "wall/scope.h"

enum { H_MEMORY, H_CPU, H_PIDS };

static const char *const v1_controllers[CGROUP_HIERARCHIES] = { "memory", "cpu", "pids" };

/* --- where we are ------------------------------------------------------------------------------------------- */

/* Our own cgroup path in the hierarchy of @controller ("" for v2) from /proc/self/cgroup. */
static bool
own_path(const struct buf *text, const char *controller, char *out, size_t size)
{
    const char *line = (const char *)text->p;
    size_t want = strlen(controller);

    while (line != NULL && *line != '\0') {
        const char *end = strchrnul(line, '\n');
        const char *names = memchr(line, ':', (size_t)(end - line));
        const char *path = names != NULL ? memchr(names + 1, ':', (size_t)(end - names - 1)) : NULL;

        if (path != NULL) {
            struct str list = { names + 1, (size_t)(path - names - 1) };
            size_t n = (size_t)(end - path - 1);
            bool hit = list.n == want && memcmp(list.p, controller, want) == 0;

            /* co-mounted controllers: "cpu,cpuacct" */
            for (size_t i = 0; !hit && want > 0 && i + want <= list.n; i++)
                hit = memcmp(list.p + i, controller, want) == 0 && (i == 0 || list.p[i - 1] == ',') &&
                      (i + want == list.n || list.p[i + want] == ',');
            if (hit && n < size) {
                memcpy(out, path + 1, n);
                out[n] = '\0';
                return true;
            }
        }
        line = *end == '\0' ? NULL : end + 1;
    }
    return false;
}

static bool
is_fs(const char *path, long magic)
{
    struct statfs st;

    return statfs(path, &st) == 0 && (long)st.f_type == magic;
}

/* --- v1 ----------------------------------------------------------------------------------------------------- */

static int
write_number(int dir, const char *file, uint64_t value)
{
    char text[32];

    snprintf(text, sizeof(text), "%" PRIu64, value);
    return io_write_file(dir, file, text);
}

static int
v1_limit(struct cgroup *cg, size_t h, const struct cgroup_limits *limits)
{
    switch (h) {
    case H_MEMORY:
        if (write_number(cg->dirs[h], "memory.limit_in_bytes", limits->memory) < 0)
            return -1;
        /* with swap accounting, memory and swap together; absent otherwise */
        if (write_number(cg->dirs[h], "memory.memsw.limit_in_bytes", limits->memory) < 0 && errno != ENOENT)
            return -1;
        cg->memory = true;
        return 0;
    case H_CPU:
        if (write_number(cg->dirs[h], "cpu.cfs_period_us", 100000) < 0 ||
            write_number(cg->dirs[h], "cpu.cfs_quota_us", limits->cpu_milli * 100) < 0)
            return -1;
        cg->cpu = true;
        return 0;
    default:
        if (write_number(cg->dirs[h], "pids.max", limits->pids) < 0)
            return -1;
        cg->pids = true;
        return 0;
    }
}

/* Where cloche-@id would be in the v1 hierarchy @h; false when there is none that we may write to. */
static bool
v1_place(const struct buf *self, size_t h, const char *id, char *out, size_t size)
{
    char own[256], base[384];

    snprintf(base, sizeof(base), "/sys/fs/cgroup/%s", v1_controllers[h]);
    if (!is_fs(base, CGROUP_SUPER_MAGIC) || !own_path(self, v1_controllers[h], own, sizeof(own)))
        return false;
    /* below our own cgroup, so that limits on the caller hold for what it starts; a container sees its own as the
     * root */
    snprintf(base, sizeof(base), "/sys/fs/cgroup/%s%s", v1_controllers[h], strcmp(own, "/") == 0 ? "" : own);
    if (access(base, W_OK) < 0) {
        snprintf(base, sizeof(base), "/sys/fs/cgroup/%s", v1_controllers[h]);
        if (access(base, W_OK) < 0)
            return false;
    }
    return (size_t)snprintf(out, size, "%s/cloche-%s", base, id) < size;
}

static bool
wanted(size_t h, const struct cgroup_limits *limits)
{
    return h == H_MEMORY ? limits->memory > 0
         : h == H_CPU    ? limits->cpu_milli > 0
                         : limits->pids > 0 && !limits->pids_counted;
}

static int
v1_make(struct cgroup *cg, const struct cgroup_limits *limits, struct err *err)
{
    for (size_t h = 0; h < CGROUP_HIERARCHIES; h++) {
        if (cg->paths[h][0] == '\0')
            continue;
        if (mkdir(cg->paths[h], 0755) < 0)
            return err_sys(err, errno, "wall.cgroup", "mkdir %s", cg->paths[h]);
        cg->dirs[h] = open(cg->paths[h], O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (cg->dirs[h] < 0 || v1_limit(cg, h, limits) < 0)
            return err_sys(err, errno, "wall.cgroup", "limit of %s", cg->paths[h]);
        cg->tasks[h] = openat(cg->dirs[h], "tasks", O_WRONLY | O_CLOEXEC);
        if (cg->tasks[h] < 0)
            return err_sys(err, errno, "wall.cgroup", "%s/tasks", cg->paths[h]);
    }
    return 0;
}

/* --- v2 ----------------------------------------------------------------------------------------------------- */

static bool
has_word(const struct buf *list, const char *word)
{
    size_t n = strlen(word);
    const char *at = list->n > 0 ? (const char *)list->p : "";

    while ((at = strstr(at, word)) != NULL) {
        bool starts = at == (const char *)list->p || at[-1] == ' ';
        if (starts && (at[n] == ' ' || at[n] == '\n' || at[n] == '\0'))
            return true;
        at += n;
    }
    return false;
}

static bool
controllers_of(const char *dir, const char *file, struct buf *out)
{
    char path[512];

    buf_reset(out);
    snprintf(path, sizeof(path), "%s/%s", dir, file);
    return io_read_file(AT_FDCWD, path, out) == 0 && buf_nul(out) == 0;
}

/* The directory to create in: as root a directory of our own below the root (what crun's cgroupfs manager does);
 * as an ordinary user the nearest ancestor of our own cgroup that is ours and hands controllers down. */
static bool
v2_base(const struct buf *self, char *base, size_t size)
{
    cleanup_buf struct buf list = BUF_INIT(4096);
    char own[256];

    if (!is_fs("/sys/fs/cgroup", CGROUP2_SUPER_MAGIC) || !own_path(self, "", own, sizeof(own)))
        return false;
    if (geteuid() == 0 && access("/sys/fs/cgroup/cgroup.subtree_control", W_OK) == 0) {
        snprintf(base, size, "/sys/fs/cgroup/cloche");
        if (mkdir(base, 0755) < 0 && errno != EEXIST)
            return false;
        io_write_file(AT_FDCWD, "/sys/fs/cgroup/cgroup.subtree_control", "+memory +cpu +pids");
        io_write_file(AT_FDCWD, "/sys/fs/cgroup/cloche/cgroup.subtree_control", "+memory +cpu +pids");
        return true;
    }
    for (;;) {
        char *slash = strrchr(own, '/');
        if (slash == NULL)
            return false;
        *slash = '\0';      /* our own directory holds processes: children of it could get no controller */
        if ((size_t)snprintf(base, size, "/sys/fs/cgroup%s", own) >= size || own[0] == '\0')
            return false;
        if (access(base, W_OK) < 0)
            return false;
        if (controllers_of(base, "cgroup.subtree_control", &list) && has_word(&list, "memory"))
            return true;
    }
}

static int
v2_make(struct cgroup *cg, const struct cgroup_limits *limits, struct err *err)
{
    cleanup_buf struct buf list = BUF_INIT(4096);
    int dir;
    char quota[64];

    if (mkdir(cg->paths[0], 0755) < 0)
        return err_sys(err, errno, "wall.cgroup", "mkdir %s", cg->paths[0]);
    dir = cg->dirs[0] = open(cg->paths[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || !controllers_of(cg->paths[0], "cgroup.controllers", &list))
        return err_sys(err, errno, "wall.cgroup", "open %s", cg->paths[0]);
    if (limits->memory > 0 && has_word(&list, "memory")) {
        if (write_number(dir, "memory.max", limits->memory) < 0)
            return err_sys(err, errno, "wall.cgroup", "memory.max");
        /* no swap controller on some hosts; one process of a sandbox killed kills all */
        if (io_write_file(dir, "memory.swap.max", "0") < 0 && errno != ENOENT)
            return err_sys(err, errno, "wall.cgroup", "memory.swap.max");
        if (io_write_file(dir, "memory.oom.group", "1") < 0 && errno != ENOENT)
            return err_sys(err, errno, "wall.cgroup", "memory.oom.group");
        cg->memory = true;
    }
    if (limits->cpu_milli > 0 && has_word(&list, "cpu")) {
        snprintf(quota, sizeof(quota), "%" PRIu64 " 100000", limits->cpu_milli * 100);
        if (io_write_file(dir, "cpu.max", quota) < 0)
            return err_sys(err, errno, "wall.cgroup", "cpu.max");
        cg->cpu = true;
    }
    if (limits->pids > 0 && has_word(&list, "pids")) {
        if (write_number(dir, "pids.max", limits->pids) < 0)
            return err_sys(err, errno, "wall.cgroup", "pids.max");
        cg->pids = true;
    }
    return 0;
}

/* --- the interface ------------------------------------------------------------------------------------------ */

static void
say_missing(struct cgroup *cg, const struct cgroup_limits *limits, const char *why)
{
    snprintf(cg->why_not, sizeof(cg->why_not), "%s%s%s%s",
             limits->memory > 0 && !cg->memory ? "memory " : "", limits->cpu_milli > 0 && !cg->cpu ? "cpu " : "",
             limits->pids > 0 && !limits->pids_counted && !cg->pids ? "pids " : "", why);
}

void
cgroup_find(struct cgroup *cg, const char *id, const struct cgroup_limits *limits)
{
    cleanup_buf struct buf self = BUF_INIT(16384);
    char base[384];

    if (limits->memory == 0 && limits->cpu_milli == 0 && (limits->pids == 0 || limits->pids_counted))
        return;
    if (io_read_file(AT_FDCWD, "/proc/self/cgroup", &self) < 0 || buf_nul(&self) < 0) {
        say_missing(cg, limits, "(no cgroups in this kernel)");
        return;
    }
    if (geteuid() == 0)
        for (size_t h = 0; h < CGROUP_HIERARCHIES; h++)
            if (wanted(h, limits) && v1_place(&self, h, id, cg->paths[h], sizeof(cg->paths[h])))
                cg->kind = CGROUP_V1;
    if (cg->kind == CGROUP_V1)
        return;
    if (!v2_base(&self, base, sizeof(base)) ||
        (size_t)snprintf(cg->paths[0], sizeof(cg->paths[0]), "%s/cloche-%s", base, id) >= sizeof(cg->paths[0])) {
        cg->paths[0][0] = '\0';
        if (limits->ask_systemd && scope_available())
            cg->kind = CGROUP_SCOPE;
        else
            say_missing(cg, limits, "(no cgroup that this user may create)");
        return;
    }
    cg->kind = CGROUP_V2;
}

/* systemd enforces what it was told, as far as its controllers are handed down to users. */
static int
scope_make(struct cgroup *cg, const char *id, pid_t pid, const struct cgroup_limits *limits, struct err *err)
{
    cleanup_buf struct buf list = BUF_INIT(4096);
    char path[512];

    if (scope_start(pid, id, limits, path, sizeof(path), err) < 0)
        return -1;
    cg->dirs[0] = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cg->dirs[0] < 0 || !controllers_of(path, "cgroup.controllers", &list))
        return err_sys(err, errno, "wall.cgroup", "open %s", path);
    cg->memory = limits->memory > 0 && has_word(&list, "memory");
    cg->cpu = limits->cpu_milli > 0 && has_word(&list, "cpu");
    cg->pids = limits->pids > 0 && has_word(&list, "pids");
    return 0;
}

const char *
cgroup_name(const struct cgroup *cg)
{
    return cg->kind == CGROUP_V1 ? "cgroup v1" : cg->kind == CGROUP_NONE ? "none" : "cgroup v2";
}

int
cgroup_make(struct cgroup *cg, const char *id, pid_t pid, const struct cgroup_limits *limits, struct err *err)
{
    int r = 0;

    if (cg->kind == CGROUP_NONE)
        return 0;
    r = cg->kind == CGROUP_V1 ? v1_make(cg, limits, err) : cg->kind == CGROUP_V2 ? v2_make(cg, limits, err)
                              : scope_make(cg, id, pid, limits, err);
    if (r < 0) {
        cgroup_destroy(cg);
        return -1;
    }
    if ((limits->memory > 0 && !cg->memory) || (limits->cpu_milli > 0 && !cg->cpu) ||
        (limits->pids > 0 && !limits->pids_counted && !cg->pids))
        say_missing(cg, limits, "(the controller is not handed down)");
    return 0;
}

int
cgroup_join(const int *tasks, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++)
        if (io_write_full(tasks[i], "0", 1) < 0)
            return err_sys(err, errno, "wall.cgroup", "join");
    return 0;
}

/* The number after "@key " in a flat-keyed file, or of a single-value file when @key is NULL. */
static uint64_t
read_value(int dir, const char *file, const char *key)
{
    cleanup_buf struct buf text = BUF_INIT(16384);
    const char *at;
    uint64_t value;
    size_t n = 0;

    if (dir < 0 || io_read_file(dir, file, &text) < 0 || buf_nul(&text) < 0)
        return 0;
    at = (const char *)text.p;
    while (key != NULL && at != NULL && (strncmp(at, key, strlen(key)) != 0 || at[strlen(key)] != ' ')) {
        at = strchr(at, '\n');
        at = at != NULL ? at + 1 : NULL;
    }
    if (at == NULL)
        return 0;
    at += key != NULL ? strlen(key) + 1 : 0;
    while (at[n] >= '0' && at[n] <= '9')
        n++;
    return str_parse_u64((struct str){ at, n }, UINT64_MAX, &value) ? value : 0;
}

void
cgroup_read(const struct cgroup *cg, struct cgroup_usage *out)
{
    *out = (struct cgroup_usage){ 0 };
    if (!cg->memory)
        return;
    if (cg->kind == CGROUP_V1) {
        out->peak_memory = read_value(cg->dirs[H_MEMORY], "memory.max_usage_in_bytes", NULL);
        out->oom_kills = read_value(cg->dirs[H_MEMORY], "memory.oom_control", "oom_kill");
    } else {
        out->peak_memory = read_value(cg->dirs[0], "memory.peak", NULL);
        out->oom_kills = read_value(cg->dirs[0], "memory.events", "oom_kill");
    }
}

uint64_t
cgroup_anon(const struct cgroup *cg)
{
    if (!cg->memory)
        return 0;
    return cg->kind == CGROUP_V1 ? read_value(cg->dirs[H_MEMORY], "memory.stat", "rss")
                                 : read_value(cg->dirs[0], "memory.stat", "anon");
}

int
cgroup_freeze(const struct cgroup *cg, bool frozen, struct err *err)
{
    if (cg->kind >= CGROUP_V2 && io_write_file(cg->dirs[0], "cgroup.freeze", frozen ? "1" : "0") == 0)
        return 0;
    err_set(err, ERR_UNSUPPORTED, "wall.cgroup.freeze", "this sandbox has no cgroup v2 to freeze");
    return err_hint(err, "pause by signal (SIGSTOP) is used instead");
}

bool
cgroup_remove(const struct cgroup *cg)
{
    bool gone = true;

    for (size_t i = 0; i < CGROUP_HIERARCHIES; i++)
        if (cg->paths[i][0] != '\0' && rmdir(cg->paths[i]) < 0 && errno != ENOENT)
            gone = false;
    if (cg->kind == CGROUP_V2 && geteuid() == 0)
        rmdir("/sys/fs/cgroup/cloche");         /* the last one out; others are refused (EBUSY, ENOTEMPTY) */
    return gone;
}

bool
cgroup_destroy(struct cgroup *cg)
{
    for (size_t i = 0; i < CGROUP_HIERARCHIES; i++) {
        close_fd(&cg->tasks[i]);
        close_fd(&cg->dirs[i]);
    }
    return cgroup_remove(cg);
}
