/* warden/latest: time that is never set back */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/array.h"
#include "warden/latest.h"

static void
test_rows(void **state)
{
    static const struct { const char *what; uint64_t seen, then, wall, mono, is; } rows[] = {
        { "the first time",                       0,    0,   5000, 100,  5000 },
        { "time goes by",                         5000, 100, 5300, 400,  5300 },
        { "the clock was set ahead",              5000, 100, 9000, 400,  9000 },
        { "set back: what went by counts",        5000, 100, 1000, 400,  5300 },
        { "set back to nothing",                  5000, 100, 0,    100,  5000 },
        { "behind by a little, it catches up",    5000, 100, 5150, 200,  5150 },
        { "the monotonic clock began anew",       5000, 900, 4000, 10,   5000 },
        { "nothing went by",                      5000, 100, 5000, 100,  5000 },
        { "at the end of numbers",                UINT64_MAX - 1, 100, 5000, 400, UINT64_MAX },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct latest l = { .wall_ms = rows[i].seen, .mono_ms = rows[i].then };
        if (latest_at(&l, rows[i].wall, rows[i].mono) != rows[i].is)
            fail_msg("%s: %llu", rows[i].what, (unsigned long long)latest_at(&l, rows[i].wall, rows[i].mono));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
