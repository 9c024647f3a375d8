/* egress/inject_place: a placeholder gives way where its binding says, and nowhere else */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "egress/inject_place.h"

#define P "ph-0123456789abcdef"     /* placeholder */
#define V "se-/+&=%secret-9999"     /* value, of the same length */

static struct binding
bound(const char *place)
{
    struct err err = ERR_INIT;
    struct binding b;
    char text[256];

    snprintf(text, sizeof(text), "host api.example.org\n%s%s\n", strncmp(place, "add ", 4) == 0 ? "" : "place ",
             place);
    assert_int_equal(binding_parse(str_of(text), &b, &err), 0);
    return b;
}

/* The head as it goes out. */
static void
placed(const char *place, const char *request, char *out, size_t size)
{
    struct binding b = bound(place);
    const struct inject_pair pair = { .binding = &b, .role = VAULT_ROLE_VALUE, .placeholder = (const uint8_t *)P,
                                      .value = (const uint8_t *)V, .n = sizeof(P) - 1 };
    struct buf text = BUF_INIT(INJECT_TEXT_MAX), written = BUF_INIT(HTTP1_HEAD_MAX);
    struct exchange_edit edit = { 0 };
    struct http1_head head;
    struct http1_request_out r;

    assert_int_equal(sizeof(P), sizeof(V));
    assert_int_equal(http1_parse_request((const uint8_t *)request, strlen(request), &head), HTTP1_OK);
    assert_int_equal(inject_place(&head, &pair, 1, &text, &edit), 0);
    if (b.places & BINDING_ADD)
        assert_int_equal(inject_add(&head, &pair, &text, &edit), 0);
    r = (struct http1_request_out){
        .method = head.method, .form = HTTP1_ORIGIN, .scheme = HTTP1_SCHEME_HTTPS, .host = STR_LIT("api.example.org"),
        .port = 443, .path = edit.new_target ? edit.path : head.path, .query = edit.new_target ? edit.query : head.query,
        .out = { .from = &head, .drop = edit.drop, .n_drop = edit.n_drop, .add = edit.add, .n_add = edit.n_add } };
    assert_int_equal(http1_write_request(&written, &r), 0);
    assert_true(written.n < size);
    memcpy(out, written.p, written.n);
    out[written.n] = '\0';
    buf_free(&text);
    buf_free(&written);
}

static void
check(const char *place, const char *request, const char *want)
{
    char out[4096];

    placed(place, request, out, sizeof(out));
    if (strstr(out, want) == NULL)
        fail_msg("%s: %s\nnot in:\n%s", place, want, out);
}

#define REQUEST(target, fields) "GET " target " HTTP/1.1\r\nHost: api.example.org\r\n" fields "\r\n"

static void
test_places(void **state)
{
    (void)state;
    check("bearer", REQUEST("/", "Authorization: Bearer " P "\r\n"), "\r\nAuthorization: Bearer " V "\r\n");
    check("bearer", REQUEST("/", "authorization: token " P "\r\n"), "\r\nauthorization: token " V "\r\n");
    /* user:P and P:x in base64 */
    check("basic", REQUEST("/", "Authorization: Basic dXNlcjpwaC0wMTIzNDU2Nzg5YWJjZGVm\r\n"),
          "\r\nAuthorization: Basic dXNlcjpzZS0vKyY9JXNlY3JldC05OTk5\r\n");
    check("header x-api-key", REQUEST("/", "X-Api-Key: " P "\r\nX-Other: " P "\r\n"), "\r\nX-Api-Key: " V "\r\n");
    check("header x-api-key", REQUEST("/", "X-Api-Key: " P "\r\nX-Other: " P "\r\n"), "\r\nX-Other: " P "\r\n");
    check("cookie sid", REQUEST("/", "Cookie: a=1; sid=" P "; b=2\r\n"), "\r\nCookie: a=1; sid=" V "; b=2\r\n");
    check("cookie sid", REQUEST("/", "Cookie: xsid=" P "\r\n"), "\r\nCookie: xsid=" P "\r\n");
    check("query key", REQUEST("/p?a=1&key=" P "&b=2", ""), "GET /p?a=1&key=se-%2F%2B%26%3D%25secret-9999&b=2 HTTP");
    check("query key", REQUEST("/p?key=ph%2D0123456789abcdef", ""), "GET /p?key=se-%2F%2B%26%3D%25secret-9999 HTTP");
    check("query key", REQUEST("/p?akey=" P, ""), "GET /p?akey=" P " HTTP");
    check("query key", REQUEST("/p?key=" P "&key=" P, ""),
          "GET /p?key=se-%2F%2B%26%3D%25secret-9999&key=se-%2F%2B%26%3D%25secret-9999 HTTP");
}

static void
test_elsewhere(void **state)
{
    (void)state;
    check("bearer", REQUEST("/?q=" P, "Authorization: Basic " P "\r\n"), "GET /?q=" P " HTTP");
    check("bearer", REQUEST("/", "Authorization: Digest " P "\r\n"), "\r\nAuthorization: Digest " P "\r\n");
    check("header x-api-key", REQUEST("/", "Authorization: Bearer " P "\r\n"), "\r\nAuthorization: Bearer " P "\r\n");
    check("basic", REQUEST("/", "Authorization: Bearer " P "\r\n"), "\r\nAuthorization: Bearer " P "\r\n");
    check("basic", REQUEST("/", "Authorization: Basic !!!!\r\n"), "\r\nAuthorization: Basic !!!!\r\n");
    check("body", REQUEST("/" P, "X-Api-Key: " P "\r\n"), "GET /" P " HTTP");
}

/* A header that is added is the only one of its name, whatever the client wrote. */
static void
test_added(void **state)
{
    static const char add[] = "add X-Api-Key: id={}", want[] = "\r\nX-Api-Key: id=" V "\r\n";
    static const char *const sent[] = {
        REQUEST("/", ""), REQUEST("/", "X-Api-Key: mine\r\n"), REQUEST("/", "x-api-key: mine\r\nX-API-KEY: mine\r\n"),
        REQUEST("/", "X_Api_Key: mine\r\n"), REQUEST("/", "X-Api_Key: mine\r\nx_api-key: mine\r\n"),
        REQUEST("/", "Connection: x-api-key\r\nX-Api-Key: mine\r\n"), REQUEST("/", "X-Api-Key:\r\n"),
        REQUEST("/", "Connection: close, x-api-key\r\n"),
        REQUEST("/", "X-Api-Key: mine\r\nTransfer-Encoding: chunked\r\nTrailer: X-Api-Key\r\n"),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sent); i++) {
        char out[4096];
        size_t n = 0;
        placed(add, sent[i], out, sizeof(out));
        for (const char *at = out; (at = strcasestr(at, "api")) != NULL; at++)
            n += strncasecmp(at, "api-key", 7) == 0 || strncasecmp(at, "api_key", 7) == 0;
        if (strstr(out, want) == NULL || strstr(out, "mine") != NULL || n != 1)
            fail_msg("%s\nbecame\n%s", sent[i], out);
    }
    /* a placeholder that was exchanged there comes second */
    check("add Authorization: Basic me:{}", REQUEST("/", "Authorization: Bearer " P "\r\n"),
          "\r\nAuthorization: Basic bWU6c2UtLysmPSVzZWNyZXQtOTk5OQ==\r\n");
    check(add, REQUEST("/", "X-Api-Keys: mine\r\n"), "\r\nX-Api-Keys: mine\r\n");
}

/* One of two fields of a name changes: both come back, in their order. */
static void
test_twice(void **state)
{
    (void)state;
    check("header x-k", REQUEST("/", "X-K: first\r\nX-K: " P "\r\nx-k: " P P "\r\n"),
          "\r\nX-K: first\r\nX-K: " V "\r\nx-k: " V V "\r\n");
}

static void
test_too_many(void **state)
{
    struct binding b = bound("header x-k");
    const struct inject_pair pair = { .binding = &b, .placeholder = (const uint8_t *)P, .value = (const uint8_t *)V,
                                      .n = sizeof(P) - 1 };
    struct buf text = BUF_INIT(INJECT_TEXT_MAX), request = BUF_INIT(HTTP1_HEAD_MAX);
    struct exchange_edit edit = { 0 };
    struct http1_head head;

    (void)state;
    buf_puts(&request, "GET / HTTP/1.1\r\nHost: api.example.org\r\n");
    for (int i = 0; i < EXCHANGE_EDITS_MAX + 1; i++)
        buf_puts(&request, "X-K: " P "\r\n");
    buf_puts(&request, "\r\n");
    assert_int_equal(http1_parse_request(request.p, request.n, &head), HTTP1_OK);
    assert_int_equal(inject_place(&head, &pair, 1, &text, &edit), -1);
    buf_free(&text);
    buf_free(&request);
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_places), cmocka_unit_test(test_elsewhere),
                                        cmocka_unit_test(test_added), cmocka_unit_test(test_twice),
                                        cmocka_unit_test(test_too_many) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
