/* egress/exchange.c: see exchange.h */
#include "egress/exchange_priv.h"

#include <errno.h>
#include <string.h>

#define ROUNDS   16         /* a fast pair of peers gives way to the others after so many reads */
#define LOOKED   1          /* ... of what is searched, which takes longer */
#define KEPT_MAX 4096       /* memory that a way keeps between two messages */

/* What was just read, before it is known whose it is: one for all exchanges, since nothing of it outlives a step. */
static uint8_t scratch[EXCHANGE_CHUNK];

static const struct exchange_way fresh_way = {
    .in = BUF_INIT(EXCHANGE_EARLY_MAX), .out = BUF_INIT(EXCHANGE_OUT_MAX), .held = BUF_INIT(EXCHANGE_CHUNK),
};

void
exchange_init(struct exchange *x, const struct exchange_owner *owner, void *ctx, int client_fd, const uint64_t *now_ms)
{
    memset(x, 0, sizeof(*x));
    x->client.fd = client_fd;
    x->server.fd = -1;
    x->owner = owner;
    x->ctx = ctx;
    x->now_ms = now_ms;
    x->deadline_ms = *now_ms + EXCHANGE_HEAD_MS;
    x->up = x->down = fresh_way;
    x->whole = (struct buf)BUF_INIT(EXCHANGE_WHOLE_MAX);
    x->again = (struct buf)BUF_INIT(2 * HTTP1_HEAD_MAX);
}

static void
way_free(struct exchange_way *w)
{
    buf_free(&w->in);
    buf_free(&w->out);
    buf_free(&w->held);
}

void
exchange_free(struct exchange *x)
{
    if (x->owner == NULL)
        return;
    x->result = EXCHANGE_FREED;
    way_free(&x->up);
    way_free(&x->down);
    buf_free(&x->whole);
    buf_free(&x->again);
}

void
exchange_break(struct exchange *x)
{
    if (x->result == EXCHANGE_LIVE)
        x->result = EXCHANGE_BROKEN;
}

bool
exchange_asks(const struct exchange *x)
{
    return x->request == REQUEST_ASKED || x->request == REQUEST_AGAIN || x->request == REQUEST_HELD;
}

bool
exchange_rests(const struct exchange *x)
{
    bool over = (x->request == REQUEST_HEAD && x->response == RESPONSE_NONE) ||
                (x->request == REQUEST_DONE && x->response == RESPONSE_DONE);

    return over && x->lends && !x->spoilt && x->server_used && x->server.fd >= 0 && !x->down.eof && !x->up.broken &&
           x->down.in.n == 0 && x->up.out.n == 0;
}

void
exchange_hang_up(struct exchange *x)
{
    x->owner->hang_up(x);
    x->server_used = x->spoilt = false;
    x->rested_ms = 0;
    x->seen_down = 0;
    x->down.eof = x->up.broken = false;
    buf_reset(&x->down.in);
    buf_reset(&x->up.out);
}

/* --- the owner's word -------------------------------------------------------------------------------------------- */

void
exchange_go(struct exchange *x)
{
    if (x->request == REQUEST_ASKED) {
        x->request = REQUEST_GO;
    } else if (x->request == REQUEST_HELD) {
        exchange_send_whole(x);
    } else if (x->request == REQUEST_AGAIN) {
        /* on a connection of its own: what ends that one is no accident of a kept one */
        x->request = REQUEST_DONE;
        if (buf_append(&x->up.out, x->again.p, x->again.n) < 0)
            exchange_break(x);
        buf_reset(&x->again);
    }
}

void
exchange_ask_again(struct exchange *x)
{
    if (x->request != REQUEST_ASKED)
        return;
    x->request = x->gathered != EXCHANGE_NOT_GATHERED ? REQUEST_GATHERED : REQUEST_HEAD;
    x->seen = 0;
    x->deadline_ms = *x->now_ms + EXCHANGE_HEAD_MS;
}

void
exchange_collect(struct exchange *x, size_t max)
{
    x->gather_max = max;
    if (x->request == REQUEST_ASKED && x->has_body && x->gathered == EXCHANGE_NOT_GATHERED)
        x->request = REQUEST_COLLECT;
}

enum exchange_gather
exchange_gathered(const struct exchange *x, struct str *body)
{
    *body = (struct str){ x->whole.n > 0 ? (const char *)x->whole.p : "", x->whole.n };
    return x->gathered;
}

void
exchange_leave(struct exchange *x)
{
    if (x->request == REQUEST_ASKED)
        x->request = REQUEST_LEFT;
}

void
exchange_refuse(struct exchange *x, const struct answer *answer)
{
    struct str method = { x->method, x->method_n };
    bool fault = x->request == REQUEST_HEAD, keep, open_body;

    if (x->response == RESPONSE_DONE) {     /* another answer is on its way: that was it */
        x->closing = true;
        return;
    }
    if (x->response == RESPONSE_BODY || x->response == RESPONSE_RAW) {
        exchange_break(x);
        return;
    }
    open_body = x->has_body && x->request != REQUEST_DONE && x->request != REQUEST_AGAIN &&
                x->request != REQUEST_HELD && x->gathered != EXCHANGE_GATHERED;
    /* who asked for a tunnel may have begun to speak in it */
    keep = !fault && x->client_keeps && !x->client_10 && !open_body && !str_eq_c(method, "CONNECT");
    if (answer_write(&x->down.out, answer, str_eq_c(method, "HEAD"), keep) < 0) {
        exchange_break(x);
        return;
    }
    if (x->response == RESPONSE_HEAD)       /* something of it went out */
        exchange_hang_up(x);
    x->closing = !keep;
    x->response = RESPONSE_DONE;
    /* its head, if that is still to be passed over */
    x->request = x->request == REQUEST_ASKED && x->gathered == EXCHANGE_NOT_GATHERED ? REQUEST_REFUSED : REQUEST_DONE;
    buf_free(&x->whole);
}

void
exchange_fail(struct exchange *x, unsigned status, const char *phrase, const char *reason, const char *detail)
{
    const struct answer answer = { .status = status, .phrase = phrase, .reason = reason, .detail = detail,
                                   .host = x->target.host, .port = x->target.port };

    if (x->result == EXCHANGE_LIVE)
        exchange_refuse(x, &answer);
}

/* --- the sockets ------------------------------------------------------------------------------------------------- */

static void
rest(struct buf *b)
{
    if (b->n == 0 && b->cap > KEPT_MAX)
        buf_free(b);
}

/* Send what waits in @w. */
static void
flush(struct exchange *x, struct exchange_way *w)
{
    struct stream *to = w == &x->up ? &x->server : &x->client;

    while (w->out.n > 0 && x->result == EXCHANGE_LIVE) {
        ssize_t n = to->fd < 0 ? -1 : stream_send(to, w->out.p, w->out.n);
        if (n < 0 && to->fd >= 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0 && w == &x->down) {
            exchange_break(x);
        } else if (n < 0) {
            w->broken = true;       /* an early answer may still be on its way */
            buf_reset(&w->out);
        } else {
            w->moved += (uint64_t)n;
            buf_consume(&w->out, (size_t)n);
        }
    }
    rest(&w->out);
}

static bool
wants_client(const struct exchange *x)
{
    if (x->up.eof || x->up.out.n > 0 || x->up.held.n > 0)
        return false;
    switch (x->request) {
    case REQUEST_HEAD: return x->down.out.n == 0 || x->up.in.n < EXCHANGE_CHUNK;
    case REQUEST_GATHER:
    case REQUEST_WHOLE:
    case REQUEST_BODY:
    case REQUEST_RAW: return true;
    default: return x->up.in.n < EXCHANGE_CHUNK;
    }
}

static bool
wants_server(const struct exchange *x)
{
    return x->server.fd >= 0 && !x->down.eof && x->down.out.n == 0 && x->down.held.n == 0 && !exchange_asks(x);
}

static void
take(struct exchange *x, struct exchange_way *w)
{
    size_t used = w == &x->up ? exchange_take_request(x, w->in.p, w->in.n)
                              : exchange_take_response(x, w->in.p, w->in.n);

    if (x->result != EXCHANGE_FREED) {
        buf_consume(&w->in, used);
        rest(&w->in);
    }
}

/* One read from @w's source. True when there may be more. */
static bool
fill(struct exchange *x, struct exchange_way *w)
{
    struct stream *from = w == &x->up ? &x->client : &x->server;
    size_t room = w->in.max - w->in.n, used = 0;
    size_t want = room < sizeof(scratch) ? room : sizeof(scratch);
    ssize_t n = stream_recv(from, scratch, want);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0 && w == &x->down) {
        exchange_server_ended(x, n == 0);
        return false;
    }
    if (n < 0) {
        exchange_break(x);
        return false;
    }
    if (n == 0) {
        exchange_client_ended(x);
        return false;
    }
    w->moved += (uint64_t)n;
    if (w->in.n > 0) {
        if (buf_append(&w->in, scratch, (size_t)n) < 0)
            exchange_break(x);
        else
            take(x, w);
    } else {
        /* @in stays empty while the bytes are looked at: what is not understood goes there afterwards */
        used = w == &x->up ? exchange_take_request(x, scratch, (size_t)n)
                           : exchange_take_response(x, scratch, (size_t)n);
        if (x->result != EXCHANGE_FREED && buf_append(&w->in, scratch + used, (size_t)n - used) < 0)
            exchange_break(x);
    }
    return x->result == EXCHANGE_LIVE && ((size_t)n == want || stream_pending(from));
}

/* --- one after the other ----------------------------------------------------------------------------------------- */

/* Both messages are over: the next. True when it can be looked at: bytes of it are here. */
static bool
turn(struct exchange *x)
{
    if (x->result != EXCHANGE_LIVE || x->response != RESPONSE_DONE || x->request == REQUEST_REFUSED)
        return false;
    if (x->closing) {
        x->result = x->down.out.n == 0 ? EXCHANGE_DONE : x->result;
        return false;
    }
    if (x->request != REQUEST_DONE)
        return false;
    x->request = REQUEST_HEAD;
    x->response = RESPONSE_NONE;
    x->gathered = EXCHANGE_NOT_GATHERED;
    x->seen = 0;
    buf_reset(&x->again);
    rest(&x->again);
    x->deadline_ms = *x->now_ms + (x->up.in.n > 0 ? EXCHANGE_HEAD_MS : EXCHANGE_IDLE_MS);
    return x->up.in.n > 0;
}

static void
finish(struct exchange_way *w, struct stream *to)
{
    if (!w->eof || w->out.n > 0 || w->finished)
        return;
    if (w->broken || stream_finish(to) == 0 || errno != EAGAIN)
        w->finished = true;
}

/* After an upgrade: each direction ends by itself. */
static void
finish_raw(struct exchange *x)
{
    if (x->request != REQUEST_RAW || x->result != EXCHANGE_LIVE)
        return;
    finish(&x->up, &x->server);
    finish(&x->down, &x->client);
    if (x->down.finished && (x->up.finished || x->up.broken))
        x->result = EXCHANGE_DONE;
}

/* The filter has more to give, and its last has gone out: no peer says anything that would wake us for it. */
static bool
may_resume(const struct exchange_way *w)
{
    return w->out.n == 0 && (w->held.n > 0 || w->held_last);
}

static void
resume(struct exchange *x)
{
    if (x->result == EXCHANGE_LIVE && x->gathered != EXCHANGE_NOT_GATHERED)
        exchange_follow_gathered(x);
    if (x->result == EXCHANGE_LIVE && may_resume(&x->up))
        exchange_resume_request(x);
    if (x->result == EXCHANGE_LIVE && may_resume(&x->down))
        exchange_resume_response(x);
}

/* What came earlier and had to wait. */
static void
take_kept(struct exchange *x)
{
    if (x->result == EXCHANGE_LIVE && x->down.in.n > 0 && !exchange_waits(&x->down))
        take(x, &x->down);
    if (x->result == EXCHANGE_LIVE && x->up.in.n > 0 && !exchange_waits(&x->up))
        take(x, &x->up);
}

static void
set_deadline(struct exchange *x, uint64_t moved, bool waited)
{
    bool head = x->request == REQUEST_HEAD;

    if (head && !waited && x->up.in.n > 0)
        x->deadline_ms = *x->now_ms + EXCHANGE_HEAD_MS;     /* its first byte came: it is not prolonged after that */
    else if (!head && x->up.moved + x->down.moved != moved)
        x->deadline_ms = *x->now_ms + EXCHANGE_STALL_MS;
}

enum exchange_result
exchange_step(struct exchange *x, bool client, bool server)
{
    uint64_t moved = x->up.moved + x->down.moved;
    bool waited = x->request == REQUEST_HEAD && x->up.in.n > 0;

    x->ready = false;
    for (int round = 0; round < (x->filter != NULL ? LOOKED : ROUNDS) && x->result == EXCHANGE_LIVE; round++) {
        flush(x, &x->up);
        flush(x, &x->down);
        resume(x);
        take_kept(x);
        if (client && x->result == EXCHANGE_LIVE && wants_client(x))
            client = fill(x, &x->up);
        if (x->result == EXCHANGE_LIVE)
            flush(x, &x->up);
        if (server && x->result == EXCHANGE_LIVE && wants_server(x))
            server = fill(x, &x->down);
        if (x->result == EXCHANGE_LIVE)
            flush(x, &x->down);
        x->ready = turn(x);
        finish_raw(x);
        if (!x->ready && !(client && wants_client(x)) && !(server && wants_server(x)))
            break;
    }
    if (x->result == EXCHANGE_LIVE && x->up.eof && x->request == REQUEST_HEAD && !x->ready && x->down.out.n == 0)
        x->result = EXCHANGE_DONE;
    if (x->result == EXCHANGE_LIVE)
        set_deadline(x, moved, waited);
    return x->result;
}

/* --- waiting ----------------------------------------------------------------------------------------------------- */

static uint32_t
events(const struct stream *s, bool in, bool out)
{
    /* what is in memory already wakes nobody: that the socket can be written to does */
    return stream_events(s, in, out || (in && stream_pending(s)));
}

uint32_t
exchange_client_events(const struct exchange *x)
{
    bool end = x->down.eof && x->response == RESPONSE_RAW && !x->down.finished;

    return events(&x->client, wants_client(x), x->ready || x->down.out.n > 0 || may_resume(&x->down) || end);
}

uint32_t
exchange_server_events(const struct exchange *x)
{
    bool end = x->up.eof && x->request == REQUEST_RAW && !x->up.finished;

    return x->server.fd < 0 ? 0 : events(&x->server, wants_server(x),
                                             x->up.out.n > 0 || may_resume(&x->up) || end);
}

void
exchange_timeout(struct exchange *x)
{
    if (x->result != EXCHANGE_LIVE || exchange_asks(x))
        return;
    x->deadline_ms = *x->now_ms + EXCHANGE_HEAD_MS;
    if (x->request == REQUEST_HEAD && x->up.in.n == 0)
        x->result = EXCHANGE_DONE;
    else if (x->request == REQUEST_HEAD)
        exchange_fail(x, 408, "Request Timeout", "http-slow", "the request's head took too long");
    else if (x->response == RESPONSE_HEAD && x->request == REQUEST_DONE)
        exchange_fail(x, 504, "Gateway Timeout", "unreachable", "the server has not answered");
    else
        exchange_break(x);
}
