/* egress/decide with rules that name methods and paths: what is read in two ways is refused, what cannot be read is
 * inspected (R13, R14) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/array.h"
#include "egress/decide.h"

#define N(a) ARRAY_LEN(a)

static void
add(struct decide_rules *rules, bool deny, const char *host, const char *method, const char *path)
{
    struct origin from = { .kind = ORIGIN_FLAG, .name = "test" };
    struct decide_scope scope = { .path = str_of(path) };
    struct err err = ERR_INIT;

    if (method != NULL)
        scope.methods[scope.n_methods++] = str_of(method);
    if (decide_rules_add(rules, deny, str_of(host), &from, &scope, &err) < 0)
        fail_msg("%s %s: %s", host, path, err.msg);
}

/* Methods and paths: (d) smuggled and oddly spelled paths match no rule and are refused. */
static void
scopes(void **state)
{
    static const struct { const char *host, *method, *path; bool allowed; const char *reason; } rows[] = {
        { "api.example", "GET", "/v1/items", true, "allow-domain" },
        { "api.example", "GET", "/v1/items/", true, "allow-domain" },
        { "api.example", "GET", "/v1/items?all=1/../..", true, "allow-domain" },
        { "api.example", "GET", "/v1", true, "allow-domain" },
        { "api.example", "GET", "/v2", false, "scope-no-rule" },
        { "api.example", "GET", "/", false, "scope-no-rule" },
        { "api.example", "POST", "/v1/items", false, "scope-no-rule" },
        { "api.example", "get", "/v1/items", false, "scope-no-rule" },
        { "api.example", "", "/v1/items", false, "scope-no-rule" },
        { "api.example", "GET", "", false, "path-ambiguous" },
        { "api.example", "GET", "v1", false, "path-ambiguous" },
        { "api.example", "GET", "*", false, "path-ambiguous" },
        { "api.example", "GET", "/v1/../admin", false, "path-ambiguous" },
        { "api.example", "GET", "/v1/./items", false, "path-ambiguous" },
        { "api.example", "GET", "/v1/..", false, "path-ambiguous" },
        { "api.example", "GET", "/v1/%2e%2e/admin", false, "path-ambiguous" },
        { "api.example", "GET", "/v1/%2E./admin", false, "path-ambiguous" },
        { "api.example", "GET", "/v1%2fitems", false, "path-ambiguous" },
        { "api.example", "GET", "/v1%5citems", false, "path-ambiguous" },
        { "api.example", "GET", "/v1\\..\\admin", false, "path-ambiguous" },
        { "api.example", "GET", "/v1//items", false, "path-ambiguous" },
        { "api.example", "GET", "//v1/items", false, "path-ambiguous" },
        { "api.example", "GET", "/v1/%252e%252e/admin", false, "path-ambiguous" },
        { "api.example", "GET", "/v1/%00", false, "path-ambiguous" },
        { "api.example", "GET", "/v1/%", false, "path-ambiguous" },
        { "api.example", "GET", "/v1/%4", false, "path-ambiguous" },
        { "api.example", "GET", "/v1/%zz", false, "path-ambiguous" },
        { "api.example", "GET", "/v1/%41", false, "path-ambiguous" },
        { "api.example", "GET", "/v1/..;x/admin", false, "path-ambiguous" },
        { "api.example", "GET", "/v1/a b", false, "path-ambiguous" },
        { "api.example", "GET", "/v1/a#b", false, "path-ambiguous" },
        { "api.example", "GET", "/v1/\xc3\xa4", false, "path-ambiguous" },
        { "api.example", "GET", "/v1/%c3%a4", true, "allow-domain" },
        { "api.example", "GET", "/v1/%C3%A4", true, "allow-domain" },
        { "api.example", "GET", "/v1/%3a%40", true, "allow-domain" },
        { "api.example", "GET", "/v1/%3B", false, "path-ambiguous" },
        { "api.example", "GET", "/v1/%3F", false, "path-ambiguous" },
        { "api.example", "GET", "/v1/..items", true, "allow-domain" },
        { "api.example", "GET", "/v1/...", true, "allow-domain" },
        { "api.example", "GET", "/v1/a.", true, "allow-domain" },
        /* open, but for one path */
        { "part.example", "GET", "/", true, "allow-domain" },
        { "part.example", "POST", "/x", true, "allow-domain" },
        { "part.example", "GET", "/admin", false, "deny-domain" },
        { "part.example", "GET", "/admin/", false, "deny-domain" },
        { "part.example", "GET", "/admin/x/y", false, "deny-domain" },
        { "part.example", "GET", "/x/../admin", false, "path-ambiguous" },
        { "part.example", "GET", "/%61dmin", false, "path-ambiguous" },
        { "part.example", "GET", "/admin;x", false, "path-ambiguous" },
        { "part.example", "GET", "/administrator", true, "allow-domain" },
        /* one path in several spellings */
        { "part.example", "GET", "/a:b/%C3%A4", false, "deny-domain" },
        { "part.example", "GET", "/a%3ab/%c3%a4", false, "deny-domain" },
        { "part.example", "GET", "/a%3Ab/%c3%A4/", false, "deny-domain" },
        /* no rule there looks at paths */
        { "free.example", "GET", "/a/../b//%2f", true, "allow-domain" },
        /* one method, any path */
        { "read.example", "GET", "/a/../b", true, "allow-domain" },
        { "read.example", "DELETE", "/a", false, "scope-no-rule" },
        /* all but one method, in whatever case servers take for it */
        { "keep.example", "GET", "/a", true, "allow-domain" },
        { "keep.example", "DELETE", "/a", false, "deny-domain" },
        { "keep.example", "delete", "/a", false, "deny-domain" },
        { "keep.example", "DeLeTe", "/a", false, "deny-domain" },
        { "keep.example", "DELETED", "/a", true, "allow-domain" },
    };
    struct decide_rules rules = DECIDE_RULES_INIT;
    struct decide_verdict verdict;

    (void)state;
    rules.closed = false;
    add(&rules, false, "api.example", "GET", "/v1/**");
    add(&rules, false, "part.example", NULL, "");
    add(&rules, true, "part.example", NULL, "/admin/**");
    add(&rules, true, "part.example", NULL, "/a:b/%C3%A4");
    add(&rules, false, "free.example", NULL, "");
    add(&rules, false, "read.example", "GET", "");
    add(&rules, false, "keep.example", NULL, "");
    add(&rules, true, "keep.example", "DELETE", "");
    for (size_t i = 0; i < N(rows); i++) {
        struct decide_request request = { .via = DECIDE_HTTP, .host = str_of(rows[i].host), .port = 443,
                                          .method = str_of(rows[i].method), .path = str_of(rows[i].path) };
        decide(&rules, &request, &verdict);
        if ((verdict.kind == DECIDE_ALLOW) != rows[i].allowed || strcmp(verdict.reason, rows[i].reason) != 0)
            fail_msg("row %zu %s %s%s: %s", i, rows[i].method, rows[i].host, rows[i].path, verdict.reason);
        assert_false(verdict.inspect);
    }
    decide_rules_free(&rules);
}

/* A tunnel that a rule with a scope may concern is let through only to be inspected. */
static void
inspection(void **state)
{
    static const struct { enum decide_via via; const char *host; uint16_t port; bool allowed, inspect; } rows[] = {
        { DECIDE_CONNECT, "api.example", 443, true, true },
        { DECIDE_TLS_SNI, "api.example", 443, true, true },
        { DECIDE_SOCKS, "api.example", 443, true, true },
        { DECIDE_DNS, "api.example", 0, true, false },
        { DECIDE_CONNECT, "api.example", 22, false, false },
        { DECIDE_CONNECT, "part.example", 443, true, true },
        { DECIDE_DNS, "part.example", 0, true, false },
        { DECIDE_CONNECT, "free.example", 443, true, false },
        { DECIDE_CONNECT, "mixed.example", 443, true, false },  /* one rule opens all of it */
        { DECIDE_CONNECT, "denied.example", 443, false, false },
    };
    struct decide_rules rules = DECIDE_RULES_INIT;
    struct decide_verdict verdict;

    (void)state;
    rules.closed = false;
    add(&rules, false, "api.example", "GET", "/v1/**");
    add(&rules, false, "part.example", NULL, "");
    add(&rules, true, "part.example", NULL, "/admin/**");
    add(&rules, false, "free.example", NULL, "");
    add(&rules, false, "mixed.example", "GET", "/v1");
    add(&rules, false, "mixed.example", NULL, "");
    add(&rules, true, "denied.example", NULL, "/admin/**");
    for (size_t i = 0; i < N(rows); i++) {
        struct decide_request request = { .via = rows[i].via, .host = str_of(rows[i].host), .port = rows[i].port };
        decide(&rules, &request, &verdict);
        if ((verdict.kind == DECIDE_ALLOW) != rows[i].allowed || verdict.inspect != rows[i].inspect)
            fail_msg("row %zu %s: %d inspect %d %s", i, rows[i].host, verdict.kind, verdict.inspect, verdict.reason);
    }
    decide_rules_free(&rules);
}

static void
bad_rules(void **state)
{
    static const struct { const char *host, *method, *path, *code; } rows[] = {
        { "*", NULL, "", "policy.host.any" },
        { "*.com", NULL, "", "policy.host.too-wide" },
        { "a b", NULL, "", "policy.host.control" },
        { "a.example", NULL, "v1", "egress.path" },
        { "a.example", NULL, "/v1/[", "egress.path" },
        { "a.example", NULL, "/../..", "egress.path" },
        { "a.example", "", "/v1", "egress.methods" },
    };
    struct origin from = { .kind = ORIGIN_FLAG, .name = "test" };
    struct decide_rules rules = DECIDE_RULES_INIT;

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct decide_scope scope = { .path = str_of(rows[i].path) };
        struct err err = ERR_INIT;
        if (rows[i].method != NULL)
            scope.methods[scope.n_methods++] = str_of(rows[i].method);
        assert_int_equal(decide_rules_add(&rules, false, str_of(rows[i].host), &from, &scope, &err), -1);
        if (strcmp(err.code, rows[i].code) != 0)
            fail_msg("row %zu: %s", i, err.code);
        assert_int_equal(rules.allow.n, 0);
    }
    decide_rules_free(&rules);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scopes),
        cmocka_unit_test(inspection),
        cmocka_unit_test(bad_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
