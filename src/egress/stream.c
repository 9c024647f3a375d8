/* egress/stream.c: see stream.h */
#include "egress/stream.h"

#include <sys/epoll.h>
#include <sys/socket.h>

ssize_t
stream_recv(struct stream *s, void *p, size_t n)
{
    return recv(s->fd, p, n, MSG_DONTWAIT);
}

ssize_t
stream_send(struct stream *s, const void *p, size_t n)
{
    return send(s->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

int
stream_finish(struct stream *s)
{
    return shutdown(s->fd, SHUT_WR);
}

uint32_t
stream_events(const struct stream *s, bool want_in, bool want_out)
{
    (void)s;
    return (want_in ? (uint32_t)EPOLLIN : 0) | (want_out ? (uint32_t)EPOLLOUT : 0);
}

bool
stream_pending(const struct stream *s)
{
    (void)s;
    return false;
}
