/* policy/secret_text.h: what gives way to a placeholder, and what does not */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "policy/secret_text.h"

static bool
look(void *ctx, struct str name, struct str *out)
{
    (void)ctx;
    *out = STR_LIT("${it}");
    return str_eq_c(name, "it") || str_eq_c(name, "a.b-c");
}

static void
rows(void **state)
{
    static const struct { const char *text, *made, *name; enum secret_text result; } all[] = {
        { "${it}", "${it}", "", SECRET_TEXT_OK },               /* what was put in is not looked at again */
        { "a=${it};b=${a.b-c}\n", "a=${it};b=${it}\n", "", SECRET_TEXT_OK },
        { "$it $$ ${it}$", "$it $$ ${it}$", "", SECRET_TEXT_OK },
        { "$${it} ${it}", "${it} ${it}", "", SECRET_TEXT_OK },
        { "$$${it}", "$${it}", "", SECRET_TEXT_PLAIN },
        { "", "", "", SECRET_TEXT_PLAIN },
        { "plain $${it}", "plain ${it}", "", SECRET_TEXT_PLAIN },
        { "x${other}", NULL, "other", SECRET_TEXT_UNKNOWN },
        { "x${ it}", NULL, " it", SECRET_TEXT_UNKNOWN },
        { "x${}", NULL, "", SECRET_TEXT_OPEN },
        { "x${it", NULL, "", SECRET_TEXT_OPEN },
        { "x${", NULL, "", SECRET_TEXT_OPEN },
        { "x${a\nb}", NULL, "a\nb", SECRET_TEXT_OPEN },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        struct buf out = BUF_INIT(64);
        struct str name = { "", 0 };
        assert_int_equal(secret_text_make(str_of(all[i].text), look, NULL, &out, &name), all[i].result);
        if (all[i].made != NULL)
            assert_true(str_eq_c((struct str){ out.n > 0 ? (const char *)out.p : "", out.n }, all[i].made));
        if (all[i].result == SECRET_TEXT_UNKNOWN)
            assert_true(str_eq_c(name, all[i].name));
        buf_free(&out);
    }
}

static void
ceiling(void **state)
{
    struct buf out = BUF_INIT(8);
    struct str name;

    (void)state;
    assert_int_equal(secret_text_make(STR_LIT("1234${it}"), look, NULL, &out, &name), SECRET_TEXT_LONG);
    buf_free(&out);
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(rows), cmocka_unit_test(ceiling) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
