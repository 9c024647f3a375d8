/* wall/aside.c: see aside.h */
#include "wall/aside.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

#define STACK_SIZE ((size_t)256 * 1024)     /* paths of PATH_MAX on the way; pages cost when they are touched */

struct side {
    pthread_mutex_t gate;       /* open when the thread may begin */
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
    err_set(&side.err, ERR_SYSTEM, "wall.aside", "a thread of the launcher was ended from outside");
    if (pthread_attr_init(&attributes) != 0)
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
    pthread_join(thread, NULL);
    if (result == 0 && side.result < 0) {
        *err = side.err;
        result = -1;
    }
    return result;
}
