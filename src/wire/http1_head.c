/* wire/http1_head.c: the lines of a head, byte by byte from left to right (RFC 9112 §2-5; see http1.h)
 *
 * Only form is judged here, and each byte as soon as it is there, so that a prefix never says something else than the
 * whole. What the fields mean together is http1_settle.c's.
 */
#include "wire/http1_priv.h"

#include <string.h>

struct cursor {
    const uint8_t *p;
    size_t n, at;
};

static struct str
slice(const struct cursor *c, size_t from, size_t to)
{
    return (struct str){ (const char *)c->p + from, to - from };
}

/* The byte at the cursor may not stand there: say which rule it breaks, @otherwise when no general one. A CR needs its
 * next byte to be judged. */
static enum http1_result
unexpected(const struct cursor *c, enum http1_result otherwise)
{
    uint8_t byte = c->p[c->at];

    if (byte == '\r') {
        if (c->at + 1 == c->n)
            return HTTP1_MORE;
        return c->p[c->at + 1] == '\n' ? otherwise : HTTP1_BARE_CR;
    }
    if (byte == '\n')
        return HTTP1_BARE_LF;
    return byte < 0x20 || byte == 0x7f ? HTTP1_CONTROL_BYTE : otherwise;
}

static enum http1_result
take_crlf(struct cursor *c, enum http1_result otherwise)
{
    if (c->at == c->n)
        return HTTP1_MORE;
    if (c->p[c->at] != '\r')
        return unexpected(c, otherwise);
    if (c->at + 1 == c->n)
        return HTTP1_MORE;
    if (c->p[c->at + 1] != '\n')
        return HTTP1_BARE_CR;
    c->at += 2;
    return HTTP1_OK;
}

static enum http1_result
take_method(struct cursor *c, struct http1_head *out)
{
    while (c->at < c->n && http1_is(c->p[c->at], C_TOKEN)) {
        if (c->at == HTTP1_METHOD_MAX)
            return HTTP1_METHOD_TOO_LONG;
        c->at++;
    }
    if (c->at == c->n)
        return HTTP1_MORE;
    if (c->p[c->at] != ' ' || c->at == 0)
        return unexpected(c, HTTP1_BAD_METHOD);
    out->method = slice(c, 0, c->at);
    /* "PRI * HTTP/2.0" is how HTTP/2 begins; the name is reserved so that it never means anything here */
    if (str_eq_c(out->method, "PRI"))
        return HTTP1_BAD_METHOD;
    c->at++;
    return HTTP1_OK;
}

static enum http1_result
split_path(struct http1_head *out, struct str rest)
{
    const char *mark = rest.n > 0 ? memchr(rest.p, '?', rest.n) : NULL;
    size_t n = mark != NULL ? (size_t)(mark - rest.p) : rest.n;

    out->path = (struct str){ rest.p, n };
    out->query = (struct str){ rest.p + n, rest.n - n };
    return http1_target_ok(out->path, out->query) ? HTTP1_OK : HTTP1_BAD_TARGET;
}

static enum http1_result
absolute_target(struct http1_head *out, struct str rest)
{
    static const struct str schemes[] = { { "http://", 7 }, { "https://", 8 } };
    size_t n = 0;
    enum http1_result result;

    for (size_t i = 0; i < 2; i++) {
        if (rest.n < schemes[i].n || !http1_equal((struct str){ rest.p, schemes[i].n }, schemes[i]))
            continue;
        out->scheme = i == 0 ? HTTP1_SCHEME_HTTP : HTTP1_SCHEME_HTTPS;
        rest = (struct str){ rest.p + schemes[i].n, rest.n - schemes[i].n };
        break;
    }
    if (out->scheme == HTTP1_SCHEME_NONE)
        return HTTP1_BAD_TARGET;
    while (n < rest.n && rest.p[n] != '/' && rest.p[n] != '?' && rest.p[n] != '#')
        n++;
    result = http1_authority_parse((struct str){ rest.p, n }, false, &out->authority);
    if (result != HTTP1_OK)
        return result;
    if (!out->authority.port_stated)
        out->authority.port = out->scheme == HTTP1_SCHEME_HTTP ? 80 : 443;
    out->form = HTTP1_ABSOLUTE;
    return split_path(out, (struct str){ rest.p + n, rest.n - n });
}

/* RFC 9112 §3.2: which form the target has follows from the method. */
static enum http1_result
read_target(struct http1_head *out)
{
    struct str t = out->target;

    if (t.n == 0)
        return HTTP1_BAD_TARGET;
    if (str_eq_c(out->method, "CONNECT")) {
        out->form = HTTP1_AUTHORITY;
        if (t.p[0] == '/' || t.p[0] == '*')
            return HTTP1_TARGET_FORM;
        return http1_authority_parse(t, true, &out->authority);
    }
    if (t.p[0] == '/') {
        out->form = HTTP1_ORIGIN;
        return split_path(out, t);
    }
    if (str_eq_c(t, "*")) {
        out->form = HTTP1_ASTERISK;
        return str_eq_c(out->method, "OPTIONS") ? HTTP1_OK : HTTP1_TARGET_FORM;
    }
    return absolute_target(out, t);
}

static enum http1_result
take_target(struct cursor *c, struct http1_head *out)
{
    size_t start = c->at;

    while (c->at < c->n && c->p[c->at] > ' ' && c->p[c->at] < 0x7f) {
        if (c->at - start == HTTP1_TARGET_MAX)
            return HTTP1_TARGET_TOO_LONG;
        c->at++;
    }
    if (c->at == c->n)
        return HTTP1_MORE;
    if (c->p[c->at] != ' ')     /* a line that ends here is HTTP/0.9's */
        return unexpected(c, c->p[c->at] == '\r' ? HTTP1_BAD_VERSION : HTTP1_BAD_TARGET);
    out->target = slice(c, start, c->at);
    c->at++;
    return read_target(out);
}

static enum http1_result
take_version(struct cursor *c, struct http1_head *out)
{
    static const char text[] = "HTTP/1.";

    for (size_t i = 0; i < sizeof(text) - 1; i++, c->at++) {
        if (c->at == c->n)
            return HTTP1_MORE;
        if (c->p[c->at] != (uint8_t)text[i])
            return unexpected(c, HTTP1_BAD_VERSION);
    }
    if (c->at == c->n)
        return HTTP1_MORE;
    if (c->p[c->at] != '0' && c->p[c->at] != '1')
        return unexpected(c, HTTP1_BAD_VERSION);
    out->minor = (unsigned)(c->p[c->at++] - '0');
    return HTTP1_OK;
}

static enum http1_result
take_request_line(struct cursor *c, struct http1_head *out)
{
    enum http1_result result = take_method(c, out);

    if (result == HTTP1_OK)
        result = take_target(c, out);
    if (result == HTTP1_OK)
        result = take_version(c, out);
    return result == HTTP1_OK ? take_crlf(c, HTTP1_BAD_VERSION) : result;
}

/* "HTTP/1.1 200 OK"; the blank after the number may be missing when there is no reason, as many servers have it. */
static enum http1_result
take_status_line(struct cursor *c, struct http1_head *out)
{
    enum http1_result result = take_version(c, out);
    size_t start;

    if (result != HTTP1_OK)
        return result;
    if (c->at == c->n)
        return HTTP1_MORE;
    if (c->p[c->at] != ' ')
        return unexpected(c, HTTP1_BAD_VERSION);
    c->at++;
    for (size_t i = 0; i < 3; i++, c->at++) {
        if (c->at == c->n)
            return HTTP1_MORE;
        if (c->p[c->at] < (i == 0 ? '1' : '0') || c->p[c->at] > '9')
            return unexpected(c, HTTP1_BAD_STATUS);
        out->status = out->status * 10 + (unsigned)(c->p[c->at] - '0');
    }
    if (c->at < c->n && c->p[c->at] == ' ')
        c->at++;
    else
        return take_crlf(c, HTTP1_BAD_STATUS);
    start = c->at;
    while (c->at < c->n && http1_is(c->p[c->at], C_VALUE))
        c->at++;
    out->reason = slice(c, start, c->at);
    return take_crlf(c, HTTP1_BAD_STATUS);
}

static enum http1_result
take_field(struct cursor *c, struct http1_field *field)
{
    size_t start = c->at, end;

    while (c->at < c->n && http1_is(c->p[c->at], C_TOKEN))
        c->at++;
    if (c->at == c->n)
        return HTTP1_MORE;
    if (c->p[c->at] == ' ' || c->p[c->at] == '\t')
        return HTTP1_SPACE_BEFORE_COLON;
    if (c->p[c->at] != ':')
        return unexpected(c, HTTP1_BAD_NAME);
    if (c->at == start)
        return HTTP1_EMPTY_NAME;
    field->name = slice(c, start, c->at);
    c->at++;
    while (c->at < c->n && (c->p[c->at] == ' ' || c->p[c->at] == '\t'))
        c->at++;
    start = c->at;
    while (c->at < c->n && http1_is(c->p[c->at], C_VALUE))
        c->at++;
    end = c->at;
    while (end > start && (c->p[end - 1] == ' ' || c->p[end - 1] == '\t'))
        end--;
    field->value = slice(c, start, end);
    return take_crlf(c, HTTP1_CONTROL_BYTE);
}

static enum http1_result
take_fields(struct cursor *c, struct http1_head *out)
{
    for (;;) {
        enum http1_result result;
        uint8_t first;
        if (c->at == c->n)
            return HTTP1_MORE;
        first = c->p[c->at];
        if (first == '\r')
            return take_crlf(c, HTTP1_BARE_CR);
        if (first == ' ' || first == '\t')
            return out->n_fields == 0 ? HTTP1_LEADING_SPACE : HTTP1_OBS_FOLD;
        if (out->n_fields == HTTP1_FIELDS_MAX)
            return HTTP1_TOO_MANY_FIELDS;
        result = take_field(c, &out->fields[out->n_fields]);
        if (result != HTTP1_OK)
            return result;
        out->n_fields++;
    }
}

/* The lines up to the empty one. Where the ceiling cuts the input, there is no more to wait for. */
static enum http1_result
take_head(const uint8_t *p, size_t n, size_t head_max, struct http1_head *out,
          enum http1_result (*start_line)(struct cursor *, struct http1_head *))
{
    size_t limit = head_max < HTTP1_HEAD_MAX ? head_max : HTTP1_HEAD_MAX;
    struct cursor c = { .p = p, .n = n < limit ? n : limit, .at = 0 };
    enum http1_result result;

    /* not the array of fields: n_fields says how many of them are there */
    memset(out, 0, offsetof(struct http1_head, fields));
    result = start_line(&c, out);
    if (result == HTTP1_OK)
        result = take_fields(&c, out);
    out->length = c.at;
    return result == HTTP1_MORE && n >= limit ? HTTP1_HEAD_TOO_LARGE : result;
}

enum http1_result
http1_parse_request_max(const uint8_t *p, size_t n, size_t head_max, struct http1_head *out)
{
    enum http1_result result = take_head(p, n, head_max, out, take_request_line);

    return result == HTTP1_OK ? http1_settle_request(out, false) : result;
}

enum http1_result
http1_parse_request_any_host(const uint8_t *p, size_t n, size_t head_max, struct http1_head *out)
{
    enum http1_result result = take_head(p, n, head_max, out, take_request_line);

    return result == HTTP1_OK ? http1_settle_request(out, true) : result;
}

enum http1_result
http1_parse_request(const uint8_t *p, size_t n, struct http1_head *out)
{
    return http1_parse_request_max(p, n, HTTP1_HEAD_MAX, out);
}

enum http1_result
http1_parse_response_max(const uint8_t *p, size_t n, size_t head_max, struct str method, struct http1_head *out)
{
    enum http1_result result = take_head(p, n, head_max, out, take_status_line);

    return result == HTTP1_OK ? http1_settle_response(out, method) : result;
}

enum http1_result
http1_parse_response(const uint8_t *p, size_t n, struct str method, struct http1_head *out)
{
    return http1_parse_response_max(p, n, HTTP1_HEAD_MAX, method, out);
}

bool
http1_worth_parsing(const uint8_t *p, size_t n, size_t seen, size_t head_max)
{
    size_t limit = head_max < HTTP1_HEAD_MAX ? head_max : HTTP1_HEAD_MAX;

    if (n <= seen)
        return false;
    /* the first bytes show what is no HTTP at all; then every line may end the head or break a rule */
    return seen == 0 || n >= limit || memchr(p + seen, '\n', n - seen) != NULL;
}
