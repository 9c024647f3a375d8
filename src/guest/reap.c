/* guest/reap.c: the ends of processes, asked for or not */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "guest/guard_link.h"
#include "guest/guest.h"
#include "guest/tree.h"

#define END_ROUNDS 2000         /* of a millisecond each: then whoever owns the transport must do it */

static uint64_t
us_of(const struct timeval *tv)
{
    return (uint64_t)tv->tv_sec * 1000000 + (uint64_t)tv->tv_usec;
}

static void
note_end(struct guest_exec *e, int status, const struct rusage *u)
{
    uint64_t now = clock_us();

    e->end = (struct msg_exit){
        .utime_us = us_of(&u->ru_utime),
        .stime_us = us_of(&u->ru_stime),
        .maxrss_bytes = (uint64_t)u->ru_maxrss * 1024,
        .run_us = now - e->started_us,
    };
    if (WIFSIGNALED(status)) {
        e->end.flags = (uint8_t)(MSG_EXIT_SIGNALED | (WCOREDUMP(status) ? MSG_EXIT_CORE : 0));
        e->end.status = (uint32_t)WTERMSIG(status);
    } else {
        e->end.status = (uint32_t)WEXITSTATUS(status);
    }
    e->exited = true;
    e->pid = 0;
    relay_mark_end(e);
}

void
reap_children(struct guest *g)
{
    for (;;) {
        struct rusage u;
        int status;
        pid_t pid = wait4(-1, &status, WNOHANG, &u);

        if (pid <= 0) {
            g->childless = pid < 0 && errno == ECHILD;
            return;
        }
        if (guard_link_reaped(g, pid))
            continue;
        for (size_t i = 0, left = g->n_execs; left > 0 && i < MSG_EXECS_MAX; i++) {
            struct guest_exec *e = &g->execs[i];

            left -= e->channel != 0;
            if (e->channel == 0 || e->pid != pid)
                continue;
            note_end(e, status, &u);
            g->n_ended++;
        }
    }
}

int
reap_on_signal(struct guest *g, const struct frame *f)
{
    struct guest_exec *e = exec_of(g, f->channel);
    struct msg_signal m;
    pid_t group;

    if (!msg_get_signal(f, &m))
        return -1;
    if (e == NULL || e->exited)
        return 0;
    if (e->stdio == EXEC_STDIO_SOCKET) {
        /* nobody is there to be signalled: the host wants it to be over */
        if (m.signo == SIGKILL)
            connect_over(g, e, ECONNABORTED);
        return 0;
    }
    if (m.target == SIGNAL_LEADER) {
        (void)kill(e->pid, (int)m.signo);
        return 0;
    }
    group = e->stdio == EXEC_STDIO_PTY && e->out[0].fd >= 0 ? pty_foreground(e->out[0].fd) : 0;
    (void)kill(-(group > 1 ? group : e->pid), (int)m.signo);
    return 0;
}

void
reap_forward(struct guest *g, int signo)
{
    for (size_t i = 0; i < MSG_EXECS_MAX; i++)
        if (g->execs[i].channel != 0 && g->execs[i].pid > 0)
            (void)kill(-g->execs[i].pid, signo);
}

/* Light mode: kill(-1) would reach everything that the user runs. Returns how many were alive, -1 without /proc. */
static ssize_t
kill_descendants(int signo)
{
    cleanup_free struct tree_proc *v = NULL;
    ssize_t n = tree_read(getpid(), &v), alive = 0;

    for (ssize_t i = 0; i < n; i++) {
        if (!v[i].ours || v[i].zombie)
            continue;
        alive++;
        (void)kill(v[i].pid, signo);
    }
    return n < 0 ? -1 : alive;
}

/* What System V keeps for a namespace without processes: it would be held on, and end each command to come. Whoever is
 * dying still has its segments, which then go with it. */
static void
forget_system_v(void)
{
    struct shm_info segments;
    struct seminfo semaphores;
    struct msginfo messages;
    struct shmid_ds shm;
    struct semid_ds sem;
    struct msqid_ds msg;
    int n, id;

    n = shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&segments);
    for (int i = 0; i <= n; i++)
        if ((id = shmctl(i, SHM_STAT, &shm)) >= 0)
            (void)shmctl(id, IPC_RMID, NULL);
    n = semctl(0, 0, SEM_INFO, &semaphores);
    for (int i = 0; i <= n; i++)
        if ((id = semctl(i, 0, SEM_STAT, &sem)) >= 0)
            (void)semctl(id, 0, IPC_RMID);
    n = msgctl(0, MSG_INFO, (struct msqid_ds *)(void *)&messages);
    for (int i = 0; i <= n; i++)
        if ((id = msgctl(i, MSG_STAT, &msg)) >= 0)
            (void)msgctl(id, IPC_RMID, NULL);
}

void
reap_kill_all(struct guest *g, int signo)
{
    if (!g->light) {
        (void)kill(-1, signo);
        if (signo == SIGKILL && g->pid1)
            forget_system_v();
        return;
    }
    /* Who is stopped does not fork, so that two looks find everyone. */
    if (signo == SIGKILL)
        (void)kill_descendants(SIGSTOP);
    if (kill_descendants(signo) < 0)
        reap_forward(g, signo);
}

int
reap_on_kill_all(struct guest *g, const struct frame *f)
{
    uint32_t signo;

    if (!msg_get_u32(f, &signo) || signo < 1 || signo > 64)
        return -1;
    reap_kill_all(g, (int)signo);
    return 0;
}

void
reap_end_all(struct guest *g)
{
    const struct timespec pause = { .tv_nsec = 1000000 };

    if (!g->light || g->pid1)
        return;
    for (int i = 0; i < END_ROUNDS; i++) {
        pid_t pid;

        /* A subreaper without children has no descendants either. */
        do
            pid = waitpid(-1, NULL, WNOHANG);
        while (pid > 0);
        if (pid < 0 && errno == ECHILD)
            return;
        (void)kill_descendants(SIGSTOP);
        if (kill_descendants(SIGKILL) < 0)
            reap_forward(g, SIGKILL);
        (void)nanosleep(&pause, NULL);
    }
}
