/* cli/exec_live.c: see exec_live.h
 *
 * One loop over the outputs while something waits for them, signals, stdin and the daemon's socket. It polls, since a
 * stream may be a file. Nobody is waited for in a call: what an output does not take stops the socket from being read,
 * and what the socket does not take stops stdin.
 */
#include "cli/exec_live.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/loop.h"
#include "program/json.h"
#include "program/say.h"
#include "program/tty.h"
#include "run/session.h"
#include "wire/ws.h"

#define OUT_MAX  (256UL * 1024)     /* that waits for the daemon; of one read more at most */
#define TEXT_MAX (256UL * 1024)     /* of one of its messages */
#define READ     16384

struct exec {
    struct loop loop;
    struct watch outputs[2], input, daemon;
    struct signals signals;
    struct ws_way in;
    struct buf out, text, nothing;
    struct buf waiting[2];          /* for stdout and stderr */
    uint8_t channel;                /* of the message at hand; 0: not known yet */
    bool reads, terminal, ended;    /* @reads: stdin, which is not over */
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
        ssize_t n = send(x->daemon.fd, x->out.p, x->out.n, MSG_DONTWAIT | MSG_NOSIGNAL);
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
    x->reads = false;
    return put_json(x, json_pack("{s:s}", "type", "stdin_end"));
}

static void
on_stdin(struct watch *w, uint32_t events)
{
    (void)events;
    loop_done(&((struct exec *)w->owner)->loop, hear_stdin(w->owner));
}

static void
on_signal(struct signals *s, int number)
{
    struct exec *x = s->watch.owner;
    uint16_t rows, cols;

    if (number != SIGWINCH)
        loop_done(&x->loop, put_json(x, json_pack("{s:s, s:i}", "type", "signal", "signal", number)));
    else if (x->terminal && tty_size(STDIN_FILENO, &rows, &cols) == 0)
        loop_done(&x->loop, put_json(x, json_pack("{s:s, s:i, s:i}", "type", "resize", "rows", rows, "cols", cols)));
}

/* --- from the daemon ---------------------------------------------------------------------------------------------- */

/* Nobody sees from the exit code alone that a limit ended it. */
static void
say_limit(const json_t *message)
{
    const json_t *limit = json_object_get(message, "limit_reached");
    const char *name = json_is_object(limit) ? json_text(limit, "limit") : "time";

    if (strcmp(name, "time") != 0)
        cli_warn("the %s's limit of %s was reached  [%s]",
                 strcmp(json_text(limit, "of"), "sandbox") == 0 ? "sandbox" : "command",
                 strcmp(name, "pids") == 0 ? "processes" : "memory", json_text(limit, "code"));
}

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
    say_limit(message);
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
    ssize_t n = recv(x->daemon.fd, p, sizeof(p), MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0) {
        err_set(x->err, ERR_PROTOCOL, "api.cut", "the daemon ended the connection while the command ran");
        return err_hint(x->err, "a command that is to go on by itself is begun with --detach");
    }
    return take(x, p, (size_t)n);
}

/* As session_flush(): poll says whether there is room, and who reads no more misses the rest. */
static void
on_output(struct watch *w, uint32_t events)
{
    struct exec *x = w->owner;
    struct buf *b = &x->waiting[w - x->outputs];
    ssize_t n = write(w->fd, b->p, b->n < PIPE_BUF ? b->n : PIPE_BUF);

    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0 && errno != EPIPE && errno != EIO)
        loop_done(&x->loop, err_sys(x->err, errno, "cli.output", "write the command's output"));
    else
        buf_consume(b, n < 0 ? b->n : (size_t)n);
}

/* --- the loop ----------------------------------------------------------------------------------------------------- */

static bool
waits(const struct exec *x)
{
    return x->waiting[0].n > 0 || x->waiting[1].n > 0;
}

/* Its end is seen when there is room for what it said before. */
static void
on_daemon(struct watch *w, uint32_t events)
{
    struct exec *x = w->owner;

    (void)events;
    loop_done(&x->loop, flush(x) < 0 || (!waits(x) && hear(x) < 0) ? -1 : 0);
}

static int
run(struct exec *x)
{
    while (!x->ended || waits(x)) {
        for (size_t i = 0; i < 2; i++)
            (void)loop_watch(&x->loop, &x->outputs[i], x->waiting[i].n > 0 ? EPOLLOUT : 0);
        (void)loop_watch(&x->loop, &x->signals.watch, EPOLLIN);
        (void)loop_watch(&x->loop, &x->input, x->reads && x->out.n < OUT_MAX ? EPOLLIN : 0);
        /* not looked at while nothing of it can be taken: its end would be told again and again */
        (void)loop_watch(&x->loop, &x->daemon, x->ended ? 0 : (waits(x) ? 0 : (uint32_t)EPOLLIN) |
                                                              (x->out.n > 0 ? EPOLLOUT : 0));
        if (loop_round(&x->loop, -1, x->err) < 0 || (!x->ended && flush(x) < 0))
            return -1;
    }
    return x->code;
}

int
exec_live(const struct api *api, const char *path, const json_t *command, bool input, bool terminal, struct err *err)
{
    struct exec x = { .outputs = { { .fd = STDOUT_FILENO, .ready = on_output, .owner = &x },
                                   { .fd = STDERR_FILENO, .ready = on_output, .owner = &x } },
                      .signals = { .watch = { .fd = -1, .owner = &x }, .came = on_signal },
                      .input = { .fd = STDIN_FILENO, .ready = on_stdin, .owner = &x },
                      .daemon = { .fd = -1, .ready = on_daemon, .owner = &x },
                      .reads = input, .terminal = terminal, .err = err,
                      .out = BUF_INIT(2 * OUT_MAX + TEXT_MAX), .text = BUF_INIT(TEXT_MAX),
                      .nothing = BUF_INIT(TEXT_MAX),
                      .waiting = { BUF_INIT(4 * TEXT_MAX), BUF_INIT(4 * TEXT_MAX) } };
    cleanup_buf struct buf behind = BUF_INIT(API_ANSWER_MAX);
    struct tty_state tty = { .raw = false };
    int r = -1;

    ws_init(&x.in, false);
    loop_init_polled(&x.loop);
    if (session_signals(&x.signals, NULL, err) == 0)
        x.daemon.fd = api_upgrade(api, path, &behind, err);
    if (x.daemon.fd >= 0 && io_set_nonblock(x.daemon.fd, true) == 0 &&
        put_json(&x, json_incref((json_t *)(uintptr_t)command)) == 0 &&
        (input || put_json(&x, json_pack("{s:s}", "type", "stdin_end")) == 0) &&
        (!input || !terminal || tty_raw(&tty, STDIN_FILENO, err) == 0) && take(&x, behind.p, behind.n) == 0)
        r = run(&x);
    tty_restore(&tty);
    close_fd(&x.daemon.fd);
    close_fd(&x.signals.watch.fd);
    ws_free(&x.in);
    buf_free(&x.out);
    buf_free(&x.text);
    buf_free(&x.nothing);
    buf_free(&x.waiting[0]);
    buf_free(&x.waiting[1]);
    return r;
}
