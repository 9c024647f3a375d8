/* wire/packet.h: frames over SOCK_SEQPACKET, one a message, a descriptor with it where that is agreed
 *
 * For the sockets between cloche's own processes. A message is judged whole: one frame that fills it, at most one
 * descriptor, or it is refused. What may be said when is the message table's business (wire/table.h).
 */
#ifndef CLOCHE_WIRE_PACKET_H
#define CLOCHE_WIRE_PACKET_H

#include "base/buf.h"
#include "base/err.h"
#include "wire/frame.h"

/* Send one frame. 0; -1 with errno (EAGAIN on a non-blocking socket). @fd to pass along, borrowed, or -1. */
int packet_send(int socket, const struct buf *frame, int fd);

/* Receive one message into p[0..room); @room is above the longest message by at least one byte. 1 with @f filled, 0 at
 * the end, -1 with errno: EAGAIN, EPROTO for a message that is no single whole frame. A passed descriptor comes in @fd
 * (to be closed by the caller, -1 when there is none, PACKET_FULL when this process has no place for it: so many are
 * open); NULL: descriptors are refused. */
#define PACKET_FULL (-2)
int packet_receive(int socket, uint8_t *p, size_t room, struct frame *f, int *fd, int flags);

/* A be32 length and that many bytes; wire_put_cstr is for what is a C string on both sides. */
int packet_put_bytes(struct buf *b, const void *p, size_t n);
/* Borrowed; NULL, and @in bad, when they are not there or more than @max. */
const uint8_t *packet_get_bytes(struct wire_in *in, size_t max, size_t *n);

/* An error, in the one form that it has between processes: be8 kind, be32 errno, three texts. It is the rest of a
 * message. packet_get_err() fills @out whole, or refuses: false. */
#define PACKET_ERR_MIN (1 + 4 + 3 * (4 + 1))
#define PACKET_ERR_MAX (1 + 4 + 3 * (4 + 1) + ERR_CODE_MAX + ERR_MSG_MAX + ERR_HINT_MAX)
int packet_put_err(struct buf *b, const struct err *err);
bool packet_get_err(struct wire_in *in, struct err *out);

/* The same from a child that has not got as far as an exec: the writer ends next, and the reader reads to the end. A
 * pipe, so that no end of file means an error that is not whole. packet_say_err() blocks; what it cannot say is lost.
 * packet_hear_err(): 1 with @out filled, 0 for an end without one, -1 for what is none (errno). */
void packet_say_err(int fd, const struct err *err);
int packet_hear_err(int fd, struct err *out);

/* Messages that wait for a socket whose peer does not read. Nobody sleeps here, be the socket non-blocking or not. */
struct packet_queue {
    struct packet_waiting *first, *last;
    size_t bytes, max;                  /* what waits, and the ceiling */
    size_t n;                           /* of how many frames */
};

#define PACKET_QUEUE_INIT(limit) { .first = NULL, .last = NULL, .bytes = 0, .max = (limit) }

/* Send @frame when its turn comes, now if nothing waits. @fd (-1 none) belongs to the queue from here on, whatever is
 * returned. 0, or -1 with errno: the peer is gone (EPIPE ...), too much waits (ENOBUFS), no memory. */
int packet_queue_send(struct packet_queue *q, int socket, const struct buf *frame, int fd);
/* For a socket that is to come: it waits until packet_queue_flush(). 0, or -1 with errno: ENOBUFS, no memory. */
int packet_queue_put(struct packet_queue *q, const struct buf *frame);
/* Send what the socket takes. 0 or -1 with errno. */
int packet_queue_flush(struct packet_queue *q, int socket);
bool packet_queue_waits(const struct packet_queue *q);
void packet_queue_clear(struct packet_queue *q);

#endif
