/* egress/loop.c: see loop.h */
#include "egress/loop.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"

#define BATCH 256

int
loop_init(struct loop *l, struct err *err)
{
    l->now_ms = clock_ms();
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    return l->epoll < 0 ? err_sys(err, errno, "egress.loop", "epoll") : 0;
}

void
loop_close(struct loop *l)
{
    if (l->epoll >= 0)
        close(l->epoll);
    l->epoll = -1;
}

int
loop_watch(struct loop *l, struct watch *w, uint32_t events)
{
    struct epoll_event e = { .events = events, .data = { .ptr = w } };
    int how = w->events == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;

    if (w->events == events || w->fd < 0)
        return 0;
    if (epoll_ctl(l->epoll, how, w->fd, &e) < 0)
        return -1;
    if (how == EPOLL_CTL_ADD)
        w->since = l->round;
    w->events = events;
    return 0;
}

int
loop_move(struct loop *l, struct watch *from, struct watch *to, uint32_t events)
{
    struct epoll_event e = { .events = events, .data = { .ptr = to } };
    bool watched = from->events != 0;

    to->fd = from->fd;
    to->events = from->events;
    to->since = l->round;       /* what this round still has for @to was about another descriptor */
    from->fd = -1;
    from->events = 0;
    if (!watched || events == 0)
        return loop_watch(l, to, events);
    to->events = events;
    return epoll_ctl(l->epoll, EPOLL_CTL_MOD, to->fd, &e);
}

void
loop_drop(struct loop *l, struct watch *w)
{
    if (w->fd < 0)
        return;
    loop_watch(l, w, 0);
    close(w->fd);
    w->fd = -1;
    w->events = 0;
}

int
loop_round(struct loop *l, int ms, struct err *err)
{
    struct epoll_event came[BATCH];
    int n = epoll_wait(l->epoll, came, BATCH, ms);

    l->now_ms = clock_ms();
    l->round++;
    if (n < 0)
        return errno == EINTR ? 0 : err_sys(err, errno, "egress.loop", "epoll_wait");
    for (int i = 0; i < n; i++) {
        struct watch *w = came[i].data.ptr;
        /* an earlier callback of this round may have ended it; one that was added since has another descriptor, and
         * what came is not about that */
        if (w->fd >= 0 && w->events != 0 && w->since != l->round)
            w->ready(w, came[i].events);
    }
    return n;
}
