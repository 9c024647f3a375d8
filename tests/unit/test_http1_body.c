/* wire/http1: bodies and writing (R13, R14): a body ends at one place however it arrives, and what is written is one
 * message that says what was decided */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/array.h"
#include "wire/http1.h"

#define N(a) ARRAY_LEN(a)
#define L(s) { s, sizeof(s) - 1 }
#define MAX 64      /* the ceiling of the rows */

static const struct {
    enum http1_framing framing;
    uint64_t length;
    struct str raw;
    enum http1_result want;     /* at the end of raw; MORE: cut off */
    const char *data;           /* of an OK body */
    size_t used;
} bodies[] = {
    { HTTP1_BODY_NONE, 0, L("x"), HTTP1_OK, "", 0 },
    { HTTP1_BODY_LENGTH, 0, L("x"), HTTP1_OK, "", 0 },
    { HTTP1_BODY_LENGTH, 5, L("hello"), HTTP1_OK, "hello", 5 },
    { HTTP1_BODY_LENGTH, 5, L("helloGET / HTTP/1.1"), HTTP1_OK, "hello", 5 },
    { HTTP1_BODY_LENGTH, 6, L("hello"), HTTP1_MORE, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("0\r\n\r\n"), HTTP1_OK, "", 5 },
    { HTTP1_BODY_CHUNKED, 0, L("5\r\nhello\r\n0\r\n\r\nGET"), HTTP1_OK, "hello", 15 },
    { HTTP1_BODY_CHUNKED, 0, L("1\r\na\r\n0002\r\nbc\r\nA\r\n0123456789\r\n00\r\n\r\n"), HTTP1_OK, "abc0123456789", 37 },
    { HTTP1_BODY_CHUNKED, 0, L("0000000000000005\r\nhello\r\n0\r\n\r\n"), HTTP1_OK, "hello", 30 },
    { HTTP1_BODY_CHUNKED, 0, L("2\r\n\r\n\r\n0\r\n\r\n"), HTTP1_OK, "\r\n", 12 },
    { HTTP1_BODY_CHUNKED, 0, L("1\r\na\r\n0\r\nX-Sum: 1\r\ny:\r\n\r\nrest"), HTTP1_OK, "a", 25 },
    { HTTP1_BODY_CHUNKED, 0, L("40\r\n0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\r\n0\r\n\r\n"), HTTP1_OK,
      "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 75 },
    { HTTP1_BODY_CHUNKED, 0, L("5\r\nhello\r\n0\r\n"), HTTP1_MORE, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("5\r\nhel"), HTTP1_MORE, "", 0 },
    /* chunk sizes: what integer parsers of other languages take */
    { HTTP1_BODY_CHUNKED, 0, L("0_2e\r\n\r\nGET / HTTP/1.1\r\n"), HTTP1_BAD_CHUNK, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("0x5\r\nhello\r\n0\r\n\r\n"), HTTP1_BAD_CHUNK, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("+5\r\nhello\r\n0\r\n\r\n"), HTTP1_BAD_CHUNK, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("-5\r\nhello\r\n0\r\n\r\n"), HTTP1_BAD_CHUNK, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("5 \r\nhello\r\n0\r\n\r\n"), HTTP1_BAD_CHUNK, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L(" 5\r\nhello\r\n0\r\n\r\n"), HTTP1_BAD_CHUNK, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("\t5\r\nhello\r\n0\r\n\r\n"), HTTP1_BAD_CHUNK, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("5h\r\nhello\r\n0\r\n\r\n"), HTTP1_BAD_CHUNK, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("5\0\r\nhello\r\n0\r\n\r\n"), HTTP1_BAD_CHUNK, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("\r\n\r\n"), HTTP1_BAD_CHUNK, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("\xef\xbc\x95\r\nhello\r\n"), HTTP1_BAD_CHUNK, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("00000000000000005\r\nhello\r\n0\r\n\r\n"), HTTP1_BAD_CHUNK, "", 0 },     /* 17 digits */
    { HTTP1_BODY_CHUNKED, 0, L("10000000000000005\r\nhello\r\n"), HTTP1_BAD_CHUNK, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("ffffffffffffffff\r\nhello\r\n"), HTTP1_BODY_TOO_LARGE, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("5\r\nhello\r\nffffffffffffffff\r\nx"), HTTP1_BODY_TOO_LARGE, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("fffffffffffffffb\r\nhello\r\n5\r\n"), HTTP1_BODY_TOO_LARGE, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("41\r\n"), HTTP1_BODY_TOO_LARGE, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("3f\r\n0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\r\n2\r\n"), HTTP1_BODY_TOO_LARGE, "", 0 },
    /* extensions, in all the ways that parsers disagree on */
    { HTTP1_BODY_CHUNKED, 0, L("5;a=b\r\nhello\r\n0\r\n\r\n"), HTTP1_BAD_CHUNK, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("5;a=\"b\r\n\"\r\nhello\r\n0\r\n\r\n"), HTTP1_BAD_CHUNK, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("5;\r\nhello\r\n0\r\n\r\n"), HTTP1_BAD_CHUNK, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("2;\nxx\r\n0\r\n\r\n"), HTTP1_BAD_CHUNK, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("0;a\r\n\r\n"), HTTP1_BAD_CHUNK, "", 0 },
    /* line ends */
    { HTTP1_BODY_CHUNKED, 0, L("5\nhello\r\n0\r\n\r\n"), HTTP1_BAD_CHUNK, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("5\rXhello\r\n0\r\n\r\n"), HTTP1_BAD_CHUNK, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("5\r\nhello\n0\r\n\r\n"), HTTP1_BAD_CHUNK, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("5\r\nhello0\r\n\r\n"), HTTP1_BAD_CHUNK, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("5\r\nhelloXX0\r\n\r\n"), HTTP1_BAD_CHUNK, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("5\r\nhello\r\r\n0\r\n\r\n"), HTTP1_BAD_CHUNK, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("5\r\nhello\r\n\r\n0\r\n\r\n"), HTTP1_BAD_CHUNK, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("0\n\r\n"), HTTP1_BAD_CHUNK, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("0\r\n\n"), HTTP1_BAD_TRAILER, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("0\r\n\rX"), HTTP1_BAD_TRAILER, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("0\r\nGET / HTTP/1.1\r\n\r\n"), HTTP1_BAD_TRAILER, "", 0 },
    /* trailers */
    { HTTP1_BODY_CHUNKED, 0, L("0\r\nA: b\n\r\n"), HTTP1_BAD_TRAILER, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("0\r\nA: b\rC: d\r\n\r\n"), HTTP1_BAD_TRAILER, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("0\r\nA: b\0\r\n\r\n"), HTTP1_BAD_TRAILER, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("0\r\nA : b\r\n\r\n"), HTTP1_BAD_TRAILER, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("0\r\n: b\r\n\r\n"), HTTP1_BAD_TRAILER, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("0\r\nA: b\r\n c\r\n\r\n"), HTTP1_BAD_TRAILER, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("0\r\nnocolon\r\n\r\n"), HTTP1_BAD_TRAILER, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("0\r\nContent-Length: 5\r\n\r\n"), HTTP1_BAD_TRAILER, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("0\r\nX: y\r\ntransfer-ENCODING: chunked\r\n\r\n"), HTTP1_BAD_TRAILER, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("0\r\nHost: evil\r\n\r\n"), HTTP1_BAD_TRAILER, "", 0 },
    { HTTP1_BODY_CHUNKED, 0, L("0\r\nContent-Length-but-a-much-longer-name: 5\r\n\r\n"), HTTP1_OK, "", 47 },
    /* until close: whole whenever the peer closes, but for the ceiling */
    { HTTP1_BODY_UNTIL_CLOSE, 0, L("abc"), HTTP1_MORE, "abc", 3 },
    { HTTP1_BODY_UNTIL_CLOSE, 0, L("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdefX"), HTTP1_BODY_TOO_LARGE, "", 0 },
};

struct taken {
    char data[MAX + 1];
    size_t n, used;
    enum http1_result result, at_end;
};

/* Feed @raw in pieces that end at @first and then every @step bytes. */
static struct taken
feed(size_t row, size_t first, size_t step)
{
    struct http1_head head = { .framing = bodies[row].framing, .body_length = bodies[row].length };
    struct taken t = { .result = HTTP1_MORE };
    struct str raw = bodies[row].raw;
    struct http1_body body;

    assert_int_equal(http1_body_begin(&body, &head, MAX), HTTP1_OK);
    for (size_t end = first; t.result == HTTP1_MORE;) {
        struct str data;
        size_t used;
        t.result = http1_body_next(&body, (const uint8_t *)raw.p + t.used, end - t.used, &data, &used);
        assert_true(used <= end - t.used && data.n <= used);
        assert_true(used > 0 || end == t.used || t.result != HTTP1_MORE);
        t.used += used;
        assert_true(t.n + data.n <= MAX);
        if (data.n > 0)
            memcpy(t.data + t.n, data.p, data.n);
        t.n += data.n;
        if (t.used < end || t.result != HTTP1_MORE)
            continue;
        if (end == raw.n)
            break;
        end = raw.n - end < step ? raw.n : end + step;
    }
    t.at_end = http1_body_end(&body);
    return t;
}

static void
body_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(bodies); i++) {
        struct taken whole = feed(i, bodies[i].raw.n, 1);
        if (whole.result != bodies[i].want)
            fail_msg("row %zu \"%s\": %s, want %s", i, bodies[i].raw.p, http1_word(whole.result), http1_word(bodies[i].want));
        if (whole.result == HTTP1_OK || bodies[i].framing == HTTP1_BODY_UNTIL_CLOSE)
            assert_int_equal(whole.at_end, whole.result == HTTP1_MORE ? HTTP1_OK : whole.result);
        else
            assert_int_equal(whole.at_end, whole.result == HTTP1_MORE ? HTTP1_BODY_CUT : whole.result);
        if (whole.result != HTTP1_OK)
            continue;
        assert_string_equal(whole.data, bodies[i].data);
        assert_int_equal(whole.used, bodies[i].used);
    }
}

static void
body_splits(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(bodies); i++) {
        struct taken whole = feed(i, bodies[i].raw.n, 1);
        for (size_t cut = 0; cut <= bodies[i].raw.n; cut++)
            for (size_t step = 1; step < 4; step++) {
                struct taken parts = feed(i, cut, step == 3 ? bodies[i].raw.n : step);
                if (parts.result != whole.result || parts.used != whole.used || parts.n != whole.n ||
                    parts.at_end != whole.at_end || memcmp(parts.data, whole.data, whole.n) != 0)
                    fail_msg("row %zu cut at %zu: %s", i, cut, http1_word(parts.result));
            }
    }
}

static void
body_ceilings(void **state)
{
    struct http1_head head = { .framing = HTTP1_BODY_LENGTH, .body_length = 11 };
    struct buf cleanup_buf b = BUF_INIT(1 << 20);
    struct http1_body body;
    struct str data;
    size_t used;

    (void)state;
    assert_int_equal(http1_body_begin(&body, &head, 10), HTTP1_BODY_TOO_LARGE);
    assert_int_equal(http1_body_next(&body, (const uint8_t *)"x", 1, &data, &used), HTTP1_BODY_TOO_LARGE);
    assert_int_equal(http1_body_begin(&body, &head, 11), HTTP1_OK);
    head.framing = HTTP1_BODY_CHUNKED;
    for (size_t over = 0; over < 2; over++) {
        buf_reset(&b);
        buf_puts(&b, "0\r\n");
        for (size_t i = 0; i < HTTP1_TRAILER_FIELDS_MAX + over; i++)
            buf_puts(&b, "a:\r\n");
        buf_puts(&b, "\r\n");
        http1_body_begin(&body, &head, 0);
        assert_int_equal(http1_body_next(&body, b.p, b.n, &data, &used), over ? HTTP1_TRAILER_TOO_LARGE : HTTP1_OK);
        buf_reset(&b);
        buf_puts(&b, "0\r\na:");
        while (b.n < 3 + HTTP1_TRAILER_MAX - 4 + over)
            buf_put_u8(&b, 'x');
        buf_puts(&b, "\r\n\r\n");
        http1_body_begin(&body, &head, 0);
        assert_int_equal(http1_body_next(&body, b.p, b.n, &data, &used), over ? HTTP1_TRAILER_TOO_LARGE : HTTP1_OK);
    }
    /* a fault is for good, also for bytes that would have been right */
    http1_body_begin(&body, &head, 10);
    assert_int_equal(http1_body_next(&body, (const uint8_t *)"x", 1, &data, &used), HTTP1_BAD_CHUNK);
    assert_int_equal(http1_body_next(&body, (const uint8_t *)"0\r\n\r\n", 5, &data, &used), HTTP1_BAD_CHUNK);
    assert_int_equal(http1_body_end(&body), HTTP1_BAD_CHUNK);
}

static const struct str browser = L("POST http://api.example:8080/v1?q=1 HTTP/1.1\r\nHost: evil.example\r\nAccept: */*\r\n"
    "Connection: close, X-Mine\r\nX-Mine: 1\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic c2VjcmV0\r\n"
    "TE: trailers\r\nTrailer: X\r\nKeep-Alive: 5\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\nAuthorization: Bearer old\r\n"
    "Content-Length: 3\r\nCookie: a=b\r\n\r\n");

static void
writes_request(void **state)
{
    static const struct str drop[] = { L("authorization") };
    static const struct http1_add add[] = { { L("Authorization"), L("Bearer new") } };
    struct buf cleanup_buf b = BUF_INIT(4096);
    struct http1_head head;
    struct http1_request_out req;

    (void)state;
    assert_int_equal(http1_parse_request((const uint8_t *)browser.p, browser.n, &head), HTTP1_OK);
    req = (struct http1_request_out){
        .out = { .from = &head, .drop = drop, .n_drop = 1, .add = add, .n_add = 1, .framing = HTTP1_BODY_CHUNKED },
        .method = head.method, .form = HTTP1_ORIGIN, .scheme = head.scheme, .host = head.authority.host,
        .port = head.authority.port, .path = head.path, .query = head.query,
    };
    assert_int_equal(http1_write_request(&b, &req), 0);
    buf_nul(&b);
    assert_string_equal((char *)b.p, "POST /v1?q=1 HTTP/1.1\r\nHost: api.example:8080\r\nAccept: */*\r\nCookie: a=b\r\n"
                                     "Authorization: Bearer new\r\nTransfer-Encoding: chunked\r\n\r\n");
    /* what is hop-by-hop by its name is dropped also where nobody marked it so */
    for (size_t i = 0; i < head.n_fields; i++)
        head.fields[i].hop = http1_equal(head.fields[i].name, (struct str)L("X-Mine"));
    buf_reset(&b);
    assert_int_equal(http1_write_request(&b, &req), 0);
    buf_nul(&b);
    assert_null(strstr((char *)b.p, "onnection"));
    assert_null(strstr((char *)b.p, "c2VjcmV0"));
    buf_reset(&b);
    req.form = HTTP1_ABSOLUTE;
    req.host = (struct str)L("2001:db8::1");
    req.port = 80;
    req.path = (struct str)L("");
    req.out = (struct http1_out){ .framing = HTTP1_BODY_LENGTH, .body_length = UINT64_MAX, .connection = HTTP1_CONN_CLOSE };
    assert_int_equal(http1_write_request(&b, &req), 0);
    buf_nul(&b);
    assert_string_equal((char *)b.p, "POST http://[2001:db8::1]/?q=1 HTTP/1.1\r\nHost: [2001:db8::1]\r\n"
                                     "Content-Length: 18446744073709551615\r\nConnection: close\r\n\r\n");
    buf_reset(&b);
    req = (struct http1_request_out){ .method = L("CONNECT"), .form = HTTP1_AUTHORITY, .scheme = HTTP1_SCHEME_HTTPS,
                                      .host = L("a.example"), .port = 443 };
    assert_int_equal(http1_write_request(&b, &req), 0);
    buf_nul(&b);
    assert_string_equal((char *)b.p, "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n");
    buf_reset(&b);
    req = (struct http1_request_out){ .out = { .upgrade = L("websocket") }, .method = L("GET"), .form = HTTP1_ORIGIN,
                                      .scheme = HTTP1_SCHEME_HTTPS, .host = L("10.0.0.1"), .port = 443, .path = L("/") };
    assert_int_equal(http1_write_request(&b, &req), 0);
    buf_nul(&b);
    assert_string_equal((char *)b.p, "GET / HTTP/1.1\r\nHost: 10.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
}

static void
refuses_to_write(void **state)
{
    static const struct {
        struct str method, host, path, query, name, value;
        enum http1_form form;
        uint16_t port;
    } rows[] = {
        { L("GET"), L("a.example"), L("/"), L(""), L("X"), L("a\r\nY: b"), HTTP1_ORIGIN, 80 },
        { L("GET"), L("a.example"), L("/"), L(""), L("X"), L("a\nb"), HTTP1_ORIGIN, 80 },
        { L("GET"), L("a.example"), L("/"), L(""), L("X"), L("a\0b"), HTTP1_ORIGIN, 80 },
        { L("GET"), L("a.example"), L("/"), L(""), L("X:"), L("a"), HTTP1_ORIGIN, 80 },
        { L("GET"), L("a.example"), L("/"), L(""), L("X Y"), L("a"), HTTP1_ORIGIN, 80 },
        { L("GET"), L("a.example"), L("/"), L(""), L(""), L("a"), HTTP1_ORIGIN, 80 },
        { L("GET"), L("a.example"), L("/"), L(""), L("host"), L("b.example"), HTTP1_ORIGIN, 80 },
        { L("GET"), L("a.example"), L("/"), L(""), L("Content-Length"), L("5"), HTTP1_ORIGIN, 80 },
        { L("GET"), L("a.example"), L("/"), L(""), L("Transfer-Encoding"), L("chunked"), HTTP1_ORIGIN, 80 },
        { L("GET"), L("a.example"), L("/"), L(""), L("Connection"), L("close"), HTTP1_ORIGIN, 80 },
        { L("G ET"), L("a.example"), L("/"), L(""), L("X"), L("a"), HTTP1_ORIGIN, 80 },
        { L(""), L("a.example"), L("/"), L(""), L("X"), L("a"), HTTP1_ORIGIN, 80 },
        { L("PRI"), L("a.example"), L("/"), L(""), L("X"), L("a"), HTTP1_ORIGIN, 80 },
        { L("CONNECT"), L("a.example"), L("/"), L(""), L("X"), L("a"), HTTP1_ORIGIN, 80 },
        { L("GET"), L("a.example"), L(""), L(""), L("X"), L("a"), HTTP1_AUTHORITY, 80 },
        { L("GET"), L("a.example"), L(""), L(""), L("X"), L("a"), HTTP1_ASTERISK, 80 },
        { L("GET"), L("a.example"), L("/"), L(""), L("X"), L("a"), HTTP1_FORM_NONE, 80 },
        { L("GET"), L("a.example\r\nX: y"), L("/"), L(""), L("X"), L("a"), HTTP1_ORIGIN, 80 },
        { L("GET"), L("u@a.example"), L("/"), L(""), L("X"), L("a"), HTTP1_ORIGIN, 80 },
        { L("GET"), L("a.example:81"), L("/"), L(""), L("X"), L("a"), HTTP1_ORIGIN, 80 },
        { L("GET"), L("[::1]"), L("/"), L(""), L("X"), L("a"), HTTP1_ORIGIN, 80 },
        { L("GET"), L(""), L("/"), L(""), L("X"), L("a"), HTTP1_ORIGIN, 80 },
        { L("GET"), L("a.example"), L("/"), L(""), L("X"), L("a"), HTTP1_ORIGIN, 0 },
        { L("GET"), L("a.example"), L("/ HTTP/1.1\r\n"), L(""), L("X"), L("a"), HTTP1_ORIGIN, 80 },
        { L("GET"), L("a.example"), L("x"), L(""), L("X"), L("a"), HTTP1_ORIGIN, 80 },
        { L("GET"), L("a.example"), L("/#"), L(""), L("X"), L("a"), HTTP1_ORIGIN, 80 },
        { L("GET"), L("a.example"), L("/?"), L(""), L("X"), L("a"), HTTP1_ORIGIN, 80 },
        { L("GET"), L("a.example"), L("/"), L("a"), L("X"), L("a"), HTTP1_ORIGIN, 80 },
        { L("GET"), L("a.example"), L("/"), L("?%"), L("X"), L("a"), HTTP1_ORIGIN, 80 },
    };
    struct buf cleanup_buf b = BUF_INIT(4096);

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct http1_add add = { rows[i].name, rows[i].value };
        struct http1_request_out req = {
            .out = { .add = &add, .n_add = 1 }, .method = rows[i].method, .form = rows[i].form, .scheme = HTTP1_SCHEME_HTTP,
            .host = rows[i].host, .port = rows[i].port, .path = rows[i].path, .query = rows[i].query,
        };
        buf_reset(&b);
        buf_puts(&b, "kept");
        if (http1_write_request(&b, &req) != -1)
            fail_msg("row %zu was written: %.*s", i, (int)b.n, (char *)b.p);
        assert_int_equal(b.n, 4);
        assert_true(buf_ok(&b));
    }
}

static void
writes_response(void **state)
{
    static const struct { unsigned status; const char *method; enum http1_framing framing; enum http1_connection connection; int want; } rows[] = {
        { 200, "GET", HTTP1_BODY_LENGTH, HTTP1_CONN_DEFAULT, 0 },     { 200, "GET", HTTP1_BODY_NONE, HTTP1_CONN_DEFAULT, -1 },
        { 200, "HEAD", HTTP1_BODY_NONE, HTTP1_CONN_DEFAULT, 0 },      { 204, "GET", HTTP1_BODY_NONE, HTTP1_CONN_DEFAULT, 0 },
        { 204, "GET", HTTP1_BODY_LENGTH, HTTP1_CONN_DEFAULT, -1 },    { 204, "GET", HTTP1_BODY_UNTIL_CLOSE, HTTP1_CONN_CLOSE, -1 },
        { 304, "GET", HTTP1_BODY_NONE, HTTP1_CONN_DEFAULT, 0 },       { 100, "GET", HTTP1_BODY_CHUNKED, HTTP1_CONN_DEFAULT, -1 },
        { 200, "CONNECT", HTTP1_BODY_NONE, HTTP1_CONN_DEFAULT, 0 },   { 200, "CONNECT", HTTP1_BODY_LENGTH, HTTP1_CONN_DEFAULT, -1 },
        { 403, "CONNECT", HTTP1_BODY_NONE, HTTP1_CONN_DEFAULT, -1 },  { 403, "CONNECT", HTTP1_BODY_LENGTH, HTTP1_CONN_CLOSE, 0 },
        { 200, "GET", HTTP1_BODY_UNTIL_CLOSE, HTTP1_CONN_CLOSE, 0 },  { 200, "GET", HTTP1_BODY_UNTIL_CLOSE, HTTP1_CONN_DEFAULT, -1 },
        { 99, "GET", HTTP1_BODY_LENGTH, HTTP1_CONN_DEFAULT, -1 },     { 1000, "GET", HTTP1_BODY_LENGTH, HTTP1_CONN_DEFAULT, -1 },
    };
    static const struct str raw = L("HTTP/1.1 200 Fine\r\nSet-Cookie: a\r\nContent-Length: 3\r\nSet-Cookie: b\r\nKeep-Alive: 9\r\n"
                                    "Connection: X-Secret\r\nX-Secret: s\r\nProxy-Authenticate: Basic\r\n\r\n");
    struct buf cleanup_buf b = BUF_INIT(4096);
    struct http1_response_out res;
    struct http1_head head;

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        res = (struct http1_response_out){ .out = { .framing = rows[i].framing, .connection = rows[i].connection },
                                           .status = rows[i].status, .reason = L("x"), .method = str_of(rows[i].method) };
        if (http1_write_response(&b, &res) != rows[i].want)
            fail_msg("row %zu", i);
    }
    res.status = 200;
    res.reason = (struct str)L("x\r\nSet-Cookie: y");
    assert_int_equal(http1_write_response(&b, &res), -1);
    buf_reset(&b);
    assert_int_equal(http1_parse_response((const uint8_t *)raw.p, raw.n, str_of("GET"), &head), HTTP1_OK);
    res = (struct http1_response_out){ .out = { .from = &head, .framing = head.framing, .body_length = head.body_length,
                                                .connection = HTTP1_CONN_KEEP_ALIVE },
                                       .status = head.status, .reason = head.reason, .method = L("GET") };
    assert_int_equal(http1_write_response(&b, &res), 0);
    buf_nul(&b);
    assert_string_equal((char *)b.p, "HTTP/1.1 200 Fine\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 3\r\n"
                                     "Connection: keep-alive\r\n\r\n");
}

static void
writes_chunks(void **state)
{
    struct buf cleanup_buf b = BUF_INIT(40), tight = BUF_INIT(8);

    (void)state;
    assert_int_equal(http1_write_chunk(&b, (struct str)L("hello, world, and all")), 0);
    assert_int_equal(http1_write_chunk(&b, (struct str)L("")), -1);
    assert_int_equal(http1_write_last_chunk(&b), 0);
    buf_nul(&b);
    assert_string_equal((char *)b.p, "15\r\nhello, world, and all\r\n0\r\n\r\n");
    assert_int_equal(http1_write_chunk(&tight, (struct str)L("hello")), -1);
    assert_int_equal(tight.n, 0);
    assert_false(buf_ok(&tight));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(body_rows),      cmocka_unit_test(body_splits),      cmocka_unit_test(body_ceilings),
        cmocka_unit_test(writes_request), cmocka_unit_test(refuses_to_write), cmocka_unit_test(writes_response),
        cmocka_unit_test(writes_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
