/* base/steady: time that goes by, whatever the host's clock is set to (R23) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/steady.h"

#define HOUR 3600000ULL

static void
test_after(void **state)
{
    /* on record is always: 1000 h at the wall, 10 h after the start of boot "a" */
    static const struct { const char *what, *boot; uint64_t wall, boot_ms, is; } rows[] = {
        { "an hour went by",                             "a", 1001 * HOUR, 11 * HOUR, 1001 * HOUR },
        { "an hour, and the clock was set forward",      "a", 9999 * HOUR, 11 * HOUR, 1001 * HOUR },
        { "an hour, and it was set back",                "a", 1 * HOUR,    11 * HOUR, 1001 * HOUR },
        { "nothing",                                     "a", 1000 * HOUR, 10 * HOUR, 1000 * HOUR },
        { "another boot: the host's clock is believed",  "b", 1005 * HOUR, 1 * HOUR,  1005 * HOUR },
        { "another boot, the clock is behind",           "b", 1 * HOUR,    1 * HOUR,  1000 * HOUR },
        { "no boot is known: another one",               "",  1002 * HOUR, 99 * HOUR, 1002 * HOUR },
        { "the boot clock is behind: not the same",      "a", 1003 * HOUR, 9 * HOUR,  1003 * HOUR },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct steady_kept k = { .at_ms = 1000 * HOUR, .boot_ms = 10 * HOUR, .wall_ms = 1000 * HOUR, .boot = "a" };
        struct steady s;

        if (rows[i].boot[0] == '\0')
            k.boot[0] = '\0';
        s = steady_after(&k, rows[i].boot, rows[i].wall, rows[i].boot_ms);
        if (steady_at(&s, rows[i].boot_ms) != rows[i].is)
            fail_msg("%s: %llu", rows[i].what, (unsigned long long)(steady_at(&s, rows[i].boot_ms) / HOUR));
        assert_true(steady_at(&s, rows[i].boot_ms + HOUR) == rows[i].is + HOUR);
        assert_true(steady_at(&s, 0) == rows[i].is);        /* never back */
    }
}

static void
test_ends_of_numbers(void **state)
{
    const struct steady_kept k = { .at_ms = UINT64_MAX - 1, .boot_ms = 0, .boot = "a" };
    const struct steady s = steady_after(&k, "a", 0, 100);

    (void)state;
    assert_true(s.at_ms == UINT64_MAX && steady_at(&s, UINT64_MAX) == UINT64_MAX);
}

/* How old files are: what a clock that is set, or was wrong when time began, makes of it. In hours since 1970. */
static void
test_age(void **state)
{
    const uint64_t now = STEADY_WRITTEN_S * 1000ULL / HOUR + 8000, year = 8766;
    const struct { const char *what; uint64_t steady, wall, changed, is; } rows[] = {
        { "both are right",                              now,             now,             now - 5,      5 },
        { "the host's was set forward",                  now,             now + year,      now - 5,      5 },
        { "the host's was set back",                     now,             now - 3,         now - 5,      2 },
        { "a file of later than now",                    now,             now,             now + 5,      0 },
        { "time began in a clock's 2099",                now + 73 * year, now,             now - 5,      5 },
        { "... and the host's is set back",              now + 73 * year, now - 9,         now - 5,      0 },
        { "time began in 1970",                          3,               now,             now - 5,      5 },
        { "... and the file is of that time",            3,               now,             1,            2 },
        { "... and the host's clock still says so",      3,               3,               1,            2 },
        { "... and that, and the file is of now",        3,               3,               now - 5,      0 },
        { "time began a month behind",                   now - 720,       now,             now - 1000,   280 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct steady s = steady_begin(rows[i].steady * HOUR - HOUR, HOUR);
        const uint64_t got = steady_age_s(&s, 2 * HOUR, rows[i].wall * HOUR, (int64_t)rows[i].changed * 3600);

        if (got != rows[i].is * 3600)
            fail_msg("%s: %llu s", rows[i].what, (unsigned long long)got);
    }
}

static void
test_age_of_any_number(void **state)
{
    const struct steady s = steady_begin(UINT64_MAX, 0);

    (void)state;
    assert_true(steady_age_s(&s, UINT64_MAX, UINT64_MAX, INT64_MAX) == 0);
    assert_true(steady_age_s(&s, 0, UINT64_MAX, INT64_MIN) == UINT64_MAX / 1000);
    assert_true(steady_age_s(&s, 0, 0, INT64_MIN) == 0);
}

static void
test_this_boot(void **state)
{
    char a[STEADY_BOOT + 1], b[STEADY_BOOT + 1];

    (void)state;
    steady_boot(a);
    steady_boot(b);
    assert_string_equal(a, b);
    assert_true(strchr(a, '/') != NULL && clock_boot_ms() >= clock_ms());
}

static void
test_text_of_a_moment(void **state)
{
    static const struct { int64_t ms; const char *text; } rows[] = {
        { 0, "1970-01-01T00:00:00.000Z" }, { 1795974646718, "2026-11-29T17:50:46.718Z" },
        { -1, "1969-12-31T23:59:59.999Z" }, { 253402300800000, "10000-01-01T00:00:00.000Z" },
        { INT64_MAX, ".807Z" },         /* no year that there is a text for */
    };
    char text[CLOCK_TEXT + 1];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        clock_text(rows[i].ms, text);
        if (rows[i].ms != INT64_MAX)
            assert_string_equal(text, rows[i].text);
        else
            assert_string_equal(text + strlen(text) - 5, rows[i].text);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_after), cmocka_unit_test(test_ends_of_numbers),
                                        cmocka_unit_test(test_this_boot), cmocka_unit_test(test_text_of_a_moment),
                                        cmocka_unit_test(test_age), cmocka_unit_test(test_age_of_any_number) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
