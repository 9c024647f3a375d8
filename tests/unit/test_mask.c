/* base/mask: values are found wherever they stand, in any case, and never cut in two */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/mask.h"

static void
redact_rows(void **state)
{
    static const struct { const char *in, *out; } rows[] = {
        { "secret-one", "[one]" }, { "a SECRET-one b", "a [one] b" }, { "secret-onesecret-one", "[one][one]" },
        { "secret-on", NULL }, { "", NULL }, { "xsecret-two-longer", "x[two]" }, { "secret-two", NULL },
        { "short", NULL }, { "secret-one-more", "[longer]" }, { "\xff\xfesecret-one", "\xff\xfe[one]" },
    };
    struct masks set;
    (void)state;
    masks_init(&set);
    masks_add(&set, "[one]", "Secret-One", 10);
    masks_add(&set, "[two]", "secret-two-longer", 17);
    masks_add(&set, "[longer]", "secret-one-more", 15);
    masks_add(&set, "[no]", "short", 5);
    assert_false(set.all);
    assert_int_equal(masks_tail(&set), 2 * 17 - 1);     /* in hexadecimal */
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_buf struct buf out = BUF_INIT(1024);
        assert_int_equal(masks_redact(&set, str_of(rows[i].in), &out), rows[i].out != NULL);
        if (rows[i].out != NULL) {
            assert_int_equal(out.n, strlen(rows[i].out));
            assert_memory_equal(out.p, rows[i].out, out.n);
        }
    }
    masks_free(&set);
}

static void
a_print_is_of_one_key(void **state)
{
    const uint8_t other[MASK_KEY] = { 1, 2, 3 };
    cleanup_buf struct buf out = BUF_INIT(64);
    struct masks set;
    struct mask print;
    (void)state;
    masks_init(&set);
    assert_true(mask_print(other, "secret-one", 10, &print));
    masks_add_print(&set, &print);
    assert_false(masks_redact(&set, str_of("secret-one"), &out));
    assert_true(mask_print(set.key, "secret-one", 10, &print));
    masks_add_print(&set, &print);
    assert_true(masks_redact(&set, str_of("secret-one"), &out));
    masks_free(&set);
}

static void
cut_at_no_value(void **state)
{
    static const char text[] = "ab secret-one cd secret-two-longer";
    struct masks set;
    (void)state;
    masks_init(&set);
    masks_add(&set, "[one]", "secret-one", 10);
    masks_add(&set, "[two]", "secret-two-longer", 17);
    for (size_t cut = 1; cut <= strlen(text); cut++) {
        size_t at = masks_cut(&set, str_of(text), cut);
        assert_true(at <= cut && at > 0);
        assert_false((at > 3 && at < 13) || (at > 17 && at < 34));
    }
    assert_int_equal(masks_cut(&set, str_of(text + 3), 4), 10);      /* it begins with one */
    masks_free(&set);
}

static void
without_room_everything_is_hidden(void **state)
{
    cleanup_buf struct buf out = BUF_INIT(64);
    struct masks set;
    char value[16];
    (void)state;
    masks_init(&set);
    for (int i = 0; i <= MASKS_MAX; i++) {
        memset(value, 'a' + i % 26, sizeof(value));
        value[0] = (char)i;
        masks_add(&set, "[v]", value, sizeof(value));
    }
    assert_true(set.all);
    assert_true(masks_redact(&set, str_of("anything"), &out));
    assert_int_equal(out.n, strlen("[redacted]"));
    masks_free(&set);
}

/* What somebody who encodes a value writes, with other bytes around it. */
static void
forms_are_hidden_too(void **state)
{
    static const char value[] = "pa\"ss\\w0rd/\n?>?>~~";
    static const struct { const char *in, *out; } rows[] = {
        { "a pa\"ss\\w0rd/\n?>?>~~ b", "a [v] b" },
        { "q=pa%22ss%5Cw0rd%2F%0A%3F%3E%3F%3E~~&r", "q=[v]&r" }, { "q=pa%22ss%5cw0rd%2f%0a%3f%3e%3f%3e~~", "q=[v]" },
        { "{\"k\":\"pa\\\"ss\\\\w0rd/\\n?>?>~~\"}", "{\"k\":\"[v]\"}" },
        { "7061227373 706122737357307264", NULL }, { "x70612273735c773072642f0a3f3e3f3e7e7ey", "x[v]y" },
        /* at each place in a group of three, in both alphabets */
        { "cGEic3NcdzByZC8KPz4/Pn5+", "[v]" }, { "cGEic3NcdzByZC8KPz4_Pn5-", "[v]" },
        { "IHBhInNzXHcwcmQvCj8+Pz5+fg==", "IH[v]g==" }, { "ICBwYSJzc1x3MHJkLwo_Pj8-fn4=", "ICB[v]4=" },
    };
    struct masks set;
    (void)state;
    masks_init(&set);
    masks_add(&set, "[v]", value, strlen(value));
    assert_int_equal(set.n, MASK_FORMS);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_buf struct buf out = BUF_INIT(1024);
        assert_int_equal(masks_redact(&set, str_of(rows[i].in), &out), rows[i].out != NULL);
        if (rows[i].out != NULL) {
            assert_int_equal(buf_nul(&out), 0);
            assert_string_equal((const char *)out.p, rows[i].out);
        }
    }
    masks_free(&set);
}

static void
long_values_have_the_forms_that_fit(void **state)
{
    char value[MASK_MAX];
    struct masks set;
    (void)state;
    memset(value, 'x', sizeof(value));
    masks_init(&set);
    masks_add(&set, "[v]", value, sizeof(value));
    assert_int_equal(set.n, 1);
    masks_add(&set, "[v]", value, MASK_MAX / 2);
    assert_int_equal(set.n, 1 + 1 + 1 + 3);
    masks_free(&set);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(redact_rows),
        cmocka_unit_test(a_print_is_of_one_key),
        cmocka_unit_test(cut_at_no_value),
        cmocka_unit_test(forms_are_hidden_too),
        cmocka_unit_test(long_values_have_the_forms_that_fit),
        cmocka_unit_test(without_room_everything_is_hidden),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
