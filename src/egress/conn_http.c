/* egress/conn_http.c: plain HTTP, one request to a connection
 *
 * The request is written again from its parsed pieces, with Host from the target and `Connection: close`, so that what
 * follows its body reaches nobody: a second request has to come on a connection of its own and is decided anew.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "egress/conn.h"

#define BODY_MAX ((uint64_t)1 << 40)
#define ROUNDS   16

static const struct str no_rule = { "", 0 };

static void
deny(struct conn *c, const struct decide_request *request, const char *reason, const char *detail)
{
    const struct decide_verdict verdict = { .kind = DECIDE_DENY, .reason = reason, .detail = detail };

    log_decision(c->e, request, &verdict);
    conn_refuse(c, reason, detail, no_rule);
}

static void
bad_request(struct conn *c, enum http1_result result)
{
    const struct decide_request request = { .via = DECIDE_HTTP, .host = { c->host.name, c->host.n }, .port = c->port };

    deny(c, &request, http1_word(result), "the request is not plain HTTP/1.1");
}

/* Put the rewritten head in front of the body's bytes that are here. */
static int
rewrite(struct conn *c, const struct http1_head *head)
{
    cleanup_buf struct buf out = BUF_INIT(2 * CONN_FIRST_MAX);
    static const struct str drop[] = { { "Proxy-Connection", 16 }, { "Proxy-Authorization", 19 } };
    const struct http1_request_out r = {
        .out = { .from = head, .drop = drop, .n_drop = 2, .framing = head->framing, .body_length = head->body_length,
                 .connection = HTTP1_CONN_CLOSE },
        .method = head->method,
        .form = head->form == HTTP1_ASTERISK ? HTTP1_ASTERISK : HTTP1_ORIGIN,
        .scheme = HTTP1_SCHEME_HTTP,
        .host = { c->host.name, c->host.n },
        .port = c->port,
        .path = head->path.n > 0 ? head->path : (struct str){ "/", 1 },
        .query = head->query,
    };
    size_t rest = c->in.n - head->length;

    if (http1_body_begin(&c->body, head, BODY_MAX) != HTTP1_OK || http1_write_request(&out, &r) < 0)
        return -1;
    c->may_go = out.n;
    if (buf_append(&out, c->in.p + head->length, rest) < 0)
        return -1;
    buf_free(&c->in);
    c->in = out;
    out = (struct buf)BUF_INIT(0);
    c->plain_http = true;
    c->body_done = false;
    return 0;
}

static void
connect_request(struct conn *c, const struct http1_head *head)
{
    struct decide_request request = { .via = DECIDE_CONNECT, .host = head->authority.host,
                                      .port = head->authority.port };
    struct decide_verdict verdict;
    struct ip ip;
    bool literal;

    c->speech = SPEECH_CONNECT;
    c->port = head->authority.port;
    if (!conn_decide(c, &request, &verdict, http_first))
        return;
    c->host = verdict.host;
    literal = verdict.host.is_ip;
    ip = verdict.host.ip;
    buf_consume(&c->in, head->length);
    if (verdict.kind != DECIDE_ALLOW)
        conn_refuse(c, verdict.reason, verdict.detail, verdict.rule);
    else if (verdict.inspect)
        conn_refuse(c, "cannot-inspect", "a rule asks for more than can be seen in a tunnel", verdict.rule);
    else
        conn_go(c, literal ? &ip : NULL);
}

static void
plain_request(struct conn *c, const struct http1_head *head, bool dialled)
{
    struct decide_request request = { .via = DECIDE_HTTP, .host = head->authority.host, .port = head->authority.port,
                                      .method = head->method, .path = head->path };
    struct decide_verdict verdict;
    struct host meant = c->host;

    if (request.port == 0)
        request.port = 80;
    if (!conn_decide(c, &request, &verdict, http_first))
        return;
    c->host = verdict.host;
    if (!dialled)
        c->port = request.port;
    if (verdict.kind != DECIDE_ALLOW) {
        conn_refuse(c, verdict.reason, verdict.detail, verdict.rule);
    } else if ((dialled || c->came == CAPTURE_HTTP) &&
               (meant.n != c->host.n || memcmp(meant.name, c->host.name, meant.n) != 0 || request.port != c->port)) {
        deny(c, &request, "http-name-mismatch", "the request names another host than the connection was made to");
    } else if (rewrite(c, head) < 0) {
        deny(c, &request, "http-rewrite", "the request cannot be passed on");
    } else if (dialled) {
        conn_relay(c);
    } else {
        conn_go(c, verdict.host.is_ip ? &verdict.host.ip : NULL);
    }
}

void
http_first(struct conn *c)
{
    struct http1_head head;
    enum http1_result result;
    bool transparent = c->came == CAPTURE_HTTP, dialled = c->state == CONN_INNER;

    if (!http1_worth_parsing(c->in.p, c->in.n, c->seen, HTTP1_HEAD_MAX) && !c->client_eof)
        return;
    c->seen = c->in.n;
    result = http1_parse_request(c->in.p, c->in.n, &head);
    if (result == HTTP1_MORE) {
        if (c->client_eof)
            conn_end(c);
        return;
    }
    if (transparent && !c->held) {
        c->host = (struct host){ .is_ip = true, .ip = c->meant };
        c->host.n = ip_format(&c->meant, c->host.name);
    }
    c->is_head = result == HTTP1_OK && str_eq_c(head.method, "HEAD");
    if (result != HTTP1_OK)
        bad_request(c, result);
    else if (head.form == HTTP1_AUTHORITY && !transparent && !dialled)
        connect_request(c, &head);
    else if (head.form == HTTP1_AUTHORITY || (head.form == HTTP1_ABSOLUTE && head.scheme != HTTP1_SCHEME_HTTP) ||
             (!transparent && !dialled && head.form != HTTP1_ABSOLUTE) || head.authority.kind == HTTP1_HOST_NONE)
        bad_request(c, HTTP1_TARGET_FORM);
    else
        plain_request(c, &head, dialled);
}

int
http_pass_body(struct conn *c)
{
    /* what may go out: the head, and as much after it as is body */
    /* a fast pair of peers gives way to the others after so many rounds */
    for (int round = 0; round < ROUNDS; round++) {
        struct str data;
        size_t used = 0;
        ssize_t n = 0;

        while (!c->body_done) {
            enum http1_result result =
                http1_body_next(&c->body, c->in.p + c->may_go, c->in.n - c->may_go, &data, &used);
            c->may_go += used;
            c->body_done = result == HTTP1_OK;
            if (result != HTTP1_OK && result != HTTP1_MORE)
                return -1;
            if (c->may_go == c->in.n)
                break;
        }
        if (c->may_go > 0) {
            n = send(c->server.fd, c->in.p, c->may_go, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
            if (n < 0) {
                conn_up_broken(c);
                continue;
            }
            buf_consume(&c->in, (size_t)n);
            c->may_go -= (size_t)n;
            c->up.moved += (uint64_t)n;
            continue;
        }
        if (c->body_done) {
            /* a second request behind it is nobody's; it is read away, since bytes that nobody took would turn our end
             * into a reset, which could cost the client the answer */
            buf_reset(&c->in);
            if (!c->client_eof)
                n = conn_read(c);
            buf_reset(&c->in);
            return n < 0 ? -1 : 1;
        }
        n = conn_read(c);
        if (n < 0 || c->client_eof)
            return -1;
        if (n == 0)
            return 1;
    }
    return c->in.n > 0 ? 0 : 1;
}
