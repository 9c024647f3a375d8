/* wire/connect.h and wire/multipart.h: what E2B's clients send, and what is refused of it (R84) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/array.h"
#include "wire/connect.h"
#include "wire/multipart.h"

#define L(s) { s, sizeof(s) - 1 }

static void
messages(void **state)
{
    static const struct { struct str in; int n; } rows[] = {
        { L("\0\0\0\0\2{}"), 2 }, { L("\0\0\0\0\0"), 0 },
        { L(""), -1 }, { L("\0\0\0\0"), -1 }, { L("\0\0\0\0\3{}"), -1 }, { L("\0\0\0\0\1{}"), -1 },
        { L("\0\xff\xff\xff\xff{}"), -1 }, { L("\1\0\0\0\2{}"), -1 }, { L("\2\0\0\0\2{}"), -1 },
        { L("\x80\0\0\0\2{}"), -1 }, { L("\0\0\0\0\2{}\0\0\0\0\2{}"), -1 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct str out = { NULL, 0 };
        assert_int_equal(connect_one(rows[i].in, &out) == NULL, rows[i].n >= 0);
        if (rows[i].n >= 0)
            assert_int_equal(out.n, rows[i].n);
    }
}

static void
times(void **state)
{
    uint64_t ms = 0;

    (void)state;
    assert_true(connect_timeout("60000", &ms) && ms == 60000);
    assert_false(connect_timeout("", &ms) || connect_timeout("-1", &ms) || connect_timeout("1 ", &ms) ||
                 connect_timeout("12345678901", &ms));
}

#define TYPE "multipart/form-data; boundary=X"
#define HEAD "--X\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\""

/* What a form's first file is called and holds; NULL: it is refused, at once or later. */
static const struct { const char *type; struct str body; const char *name, *content; } forms[] = {
    { TYPE, L(HEAD "\r\n\r\nhello\r\n--X--\r\n"), "f", "hello" },
    { "Multipart/Form-Data;boundary=\"X\"", L(HEAD "\r\n\r\nhello\r\n--X--"), "f", "hello" },
    { TYPE, L(HEAD "\r\n\r\n\r\n--X--\r\n"), "f", "" },
    { TYPE, L(HEAD "\r\n\r\n--X--\r\n"), "f", "" },
    { TYPE, L(HEAD "\r\nContent-Type: text/plain\r\n\r\na\r\n-X\r\n--X--\r\n"), "f", "a\r\n-X" },
    { TYPE, L("--X\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a %22\\\\b\"\r\n\r\nx\r\n--X--\r\n"),
      "a \"\\b", "x" },
    { TYPE, L(HEAD "\r\n\r\nhello\r\n--X"), NULL, NULL },
    { TYPE, L(HEAD "\r\n\r\nhello"), NULL, NULL },
    { TYPE, L(HEAD "\r\nA: b"), NULL, NULL },
    { TYPE, L(HEAD "\r\n\r\nhello\r\n--X--\r\nmore"), NULL, NULL },
    { TYPE, L("\r\n" HEAD "\r\n\r\nhello\r\n--X--\r\n"), NULL, NULL },
    { TYPE, L(HEAD "; filename=\"g\"\r\n\r\nhello\r\n--X--\r\n"), NULL, NULL },
    { TYPE, L(HEAD "; filename*=UTF-8''g\r\n\r\nhello\r\n--X--\r\n"), NULL, NULL },
    { TYPE, L(HEAD "\r\nContent-Disposition: form-data; name=\"g\"\r\n\r\nhello\r\n--X--\r\n"), NULL, NULL },
    { TYPE, L(HEAD "\r\nContent-Transfer-Encoding: base64\r\n\r\nhello\r\n--X--\r\n"), NULL, NULL },
    { TYPE, L("--X\r\nContent-Type: a/b\r\n\r\nhello\r\n--X--\r\n"), NULL, NULL },
    { TYPE, L("--X\r\nContent-Disposition: attachment; name=\"f\"\r\n\r\nhello\r\n--X--\r\n"), NULL, NULL },
    { TYPE, L("--X\r\nContent-Disposition: form-data; name=\"f\r\n\r\nhello\r\n--X--\r\n"), NULL, NULL },
    { "multipart/form-data", L(HEAD "\r\n\r\nhello\r\n--X--\r\n"), NULL, NULL },
    { "multipart/form-data; boundary=X; boundary=X", L(HEAD "\r\n\r\nhello\r\n--X--\r\n"), NULL, NULL },
    { "multipart/form-data; boundary=\"X\r\n\"", L(HEAD "\r\n\r\nhello\r\n--X--\r\n"), NULL, NULL },
    { "multipart/mixed; boundary=X", L(HEAD "\r\n\r\nhello\r\n--X--\r\n"), NULL, NULL },
};

static void
forms_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        static struct multipart_part part, first;
        struct multipart m;
        int got = -1, n = 0;
        if (multipart_begin(&m, forms[i].type, forms[i].body) == NULL)
            while ((got = multipart_next(&m, &part)) > 0)
                if (n++ == 0)
                    first = part;
        assert_int_equal(got == 0, forms[i].name != NULL);
        if (forms[i].name == NULL)
            continue;
        assert_int_equal(n, 1);
        assert_true(first.is_file && strcmp(first.name, "file") == 0);
        assert_string_equal(first.file, forms[i].name);
        assert_true(str_eq_c(first.content, forms[i].content));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages), cmocka_unit_test(times), cmocka_unit_test(forms_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
