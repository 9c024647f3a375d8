/* egress/loop.h: one thread, epoll, and a clock */
#ifndef CLOCHE_EGRESS_LOOP_H
#define CLOCHE_EGRESS_LOOP_H

#include <stdint.h>

#include "base/err.h"

struct watch;
typedef void watch_fn(struct watch *w, uint32_t events);    /* EPOLLIN ... */

/* One descriptor that is watched; a member of what it belongs to, which outlives the batch of events that it is in:
 * whatever ends in a callback is freed by loop_run's @after, not at once. */
struct watch {
    int fd;             /* -1: none */
    uint32_t events;    /* what epoll was told; 0: not watched now */
    uint64_t since;     /* the round in which epoll was told of it */
    watch_fn *ready;
    void *owner;
};

#define WATCH_INIT { .fd = -1 }

struct loop {
    int epoll;
    uint64_t now_ms;    /* of this round */
    uint64_t round;
};

int loop_init(struct loop *l, struct err *err);
void loop_close(struct loop *l);

/* Watch @w->fd for @events (0: for nothing, not even errors). 0 or -1 with errno. */
int loop_watch(struct loop *l, struct watch *w, uint32_t events);
/* The descriptor of @from is @to's now, which has none, and watched for @events there. 0 or -1 with errno: it is @to's
 * then too, and not watched. */
int loop_move(struct loop *l, struct watch *from, struct watch *to, uint32_t events);
/* Forget and close the descriptor. */
void loop_drop(struct loop *l, struct watch *w);

/* Wait at most @ms for events and call those who asked, once. How many events came, or -1 with @err. */
int loop_round(struct loop *l, int ms, struct err *err);


#endif
