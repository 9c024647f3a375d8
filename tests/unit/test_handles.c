/* handles: one caller's many credentials do not take another's number, and no number is given twice */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/edge_gate.h"
#include "warden/handles.h"

static struct handles all;

/* Credentials that may be in the same places: they differ in what does not count for that. */
static const uint8_t *
credential(uint32_t n)
{
    static uint8_t hash[SHA256_SIZE];

    memset(hash, 0, sizeof(hash));
    hash[1] = 5;
    memcpy(hash + 8, &n, sizeof(n));
    return hash;
}

static bool
is_good(void *ctx, const uint8_t hash[SHA256_SIZE])
{
    uint32_t n;

    memcpy(&n, hash + 8, sizeof(n));
    return ctx == NULL || n < *(const uint32_t *)ctx;
}

static bool
is_of(uint32_t number, uint32_t n)
{
    const struct handle *h = handle_find(&all, number);

    return h != NULL && memcmp(h->hash, credential(n), SHA256_SIZE) == 0;
}

static void
test_the_same(void **state)
{
    uint32_t number = handle_of(&all, credential(1), is_good, NULL);

    (void)state;
    assert_int_not_equal(number, 0);
    assert_int_equal(handle_of(&all, credential(1), is_good, NULL), number);
    assert_true(is_of(number, 1));
    assert_null(handle_find(&all, 0));
    assert_null(handle_find(&all, number + WARDEN_HANDLES));
    assert_null(handle_find(&all, number % WARDEN_HANDLES));
    assert_null(handle_find(&all, UINT32_MAX));
}

/* The attack: more credentials than there is room for, one after the other, each thrown away for the next. */
static void
test_what_opens_nothing_makes_room(void **state)
{
    uint32_t good = HANDLE_WAYS - 1, numbers[HANDLE_WAYS];

    (void)state;
    memset(&all, 0, sizeof(all));
    for (uint32_t i = 0; i < good; i++)
        numbers[i] = handle_of(&all, credential(i), is_good, &good);
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_not_equal(handle_of(&all, credential(1000 + i), is_good, &good), 0);
    for (uint32_t i = 0; i < good; i++)
        assert_true(is_of(numbers[i], i));
}

/* The same with credentials that are all good. */
static void
test_who_asks_stays(void **state)
{
    uint32_t first, late;

    (void)state;
    memset(&all, 0, sizeof(all));
    first = handle_of(&all, credential(0), is_good, NULL);
    for (uint32_t i = 1; i < 1000; i++) {
        (void)handle_of(&all, credential(i), is_good, NULL);
        assert_true(is_of(first, 0));
    }
    /* and nobody for ever */
    for (uint32_t i = 1000; i < 1000 + HANDLE_WAYS; i++)
        (void)handle_of(&all, credential(i), is_good, NULL);
    assert_null(handle_find(&all, first));
    late = handle_of(&all, credential(0), is_good, NULL);
    assert_int_not_equal(late, first);
}

/* No number that a front may still have for one comes to be another's. */
static void
test_no_number_is_given_twice(void **state)
{
    uint32_t former[HANDLE_WAYS] = { 0 }, n = 0, number;

    (void)state;
    memset(&all, 0, sizeof(all));
    while ((number = handle_of(&all, credential(n++), is_good, NULL)) != 0) {
        assert_true(number < EDGE_PASS);
        assert_true(number > former[number % HANDLE_WAYS]);
        former[number % HANDLE_WAYS] = number;
    }
    assert_true(n > EDGE_PASS / WARDEN_HANDLES);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same),
        cmocka_unit_test(test_what_opens_nothing_makes_room),
        cmocka_unit_test(test_who_asks_stays),
        cmocka_unit_test(test_no_number_is_given_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
