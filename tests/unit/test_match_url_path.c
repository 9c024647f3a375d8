/* match/url_path and match/url_host: one spelling for what is one path, none for what servers read in two ways (R13) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/array.h"
#include "match/url_host.h"
#include "match/url_path.h"

#define N(a) ARRAY_LEN(a)

static void
requests(void **state)
{
    static const struct { const char *path, *out; } rows[] = {
        { "/", "/" },                   { "/a", "/a" },                 { "/a/", "/a" },
        { "/a/b.c-d_e~f", "/a/b.c-d_e~f" },                             { "/a:b@c!$&'()*+,=", "/a:b@c!$&'()*+,=" },
        { "/a%3Ab%40c%21", "/a:b@c!" }, { "/%c3%a4", "/%C3%A4" },       { "/[x]%5Bx%5d", "/[x][x]" },
        { "/..a/a../...", "/..a/a../..." },
        { "", NULL },                   { "a", NULL },                  { "*", NULL },
        { "//", NULL },                 { "/a//b", NULL },              { "/a//", NULL },
        { "/.", NULL },                 { "/..", NULL },                { "/a/./b", NULL },
        { "/a/../b", NULL },            { "/%2e", NULL },               { "/%2E%2e/a", NULL },
        { "/%61", NULL },               { "/a%2fb", NULL },             { "/a%5cb", NULL },
        { "/a\\b", NULL },              { "/a;b", NULL },               { "/a%3bb", NULL },
        { "/a?b", NULL },               { "/a%3Fb", NULL },             { "/a#b", NULL },
        { "/a%23", NULL },              { "/%25", NULL },               { "/%2525", NULL },
        { "/%00", NULL },               { "/%0a", NULL },               { "/%20", NULL },
        { "/%7f", NULL },               { "/%", NULL },                 { "/%4", NULL },
        { "/%4g", NULL },               { "/ ", NULL },                 { "/\xc3\xa4", NULL },
    };
    char out[PATH_TEXT_MAX + 1];
    size_t n;

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        bool clear = url_path_canonical(str_of(rows[i].path), out, &n);
        if (clear != (rows[i].out != NULL) || (clear && (strcmp(out, rows[i].out) != 0 || n != strlen(out))))
            fail_msg("%s: %s", rows[i].path, clear ? out : "none");
    }
    assert_false(url_path_canonical((struct str){ "/a\0b", 4 }, out, &n));
}

static void
rules(void **state)
{
    static const struct { const char *text, *path; bool match; } rows[] = {
        { "/v1/**", "/v1", true },          { "/v1/**", "/v1/a/b", true },      { "/v1/**", "/v10", false },
        { "/v1/*", "/v1/a", true },         { "/v1/*", "/v1/a/b", false },      { "/v1/", "/v1", true },
        { "/v1", "/v1/a", false },          { "/", "/", true },                 { "/", "/a", false },
        { "/**", "/", true },               { "/**", "/a/b", true },            { "/*/x", "/a/x", true },
        { "/a%3Ab", "/a:b", true },         { "/a%2A", "/a*", true },           { "/a%2A", "/ab", false },
        { "/a\\*", "/a*", true },           { "/a\\*", "/ab", false },          { "/%c3%a4", "/%C3%A4", true },
        { "/%5Bx", "/[x", true },           { "/[ab]", "/b", true },            { "/[!ab]", "/b", false },
    };
    static const char *const bad[] = { "", "v1", "/a?b", "/a//b", "/a/../b", "/%2e", "/a;b", "/[", "/a\\", "/a\\b",
                                       "/a b", "/%zz", "/a%2fb", "/\xc3\xa4" };
    char out[PATH_TEXT_MAX + 1];
    size_t n;

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        const char *fault = url_path_pattern(str_of(rows[i].text), out, &n);
        if (fault != NULL || path_glob_match((struct str){ out, n }, str_of(rows[i].path)) != rows[i].match)
            fail_msg("%s %s: %s", rows[i].text, rows[i].path, fault != NULL ? fault : out);
    }
    for (size_t i = 0; i < N(bad); i++)
        if (url_path_pattern(str_of(bad[i]), out, &n) == NULL)
            fail_msg("%s is taken as %s", bad[i], out);
}

static void
hosts(void **state)
{
    static const struct { const char *url, *out; } rows[] = {
        { "https://a.example.org/simple/", "a.example.org:443" },
        { "http://a.example.org", "a.example.org:80" },
        { "HTTPS://A.Example.ORG./", "a.example.org:443" },
        { "https://a.example.org:8443/x?y#z", "a.example.org:8443" },
        { "https://user:p%40ss@a.example.org/", "a.example.org:443" },
        { "https://a.example.org?x@b.example.org", "a.example.org:443" },
        { "https://a.example.org#@b.example.org", "a.example.org:443" },
        { "https://[2001:DB8::1]/", "[2001:db8::1]:443" },
        { "https://[2001:db8::1]:8443/", "[2001:db8::1]:8443" },
        { "http://10.1.2.3:8080/", "10.1.2.3:8080" },
        { "", NULL }, { "a.example.org", NULL }, { "//a.example.org", NULL }, { "ftp://a.example.org/", NULL },
        { "file:///opt/wheels", NULL }, { "https://", NULL }, { "https:///x", NULL }, { "https://:443/", NULL },
        { "https://a.example.org:0/", NULL }, { "https://a.example.org:x/", NULL }, { "https://a b/", NULL },
        { "https://*.example.org/", NULL }, { "https://a.example.org\\@b.example.org/", NULL },
        { "https://u@v@a.example.org/", NULL }, { "https://a_b\n.example.org/", NULL }, { "https://[::1/", NULL },
    };
    char out[URL_HOST_MAX];

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        bool good = url_host(str_of(rows[i].url), out);
        if (good != (rows[i].out != NULL) || (good && strcmp(out, rows[i].out) != 0))
            fail_msg("%s: %s", rows[i].url, good ? out : "none");
    }
}

/* Where a server that resolves the path finds another one than a server that does not. */
static void
moving(void **state)
{
    static const struct { const char *path; bool moves; } rows[] = {
        { "/", false }, { "", false }, { "*", false }, { "/a/b", false }, { "/a//b", false }, { "/a/", false },
        { "/@scope%2fname", false }, { "/a;b", false }, { "/...", false }, { "/..a", false }, { "/a..", false },
        { "/%2e%2e%2e", false }, { "/%2", false }, { "/%", false }, { "/a%2e", false }, { "/.a/", false },
        { "/%252e%252e", false }, { "/a%2fb%5cc", false }, { "/;..", false }, { "/a;/b", false }, { "/a;..%3b", false },
        { "/...;x", false }, { "/%2f", false }, { "/a%2f", false }, { "/a%2f..b", false }, { "/..%2", false },
        { "/.", true }, { "/..", true }, { "/../a", true }, { "/a/../b", true }, { "/a/./b", true }, { "/a/..", true },
        { "/%2e", true }, { "/%2E%2e/", true }, { "/.%2e/a", true }, { "/%2E./a", true }, { "//", true },
        { "//a", true }, { "///", true }, { "/\\a", true }, { "/a\\b", true }, { "\\", true }, { "/a\\..", true },
        { "/a/..%2fb", true }, { "/a/%2e%2e%2Fb", true }, { "/a/..%5cb", true }, { "/a/.%2E%5C", true },
        { "/a%2f..", true }, { "/a%5c..%5Cb", true }, { "/a%2F.%2fb", true }, { "/a/..;x/b", true }, { "/a/..;", true },
        { "/a/%2e.%3bx=1/b", true }, { "/a/.;/b", true }, { "/a/..%3B/b", true }, { "/a;x%2f../b", true },
        { "/a;x/../b", true },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++)
        if (url_path_moves(str_of(rows[i].path)) != rows[i].moves)
            fail_msg("%s", rows[i].path);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests),
        cmocka_unit_test(rules),
        cmocka_unit_test(hosts),
        cmocka_unit_test(moving),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
