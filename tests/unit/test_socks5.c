/* egress/socks5: a CONNECT by name or address is read, everything else is refused in the protocol's own words
 * (R02, R13, R14) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "egress/socks5.h"

#define N(a) ARRAY_LEN(a)
#define D(s) s, sizeof(s) - 1

static void
greetings(void **state)
{
    static const struct { const char *data; size_t n; enum socks_status want; const char *answer; size_t consumed; } rows[] = {
        { D("\5\1\0"), SOCKS_OK, "\5\0", 3 },
        { D("\5\2\0\2"), SOCKS_OK, "\5\0", 4 },
        { D("\5\2\2\0"), SOCKS_OK, "\5\0", 4 },
        { D("\5\3\1\2\0"), SOCKS_OK, "\5\0", 5 },
        { D("\5\1\0\5\1\0\3"), SOCKS_OK, "\5\0", 3 },       /* the request came along */
        { D("\5\1\2"), SOCKS_REFUSED, "\5\xff", 3 },        /* user and password only */
        { D("\5\1\1"), SOCKS_REFUSED, "\5\xff", 3 },        /* GSSAPI only */
        { D("\5\1\xff"), SOCKS_REFUSED, "\5\xff", 3 },
        { D("\5\0"), SOCKS_REFUSED, "\5\xff", 2 },
        { D("\5\1\2\0"), SOCKS_REFUSED, "\5\xff", 3 },      /* the zero is no method */
        { D(""), SOCKS_MORE, NULL, 0 },
        { D("\5"), SOCKS_MORE, NULL, 0 },
        { D("\5\1"), SOCKS_MORE, NULL, 0 },
        { D("\5\2\0"), SOCKS_MORE, NULL, 0 },
        { D("\4\1\0"), SOCKS_NOT_SOCKS, NULL, 0 },
        { D("\6\1\0"), SOCKS_NOT_SOCKS, NULL, 0 },
        { D("GET / "), SOCKS_NOT_SOCKS, NULL, 0 },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct socks5_greeting greeting;
        enum socks_status got = socks5_greeting((const uint8_t *)rows[i].data, rows[i].n, &greeting);
        if (got != rows[i].want || greeting.consumed != rows[i].consumed)
            fail_msg("row %zu: %d, %zu bytes", i, got, greeting.consumed);
        if (rows[i].answer != NULL)
            assert_memory_equal(greeting.answer, rows[i].answer, 2);
    }
}

static void
all_methods(void **state)
{
    uint8_t data[2 + 255] = { 5, 255 };
    struct socks5_greeting greeting;

    (void)state;
    for (size_t i = 2; i < sizeof(data); i++)
        data[i] = (uint8_t)(i - 1);             /* 1 to 255 */
    assert_int_equal(socks5_greeting(data, sizeof(data), &greeting), SOCKS_REFUSED);
    assert_int_equal(greeting.consumed, sizeof(data));
    data[256] = 0;
    assert_int_equal(socks5_greeting(data, sizeof(data), &greeting), SOCKS_OK);
    assert_int_equal(socks5_greeting(data, sizeof(data) - 1, &greeting), SOCKS_MORE);
}

/* A row's answer is the same for every longer input, and each shorter one is MORE. */
static void
requests(void **state)
{
    static const struct { const char *what, *data; size_t n; int code; const char *host; uint16_t port; } rows[] = {
        { "name", D("\5\1\0\3\13example.org\1\xbb"), 0, "example.org", 443 },
        { "name as sent", D("\5\1\0\3\13EXAMPLE.org\0\x50"), 0, "EXAMPLE.org", 80 },
        { "underscore", D("\5\1\0\3\3a_b\0\x50"), 0, "a_b", 80 },
        { "address as a name", D("\5\1\0\3\011" "127.0.0.1\0\x50"), 0, "127.0.0.1", 80 },   /* decide() knows what it is */
        { "IPv4", D("\5\1\0\1\1\2\3\4\x1f\x90"), 0, "1.2.3.4", 8080 },
        { "IPv6", D("\5\1\0\4\x20\1\xd\xb8\0\0\0\0\0\0\0\0\0\0\0\1\1\xbb"), 0, "2001:db8::1", 443 },
        { "mapped", D("\5\1\0\4\0\0\0\0\0\0\0\0\0\0\xff\xff\177\0\0\1\1\xbb"), 0, "::ffff:7f00:1", 443 },
        { "highest port", D("\5\1\0\1\1\2\3\4\xff\xff"), 0, "1.2.3.4", 65535 },
        { "bind", D("\5\2\0\1\1\2\3\4\0\x50"), 7, NULL, 0 },
        { "udp", D("\5\3\0\1\0\0\0\0\0\0"), 7, NULL, 0 },
        { "udp by name", D("\5\3\0\3\1a\0\x35"), 7, NULL, 0 },
        { "udp over IPv6", D("\5\3\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), 7, NULL, 0 },
        { "command 0", D("\5\0\0\1\1\2\3\4\0\x50"), 7, NULL, 0 },
        { "tor's resolve", D("\5\xf0\0\3\1a\0\0"), 7, NULL, 0 },
        { "type 0", D("\5\1\0\0\1"), 8, NULL, 0 },
        { "type 2", D("\5\1\0\2\1"), 8, NULL, 0 },
        { "type 5", D("\5\1\0\5\1"), 8, NULL, 0 },
        { "type 255", D("\5\1\0\xff\1"), 8, NULL, 0 },
        { "empty name", D("\5\1\0\3\0\0\x50"), 1, NULL, 0 },
        { "NUL inside", D("\5\1\0\3\20example.org\0evil\1\xbb"), 1, NULL, 0 },
        { "NUL at the end", D("\5\1\0\3\14example.org\0\1\xbb"), 1, NULL, 0 },
        { "NUL only", D("\5\1\0\3\1\0\1\xbb"), 1, NULL, 0 },
        { "blank", D("\5\1\0\3\3a b\1\xbb"), 1, NULL, 0 },
        { "line end", D("\5\1\0\3\4a\r\nb\1\xbb"), 1, NULL, 0 },
        { "slash", D("\5\1\0\3\3a/b\1\xbb"), 1, NULL, 0 },
        { "user", D("\5\1\0\3\3a@b\1\xbb"), 1, NULL, 0 },
        { "port in the name", D("\5\1\0\3\4a:80\1\xbb"), 1, NULL, 0 },
        { "IPv6 as a name", D("\5\1\0\3\3::1\1\xbb"), 1, NULL, 0 },
        { "brackets", D("\5\1\0\3\5[::1]\1\xbb"), 1, NULL, 0 },
        { "percent", D("\5\1\0\3\5a%2eb\1\xbb"), 1, NULL, 0 },
        { "not ASCII", D("\5\1\0\3\2\xc3\xa4\1\xbb"), 1, NULL, 0 },
        { "star", D("\5\1\0\3\1*\1\xbb"), 1, NULL, 0 },
        { "port 0", D("\5\1\0\1\1\2\3\4\0\0"), 1, NULL, 0 },
        { "reserved byte", D("\5\1\1\1\1\2\3\4\0\x50"), 1, NULL, 0 },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct socks5_request request;
        enum socks_status want = rows[i].host != NULL ? SOCKS_OK : SOCKS_REFUSED, got;
        uint8_t wire[64];
        for (size_t n = 0; n < rows[i].n; n++) {
            cleanup_free uint8_t *exact = malloc(n + 1);
            assert_non_null(exact);
            memcpy(exact + 1, rows[i].data, n);
            got = socks5_request(exact + 1, n, &request);
            if (got != SOCKS_MORE)
                fail_msg("%s: %zu bytes: %d", rows[i].what, n, got);
        }
        memset(wire, 'x', sizeof(wire));
        memcpy(wire, rows[i].data, rows[i].n);
        got = socks5_request(wire, rows[i].n, &request);
        if (got != want || (int)request.code != rows[i].code || request.consumed != rows[i].n || request.port != rows[i].port)
            fail_msg("%s: %d code %d, %zu bytes, port %d", rows[i].what, got, request.code, request.consumed, request.port);
        if (rows[i].host != NULL) {
            char text[IP_TEXT_MAX];
            if (!request.is_name)
                ip_format(&request.ip, text);
            assert_int_equal(request.host_n, request.is_name ? strlen(rows[i].host) : 0);
            assert_string_equal(request.is_name ? request.host : text, rows[i].host);
            assert_int_equal(socks5_request(wire, sizeof(wire), &request), SOCKS_OK);
            assert_int_equal(request.consumed, rows[i].n);      /* what follows is the tunnel's */
        }
    }
}

static void
name_lengths(void **state)
{
    uint8_t wire[SOCKS5_REQUEST_MAX] = { 5, 1, 0, 3 };
    struct socks5_request request;

    (void)state;
    for (size_t n = 0; n <= 255; n++) {
        wire[4] = (uint8_t)n;
        memset(wire + 5, 'a', n);
        wire[5 + n] = 0;
        wire[6 + n] = 80;
        assert_int_equal(socks5_request(wire, n + 7, &request), n >= 1 && n <= 253 ? SOCKS_OK : SOCKS_REFUSED);
        assert_int_equal(request.host_n, n >= 1 && n <= 253 ? n : 0);
        assert_int_equal(socks5_request(wire, n + 6, &request), SOCKS_MORE);
    }
}

/* Of all 256 bytes, a name has 65. */
static void
name_bytes(void **state)
{
    size_t accepted = 0;

    (void)state;
    for (unsigned c = 0; c < 256; c++) {
        uint8_t wire[] = { 5, 1, 0, 3, 3, 'a', (uint8_t)c, 'b', 0, 80 };
        struct socks5_request request;
        if (socks5_request(wire, sizeof(wire), &request) == SOCKS_OK)
            accepted++;
    }
    assert_int_equal(accepted, 26 + 26 + 10 + 3);
}

static void
other_versions(void **state)
{
    struct socks5_request request;

    (void)state;
    assert_int_equal(socks5_request((const uint8_t *)"\4", 1, &request), SOCKS_NOT_SOCKS);
    assert_int_equal(socks5_request((const uint8_t *)"\1\1\0\1\1\2\3\4\0\x50", 10, &request), SOCKS_NOT_SOCKS);
}

static void
replies(void **state)
{
    static const enum socks5_code codes[] = { SOCKS5_SUCCEEDED, SOCKS5_FAILURE, SOCKS5_NOT_ALLOWED, SOCKS5_NET_UNREACHABLE,
        SOCKS5_HOST_UNREACHABLE, SOCKS5_REFUSED, SOCKS5_TTL_EXPIRED, SOCKS5_COMMAND, SOCKS5_ADDRESS_TYPE };
    struct ip v4 = { .b = { 10, 1, 2, 3 }, .family = 4 }, v6 = { .b = { 0x20, 1, [15] = 9 }, .family = 6 };
    uint8_t out[SOCKS5_REPLY_MAX];

    (void)state;
    for (size_t i = 0; i < N(codes); i++) {
        uint8_t want[10] = { 5, (uint8_t)i, 0, 1 };         /* RFC 1928 numbers them in this order */
        assert_int_equal(socks5_reply(codes[i], NULL, 0, out), 10);
        assert_memory_equal(out, want, 10);
    }
    assert_int_equal(socks5_reply(SOCKS5_SUCCEEDED, &v4, 443, out), 10);
    assert_memory_equal(out, "\5\0\0\1\12\1\2\3\1\xbb", 10);
    assert_int_equal(socks5_reply(SOCKS5_SUCCEEDED, &v6, 0x1234, out), 22);
    assert_memory_equal(out, "\5\0\0\4\x20\1\0\0\0\0\0\0\0\0\0\0\0\0\0\11\x12\x34", 22);
}

static void
errno_codes(void **state)
{
    (void)state;
    assert_int_equal(socks5_code_of(0), 0);
    assert_int_equal(socks5_code_of(EACCES), 2);
    assert_int_equal(socks5_code_of(ENETUNREACH), 3);
    assert_int_equal(socks5_code_of(EHOSTUNREACH), 4);
    assert_int_equal(socks5_code_of(ENOENT), 4);
    assert_int_equal(socks5_code_of(ECONNREFUSED), 5);
    assert_int_equal(socks5_code_of(ETIMEDOUT), 6);
    assert_int_equal(socks5_code_of(EMFILE), 1);
}

static void
socks4(void **state)
{
    static const struct { const char *what, *data; size_t n, consumed; bool is_4a; } rows[] = {
        { "4", D("\4\1\1\xbb\1\2\3\4\0"), 9, false },
        { "4 with a user", D("\4\1\1\xbb\1\2\3\4joe\0"), 12, false },
        { "4 to address 0", D("\4\1\1\xbb\0\0\0\0\0"), 9, false },
        { "4a", D("\4\1\1\xbb\0\0\0\1\0example.org\0"), 21, true },
        { "4a with a user", D("\4\1\1\xbb\0\0\0\xffjoe\0a\0"), 14, true },
        { "4a with an empty name", D("\4\1\1\xbb\0\0\0\1\0\0"), 10, true },
        { "bind", D("\4\2\1\xbb\1\2\3\4\0"), 9, false },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct socks4_refusal refusal;
        for (size_t n = 0; n < rows[i].n; n++)
            assert_int_equal(socks4_request((const uint8_t *)rows[i].data, n, &refusal), SOCKS_MORE);
        if (socks4_request((const uint8_t *)rows[i].data, rows[i].n, &refusal) != SOCKS_REFUSED ||
            refusal.consumed != rows[i].consumed || refusal.is_4a != rows[i].is_4a)
            fail_msg("%s: %zu bytes, 4a %d", rows[i].what, refusal.consumed, refusal.is_4a);
        assert_memory_equal(refusal.answer, "\0\x5b\0\0\0\0\0\0", 8);
    }
}

/* A user or a name without an end is refused, not waited for. */
static void
socks4_ends(void **state)
{
    uint8_t wire[1000] = { 4, 1, 1, 0xbb, 0, 0, 0, 1 };
    struct socks4_refusal refusal;

    (void)state;
    memset(wire + 8, 'a', sizeof(wire) - 8);
    assert_int_equal(socks4_request(wire, 8 + 255, &refusal), SOCKS_MORE);
    assert_int_equal(socks4_request(wire, 8 + 256, &refusal), SOCKS_REFUSED);
    wire[8 + 255] = 0;
    assert_int_equal(socks4_request(wire, 8 + 256 + 255, &refusal), SOCKS_MORE);
    assert_int_equal(socks4_request(wire, 8 + 256 + 256, &refusal), SOCKS_REFUSED);
    assert_int_equal(socks4_request((const uint8_t *)"\5", 1, &refusal), SOCKS_NOT_SOCKS);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greetings),
        cmocka_unit_test(all_methods),
        cmocka_unit_test(requests),
        cmocka_unit_test(name_lengths),
        cmocka_unit_test(name_bytes),
        cmocka_unit_test(other_versions),
        cmocka_unit_test(replies),
        cmocka_unit_test(errno_codes),
        cmocka_unit_test(socks4),
        cmocka_unit_test(socks4_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
