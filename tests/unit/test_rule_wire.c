/* egress/rule_wire: what is written is what is read, and nothing else is (R14, R85) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/array.h"
#include "egress/rule_wire.h"

#define N(a) ARRAY_LEN(a)

static void
there_and_back(void **state)
{
    static char get[] = "GET", head[] = "HEAD", path[] = "/v1/**", host[] = "api.example.org:443";
    static char written[] = "api.example.org:443 GET,HEAD /v1/**";
    static char tool[] = "read_*";
    const struct policy_scope scope = { .methods = { get, head }, .n_methods = 2, .path = path, .tools = { tool },
                                        .n_tools = 1 };
    const struct policy_entry entries[] = {
        { .value = host, .written = written, .scope = &scope, .from = { .kind = ORIGIN_FILE, .name = "s.yaml", .line = 3 } },
        { .value = host, .written = host, .from = { .kind = ORIGIN_FILE, .name = "\xff.yaml", .line = 3 } },
    };
    struct decide_rules rules = DECIDE_RULES_INIT;
    struct err err = ERR_INIT;
    json_t *keep = json_array();
    char message[RULE_WIRE_MAX];

    (void)state;
    for (size_t i = 0; i < N(entries); i++) {
        int n = rule_write(&entries[i], i == 1, message, &err);
        assert_true(n > 0);
        assert_int_equal(rule_read(message, (size_t)n, keep, &rules, &err), 0);
    }
    memset(message, 'x', sizeof(message));      /* nothing is borrowed from it */
    assert_int_equal(rules.allow.n, 1);
    assert_int_equal(rules.deny.n, 1);
    assert_true(str_eq_c(rules.allow.v[0].text, written));
    assert_int_equal(rules.allow.v[0].pattern.port, 443);
    assert_int_equal(rules.allow.v[0].scope.n_methods, 2);
    assert_true(str_eq_c(rules.allow.v[0].scope.methods[1], "HEAD"));
    assert_true(str_eq_c(rules.allow.v[0].scope.path, path));
    assert_int_equal(rules.allow.v[0].scope.n_tools, 1);
    assert_true(rules.mcp && str_eq_c(rules.allow.v[0].scope.tools[0], tool));
    assert_string_equal(rules.allow.v[0].from.name, "s.yaml:3");
    assert_false(rules.deny.v[0].has_scope);
    assert_string_equal(rules.deny.v[0].from.name, "?.yaml:3");
    decide_rules_free(&rules);
    json_decref(keep);
}

static void
strict(void **state)
{
    static const char *const rows[] = {
        "", "G", "{}", "[]", "null", "\"x\"",
        "{\"list\":\"allow\",\"host\":\"a.example\",\"text\":\"a\"}",
        "{\"list\":\"other\",\"host\":\"a.example\",\"text\":\"a\",\"origin\":\"x\"}",
        "{\"list\":\"host-port\",\"host\":\"0\",\"text\":\"0\",\"origin\":\"x\"}",
        "{\"list\":\"host-port\",\"host\":\"65536\",\"text\":\"65536\",\"origin\":\"x\"}",
        "{\"list\":\"host-port\",\"host\":\"a.example:80\",\"text\":\"80\",\"origin\":\"x\"}",
        "{\"list\":\"host-port\",\"host\":\"80\",\"text\":\"80\",\"origin\":\"x\",\"path\":\"/v1\"}",
        "{\"list\":\"allow\",\"host\":\"*\",\"text\":\"a\",\"origin\":\"x\"}",
        "{\"list\":\"allow\",\"host\":7,\"text\":\"a\",\"origin\":\"x\"}",
        "{\"list\":\"allow\",\"host\":\"a.example\",\"text\":\"a\",\"origin\":null}",
        "{\"list\":\"allow\",\"host\":\"a.example\",\"text\":\"a\",\"origin\":\"x\",\"more\":1}",
        "{\"list\":\"allow\",\"host\":\"a.example\",\"text\":\"a\",\"origin\":\"x\",\"methods\":[]}",
        "{\"list\":\"allow\",\"host\":\"a.example\",\"text\":\"a\",\"origin\":\"x\",\"methods\":\"GET\"}",
        "{\"list\":\"allow\",\"host\":\"a.example\",\"text\":\"a\",\"origin\":\"x\",\"methods\":[1]}",
        "{\"list\":\"allow\",\"host\":\"a.example\",\"text\":\"a\",\"origin\":\"x\",\"methods\":[\"\"]}",
        "{\"list\":\"allow\",\"host\":\"a.example\",\"text\":\"a\",\"origin\":\"x\",\"path\":\"\"}",
        "{\"list\":\"allow\",\"host\":\"a.example\",\"text\":\"a\",\"origin\":\"x\",\"path\":\"v1\"}",
        "{\"list\":\"allow\",\"host\":\"a.example\",\"text\":\"a\",\"origin\":\"x\",\"tools\":[]}",
        "{\"list\":\"allow\",\"host\":\"a.example\",\"text\":\"a\",\"origin\":\"x\",\"tools\":\"a\"}",
        "{\"list\":\"allow\",\"host\":\"a.example\",\"text\":\"a\",\"origin\":\"x\",\"tools\":[1]}",
        "{\"list\":\"allow\",\"host\":\"a.example\",\"text\":\"a\",\"origin\":\"x\",\"tools\":[\"a b\"]}",
        "{\"list\":\"allow\",\"list\":\"deny\",\"host\":\"a.example\",\"text\":\"a\",\"origin\":\"x\"}",
        "{\"list\":\"allow\",\"host\":\"a.example\\u0000\",\"text\":\"a\",\"origin\":\"x\"}",
        "{\"list\":\"allow\",\"host\":\"a.example\",\"text\":\"a\",\"origin\":\"x\"} x",
    };
    struct decide_rules rules = DECIDE_RULES_INIT;
    json_t *keep = json_array();

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct err err = ERR_INIT;
        if (rule_read(rows[i], strlen(rows[i]), keep, &rules, &err) == 0)
            fail_msg("taken: %s", rows[i]);
    }
    assert_int_equal(rules.allow.n + rules.deny.n + rules.host_ports.n, 0);
    assert_int_equal(json_array_size(keep), 0);
    decide_rules_free(&rules);
    json_decref(keep);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(strict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
