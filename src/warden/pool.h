/* warden/pool.h: sandboxes that are made ahead of the request that they will be for (pool.c) */
#ifndef CLOCHE_WARDEN_POOL_H
#define CLOCHE_WARDEN_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"
#include "proto/edge_keeper.h"
#include "proto/edge_launcher.h"
#include "warden/stats.h"

struct warden;
struct box;
struct pool_key;

struct pool {
    struct box *boxes;                  /* made ahead, or just taken: few, among all that there are */
    struct pool_key *keys;
    struct timer next;                  /* when something is due to one of them */
    size_t n_keys;
    struct launch_pool is;              /* as the launcher says; max 0: nothing is made ahead */
    uint64_t taken, missed, lost;       /* requests that could be served so; parked ones that ended by themselves */
    struct histogram fill;              /* how long it took to make them */
};

/* One that waits for what @c asks for as @r, or NULL. */
struct box *pool_find(const struct warden *w, const struct edge_create *c, const struct edge_box *r);
/* Somebody has asked for such a one, and was not refused: it was @found, or not. */
void pool_asked(struct warden *w, const struct edge_create *c, const struct edge_box *r, bool found);
/* What its keeper waits for next may take so long; it could be taken; its keeper has ended (@why NULL: without a word,
 * or because it was told to). */
int pool_on_step(struct warden *w, const struct keep_step *next);
int pool_on_parked(struct warden *w, const struct edge_count *memory);
void pool_gone(struct box *b, const struct err *why);
void pool_turn(struct warden *w);
void pool_call_over(struct warden *w);              /* one that may have taken one */
/* One is made ahead from now on; it is no more. */
void pool_enter(struct box *b);
void pool_leave(struct box *b);
size_t pool_count(const struct warden *w);          /* with those that are being made, or end */
/* All of them end, and nobody is known to have asked: what they were made of may have changed. */
void pool_drain(struct warden *w, const char *why);
void pool_owner_gone(struct warden *w, const char *owner);
void pool_make_room(struct warden *w);              /* one of them ends, for a sandbox that somebody wants */
int pool_on_settings(struct warden *w, const struct launch_pool *m);
const char *pool_language(const struct box *b);     /* whose interpreter is to wait in it */
void pool_put(const struct warden *w, struct buf *b);            /* for count.c */

#endif
