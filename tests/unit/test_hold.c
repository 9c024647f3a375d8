/* hold: all together have a bound, and one caller leaves room for the others */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hold.h"

static struct hold h;

/* How much that caller gets, a byte at a time. */
static size_t
fill(unsigned caller, bool whole)
{
    size_t n = 0;

    for (; hold_has(&h, caller, whole, 1); n++)
        hold_count(&h, caller, n, n + 1);
    return n;
}

static int
setup(void **state)
{
    (void)state;
    memset(&h, 0, sizeof(h));
    h.max = 800;
    return 0;
}

static void
one_leaves_room(void **state)
{
    (void)state;
    assert_int_equal(fill(hold_caller(7), false), 400);
    for (uint32_t who = 8; who < 12; who++)
        assert_int_equal(fill(hold_caller(who), false), 100);
    assert_int_equal(fill(hold_caller(12), false), 0);
    assert_int_equal(h.all, 800);
}

static void
whose_all_is_has_all(void **state)
{
    (void)state;
    assert_int_equal(fill(HOLD_NOBODY, true), 800);
    assert_false(hold_has(&h, HOLD_NOBODY, true, 1));
}

static void
what_is_given_back_is_there(void **state)
{
    (void)state;
    hold_count(&h, 5, 0, 790);
    assert_false(hold_has(&h, 6, false, 11));
    assert_true(hold_has(&h, 6, false, 10));
    assert_false(hold_has(&h, 5, false, 1));        /* its share is used up */
    hold_count(&h, 5, 790, 10);
    assert_true(hold_has(&h, 5, false, 390));
    hold_count(&h, 5, 10, 0);
    assert_int_equal(h.all, 0);
    assert_int_equal(h.by[5], 0);
}

static void
no_sum_wraps(void **state)
{
    (void)state;
    assert_false(hold_has(&h, 5, false, SIZE_MAX));
    hold_count(&h, 5, 0, 900);      /* what could not be refused */
    assert_false(hold_has(&h, 6, false, 0));
    assert_false(hold_has(&h, 6, true, SIZE_MAX));
}

static void
callers_are_told_apart(void **state)
{
    (void)state;
    assert_int_equal(hold_caller(0), HOLD_NOBODY);
    for (uint32_t who = 1; who < 3 * HOLD_CALLERS; who++) {
        assert_true(hold_caller(who) > HOLD_KEYS && hold_caller(who) < HOLD_CALLERS);
        assert_int_not_equal(hold_caller(who), hold_caller(who + 1));
    }
    assert_true(hold_caller(UINT32_MAX) < HOLD_CALLERS);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_leaves_room, setup),       cmocka_unit_test_setup(whose_all_is_has_all, setup),
        cmocka_unit_test_setup(what_is_given_back_is_there, setup), cmocka_unit_test_setup(no_sum_wraps, setup),
        cmocka_unit_test_setup(callers_are_told_apart, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
