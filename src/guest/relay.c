/* guest/relay.c: standard streams as frames, with back-pressure in both directions
 *
 * Output: a command's pipe is read only while the transport has room (link_full) and the host gave credit, so a
 * command that writes faster than the host reads simply blocks in its own write. Input: the host may have
 * MSG_STDIN_WINDOW_START bytes under way, which is all that is ever buffered here; credit goes back as the command
 * reads. The transport itself is always read, so that a SIGNAL is never stuck behind data.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/guard_link.h"
#include "guest/guest.h"

#define TERMINAL_LEFT_MAX (128 * 1024)  /* what a terminal can hold when its command ends */

static int
stdin_credit(struct guest *g, const struct guest_exec *e, uint32_t bytes, bool gone)
{
    const struct msg_stdin_window m = { .flags = gone ? MSG_STDIN_GONE : 0, .bytes = bytes };

    return msg_put_stdin_window(&g->link.out, e->channel, &m);
}

/* The command closed its stdin: what comes is thrown away, and the host is told. */
static int
stdin_gone(struct guest *g, struct guest_exec *e, uint32_t written)
{
    uint32_t credit = written + (uint32_t)e->in.n;

    buf_reset(&e->in);
    if (e->in_fd == e->out[0].fd)
        e->in_fd = -1;          /* it stays open for its output */
    else
        close_fd(&e->in_fd);
    return stdin_credit(g, e, credit, true);
}

/* A terminal has no end of input to close: the line discipline's EOF character is what a person would type. */
static void
stdin_end(struct guest_exec *e)
{
    if (e->stdio == EXEC_STDIO_PTY) {
        struct termios t;
        uint8_t eof_char = tcgetattr(e->in_fd, &t) == 0 ? t.c_cc[VEOF] : 4;

        (void)!write(e->in_fd, &eof_char, 1);
        e->in_fd = -1;
    } else if (e->stdio == EXEC_STDIO_SOCKET) {
        (void)shutdown(e->in_fd, SHUT_WR);
        e->in_fd = -1;
    } else {
        close_fd(&e->in_fd);
    }
}

int
relay_stdin(struct guest *g, struct guest_exec *e)
{
    uint32_t written = 0;

    if (e->connecting)
        return 0;
    while (e->in_fd >= 0 && e->in.n > 0) {
        ssize_t n = write(e->in_fd, e->in.p, e->in.n);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0)
            return stdin_gone(g, e, written);
        written += (uint32_t)n;
        buf_consume(&e->in, (size_t)n);
    }
    if (e->stdin_close && e->in.n == 0 && e->in_fd >= 0)
        stdin_end(e);
    return written == 0 ? 0 : stdin_credit(g, e, written, false);
}

int
relay_on_stdin(struct guest *g, const struct frame *f)
{
    struct guest_exec *e = exec_of(g, f->channel);

    /* The command may have ended while this was on its way. */
    if (e == NULL || e->exited)
        return 0;
    if (e->stdio == EXEC_STDIO_FDS || e->stdin_close)
        return -1;
    if (e->in_fd < 0)
        return stdin_credit(g, e, f->length, true);
    if (buf_append(&e->in, f->payload, f->length) < 0)
        return -1;              /* more than the credit that the host had */
    return relay_stdin(g, e);
}

int
relay_on_stdin_close(struct guest *g, const struct frame *f)
{
    struct guest_exec *e = exec_of(g, f->channel);

    if (e == NULL || e->exited)
        return 0;
    if (e->stdio == EXEC_STDIO_FDS)
        return -1;
    e->stdin_close = true;
    return relay_stdin(g, e);
}

int
relay_on_window(struct guest *g, const struct frame *f)
{
    struct guest_exec *e = exec_of(g, f->channel);
    struct exec_out *o;
    struct msg_window m;

    if (!msg_get_window(f, &m))
        return -1;
    if (e == NULL)
        return 0;
    o = &e->out[m.stream == MSG_STREAM_ERR];
    if (!o->limited || __builtin_add_overflow(o->room, m.bytes, &o->room))
        return -1;
    return 0;
}

int
relay_on_resize(struct guest *g, const struct frame *f)
{
    struct guest_exec *e = exec_of(g, f->channel);
    struct msg_resize m;

    if (!msg_get_resize(f, &m))
        return -1;
    if (e != NULL && e->stdio == EXEC_STDIO_PTY && e->out[0].fd >= 0)
        (void)pty_resize(e->out[0].fd, m.rows, m.cols);
    return 0;
}

bool
relay_wants_output(const struct guest *g, const struct guest_exec *e, size_t i)
{
    const struct exec_out *o = &e->out[i];

    return o->fd >= 0 && !e->connecting && !o->hung && !link_full(&g->link) && (!o->limited || o->room > 0);
}

/* A terminal that nobody holds open reads EIO. That is no end while the command lives: programs close their streams
 * right before they exit, and closing the master then would kill them with SIGHUP; and /dev/tty can be opened
 * again. */
static void
output_ended(struct guest *g, struct guest_exec *e, struct exec_out *o, int why)
{
    if (e->stdio == EXEC_STDIO_PTY && !e->exited) {
        o->hung = g->any_hung = true;
        return;
    }
    if (e->stdio == EXEC_STDIO_SOCKET)
        return connect_over(g, e, why);
    if (e->in_fd == o->fd)
        e->in_fd = -1;
    close_fd(&o->fd);
    o->last = 0;
}

/* Read once, straight into the frame that will carry it. */
int
relay_output(struct guest *g, struct guest_exec *e, size_t i)
{
    struct exec_out *o = &e->out[i];
    struct buf *out = &g->link.out;
    size_t max = MSG_DATA_MAX;
    uint8_t header[FRAME_HEADER];
    ssize_t n;

    if (o->limited && o->room < max)
        max = o->room;
    if (e->exited && o->last < max)
        max = o->last;
    if (buf_reserve(out, FRAME_HEADER + max) < 0)
        return -1;
    do
        n = read(o->fd, out->p + out->n + FRAME_HEADER, max);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN) {
        o->last = 0;            /* after the command's end: nothing of its own is left */
        return 0;
    }
    if (n <= 0) {
        output_ended(g, e, o, n < 0 ? errno : 0);
        return 0;
    }
    frame_header_encode(header, o->type, 0, e->channel, (uint32_t)n);
    (void)buf_append(out, header, sizeof(header));
    out->n += (size_t)n;
    if (o->limited)
        o->room -= (uint32_t)n;
    if (e->exited)
        o->last -= (uint32_t)n;
    return 0;
}

/* A background process may hold the pipe and write to it for ever; what was in it when the command ended bounds
 * what is still the command's. */
void
relay_mark_end(struct guest_exec *e)
{
    for (size_t i = 0; i < 2; i++) {
        struct exec_out *o = &e->out[i];
        int left = 0;

        if (o->fd < 0)
            continue;
        o->hung = false;
        if (e->stdio == EXEC_STDIO_PTY)
            o->last = TERMINAL_LEFT_MAX;
        else
            o->last = ioctl(o->fd, FIONREAD, &left) == 0 && left > 0 ? (uint32_t)left : 0;
    }
}

void
relay_retry_hung(struct guest *g)
{
    g->any_hung = false;
    for (size_t i = 0; i < MSG_EXECS_MAX; i++)
        g->execs[i].out[0].hung = false;
}

/* Keep reading (and throwing away) what background processes still write to an ended command's pipe: closing it
 * would kill them with SIGPIPE at their next line of log. */
static void
adopt_orphan(struct guest *g, int *fd)
{
    if (*fd < 0 || g->n_orphans == GUEST_ORPHANS_MAX)
        return;
    g->orphans[g->n_orphans++] = take_fd(fd);
}

void
relay_orphan(struct guest *g, size_t i)
{
    char sink[16384];
    ssize_t n = read(g->orphans[i], sink, sizeof(sink));

    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    close_fd(&g->orphans[i]);
    g->orphans[i] = g->orphans[--g->n_orphans];
}

int
relay_finish(struct guest *g, struct guest_exec *e)
{
    uint16_t channel = e->channel;
    struct msg_exit end = e->end;

    /* Read until nothing of it is left. What stops that is a full transport or missing credit, and each of those
     * wakes the loop when it changes: an ended command's output is never waited for by itself, because a terminal
     * that a background process holds may stay silent for ever. */
    for (size_t i = 0; i < 2; i++) {
        while (e->out[i].last > 0 && relay_wants_output(g, e, i))
            if (relay_output(g, e, i) < 0)
                return -1;
        if (e->out[i].last > 0)
            return 0;
    }
    if (e->in_fd == e->out[0].fd)
        e->in_fd = -1;
    adopt_orphan(g, &e->out[0].fd);
    adopt_orphan(g, &e->out[1].fd);
    g->leaving |= e->last;
    exec_free(g, e);
    g->n_ended--;
    if (guard_link_report(g) < 0)
        return -1;
    return msg_put_exit(&g->link.out, channel, &end);
}
