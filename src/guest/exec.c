/* guest/exec.c: EXEC, from the message to a running command */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "guest/child.h"
#include "guest/guest.h"
#include "guest/guard_link.h"

/* The pointers of a usual command line and environment: they are needed until execve only. */
#define FEW_STRINGS 256
static const char *few_strings[FEW_STRINGS];

/* Both ends of what stands between the guest and the command. */
struct plumbing {
    int child[3];               /* becomes 0, 1, 2 there; closed here after the spawn */
    int in, out, err;           /* ours; -1 where there is none */
    int joins[MSG_JOINS_MAX];   /* of cgroups; closed here after the spawn too */
    size_t n_joins;
};

struct guest_exec *
exec_of(struct guest *g, uint16_t channel)
{
    for (size_t i = 0, left = g->n_execs; channel != 0 && left > 0 && i < MSG_EXECS_MAX; i++) {
        if (g->execs[i].channel == channel)
            return &g->execs[i];
        left -= g->execs[i].channel != 0;
    }
    return NULL;
}

struct guest_exec *
exec_slot(struct guest *g)
{
    for (size_t i = 0; i < MSG_EXECS_MAX; i++)
        if (g->execs[i].channel == 0)
            return &g->execs[i];
    return NULL;
}

void
exec_free(struct guest *g, struct guest_exec *e)
{
    /* A terminal's master, and a socket, is both its stdin and its output. */
    if (e->in_fd != e->out[0].fd)
        close_fd(&e->in_fd);
    close_fd(&e->out[0].fd);
    close_fd(&e->out[1].fd);
    buf_free(&e->in);
    e->channel = 0;
    g->n_execs--;
}

int
exec_failed(struct guest *g, uint16_t channel, int sys_errno, enum exec_stage stage)
{
    const struct msg_exec_failed m = { .sys_errno = (uint32_t)sys_errno, .stage = (uint8_t)stage };

    return msg_put_exec_failed(&g->link.out, channel, &m);
}

/* One pipe; our end does not block. */
static int
relay_pipe(int *theirs, int *ours, bool we_write)
{
    int p[2];

    if (pipe2(p, O_CLOEXEC) < 0)
        return -1;
    *ours = p[we_write ? 1 : 0];
    *theirs = p[we_write ? 0 : 1];
    return fcntl(*ours, F_SETFL, O_NONBLOCK);
}

static void
plumbing_close(struct plumbing *p)
{
    for (size_t i = 0; i < 3; i++) {
        /* Of a terminal all three are one descriptor. */
        if (i > 0 && p->child[i] == p->child[0])
            p->child[i] = -1;
    }
    for (size_t i = 0; i < 3; i++)
        close_fd(&p->child[i]);
    for (size_t i = 0; i < p->n_joins; i++)
        close_fd(&p->joins[i]);
}

static void
plumbing_drop(struct plumbing *p)
{
    plumbing_close(p);
    if (p->in != p->out)
        close_fd(&p->in);
    close_fd(&p->out);
    close_fd(&p->err);
}

/* 0 or the stage that failed, with errno. */
static enum exec_stage
plumb(struct guest *g, const struct msg_exec *x, struct plumbing *p)
{
    int rc;

    if (x->stdio == EXEC_STDIO_FDS)
        return link_take_fds(&g->link, p->child, 3) < 0 ? EXEC_STAGE_STDIO : 0;
    p->n_joins = MSG_EXEC_JOINS(x->flags);
    (void)link_take_fds(&g->link, p->joins, p->n_joins);    /* they came: exec_on_exec() */
    if ((x->flags & MSG_EXEC_NOTE) != 0)
        (void)link_take_fds(&g->link, &p->child[2], 1);
    if (x->stdio == EXEC_STDIO_PTY) {
        rc = pty_open(x->rows, x->cols, &p->out, &p->child[0]);
        if (rc != 0) {
            errno = rc;
            return EXEC_STAGE_PTY;
        }
        p->in = p->out;
        p->child[1] = p->child[2] = p->child[0];
        return 0;
    }
    if ((x->flags & MSG_EXEC_NO_STDIN) != 0)
        rc = p->child[0] = openat(AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC);
    else
        rc = relay_pipe(&p->child[0], &p->in, true);
    if (rc < 0 || relay_pipe(&p->child[1], &p->out, false) < 0 ||
        (p->child[2] < 0 && relay_pipe(&p->child[2], &p->err, false) < 0))
        return EXEC_STAGE_STDIO;
    return 0;
}

static size_t
fds_of(const struct msg_exec *x)
{
    return x->stdio == EXEC_STDIO_FDS ? 3 : MSG_EXEC_JOINS(x->flags) + ((x->flags & MSG_EXEC_NOTE) != 0 ? 1U : 0U);
}

/* Make the process. 0 or the stage that failed, with errno. */
static enum exec_stage
spawn(struct guest *g, const struct msg_exec *x, const struct plumbing *p, struct guest_exec *e)
{
    size_t n_args = (size_t)x->argv.count + 2, n = n_args + (size_t)x->env.count + 1;
    cleanup_free const char **many = NULL;
    const char **strings = few_strings;
    struct child_plan plan = { .exec = x, .stdio = { p->child[0], p->child[1], p->child[2] },
                               .terminal = x->stdio == EXEC_STDIO_PTY, .light = g->light, .guard_sock = -1,
                               .n_joins = p->n_joins };
    int guard_sock = -1;

    if (n > FEW_STRINGS)
        strings = many = calloc(n, sizeof(*many));
    if (strings == NULL)
        return EXEC_STAGE_SPAWN;
    memcpy(plan.joins, p->joins, sizeof(plan.joins));
    plan.argv = strings + 1;
    plan.env = strings + n_args;
    msg_strings_fill(&x->argv, plan.argv);
    msg_strings_fill(&x->env, plan.env);
    if ((x->flags & MSG_EXEC_NO_GUARD) == 0 && guard_link_begin(g, &plan, &guard_sock) < 0)
        return EXEC_STAGE_GUARD;
    e->started_us = clock_us();
    e->pid = child_spawn(&plan);
    if (e->pid < 0) {
        guard_link_abandon(&plan, guard_sock);
        return EXEC_STAGE_SPAWN;
    }
    if (plan.failed_errno != 0) {
        (void)waitpid(e->pid, NULL, 0);
        guard_link_abandon(&plan, guard_sock);
        errno = plan.failed_errno;
        return plan.failed_stage;
    }
    if (guard_link_finish(g, &plan, guard_sock) < 0) {
        int saved = errno;

        /* Its guarded calls would never be answered: it must not go on. */
        (void)kill(e->pid, SIGKILL);
        (void)waitpid(e->pid, NULL, 0);
        errno = saved;
        return EXEC_STAGE_GUARD;
    }
    return 0;
}

static void
take_plumbing(struct guest_exec *e, const struct msg_exec *x, const struct plumbing *p)
{
    e->in_fd = p->in;
    e->in = (struct buf)BUF_INIT(MSG_STDIN_WINDOW_START);
    e->out[0] = (struct exec_out){ .fd = p->out, .type = MSG_STDOUT };
    e->out[1] = (struct exec_out){ .fd = p->err, .type = MSG_STDERR };
    for (size_t i = 0; i < 2; i++) {
        e->out[i].limited = x->window != 0;
        e->out[i].room = x->window;
    }
}

int
exec_on_exec(struct guest *g, const struct frame *f)
{
    struct plumbing p = { .child = { -1, -1, -1 }, .in = -1, .out = -1, .err = -1, .joins = { -1, -1, -1 } };
    struct msg_exec x;
    struct guest_exec *e;
    enum exec_stage failed;
    int saved;

    if (f->channel == 0 || exec_of(g, f->channel) != NULL || !msg_get_exec(f, &x))
        return -1;
    /* Descriptors that were announced and did not come: the host's mistake, not the command's. */
    if (g->link.n_fds < fds_of(&x))
        return -1;
    failed = plumb(g, &x, &p);
    saved = errno;
    e = exec_slot(g);
    if (failed == 0 && e == NULL) {
        failed = EXEC_STAGE_SPAWN;
        saved = EAGAIN;
    }
    if (failed == 0) {
        *e = (struct guest_exec){ .stdio = x.stdio };
        failed = spawn(g, &x, &p, e);
        saved = errno;
    }
    if (failed != 0) {
        plumbing_drop(&p);
        return exec_failed(g, f->channel, saved, failed);
    }
    plumbing_close(&p);
    e->channel = f->channel;
    g->n_execs++;
    g->childless = false;
    take_plumbing(e, &x, &p);
    e->last = (x.flags & MSG_EXEC_LAST) != 0;
    if ((x.flags & MSG_EXEC_QUIET) != 0) {
        /* Nothing but HELLO waits: let it wait for company, each send wakes the host. */
        if (g->link.out_at == 0 && g->link.out.n == FRAME_HEADER + MSG_HELLO_SIZE)
            g->link.soft = g->link.out.n;
        return 0;
    }
    return msg_put_u32(&g->link.out, MSG_STARTED, f->channel, (uint32_t)e->pid);
}
