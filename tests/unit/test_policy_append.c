/* policy/append: one more host, and not another byte (R28) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "policy/append.h"

static const struct { const char *before, *after; } rows[] = {
    /* block lists, with comments, other indentation, no line end, and others' line ends */
    { "network:\n  allow:\n    - a.example.org\n", "network:\n  allow:\n    - a.example.org\n    - \"n.example.org:443\"\n" },
    { "network:\n  allow:\n    - a # why\n    # more\n\nmode: max\n",
      "network:\n  allow:\n    - a # why\n    - \"n.example.org:443\"\n    # more\n\nmode: max\n" },
    { "network:\n  allow:\n  - a\n  - b\n  deny: []\n", "network:\n  allow:\n  - a\n  - b\n  - \"n.example.org:443\"\n  deny: []\n" },
    { "network:\n  allow:\n    - 'a'", "network:\n  allow:\n    - 'a'\n    - \"n.example.org:443\"\n" },
    { "network:\r\n  allow:\r\n    - a\r\n", "network:\r\n  allow:\r\n    - a\r\n    - \"n.example.org:443\"\r\n" },
    { "# \xc3\xbc\xe2\x82\xac\nnetwork:\n  allow:\n    - a\n", "# \xc3\xbc\xe2\x82\xac\nnetwork:\n  allow:\n    - a\n    - \"n.example.org:443\"\n" },
    { "network:\n  allow:\n    - {host: a, methods: [GET]}\n    - host: b\n      port: 1\nmode: max\n",
      "network:\n  allow:\n    - {host: a, methods: [GET]}\n    - host: b\n      port: 1\n    - \"n.example.org:443\"\nmode: max\n" },
    /* flow lists */
    { "network: {allow: [a, b]}\n", "network: {allow: [a, b, \"n.example.org:443\"]}\n" },
    { "network:\n  allow: [ ] # none\n", "network:\n  allow: [\"n.example.org:443\" ] # none\n" },
    { "{\"network\": {\"allow\": [\n\t\"a\"\n]}}", "{\"network\": {\"allow\": [\n\t\"a\", \"n.example.org:443\"\n]}}" },
    { "{\"network\": {\"mode\": \"allowlist\"}}", "{\"network\": {\"allow\": [\"n.example.org:443\"], \"mode\": \"allowlist\"}}" },
    { "{\"network\": {}}", "{\"network\": {\"allow\": [\"n.example.org:443\"]}}" },
    { "{\"mode\": \"max\"}", "{\"network\": {\"allow\": [\"n.example.org:443\"]}, \"mode\": \"max\"}" },
    { "{}", "{\"network\": {\"allow\": [\"n.example.org:443\"]}}" },
    /* no list yet */
    { "network:\n  ask: true\n", "network:\n  allow:\n    - \"n.example.org:443\"\n  ask: true\n" },
    { "# mine\nmode: max\n", "# mine\nnetwork:\n  allow:\n    - \"n.example.org:443\"\nmode: max\n" },
    { "---\nmode: max\n", "---\nnetwork:\n  allow:\n    - \"n.example.org:443\"\nmode: max\n" },
    /* no place */
    { "network: allowlist\n", NULL }, { "network:\n  allow: a\n", NULL }, { "- a\n", NULL }, { "", NULL },
    { "network: [\n", NULL }, { "\xef\xbb\xbfmode: max\n", NULL }, { "network:\n  allow:\n", NULL },
};

static void
rows_hold(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf out = BUF_INIT(1 << 16);
        struct err err = ERR_INIT;
        int r = policy_append_allow(str_of(rows[i].before), STR_LIT("n.example.org:443"), &out, &err);

        if (rows[i].after == NULL) {
            assert_int_equal(r, -1);
            assert_string_equal(err.code, "policy.append");
        } else {
            assert_int_equal(r, 0);
            assert_int_equal(buf_nul(&out), 0);
            assert_string_equal((const char *)out.p, rows[i].after);
        }
        buf_free(&out);
    }
}

static void
a_rule_cannot_say_more_than_a_host(void **state)
{
    static const struct str bad[] = { STR_LIT("a\""), STR_LIT("a\nmode: off"), STR_LIT("a b"), STR_LIT("a\\"), { "a\0b", 3 } };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct buf out = BUF_INIT(1 << 16);
        assert_int_equal(policy_append_allow(STR_LIT("network: {allow: []}"), bad[i], &out, NULL), -1);
        assert_int_equal(out.n, 0);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_hold),
        cmocka_unit_test(a_rule_cannot_say_more_than_a_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
