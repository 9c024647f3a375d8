/* match/ip: every spelling of an address is one address, and its class is decided on the bytes (R14, R44) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <string.h>

#include "base/array.h"
#include "match/ip.h"

#define N(a) ARRAY_LEN(a)

static void
loose_rows(void **state)
{
    /* what a resolver takes for an address; NULL: it does not */
    static const struct { const char *text, *canonical; } rows[] = {
        { "127.0.0.1", "127.0.0.1" },       { "127.1", "127.0.0.1" },
        { "127.0.1", "127.0.0.1" },         { "2130706433", "127.0.0.1" },
        { "0x7f000001", "127.0.0.1" },      { "0x7f.1", "127.0.0.1" },
        { "0x7f.0.0.0x1", "127.0.0.1" },    { "0177.0.0.1", "127.0.0.1" },
        { "017700000001", "127.0.0.1" },    { "0177.1", "127.0.0.1" },
        { "00000177.0.0.01", "127.0.0.1" }, { "127.0.0.01", "127.0.0.1" },
        { "2852039166", "169.254.169.254" }, { "0xa9fea9fe", "169.254.169.254" },
        { "0251.0376.0251.0376", "169.254.169.254" }, { "0xA9.0xFE.43518", "169.254.169.254" },
        { "0", "0.0.0.0" },                 { "4294967295", "255.255.255.255" },
        { "4294967296", NULL },             { "256.0.0.1", NULL },
        { "1.2.3.4.5", NULL },              { "1.2.3.", NULL },
        { "1..2", NULL },                   { "08.1.1.1", NULL },
        { "0x", "0.0.0.0" },                { "127.0.0.1x", NULL },
        { "127.0.0.1 ", NULL },             { "", NULL },
        { "-1", NULL },                     { "+1", NULL },
        { "::1", "::1" },                   { "[::1]", "::1" },
        { "[127.0.0.1]", NULL },            { "[::1", NULL },
        { "::ffff:127.0.0.1", "127.0.0.1" }, { "::ffff:7f00:1", "127.0.0.1" },
        { "::127.0.0.1", "127.0.0.1" },     { "::ffff:0:127.0.0.1", "127.0.0.1" },
        { "64:ff9b::127.0.0.1", "127.0.0.1" }, { "64:ff9b:1::a00:1", "10.0.0.1" },
        { "2002:7f00:1::", "127.0.0.1" },   { "2001:0:1:2:3:4:80ff:fffe", "127.0.0.1" },
        { "fe80::1%1", NULL },              { "::1%lo", NULL },
        { "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8" }, { "1:2:3:4:5:6:7", NULL },
        { "1:2:3:4:5:6:7:8:9", NULL },      { "1::2::3", NULL },
        { ":1", NULL },                     { "1:", NULL },
        { ":::", NULL },                    { "12345::", NULL },
        { "::1.2.3", NULL },                { "1:2:3:4:5:6:7:1.2.3.4", NULL },
        { "2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1" },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        char out[IP_TEXT_MAX];
        bool ok = ip_normalise_for_policy(str_of(rows[i].text), out);
        if (ok != (rows[i].canonical != NULL) || (ok && strcmp(out, rows[i].canonical) != 0))
            fail_msg("\"%s\": %s", rows[i].text, ok ? out : "refused");
    }
}

/* The C library is the oracle: what its strict parser takes, ours takes, to the same bytes, and nothing else. */
static void
strict_agrees_with_inet_pton(void **state)
{
    static const char *const texts[] = {
        "0.0.0.0", "255.255.255.255", "1.2.3", "01.2.3.4", "1.2.3.04", "1.2.3.4 ", "::", "::1", "1::", "::ffff:1.2.3.4",
        "1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1::3:4:5:6:7:8", "::ffff:01.2.3.4", "fe80::%1", ":",
        "a:b", "g::", "1:2:3:4:5:6:7:8:", "::1:", "0:0:0:0:0:0:0:0", "ABCD:ef01::", "1.2.3.4.5", "::1.2.3.4:5",
        "1:2:3:4:5:6:7:8::", "00001::",
    };

    (void)state;
    for (size_t i = 0; i < N(texts); i++) {
        uint8_t want[16] = { 0 };
        struct ip got = { .family = 0 };
        int family = strchr(texts[i], ':') != NULL ? AF_INET6 : AF_INET;
        bool expected = inet_pton(family, texts[i], want) == 1;
        bool ok = ip_parse(str_of(texts[i]), &got);
        if (ok != expected || (ok && memcmp(got.b, want, family == AF_INET ? 4 : 16) != 0))
            fail_msg("\"%s\": we %d, inet_pton %d", texts[i], ok, expected);
    }
}

static void
class_rows(void **state)
{
    static const struct { const char *text; enum ip_class class; } rows[] = {
        { "0.0.0.0", IP_UNSPECIFIED },     { "0.1.2.3", IP_THIS_NETWORK },   { "10.0.0.1", IP_PRIVATE },
        { "11.0.0.1", IP_PUBLIC },         { "100.63.255.255", IP_PUBLIC },  { "100.64.0.1", IP_SHARED },
        { "100.127.255.255", IP_SHARED },  { "100.128.0.0", IP_PUBLIC },     { "100.100.100.200", IP_METADATA },
        { "127.255.255.255", IP_LOOPBACK }, { "128.0.0.1", IP_PUBLIC },      { "169.254.169.254", IP_LINK_LOCAL },
        { "169.253.0.1", IP_PUBLIC },      { "172.15.255.255", IP_PUBLIC },  { "172.16.0.0", IP_PRIVATE },
        { "172.31.255.255", IP_PRIVATE },  { "172.32.0.0", IP_PUBLIC },      { "168.63.129.16", IP_METADATA },
        { "192.0.0.192", IP_METADATA },    { "192.0.0.1", IP_SPECIAL },      { "192.0.2.1", IP_SPECIAL },
        { "192.88.99.1", IP_SPECIAL },     { "192.168.0.1", IP_PRIVATE },    { "192.169.0.1", IP_PUBLIC },
        { "198.17.0.1", IP_PUBLIC },       { "198.18.0.1", IP_SPECIAL },     { "198.19.255.255", IP_SPECIAL },
        { "198.51.100.1", IP_SPECIAL },    { "203.0.113.1", IP_SPECIAL },    { "224.0.0.1", IP_MULTICAST },
        { "239.255.255.255", IP_MULTICAST }, { "240.0.0.1", IP_SPECIAL },    { "255.255.255.255", IP_BROADCAST },
        { "8.8.8.8", IP_PUBLIC },          { "::", IP_UNSPECIFIED },         { "::1", IP_LOOPBACK },
        { "::2", IP_THIS_NETWORK },        { "fe80::1", IP_LINK_LOCAL },     { "febf::1", IP_LINK_LOCAL },
        { "fec0::1", IP_PRIVATE },         { "fc00::1", IP_PRIVATE },        { "fdff::1", IP_PRIVATE },
        { "fd00:ec2::254", IP_METADATA },  { "fd20:ce::254", IP_METADATA },  { "fd00:42::42", IP_METADATA },
        { "fd00:c1::a9fe:a9fe", IP_METADATA }, { "ff02::1", IP_MULTICAST },  { "100::1", IP_SPECIAL },
        { "100:0:0:1::1", IP_PUBLIC },     { "2001:db8::1", IP_SPECIAL },    { "3fff::1", IP_SPECIAL },
        { "5f00::1", IP_SPECIAL },         { "2606:4700::1111", IP_PUBLIC },
        /* embeddings: the address that is meant decides */
        { "::ffff:10.0.0.1", IP_PRIVATE }, { "::ffff:a9fe:a9fe", IP_LINK_LOCAL }, { "::ffff:8.8.8.8", IP_PUBLIC },
        { "::ffff:0:10.0.0.1", IP_PRIVATE }, { "::10.0.0.1", IP_PRIVATE },   { "64:ff9b::a00:1", IP_PRIVATE },
        { "64:ff9b::8.8.8.8", IP_PUBLIC }, { "64:ff9b:1::8.8.8.8", IP_SPECIAL }, { "64:ff9b:1::7f00:1", IP_LOOPBACK },
        { "2002:a00:1::", IP_PRIVATE },    { "2002:808:808::", IP_SPECIAL }, { "2001:0::f5ff:fffe", IP_PRIVATE },
        { "2001:0::f7f7:f7f7", IP_SPECIAL }, { "fe80::5efe:8.8.8.8", IP_LINK_LOCAL },
        { "2606:4700::5efe:a00:1", IP_PRIVATE }, { "2606:4700::200:5efe:a9fe:a9fe", IP_LINK_LOCAL },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct ip ip;
        if (!ip_parse(str_of(rows[i].text), &ip))
            fail_msg("%s is not parsed", rows[i].text);
        if (ip_classify(ip) != rows[i].class)
            fail_msg("%s is %s", rows[i].text, ip_class_name(ip_classify(ip)));
    }
}

/* R44: isBlockedPrivateOrLinkLocalIp, isLoopbackHost, and what no configuration opens. */
static void
source_helpers(void **state)
{
    static const struct { const char *text; bool blocked, always; } rows[] = {
        { "0.0.0.0", true, true },          { "0.9.9.9", true, true },      { "169.254.169.254", true, true },
        { "fe80::1", true, true },          { "feb0::1", true, true },      { "::", true, true },
        { "::1", true, true },              { "10.1.2.3", true, false },    { "127.0.0.1", true, false },
        { "172.16.0.1", true, false },      { "172.32.0.1", false, false }, { "192.168.1.1", true, false },
        { "fc00::1", true, false },         { "fd00:ec2::254", true, false }, { "8.8.8.8", false, false },
        { "::ffff:192.168.1.1", true, false }, { "::ffff:169.254.1.1", true, true }, { "2130706433", true, false },
        { "0xa9fea9fe", true, true },       { "64:ff9b::a9fe:a9fe", true, true }, { "2606:4700::1", false, false },
        { "fe80::5efe:8.8.8.8", true, true },
    };
    static const struct { const char *host; bool loopback; } hosts[] = {
        { "localhost", true },   { "LOCALHOST", true },   { "localhost.", true },     { "a.localhost", true },
        { "localhost.evil.com", false }, { "notlocalhost", false }, { "127.0.0.1", true }, { "127.9", true },
        { "0x7f.1", true },      { "::1", true },         { "[::1]", true },          { "::ffff:127.0.0.1", true },
        { "ip6-localhost", true }, { "128.0.0.1", false }, { "", false },             { ".localhost", false },
        { "0.0.0.0", false },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct ip ip;
        assert_true(ip_parse_loose(str_of(rows[i].text), &ip));
        if (ip_is_blocked_private_or_link_local(str_of(rows[i].text)) != rows[i].blocked)
            fail_msg("%s blocked", rows[i].text);
        if (ip_is_always_blocked(ip) != rows[i].always)
            fail_msg("%s always", rows[i].text);
    }
    assert_true(ip_is_blocked_private_or_link_local(STR_LIT("not an address")));
    for (size_t i = 0; i < N(hosts); i++)
        if (ip_is_loopback_host(str_of(hosts[i].host)) != hosts[i].loopback)
            fail_msg("%s loopback", hosts[i].host);
}

static void
format_round_trips(void **state)
{
    static const char *const texts[] = {
        "::", "::1", "1::", "1:0:0:2::3", "2001:db8::1:0:0:1", "1:2:3:4:5:6:7:8", "fe80::1", "0:1::", "1.2.3.4",
        "1:0:2:3:4:5:6:7", "::1:0:0:0:1",
    };

    (void)state;
    for (size_t i = 0; i < N(texts); i++) {
        char ours[IP_TEXT_MAX], theirs[INET6_ADDRSTRLEN];
        struct ip ip;
        assert_true(ip_parse(str_of(texts[i]), &ip));
        size_t n = ip_format(&ip, ours);
        assert_int_equal(n, strlen(ours));
        assert_non_null(inet_ntop(ip.family == 4 ? AF_INET : AF_INET6, ip.b, theirs, sizeof(theirs)));
        assert_string_equal(ours, theirs);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loose_rows), cmocka_unit_test(strict_agrees_with_inet_pton), cmocka_unit_test(class_rows),
        cmocka_unit_test(source_helpers), cmocka_unit_test(format_round_trips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
