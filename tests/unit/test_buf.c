/* base/buf: the ceiling holds, and a broken buffer stays broken */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/buf.h"

static void
ceiling_holds(void **state)
{
    struct buf b = BUF_INIT(10);
    (void)state;
    assert_int_equal(buf_append(&b, "0123456789", 10), 0);
    assert_int_equal(buf_append(&b, "x", 1), -1);
    assert_false(buf_ok(&b));
    assert_int_equal(b.n, 10);
    buf_reset(&b);
    assert_int_equal(buf_puts(&b, "ok"), 0);
    buf_free(&b);
}

static void
integers_are_big_endian(void **state)
{
    struct buf b = BUF_INIT(64);
    (void)state;
    buf_put_u8(&b, 1);
    buf_put_be16(&b, 0x0203);
    buf_put_be32(&b, 0x04050607);
    buf_put_be64(&b, 0x08090a0b0c0d0e0fULL);
    assert_true(buf_ok(&b));
    for (size_t i = 0; i < b.n; i++)
        assert_int_equal(b.p[i], i + 1);
    buf_consume(&b, 14);
    assert_int_equal(b.n, 1);
    assert_int_equal(b.p[0], 15);
    buf_free(&b);
}

static void
printf_counts(void **state)
{
    struct buf b = BUF_INIT(8);
    (void)state;
    assert_int_equal(buf_printf(&b, "%d", 1234567), 0);
    assert_int_equal(b.n, 7);
    assert_int_equal(buf_printf(&b, "%d", 12), -1);
    buf_free(&b);
}

static void
test_lent_array(void **state)
{
    uint8_t room[8] = { 0 };
    struct buf b = BUF_INIT_IN(room, 64);

    (void)state;
    assert_int_equal(buf_append(&b, "12345678", 8), 0);
    assert_ptr_equal(b.p, room);
    assert_memory_equal(room, "12345678", 8);
    assert_int_equal(buf_append(&b, "9", 1), 0);
    assert_ptr_not_equal(b.p, room);
    assert_memory_equal(b.p, "123456789", 9);
    buf_free(&b);
    b = (struct buf)BUF_INIT_IN(room, 8);
    assert_int_equal(buf_append(&b, "123456789", 9), -1);
    assert_false(buf_ok(&b));
    buf_free(&b);               /* the array is not the heap's */
    assert_null(b.p);
}

/* Up to its ceiling a buffer is moved a few times, not for each append. */
static void
test_growth(void **state)
{
    struct buf b = BUF_INIT(100 * 1000);
    size_t moves = 0, cap = 0;

    (void)state;
    for (size_t i = 0; i < b.max; i++) {
        assert_int_equal(buf_put_u8(&b, 'x'), 0);
        moves += b.cap != cap;
        cap = b.cap;
    }
    assert_true(moves < 16 && b.cap <= b.max);
    assert_int_equal(buf_put_u8(&b, 'x'), -1);
    buf_free(&b);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lent_array),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(ceiling_holds),
        cmocka_unit_test(integers_are_big_endian),
        cmocka_unit_test(printf_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
