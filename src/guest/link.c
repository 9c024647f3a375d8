/* guest/link.c: see link.h */
#include "guest/link.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

#define READ_MORE  (FRAME_HEADER + MSG_DATA_MAX)

void
link_init(struct link *l, int fd)
{
    l->fd = fd;
    l->in = (struct buf)BUF_INIT_IN(l->first_in, LINK_IN_MAX);
    l->out = (struct buf)BUF_INIT_IN(l->first_out, LINK_OUT_MAX);
}

/* Descriptors leave the kernel in the order in which their EXECs were sent; they wait here until those are read. */
static int
keep_fds(struct link *l, struct msghdr *msg)
{
    const struct cmsghdr *c = CMSG_FIRSTHDR(msg);
    size_t n;

    if ((msg->msg_flags & MSG_CTRUNC) != 0)
        return -1;
    /* The socket asked for no other kind of control message, and the kernel never sends two of this. */
    if (c == NULL || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS || c->cmsg_len < CMSG_LEN(0))
        return 0;
    n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    if (n > LINK_FDS_MAX - l->n_fds)
        return -1;
    memcpy(l->fds + l->n_fds, CMSG_DATA(c), n * sizeof(int));
    l->n_fds += n;
    return 0;
}

static ssize_t
receive(struct link *l, void *p, size_t n)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(LINK_FDS_MAX * sizeof(int))];
    } control;
    struct iovec iov = { .iov_base = p, .iov_len = n };
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
                          .msg_controllen = sizeof(control) };
    ssize_t got;

    if (l->plain)
        return read(l->fd, p, n);
    got = recvmsg(l->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == ENOTSOCK) {
        int flags = fcntl(l->fd, F_GETFL);

        if (flags < 0 || fcntl(l->fd, F_SETFL, flags | O_NONBLOCK) < 0)
            return -1;
        l->plain = true;
        errno = EINTR;
        return -1;
    }
    if (got > 0 && keep_fds(l, &msg) < 0) {
        errno = EPROTO;
        return -1;
    }
    return got;
}

int
link_read(struct link *l)
{
    size_t want = l->was_full ? READ_MORE : LINK_READ_FIRST;
    ssize_t n;

    if (l->in_at == l->in.n) {
        l->in.n = 0;
    } else if (l->in_at > 0) {
        buf_consume(&l->in, l->in_at);
    }
    l->in_at = 0;
    if (want > l->in.max - l->in.n)
        want = l->in.max - l->in.n;
    if (want == 0 || buf_reserve(&l->in, want) < 0)
        return -1;
    do
        n = receive(l, l->in.p + l->in.n, want);
    while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    if (n < 0 && errno != ECONNRESET)
        return -1;
    if (n <= 0) {
        l->eof = true;
        return 0;
    }
    l->was_full = (size_t)n == want;
    l->in.n += (size_t)n;
    return 1;
}

int
link_flush(struct link *l)
{
    while (l->out_at < l->out.n) {
        size_t left = l->out.n - l->out_at;
        ssize_t n;

        if (l->plain)
            n = write(l->fd, l->out.p + l->out_at, left);
        else
            n = send(l->fd, l->out.p + l->out_at, left, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == ENOTSOCK && !l->plain) {
            l->plain = true;
            continue;
        }
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)) {
            if (l->out_at >= LINK_OUT_MARK / 2) {
                buf_consume(&l->out, l->out_at);
                l->out_at = 0;
            }
            return 0;
        }
        if (n < 0)
            return -1;
        l->out_at += (size_t)n;
    }
    l->out.n = l->out_at = l->soft = 0;
    return buf_ok(&l->out) ? 0 : -1;
}

int
link_take_fds(struct link *l, int *out, size_t n)
{
    if (l->n_fds < n)
        return -1;
    memcpy(out, l->fds, n * sizeof(int));
    l->n_fds -= n;
    memmove(l->fds, l->fds + n, l->n_fds * sizeof(int));
    return 0;
}

bool
link_full(const struct link *l)
{
    return l->out.n - l->out_at > LINK_OUT_MARK;
}

bool
link_pending(const struct link *l)
{
    return l->out.n - l->out_at > l->soft;
}
