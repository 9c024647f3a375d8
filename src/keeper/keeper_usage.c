/* keeper/keeper_usage.c: what the sandbox uses now: from its cgroup, and what that does not know from its processes
 *
 * Process 1 of the sandbox is the guest, and everything else in it descends from it. The walk is bounded: what is
 * beyond PIDS_MAX processes is not counted.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/str.h"
#include "keeper/keeper.h"
#include "warden/stats.h"

#define PIDS_MAX 4096

struct walk {
    int pids[PIDS_MAX];
    size_t n;
    uint64_t memory, cpu_us;
};

/* Its memory and time, and those of the children that it has waited for: each dead one is counted by one parent. */
static void
look(struct walk *w, int pid)
{
    static const uint64_t tick_us = 10000;      /* USER_HZ is 100 */
    cleanup_buf struct buf text = BUF_INIT(4096);
    uint64_t pages, ticks;
    const char *after;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    if (io_read_file(AT_FDCWD, path, &text) < 0 || buf_nul(&text) < 0 || (after = strrchr((char *)text.p, ')')) == NULL)
        return;
    for (size_t i = 12; i < 16; i++)
        if (stat_word(after, i, &ticks))
            w->cpu_us += ticks * tick_us;
    if (stat_word(after, 22, &pages))
        w->memory += pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void
add_children(struct walk *w, int pid)
{
    cleanup_buf struct buf text = BUF_INIT(1 << 20);
    char path[64];

    /* the guest and what cloche itself makes have one thread; a child of another thread is missed */
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
    if (io_read_file(AT_FDCWD, path, &text) < 0)
        return;
    for (size_t i = 0, start = 0; i < text.n; i++) {
        uint64_t child;
        if (text.p[i] != ' ')
            continue;
        if (str_parse_u64((struct str){ (char *)text.p + start, i - start }, INT32_MAX, &child) && w->n < PIDS_MAX)
            w->pids[w->n++] = (int)child;
        start = i + 1;
    }
}

static void
of_processes(const struct keeper_live *k, struct edge_usage *u)
{
    static struct walk w;

    w.n = 1;
    w.pids[0] = (int)sandbox_facts(k->l.sb)->pid;
    w.memory = w.cpu_us = 0;
    for (size_t i = 0; i < w.n; i++) {
        look(&w, w.pids[i]);
        add_children(&w, w.pids[i]);
    }
    u->memory = u->memory > 0 ? u->memory : w.memory;
    u->cpu_us = u->cpu_us > 0 ? u->cpu_us : w.cpu_us;
    u->pids = u->pids > 0 ? u->pids : (uint32_t)w.n;
}

void
keeper_say_usage(struct keeper_live *k)
{
    static struct process_stats self = PROCESS_STATS_INIT;
    static char names[EDGE_RUNNING_MAX][EDGE_RUNNING_NAME + 1];
    struct edge_usage u = { .ops = (uint32_t)op_count(k) };
    struct sandbox_now now;

    sandbox_now(k->l.sb, &now);
    u.memory = now.memory;
    u.cpu_us = now.cpu_us;
    u.pids = now.pids < UINT32_MAX ? (uint32_t)now.pids : UINT32_MAX;
    if ((u.memory == 0 || u.cpu_us == 0 || u.pids == 0) && sandbox_facts(k->l.sb)->pid > 0)
        of_processes(k, &u);
    if (self.stat < 0)
        process_stats_open(&self, 0);
    if (!process_stats_read(&self, &u.keeper_rss, &u.keeper_cpu_us))
        u.keeper_rss = u.keeper_cpu_us = 0;
    for (size_t i = 0; i < KEEPER_OPS_MAX && u.n_running < EDGE_RUNNING_MAX; i++) {
        const struct op *o = k->ops[i];
        if (o == NULL || o->kind != OP_EXEC || o->channel == 0)
            continue;
        snprintf(names[u.n_running], sizeof(names[0]), "%s", o->name);
        u.running[u.n_running] = names[u.n_running];
        u.n_running++;
    }
    keeper_say(k, EDGE_USED, EDGE_USED_SHAPE(), &u);
}

void
op_say_result(struct op *o)
{
    const uint64_t us = clock_us() - o->begin_us;

    keeper_record_end(o);
    PROTO_SAY(keeper_say, o->k, EDGE_OP_RESULT, .kind = o->kind, .us = us, .in = o->passed[0], .out = o->passed[1],
              .result = o->edge.fd < 0 && !o->behind ? RESULT_CANCELED : o->how);
}
