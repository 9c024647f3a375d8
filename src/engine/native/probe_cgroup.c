/* engine/native/probe_cgroup.c: which cgroup controllers this caller can really use (see probe.h)
 *
 * Asks the code that a run uses (wall/cgroup.h): it makes a group with every limit and removes it again, so doctor
 * cannot promise what a run would not get. Runs in a child of the probe; should that be killed, the group's janitor
 * removes it.
 */
#include "engine/native/probe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "wall/cgroup.h"

static void
note(struct feature_state *s, const struct cgroup *cg, bool enforced, size_t hierarchy)
{
    const char *path = cg->kind == CGROUP_V2 ? cg->paths[0] : cg->paths[hierarchy];
    const char *slash = strrchr(path, '/');

    if (!enforced) {
        s->status = FEATURE_PARTIAL;
        snprintf(s->detail, sizeof(s->detail), "no cgroup controller");
        return;
    }
    s->status = FEATURE_YES;
    snprintf(s->detail, sizeof(s->detail), "cgroup %s at %.*s", cg->kind == CGROUP_V2 ? "v2" : "v1",
             (int)(slash != NULL ? slash - path : 0), path);
}

void
probe_try_cgroups(struct feature_state *f)
{
    const struct cgroup_limits limits = { .memory = 64 << 20, .cpu_milli = 1000, .pids = 64 };
    struct cgroup cg = CGROUP_INIT;
    struct err err = ERR_INIT;
    char id[48];
    int failed;

    snprintf(id, sizeof(id), "doctor-%d", (int)getpid());
    cgroup_find(&cg, id, &limits);
    failed = cgroup_make(&cg, id, -1, &limits, &err) < 0 ? err.sys_errno : 0;
    note(&f[FEATURE_LIMIT_MEMORY], &cg, cg.memory, 0);
    note(&f[FEATURE_LIMIT_CPU], &cg, cg.cpu, 1);
    note(&f[FEATURE_LIMIT_PIDS], &cg, cg.pids, 2);
    if (failed != 0)
        for (int i = FEATURE_LIMIT_MEMORY; i <= FEATURE_LIMIT_PIDS; i++) {
            f[i].sys_errno = failed;
            snprintf(f[i].call, sizeof(f[i].call), "making a cgroup");
        }
    if (!cg.cpu)
        f[FEATURE_LIMIT_CPU].status = FEATURE_NO;   /* nothing else limits CPU */
    cgroup_destroy(&cg);
}
