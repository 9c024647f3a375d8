/* egress/stream.h: one end of a connection, as bytes: a socket, plain or under TLS
 *
 * Whoever carries requests reads and writes here and does not know which of the two it is. Nothing blocks.
 */
#ifndef CLOCHE_EGRESS_STREAM_H
#define CLOCHE_EGRESS_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tls_end;

/* Borrows both: the socket belongs to a watch of the connection, the TLS end to whoever made it. */
struct stream {
    int fd;
    struct tls_end *tls;        /* NULL: plain */
};

/* At most @n bytes into @p. How many came; 0: the peer has ended properly; -1 with errno: EAGAIN when none are there
 * now, ECONNABORTED for a TLS stream that was cut off without its close, or what recv(2) says. */
ssize_t stream_recv(struct stream *s, void *p, size_t n);
/* How many of the @n bytes were taken, or -1 with errno (EAGAIN: none now). With TLS, bytes that were not taken have to
 * be offered again, the same ones first. */
ssize_t stream_send(struct stream *s, const void *p, size_t n);
/* Nothing more is sent from here (TLS: its close message, then the socket's). 0, or -1 with errno EAGAIN. */
int stream_finish(struct stream *s);

/* What to wait for at the socket, as epoll events, by somebody who wants to read and/or write: TLS may need the other
 * direction for a moment. */
uint32_t stream_events(const struct stream *s, bool want_in, bool want_out);
/* Decrypted bytes wait in memory: the socket will not say that there is something to read. */
bool stream_pending(const struct stream *s);

#endif
