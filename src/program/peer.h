/* program/peer.h: who is at the other end of a unix socket of ours */
#ifndef CLOCHE_PROGRAM_PEER_H
#define CLOCHE_PROGRAM_PEER_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether the process that connected @fd may ask us for things: it is this process's own user, or root, in the same
 * user and pid namespace, and no more confined than we are (root, where we are not: not at all); a sandbox that reaches
 * the socket is neither. @uid gets the user. False with errno EMFILE, ENFILE or ENOMEM: there was no room to look. */
bool peer_may_ask(int fd, uid_t *uid);
/* We confine ourselves next: from then on it is compared with what we are now. -1 when that is not to be had. */
int peer_remember(void);

#endif
