/* engine/native/probe_cgroup.c: which cgroup controllers this caller can really use (see probe.h)
 *
 * Asks the code that a run uses (wall/cgroup.h): it makes a group with every limit and removes it again, so doctor
 * cannot promise what a run would not get. Runs in a child of the probe; should that be killed, a janitor removes the
 * group.
 */
#include "engine/native/native.h"
#include "engine/native/probe.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wall/cgroup.h"
#include "wall/janitor.h"

static void
note(struct feature_state *s, const struct cgroup *cg, bool enforced, size_t hierarchy)
{
    const char *path = cg->kind == CGROUP_V1 ? cg->paths[hierarchy] : cg->paths[0];
    const char *slash = strrchr(path, '/');

    if (!enforced) {
        s->status = FEATURE_PARTIAL;
        snprintf(s->detail, sizeof(s->detail), "no cgroup controller");
        return;
    }
    s->status = FEATURE_YES;
    if (cg->kind == CGROUP_SCOPE)
        snprintf(s->detail, sizeof(s->detail), "cgroup v2, from systemd's user manager when a limit is asked for");
    else
        snprintf(s->detail, sizeof(s->detail), "%s at %.*s", cgroup_name(cg), (int)(slash != NULL ? slash - path : 0),
                 path);
}

/* Of cgroup v1 there is one directory a controller, and none is made for what is counted without. */
static void
note_pids(struct feature_state *s, const struct cgroup *cg)
{
    note(s, cg, cg->pids, 2);
    if (cg->pids && cg->kind == CGROUP_V1 && native_counts_pids())
        snprintf(s->detail, sizeof(s->detail), "RLIMIT_NPROC, which counts exactly; in mode light cgroup v1");
}

static bool
tidy(void *ctx)
{
    return cgroup_remove(ctx);
}

/* systemd moves a process that is there: one that waits, and dies with us. */
static pid_t
start_waiting(void)
{
    pid_t parent = getpid(), pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == parent)
        pause();
    _exit(0);
}

static int
make_groups(struct cgroup *cg, const struct cgroup_limits *limits, struct err *err)
{
    struct janitor janitor = JANITOR_INIT;
    pid_t child = -1;
    char id[48];
    int r = 0;

    snprintf(id, sizeof(id), "doctor-%d", (int)getpid());
    cgroup_find(cg, id, limits);
    if (cg->kind == CGROUP_NONE)
        return 0;
    child = cg->kind == CGROUP_SCOPE ? start_waiting() : -1;
    if (janitor_start(&janitor, tidy, cg, err) < 0)
        r = -1;
    else
        r = cgroup_make(cg, child, limits, err);
    if (child > 0) {
        kill(child, SIGKILL);
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    janitor_dismiss(&janitor, cgroup_remove(cg));
    return r;
}

void
probe_try_cgroups(struct feature_state *f)
{
    const struct cgroup_limits limits = { .memory = 64 << 20, .cpu_milli = 1000, .pids = 64, .ask_systemd = true };
    struct cgroup cg = CGROUP_INIT;
    struct err err = ERR_INIT;
    int failed = make_groups(&cg, &limits, &err) < 0 ? err.sys_errno : 0;

    note(&f[FEATURE_LIMIT_MEMORY], &cg, cg.memory, 0);
    note(&f[FEATURE_LIMIT_CPU], &cg, cg.cpu, 1);
    note_pids(&f[FEATURE_LIMIT_PIDS], &cg);
    for (int i = FEATURE_LIMIT_MEMORY; failed != 0 && i <= FEATURE_LIMIT_PIDS; i++) {
        f[i].sys_errno = failed;
        snprintf(f[i].call, sizeof(f[i].call), "making a cgroup");
    }
    if (!cg.cpu)
        f[FEATURE_LIMIT_CPU].status = FEATURE_NO;   /* nothing else limits CPU */
    cgroup_destroy(&cg);
}
