/* base/str: number and size parsers accept the whole input or refuse */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/array.h"
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
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
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
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
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
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
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
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
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
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
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

static void
utf8_rows(void **state)
{
    static const struct { const char *in; size_t n; size_t taken; uint32_t c; } rows[] = {
        { "a", 1, 1, 'a' }, { "\0", 1, 1, 0 }, { "\x7f\x80", 2, 1, 0x7f }, { "\xc2\x80", 2, 2, 0x80 },
        { "\xdf\xbf", 2, 2, 0x7ff }, { "\xe0\xa0\x80", 3, 3, 0x800 }, { "\xef\xbf\xbf", 3, 3, 0xffff },
        { "\xf0\x90\x80\x80", 4, 4, 0x10000 }, { "\xf4\x8f\xbf\xbf", 4, 4, 0x10ffff },
        /* none begins; too long a form; a surrogate; above the last; not all there */
        { "\x80", 1, 0, 0 }, { "\xfe", 1, 0, 0 }, { "\xf8\x88\x80\x80\x80", 5, 0, 0 },
        { "\xc0\x80", 2, 0, 0 }, { "\xc1\xbf", 2, 0, 0 }, { "\xe0\x9f\xbf", 3, 0, 0 },
        { "\xf0\x8f\xbf\xbf", 4, 0, 0 }, { "\xed\xa0\x80", 3, 0, 0 }, { "\xed\xbf\xbf", 3, 0, 0 },
        { "\xf4\x90\x80\x80", 4, 0, 0 }, { "\xf7\xbf\xbf\xbf", 4, 0, 0 },
        { "\xc2\x80", 1, 0, 0 }, { "\xf4\x8f\xbf\xbf", 3, 0, 0 }, { "\xe2\x82" "a", 3, 0, 0 },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint32_t c = 0;
        assert_int_equal(utf8_char((const uint8_t *)rows[i].in, rows[i].n, &c), rows[i].taken);
        assert_int_equal(c, rows[i].c);
    }
}

static void
hex_of_bytes(void **state)
{
    static const uint8_t bytes[] = { 0x00, 0x0f, 0xa5, 0xff };
    static const char *const wrong[] = { "0", "000", "0g", "g0", "0x", " 0", "0 ", "-1" };
    uint8_t back[4];
    char out[9];

    (void)state;
    str_hex(bytes, sizeof(bytes), out);
    assert_string_equal(out, "000fa5ff");
    assert_true(str_unhex(str_of(out), back));
    assert_memory_equal(back, bytes, sizeof(bytes));
    assert_true(str_unhex(str_of("Fe"), back));
    assert_int_equal(back[0], 0xfe);
    assert_true(str_unhex(str_of(""), back));
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_false(str_unhex(str_of(wrong[i]), back));
    str_hex(bytes, 0, out);
    assert_string_equal(out, "");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse_u64_rows),      cmocka_unit_test(parse_hex_rows),
        cmocka_unit_test(parse_size_rows),
        cmocka_unit_test(parse_duration_rows), cmocka_unit_test(parse_milli_rows),
        cmocka_unit_test(to_cstr_refuses_nul), cmocka_unit_test(utf8_rows), cmocka_unit_test(hex_of_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
