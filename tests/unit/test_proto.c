/* proto/field: a message comes out as it went in, and nothing but what its list says is read */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "proto/field.h"

enum colour { RED = 1, GREEN };

static bool
is_lower(const char *text)
{
    return text[strspn(text, "abcdefghijklmnopqrstuvwxyz")] == '\0';
}

#define PART(F) F(U8, a) F(TEXT, b, 4)
PROTO_STRUCT(part, PART);
PROTO_SHAPE(part, PART)

static bool
has_part(const void *m);

#define ALL(F) \
    F(BOOL, yes) \
    F(ENUM, colour, colour, RED, GREEN) \
    F(FLAGS, flags, 0x05) \
    F(U16_IN, port, 1, 9000) \
    F(U32, n) \
    F(U64S, pair, 2) \
    F(TEXT_IF, word, 8, is_lower) \
    F(COPY, name, 8, NULL) \
    F(BYTES, bytes, 4) \
    F(STR, str, 4) \
    F(RAW, raw, 3) \
    F(REF, ref, 2) \
    F(MAYBE, maybe, 2) \
    F(WORDS, words, 2, 3, 5, 24) \
    F(LIST, part, parts, 1, 2) \
    F(STRUCT_IF, part, one, has_part) \
    F(UNSAID, int kept, kept) \
    F(BLANK, blank) \
    F(REST, rest, 0, 4)
PROTO_STRUCT(all, ALL);

static bool
has_part(const void *m)
{
    return ((const struct all *)m)->yes;
}

static bool
all_well(const struct all *m)
{
    return m->n != 13;
}
PROTO_SHAPE_WELL(all, ALL, all_well)

#define WHY(F) F(U8, a) F(ERR, why)
PROTO_STRUCT(why, WHY);
PROTO_SHAPE(why, WHY)

static const struct all full = {
    .yes = true, .colour = GREEN, .flags = 4, .port = 80, .n = 7, .pair = { 1, UINT64_MAX }, .word = "word",
    .name = "Name", .bytes = (const uint8_t *)"\0\1", .n_bytes = 2, .str = { "st", 2 }, .raw = { 1, 2, 3 },
    .ref = (const uint8_t *)"re", .maybe = (const uint8_t *)"ma", .words = { "one", "" }, .n_words = 2,
    .parts = { { 1, "p" }, { 2, "q" } }, .n_parts = 2, .one = { 9, "nine" }, .kept = 5, .blank = "said nowhere",
    .rest = (const uint8_t *)"rest", .n_rest = 4,
};

static bool
reads(const struct buf *b, size_t n, struct all *m)
{
    struct wire_in in = wire_in_of(b->p, n);

    return all_get(&in, m);
}

static void
comes_out_as_it_went_in(void **state)
{
    cleanup_buf struct buf b = BUF_INIT(1024), again = BUF_INIT(1024);
    struct all m;

    (void)state;
    assert_int_equal(all_put(&b, &full), 0);
    assert_true(b.n >= all_LEAST && b.n <= all_MOST && reads(&b, b.n, &m));
    assert_int_equal(all_put(&again, &m), 0);
    assert_true(again.n == b.n && memcmp(again.p, b.p, b.n) == 0);
    assert_true(m.pair[1] == UINT64_MAX && m.n_words == 2 && m.words[2] == NULL && strcmp(m.one.b, "nine") == 0);
    assert_true(m.kept == 0 && m.blank[0] == '\0' && m.n_rest == 4 && m.str.n == 2 && m.maybe != NULL);
}

static void
what_is_empty(void **state)
{
    const struct all none = { .colour = RED, .port = 1, .ref = (const uint8_t *)"re", .one = { 1, "not there" } };
    cleanup_buf struct buf b = BUF_INIT(1024);
    struct all m;

    (void)state;
    assert_int_equal(all_put(&b, &none), 0);
    assert_true(b.n == all_LEAST && reads(&b, b.n, &m));
    assert_true(m.maybe == NULL && m.n_parts == 0 && m.words[0] == NULL && m.one.b == NULL && m.word[0] == '\0');
}

/* Cut anywhere, longer, or with one value that is out of its range. */
static void
nothing_else_is_read(void **state)
{
    const struct all wrong[] = {
        { .colour = 0 }, { .colour = 3 }, { .flags = 2 }, { .port = 0 }, { .port = 9001 }, { .word = "Word" },
        { .n = 13 },
    };
    cleanup_buf struct buf b = BUF_INIT(1024);
    struct all m;

    (void)state;
    assert_int_equal(all_put(&b, &full), 0);
    for (size_t n = 0; n < b.n - full.n_rest; n++)
        assert_false(reads(&b, n, &m));
    assert_int_equal(buf_put_u8(&b, 0), 0);
    assert_false(reads(&b, b.n, &m));
    b.p[0] = 2;                 /* neither yes nor no */
    assert_false(reads(&b, b.n - 1, &m));
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct all one = full;
        one.colour = i < 2 ? wrong[i].colour : RED;
        one.flags = wrong[i].flags;
        one.port = i == 3 || i == 4 ? wrong[i].port : 1;
        one.word = wrong[i].word;
        one.n = wrong[i].n;
        buf_reset(&b);
        assert_int_equal(all_put(&b, &one), 0);
        assert_false(reads(&b, b.n, &m));
    }
}

static void
what_has_no_form_is_not_written(void **state)
{
    static const char long_text[] = "123456789";
    struct all one[6];

    (void)state;
    for (size_t i = 0; i < 6; i++)
        one[i] = full;
    one[0].word = long_text;
    one[1].n_bytes = 5;
    one[2].n_words = 4;
    one[3].n_parts = 3;
    one[4].ref = NULL;
    one[5].n_rest = 5;
    for (size_t i = 0; i < 6; i++) {
        cleanup_buf struct buf b = BUF_INIT(1024);
        assert_int_equal(all_put(&b, &one[i]), -1);
    }
}

static void
an_error_is_a_field(void **state)
{
    struct why m = { .a = 1 }, back;
    cleanup_buf struct buf b = BUF_INIT(2048);
    struct wire_in in;

    (void)state;
    err_set(&m.why, ERR_LIMIT, "a.code", "a message");
    assert_int_equal(why_put(&b, &m), 0);
    in = wire_in_of(b.p, b.n);
    assert_true(why_get(&in, &back) && back.a == 1 && err_is(&back.why, "a.code"));
    in = wire_in_of(b.p, b.n - 1);
    assert_false(why_get(&in, &back));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_out_as_it_went_in), cmocka_unit_test(what_is_empty),
        cmocka_unit_test(nothing_else_is_read), cmocka_unit_test(what_has_no_form_is_not_written),
        cmocka_unit_test(an_error_is_a_field),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
