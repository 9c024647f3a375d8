/* base/held.h: a file that is held by a lock, so that nobody removes it */
#ifndef CLOCHE_BASE_HELD_H
#define CLOCHE_BASE_HELD_H

#include <sys/types.h>

/* Open @path with @flags (made with @mode) and lock it shared (flock), to keep it from those that lock a file alone
 * before they remove it. One of them who is at it is waited for, 200 ms, and what it removed is made anew (with
 * O_CREAT). -1 with errno, EWOULDBLOCK: somebody has it for longer. */
int open_and_hold(const char *path, int flags, mode_t mode);

#endif
