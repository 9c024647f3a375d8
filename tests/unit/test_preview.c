/* front/preview_rules: what passes between a browser and a server in a sandbox (R23) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "front/preview_rules.h"
#include "proto/edge.h"

#define N(a) ARRAY_LEN(a)
#define CAP "0123456789abcdef0123456789abcdef01234567"
#define ROOT "/preview/" CAP

static void
hosts(void **state)
{
    static const struct { const char *text, *rest; } rows[] = {
        { CAP ".preview.localhost", "localhost" }, { CAP ".preview.localhost:7700", "localhost:7700" },
        { "0123456789ABCDEF0123456789abcdef01234567.PREVIEW.example.org", "example.org" },
        { CAP ".preview.", NULL }, { CAP ".preview", NULL }, { CAP, NULL }, { "", NULL }, { "localhost", NULL },
        { "0" CAP ".preview.localhost", NULL }, { "123456789abcdef0123456789abcdef01234567.preview.localhost", NULL },
        { "g123456789abcdef0123456789abcdef01234567.preview.localhost", NULL }, { CAP ".previews.localhost", NULL },
        { CAP ".x.preview.localhost", NULL },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        char capability[EDGE_CAPABILITY + 1];
        struct str rest;
        bool is = preview_host(str_of(rows[i].text), capability, &rest);

        if (is != (rows[i].rest != NULL))
            fail_msg("%s", rows[i].text);
        if (is) {
            assert_string_equal(capability, CAP);
            assert_true(str_eq_c(rest, rows[i].rest));
        }
    }
}

static void
targets(void **state)
{
    static const struct { const char *uri, *path, *query; bool host_form; } rows[] = {
        { ROOT "/", "/", "" }, { ROOT, "", "" }, { ROOT "?a", "", "?a" }, { ROOT "/a/../b?c?d", "/a/../b", "?c?d" },
        { ROOT "/%2e%2e/x", "/%2e%2e/x", "" }, { ROOT "//x", "//x", "" },
        { "/v1/health?x", "/v1/health", "?x", true }, { "/", "/", "", true },
        { ROOT "x", NULL, NULL }, { ROOT "0/", NULL, NULL }, { "/preview/", NULL, NULL }, { "", NULL, NULL },
        { "/preview/%30123456789abcdef0123456789abcdef01234567/", NULL, NULL },
        { "/preview/0123456789ABCDEF0123456789abcdef01234567/", NULL, NULL }, { "/%70review/" CAP "/", NULL, NULL },
        { "x", NULL, NULL, true }, { "?x", NULL, NULL, true },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct preview_target t;
        bool well = preview_target(str_of(rows[i].uri), rows[i].host_form, &t);

        if (well != (rows[i].path != NULL))
            fail_msg("%s", rows[i].uri);
        if (well) {
            assert_true(str_eq_c(t.path, rows[i].path) && str_eq_c(t.query, rows[i].query));
            assert_true(t.bare == (rows[i].path[0] == '\0'));
        }
    }
}

static void
fields(void **state)
{
    static const char *const never_in[] = { "Authorization", "COOKIE", "x-sandbox-key", "Referer", "X-Forwarded-For",
                                            "X-Forwarded-User", "x-forwarded-port", "X-FORWARDED-", "Forwarded",
                                            "X-Real-IP", "Host", "Content-Length", "Remote-User", "X-Amzn-Oidc-Data",
                                            "CF-Access-JWT-Assertion", "X-SSL-Client-Cert", "Via",
                                            "OIDC_access_token", "X-Vouch-IdP-AccessToken",
                                            "E2b-Traffic-Access-Token", "X-Access-Token" };
    static const char *const never_out[] = { "Set-Cookie", "set-cookie2", "WWW-Authenticate", "Clear-Site-Data",
                                             "Strict-Transport-Security", "Alt-Svc", "X-Accel-Redirect", "X-Sendfile",
                                             "X-Reproxy-URL" };

    (void)state;
    for (size_t i = 0; i < N(never_in); i++)
        assert_false(preview_goes_in(str_of(never_in[i]), STR_LIT("x")));
    assert_true(preview_goes_in(STR_LIT("Accept"), STR_LIT("")) && preview_goes_in(STR_LIT("X-Cookie"), STR_LIT("a")));
    assert_true(preview_goes_in(STR_LIT("X-API-Key"), STR_LIT("its own")));
    assert_false(preview_goes_in(STR_LIT("X-API-Key"), STR_LIT("cloche_agent_0123")) ||
                 preview_goes_in(STR_LIT("x-api-key"), STR_LIT("Cloche_key_0123")));
    for (size_t i = 0; i < N(never_out); i++)
        assert_false(preview_goes_out(str_of(never_out[i]), true) || preview_goes_out(str_of(never_out[i]), false));
    assert_true(preview_goes_out(STR_LIT("Service-Worker-Allowed"), true));
    assert_false(preview_goes_out(STR_LIT("Service-Worker-Allowed"), false));
    assert_true(preview_goes_out(STR_LIT("Access-Control-Allow-Origin"), false));
    assert_false(preview_goes_out(STR_LIT("Access-Control-Allow-Credentials"), false));
    assert_true(preview_goes_out(STR_LIT("Content-Security-Policy"), false));
}

static void
locations(void **state)
{
    static const struct { const char *said, *path_form, *host_form; } rows[] = {
        { "/a?b", ROOT "/a?b", "/a?b" }, { "/", ROOT "/", "/" }, { "", "", "" }, { "a/b", "a/b", "a/b" },
        { "//evil/x", "//evil/x", "//evil/x" }, { "https://x/", "https://x/", "https://x/" },
        { "http://localhost:8000", ROOT "/", "/" }, { "HTTP://LOCALHOST:8000/x", ROOT "/x", "/x" },
        { "http://127.0.0.1:8000?q", ROOT "/?q", "/?q" }, { "http://[::1]:8000/x", ROOT "/x", "/x" },
        { "http://localhost:8000//evil", ROOT "//evil", "/evil" }, { "http://localhost:8000/\\evil", ROOT "/\\evil", "\\evil" },
        { "http://localhost:80000/", "http://localhost:80000/", "http://localhost:80000/" },
        { "http://localhost:8000.evil/", "http://localhost:8000.evil/", "http://localhost:8000.evil/" },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct buf out = BUF_INIT(4096);

        assert_int_equal(preview_location(str_of(rows[i].said), ROOT, 8000, &out), 0);
        assert_string_equal((const char *)out.p, rows[i].path_form);
        buf_reset(&out);
        assert_int_equal(preview_location(str_of(rows[i].said), "", 8000, &out), 0);
        if (rows[i].host_form[0] != '\\')
            assert_string_equal((const char *)out.p, rows[i].host_form);
        assert_false(out.n > 1 && out.p[0] == '/' && out.p[1] == '\\');
        buf_free(&out);
    }
}

/* A front asks for no connection by itself, and one names a port and what was exposed. */
static void
operations(void **state)
{
    static struct edge_op op = { .kind = OP_CONNECT, .offset = 8000, .path = "0123456789abcdef0123456789abcdef" };
    static const struct { uint64_t port; const char *path; bool well; } rows[] = {
        { 1, "0123456789abcdef0123456789abcdef", true }, { 65535, "0123456789abcdef0123456789abcdef", true },
        { 0, "0123456789abcdef0123456789abcdef", false }, { 65536, "0123456789abcdef0123456789abcdef", false },
        { 80, "", false }, { 80, "x", false },
    };
    static struct edge_op back;

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct buf b = BUF_INIT(4096);
        struct wire_in in;

        op.offset = rows[i].port;
        op.path = rows[i].path;
        assert_int_equal(edge_op_put(&b, &op), 0);
        in = wire_in_of(b.p, b.n);
        assert_true(edge_op_get(&in, &back) == rows[i].well);
        buf_free(&b);
    }
    assert_true(edge_is_capability(CAP));
    assert_false(edge_is_capability(CAP "0") || edge_is_capability("") || edge_is_capability("x" CAP));
}

static void
addresses_of_devtools(void **state)
{
#define WS "\"webSocketDebuggerUrl\":"
    static const struct { const char *body, *base, *becomes; } rows[] = {
        { "{\"a\": 1, " WS "\"ws://localhost:9222/devtools/browser/x-1\"}", "ws://h:1/b/",
          "{\"a\":1," WS "\"ws://h:1/b/devtools/browser/x-1\"}" },
        { "[ {" WS "\"ws:\\/\\/localhost:9222/devtools/page/Y\"} ]", "wss://h/b/", "[{" WS "\"wss://h/b/devtools/page/Y\"}]" },
        { "{\"devtoolsFrontendUrl\":\"/x\",\"devtoolsFrontendUrlCompat\":\"/x\",\"DevtoolsFrontendUrl\":\"/x\"}", "ws://h/", "{}" },
        { "{\"url\":\"ws://evil/\",\"title\":\"ws://localhost:9222/ \\u0000\"}", "ws://h/",
          "{\"url\":\"ws://evil/\",\"title\":\"ws://localhost:9222/ \\u0000\"}" },
        { "[ ]", "ws://h/", "[]" },
        /* elsewhere */
        { "{" WS "\"ws://evil.example/devtools/browser/x\"}", "ws://h/", NULL },
        { "{" WS "\"ws:\\/\\/evil.example/devtools/browser/x\"}", "ws://h/", NULL },
        { "{\"webSocket\\u0044ebuggerUrl\":\"ws://evil/devtools/browser/x\"}", "ws://h/", NULL },
        { "[{}, {" WS "\"ws://localhost:92220/devtools/page/x\"}]", "ws://h/", NULL },
        { "{" WS "\"ws://localhost:9222/devtools/page/../../x\"}", "ws://h/", NULL },
        { "{" WS "\"ws://localhost:9222/devtools/page/x\\u0000y\"}", "ws://h/", NULL },
        { "{" WS "\"ws://localhost:9222/devtools/page/\"}", "ws://h/", NULL },
        { "{" WS "\"ws://localhost:9222@evil/devtools/page/x\"}", "ws://h/", NULL },
        { "{" WS "[\"ws://localhost:9222/devtools/page/x\"]}", "ws://h/", NULL },
        /* what only some readers take for it */
        { "{\"WebSocketDebuggerURL\":\"ws://localhost:9222/devtools/page/x\"}", "ws://h/", NULL },
        { "{\"webSoc\u212aetDebuggerUrl\":\"ws://evil/devtools/page/x\"}", "ws://h/", NULL },
        { "{" WS "\"ws://localhost:9222/devtools/page/x\"," WS "\"ws://evil/\"}", "ws://h/", NULL },
        { "{" WS "\"ws://evil/\",}", "ws://h/", NULL },
        { "", "ws://h/", NULL },
    };
#undef WS
    static const char *const paths[] = { "/json", "/json/version", "/devtools/browser/x" };
    static const char *const others[] = { "", "/", "/jsonx", "/devtools", "/%6ason", "//json" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        json_t *said = preview_devtools(str_of(rows[i].body), 9222, str_of(rows[i].base));
        char *text = said != NULL ? json_dumps(said, JSON_COMPACT) : NULL;
        if (rows[i].becomes == NULL)
            assert_null(text);
        else
            assert_string_equal(text, rows[i].becomes);
        free(text);
        json_decref(said);
    }
    assert_true(preview_devtools_plain(STR_LIT("Target is closing")));
    assert_true(preview_devtools_plain(STR_LIT("")));
    assert_false(preview_devtools_plain(STR_LIT("x{")));
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        assert_true(preview_devtools_path(str_of(paths[i])));
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_false(preview_devtools_path(str_of(others[i])));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_of_devtools),
        cmocka_unit_test(hosts), cmocka_unit_test(targets), cmocka_unit_test(fields), cmocka_unit_test(locations),
        cmocka_unit_test(operations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
