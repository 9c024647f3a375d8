/* guest/guard_near.h: a descriptor is passed without waking another processor (guard_near.c) */
#ifndef CLOCHE_GUEST_GUARD_NEAR_H
#define CLOCHE_GUEST_GUARD_NEAR_H

#include <stdbool.h>

struct call;
struct guard;

#define NEAR_WORDS (1024 / (8 * sizeof(unsigned long)))

/* Processors, as sched_setaffinity(2) has them. */
struct near_mask {
    unsigned long bits[NEAR_WORDS];
};

struct near {
    bool possible, asked;
    int cpu;                    /* where we were at the end of the last call that passed a descriptor */
    unsigned calls_left;        /* for so many more both stay on one processor; 0: it is tried without */
    unsigned span;              /* how many these were at first */
    unsigned calls_free;        /* without, since then; counted a little further than to AT_ONCE */
    struct near_mask own;       /* ours, when nothing is held */
};

/* What is changed while one descriptor is passed. */
struct near_hold {
    bool own, caller;
    struct near_mask only, former;
};

void near_init(struct guard *g);
/* Is the caller better kept here, and answered in two steps? Asked before a descriptor is passed; after it, if not,
 * near_look(). */
bool near_is_worth(struct call *c);
void near_look(struct guard *g);
/* Around the passing of a descriptor, the caller not being answered yet: it wakes where we run, and wakes us there.
 * What another thread meanwhile set for it stays. */
void near_begin(struct call *c, struct near_hold *h);
void near_end(struct call *c, const struct near_hold *h);

#endif
