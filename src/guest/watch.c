/* guest/watch.c: a memory limit where no cgroup enforces one
 *
 * Supervised, not enforced: a command may be above the limit for one sampling period. The cheap look sums each
 * process's resident pages; only when that is above the limit are file pages left out and shared ones counted
 * once (Pss), which costs the kernel a walk of every page table. What cannot be read counts as resident. A
 * watchdog that cannot see any process at all ends everything rather than pretend.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "guest/guest.h"
#include "guest/tree.h"

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

static uint64_t
shared_once_of(pid_t pid, uint64_t page)
{
    char text[2048];
    uint64_t anon, shmem, pss;

    if (tree_read_file(pid, "smaps_rollup", text, sizeof(text)) <= 0)
        return resident_of(pid, page);
    if (rollup_line(text, "\nPss_Anon:", &anon) && rollup_line(text, "\nPss_Shmem:", &shmem))
        return anon + shmem;
    return rollup_line(text, "\nPss:", &pss) ? pss : resident_of(pid, page);
}

/* Bytes that everything but the guest holds; UINT64_MAX when /proc cannot be read. */
static uint64_t
held(const struct guest *g, bool precise)
{
    cleanup_free struct tree_proc *v = NULL;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    pid_t self = getpid();
    ssize_t n = tree_read(self, &v);
    uint64_t sum = 0;

    if (n < 0)
        return UINT64_MAX;
    for (ssize_t i = 0; i < n; i++)
        if (v[i].pid != self && !v[i].zombie && (g->pid1 || v[i].ours))
            sum += precise ? shared_once_of(v[i].pid, page) : resident_of(v[i].pid, page);
    return sum;
}

int
watch_step(struct guest *g)
{
    uint64_t now, sum;

    if (g->memory_limit == 0 || g->childless)
        return -1;
    now = guest_now_us();
    if (now < g->next_sample_us)
        return (int)((g->next_sample_us - now) / 1000 + 1);
    g->next_sample_us = now + (uint64_t)g->sample_ms * 1000;
    sum = held(g, false);
    if (sum > g->memory_limit)
        sum = held(g, true);
    if (sum > g->memory_limit) {
        const struct msg_notice m = { .kind = sum == UINT64_MAX ? NOTICE_BLIND : NOTICE_MEMORY, .value = sum,
                                      .limit = g->memory_limit };

        reap_kill_all(g, SIGKILL);
        (void)msg_put_notice(&g->link.out, &m);
    }
    return (int)g->sample_ms;
}
