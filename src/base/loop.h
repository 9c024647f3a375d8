/* base/loop.h: one thread that waits: for descriptors, times and signals
 *
 * It waits by epoll, or by poll(2): that needs no system call to set up, takes files as well, and tells who is ready in
 * the order in which they were watched first. It looks at all of them each time, so it is for a few.
 */
#ifndef CLOCHE_BASE_LOOP_H
#define CLOCHE_BASE_LOOP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/err.h"

struct watch;
typedef void watch_fn(struct watch *w, uint32_t events);    /* EPOLLIN ... */

/* One descriptor that is watched; a member of what it belongs to, which may be freed when the descriptor was dropped or
 * forgotten, in a callback too: what this round still had for it is not told. */
struct watch {
    int fd;             /* -1: none */
    uint32_t events;    /* that it is watched for; 0: not watched now */
    watch_fn *ready;    /* NULL: that something came only ends the round's wait */
    void *owner;
    struct watch *next; /* of a loop that polls */
};

#define WATCH_INIT { .fd = -1 }

struct timer;
typedef void timer_fn(struct timer *t);

/* A moment that is waited for; a member of what it belongs to, which may be freed when it is not set any more, in a
 * callback too. */
struct timer {
    uint64_t at_ms;     /* of clock_ms(); 0: not set */
    timer_fn *due;      /* NULL: that it came only ends the round's wait */
    void *owner;
    struct timer *next;
};

/* Signals that are blocked, and come as a descriptor that is ready. */
struct signals {
    struct watch watch;
    void (*came)(struct signals *s, int number);
    pid_t from;             /* whose it is that comes: of SIGCHLD, one of those that ended; 0: of nobody known */
};

#define LOOP_BATCH 256

struct loop {
    int epoll;              /* -1: it polls */
    int first;              /* another, of what is told first; -1: nothing is */
    uint64_t first_ms;      /* when that was last looked at */
    uint64_t now_ms;        /* of this round */
    int at, n;              /* of what came in this round: how much was told */
    int due;                /* timers of this round that are not told yet */
    bool failed;
    struct timer *timers;   /* the soonest first */
    struct watch *watches;  /* of a loop that polls: at most LOOP_BATCH */
    struct epoll_event came[LOOP_BATCH];
};

int loop_init(struct loop *l, struct err *err);
void loop_init_polled(struct loop *l);
void loop_close(struct loop *l);

/* Watch @w->fd for @events (0: for nothing, not even errors). 0 or -1 with errno. */
int loop_watch(struct loop *l, struct watch *w, uint32_t events);
/* The same where the descriptor is somebody else's, who may have closed it or have another one now: @fd (-1: none). */
int loop_look(struct loop *l, struct watch *w, int fd, uint32_t events);
/* @w, which is watched, can be read: it is told of that before its turn when what came before it takes long. By epoll
 * alone. 0 or -1 with errno. */
int loop_first(struct loop *l, struct watch *w);
/* The descriptor of @from is @to's now, which has none, and watched for @events there. 0 or -1 with errno: it is @to's
 * then too, and not watched. */
int loop_move(struct loop *l, struct watch *from, struct watch *to, uint32_t events);
/* Its descriptor, which is not watched any more, and no longer @w's; -1: it has none. */
int loop_forget(struct loop *l, struct watch *w);
/* The same, and close it. */
void loop_drop(struct loop *l, struct watch *w);

/* Call @t->due once, in the first round that ends at @at_ms or later; 0: not any more. */
void loop_at(struct loop *l, struct timer *t, uint64_t at_ms);

/* Block the signals of @set; s->watch, which keeps its owner, gets their descriptor, and is the caller's to be watched
 * for EPOLLIN and dropped. What was blocked before goes to @old (may be NULL). 0 or -1 with errno. */
int signals_open(struct signals *s, const sigset_t *set, sigset_t *old);

/* What came in this round and is not told yet is not told any more; timers that were due are in the next one. */
void loop_break(struct loop *l);

/* What a callback did came to @r. When that is negative it has said why, nothing more is told, and this round and all
 * that would follow are -1. */
void loop_done(struct loop *l, int r);

/* Wait at most @ms (-1: for ever), and no longer than until the next timer, for events; call those who asked, once, and
 * then those whose time has come. How many events came, or -1 with @err. */
int loop_round(struct loop *l, int ms, struct err *err);

#endif
