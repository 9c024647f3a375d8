/* workspace: protected names, links that leave, names for people, the journal's text. Pure functions, by rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "workspace/journal.h"
#include "workspace/patch.h"
#include "workspace/protect.h"
#include "workspace/quote.h"

static void
protected_names(void **state)
{
    static const char *const names[] = { ".git/hooks", ".git/config", ".vscode", ".bashrc", ".claude/commands" };
    static const char *const places[] = { "home/.ssh" };
    static const struct protect rules = { names, 5, places, 1 };
    static const struct { const char *path; enum protect_match match; } rows[] = {
        { ".git/hooks/pre-commit", PROTECT_AT },
        { ".git/hooks", PROTECT_AT },
        { "sub/deep/.git/hooks/x", PROTECT_AT },
        { ".GIT/Hooks/x", PROTECT_AT },         /* a file system may not regard case */
        { ".git", PROTECT_ABOVE },
        { "sub/.git", PROTECT_ABOVE },
        { ".git/index", PROTECT_NOT },
        { ".git/hooksx", PROTECT_NOT },
        { "x.git/hooks", PROTECT_NOT },
        { "git/hooks", PROTECT_NOT },
        { ".vscode", PROTECT_AT },
        { "a/.vscode/settings.json", PROTECT_AT },
        { ".vscodex", PROTECT_NOT },
        { ".claude", PROTECT_ABOVE },
        { ".claude/notes", PROTECT_NOT },
        { "home", PROTECT_ABOVE },
        { "home/.ssh/id", PROTECT_AT },
        { "other/home/.ssh/id", PROTECT_NOT },  /* a place is one place */
        { ".git/commondir", PROTECT_AT },       /* git would read another configuration */
        { ".git/modules/a/hooks/post-checkout", PROTECT_AT },
        { ".git/modules/a/b/config", PROTECT_AT },
        { ".git/modules/a/refs/heads/config", PROTECT_NOT },
        { ".git/modules/a/HEAD", PROTECT_NOT },
        { ".git/refs/heads/hooks", PROTECT_NOT },
        { "src/config", PROTECT_NOT },
        { "", PROTECT_NOT },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (int there = 0; there < 2; there++)
            if (protect_test(&rules, str_of(rows[i].path), there != 0) != rows[i].match)
                fail_msg("%s", rows[i].path);
}

/* What only a home directory's owner's programs obey. */
static void
names_of_a_home(void **state)
{
    static const char *const names[] = { ".bashrc", ".ssh/config", ".config/fish", ".config/systemd", ".config/mise",
                                         ".envrc" };
    static const struct protect rules = { names, ARRAY_LEN(names), NULL, 0 };
    static const struct { const char *path; enum protect_match absent, there; } rows[] = {
        { ".bashrc", PROTECT_AT, PROTECT_AT },
        { ".BASHRC", PROTECT_AT, PROTECT_AT },
        { ".ssh", PROTECT_ABOVE, PROTECT_ABOVE },
        { ".config/systemd/user/x.service", PROTECT_AT, PROTECT_AT },
        { "vendor/a/.bashrc", PROTECT_NOT, PROTECT_AT },
        { "vendor/a/.ssh", PROTECT_NOT, PROTECT_ABOVE },
        { "vendor/a/.ssh/config", PROTECT_NOT, PROTECT_AT },
        { "vendor/.config/fish/config.fish", PROTECT_NOT, PROTECT_AT },
        { "vendor/.config/systemd", PROTECT_NOT, PROTECT_AT },
        { "node_modules/a/.bashrc", PROTECT_NOT, PROTECT_NOT },
        { "node_modules/a/.envrc", PROTECT_AT, PROTECT_AT },        /* of any folder that one enters */
        { "vendor/.config/mise/config.toml", PROTECT_AT, PROTECT_AT },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (protect_test(&rules, str_of(rows[i].path), false) != rows[i].absent ||
            protect_test(&rules, str_of(rows[i].path), true) != rows[i].there)
            fail_msg("%s", rows[i].path);
}

/* What is known of the folder is as good as all of the path. */
static void
what_is_protected_step_by_step(void **state)
{
    static const char *const names[] = { ".git/hooks", "a/b/c", "b", "a/c/a/c" }, *const places[] = { "c/b/a" };
    static const struct protect rules = { names, ARRAY_LEN(names), places, 1 };
    static const char *const words[] = { "a", "A", "b", "c", "d", ".git", "hooks", "modules", "config", "refs" };
    char path[64];

    (void)state;
    for (unsigned seed = 0; seed < 100000; seed++) {
        enum protect_match step = PROTECT_NOT, whole = PROTECT_NOT;
        size_t n = 0;
        for (unsigned left = seed; left > 0; left /= 10) {
            n += (size_t)snprintf(path + n, sizeof(path) - n, "%s%s", n > 0 ? "/" : "", words[left % 10]);
            whole = protect_test(&rules, str_of(path), true);
            step = protect_below(&rules, str_of(path), step, true);
            if (step != whole)
                fail_msg("%s: %d, %d", path, step, whole);
        }
    }
}

static void
links_that_leave(void **state)
{
    static const struct { const char *target; size_t depth; bool inside; } rows[] = {
        { "file", 0, true },
        { "a/b/c", 0, true },
        { "./a", 0, true },
        { "../x", 1, true },
        { "../../x", 2, true },
        { ".././../x", 2, true },
        { "..", 1, true },
        { "..", 0, false },
        { "../x", 0, false },
        { "../../x", 1, false },
        { "/etc/passwd", 5, false },
        { "/", 5, false },
        { "", 1, false },
        { "a/../b", 3, false },         /* where `a` leads is not known */
        { "s/../../y", 2, false },
        { "..x/y", 0, true },
        { "x..", 0, true },
        { "a//b", 0, true },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (protect_link_inside(str_of(rows[i].target), rows[i].depth) != rows[i].inside)
            fail_msg("%s at %zu", rows[i].target, rows[i].depth);
}

static void
names_for_people(void **state)
{
    static const struct { const char *name, *shown; } rows[] = {
        { "plain.txt", "a/plain.txt" },
        { "sp ace", "a/sp ace" },
        { "\xc3\xa4", "a/\xc3\xa4" },
        { "new\nline", "\"a/new\\nline\"" },
        { "tab\t\"q\" \\", "\"a/tab\\t\\\"q\\\" \\\\\"" },
        { "\x1b[31mred", "\"a/\\033[31mred\"" },
        { "\xff", "\"a/\\377\"" },
        { "\xc0\xaf", "\"a/\\300\\257\"" },              /* overlong */
        { "\xed\xa0\x80", "\"a/\\355\\240\\200\"" },     /* surrogate */
        { "\xc2\x9b" "31m", "\"a/\\302\\233" "31m\"" },  /* C1: CSI */
        { "\xe2\x80\xae" "txt", "\"a/\\342\\200\\256txt\"" },     /* right-to-left override */
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf b = BUF_INIT(4096);
        assert_int_equal(quote_name(&b, "a/", str_of(rows[i].name)), 0);
        assert_int_equal(buf_nul(&b), 0);
        assert_string_equal((char *)b.p, rows[i].shown);
        buf_free(&b);
    }
}

static void
encoding_comes_back(void **state)
{
    struct buf out = BUF_INIT(4096), back = BUF_INIT(4096);
    char all[255];
    (void)state;

    for (size_t i = 0; i < sizeof(all); i++)
        all[i] = (char)(i + 1);
    assert_int_equal(quote_encode(&out, (struct str){ all, sizeof(all) }), 0);
    for (size_t i = 0; i < out.n; i++)
        assert_true(out.p[i] > 0x20 && out.p[i] < 0x7f);
    assert_int_equal(quote_decode(&back, (struct str){ (char *)out.p, out.n }), 0);
    assert_int_equal(back.n, sizeof(all));
    assert_memory_equal(back.p, all, sizeof(all));
    static const char *const bad[] = { "%", "%4", "%00", "%zz", "%AB", "a b", "a\n", "\xff" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(quote_decode(&back, str_of(bad[i])), -1);
    buf_free(&out);
    buf_free(&back);
}

static void
terminal_is_not_obeyed(void **state)
{
    static const char text[] = "ok\t\x1b]0;title\x07\x7f\r\xc2\x9b" "1m \xc3\xa4\n";
    struct buf out = BUF_INIT(4096);
    (void)state;

    assert_int_equal(patch_visible(&out, (const uint8_t *)text, sizeof(text) - 1), 0);
    for (size_t i = 0; i < out.n; i++)
        assert_true(out.p[i] >= 0x20 || out.p[i] == '\t' || out.p[i] == '\n');
    assert_int_equal(buf_nul(&out), 0);
    assert_string_equal((char *)out.p, "ok\t^[]0;title^G^?^M<U+009B>1m \xc3\xa4\n");
    buf_free(&out);
}

/* What moves other characters, has no width or is no keyboard's (issue 13, A4): in content and in names. */
static void
unseen_is_shown(void **state)
{
    static const struct { const char *text, *shown; } rows[] = {
        { "a\xe2\x80\xae" "b", "a<U+202E>b" }, { "\xe2\x81\xa6x", "<U+2066>x" }, { "\xe2\x81\xa9", "<U+2069>" },
        { "x\xe2\x80\x8by", "x<U+200B>y" }, { "\xe2\x80\x8d", "<U+200D>" }, { "\xef\xbb\xbf", "<U+FEFF>" },
        { "\xd8\x9c", "<U+061C>" }, { "\xc2\xad", "<U+00AD>" }, { "\xc2\xa0", "<U+00A0>" }, { "\xe2\x81\xa0", "<U+2060>" },
        { "\xf3\xa0\x81\x81", "<U+E0041>" }, { "\xef\xb8\x8f", "<U+FE0F>" }, { "\xe3\x85\xa4", "<U+3164>" },
        { "\x9b" "2J", "<9B>2J" }, { "\xe2\x80", "<E2><80>" }, { "\xed\xa0\x80", "<ED><A0><80>" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf out = BUF_INIT(256);
        assert_false(quote_harmless(str_of(rows[i].text)));
        assert_int_equal(patch_visible(&out, (const uint8_t *)rows[i].text, strlen(rows[i].text)), 0);
        assert_int_equal(buf_nul(&out), 0);
        assert_string_equal((char *)out.p, rows[i].shown);
        buf_reset(&out);
        assert_int_equal(quote_name(&out, "", str_of(rows[i].text)), 0);
        for (size_t k = 0; k < out.n; k++)
            assert_true(out.p[k] >= 0x20 && out.p[k] < 0x7f);
        buf_free(&out);
    }
    assert_true(quote_harmless(STR_LIT("\xc3\xa4 \xe4\xb8\xad \xf0\x9f\x98\x80")));
}

static void
journal_comes_back(void **state)
{
    struct journal j = { .in_project = true, .stage = ".cloche-apply-0011", .v = NULL }, back;
    const struct step a = { .kind = STEP_OVER, .slot = 7, .new_ino = UINT64_MAX, .old_ino = 5, .old_mode = 040755,
                            .new_mode = 0100644 };
    const struct step b = { .kind = STEP_REMOVE, .slot = 8, .old_ino = 9 };
    struct buf text = BUF_INIT(65536);
    (void)state;

    assert_int_equal(journal_add(&j, &a, "dir/with\nnewline \xff", NULL), 0);
    assert_int_equal(journal_add(&j, &b, "x", NULL), 0);
    assert_int_equal(journal_format(&j, true, &text), 0);
    assert_true(journal_parse((char *)text.p, text.n, &back));
    assert_true(back.in_project);
    assert_string_equal(back.stage, j.stage);
    assert_int_equal(back.n, 2);
    assert_string_equal(back.v[0].path, "dir/with\nnewline \xff");
    assert_int_equal(back.v[0].kind, STEP_OVER);
    assert_int_equal(back.v[0].slot, 7);
    assert_true(back.v[0].new_ino == UINT64_MAX);
    assert_int_equal(back.v[0].old_mode, 040755);
    assert_int_equal(back.v[1].kind, STEP_REMOVE);
    journal_free(&back);
    /* cut anywhere it is no journal */
    for (size_t n = 0; n < text.n; n++)
        assert_false(journal_parse((char *)text.p, n, &back));
    buf_free(&text);
    journal_free(&j);
}

static void
journal_refuses(void **state)
{
    static const char *const bad[] = {
        "", "end 0\n", "cloche-apply 2 state stage\nend 0\n", "cloche-apply 1 elsewhere stage\nend 0\n",
        "cloche-apply 1 state ..\nend 0\n", "cloche-apply 1 state a/b\nend 0\n",
        "cloche-apply 1 state stage\nend 1\n", "cloche-apply 1 state stage\nend 0\nmore\n",
        "cloche-apply 1 state stage\nnew 0 1 0 0 0 ../x\nend 1\n",
            "cloche-apply 1 state stage\nnew 0 1 0 0 0 /x\nend 1\n",
        "cloche-apply 1 state stage\nnew 0 1 0 0 0 a//b\nend 1\n",
            "cloche-apply 1 state stage\nnew 0 1 0 0 0 a/./b\nend 1\n",
        "cloche-apply 1 state stage\nnew 0 1 0 0 0 \nend 1\n", "cloche-apply 1 state stage\nnew -1 1 0 0 0 a\nend 1\n",
        "cloche-apply 1 state stage\nold 0 1 0 0 0 a\nend 1\n",
            "cloche-apply 1 state stage\nnew 0 1 0 99999999 0 a\nend 1\n",
    };
    struct journal j;
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (journal_parse(bad[i], strlen(bad[i]), &j))
            fail_msg("row %zu", i);
    assert_true(journal_parse("cloche-apply 1 state stage\nend 0\n", 33, &j));
    journal_free(&j);
}

/* What a user adds counts wherever it is, also a name that is a home's among the built-in ones. */
static void
given_names(void **state)
{
    static const char *const names[] = { ".bashrc", ".config/fish", ".zshrc", ".config/own" };
    static const struct protect rules = { names, ARRAY_LEN(names), NULL, 0, 2 };

    (void)state;
    assert_int_equal(protect_test(&rules, STR_LIT("a/.bashrc"), false), PROTECT_NOT);
    assert_int_equal(protect_test(&rules, STR_LIT("a/.config/fish"), false), PROTECT_NOT);
    assert_int_equal(protect_test(&rules, STR_LIT("a/.zshrc"), false), PROTECT_AT);
    assert_int_equal(protect_test(&rules, STR_LIT("node_modules/a/.config/own/x"), true), PROTECT_AT);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(given_names),
        cmocka_unit_test(protected_names), cmocka_unit_test(names_of_a_home),
        cmocka_unit_test(what_is_protected_step_by_step),
        cmocka_unit_test(links_that_leave), cmocka_unit_test(names_for_people),
        cmocka_unit_test(encoding_comes_back), cmocka_unit_test(terminal_is_not_obeyed), cmocka_unit_test(unseen_is_shown),
        cmocka_unit_test(journal_comes_back), cmocka_unit_test(journal_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
