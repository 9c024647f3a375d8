/* wire/packet.c: see packet.h */
#include "wire/packet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io.h"

#define ERRNO_MAX 4095      /* MAX_ERRNO of the kernel */

struct packet_waiting {
    struct packet_waiting *next;
    int fd;
    size_t n;
    uint8_t p[];
};

int
packet_put_bytes(struct buf *b, const void *p, size_t n)
{
    if (n > UINT32_MAX)
        return -1;
    buf_put_be32(b, (uint32_t)n);
    return n > 0 ? buf_append(b, p, n) : buf_ok(b) ? 0 : -1;
}

const uint8_t *
packet_get_bytes(struct wire_in *in, size_t max, size_t *n)
{
    uint32_t length = wire_be32(in);

    *n = 0;
    if (in->bad || length > max) {
        in->bad = true;
        return NULL;
    }
    *n = length;
    return wire_bytes(in, length);
}

static int
send_bytes(int socket, const uint8_t *p, size_t size, int fd, int flags)
{
    union { struct cmsghdr h; char room[CMSG_SPACE(sizeof(int))]; } control;
    struct iovec iov = { .iov_base = (void *)(uintptr_t)p, .iov_len = size };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
    ssize_t n;

    if (fd >= 0) {
        memset(&control, 0, sizeof(control));
        m.msg_control = control.room;
        m.msg_controllen = sizeof(control.room);
        control.h = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
                                      .cmsg_type = SCM_RIGHTS };
        memcpy(CMSG_DATA(&control.h), &fd, sizeof(fd));
    }
    do
        n = sendmsg(socket, &m, flags | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)size ? 0 : -1;
}

static int
send_frame(int socket, const struct buf *frame, int fd, int flags)
{
    if (!buf_ok(frame)) {
        errno = EMSGSIZE;
        return -1;
    }
    return send_bytes(socket, frame->p, frame->n, fd, flags);
}

int
packet_send(int socket, const struct buf *frame, int fd)
{
    return send_frame(socket, frame, fd, 0);
}

/* The one descriptor of @m, if it has one and only one, or PACKET_FULL; all others are closed. musl's CMSG_NXTHDR mixes
 * signs. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
static int
passed(struct msghdr *m, bool *more)
{
    int found = -1;

    *more = false;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        size_t n = c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS
                       ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
            if (found < 0) {
                found = fd;
            } else {
                *more = true;
                close(fd);
            }
        }
    }
    if ((m->msg_flags & MSG_CTRUNC) != 0 && found >= 0)
        *more = true;
    return (m->msg_flags & MSG_CTRUNC) != 0 && found < 0 ? PACKET_FULL : found;
}
#pragma GCC diagnostic pop

int
packet_receive(int socket, uint8_t *p, size_t room, struct frame *f, int *fd, int flags)
{
    union { struct cmsghdr h; char room[CMSG_SPACE(4 * sizeof(int))]; } control;
    struct iovec iov = { .iov_base = p, .iov_len = room };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.room,
                        .msg_controllen = sizeof(control.room) };
    bool more;
    ssize_t n;
    int got;

    if (fd != NULL)
        *fd = -1;
    n = io_recvmsg(socket, &m, flags | MSG_CMSG_CLOEXEC);
    if (n < 0)
        return -1;
    got = passed(&m, &more);
    if (n == 0 && got == -1)
        return 0;
    /* a message without a byte but with a descriptor is no end */
    if (more || (got != -1 && fd == NULL) || (m.msg_flags & MSG_TRUNC) || !frame_header_decode(p, (size_t)n, f) ||
        (size_t)n != (size_t)FRAME_HEADER + f->length) {
        if (got >= 0)
            close(got);
        errno = EPROTO;
        return -1;
    }
    f->payload = p + FRAME_HEADER;
    if (fd != NULL)
        *fd = got;
    return 1;
}

int
packet_put_err(struct buf *b, const struct err *err)
{
    buf_put_u8(b, (uint8_t)err->kind);
    buf_put_be32(b, (uint32_t)err->sys_errno);
    wire_put_cstr(b, err->code, ERR_CODE_MAX);
    wire_put_cstr(b, err->msg, ERR_MSG_MAX);
    return wire_put_cstr(b, err->hint, ERR_HINT_MAX);
}

/* Codes go into JSON, metrics and names of rules as they are. */
static bool
is_code(const char *code)
{
    return code[0] != '\0' && code[strspn(code, "abcdefghijklmnopqrstuvwxyz0123456789.-")] == '\0';
}

bool
packet_get_err(struct wire_in *in, struct err *out)
{
    uint8_t kind = wire_u8(in);
    uint32_t number = wire_be32(in);
    const char *code = wire_cstr(in, ERR_CODE_MAX, NULL), *msg = wire_cstr(in, ERR_MSG_MAX, NULL);
    const char *hint = wire_cstr(in, ERR_HINT_MAX, NULL);

    if (!wire_done(in) || kind == ERR_NONE || kind > ERR_DENIED || number > ERRNO_MAX || !is_code(code))
        return false;
    err_set(out, (enum err_kind)kind, code, "%s", msg);
    err_hint(out, "%s", hint);
    out->sys_errno = (int)number;
    return true;
}

void
packet_say_err(int fd, const struct err *err)
{
    uint8_t room[PACKET_ERR_MAX];
    struct buf b = BUF_INIT_IN(room, sizeof(room));

    if (packet_put_err(&b, err) == 0)
        (void)io_write_full(fd, b.p, b.n);
}

int
packet_hear_err(int fd, struct err *out)
{
    uint8_t room[PACKET_ERR_MAX];
    struct buf b = BUF_INIT_IN(room, sizeof(room));
    struct wire_in in;

    if (io_read_all(fd, &b) < 0)
        return -1;
    in = wire_in_of(b.p, b.n);
    if (b.n == 0 || packet_get_err(&in, out))
        return b.n == 0 ? 0 : 1;
    errno = EPROTO;
    return -1;
}

/* --- a queue ------------------------------------------------------------------------------------------------------ */

static void
drop_first(struct packet_queue *q)
{
    struct packet_waiting *w = q->first;

    q->first = w->next;
    if (q->first == NULL)
        q->last = NULL;
    q->bytes -= w->n;
    q->n--;
    if (w->fd >= 0)
        close(w->fd);
    free(w);
}

int
packet_queue_flush(struct packet_queue *q, int socket)
{
    while (q->first != NULL) {
        if (send_bytes(socket, q->first->p, q->first->n, q->first->fd, MSG_DONTWAIT) < 0)
            return errno == EAGAIN ? 0 : -1;
        drop_first(q);
    }
    return 0;
}

static int
wait_in(struct packet_queue *q, const struct buf *frame, int fd)
{
    struct packet_waiting *w;

    if (frame->n > q->max - q->bytes) {
        errno = ENOBUFS;
        return -1;
    }
    w = malloc(sizeof(*w) + frame->n);
    if (w == NULL)
        return -1;
    *w = (struct packet_waiting){ .next = NULL, .fd = fd, .n = frame->n };
    memcpy(w->p, frame->p, frame->n);
    if (q->last != NULL)
        q->last->next = w;
    else
        q->first = w;
    q->last = w;
    q->bytes += w->n;
    q->n++;
    return 0;
}

int
packet_queue_send(struct packet_queue *q, int socket, const struct buf *frame, int fd)
{
    int r = q->first == NULL ? send_frame(socket, frame, fd, MSG_DONTWAIT) : -2, why;

    if (r == -2 || (r < 0 && errno == EAGAIN && buf_ok(frame))) {
        if (buf_ok(frame) && wait_in(q, frame, fd) == 0)
            return 0;
        r = -1;
    }
    why = errno;
    if (fd >= 0)
        close(fd);
    errno = why;
    return r;
}

int
packet_queue_put(struct packet_queue *q, const struct buf *frame)
{
    return buf_ok(frame) ? wait_in(q, frame, -1) : -1;
}

bool
packet_queue_waits(const struct packet_queue *q)
{
    return q->first != NULL;
}

void
packet_queue_clear(struct packet_queue *q)
{
    while (q->first != NULL)
        drop_first(q);
}
