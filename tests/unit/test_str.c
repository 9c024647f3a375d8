/* base/str: number and size parsers accept the whole input or refuse */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/str.h"

static void
parse_u64_rows(void **state)
{
    static const struct { const char *in; bool ok; uint64_t v; } rows[] = {
        { "0", true, 0 }, { "42", true, 42 }, { "18446744073709551615", true, UINT64_MAX },
        { "18446744073709551616", false, 0 }, { "", false, 0 }, { "-1", false, 0 }, { "+1", false, 0 },
        { " 1", false, 0 }, { "1 ", false, 0 }, { "0x10", false, 0 }, { "1e3", false, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t v = 0;
        assert_int_equal(str_parse_u64(str_of(rows[i].in), UINT64_MAX, &v), rows[i].ok);
        if (rows[i].ok)
            assert_true(v == rows[i].v);
    }
}

static void
parse_hex_rows(void **state)
{
    static const struct { const char *in; bool ok; uint64_t v; } rows[] = {
        { "0", true, 0 }, { "ff", true, 255 }, { "DeadBeef", true, 0xdeadbeef },
        { "ffffffffffffffff", true, UINT64_MAX }, { "0ffffffffffffffff", true, UINT64_MAX },
        { "10000000000000000", false, 0 }, { "", false, 0 }, { "0x1", false, 0 }, { "-1", false, 0 },
        { "1g", false, 0 }, { " 1", false, 0 },
    };
    uint64_t v = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        v = 0;
        assert_int_equal(str_parse_hex(str_of(rows[i].in), UINT64_MAX, &v), rows[i].ok);
        assert_true(v == rows[i].v);
    }
    assert_false(str_parse_hex(str_of("100"), 255, &v));
}

static void
parse_size_rows(void **state)
{
    static const struct { const char *in; bool ok; uint64_t v; } rows[] = {
        { "512m", true, 512ULL << 20 }, { "1g", true, 1ULL << 30 }, { "1GiB", true, 1ULL << 30 },
        { "64K", true, 65536 }, { "7", true, 7 }, { "m", false, 0 }, { "1.5g", false, 0 }, { "12q", false, 0 },
        { "99999999999t", false, 0 }, { "512 m", false, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t v = 0;
        assert_int_equal(str_parse_size(str_of(rows[i].in), UINT64_MAX, &v), rows[i].ok);
        if (rows[i].ok)
            assert_true(v == rows[i].v);
    }
}

static void
parse_duration_rows(void **state)
{
    static const struct { const char *in; bool ok; uint64_t v; } rows[] = {
        { "30", true, 30000 }, { "30s", true, 30000 }, { "500ms", true, 500 }, { "2m", true, 120000 },
        { "1h", true, 3600000 }, { "1d", false, 0 }, { "", false, 0 }, { "-3s", false, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t v = 0;
        assert_int_equal(str_parse_duration_ms(str_of(rows[i].in), UINT64_MAX, &v), rows[i].ok);
        if (rows[i].ok)
            assert_true(v == rows[i].v);
    }
}

static void
parse_milli_rows(void **state)
{
    static const struct { const char *in; bool ok; uint64_t v; } rows[] = {
        { "0.5", true, 500 }, { "2", true, 2000 }, { "1.25", true, 1250 }, { "0.001", true, 1 },
        { ".5", false, 0 }, { "1.", false, 0 }, { "1.2345", false, 0 }, { "a", false, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t v = 0;
        assert_int_equal(str_parse_milli(str_of(rows[i].in), UINT64_MAX, &v), rows[i].ok);
        if (rows[i].ok)
            assert_true(v == rows[i].v);
    }
}

static void
to_cstr_refuses_nul(void **state)
{
    (void)state;
    assert_null(str_to_cstr((struct str){ "a\0b", 3 }));
    char *s = str_to_cstr(STR_LIT("ab"));
    assert_string_equal(s, "ab");
    free(s);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse_u64_rows),      cmocka_unit_test(parse_hex_rows),
        cmocka_unit_test(parse_size_rows),
        cmocka_unit_test(parse_duration_rows), cmocka_unit_test(parse_milli_rows),
        cmocka_unit_test(to_cstr_refuses_nul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
