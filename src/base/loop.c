/* base/loop.c: see loop.h */
#include "base/loop.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"

#define FIRST_MS 20         /* so long at most others' turns last before what is told first is looked at */
#define FIRST_MAX 4

_Static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT && EPOLLERR == POLLERR && EPOLLHUP == POLLHUP &&
               EPOLLRDHUP == 0x2000, "events are told as epoll's");

int
loop_init(struct loop *l, struct err *err)
{
    loop_init_polled(l);
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    return l->epoll < 0 ? err_sys(err, errno, "loop", "epoll") : 0;
}

void
loop_init_polled(struct loop *l)
{
    l->epoll = l->first = -1;
    l->now_ms = l->first_ms = clock_ms();
    l->at = l->n = l->due = 0;
    l->failed = false;
    l->timers = NULL;
    l->watches = NULL;
}

void
loop_close(struct loop *l)
{
    if (l->epoll >= 0)
        close(l->epoll);
    if (l->first >= 0)
        close(l->first);
    l->epoll = l->first = -1;
}

/* --- descriptors -------------------------------------------------------------------------------------------------- */

/* What came for @w is about a descriptor that it has no more. */
static void
untold(struct loop *l, const struct watch *w)
{
    for (int i = l->at; i < l->n; i++)
        if (l->came[i].data.ptr == w)
            l->came[i].data.ptr = NULL;
}

/* It keeps its place among those that are polled for as long as it has its descriptor. */
static int
poll_for(struct loop *l, struct watch *w)
{
    struct watch **at = &l->watches;
    int n = 0;

    for (; *at != NULL && *at != w; at = &(*at)->next)
        n++;
    if (*at == w)
        return 0;
    if (n == LOOP_BATCH) {
        errno = ENOSPC;
        return -1;
    }
    *at = w;
    w->next = NULL;
    return 0;
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
    if ((l->epoll < 0 ? poll_for(l, w) : epoll_ctl(l->epoll, how, w->fd, &e)) < 0)
        return -1;
    w->events = events;
    return 0;
}

int
loop_first(struct loop *l, struct watch *w)
{
    struct epoll_event e = { .events = EPOLLIN, .data = { .ptr = w } };

    if (l->first < 0)
        l->first = epoll_create1(EPOLL_CLOEXEC);
    return l->first < 0 ? -1 : epoll_ctl(l->first, EPOLL_CTL_ADD, w->fd, &e);
}

int
loop_look(struct loop *l, struct watch *w, int fd, uint32_t events)
{
    if (w->fd != fd)
        (void)loop_forget(l, w);
    w->fd = fd;
    return loop_watch(l, w, events);
}

int
loop_move(struct loop *l, struct watch *from, struct watch *to, uint32_t events)
{
    struct epoll_event e = { .events = events, .data = { .ptr = to } };
    bool watched = from->events != 0 && l->epoll >= 0;

    untold(l, from);
    if (!watched || events == 0) {
        to->fd = loop_forget(l, from);
        return loop_watch(l, to, events);
    }
    to->fd = from->fd;
    to->events = events;
    from->fd = -1;
    from->events = 0;
    return epoll_ctl(l->epoll, EPOLL_CTL_MOD, to->fd, &e);
}

int
loop_forget(struct loop *l, struct watch *w)
{
    int fd = w->fd;

    (void)loop_watch(l, w, 0);
    for (struct watch **at = &l->watches; *at != NULL; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            break;
        }
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

/* --- times -------------------------------------------------------------------------------------------------------- */

void
loop_at(struct loop *l, struct timer *t, uint64_t at_ms)
{
    struct timer **at = &l->timers;

    if (t->at_ms == at_ms)
        return;
    if (t->at_ms != 0) {
        while (*at != t)
            at = &(*at)->next;
        *at = t->next;
    }
    t->at_ms = at_ms;
    if (at_ms == 0)
        return;
    for (at = &l->timers; *at != NULL && (*at)->at_ms <= at_ms;)
        at = &(*at)->next;
    t->next = *at;
    *at = t;
}

static int
count_due(const struct loop *l)
{
    int n = 0;

    for (const struct timer *t = l->timers; t != NULL && t->at_ms <= l->now_ms; t = t->next)
        n++;
    return n;
}

/* One that is set again in its turn is not told twice, whatever it was set to. */
static void
tell_times(struct loop *l)
{
    for (; l->due > 0 && l->timers != NULL && l->timers->at_ms <= l->now_ms; l->due--) {
        struct timer *t = l->timers;
        loop_at(l, t, 0);
        if (t->due != NULL)
            t->due(t);
    }
}

/* --- signals ------------------------------------------------------------------------------------------------------ */

static void
on_signals(struct watch *w, uint32_t events)
{
    struct signals *s = (struct signals *)w;
    struct signalfd_siginfo info;

    (void)events;
    while (w->fd >= 0 && read(w->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        s->from = (pid_t)info.ssi_pid;
        s->came(s, (int)info.ssi_signo);
    }
}

int
signals_open(struct signals *s, const sigset_t *set, sigset_t *old)
{
    if (sigprocmask(SIG_BLOCK, set, old) < 0)
        return -1;
    s->watch.ready = on_signals;
    s->watch.fd = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
    return s->watch.fd < 0 ? -1 : 0;
}

/* --- rounds ------------------------------------------------------------------------------------------------------- */

void
loop_break(struct loop *l)
{
    l->n = l->at;
    l->due = 0;
}

void
loop_done(struct loop *l, int r)
{
    if (r >= 0)
        return;
    l->failed = true;
    loop_break(l);
}

/* How long a round may wait that was to wait for @ms. */
static int
patience(const struct loop *l, int ms)
{
    uint64_t left;

    if (l->timers == NULL)
        return ms;
    left = clock_since(l->timers->at_ms, clock_ms());
    return ms >= 0 && (uint64_t)ms < left ? ms : left < INT_MAX ? (int)left : INT_MAX;
}

/* As epoll_wait(2) of all that is watched. */
static int
wait_polled(struct loop *l, int ms)
{
    struct pollfd fds[LOOP_BATCH];
    nfds_t n = 0;
    int ready, told = 0;

    for (struct watch *w = l->watches; w != NULL; w = w->next) {
        if (w->events == 0)
            continue;
        fds[n] = (struct pollfd){ .fd = w->fd, .events = (short)w->events };
        l->came[n++].data.ptr = w;
    }
    ready = poll(fds, n, ms);
    for (nfds_t i = 0; i < n && told < ready; i++)
        if (fds[i].revents != 0)
            l->came[told++] = (struct epoll_event){ .events = (uint16_t)fds[i].revents, .data = l->came[i].data };
    return ready;
}

/* What is told first, between two others of this round. */
static void
tell_first(struct loop *l)
{
    struct epoll_event came[FIRST_MAX];
    uint64_t now_ms = clock_ms();
    int n;

    if (now_ms - l->first_ms < FIRST_MS)
        return;
    l->first_ms = now_ms;
    n = epoll_wait(l->first, came, ARRAY_LEN(came), 0);
    for (int i = 0; i < n; i++) {
        struct watch *w = came[i].data.ptr;
        if (w->fd < 0 || w->events == 0)
            continue;
        untold(l, w);
        w->ready(w, came[i].events);
    }
}

int
loop_round(struct loop *l, int ms, struct err *err)
{
    int n;

    if (l->failed)
        return -1;
    ms = patience(l, ms);
    n = l->epoll < 0 ? wait_polled(l, ms) : epoll_wait(l->epoll, l->came, ARRAY_LEN(l->came), ms);
    l->now_ms = l->first_ms = clock_ms();
    if (n < 0)
        return errno == EINTR ? 0 : err_sys(err, errno, "loop", l->epoll < 0 ? "poll" : "epoll_wait");
    l->n = n;
    l->due = count_due(l);
    for (l->at = 0; l->at < l->n;) {
        const struct epoll_event *e = &l->came[l->at++];
        struct watch *w = e->data.ptr;
        if (w != NULL && w->ready != NULL)
            w->ready(w, e->events);
        if (l->first >= 0 && l->at < l->n)
            tell_first(l);
    }
    tell_times(l);
    return l->failed ? -1 : n;
}
