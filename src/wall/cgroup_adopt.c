/* wall/cgroup_adopt.c: cgroups that another one made, as a daemon does for its containers (see cgroup.h) */
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/str.h"
#include "wall/cgroup_priv.h"

/* Of each place; what was used of CPU time is counted in a hierarchy of its own, wherever that is mounted. */
static const char *const names[CGROUP_HIERARCHIES] = { "memory", "cpuacct", "pids" };

static bool
adopt(struct cgroup *cg, const struct buf *self, bool v2)
{
    char own[256], path[512];
    bool all = true;

    for (size_t h = 0; h < (v2 ? 1 : CGROUP_HIERARCHIES); h++) {
        const char *controller = v2 ? "" : names[h];
        if (!cgroup_path_of(self, controller, own, sizeof(own)))
            return false;
        snprintf(path, sizeof(path), "/sys/fs/cgroup/%s%s", controller, own);
        cg->dirs[h] = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        all = all && cg->dirs[h] >= 0;
    }
    return all;
}

/* Whether the first number in @file of the folder @dir is one, and no more than @most: a manager that cannot limit
 * often says so in a warning, and goes on. */
static bool
is_set(int dir, const char *file, uint64_t most)
{
    cleanup_buf struct buf text = BUF_INIT(4096);
    struct str number;
    uint64_t n;

    if (io_read_file(dir, file, &text) < 0 || buf_nul(&text) < 0)
        return false;
    number = (struct str){ (const char *)text.p, strcspn((const char *)text.p, " \n") };
    return str_parse_u64(number, UINT64_MAX, &n) && n <= most;
}

/* Of CPU time only that there is a limit: of which period it is, whoever made it chose. */
static bool
has_cpu_limit(const struct cgroup *cg, const struct buf *self, bool v2)
{
    char own[256], path[512];

    if (v2)
        return is_set(cg->dirs[0], "cpu.max", UINT64_MAX);
    if (!cgroup_path_of(self, "cpu", own, sizeof(own)))
        return false;
    snprintf(path, sizeof(path), "/sys/fs/cgroup/cpu%s/cpu.cfs_quota_us", own);
    return is_set(AT_FDCWD, path, UINT64_MAX);
}

void
cgroup_adopt(struct cgroup *cg, pid_t pid, const struct cgroup_limits *limits)
{
    cleanup_buf struct buf self = BUF_INIT(65536);
    bool v2 = cgroup_is_fs("/sys/fs/cgroup", CGROUP2_SUPER_MAGIC);
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    if (io_read_file(AT_FDCWD, path, &self) < 0 || buf_nul(&self) < 0 || !adopt(cg, &self, v2)) {
        for (size_t h = 0; h < CGROUP_HIERARCHIES; h++)
            close_fd(&cg->dirs[h]);
        snprintf(cg->why_not, sizeof(cg->why_not), "the cgroups of process %d are not found", (int)pid);
        return;
    }
    cg->kind = v2 ? CGROUP_V2 : CGROUP_V1;
    cg->memory = limits->memory > 0 &&
                 is_set(cg->dirs[v2 ? 0 : H_MEMORY], v2 ? "memory.max" : "memory.limit_in_bytes", limits->memory);
    cg->cpu = limits->cpu_milli > 0 && has_cpu_limit(cg, &self, v2);
    cg->pids = limits->pids > 0 && is_set(cg->dirs[v2 ? 0 : H_PIDS], "pids.max", limits->pids);
    snprintf(cg->why_not, sizeof(cg->why_not), "whoever made the cgroup of process %d has not set it", (int)pid);
}
