/* engine/native/trust_java.c: the store of each row ends with its SHA-1, which was computed by another program */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "engine/native/trust_java.h"

#define B "-----BEGIN CERTIFICATE-----\n"
#define E "-----END CERTIFICATE-----\n"
#define A16 "AAAAAAAAAAAAAAAA"
#define NONE "e2686e45fb43dfa4d992dd41ceb6b21c6330d792"
#define TWO "1353d3d6e470420ffdd296194e5a769dc313df60"

static void
test_rows(void **state)
{
    static const struct { const char *pem; int count; const char *sha1; } rows[] = {
        { "", 0, NONE },
        { "nothing\n", 0, NONE },
        { B "AQID\n" E B "BAUGBw==\n" E, 2, TWO },
        { "# one\r\n" B "AQ\r\nID" E "text\n" B "BAUG\tBw==" E B, 2, TWO },
        { B "AQID\n" E B "A!\n" E B "BAUGBw\n" E, 2, TWO },
        { B "\n" E B "AQID" E B "AQID=x" E B "BAUGBw=" E "-----END", 2, TWO },
        { B A16 A16 A16 A16 "\n" A16 A16 A16 A16 "\nAAAAAA==\n" E, 1, "e289f320b1ef601178b1570b997321ce20849f89" },
        { "-----BEGIN TRUSTED CERTIFICATE-----\nAQID\n-----END TRUSTED CERTIFICATE-----\n", 0, NONE },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_buf struct buf out = BUF_INIT(4096);
        char digest[41] = "";
        assert_int_equal(trust_java(str_of(rows[i].pem), &out), rows[i].count);
        assert_true(out.n >= 32 && memcmp(out.p, "\xfe\xed\xfe\xed\0\0\0\2\0\0\0", 11) == 0);
        assert_int_equal(out.p[11], rows[i].count);
        for (size_t k = 0; k < 20; k++)
            snprintf(digest + 2 * k, 3, "%02x", out.p[out.n - 20 + k]);
        assert_string_equal(digest, rows[i].sha1);
    }
}

static void
test_no_room(void **state)
{
    (void)state;
    for (size_t max = 1; max < 105; max++) {
        cleanup_buf struct buf out = BUF_INIT(max);
        assert_int_equal(trust_java(STR_LIT(B "AQID\n" E B "BAUGBw==\n" E), &out), -1);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows), cmocka_unit_test(test_no_room) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
