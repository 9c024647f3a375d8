/* wall/aside.c: see aside.h */
#include "wall/aside.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#define STACK_SIZE ((size_t)256 * 1024)     /* paths of PATH_MAX on the way; pages cost when they are touched */

#define LOOK_NS (100L * 1000 * 1000)        /* between two looks whether the thread is still there */

struct side {
    pthread_mutex_t gate;       /* open when the thread may begin */
    sem_t done;
    aside_job *job;
    void *ctx;
    struct err err;
    int result;
};

static void *
side_main(void *arg)
{
    struct side *s = arg;

    pthread_mutex_lock(&s->gate);
    pthread_mutex_unlock(&s->gate);
    s->result = s->job(s->ctx, &s->err);
    sem_post(&s->done);
    return NULL;
}

/* A new thread is queued behind us unless a processor is idle at that very moment, and may not be fetched from there
 * for a scheduler tick. So it is sent to the others, where it waits at the gate if it is there first: a thread that
 * has ended has no affinity to set. Best effort: it costs time only, and the thread is short-lived. */
static bool
other_processors(cpu_set_t *set)
{
    int cpu = sched_getcpu();

    if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(*set), set) < 0 || CPU_COUNT(set) < 2)
        return false;
    CPU_CLR((size_t)cpu, set);
    return true;
}

/* A filter around us may end a thread for one call of its. To join such a thread would be to wait for ever. */
static bool
is_done(pthread_t thread, sem_t *done)
{
    struct timespec at;

    while (sem_trywait(done) < 0) {
        if (clock_gettime(CLOCK_REALTIME, &at) < 0)
            return false;
        at.tv_nsec += LOOK_NS;
        at.tv_sec += at.tv_nsec / 1000000000;
        at.tv_nsec %= 1000000000;
        if (sem_timedwait(done, &at) == 0)
            return true;
        if (errno == ETIMEDOUT && pthread_kill(thread, 0) != 0)
            return false;
    }
    return true;
}

int
aside_run(aside_job *here, void *here_ctx, aside_job *beside, void *beside_ctx, struct err *err)
{
    struct side side = { .gate = PTHREAD_MUTEX_INITIALIZER, .job = beside, .ctx = beside_ctx, .err = ERR_INIT,
                         .result = -1 };
    cpu_set_t others;
    bool elsewhere = other_processors(&others);
    pthread_attr_t attributes;
    pthread_t thread;
    int result, made;

    /* what it says when something outside ends the thread */
    err_set(&side.err, ERR_UNSUPPORTED, "wall.aside",
            "a thread that set up the sandbox was killed from outside, as a system call filter around cloche does");
    err_hint(&side.err, "let that filter allow unshare(2), setns(2) and socket(2); `--mode light` needs fewer");
    if (sem_init(&side.done, 0, 0) < 0 || pthread_attr_init(&attributes) != 0)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    pthread_mutex_lock(&side.gate);
    made = pthread_create(&thread, &attributes, side_main, &side);
    pthread_attr_destroy(&attributes);
    if (made != 0)
        return beside(beside_ctx, err) < 0 || here(here_ctx, err) < 0 ? -1 : 0;
    if (elsewhere)
        pthread_setaffinity_np(thread, sizeof(others), &others);
    pthread_mutex_unlock(&side.gate);
    result = here(here_ctx, err);
    if (is_done(thread, &side.done))
        pthread_join(thread, NULL);
    if (result == 0 && side.result < 0) {
        *err = side.err;
        result = -1;
    }
    return result;
}
