/* wire/http1_write.c: heads written from checked pieces (RFC 9110 §7.6, RFC 9112 §3.2; see http1.h)
 *
 * Nothing is trusted because it was parsed once: every piece is checked again where it is written, so that a credential
 * with a line end in it, or a path that a rule rewrote, cannot become a second message.
 */
#include "wire/http1_priv.h"

#include "match/ip.h"

static void
http1_write_put(struct buf *b, struct str s)
{
    buf_append(b, s.p, s.n);
}

static int
put_field(struct buf *b, struct str name, struct str value)
{
    if (!http1_is_token(name) || !http1_is_value(value))
        return -1;
    http1_write_put(b, name);
    buf_puts(b, ": ");
    http1_write_put(b, value);
    buf_puts(b, "\r\n");
    return 0;
}

/* Fields that the writer makes itself. */
static bool
is_ours(struct str name)
{
    return http1_equal(name, STR_LIT("host")) || http1_equal(name, STR_LIT("content-length")) ||
           http1_equal(name, STR_LIT("transfer-encoding"));
}

static bool
is_dropped(const struct http1_out *out, const struct http1_field *field)
{
    if (field->hop || http1_is_hop(field->name) || is_ours(field->name))
        return true;
    for (size_t i = 0; i < out->n_drop; i++)
        if (http1_equal(field->name, out->drop[i]))
            return true;
    return false;
}

static int
put_added(struct buf *b, const struct http1_add *add)
{
    bool of_proxy = http1_equal(add->name, STR_LIT("proxy-authorization")) ||
                    http1_equal(add->name, STR_LIT("proxy-authenticate"));

    if (is_ours(add->name) || (http1_is_hop(add->name) && !of_proxy))
        return -1;
    return put_field(b, add->name, add->value);
}

static int
put_framing(struct buf *b, const struct http1_out *out)
{
    if (out->framing == HTTP1_BODY_LENGTH)
        buf_printf(b, "Content-Length: %llu\r\n", (unsigned long long)out->body_length);
    else if (out->framing == HTTP1_BODY_CHUNKED)
        buf_puts(b, "Transfer-Encoding: chunked\r\n");
    return 0;
}

static int
put_connection(struct buf *b, const struct http1_out *out)
{
    if (out->upgrade.n > 0) {
        if (out->connection != HTTP1_CONN_DEFAULT)
            return -1;
        buf_puts(b, "Connection: Upgrade\r\n");
        return put_field(b, STR_LIT("Upgrade"), out->upgrade);
    }
    if (out->connection == HTTP1_CONN_CLOSE)
        buf_puts(b, "Connection: close\r\n");
    else if (out->connection == HTTP1_CONN_KEEP_ALIVE)
        buf_puts(b, "Connection: keep-alive\r\n");
    return 0;
}

/* Everything after the start line (and Host). */
static int
put_rest(struct buf *b, const struct http1_out *out)
{
    size_t n = out->from != NULL ? out->from->n_fields : 0;

    for (size_t i = 0; i < n; i++) {
        const struct http1_field *field = &out->from->fields[i];
        if (!is_dropped(out, field) && put_field(b, field->name, field->value) < 0)
            return -1;
    }
    for (size_t i = 0; i < out->n_add; i++)
        if (put_added(b, &out->add[i]) < 0)
            return -1;
    if (put_framing(b, out) < 0 || put_connection(b, out) < 0)
        return -1;
    buf_puts(b, "\r\n");
    return buf_ok(b) ? 0 : -1;
}

static int
put_authority(struct buf *b, const struct http1_request_out *req, bool with_port)
{
    struct http1_authority same;
    struct ip ip;
    bool v6 = ip_parse(req->host, &ip) && ip.family == 6;

    if (req->port == 0)
        return -1;
    if (!v6 && (http1_authority_parse(req->host, false, &same) != HTTP1_OK || same.host.n != req->host.n))
        return -1;
    buf_puts(b, v6 ? "[" : "");
    http1_write_put(b, req->host);
    buf_puts(b, v6 ? "]" : "");
    if (with_port)
        buf_printf(b, ":%u", req->port);
    return 0;
}

static bool
is_default_port(const struct http1_request_out *req)
{
    return (req->scheme == HTTP1_SCHEME_HTTP && req->port == 80) ||
           (req->scheme == HTTP1_SCHEME_HTTPS && req->port == 443);
}

static int
put_path(struct buf *b, const struct http1_request_out *req)
{
    if (!http1_target_ok(req->path, req->query))
        return -1;
    /* an empty path is "/" (RFC 9112 §3.2.1) */
    if (req->path.n == 0)
        buf_puts(b, "/");
    http1_write_put(b, req->path);
    http1_write_put(b, req->query);
    return 0;
}

static int
put_target(struct buf *b, const struct http1_request_out *req)
{
    switch (req->form) {
    case HTTP1_ORIGIN:
        return put_path(b, req);
    case HTTP1_ABSOLUTE:
        if (req->scheme == HTTP1_SCHEME_NONE)
            return -1;
        buf_puts(b, req->scheme == HTTP1_SCHEME_HTTP ? "http://" : "https://");
        return put_authority(b, req, !is_default_port(req)) < 0 ? -1 : put_path(b, req);
    case HTTP1_AUTHORITY:
        return put_authority(b, req, true);
    case HTTP1_ASTERISK:
        buf_puts(b, "*");
        return 0;
    case HTTP1_FORM_NONE:
        break;
    }
    return -1;
}

/* What the parser refuses is not written either. */
static bool
is_request_sane(const struct http1_request_out *req)
{
    bool is_connect = str_eq_c(req->method, "CONNECT");

    if (!http1_is_token(req->method) || req->method.n > HTTP1_METHOD_MAX || str_eq_c(req->method, "PRI"))
        return false;
    if (is_connect != (req->form == HTTP1_AUTHORITY))
        return false;
    if (req->form == HTTP1_ASTERISK && !str_eq_c(req->method, "OPTIONS"))
        return false;
    if (is_connect && (req->out.framing == HTTP1_BODY_CHUNKED || req->out.body_length > 0))
        return false;
    return req->out.framing != HTTP1_BODY_UNTIL_CLOSE && req->path.n + req->query.n < HTTP1_TARGET_MAX;
}

static int
put_request(struct buf *b, const struct http1_request_out *req)
{
    bool is_connect = req->form == HTTP1_AUTHORITY;

    http1_write_put(b, req->method);
    buf_puts(b, " ");
    if (put_target(b, req) < 0)
        return -1;
    buf_puts(b, " HTTP/1.1\r\nHost: ");
    if (put_authority(b, req, is_connect || !is_default_port(req)) < 0)
        return -1;
    buf_puts(b, "\r\n");
    return put_rest(b, &req->out);
}

int
http1_write_request(struct buf *b, const struct http1_request_out *req)
{
    size_t before = b->n;

    if (is_request_sane(req) && put_request(b, req) == 0)
        return 0;
    b->n = before;
    return -1;
}

/* The client must find the end of the body where we mean it. */
static bool
is_framing_sane(const struct http1_response_out *res)
{
    bool empty = res->status < 200 || res->status == 204 ||
                 (res->status < 300 && str_eq_c(res->method, "CONNECT"));

    if (empty)
        return res->out.framing == HTTP1_BODY_NONE;
    if (res->out.framing == HTTP1_BODY_NONE)
        return res->status == 304 || str_eq_c(res->method, "HEAD");
    return res->out.framing != HTTP1_BODY_UNTIL_CLOSE || res->out.connection == HTTP1_CONN_CLOSE;
}

static int
put_response(struct buf *b, const struct http1_response_out *res)
{
    if (res->status < 100 || res->status > 999 || !http1_is_value(res->reason) || !is_framing_sane(res))
        return -1;
    buf_printf(b, "HTTP/1.1 %u ", res->status);
    http1_write_put(b, res->reason);
    buf_puts(b, "\r\n");
    return put_rest(b, &res->out);
}

int
http1_write_response(struct buf *b, const struct http1_response_out *res)
{
    size_t before = b->n;

    if (put_response(b, res) == 0)
        return 0;
    b->n = before;
    return -1;
}

int
http1_write_chunk(struct buf *b, struct str data)
{
    size_t before = b->n;

    if (data.n == 0)    /* would be the last one */
        return -1;
    buf_printf(b, "%zx\r\n", data.n);
    http1_write_put(b, data);
    buf_puts(b, "\r\n");
    if (buf_ok(b))
        return 0;
    b->n = before;
    return -1;
}

int
http1_write_last_chunk(struct buf *b)
{
    size_t before = b->n;

    if (buf_puts(b, "0\r\n\r\n") == 0)
        return 0;
    b->n = before;
    return -1;
}
