/* adapters/mcp: messages, headers, arguments: what is accepted and what is not (R62, R85) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "adapters/mcp/message.h"
#include "match/package.h"

#define N(a) ARRAY_LEN(a)

static void
messages(void **state)
{
    static const struct { const char *text; int code; enum mcp_kind kind; } rows[] = {
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}", 0, MCP_REQUEST },
        { " {\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"m\",\"params\":{}} ", 0, MCP_REQUEST },
        { "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}", 0, MCP_NOTIFICATION },
        { "{\"jsonrpc\":\"2.0\",\"id\":-1,\"result\":{}}", 0, MCP_RESPONSE },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1}}", 0, MCP_RESPONSE },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}x", MCP_PARSE_ERROR, 0 },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"method\":\"n\"}", MCP_PARSE_ERROR, 0 },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\"}", MCP_INVALID_REQUEST, 0 },
        { "{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"m\"}", MCP_INVALID_REQUEST, 0 },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}", MCP_INVALID_REQUEST, 0 },
        { "null", MCP_PARSE_ERROR, 0 },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct mcp_message m;
        const char *why;
        assert_int_equal(mcp_parse(rows[i].text, strlen(rows[i].text), &m, &why), rows[i].code);
        if (rows[i].code == 0)
            assert_int_equal(m.kind, rows[i].kind);
        mcp_message_free(&m);
    }
}

/* Exactly so deep and no deeper; brackets in strings are none. */
static void
depth(void **state)
{
    char text[4 * MCP_DEPTH_MAX + 128];

    (void)state;
    for (int levels = MCP_DEPTH_MAX - 1; levels <= MCP_DEPTH_MAX; levels++) {
        struct mcp_message m;
        const char *why;
        static const char head[] = "{\"jsonrpc\":\"2.0\",\"id\":\"[[[\\\"[\",\"method\":\"m\",\"x\":";
        char *at = text + sizeof(head) - 1;
        memcpy(text, head, sizeof(head));
        memset(at, '[', (size_t)levels);
        memset(at + levels, ']', (size_t)levels);
        strcpy(at + 2 * levels, "}");
        assert_int_equal(mcp_parse(text, strlen(text), &m, &why), levels < MCP_DEPTH_MAX ? 0 : MCP_PARSE_ERROR);
        mcp_message_free(&m);
    }
}

static void
headers(void **state)
{
    static const struct { const char *value, *text; } rows[] = {
        { "name", "name" }, { "", "" }, { " \t", "" },
        { "\t a b  ", "a b" }, { " =?base64?YQ==?= ", "a" },
        { "=?base64?" "?=", "" }, { "=?base64?YQ==?=", "a" }, { "=?base64?YWI=?=", "ab" },
        { "=?base64?YWJj?=", "abc" }, { "=?base64?w6Q=?=", "\xc3\xa4" }, { "=?base64?YQ?=", NULL }, { "=?base64?YQ=a?=", NULL },
        { "=?base64?====?=", NULL }, { "=?base64?AA==?=", NULL }, { "=?base64?Y Q=?=", NULL }, { "=?base64?", "=?base64?" },
    };
    static const struct { const char *accept; bool both; } accepts[] = {
        { "application/json, text/event-stream", true }, { "text/event-stream;q=0.5,Application/JSON", true }, { "*/*", true },
        { "application/json", false }, { "text/event-stream", false }, { "", false }, { "application/jsonx, text/event-stream", false },
        { "application/*, text/*", true },
    };
    char out[MCP_NAME_MAX + 1];
    bool stream;

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        assert_int_equal(mcp_header_text(rows[i].value, out), rows[i].text != NULL);
        if (rows[i].text != NULL)
            assert_string_equal(out, rows[i].text);
    }
    for (size_t i = 0; i < N(accepts); i++)
        assert_int_equal(mcp_accepts(accepts[i].accept, &stream), accepts[i].both);
    assert_true(mcp_is_json("application/json; charset=utf-8") && !mcp_is_json("text/plain") && !mcp_is_json("application/json5"));
}

static void
packages(void **state)
{
    static const struct { const char *name; bool pypi, npm; } rows[] = {
        { "requests", true, true }, { "zope.interface", true, true }, { "requests==2.31.0", true, false },
        { "requests[socks]>=2,<3", true, false }, { "a~=1.*", true, false }, { "left-pad@1.3.0", false, true },
        { "@types/node@^20", false, true }, { "@types/node", false, true }, { "x@latest", false, true },
        { "", false, false }, { "-r", false, false }, { "--index-url=https://x.example", false, false }, { ".", false, false },
        { "./x", false, false }, { "../x", false, false }, { "/etc", false, false }, { "user/repo", false, false },
        { "git+https://x.example/y", false, false }, { "https://x.example/y.whl", false, false }, { "file:x", false, false },
        { "npm:left-pad", false, false }, { "a@npm:b", false, false }, { "a @ https://x.example", false, false },
        { "x.whl", false, false }, { "x-1.0.tar.gz", false, false }, { "x.tgz", false, false }, { "a;b", false, false },
        { "a b", false, false }, { "a\nb", false, false }, { "$(x)", false, false }, { "a[", false, false }, { "a[]", false, false },
        { "a==", false, false }, { "a==1,", false, false }, { "a@", false, false }, { "@/a", false, false }, { "@a", false, false },
        { "@a/b/c", false, false }, { "a@../x", false, false }, { "a@1/2", false, false },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        assert_int_equal(package_well("pypi", rows[i].name), rows[i].pypi);
        assert_int_equal(package_well("npm", rows[i].name), rows[i].npm);
    }
}

static void
hashes(void **state)
{
    static const struct { const char *name; bool pypi, npm; } pins[] = {
        { "requests==2.31.0", true, false }, { "a[b]===1.0", true, false }, { "requests", false, false }, { "a>=1", false, false },
        { "a==1.*", false, false }, { "a==1,<2", false, false }, { "a!=1", false, false }, { "left-pad@1.3.0", false, true },
        { "@types/node@20.0.0-beta.1", false, true }, { "@types/node", false, false }, { "a@1.x.0", false, false },
        { "a@^1.0.0", false, false }, { "a@latest", false, false }, { "a@1.3", false, false }, { "a@1", false, false },
    };
    static const struct { const char *begin; size_t more; bool pypi, npm; } rows[] = {
        { "sha256:", 64, true, false }, { "sha512:", 128, true, false }, { "sha256-", 44, false, true }, { "sha512-", 88, false, true },
        { "sha256:", 63, false, false }, { "sha256:", 65, false, false }, { "sha512-", 87, false, false }, { "sha1-", 28, false, false },
        { "md5:", 32, false, false }, { "", 64, false, false }, { "sha256: ", 63, false, false }, { "sha256:\n", 63, false, false },
        { "sha512-$", 87, false, false }, { "sha256:A", 63, false, false },
    };
    char text[160];

    (void)state;
    for (size_t i = 0; i < N(pins); i++) {
        assert_int_equal(package_pinned("pypi", pins[i].name), pins[i].pypi);
        assert_int_equal(package_pinned("npm", pins[i].name), pins[i].npm);
    }
    for (size_t i = 0; i < N(rows); i++) {
        size_t n = strlen(rows[i].begin);
        memcpy(text, rows[i].begin, n);
        memset(text + n, 'a', rows[i].more);
        text[n + rows[i].more] = '\0';
        assert_int_equal(package_hash_well("pypi", text), rows[i].pypi);
        assert_int_equal(package_hash_well("npm", text), rows[i].npm);
    }
}

static void
domains(void **state)
{
    static const struct { const char *name; bool well; } rows[] = {
        { "example.org", true }, { "*.example.org", true }, { "**.example.org", true }, { "a-b.example:8443", true }, { "a", true },
        { "", false }, { "*", false }, { "*.", false }, { "10.0.0.1", false }, { "169.254.169.254", false }, { "0x7f000001", false },
        { "2130706433", false }, { "127.1", false }, { "::1", false }, { "[::1]", false }, { "10.0.0.0/8", false },
        { "a..b", false }, { ".a", false }, { "a.", false }, { "a:0", false }, { "a:", false }, { "a:99999", false }, { "a:b", false },
        { "http://a", false }, { "a/b", false }, { "u@a", false }, { "a b", false }, { "a.*.b", false },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++)
        assert_int_equal(mcp_domain_well(rows[i].name), rows[i].well);
}

/* Only for the caller, the call and the arguments that it was made for, and not for ever. */
static void
states(void **state)
{
    const uint8_t key[MCP_KEY] = { 1, 2, 3 }, other_key[MCP_KEY] = { 1, 2, 4 };
    struct mcp_state made = { .who = 7, .expires_ms = 1000, .about = "approval-1" }, got = { .who = 7 };
    json_t *args = json_pack("{s:i, s:s}", "a", 1, "b", "x"), *same = json_pack("{s:s, s:i}", "b", "x", "a", 1);
    json_t *other = json_pack("{s:i}", "a", 1);
    uint8_t digest[SHA256_SIZE];
    char text[MCP_STATE_MAX + 1], bad[MCP_STATE_MAX + 16];

    (void)state;
    assert_true(mcp_call_digest("tools/call", "t", args, made.digest) && mcp_call_digest("tools/call", "t", same, got.digest));
    mcp_state_make(key, &made, text);
    assert_true(mcp_state_check(key, text, 999, &got) && strcmp(got.about, "approval-1") == 0 && got.expires_ms == 1000);
    assert_false(mcp_state_check(key, text, 1000, &got));
    assert_false(mcp_state_check(other_key, text, 0, &got));
    got.who = 8;
    assert_false(mcp_state_check(key, text, 0, &got));
    got.who = 7;
    for (size_t i = 0; text[i] != '\0'; i++) {
        memcpy(bad, text, sizeof(text));
        bad[i] ^= 1;
        assert_false(mcp_state_check(key, bad, 0, &got));
    }
    snprintf(bad, sizeof(bad), "%s-TAMPERED", text);
    assert_false(mcp_state_check(key, bad, 0, &got) || mcp_state_check(key, "", 0, &got) || mcp_state_check(key, "1..", 0, &got));
    assert_true(mcp_call_digest("tools/call", "t", other, digest) && memcmp(digest, made.digest, sizeof(digest)) != 0);
    assert_true(mcp_call_digest("tools/call", "u", args, digest) && memcmp(digest, made.digest, sizeof(digest)) != 0);
    memcpy(got.digest, digest, sizeof(digest));
    assert_false(mcp_state_check(key, text, 0, &got));
    json_decref(args);
    json_decref(same);
    json_decref(other);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages), cmocka_unit_test(depth), cmocka_unit_test(headers), cmocka_unit_test(packages), cmocka_unit_test(hashes),
        cmocka_unit_test(domains), cmocka_unit_test(states),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
