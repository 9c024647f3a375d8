/* egress/why_host.c: `cloche why --host` says what egress does (R02, R12, R14): the answers are written down here, and
 * each is also compared with the decision itself
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "egress/decide.h"
#include "egress/why_host.h"
#include "policy_fixture.h"

struct row { const char *target; bool allowed; const char *reason, *rule, *flag; };

/* What a proxy client that asks for @target gets, in both steps; NULL: no such host. */
static const char *
decided(const struct policy *p, const char *target, const struct ip *own, size_t n_own, bool *allowed)
{
    static const char *reason;
    cleanup_decide_rules struct decide_rules rules = DECIDE_RULES_INIT;
    struct decide_request request = { .via = DECIDE_CONNECT };
    struct decide_verdict v, dialled;
    struct err err = ERR_INIT;

    assert_int_equal(decide_compile(p, &rules, &err), 0);
    rules.own = own;
    rules.n_own = n_own;
    if (host_split_port(str_of(target), &request.host, &request.port) != HOST_OK)
        request.host = str_of(target);
    request.port = request.port == 0 ? 443 : request.port;
    decide(&rules, &request, &v);
    if (v.kind == DECIDE_ALLOW && v.host.is_ip) {
        decide_address(&rules, &v.host.ip, 1, request.port, &dialled);
        v = dialled.kind == DECIDE_ALLOW ? v : dialled;
    }
    *allowed = v.kind == DECIDE_ALLOW;
    reason = v.reason;
    return reason;
}

static void
check(const struct policy *p, const struct ip *own, size_t n_own, const struct row *rows, size_t n)
{
    struct err err = ERR_INIT;
    struct why why;
    bool allowed;

    for (size_t i = 0; i < n; i++) {
        const struct row *r = &rows[i];
        assert_int_equal(egress_why_host(p, own, n_own, r->target, NULL, &why, &err), 0);
        if (why.allowed != r->allowed || strcmp(why.reason, r->reason) != 0 || strcmp(why.rule, r->rule) != 0 ||
            strcmp(why.flag, r->flag) != 0 || why.text[0] == '\0')
            fail_msg("%s: %d [%s] rule \"%s\" flag \"%s\" text \"%s\"", r->target, why.allowed, why.reason, why.rule,
                     why.flag, why.text);
        if (strcmp(decided(p, r->target, own, n_own, &allowed), why.reason) != 0 || allowed != why.allowed)
            fail_msg("%s: decide() says otherwise than why", r->target);
    }
}

#define OPEN(rule) true, "allow-domain", rule, ""
#define SHUT(reason, rule, flag) false, reason, rule, flag

static void
ours(void **state)
{
    static const char *const flags[] = {
        "--allow-domain", "example.org", "--allow-domain", "*.one.example", "--allow-domain", "**.any.example",
        "--allow-domain", "git.example:9418", "--allow-domain", "10.1.1.1", "--allow-domain", "[fd00::7]:8443",
        "--allow-domain", "127.0.0.1", "--allow-domain", "192.0.2.9", "--allow-domain", "8.8.4.4",
        "--deny-domain", "bad.any.example", "--deny-domain", "example.org:80", NULL };
    static const struct ip own[] = { { { 8, 8, 4, 4 }, 4 } };
    static const struct row rows[] = {
        { "example.org", OPEN("example.org") },
        { "EXAMPLE.org.:443", OPEN("example.org") },
        { "example.org:80", SHUT("deny-domain", "example.org:80", "") },
        { "example.org:22", SHUT("port-no-rule", "", "--allow-domain example.org:22") },
        { "www.example.org", SHUT("network-no-rule", "", "--allow-domain www.example.org") },
        { "evilexample.org", SHUT("network-no-rule", "", "--allow-domain evilexample.org") },
        { "a.one.example:80", OPEN("*.one.example") },
        { "a.b.one.example", SHUT("network-no-rule", "", "--allow-domain a.b.one.example") },
        { "one.example", SHUT("network-no-rule", "", "--allow-domain one.example") },
        { "a.b.any.example", OPEN("**.any.example") },
        { "bad.any.example", SHUT("deny-domain", "bad.any.example", "") },
        { "git.example:9418", OPEN("git.example:9418") },
        { "git.example", SHUT("port-no-rule", "", "--allow-domain git.example:443") },
        { "10.1.1.1", OPEN("10.1.1.1") },
        { "10.1.1.2", SHUT("address-no-rule", "", "--allow-domain 10.1.1.2") },
        { "10.1.1.2:8080", SHUT("address-no-rule", "", "--allow-domain 10.1.1.2:8080") },
        { "[fd00::7]:8443", OPEN("[fd00::7]:8443") },
        { "fd00::7", SHUT("port-no-rule", "", "--allow-domain [fd00::7]:443") },
        { "fd00::8", SHUT("address-no-rule", "", "--allow-domain [fd00::8]") },
        { "192.0.2.9", OPEN("192.0.2.9") },
        { "8.8.4.4", SHUT("host-address", "", "") },
        { "8.8.8.8", SHUT("address-no-rule", "", "--allow-domain 8.8.8.8") },
        { "localhost:80", SHUT("local-name", "", "") },
        { "a.localhost", SHUT("local-name", "", "") },
        { "127.0.0.1", SHUT("always-blocked", "", "") },
        { "::1", SHUT("always-blocked", "", "") },
        { "169.254.169.254:80", SHUT("always-blocked", "", "") },
        { "metadata.google.internal", SHUT("metadata-name", "", "") },
        { "127.1", SHUT("address-form", "", "") },
        { "0x0a010101:80", SHUT("address-form", "", "") },
        { "::ffff:10.1.1.1", SHUT("address-embedded", "", "") },
    };
    struct err err = ERR_INIT;
    struct policy p;

    (void)state;
    assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_RUN, NULL, POLICY_AUTO, flags, &err), 0);
    check(&p, own, N(own), rows, N(rows));
    policy_free(&p);
}

/* SRT's order: denied, then allowed, then closed; its star is any depth; a rule without a port is every port (R02). */
static void
srt(void **state)
{
    static const char text[] =
        "{\"network\": {\"allowedDomains\": [\"*.example.org\", \"example.net:443\", \"10.1.1.1\"],\n"
        "\"deniedDomains\": [\"bad.example.org\", \"*:22\"]},\n"
        "\"filesystem\": {\"denyRead\": [], \"allowWrite\": [], \"denyWrite\": []}}";
    static const struct row rows[] = {
        { "a.example.org:443", OPEN("*.example.org") },
        { "a.example.org:5432", OPEN("*.example.org") },
        { "A.B.Example.ORG.:443", OPEN("*.example.org") },
        { "example.org:443", SHUT("network-no-rule", "", "--allow-domain example.org") },
        { "evilexample.org", SHUT("network-no-rule", "", "--allow-domain evilexample.org") },
        { "bad.example.org:443", SHUT("deny-domain", "bad.example.org", "") },
        { "a.example.org:22", SHUT("deny-domain", "*:22", "") },
        { "example.net:443", OPEN("example.net:443") },
        { "example.net:80", SHUT("port-no-rule", "", "--allow-domain example.net:80") },
        { "10.1.1.1:80", OPEN("10.1.1.1") },
        { "10.1.1.2:80", SHUT("address-no-rule", "", "--allow-domain 10.1.1.2") },
        { "169.254.169.254", SHUT("always-blocked", "", "") },
    };
    static const char closed[] =
        "{\"network\": {\"allowedDomains\": [], \"deniedDomains\": [\"a.example.org\"]},\n"
        "\"filesystem\": {\"denyRead\": [], \"allowWrite\": [], \"denyWrite\": []}}";
    static const struct row none[] = {
        { "a.example.org", SHUT("network-none", "", "--allow-domain a.example.org") },
        { "b.example.org", SHUT("network-none", "", "--allow-domain b.example.org") },
    };
    struct err err = ERR_INIT;
    struct policy p;

    (void)state;
    assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_SRT, text, POLICY_SRT, NULL, &err), 0);
    check(&p, NULL, 0, rows, N(rows));
    policy_free(&p);
    assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_SRT, closed, POLICY_SRT, NULL, &err), 0);
    check(&p, NULL, 0, none, N(none));
    policy_free(&p);
}

/* The suggested flag, added to those that are there, opens what was closed. */
static void
suggestions_work(void **state)
{
    static const char *const flags[] = { "--allow-domain", "example.org", NULL };
    static const char *const targets[] = { "other.example", "example.org:22", "10.1.1.2", "fd00::8", "[fd00::8]:81" };
    struct err err = ERR_INIT;
    struct policy p;
    struct why why;

    (void)state;
    for (size_t i = 0; i < N(targets); i++) {
        const char *more[] = { "--allow-domain", "example.org", "--allow-domain", NULL, NULL };
        char value[640];
        assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_RUN, NULL, POLICY_AUTO, flags, &err), 0);
        assert_int_equal(egress_why_host(&p, NULL, 0, targets[i], NULL, &why, &err), 0);
        assert_false(why.allowed);
        assert_int_equal(strncmp(why.flag, "--allow-domain ", 15), 0);
        snprintf(value, sizeof(value), "%s", why.flag + 15);
        policy_free(&p);
        more[3] = value;
        assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_RUN, NULL, POLICY_AUTO, more, &err), 0);
        assert_int_equal(egress_why_host(&p, NULL, 0, targets[i], NULL, &why, &err), 0);
        assert_true(why.allowed);
        policy_free(&p);
    }
}

static void
without_a_list(void **state)
{
    static const char *const host_network[] = { "--network", "host", NULL }, *const max[] = { "--mode", "max", NULL };
    static const char *const none[] = { "--network", "none", NULL }, *const light[] = { "--mode", "light", NULL };
    static const struct row closed[] = { { "example.org:443", SHUT("network-none", "", "--allow-domain example.org") } };
    static const struct row told[] = {
        { "example.org", SHUT("network-none", "", "--network allowlist --allow-domain example.org") } };
    static const struct row in_light[] = { { "example.org", SHUT("network-none", "", "--network host") } };
    struct err err = ERR_INIT;
    struct policy p;
    struct why why;

    (void)state;
    assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_RUN, NULL, POLICY_AUTO, NULL, &err), 0);
    check(&p, NULL, 0, closed, N(closed));
    assert_int_equal(egress_why_host(&p, NULL, 0, "exa mple.org", NULL, &why, &err), -1);
    assert_int_equal(egress_why_host(&p, NULL, 0, "", NULL, &why, &err), -1);
    assert_int_equal(egress_why_host(&p, NULL, 0, "http://example.org", NULL, &why, &err), -1);
    assert_string_equal(err.code, "policy.host.url");
    policy_free(&p);
    assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_RUN, NULL, POLICY_AUTO, max, &err), 0);
    check(&p, NULL, 0, closed, N(closed));
    policy_free(&p);
    assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_RUN, NULL, POLICY_AUTO, none, &err), 0);
    check(&p, NULL, 0, told, N(told));
    policy_free(&p);
    assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_RUN, NULL, POLICY_AUTO, light, &err), 0);
    check(&p, NULL, 0, in_light, N(in_light));
    policy_free(&p);
    assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_RUN, NULL, POLICY_AUTO, host_network, &err), 0);
    assert_int_equal(egress_why_host(&p, NULL, 0, "::1", NULL, &why, &err), 0);
    assert_true(why.allowed);
    assert_string_equal(why.reason, "network-host");
    assert_string_equal(why.source.name, "--network");
    policy_free(&p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ours), cmocka_unit_test(srt), cmocka_unit_test(suggestions_work),
        cmocka_unit_test(without_a_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
