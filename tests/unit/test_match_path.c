/* match/path: one normal form, whole names, globs that cannot be made slow (R01, R03, R24) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "match/path.h"

#define N(a) ARRAY_LEN(a)

static void
below_rows(void **state)
{
    static const struct { const char *root, *path, *out; } rows[] = {
        { "/workspace", ".env", ".env" },
        { "/workspace", "./.env", ".env" },
        { "/workspace", ".//.env/", ".env" },
        { "/workspace", "a/../.env", ".env" },
        { "/workspace", "a/b/../../c/./d/", "c/d" },
        { "/workspace", "a/..", "." },
        { "/workspace", "", "." },
        { "/workspace", "./.", "." },
        { "/workspace", "../x", "../x" },
        { "/workspace", "a/../../x", "../x" },
        { "/workspace", "../../a/../x", "../../x" },
        { "/workspace", "..", ".." },
        { "/workspace", "...", "..." },
        { "/workspace", ".a/..b", ".a/..b" },
        { "/workspace", "/workspace/.env", ".env" },
        { "/workspace", "//workspace//./.env/", ".env" },
        { "/workspace/", "/workspace/.env", ".env" },
        { "/workspace", "/workspace", "." },
        { "/workspace", "/workspace/", "." },
        { "/workspace", "/workspace/../workspace/x", "x" },
        { "/workspace", "/workspaces/x", "/workspaces/x" },
        { "/workspace", "/workspace/../x", "/x" },
        { "/workspace", "/../../etc//passwd", "/etc/passwd" },
        { "/workspace", "/", "/" },
        { "/", "/a/b", "a/b" },
        { "/", "/", "." },
        { "", "/a/./b", "/a/b" },
        { "", "a/./b", "a/b" },
        { "/workspace", "a b/\n/\xff", "a b/\n/\xff" },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        char path[64];
        snprintf(path, sizeof(path), "%s", rows[i].path);
        path_below(rows[i].root, path);
        if (strcmp(path, rows[i].out) != 0)
            fail_msg("\"%s\" below \"%s\" is \"%s\"", rows[i].path, rows[i].root, path);
    }
}

static void
normalise_rows(void **state)
{
    static const struct { const char *path, *base; bool glob; enum path_fault fault; const char *out; } rows[] = {
        { "/", "", false, PATH_OK, "/" },
        { "//a//b/", "", false, PATH_OK, "/a/b" },
        { "/a/./b/.", "", false, PATH_OK, "/a/b" },
        { "/a/b/../c", "", false, PATH_OK, "/a/c" },
        { "/a/..", "", false, PATH_OK, "/" },
        { "/..", "", false, PATH_ESCAPES, NULL },
        { "/a/../../b", "", false, PATH_ESCAPES, NULL },
        { "a", "", false, PATH_RELATIVE, NULL },
        { "a", "base", false, PATH_RELATIVE, NULL },
        { "a/b", "/base", false, PATH_OK, "/base/a/b" },
        { "../x", "/base/dir", false, PATH_OK, "/base/x" },
        { "../../../x", "/base/dir", false, PATH_ESCAPES, NULL },
        { ".", "/base", false, PATH_OK, "/base" },
        { "", "/base", false, PATH_EMPTY, NULL },
        { "...", "/", false, PATH_OK, "/..." },
        { "/a*/..", "", false, PATH_OK, "/" },
        { "/a*/../b", "", true, PATH_GLOB_PARENT, NULL },
        { "/a/../b*", "", true, PATH_OK, "/b*" },
        { "/a/**", "", true, PATH_OK, "/a" },
        { "/a/**/**/", "", true, PATH_OK, "/a" },
        { "/**", "", true, PATH_OK, "/" },
        { "/a/**/b", "", true, PATH_OK, "/a/**/b" },
        { "/a/[b", "", true, PATH_GLOB_SYNTAX, NULL },
        { "/a/[b/c]", "", true, PATH_GLOB_SYNTAX, NULL },
        { "/a/b\\", "", true, PATH_GLOB_SYNTAX, NULL },
        { "/a/[]]", "", true, PATH_OK, "/a/[]]" },
        /* a base is a place: its brackets are letters */
        { "*.c", "/we[i]rd/*", true, PATH_OK, "/we\\[i]rd/\\*/*.c" },
        { "x", "/we[i]rd", false, PATH_OK, "/we[i]rd/x" },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        char out[PATH_TEXT_MAX + 1];
        size_t n = 0;
        enum path_fault fault =
            path_normalise(str_of(rows[i].path), str_of(rows[i].base), rows[i].glob, out, sizeof(out), &n);
        if (fault != rows[i].fault || (fault == PATH_OK && strcmp(out, rows[i].out) != 0))
            fail_msg("\"%s\": %s, \"%s\"", rows[i].path, path_fault_text(fault), fault == PATH_OK ? out : "");
        if (fault == PATH_OK)
            assert_int_equal(n, strlen(out));
    }
}

static void
lengths_and_nul(void **state)
{
    char out[PATH_TEXT_MAX + 1], name[300], path[5000];
    size_t n;

    (void)state;
    assert_int_equal(path_normalise((struct str){ "/a\0/etc", 7 }, STR_LIT(""), false, out, sizeof(out), &n), PATH_NUL);
    memset(name, 'n', sizeof(name));
    name[0] = '/';
    assert_int_equal(path_normalise((struct str){ name, 256 }, STR_LIT(""), false, out, sizeof(out), &n), PATH_OK);
    assert_int_equal(path_normalise((struct str){ name, 257 }, STR_LIT(""), false, out, sizeof(out), &n),
                     PATH_NAME_TOO_LONG);
    for (size_t i = 0; i < sizeof(path); i++)
        path[i] = i % 2 == 0 ? '/' : 'p';
    assert_int_equal(path_normalise((struct str){ path, PATH_TEXT_MAX - 1 }, STR_LIT(""), false, out, sizeof(out), &n),
                     PATH_OK);
    assert_int_equal(n, PATH_TEXT_MAX - 1);
    assert_int_equal(path_normalise((struct str){ path, 4098 }, STR_LIT(""), false, out, sizeof(out), &n),
                     PATH_TOO_LONG);
    /* a buffer that is too small is a fault, not an overrun */
    assert_int_equal(path_normalise(STR_LIT("/abcdef"), STR_LIT(""), false, out, 4, &n), PATH_TOO_LONG);
}

static void
within_rows(void **state)
{
    static const struct { const char *path, *dir; bool in; } rows[] = {
        { "/a/b", "/a/b", true }, { "/a/b/c", "/a/b", true }, { "/a/bc", "/a/b", false }, { "/a", "/a/b", false },
        { "/a", "/", true },      { "/", "/", true },         { "/", "/a", false },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++)
        if (path_within(str_of(rows[i].path), str_of(rows[i].dir)) != rows[i].in)
            fail_msg("%s within %s", rows[i].path, rows[i].dir);
}

static void
glob_rows(void **state)
{
    static const struct { const char *pattern, *path; bool match; } rows[] = {
        { "/a/*.c", "/a/x.c", true },          { "/a/*.c", "/a/.c", true },
        { "/a/*.c", "/a/b/x.c", false },       { "/a/*", "/a/.hidden", true },
        { "/a/*", "/a", false },               { "/a/?", "/a/b", true },
        { "/a/?", "/a/bb", false },            { "/a/?", "/a/\xc3\xa9", true },
        { "/a/[a-c]x", "/a/bx", true },        { "/a/[a-c]x", "/a/dx", false },
        { "/a/[!a-c]x", "/a/dx", true },       { "/a/[^a-c]x", "/a/bx", false },
        { "/a/[]x]", "/a/]", true },           { "/a/[a-]", "/a/-", true },
        { "/a/\\*", "/a/*", true },            { "/a/\\*", "/a/b", false },
        { "/a/[\\]]", "/a/]", true },          { "/a/**/c", "/a/c", true },
        { "/a/**/c", "/a/b/c", true },         { "/a/**/c", "/a/b/b/c", true },
        { "/a/**/c", "/a/b/c/d", false },      { "/a/**/c", "/a/bc", false },
        { "/**/.env", "/.env", true },         { "/**/.env", "/x/y/.env", true },
        { "/**/.env", "/x/y/.env.local", false }, { "/a/**", "/a/b/c", true },
        { "/a/**", "/a", true },               { "/a/**/b/**/c", "/a/x/b/y/z/c", true },
        { "/a/**/b/**/c", "/a/x/y/z/c", false }, { "/a/b**c/d", "/a/bxxc/d", true },
        { "/a/b**c/d", "/a/bx/xc/d", false },  { "/a/*b*c*", "/a/xxbyycz", true },
        { "/a/*b*c*", "/a/xxcyyb", false },    { "/*/x", "/a/x", true },
        { "/*", "/", false },                  { "/", "/", true },
        { "/", "/a", false },                  { "/[a", "/[a", false },
        { "a", "a", false },                   { "/**", "/", true },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++)
        if (path_glob_match(str_of(rows[i].pattern), str_of(rows[i].path)) != rows[i].match)
            fail_msg("%s against %s", rows[i].pattern, rows[i].path);
}

static void
covers_rows(void **state)
{
    static const struct { const char *pattern, *path; bool literal, covers; size_t depth; } rows[] = {
        { "/a/b", "/a/b/c", false, true, 4 },    { "/a/b", "/a/bc", false, false, 0 },
        { "/a/*", "/a/b/c/d", false, true, 4 },  { "/a/**/c", "/a/c/b/c/d", false, true, 8 },
        { "/a/*.d", "/a/x.d/y", false, true, 6 }, { "/a/*", "/b/c", false, false, 0 },
        { "/a/[x]", "/a/x", true, false, 0 },    { "/a/[x]", "/a/[x]/y", true, true, 6 },
        { "/*", "/a/b", false, true, 2 },        { "/", "/a", false, true, 1 },
        { "/**/x", "/x", false, true, 2 },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        size_t depth = 0;
        bool covers = path_covers(str_of(rows[i].pattern), rows[i].literal, str_of(rows[i].path), &depth);
        if (covers != rows[i].covers || (covers && depth != rows[i].depth))
            fail_msg("%s over %s: %d, depth %zu", rows[i].pattern, rows[i].path, covers, depth);
    }
}

static void
prefix_rows(void **state)
{
    (void)state;
    assert_int_equal(path_glob_prefix(STR_LIT("/a/b/x*y/z")), 4);
    assert_int_equal(path_glob_prefix(STR_LIT("/a/b")), 4);
    assert_int_equal(path_glob_prefix(STR_LIT("/**/x")), 0);
    assert_int_equal(path_glob_prefix(STR_LIT("/a/\\[b")), 2);
}

/* The patterns that take exponential time in a naive matcher; here they take milliseconds. */
static void
hostile_patterns_end(void **state)
{
    char pattern[2000] = "", path[4000] = "";
    size_t n = 0, m = 0;

    (void)state;
    for (int i = 0; i < 200; i++) {
        memcpy(pattern + n, "/**/a*", 6);
        n += 6;
    }
    memcpy(pattern + n, "/b", 2);
    n += 2;
    for (int i = 0; i < 1900; i++) {
        memcpy(path + m, "/a", 2);
        m += 2;
    }
    assert_false(path_glob_match((struct str){ pattern, n }, (struct str){ path, m }));
    memset(pattern, '*', sizeof(pattern));
    for (size_t i = 1; i < 200; i += 2)
        pattern[i] = 'a';
    pattern[0] = '/';
    memset(path, 'a', 250);
    path[0] = '/';
    pattern[200] = 'b';
    assert_false(path_glob_match((struct str){ pattern, 201 }, (struct str){ path, 250 }));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(below_rows),
        cmocka_unit_test(normalise_rows), cmocka_unit_test(lengths_and_nul),  cmocka_unit_test(within_rows),
        cmocka_unit_test(glob_rows),      cmocka_unit_test(covers_rows),      cmocka_unit_test(prefix_rows),
        cmocka_unit_test(hostile_patterns_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
