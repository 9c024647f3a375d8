/* egress/stream.c: see stream.h */
#include "egress/stream.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include "egress/tls_end.h"

ssize_t
stream_recv(struct stream *s, void *p, size_t n)
{
    if (s->tls != NULL)
        return tls_recv(s->tls, p, n);
    return recv(s->fd, p, n, MSG_DONTWAIT);
}

ssize_t
stream_send(struct stream *s, const void *p, size_t n)
{
    if (s->tls != NULL)
        return tls_send(s->tls, p, n);
    return send(s->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

int
stream_finish(struct stream *s)
{
    if (s->tls != NULL)
        return tls_finish(s->tls);
    return shutdown(s->fd, SHUT_WR);
}

uint32_t
stream_events(const struct stream *s, bool want_in, bool want_out)
{
    if (s->tls != NULL)
        return tls_events(s->tls, want_in, want_out);
    return (want_in ? (uint32_t)EPOLLIN : 0) | (want_out ? (uint32_t)EPOLLOUT : 0);
}

bool
stream_pending(const struct stream *s)
{
    return s->tls != NULL && tls_pending(s->tls);
}
