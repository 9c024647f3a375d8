/* wall/janitor.h: somebody who tidies up after a process that was killed
 *
 * A small process that waits for the end of its maker, however it comes, and then does one job: remove what the kernel
 * does not take back by itself. It must be started before the first such thing is made. It holds no descriptor of its
 * maker's and stands in a session of its own, so that signals to the maker's group do not reach it.
 */
#ifndef CLOCHE_WALL_JANITOR_H
#define CLOCHE_WALL_JANITOR_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

#define JANITOR_HELD_MAX 4

struct janitor {
    pid_t pid;
    /* Of a seqpacket socket: closing it is what the janitor waits for. Descriptors that are sent into it, at most
     * JANITOR_HELD_MAX in a message of one byte, are held until the janitor ends. So what the kernel does when the last
     * one who has a file lets go of it, as to take a file system apart, it does there, beside what the maker has left
     * to do. */
    int end;
};

#define JANITOR_INIT { .pid = -1, .end = -1 }

/* True when nothing is left to do; called again after a pause otherwise (processes take a moment to die). It runs in a
 * copy of the maker's memory as it was at the start: what it needs to know must be decided by then. */
typedef bool janitor_job(void *ctx);

int janitor_start(struct janitor *j, janitor_job *job, void *ctx, struct err *err);

/* One that was killed has a successor; the same job. True when there is one. */
bool janitor_renew(struct janitor *j, janitor_job *job, void *ctx);

/* The maker ends in order. With @done everything is gone and the janitor goes too; otherwise it is left to its job. */
void janitor_dismiss(struct janitor *j, bool done);

#endif
