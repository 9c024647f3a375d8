/* match/proxy.h: where a parent proxy is, and what is not asked of it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "match/proxy.h"

static void
urls(void **state)
{
    static const struct { const char *url, *host, *user; uint16_t port; } rows[] = {
        { "http://proxy.example.org:3128", "proxy.example.org", "", 3128 },
        { "http://PROXY.example.org.", "proxy.example.org", "", 80 },
        { "proxy.example.org:8080", "proxy.example.org", "", 8080 },
        { "http://127.0.0.1:1/", "127.0.0.1", "", 1 },
        { "http://[2001:db8::1]:65535", "2001:db8::1", "", 65535 },
        { "http://me:secret@p.x", "p.x", "me:secret", 80 },
        { "http://me:p%40s%3as@p.x:1", "p.x", "me:p@s:s", 1 },
        { "http://a@b@p.x:1", "p.x", "a@b", 1 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct proxy_url url;
        assert_int_equal(proxy_parse(str_of(rows[i].url), &url), PROXY_OK);
        assert_string_equal(url.host.name, rows[i].host);
        assert_int_equal(url.port, rows[i].port);
        assert_true(str_eq_c((struct str){ url.user, url.user_n }, rows[i].user));
    }
}

static void
no_urls(void **state)
{
    static const struct { struct str url; enum proxy_fault fault; } rows[] = {
        { { "", 0 }, PROXY_PORT }, { { "http://", 7 }, PROXY_PORT }, { { "https://p.x", 11 }, PROXY_SCHEME },
        { { "socks5://p.x", 12 }, PROXY_SCHEME }, { { "http://p.x/a", 12 }, PROXY_PATH },
        { { "http://p.x?a", 12 }, PROXY_PATH }, { { "http://p.x:0", 12 }, PROXY_PORT },
        { { "http://p.x:65536", 16 }, PROXY_PORT }, { { "http://p.x:a", 12 }, PROXY_PORT },
        { { "http://p..x", 11 }, PROXY_HOST }, { { "http://p\0.x", 11 }, PROXY_PORT },
        { { "http://a%0d@p.x", 15 }, PROXY_USER }, { { "http://a%4@p.x", 14 }, PROXY_USER },
        { { "http://a\n@p.x", 13 }, PROXY_USER },
    };
    char longest[PROXY_URL_MAX + 1];
    struct proxy_url url;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(proxy_parse(rows[i].url, &url), rows[i].fault);
    memset(longest, 'a', sizeof(longest));
    assert_int_equal(proxy_parse((struct str){ longest, sizeof(longest) }, &url), PROXY_TOO_LONG);
    memcpy(longest, "http://", 7);
    longest[400] = '@';
    assert_int_equal(proxy_parse((struct str){ longest, 420 }, &url), PROXY_USER);
}

static void
lists(void **state)
{
    static const struct { const char *list, *host; uint16_t port; bool skips; } rows[] = {
        { "", "x.org", 80, false }, { ",, ,", "x.org", 80, false }, { "*", "x.org", 80, true },
        { "x.org", "x.org", 80, true }, { "x.org", "a.x.org", 80, true }, { "x.org", "ax.org", 80, false },
        { ".x.org", "x.org", 80, false }, { ".x.org", "a.b.x.org", 80, true }, { "*.x.org", "a.x.org", 80, true },
        { "*.x.org", "x.org", 80, false }, { "a.org,X.ORG", "x.org", 80, true }, { "a.org x.org", "x.org", 80, true },
        { "x.org:443", "x.org", 443, true }, { "x.org:443", "x.org", 80, false }, { ".x.org:80", "a.x.org", 80, true },
        { "10.1.2.3", "10.1.2.3", 80, true }, { "10.1.2.3", "10.1.2.4", 80, false }, { "10.0.0.0/8", "10.9.9.9", 80, true },
        { "10.0.0.0/8", "11.0.0.0", 80, false }, { "10.0.0.0/33", "10.0.0.0", 80, false }, { "0.0.0.0/0", "1.2.3.4", 80, true },
        { "0.0.0.0/0", "x.org", 80, false }, { "2001:db8::/32", "2001:db8:1::1", 80, true },
        { "[2001:db8::1]:80", "2001:db8::1", 80, true }, { "2001:db8::/32", "10.0.0.1", 80, false },
        { "3.org", "1.2.3.org", 80, true }, { "x.org/", "x.org", 80, false }, { "org", "x.org", 80, true },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct host host;
        assert_int_equal(host_canonical(str_of(rows[i].host), &host), HOST_OK);
        assert_int_equal(proxy_skips(str_of(rows[i].list), &host, rows[i].port), rows[i].skips);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls), cmocka_unit_test(no_urls), cmocka_unit_test(lists),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
