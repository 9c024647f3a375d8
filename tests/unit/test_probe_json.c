/* probe/json: whatever is put in, what comes out is one valid JSON value */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <jansson.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/io.h"
#include "probe/json.h"

/* What @write puts, as text. */
static void
written(int (*write)(struct jw *j), struct buf *out, int expected)
{
    int fd = memfd_create("json", MFD_CLOEXEC);
    struct jw j;

    assert_true(fd >= 0);
    jw_open(&j, fd);
    assert_int_equal(write(&j), expected);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(io_read_all(fd, out), 0);
    close(fd);
}

static int
all_kinds(struct jw *j)
{
    jw_object(j, NULL);
    jw_text(j, "text", "a \"quoted\" \\ line\nwith\ttabs and \x01\x1f\x7f");
    jw_text(j, "key with \"quotes\"", "x");
    jw_null(j, "null");
    jw_text(j, "no text", NULL);
    jw_int(j, "int", INT64_MIN);
    jw_uint(j, "uint", INT64_MAX);
    jw_bool(j, "yes", true);
    jw_bool(j, "no", false);
    jw_array(j, "empty");
    jw_end_array(j);
    jw_array(j, "list");
    jw_int(j, NULL, 1);
    jw_object(j, NULL);
    jw_end_object(j);
    jw_array(j, NULL);
    jw_text(j, NULL, "");
    jw_end_array(j);
    jw_end_array(j);
    jw_bytes(j, "bytes", "a\0b", 3);
    jw_end_object(j);
    return jw_finish(j);
}

static void
values_come_back(void **state)
{
    struct buf out = BUF_INIT(1 << 20);
    json_t *v;

    (void)state;
    written(all_kinds, &out, 0);
    v = json_loadb((char *)out.p, out.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    assert_non_null(v);
    assert_string_equal(json_string_value(json_object_get(v, "text")),
                        "a \"quoted\" \\ line\nwith\ttabs and \x01\x1f\x7f");
    assert_non_null(json_object_get(v, "key with \"quotes\""));
    assert_true(json_is_null(json_object_get(v, "null")) && json_is_null(json_object_get(v, "no text")));
    assert_true(json_integer_value(json_object_get(v, "int")) == INT64_MIN);
    assert_true(json_is_true(json_object_get(v, "yes")) && json_is_false(json_object_get(v, "no")));
    assert_int_equal(json_array_size(json_object_get(v, "empty")), 0);
    assert_int_equal(json_array_size(json_object_get(v, "list")), 3);
    assert_int_equal(json_string_length(json_object_get(v, "bytes")), 3);
    json_decref(v);
    buf_free(&out);
}

static unsigned seed;

static int
noise(struct jw *j)
{
    char bytes[600];
    uint32_t x = seed * 2654435761u + 1;

    jw_array(j, NULL);
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < sizeof(bytes); i++) {
            x = x * 1664525u + 1013904223u;
            /* many continuation bytes and starts of sequences among them */
            bytes[i] = (char)(round % 2 != 0 ? 0x80 | (x >> 25) : x >> 24);
        }
        jw_bytes(j, NULL, bytes, sizeof(bytes) - (size_t)round);
    }
    jw_end_array(j);
    return jw_finish(j);
}

static void
any_bytes_are_valid_json(void **state)
{
    (void)state;
    for (seed = 0; seed < 300; seed++) {
        struct buf out = BUF_INIT(1 << 20);
        json_error_t where;
        json_t *v;

        written(noise, &out, 0);
        v = json_loadb((char *)out.p, out.n, JSON_ALLOW_NUL, &where);
        if (v == NULL)
            fail_msg("seed %u: %s at %d", seed, where.text, where.position);
        json_decref(v);
        buf_free(&out);
    }
}

static int
utf8(struct jw *j)
{
    static const char *const rows[] = {
        "\xc3\xa4",         "\xe2\x82\xac", "\xf0\x9f\x94\x94", /* kept */
        "\xc0\xaf",         "\xe0\x80\xaf", "\xed\xa0\x80",
        "\xf4\x90\x80\x80", "\xff",         "\xc3", /* overlong, surrogate, too high, cut */
    };

    jw_array(j, NULL);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        jw_text(j, NULL, rows[i]);
    jw_end_array(j);
    return jw_finish(j);
}

static void
utf8_is_kept_and_the_rest_replaced(void **state)
{
    struct buf out = BUF_INIT(1 << 20);
    json_t *v, *item;
    size_t i;

    (void)state;
    written(utf8, &out, 0);
    v = json_loadb((char *)out.p, out.n, 0, NULL);
    assert_non_null(v);
    assert_string_equal(json_string_value(json_array_get(v, 0)), "\xc3\xa4");
    assert_string_equal(json_string_value(json_array_get(v, 1)), "\xe2\x82\xac");
    assert_string_equal(json_string_value(json_array_get(v, 2)), "\xf0\x9f\x94\x94");
    json_array_foreach(v, i, item)
        if (i >= 3)
            assert_memory_equal(json_string_value(item), "\xef\xbf\xbd", 3);
    json_decref(v);
    buf_free(&out);
}

static int
not_closed(struct jw *j)
{
    jw_object(j, NULL);
    return jw_finish(j);
}

static int
too_deep(struct jw *j)
{
    for (int i = 0; i < JSON_DEPTH_MAX + 2; i++)
        jw_array(j, NULL);
    for (int i = 0; i < JSON_DEPTH_MAX + 2; i++)
        jw_end_array(j);
    return jw_finish(j);
}

static void
mistakes_are_told(void **state)
{
    struct buf out = BUF_INIT(1 << 20);
    struct jw j;

    (void)state;
    written(not_closed, &out, -1);
    written(too_deep, &out, -1);
    buf_free(&out);
    jw_open(&j, -1);      /* nowhere to write to */
    jw_array(&j, NULL);
    jw_end_array(&j);
    assert_int_equal(jw_finish(&j), -1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_back),
        cmocka_unit_test(any_bytes_are_valid_json),
        cmocka_unit_test(utf8_is_kept_and_the_rest_replaced),
        cmocka_unit_test(mistakes_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
