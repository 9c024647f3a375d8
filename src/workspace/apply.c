/* workspace/apply.c: stage, commit, and what happens when we are killed in between; see apply.h */
#include "workspace/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/kernel.h"
#include "workspace/apply_priv.h"
#include "workspace/tree.h"

/* Where stages are that must lie in the project. A protected name (policy/builtin.c): no sandbox that may write to the
 * project changes there what its owner has looked at and is about to take over. */
#define STAGES ".cloche-apply"

/* An apply under way. */
struct work {
    const struct cow_state *state;
    const struct diff_input *in;
    const struct changes *c;
    const struct apply_plan *plan;
    struct journal journal;
    size_t *change_of;      /* per step */
    int stages;             /* the project's directory for stages; -1: the stage is in the state's directory */
    int stage;
};

/* --- the steps -------------------------------------------------------------------------------------------------- */

/* An existing directory gets other permission bits. */
static bool
only_mode(const struct change *e)
{
    return S_ISDIR(e->upper.mode) && S_ISDIR(e->lower.mode);
}

/* Whether a new mode still lets its owner work in the directory. */
static bool
opens(const struct change *e)
{
    return (e->upper.mode & S_IRWXU) == S_IRWXU;
}

static int
add_step(struct work *w, size_t i, struct err *err)
{
    const struct change *e = &w->c->v[i];
    cleanup_buf struct buf path = BUF_INIT(2 * TREE_PATH_MAX);
    struct step step = {
        .kind = only_mode(e) ? STEP_MODE : e->upper.mode == 0 ? STEP_REMOVE : e->lower.mode == 0 ? STEP_NEW : STEP_OVER,
        .slot = (uint32_t)w->journal.n, .old_ino = e->lower.ino, .old_mode = e->lower.mode,
        .new_mode = e->upper.mode & (S_IFMT | 0777),
    };

    if (change_path(w->c, i, &path) < 0)
        return err_set(err, ERR_LIMIT, "workspace.apply.path", "a path is too long");
    w->change_of[w->journal.n] = i;
    return journal_add(&w->journal, &step, (const char *)path.p, err);
}

enum pass { PASS_OPEN, PASS_MOVE };

/* In path order: first directories that become writable, later everything that moves. */
static int
pass(struct work *w, enum pass which, struct err *err)
{
    for (size_t i = change_walk(w->c, 0, false); i != CHANGE_NOT;) {
        const struct change *e = &w->c->v[i];
        bool applied = w->plan->fate[i] == FATE_APPLIED;
        bool mode = only_mode(e);
        if (applied && (which == PASS_OPEN ? mode && opens(e) : !mode) && add_step(w, i, err) < 0)
            return -1;
        /* what is staged or removed takes along what is below it; what is not made has nothing below it */
        bool into = mode || (!applied && S_ISDIR(e->lower.mode) && e->kind == CHANGE_DELETED);
        i = change_walk(w->c, i, !into || !e->has_changes);
    }
    return 0;
}

static int
list_steps(struct work *w, struct err *err)
{
    w->change_of = calloc(w->c->n + 1, sizeof(*w->change_of));
    if (w->change_of == NULL)
        return err_set(err, ERR_SYSTEM, "workspace.memory", "no memory");
    if (pass(w, PASS_OPEN, err) < 0 || pass(w, PASS_MOVE, err) < 0)
        return -1;
    /* directories that close, the deepest first: children have higher numbers */
    for (size_t i = w->c->n - 1; i > 0; i--)
        if (w->plan->fate[i] == FATE_APPLIED && only_mode(&w->c->v[i]) && !opens(&w->c->v[i]) &&
            add_step(w, i, err) < 0)
            return -1;
    return 0;
}

/* --- the stage -------------------------------------------------------------------------------------------------- */

/* Whether a rename can go from one directory to the other. */
static bool
same_mount(int a, int b)
{
    struct statx sa, sb;

    return kernel_statx(a, "", AT_EMPTY_PATH, STATX_MNT_ID | STATX_INO, &sa) == 0 &&
           kernel_statx(b, "", AT_EMPTY_PATH, STATX_MNT_ID | STATX_INO, &sb) == 0 &&
           (sa.stx_mask & STATX_MNT_ID) != 0 && (sb.stx_mask & STATX_MNT_ID) != 0 && sa.stx_mnt_id == sb.stx_mnt_id &&
           sa.stx_dev_major == sb.stx_dev_major && sa.stx_dev_minor == sb.stx_dev_minor;
}

/* The project's directory for stages. */
static int
open_stages(int project)
{
    int fd = openat(project, STAGES, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0 && !same_mount(fd, project)) {
        close_fd(&fd);
        errno = EXDEV;
    }
    return fd;
}

static int
make_stages(struct work *w, struct err *err)
{
    if (mkdirat(w->in->project, STAGES, 0700) == 0 || errno == EEXIST)
        w->stages = open_stages(w->in->project);
    if (w->stages >= 0)
        return 0;
    return err_sys(err, errno, "workspace.apply.stage", "cannot make the directory %s in the project", STAGES);
}

static int
open_stage(struct work *w, struct err *err)
{
    struct journal *j = &w->journal;

    j->in_project = !same_mount(w->state->state_fd, w->in->project);
    snprintf(j->stage, sizeof(j->stage), j->in_project ? "%.12s" : "stage", w->state->id);
    /* the journal first: it is what leads a later verb to the stage */
    if (journal_write(w->state->state_fd, j, false, err) < 0 || (j->in_project && make_stages(w, err) < 0))
        return -1;
    int parent = j->in_project ? w->stages : w->state->state_fd;
    if (mkdirat(parent, j->stage, 0700) < 0)
        return err_sys(err, errno, "workspace.apply.stage", "cannot make the directory %s%s in the %s",
                       j->in_project ? STAGES "/" : "", j->stage, j->in_project ? "project" : "state");
    w->stage = openat(parent, j->stage, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (w->stage < 0)
        return err_sys(err, errno, "workspace.apply.stage", "cannot open the stage");
    return 0;
}

static int
fill_stage(struct work *w, struct err *err)
{
    struct stage stage;
    int r = stage_open(&stage, w->in, w->c, w->plan, w->stage, err);

    for (size_t i = 0; i < w->journal.n && r == 0; i++) {
        struct step *step = &w->journal.v[i];
        if (step->kind == STEP_NEW || step->kind == STEP_OVER)
            r = stage_build(&stage, w->change_of[i], step, err);
    }
    if (r == 0 && !stage.sync_each && syncfs(w->stage) < 0)
        r = err_sys(err, errno, "workspace.apply.stage", "cannot write the stage to disk");
    stage_close(&stage);
    return r;
}

/* The stage goes, then the journal that leads to it. */
static int
clean_up(int state_fd, int project, int stages, const struct journal *j, struct err *err)
{
    int parent = j->in_project ? stages : state_fd;

    if (parent >= 0 && tree_remove(parent, j->stage, err) < 0)
        return err_wrap(err, "the stage of an apply");
    if (j->in_project)
        (void)unlinkat(project, STAGES, AT_REMOVEDIR);     /* not while another apply has its stage there */
    return journal_remove(state_fd, err);
}

/* Make the renames durable before the journal forgets them. */
static void
sync_project(const struct work *w)
{
    const char *name;

    if (w->plan->n_applied > APPLY_SYNC_EACH) {
        (void)syncfs(w->in->project);
        return;
    }
    for (size_t i = 0; i < w->journal.n; i++) {
        cleanup_close int parent = tree_open_parent(w->in->project, w->journal.v[i].path, &name);
        cleanup_close int dir = parent >= 0 ? openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        if (dir >= 0)
            (void)fsync(dir);
    }
}

/* --- a helper that outlives us ---------------------------------------------------------------------------------- */

struct guard {
    pid_t pid;
    int pipe;
};

static void
guard_child(const struct work *w, int from)
{
    static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
    const struct sigaction ignore = { .sa_handler = SIG_IGN };
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    char c = 0;

    /* a terminal's ^C reaches us both; whoever reads our output must not wait for this process */
    for (int fd = 0; fd <= 2; fd++)
        dup2(null, fd);
    for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
        sigaction(ignored[i], &ignore, NULL);
    while (read(from, &c, 1) < 0 && errno == EINTR)
        ;
    if (c != 'd')
        (void)apply_recover(w->state, w->in->project, NULL);
    _exit(0);
}

/* Start the process that undoes a half-done apply when this one is killed. It shares the state's lock. */
static int
guard_start(const struct work *w, struct guard *g, struct err *err)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_sys(err, errno, "workspace.apply.guard", "pipe");
    g->pid = fork();
    if (g->pid == 0) {
        close(fds[1]);
        guard_child(w, fds[0]);
    }
    close(fds[0]);
    g->pipe = fds[1];
    if (g->pid < 0) {
        close_fd(&g->pipe);
        return err_sys(err, errno, "workspace.apply.guard", "fork");
    }
    return 0;
}

static void
guard_end(struct guard *g)
{
    ssize_t n;

    do
        n = write(g->pipe, "d", 1);
    while (n < 0 && errno == EINTR);
    close_fd(&g->pipe);
    while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* --- apply ------------------------------------------------------------------------------------------------------ */

static void
block_signals(sigset_t *old)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, old);
}

/* The moves, with the journal around them. */
static int
commit(struct work *w, struct err *err)
{
    struct moves moves = { .j = &w->journal, .stage = w->stage, .project = w->in->project, .c = w->c,
                           .fate = w->plan->fate, .change_of = w->change_of };
    sigset_t old;
    int r;

    block_signals(&old);
    r = moves_open(&moves, err);
    if (r == 0)
        r = journal_write(w->state->state_fd, &w->journal, true, err);
    if (r == 0)
        r = commit_steps(&moves, err);
    moves_close(&moves);
    if (r == 0) {
        sync_project(w);
        r = journal_write(w->state->state_fd, &w->journal, false, err);
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    return r;
}

static int
run(struct work *w, struct err *err)
{
    struct guard guard = { .pipe = -1 };

    if (list_steps(w, err) < 0 || w->journal.n == 0)
        return w->journal.n == 0 && w->change_of != NULL ? 0 : -1;
    if (guard_start(w, &guard, err) < 0)
        return -1;
    int r = open_stage(w, err);
    if (r == 0)
        r = fill_stage(w, err);
    if (r == 0)
        r = commit(w, err);
    /* with what could not be undone the stage stays: it holds the old content */
    bool keep = r < 0 && err_is(err, "workspace.apply.undo");
    if (!keep && clean_up(w->state->state_fd, w->in->project, w->stages, &w->journal, r == 0 ? err : NULL) < 0 &&
        r == 0)
        r = -1;
    guard_end(&guard);
    return r;
}

int
apply_commit(const struct cow_state *state, const struct diff_input *in, const struct changes *c,
             const struct apply_plan *plan, struct err *err)
{
    struct work w = { .state = state, .in = in, .c = c, .plan = plan, .journal = JOURNAL_INIT, .stages = -1,
                      .stage = -1 };
    struct err local = ERR_INIT;

    if (plan->n_conflicts > 0 || state->lock_fd < 0)
        return err_set(err, ERR_USAGE, "workspace.apply.conflict", "there are conflicts");
    int r = run(&w, &local);
    close_fd(&w.stage);
    close_fd(&w.stages);
    journal_free(&w.journal);
    free(w.change_of);
    if (r < 0 && err != NULL)
        *err = local;
    return r;
}

int
apply_recover(const struct cow_state *state, int project, struct err *err)
{
    cleanup_journal struct journal j = JOURNAL_INIT;
    int r = journal_read(state->state_fd, &j, err);

    if (r <= 0)
        return r;
    cleanup_close int stages = j.in_project ? open_stages(project) : -1;
    cleanup_close int stage = j.in_project && stages < 0 ? -1 :
        openat(j.in_project ? stages : state->state_fd, j.stage, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (stage < 0 && (errno != ENOENT || j.n > 0))
        return err_sys(err, errno, "workspace.apply.undo", "cannot open the stage of an interrupted apply");
    struct moves moves = { .j = &j, .stage = stage, .project = project };
    if (stage >= 0 && undo_steps(&moves, j.n, err) < 0)
        return -1;
    /* undone: a second interruption from here on has only the stage to remove */
    if (j.n > 0 && journal_write(state->state_fd, &j, false, err) < 0)
        return -1;
    return clean_up(state->state_fd, project, stages, &j, err) < 0 ? -1 : 1;
}
