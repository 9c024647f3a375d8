/* egress/conn_parent.c: through the parent proxy: CONNECT, and its answer (RFC 9110 §9.3.6; see parent.h)
 *
 * Of the answer not a byte more is read than its head: what follows is the far end's.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "egress/conn.h"

#define REPLY_MAX 16384
#define REPLY_MS  30000     /* it resolves and dials in that time */

static const struct str no_rule = { "", 0 };

bool
parent_refuses(struct conn *c)
{
    const struct decide_request request = { .via = DECIDE_TCP, .host = { c->host.name, c->host.n }, .port = c->port };
    const struct decide_verdict verdict = { .kind = DECIDE_DENY, .reason = "parent-proxy",
                                            .detail = "it is the proxy that everything goes through" };

    if (!parents_named(&c->e->parents, &c->host, c->port))
        return false;
    log_decision(c->e, &request, &verdict);
    conn_refuse(c, verdict.reason, verdict.detail, no_rule);
    return true;
}

void
parent_judge(struct conn *c, struct decide_verdict *verdict)
{
    for (size_t i = 0; i < c->n_addresses && verdict->kind == DECIDE_ALLOW; i++)
        if (parents_at(&c->e->parents, &c->addresses[i], c->port)) {
            verdict->kind = DECIDE_DENY;
            verdict->reason = "parent-proxy";
            verdict->detail = "its address is that of the proxy that everything goes through";
        }
}

static void
on_parent_resolved(void *ctx, const struct ip *addresses, size_t n, const char *why)
{
    struct conn *c = ctx;
    size_t keep = n < PARENT_ADDRESSES_MAX ? n : PARENT_ADDRESSES_MAX;

    c->state = CONN_DIALLING;
    if (n == 0) {
        conn_unreachable(c, 0, why);
        return;
    }
    memcpy(c->addresses, addresses, n * sizeof(*addresses));
    c->n_addresses = n;
    memcpy(c->parent->known, addresses, keep * sizeof(*addresses));
    c->parent->n_known = keep;
    conn_dial(c);
}

/* Its address is the user's word: nothing is judged. */
void
parent_find(struct conn *c)
{
    const struct host *host = &c->parent->host;

    if (host->is_ip) {
        on_parent_resolved(c, &host->ip, 1, "");
        return;
    }
    c->state = CONN_RESOLVING;
    conn_patience(c, REPLY_MS);
    resolver_ask(c->e->resolver, host->name, on_parent_resolved, c);
}

void
parent_connect(struct conn *c)
{
    cleanup_buf struct buf out = BUF_INIT(4096);
    struct http1_add add = { STR_LIT("Proxy-Authorization"),
                             { c->parent->authorization, c->parent->authorization_n } };
    const struct http1_request_out r = {
        .out = { .add = &add, .n_add = c->parent->authorization_n > 0 ? 1 : 0, .framing = HTTP1_BODY_NONE },
        .method = STR_LIT("CONNECT"), .form = HTTP1_AUTHORITY, .scheme = HTTP1_SCHEME_HTTP,
        .host = { c->host.name, c->host.n }, .port = c->port,
    };

    c->state = CONN_PARENT;
    conn_patience(c, REPLY_MS);
    buf_free(&c->reply);
    c->reply = (struct buf)BUF_INIT(REPLY_MAX);
    /* a fresh socket takes this */
    if (http1_write_request(&out, &r) < 0 ||
        send(c->server.fd, out.p, out.n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)out.n ||
        loop_watch(&c->e->loop, &c->server, EPOLLIN) < 0)
        conn_unreachable(c, 0, "the parent proxy takes no request");
}

/* The next bytes of its head, and none behind it. HTTP1_OK: @head is all of it. */
static enum http1_result
read_reply(struct conn *c, struct http1_head *head)
{
    uint8_t peeked[4096];
    ssize_t n = recv(c->server.fd, peeked, sizeof(peeked), MSG_PEEK | MSG_DONTWAIT);
    size_t before = c->reply.n, take;
    enum http1_result result;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return HTTP1_MORE;
    if (n <= 0 || buf_append(&c->reply, peeked, (size_t)n) < 0)
        return HTTP1_BODY_CUT;
    result = http1_parse_response_max(c->reply.p, c->reply.n, REPLY_MAX, STR_LIT("CONNECT"), head);
    take = result == HTTP1_OK && head->length > before ? head->length - before : (size_t)n;
    /* they are there: this takes exactly what was looked at */
    return recv(c->server.fd, peeked, take, MSG_DONTWAIT) == (ssize_t)take ? result : HTTP1_BODY_CUT;
}

void
parent_replied(struct conn *c)
{
    struct http1_head head;
    enum http1_result result = read_reply(c, &head);
    char why[64] = "the parent proxy gave no answer";

    if (result == HTTP1_MORE)
        return;
    if (result == HTTP1_OK && head.tunnel) {
        buf_free(&c->reply);
        conn_established(c);
        return;
    }
    if (result == HTTP1_OK)
        snprintf(why, sizeof(why), "the parent proxy answered %u", head.status);
    buf_free(&c->reply);
    conn_unreachable(c, 0, why);
}
