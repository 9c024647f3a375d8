/* base/loop.h: one thread, epoll, and a clock */
#ifndef CLOCHE_BASE_LOOP_H
#define CLOCHE_BASE_LOOP_H

#include <stdint.h>
#include <sys/epoll.h>

#include "base/err.h"

struct watch;
typedef void watch_fn(struct watch *w, uint32_t events);    /* EPOLLIN ... */

/* One descriptor that is watched; a member of what it belongs to, which may be freed when the descriptor was dropped or
 * forgotten, in a callback too: what this round still had for it is not told. */
struct watch {
    int fd;             /* -1: none */
    uint32_t events;    /* what epoll was told; 0: not watched now */
    watch_fn *ready;    /* NULL: that something came only ends the round's wait */
    void *owner;
};

#define WATCH_INIT { .fd = -1 }

#define LOOP_BATCH 256

struct loop {
    int epoll;
    uint64_t now_ms;    /* of this round */
    int at, n;          /* of what came in this round: how much was told */
    struct epoll_event came[LOOP_BATCH];
};

int loop_init(struct loop *l, struct err *err);
void loop_close(struct loop *l);

/* Watch @w->fd for @events (0: for nothing, not even errors). 0 or -1 with errno. */
int loop_watch(struct loop *l, struct watch *w, uint32_t events);
/* The descriptor of @from is @to's now, which has none, and watched for @events there. 0 or -1 with errno: it is @to's
 * then too, and not watched. */
int loop_move(struct loop *l, struct watch *from, struct watch *to, uint32_t events);
/* Its descriptor, which is not watched any more, and no longer @w's; -1: it has none. */
int loop_forget(struct loop *l, struct watch *w);
/* The same, and close it. */
void loop_drop(struct loop *l, struct watch *w);

/* What came in this round and is not told yet is not told any more. */
void loop_break(struct loop *l);

/* Wait at most @ms for events and call those who asked, once. How many events came, or -1 with @err. */
int loop_round(struct loop *l, int ms, struct err *err);

#endif
