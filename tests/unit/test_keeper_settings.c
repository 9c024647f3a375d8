/* launcher/keeper_settings: what a keeper is told of the daemon's settings is what was meant, or it is refused */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "launcher/keeper_settings.h"

static const struct keeper_settings some = {
    .settings = "/etc/s.yaml", .config = "/etc/serve.yaml", .security = "\n\nsecurity: {}\n", .audit = "try",
    .transcript = "full", .transcripts = "/state/transcripts", .volumes = "",
    .leavings = "/state/leavings",
};

static void
as_it_was(void **state)
{
    cleanup_buf struct buf b = BUF_INIT(KEEPER_SETTINGS_MAX);
    struct keeper_settings s;
    struct wire_in in;

    (void)state;
    assert_int_equal(keeper_settings_put(&b, &some), 0);
    in = wire_in_of(b.p, b.n);
    assert_true(keeper_settings_get(&in, &s));
    assert_string_equal(s.settings, some.settings);
    assert_string_equal(s.config, some.config);
    assert_string_equal(s.security, some.security);
    assert_string_equal(s.audit, some.audit);
    assert_string_equal(s.transcript, some.transcript);
    assert_string_equal(s.transcripts, some.transcripts);
    assert_string_equal(s.volumes, some.volumes);
    assert_string_equal(s.leavings, some.leavings);
}

/* Each beginning of it, and one byte more. */
static void
not_whole(void **state)
{
    cleanup_buf struct buf b = BUF_INIT(KEEPER_SETTINGS_MAX);
    struct keeper_settings s;
    struct wire_in in;

    (void)state;
    assert_int_equal(keeper_settings_put(&b, &some), 0);
    for (size_t n = 0; n < b.n; n++) {
        in = wire_in_of(b.p, n);
        assert_false(keeper_settings_get(&in, &s));
    }
    buf_put_u8(&b, 0);
    in = wire_in_of(b.p, b.n);
    assert_false(keeper_settings_get(&in, &s));
}

static void
too_long(void **state)
{
    cleanup_buf struct buf b = BUF_INIT(KEEPER_SETTINGS_MAX);
    struct keeper_settings s = some;
    static char text[128 * 1024];

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    s.security = text;
    assert_int_equal(keeper_settings_put(&b, &s), -1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_it_was), cmocka_unit_test(not_whole), cmocka_unit_test(too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
