/* egress/conn.c: see conn.h */
#include "egress/conn.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "wall/sockaddr.h"

#define IDLE_MS    600000       /* neither direction moves */
#define LINGER_MS  2000
#define READ_CHUNK 16384

static void on_client(struct watch *w, uint32_t events);

void
conn_patience(struct conn *c, uint64_t ms)
{
    c->deadline_ms = c->e->loop.now_ms + ms;
}

void
conn_end(struct conn *c)
{
    struct egress *e = c->e;

    if (c->state == CONN_ENDED)
        return;
    if (c->state == CONN_RESOLVING)
        resolver_forget(e->resolver, c);
    if (c->state == CONN_ASKING || c->h2_waits)
        e->n_waiting--;
    c->state = CONN_ENDED;
    loop_drop(&e->loop, &c->client);
    loop_drop(&e->loop, &c->server);
    relay_close(&c->up);
    relay_close(&c->down);
    exchange_free(&c->x);
    conn_h2_free(c);
    tls_free(c);
    buf_free(&c->in);
    buf_free(&c->reply);
    if (c->held)
        fake_release(e->fakes, &c->meant);
    if (c->prev != NULL)
        c->prev->next = c->next;
    else
        e->conns = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
    c->next = e->ended;
    e->ended = c;
    e->n_conns--;
}

void
conn_free_ended(struct egress *e)
{
    while (e->ended != NULL) {
        struct conn *c = e->ended;
        e->ended = c->next;
        free(c);
    }
}

bool
conn_has_tail(const struct egress *e)
{
    for (const struct conn *c = e->conns; c != NULL; c = c->next)
        if (c->state == CONN_RELAY && !c->up_broken && relay_wants_output(&c->up))
            return true;
    return false;
}

void
conn_close_known(struct egress *e)
{
    for (struct conn *c = e->conns, *next; c != NULL; c = next) {
        next = c->next;
        if (c->state == CONN_RELAY && c->up.done && !c->up_broken)
            conn_part(c->server.fd, false);     /* all that was said is on its way */
        if (c->state != CONN_FIRST)
            conn_end(c);
    }
    pool_clear(e);
    conn_free_ended(e);
}

void
conn_close_all(struct egress *e)
{
    while (e->conns != NULL)
        conn_end(e->conns);
    pool_clear(e);
    conn_free_ended(e);
}

int
conn_say(struct conn *c, const void *p, size_t n)
{
    /* a fresh socket takes this; one that does not belongs to a client that reads nothing */
    return send(c->client.fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n ? 0 : -1;
}

/* --- what the client is told ------------------------------------------------------------------------------------ */

void
conn_part(int fd, bool part)
{
    const struct linger linger = { .l_onoff = part, .l_linger = 0 };

    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

void
conn_linger(struct conn *c)
{
    conn_part(c->client.fd, false);
    c->state = CONN_LINGER;
    c->http = false;
    if (c->h2_waits)
        c->e->n_waiting--;
    c->h2_waits = false;
    loop_drop(&c->e->loop, &c->server);
    exchange_free(&c->x);
    conn_h2_free(c);
    tls_close(c);
    buf_free(&c->in);
    conn_patience(c, LINGER_MS);
    if (c->client_eof || shutdown(c->client.fd, SHUT_WR) < 0 || loop_watch(&c->e->loop, &c->client, EPOLLIN) < 0)
        conn_end(c);
}

static int
say_http(struct conn *c, const struct answer *answer)
{
    cleanup_buf struct buf out = BUF_INIT(ANSWER_MAX);

    return answer_write(&out, answer, false, false) < 0 ? -1 : conn_say(c, out.p, out.n);
}

static void
say_failure(struct conn *c, unsigned status, const char *phrase, enum socks5_code code, const char *reason,
            const char *detail, struct str rule)
{
    /* fatal, access_denied (RFC 8446 §6.2) */
    static const uint8_t alert[] = { 21, 3, 1, 0, 2, 2, 49 };
    const struct answer answer = { .status = status, .phrase = phrase, .reason = reason, .detail = detail,
                                   .rule = rule, .host = { c->host.name, c->host.n }, .port = c->port,
                                   .srt = c->e->rules->srt && status == 403 };
    uint8_t reply[SOCKS5_REPLY_MAX];
    int r = 0;

    if (c->http || c->tls) {
        (c->http ? http_failed : tls_failed)(c, &answer);
        return;
    }
    switch (c->speech) {
    case SPEECH_NONE: break;
    case SPEECH_HTTP:
    case SPEECH_CONNECT: r = say_http(c, &answer); break;
    case SPEECH_SOCKS: r = conn_say(c, reply, socks5_reply(code, NULL, 0, reply)); break;
    case SPEECH_TLS: r = conn_say(c, alert, sizeof(alert)); break;
    }
    if (r < 0)
        conn_end(c);
    else
        conn_linger(c);
}

void
conn_refuse(struct conn *c, const char *reason, const char *detail, struct str rule)
{
    say_failure(c, 403, "Forbidden", SOCKS5_NOT_ALLOWED, reason, detail, rule);
}

void
conn_unreachable(struct conn *c, int saved_errno, const char *why)
{
    bool slow = saved_errno == ETIMEDOUT;

    say_failure(c, slow ? 504 : 502, slow ? "Gateway Timeout" : "Bad Gateway",
                saved_errno != 0 ? socks5_code_of(saved_errno) : SOCKS5_HOST_UNREACHABLE, "unreachable", why,
                (struct str){ "", 0 });
}

/* --- the far end is there --------------------------------------------------------------------------------------- */

static void
dialled(struct conn *c)
{
    if (c->parent != NULL && (!c->http || c->tls))
        parent_connect(c);
    else
        conn_established(c);
}

void
conn_established(struct conn *c)
{
    static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    uint8_t reply[SOCKS5_REPLY_MAX];
    bool tunnel = c->speech == SPEECH_CONNECT || c->speech == SPEECH_SOCKS || c->came == CAPTURE_PORT;

    if (c->http || c->tls) {
        (c->tls ? tls_dialled : http_dialled)(c);
        return;
    }
    if ((c->speech == SPEECH_CONNECT && conn_say(c, established, sizeof(established) - 1) < 0) ||
        (c->speech == SPEECH_SOCKS && conn_say(c, reply, socks5_reply(SOCKS5_SUCCEEDED, NULL, 0, reply)) < 0)) {
        conn_end(c);
        return;
    }
    conn_patience(c, IDLE_MS);
    if (!tunnel) {
        conn_relay(c);
        return;
    }
    c->state = CONN_INNER;
    c->speech = SPEECH_NONE;
    c->seen = 0;
    /* on ports of their own the server may speak first, and ends the watch for a host's name by that */
    if (loop_watch(&c->e->loop, &c->server, c->port == 80 || c->port == 443 ? 0 : EPOLLIN) < 0)
        conn_end(c);
    else
        conn_inner(c);
}

/* --- passing bytes ----------------------------------------------------------------------------------------------- */

void
conn_up_broken(struct conn *c)
{
    c->up_broken = true;
    c->up.done = true;
    buf_reset(&c->in);
}

/* What was read here, as far as it may pass. 1: all of that is out; 0: the server takes no more now. */
static int
flush_in(struct conn *c)
{
    while (c->in.n > 0 && (c->look == LOOK_NONE || c->may > 0)) {
        size_t some = c->look == LOOK_NONE ? c->in.n : c->may;
        ssize_t n = send(c->server.fd, c->in.p, some, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        if (n < 0) {
            conn_up_broken(c);
        } else {
            buf_consume(&c->in, (size_t)n);
            c->may -= c->may > 0 ? (size_t)n : 0;
        }
    }
    if (c->look == LOOK_NONE)
        buf_free(&c->in);
    return 1;
}

/* What is still looked at. False: the connection is relayed no more. */
static bool
look(struct conn *c, bool up, bool down)
{
    if (up && c->look != LOOK_NONE)
        conn_look_up(c);
    if (down && c->state == CONN_RELAY && c->look == LOOK_ANSWER && conn_look_down(c) < 0)
        conn_end(c);
    return c->state == CONN_RELAY;
}

/* @up, @down: that direction may have something to do. */
static void
relay_step(struct conn *c, bool up, bool down)
{
    uint64_t moved = c->up.moved + c->down.moved;
    uint32_t client = 0, server = 0;
    bool flushed;

    if (!look(c, up, down))
        return;
    flushed = flush_in(c) == 1;
    /* an early answer reaches the client although the server takes no more of what it said */
    if (up && flushed && !c->up_broken && c->look == LOOK_NONE && relay_pump(&c->up, c->client.fd, c->server.fd) < 0)
        conn_up_broken(c);
    if (down && c->look != LOOK_ANSWER && relay_pump(&c->down, c->server.fd, c->client.fd) < 0) {
        conn_end(c);
        return;
    }
    if (c->down.done && c->up.done) {
        conn_part(c->server.fd, c->up_broken);      /* who was reset had not said all of it */
        conn_linger(c);
        return;
    }
    if (c->up.moved + c->down.moved != moved || c->in.n > 0)
        conn_patience(c, IDLE_MS);
    if (flushed && !c->up_broken && (c->look == LOOK_NONE ? relay_wants_input(&c->up) : conn_look_wants(c)))
        client |= EPOLLIN;
    if (relay_wants_output(&c->down))
        client |= EPOLLOUT;
    if (relay_wants_input(&c->down))
        server |= EPOLLIN;
    if (!flushed || (!c->up_broken && relay_wants_output(&c->up)))
        server |= EPOLLOUT;
    if (loop_watch(&c->e->loop, &c->client, client) < 0 || loop_watch(&c->e->loop, &c->server, server) < 0)
        conn_end(c);
}

void
conn_relay(struct conn *c)
{
    c->state = CONN_RELAY;
    c->speech = SPEECH_NONE;
    conn_part(c->client.fd, true);
    conn_part(c->server.fd, true);
    conn_patience(c, IDLE_MS);
    if (c->look == LOOK_NONE)
        conn_look_answer(c);
    relay_step(c, true, true);
}

static void
relay_event(struct conn *c, bool client, uint32_t events)
{
    bool in = events & ~(uint32_t)EPOLLOUT, out = events & ~(uint32_t)EPOLLIN;   /* errors concern both */

    relay_step(c, client ? in : out, client ? out : in);
}

/* --- events ------------------------------------------------------------------------------------------------------ */

ssize_t
conn_read(struct conn *c)
{
    char chunk[READ_CHUNK];
    ssize_t n = recv(c->client.fd, chunk, sizeof(chunk), MSG_DONTWAIT);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (n == 0)
        c->client_eof = true;
    return buf_append(&c->in, chunk, (size_t)n) < 0 ? -1 : n;
}

static void
on_client(struct watch *w, uint32_t events)
{
    struct conn *c = w->owner;
    char away[READ_CHUNK];
    ssize_t n;

    switch (c->state) {
    case CONN_FIRST:
    case CONN_INNER:
        if (conn_read(c) < 0)
            conn_end(c);
        else if (c->state == CONN_FIRST)
            conn_first(c);
        else
            conn_inner(c);
        break;
    case CONN_RELAY: relay_event(c, true, events); break;
    case CONN_EXCHANGE: http_event(c, true, false); break;
    case CONN_H2: conn_h2_event(c, true, false); break;
    case CONN_ASKING: conn_end(c); break;       /* it has given up */
    case CONN_TLS_DOWN: tls_event(c); break;
    case CONN_LINGER:
        n = recv(c->client.fd, away, sizeof(away), MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            conn_end(c);
        break;
    case CONN_RESOLVING:
    case CONN_DIALLING:
    case CONN_LEAF:
    case CONN_TLS_UP:
    case CONN_PARENT:
    case CONN_ENDED:
        if (events & (EPOLLERR | EPOLLHUP))
            conn_end(c);
        break;
    }
}

void
conn_on_server(struct watch *w, uint32_t events)
{
    struct conn *c = w->owner;
    int saved_errno = 0;
    socklen_t n = sizeof(saved_errno);

    if (c->state == CONN_DIALLING) {
        if (getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &saved_errno, &n) < 0 || saved_errno != 0)
            conn_dial_next(c, saved_errno);
        else
            dialled(c);
    } else if (c->state == CONN_PARENT) {
        parent_replied(c);
    } else if (c->state == CONN_INNER) {
        /* The server speaks first: no protocol that names a host does that. A client that has begun is heard out. */
        if (c->in.n == 0)
            conn_opaque(c);
        else
            loop_watch(&c->e->loop, &c->server, 0);
    } else if (c->state == CONN_RELAY) {
        relay_event(c, false, events);
    } else if (c->state == CONN_EXCHANGE) {
        http_event(c, false, true);
    } else if (c->state == CONN_H2) {
        conn_h2_event(c, false, true);
    } else if (c->state == CONN_TLS_UP) {
        tls_event(c);
    }
}

void
conn_tick(struct egress *e)
{
    pool_tick(e);
    for (struct conn *c = e->conns, *next; c != NULL; c = next) {
        next = c->next;
        if (c->state == CONN_RELAY && (c->up.starved || c->down.starved)) {
            relay_step(c, true, true);
            continue;
        }
        if (e->loop.now_ms < c->deadline_ms)
            continue;
        if (c->state == CONN_DIALLING)
            conn_dial_next(c, ETIMEDOUT);
        else if (c->state == CONN_RESOLVING)
            resolver_forget(e->resolver, c), conn_unreachable(c, ETIMEDOUT, "the name was not answered for");
        else if (c->state == CONN_PARENT)
            conn_unreachable(c, ETIMEDOUT, "the parent proxy has not answered");
        else if (c->state == CONN_EXCHANGE)
            http_timeout(c);
        else if (c->state == CONN_H2)
            conn_h2_timeout(c);
        else if (c->state == CONN_LEAF || c->state == CONN_TLS_UP || c->state == CONN_TLS_DOWN)
            tls_timeout(c);
        else
            conn_end(c);
    }
}

/* --- arrival ----------------------------------------------------------------------------------------------------- */

static void
arrive(struct egress *e, enum capture_listener came, int fd)
{
    struct conn *c = calloc(1, sizeof(*c));
    const int on = 1;

    if (c == NULL) {
        close(fd);
        return;
    }
    *c = (struct conn){ .e = e, .came = came, .in = BUF_INIT(CONN_FIRST_MAX), .up = RELAY_INIT, .down = RELAY_INIT,
                        .client = { .fd = fd, .ready = on_client, .owner = c }, .server = WATCH_INIT,
                        .next = e->conns };
    if (e->conns != NULL)
        e->conns->prev = c;
    e->conns = c;
    e->n_conns++;
    conn_share_buffers(e);
    conn_patience(c, CONN_FIRST_MS);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    conn_limit_buffers(e, fd);
    if (!sockaddr_local(fd, &c->meant, NULL) || loop_watch(&e->loop, &c->client, EPOLLIN) < 0) {
        conn_end(c);
        return;
    }
    c->held = fake_hold(e->fakes, &c->meant, &c->host);
    c->port = came == CAPTURE_TLS ? 443 : 80;
    c->speech = came == CAPTURE_TLS ? SPEECH_TLS : came == CAPTURE_HTTP ? SPEECH_HTTP : SPEECH_NONE;
    if (came == CAPTURE_PORT)
        conn_port_arrived(c);
}

void
conn_on_listener(struct watch *w, uint32_t events)
{
    struct egress *e = w->owner;
    size_t at = (size_t)(w - e->listeners);
    enum capture_listener came = at < CAPTURE_PORT ? (enum capture_listener)at : CAPTURE_PORT;

    (void)events;
    for (int i = 0; i < 64; i++) {
        int fd = e->n_conns < e->conns_max ? accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
        if (fd < 0 && (e->n_conns >= e->conns_max || errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
                       errno == ENOBUFS)) {
            /* what waits in the queue would wake us for nothing: it waits until there is room */
            e->full_at = e->n_conns;
            e->full_ms = e->loop.now_ms;
            loop_watch(&e->loop, w, 0);
        }
        if (fd < 0)
            return;
        arrive(e, came, fd);
    }
}

void
conn_make_room(struct egress *e)
{
    /* some have ended, or (for want of something else than room) a while has passed */
    if (e->full_ms == 0 || (e->n_conns + e->full_at / 16 >= e->full_at && e->loop.now_ms - e->full_ms < 1000))
        return;
    e->full_ms = 0;
    for (size_t i = 0; i < CAPTURE_LISTENERS; i++)
        if (e->listeners[i].fd >= 0)
            loop_watch(&e->loop, &e->listeners[i], EPOLLIN);
}
