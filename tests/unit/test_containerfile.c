/* imager/containerfile: which images a Containerfile takes, by rows */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "imager/containerfile.h"

static const char *const args[] = { "GIVEN=alpine", "SPACED=a b", NULL };

static void
bases(void **state)
{
    static const struct { const char *text, *names; } rows[] = {
        { "FROM a:1\n", "a:1 " },
        { "FROM a", "a:latest " },
        { "from a.example/b as X\nfrom x\nFROM 0\n", "a.example/b:latest " },
        { "FROM scratch\nCOPY x /\n", "" },
        { "\n# FROM no\n  FROM --platform=linux/amd64 localhost/a:b AS one\nFROM a AS two\nCOPY --from=one /x /x\n",
          "localhost/a:b a:latest " },
        { "FROM a\nCOPY --chown=1 --from=b:2 x y\nCOPY x --from=c\nCOPY --from=0 x y\nRUN echo FROM d\n", "a:latest b:2 " },
        { "FROM a:1\nFROM docker.io/library/a:1\nFROM library/a:1", "a:1 " },
        { "FROM \\\n# between\n\n  a:1 \\  \n AS \\\n b\nFROM b\n", "a:1 " },
        { "RUN x \\\nFROM no\nFROM a", "a:latest " },
        { "# escape=`\nFROM `\na\\b:1", NULL },
        { "# syntax=x\n# ESCAPE = `\nRUN x `\nFROM no\nRUN y \\\nFROM a", "a:latest " },
        { "# a comment\n# escape=`\nFROM a\\\n:1", "a:1 " },
        { "ARG N=a\nARG V=\"1\"\nFROM $N:${V}\n", "a:1 " },
        { "ARG GIVEN=other\nFROM $GIVEN", "alpine:latest " },
        { "ARG V=3.12\nARG T=${V}-slim\nFROM python:$T", "python:3.12-slim " },
        { "ARG A=1\nARG A=2\nARG A\nARG UNUSED=$NONE\nFROM a:$A", "a:2 " },
        { "ARG A=$NONE\nFROM a:$A", NULL },
        { "ARG A=a\nARG A=b$NONE\nFROM $A", NULL },
        { "\xef\xbb\xbf" "FROM a", "a:latest " },
        { "FROM ${GIVEN:-x}:${NONE:-1}${GIVEN:+.2}${NONE:+.3}", "alpine:1.2 " },
        { "ARG E=\nFROM a${E}:${E:-3}", "a:3 " },
        { "FROM a\nARG N=b\nFROM $N", NULL },
        { "ARG N\nFROM $N", NULL },
        { "FROM $NONE", NULL },
        { "FROM ${GIVEN", NULL },
        { "FROM ${GIVEN%x}", NULL },
        { "FROM $SPACED", NULL },
        { "FROM", NULL },
        { "FROM --platform=x", NULL },
        { "", NULL },
        { "RUN x", NULL },
        { "FROM UPPER", NULL },
        { "FROM sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", NULL },
        { "FROM a@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", NULL },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        static struct base_list list;
        struct err err = ERR_INIT;
        char said[4096] = "";
        int r = containerfile_bases(str_of(rows[i].text), args, &list, &err);

        for (size_t k = 0; r == 0 && k < list.n; k++) {
            strcat(said, list.v[k]);
            strcat(said, " ");
        }
        if ((r < 0) != (rows[i].names == NULL) || (r == 0 && strcmp(said, rows[i].names) != 0))
            fail_msg("%s: %d \"%s\" %s", rows[i].text, r, said, err.msg);
        assert_true(r == 0 || err.code[0] != '\0');
    }
}

static void
ceilings(void **state)
{
    static struct base_list list;
    static char text[2 * CONTAINERFILE_LINE];
    struct err err = ERR_INIT;
    size_t n = 0;

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    memcpy(text, "FROM a\nRUN ", 11);
    memcpy(text + sizeof(text) - 8, "\nFROM b", 7);
    assert_int_equal(containerfile_bases(str_of(text), args, &list, &err), 0);
    assert_int_equal(list.n, 2);
    for (size_t i = 0; i <= BASES_MAX; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "FROM i%zu\n", i);
    assert_int_equal(containerfile_bases(str_of(text), args, &list, &err), -1);
    assert_string_equal(err.code, "containerfile.many");
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(bases), cmocka_unit_test(ceilings) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
