/* cli/exec_live.c: see exec_live.h
 *
 * One poll loop: the daemon's socket, stdin, a signalfd, and the outputs while something waits for them. Nobody is
 * waited for in a call: what an output does not take stops the socket from being read, and what the socket does not
 * take stops stdin.
 */
#include "cli/exec_live.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "program/json.h"
#include "program/say.h"
#include "program/tty.h"
#include "run/session.h"
#include "wire/ws.h"

#define OUT_MAX  (256UL * 1024)     /* that waits for the daemon; of one read more at most */
#define TEXT_MAX (256UL * 1024)     /* of one of its messages */
#define READ     16384

struct exec {
    int fd, signals;
    struct ws_way in;
    struct buf out, text, nothing;
    struct buf waiting[2];          /* for stdout and stderr */
    uint8_t channel;                /* of the message at hand; 0: not known yet */
    bool input, terminal, ended;
    int code;                       /* what it exits with, when it has ended */
    struct err *err;                /* why it did not run; set: it is over */
};

/* --- to the daemon ------------------------------------------------------------------------------------------------ */

static int
exec_live_put(struct exec *x, uint8_t opcode, const uint8_t *head, size_t head_n, const void *p, size_t n)
{
    uint8_t key[4];
    size_t at;

    if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key))
        return err_set(x->err, ERR_SYSTEM, "api.random", "no random numbers");
    if (ws_write_head(&x->out, true, opcode, head_n + n, key) < 0)
        return err_set(x->err, ERR_LIMIT, "memory", "too much waits for the daemon");
    at = x->out.n;
    if ((head_n > 0 && buf_append(&x->out, head, head_n) < 0) || (n > 0 && buf_append(&x->out, p, n) < 0))
        return err_set(x->err, ERR_LIMIT, "memory", "too much waits for the daemon");
    for (size_t i = 0; at + i < x->out.n; i++)
        x->out.p[at + i] ^= key[i % 4];
    return 0;
}

static int
put_json(struct exec *x, json_t *message)
{
    cleanup_free char *text = message != NULL ? json_dumps(message, JSON_COMPACT) : NULL;

    json_decref(message);
    return text != NULL ? exec_live_put(x, WS_TEXT, NULL, 0, text, strlen(text))
                        : err_set(x->err, ERR_SYSTEM, "memory", "out of memory");
}

static int
flush(struct exec *x)
{
    while (x->out.n > 0) {
        ssize_t n = send(x->fd, x->out.p, x->out.n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) {
            buf_reset(&x->out);     /* gone: what it said last is there to be read */
            return 0;
        }
        if (n < 0)
            return err_sys(x->err, errno, "api.cut", "send to the daemon");
        buf_consume(&x->out, (size_t)n);
    }
    return 0;
}

static int
hear_stdin(struct exec *x)
{
    static const uint8_t channel = 0;
    uint8_t p[READ];
    ssize_t n = read(STDIN_FILENO, p, sizeof(p));

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n > 0)
        return exec_live_put(x, WS_BINARY, &channel, 1, p, (size_t)n);
    x->input = false;
    return put_json(x, json_pack("{s:s}", "type", "stdin_end"));
}

static int
hear_signals(struct exec *x)
{
    struct signalfd_siginfo info;
    uint16_t rows, cols;

    while (read(x->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        int r = 0;
        if (info.ssi_signo != SIGWINCH)
            r = put_json(x, json_pack("{s:s, s:i}", "type", "signal", "signal", (int)info.ssi_signo));
        else if (x->terminal && tty_size(STDIN_FILENO, &rows, &cols) == 0)
            r = put_json(x, json_pack("{s:s, s:i, s:i}", "type", "resize", "rows", rows, "cols", cols));
        if (r < 0)
            return -1;
    }
    return 0;
}

/* --- from the daemon ---------------------------------------------------------------------------------------------- */

static int
said(struct exec *x, const json_t *message)
{
    const char *type = json_text(message, "type");
    const json_t *sig = json_object_get(message, "signal");

    if (strcmp(type, "error") == 0)
        return api_error(message, ERR_DENIED, x->err);
    if (strcmp(type, "exit") != 0)
        return 0;
    x->ended = true;
    x->code = json_is_true(json_object_get(message, "timed_out")) ? EXIT_TIMED_OUT
              : json_is_integer(sig) ? 128 + (int)json_integer_value(sig)
                                     : (int)json_integer_value(json_object_get(message, "exit_code"));
    x->code &= 255;
    return 0;
}

static int
text_bytes(struct exec *x, const uint8_t *p, size_t n, bool end)
{
    json_t *message;
    int r;

    if (n > 0 && buf_append(&x->text, p, n) < 0)
        return err_set(x->err, ERR_PROTOCOL, "api.answer", "a message of the daemon's is too long");
    if (!end)
        return 0;
    message = json_loadb((const char *)x->text.p, x->text.n, JSON_REJECT_DUPLICATES, NULL);
    r = json_is_object(message) ? said(x, message)
                                : err_set(x->err, ERR_PROTOCOL, "api.answer", "a message of the daemon's is no JSON");
    json_decref(message);
    buf_reset(&x->text);
    return r;
}

static int
binary_bytes(struct exec *x, const uint8_t *p, size_t n, bool end)
{
    if (n > 0 && x->channel == 0) {
        x->channel = p[0];
        p++;
        n--;
        if (x->channel != 1 && x->channel != 2)
            return err_set(x->err, ERR_PROTOCOL, "api.answer", "the daemon speaks on a channel that there is not");
    }
    if (n > 0 && buf_append(&x->waiting[x->channel - 1], p, n) < 0)
        return err_set(x->err, ERR_LIMIT, "memory", "out of memory for output");
    x->channel = end ? 0 : x->channel;
    return 0;
}

static int
on_bytes(void *ctx, bool control, const uint8_t *p, size_t n, bool end, struct buf *out)
{
    struct exec *x = ctx;

    (void)out;
    if (x->ended)
        return 0;
    if (control)
        return x->in.frame.opcode == WS_PING ? exec_live_put(x, WS_PONG, NULL, 0, p, n) : 0;
    return x->in.opcode == WS_TEXT ? text_bytes(x, p, n, end) : binary_bytes(x, p, n, end);
}

static int
take(struct exec *x, const uint8_t *p, size_t n)
{
    enum ws_result r = n > 0 ? ws_feed(&x->in, p, n, on_bytes, x, &x->nothing) : WS_OK;

    buf_reset(&x->nothing);
    if (r == WS_OK)
        return 0;
    return r == WS_REFUSED ? -1 : err_set(x->err, ERR_PROTOCOL, "api.answer", "what the daemon says is no WebSocket");
}

static int
hear(struct exec *x)
{
    uint8_t p[READ];
    ssize_t n = recv(x->fd, p, sizeof(p), MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0) {
        err_set(x->err, ERR_PROTOCOL, "api.cut", "the daemon ended the connection while the command ran");
        return err_hint(x->err, "a command that is to go on by itself is begun with --detach");
    }
    return take(x, p, (size_t)n);
}

/* As session_flush(): poll says whether there is room, and who reads no more misses the rest. */
static int
write_out(struct exec *x, size_t i)
{
    struct buf *b = &x->waiting[i];
    ssize_t n = write(i == 0 ? STDOUT_FILENO : STDERR_FILENO, b->p, b->n < PIPE_BUF ? b->n : PIPE_BUF);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0 && errno != EPIPE && errno != EIO)
        return err_sys(x->err, errno, "cli.output", "write the command's output");
    buf_consume(b, n < 0 ? b->n : (size_t)n);
    return 0;
}

/* --- the loop ----------------------------------------------------------------------------------------------------- */

static bool
waits(const struct exec *x)
{
    return x->waiting[0].n > 0 || x->waiting[1].n > 0;
}

static int
step(struct exec *x)
{
    struct pollfd fds[] = {
        /* not looked at while nothing of it can be taken: its end would be told again and again */
        { .fd = x->ended || (waits(x) && x->out.n == 0) ? -1 : x->fd,
          .events = (short)((waits(x) ? 0 : POLLIN) | (x->out.n > 0 ? POLLOUT : 0)) },
        { .fd = x->input && x->out.n < OUT_MAX ? STDIN_FILENO : -1, .events = POLLIN },
        { .fd = x->signals, .events = POLLIN },
        { .fd = x->waiting[0].n > 0 ? STDOUT_FILENO : -1, .events = POLLOUT },
        { .fd = x->waiting[1].n > 0 ? STDERR_FILENO : -1, .events = POLLOUT },
    };

    if (poll(fds, ARRAY_LEN(fds), -1) < 0)
        return errno == EINTR ? 0 : err_sys(x->err, errno, "cli.poll", "poll");
    for (size_t i = 0; i < 2; i++)
        if (fds[3 + i].revents != 0 && write_out(x, i) < 0)
            return -1;
    if ((fds[2].revents != 0 && hear_signals(x) < 0) || (fds[1].revents != 0 && hear_stdin(x) < 0))
        return -1;
    if (fds[0].fd >= 0 && flush(x) < 0)
        return -1;
    /* its end is seen when there is room for what it said before */
    return fds[0].revents != 0 && !waits(x) ? hear(x) : 0;
}

static int
run(struct exec *x)
{
    while (!x->ended || waits(x))
        if (step(x) < 0)
            return -1;
    return x->code;
}

static int
signals_open(struct err *err)
{
    sigset_t set;
    int fd;

    session_passed_signals(&set);
    sigaddset(&set, SIGWINCH);
    if (sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL) < 0 ||
        sigprocmask(SIG_BLOCK, &set, NULL) < 0 || (fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
        return err_sys(err, errno, "cli.signals", "signalfd");
    return fd;
}

int
exec_live(const struct api *api, const char *path, const json_t *command, bool input, bool terminal, struct err *err)
{
    struct exec x = { .fd = -1, .signals = -1, .input = input, .terminal = terminal, .err = err,
                      .out = BUF_INIT(2 * OUT_MAX + TEXT_MAX), .text = BUF_INIT(TEXT_MAX),
                      .nothing = BUF_INIT(TEXT_MAX),
                      .waiting = { BUF_INIT(4 * TEXT_MAX), BUF_INIT(4 * TEXT_MAX) } };
    cleanup_buf struct buf behind = BUF_INIT(API_ANSWER_MAX);
    struct tty_state tty = { .raw = false };
    int r = -1;

    ws_init(&x.in, false);
    x.signals = signals_open(err);
    if (x.signals >= 0)
        x.fd = api_upgrade(api, path, &behind, err);
    if (x.fd >= 0 && io_set_nonblock(x.fd, true) == 0 && put_json(&x, json_incref((json_t *)(uintptr_t)command)) == 0 &&
        (input || put_json(&x, json_pack("{s:s}", "type", "stdin_end")) == 0) &&
        (!input || !terminal || tty_raw(&tty, STDIN_FILENO, err) == 0) && take(&x, behind.p, behind.n) == 0)
        r = run(&x);
    tty_restore(&tty);
    close_fd(&x.fd);
    close_fd(&x.signals);
    ws_free(&x.in);
    buf_free(&x.out);
    buf_free(&x.text);
    buf_free(&x.nothing);
    buf_free(&x.waiting[0]);
    buf_free(&x.waiting[1]);
    return r;
}
