/* wall/cgroup_command.c: see cgroup_command.h */
#include "wall/cgroup_command.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "wall/cgroup_priv.h"

static bool
asks(size_t h, const struct cgroup_limits *limits)
{
    return (h == H_MEMORY ? limits->memory : h == H_CPU ? limits->cpu_milli : limits->pids) > 0;
}

static int
not_here(const struct cgroup *outer, const char *what, struct err *err)
{
    const char *why = outer->kind == CGROUP_SCOPE ? "systemd holds the sandbox's, and divides it for nobody"
                      : outer->why_not[0] != '\0' ? outer->why_not : "no cgroup that this user may create";

    err_set(err, ERR_UNSUPPORTED, "limits.no-cgroup", "a command's own limit of %s needs a cgroup, which is not there: "
            "%s", what, why);
    return err_hint(err, "start cloche serve as root or in a delegated cgroup; limits of time and output need none");
}

/* Before Linux 5.11 what is below counts here only where that is said, which is possible while nothing is below. */
static int
count_below(const struct cgroup *outer, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(64);

    if (outer->dirs[H_MEMORY] < 0 || io_read_file(outer->dirs[H_MEMORY], "memory.use_hierarchy", &text) < 0 ||
        (text.n > 0 && text.p[0] == '1') || io_write_file(outer->dirs[H_MEMORY], "memory.use_hierarchy", "1") == 0)
        return 0;
    return err_sys(err, errno, "wall.cgroup", "memory.use_hierarchy");
}

static int
v1_below(const struct cgroup *outer, unsigned number, const struct cgroup_limits *limits, struct cgroup *out,
         struct err *err)
{
    static const char *const what[] = { "memory", "the processor", "processes" };

    for (size_t h = 0; h < CGROUP_HIERARCHIES; h++) {
        const char *around = outer->paths[h][0] != '\0' ? outer->paths[h] : outer->more[h];
        if (!asks(h, limits))
            continue;
        if (around[0] == '\0' ||
            (size_t)snprintf(out->paths[h], sizeof(out->paths[h]), "%.480s/cmd-%u", around, number) >=
                sizeof(out->paths[h]))
            return not_here(outer, what[h], err);
        if (around == outer->more[h] && mkdir(around, 0755) < 0 && errno != EEXIST)
            return err_sys(err, errno, "wall.cgroup", "mkdir %s", around);
    }
    return asks(H_MEMORY, limits) ? count_below(outer, err) : 0;
}

/* One file to join by, where v1 has one for each. */
static int
v2_tasks(struct cgroup *cg, struct err *err)
{
    cg->tasks[0] = openat(cg->dirs[0], "cgroup.procs", O_WRONLY | O_CLOEXEC);
    return cg->tasks[0] < 0 ? err_sys(err, errno, "wall.cgroup", "%s/cgroup.procs", cg->paths[0]) : 0;
}

static int
make(const struct cgroup *outer, unsigned number, const struct cgroup_limits *limits, struct cgroup *out,
     struct err *err)
{
    if (outer->kind == CGROUP_V1 ? v1_below(outer, number, limits, out, err) < 0 : outer->main < 0)
        return outer->kind == CGROUP_V1 ? -1 : not_here(outer, "memory, processor or processes", err);
    if (outer->kind == CGROUP_V2)
        snprintf(out->paths[0], sizeof(out->paths[0]), "%.480s/cmd-%u", outer->paths[0], number);
    out->kind = outer->kind;
    if (cgroup_make(out, -1, limits, err) < 0)
        return -1;
    if ((asks(H_MEMORY, limits) && !out->memory) || (asks(H_CPU, limits) && !out->cpu) ||
        (asks(H_PIDS, limits) && !out->pids))
        return not_here(out, "memory, processor or processes", err);
    return out->kind == CGROUP_V2 ? v2_tasks(out, err) : 0;
}

int
cgroup_command_make(const struct cgroup *outer, unsigned number, const struct cgroup_limits *limits,
                    struct cgroup *out, struct err *err)
{
    *out = (struct cgroup)CGROUP_INIT;
    if (make(outer, number, limits, out, err) == 0)
        return 0;
    (void)cgroup_destroy(out);
    return -1;
}

void
cgroup_command_sent(struct cgroup *cg)
{
    for (size_t i = 0; i < CGROUP_HIERARCHIES; i++)
        close_fd(&cg->tasks[i]);
}

void
cgroup_command_lower(const struct cgroup *cg, uint64_t cpu_milli)
{
    /* by its name: of a command that has ended, and left something behind, it is not open any more */
    cleanup_close int dir = cg->kind == CGROUP_V1 && cg->cpu
                                ? open(cg->paths[H_CPU], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    uint64_t now = cgroup_value(dir, "cpu.cfs_quota_us", NULL);
    char quota[32];

    snprintf(quota, sizeof(quota), "%" PRIu64, cpu_milli * 100);
    if (cpu_milli > 0 && now > cpu_milli * 100)
        (void)io_write_file(dir, "cpu.cfs_quota_us", quota);
}
