/* match/publish: how a port that the host reaches is written (R40) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/array.h"
#include "match/publish.h"

#define L(s) { s, sizeof(s) - 1 }

static void
forms(void **state)
{
    static const struct { struct str text; const char *is; bool local; } rows[] = {
        { L("3000"), "127.0.0.1:3000:3000", true }, { L("8080:80"), "127.0.0.1:8080:80", true },
        { L("0:80"), "127.0.0.1:0:80", true }, { L("127.0.0.1:3000"), "127.0.0.1:3000:3000", true },
        { L("127.9.9.9:1:1"), NULL }, { L("127.9.9.9:1024:1"), "127.9.9.9:1024:1", true },
        { L("0.0.0.0:8080:80"), "0.0.0.0:8080:80", false }, { L("192.0.2.1:65535:65535"), "192.0.2.1:65535:65535", false },
        { L("[::1]:3000"), "[::1]:3000:3000", true }, { L("[::]:0:80"), "[::]:0:80", false },
        { L("[::ffff:127.0.0.1]:0:80"), "[::ffff:7f00:1]:0:80", true },
        { L("80"), NULL }, { L("1023"), NULL }, { L("1024"), "127.0.0.1:1024:1024", true }, { L("80:8080"), NULL },
        { L("127.0.0.1:80"), NULL }, { L(""), NULL }, { L("0"), NULL }, { L("65536"), NULL }, { L("3000:0"), NULL },
        { L("65536:80"), NULL }, { L(":3000"), NULL }, { L("3000:"), NULL }, { L("::3000"), NULL }, { L(":3000:3000"), NULL },
        { L("127.0.0.1::3000"), NULL }, { L("1:2:3:4"), NULL }, { L("::1:3000"), NULL }, { L("[::1]3000"), NULL },
        { L("[::1]"), NULL }, { L("[]:3000"), NULL }, { L("[127.0.0.1]:3000"), NULL }, { L("127.1:3000"), NULL },
        { L("localhost:3000"), NULL }, { L("+3000"), NULL }, { L("3000 "), NULL }, { L("-1:3000"), NULL },
        { L("30\0" "00"), NULL }, { L("3000/tcp"), NULL }, { L("99999999999999999999:3000"), NULL },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct publish v = { .port = 0 }, again;
        char text[PUBLISH_TEXT_MAX];
        const char *wrong = publish_parse(rows[i].text, &v);
        if ((wrong == NULL) != (rows[i].is != NULL))
            fail_msg("row %zu (%s): %s", i, rows[i].text.p, wrong != NULL ? wrong : "taken");
        if (wrong != NULL)
            continue;
        publish_format(&v, text);
        assert_string_equal(text, rows[i].is);
        assert_int_equal(publish_is_local(&v), rows[i].local);
        assert_null(publish_parse(str_of(text), &again));
        assert_true(again.port == v.port && again.host_port == v.host_port && ip_eq(&again.ip, &v.ip));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(forms) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
