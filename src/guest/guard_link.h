/* guest/guard_link.h: the name guard (guard.h), joined to commands and to the loop */
#ifndef CLOCHE_GUEST_GUARD_LINK_H
#define CLOCHE_GUEST_GUARD_LINK_H

#include "guest/child.h"
#include "guest/guest.h"

/* SETUP's plan. -1: it is malformed. */
int guard_link_setup(struct guest *g, const void *plan, size_t n);
/* Around child_spawn: give the child what it needs to install the filter, then take the filter's listener. */
int guard_link_begin(struct guest *g, struct child_plan *plan, int *sock);
void guard_link_abandon(struct child_plan *plan, int sock);
int guard_link_finish(struct guest *g, struct child_plan *plan, int sock);
/* The listener @i has something to say (or is at its end). -1: the guest must end. */
int guard_link_serve(struct guest *g, size_t i, int revents);
/* Tell the host what was denied since the last time. -1: the transport cannot take it. */
int guard_link_report(struct guest *g);
/* Files that are judged when they are complete: true when some wait for that still. */
bool guard_link_settle(struct guest *g);
/* SIGIO came. */
void guard_link_lease_broken(struct guest *g);
/* The reaped process @pid was a helper of the guard's, no command. */
bool guard_link_reaped(struct guest *g, int pid);
/* A file request is about to make, replace or remove @name in @dir. 0 or the errno to answer. */
int guard_link_check(struct guest *g, int dir, const char *name, const char *op);
/* ... has made it. 0, or the errno to answer, and it is gone: the file system takes the name for a protected one. */
int guard_link_made(struct guest *g, int dir, const char *name, bool directory);
/* ... is about to write into @name in @dir, of which @keep bytes are to stay. 0 or the errno to answer. */
int guard_link_unshare(struct guest *g, int dir, const char *name, uint64_t keep);
/* ... has opened it for that, as @fd. 0 or the errno to answer. */
int guard_link_opened(struct guest *g, int dir, const char *name, int fd);
/* guard_check_write(), guard_rename(), guard_renamed(), guard_place(): 0 without a guard. */
int guard_link_check_write(struct guest *g, int dir, const char *name);
int guard_link_rename(struct guest *g, int from, const char *from_name, int to, const char *to_name, bool replace);
int guard_link_renamed(struct guest *g, int from, const char *from_name, int to, const char *to_name);
int guard_link_place(struct guest *g, int fd, int dir, const char *name, bool replace);

#endif
