/* wall/cgroup_use.c: what those in a cgroup use, read from its files (see cgroup.h) */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/str.h"
#include "wall/cgroup_priv.h"

#define V1_BATCH (256UL * 1024)

/* The number after "@key " in the flat-keyed @text, or all of it when @key is NULL; 0 where there is none. */
static uint64_t
value_in(const char *text, const char *key)
{
    const char *at = text;
    uint64_t value;
    size_t n = 0;

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

uint64_t
cgroup_value(int dir, const char *file, const char *key)
{
    uint8_t room[1024];
    cleanup_buf struct buf text = BUF_INIT_IN(room, 16384);

    if (dir < 0 || io_read_file(dir, file, &text) < 0 || buf_nul(&text) < 0)
        return 0;
    return value_in((const char *)text.p, key);
}

void
cgroup_read(const struct cgroup *cg, struct cgroup_usage *out)
{
    *out = (struct cgroup_usage){ 0 };
    if (!cg->memory)
        return;
    if (cg->kind == CGROUP_V1) {
        out->peak_memory = cgroup_value(cg->dirs[H_MEMORY], "memory.max_usage_in_bytes", NULL);
        out->oom_kills = cgroup_value(cg->dirs[H_MEMORY], "memory.oom_control", "oom_kill");
    } else {
        out->peak_memory = cgroup_value(cg->dirs[0], "memory.peak", NULL);
        out->oom_kills = cgroup_value(cg->main >= 0 ? cg->main : cg->dirs[0], "memory.events", "oom_kill");
        /* systemd removes a scope as soon as it is empty, which it is when all was killed; its slice counts on */
        if (cg->kind == CGROUP_SCOPE && faccessat(cg->dirs[0], "memory.events", F_OK, 0) < 0) {
            uint64_t kills = cgroup_value(cg->dirs[1], "memory.events", "oom_kill");
            out->oom_kills = kills > cg->slice_kills ? kills - cg->slice_kills : 0;
        }
    }
}

/* Linux 6.18 counts in memory.failcnt no more: what was held at most came near the limit, by what is charged at
 * once. */
static bool
v1_was_full(const struct cgroup *cg)
{
    uint64_t most = cgroup_value(cg->dirs[H_MEMORY], "memory.max_usage_in_bytes", NULL);
    uint64_t limit = cgroup_value(cg->dirs[H_MEMORY], "memory.limit_in_bytes", NULL);

    return most + V1_BATCH >= limit;
}

void
cgroup_met(const struct cgroup *cg, struct cgroup_met *out)
{
    bool v1 = cg->kind == CGROUP_V1;

    *out = (struct cgroup_met){ .memory = false };
    if (cg->memory && v1)
        out->memory = v1_was_full(cg);
    else if (cg->memory)
        out->memory = cgroup_value(cg->dirs[0], "memory.events.local", "oom") > 0;
    if (cg->pids)
        out->pids = cgroup_value(cg->dirs[v1 ? H_PIDS : 0], "pids.events", "max") > 0;
}

void
cgroup_now(const struct cgroup *cg, struct cgroup_now *out)
{
    *out = (struct cgroup_now){ 0 };
    if (cg->kind == CGROUP_V1) {
        out->memory = cgroup_value(cg->dirs[H_MEMORY], "memory.usage_in_bytes", NULL);
        out->cpu_us = cgroup_value(cg->dirs[H_CPU], "cpuacct.usage", NULL) / 1000;    /* where it is mounted with cpu */
        out->pids = cgroup_value(cg->dirs[H_PIDS], "pids.current", NULL);
    } else if (cg->kind != CGROUP_NONE) {
        out->memory = cgroup_value(cg->dirs[0], "memory.current", NULL);
        out->cpu_us = cgroup_value(cg->dirs[0], "cpu.stat", "usage_usec");
        out->pids = cgroup_value(cg->dirs[0], "pids.current", NULL);
    }
}

bool
cgroup_alone(const struct cgroup *cg)
{
    uint8_t room[64];
    cleanup_buf struct buf text = BUF_INIT_IN(room, sizeof(room));
    const char *line;

    if (cg->kind != CGROUP_V1)
        return cg->kind != CGROUP_NONE && cgroup_value(cg->dirs[0], "pids.current", NULL) == 1;
    /* of a kind that is asked for what it has, whether or not processes are counted; more than one is a line more */
    if (cg->dirs[H_MEMORY] < 0 || io_read_file(cg->dirs[H_MEMORY], "tasks", &text) < 0 || buf_nul(&text) < 0)
        return false;
    line = strchr((const char *)text.p, '\n');
    return line != NULL && line[1] == '\0';
}

void
cgroup_held(const struct cgroup *cg, struct cgroup_held *out)
{
    cleanup_buf struct buf text = BUF_INIT(16384);
    bool v1 = cg->kind == CGROUP_V1;
    const char *stat;

    *out = (struct cgroup_held){ 0 };
    if (!cg->memory || io_read_file(cg->dirs[v1 ? H_MEMORY : 0], "memory.stat", &text) < 0 || buf_nul(&text) < 0)
        return;
    stat = (const char *)text.p;
    out->own = value_in(stat, v1 ? "total_rss" : "anon");
    out->shared = value_in(stat, v1 ? "total_shmem" : "shmem");
    out->sockets = v1 ? cgroup_value(cg->dirs[H_MEMORY], "memory.kmem.tcp.usage_in_bytes", NULL)
                      : value_in(stat, "sock");
}
