/* What a collector is told: protobuf, and what a configuration says (R89) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "otlp/otlp.h"

/* As Google's library writes it. */
static void
a_span(void **state)
{
    static const char golden[] =
        "128e010a10000102030405060708090a0b0c0d0e0f12080001020304050607220801020304050607082a0c73616e64626f782065786563"
        "30013900002a36fe9c97174190d02d36fe9c97174a180a1170726f636573732e657869742e636f6465120318ac024a100a047465787412"
        "080a0674c3a93f73744a140a056d696e7573120b18ffffffffffffffffff017a021802";
    struct export_span s = { .kind = EXPORT_INSIDE, .failed = true, .begin_us = 1700000000000000,
                             .end_us = 1700000000000250, .name = "sandbox exec" };
    cleanup_buf struct buf b = BUF_INIT(4096);
    char hex[sizeof(golden)];

    (void)state;
    for (uint8_t i = 0; i < 16; i++)
        s.trace[i] = i;
    for (uint8_t i = 0; i < 8; i++) {
        s.span[i] = i;
        s.parent[i] = (uint8_t)(i + 1);
    }
    export_number(&s, "process.exit.code", 300);
    export_text(&s, "text", "t\xc3\xa9\xc3st");      /* one byte is no UTF-8 */
    export_text(&s, "nothing", "");
    export_text(&s, "nothing", NULL);
    export_number(&s, "minus", -1);
    assert_int_equal(otlp_span(&b, &s), 0);
    assert_int_equal(b.n * 2, sizeof(golden) - 1);
    str_hex(b.p, b.n, hex);
    assert_string_equal(hex, golden);
}

/* A span that ends before it began has no time below none; one without room is not half there. */
static void
spans_at_the_edges(void **state)
{
    struct export_span s = { .kind = EXPORT_REQUEST, .begin_us = 2, .end_us = 1, .name = "x" };
    uint8_t room[32];
    struct buf small = BUF_INIT_IN(room, sizeof(room));
    cleanup_buf struct buf b = BUF_INIT(4096);

    (void)state;
    assert_int_equal(otlp_span(&b, &s), 0);
    assert_non_null(memmem(b.p, b.n, "\x39\xd0\x07\0\0\0\0\0\0\x41\xd0\x07\0\0\0\0\0\0", 18));
    assert_int_equal(otlp_span(&small, &s), -1);
    for (int i = 0; i < 2 * EXPORT_NOTES; i++)
        export_number(&s, "n", i);
    assert_int_equal(s.n_notes, EXPORT_NOTES);
}

static bool
each(void *ctx, struct str name, struct str value)
{
    struct buf *out = ctx;

    buf_printf(out, "<%.*s|%.*s>", (int)name.n, name.p, (int)value.n, value.p);
    return true;
}

static void
pairs(void **state)
{
    static const struct { const char *text, *said; bool well; } rows[] = {
        { "", "", true }, { "a=b", "<a|b>", true }, { " a = b , c=d ", "<a|b><c|d>", true }, { "a=b,", "<a|b>", true },
        { "a=b%20c%3D", "<a|b c=>", true }, { "a=", "<a|>", true }, { "a=b=c", "<a|b=c>", true },
        { "a=%C3%a9", "<a|\xc3\xa9>", true },
        { "a", "", false }, { "=b", "", false }, { "a=%", "", false }, { "a=%2", "", false }, { "a=%zz", "", false },
        { "a=%00", "", false }, { "a=b,c", "<a|b>", false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_buf struct buf b = BUF_INIT(4096);
        assert_int_equal(otlp_pairs(str_of(rows[i].text), each, &b), rows[i].well);
        buf_put_u8(&b, 0);
        assert_string_equal((char *)b.p, rows[i].said);
    }
}

/* No value begins another field, and none is one of those that say where a request ends, or for whom it is. */
static void
headers(void **state)
{
    static const char *const bad[] = { "X", ": b", "X Y: b", "Host: x", "content-length: 1", "Transfer-Encoding: x",
                                       "X: a\001b", "X: a\x7f", "Connection: close", "X\xc3: b" };
    cleanup_buf struct buf b = BUF_INIT(4096);
    unsigned line;

    (void)state;
    assert_true(otlp_header_lines(str_of("# c\n\nAuthorization: Bearer x:y \r\nX-A:b"), &b, &line));
    buf_put_u8(&b, 0);
    assert_string_equal((char *)b.p, "Authorization: Bearer x:y\r\nX-A: b\r\n");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char text[128];
        buf_reset(&b);
        snprintf(text, sizeof(text), "A: b\n%s\nC: d\n", bad[i]);
        assert_false(otlp_header_lines(str_of(text), &b, &line));
        assert_int_equal(line, 2);
    }
    buf_reset(&b);
    assert_false(otlp_header_pairs(str_of("x=a%0d%0aHost:%20evil"), &b));
    assert_int_equal(b.n, 0);
}

static void
answers(void **state)
{
    struct post_answer a;
    static const char whole[] = "HTTP/1.1 429 Slow\r\nretry-after:  7 \r\nContent-Length: 2\r\n\r\nokmore";
    const size_t n = sizeof(whole) - 1;

    (void)state;
    for (size_t i = 0; i < n - 4; i++)
        assert_int_equal(post_answer(whole, i, &a), 0);
    assert_int_equal(post_answer(whole, n, &a), 1);
    assert_int_equal(a.status, 429);
    assert_int_equal(a.after_s, 7);
    assert_int_equal(a.body.n, 2);
    assert_int_equal(post_answer("HTTP/1.1 503 x\r\nRetry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n\r\n", 63, &a), 1);
    assert_int_equal(a.after_s, 0);
    assert_int_equal(post_answer("SSH-2.0-x\r\n\r\n", 13, &a), -1);
    assert_int_equal(otlp_rejected((struct str){ "\x0a\x06\x08\xac\x02\x12\x01x", 8 }), 300);
    assert_int_equal(otlp_rejected((struct str){ "\x0a\x06\x08\xac\x02\x12\x09x", 8 }), 300);
    assert_int_equal(otlp_rejected((struct str){ "\x0a\x7f\x08\x01", 4 }), 0);
    assert_int_equal(otlp_rejected((struct str){ "", 0 }), 0);
    assert_int_equal(otlp_rejected((struct str){ "\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13 }), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_span), cmocka_unit_test(spans_at_the_edges), cmocka_unit_test(pairs),
        cmocka_unit_test(headers), cmocka_unit_test(answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
