/* keeper/context_scan, wire/rich: what a context's process writes, told apart however it is cut; results of a stranger */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "keeper/context_scan.h"
#include "proto/edge.h"
#include "wire/rich.h"

#define DIGITS "0123456789abcdef0123456789abcdef"
#define M      "\1" DIGITS

/* What comes of a stream, as text: [..] results, the last with a dot, {..} the end, ! what none says. */
static void
scan(struct context_scan *s, const char *text, size_t n, size_t step, struct buf *out)
{
    for (size_t at = 0; at < n; at += step) {
        const uint8_t *p = (const uint8_t *)text + at;
        size_t left = n - at < step ? n - at : step;
        struct scan_piece piece;
        while ((piece = context_scan_next(s, &p, &left)).kind != SCAN_NONE) {
            if (piece.kind == SCAN_OUTPUT)
                buf_append(out, piece.p, piece.n);
            else if (piece.kind == SCAN_RESULT)
                buf_printf(out, "[%.*s%s]", (int)piece.n, (const char *)piece.p, piece.last ? "." : "");
            else if (piece.kind == SCAN_ASKED)
                buf_printf(out, "?%.*s", (int)piece.n, (const char *)piece.p);
            else if (piece.kind == SCAN_END)
                buf_printf(out, "{%u}", piece.code);
            else
                buf_puts(out, "!");
        }
        assert_int_equal(left, 0);
    }
    buf_nul(out);
}

static const struct { const char *in, *out; } streams[] = {
    { "nobody's", "" },
    { "before" M "B0000" "out" M "E00010" "after", "out{0}" },
    { M "B0000" "a\1b" M "L0003" "xyz" "c" M "E0003255", "a\1b[xyz.]c{255}" },
    { M "B0000" "\1\1" M "E00017", "\1\1{7}" },                          /* a byte of the mark, and then it */
    { M "B0000" "\1" "0123" M "E00017", "\1" "0123{7}" },                  /* a part of it */
    { M "B0000" "\1" DIGITS, "" },
    { M "B0000" M "L0000" M "R0001" "a" M "L0001" "b" M "E0000" M "E00011", "[.][a][b.]{0}" },
    { M "B0000" "x" M "S0001" "1" "y" M "S0001" "2" M "E00010", "x?1y?2{0}" },
    { M "B0000" "x" M "B0000" "y", "x!" },
    { M "S0001" "1", "!" },                                             /* of nothing that can be left */
    { M "B0000" M "S0000", "!" },
    { M "B0000" M "S0002" "12", "!" },
    { M "E00010", "!" },
    { M "L0001" "a", "!" },
    { M "B0001" "a", "!" },
    { M "B0000" M "Z0000" "y", "!" },
    { M "B0000" M "L1001", "!" },                                       /* 4097 */
    { M "B0000" M "Lg000", "!" },
    { M "B0000" M "L00A0", "!" },
    { M "B0000" M "E0003256", "!" },
    { M "B0000" M "E00041000", "!" },
    { M "B0000" M "E0001x", "!" },
};

static void
streams_are_told_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
        size_t n = strlen(streams[i].in);
        for (size_t step = 1; step <= n; step++) {
            cleanup_buf struct buf out = BUF_INIT(65536);
            struct context_scan s;
            context_scan_begin(&s, DIGITS);
            scan(&s, streams[i].in, n, step, &out);
            if (step == n || strchr(streams[i].out, '[') == NULL)
                assert_string_equal((char *)out.p, streams[i].out);
        }
    }
}

/* Each piece is told by itself: bytes that could begin a mark and do not are in no pieces of their own. */
static void
what_is_no_mark_is_one_piece(void **state)
{
    uint8_t text[CONTEXT_MARK + CONTEXT_HEAD + 4096];
    struct context_scan s;
    size_t n = sizeof(text), pieces = 0;
    const uint8_t *p = text;

    (void)state;
    memset(text, '\1', sizeof(text));
    memcpy(text, M "B0000", CONTEXT_MARK + CONTEXT_HEAD);
    context_scan_begin(&s, DIGITS);
    while (context_scan_next(&s, &p, &n).kind == SCAN_OUTPUT)
        pieces++;
    for (p = text + CONTEXT_MARK + CONTEXT_HEAD, n = 4096; context_scan_next(&s, &p, &n).kind == SCAN_OUTPUT;)
        pieces++;
    assert_in_range(pieces, 1, 4);
}

static void
another_call_has_another_mark(void **state)
{
    static const char old[] = M "B0000" "out" M "E00010";
    cleanup_buf struct buf out = BUF_INIT(65536);
    struct context_scan s;

    (void)state;
    context_scan_begin(&s, "ffffffffffffffffffffffffffffffff");
    scan(&s, old, sizeof(old) - 1, sizeof(old), &out);
    assert_string_equal((char *)out.p, "");
}

static const struct { const char *in, *out; } results[] = {
    { "main 1\n1text 2\n42", "{\"main\":true,\"text\":\"42\"}" },
    { "text 2\n42main 1\n0", "{\"main\":false,\"text\":\"42\"}" },
    { "main 1\n1text 1\n\xff", "{\"main\":true,\"text\":\"\xef\xbf\xbd\"}" },
    { "main 1\n1png 4\niVBO", "{\"main\":true,\"png\":\"iVBO\"}" },
    { "main 1\n1png 4\n<b/>", "{\"main\":true}" },
    { "main 1\n1png 4\n=aaa", "{\"main\":true}" },
    { "main 1\n1png 3\nabc", "{\"main\":true}" },
    { "main 1\n1png 4\na=bc", "{\"main\":true}" }, { "main 1\n1png 4\nab=c", "{\"main\":true}" },
    { "main 1\n1png 4\nab==", "{\"main\":true,\"png\":\"ab==\"}" },
    { "main 1\n1json 14\n[1,{\"a\":null}]", "{\"json\":[1,{\"a\":null}],\"main\":true}" },
    { "main 1\n1json 1\n3", "{\"json\":3,\"main\":true}" },
    { "main 1\n1json 3\nNaN", "{\"main\":true}" },
    { "name 1\nEvalue 0\ntraceback 1\nt", "{\"name\":\"E\",\"traceback\":\"t\",\"value\":\"\"}" },
    { "", NULL }, { "text 1\nx", NULL }, { "value 1\nx", NULL }, { "name 1\nE", NULL },
    { "main 1\n1name 1\nx", NULL }, { "name 1\nxmain 1\n1", NULL },
    { "main 1\n1text 1\nxtext 1\ny", NULL }, { "main 1\n1secret 1\nx", NULL },
    { "main 1\n1text 9\nx", NULL }, { "main 1\n1text -1\nx", NULL }, { "main 1\n1text\nx", NULL },
    { "main 1\n1text 99999999999999999999\nx", NULL }, { "main 1", NULL }, { "main 1\n1\n", NULL },
};

static void
results_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(results); i++) {
        size_t values = 0;
        json_t *one = rich_read((const uint8_t *)results[i].in, strlen(results[i].in), &values);
        cleanup_free char *text = one != NULL ? json_dumps(one, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
        if (results[i].out == NULL)
            assert_null(one);
        else
            assert_string_equal(text != NULL ? text : "(none)", results[i].out);
        json_decref(one);
    }
}

/* A few bytes that would become very many values, or very deep ones. */
static void
json_is_bounded(void **state)
{
    static char text[32 + 3 * RICH_VALUES];
    size_t n = 0, head = 9;

    (void)state;
    for (int deep = 0; deep < 2; deep++) {
        size_t values = 0;
        json_t *one;
        n = deep != 0 ? 2 * (RICH_DEPTH + 1) : 2 * RICH_VALUES;
        head = (size_t)snprintf(text, sizeof(text), "main 1\n1json %zu\n", n);
        for (size_t i = 0; i < n; i++)
            text[head + i] = deep != 0 ? (i < n / 2 ? '[' : ']') : i % 2 == 0 ? '0' : ',';
        if (deep == 0) {
            text[head] = '[';
            text[head + n - 1] = ']';
        }
        one = rich_read((const uint8_t *)text, head + n, &values);
        assert_non_null(one);
        assert_null(json_object_get(one, "json"));
        assert_int_equal(values, deep != 0 ? 0 : RICH_VALUES + 1);
        json_decref(one);
    }
}

/* Nor do many results become what one must not; what they became is counted. */
static void
json_is_bounded_in_all(void **state)
{
    static char text[32 + RICH_VALUES];
    struct rich r = { .lost = false };
    json_t *answer = json_object(), *one;
    size_t n = 2 * 1000 - 1, told = 0, i;
    int head = snprintf(text, sizeof(text), "main 1\n1json %zu\n", n + 2);

    (void)state;
    text[head] = '[';
    for (i = 0; i < n; i++)
        text[(size_t)head + 1 + i] = i % 2 == 0 ? '0' : ',';
    text[(size_t)head + 1 + n] = ']';
    for (i = 0; i < 9; i++)
        assert_non_null(rich_add(&r, (const uint8_t *)text, (size_t)head + n + 2, true, true));
    assert_true(rich_held(&r) >= 4 * 1001 * RICH_VALUE);
    rich_put(&r, answer);
    json_array_foreach(json_object_get(answer, "results"), i, one)
        told += json_object_get(one, "json") != NULL;
    assert_int_equal(told, 4);
    assert_true(json_is_true(json_object_get(answer, "results_truncated")));
    json_decref(answer);
    rich_free(&r);
}

static void
what_does_not_fit_is_left_out(void **state)
{
    static uint8_t large[1 << 20];
    struct rich r = { .lost = false };
    json_t *answer = json_object();

    (void)state;
    assert_non_null(rich_add(&r, (const uint8_t *)"main 1\n1", 8, true, true));
    assert_null(rich_add(&r, (const uint8_t *)"main 1\n1", 8, true, false));        /* no memory */
    for (int i = 0; i < 9; i++)
        assert_null(rich_add(&r, large, sizeof(large), false, true));
    assert_true(rich_held(&r) <= 2 * 8);
    assert_null(rich_add(&r, large, 1, true, true));
    assert_non_null(rich_add(&r, (const uint8_t *)"main 1\n0", 8, true, true));
    assert_non_null(rich_add(&r, (const uint8_t *)"name 1\nEvalue 1\nv", 17, true, true));
    for (int i = 0; i < RICH_RESULTS + 9; i++)
        (void)rich_add(&r, (const uint8_t *)"main 1\n0", 8, true, true);
    assert_null(rich_add(&r, (const uint8_t *)"na", 2, false, true));       /* what it raised is told even so */
    assert_non_null(rich_add(&r, (const uint8_t *)"me 1\nFvalue 1\nw", 15, true, true));
    rich_put(&r, answer);
    assert_string_equal(json_string_value(json_object_get(json_object_get(answer, "error"), "name")), "F");
    assert_int_equal(json_array_size(json_object_get(answer, "results")), RICH_RESULTS);
    assert_true(json_is_true(json_object_get(answer, "results_truncated")));
    assert_non_null(json_object_get(json_object_get(answer, "error"), "value"));
    json_decref(answer);
    rich_free(&r);
}

/* What a front may ask of contexts, and what is none of ours. */
static void
operations_are_of_one_form(void **state)
{
    static const struct { enum op_kind kind; uint8_t flags; uint64_t context, timeout_ms; size_t words, env; bool well; } rows[] = {
        { OP_EXEC, OP_BACKGROUND, EDGE_CONTEXT_NEW, 0, 1, 1, true },
        { OP_EXEC, OP_BACKGROUND | OP_LIMITS, EDGE_CONTEXT_NEW, 0, 1, 0, true },
        { OP_EXEC, 0, EDGE_CONTEXT_NEW, 0, 1, 0, false },
        { OP_EXEC, OP_BACKGROUND | OP_STDIN, EDGE_CONTEXT_NEW, 0, 1, 0, false },
        { OP_EXEC, OP_BACKGROUND, EDGE_CONTEXT_NEW, 0, 2, 0, false },
        { OP_EXEC, OP_BACKGROUND, EDGE_CONTEXT_NEW, 9, 1, 0, false },
        { OP_EXEC, 0, 77, 9, 2, 0, true },
        { OP_EXEC, 0, 77, 0, 1, 0, false }, { OP_EXEC, 0, 77, 0, 3, 0, false }, { OP_EXEC, 0, 77, 0, 2, 1, false },
        { OP_EXEC, OP_STDIN, 77, 0, 2, 0, false }, { OP_EXEC, OP_BACKGROUND, 77, 0, 2, 0, false },
        { OP_READ, 0, 77, 0, 0, 0, false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_buf struct buf b = BUF_INIT(EDGE_OP_BYTES);
        static struct edge_op op, got;
        struct wire_in in;
        op = (struct edge_op){ .kind = rows[i].kind, .flags = rows[i].flags, .context = rows[i].context, .path = "",
                               .timeout_ms = rows[i].timeout_ms, .argv = { "python", "1", "2" },
                               .n_argv = rows[i].words, .env = { "A=1" }, .n_env = rows[i].env };
        assert_int_equal(edge_op_put(&b, &op), 0);
        in = wire_in_of(b.p, b.n);
        assert_int_equal(edge_op_get(&in, &got), rows[i].well);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_told_apart), cmocka_unit_test(what_is_no_mark_is_one_piece),
        cmocka_unit_test(another_call_has_another_mark),
        cmocka_unit_test(results_are_read), cmocka_unit_test(json_is_bounded),
        cmocka_unit_test(json_is_bounded_in_all),
        cmocka_unit_test(what_does_not_fit_is_left_out), cmocka_unit_test(operations_are_of_one_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
