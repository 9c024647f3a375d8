/* swap_hidden.h: the search of answers for a value, and the same text in pieces; for the tests of egress/swap */
#ifndef CLOCHE_TESTS_SWAP_HIDDEN_H
#define CLOCHE_TESTS_SWAP_HIDDEN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "egress/swap.h"

#define VALUE "sk-Ab1/x9Qw+rTy7uIoP"
#define PLACE "sk-Zy2/a8Mn+bVc3xZaS"        /* character by character of the same class */
#define OTHER "sk-Qq7/m1Ee+hHh5jJkL"        /* another value that it could stand for */

static struct swap *
hidden(const char *value)
{
    struct swap *s = swap_new();

    assert_non_null(s);
    swap_hide(s);
    assert_int_equal(swap_add(s, 0, value, PLACE, strlen(value), SWAP_ALL), 0);
    return s;
}

/* Every way to cut @in into three reads gives @want. */
static void
check_cuts(struct swap *s, const char *in, const char *want)
{
    size_t n = strlen(in);

    for (size_t a = 0; a <= n; a++)
        for (size_t b = a; b <= n; b++) {
            struct buf out = BUF_INIT(4096);
            assert_int_equal(swap_feed(s, in, a, false, &out), 0);
            assert_int_equal(swap_feed(s, in + a, b - a, false, &out), 0);
            assert_int_equal(out.n + swap_held(s), b);
            assert_int_equal(swap_feed(s, in + b, n - b, true, &out), 0);
            assert_int_equal(swap_held(s), 0);
            assert_int_equal(out.n, strlen(want));
            assert_memory_equal(out.p, want, out.n);
            buf_free(&out);
        }
}

#endif
