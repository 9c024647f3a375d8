/* egress/conn_buffers.c: what the kernel may hold of connections' bytes */
#include <sys/socket.h>

#include "egress/conn.h"

/* Ceiling of each of a connection's four socket buffers, which the kernel doubles for its own bookkeeping: all of them
 * together stay within a gibibyte, however many connections there are. */
#define BUFFERS_ALL   (128 * 1024 * 1024)
#define BUFFER_MOST   (512 * 1024)
#define BUFFER_LEAST  (8 * 1024)

/* What the kernel may hold for a reader that does not read; more would be the host's memory. */
void
conn_limit_buffers(const struct egress *e, int fd)
{
    if (fd < 0)
        return;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &e->buffer, sizeof(e->buffer));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &e->buffer, sizeof(e->buffer));
}

/* The more connections, the smaller their buffers; those that there are change with each doubling. */
void
conn_share_buffers(struct egress *e)
{
    int size = BUFFER_MOST;

    while (size > BUFFER_LEAST && (size_t)size * e->n_conns > BUFFERS_ALL)
        size /= 2;
    /* back only well below, so that one connection more or less does not change them all again and again */
    if (size == e->buffer || (size > e->buffer && (size_t)size * e->n_conns > BUFFERS_ALL / 2))
        return;
    e->buffer = size;
    for (struct conn *c = e->conns; c != NULL; c = c->next) {
        conn_limit_buffers(e, c->client.fd);
        conn_limit_buffers(e, c->server.fd);
    }
}
