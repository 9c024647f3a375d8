/* wall/aside.c: see aside.h */
#include "wall/aside.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>

#define STACK_SIZE ((size_t)256 * 1024)     /* paths of PATH_MAX on the way; pages cost when they are touched */

struct side {
    aside_job *job;
    void *ctx;
    struct err err;
    int result;
};

static void *
side_main(void *arg)
{
    struct side *s = arg;

    s->result = s->job(s->ctx, &s->err);
    return NULL;
}

/* A new thread is queued behind us unless a processor is idle at that very moment, and may not be fetched from there
 * for a scheduler tick. So it is sent to the others. Best effort: it costs time only, and the thread is short-lived. */
static void
send_away(pthread_attr_t *attributes)
{
    cpu_set_t allowed;
    int cpu = sched_getcpu();

    if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(allowed), &allowed) < 0 ||
        CPU_COUNT(&allowed) < 2)
        return;
    CPU_CLR((size_t)cpu, &allowed);
    pthread_attr_setaffinity_np(attributes, sizeof(allowed), &allowed);
}

int
aside_run(aside_job *here, void *here_ctx, aside_job *beside, void *beside_ctx, struct err *err)
{
    struct side side = { .job = beside, .ctx = beside_ctx, .err = ERR_INIT, .result = -1 };
    pthread_attr_t attributes;
    pthread_t thread;
    int result, made;

    /* what it says when something outside ends the thread */
    err_set(&side.err, ERR_SYSTEM, "wall.aside", "a thread of the launcher was ended from outside");
    if (pthread_attr_init(&attributes) != 0)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    send_away(&attributes);
    made = pthread_create(&thread, &attributes, side_main, &side);
    pthread_attr_destroy(&attributes);
    if (made != 0)
        return beside(beside_ctx, err) < 0 || here(here_ctx, err) < 0 ? -1 : 0;
    result = here(here_ctx, err);
    pthread_join(thread, NULL);
    if (result == 0 && side.result < 0) {
        *err = side.err;
        result = -1;
    }
    return result;
}
