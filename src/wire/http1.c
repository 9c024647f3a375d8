/* wire/http1.c: words, bytes, lists: what reading and writing of HTTP/1 share (see http1.h) */
#include "wire/http1_priv.h"

#include <string.h>

#include "base/array.h"

static const struct { const char *word; unsigned answer; } results[HTTP1_RESULTS] = {
    [HTTP1_OK] = { "ok", 0 },
    [HTTP1_MORE] = { "more", 0 },
    [HTTP1_BARE_CR] = { "bare-cr", 400 },
    [HTTP1_BARE_LF] = { "bare-lf", 400 },
    [HTTP1_CONTROL_BYTE] = { "control-byte", 400 },
    [HTTP1_HEAD_TOO_LARGE] = { "head-too-large", 431 },
    [HTTP1_BAD_METHOD] = { "bad-method", 400 },
    [HTTP1_METHOD_TOO_LONG] = { "method-too-long", 501 },
    [HTTP1_BAD_TARGET] = { "bad-target", 400 },
    [HTTP1_TARGET_TOO_LONG] = { "target-too-long", 414 },
    [HTTP1_TARGET_FORM] = { "target-form", 400 },
    [HTTP1_BAD_VERSION] = { "bad-version", 505 },
    [HTTP1_BAD_STATUS] = { "bad-status", 400 },
    [HTTP1_LEADING_SPACE] = { "leading-space", 400 },
    [HTTP1_OBS_FOLD] = { "obs-fold", 400 },
    [HTTP1_EMPTY_NAME] = { "empty-name", 400 },
    [HTTP1_BAD_NAME] = { "bad-name", 400 },
    [HTTP1_SPACE_BEFORE_COLON] = { "space-before-colon", 400 },
    [HTTP1_TOO_MANY_FIELDS] = { "too-many-fields", 431 },
    [HTTP1_NO_HOST] = { "no-host", 400 },
    [HTTP1_MANY_HOSTS] = { "many-hosts", 400 },
    [HTTP1_BAD_HOST] = { "bad-host", 400 },
    [HTTP1_USERINFO] = { "userinfo", 400 },
    [HTTP1_BAD_PORT] = { "bad-port", 400 },
    [HTTP1_NO_PORT] = { "no-port", 400 },
    [HTTP1_BAD_LENGTH] = { "bad-length", 400 },
    [HTTP1_MANY_LENGTHS] = { "many-lengths", 400 },
    [HTTP1_BAD_CODING] = { "bad-coding", 501 },
    [HTTP1_CODING_IN_10] = { "coding-in-1.0", 400 },
    [HTTP1_CODING_AND_LENGTH] = { "coding-and-length", 400 },
    [HTTP1_UNEXPECTED_BODY] = { "unexpected-body", 400 },
    [HTTP1_BAD_CONNECTION] = { "bad-connection", 400 },
    [HTTP1_BAD_EXPECT] = { "bad-expect", 417 },
    [HTTP1_BAD_CHUNK] = { "bad-chunk", 400 },
    [HTTP1_BAD_TRAILER] = { "bad-trailer", 400 },
    [HTTP1_TRAILER_TOO_LARGE] = { "trailer-too-large", 431 },
    [HTTP1_BODY_TOO_LARGE] = { "body-too-large", 413 },
    [HTTP1_BODY_CUT] = { "body-cut", 400 },
};

const char *
http1_word(enum http1_result result)
{
    return (unsigned)result < HTTP1_RESULTS ? results[result].word : "unknown";
}

unsigned
http1_answer(enum http1_result result)
{
    return (unsigned)result < HTTP1_RESULTS ? results[result].answer : 400;
}

#define C_NAME (C_TOKEN | C_VALUE | C_PATH | C_QUERY | C_HOST)  /* letters, digits, "-", ".", "_" */
#define C_URL (C_VALUE | C_PATH | C_QUERY)
#define C_BOTH (C_TOKEN | C_URL)

/* Zero for what may stand nowhere: control bytes and DEL. */
const uint8_t http1_class[256] = {
    ['\t'] = C_VALUE,
    [' '] = C_VALUE,
    ['!'] = C_BOTH,
    ['"'] = C_VALUE,
    ['#'] = C_TOKEN | C_VALUE,
    ['$'] = C_BOTH,
    ['%'] = C_BOTH,
    ['&'] = C_BOTH,
    ['\''] = C_BOTH,
    ['('] = C_URL,
    [')'] = C_URL,
    ['*'] = C_BOTH,
    ['+'] = C_BOTH,
    [','] = C_URL,
    ['-'] = C_NAME,
    ['.'] = C_NAME,
    ['/'] = C_URL,
    ['0' ... '9'] = C_NAME | C_HEX,
    [':'] = C_URL,
    [';'] = C_URL,
    ['<'] = C_VALUE,
    ['='] = C_URL,
    ['>'] = C_VALUE,
    ['?'] = C_VALUE | C_QUERY,
    ['@'] = C_URL,
    ['A' ... 'F'] = C_NAME | C_HEX,
    ['G' ... 'Z'] = C_NAME,
    ['['] = C_URL,
    ['\\'] = C_VALUE | C_QUERY,
    [']'] = C_URL,
    ['^'] = C_BOTH,
    ['_'] = C_NAME,
    ['`'] = C_TOKEN | C_VALUE | C_QUERY,
    ['a' ... 'f'] = C_NAME | C_HEX,
    ['g' ... 'z'] = C_NAME,
    ['{'] = C_URL,
    ['|'] = C_BOTH,
    ['}'] = C_URL,
    ['~'] = C_BOTH,
    [0x80 ... 0xff] = C_VALUE,
};

static bool
all(struct str s, unsigned classes)
{
    for (size_t i = 0; i < s.n; i++)
        if (!http1_is((uint8_t)s.p[i], classes))
            return false;
    return true;
}

bool
http1_is_token(struct str s)
{
    return s.n > 0 && all(s, C_TOKEN);
}

bool
http1_is_value(struct str s)
{
    return all(s, C_VALUE);
}

static bool
escapes_ok(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '%' &&
            (s.n - i < 3 || !http1_is((uint8_t)s.p[i + 1], C_HEX) || !http1_is((uint8_t)s.p[i + 2], C_HEX)))
            return false;
    return true;
}

bool
http1_target_ok(struct str path, struct str query)
{
    if ((path.n > 0 && path.p[0] != '/') || (query.n > 0 && query.p[0] != '?'))
        return false;
    return all(path, C_PATH) && all(query, C_QUERY) && escapes_ok(path) && escapes_ok(query);
}

bool
http1_equal(struct str a, struct str b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (ascii_lower(a.p[i]) != ascii_lower(b.p[i]))
            return false;
    return true;
}

bool
http1_is_hop(struct str name)
{
    /* RFC 9110 §7.6.1, the proxy's own credentials, Trailer (trailers are dropped), and what an h2c upgrade carries */
    static const struct str hops[] = {
        { "connection", 10 },         { "keep-alive", 10 },          { "proxy-connection", 16 },
        { "te", 2 },                  { "trailer", 7 },              { "transfer-encoding", 17 },
        { "upgrade", 7 },             { "proxy-authorization", 19 }, { "proxy-authenticate", 18 },
        { "proxy-authentication-info", 25 },                         { "http2-settings", 14 },
    };

    for (size_t i = 0; i < ARRAY_LEN(hops); i++)
        if (http1_equal(name, hops[i]))
            return true;
    return false;
}

const struct http1_field *
http1_find(const struct http1_head *head, struct str name, size_t *at)
{
    for (size_t i = at != NULL ? *at : 0; i < head->n_fields; i++) {
        if (!http1_equal(head->fields[i].name, name))
            continue;
        if (at != NULL)
            *at = i + 1;
        return &head->fields[i];
    }
    if (at != NULL)
        *at = head->n_fields;
    return NULL;
}

static struct str
trimmed(struct str s)
{
    while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t')) {
        s.p++;
        s.n--;
    }
    while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

bool
http1_list_next(struct str *rest, struct str *item)
{
    while (rest->n > 0) {
        const char *comma = memchr(rest->p, ',', rest->n);
        size_t n = comma != NULL ? (size_t)(comma - rest->p) : rest->n;
        size_t step = comma != NULL ? n + 1 : n;
        *item = trimmed((struct str){ rest->p, n });
        rest->p += step;
        rest->n -= step;
        if (item->n > 0)
            return true;
    }
    return false;
}

