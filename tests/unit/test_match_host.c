/* match/host: names are canonical before they are compared, and each dialect's star means what its users expect
 * (R02, R14) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "match/host.h"

#define N(a) ARRAY_LEN(a)
#define L(s) { s, sizeof(s) - 1 }

static void
canonical_rows(void **state)
{
    static const struct { struct str text; enum host_fault fault; const char *name; } rows[] = {
        { L("example.org"), HOST_OK, "example.org" },
        { L("EXAMPLE.Org"), HOST_OK, "example.org" },
        { L("example.org."), HOST_OK, "example.org" },
        { L("example.org.."), HOST_EMPTY_LABEL, NULL },
        { L(".example.org"), HOST_EMPTY_LABEL, NULL },
        { L("a..b"), HOST_EMPTY_LABEL, NULL },
        { L("."), HOST_EMPTY_LABEL, NULL },
        { L(""), HOST_EMPTY, NULL },
        { L("localhost"), HOST_OK, "localhost" },
        { L("my_host.internal"), HOST_OK, "my_host.internal" },
        { L("example.org\0.evil"), HOST_CONTROL, NULL },
        { L("example.org\r\n"), HOST_CONTROL, NULL },
        { L("exa mple.org"), HOST_CONTROL, NULL },
        { L("ex\xef\xbc\x8e"), HOST_NOT_ASCII, NULL },
        { L("example%2eorg"), HOST_BAD_BYTE, NULL },
        { L("user@example.org"), HOST_URL, NULL },
        { L("http://example.org"), HOST_URL, NULL },
        { L("example.org/x"), HOST_URL, NULL },
        { L("a\\b"), HOST_URL, NULL },
        { L("a?b"), HOST_URL, NULL },
        { L("a#b"), HOST_URL, NULL },
        { L("a!b"), HOST_BAD_BYTE, NULL },
        { L("-a.org"), HOST_HYPHEN, NULL },
        { L("a-.org"), HOST_HYPHEN, NULL },
        { L("*.example.org"), HOST_BAD_STAR, NULL },
        { L("example.org:443"), HOST_COLONS, NULL },
        { L("127.0.0.1"), HOST_OK, "127.0.0.1" },
        { L("127.0.0.1."), HOST_OK, "127.0.0.1" },
        { L("0x7f.1"), HOST_OK, "127.0.0.1" },
        { L("2130706433"), HOST_OK, "127.0.0.1" },
        { L("256.0.0.1"), HOST_BAD_NUMBER, NULL },
        { L("example.123"), HOST_BAD_NUMBER, NULL },
        { L("example.0x1f"), HOST_BAD_NUMBER, NULL },
        { L("example.0xyz"), HOST_OK, "example.0xyz" },
        { L("::1"), HOST_OK, "::1" },
        { L("[::1]"), HOST_OK, "::1" },
        { L("[::FFFF:10.0.0.1]"), HOST_OK, "10.0.0.1" },
        { L("[::1]x"), HOST_BRACKETS, NULL },
        { L("[::1"), HOST_BRACKETS, NULL },
        { L("[example.org]"), HOST_BRACKETS, NULL },
        { L("fe80::1%eth0"), HOST_ZONE, NULL },
        { L("a::b::c"), HOST_COLONS, NULL },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct host host;
        enum host_fault fault = host_canonical(rows[i].text, &host);
        if (fault != rows[i].fault || (fault == HOST_OK && strcmp(host.name, rows[i].name) != 0))
            fail_msg("\"%s\": %s, \"%s\"", rows[i].text.p, host_fault_code(fault), host.name);
    }
}

static void
length_limits(void **state)
{
    char name[300];
    struct host host;
    struct host_pattern pattern;

    (void)state;
    memset(name, 'a', sizeof(name));
    assert_int_equal(host_canonical((struct str){ name, 63 }, &host), HOST_OK);
    assert_int_equal(host_canonical((struct str){ name, 64 }, &host), HOST_LABEL_TOO_LONG);
    for (size_t i = 10; i < sizeof(name); i += 11)
        name[i] = '.';
    assert_int_equal(host_canonical((struct str){ name, 253 }, &host), HOST_OK);
    assert_int_equal(host_canonical((struct str){ name, 254 }, &host), HOST_TOO_LONG);
    assert_int_equal(host_canonical((struct str){ name, 256 }, &host), HOST_TOO_LONG);
    assert_int_equal(host_pattern_cloche((struct str){ name, 256 }, &pattern), HOST_TOO_LONG);
    assert_int_equal(host_pattern_srt((struct str){ name, 256 }, true, &pattern), HOST_TOO_LONG);
    /* the longest name with a port is a rule too: a preset writes such ones (url_host) */
    name[252] = 'a';
    memcpy(name + 253, ".:65535", 7);
    assert_int_equal(host_pattern_cloche((struct str){ name, 260 }, &pattern), HOST_OK);
    assert_int_equal(pattern.port, 65535);
    assert_int_equal(pattern.host.n, 253);
    assert_int_equal(host_pattern_srt((struct str){ name, 260 }, false, &pattern), HOST_OK);
}

static void
port_rows(void **state)
{
    static const struct { const char *text; enum host_fault fault; const char *host; uint16_t port; } rows[] = {
        { "a.org", HOST_OK, "a.org", 0 },         { "a.org:443", HOST_OK, "a.org", 443 },
        { "a.org:65535", HOST_OK, "a.org", 65535 }, { "a.org:65536", HOST_BAD_PORT, NULL, 0 },
        { "a.org:0", HOST_BAD_PORT, NULL, 0 },    { "a.org:080", HOST_BAD_PORT, NULL, 0 },
        { "a.org:+80", HOST_BAD_PORT, NULL, 0 },  { "a.org:", HOST_BAD_PORT, NULL, 0 },
        { ":80", HOST_EMPTY, NULL, 0 },           { "a:b:c", HOST_COLONS, NULL, 0 },
        { "[::1]", HOST_OK, "[::1]", 0 },         { "[::1]:80", HOST_OK, "[::1]", 80 },
        { "[::1]80", HOST_BRACKETS, NULL, 0 },    { "[::1", HOST_BRACKETS, NULL, 0 },
        { "::1", HOST_COLONS, NULL, 0 },          { "", HOST_EMPTY, NULL, 0 },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct str host;
        uint16_t port;
        enum host_fault fault = host_split_port(str_of(rows[i].text), &host, &port);
        if (fault != rows[i].fault || (fault == HOST_OK && (!str_eq_c(host, rows[i].host) || port != rows[i].port)))
            fail_msg("\"%s\": %s, port %u", rows[i].text, host_fault_code(fault), port);
    }
}

/* What each dialect accepts in a settings file. The third column is SRT's deny list. */
static void
pattern_validity(void **state)
{
    static const struct { const char *text; enum host_fault ours, srt, srt_deny; } rows[] = {
        { "example.org", HOST_OK, HOST_OK, HOST_OK },
        { "example.org:443", HOST_OK, HOST_OK, HOST_OK },
        { "*.example.org", HOST_OK, HOST_OK, HOST_OK },
        { "*.EXAMPLE.org.", HOST_OK, HOST_OK, HOST_OK },
        { "**.example.org", HOST_OK, HOST_BAD_STAR, HOST_BAD_STAR },
        { "*", HOST_BARE_STAR, HOST_BARE_STAR, HOST_OK },
        { "*:22", HOST_BARE_STAR, HOST_BARE_STAR, HOST_OK },
        { "**", HOST_BARE_STAR, HOST_BAD_STAR, HOST_BAD_STAR },
        { "*.com", HOST_TOO_WIDE, HOST_TOO_WIDE, HOST_TOO_WIDE },
        { "**.com", HOST_TOO_WIDE, HOST_BAD_STAR, HOST_BAD_STAR },
        { "*.", HOST_EMPTY_LABEL, HOST_EMPTY_LABEL, HOST_EMPTY_LABEL },
        { "*example.org", HOST_BAD_STAR, HOST_BAD_STAR, HOST_BAD_STAR },
        { "a.*.org", HOST_BAD_STAR, HOST_BAD_STAR, HOST_BAD_STAR },
        { "a*.example.org", HOST_BAD_STAR, HOST_BAD_STAR, HOST_BAD_STAR },
        { "*.*.org", HOST_BAD_STAR, HOST_BAD_STAR, HOST_BAD_STAR },
        { "*.10.0.0.1", HOST_STAR_IP, HOST_STAR_IP, HOST_STAR_IP },
        { "https://example.org", HOST_URL, HOST_URL, HOST_URL },
        { "::1", HOST_COLONS, HOST_COLONS, HOST_COLONS },
        { "[::1]:80", HOST_OK, HOST_OK, HOST_OK },
        { "localhost", HOST_OK, HOST_OK, HOST_OK },
        { "127.1", HOST_OK, HOST_OK, HOST_OK },
        { "", HOST_EMPTY, HOST_EMPTY, HOST_EMPTY },
        { "a b", HOST_CONTROL, HOST_CONTROL, HOST_CONTROL },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct host_pattern p;
        struct str text = str_of(rows[i].text);
        if (host_pattern_cloche(text, &p) != rows[i].ours)
            fail_msg("ours \"%s\": %s", rows[i].text, host_fault_code(host_pattern_cloche(text, &p)));
        if (host_pattern_srt(text, false, &p) != rows[i].srt)
            fail_msg("srt \"%s\": %s", rows[i].text, host_fault_code(host_pattern_srt(text, false, &p)));
        if (host_pattern_srt(text, true, &p) != rows[i].srt_deny)
            fail_msg("srt deny \"%s\": %s", rows[i].text, host_fault_code(host_pattern_srt(text, true, &p)));
    }
    assert_int_equal(host_pattern_cloche((struct str)L("example.org\0.evil"), &(struct host_pattern){ 0 }), HOST_CONTROL);
}

static void
match_rows(void **state)
{
    static const struct { const char *pattern, *host; uint16_t port; bool ours, srt; } rows[] = {
        { "example.org", "example.org", 443, true, true },
        { "Example.ORG.", "EXAMPLE.org", 443, true, true },
        { "example.org", "a.example.org", 443, false, false },
        { "example.org", "evilexample.org", 443, false, false },
        { "*.example.org", "a.example.org", 443, true, true },
        { "*.example.org", "a.b.example.org", 443, false, true },
        { "*.example.org", "example.org", 443, false, false },
        { "*.example.org", "evilexample.org", 443, false, false },
        { "*.example.org", "a.example.org.evil.com", 443, false, false },
        { "*.github.com", "evilgithub.com", 443, false, false },
        { "example.org:443", "example.org", 443, true, true },
        { "example.org:443", "example.org", 80, false, false },
        { "example.org:443", "example.org", 0, false, false },
        { "*.example.org:8443", "a.example.org", 8443, true, true },
        { "127.0.0.1", "2130706433", 80, true, true },
        { "0x7f.1", "127.0.0.1", 80, true, true },
        { "127.0.0.1", "::ffff:127.0.0.1", 80, true, true },
        { "[::1]", "[0:0:0:0:0:0:0:1]", 80, true, true },
        { "127.0.0.1", "127.0.0.2", 80, false, false },
        { "localhost", "127.0.0.1", 80, false, false },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct host_pattern ours, srt;
        struct host host;
        assert_int_equal(host_canonical(str_of(rows[i].host), &host), HOST_OK);
        assert_int_equal(host_pattern_cloche(str_of(rows[i].pattern), &ours), HOST_OK);
        assert_int_equal(host_pattern_srt(str_of(rows[i].pattern), false, &srt), HOST_OK);
        if (host_match(&ours, &host, rows[i].port) != rows[i].ours)
            fail_msg("ours: %s against %s", rows[i].pattern, rows[i].host);
        if (host_match(&srt, &host, rows[i].port) != rows[i].srt)
            fail_msg("srt: %s against %s", rows[i].pattern, rows[i].host);
    }
}

static void
stars_of_each_dialect(void **state)
{
    struct host_pattern any, port, deep;
    struct host host, ip;

    (void)state;
    assert_int_equal(host_canonical(STR_LIT("a.b.example.org"), &host), HOST_OK);
    assert_int_equal(host_canonical(STR_LIT("10.0.0.1"), &ip), HOST_OK);
    assert_int_equal(host_pattern_srt(STR_LIT("*"), true, &any), HOST_OK);
    assert_int_equal(host_pattern_srt(STR_LIT("*:22"), true, &port), HOST_OK);
    assert_int_equal(host_pattern_cloche(STR_LIT("**.example.org"), &deep), HOST_OK);
    assert_true(host_match(&any, &host, 1) && host_match(&any, &ip, 1));
    assert_true(host_match(&port, &ip, 22));
    assert_false(host_match(&port, &host, 443));
    assert_true(host_match(&deep, &host, 443));
    assert_false(host_match(&deep, &ip, 443));
}

/* Every name of up to five labels over two letters, and an address: what one pattern matches of them another matches
 * too, exactly where it says so. */
#define NAMES 64
static size_t
names_into(char names[NAMES][16], size_t labels)
{
    size_t n = 0;

    for (size_t depth = 1; depth <= labels; depth++) {
        for (unsigned bits = 0; bits < 1U << depth; bits++, n++) {
            char *at = names[n];
            for (size_t i = 0; i < depth; i++) {
                *at++ = (bits >> i & 1U) != 0 ? 'a' : 'b';
                *at++ = i + 1 < depth ? '.' : '\0';
            }
        }
    }
    return n;
}

static void
within_is_what_is_matched(void **state)
{
    static const char *const stars[] = { "", "*.", "**." };
    static char texts[NAMES][16];
    static struct host hosts[NAMES + 1];
    static struct host_pattern patterns[3 * NAMES + 1];
    size_t n_hosts = names_into(texts, 5), n = 0;

    (void)state;
    for (size_t i = 0; i < n_hosts; i++)
        assert_int_equal(host_canonical(str_of(texts[i]), &hosts[i]), HOST_OK);
    assert_int_equal(host_canonical(STR_LIT("10.0.0.1"), &hosts[n_hosts++]), HOST_OK);
    /* a star below three labels: so that two more are left for what it stands for */
    for (size_t i = 0; i < 2 + 4 + 8; i++) {
        for (size_t s = 0; s < N(stars); s++) {
            char text[32];
            snprintf(text, sizeof(text), "%s%s", stars[s], texts[i]);
            n += host_pattern_cloche(str_of(text), &patterns[n]) == HOST_OK;
        }
    }
    assert_int_equal(host_pattern_cloche(STR_LIT("10.0.0.1"), &patterns[n++]), HOST_OK);
    assert_true(n > 30);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            bool within = true;
            for (size_t h = 0; h < n_hosts; h++)
                within = within && (!host_match(&patterns[i], &hosts[h], 1) || host_match(&patterns[j], &hosts[h], 1));
            assert_int_equal(host_pattern_within(&patterns[i], &patterns[j]), within);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(canonical_rows),   cmocka_unit_test(length_limits), cmocka_unit_test(port_rows),
        cmocka_unit_test(pattern_validity), cmocka_unit_test(match_rows),    cmocka_unit_test(stars_of_each_dialect),
        cmocka_unit_test(within_is_what_is_matched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
