/* webhook/send.c: the queue, and one try after the other (webhook.h) */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "wall/sockaddr.h"
#include "webhook/webhook.h"

#define FIRST_WAIT_MS 1000

/* --- the queue ---------------------------------------------------------------------------------------------------- */

static void
say(const struct webhook_event *e, const char *what, const char *why)
{
    log_say(LEVEL_WARN, "%s of %s %s: %s", e->name, e->id, what, why);
}

static void
drop(struct webhook *h, size_t i)
{
    buf_free(&h->queue[i].body);
    h->n--;
    memmove(&h->queue[i], &h->queue[i + 1], (h->n - i) * sizeof(h->queue[0]));
}

/* The oldest event of whoever has most of them, so that who asks much pushes nobody else's out. Not the first one,
 * which may be under way. */
static size_t
one_too_many(const struct webhook *h)
{
    size_t found = 1, most = 0;

    for (size_t i = 1; i < h->n; i++) {
        size_t n = 0;
        for (size_t k = i; k < h->n; k++)
            n += strcmp(h->queue[k].caller, h->queue[i].caller) == 0;
        if (n > most) {
            most = n;
            found = i;
        }
    }
    return found;
}

void
webhook_put(struct webhook *h, const struct edge_approval *a, const char *name)
{
    struct webhook_event e = { .name = name, .body = BUF_INIT(WEBHOOK_BODY_MAX) };

    memcpy(e.id, a->id, sizeof(e.id));
    snprintf(e.caller, sizeof(e.caller), "%s", strncmp(a->caller, "key:", 4) == 0 ? "key:" : a->caller);
    e.until_ms = a->state == APPROVAL_PENDING ? a->until_ms : 0;
    if (webhook_body(a, name, h->s->page, &e.body) < 0) {
        say(&e, "is not told", "it does not fit");
        buf_free(&e.body);
        return;
    }
    if (h->n == WEBHOOK_QUEUE) {
        size_t i = one_too_many(h);
        say(&h->queue[i], "is not told", "too many wait");
        drop(h, i);
    }
    h->queue[h->n++] = e;
}

/* --- one try ------------------------------------------------------------------------------------------------------ */

static void
hang_up(struct webhook *h)
{
    tls_end_free(h->end);
    h->end = NULL;
    if (h->state == HOOK_RESOLVING)
        resolver_forget(h->resolver, h);
    loop_drop(&h->loop, &h->server);
    buf_reset(&h->out);
    h->state = HOOK_IDLE;
}

/* @again: it may go better later. */
static void
fail(struct webhook *h, bool again, const char *why)
{
    struct webhook_event *e = &h->queue[0];

    hang_up(h);
    if (again && e->tries < WEBHOOK_TRIES) {
        e->due_ms = h->loop.now_ms + ((uint64_t)FIRST_WAIT_MS << 2 * (e->tries - 1));
        return;
    }
    say(e, "was not told", why);
    drop(h, 0);
}

static void
answered(struct webhook *h, int status)
{
    char why[64];

    snprintf(why, sizeof(why), "the server answered %d", status);
    if (status < 200 || status > 299) {
        fail(h, status == 408 || status == 425 || status == 429 || status >= 500, why);
        return;
    }
    hang_up(h);
    drop(h, 0);
}

/* The signature is of now: a server may refuse what is old. */
static bool
request(struct webhook *h)
{
    const struct webhook_settings *s = h->s;
    const struct webhook_event *e = &h->queue[0];
    uint64_t seconds = clock_wall_ms() / 1000;
    char signature[WEBHOOK_SIGNATURE + 1];

    buf_printf(&h->out, "POST %s%.*s HTTP/1.1\r\nHost: %.*s\r\nUser-Agent: cloche/" CLOCHE_VERSION "\r\n"
               "Content-Type: application/json\r\nContent-Length: %zu\r\nConnection: close\r\nCloche-Event: %s\r\n"
               "Cloche-Delivery: %s.%s\r\n", s->url.path.n == 0 ? "/" : "", (int)s->url.path.n, s->url.path.p,
               (int)s->url.authority.n, s->url.authority.p, e->body.n, e->name, e->id, strchr(e->name, '.') + 1);
    if (s->n_secret > 0) {
        if (!webhook_sign(s->secret, s->n_secret, seconds, e->body.p, e->body.n, signature))
            return false;
        buf_printf(&h->out, "Cloche-Signature: %s\r\n", signature);
    }
    buf_puts(&h->out, "\r\n");
    return buf_append(&h->out, e->body.p, e->body.n) == 0;
}

static int
watch_for(struct webhook *h, bool in, bool out)
{
    uint32_t events = (in ? (uint32_t)EPOLLIN : 0) | (out ? (uint32_t)EPOLLOUT : 0);

    return loop_watch(&h->loop, &h->server, h->end != NULL ? tls_events(h->end, in, out) : events);
}

static void
flow(struct webhook *h)
{
    while (h->out_at < h->out.n) {
        size_t left = h->out.n - h->out_at;
        ssize_t n = h->end != NULL ? tls_send(h->end, h->out.p + h->out_at, left)
                                   : send(h->server.fd, h->out.p + h->out_at, left, MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            if (watch_for(h, false, true) < 0)
                fail(h, true, strerror(errno));
            return;
        }
        if (n <= 0)
            return fail(h, true, strerror(errno));
        h->out_at += (size_t)n;
    }
    h->state = HOOK_READING;
    if (watch_for(h, true, false) < 0)
        fail(h, true, strerror(errno));
}

static void
hear(struct webhook *h)
{
    for (;;) {
        size_t room = sizeof(h->in) - h->in_n;
        ssize_t n = h->end != NULL ? tls_recv(h->end, h->in + h->in_n, room)
                                   : recv(h->server.fd, h->in + h->in_n, room, 0);
        int status;
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            if (watch_for(h, true, false) < 0)
                fail(h, true, strerror(errno));
            return;
        }
        if (n <= 0)
            return fail(h, true, n < 0 ? strerror(errno) : "the server hung up");
        h->in_n += (size_t)n;
        status = webhook_status(h->in, h->in_n);
        if (status > 0)
            return answered(h, status);
        if (status < 0 || h->in_n == sizeof(h->in))
            return fail(h, true, "the server speaks no HTTP/1");
    }
}

static void
shake(struct webhook *h)
{
    char why[256];

    switch (tls_handshake(h->end)) {
    case TLS_DONE:
        h->state = HOOK_SENDING;
        flow(h);
        break;
    case TLS_AGAIN:
        if (watch_for(h, true, true) < 0)
            fail(h, true, strerror(errno));
        break;
    case TLS_FAILED:
        snprintf(why, sizeof(why), "%s", tls_detail(h->end));
        fail(h, true, why);
    }
}

static void
connected(struct webhook *h)
{
    if (h->tls == NULL) {
        h->state = HOOK_SENDING;
        flow(h);
        return;
    }
    h->end = tls_client_new(h->tls, h->server.fd, &h->s->url.host, h->s->url.port, TLS_ALPN_HTTP11);
    if (h->end == NULL)
        return fail(h, true, "out of memory");
    h->state = HOOK_TLS;
    shake(h);
}

static int
dial(struct webhook *h, const struct ip *ip)
{
    union address to;
    socklen_t n = sockaddr_of(ip, h->s->url.port, &to);

    h->server.fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return h->server.fd < 0 || (connect(h->server.fd, &to.any, n) < 0 && errno != EINPROGRESS) ||
           loop_watch(&h->loop, &h->server, EPOLLOUT) < 0 ? -1 : 0;
}

static void
dial_next(struct webhook *h, int saved_errno)
{
    while (h->next < h->n_addresses) {
        loop_drop(&h->loop, &h->server);
        h->state = HOOK_CONNECTING;
        if (dial(h, &h->addresses[h->next++]) == 0)
            return;
        saved_errno = errno;
    }
    fail(h, true, strerror(saved_errno));
}

static void
on_server(struct watch *w, uint32_t events)
{
    struct webhook *h = w->owner;
    int error = 0;
    socklen_t size = sizeof(error);

    (void)events;
    switch (h->state) {
    case HOOK_CONNECTING:
        if (getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
            error = errno;
        if (error != 0)
            dial_next(h, error);
        else
            connected(h);
        break;
    case HOOK_TLS: shake(h); break;
    case HOOK_SENDING: flow(h); break;
    case HOOK_READING: hear(h); break;
    case HOOK_IDLE:
    case HOOK_RESOLVING: break;
    }
}

static void
on_resolved(void *ctx, const struct ip *addresses, size_t n, const char *why)
{
    struct webhook *h = ctx;

    h->state = HOOK_CONNECTING;     /* nothing is asked any more */
    if (n == 0)
        return fail(h, true, why);
    memcpy(h->addresses, addresses, n * sizeof(*addresses));
    h->n_addresses = n;
    dial_next(h, EHOSTUNREACH);
}

static void
send_begin(struct webhook *h)
{
    struct webhook_event *e = &h->queue[0];
    const struct host *host = &h->s->url.host;

    if (e->until_ms > 0 && clock_wall_ms() >= e->until_ms) {
        e->tries = WEBHOOK_TRIES;
        return fail(h, false, "its time is over");
    }
    e->tries++;
    h->deadline_ms = h->loop.now_ms + h->s->timeout_ms;
    h->out_at = h->in_n = h->next = 0;
    h->server = (struct watch){ .fd = -1, .ready = on_server, .owner = h };
    if (!request(h))
        return fail(h, true, "out of memory");
    if (host->is_ip)
        return on_resolved(h, &host->ip, 1, NULL);
    h->state = HOOK_RESOLVING;
    resolver_ask(h->resolver, host->name, on_resolved, h);
}

/* What is under way is late, or what is next is due; not what an answer of the same round has changed. */
static void
on_time(struct timer *t)
{
    struct webhook *h = t->owner;

    if (h->state != HOOK_IDLE && h->loop.now_ms >= h->deadline_ms)
        fail(h, true, "the server took too long");
    else if (h->state == HOOK_IDLE && h->n > 0 && h->loop.now_ms >= h->queue[0].due_ms)
        send_begin(h);
}

void
webhook_turn(struct webhook *h)
{
    uint64_t at = h->state != HOOK_IDLE ? h->deadline_ms : h->n == 0 ? 0
                  : h->queue[0].due_ms > h->loop.now_ms ? h->queue[0].due_ms : h->loop.now_ms;

    h->time.due = on_time;
    h->time.owner = h;
    loop_at(&h->loop, &h->time, at);
}
