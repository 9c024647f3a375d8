/* guest/watch.c: memory and process limits where no cgroup enforces them
 *
 * Supervised, not enforced: a command may be above a limit for one sampling period. The cheap look sums each
 * process's resident pages; only when that is above the limit are file pages left out and shared ones counted
 * once (Pss), which costs the kernel a walk of every page table. What cannot be read counts as resident. A
 * watchdog that cannot see any process at all ends everything rather than pretend.
 */
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "guest/guest.h"
#include "guest/tree.h"

/* What the kernel keeps for each, about: a file of a tmpfs (plan.c gives as many), a semaphore (a cache line), a
 * message beside its bytes, a queue or a set of semaphores. */
#define INODE_BYTES     1024
#define SEMAPHORE_BYTES 64
#define MESSAGE_BYTES   64
#define IPC_BYTES       512

struct held {
    uint64_t memory, shmem;
    uint64_t pids;
};

/* From here on, page tables of a process can matter: one page of them for each 2 MiB that it has addressed. */
#define TABLES_FROM (512UL * 1024 * 1024)

/* Of what we had no descriptor or no memory to look at: above every limit, and a few do not overflow. */
#define UNSEEN (UINT64_MAX >> 20)

/* /proc/PID/NAME of @p: of a thread that lives, where the first one does not. */
static ssize_t
read_of(const struct tree_proc *p, const char *name, char *text, size_t room)
{
    char path[48];
    pid_t thread;

    if (!p->headless)
        return tree_read_file(p->pid, name, text, room);
    thread = tree_thread(p->pid);
    if (thread == 0 || (size_t)snprintf(path, sizeof(path), "task/%d/%s", (int)thread, name) >= sizeof(path))
        return -1;
    return tree_read_file(p->pid, path, text, room);
}

/* A "Name:   123 kB" line of smaps_rollup or status, in bytes. */
static bool
kilobytes(const char *text, const char *name, uint64_t *bytes)
{
    const char *p = strstr(text, name);

    if (p == NULL)
        return false;
    p += strlen(name);
    p += strspn(p, " \t");
    if (!str_parse_u64((struct str){ p, strcspn(p, " ") }, UINT64_MAX / 1024, bytes))
        return false;
    *bytes *= 1024;
    return true;
}

/* What the kernel keeps to say where its pages are: those that were only read are no memory of its own, their tables
 * are. */
static uint64_t
tables_of(const struct tree_proc *p)
{
    char text[4096];
    uint64_t bytes;

    return read_of(p, "status", text, sizeof(text)) > 0 && kilobytes(text, "\nVmPTE:", &bytes) ? bytes : 0;
}

/* "SIZE RESIDENT SHARED ..." in pages; what is resident, and page tables where they can be much. */
static uint64_t
resident_of(const struct tree_proc *p, uint64_t page, uint64_t *tables)
{
    char text[256];
    uint64_t field[2] = { 0, 0 };
    const char *at = text;

    *tables = 0;
    if (read_of(p, "statm", text, sizeof(text)) <= 0)
        return tree_cannot_look() ? UNSEEN : 0;
    for (size_t i = 0; i < 2; i++) {
        size_t n = strcspn(at, " \n");

        if (!str_parse_u64((struct str){ at, n }, UINT64_MAX / page, &field[i]))
            return 0;
        at += n + (at[n] == ' ');
    }
    if (field[0] * page >= TABLES_FROM)
        *tables = tables_of(p);
    return field[1] * page;
}

/* What one process holds, shared pages divided among those who share them. */
static void
add_shares(const struct tree_proc *p, uint64_t page, struct held *sum)
{
    char text[2048];
    uint64_t anon, shmem, pss, tables, resident = resident_of(p, page, &tables);

    sum->memory += tables;
    if (read_of(p, "smaps_rollup", text, sizeof(text)) > 0) {
        if (kilobytes(text, "\nPss_Anon:", &anon) && kilobytes(text, "\nPss_Shmem:", &shmem)) {
            sum->memory += anon;
            sum->shmem += shmem;
            return;
        }
        if (kilobytes(text, "\nPss:", &pss)) {
            sum->memory += pss;
            return;
        }
    }
    sum->memory += resident;
}

/* Files in a memory-backed file system of the sandbox's own are memory too, and so is what describes them. */
static uint64_t
files_of(const char *path, uint64_t *id)
{
    struct statfs fs;
    struct stat st;

    if (statfs(path, &fs) < 0 || fs.f_type != TMPFS_MAGIC || stat(path, &st) < 0 || st.st_dev == *id)
        return 0;
    *id = st.st_dev;
    return (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize +
           (uint64_t)(fs.f_files - fs.f_ffree) * INODE_BYTES;
}

/* Its root; with the host's tree as the root, what lies over /dev of it. In light mode there is neither. */
static uint64_t
own_disk(const struct guest *g)
{
    uint64_t id = 0, sum;

    if (!g->pid1)
        return 0;
    sum = files_of("/", &id);
    return sum + files_of("/dev/shm", &id);
}

/* Segments that nobody has attached are held all the same, and so are messages and semaphores. Of an IPC namespace of
 * the sandbox's own; in light mode there is none, and none of these can be made. */
static uint64_t
sysv(const struct guest *g, uint64_t page, uint64_t *other)
{
    struct shm_info segments = { .shm_rss = 0 };
    struct msginfo messages = { .msgpool = 0 };
    struct seminfo semaphores = { .semusz = 0 };

    *other = 0;
    if (!g->pid1)
        return 0;
    /* in use: queues, messages, and all their bytes; sets, and all their semaphores */
    if (msgctl(0, MSG_INFO, (struct msqid_ds *)(void *)&messages) >= 0)
        *other += (uint64_t)(unsigned)messages.msgtql + (uint64_t)(unsigned)messages.msgmap * MESSAGE_BYTES +
                  (uint64_t)(unsigned)messages.msgpool * IPC_BYTES;
    if (semctl(0, 0, SEM_INFO, &semaphores) >= 0)
        *other += (uint64_t)(unsigned)semaphores.semaem * SEMAPHORE_BYTES +
                  (uint64_t)(unsigned)semaphores.semusz * IPC_BYTES;
    if (shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&segments) < 0)
        return 0;
    return ((uint64_t)segments.shm_rss + (uint64_t)segments.shm_swp) * page;
}

/* What everything but the guest holds; -1 when /proc cannot be read. */
static int
look(const struct guest *g, bool precise, struct held *sum)
{
    cleanup_free struct tree_proc *v = NULL;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const pid_t self = getpid();
    ssize_t n = tree_read(self, &v);
    uint64_t disk, other = 0, tables;

    *sum = (struct held){ .memory = 0 };
    for (ssize_t i = 0; i < n; i++) {
        if (v[i].pid == self || v[i].zombie || (!g->pid1 && !v[i].ours))
            continue;
        sum->pids += v[i].threads;
        if (g->memory_limit != 0 && precise)
            add_shares(&v[i], page, sum);
        else if (g->memory_limit != 0)
            sum->memory += resident_of(&v[i], page, &tables) + tables;
    }
    disk = g->memory_limit != 0 ? own_disk(g) + sysv(g, page, &other) : 0;
    sum->memory += other;
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
