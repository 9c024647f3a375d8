/* post/post.c: one POST, from its server's name to its answer (post.h) */
#include "post/post.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "wall/sockaddr.h"

static void
end(struct post *p, const struct post_answer *a, const char *why)
{
    tls_end_free(p->end);
    p->end = NULL;
    if (p->state == POST_RESOLVING)
        resolver_forget(p->resolver, p);
    loop_drop(p->loop, &p->server);
    buf_reset(&p->out);
    p->state = POST_IDLE;
    p->done(p, a, why);
}

static int
watch_for(struct post *p, bool in, bool out)
{
    uint32_t events = (in ? (uint32_t)EPOLLIN : 0) | (out ? (uint32_t)EPOLLOUT : 0);

    return loop_watch(p->loop, &p->server, p->end != NULL ? tls_events(p->end, in, out) : events);
}

static void
flow(struct post *p)
{
    while (p->out_at < p->out.n) {
        size_t left = p->out.n - p->out_at;
        ssize_t n = p->end != NULL ? tls_send(p->end, p->out.p + p->out_at, left)
                                   : send(p->server.fd, p->out.p + p->out_at, left, MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            if (watch_for(p, false, true) < 0)
                end(p, NULL, strerror(errno));
            return;
        }
        if (n <= 0)
            return end(p, NULL, strerror(errno));
        p->out_at += (size_t)n;
    }
    p->sent = true;
    p->state = POST_READING;
    if (watch_for(p, true, false) < 0)
        end(p, NULL, strerror(errno));
}

/* 1 with @a, 0 there is more to come, -1 it speaks another language. */
static int
look(const struct post *p, struct post_answer *a)
{
    if (p->whole)
        return post_answer(p->in, p->in_n, a);
    *a = (struct post_answer){ .status = post_status(p->in, p->in_n) };
    return a->status > 0 ? 1 : a->status;
}

static void
hear(struct post *p)
{
    const size_t most = p->whole ? sizeof(p->in) : 256;
    struct post_answer a;

    for (;;) {
        ssize_t n = p->end != NULL ? tls_recv(p->end, p->in + p->in_n, most - p->in_n)
                                   : recv(p->server.fd, p->in + p->in_n, most - p->in_n, 0);
        int r;
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            if (watch_for(p, true, false) < 0)
                end(p, NULL, strerror(errno));
            return;
        }
        if (n <= 0)
            return end(p, NULL, n < 0 ? strerror(errno) : "the server hung up");
        p->in_n += (size_t)n;
        r = look(p, &a);
        if (r > 0)
            return end(p, &a, NULL);
        if (r < 0 || p->in_n == most)
            return end(p, NULL, "the server speaks no HTTP/1");
    }
}

static void
shake(struct post *p)
{
    char why[256];

    switch (tls_handshake(p->end)) {
    case TLS_DONE:
        p->state = POST_SENDING;
        flow(p);
        break;
    case TLS_AGAIN:
        if (watch_for(p, true, true) < 0)
            end(p, NULL, strerror(errno));
        break;
    case TLS_FAILED:
        snprintf(why, sizeof(why), "%s", tls_detail(p->end));
        end(p, NULL, why);
    }
}

static void
connected(struct post *p)
{
    if (p->tls == NULL) {
        p->state = POST_SENDING;
        flow(p);
        return;
    }
    p->end = tls_client_new(p->tls, p->server.fd, &p->url->host, p->url->port, TLS_ALPN_HTTP11);
    if (p->end == NULL)
        return end(p, NULL, "out of memory");
    p->state = POST_TLS;
    shake(p);
}

static int
dial(struct post *p, const struct ip *ip)
{
    union address to;
    socklen_t n = sockaddr_of(ip, p->url->port, &to);

    p->server.fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return p->server.fd < 0 || (connect(p->server.fd, &to.any, n) < 0 && errno != EINPROGRESS) ||
           loop_watch(p->loop, &p->server, EPOLLOUT) < 0 ? -1 : 0;
}

static void
dial_next(struct post *p, int saved_errno)
{
    while (p->next < p->n_addresses) {
        loop_drop(p->loop, &p->server);
        p->state = POST_CONNECTING;
        if (dial(p, &p->addresses[p->next++]) == 0)
            return;
        saved_errno = errno;
    }
    end(p, NULL, strerror(saved_errno));
}

static void
on_server(struct watch *w, uint32_t events)
{
    struct post *p = w->owner;
    int error = 0;
    socklen_t size = sizeof(error);

    (void)events;
    switch (p->state) {
    case POST_CONNECTING:
        if (getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
            error = errno;
        if (error != 0)
            dial_next(p, error);
        else
            connected(p);
        break;
    case POST_TLS: shake(p); break;
    case POST_SENDING: flow(p); break;
    case POST_READING: hear(p); break;
    case POST_IDLE:
    case POST_RESOLVING: break;
    }
}

static void
on_resolved(void *ctx, const struct ip *addresses, size_t n, const char *why)
{
    struct post *p = ctx;

    p->state = POST_CONNECTING;     /* nothing is asked any more */
    if (n == 0)
        return end(p, NULL, why);
    memcpy(p->addresses, addresses, n * sizeof(*addresses));
    p->n_addresses = n;
    dial_next(p, EHOSTUNREACH);
}

int
post_open(struct post *p, const char *ca, struct err *err)
{
    if (p->url->https) {
        p->tls = tls_ctx_new(err);
        if (p->tls == NULL || tls_trust_system(p->tls, err) < 0 ||
            (ca[0] != '\0' && tls_trust_file(p->tls, ca, err) < 0))
            return -1;
    }
    if (p->loop->epoll < 0 && loop_init(p->loop, err) < 0)
        return -1;
    p->resolver = resolver_new(p->loop, NULL, err);
    return p->resolver == NULL ? -1 : 0;
}

void
post_head(struct post *p, const char *type, size_t length)
{
    const struct hook_url *url = p->url;

    buf_printf(&p->out, "POST %s%.*s HTTP/1.1\r\nHost: %.*s\r\nUser-Agent: cloche/" CLOCHE_VERSION "\r\n"
               "Content-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n", url->path.n == 0 ? "/" : "",
               (int)url->path.n, url->path.p, (int)url->authority.n, url->authority.p, type, length);
}

void
post_begin(struct post *p)
{
    const struct host *host = &p->url->host;

    p->deadline_ms = p->loop->now_ms + p->timeout_ms;
    p->out_at = p->in_n = p->next = 0;
    p->sent = false;
    p->server = (struct watch){ .fd = -1, .ready = on_server, .owner = p };
    if (!buf_ok(&p->out))
        return end(p, NULL, "out of memory");
    if (host->is_ip)
        return on_resolved(p, &host->ip, 1, NULL);
    p->state = POST_RESOLVING;
    resolver_ask(p->resolver, host->name, on_resolved, p);
}

bool
post_late(struct post *p)
{
    if (p->state == POST_IDLE || p->loop->now_ms < p->deadline_ms)
        return false;
    end(p, NULL, "the server took too long");
    return true;
}
