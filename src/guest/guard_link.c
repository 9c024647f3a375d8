/* guest/guard_link.c: see guard_link.h */
#include "guest/guard_link.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "guest/guard.h"

#define REPORT_EVERY_US 200000  /* a loop of denied calls must not become a flood of messages */

static struct guard_filter filter;

int
guard_link_setup(struct guest *g, const void *plan, size_t n)
{
    cleanup_guard_plan struct guard_plan parsed = GUARD_PLAN_INIT;

    if (n == 0)
        return 0;
    if (guard_plan_parse(plan, n, &parsed, NULL) < 0 || guard_new(&parsed, &g->guard, NULL) < 0)
        return -1;
    guard_filter_build(parsed.flags, &filter);
    return 0;
}

int
guard_link_begin(struct guest *g, struct child_plan *plan, int *sock)
{
    int pair[2];

    *sock = -1;
    if (g->guard == NULL || filter.n == 0)
        return 0;
    if (g->n_listeners == GUARD_LISTENERS_MAX) {
        errno = EAGAIN;
        return -1;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    plan->guard = &filter;
    plan->guard_sock = pair[1];
    *sock = pair[0];
    return 0;
}

void
guard_link_abandon(struct child_plan *plan, int sock)
{
    close_fd(&plan->guard_sock);
    close_fd(&sock);
}

int
guard_link_finish(struct guest *g, struct child_plan *plan, int sock)
{
    int listener;

    if (sock < 0)
        return 0;
    /* the child's end first: then a child that did not send anything is an end of file, not a wait */
    close_fd(&plan->guard_sock);
    listener = guard_listener_take(sock);
    close_fd(&sock);
    if (listener < 0)
        return -1;
    g->listeners[g->n_listeners++] = listener;
    return 0;
}

int
guard_link_report(struct guest *g)
{
    struct guard_denial d;

    while (g->guard != NULL && guard_next_denial(g->guard, &d)) {
        const struct msg_denied m = { .count = d.count, .op = d.op, .target = d.target, .rule = d.rule };
        if (msg_put_denied(&g->link.out, &m) < 0)
            return -1;
    }
    return 0;
}

int
guard_link_serve(struct guest *g, size_t i, int revents)
{
    static uint64_t reported_us;
    int served = guard_on_notify(g->guard, g->listeners[i], revents);
    int why = errno;
    uint64_t now;

    if (served != 0) {
        close(g->listeners[i]);
        g->listeners[i] = g->listeners[--g->n_listeners];
    }
    if (served < 0) {
        /* calls that are never answered would hang for ever, and answers that are not decided do not exist */
        const struct msg_notice m = { .kind = NOTICE_GUARD, .value = (uint64_t)why };
        reap_kill_all(g, SIGKILL);
        return msg_put_notice(&g->link.out, &m);
    }
    now = clock_us();
    if (now - reported_us < REPORT_EVERY_US || link_full(&g->link))
        return 0;
    reported_us = now;
    return guard_link_report(g);
}

bool
guard_link_settle(struct guest *g)
{
    return g->guard != NULL && guard_settle(g->guard);
}

void
guard_link_lease_broken(struct guest *g)
{
    if (g->guard != NULL)
        guard_lease_broken(g->guard);
}

bool
guard_link_reaped(struct guest *g, int pid)
{
    return g->guard != NULL && guard_worker_ended(g->guard, pid);
}

int
guard_link_check(struct guest *g, int dir, const char *name, const char *op)
{
    return g->guard != NULL ? guard_check(g->guard, dir, name, op) : 0;
}

int
guard_link_made(struct guest *g, int dir, const char *name, bool directory)
{
    int rc = g->guard != NULL ? guard_made(g->guard, dir, name, directory) : 0;

    if (rc != 0)
        (void)unlinkat(dir, name, directory ? AT_REMOVEDIR : 0);
    return rc;
}

int
guard_link_check_write(struct guest *g, int dir, const char *name)
{
    return g->guard != NULL ? guard_check_write(g->guard, dir, name) : 0;
}

int
guard_link_rename(struct guest *g, int from, const char *from_name, int to, const char *to_name, bool replace)
{
    return g->guard != NULL ? guard_rename(g->guard, from, from_name, to, to_name, replace) : 0;
}

int
guard_link_renamed(struct guest *g, int from, const char *from_name, int to, const char *to_name)
{
    return g->guard != NULL ? guard_renamed(g->guard, from, from_name, to, to_name) : 0;
}

int
guard_link_place(struct guest *g, int fd, int dir, const char *name, bool replace)
{
    return g->guard != NULL ? guard_place(g->guard, fd, dir, name, replace) : 0;
}

int
guard_link_unshare(struct guest *g, int dir, const char *name, uint64_t keep)
{
    return g->guard != NULL ? guard_unshare(g->guard, dir, name, keep) : 0;
}

int
guard_link_opened(struct guest *g, int dir, const char *name, int fd)
{
    return g->guard != NULL ? guard_opened(g->guard, dir, name, fd) : 0;
}
