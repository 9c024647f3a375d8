/* guest/guard_lock.h: the lock of a file that is the sandbox's own, which is no file of the host's (guard_lock.c) */
#ifndef CLOCHE_GUEST_GUARD_LOCK_H
#define CLOCHE_GUEST_GUARD_LOCK_H

#include <stdbool.h>
#include <sys/types.h>

struct call;
struct guard;
struct place;

#define LOCKS_MAX 8

/* A lock that somebody inside made. */
struct own_lock {
    pid_t tid;
    int file;                   /* for reading; it has no name */
};

/* Is that the lock of a file of the sandbox's own? */
bool lock_is(const struct guard *g, const struct place *p);
/* Make it, for this caller: the answer to its call, with the descriptor. */
int lock_make(struct call *c, const struct place *p, int flags);
/* The file that this caller made so, or -1; lent. */
int lock_file(const struct call *c);
void lock_drop(const struct call *c);

#endif
