/* wall/aside.c: see aside.h */
#include "wall/aside.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#define STACK_SIZE ((size_t)256 * 1024)     /* paths of PATH_MAX on the way; pages cost when they are touched */

struct side {
    aside_job *job;
    void *ctx;
    struct err err;
    int result;
    atomic_int running;     /* the thread's id; the kernel sets it to 0 and wakes us when the thread is gone */
};

static int
side_main(void *arg)
{
    struct side *s = arg;

    s->result = s->job(s->ctx, &s->err);
    return 0;
}

static void
wait_for(struct side *s)
{
    int id;

    while ((id = atomic_load(&s->running)) != 0)
        syscall(SYS_futex, &s->running, FUTEX_WAIT, id, NULL, NULL, 0);
}

/* A new thread is queued behind us unless a processor is idle at that very moment, and may not be fetched from there
 * for a scheduler tick. So it is sent to the others. Best effort: it costs time only, and the thread is short-lived. */
static void
send_away(int id)
{
    cpu_set_t allowed;
    unsigned cpu;

    if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0 || CPU_COUNT(&allowed) < 2 || getcpu(&cpu, NULL) < 0 ||
        cpu >= CPU_SETSIZE)
        return;
    CPU_CLR(cpu, &allowed);
    sched_setaffinity(id, sizeof(allowed), &allowed);
}

int
aside_run(aside_job *here, void *here_ctx, aside_job *beside, void *beside_ctx, struct err *err)
{
    const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                      CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
    struct side side = { .job = beside, .ctx = beside_ctx, .err = ERR_INIT, .running = 0 };
    char *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    int result, id;

    if (stack == MAP_FAILED)
        return err_sys(err, errno, "memory", "a stack");
    if (clone(side_main, stack + STACK_SIZE, flags, &side, &side.running, NULL, &side.running) < 0) {
        munmap(stack, STACK_SIZE);
        return beside(beside_ctx, err) < 0 || here(here_ctx, err) < 0 ? -1 : 0;
    }
    id = atomic_load(&side.running);
    if (id != 0)
        send_away(id);
    result = here(here_ctx, err);
    wait_for(&side);
    munmap(stack, STACK_SIZE);
    if (result == 0 && side.result < 0) {
        *err = side.err;
        result = -1;
    }
    return result;
}
