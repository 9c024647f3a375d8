/* guest/tree.h: processes, read from /proc without libc's directory streams
 *
 * Used where there is no pid namespace to lean on (light mode) and by the memory watchdog.
 */
#ifndef CLOCHE_GUEST_TREE_H
#define CLOCHE_GUEST_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TREE_MAX 32768          /* processes looked at; more are found on the next look */

struct tree_proc {
    pid_t pid, parent;
    uint32_t threads;           /* that live; a dead one that waits to be reaped counts as one */
    bool zombie;                /* nothing of it runs any more */
    bool headless;              /* its first thread has ended, others go on: what it holds is told by theirs */
    bool ours;                  /* a descendant of this process */
};

/* Every process that /proc shows, descendants of @self marked. Returns how many, the array is the caller's to
 * free; -1 with errno when /proc cannot be read. */
ssize_t tree_read(pid_t self, struct tree_proc **out);
/* A thread of @pid that lives, for /proc/PID/task/TID/...; 0: there is none. */
pid_t tree_thread(pid_t pid);
/* The whole of /proc/PID/NAME into @p, NUL-terminated. -1 with errno. */
ssize_t tree_read_file(pid_t pid, const char *name, char *p, size_t room);
/* Whether that failed for want of something of ours, and says nothing about the process. */
bool tree_cannot_look(void);

#endif
