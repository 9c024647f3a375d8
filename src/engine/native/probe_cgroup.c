/* engine/native/probe_cgroup.c: which cgroup controllers this caller can really use (see probe.h)
 *
 * A test group is made below our own group and removed at once; a controller counts when its limit file appears
 * in it. Three ways are tried, strongest first: v2 directly, v2 through systemd's user manager (which makes a
 * delegated group for us when a run starts), v1. None of them means limits are kept by sampling and killing.
 */
#include "engine/native/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/str.h"

#define PROC_FILE_MAX (1024 * 1024)

struct controller {
    enum feature which;
    const char *name;       /* as in cgroup.controllers and in a v1 hierarchy's list */
    const char *v2_file;
    const char *v1_file;
};

static const struct controller controllers[] = {
    { FEATURE_LIMIT_MEMORY, "memory", "memory.max", "memory.limit_in_bytes" },
    { FEATURE_LIMIT_CPU, "cpu", "cpu.max", "cpu.cfs_quota_us" },
    { FEATURE_LIMIT_PIDS, "pids", "pids.max", "pids.max" },
};

/* Whether @word is an element of the comma or blank separated @list. */
static bool
has_word(struct str list, const char *word)
{
    size_t start = 0;

    for (size_t i = 0; i <= list.n; i++) {
        if (i < list.n && list.p[i] != ',' && list.p[i] != ' ' && list.p[i] != '\n')
            continue;
        if (str_eq_c((struct str){ list.p + start, i - start }, word))
            return true;
        start = i + 1;
    }
    return false;
}

/* The next line of @rest (without its newline); false at the end. */
static bool
next_line(struct str *rest, struct str *line)
{
    const char *nl;

    if (rest->n == 0)
        return false;
    nl = memchr(rest->p, '\n', rest->n);
    line->p = rest->p;
    line->n = nl != NULL ? (size_t)(nl - rest->p) : rest->n;
    rest->p += line->n + (nl != NULL);
    rest->n -= line->n + (nl != NULL);
    return true;
}

/* Field @index (0-based, blank separated) of @line. */
static struct str
field(struct str line, unsigned index)
{
    size_t at = 0;

    for (;;) {
        size_t end = at;

        while (end < line.n && line.p[end] != ' ')
            end++;
        if (index == 0)
            return (struct str){ line.p + at, end - at };
        index--;
        if (end >= line.n)
            return (struct str){ line.p, 0 };
        at = end + 1;
    }
}

/* Our path in the hierarchy of @controller (v1), or in v2 when NULL. */
static bool
own_path(struct str cgroups, const char *controller, struct str *path)
{
    struct str line;

    while (next_line(&cgroups, &line)) {
        const char *first = memchr(line.p, ':', line.n);
        const char *second;
        struct str list;

        if (first == NULL)
            continue;
        second = memchr(first + 1, ':', line.n - (size_t)(first + 1 - line.p));
        if (second == NULL)
            continue;
        list = (struct str){ first + 1, (size_t)(second - first - 1) };
        *path = (struct str){ second + 1, line.n - (size_t)(second + 1 - line.p) };
        if (controller == NULL ? list.n == 0 : has_word(list, controller))
            return true;
    }
    return false;
}

/* Where the hierarchy of @controller (v2 when NULL) is mounted, and which part of it. */
static bool
mounted_at(struct str mountinfo, const char *controller, struct str *point, struct str *root)
{
    struct str line;

    while (next_line(&mountinfo, &line)) {
        const char *dash = memmem(line.p, line.n, " - ", 3);
        struct str tail;

        if (dash == NULL)
            continue;
        tail = (struct str){ dash + 3, line.n - (size_t)(dash + 3 - line.p) };
        *root = field(line, 3);
        *point = field(line, 4);
        if (controller == NULL ? str_eq_c(field(tail, 0), "cgroup2")
                               : str_eq_c(field(tail, 0), "cgroup") && has_word(field(tail, 2), controller))
            return true;
    }
    return false;
}

/* The directory of our own group. False when that hierarchy is not mounted or shows another part of the tree. */
static bool
own_dir(const char *controller, char *out, size_t out_n)
{
    cleanup_buf struct buf cgroups = BUF_INIT(PROC_FILE_MAX);
    cleanup_buf struct buf mounts = BUF_INIT(PROC_FILE_MAX);
    struct str path, point, root;
    int n;

    if (io_read_file(AT_FDCWD, "/proc/self/cgroup", &cgroups) < 0 ||
        io_read_file(AT_FDCWD, "/proc/self/mountinfo", &mounts) < 0)
        return false;
    if (!own_path((struct str){ (char *)cgroups.p, cgroups.n }, controller, &path) ||
        !mounted_at((struct str){ (char *)mounts.p, mounts.n }, controller, &point, &root))
        return false;
    if (root.n > 1 && str_starts(path, root)) {
        path.p += root.n;
        path.n -= root.n;
    }
    n = snprintf(out, out_n, "%.*s%.*s", (int)point.n, point.p, path.n > 1 ? (int)path.n : 0, path.p);
    return n > 0 && (size_t)n < out_n;
}

/* Make a group below @dir and see whether @file appears in it. 0, or -1 with errno (ENOENT: no such controller). */
static int
try_group(const char *dir, const char *file)
{
    cleanup_close int parent = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    cleanup_close int group = -1;
    char name[64];
    int saved = 0;

    if (parent < 0)
        return -1;
    snprintf(name, sizeof(name), "cloche-doctor-%d", (int)getpid());
    if (mkdirat(parent, name, 0700) < 0)
        return -1;
    group = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (group < 0 || faccessat(group, file, W_OK, AT_EACCESS) < 0)
        saved = errno;
    unlinkat(parent, name, AT_REMOVEDIR);
    errno = saved;
    return saved == 0 ? 0 : -1;
}

static bool
connects(const char *path)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || strlen(path) >= sizeof(addr.sun_path))
        return false;
    memcpy(addr.sun_path, path, strlen(path) + 1);
    return connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0;
}

/* Whether systemd's user manager answers and has @controller to give. */
static bool
user_manager_has(const char *controller)
{
    cleanup_buf struct buf list = BUF_INIT(4096);
    char path[256], runtime[64];
    unsigned uid = (unsigned)geteuid();

    snprintf(runtime, sizeof(runtime), "/run/user/%u", uid);
    snprintf(path, sizeof(path), "%s/systemd/private", runtime);
    if (!connects(path)) {
        snprintf(path, sizeof(path), "%s/bus", runtime);
        if (!connects(path))
            return false;
    }
    snprintf(path, sizeof(path), "/sys/fs/cgroup/user.slice/user-%u.slice/user@%u.service/cgroup.controllers", uid, uid);
    if (io_read_file(AT_FDCWD, path, &list) < 0)
        return false;
    return has_word((struct str){ (char *)list.p, list.n }, controller);
}

static void
found(struct feature_state *s, const char *how, const char *dir)
{
    s->status = FEATURE_YES;
    s->sys_errno = 0;
    if (dir != NULL)
        snprintf(s->detail, sizeof(s->detail), "%s at %s", how, dir);
    else
        snprintf(s->detail, sizeof(s->detail), "%s", how);
}

static void
try_controller(const struct controller *c, struct feature_state *s)
{
    char v1[4096], v2[4096];
    bool have_v2 = own_dir(NULL, v2, sizeof(v2));
    int v2_errno = ENOENT;

    if (have_v2 && try_group(v2, c->v2_file) == 0) {
        found(s, "cgroup v2", v2);
        return;
    }
    if (have_v2)
        v2_errno = errno;
    if (user_manager_has(c->name)) {
        found(s, "cgroup v2 through systemd's user manager", NULL);
        return;
    }
    s->status = FEATURE_PARTIAL;
    s->sys_errno = v2_errno;
    snprintf(s->call, sizeof(s->call), "mkdir in cgroup v2");
    snprintf(s->detail, sizeof(s->detail), "supervised: sampled, then killed");
    if (!own_dir(c->name, v1, sizeof(v1)))
        return;
    if (try_group(v1, c->v1_file) == 0) {
        found(s, "cgroup v1", v1);
        return;
    }
    s->sys_errno = errno;
    snprintf(s->call, sizeof(s->call), "mkdir in cgroup v1");
}

void
probe_try_cgroups(struct feature_state *f)
{
    for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++)
        try_controller(&controllers[i], &f[controllers[i].which]);
}
