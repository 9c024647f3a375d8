/* guest/client.c: see client.h; requests and the transport (what comes back: client_events.c) */
#include "guest/client.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "guest/client_priv.h"

#define READ_FIRST 4096
#define READ_MORE  (FRAME_HEADER + MSG_DATA_MAX)

struct client_exec *
client_exec_of(struct guest_client *c, uint16_t id)
{
    for (size_t i = 0; id != 0 && i < MSG_EXECS_MAX; i++)
        if (c->execs[i].id == id)
            return &c->execs[i];
    return NULL;
}

struct client_file *
client_file_of(struct guest_client *c, uint16_t id)
{
    for (size_t i = 0; id != 0 && i < MSG_FILES_MAX + MSG_WATCHES_MAX; i++)
        if (c->files[i].id == id)
            return &c->files[i];
    return NULL;
}

int
guest_client_new(int fd, struct guest_client **out, struct err *err)
{
    struct guest_client *c;

    if (io_set_nonblock(fd, true) < 0)
        return err_sys(err, errno, "guest.transport", "guest transport");
    c = calloc(1, sizeof(*c));
    if (c == NULL)
        return err_sys(err, ENOMEM, "guest.memory", "guest client");
    c->fd = fd;
    c->gate = (struct msg_gate){ .rules = client_rules, .n_rules = client_n_rules, .state = CLIENT_FRESH };
    c->in = (struct buf)BUF_INIT(CLIENT_IN_MAX);
    c->out = (struct buf)BUF_INIT(CLIENT_OUT_MAX);
    *out = c;
    return 0;
}

static void
drop_set(struct client_fds *s)
{
    for (size_t i = 0; i < 3 && s->owned; i++)
        close_fd(&s->fd[i]);
}

void
guest_client_free(struct guest_client *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; i < c->n_sets; i++)
        drop_set(&c->sets[i]);
    buf_free(&c->in);
    buf_free(&c->out);
    free(c);
}

void
guest_client_freep(struct guest_client **c)
{
    guest_client_free(*c);
}

/* Send out[out_at..end) with at most one set of descriptors. Bytes sent, 0 when the transport is full, -1 when it is
 * gone. */
static ssize_t
send_some(struct guest_client *c, size_t end, const struct client_fds *set)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(3 * sizeof(int))];
    } control;
    struct iovec iov = { .iov_base = c->out.p + c->out_at, .iov_len = end - c->out_at };
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
    ssize_t n;

    if (set != NULL) {
        memset(&control, 0, sizeof(control));
        msg.msg_control = &control;
        msg.msg_controllen = sizeof(control);
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = (socklen_t)CMSG_LEN(set->n * sizeof(int));
        msg.msg_controllen = (socklen_t)CMSG_SPACE(set->n * sizeof(int));
        memcpy(CMSG_DATA(&control.head), set->fd, set->n * sizeof(int));
    }
    do {
        if (!c->plain)
            n = sendmsg(c->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
        else
            n = write(c->fd, iov.iov_base, iov.iov_len);
        if (n < 0 && errno == ENOTSOCK && set == NULL && !c->plain) {
            c->plain = true;
            errno = EINTR;
        }
    } while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS))
        return 0;
    return n;
}

/* Send what waits, until done or full. A transport that is gone is not an error here: what the guest said before
 * is still to be read, and its end shows as GUEST_CLOSED. */
static void
flush_out(struct guest_client *c)
{
    while (c->out_at < c->out.n && !c->send_broken) {
        /* Descriptors may leave before the frame that they belong to, never after it: one set per send, and no
         * byte of the next set's frame with it. */
        struct client_fds *set = c->n_sets > 0 ? &c->sets[0] : NULL;
        size_t end = c->n_sets > 1 ? c->sets[1].at : c->out.n;
        ssize_t n = send_some(c, end, set);

        if (n == 0)
            return;
        if (n < 0) {
            c->send_broken = true;
            break;
        }
        c->out_at += (size_t)n;
        if (set != NULL) {
            drop_set(set);
            c->n_sets--;
            memmove(&c->sets[0], &c->sets[1], c->n_sets * sizeof(c->sets[0]));
        }
    }
    if (c->send_broken) {
        for (size_t i = 0; i < c->n_sets; i++)
            drop_set(&c->sets[i]);
        c->n_sets = 0;
    }
    c->out.n = 0;
    c->out_at = 0;
}

/* Move what is not sent to the front, so that the ceiling counts only that. */
static void
compact_out(struct guest_client *c)
{
    if (c->out_at == 0)
        return;
    for (size_t i = 0; i < c->n_sets; i++)
        c->sets[i].at -= c->out_at;
    buf_consume(&c->out, c->out_at);
    c->out_at = 0;
}

static int
usable(const struct guest_client *c, struct err *err)
{
    if (c->failed)
        return err_set(err, ERR_PROTOCOL, "guest.protocol",
                       "the guest broke the protocol: its sandbox must be destroyed");
    if (!c->setup_done)
        return err_set(err, ERR_PROTOCOL, "guest.order", "a request to the guest before its setup");
    return 0;
}

/* Finish a request that was encoded at @at: 0, or take it back. */
static int
queued(struct guest_client *c, size_t at, int rc, struct err *err)
{
    if (rc == 0 && buf_ok(&c->out)) {
        flush_out(c);
        return 0;
    }
    c->out.n = at;
    c->out.broken = false;
    return err_set(err, ERR_LIMIT, "guest.request-too-large",
                   "a request to the guest is above its ceiling, or too much waits to be sent (%d bytes at most)",
                   CLIENT_OUT_MAX);
}

int
guest_client_setup(struct guest_client *c, const struct msg_setup *m, struct err *err)
{
    struct msg_setup own = *m;

    if (c->setup_done)
        return err_set(err, ERR_PROTOCOL, "guest.order", "the guest's setup may be sent only once");
    own.version = GUEST_PROTOCOL_VERSION;
    if (own.root == NULL)
        own.root = "";
    if (strlen(own.root) > MSG_PATH_MAX || (own.root[0] != '\0' && own.root[0] != '/') ||
        ((own.memory_limit != 0 || own.pids_limit != 0) && own.sample_ms == 0))
        return err_set(err, ERR_PROTOCOL, "guest.setup", "the guest's setup: root \"%s\", sampled every %u ms",
                       own.root, own.sample_ms);
    if (msg_put_setup(&c->out, &own) < 0) {
        buf_reset(&c->out);
        return err_set(err, ERR_LIMIT, "guest.setup-too-large",
                       "the name guard's plan is %u bytes; the limit is %d", own.guard_n, MSG_GUARD_MAX);
    }
    memcpy(c->root, own.root, strlen(own.root) + 1);
    c->setup_done = true;
    return 0;       /* not sent yet: it travels with the first EXEC */
}

/* A channel number that is not in use; 0 when all slots are taken. */
static struct client_exec *
new_exec(struct guest_client *c)
{
    for (size_t i = 0; i < MSG_EXECS_MAX; i++) {
        if (c->execs[i].id != 0)
            continue;
        do
            c->next_exec++;
        while (c->next_exec == 0 || client_exec_of(c, c->next_exec) != NULL);
        c->execs[i] = (struct client_exec){ .id = c->next_exec };
        return &c->execs[i];
    }
    return NULL;
}

/* Remember the descriptors of the frame at @at; they are duplicated only if the frame could not leave at once. */
static int
attach_fds(struct guest_client *c, size_t at, const int *fds, size_t n)
{
    struct client_fds *s = &c->sets[c->n_sets];

    if (c->n_sets == CLIENT_FD_SETS)
        return -1;
    *s = (struct client_fds){ .at = at, .fd = { -1, -1, -1 }, .n = n, .owned = false };
    memcpy(s->fd, fds, n * sizeof(int));
    c->n_sets++;
    return 0;
}

static int
own_fds(struct guest_client *c)
{
    for (size_t i = 0; i < c->n_sets; i++) {
        struct client_fds *s = &c->sets[i];
        int copy[3] = { -1, -1, -1 };

        for (size_t k = 0; k < s->n && !s->owned; k++) {
            copy[k] = fcntl(s->fd[k], F_DUPFD_CLOEXEC, 0);
            if (copy[k] < 0)
                return -1;
        }
        if (!s->owned)
            memcpy(s->fd, copy, sizeof(copy));
        s->owned = true;
    }
    return 0;
}

int
guest_client_exec(struct guest_client *c, const struct guest_exec *x, uint16_t *channel, struct err *err)
{
    struct msg_exec m = { .stdio = x->stdio, .flags = x->flags, .rows = x->rows, .cols = x->cols, .umask = x->umask,
                          .uid = x->uid, .gid = x->gid, .window = x->window, .n_rlimits = x->n_rlimits,
                          .cwd = x->cwd == NULL ? "" : x->cwd };
    struct client_exec *e;
    size_t at;

    if (usable(c, err) < 0)
        return -1;
    if (x->argv == NULL || x->argv[0] == NULL || x->n_rlimits > MSG_RLIMITS_MAX)
        return err_set(err, ERR_PROTOCOL, "guest.exec", "an exec without a command, or with %zu limits", x->n_rlimits);
    if (x->n_joins > (x->stdio == EXEC_STDIO_FDS ? 0 : MSG_JOINS_MAX))
        return err_set(err, ERR_PROTOCOL, "guest.exec", "an exec with %zu cgroups", x->n_joins);
    if (x->note >= 0 && (x->stdio != EXEC_STDIO_STREAM || x->n_joins > 0))
        return err_set(err, ERR_PROTOCOL, "guest.exec", "an exec with a file and cgroups, or without streams");
    m.flags |= (uint8_t)(MSG_EXEC_JOIN(x->n_joins) | (x->note >= 0 ? MSG_EXEC_NOTE : 0));
    if (x->n_rlimits > 0)
        memcpy(m.rlimits, x->rlimits, x->n_rlimits * sizeof(m.rlimits[0]));
    e = new_exec(c);
    if (e == NULL)
        return err_set(err, ERR_LIMIT, "guest.too-many-execs", "%d commands run in this sandbox; the limit is %d",
                       MSG_EXECS_MAX, MSG_EXECS_MAX);
    compact_out(c);
    at = c->out.n;
    if (msg_put_exec(&c->out, e->id, &m, x->argv, x->env) < 0) {
        *e = (struct client_exec){ .id = 0 };
        c->out.n = at;
        c->out.broken = false;
        return err_set(err, ERR_LIMIT, "exec.too-large",
                       "the command's arguments and environment are too large: at most %d bytes in all and %d in one",
                       MSG_EXEC_MAX, MSG_STRING_MAX);
    }
    if ((x->stdio == EXEC_STDIO_FDS && attach_fds(c, at, x->fds, 3) < 0) ||
        (x->n_joins > 0 && attach_fds(c, at, x->joins, x->n_joins) < 0) ||
        (x->note >= 0 && attach_fds(c, at, &x->note, 1) < 0)) {
        *e = (struct client_exec){ .id = 0 };
        return queued(c, at, -1, err);
    }
    e->stdio = x->stdio;
    e->stdin_closed = x->stdio == EXEC_STDIO_FDS || (x->flags & MSG_EXEC_NO_STDIN) != 0;
    e->stdin_room = MSG_STDIN_WINDOW_START;
    e->window = x->window;
    e->output_room[0] = e->output_room[1] = x->window;
    *channel = e->id;
    flush_out(c);
    if (own_fds(c) < 0)
        return err_sys(err, errno, "guest.descriptors", "descriptors for a command that waits to be sent");
    return 0;
}

int
guest_client_connect(struct guest_client *c, uint16_t port, uint32_t window, uint16_t *channel, struct err *err)
{
    const struct msg_connect m = { .port = port, .window = window };
    struct client_exec *e;

    if (usable(c, err) < 0)
        return -1;
    if (port == 0 || window == 0)
        return err_set(err, ERR_PROTOCOL, "guest.connect", "a connection to port %u", (unsigned)port);
    e = new_exec(c);
    if (e == NULL)
        return err_set(err, ERR_LIMIT, "guest.too-many-execs", "%d commands run in this sandbox; the limit is %d",
                       MSG_EXECS_MAX, MSG_EXECS_MAX);
    compact_out(c);
    e->stdio = EXEC_STDIO_SOCKET;
    e->stdin_room = MSG_STDIN_WINDOW_START;
    e->window = e->output_room[0] = window;
    *channel = e->id;
    if (queued(c, c->out.n, msg_put_connect(&c->out, e->id, &m), err) == 0)
        return 0;
    *e = (struct client_exec){ .id = 0 };
    return -1;
}

size_t
guest_client_stdin_room(const struct guest_client *c, uint16_t channel)
{
    for (size_t i = 0; channel != 0 && i < MSG_EXECS_MAX; i++) {
        const struct client_exec *e = &c->execs[i];

        if (e->id == channel)
            return e->stdin_closed || c->out.n - c->out_at > CLIENT_DATA_MARK ? 0 : e->stdin_room;
    }
    return 0;
}

int
guest_client_stdin(struct guest_client *c, uint16_t channel, const void *p, size_t n, size_t *taken,
                   struct err *err)
{
    struct client_exec *e = client_exec_of(c, channel);
    size_t room = guest_client_stdin_room(c, channel), at;

    *taken = 0;
    if (usable(c, err) < 0)
        return -1;
    n = n < room ? n : room;
    n = n < MSG_DATA_MAX ? n : MSG_DATA_MAX;
    if (e == NULL || n == 0)
        return 0;
    compact_out(c);
    at = c->out.n;
    if (queued(c, at, frame_append(&c->out, MSG_STDIN, 0, channel, p, n), err) < 0)
        return -1;
    e->stdin_room -= (uint32_t)n;
    *taken = n;
    return 0;
}

int
guest_client_close_stdin(struct guest_client *c, uint16_t channel, struct err *err)
{
    struct client_exec *e = client_exec_of(c, channel);

    if (usable(c, err) < 0)
        return -1;
    if (e == NULL || e->stdin_closed)
        return 0;
    e->stdin_closed = true;
    return queued(c, c->out.n, frame_append(&c->out, MSG_STDIN_CLOSE, 0, channel, NULL, 0), err);
}

int
guest_client_resize(struct guest_client *c, uint16_t channel, uint16_t rows, uint16_t cols, struct err *err)
{
    const struct msg_resize m = { .rows = rows, .cols = cols };
    const struct client_exec *e = client_exec_of(c, channel);

    if (usable(c, err) < 0)
        return -1;
    if (e == NULL || e->stdio != EXEC_STDIO_PTY)
        return 0;
    return queued(c, c->out.n, msg_put_resize(&c->out, channel, &m), err);
}

int
guest_client_signal(struct guest_client *c, uint16_t channel, int signo, enum signal_target target, struct err *err)
{
    const struct msg_signal m = { .signo = (uint32_t)signo, .target = (uint8_t)target };

    if (usable(c, err) < 0)
        return -1;
    if (signo < 1 || signo > 64)
        return err_set(err, ERR_USAGE, "guest.signal", "signal %d does not exist", signo);
    if (client_exec_of(c, channel) == NULL)
        return 0;
    return queued(c, c->out.n, msg_put_signal(&c->out, channel, &m), err);
}

int
guest_client_window(struct guest_client *c, uint16_t channel, enum msg_stream stream, uint32_t bytes,
                    struct err *err)
{
    const struct msg_window m = { .stream = (uint8_t)stream, .bytes = bytes };
    struct client_exec *e = client_exec_of(c, channel);
    uint32_t *room;

    if (usable(c, err) < 0)
        return -1;
    if (e == NULL || e->window == 0 || bytes == 0)
        return 0;
    room = &e->output_room[stream == MSG_STREAM_ERR];
    if (__builtin_add_overflow(*room, bytes, room) || *room > e->window)
        return err_set(err, ERR_PROTOCOL, "guest.window", "more output credit given back than was used");
    return queued(c, c->out.n, msg_put_window(&c->out, channel, &m), err);
}

int
guest_client_kill_all(struct guest_client *c, int signo, struct err *err)
{
    if (usable(c, err) < 0)
        return -1;
    if (signo < 1 || signo > 64)
        return err_set(err, ERR_USAGE, "guest.signal", "signal %d does not exist", signo);
    return queued(c, c->out.n, msg_put_u32(&c->out, MSG_KILL_ALL, 0, (uint32_t)signo), err);
}

short
guest_client_poll_events(const struct guest_client *c)
{
    return (short)(POLLIN | (c->out_at < c->out.n ? POLLOUT : 0));
}

int
guest_client_pump(struct guest_client *c, struct err *err)
{
    size_t want = c->was_full ? READ_MORE : READ_FIRST;
    ssize_t n;

    if (c->failed)
        return usable(c, err);
    flush_out(c);
    if (c->in_at > 0)
        buf_consume(&c->in, c->in_at);
    c->in_at = 0;
    if (c->closed || c->in.n >= READ_MORE)
        return 0;
    if (want > c->in.max - c->in.n)
        want = c->in.max - c->in.n;
    if (buf_reserve(&c->in, want) < 0)
        return err_sys(err, ENOMEM, "guest.memory", "guest client");
    do
        n = read(c->fd, c->in.p + c->in.n, want);
    while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    if (n < 0 && errno != ECONNRESET && errno != EPIPE)
        return err_sys(err, errno, "guest.transport", "reading from the guest");
    if (n <= 0)
        c->closed = true;
    else
        c->in.n += (size_t)n;
    c->was_full = n > 0 && (size_t)n == want;
    return 0;
}
