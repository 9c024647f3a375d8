/* guest/guard_lock.h: locks. Of a file that is the sandbox's own, which is no file of the host's (guard_lock.c); and of
 * those that git renames into place (guard_git_lock.c) */
#ifndef CLOCHE_GUEST_GUARD_LOCK_H
#define CLOCHE_GUEST_GUARD_LOCK_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "guest/guard_ident.h"

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

/* --- guard_git_lock.c */

#define HELD_MAX 32             /* locks that programs inside have at one time */

/* A lock that git renames into place (guard_git_lock.c). */
struct held {
    int dir;                    /* O_PATH */
    int named;                  /* for reading and writing: what has the name */
    int file;                   /* for reading: what its maker writes */
    struct ident dir_id, id;    /* of @dir and @named */
    bool dirty;                 /* @named may not be what @file is */
    bool leased;                /* who opens @named waits for us */
    char name[NAME_MAX + 1];
};

/* Open the lock at @p, whose name has no '/' behind it, for writing: *@writer. 0 or a negated errno. */
int held_open(struct call *c, const struct place *p, int flags, mode_t mode, int *writer);
/* What was written to the lock at @p, which was made inside; lent. -1: none is there. */
int held_file(struct guard *g, const struct place *p);
/* It is renamed: what has the name is what was written, and a file like others from now on. 0, or a negated errno: that
 * may not be there. */
int held_put(struct guard *g, const struct place *p);
/* The lock at @from, which was made inside, becomes @to: a judged copy does, and is held again if that is a lock too.
 * 0, an errno, or EACCES with @rule (GIT_RULE_MAX) said. */
int held_rename(struct guard *g, const struct place *from, const struct place *to, unsigned flags, char *rule);
void held_forget_all(struct guard *g);
/* Fill those that nobody writes any more, where no lease tells. True when some are not. */
bool held_settle(struct guard *g);

#endif
