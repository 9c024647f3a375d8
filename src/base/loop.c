/* base/loop.c: see loop.h */
#include "base/loop.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"

int
loop_init(struct loop *l, struct err *err)
{
    l->now_ms = clock_ms();
    l->at = l->n = 0;
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    return l->epoll < 0 ? err_sys(err, errno, "loop", "epoll") : 0;
}

void
loop_close(struct loop *l)
{
    if (l->epoll >= 0)
        close(l->epoll);
    l->epoll = -1;
}

/* What came for @w is about a descriptor that it has no more. */
static void
untold(struct loop *l, const struct watch *w)
{
    for (int i = l->at; i < l->n; i++)
        if (l->came[i].data.ptr == w)
            l->came[i].data.ptr = NULL;
}

int
loop_watch(struct loop *l, struct watch *w, uint32_t events)
{
    struct epoll_event e = { .events = events, .data = { .ptr = w } };
    int how = w->events == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;

    if (w->events == events || w->fd < 0)
        return 0;
    if (how == EPOLL_CTL_DEL)
        untold(l, w);
    if (epoll_ctl(l->epoll, how, w->fd, &e) < 0)
        return -1;
    w->events = events;
    return 0;
}

int
loop_move(struct loop *l, struct watch *from, struct watch *to, uint32_t events)
{
    struct epoll_event e = { .events = events, .data = { .ptr = to } };
    bool watched = from->events != 0;

    untold(l, from);
    to->fd = from->fd;
    to->events = from->events;
    from->fd = -1;
    from->events = 0;
    if (!watched || events == 0)
        return loop_watch(l, to, events);
    to->events = events;
    return epoll_ctl(l->epoll, EPOLL_CTL_MOD, to->fd, &e);
}

int
loop_forget(struct loop *l, struct watch *w)
{
    int fd = w->fd;

    (void)loop_watch(l, w, 0);
    w->fd = -1;
    w->events = 0;
    return fd;
}

void
loop_drop(struct loop *l, struct watch *w)
{
    int fd = loop_forget(l, w);

    if (fd >= 0)
        close(fd);
}

void
loop_break(struct loop *l)
{
    l->n = l->at;
}

int
loop_round(struct loop *l, int ms, struct err *err)
{
    int n = epoll_wait(l->epoll, l->came, ARRAY_LEN(l->came), ms);

    l->now_ms = clock_ms();
    if (n < 0)
        return errno == EINTR ? 0 : err_sys(err, errno, "loop", "epoll_wait");
    l->n = n;
    for (l->at = 0; l->at < l->n;) {
        const struct epoll_event *e = &l->came[l->at++];
        struct watch *w = e->data.ptr;
        if (w != NULL && w->ready != NULL)
            w->ready(w, e->events);
    }
    return n;
}
