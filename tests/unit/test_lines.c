/* workspace/lines: rows that diff -u would write; and that patch(1)'s rules give the second text back */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "workspace/lines.h"

#define NONE "\n\\ No newline at end of file\n"

static const struct { const char *before, *after, *diff; } rows[] = {
    { "", "", "" },
    { "a\nb\n", "a\nb\n", "" },
    { "", "a\n", "@@ -0,0 +1,1 @@\n+a\n" },
    { "a\n", "", "@@ -1,1 +0,0 @@\n-a\n" },
    { "a", "b", "@@ -1,1 +1,1 @@\n-a" NONE "+b" NONE },
    { "a\n", "a", "@@ -1,1 +1,1 @@\n-a\n+a" NONE },
    { "a\nb\nc\n", "a\nx\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n" },
    { "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\n5\n6\n7\n8\n9\nten\n", "@@ -7,3 +7,4 @@\n 7\n 8\n 9\n+ten\n" },
    /* two changes: six lines between them are one hunk, seven are two */
    { "x\n1\n2\n3\n4\n5\n6\ny\n", "X\n1\n2\n3\n4\n5\n6\nY\n",
      "@@ -1,8 +1,8 @@\n-x\n+X\n 1\n 2\n 3\n 4\n 5\n 6\n-y\n+Y\n" },
    { "x\n1\n2\n3\n4\n5\n6\n7\ny\n", "X\n1\n2\n3\n4\n5\n6\n7\nY\n",
      "@@ -1,4 +1,4 @@\n-x\n+X\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-y\n+Y\n" },
    /* the shortest: one line is removed, one is added elsewhere */
    { "a\nb\nc\nd\n", "b\nc\nd\ne\n", "@@ -1,4 +1,4 @@\n-a\n b\n c\n d\n+e\n" },
};

static void
as_diff_writes_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf out = BUF_INIT(4096);

        assert_int_equal(lines_diff(str_of(rows[i].before), str_of(rows[i].after), 4096, &out), 0);
        assert_int_equal(buf_append(&out, "", 1), 0);
        assert_string_equal((const char *)out.p, rows[i].diff);
        buf_free(&out);
    }
}

/* @hunks applied to @before, to @out. */
static void
apply(struct str before, struct str hunks, struct buf *out)
{
    size_t at = 0, line = 1, first, n;
    const char *p = hunks.n > 0 ? hunks.p : "", *end = p + hunks.n;

    while (p < end) {
        const char *next = memchr(p, '\n', (size_t)(end - p));
        size_t len = (size_t)(next - p) + 1;

        if (*p == '@') {
            char *after;

            first = strtoul(p + 4, &after, 10);
            n = strtoul(after + 1, NULL, 10);
            for (first += n == 0; line < first; line++) {
                const char *nl = memchr(before.p + at, '\n', before.n - at);
                size_t to = (size_t)(nl - before.p) + 1;
                buf_append(out, before.p + at, to - at);
                at = to;
            }
        } else if (*p != '\\') {
            bool open = next + 1 < end && next[1] == '\\';

            if (*p != '-')
                buf_append(out, p + 1, len - 1 - open);
            if (*p != '+') {
                assert_memory_equal(before.p + at, p + 1, len - 1 - open);
                at += len - 1 - open;
                line++;
            }
        }
        p += len;
    }
    buf_append(out, before.p + at, before.n - at);
}

/* The same in every run. */
static unsigned
draw(unsigned below)
{
    static uint64_t x = 88172645463325252ULL;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (unsigned)(x >> 16) % below;
}

static size_t
random_text(char *out, size_t lines, unsigned words)
{
    size_t n = 0;

    for (size_t i = 0; i < lines; i++)
        n += (size_t)snprintf(out + n, 16, "%u\n", draw(words));
    return n > 0 && draw(4) == 0 ? n - 1 : n;
}

static void
what_is_applied_gives_the_second_text(void **state)
{
    static char a[65536], b[65536];

    (void)state;
    for (int i = 0; i < 2000; i++) {
        unsigned words = 1 + draw(12);
        struct str before = { a, random_text(a, draw(40), words) };
        struct str after = { b, random_text(b, draw(40), words) };
        struct buf hunks = BUF_INIT(1 << 20), got = BUF_INIT(1 << 20);

        assert_int_equal(lines_diff(before, after, 1 << 20, &hunks), 0);
        apply(before, (struct str){ (const char *)hunks.p, hunks.n }, &got);
        assert_int_equal(got.n, after.n);
        if (after.n > 0)
            assert_memory_equal(got.p, after.p, after.n);
        buf_free(&hunks);
        buf_free(&got);
    }
}

/* Nothing in common, a hundred thousand empty lines: in bounds, and right. */
static void
far_apart_is_replaced_whole(void **state)
{
    static char a[120000], b[120000];
    const size_t sizes[] = { 3000, 60000, 119999 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct str before = { a, sizes[i] }, after = { b, sizes[i] };
        struct buf hunks = BUF_INIT(1 << 20), got = BUF_INIT(1 << 20);

        for (size_t k = 0; k < sizes[i]; k++) {
            a[k] = k % 2 != 0 ? '\n' : (char)('a' + (k / 2) % 23);
            b[k] = i == 2 ? '\n' : k % 2 != 0 ? '\n' : (char)('A' + (k / 2) % 19);
        }
        assert_int_equal(lines_diff(before, after, 1 << 20, &hunks), 0);
        apply(before, (struct str){ (const char *)hunks.p, hunks.n }, &got);
        assert_int_equal(got.n, after.n);
        assert_memory_equal(got.p, after.p, after.n);
        buf_free(&hunks);
        buf_free(&got);
    }
}

static void
nothing_is_longer_than_it_may_be(void **state)
{
    static char b[50000];
    struct buf out = BUF_INIT(1 << 20);

    (void)state;
    memset(b, 'x', sizeof(b));
    for (size_t i = 99; i < sizeof(b); i += 100)
        b[i] = '\n';
    for (size_t max = 0; max < 3000; max += 37) {
        buf_reset(&out);
        assert_int_equal(lines_diff(STR_LIT(""), (struct str){ b, sizeof(b) }, max, &out), 1);
        assert_true(out.n <= max);
        if (out.n > 0)
            assert_int_equal(out.p[out.n - 1], '\n');
    }
    buf_free(&out);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_diff_writes_them),
        cmocka_unit_test(what_is_applied_gives_the_second_text),
        cmocka_unit_test(far_apart_is_replaced_whole),
        cmocka_unit_test(nothing_is_longer_than_it_may_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
