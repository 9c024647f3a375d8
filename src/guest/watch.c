/* guest/watch.c: memory and process limits where no cgroup enforces them
 *
 * Supervised, not enforced: a command may be above a limit for one sampling period. The cheap look sums each
 * process's resident pages; only when that is above the limit are file pages left out and shared ones counted
 * once (Pss), which costs the kernel a walk of every page table. What cannot be read counts as resident. A
 * watchdog that cannot see any process at all ends everything rather than pretend.
 */
#include <linux/magic.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "guest/guest.h"
#include "guest/tree.h"

struct held {
    uint64_t memory, shmem;
    uint64_t pids;
};

/* "SIZE RESIDENT SHARED ..." in pages. */
static uint64_t
resident_of(pid_t pid, uint64_t page)
{
    char text[256];
    uint64_t field[3] = { 0, 0, 0 };
    const char *p = text;

    if (tree_read_file(pid, "statm", text, sizeof(text)) <= 0)
        return 0;
    for (size_t i = 0; i < 3; i++) {
        size_t n = strcspn(p, " \n");

        if (!str_parse_u64((struct str){ p, n }, UINT64_MAX / page, &field[i]))
            return 0;
        p += n + (p[n] == ' ');
    }
    return field[1] * page;
}

/* A "Name:   123 kB" line of smaps_rollup, in bytes. */
static bool
rollup_line(const char *text, const char *name, uint64_t *bytes)
{
    const char *p = strstr(text, name);
    size_t n;

    if (p == NULL)
        return false;
    p += strlen(name);
    p += strspn(p, " ");
    n = strcspn(p, " ");
    if (!str_parse_u64((struct str){ p, n }, UINT64_MAX / 1024, bytes))
        return false;
    *bytes *= 1024;
    return true;
}

/* What one process holds, shared pages divided among those who share them. */
static void
add_shares(pid_t pid, uint64_t page, struct held *sum)
{
    char text[2048];
    uint64_t anon, shmem, pss;

    if (tree_read_file(pid, "smaps_rollup", text, sizeof(text)) > 0) {
        if (rollup_line(text, "\nPss_Anon:", &anon) && rollup_line(text, "\nPss_Shmem:", &shmem)) {
            sum->memory += anon;
            sum->shmem += shmem;
            return;
        }
        if (rollup_line(text, "\nPss:", &pss)) {
            sum->memory += pss;
            return;
        }
    }
    sum->memory += resident_of(pid, page);
}

/* Files in the sandbox's own memory-backed root are memory too. In light mode there is no such root. */
static uint64_t
own_disk(const struct guest *g)
{
    struct statfs fs;

    if (!g->pid1 || statfs("/", &fs) < 0 || fs.f_type != TMPFS_MAGIC)
        return 0;
    return (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
}

/* Segments that nobody has attached are held all the same. Of an IPC namespace of the sandbox's own; in light mode
 * there is none, and no segment can be made. */
static uint64_t
sysv_segments(const struct guest *g, uint64_t page)
{
    struct shm_info info = { .shm_rss = 0 };

    if (!g->pid1 || shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&info) < 0)
        return 0;
    return ((uint64_t)info.shm_rss + (uint64_t)info.shm_swp) * page;
}

/* What everything but the guest holds; -1 when /proc cannot be read. */
static int
look(const struct guest *g, bool precise, struct held *sum)
{
    cleanup_free struct tree_proc *v = NULL;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const pid_t self = getpid();
    ssize_t n = tree_read(self, &v);
    uint64_t disk;

    *sum = (struct held){ .memory = 0 };
    for (ssize_t i = 0; i < n; i++) {
        if (v[i].pid == self || v[i].zombie || (!g->pid1 && !v[i].ours))
            continue;
        sum->pids += v[i].threads;
        if (g->memory_limit != 0 && precise)
            add_shares(v[i].pid, page, sum);
        else if (g->memory_limit != 0)
            sum->memory += resident_of(v[i].pid, page);
    }
    disk = g->memory_limit != 0 ? own_disk(g) + sysv_segments(g, page) : 0;
    /* A mapped file of that disk, or segment, is in both: the larger of the two is what is surely held. */
    sum->memory += disk > sum->shmem ? disk : sum->shmem;
    return n < 0 ? -1 : 0;
}

static void
end_it(struct guest *g, enum notice_kind kind, uint64_t value, uint64_t limit)
{
    const struct msg_notice m = { .kind = (uint8_t)kind, .value = value, .limit = limit };

    reap_kill_all(g, SIGKILL);
    (void)msg_put_notice(&g->link.out, &m);
}

int
watch_step(struct guest *g)
{
    struct held sum;
    uint64_t now;
    int rc;

    if ((g->memory_limit == 0 && g->pids_limit == 0) || g->childless)
        return -1;
    now = clock_us();
    if (now < g->next_sample_us)
        return (int)((g->next_sample_us - now) / 1000 + 1);
    g->next_sample_us = now + (uint64_t)g->sample_ms * 1000;
    rc = look(g, false, &sum);
    if (rc == 0 && g->memory_limit != 0 && sum.memory > g->memory_limit)
        rc = look(g, true, &sum);
    if (rc < 0)
        end_it(g, NOTICE_BLIND, 0, 0);
    else if (g->memory_limit != 0 && sum.memory > g->memory_limit)
        end_it(g, NOTICE_MEMORY, sum.memory, g->memory_limit);
    else if (g->pids_limit != 0 && sum.pids > g->pids_limit)
        end_it(g, NOTICE_PIDS, sum.pids, g->pids_limit);
    return (int)g->sample_ms;
}
