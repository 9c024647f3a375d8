/* guest/handed.h: the transport, where whoever starts the guest cannot give it a descriptor
 *
 * The daemon of the engine docker starts the guest with the path of a unix socket (SOCK_SEQPACKET). As soon as the
 * sandbox is complete around the guest, one message comes over it: the transport, limits for the guest and what it
 * starts, and the working directory.
 */
#ifndef CLOCHE_GUEST_HANDED_H
#define CLOCHE_GUEST_HANDED_H

#include <limits.h>
#include <stdint.h>

#define HANDED_LIMITS 8

struct handed {
    /* RLIMIT_..., soft and hard; a lower one stays */
    struct { uint32_t resource; uint32_t used; uint64_t most; } limits[HANDED_LIMITS];
    char workdir[PATH_MAX];     /* as long as the message is; no zero byte */
};

/* To the socket @path: it becomes the descriptor GUEST_TRANSPORT_FD. 0, or -1. */
int handed_connect(const char *path);
/* Waits for that message: the transport takes the socket's place. 0, or the status that the guest is to end with. */
int handed_take(void);

#endif
