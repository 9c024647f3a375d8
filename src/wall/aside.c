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

int
aside_run(aside_job *here, void *here_ctx, aside_job *beside, void *beside_ctx, struct err *err)
{
    const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                      CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
    struct side side = { .job = beside, .ctx = beside_ctx, .err = ERR_INIT, .running = 0 };
    char *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    int result;

    if (stack == MAP_FAILED)
        return err_sys(err, errno, "memory", "a stack");
    if (clone(side_main, stack + STACK_SIZE, flags, &side, &side.running, NULL, &side.running) < 0) {
        munmap(stack, STACK_SIZE);
        return here(here_ctx, err) < 0 || beside(beside_ctx, err) < 0 ? -1 : 0;
    }
    result = here(here_ctx, err);
    wait_for(&side);
    munmap(stack, STACK_SIZE);
    if (result == 0 && side.result < 0) {
        *err = side.err;
        result = -1;
    }
    return result;
}
