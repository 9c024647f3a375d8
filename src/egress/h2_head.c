/* egress/h2_head.c: see h2_head.h */
#include "egress/h2_head.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "wire/http1_priv.h"
#include "match/ip.h"

#define FIELD_EXTRA 32      /* RFC 9113 §6.5.2 */

/* --- reading ------------------------------------------------------------------------------------------------------ */

void
h2_block_begin(struct h2_block *b, enum h2_kind kind)
{
    *b = (struct h2_block){ .kind = kind, .raw = BUF_INIT(HTTP1_HEAD_MAX), .fields = BUF_INIT(2 * HTTP1_HEAD_MAX),
                            .cookie = BUF_INIT(HTTP1_HEAD_MAX) };
}

void
h2_block_free(struct h2_block *b)
{
    buf_free(&b->raw);
    buf_free(&b->fields);
    buf_free(&b->cookie);
}

static bool
is_lower_token(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] >= 'A' && s.p[i] <= 'Z')
            return false;
    return http1_is_token(s);
}

/* Stands in a start line or as Host: no blank, no control byte, nothing beyond ASCII. */
static bool
is_dark(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= ' ' || s.p[i] >= 0x7f)
            return false;
    return s.n > 0;
}

static enum http1_result
keep(struct h2_block *b, int which, struct str value)
{
    if (b->pseudo[which].there)
        return which == H2_HOST || which == H2_AUTHORITY ? HTTP1_MANY_HOSTS : HTTP1_BAD_NAME;
    if (!is_dark(value))
        return which == H2_METHOD ? HTTP1_BAD_METHOD : which == H2_STATUS ? HTTP1_BAD_STATUS
               : which == H2_HOST || which == H2_AUTHORITY ? HTTP1_BAD_HOST : HTTP1_BAD_TARGET;
    b->pseudo[which].there = true;
    b->pseudo[which].at = b->raw.n;
    b->pseudo[which].n = value.n;
    return buf_append(&b->raw, value.p, value.n) < 0 ? HTTP1_HEAD_TOO_LARGE : HTTP1_OK;
}

static enum http1_result
pseudo(struct h2_block *b, struct str name, struct str value)
{
    static const struct str names[] = {
        [H2_METHOD] = { ":method", 7 }, [H2_SCHEME] = { ":scheme", 7 }, [H2_AUTHORITY] = { ":authority", 10 },
        [H2_PATH] = { ":path", 5 }, [H2_STATUS] = { ":status", 7 },
    };
    bool regular = b->n_fields > 0 || b->te || b->cookie.n > 0 || b->pseudo[H2_HOST].there;

    if (regular || b->kind == H2_TRAILER)
        return HTTP1_BAD_NAME;
    for (int i = 0; i < H2_HOST; i++)
        if (str_eq(name, names[i]))
            return (i == H2_STATUS) == (b->kind == H2_RESPONSE) ? keep(b, i, value) : HTTP1_BAD_NAME;
    return HTTP1_BAD_NAME;
}

static bool
is_of_connection(struct str name)
{
    static const char *const names[] = { "connection", "proxy-connection", "keep-alive", "transfer-encoding",
                                         "upgrade" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (str_eq_c(name, names[i]))
            return true;
    return false;
}

static enum http1_result
line(struct buf *to, struct str name, struct str value)
{
    buf_append(to, name.p, name.n);
    buf_puts(to, ": ");
    buf_append(to, value.p, value.n);
    return buf_puts(to, "\r\n") < 0 ? HTTP1_HEAD_TOO_LARGE : HTTP1_OK;
}

static enum http1_result
regular(struct h2_block *b, struct str name, struct str value)
{
    if (!is_lower_token(name))
        return name.n == 0 ? HTTP1_EMPTY_NAME : HTTP1_BAD_NAME;
    if (!http1_is_value(value))
        return HTTP1_CONTROL_BYTE;
    if (value.n > 0 && (strchr(" \t", value.p[0]) != NULL || strchr(" \t", value.p[value.n - 1]) != NULL))
        return HTTP1_LEADING_SPACE;
    if (is_of_connection(name))
        return HTTP1_BAD_CONNECTION;
    if (b->kind == H2_TRAILER && http1_is_bad_trailer(name))
        return HTTP1_BAD_TRAILER;
    if (str_eq_c(name, "te")) {
        b->te = true;
        return b->kind == H2_REQUEST && http1_equal(value, STR_LIT("trailers")) ? HTTP1_OK : HTTP1_BAD_CONNECTION;
    }
    if (b->kind == H2_REQUEST && str_eq_c(name, "host"))
        return keep(b, H2_HOST, value);
    if (b->kind == H2_REQUEST && str_eq_c(name, "cookie")) {
        if (b->cookie.n > 0)
            buf_puts(&b->cookie, "; ");
        return buf_append(&b->cookie, value.p, value.n) < 0 ? HTTP1_HEAD_TOO_LARGE : HTTP1_OK;
    }
    b->length |= str_eq_c(name, "content-length");
    if (b->n_fields++ == HTTP1_FIELDS_MAX)
        return HTTP1_TOO_MANY_FIELDS;
    return line(&b->fields, name, value);
}

void
h2_block_field(struct h2_block *b, struct str name, struct str value)
{
    if (b->fault != HTTP1_OK)
        return;
    if (name.n > HTTP1_HEAD_MAX || value.n > HTTP1_HEAD_MAX) {
        b->fault = HTTP1_HEAD_TOO_LARGE;
        return;
    }
    b->listed += name.n + value.n + FIELD_EXTRA;
    if (b->listed > (b->kind == H2_TRAILER ? HTTP1_TRAILER_MAX : HTTP1_HEAD_MAX))
        b->fault = b->kind == H2_TRAILER ? HTTP1_TRAILER_TOO_LARGE : HTTP1_HEAD_TOO_LARGE;
    else
        b->fault = name.n > 0 && name.p[0] == ':' ? pseudo(b, name, value) : regular(b, name, value);
}

static struct str
kept(const struct h2_block *b, int which)
{
    if (!b->pseudo[which].there)
        return (struct str){ "", 0 };
    return (struct str){ (const char *)b->raw.p + b->pseudo[which].at, b->pseudo[which].n };
}

static void
h2_head_put(struct buf *b, struct str s)
{
    buf_append(b, s.p, s.n);
}

/* The lines behind the first, up to the empty one. @body: one follows whose length is not said. */
static void
put_lines(const struct h2_block *b, bool body, struct buf *text)
{
    buf_append(text, b->fields.p, b->fields.n);
    if (b->cookie.n > 0)
        line(text, STR_LIT("cookie"), (struct str){ (const char *)b->cookie.p, b->cookie.n });
    if (body)
        buf_puts(text, "transfer-encoding: chunked\r\n");
    buf_puts(text, "\r\n");
}

/* The parser has to have read all of @text as one head; else a byte got in that may not. */
static enum http1_result
whole(enum http1_result result, const struct buf *text, const struct http1_head *head)
{
    if (!buf_ok(text))
        return HTTP1_HEAD_TOO_LARGE;
    if (result == HTTP1_MORE || (result == HTTP1_OK && head->length != text->n))
        return HTTP1_BARE_LF;
    return result;
}

static enum http1_result
judge_pseudos(const struct h2_block *b)
{
    struct str path = kept(b, H2_PATH), authority = kept(b, H2_AUTHORITY), host = kept(b, H2_HOST);

    if (!b->pseudo[H2_METHOD].there || !http1_is_token(kept(b, H2_METHOD)))
        return HTTP1_BAD_METHOD;
    if (str_eq_c(kept(b, H2_METHOD), "CONNECT") || !str_eq_c(kept(b, H2_SCHEME), "https"))
        return HTTP1_TARGET_FORM;
    if (path.n == 0)
        return HTTP1_BAD_TARGET;
    if (path.p[0] != '/' && !str_eq_c(path, "*"))
        return HTTP1_TARGET_FORM;
    if (authority.n == 0 && host.n == 0)
        return HTTP1_NO_HOST;
    if (authority.n > 0 && host.n > 0 && !http1_equal(authority, host))
        return HTTP1_MANY_HOSTS;
    return HTTP1_OK;
}

enum http1_result
h2_block_request(const struct h2_block *b, bool end, struct buf *text, struct http1_head *out)
{
    struct str host = kept(b, b->pseudo[H2_AUTHORITY].there ? H2_AUTHORITY : H2_HOST);
    enum http1_result result = b->fault != HTTP1_OK ? b->fault : judge_pseudos(b);

    if (result != HTTP1_OK)
        return result;
    h2_head_put(text, kept(b, H2_METHOD));
    buf_puts(text, " ");
    h2_head_put(text, kept(b, H2_PATH));
    buf_puts(text, " HTTP/1.1\r\n");
    line(text, STR_LIT("host"), host);
    put_lines(b, !end && !b->length, text);
    if (!buf_ok(text))
        return HTTP1_HEAD_TOO_LARGE;
    result = whole(http1_parse_request(text->p, text->n, out), text, out);
    if (result == HTTP1_OK && end && out->body_length > 0)
        return HTTP1_BODY_CUT;
    return result;
}

enum http1_result
h2_block_response(const struct h2_block *b, bool end, struct str method, struct buf *text, struct http1_head *out)
{
    struct str status = kept(b, H2_STATUS);
    bool bodiless = str_eq_c(method, "HEAD") || str_eq_c(status, "204") || str_eq_c(status, "304") ||
                    (status.n > 0 && status.p[0] == '1');
    enum http1_result result;

    if (b->fault != HTTP1_OK)
        return b->fault;
    if (status.n != 3 || str_eq_c(status, "101"))
        return HTTP1_BAD_STATUS;
    buf_puts(text, "HTTP/1.1 ");
    h2_head_put(text, status);
    buf_puts(text, " \r\n");
    put_lines(b, !end && !b->length && !bodiless, text);
    if (!buf_ok(text))
        return HTTP1_HEAD_TOO_LARGE;
    result = whole(http1_parse_response(text->p, text->n, method, out), text, out);
    if (result != HTTP1_OK)
        return result;
    if (end && out->framing == HTTP1_BODY_LENGTH && out->body_length > 0)
        return HTTP1_BODY_CUT;
    if (out->framing == HTTP1_BODY_UNTIL_CLOSE) {       /* it has ended already */
        out->framing = HTTP1_BODY_LENGTH;
        out->body_length = 0;
    }
    return HTTP1_OK;
}

enum http1_result
h2_block_trailer(const struct h2_block *b, struct buf *text, struct http1_head *out)
{
    if (b->fault != HTTP1_OK)
        return b->fault;
    if (b->n_fields > HTTP1_TRAILER_FIELDS_MAX)
        return HTTP1_TRAILER_TOO_LARGE;
    buf_puts(text, "HTTP/1.1 200 \r\n");
    put_lines(b, false, text);
    if (!buf_ok(text))
        return HTTP1_TRAILER_TOO_LARGE;
    return whole(http1_parse_response(text->p, text->n, STR_LIT("GET"), out), text, out);
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static int
h2_head_add(struct h2_fields *f, struct str name, struct str value, bool secret)
{
    if (f->n == H2_FIELDS_MAX)
        return -1;
    f->v[f->n++] = (struct h2_field){ name, value, secret };
    return 0;
}

/* Text of our own, which does not move: room was made for all of it. */
static struct str
own(struct h2_fields *f, struct str s, bool lower)
{
    char *at;

    if (f->own.p == NULL || f->own.cap - f->own.n < s.n)
        return (struct str){ NULL, 0 };
    at = (char *)f->own.p + f->own.n;
    for (size_t i = 0; i < s.n; i++)
        at[i] = lower ? ascii_lower(s.p[i]) : s.p[i];
    f->own.n += s.n;
    return (struct str){ at, s.n };
}

static int
make_room(struct h2_fields *f, const struct http1_head *head, const struct exchange_edit *edit, size_t more)
{
    size_t n = more + 64;

    for (size_t i = 0; i < head->n_fields; i++)
        n += head->fields[i].name.n;
    for (size_t i = 0; edit != NULL && i < edit->n_add; i++)
        n += edit->add[i].name.n;
    f->own = (struct buf)BUF_INIT(8 * HTTP1_HEAD_MAX);
    return edit != NULL && (edit->n_add > EXCHANGE_EDITS_MAX || edit->n_drop > EXCHANGE_EDITS_MAX)
           ? -1 : buf_reserve(&f->own, n);
}

static bool
is_ours(struct str name)
{
    return http1_equal(name, STR_LIT("host")) || http1_equal(name, STR_LIT("content-length"));
}

static bool
is_dropped(const struct exchange_edit *edit, struct str name)
{
    for (size_t i = 0; edit != NULL && i < edit->n_drop; i++)
        if (http1_equal(edit->drop[i], name))
            return true;
    return false;
}

static int
add_checked(struct h2_fields *f, struct str name, struct str value, bool secret)
{
    struct str lower = own(f, name, true);

    if (lower.p == NULL || !http1_is_token(name) || !http1_is_value(value))
        return -1;
    return h2_head_add(f, lower, value, secret);
}

static bool
is_credential(struct str name)
{
    return http1_equal(name, STR_LIT("authorization")) || http1_equal(name, STR_LIT("cookie")) ||
           http1_equal(name, STR_LIT("set-cookie"));
}

/* Everything behind the pseudo fields. */
static int
add_rest(struct h2_fields *f, const struct http1_head *head, const struct exchange_edit *edit)
{
    for (size_t i = 0; i < head->n_fields; i++) {
        const struct http1_field *field = &head->fields[i];
        if (field->hop || http1_is_hop(field->name) || is_ours(field->name) || is_dropped(edit, field->name))
            continue;
        if (add_checked(f, field->name, field->value, is_credential(field->name)) < 0)
            return -1;
    }
    for (size_t i = 0; edit != NULL && i < edit->n_add; i++)
        if (is_ours(edit->add[i].name) || http1_is_hop(edit->add[i].name) ||
            add_checked(f, edit->add[i].name, edit->add[i].value, true) < 0)
            return -1;
    return 0;
}

static int
add_number(struct h2_fields *f, struct str name, uint64_t number)
{
    char text[24];
    int n = snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    struct str value = own(f, (struct str){ text, (size_t)n }, false);

    return value.p == NULL ? -1 : h2_head_add(f, name, value, false);
}

static int
add_authority(struct h2_fields *f, const struct h2_target *to)
{
    struct http1_authority same;
    char text[HTTP1_HOST_MAX + 16];
    struct ip ip;
    bool v6 = ip_parse(to->host, &ip) && ip.family == 6;
    struct str value;
    int n;

    if (to->port == 0 || to->host.n > HTTP1_HOST_MAX ||
        (!v6 && (http1_authority_parse(to->host, false, &same) != HTTP1_OK || same.host.n != to->host.n)))
        return -1;
    n = snprintf(text, sizeof(text), "%s%.*s%s", v6 ? "[" : "", (int)to->host.n, to->host.p, v6 ? "]" : "");
    if (to->port != 443)
        n += snprintf(text + n, sizeof(text) - (size_t)n, ":%u", to->port);
    value = own(f, (struct str){ text, (size_t)n }, false);
    return value.p == NULL ? -1 : h2_head_add(f, STR_LIT(":authority"), value, false);
}

static int
add_path(struct h2_fields *f, const struct http1_head *head, const struct exchange_edit *edit)
{
    bool changed = edit != NULL && edit->new_target;
    struct str path = changed ? edit->path : head->path, query = changed ? edit->query : head->query, whole_path;
    char *at = (char *)f->own.p + f->own.n;

    if (head->form == HTTP1_ASTERISK)
        return h2_head_add(f, STR_LIT(":path"), STR_LIT("*"), false);
    if (!http1_target_ok(path, query) || path.n == 0 || path.n + query.n > 4 * HTTP1_TARGET_MAX ||
        own(f, path, false).p == NULL || own(f, query, false).p == NULL)
        return -1;
    whole_path = (struct str){ at, path.n + query.n };
    return h2_head_add(f, STR_LIT(":path"), whole_path, changed);
}

int
h2_fields_request(struct h2_fields *out, const struct http1_head *head, const struct exchange_edit *edit,
                  const struct h2_target *to, bool length)
{
    bool changed = edit != NULL && edit->new_target;
    size_t more = HTTP1_HOST_MAX + (changed ? edit->path.n + edit->query.n : head->path.n + head->query.n);

    if (make_room(out, head, edit, more) < 0 || !http1_is_token(head->method) ||
        h2_head_add(out, STR_LIT(":method"), head->method, false) < 0 ||
        h2_head_add(out, STR_LIT(":scheme"), STR_LIT("https"), false) < 0 || add_authority(out, to) < 0 ||
        add_path(out, head, edit) < 0 || add_rest(out, head, edit) < 0)
        return -1;
    if (length && head->length_stated && add_number(out, STR_LIT("content-length"), head->stated_length) < 0)
        return -1;
    return to->te ? h2_head_add(out, STR_LIT("te"), STR_LIT("trailers"), false) : 0;
}

int
h2_fields_response(struct h2_fields *out, const struct http1_head *head, const struct exchange_edit *edit, bool length)
{
    if (make_room(out, head, edit, 0) < 0 || head->status < 100 || head->status > 999 ||
        add_number(out, STR_LIT(":status"), head->status) < 0 || add_rest(out, head, edit) < 0)
        return -1;
    return length && head->length_stated ? add_number(out, STR_LIT("content-length"), head->stated_length) : 0;
}

int
h2_fields_trailer(struct h2_fields *out, const struct http1_head *head, const struct exchange_edit *edit)
{
    return make_room(out, head, edit, 0) < 0 ? -1 : add_rest(out, head, edit);
}

void
h2_fields_free(struct h2_fields *f)
{
    if (f->own.p != NULL)
        explicit_bzero(f->own.p, f->own.cap);
    buf_free(&f->own);
    f->n = 0;
}
