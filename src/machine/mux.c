/* machine/mux.c: see mux.h; the same loop at both ends */
#include "machine/mux.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "wall/capture.h"

#define OUT_MARK (256 * 1024)           /* sources are not read while that much waits for the port; */
#define OUT_MAX  (8 * 1024 * 1024)      /* what else may be added never comes to that */
#define DNS_MAX  1232                   /* a longer answer is cut, and asked for again over TCP */

struct channel {
    bool used, connecting, sent_last, got_last;
    int fd;                     /* -1: gone, or a question over UDP */
    uint32_t room;              /* that the other end takes */
    uint32_t owed;              /* taken from it and not said yet */
    struct buf to;              /* for @fd */
    bool question;              /* over UDP: */
    struct sockaddr_in6 from;
    struct in6_pktinfo at;
};

struct mux {
    int port;
    const int *listeners;
    struct buf in, out;
    struct channel channels[MUX_CHANNELS];
};

static struct mux mux;          /* large: one a process */

static void
put(uint16_t i, enum mux_type type, const void *p, size_t n)
{
    mux_put(&mux.out, &(struct mux_frame){ i, type, p, n });
}

static void
put_room(uint16_t i, uint32_t bytes)
{
    const uint8_t room[4] = { (uint8_t)(bytes >> 24), (uint8_t)(bytes >> 16), (uint8_t)(bytes >> 8), (uint8_t)bytes };

    put(i, MUX_ROOM, room, sizeof(room));
}

static void
put_last(uint16_t i, enum mux_type type)
{
    if (!mux.channels[i].sent_last)
        put(i, type, "", 0);
    mux.channels[i].sent_last = true;
}

static void
begin(uint16_t i, int fd)
{
    mux.channels[i] = (struct channel){ .used = true, .fd = fd, .room = MUX_WINDOW, .to = BUF_INIT(MUX_WINDOW) };
}

/* Nothing more from it, nor for it. */
static void
drop(uint16_t i)
{
    close_fd(&mux.channels[i].fd);
    mux.channels[i].to.n = 0;
    put_last(i, MUX_RESET);
}

static void
free_if_over(uint16_t i)
{
    struct channel *c = &mux.channels[i];

    if (!c->used || !c->sent_last || !c->got_last || (c->fd >= 0 && c->to.n > 0))
        return;
    close_fd(&c->fd);
    buf_free(&c->to);
    c->used = false;
}

static void
taken(uint16_t i, size_t n)
{
    struct channel *c = &mux.channels[i];

    c->owed += (uint32_t)n;
    if (c->owed >= MUX_WINDOW / 4 && !c->got_last) {
        put_room(i, c->owed);
        c->owed = 0;
    }
}

/* --- its sockets -------------------------------------------------------------------------------------------------- */

static void
read_socket(uint16_t i)
{
    struct channel *c = &mux.channels[i];
    uint8_t piece[MUX_PIECE];
    ssize_t n = recv(c->fd, piece, c->room < sizeof(piece) ? c->room : sizeof(piece), 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        drop(i);
    } else if (n == 0) {
        put_last(i, MUX_END);
    } else {
        put(i, MUX_DATA, piece, (size_t)n);
        c->room -= (uint32_t)n;
    }
}

static void
write_socket(uint16_t i)
{
    struct channel *c = &mux.channels[i];
    int why = 0;
    socklen_t size = sizeof(why);
    ssize_t n = 0;

    if (c->connecting && (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &why, &size) < 0 || why != 0)) {
        drop(i);
        return;
    }
    c->connecting = false;
    if (c->to.n > 0)
        n = send(c->fd, c->to.p, c->to.n, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        drop(i);
    } else if (n > 0) {
        buf_consume(&c->to, (size_t)n);
        taken(i, (size_t)n);
    }
    if (c->fd >= 0 && c->to.n == 0 && c->got_last)
        (void)shutdown(c->fd, SHUT_WR);
}

/* --- the host's end: to where the machine says -------------------------------------------------------------------- */

static int
dial(const uint8_t address[MUX_ADDRESS])
{
    struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
    struct sockaddr_in four = { .sin_family = AF_INET };
    bool mapped;
    int fd, r;

    memcpy(&six.sin6_addr, address, 16);
    memcpy(&six.sin6_port, address + 16, 2);
    mapped = IN6_IS_ADDR_V4MAPPED(&six.sin6_addr);
    memcpy(&four.sin_addr, address + 12, 4);
    four.sin_port = six.sin6_port;
    fd = socket(mapped ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    r = mapped ? connect(fd, (const struct sockaddr *)&four, sizeof(four))
               : connect(fd, (const struct sockaddr *)&six, sizeof(six));
    if (r < 0 && errno != EINPROGRESS)
        close_fd(&fd);
    return fd;
}

/* --- the machine's end: from its listeners ------------------------------------------------------------------------ */

static int
free_channel(void)
{
    for (int i = 0; i < MUX_CHANNELS; i++)
        if (!mux.channels[i].used)
            return i;
    return -1;
}

static void
open_channel(uint16_t i, const struct in6_addr *address, in_port_t port)
{
    uint8_t to[MUX_ADDRESS];

    memcpy(to, address, 16);
    memcpy(to + 16, &port, 2);
    put(i, MUX_OPEN, to, sizeof(to));
}

static void
take_connection(int listener, uint16_t i)
{
    union { struct sockaddr any; struct sockaddr_in four; struct sockaddr_in6 six; } to = { { 0 } };
    socklen_t n = sizeof(to);
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct in6_addr address = { .s6_addr = { [10] = 0xff, [11] = 0xff } };

    if (fd < 0 || getsockname(fd, &to.any, &n) < 0) {
        close_fd(&fd);
        return;
    }
    if (to.any.sa_family == AF_INET)
        memcpy(address.s6_addr + 12, &to.four.sin_addr, 4);
    begin(i, fd);
    open_channel(i, to.any.sa_family == AF_INET ? &address : &to.six.sin6_addr, to.four.sin_port);
}

/* A question over UDP is asked over TCP: there the host needs no more than it has. */
static void
take_question(int socket, uint16_t i)
{
    uint8_t text[2 + 512];
    union { char bytes[256]; struct cmsghdr align; } control;
    struct sockaddr_in6 from;
    struct iovec iov = { text + 2, sizeof(text) - 2 };
    struct msghdr m = { .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov, .msg_iovlen = 1,
                        .msg_control = &control, .msg_controllen = sizeof(control) };
    ssize_t n = recvmsg(socket, &m, MSG_DONTWAIT);
    struct cmsghdr *c;

    if (n <= 0 || (m.msg_flags & MSG_TRUNC) != 0 || from.sin6_family != AF_INET6)
        return;
    c = CMSG_FIRSTHDR(&m);      /* the kernel puts it first (ip6_datagram_recv_common_ctl()) */
    if (c == NULL || c->cmsg_level != IPPROTO_IPV6 || c->cmsg_type != IPV6_PKTINFO)
        return;
    begin(i, -1);
    mux.channels[i].question = true;
    mux.channels[i].from = from;
    memcpy(&mux.channels[i].at, CMSG_DATA(c), sizeof(mux.channels[i].at));
    open_channel(i, &mux.channels[i].at.ipi6_addr, htons(53));
    text[0] = (uint8_t)(n >> 8);
    text[1] = (uint8_t)n;
    put(i, MUX_DATA, text, 2 + (size_t)n);
}

/* The answer, when all of it is there, from the address that was asked. */
static void
answer(uint16_t i)
{
    struct channel *c = &mux.channels[i];
    size_t n = c->to.n < 2 ? SIZE_MAX : (size_t)c->to.p[0] << 8 | c->to.p[1];
    union { char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))]; struct cmsghdr head; } control = { { 0 } };
    struct iovec iov = { c->to.p + 2, n > DNS_MAX ? DNS_MAX : n };
    struct msghdr m = { .msg_name = &c->from, .msg_namelen = sizeof(c->from), .msg_iov = &iov, .msg_iovlen = 1,
                        .msg_control = &control, .msg_controllen = sizeof(control) };

    if (n == SIZE_MAX || c->to.n < 2 + n || n < 12)
        return;
    if (n > DNS_MAX)
        c->to.p[4] |= 0x02;     /* TC */
    c->at.ipi6_ifindex = 0;
    control.head.cmsg_level = IPPROTO_IPV6;
    control.head.cmsg_type = IPV6_PKTINFO;
    control.head.cmsg_len = CMSG_LEN(sizeof(c->at));
    memcpy(CMSG_DATA(&control.head), &c->at, sizeof(c->at));
    (void)sendmsg(mux.listeners[CAPTURE_DNS_UDP], &m, MSG_DONTWAIT);
    c->question = false;
    drop(i);
}

/* --- what the other end says -------------------------------------------------------------------------------------- */

static int
nonsense(struct err *err)
{
    return err_set(err, ERR_PROTOCOL, "machine.mux", "the other end of the machine's connections broke the protocol");
}

static int
take_open(const struct mux_frame *f, struct err *err)
{
    if (mux.listeners != NULL || mux.channels[f->channel].used)
        return nonsense(err);
    begin(f->channel, dial(f->p));
    mux.channels[f->channel].connecting = mux.channels[f->channel].fd >= 0;
    if (!mux.channels[f->channel].connecting)
        put_last(f->channel, MUX_RESET);
    return 0;
}

static int
take_frame(const struct mux_frame *f, struct err *err)
{
    struct channel *c = &mux.channels[f->channel];
    uint32_t room;

    if (f->type == MUX_OPEN)
        return take_open(f, err);
    if (!c->used)
        return nonsense(err);
    switch (f->type) {
    case MUX_ROOM:
        room = (uint32_t)f->p[0] << 24 | (uint32_t)f->p[1] << 16 | (uint32_t)f->p[2] << 8 | f->p[3];
        if (room > MUX_WINDOW - c->room)
            return nonsense(err);
        c->room += room;
        return 0;
    case MUX_DATA:
        if (c->got_last || f->n > MUX_WINDOW - c->to.n)
            return nonsense(err);
        if (c->fd < 0 && !c->question) {
            taken(f->channel, f->n);
            return 0;
        }
        if (buf_append(&c->to, f->p, f->n) < 0)
            return err_set(err, ERR_SYSTEM, "memory", "out of memory");
        if (c->question)
            answer(f->channel);
        return 0;
    default:
        if (c->got_last)
            return nonsense(err);
        c->got_last = true;
        if (f->type == MUX_RESET || c->fd < 0)
            drop(f->channel);
        else if (c->to.n == 0 && !c->connecting)
            (void)shutdown(c->fd, SHUT_WR);
        return 0;
    }
}

static int
take_frames(struct err *err)
{
    struct mux_frame f;
    size_t at = 0, size;
    int r;

    while ((r = mux_read(mux.in.p + at, mux.in.n - at, &f, &size)) == 1) {
        if (take_frame(&f, err) < 0)
            return -1;
        free_if_over(f.channel);
        at += size;
    }
    buf_consume(&mux.in, at);
    return r < 0 ? nonsense(err) : 0;
}

/* --- the loop ----------------------------------------------------------------------------------------------------- */

/* 1; 0: it is at its end. */
static int
read_port(struct err *err)
{
    ssize_t n;

    if (buf_reserve(&mux.in, MUX_WINDOW) < 0)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    n = read(mux.port, mux.in.p + mux.in.n, MUX_WINDOW);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 1;
    if (n <= 0)
        return n < 0 && errno != ECONNRESET ? err_sys(err, errno, "machine.mux", "the port") : 0;
    mux.in.n += (size_t)n;
    return take_frames(err) < 0 ? -1 : 1;
}

static int
write_port(struct err *err)
{
    ssize_t n = mux.out.n > 0 ? write(mux.port, mux.out.p, mux.out.n) : 0;

    if (n < 0 && errno != EAGAIN && errno != EINTR)
        return errno == EPIPE ? 0 : err_sys(err, errno, "machine.mux", "the port");
    if (n > 0)
        buf_consume(&mux.out, (size_t)n);
    return buf_ok(&mux.out) ? 1 : err_set(err, ERR_SYSTEM, "memory", "out of memory");
}

static short
wants(const struct channel *c)
{
    bool reads = !c->connecting && !c->sent_last && c->room > 0 && mux.out.n < OUT_MARK;

    return (short)((reads ? POLLIN : 0) | (c->connecting || c->to.n > 0 ? POLLOUT : 0));
}

static void
serve_listener(size_t k, int channel)
{
    if (k == CAPTURE_DNS_UDP)
        take_question(mux.listeners[k], (uint16_t)channel);
    else
        take_connection(mux.listeners[k], (uint16_t)channel);
}

static void
serve_channel(uint16_t i, short events)
{
    struct channel *c = &mux.channels[i];

    if ((events & (POLLOUT | POLLERR)) != 0 && (c->connecting || c->to.n > 0))
        write_socket(i);
    if (c->fd >= 0 && !c->sent_last && !c->connecting && c->room > 0 && (events & (POLLIN | POLLHUP | POLLERR)) != 0)
        read_socket(i);
    free_if_over(i);
}

/* One round. 1; 0: the port is at its end; -1. */
static int
turn(struct err *err)
{
    struct pollfd p[1 + CAPTURE_LISTENERS + MUX_CHANNELS];
    int channel = mux.listeners != NULL && mux.out.n < OUT_MARK ? free_channel() : -1, r = 1;

    p[0] = (struct pollfd){ .fd = mux.port, .events = (short)(POLLIN | (mux.out.n > 0 ? POLLOUT : 0)) };
    for (size_t k = 0; k < CAPTURE_LISTENERS; k++)
        p[1 + k] = (struct pollfd){ .fd = channel >= 0 ? mux.listeners[k] : -1, .events = POLLIN };
    for (size_t i = 0; i < MUX_CHANNELS; i++) {
        const struct channel *c = &mux.channels[i];
        short events = c->used && c->fd >= 0 ? wants(c) : 0;
        /* without a wish a hang-up would be told again and again */
        p[1 + CAPTURE_LISTENERS + i] = (struct pollfd){ .fd = events != 0 ? c->fd : -1, .events = events };
    }
    if (poll(p, sizeof(p) / sizeof(p[0]), -1) < 0)
        return errno == EINTR ? 1 : err_sys(err, errno, "machine.mux", "poll");
    for (uint16_t i = 0; i < MUX_CHANNELS; i++)
        if (p[1 + CAPTURE_LISTENERS + i].revents != 0)
            serve_channel(i, p[1 + CAPTURE_LISTENERS + i].revents);
    for (size_t k = 0; k < CAPTURE_LISTENERS; k++)
        if (p[1 + k].revents != 0 && (channel = free_channel()) >= 0)
            serve_listener(k, channel);
    if ((p[0].revents & (POLLIN | POLLHUP)) != 0)
        r = read_port(err);
    return r == 1 && mux.out.n > 0 ? write_port(err) : r;
}

int
mux_run(int port, const int *listeners, struct err *err)
{
    int r;

    mux = (struct mux){ .port = port, .listeners = listeners };
    mux.in = (struct buf)BUF_INIT(4 * MUX_WINDOW);
    mux.out = (struct buf)BUF_INIT(OUT_MAX);
    if (io_set_nonblock(port, true) < 0)
        return err_sys(err, errno, "machine.mux", "the port");
    do
        r = turn(err);
    while (r == 1);
    for (size_t i = 0; i < MUX_CHANNELS; i++)
        if (mux.channels[i].used) {
            close_fd(&mux.channels[i].fd);
            buf_free(&mux.channels[i].to);
        }
    buf_free(&mux.in);
    buf_free(&mux.out);
    return r;
}
