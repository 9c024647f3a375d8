/* launcher/launcher_sweep.c: see launcher.h
 *
 * The launcher itself has no system calls for it once it hears others, so it is a janitor (wall/janitor.h) that does
 * it: one that begins when its pipe is closed, and then looks whether that was a permission or an end.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "engine/engine.h"
#include "launcher/launcher.h"
#include "program/state.h"

static bool
sweep(void *ctx)
{
    struct launcher *l = ctx;

    if (!*l->sweep)
        return true;
    if (!leavings_sweep(&l->leavings))
        return false;
    engine_sweep();
    return true;
}

int
sweep_prepare(struct launcher *l, struct err *err)
{
    char path[PATH_MAX], spare[PATH_MAX];
    cleanup_close int fd = -1, spares = -1;
    void *page;

    if (snprintf(path, sizeof(path), "%s/leavings", l->state) >= (int)sizeof(path) ||
        snprintf(spare, sizeof(spare), "%s" LEAVINGS_SPARE, path) >= (int)sizeof(spare) ||
        (fd = state_make_path(path)) < 0 || (spares = state_make_path(spare)) < 0)
        return err_sys(err, errno, "serve.start", "%s/leavings", l->state);
    l->sweeper = (struct janitor)JANITOR_INIT;
    if (leavings_list(path, &l->leavings) == 0 && !engine_left())
        return 0;
    page = mmap(NULL, sizeof(*l->sweep), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return err_sys(err, errno, "serve.start", "mmap");
    l->sweep = page;
    return janitor_start(&l->sweeper, sweep, l, err);
}

void
sweep_begin(struct launcher *l)
{
    if (l->sweep == NULL || *l->sweep)
        return;
    *l->sweep = true;
    close_fd(&l->sweeper.end);     /* it is reaped as what is left to us is (reap_orphans) */
}

void
sweep_end(struct launcher *l)
{
    if (l->sweep != NULL && !*l->sweep)
        end_process(&l->sweeper.pid, 0);
    close_fd(&l->sweeper.end);
}
