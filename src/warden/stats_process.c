/* warden/stats_process.c: memory and time of a process of the daemon, from /proc (proc(5)) */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "warden/stats.h"

/* What sysconf would say; it may open files, and these never change. */
#define TICKS 100       /* USER_HZ of every architecture that we run on */

static long page;

void
process_stats_open(struct process_stats *p, int pid)
{
    char path[64], who[16] = "self";

    page = sysconf(_SC_PAGESIZE);
    if (pid > 0)
        snprintf(who, sizeof(who), "%d", pid);
    snprintf(path, sizeof(path), "/proc/%s/statm", who);
    p->statm = open(path, O_RDONLY | O_CLOEXEC);
    snprintf(path, sizeof(path), "/proc/%s/stat", who);
    p->stat = open(path, O_RDONLY | O_CLOEXEC);
}

bool
stat_word(const char *text, size_t n, uint64_t *out)
{
    for (; n > 0; n--) {
        text = strchr(text, ' ');
        if (text == NULL)
            return false;
        text++;
    }
    return str_parse_u64((struct str){ text, strcspn(text, " \n") }, UINT64_MAX, out);
}

bool
process_stats_read(const struct process_stats *p, uint64_t *rss, uint64_t *cpu_us)
{
    uint64_t pages, user, system;
    const char *after;
    char text[1024];
    ssize_t n;

    n = p->statm < 0 ? -1 : pread(p->statm, text, sizeof(text) - 1, 0);
    if (n <= 0)
        return false;
    text[n] = '\0';
    if (!stat_word(text, 1, &pages))
        return false;
    n = p->stat < 0 ? -1 : pread(p->stat, text, sizeof(text) - 1, 0);
    if (n <= 0)
        return false;
    text[n] = '\0';
    after = strrchr(text, ')');     /* a name may hold anything */
    if (after == NULL || !stat_word(after, 12, &user) || !stat_word(after, 13, &system))
        return false;
    *rss = pages * (uint64_t)page;
    *cpu_us = (user + system) * (1000000 / TICKS);
    return true;
}

int
process_stats_put(struct buf *b, const char *process, const struct process_stats *p, enum stats_family which)
{
    uint64_t rss, cpu;

    if (!process_stats_read(p, &rss, &cpu))
        return 0;
    return stats_put_value(b, which, process, "", which == STAT_PROCESS_RSS ? rss : cpu);
}
