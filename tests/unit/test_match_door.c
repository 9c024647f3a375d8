/* match/door: what is listened on, and what a client may say of where it came from (R61) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/array.h"
#include "match/door.h"

#define N(a) ARRAY_LEN(a)
#define L(s) { s, sizeof(s) - 1 }

static void
addresses(void **state)
{
    static const struct { struct str text; bool well, tcp, loopback; unsigned port; } rows[] = {
        { L("unix:/run/x.sock"), true, false, true, 0 }, { L("unix:rel"), true, false, true, 0 },
        { L("tcp:127.0.0.1:80"), true, true, true, 80 }, { L("tcp:127.9.9.9:0"), true, true, true, 0 },
        { L("tcp:[::1]:65535"), true, true, true, 65535 }, { L("tcp:0.0.0.0:1"), true, true, false, 1 },
        { L("tcp:[::]:1"), true, true, false, 1 }, { L("tcp:192.0.2.1:443"), true, true, false, 443 },
        { L("unix:"), false }, { L(""), false }, { L("/run/x"), false }, { L("unix:/a\0b"), false },
        { L("tcp:"), false }, { L("tcp:127.0.0.1"), false }, { L("tcp:127.0.0.1:"), false },
        { L("tcp:127.0.0.1:65536"), false }, { L("tcp:127.0.0.1:-1"), false }, { L("tcp:127.0.0.1:000080"), false },
        { L("tcp:localhost:80"), false }, { L("tcp::80"), false }, { L("tcp:::1:80"), false },
        { L("tcp:[127.0.0.1]:80"), false }, { L("tcp:[::1%lo]:80"), false }, { L("tcp:127.1:80"), false },
        { L("tcp:[]:80"), false }, { L("TCP:127.0.0.1:80"), false }, { L("tcp:127.0.0.1:80 "), false },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        const char *why = NULL;
        struct door door;
        if (door_parse(rows[i].text, &door, &why) != rows[i].well)
            fail_msg("%s", rows[i].text.p);
        if (!rows[i].well) {
            assert_non_null(why);
            continue;
        }
        assert_int_equal(door.tcp, rows[i].tcp);
        assert_int_equal(door.port, rows[i].port);
        assert_int_equal(door_is_loopback(&door), rows[i].loopback);
    }
}

static void
hosts(void **state)
{
    static const struct { struct str value; bool well, any_well; } rows[] = {
        { L("localhost"), true, true }, { L("LocalHost:99"), true, true }, { L("127.0.0.1:8080"), true, true },
        { L("[::ffff:127.0.0.1]"), true, true },        /* another spelling of it */
        { L("api.example.org:8443"), true, true }, { L("api.example.org:443"), false, false },
        { L("api.example.org"), false, false },         /* no port: 80 */
        { L("127.0.0.2"), false, true }, { L("192.0.2.7:1"), false, true },
        { L("evil.example"), false, false }, { L("localhost.evil.example"), false, false },
        { L("127.0.0.1.evil.example"), false, false }, { L(""), false, false }, { L("localhost:"), false, false },
        { L("localhost:x"), false, false }, { L("localhost@evil.example"), false, false },
        { L("localhost\0.evil"), false, false }, { L("localhost, evil.example"), false, false },
        { L("::1"), false, false }, { L("localhost/"), false, false },
    };
    struct host_pattern allowed[3];

    (void)state;
    assert_int_equal(host_pattern_cloche(STR_LIT("localhost"), &allowed[0]), HOST_OK);
    assert_int_equal(host_pattern_cloche(STR_LIT("127.0.0.1"), &allowed[1]), HOST_OK);
    assert_int_equal(host_pattern_cloche(STR_LIT("api.example.org:8443"), &allowed[2]), HOST_OK);
    for (size_t i = 0; i < N(rows); i++) {
        if (door_host(rows[i].value, 80, allowed, N(allowed), false) != rows[i].well ||
            door_host(rows[i].value, 80, allowed, N(allowed), true) != rows[i].any_well)
            fail_msg("%s", rows[i].value.p);
        assert_false(door_host(rows[i].value, 80, NULL, 0, false));
    }
}

static void
origins(void **state)
{
    static const struct str bad[] = {
        L(""), L("null"), L("*"), L("http://"), L("https:///"), L("http://a.example/"), L("http://a.example/x"),
        L("ftp://a.example"), L("HTTP://a.example"), L("http://a.example http://b.example"), L("http://u@a.example"),
        L("a.example"), L("http://a.example:0x50"), L("http://a.example\0"), L("file://"),
    };
    struct door_origin a, b;

    (void)state;
    for (size_t i = 0; i < N(bad); i++)
        if (door_origin(bad[i], &a))
            fail_msg("%s", bad[i].p);
    assert_true(door_origin(STR_LIT("https://A.example"), &a) && door_origin(STR_LIT("https://a.example:443"), &b));
    assert_true(door_origin_eq(&a, &b));
    assert_true(door_origin(STR_LIT("http://a.example:443"), &b));
    assert_false(door_origin_eq(&a, &b));
    assert_true(door_origin(STR_LIT("https://b.example"), &b));
    assert_false(door_origin_eq(&a, &b));
    assert_true(door_origin(STR_LIT("https://a.example:444"), &b));
    assert_false(door_origin_eq(&a, &b));
    assert_true(door_origin_of_host(STR_LIT("a.example"), true, &b) && door_origin_eq(&a, &b));
    assert_true(door_origin_of_host(STR_LIT("a.example"), false, &b));
    assert_false(door_origin_eq(&a, &b));
    assert_false(door_origin_of_host(STR_LIT("a.example/x"), true, &b));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses), cmocka_unit_test(hosts), cmocka_unit_test(origins),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
