/* run/starter.h: cloche-starter, which starts cloche-egress anew for a keeper that starts nothing any more
 *
 * A keeper whose sandbox is made has a system call list without execve(2) (keeper_confine.c). What it may still need is
 * another cloche-egress, when that has died. This process was started before the list came into force, is kept for
 * that alone, and reads one socket, whose other end only the keeper has: descriptors, and the word that it is to begin.
 * The program is fixed, and so are its words and its environment, which are none. What it starts is the keeper's child
 * (CLONE_PARENT, clone(2)), which waits for it and signals it.
 */
#ifndef CLOCHE_RUN_STARTER_H
#define CLOCHE_RUN_STARTER_H

#include <sys/types.h>

#include "base/err.h"
#include "program/helper.h"

struct helper;

struct starter {
    int fd;             /* -1: there is none */
    pid_t pid;
};

#define STARTER_INIT { .fd = -1, .pid = 0 }

/* Start it: a child of ours. 0 or -1 with @err. */
int starter_open(struct starter *s, struct err *err);
/* helper_start() of cloche-egress by it; of @h the descriptors and the cgroup count. */
pid_t starter_start(const struct starter *s, const struct helper *h, int *control, struct err *err);
void starter_close(struct starter *s);      /* end it, and wait for that */

/* What `cloche-starter` is. The exit code. */
int starter_main(int argc, char **argv);

#endif
