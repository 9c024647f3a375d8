/* guest/link.h: the guest's end of the transport
 *
 * Bytes in, bytes out, and the descriptors that came along, without blocking. What waits to be sent has a ceiling;
 * whoever produces data (relays, file reads) asks link_full() first and stops reading its source instead.
 */
#ifndef CLOCHE_GUEST_LINK_H
#define CLOCHE_GUEST_LINK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "wire/msg.h"

#define LINK_READ_FIRST 16384
#define LINK_FDS_MAX  24                        /* descriptors that wait for their EXEC: eight sets */
#define LINK_OUT_MARK (256 * 1024)              /* data producers stop here ... */
#define LINK_OUT_MAX  (4 * 1024 * 1024)         /* ... so that this is never met: it would end the guest */
#define LINK_IN_MAX   (MSG_EXEC_MAX + 256 * 1024)

struct link {
    int fd;
    bool plain;                 /* not a socket: read and write, no descriptors */
    bool eof;
    bool was_full;
    struct buf in, out;
    size_t in_at, out_at;       /* consumed part of in, sent part of out */
    size_t soft;                /* that many bytes at the front of out may wait for company (HELLO) */
    int fds[LINK_FDS_MAX];
    size_t n_fds;
    /* Enough for the usual first exchange, so that a command starts without the heap. */
    uint8_t first_out[512];
    uint8_t first_in[LINK_READ_FIRST];
};

/* @l is zeroed. */
void link_init(struct link *l, int fd);
/* Read once. 1 when bytes came, 0 when there are none now (or @l->eof was set), -1 when the transport is broken. */
int link_read(struct link *l);
/* Send what waits until done or the transport is full. -1 when it is broken. */
int link_flush(struct link *l);
/* Take the @n oldest descriptors. -1 when the host did not send them. */
int link_take_fds(struct link *l, int *out, size_t n);
bool link_full(const struct link *l);
bool link_pending(const struct link *l);

#endif
