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
#include "egress/stages.h"

#define REPLY_MAX 16384
#define REPLY_MS  30000     /* it resolves and dials in that time */

void
parent_begin(struct conn *c)
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

static void
replied(struct conn *c, uint32_t events)
{
    struct http1_head head;
    enum http1_result result = read_reply(c, &head);
    char why[64] = "the parent proxy gave no answer";

    (void)events;
    if (result == HTTP1_MORE)
        return;
    /* a 101 leads somewhere too, but not where was asked for */
    if (result == HTTP1_OK && head.tunnel && head.status / 100 == 2) {
        buf_free(&c->reply);
        way_open(c);
        return;
    }
    if (result == HTTP1_OK)
        snprintf(why, sizeof(why), "the parent proxy answered %u", head.status);
    buf_free(&c->reply);
    conn_unreachable(c, 0, why);
}

static void
unanswered(struct conn *c)
{
    conn_unreachable(c, ETIMEDOUT, "the parent proxy has not answered");
}

static void
conn_parent_free(struct conn *c)
{
    buf_free(&c->reply);
}

const struct conn_stage stage_parent = { .server = replied, .late = unanswered, .leads_out = stage_leads_out,
                                         .free = conn_parent_free };
