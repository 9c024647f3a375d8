/* egress/mcp_rule and decide: what calls a tool is read in one way or refused, and rules open no other tool (R14, R85) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "egress/decide.h"
#include "egress/mcp_rule.h"

#define N(a) ARRAY_LEN(a)
#define JSON "Content-Type: application/json\r\n"
#define CALL(name) "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"" name "\"}}"
#define SAY(members) "{\"jsonrpc\":\"2.0\"," members "}"

static void
read_request(const char *line, const char *fields, struct str body, struct mcp_message *out)
{
    char text[4096];
    struct http1_head head;
    int n = snprintf(text, sizeof(text), "%s HTTP/1.1\r\nHost: a.example\r\n%sContent-Length: %zu\r\n\r\n", line, fields,
                     body.n);

    assert_true(n > 0 && (size_t)n < sizeof(text));
    assert_int_equal(http1_parse_request((const uint8_t *)text, (size_t)n, &head), HTTP1_OK);
    mcp_read(&head, body, out);
}

/* Bodies of a POST in order. */
static void
messages(void **state)
{
    static const struct { const char *body; enum mcp_kind kind; const char *tool; } rows[] = {
        { CALL("read_file"), MCP_CALL, "read_file" },
        { " \n" CALL("a"), MCP_BAD, "" },
        { "  " CALL("a-b/c.d_9") " \r\n", MCP_CALL, "a-b/c.d_9" },
        { SAY("\"id\":1,\"\\u006dethod\":\"tools\\/call\",\"params\":{\"n\\u0061me\":\"\\u0061\"}"), MCP_CALL, "a" },
        { SAY("\"method\":\"tools/call\",\"params\":{\"arguments\":{\"name\":\"x\",\"NAME\":1},\"name\":\"a\"}"), MCP_CALL, "a" },
        { SAY("\"id\":99999999999999999999,\"method\":\"tools/list\""), MCP_OTHER, "" },
        { SAY("\"method\":\"notifications/initialized\",\"params\":{}"), MCP_OTHER, "" },
        { SAY("\"id\":1,\"result\":{\"name\":\"x\"}"), MCP_OTHER, "" },
        { SAY("\"id\":1,\"error\":{\"code\":1,\"message\":\"x\"}"), MCP_OTHER, "" },
        { "", MCP_BAD, "" }, { "{}", MCP_BAD, "" }, { "null", MCP_BAD, "" }, { "\"tools/call\"", MCP_BAD, "" },
        { "[" CALL("a") "]", MCP_BAD, "" },
        { CALL("a") CALL("b"), MCP_BAD, "" },
        { CALL("a") "\n" CALL("b"), MCP_BAD, "" },
        { CALL("a") " x", MCP_BAD, "" },
        { "\xef\xbb\xbf" CALL("a"), MCP_BAD, "" },
        { SAY("\"method\":\"tools/list\",\"method\":\"tools/call\",\"params\":{\"name\":\"a\"}"), MCP_BAD, "" },
        { SAY("\"method\":\"tools/list\",\"\\u006dethod\":\"tools/call\",\"params\":{\"name\":\"a\"}"), MCP_BAD, "" },
        { SAY("\"method\":\"tools/list\",\"Method\":\"tools/call\",\"params\":{\"name\":\"a\"}"), MCP_BAD, "" },
        { SAY("\"method\":\"tools/list\",\"param\xc5\xbf\":{\"name\":\"a\"}"), MCP_BAD, "" },
        { SAY("\"method\":\"tools/call\",\"params\":{\"name\":\"a\",\"name\":\"b\"}"), MCP_BAD, "" },
        { SAY("\"method\":\"tools/call\",\"params\":{\"name\":\"a\",\"Name\":\"b\"}"), MCP_BAD, "" },
        { SAY("\"method\":\"tools/call\",\"params\":{\"name\":\"a\",\"arguments\":{\"x\":1,\"x\":2}}"), MCP_BAD, "" },
        { SAY("\"method\":\"tools/call\",\"params\":[\"a\"]"), MCP_BAD, "" },
        { SAY("\"method\":\"tools/call\",\"params\":{\"name\":[\"a\"]}"), MCP_BAD, "" },
        { SAY("\"method\":\"tools/call\",\"params\":{}"), MCP_BAD, "" },
        { SAY("\"method\":\"tools/call\""), MCP_BAD, "" },
        { SAY("\"method\":\"Tools/Call\",\"params\":{\"name\":\"a\"}"), MCP_BAD, "" },
        { SAY("\"method\":\"tools/call \",\"params\":{\"name\":\"a\"}"), MCP_BAD, "" },
        { SAY("\"method\":[\"tools/call\"],\"params\":{\"name\":\"a\"}"), MCP_BAD, "" },
        { SAY("\"method\":\"tools/list\",\"result\":{}"), MCP_BAD, "" },
        { SAY("\"method\":\"tools/list\\u0000\""), MCP_BAD, "" },
        { "{\"jsonrpc\":\"1.0\",\"method\":\"tools/list\"}", MCP_BAD, "" },
        { "{\"method\":\"tools/list\"}", MCP_BAD, "" },
        { "{\"jsonrpc\":\"2.0\",\"method\":\"tools/list\",\"params\":{\"x\":\n" CALL("a") "\n}}", MCP_BAD, "" },
        { CALL(""), MCP_BAD, "" }, { CALL("a b"), MCP_BAD, "" }, { CALL(" a"), MCP_BAD, "" }, { CALL("a\\n"), MCP_BAD, "" },
        { CALL("a*"), MCP_BAD, "" }, { CALL("\xc3\xa9"), MCP_BAD, "" }, { CALL("\xff"), MCP_BAD, "" },
        { CALL("\xed\xa0\x80"), MCP_BAD, "" }, { CALL("\\ud800"), MCP_BAD, "" },
        { "{'method':'tools/call'}", MCP_BAD, "" }, { "{\"jsonrpc\":\"2.0\",\"method\":\"tools/list\",}", MCP_BAD, "" },
        { "/**/" CALL("a"), MCP_BAD, "" }, { "{\"x\":NaN}", MCP_BAD, "" },
    };
    struct mcp_message m;

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        read_request("POST /mcp", JSON, str_of(rows[i].body), &m);
        if (m.kind != rows[i].kind || !str_eq_c(m.tool, rows[i].tool) || (m.kind == MCP_BAD) != (m.fault != NULL))
            fail_msg("row %zu: %s: %d %s", i, rows[i].body, m.kind, m.fault != NULL ? m.fault : "");
    }
    read_request("POST /mcp", JSON, (struct str){ CALL("a") "\0", sizeof(CALL("a")) }, &m);
    assert_int_equal(m.kind, MCP_BAD);
}

/* Names and bodies at their ceilings. */
static void
ceilings(void **state)
{
    static char body[MCP_BODY_MAX + 2], name[TOOL_NAME_MAX + 2], call[512];
    struct mcp_message m;

    (void)state;
    memset(name, 'n', TOOL_NAME_MAX + 1);
    for (size_t n = TOOL_NAME_MAX; n <= TOOL_NAME_MAX + 1; n++) {
        snprintf(call, sizeof(call), SAY("\"method\":\"tools/call\",\"params\":{\"name\":\"%.*s\"}"), (int)n, name);
        read_request("POST /mcp", JSON, str_of(call), &m);
        assert_int_equal(m.kind, n == TOOL_NAME_MAX ? MCP_CALL : MCP_BAD);
    }
    memset(body, ' ', sizeof(body));
    memcpy(body, CALL("a"), sizeof(CALL("a")) - 1);
    read_request("POST /mcp", JSON, (struct str){ body, MCP_BODY_MAX }, &m);
    assert_int_equal(m.kind, MCP_CALL);
    read_request("POST /mcp", JSON, (struct str){ body, MCP_BODY_MAX + 1 }, &m);
    assert_int_equal(m.kind, MCP_BAD);
    memset(body, '[', sizeof(body));
    read_request("POST /mcp", JSON, (struct str){ body, MCP_BODY_MAX }, &m);
    assert_int_equal(m.kind, MCP_BAD);
}

/* What the head says, with a call of "a" behind a POST. */
static void
heads(void **state)
{
    static const struct { const char *line, *fields; enum mcp_kind kind; } rows[] = {
        { "GET /mcp", "", MCP_OTHER }, { "DELETE /mcp", "", MCP_OTHER },
        { "HEAD /mcp", "", MCP_ELSE }, { "OPTIONS /mcp", "", MCP_ELSE }, { "PUT /mcp", "", MCP_ELSE },
        { "GET /mcp", "Mcp-Method: tools/call\r\n", MCP_BAD }, { "GET /mcp", "Mcp-Name: a\r\n", MCP_BAD },
        { "GET /mcp", "Connection: upgrade\r\nUpgrade: websocket\r\n", MCP_BAD },
        { "GET /mcp", "Upgrade: h2c\r\n", MCP_BAD },
        { "POST /mcp", JSON, MCP_CALL },
        { "POST /mcp", "content-type:application/json ; charset=UTF-8\r\n", MCP_CALL },
        { "POST /mcp", JSON "Mcp-Method: tools/call\r\nMcp-Name: a\r\n", MCP_CALL },
        { "POST /mcp", "", MCP_BAD }, { "POST /mcp", "Content-Type: text/plain\r\n", MCP_BAD },
        { "POST /mcp", "Content-Type: application/json; charset=utf-16\r\n", MCP_BAD },
        { "POST /mcp", "Content-Type: application/json; charset=utf-8; charset=utf-16\r\n", MCP_BAD },
        { "POST /mcp", JSON JSON, MCP_BAD }, { "POST /mcp", JSON "Content_Type: text/plain\r\n", MCP_BAD },
        { "POST /mcp", JSON "Content-Encoding: gzip\r\n", MCP_BAD },
        { "POST /mcp", JSON "Content-Encoding: identity\r\n", MCP_BAD },
        { "POST /mcp", JSON "Mcp-Method: tools/list\r\n", MCP_BAD }, { "POST /mcp", JSON "Mcp-Name: b\r\n", MCP_BAD },
        { "POST /mcp", JSON "Mcp-Name: =?base64?YQ==?=\r\n", MCP_BAD },
        { "POST /mcp", JSON "Mcp-Name: a\r\nMcp-Name: a\r\n", MCP_BAD },
        { "POST /mcp", JSON "Mcp_Name: a\r\n", MCP_BAD }, { "POST /mcp", JSON "mcp_method: tools/call\r\n", MCP_BAD },
        { "POST /mcp", JSON "Upgrade: websocket\r\n", MCP_BAD },
    };
    struct mcp_message m;

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        bool post = rows[i].line[0] == 'P' && rows[i].line[1] == 'O';
        read_request(rows[i].line, rows[i].fields, str_of(post ? CALL("a") : ""), &m);
        if (m.kind != rows[i].kind)
            fail_msg("row %zu: %s %s: %d %s", i, rows[i].line, rows[i].fields, m.kind, m.fault != NULL ? m.fault : "");
    }
    read_request("GET /mcp", JSON, str_of(CALL("a")), &m);
    assert_int_equal(m.kind, MCP_BAD);
    read_request("PUT /mcp", JSON, str_of(CALL("a")), &m);
    assert_int_equal(m.kind, MCP_BAD);
    read_request("POST /mcp", JSON, str_of(""), &m);
    assert_int_equal(m.kind, MCP_BAD);
    read_request("POST /mcp", JSON "Mcp-Name: =?base64?w6k=?=\r\n",
                 str_of(SAY("\"method\":\"resources/read\",\"params\":{\"uri\":\"\xc3\xa9\"}")), &m);
    assert_int_equal(m.kind, MCP_OTHER);
    read_request("POST /mcp", JSON "Mcp-Name: x\r\n", str_of(SAY("\"method\":\"tools/list\"")), &m);
    assert_int_equal(m.kind, MCP_BAD);
    read_request("POST /mcp", JSON "Mcp-Method: tools/call\r\n", str_of(SAY("\"id\":1,\"result\":{}")), &m);
    assert_int_equal(m.kind, MCP_BAD);
}

static void
patterns(void **state)
{
    static const struct { const char *pattern, *name; bool fits; } rows[] = {
        { "a", "a", true }, { "a", "A", false }, { "a", "ab", false }, { "a*", "a", true }, { "a*", "abc", true },
        { "*", "x/y.z", true }, { "*_b", "a_b", true }, { "*_b", "a_b_b", true }, { "*_b", "a_bc", false },
        { "a*b*c", "aXbbYc", true }, { "a*b*c", "acb", false }, { "**", "a", true }, { "read_*", "Read_x", false },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++)
        if (tool_match(str_of(rows[i].pattern), str_of(rows[i].name)) != rows[i].fits)
            fail_msg("%s %s", rows[i].pattern, rows[i].name);
    assert_true(tool_is_pattern(str_of("a*")) && !tool_is_name(str_of("a*")) && !tool_is_pattern(str_of("")));
    assert_false(tool_is_pattern(str_of("a?")) || tool_is_pattern(str_of("[a]")) || tool_is_name(str_of("\xc3\xa9")));
    assert_false(tool_is_name((struct str){ "a\0", 2 }));
}

static void
add(struct decide_rules *rules, bool deny, const char *path, const char *tool)
{
    struct origin from = { .kind = ORIGIN_FLAG, .name = "test" };
    struct decide_scope scope = { .path = str_of(path), .n_tools = tool != NULL };
    struct err err = ERR_INIT;

    scope.tools[0] = str_of(tool != NULL ? tool : "");
    assert_int_equal(decide_rules_add(rules, deny, STR_LIT("mcp.example"), &from, &scope, &err), 0);
}

struct case_ {
    enum mcp_kind kind;
    const char *tool, *path;
    enum decide_kind verdict;
    bool unread;
    const char *reason;
};

static void
check(const struct decide_rules *rules, const struct case_ *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct mcp_message m = { .kind = rows[i].kind, .fault = "f", .tool = str_of(rows[i].tool) };
        const struct decide_request r = { .via = DECIDE_HTTP, .host = STR_LIT("mcp.example"), .port = 443,
                                          .method = STR_LIT("POST"), .path = str_of(rows[i].path), .mcp = &m };
        struct decide_verdict v;
        decide(rules, &r, &v);
        if (v.kind != rows[i].verdict || v.unread != rows[i].unread || strcmp(v.reason, rows[i].reason) != 0)
            fail_msg("row %zu: %d %d %s", i, v.kind, v.unread, v.reason);
    }
}

static void
decisions(void **state)
{
    static const struct case_ allowed[] = {
        { MCP_UNREAD, "", "/mcp", DECIDE_DENY, true, "mcp-body" },
        { MCP_UNREAD, "", "/x", DECIDE_DENY, true, "mcp-body" },     /* a yes is none to what a deny rule looks for */
        { MCP_BAD, "", "/mcp", DECIDE_DENY, false, "mcp-body" },
        { MCP_ELSE, "", "/mcp", DECIDE_ASK, false, "scope-no-rule" },
        { MCP_OTHER, "", "/mcp", DECIDE_ALLOW, false, "allow-domain" },
        { MCP_CALL, "read_x", "/mcp", DECIDE_ALLOW, false, "allow-domain" },
        { MCP_CALL, "write", "/mcp", DECIDE_DENY, false, "mcp-no-rule" },       /* and nobody is asked */
        { MCP_CALL, "read_all", "/mcp", DECIDE_DENY, false, "deny-domain" },
    };
    static const struct case_ denied[] = {
        { MCP_UNREAD, "", "/mcp", DECIDE_DENY, true, "mcp-body" },
        { MCP_BAD, "", "/x", DECIDE_DENY, false, "mcp-body" },
        { MCP_ELSE, "", "/x", DECIDE_ALLOW, false, "allow-domain" },
        { MCP_OTHER, "", "/x", DECIDE_ALLOW, false, "allow-domain" },
        { MCP_CALL, "read_all", "/x", DECIDE_DENY, false, "deny-domain" },
        { MCP_CALL, "read_x", "/x", DECIDE_ALLOW, false, "allow-domain" },
    };
    struct decide_rules rules = DECIDE_RULES_INIT;
    struct decide_request tunnel = { .via = DECIDE_CONNECT, .host = STR_LIT("mcp.example"), .port = 443 };
    struct decide_verdict v;

    (void)state;
    rules.closed = false;
    rules.ask = true;
    add(&rules, false, "/mcp", "read_*");
    add(&rules, true, "", "*_all");
    assert_true(rules.mcp);
    check(&rules, allowed, N(allowed));
    decide(&rules, &tunnel, &v);
    assert_true(v.kind == DECIDE_ALLOW && v.inspect);
    tunnel.via = DECIDE_HTTP;       /* of which nothing is known is not read */
    tunnel.method = STR_LIT("POST");
    tunnel.path = STR_LIT("/mcp");
    decide(&rules, &tunnel, &v);
    assert_true(v.kind == DECIDE_DENY && v.unread);
    decide_rules_free(&rules);

    rules = (struct decide_rules){ .closed = false };
    add(&rules, false, "", NULL);
    add(&rules, true, "", "*_all");
    check(&rules, denied, N(denied));
    decide_rules_free(&rules);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages),
        cmocka_unit_test(ceilings),
        cmocka_unit_test(heads),
        cmocka_unit_test(patterns),
        cmocka_unit_test(decisions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
