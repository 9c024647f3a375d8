/* policy/recipe: recipes of images, and what is refused as one (R67) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/array.h"
#include "policy/recipe.h"

static void
whole(void **state)
{
    static const char text[] = "about: \"tools: mine\"\nsuite: trixie\npackages: [bash, g++-12, libc6.1]\n"
                               "pip: [six, requests==2.31.0]\nnpm: [\"@scope/tool@1.2.3\", typescript]\n"
                               "env: { A: b=c, EMPTY: \"\" }\nworkdir: /srv\ncmd: [sh, -c, \"echo $A\"]\n";
    struct arena *a = arena_new(1024);
    struct err err = ERR_INIT;
    struct recipe r;

    (void)state;
    assert_int_equal(recipe_parse(a, "x/mine.yaml", "mine", str_of(text), &r, &err), 0);
    assert_string_equal(r.name, "mine");
    assert_string_equal(r.about, "tools: mine");
    assert_string_equal(r.suite, "trixie");
    assert_int_equal(r.packages.n, 3);
    assert_string_equal(r.packages.v[1], "g++-12");
    assert_string_equal(r.pip.v[1], "requests==2.31.0");
    assert_string_equal(r.npm.v[0], "@scope/tool@1.2.3");
    assert_string_equal(r.env.v[0], "A=b=c");
    assert_string_equal(r.env.v[1], "EMPTY=");
    assert_string_equal(r.workdir, "/srv");
    assert_string_equal(r.cmd.v[2], "echo $A");
    assert_null(r.cmd.v[3]);
    arena_free(a);
}

static void
refused(void **state)
{
    /* words of these lists end in a command line of mmdebstrap's, some in a shell's */
    static const struct { const char *text, *code, *says; } rows[] = {
        { "about: x\n", "recipe.missing", "packages" },
        { "packages: []\n", "recipe.missing", "packages" },
        { "packages: bash\n", "recipe.value", "list" },
        { "packages: [Bash]\n", "recipe.value", "lower-case" },
        { "packages: [\"bash;id\"]\n", "recipe.value", "packages" },
        { "packages: [\"bash,id\"]\n", "recipe.value", "packages" },
        { "packages: [--setup-hook=id]\n", "recipe.value", "packages" },
        { "packages: [./evil.deb]\n", "recipe.value", "packages" },
        { "packages: [bash]\nsuite: ../x\n", "recipe.value", "suite" },
        { "packages: [bash]\nsuite: --mode\n", "recipe.value", "suite" },
        { "packages: [bash]\npip: [\"six; id\"]\n", "recipe.value", "pip" },
        { "packages: [bash]\npip: [\"$(id)\"]\n", "recipe.value", "pip" },
        { "packages: [bash]\npip: [--index-url=http://evil]\n", "recipe.value", "pip" },
        { "packages: [bash]\npip: [../x]\n", "recipe.value", "pip" },
        { "packages: [bash]\nnpm: [\"a`id`\"]\n", "recipe.value", "npm" },
        { "packages: [bash]\nnpm: [-g]\n", "recipe.value", "npm" },
        { "packages: [bash]\nnpm: [\"https://evil/x.tgz\"]\n", "recipe.value", "npm" },
        { "packages: [bash]\nworkdir: srv\n", "recipe.value", "workdir" },
        { "packages: [bash]\nenv: [A]\n", "recipe.value", "env" },
        { "packages: [bash]\nenv: { A: [b] }\n", "recipe.value", "env" },
        { "packages: [bash]\nhook: id\n", "recipe.key", "hook" },
        { "[bash]\n", "recipe.key", "map" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena *a = arena_new(1024);
        struct err err = ERR_INIT;
        struct recipe r;
        if (recipe_parse(a, "mine.yaml", "mine", str_of(rows[i].text), &r, &err) == 0)
            fail_msg("taken: %s", rows[i].text);
        if (!err_is(&err, rows[i].code) || strstr(err.msg, rows[i].says) == NULL)
            fail_msg("%s: %s [%s]", rows[i].text, err.msg, err.code);
        arena_free(a);
    }
}

static void
names(void **state)
{
    static const char *const bad[] = { "", "Mine", "1st", "a+b", "a#", "a/b", "-a" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct arena *a = arena_new(1024);
        struct err err = ERR_INIT;
        struct recipe r;
        assert_int_equal(recipe_parse(a, "x.yaml", bad[i], STR_LIT("packages: [bash]\n"), &r, &err), -1);
        assert_true(err_is(&err, "recipe.name"));
        arena_free(a);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(whole), cmocka_unit_test(refused), cmocka_unit_test(names) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
