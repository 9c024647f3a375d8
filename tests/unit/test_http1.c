/* wire/http1: heads (R02, R13, R14): what is not plainly one message is refused, the same however it was cut into
 * packets; the payload classes are those of llhttp's request tests and of published smuggling findings */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "wire/http1.h"

#define N(a) ARRAY_LEN(a)
#define L(s) { s, sizeof(s) - 1 }
#define H "Host: a.example\r\n"
#define GET "GET / HTTP/1.1\r\n"
#define POST "POST / HTTP/1.1\r\n" H
#define TEC "Transfer-Encoding: chunked\r\n"

static enum http1_result
request(struct str raw, struct http1_head *head)
{
    return http1_parse_request((const uint8_t *)raw.p, raw.n, head);
}

static const struct { struct str raw; enum http1_result want; } refused[] = {
    /* request line: llhttp's invalid.md, method.md, uri.md */
    { L("\r\n" GET H "\r\n"), HTTP1_BAD_METHOD },
    { L("\n" GET H "\r\n"), HTTP1_BARE_LF },
    { L(" GET / HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_METHOD },
    { L("\0GET / HTTP/1.1\r\n" H "\r\n"), HTTP1_CONTROL_BYTE },
    { L("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), HTTP1_CONTROL_BYTE },     /* TLS on a plain port */
    { L("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), HTTP1_BAD_METHOD },                     /* h2c by prior knowledge */
    { L("SSH-2.0-OpenSSH_9.2\r\n"), HTTP1_BAD_METHOD },
    { L("G=\":<>(e),[T];?\" /get HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_METHOD },
    { L("GE\tT / HTTP/1.1\r\n" H "\r\n"), HTTP1_CONTROL_BYTE },
    { L("GET\t/ HTTP/1.1\r\n" H "\r\n"), HTTP1_CONTROL_BYTE },
    { L("G\xc3\x8bT / HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_METHOD },
    { L("GET\r\n" H "\r\n"), HTTP1_BAD_METHOD },
    { L("GET\r/ HTTP/1.1\r\n" H "\r\n"), HTTP1_BARE_CR },
    { L("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA / HTTP/1.1\r\n" H "\r\n"), HTTP1_METHOD_TOO_LONG },
    { L("GET  / HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_TARGET },
    { L("GET /  HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_VERSION },
    { L("GET / x HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_VERSION },
    { L("GET /\r\n"), HTTP1_BAD_VERSION },                                             /* HTTP/0.9 */
    { L("GET /\n"), HTTP1_BARE_LF },
    { L("GET /\nHTTP/1.1\r\n\r\n"), HTTP1_BARE_LF },
    { L("GET /\tHTTP/1.1\r\n" H "\r\n"), HTTP1_CONTROL_BYTE },
    { L("GET /\x0cHTTP/1.1\r\n" H "\r\n"), HTTP1_CONTROL_BYTE },
    { L("GET /a\0b HTTP/1.1\r\n" H "\r\n"), HTTP1_CONTROL_BYTE },
    { L("GET /a\x7f" "b HTTP/1.1\r\n" H "\r\n"), HTTP1_CONTROL_BYTE },
    { L("GET /\xc3\xa9 HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_TARGET },
    { L("GET ! HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_TARGET },
    { L("GET x/y HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_TARGET },
    { L("GET /a#frag HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_TARGET },
    { L("GET /?a#frag HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_TARGET },
    { L("GET /a\\..\\b HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_TARGET },
    { L("GET /a\"b HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_TARGET },
    { L("GET /a<b> HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_TARGET },
    { L("GET /100% HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_TARGET },
    { L("GET /%2 HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_TARGET },
    { L("GET /%zz HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_TARGET },
    { L("GET /?%u0041 HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_TARGET },
    { L("GET / http/1.1\r\n" H "\r\n"), HTTP1_BAD_VERSION },
    { L("GET / Http/1.1\r\n" H "\r\n"), HTTP1_BAD_VERSION },
    { L("GET / HTTP/0.9\r\n" H "\r\n"), HTTP1_BAD_VERSION },
    { L("GET / HTTP/1.2\r\n" H "\r\n"), HTTP1_BAD_VERSION },
    { L("GET / HTTP/1.32\r\n" H "\r\n"), HTTP1_BAD_VERSION },
    { L("GET / HTTP/1.10\r\n" H "\r\n"), HTTP1_BAD_VERSION },
    { L("GET / HTTP/01.1\r\n" H "\r\n"), HTTP1_BAD_VERSION },
    { L("GET / HTTP/1.01\r\n" H "\r\n"), HTTP1_BAD_VERSION },
    { L("GET / HTTP/2.0\r\n" H "\r\n"), HTTP1_BAD_VERSION },
    { L("GET / HTTP/5.6\r\n" H "\r\n"), HTTP1_BAD_VERSION },
    { L("GET / HTTP/11\r\n" H "\r\n"), HTTP1_BAD_VERSION },
    { L("GET / HTTP/1,1\r\n" H "\r\n"), HTTP1_BAD_VERSION },
    { L("GET / HTTP/\r\r1.1\r\n" H "\r\n"), HTTP1_BARE_CR },
    { L("GET / HTTP/1.1 \r\n" H "\r\n"), HTTP1_BAD_VERSION },
    { L("GET / HTTP/1.1\n" H "\r\n"), HTTP1_BARE_LF },
    { L("GET / HTTP/1.1\r" H "\r\n"), HTTP1_BARE_CR },
    { L("GET / ICE/1.0\r\n" H "\r\n"), HTTP1_BAD_VERSION },
    { L("GET / IHTTP/1.0\r\n" H "\r\n"), HTTP1_BAD_VERSION },
    { L("PUT / RTSP/1.0\r\n" H "\r\n"), HTTP1_BAD_VERSION },
    /* target forms */
    { L("CONNECT / HTTP/1.1\r\n" H "\r\n"), HTTP1_TARGET_FORM },
    { L("CONNECT * HTTP/1.1\r\n" H "\r\n"), HTTP1_TARGET_FORM },
    { L("CONNECT a.example HTTP/1.1\r\n" H "\r\n"), HTTP1_NO_PORT },
    { L("CONNECT a.example: HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_PORT },
    { L("CONNECT http://a.example:443 HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_PORT },
    { L("CONNECT a.example:443/ HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_PORT },
    { L("CONNECT a.example:443@evil.example:80 HTTP/1.1\r\n" H "\r\n"), HTTP1_USERINFO },
    { L("connect a.example:443 HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_TARGET },
    { L("GET a.example:443 HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_TARGET },
    { L("GET * HTTP/1.1\r\n" H "\r\n"), HTTP1_TARGET_FORM },
    { L("OPTIONS *x HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_TARGET },
    { L("GET ftp://a.example/ HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_TARGET },
    { L("GET http:/a.example/ HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_TARGET },
    { L("GET http:///path HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_HOST },
    { L("GET http://:80/ HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_HOST },
    { L("GET http://a.example@evil.example/ HTTP/1.1\r\n" H "\r\n"), HTTP1_USERINFO },
    { L("GET http://u:p@a.example/ HTTP/1.1\r\n" H "\r\n"), HTTP1_USERINFO },
    { L("GET http://a.example\\@evil.example/ HTTP/1.1\r\n" H "\r\n"), HTTP1_USERINFO },
    { L("GET http://a.example\\evil/ HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_HOST },
    { L("GET http://a.example#@evil.example/ HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_TARGET },
    { L("GET http://a%2eexample/ HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_HOST },
    { L("GET http://a%00.example/ HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_HOST },
    { L("GET http://[::1/ HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_HOST },
    { L("GET http://::1/ HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_HOST },
    { L("GET http://[::1]x/ HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_HOST },
    { L("GET http://[::1]]/ HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_HOST },
    { L("GET http://[127.0.0.1]/ HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_HOST },
    { L("GET http://[fe80::1%25eth0]/ HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_HOST },
    { L("GET http://[v1.x]/ HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_HOST },
    { L("GET http://[]/ HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_HOST },
    { L("GET http://a.example:0/ HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_PORT },
    { L("GET http://a.example:+80/ HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_PORT },
    { L("GET http://a.example:-1/ HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_PORT },
    { L("GET http://a.example:65536/ HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_PORT },
    { L("GET http://a.example:065535/ HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_PORT },
    { L("GET http://a.example:080/ HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_PORT },
    { L("GET http://a.example:0x50/ HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_PORT },
    { L("GET http://a.example:4294967376/ HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_PORT },
    { L("GET http://a.example:80:80/ HTTP/1.1\r\n" H "\r\n"), HTTP1_BAD_PORT },
    /* Host */
    { L(GET "\r\n"), HTTP1_NO_HOST },
    { L("GET http://a.example/ HTTP/1.1\r\n\r\n"), HTTP1_NO_HOST },
    { L("CONNECT a.example:443 HTTP/1.1\r\n\r\n"), HTTP1_NO_HOST },
    { L(GET "Host:\r\n\r\n"), HTTP1_BAD_HOST },
    { L("GET / HTTP/1.0\r\nHost: \r\n\r\n"), HTTP1_BAD_HOST },
    { L(GET H H "\r\n"), HTTP1_MANY_HOSTS },
    { L(GET H "hOST: b.example\r\n\r\n"), HTTP1_MANY_HOSTS },
    { L("GET / HTTP/1.0\r\n" H H "\r\n"), HTTP1_MANY_HOSTS },
    { L(GET "Host: a.example, b.example\r\n\r\n"), HTTP1_BAD_HOST },
    { L(GET "Host: a.example b.example\r\n\r\n"), HTTP1_BAD_HOST },
    { L(GET "Host: u@a.example\r\n\r\n"), HTTP1_USERINFO },
    { L(GET "Host: a.example/x\r\n\r\n"), HTTP1_BAD_HOST },
    { L(GET "Host: a.example?x\r\n\r\n"), HTTP1_BAD_HOST },
    { L(GET "Host: http://a.example\r\n\r\n"), HTTP1_BAD_PORT },
    { L(GET "Host: a.example:\r\n\r\n"), HTTP1_BAD_PORT },
    { L(GET "Host: a.example:80a\r\n\r\n"), HTTP1_BAD_PORT },
    { L(GET "Host: [::1\r\n\r\n"), HTTP1_BAD_HOST },
    { L(GET "Host: a\xc2\xad.example\r\n\r\n"), HTTP1_BAD_HOST },
    { L(GET "Host: a*.example\r\n\r\n"), HTTP1_BAD_HOST },
    { L(GET "Host: a.example\0.evil\r\n\r\n"), HTTP1_CONTROL_BYTE },
    /* lines and names */
    { L(GET " " H "\r\n"), HTTP1_LEADING_SPACE },
    { L(GET "\tContent-Length: 1\r\n\r\nX"), HTTP1_LEADING_SPACE },
    { L(GET "\x0b" H "\r\n"), HTTP1_CONTROL_BYTE },
    { L(GET H "X: a\r\n b\r\n\r\n"), HTTP1_OBS_FOLD },
    { L(GET H "X: a\r\n\tb\r\n\r\n"), HTTP1_OBS_FOLD },
    { L(GET H "X: a\r\n \r\n\r\n"), HTTP1_OBS_FOLD },
    { L(POST "Foo: bar\r\n Content-Length: 38\r\n\r\n"), HTTP1_OBS_FOLD },
    { L(GET H "Transfer-Encoding:\r\n chunked\r\n\r\n"), HTTP1_OBS_FOLD },
    { L(GET "name\r\n : value\r\n\r\n"), HTTP1_BAD_NAME },
    { L(GET H "no colon\r\n\r\n"), HTTP1_SPACE_BEFORE_COLON },
    { L(GET H "nocolon\r\n\r\n"), HTTP1_BAD_NAME },
    { L(GET "Host : a.example\r\n\r\n"), HTTP1_SPACE_BEFORE_COLON },
    { L(POST "Content-Length : 34\r\n\r\n"), HTTP1_SPACE_BEFORE_COLON },
    { L(POST "Content-Length\t: 34\r\n\r\n"), HTTP1_SPACE_BEFORE_COLON },
    { L(GET H ": ignored\r\n\r\n"), HTTP1_EMPTY_NAME },
    { L(GET H ":\r\n\r\n"), HTTP1_EMPTY_NAME },
    { L(GET "Fo@: Failure\r\n\r\n"), HTTP1_BAD_NAME },
    { L(GET "Foo\x01\\test: Bar\r\n\r\n"), HTTP1_CONTROL_BYTE },
    { L(GET "\xefoo: bar\r\n\r\n"), HTTP1_BAD_NAME },
    { L(GET "F\0oo: bar\r\n\r\n"), HTTP1_CONTROL_BYTE },
    { L(GET "\"Foo\": bar\r\n\r\n"), HTTP1_BAD_NAME },
    { L(GET "Fo(o): bar\r\n\r\n"), HTTP1_BAD_NAME },
    { L(GET H "Connection\r\033\065\325eep-Alive\r\n\r\n"), HTTP1_BARE_CR },
    { L(GET H "X: 1\rBar: 2\r\n\r\n"), HTTP1_BARE_CR },
    { L(GET H "Visible: :/\rSmuggled: :)\r\n\r\n"), HTTP1_BARE_CR },
    { L(GET H "X: v\x00\ralue\r\n\r\n"), HTTP1_CONTROL_BYTE },
    { L(GET H "X: a\nTransfer-Encoding: chunked\r\n\r\n"), HTTP1_BARE_LF },
    { L(GET H "X:\nTransfer-Encoding: chunked\r\n\r\n"), HTTP1_BARE_LF },
    { L(GET H "X:\rTransfer-Encoding: chunked\r\n\r\n"), HTTP1_BARE_CR },
    { L(GET H "X: a\r\r\n\r\n"), HTTP1_BARE_CR },
    { L(GET H "X: a\x08\r\n\r\n"), HTTP1_CONTROL_BYTE },
    { L(GET H "X: a\x7f\r\n\r\n"), HTTP1_CONTROL_BYTE },
    { L(GET H "\n"), HTTP1_BARE_LF },
    { L(GET H "\rZGET /evil: HTTP/1.1\r\n" H "\r\n"), HTTP1_BARE_CR },
    { L("POST / HTTP/1.1\nTransfer-Encoding: chunked\n\n"), HTTP1_BARE_LF },
    /* Content-Length: content-length.md, TROPHIES 10 and 16 */
    { L(POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\n"), HTTP1_MANY_LENGTHS },
    { L(POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n"), HTTP1_MANY_LENGTHS },
    { L(POST "Content-Length: 0\r\ncontent-length: 0\r\n\r\n"), HTTP1_MANY_LENGTHS },
    { L(POST "Content-Length: 5, 5\r\n\r\n"), HTTP1_BAD_LENGTH },
    { L(POST "Content-Length: 5,\r\n\r\n"), HTTP1_BAD_LENGTH },
    { L(POST "Content-Length:\r\n\r\n"), HTTP1_BAD_LENGTH },
    { L(POST "Content-Length:   \r\n\r\n"), HTTP1_BAD_LENGTH },
    { L(POST "Content-Length: +5\r\n\r\n"), HTTP1_BAD_LENGTH },
    { L(POST "Content-Length: -5\r\n\r\n"), HTTP1_BAD_LENGTH },
    { L(POST "Content-Length: -0\r\n\r\n"), HTTP1_BAD_LENGTH },
    { L(POST "Content-Length: 1_0\r\n\r\n"), HTTP1_BAD_LENGTH },
    { L(POST "Content-Length: 0x5\r\n\r\n"), HTTP1_BAD_LENGTH },
    { L(POST "Content-Length: 5.0\r\n\r\n"), HTTP1_BAD_LENGTH },
    { L(POST "Content-Length: 4 2\r\n\r\n"), HTTP1_BAD_LENGTH },
    { L(POST "Content-Length: 13 37\r\n\r\n"), HTTP1_BAD_LENGTH },
    { L(POST "Content-Length: 5;a=b\r\n\r\n"), HTTP1_BAD_LENGTH },
    { L(POST "Content-Length: \"5\"\r\n\r\n"), HTTP1_BAD_LENGTH },
    { L(POST "Content-Length: 5\xa0\r\n\r\n"), HTTP1_BAD_LENGTH },
    { L(POST "Content-Length: \xef\xbc\x95\r\n\r\n"), HTTP1_BAD_LENGTH },
    { L(POST "Content-Length: 18446744073709551616\r\n\r\n"), HTTP1_BAD_LENGTH },
    { L(POST "Content-Length: 18446744073709551615\r\n\r\n"), HTTP1_BAD_LENGTH },   /* 20 digits */
    { L(POST "Content-Length: 00000000000000000005\r\n\r\n"), HTTP1_BAD_LENGTH },
    { L(POST "Content-Length: 5\t\r\n\r\n"), HTTP1_BAD_LENGTH },
    { L(POST "Content-Length: 5 \t \r\n\r\n"), HTTP1_BAD_LENGTH },
    { L(POST "Content-Length:\t5\r\n\r\n"), HTTP1_BAD_LENGTH },
    { L("PUT /url HTTP/1.1\r\n" H "Content\rLength: 1\r\n\r\n"), HTTP1_BARE_CR },
    /* Transfer-Encoding: transfer-encoding.md, TROPHIES 11 and 12 */
    { L(POST TEC "Content-Length: 5\r\n\r\n"), HTTP1_CODING_AND_LENGTH },
    { L(POST "Content-Length: 0\r\n" TEC "\r\n"), HTTP1_CODING_AND_LENGTH },
    { L(POST TEC TEC "\r\n"), HTTP1_BAD_CODING },
    { L(POST "Transfer-Encoding: chunked, identity\r\n\r\n"), HTTP1_BAD_CODING },
    { L(POST "Transfer-Encoding: identity, chunked\r\n\r\n"), HTTP1_BAD_CODING },
    { L(POST "Transfer-Encoding: gzip, chunked\r\n\r\n"), HTTP1_BAD_CODING },
    { L(POST "Transfer-Encoding: chunked, chunked\r\n\r\n"), HTTP1_BAD_CODING },
    { L(POST "Transfer-Encoding: chunked,\r\n\r\n"), HTTP1_BAD_CODING },
    { L(POST "Transfer-Encoding: ,chunked\r\n\r\n"), HTTP1_BAD_CODING },
    { L(POST "Transfer-Encoding: chunkedchunked\r\n\r\n"), HTTP1_BAD_CODING },
    { L(POST "Transfer-Encoding: xchunked\r\n\r\n"), HTTP1_BAD_CODING },
    { L(POST "Transfer-Encoding: chunked;q=1\r\n\r\n"), HTTP1_BAD_CODING },
    { L(POST "Transfer-Encoding: \"chunked\"\r\n\r\n"), HTTP1_BAD_CODING },
    { L(POST "Transfer-Encoding: chun ked\r\n\r\n"), HTTP1_BAD_CODING },
    { L(POST "Transfer-Encoding: \xa0" "chunked\xa0\r\n\r\n"), HTTP1_BAD_CODING },
    { L(POST "Transfer-Encoding: \x0b" "chunked\r\n\r\n"), HTTP1_CONTROL_BYTE },
    { L(POST "Transfer-Encoding:\r\n\r\n"), HTTP1_BAD_CODING },
    { L(POST "Transfer-Encoding: identity\r\n\r\n"), HTTP1_BAD_CODING },
    { L(POST "Transfer-Encoding: deflate\r\n\r\n"), HTTP1_BAD_CODING },
    { L(POST "Transfer-Encoding:\tchunked\r\n\r\n"), HTTP1_BAD_CODING },
    { L(POST "Transfer-Encoding: chunked\t\r\n\r\n"), HTTP1_BAD_CODING },
    { L(POST "Transfer-Encoding : chunked\r\n\r\n"), HTTP1_SPACE_BEFORE_COLON },
    { L("POST / HTTP/1.0\r\n" H TEC "\r\n"), HTTP1_CODING_IN_10 },
    { L("CONNECT a.example:80 HTTP/1.1\r\n" H TEC "\r\n"), HTTP1_UNEXPECTED_BODY },
    { L("CONNECT a.example:80 HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\n"), HTTP1_UNEXPECTED_BODY },
    /* Connection, Expect, Upgrade */
    { L(GET H "Connection: close, host\r\n\r\n"), HTTP1_BAD_CONNECTION },
    { L(POST "Connection: Content-Length\r\nContent-Length: 5\r\n\r\n"), HTTP1_BAD_CONNECTION },
    { L(POST "Connection: transfer-encoding\r\n" TEC "\r\n"), HTTP1_BAD_CONNECTION },
    { L(GET H "Connection: a b\r\n\r\n"), HTTP1_BAD_CONNECTION },
    { L(GET H "Connection: \"close\"\r\n\r\n"), HTTP1_BAD_CONNECTION },
    { L(GET H "Expect: 200-ok\r\n\r\n"), HTTP1_BAD_EXPECT },
    { L(GET H "Expect: 100-continue\r\nExpect: 100-continue\r\n\r\n"), HTTP1_BAD_EXPECT },
    { L(GET H "Expect:\r\n\r\n"), HTTP1_BAD_EXPECT },
    { L(GET H "Connection: upgrade\r\nUpgrade: a\r\nUpgrade: b\r\n\r\n"), HTTP1_BAD_CONNECTION },
    { L(GET H "Upgrade:\r\n\r\n"), HTTP1_BAD_CONNECTION },
};

static void
refused_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(refused); i++) {
        struct http1_head head;
        enum http1_result got = request(refused[i].raw, &head);
        if (got != refused[i].want)
            fail_msg("row %zu \"%s\": %s, want %s", i, refused[i].raw.p, http1_word(got), http1_word(refused[i].want));
        if (http1_answer(got) < 400)
            fail_msg("%s is answered with %u", http1_word(got), http1_answer(got));
    }
}

/* Cut anywhere, a refused head is MORE, then the same refusal: never accepted, never another reason. */
static void
refused_prefixes(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(refused); i++) {
        bool done = false;
        for (size_t n = 0; n <= refused[i].raw.n; n++) {
            struct http1_head head;
            uint8_t *copy = malloc(n + 1);     /* exactly n bytes may be read: sanitizers see one more */
            enum http1_result got;
            memcpy(copy, refused[i].raw.p, n);
            got = http1_parse_request(copy, n, &head);
            free(copy);
            if (got != refused[i].want && (done || got != HTTP1_MORE))
                fail_msg("row %zu, first %zu bytes: %s", i, n, http1_word(got));
            done = got == refused[i].want;
        }
    }
}

static const struct {
    struct str raw;
    enum http1_form form;
    const char *path, *query, *host;
    uint16_t port;
    enum http1_host_kind kind;
    enum http1_framing framing;
    uint64_t length;
    bool keep_alive;
    const char *upgrade;
} accepted[] = {
    { L(GET H "\r\n"), HTTP1_ORIGIN, "/", "", "a.example", 0, HTTP1_HOST_NAME, HTTP1_BODY_NONE, 0, true, "" },
    { L("GET /a/b?c=d&e=%20f?g HTTP/1.1\r\n" H "\r\n"), HTTP1_ORIGIN, "/a/b", "?c=d&e=%20f?g", "a.example", 0, HTTP1_HOST_NAME,
      HTTP1_BODY_NONE, 0, true, "" },
    { L("GET //evil.example/x HTTP/1.1\r\n" H "\r\n"), HTTP1_ORIGIN, "//evil.example/x", "", "a.example", 0, HTTP1_HOST_NAME,
      HTTP1_BODY_NONE, 0, true, "" },
    { L("GET /http://b.example/ HTTP/1.1\r\n" H "\r\n"), HTTP1_ORIGIN, "/http://b.example/", "", "a.example", 0, HTTP1_HOST_NAME,
      HTTP1_BODY_NONE, 0, true, "" },
    { L("GET /@scope%2fname/[x]|{y}^ HTTP/1.1\r\n" H "\r\n"), HTTP1_ORIGIN, "/@scope%2fname/[x]|{y}^", "", "a.example", 0,
      HTTP1_HOST_NAME, HTTP1_BODY_NONE, 0, true, "" },
    { L("GET /? HTTP/1.1\r\n" H "\r\n"), HTTP1_ORIGIN, "/", "?", "a.example", 0, HTTP1_HOST_NAME, HTTP1_BODY_NONE, 0, true, "" },
    { L("GET http://b.example/x?y HTTP/1.1\r\n" H "\r\n"), HTTP1_ABSOLUTE, "/x", "?y", "b.example", 80, HTTP1_HOST_NAME,
      HTTP1_BODY_NONE, 0, true, "" },
    { L("GET HTTP://b.example:8080 HTTP/1.1\r\n" H "\r\n"), HTTP1_ABSOLUTE, "", "", "b.example", 8080, HTTP1_HOST_NAME,
      HTTP1_BODY_NONE, 0, true, "" },
    { L("GET http://b.example?y HTTP/1.1\r\n" H "\r\n"), HTTP1_ABSOLUTE, "", "?y", "b.example", 80, HTTP1_HOST_NAME,
      HTTP1_BODY_NONE, 0, true, "" },
    { L("GET https://[2001:db8::1]/ HTTP/1.1\r\n" H "\r\n"), HTTP1_ABSOLUTE, "/", "", "2001:db8::1", 443, HTTP1_HOST_IPV6,
      HTTP1_BODY_NONE, 0, true, "" },
    { L("GET http://[::ffff:127.0.0.1]:81/ HTTP/1.1\r\n" H "\r\n"), HTTP1_ABSOLUTE, "/", "", "::ffff:127.0.0.1", 81,
      HTTP1_HOST_IPV6, HTTP1_BODY_NONE, 0, true, "" },
    { L("GET http://127.0.0.1/ HTTP/1.1\r\n" H "\r\n"), HTTP1_ABSOLUTE, "/", "", "127.0.0.1", 80, HTTP1_HOST_IPV4,
      HTTP1_BODY_NONE, 0, true, "" },
    { L("GET http://0x7f.1/ HTTP/1.1\r\n" H "\r\n"), HTTP1_ABSOLUTE, "/", "", "0x7f.1", 80, HTTP1_HOST_NAME,
      HTTP1_BODY_NONE, 0, true, "" },
    { L("CONNECT b.example:443 HTTP/1.1\r\n" H "\r\n"), HTTP1_AUTHORITY, "", "", "b.example", 443, HTTP1_HOST_NAME,
      HTTP1_BODY_NONE, 0, true, "" },
    { L("CONNECT [::1]:65535 HTTP/1.0\r\n\r\n"), HTTP1_AUTHORITY, "", "", "::1", 65535, HTTP1_HOST_IPV6, HTTP1_BODY_NONE, 0, false, "" },
    { L("CONNECT b.example:443 HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n"), HTTP1_AUTHORITY, "", "", "b.example", 443,
      HTTP1_HOST_NAME, HTTP1_BODY_LENGTH, 0, true, "" },
    { L("OPTIONS * HTTP/1.1\r\n" H "\r\n"), HTTP1_ASTERISK, "", "", "a.example", 0, HTTP1_HOST_NAME, HTTP1_BODY_NONE, 0, true, "" },
    { L("GET / HTTP/1.0\r\n\r\n"), HTTP1_ORIGIN, "/", "", "", 0, HTTP1_HOST_NONE, HTTP1_BODY_NONE, 0, false, "" },
    { L("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), HTTP1_ORIGIN, "/", "", "", 0, HTTP1_HOST_NONE, HTTP1_BODY_NONE, 0, true, "" },
    { L(GET "Host: A.Example:8080\r\n\r\n"), HTTP1_ORIGIN, "/", "", "A.Example", 8080, HTTP1_HOST_NAME, HTTP1_BODY_NONE, 0, true, "" },
    { L(GET "hOsT:\t[::1]:80 \t\r\n\r\n"), HTTP1_ORIGIN, "/", "", "::1", 80, HTTP1_HOST_IPV6, HTTP1_BODY_NONE, 0, true, "" },
    { L(POST "Content-Length: 5\r\n\r\n"), HTTP1_ORIGIN, "/", "", "a.example", 0, HTTP1_HOST_NAME, HTTP1_BODY_LENGTH, 5, true, "" },
    { L(POST "Content-Length:00042  \r\n\r\n"), HTTP1_ORIGIN, "/", "", "a.example", 0, HTTP1_HOST_NAME, HTTP1_BODY_LENGTH, 42, true, "" },
    { L(POST "Content-Length: 9999999999999999999\r\n\r\n"), HTTP1_ORIGIN, "/", "", "a.example", 0, HTTP1_HOST_NAME, HTTP1_BODY_LENGTH,
      9999999999999999999u, true, "" },
    { L(POST TEC "\r\n"), HTTP1_ORIGIN, "/", "", "a.example", 0, HTTP1_HOST_NAME, HTTP1_BODY_CHUNKED, 0, true, "" },
    { L(POST "transfer-encoding:CHUNKED\r\nConnection: close\r\n\r\n"), HTTP1_ORIGIN, "/", "", "a.example", 0, HTTP1_HOST_NAME,
      HTTP1_BODY_CHUNKED, 0, false, "" },
    { L(GET H "Connection: keep-alive , Close\r\n\r\n"), HTTP1_ORIGIN, "/", "", "a.example", 0, HTTP1_HOST_NAME, HTTP1_BODY_NONE, 0, false, "" },
    { L(GET H "X:\r\nY: \xc3\xa9\t~\r\n\r\n"), HTTP1_ORIGIN, "/", "", "a.example", 0, HTTP1_HOST_NAME, HTTP1_BODY_NONE, 0, true, "" },
    { L(GET H "Connection: foo, Upgrade\r\nUpgrade: websocket\r\n\r\n"), HTTP1_ORIGIN, "/", "", "a.example", 0, HTTP1_HOST_NAME,
      HTTP1_BODY_NONE, 0, true, "websocket" },
    { L(GET H "Upgrade: websocket\r\n\r\n"), HTTP1_ORIGIN, "/", "", "a.example", 0, HTTP1_HOST_NAME, HTTP1_BODY_NONE, 0, true, "" },
    { L("GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"), HTTP1_ORIGIN, "/", "", "", 0, HTTP1_HOST_NONE, HTTP1_BODY_NONE, 0,
      false, "" },
    { L("QUERY*x! /a HTTP/1.1\r\n" H "\r\n"), HTTP1_ORIGIN, "/a", "", "a.example", 0, HTTP1_HOST_NAME, HTTP1_BODY_NONE, 0, true, "" },
};

static void
accepted_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(accepted); i++) {
        struct http1_head h;
        enum http1_result got = request(accepted[i].raw, &h);
        if (got != HTTP1_OK)
            fail_msg("\"%s\": %s", accepted[i].raw.p, http1_word(got));
        assert_int_equal(h.length, accepted[i].raw.n);
        if (h.form != accepted[i].form || h.framing != accepted[i].framing || h.body_length != accepted[i].length ||
            h.authority.kind != accepted[i].kind || h.authority.port != accepted[i].port || h.keep_alive != accepted[i].keep_alive)
            fail_msg("\"%s\": form %d, framing %d, kind %d, port %u", accepted[i].raw.p, h.form, h.framing,
                     h.authority.kind, h.authority.port);
        assert_true(str_eq_c(h.path, accepted[i].path));
        assert_true(str_eq_c(h.query, accepted[i].query));
        assert_true(str_eq_c(h.authority.host, accepted[i].host));
        assert_true(str_eq_c(h.upgrade, accepted[i].upgrade));
    }
}

static bool
same_slice(struct str a, const void *base_a, struct str b, const void *base_b)
{
    return a.n == b.n && (a.n == 0 || a.p - (const char *)base_a == b.p - (const char *)base_b);
}

/* A valid head, cut anywhere, is MORE until its last byte, and what follows it changes nothing (pipelining, a body). */
static void
accepted_splits(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(accepted); i++) {
        struct str raw = accepted[i].raw;
        struct http1_head head, more;
        char *longer = malloc(raw.n + 20);
        for (size_t n = 0; n < raw.n; n++)
            if (request((struct str){ raw.p, n }, &head) != HTTP1_MORE)
                fail_msg("row %zu, first %zu bytes: not MORE", i, n);
        memcpy(longer, raw.p, raw.n);
        memcpy(longer + raw.n, "\0\r\n \nGET /x HTTP/1.1", 20);
        assert_int_equal(request(raw, &head), HTTP1_OK);
        assert_int_equal(request((struct str){ longer, raw.n + 20 }, &more), HTTP1_OK);
        assert_int_equal(head.length, more.length);
        assert_int_equal(head.n_fields, more.n_fields);
        assert_true(same_slice(head.target, raw.p, more.target, longer));
        for (size_t f = 0; f < head.n_fields; f++) {
            assert_true(same_slice(head.fields[f].name, raw.p, more.fields[f].name, longer));
            assert_true(same_slice(head.fields[f].value, raw.p, more.fields[f].value, longer));
        }
        free(longer);
    }
}

/* Arriving byte by byte, a head is parsed once per line and once at its ends, not once per byte. */
static void
trickle(void **state)
{
    static const char raw[] = POST "A: 1\r\nB: 2\r\nContent-Length: 3\r\n\r\n";
    size_t seen = 0, tries = 0;
    enum http1_result got = HTTP1_MORE;
    struct http1_head head;

    (void)state;
    for (size_t n = 1; n < sizeof(raw) && got == HTTP1_MORE; n++) {
        if (!http1_worth_parsing((const uint8_t *)raw, n, seen, HTTP1_HEAD_MAX))
            continue;
        got = request((struct str){ raw, n }, &head);
        seen = n;
        tries++;
    }
    assert_int_equal(got, HTTP1_OK);
    assert_int_equal(tries, 1 + 6);
    assert_false(http1_worth_parsing((const uint8_t *)raw, 5, 5, HTTP1_HEAD_MAX));
    assert_true(http1_worth_parsing((const uint8_t *)raw, 5, 4, 5));
}

/* Every byte value in every kind of place, against the grammar written another way. */
static bool
is_tchar(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != 0 && c < 0x80 && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static void
every_byte(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        char method[] = "A?T / HTTP/1.1\r\n" H "\r\n", name[] = GET H "N?me: x\r\n\r\n";
        char value[] = GET H "Name: x?y\r\n\r\n", path[] = "GET /?/ HTTP/1.1\r\n" H "\r\n", host[] = GET "Host: a?b\r\n\r\n";
        bool alnum = is_tchar(c) && strchr("!#$%&'*+-.^_`|~", c) == NULL;
        bool pchar = alnum || (c > ' ' && c < 0x7f && strchr("-._~!$&'()*+,;=:@/?[]^{|}", c) != NULL);
        struct http1_head head;
        method[1] = (char)c;
        strchr(name, '?')[0] = strchr(value, '?')[0] = strchr(path, '?')[0] = strchr(host, '?')[0] = (char)c;
        /* "A T" is a method and a bad target; "N:me" a shorter name */
        assert_int_equal(request((struct str){ method, sizeof(method) - 1 }, &head) == HTTP1_OK, is_tchar(c));
        assert_int_equal(request((struct str){ name, sizeof(name) - 1 }, &head) == HTTP1_OK, is_tchar(c) || c == ':');
        assert_int_equal(request((struct str){ value, sizeof(value) - 1 }, &head) == HTTP1_OK,
                         c == '\t' || (c >= ' ' && c != 0x7f));
        assert_int_equal(request((struct str){ path, sizeof(path) - 1 }, &head) == HTTP1_OK, pchar);
        assert_int_equal(request((struct str){ host, sizeof(host) - 1 }, &head) == HTTP1_OK,
                         alnum || (c != 0 && strchr("-._", c) != NULL));
    }
}

static const struct { struct str raw; const char *method; enum http1_result want; enum http1_framing framing; uint64_t length;
                      bool keep_alive, tunnel; } responses[] = {
    { L("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"), "GET", HTTP1_OK, HTTP1_BODY_LENGTH, 3, true, false },
    { L("HTTP/1.1 200 OK\r\n" TEC "\r\n"), "GET", HTTP1_OK, HTTP1_BODY_CHUNKED, 0, true, false },
    { L("HTTP/1.1 200 OK\r\n\r\n"), "GET", HTTP1_OK, HTTP1_BODY_UNTIL_CLOSE, 0, false, false },
    { L("HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\n"), "GET", HTTP1_OK, HTTP1_BODY_LENGTH, 3, false, false },
    { L("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n"), "GET", HTTP1_OK, HTTP1_BODY_LENGTH, 0, true, false },
    { L("HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n"), "GET", HTTP1_OK, HTTP1_BODY_LENGTH, 0, true, false },
    { L("HTTP/1.1 404 N\xc3\xb6t \tf\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), "GET", HTTP1_OK, HTTP1_BODY_LENGTH, 0, false, false },
    { L("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"), "HEAD", HTTP1_OK, HTTP1_BODY_NONE, 0, true, false },
    { L("HTTP/1.1 200 OK\r\n" TEC "\r\n"), "HEAD", HTTP1_OK, HTTP1_BODY_NONE, 0, true, false },
    { L("HTTP/1.1 304 N\r\nContent-Length: 3\r\n\r\n"), "GET", HTTP1_OK, HTTP1_BODY_NONE, 0, true, false },
    { L("HTTP/1.1 204 N\r\n\r\n"), "GET", HTTP1_OK, HTTP1_BODY_NONE, 0, true, false },
    { L("HTTP/1.1 204 N\r\nContent-Length: 0\r\n\r\n"), "GET", HTTP1_OK, HTTP1_BODY_NONE, 0, true, false },
    { L("HTTP/1.1 204 N\r\nContent-Length: 3\r\n\r\n"), "GET", HTTP1_UNEXPECTED_BODY, 0, 0, false, false },
    { L("HTTP/1.1 204 N\r\n" TEC "\r\n"), "GET", HTTP1_UNEXPECTED_BODY, 0, 0, false, false },
    { L("HTTP/1.1 204 N\r\n" TEC "\r\n"), "HEAD", HTTP1_UNEXPECTED_BODY, 0, 0, false, false },
    { L("HTTP/1.1 100 Continue\r\n\r\n"), "POST", HTTP1_OK, HTTP1_BODY_NONE, 0, true, false },
    { L("HTTP/1.1 103 Early\r\nLink: x\r\n\r\n"), "GET", HTTP1_OK, HTTP1_BODY_NONE, 0, true, false },
    { L("HTTP/1.1 100 C\r\nContent-Length: 3\r\n\r\n"), "POST", HTTP1_UNEXPECTED_BODY, 0, 0, false, false },
    { L("HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"), "GET", HTTP1_OK, HTTP1_BODY_NONE, 0, true, true },
    { L("HTTP/1.1 200 Yes\r\nContent-Length: 9\r\n\r\n"), "CONNECT", HTTP1_OK, HTTP1_BODY_NONE, 0, true, true },
    { L("HTTP/1.1 200 Yes\r\n" TEC "\r\n"), "CONNECT", HTTP1_OK, HTTP1_BODY_NONE, 0, true, true },
    { L("HTTP/1.1 407 No\r\nContent-Length: 9\r\n\r\n"), "CONNECT", HTTP1_OK, HTTP1_BODY_LENGTH, 9, true, false },
    { L("HTTP/1.1 999 Odd\r\nContent-Length: 9\r\n\r\n"), "GET", HTTP1_OK, HTTP1_BODY_LENGTH, 9, true, false },
    { L("HTTP/1.1 099 Odd\r\n\r\n"), "GET", HTTP1_BAD_STATUS, 0, 0, false, false },
    { L("HTTP/1.1 20 OK\r\n\r\n"), "GET", HTTP1_BAD_STATUS, 0, 0, false, false },
    { L("HTTP/1.1 2000 OK\r\n\r\n"), "GET", HTTP1_BAD_STATUS, 0, 0, false, false },
    { L("HTTP/1.1 +20 OK\r\n\r\n"), "GET", HTTP1_BAD_STATUS, 0, 0, false, false },
    { L("HTTP/1.1  200 OK\r\n\r\n"), "GET", HTTP1_BAD_STATUS, 0, 0, false, false },
    { L("HTTP/1.1 200\tOK\r\n\r\n"), "GET", HTTP1_CONTROL_BYTE, 0, 0, false, false },
    { L("HTTP/1.1 200 O\0K\r\n\r\n"), "GET", HTTP1_CONTROL_BYTE, 0, 0, false, false },
    { L("HTTP/1.1 200 O\rK\r\n\r\n"), "GET", HTTP1_BARE_CR, 0, 0, false, false },
    { L("HTTP/1.1 200 OK\n\r\n"), "GET", HTTP1_BARE_LF, 0, 0, false, false },
    { L("HTTP/1.1\r\n\r\n"), "GET", HTTP1_BAD_VERSION, 0, 0, false, false },
    { L("HTTP/2 200\r\n\r\n"), "GET", HTTP1_BAD_VERSION, 0, 0, false, false },
    { L("http/1.1 200 OK\r\n\r\n"), "GET", HTTP1_BAD_VERSION, 0, 0, false, false },
    { L("ICY 200 OK\r\n\r\n"), "GET", HTTP1_BAD_VERSION, 0, 0, false, false },
    { L("<html>hello"), "GET", HTTP1_BAD_VERSION, 0, 0, false, false },
    { L("HTTP/1.1 200 OK\r\n" TEC "Content-Length: 3\r\n\r\n"), "GET", HTTP1_CODING_AND_LENGTH, 0, 0, false, false },
    { L("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n"), "GET", HTTP1_MANY_LENGTHS, 0, 0, false, false },
    { L("HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\n"), "HEAD", HTTP1_BAD_LENGTH, 0, 0, false, false },
    { L("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"), "GET", HTTP1_BAD_CODING, 0, 0, false, false },
    { L("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n"), "GET", HTTP1_BAD_CODING, 0, 0, false, false },
    { L("HTTP/1.0 200 OK\r\n" TEC "\r\n"), "GET", HTTP1_CODING_IN_10, 0, 0, false, false },
    { L("HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n"), "GET", HTTP1_OBS_FOLD, 0, 0, false, false },
    { L("HTTP/1.1 200 OK\r\n X: a\r\n\r\n"), "GET", HTTP1_LEADING_SPACE, 0, 0, false, false },
    { L("HTTP/1.1 200 OK\r\nX : a\r\n\r\n"), "GET", HTTP1_SPACE_BEFORE_COLON, 0, 0, false, false },
    { L("HTTP/1.1 200 OK\r\nConnection: content-length\r\nContent-Length: 2\r\n\r\n"), "GET", HTTP1_BAD_CONNECTION, 0, 0, false, false },
};

static void
response_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(responses); i++) {
        struct str raw = responses[i].raw, method = str_of(responses[i].method);
        struct http1_head h;
        enum http1_result got;
        for (size_t n = 0; n < raw.n; n++) {
            got = http1_parse_response((const uint8_t *)raw.p, n, method, &h);
            if (got != HTTP1_MORE && (got != responses[i].want || got == HTTP1_OK))
                fail_msg("row %zu, first %zu bytes: %s", i, n, http1_word(got));
        }
        got = http1_parse_response((const uint8_t *)raw.p, raw.n, method, &h);
        if (got != responses[i].want)
            fail_msg("row %zu \"%s\": %s, want %s", i, raw.p, http1_word(got), http1_word(responses[i].want));
        if (got != HTTP1_OK)
            continue;
        if (h.framing != responses[i].framing || h.body_length != responses[i].length ||
            h.keep_alive != responses[i].keep_alive || h.tunnel != responses[i].tunnel)
            fail_msg("row %zu \"%s\": framing %d", i, raw.p, h.framing);
    }
}

/* One byte or field within each ceiling is taken, one beyond is refused. */
static void
ceilings(void **state)
{
    struct buf cleanup_buf b = BUF_INIT(HTTP1_HEAD_MAX * 2);
    struct http1_head head;

    (void)state;
    for (size_t over = 0; over < 2; over++) {
        buf_reset(&b);
        buf_puts(&b, GET H "X: ");
        while (b.n + 4 < HTTP1_HEAD_MAX + over)
            buf_put_u8(&b, 'x');
        buf_puts(&b, "\r\n\r\n");
        assert_int_equal(http1_parse_request(b.p, b.n, &head), over ? HTTP1_HEAD_TOO_LARGE : HTTP1_OK);
        assert_int_equal(http1_parse_request(b.p, HTTP1_HEAD_MAX - 1, &head), HTTP1_MORE);
        assert_int_equal(http1_parse_request_max(b.p, b.n, 1000, &head), HTTP1_HEAD_TOO_LARGE);
        assert_int_equal(http1_parse_request_max(b.p, b.n, SIZE_MAX, &head), over ? HTTP1_HEAD_TOO_LARGE : HTTP1_OK);
        buf_reset(&b);
        buf_puts(&b, GET H);
        for (size_t i = 1; i < HTTP1_FIELDS_MAX + over; i++)
            buf_puts(&b, "a:\r\n");
        buf_puts(&b, "\r\n");
        assert_int_equal(http1_parse_request(b.p, b.n, &head), over ? HTTP1_TOO_MANY_FIELDS : HTTP1_OK);
        buf_reset(&b);
        buf_puts(&b, "GET /");
        while (b.n < 4 + HTTP1_TARGET_MAX + over)
            buf_put_u8(&b, 'x');
        buf_puts(&b, " HTTP/1.1\r\n" H "\r\n");
        assert_int_equal(http1_parse_request(b.p, b.n, &head), over ? HTTP1_TARGET_TOO_LONG : HTTP1_OK);
        buf_reset(&b);
        buf_puts(&b, GET H "Connection: x");
        for (size_t i = 1; i < HTTP1_OPTIONS_MAX + over; i++)
            buf_puts(&b, ",x");
        buf_puts(&b, "\r\n\r\n");
        assert_int_equal(http1_parse_request(b.p, b.n, &head), over ? HTTP1_BAD_CONNECTION : HTTP1_OK);
        buf_reset(&b);
        buf_puts(&b, GET "Host: ");
        for (size_t i = 0; i < HTTP1_HOST_MAX + over; i++)
            buf_put_u8(&b, 'x');
        buf_puts(&b, "\r\n\r\n");
        assert_int_equal(http1_parse_request(b.p, b.n, &head), over ? HTTP1_BAD_HOST : HTTP1_OK);
    }
}

static void
fields_and_lists(void **state)
{
    static const struct str raw = L(GET H "Connection: X-Drop, TE\r\nx-drop: 1\r\nTE: trailers\r\nAccept: a, ,b ,\tc\r\n"
                                    "ACCEPT: d\r\nProxy-Authorization: Basic eA==\r\nTrailer: x\r\nKeep-Alive: 5\r\n\r\n");
    static const bool hop[] = { false, true, true, true, false, false, true, true, true };
    struct http1_head head;
    struct str rest, item;
    size_t at = 0, n = 0;

    (void)state;
    assert_int_equal(request(raw, &head), HTTP1_OK);
    assert_int_equal(head.n_fields, N(hop));
    for (size_t i = 0; i < N(hop); i++)
        if (head.fields[i].hop != hop[i])
            fail_msg("%.*s: hop is %d", (int)head.fields[i].name.n, head.fields[i].name.p, head.fields[i].hop);
    assert_non_null(http1_find(&head, STR_LIT("accept"), &at));
    assert_non_null(http1_find(&head, STR_LIT("accept"), &at));
    assert_null(http1_find(&head, STR_LIT("accept"), &at));
    assert_null(http1_find(&head, STR_LIT("accep"), NULL));
    rest = http1_find(&head, STR_LIT("accept"), NULL)->value;
    while (http1_list_next(&rest, &item)) {
        assert_int_equal(item.n, 1);
        assert_int_equal(item.p[0], "abc"[n++]);
    }
    assert_int_equal(n, 3);
    assert_int_equal(request((struct str)L(POST "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\n"), &head), HTTP1_OK);
    assert_true(head.expect_continue);
    assert_int_equal(request((struct str)L(POST "Expect: 100-continue\r\n\r\n"), &head), HTTP1_OK);
    assert_false(head.expect_continue);
    assert_int_equal(request((struct str)L("GET http://b.example/ HTTP/1.1\r\n" H "\r\n"), &head), HTTP1_OK);
    assert_true(str_eq_c(head.host.host, "a.example") && str_eq_c(head.authority.host, "b.example"));
    assert_string_equal(http1_word(HTTP1_OBS_FOLD), "obs-fold");
    assert_string_equal(http1_word((enum http1_result)9999), "unknown");
    for (int i = 0; i < HTTP1_RESULTS; i++)
        assert_non_null(http1_word((enum http1_result)i));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_rows),  cmocka_unit_test(refused_prefixes), cmocka_unit_test(accepted_rows),
        cmocka_unit_test(accepted_splits), cmocka_unit_test(trickle),        cmocka_unit_test(every_byte),
        cmocka_unit_test(response_rows), cmocka_unit_test(ceilings),         cmocka_unit_test(fields_and_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
