/* base/err: wrapping keeps the innermost fact */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/err.h"

static void
wrap_prefixes(void **state)
{
    struct err e = ERR_INIT;
    (void)state;
    assert_int_equal(err_sys(&e, ENOENT, "test.open", "open %s", "x"), -1);
    err_wrap(&e, "workspace");
    assert_string_equal(e.msg, "workspace: open x: No such file or directory");
    assert_int_equal(e.sys_errno, ENOENT);
}

static void
wrap_cuts_context_not_fact(void **state)
{
    struct err e = ERR_INIT;
    char big[2000];
    (void)state;
    memset(big, 'c', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    err_set(&e, ERR_POLICY, "test.fact", "the fact");
    err_wrap(&e, "%s", big);
    assert_non_null(strstr(e.msg, ": the fact"));
    err_set(&e, ERR_POLICY, "test.fact", "%s", big);
    err_wrap(&e, "context");
    assert_int_equal(e.msg[0], 'c');
}

static void
null_is_allowed(void **state)
{
    (void)state;
    assert_int_equal(err_set(NULL, ERR_POLICY, "x", "y"), -1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrap_prefixes),
        cmocka_unit_test(wrap_cuts_context_not_fact),
        cmocka_unit_test(null_is_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
