/* wall/cgroup.c: see cgroup.h */
#include "wall/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/str.h"
#include "wall/cgroup_priv.h"
#include "wall/scope.h"

#define BETWEEN "cloche"
#define CPU_PERIOD_US 100000

static const char *const controllers[CGROUP_HIERARCHIES] = { "memory", "cpu", "pids" };

/* --- where we are ------------------------------------------------------------------------------------------- */

bool
cgroup_path_of(const struct buf *text, const char *controller, char *out, size_t size)
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

bool
cgroup_is_fs(const char *path, long magic)
{
    struct statfs st;

    return statfs(path, &st) == 0 && (long)st.f_type == magic;
}

static int
write_number(int dir, const char *file, uint64_t value)
{
    char text[32];

    snprintf(text, sizeof(text), "%" PRIu64, value);
    return io_write_file(dir, file, text);
}

/* --- v1 ----------------------------------------------------------------------------------------------------- */

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
        /* there from the first socket on, or not at all (a kernel without the network) */
        if (limits->sockets > 0 && write_number(cg->dirs[h], CGROUP_V1_SOCKETS, limits->sockets) < 0 && errno != ENOENT)
            return -1;
        cg->memory = true;
        return 0;
    case H_CPU:
        /* each write looks at every cgroup of the host, and a new one has that period already */
        if ((cgroup_value(cg->dirs[h], "cpu.cfs_period_us", NULL) != CPU_PERIOD_US &&
             write_number(cg->dirs[h], "cpu.cfs_period_us", CPU_PERIOD_US) < 0) ||
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

    snprintf(base, sizeof(base), "/sys/fs/cgroup/%s", controllers[h]);
    if (!cgroup_is_fs(base, CGROUP_SUPER_MAGIC) || !cgroup_path_of(self, controllers[h], own, sizeof(own)))
        return false;
    /* below our own cgroup, so that limits on the caller hold for what it starts; a container sees its own as the
     * root */
    snprintf(base, sizeof(base), "/sys/fs/cgroup/%s%s", controllers[h], strcmp(own, "/") == 0 ? "" : own);
    if (access(base, W_OK) < 0) {
        snprintf(base, sizeof(base), "/sys/fs/cgroup/%s", controllers[h]);
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

static bool
hands_down(const char *dir, const struct cgroup_limits *limits)
{
    cleanup_buf struct buf list = BUF_INIT(4096);

    if (!controllers_of(dir, "cgroup.subtree_control", &list))
        return false;
    for (size_t h = 0; h < CGROUP_HIERARCHIES; h++)
        if (wanted(h, limits) && !has_word(&list, controllers[h]))
            return false;
    return true;
}

/* Below which directory to create: as root the root's (what crun's cgroupfs manager does); as an ordinary user the
 * nearest ancestor of our own cgroup that is ours and hands down what @limits need. */
static bool
v2_base(const struct buf *self, const struct cgroup_limits *limits, char *base, size_t size)
{
    char own[256];

    if (!cgroup_is_fs("/sys/fs/cgroup", CGROUP2_SUPER_MAGIC) || !cgroup_path_of(self, "", own, sizeof(own)))
        return false;
    if (geteuid() == 0 && access("/sys/fs/cgroup/cgroup.subtree_control", W_OK) == 0)
        return (size_t)snprintf(base, size, "/sys/fs/cgroup") < size;
    for (;;) {
        char *slash = strrchr(own, '/');
        if (slash == NULL)
            return false;
        *slash = '\0';      /* our own directory holds processes: children of it could get no controller */
        if ((size_t)snprintf(base, size, "/sys/fs/cgroup%s", own) >= size || own[0] == '\0')
            return false;
        if (access(base, W_OK) < 0)
            return false;
        if (hands_down(base, limits))
            return true;
    }
}

/* Where a v2 cgroup goes: BASE/cloche/cloche-ID. False when there is no base. */
static bool
v2_place(const struct buf *self, const struct cgroup_limits *limits, const char *id, char *out, size_t size)
{
    char base[384];

    return v2_base(self, limits, base, sizeof(base)) &&
           (size_t)snprintf(out, size, "%s/" BETWEEN "/cloche-%s", base, id) < size;
}

/* The part of the path of our cgroup before the last @n names; @size is at least that of the path. */
static void
above(const char *path, size_t n, char *out, size_t size)
{
    snprintf(out, size, "%s", path);
    for (; n > 0; n--) {
        char *slash = strrchr(out, '/');
        if (slash != NULL)
            *slash = '\0';
    }
}

/* A write of several is refused as a whole when the kernel lacks one (cgroup_disable=). */
static void
hand_down(const char *dir)
{
    static const char *const each[] = { "+memory", "+cpu", "+pids" };
    char path[600];

    snprintf(path, sizeof(path), "%s/cgroup.subtree_control", dir);
    if (io_write_file(AT_FDCWD, path, "+memory +cpu +pids") == 0)
        return;
    for (size_t i = 0; i < ARRAY_LEN(each); i++)
        io_write_file(AT_FDCWD, path, each[i]);
}

void
cgroup_divide(void)
{
    cleanup_buf struct buf self = BUF_INIT(16384), members = BUF_INIT(4096);
    char own[256], base[300], path[400], alone[32];

    snprintf(alone, sizeof(alone), "%d\n", (int)getpid());
    if (geteuid() == 0 || !cgroup_is_fs("/sys/fs/cgroup", CGROUP2_SUPER_MAGIC) ||
        io_read_file(AT_FDCWD, "/proc/self/cgroup", &self) < 0 || buf_nul(&self) < 0 ||
        !cgroup_path_of(&self, "", own, sizeof(own)))
        return;
    snprintf(base, sizeof(base), "/sys/fs/cgroup%s", own);
    snprintf(path, sizeof(path), "%s/cgroup.subtree_control", base);
    if (own[1] == '\0' || access(path, W_OK) < 0)
        return;
    snprintf(path, sizeof(path), "%s/cgroup.procs", base);
    if (io_read_file(AT_FDCWD, path, &members) < 0 || buf_nul(&members) < 0 ||
        strcmp((const char *)members.p, alone) != 0)
        return;
    snprintf(path, sizeof(path), "%s/daemon", base);
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return;
    snprintf(path, sizeof(path), "%s/daemon/cgroup.procs", base);
    if (io_write_file(AT_FDCWD, path, alone) == 0)
        hand_down(base);
}

/* The directory between ours and the base hands controllers on. While it does, nobody can take them away from it
 * (EBUSY): a service manager that no longer needs the cpu controller there would lift our limit otherwise. */
static int
v2_mkdir(const char *path)
{
    char base[512], between[512];
    int made = -1;

    above(path, 2, base, sizeof(base));
    above(path, 1, between, sizeof(between));
    /* another sandbox removes the one between when it is the last one out: we may just not be in it yet */
    for (int i = 0; i < 1000 && made < 0; i++) {
        if (mkdir(between, 0755) < 0 && errno != EEXIST)
            return -1;
        made = mkdir(path, 0755);
        if (made < 0 && errno != ENOENT)
            return -1;
    }
    if (made < 0)
        return -1;
    if (geteuid() == 0)
        hand_down(base);
    hand_down(between);
    return 0;
}

/* What hands its controllers on holds no process itself: the child, and what gets no cgroup of its own, is below. */
static int
v2_main(struct cgroup *cg, struct err *err)
{
    hand_down(cg->paths[0]);
    if (mkdirat(cg->dirs[0], "main", 0755) < 0)
        return err_sys(err, errno, "wall.cgroup", "mkdir %s/main", cg->paths[0]);
    cg->main = openat(cg->dirs[0], "main", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return cg->main < 0 ? err_sys(err, errno, "wall.cgroup", "open %s/main", cg->paths[0]) : 0;
}

static int
v2_make(struct cgroup *cg, const struct cgroup_limits *limits, struct err *err)
{
    cleanup_buf struct buf list = BUF_INIT(4096);
    int dir;
    char quota[64];

    if (v2_mkdir(cg->paths[0]) < 0) {
        bool refused = errno == EACCES || errno == EPERM || errno == EROFS || errno == EAGAIN;
        if (!refused)
            return err_sys(err, errno, "wall.cgroup", "mkdir %s", cg->paths[0]);
        /* a read-only or full hierarchy: as if there were none */
        cgroup_remove(cg);
        cg->paths[0][0] = '\0';
        cg->kind = CGROUP_NONE;
        return 0;
    }
    dir = cg->dirs[0] = open(cg->paths[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || !controllers_of(cg->paths[0], "cgroup.controllers", &list))
        return err_sys(err, errno, "wall.cgroup", "open %s", cg->paths[0]);
    if (limits->memory > 0 && has_word(&list, "memory")) {
        if (write_number(dir, "memory.max", limits->memory) < 0)
            return err_sys(err, errno, "wall.cgroup", "memory.max");
        /* no swap controller on some hosts; one process of a single run killed kills all */
        if (io_write_file(dir, "memory.swap.max", "0") < 0 && errno != ENOENT)
            return err_sys(err, errno, "wall.cgroup", "memory.swap.max");
        if (!limits->one_by_one && io_write_file(dir, "memory.oom.group", "1") < 0 && errno != ENOENT)
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
    return limits->commands ? v2_main(cg, err) : 0;
}

/* --- the interface ------------------------------------------------------------------------------------------ */

static void
say_missing(struct cgroup *cg, const struct cgroup_limits *limits, const char *why)
{
    bool memory = limits->memory > 0 && !cg->memory, cpu = limits->cpu_milli > 0 && !cg->cpu;
    bool pids = limits->pids > 0 && !limits->pids_counted && !cg->pids;

    snprintf(cg->why_not, sizeof(cg->why_not), "%s for%s%s%s", why, memory ? " memory" : "",
             !cpu ? "" : memory ? ", cpu" : " cpu", !pids ? "" : memory || cpu ? ", pids" : " pids");
}

static bool
scope_prepare(struct cgroup *cg, const char *id)
{
    void *page = mmap(NULL, sizeof(*cg->asking), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return false;
    cg->asking = page;
    return (size_t)snprintf(cg->unit, sizeof(cg->unit), "cloche-%s.scope", id) < sizeof(cg->unit);
}

void
cgroup_find(struct cgroup *cg, const char *id, const struct cgroup_limits *limits)
{
    const struct cgroup_limits only_memory = { .memory = limits->memory };
    uint8_t room[1024];
    cleanup_buf struct buf self = BUF_INIT_IN(room, 16384);

    bool any = limits->memory > 0 || limits->cpu_milli > 0 || (limits->pids > 0 && !limits->pids_counted);

    if (!any && !limits->commands)
        return;
    if (io_read_file(AT_FDCWD, "/proc/self/cgroup", &self) < 0 || buf_nul(&self) < 0) {
        say_missing(cg, limits, "no cgroups in this kernel");
        return;
    }
    if (geteuid() == 0)
        for (size_t h = 0; h < CGROUP_HIERARCHIES; h++)
            if ((wanted(h, limits) || limits->commands) &&
                v1_place(&self, h, id, wanted(h, limits) ? cg->paths[h] : cg->more[h], sizeof(cg->paths[h])))
                cg->kind = CGROUP_V1;
    if (cg->kind == CGROUP_V1)
        return;
    if (v2_place(&self, limits, id, cg->paths[0], sizeof(cg->paths[0])))
        cg->kind = CGROUP_V2;
    else if (any && limits->ask_systemd && scope_available() && scope_prepare(cg, id))
        cg->kind = CGROUP_SCOPE;
    else if (limits->memory > 0 && v2_place(&self, &only_memory, id, cg->paths[0], sizeof(cg->paths[0])))
        cg->kind = CGROUP_V2;
    if (cg->kind != CGROUP_V2)
        cg->paths[0][0] = '\0';
    if (cg->kind == CGROUP_NONE && any)
        say_missing(cg, limits, "no cgroup that this user may create");
}

/* systemd enforces what it was told, as far as its controllers are handed down to users. */
static int
scope_make(struct cgroup *cg, pid_t pid, const struct cgroup_limits *limits, struct err *err)
{
    cleanup_buf struct buf list = BUF_INIT(4096);
    char path[512], slice[512];

    *cg->asking = true;
    if (scope_start(pid, cg->unit, limits, path, sizeof(path), err) < 0)
        return -1;
    *cg->asking = false;    /* systemd will see it leave, and remove the scope */
    cg->dirs[0] = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cg->dirs[0] < 0 || !controllers_of(path, "cgroup.controllers", &list))
        return err_sys(err, errno, "wall.cgroup", "open %s", path);
    above(path, 1, slice, sizeof(slice));
    cg->dirs[1] = open(slice, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cg->slice_kills = cgroup_value(cg->dirs[1], "memory.events", "oom_kill");
    cg->memory = limits->memory > 0 && has_word(&list, "memory");
    /* one killed kills all, which no unit property says before systemd 253 */
    if (cg->memory && !limits->one_by_one)
        io_write_file(cg->dirs[0], "memory.oom.group", "1");
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
cgroup_make(struct cgroup *cg, pid_t pid, const struct cgroup_limits *limits, struct err *err)
{
    int r = 0;

    if (cg->kind == CGROUP_NONE)
        return 0;
    r = cg->kind == CGROUP_V1 ? v1_make(cg, limits, err) : cg->kind == CGROUP_V2 ? v2_make(cg, limits, err)
                              : scope_make(cg, pid, limits, err);
    if (r < 0) {
        cgroup_destroy(cg);
        return -1;
    }
    if ((limits->memory > 0 && !cg->memory) || (limits->cpu_milli > 0 && !cg->cpu) ||
        (limits->pids > 0 && !limits->pids_counted && !cg->pids))
        say_missing(cg, limits, cg->kind == CGROUP_NONE ? "the kernel refused a cgroup"
                                                        : "the controller is not handed down");
    return 0;
}

bool
cgroup_holds_memory(const struct cgroup *cg)
{
    return cg->kind == CGROUP_V1      ? cg->paths[H_MEMORY][0] != '\0'
           : cg->kind == CGROUP_SCOPE ? scope_holds_memory()
                                      : cg->memory;
}

int
cgroup_join(const int *tasks, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++)
        if (io_write_full(tasks[i], "0", 1) < 0)
            return err_sys(err, errno, "wall.cgroup", "join");
    return 0;
}

/* Those of commands, and v2's own. */
static void
remove_below(const char *path)
{
    cleanup_dir DIR *names = opendir(path);
    const struct dirent *e;

    while (names != NULL && (e = readdir(names)) != NULL)
        if (e->d_type == DT_DIR && e->d_name[0] != '.')
            (void)unlinkat(dirfd(names), e->d_name, AT_REMOVEDIR);
}

static bool
remove_one(const char *path)
{
    if (path[0] == '\0' || rmdir(path) == 0 || errno == ENOENT)
        return true;
    remove_below(path);
    return rmdir(path) == 0 || errno == ENOENT;
}

bool
cgroup_remove(const struct cgroup *cg)
{
    char between[512];
    bool gone = true;

    for (size_t i = 0; i < CGROUP_HIERARCHIES; i++) {
        gone = remove_one(cg->paths[i]) && gone;
        gone = remove_one(cg->more[i]) && gone;
    }
    if (cg->kind == CGROUP_V2) {
        above(cg->paths[0], 1, between, sizeof(between));
        rmdir(between);         /* the last one out; others are refused (EBUSY) */
    }
    if (cg->kind == CGROUP_SCOPE && cg->asking != NULL && *cg->asking)
        scope_stop(cg->unit);
    return gone;
}

bool
cgroup_destroy(struct cgroup *cg)
{
    for (size_t i = 0; i < CGROUP_HIERARCHIES; i++) {
        close_fd(&cg->tasks[i]);
        close_fd(&cg->dirs[i]);
    }
    close_fd(&cg->main);
    /* whoever destroys it was there when scope_start ended, which leaves no scope without its process */
    if (cg->asking != NULL)
        munmap(cg->asking, sizeof(*cg->asking));
    cg->asking = NULL;
    return cgroup_remove(cg);
}
