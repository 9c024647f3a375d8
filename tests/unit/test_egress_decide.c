/* egress/decide: one answer for every way out, and the bypass corpus against it: spellings of addresses, host strings,
 * proxy requests, SNI, what names resolve to (R02, R12, R13, R14, R44) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "egress/decide.h"
#include "egress/decide_kin.h"
#include "policy_fixture.h"

#define L(s) { s, sizeof(s) - 1 }

/* Rules that a careless user could write: also for what must stay closed all the same. */
static const char ours[] =
    "network:\n"
    "  allow: [example.org, '*.one.example', '**.deep.example', 'api.example:8443', xn--mnchen-3ya.example, intranet,\n"
    "          localhost, '*.localhost.localdomain', metadata.google.internal, both.example, 'ports.example',\n"
    "          10.0.0.5, '10.0.0.6:5432', '[2001:db8::5]', '[fd00::5]', 93.184.216.34, 127.0.0.1, 169.254.169.254,\n"
    "          100.100.100.200, '[::1]', 0.0.0.0, '[fe80::1]', 224.0.0.1, 198.18.0.7]\n"
    "  deny: [evil.deep.example, '*.bad.deep.example', both.example, 'ports.example:80', 203.0.114.9]\n";
static const char srt[] =
    "{\"network\": {\"allowedDomains\": [\"example.org\", \"*.deep.example\", \"api.example:8443\", \"10.0.0.5\"],"
    " \"deniedDomains\": [\"evil.deep.example\", \"*:25\"]},"
    " \"filesystem\": {\"denyRead\": [], \"allowWrite\": [], \"denyWrite\": []}}";
static const char empty[] = "network: {mode: allowlist}\n";
static const char none[] = "network: none\n";

struct fixture {
    struct policy policy;
    struct decide_rules rules;
};

static void
make(struct fixture *f, const char *text, enum policy_format format)
{
    struct err err = ERR_INIT;

    if (policy_init(&f->policy, MODE_STANDARD, format == POLICY_SRT ? VERB_SRT : VERB_RUN, &caller, &err) < 0 ||
        policy_load_bytes(&f->policy, "settings", text, strlen(text), format, &caller, &err) < 0)
        fail_msg("%s", err.msg);
    f->rules = (struct decide_rules)DECIDE_RULES_INIT;
    if (decide_compile(&f->policy, &f->rules, &err) < 0)
        fail_msg("%s", err.msg);
}

static void
drop(struct fixture *f)
{
    decide_rules_free(&f->rules);
    policy_free(&f->policy);
}

struct row {
    enum decide_via via;
    struct str host;
    uint16_t port;
    enum decide_kind kind;
    const char *reason, *rule;
};

#define ALLOW(via, host, port, rule) { DECIDE_##via, L(host), port, DECIDE_ALLOW, "allow-domain", rule }
#define DENY(via, host, port, reason) { DECIDE_##via, L(host), port, DECIDE_DENY, reason, "" }
#define BY_RULE(via, host, port, rule) { DECIDE_##via, L(host), port, DECIDE_DENY, "deny-domain", rule }

static void
check_rows(const struct decide_rules *rules, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct decide_request request = { .via = rows[i].via, .host = rows[i].host, .port = rows[i].port };
        struct decide_verdict verdict;
        decide(rules, &request, &verdict);
        if (verdict.kind != rows[i].kind || strcmp(verdict.reason, rows[i].reason) != 0 ||
            !str_eq_c(verdict.rule, rows[i].rule))
            fail_msg("row %zu \"%s\":%d: %d %s (%s) by \"%.*s\"", i, rows[i].host.p, rows[i].port, verdict.kind,
                     verdict.reason, verdict.detail, (int)verdict.rule.n, verdict.rule.p);
        assert_false(verdict.inspect);
    }
}

/* What rules mean: patterns, ports, precedence; the same for every way of asking. */
static void
rules_hold(void **state)
{
    static const struct row rows[] = {
        ALLOW(CONNECT, "example.org", 443, "example.org"),
        ALLOW(HTTP, "example.org", 80, "example.org"),
        ALLOW(SOCKS, "example.org", 443, "example.org"),
        ALLOW(TLS_SNI, "example.org", 443, "example.org"),
        ALLOW(TCP, "example.org", 443, "example.org"),
        ALLOW(DNS, "example.org", 0, "example.org"),
        ALLOW(CONNECT, "EXAMPLE.ORG", 443, "example.org"),
        ALLOW(CONNECT, "example.org.", 443, "example.org"),
        ALLOW(DNS, "eXaMpLe.OrG.", 0, "example.org"),
        DENY(CONNECT, "example.org", 22, "port-no-rule"),
        DENY(CONNECT, "example.org", 8080, "port-no-rule"),
        DENY(CONNECT, "example.org", 8443, "port-no-rule"),
        DENY(TCP, "example.org", 81, "port-no-rule"),
        ALLOW(CONNECT, "api.example", 8443, "api.example:8443"),
        DENY(CONNECT, "api.example", 443, "port-no-rule"),
        ALLOW(DNS, "api.example", 0, "api.example:8443"),
        ALLOW(CONNECT, "a.one.example", 443, "*.one.example"),
        DENY(CONNECT, "one.example", 443, "network-no-rule"),
        DENY(CONNECT, "a.b.one.example", 443, "network-no-rule"),
        DENY(CONNECT, "evilone.example", 443, "network-no-rule"),
        ALLOW(CONNECT, "a.deep.example", 443, "**.deep.example"),
        ALLOW(CONNECT, "a.b.c.deep.example", 443, "**.deep.example"),
        DENY(CONNECT, "deep.example", 443, "network-no-rule"),
        BY_RULE(CONNECT, "evil.deep.example", 443, "evil.deep.example"),
        BY_RULE(DNS, "evil.deep.example", 0, "evil.deep.example"),
        BY_RULE(CONNECT, "EVIL.deep.example.", 443, "evil.deep.example"),
        BY_RULE(TCP, "evil.deep.example", 9, "evil.deep.example"),
        BY_RULE(SOCKS, "x.bad.deep.example", 443, "*.bad.deep.example"),
        ALLOW(SOCKS, "bad.deep.example", 443, "**.deep.example"),
        BY_RULE(CONNECT, "both.example", 443, "both.example"),
        BY_RULE(HTTP, "ports.example", 80, "ports.example:80"),
        ALLOW(CONNECT, "ports.example", 443, "ports.example"),
        ALLOW(DNS, "ports.example", 0, "ports.example"),
        ALLOW(CONNECT, "xn--mnchen-3ya.example", 443, "xn--mnchen-3ya.example"),
        ALLOW(CONNECT, "XN--MNCHEN-3YA.example", 443, "xn--mnchen-3ya.example"),
        ALLOW(CONNECT, "intranet", 443, "intranet"),
        DENY(CONNECT, "other.example", 443, "network-no-rule"),
        DENY(DNS, "other.example", 0, "network-no-rule"),
        DENY(CONNECT, "org", 443, "network-no-rule"),
        DENY(CONNECT, "example.org", 0, "bad-port"),
        DENY(DNS, "example.org", 53, "bad-port"),
    };
    struct fixture f;

    (void)state;
    make(&f, ours, POLICY_YAML);
    check_rows(&f.rules, rows, N(rows));
    drop(&f);
}

/* (a): an address is what inet_pton says, only when a rule is that address, and never a blocked one. */
static void
addresses_as_text(void **state)
{
    static const struct row rows[] = {
        ALLOW(CONNECT, "93.184.216.34", 443, "93.184.216.34"),
        ALLOW(SOCKS, "93.184.216.34", 80, "93.184.216.34"),
        ALLOW(CONNECT, "10.0.0.5", 443, "10.0.0.5"),
        ALLOW(TCP, "10.0.0.6", 5432, "10.0.0.6:5432"),
        ALLOW(CONNECT, "[2001:db8::5]", 443, "[2001:db8::5]"),
        ALLOW(HTTP, "[2001:DB8:0::5]", 80, "[2001:db8::5]"),
        ALLOW(SOCKS, "2001:db8::5", 443, "[2001:db8::5]"),
        DENY(CONNECT, "198.18.0.7", 443, "always-blocked"),
        DENY(CONNECT, "10.0.0.5", 22, "port-no-rule"),
        DENY(TCP, "10.0.0.6", 443, "port-no-rule"),
        DENY(CONNECT, "10.0.0.7", 443, "address-no-rule"),
        DENY(CONNECT, "93.184.216.35", 443, "address-no-rule"),
        DENY(CONNECT, "192.168.1.1", 443, "address-no-rule"),
        DENY(CONNECT, "172.16.0.1", 443, "address-no-rule"),
        DENY(CONNECT, "100.64.0.1", 443, "address-no-rule"),
        DENY(CONNECT, "[2001:db8::6]", 443, "address-no-rule"),
        BY_RULE(CONNECT, "203.0.114.9", 443, "203.0.114.9"),
        DENY(SOCKS, "[2001:db8::5]", 443, "address-form"),
        DENY(TLS_SNI, "93.184.216.34", 443, "address-not-here"),
        DENY(DNS, "93.184.216.34", 0, "address-not-here"),
        DENY(DNS, "10.0.0.5", 0, "address-not-here"),
        /* other spellings of allowed addresses */
        DENY(CONNECT, "93.184.55330", 443, "address-form"),
        DENY(CONNECT, "1572395042", 443, "address-form"),
        DENY(CONNECT, "0x5db8d822", 443, "address-form"),
        DENY(CONNECT, "0135.0270.0330.042", 443, "address-form"),
        DENY(CONNECT, "93.184.216.034", 443, "address-form"),
        DENY(CONNECT, "93.184.216.34.", 443, "address-form"),
        DENY(CONNECT, "10.5", 443, "address-form"),
        DENY(CONNECT, "012.0.0.5", 443, "address-form"),
        DENY(CONNECT, "[::ffff:10.0.0.5]", 443, "address-embedded"),
        DENY(CONNECT, "[::ffff:a00:5]", 443, "address-embedded"),
        DENY(CONNECT, "[::10.0.0.5]", 443, "address-embedded"),
        DENY(CONNECT, "[64:ff9b::10.0.0.5]", 443, "address-embedded"),
        DENY(CONNECT, "[2002:a00:5::]", 443, "address-embedded"),
        DENY(SOCKS, "::ffff:93.184.216.34", 443, "address-embedded"),
        DENY(CONNECT, "[10.0.0.5]", 443, "bad-host"),
        /* 127.0.0.1, which a rule names */
        DENY(CONNECT, "127.0.0.1", 443, "always-blocked"),
        DENY(CONNECT, "127.1", 443, "address-form"),
        DENY(CONNECT, "127.0.1", 443, "address-form"),
        DENY(CONNECT, "2130706433", 443, "address-form"),
        DENY(CONNECT, "0x7f000001", 443, "address-form"),
        DENY(CONNECT, "0x7f.1", 443, "address-form"),
        DENY(CONNECT, "0x7f.0.0.0x1", 443, "address-form"),
        DENY(CONNECT, "0177.0.0.1", 443, "address-form"),
        DENY(CONNECT, "017700000001", 443, "address-form"),
        DENY(CONNECT, "0177.1", 443, "address-form"),
        DENY(CONNECT, "00000177.0.0.01", 443, "address-form"),
        DENY(CONNECT, "127.0.0.01", 443, "address-form"),
        DENY(CONNECT, "127.0.0.1.", 443, "address-form"),
        DENY(CONNECT, "127.0.0.2", 443, "always-blocked"),
        DENY(CONNECT, "[::1]", 443, "always-blocked"),
        DENY(CONNECT, "[0:0:0:0:0:0:0:1]", 443, "always-blocked"),
        DENY(CONNECT, "[::ffff:127.0.0.1]", 443, "address-embedded"),
        DENY(CONNECT, "[::ffff:7f00:1]", 443, "address-embedded"),
        DENY(CONNECT, "[::127.0.0.1]", 443, "address-embedded"),
        DENY(CONNECT, "[::ffff:0:127.0.0.1]", 443, "address-embedded"),
        DENY(CONNECT, "[64:ff9b::127.0.0.1]", 443, "address-embedded"),
        DENY(CONNECT, "[64:ff9b:1::127.0.0.1]", 443, "address-embedded"),
        DENY(CONNECT, "[2002:7f00:1::]", 443, "address-embedded"),
        DENY(CONNECT, "[2001:0:1:2:3:4:80ff:fffe]", 443, "address-embedded"),
        /* 169.254.169.254, 0.0.0.0 and others, which rules name as well */
        DENY(CONNECT, "169.254.169.254", 80, "always-blocked"),
        DENY(CONNECT, "2852039166", 80, "address-form"),
        DENY(CONNECT, "0xa9fea9fe", 80, "address-form"),
        DENY(CONNECT, "0251.0376.0251.0376", 80, "address-form"),
        DENY(CONNECT, "0xA9.0xFE.43518", 80, "address-form"),
        DENY(HTTP, "[::ffff:a9fe:a9fe]", 80, "address-embedded"),
        DENY(CONNECT, "169.254.170.2", 80, "always-blocked"),
        DENY(CONNECT, "100.100.100.200", 80, "always-blocked"),
        DENY(CONNECT, "168.63.129.16", 80, "always-blocked"),
        DENY(CONNECT, "[fd00:ec2::254]", 80, "always-blocked"),
        DENY(CONNECT, "[fd20:ce::254]", 80, "always-blocked"),
        DENY(CONNECT, "0", 80, "address-form"),
        DENY(CONNECT, "0.0.0.0", 80, "always-blocked"),
        DENY(CONNECT, "0.1.2.3", 80, "always-blocked"),
        DENY(CONNECT, "[::]", 80, "always-blocked"),
        DENY(CONNECT, "[fe80::1]", 80, "always-blocked"),
        DENY(CONNECT, "[fe80::1%1]", 80, "bad-host"),
        DENY(CONNECT, "[fe80::1%25lo]", 80, "bad-host"),
        DENY(CONNECT, "224.0.0.1", 80, "always-blocked"),
        DENY(CONNECT, "255.255.255.255", 80, "always-blocked"),
        DENY(CONNECT, "[ff02::1]", 80, "always-blocked"),
        /* numbers that are no address */
        DENY(CONNECT, "256.0.0.1", 443, "bad-host"),
        DENY(CONNECT, "4294967297", 443, "bad-host"),
        DENY(CONNECT, "127.0.0.1x", 443, "network-no-rule"),
        DENY(CONNECT, "1.2.3.4.5", 443, "bad-host"),
        DENY(CONNECT, "127.0.0.1 ", 443, "bad-host"),
        DENY(CONNECT, "\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1", 443, "bad-host"),
        DENY(CONNECT, "\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.0.0.1", 443, "bad-host"),
        DENY(CONNECT, "127\xe3\x80\x82" "0.0.1", 443, "bad-host"),
    };
    struct fixture f;

    (void)state;
    make(&f, ours, POLICY_YAML);
    check_rows(&f.rules, rows, N(rows));
    drop(&f);
}

/* (c), (d), (e): host strings, as a proxy request, SNI or SOCKS name could carry them. */
static void
host_strings(void **state)
{
    static const struct row rows[] = {
        DENY(CONNECT, "", 443, "bad-host"),
        DENY(CONNECT, "example.org\0", 443, "bad-host"),
        DENY(CONNECT, "example.org\0.evil.example", 443, "bad-host"),
        DENY(SOCKS, "evil.example\0example.org", 443, "bad-host"),
        DENY(TLS_SNI, "\0example.org", 443, "bad-host"),
        DENY(CONNECT, "example.org%00", 443, "bad-host"),
        DENY(CONNECT, "example.org%00.evil.example", 443, "bad-host"),
        DENY(CONNECT, "example%2eorg", 443, "bad-host"),
        DENY(CONNECT, "example.org\r\nHost: evil.example", 443, "bad-host"),
        DENY(CONNECT, "example.org\n", 443, "bad-host"),
        DENY(CONNECT, "example.org\t", 443, "bad-host"),
        DENY(CONNECT, " example.org", 443, "bad-host"),
        DENY(CONNECT, "exam ple.org", 443, "bad-host"),
        DENY(CONNECT, "example.org\x7f", 443, "bad-host"),
        DENY(CONNECT, "example.org..", 443, "bad-host"),
        DENY(CONNECT, ".example.org", 443, "bad-host"),
        DENY(CONNECT, "example..org", 443, "bad-host"),
        DENY(CONNECT, ".", 443, "bad-host"),
        DENY(CONNECT, "*.one.example", 443, "bad-host"),
        DENY(CONNECT, "*", 443, "bad-host"),
        DENY(CONNECT, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.one.example", 443, "bad-host"),
        ALLOW(CONNECT, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.one.example", 443, "*.one.example"),
        ALLOW(CONNECT, "a_b.one.example", 443, "*.one.example"),
        DENY(CONNECT, "-a.one.example", 443, "bad-host"),
        DENY(CONNECT, "xn--.one.example", 443, "bad-host"),
        DENY(CONNECT, "xn--google-.one.example", 443, "bad-host"),
        DENY(CONNECT, "m\xc3\xbcnchen.example", 443, "bad-host"),
        DENY(CONNECT, "example\xe3\x80\x82org", 443, "bad-host"),
        DENY(CONNECT, "\xef\xbd\x85xample.org", 443, "bad-host"),
        DENY(CONNECT, "exam\xc2\xadple.org", 443, "bad-host"),
        DENY(CONNECT, "exam\xe2\x80\x8dple.org", 443, "bad-host"),
        DENY(CONNECT, "\xe2\x80\xae" "example.org", 443, "bad-host"),
        DENY(CONNECT, "inter\xe2\x84\xaa.example", 443, "bad-host"),
        DENY(CONNECT, "\xc5\xbf.one.example", 443, "bad-host"),
        DENY(CONNECT, "example.org@evil.example", 443, "bad-host"),
        DENY(HTTP, "example.org:443@evil.example", 80, "bad-host"),
        DENY(HTTP, "http://example.org", 80, "bad-host"),
        DENY(HTTP, "example.org\\@evil.example", 80, "bad-host"),
        DENY(HTTP, "evil.example#example.org", 80, "bad-host"),
        DENY(HTTP, "evil.example?example.org", 80, "bad-host"),
        DENY(HTTP, "evil.example/example.org", 80, "bad-host"),
        DENY(CONNECT, "example.org:443", 443, "bad-host"),
        DENY(CONNECT, "example.org:80:443", 443, "bad-host"),
        DENY(CONNECT, "[example.org]", 443, "bad-host"),
        DENY(CONNECT, "[::1]x", 443, "bad-host"),
        DENY(CONNECT, "[::1", 443, "bad-host"),
        DENY(CONNECT, "::1]", 443, "bad-host"),
        DENY(CONNECT, "[]", 443, "bad-host"),
        DENY(CONNECT, "evilexample.org", 443, "network-no-rule"),
        DENY(CONNECT, "example.org.evil.example", 443, "network-no-rule"),
        DENY(CONNECT, "example-org", 443, "network-no-rule"),
        DENY(CONNECT, "a.example.org", 443, "network-no-rule"),
        DENY(CONNECT, "localhost", 443, "local-name"),
        DENY(CONNECT, "LOCALHOST.", 443, "local-name"),
        DENY(DNS, "localhost", 0, "local-name"),
        DENY(CONNECT, "a.localhost", 443, "local-name"),
        DENY(CONNECT, "a.b.LocalHost", 443, "local-name"),
        DENY(SOCKS, "localhost.localdomain", 443, "local-name"),
        DENY(SOCKS, "ip6-localhost", 443, "local-name"),
        DENY(SOCKS, "ip6-loopback", 443, "local-name"),
        DENY(CONNECT, "notlocalhost", 443, "network-no-rule"),
        DENY(CONNECT, "metadata.google.internal", 80, "metadata-name"),
        DENY(CONNECT, "Metadata.Google.Internal.", 80, "metadata-name"),
        DENY(DNS, "metadata", 0, "metadata-name"),
        DENY(CONNECT, "instance-data", 80, "metadata-name"),
        DENY(CONNECT, "printer.local", 443, "network-no-rule"),
        DENY(CONNECT, "db.internal", 443, "network-no-rule"),
        DENY(CONNECT, "127.0.0.1.nip.example", 443, "network-no-rule"),
    };
    struct fixture f;

    (void)state;
    make(&f, ours, POLICY_YAML);
    check_rows(&f.rules, rows, N(rows));
    drop(&f);
}

static void
srt_dialect(void **state)
{
    static const struct row rows[] = {
        ALLOW(CONNECT, "example.org", 443, "example.org"),
        ALLOW(SOCKS, "example.org", 22, "example.org"),      /* SRT: no port in the rule is every port */
        ALLOW(CONNECT, "a.b.deep.example", 443, "*.deep.example"),
        DENY(CONNECT, "deep.example", 443, "network-no-rule"),
        DENY(CONNECT, "evildeep.example", 443, "network-no-rule"),
        BY_RULE(CONNECT, "evil.deep.example", 443, "evil.deep.example"),
        BY_RULE(SOCKS, "example.org", 25, "*:25"),
        BY_RULE(SOCKS, "other.example", 25, "*:25"),
        ALLOW(DNS, "example.org", 0, "example.org"),
        ALLOW(CONNECT, "api.example", 8443, "api.example:8443"),
        DENY(CONNECT, "api.example", 443, "port-no-rule"),
        ALLOW(TCP, "10.0.0.5", 5432, "10.0.0.5"),
        DENY(CONNECT, "127.0.0.1", 443, "always-blocked"),
        DENY(CONNECT, "10.5", 443, "address-form"),
    };
    struct fixture f;

    (void)state;
    make(&f, srt, POLICY_SRT);
    check_rows(&f.rules, rows, N(rows));
    drop(&f);
}

/* An empty list, and no network: nothing is open, by name, address or resolved address. */
static void
closed(void **state)
{
    static const struct { const char *text, *name, *address, *resolved; } sets[] = {
        { empty, "network-no-rule", "address-no-rule", "address-ok" },
        { none, "network-none", "network-none", "network-none" },
    };
    static const struct ip public = { .b = { 93, 184, 216, 34 }, .family = 4 };

    (void)state;
    for (size_t i = 0; i < N(sets); i++) {
        const struct row rows[] = {
            DENY(CONNECT, "example.org", 443, sets[i].name),
            DENY(DNS, "example.org", 0, sets[i].name),
            DENY(CONNECT, "93.184.216.34", 443, sets[i].address),
            DENY(CONNECT, "127.0.0.1", 443, "always-blocked"),
        };
        struct decide_verdict verdict;
        struct fixture f;
        make(&f, sets[i].text, POLICY_YAML);
        check_rows(&f.rules, rows, N(rows));
        decide_address(&f.rules, &public, 1, 443, &verdict);
        assert_string_equal(verdict.reason, sets[i].resolved);
        drop(&f);
        decide_address(&f.rules, &public, 1, 443, &verdict);        /* freed rules are closed rules */
        assert_int_equal(verdict.kind, DECIDE_DENY);
    }
}

static void
no_rules_at_all(void **state)
{
    struct decide_rules rules = DECIDE_RULES_INIT;
    const struct row rows[] = { DENY(CONNECT, "example.org", 443, "network-none") };
    const char *const flags[] = { "--network", "host", NULL };
    struct err err = ERR_INIT;
    struct policy p;

    (void)state;
    check_rows(&rules, rows, 1);
    assert_int_equal(policy_init(&p, MODE_STANDARD, VERB_RUN, &caller, &err), 0);
    assert_int_equal(apply_flags(&p, flags, &err), 0);
    assert_int_equal(decide_compile(&p, &rules, &err), -1);         /* nothing to decide: a mistake of the caller */
    assert_string_equal(err.code, "egress.host-network");
    check_rows(&rules, rows, 1);
    policy_free(&p);
}

/* Addresses as bytes (SOCKS types 1 and 4, transparent TCP). */
static void
addresses_as_bytes(void **state)
{
    static const struct { struct ip ip; uint16_t port; const char *reason; } rows[] = {
        { { .b = { 93, 184, 216, 34 }, .family = 4 }, 443, "allow-domain" },
        { { .b = { 93, 184, 216, 35 }, .family = 4 }, 443, "address-no-rule" },
        { { .b = { 127, 0, 0, 1 }, .family = 4 }, 443, "always-blocked" },
        { { .b = { 10, 0, 0, 5 }, .family = 4 }, 443, "allow-domain" },
        { { .b = { 10, 0, 0, 6 }, .family = 4 }, 5432, "allow-domain" },
        { { .b = { [10] = 0xff, 0xff, 10, 0, 0, 5 }, .family = 6 }, 443, "address-embedded" },
        { { .b = { [15] = 1 }, .family = 6 }, 443, "always-blocked" },
        { { .b = { 0x20, 1, 0xd, 0xb8, [15] = 5 }, .family = 6 }, 443, "allow-domain" },
        { { .b = { 1, 2, 3, 4 }, .family = 0 }, 443, "bad-host" },
    };
    struct decide_verdict verdict;
    struct fixture f;

    (void)state;
    make(&f, ours, POLICY_YAML);
    for (size_t i = 0; i < N(rows); i++) {
        struct decide_request request = { .via = DECIDE_TCP, .ip = &rows[i].ip, .port = rows[i].port };
        decide(&f.rules, &request, &verdict);
        if (strcmp(verdict.reason, rows[i].reason) != 0)
            fail_msg("row %zu: %s, want %s", i, verdict.reason, rows[i].reason);
        request.host = STR_LIT("example.org");      /* a name and an address: which of them? */
        decide(&f.rules, &request, &verdict);
        assert_string_equal(verdict.reason, "bad-host");
    }
    drop(&f);
}

/* (b), (f): what a name resolved to. The rows' addresses are one set. */
static void
resolved(void **state)
{
    static const struct { const char *set; uint16_t port; const char *reason, *which; } rows[] = {
        { "93.184.216.34", 443, "address-ok", "" },
        { "1.1.1.1 8.8.8.8 2606:4700::1", 443, "address-ok", "" },
        { "1.1.1.1", 9999, "address-ok", "" },          /* the name's rule decided on the port */
        { "1.1.1.1 10.0.0.7", 443, "address-no-rule", "10.0.0.7" },
        { "10.0.0.7 1.1.1.1", 443, "address-no-rule", "10.0.0.7" },
        { "2606:4700::1 127.0.0.1", 443, "always-blocked", "127.0.0.1" },
        { "1.1.1.1 ::1", 443, "always-blocked", "::1" },
        { "1.1.1.1 fe80::1", 443, "always-blocked", "fe80::1" },
        { "10.0.0.5", 443, "address-ok", "" },          /* a rule is that very address ... */
        { "10.0.0.5 1.1.1.1", 443, "address-ok", "" },
        { "10.0.0.5", 22, "address-no-rule", "10.0.0.5" },      /* ... at its ports */
        { "10.0.0.6", 5432, "address-ok", "" },
        { "10.0.0.6", 443, "address-no-rule", "10.0.0.6" },
        { "::ffff:10.0.0.5", 443, "address-no-rule", "::ffff:a00:5" },
        { "64:ff9b::10.0.0.5", 443, "address-no-rule", "64:ff9b::a00:5" },
        { "fd00::5", 443, "address-ok", "" },
        { "fd00::6", 443, "address-no-rule", "fd00::6" },
        { "2001:db8::5", 443, "address-ok", "" },
        { "203.0.114.9", 443, "deny-domain", "203.0.114.9" },
        { "1.1.1.1 ::ffff:203.0.114.9", 443, "deny-domain", "::ffff:cb00:7209" },
        { "127.0.0.1", 443, "always-blocked", "127.0.0.1" },    /* each of these has a rule of its own */
        { "169.254.169.254", 80, "always-blocked", "169.254.169.254" },
        { "0.0.0.0", 80, "always-blocked", "0.0.0.0" },
        { "100.100.100.200", 80, "always-blocked", "100.100.100.200" },
        { "224.0.0.1", 80, "always-blocked", "224.0.0.1" },
        { "fe80::1", 80, "always-blocked", "fe80::1" },
        { "198.18.0.7", 443, "always-blocked", "198.18.0.7" },
        { "0.1.2.3", 443, "always-blocked", "0.1.2.3" },
        { "10.1.2.3", 443, "address-no-rule", "10.1.2.3" },
        { "100.64.0.1", 443, "address-no-rule", "100.64.0.1" },
        { "127.255.255.254", 443, "always-blocked", "127.255.255.254" },
        { "169.254.0.1", 443, "always-blocked", "169.254.0.1" },
        { "169.254.170.2", 443, "always-blocked", "169.254.170.2" },
        { "169.254.169.253", 443, "always-blocked", "169.254.169.253" },
        { "168.63.129.16", 443, "always-blocked", "168.63.129.16" },
        { "172.16.0.1", 443, "address-no-rule", "172.16.0.1" },
        { "172.31.255.255", 443, "address-no-rule", "172.31.255.255" },
        { "172.32.0.1", 443, "address-ok", "" },
        { "192.0.0.1", 443, "address-no-rule", "192.0.0.1" },
        { "192.0.0.192", 443, "always-blocked", "192.0.0.192" },
        { "192.0.2.1", 443, "address-no-rule", "192.0.2.1" },
        { "192.88.99.1", 443, "address-no-rule", "192.88.99.1" },
        { "192.168.0.1", 443, "address-no-rule", "192.168.0.1" },
        { "198.18.0.1", 443, "always-blocked", "198.18.0.1" },
        { "198.51.100.1", 443, "address-no-rule", "198.51.100.1" },
        { "203.0.113.1", 443, "address-no-rule", "203.0.113.1" },
        { "239.255.255.255", 443, "always-blocked", "239.255.255.255" },
        { "240.0.0.1", 443, "address-no-rule", "240.0.0.1" },
        { "255.255.255.255", 443, "always-blocked", "255.255.255.255" },
        { "::", 443, "always-blocked", "::" },
        { "::1", 443, "always-blocked", "::1" },
        { "::ffff:127.0.0.1", 443, "always-blocked", "::ffff:7f00:1" },
        { "::ffff:0:127.0.0.1", 443, "always-blocked", "::ffff:0:7f00:1" },
        { "::127.0.0.1", 443, "always-blocked", "::7f00:1" },
        { "64:ff9b::127.0.0.1", 443, "always-blocked", "64:ff9b::7f00:1" },
        { "64:ff9b::169.254.169.254", 443, "always-blocked", "64:ff9b::a9fe:a9fe" },
        { "64:ff9b::8.8.8.8", 443, "address-ok", "" },  /* DNS64's answer for a public address */
        { "64:ff9b:1::8.8.8.8", 443, "address-no-rule", "64:ff9b:1::808:808" },
        { "2002:7f00:1::", 443, "always-blocked", "2002:7f00:1::" },
        { "2002:a00:5::", 443, "address-no-rule", "2002:a00:5::" },
        { "2002:808:808::", 443, "address-no-rule", "2002:808:808::" },
        { "2001:0:1:2:3:4:80ff:fffe", 443, "always-blocked", "2001:0:1:2:3:4:80ff:fffe" },
        { "2001:0:1:2:3:4:f7f7:f7f7", 443, "address-no-rule", "2001:0:1:2:3:4:f7f7:f7f7" },
        { "100::1", 443, "address-no-rule", "100::1" },
        { "2001:db8::6", 443, "address-no-rule", "2001:db8::6" },
        { "3fff::1", 443, "address-no-rule", "3fff::1" },
        { "5f00::1", 443, "address-no-rule", "5f00::1" },
        { "fc00::1", 443, "address-no-rule", "fc00::1" },
        { "fec0::1", 443, "address-no-rule", "fec0::1" },
        { "ff02::1", 443, "always-blocked", "ff02::1" },
        { "fd00:ec2::254", 443, "always-blocked", "fd00:ec2::254" },
        { "fd20:ce::254", 443, "always-blocked", "fd20:ce::254" },
        { "9.9.9.1", 443, "host-address", "9.9.9.1" },
        { "::ffff:9.9.9.1", 443, "host-address", "::ffff:909:901" },
        { "1.1.1.1 2620:fe::9", 443, "host-address", "2620:fe::9" },
        { "1.1.1.1", 0, "bad-port", "" },
        { "", 443, "no-address", "" },
    };
    static const struct ip own[] = {
        { .b = { 9, 9, 9, 1 }, .family = 4 }, { .b = { 0x26, 0x20, 0, 0xfe, [15] = 9 }, .family = 6 } };
    struct fixture f;

    (void)state;
    make(&f, ours, POLICY_YAML);
    f.rules.own = own;
    f.rules.n_own = N(own);
    f.rules.ask = true;         /* nobody is asked about addresses */
    for (size_t i = 0; i < N(rows); i++) {
        struct ip set[4];
        size_t n = 0;
        struct decide_verdict verdict;
        for (const char *p = rows[i].set; *p != '\0';) {
            size_t length = strcspn(p, " ");
            assert_true(n < N(set) && ip_parse((struct str){ p, length }, &set[n++]));
            p += length + (p[length] == ' ');
        }
        decide_address(&f.rules, set, n, rows[i].port, &verdict);
        if (strcmp(verdict.reason, rows[i].reason) != 0 || !str_eq_c((struct str){ verdict.host.name, verdict.host.n }, rows[i].which))
            fail_msg("row %zu {%s}: %s %s", i, rows[i].set, verdict.reason, verdict.host.name);
        assert_int_equal(verdict.kind, strcmp(rows[i].reason, "address-ok") == 0 ? DECIDE_ALLOW : DECIDE_DENY);
    }
    drop(&f);
}

static void
resolved_limits(void **state)
{
    struct ip set[DECIDE_ADDRESSES_MAX + 1];
    struct decide_verdict verdict;
    struct fixture f;

    (void)state;
    for (size_t i = 0; i < N(set); i++)
        set[i] = (struct ip){ .b = { 1, 1, 1, (uint8_t)i }, .family = 4 };
    make(&f, ours, POLICY_YAML);
    decide_address(&f.rules, set, N(set) - 1, 443, &verdict);
    assert_int_equal(verdict.kind, DECIDE_ALLOW);
    decide_address(&f.rules, set, N(set), 443, &verdict);
    assert_string_equal(verdict.reason, "too-many-addresses");
    set[DECIDE_ADDRESSES_MAX - 1].b[0] = 10;        /* the last one counts as well */
    decide_address(&f.rules, set, N(set) - 1, 443, &verdict);
    assert_int_equal(verdict.kind, DECIDE_DENY);
    set[0].family = 0;
    decide_address(&f.rules, set, 1, 443, &verdict);
    assert_string_equal(verdict.reason, "bad-host");
    drop(&f);
}

/* What is asked about: the want of a rule, and nothing else. */
static void
asking(void **state)
{
    static const struct { enum decide_via via; struct str host; uint16_t port; enum decide_kind kind; const char *reason; } rows[] = {
        { DECIDE_CONNECT, L("other.example"), 443, DECIDE_ASK, "network-no-rule" },
        { DECIDE_DNS, L("other.example"), 0, DECIDE_ASK, "network-no-rule" },
        { DECIDE_CONNECT, L("example.org"), 22, DECIDE_ASK, "port-no-rule" },
        { DECIDE_CONNECT, L("10.0.0.9"), 443, DECIDE_ASK, "address-no-rule" },
        { DECIDE_CONNECT, L("example.org"), 443, DECIDE_ALLOW, "allow-domain" },
        { DECIDE_CONNECT, L("evil.deep.example"), 443, DECIDE_DENY, "deny-domain" },
        { DECIDE_CONNECT, L("localhost"), 443, DECIDE_DENY, "local-name" },
        { DECIDE_CONNECT, L("127.0.0.9"), 443, DECIDE_DENY, "always-blocked" },
        { DECIDE_CONNECT, L("169.254.169.254"), 80, DECIDE_DENY, "always-blocked" },
        { DECIDE_CONNECT, L("10.9"), 443, DECIDE_DENY, "address-form" },
        { DECIDE_CONNECT, L("a..b"), 443, DECIDE_DENY, "bad-host" },
        { DECIDE_TLS_SNI, L("10.0.0.9"), 443, DECIDE_DENY, "address-not-here" },
    };
    struct fixture f;

    (void)state;
    make(&f, ours, POLICY_YAML);
    f.rules.ask = true;
    for (size_t i = 0; i < N(rows); i++) {
        struct decide_request request = { .via = rows[i].via, .host = rows[i].host, .port = rows[i].port };
        struct decide_verdict verdict;
        decide(&f.rules, &request, &verdict);
        if (verdict.kind != rows[i].kind || strcmp(verdict.reason, rows[i].reason) != 0)
            fail_msg("row %zu %s: %d %s", i, rows[i].host.p, verdict.kind, verdict.reason);
    }
    f.rules.closed = true;
    {
        struct decide_request request = { .via = DECIDE_CONNECT, .host = STR_LIT("other.example"), .port = 443 };
        struct decide_verdict verdict;
        decide(&f.rules, &request, &verdict);
        assert_int_equal(verdict.kind, DECIDE_DENY);        /* no network: nothing to ask about */
    }
    drop(&f);
}

/* Up to the ceiling of a policy's list, every rule counts; one more is refused. The verdict names rule and place. */
static void
many_rules(void **state)
{
    struct origin from = { .kind = ORIGIN_FILE, .name = "settings", .line = 7 };
    struct decide_rules rules = DECIDE_RULES_INIT;
    struct decide_verdict verdict;
    static char names[POLICY_LIST_MAX][24];
    struct err err = ERR_INIT;

    (void)state;
    rules.closed = false;
    for (size_t i = 0; i < POLICY_LIST_MAX; i++) {
        int n = snprintf(names[i], sizeof(names[i]), "h%zu.example", i);
        assert_int_equal(decide_rules_add(&rules, false, (struct str){ names[i], (size_t)n }, &from, NULL, &err), 0);
    }
    assert_int_equal(decide_rules_add(&rules, false, STR_LIT("one.more"), &from, NULL, &err), -1);
    for (size_t i = 0; i < POLICY_LIST_MAX; i += 97) {
        struct decide_request request = { .via = DECIDE_CONNECT, .host = str_of(names[i]), .port = 443 };
        decide(&rules, &request, &verdict);
        assert_int_equal(verdict.kind, DECIDE_ALLOW);
        assert_true(str_eq_c(verdict.rule, names[i]));
        assert_int_equal(verdict.from.line, 7);
    }
    decide_rules_free(&rules);
}

/* What matches is never passed over: names of few letters, so that many of them do. */
static void
kin(void **state)
{
    static const char *const labels[] = { "a", "b", "aa", "ab", "x1" };
    static const char *const stars[] = { "", "*.", "**." };
    uint64_t matched = 0, passed = 0;
    unsigned seed = 7;

    (void)state;
    for (int i = 0; i < 200000; i++) {
        char name[2][64];
        struct host_pattern pattern;
        struct host host;
        for (int k = 0; k < 2; k++) {
            int n = snprintf(name[k], sizeof(name[k]), "%s", k == 1 ? stars[(seed >> 8) % 3] : "");
            for (unsigned left = (seed = seed * 1103515245u + 12345u) >> 16 & 3; ; left--) {
                seed = seed * 1103515245u + 12345u;
                n += snprintf(name[k] + n, sizeof(name[k]) - (size_t)n, "%s.", labels[(seed >> 16) % 5]);
                if (left == 0)
                    break;
            }
            snprintf(name[k] + n, sizeof(name[k]) - (size_t)n, "example");
        }
        assert_int_equal(host_canonical(str_of(name[0]), &host), HOST_OK);
        assert_int_equal(host_pattern_cloche(str_of(name[1]), &pattern), HOST_OK);
        if (host_match(&pattern, &host, 80)) {
            assert_true(decide_kin_of_host(&host) & decide_kin_of_pattern(&pattern));
            matched++;
        } else {
            passed += (decide_kin_of_host(&host) & decide_kin_of_pattern(&pattern)) == 0;
        }
    }
    assert_true(matched > 1000 && passed > 100000);
}

/* Addresses and patterns for every host are always compared. */
static void
kin_of_others(void **state)
{
    struct host_pattern any, address;
    struct host host, ip;

    (void)state;
    assert_int_equal(host_pattern_srt(str_of("*:25"), true, &any), HOST_OK);
    assert_int_equal(host_pattern_cloche(str_of("[2001:db8::5]"), &address), HOST_OK);
    assert_int_equal(host_canonical(str_of("a.example"), &host), HOST_OK);
    assert_int_equal(host_canonical(str_of("[2001:DB8:0::5]"), &ip), HOST_OK);
    assert_true(decide_kin_of_pattern(&any) & decide_kin_of_host(&host));
    assert_true(decide_kin_of_pattern(&any) & decide_kin_of_host(&ip));
    assert_true(decide_kin_of_pattern(&address) & decide_kin_of_host(&ip));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_hold),
        cmocka_unit_test(addresses_as_text),
        cmocka_unit_test(host_strings),
        cmocka_unit_test(srt_dialect),
        cmocka_unit_test(closed),
        cmocka_unit_test(no_rules_at_all),
        cmocka_unit_test(addresses_as_bytes),
        cmocka_unit_test(resolved),
        cmocka_unit_test(resolved_limits),
        cmocka_unit_test(asking),
        cmocka_unit_test(many_rules),
        cmocka_unit_test(kin),
        cmocka_unit_test(kin_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
