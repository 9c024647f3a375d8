/* Recovery by itself: how often, and with which pauses (R42) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/array.h"
#include "proto/edge.h"

#define HOUR_MS 3600000ULL

static void
pauses(void **state)
{
    /* those that are used, the age of their window, how long it is waited for one that is degraded, and that is gone */
    static const struct { uint32_t after, tries, window, used; uint64_t age; uint32_t degraded, gone; } rows[] = {
        { 30, 3, 3600, 0, 0, 30, 1 }, { 30, 3, 3600, 1, 1000, 60, 30 }, { 30, 3, 3600, 2, 1000, 120, 60 },
        { 30, 3, 3600, 3, 1000, 0, 0 }, { 30, 3, 3600, 9, 1000, 0, 0 },
        /* the window is over: it begins anew */
        { 30, 3, 3600, 3, HOUR_MS - 1, 0, 0 }, { 30, 3, 3600, 3, HOUR_MS, 30, 1 }, { 30, 3, 3600, 2, 9 * HOUR_MS, 30, 1 },
        /* no pause is longer than the window, unless that was asked for, nor is it the result of an overflow */
        { 30, 20, 60, 1, 0, 60, 30 }, { 30, 20, 60, 2, 0, 60, 60 }, { 30, 20, 60, 19, 0, 60, 60 },
        { 86400, 20, 60, 0, 0, 86400, 1 }, { 86400, 20, 60, 5, 0, 86400, 86400 },
        { 86400, 20, 2592000, 19, 0, 2592000, 2592000 }, { 1, 20, 3600, 11, 0, 2048, 1024 },
        { 1, 20, 3600, 12, 0, 3600, 2048 }, { 1, 1, 60, 0, 0, 1, 1 }, { 1, 1, 60, 1, 0, 0, 0 },
        /* it is not wanted */
        { 0, 3, 3600, 0, 0, 0, 0 }, { 30, 0, 3600, 0, 0, 0, 0 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct edge_recovery r = { .after_s = rows[i].after, .tries = rows[i].tries, .window_s = rows[i].window,
                                   .used = rows[i].used, .began_ms = 1 };
        if (recovery_wait_s(&r, rows[i].age, false) != rows[i].degraded ||
            recovery_wait_s(&r, rows[i].age, true) != rows[i].gone)
            fail_msg("row %zu: %u, %u", i, recovery_wait_s(&r, rows[i].age, false),
                     recovery_wait_s(&r, rows[i].age, true));
    }
}

/* Each pause is at least as long as the one before it, whatever was asked for. */
static void
pauses_grow(void **state)
{
    static const uint32_t afters[] = { 1, 7, 30, 3600, EDGE_RECOVER_AFTER },
                          windows[] = { EDGE_RECOVER_WINDOW_MIN, 3600, EDGE_RECOVER_WINDOW };

    (void)state;
    for (size_t i = 0; i < 30; i++) {
        struct edge_recovery r = { .after_s = afters[i % 5], .tries = EDGE_RECOVER_TRIES, .window_s = windows[i / 5 % 3],
                                   .began_ms = 1 };
        uint32_t before = 0;
        for (r.used = 0; r.used < r.tries; r.used++) {
            uint32_t wait = recovery_wait_s(&r, 0, i >= 15);
            assert_true(wait > 0 && wait >= before);
            before = wait;
        }
        assert_int_equal(recovery_wait_s(&r, 0, i >= 15), 0);
    }
}

static void
tries_that_count(void **state)
{
    struct edge_recovery r = { .after_s = 1, .tries = 3, .window_s = 60, .used = 2 };

    (void)state;
    assert_int_equal(recovery_used(&r, 0), 0);      /* no window was opened */
    r.began_ms = 5;
    assert_int_equal(recovery_used(&r, 0), 2);
    assert_int_equal(recovery_used(&r, 59999), 2);
    assert_int_equal(recovery_used(&r, 60000), 0);
    assert_int_equal(recovery_used(&r, UINT64_MAX), 0);
}

static void
what_may_be_asked(void **state)
{
    static const struct { struct edge_recovery r; bool well; } rows[] = {
        { { .after_s = 0 }, true }, { { .after_s = EDGE_RECOVER_NEVER }, true },
        { { .after_s = 1, .tries = 1, .window_s = 60 }, true }, { { .after_s = EDGE_RECOVER_AFTER + 1 }, false },
        { { .after_s = 1, .tries = EDGE_RECOVER_TRIES + 1 }, false }, { { .after_s = 1, .window_s = 59 }, false },
        { { .after_s = 1, .window_s = EDGE_RECOVER_WINDOW + 1 }, false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (edge_recovery_well(&rows[i].r) != rows[i].well)
            fail_msg("row %zu", i);
}

static void
on_the_wire(void **state)
{
    const struct edge_recovery r = { .after_s = 30, .tries = 3, .window_s = 3600, .used = 2, .given_up = true,
                                     .began_ms = 1795308010870ULL, .next_ms = 1795308010871ULL };
    struct buf b = BUF_INIT(256);
    struct edge_recovery back;
    struct wire_in in;

    (void)state;
    assert_int_equal(edge_recovery_put(&b, &r), 0);
    in = wire_in_of(b.p, b.n);
    assert_true(edge_recovery_get(&in, &back) && back.after_s == 30 && back.tries == 3 && back.window_s == 3600 && back.used == 2 &&
                back.given_up && back.began_ms == r.began_ms && back.next_ms == r.next_ms);
    for (size_t n = 0; n < b.n; n++) {
        in = wire_in_of(b.p, n);
        assert_false(edge_recovery_get(&in, &back));
    }
    b.p[16] = 2;                /* neither yes nor no */
    in = wire_in_of(b.p, b.n);
    assert_false(edge_recovery_get(&in, &back));
    buf_free(&b);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pauses),
        cmocka_unit_test(pauses_grow),
        cmocka_unit_test(tries_that_count),
        cmocka_unit_test(what_may_be_asked),
        cmocka_unit_test(on_the_wire),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
