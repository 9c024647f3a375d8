/* egress/sniff: which protocol the proxy port is spoken to in, on the fewest bytes (R13) */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/array.h"
#include "egress/sniff.h"

#define N(a) ARRAY_LEN(a)
#define D(s) s, sizeof(s) - 1

/* @settled: how many bytes the answer takes; with fewer it is MORE, with any further ones it stays. */
static void
rows(void **state)
{
    static const struct { const char *data; size_t n; enum sniff want; size_t settled; } row[] = {
        { D("GET / HTTP/1.1\r\n"), SNIFF_HTTP, 4 },
        { D("CONNECT a:443 HTTP/1.1\r\n"), SNIFF_HTTP, 8 },
        { D("OPTIONS * HTTP/1.1\r\n"), SNIFF_HTTP, 8 },
        { D("M-SEARCH * HTTP/1.1\r\n"), SNIFF_HTTP, 9 },
        { D("UPDATEREDIRECTREF / HTTP/1.1"), SNIFF_HTTP, 18 },
        { D("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), SNIFF_HTTP2, 4 },
        { D("PRIX * HTTP/1.1"), SNIFF_HTTP, 5 },
        { D("\x05\x01\x00"), SNIFF_SOCKS5, 1 },
        { D("\x04\x01\x01\xbb"), SNIFF_SOCKS4, 1 },
        { D("\x16\x03\x01\x02\x00"), SNIFF_TLS, 3 },
        { D("\x16\x03\x00\x00\x20"), SNIFF_TLS, 3 },
        { D("\x16\x03\x05\x00\x20"), SNIFF_UNKNOWN, 3 },
        { D("\x16\x02\x00"), SNIFF_UNKNOWN, 2 },
        { D("\x16\xfe\xfd"), SNIFF_UNKNOWN, 2 },
        { D("\x15\x03\x01"), SNIFF_UNKNOWN, 1 },
        { D("\x80\x2e\x01\x03\x01"), SNIFF_UNKNOWN, 1 },
        { D("get / HTTP/1.1\r\n"), SNIFF_UNKNOWN, 1 },
        { D("Get / HTTP/1.1\r\n"), SNIFF_UNKNOWN, 2 },
        { D("\r\nGET / HTTP/1.1\r\n"), SNIFF_UNKNOWN, 1 },
        { D(" GET / HTTP/1.1\r\n"), SNIFF_UNKNOWN, 1 },
        { D("-GET / HTTP/1.1\r\n"), SNIFF_UNKNOWN, 1 },
        { D("GET\t/ HTTP/1.1\r\n"), SNIFF_UNKNOWN, 4 },
        { D("GET\0 / HTTP/1.1\r\n"), SNIFF_UNKNOWN, 4 },
        { D("GET\r\n"), SNIFF_UNKNOWN, 4 },
        { D("SSH-2.0-OpenSSH_9\r\n"), SNIFF_UNKNOWN, 5 },
        { D("AAAAAAAAAAAAAAAAAAAA x"), SNIFF_HTTP, 21 },
        { D("AAAAAAAAAAAAAAAAAAAAA x"), SNIFF_UNKNOWN, 21 },
        { D("\0"), SNIFF_UNKNOWN, 1 },
    };

    (void)state;
    for (size_t i = 0; i < N(row); i++) {
        for (size_t n = 0; n <= row[i].n; n++) {
            enum sniff got = sniff((const uint8_t *)row[i].data, n);
            enum sniff want = n < row[i].settled ? SNIFF_MORE : row[i].want;
            if (got != want)
                fail_msg("row %zu, %zu bytes: %s, want %s", i, n, sniff_name(got), sniff_name(want));
        }
        assert_true(row[i].settled <= SNIFF_MAX);
    }
}

/* Every first byte is something; nothing waits for ever. */
static void
always_settles(void **state)
{
    (void)state;
    for (unsigned first = 0; first < 256; first++) {
        for (unsigned fill = 0; fill < 256; fill++) {
            uint8_t data[SNIFF_MAX];
            for (size_t i = 0; i < sizeof(data); i++)
                data[i] = (uint8_t)(i == 0 ? first : fill);
            assert_int_not_equal(sniff(data, sizeof(data)), SNIFF_MORE);
        }
    }
}

/* Whatever the cuts, and with what was safe gone on: the verdict about the line. */
static void
lines(void **state)
{
    static const struct { const char *data; size_t n; enum sniff_line want; } row[] = {
        { D("A_B / HTTP/1.1\r\n"), SNIFF_LINE_REQUEST },
        { D("get / http/1.1\n"), SNIFF_LINE_REQUEST },
        { D("GET\t/\tHTTP/1.1 \t\r\n"), SNIFF_LINE_REQUEST },
        { D(" \r\n\t\n GET / HTTP/1.1\n"), SNIFF_LINE_REQUEST },
        { D("GET\xa0/\x85HTTP/2\n"), SNIFF_LINE_REQUEST },
        { D("G\0T\r/ HTTP/1.1\r"), SNIFF_LINE_REQUEST },
        { D("x HTTP/ HTTP/1.1\n"), SNIFF_LINE_REQUEST },
        { D("HTTP/1.1\n"), SNIFF_LINE_NONE },
        { D("get key\r\nx HTTP/1.1\n"), SNIFF_LINE_NONE },
        { D("{\"said\": \"GET / HTTP/1.1\"}\n"), SNIFF_LINE_NONE },
        { D("GET / HTTP/1.1x\n"), SNIFF_LINE_NONE },
        { D("a b HTTP/1.11111111111111111111111111111111111111111111111111111111111\n"), SNIFF_LINE_REQUEST },
        { D("get / HTTP/1.1                                                                x\n"), SNIFF_LINE_REQUEST },
        { D("hello"), SNIFF_LINE_MORE },
        { D("GET / HTTP/1.1"), SNIFF_LINE_MORE },
        { D(" \n \n"), SNIFF_LINE_MORE },
        { D("\0\0\0\x08\x04\xd2\x16/"), SNIFF_LINE_MORE },
    };

    (void)state;
    for (size_t i = 0; i < N(row); i++)
        for (size_t step = 1; step <= row[i].n; step++) {
            size_t from = 0, safe = 0;
            enum sniff_line got = SNIFF_LINE_MORE;
            bool word = false;
            for (size_t n = step; got == SNIFF_LINE_MORE; n += step) {
                n = n < row[i].n ? n : row[i].n;
                got = sniff_line((const uint8_t *)row[i].data + from, n - from, &safe);
                assert_true(safe <= n - from);
                from += got == SNIFF_LINE_MORE ? safe : 0;
                word |= from > 0;
                if (n == row[i].n)
                    break;
            }
            /* a line's end of which the words have gone on is an empty line: one more is looked at, which harms nobody */
            if (got != row[i].want && !(word && row[i].want == SNIFF_LINE_NONE))
                fail_msg("row %zu, steps of %zu: %d, want %d", i, step, (int)got, (int)row[i].want);
        }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows),
        cmocka_unit_test(always_settles),
        cmocka_unit_test(lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
