/* match/git_config_add: what of a sandbox's copy of a configuration comes to the owner's (issue 18, 10 v) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "match/git_config_add.h"

#define OWNER "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://h/a\n[branch \"main\"]\n\tremote = origin\n" \
              "\tmerge = refs/heads/main\n[branch \"old\"]\n\tvscode-merge-base = x\n"

struct said {
    char kept[512], left[512];
};

static void
note(void *ctx, struct str key, bool kept)
{
    struct said *s = ctx;
    char *to = kept ? s->kept : s->left;
    size_t used = strlen(to);

    if (used + key.n + 2 < sizeof(s->kept)) {
        memcpy(to + used, key.p, key.n);
        memcpy(to + used + key.n, " ", 2);
    }
}

static int
add_beside(const char *base, const char *copy, const char *now, const char *elsewhere, struct buf *out, struct said *said)
{
    *said = (struct said){ "", "" };
    return git_config_add(str_of(base), str_of(copy),
                          &(struct git_config_owner){ .now = str_of(now), .elsewhere = str_of(elsewhere) }, out, note, said);
}

static int
add(const char *base, const char *copy, const char *now, struct buf *out, struct said *said)
{
    return add_beside(base, copy, now, "", out, said);
}

static void
what_is_added(void **state)
{
    static const struct { const char *copy, *want, *left; } rows[] = {
        { OWNER, "", "" },
        { OWNER "[remote \"fork\"]\n url = https://h/b\n fetch = +refs/heads/*:refs/remotes/fork/*\n",
          "[remote \"fork\"]\n\tskipFetchAll = true\n\turl = \"https://h/b\"\n\tfetch = \"+refs/heads/*:refs/remotes/fork/*\"\n", "" },
        { OWNER "[branch \"new\"]\nremote = origin\nmerge = refs/heads/new\n",
          "[branch \"new\"]\n\tremote = \"origin\"\n\tmerge = \"refs/heads/new\"\n", "" },
        { OWNER "[branch \"old\"]\nremote = origin\n", "[branch \"old\"]\n\tremote = \"origin\"\n", "" },
        { OWNER "[remote \"r\"]\nurl = git@h:a\nfetch = +refs/heads/m/n:refs/remotes/r/m/n\ntagopt = --tags\n",
          "[remote \"r\"]\n\tskipFetchAll = true\n\turl = \"git@h:a\"\n\tfetch = \"+refs/heads/m/n:refs/remotes/r/m/n\"\n"
          "\ttagopt = \"--tags\"\n", "" },
        { OWNER "[branch \"a\"]\ndescription = \"x \\\"; # \\n\\ty\\\\\"\n",
          "[branch \"a\"]\n\tdescription = \"x \\\"; # \\n\\ty\\\\\"\n", "" },
        /* what is there stays, and gets no second value */
        { "[core]\n\tbare = false\n", "",
          "remote.origin.url branch.main.remote branch.main.merge branch.old.vscode-merge-base " },
        { OWNER "[remote \"origin\"]\nurl = https://evil/\n", "", "remote.origin.url " },
        { OWNER "[remote \"origin\"]\npushurl = https://evil/\n", "", "remote.origin.pushurl " },
        { OWNER "[branch \"main\"]\nremote = https://evil/\nmerge = x\n", "", "branch.main.remote branch.main.merge " },
        { OWNER "[branch \"old\"]\npushremote = evil\n", "", "branch.old.pushremote " },
        /* harmless in a repository of the sandbox's own, and nobody's business here */
        { OWNER "[user]\nname = x\n", "", "user.name " },
        { OWNER "[core]\nworktree = ..\nbare = true\n", "", "core.worktree core.bare " },
        { OWNER "[remote]\npushdefault = evil\n", "", "remote.pushdefault " },
        /* what runs something */
        { OWNER "[core]\nfsmonitor = evil\n", "", "core.fsmonitor " },
        { OWNER "[include]\npath = x\n", "", "include.path " },
        { OWNER "[alias]\nst = !evil\n", "", "alias.st " },
        { OWNER "[remote \"x\"]\nurl = ext::sh -c evil\nfetch = a\n", "", "remote.x.url remote.x.fetch " },
        { OWNER "[remote \"x\"]\nurl = ssh://-oProxyCommand=evil/x\n", "", "remote.x.url " },
        { OWNER "[remote \"x\"]\nurl = ssh://[-oProxyCommand=evil]/x\n", "", "remote.x.url " },
        { OWNER "[remote \"x\"]\nurl = \"[-oProxyCommand=evil]:x\"\n", "", "remote.x.url " },
        { OWNER "[remote \"x\"]\nurl = -oProxyCommand=evil:x\n", "", "remote.x.url " },
        { OWNER "[remote \"x\"]\nurl = https://h/b\nuploadpack = evil\n", "", "remote.x.url remote.x.uploadpack " },
        { OWNER "[remote \"x\"]\nurl = https://h/b\nvcs = evil\n", "", "remote.x.url remote.x.vcs " },
        { OWNER "[remote \"ext::evil\"]\nurl = https://h/b\n", "", "remote.ext::evil.url " },
        { OWNER "[url \"ext::evil \"]\ninsteadof = https://\n", "", "url.ext::evil .insteadof " },
        { OWNER "[submodule \"x\"]\nupdate = !evil\nurl = a\n", "", "submodule.x.update submodule.x.url " },
        { OWNER "[submodule \"../x\"]\nurl = a\n", "", "submodule.../x.url " },
        { OWNER "[branch \"x\"]\nremote = ext::evil\n", "", "branch.x.remote " },
        { OWNER "[credential]\nhelper = !evil\n", "", "credential.helper " },
        /* submodules are the owner's to begin */
        { OWNER "[submodule \"lib\"]\nactive = true\nurl = https://h/x\n", "", "submodule.lib.active submodule.lib.url " },
        /* what would lead the owner's git elsewhere */
        { OWNER "[branch \"old\"]\nremote = fork\n", "", "branch.old.remote " },
        { OWNER "[branch \"old\"]\nremote = .\nmerge = refs/heads/old\n", "", "branch.old.remote branch.old.merge " },
        { OWNER "[branch \"old\"]\nremote = origin\nmerge = refs/heads/main\n", "", "branch.old.remote branch.old.merge " },
        { OWNER "[branch \"new\"]\nrebase = interactive\n", "", "branch.new.rebase " },
        { OWNER "[branch \"new\"]\ngh-merge-base = x\n", "", "branch.new.gh-merge-base " },
        { OWNER "[branch \"\told\"]\nremote = origin\n", "", "branch.\told.remote " },
        { OWNER "[branch \"a\\\"b\"]\nremote = origin\n", "", "branch.a\"b.remote " },
        { OWNER "[branch \"-x\"]\nremote = origin\n", "", "branch.-x.remote " },
        { OWNER "[branch \"new\"]\ndescription = \xc2\x9b\n", "", "branch.new.description " },
        { OWNER "[remote \"x\"]\nurl = ../other\n", "", "remote.x.url " },
        { OWNER "[remote \"x\"]\nurl = /home/other\n", "", "remote.x.url " },
        { OWNER "[remote \"x\"]\nurl = ./a:b\n", "", "remote.x.url " },
        { OWNER "[remote \"x\"]\nurl = file:///home/other\n", "", "remote.x.url " },
        { OWNER "[remote \"x\"]\npushurl = other\n", "", "remote.x.pushurl " },
        { OWNER "[remote \"x\"]\nurl = https://h/\xc2\x9b\n", "", "remote.x.url " },
        { OWNER "[remote \".\"]\nurl = https://h/x\n", "", "remote...url " },
        { OWNER "[remote \"..\"]\nurl = https://h/x\n", "", "remote....url " },
        { OWNER "[remote \"a/b\"]\nurl = https://h/x\n", "", "remote.a/b.url " },
        { OWNER "[remote \"https://h/a\"]\nurl = https://h/x\n", "", "remote.https://h/a.url " },
        { OWNER "[remote \"Origin\"]\nurl = https://h/x\n", "", "remote.Origin.url " },
        { OWNER "[remote \"x.lock\"]\nurl = https://h/x\n", "", "remote.x.lock.url " },
        { OWNER "[remote \"x\"]\nurl = https://h/x\nfetch = +refs/heads/*:refs/heads/*\n", "", "remote.x.url remote.x.fetch " },
        { OWNER "[remote \"x\"]\nurl = https://h/x\nfetch = +refs/heads/*:refs/remotes/origin/*\n", "",
          "remote.x.url remote.x.fetch " },
        { OWNER "[remote \"x\"]\nurl = https://h/x\nfetch = +refs/heads/a..b:refs/remotes/x/a..b\n", "",
          "remote.x.url remote.x.fetch " },
        { OWNER "[remote \"x\"]\nurl = https://h/x\ntagopt = --upload-pack=x\n", "", "remote.x.url remote.x.tagopt " },
        { OWNER "[remote \"x\"]\nurl = https://h/x\nskipfetchall = false\n", "", "remote.x.url remote.x.skipfetchall " },
    };
    struct said said;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_buf struct buf out = BUF_INIT(GIT_CONFIG_ADD_ROOM);

        if (add(OWNER, rows[i].copy, OWNER, &out, &said) != 0)
            fail_msg("not read: %s", rows[i].copy);
        if (buf_nul(&out) != 0 || strcmp((const char *)out.p, rows[i].want) != 0 || strcmp(said.left, rows[i].left) != 0)
            fail_msg("%s\nadded: %s\nleft: %s", rows[i].copy, (const char *)out.p, said.left);
    }
}

/* The owner's file may be another by now. */
static void
beside_the_owner(void **state)
{
    static const char fork[] = "[remote \"fork\"]\n\turl = \"https://h/b\"\n";
    cleanup_buf struct buf out = BUF_INIT(GIT_CONFIG_ADD_ROOM);
    struct said said;

    (void)state;
    /* the same is there: nothing to say */
    assert_int_equal(add("", fork, fork, &out, &said), 0);
    assert_true(out.n == 0 && said.left[0] == '\0');
    /* another one of that name */
    assert_int_equal(add("", fork, "[remote \"fork\"]\nurl = https://mine\n", &out, &said), 0);
    assert_true(out.n == 0);
    assert_string_equal(said.left, "remote.fork.url ");
    /* what the owner removed meanwhile does not come back */
    assert_int_equal(add(fork, fork, "", &out, &said), 0);
    assert_true(out.n == 0);
    /* a file without an end of line, and one that ends within a value, or a line that goes on */
    assert_int_equal(add("", fork, "[a]\nb = c", &out, &said), 0);
    assert_true(out.n > 1 && out.p[0] == '\n');
    buf_reset(&out);
    assert_int_equal(add("", fork, "[a]\nb = c\\", &out, &said), -1);
    buf_reset(&out);
    assert_int_equal(add("", fork, "[a]\nb = \"c", &out, &said), -1);
    buf_reset(&out);
    /* a comment that would go on is none */
    assert_int_equal(add("", fork, "[a]\nb = c # \\", &out, &said), 0);
    buf_reset(&out);
    /* a copy that git would not read either */
    assert_int_equal(add("", "[a\n", "", &out, &said), -1);
}

/* The rest of the owner's configuration counts as much, and where git goes by itself stays as it is. */
static void
where_git_goes(void **state)
{
#define FORK "[remote \"fork\"]\nurl = https://h/b\n"
#define ORIGIN "[remote \"origin\"]\nurl = https://h/a\n"
#define FOLLOW(remote) "[branch \"m\"]\nremote = " remote "\nmerge = refs/heads/m\n"
    static const struct { const char *now, *elsewhere, *more; bool added; } rows[] = {
        { "", "", FORK, true },
        { "", "", ORIGIN, true },
        { "", "", FORK FOLLOW("fork"), false },
        { "", "[remote]\npushDefault = fork\n", FORK, false },
        { "", "[alias]\npf = push fork HEAD\n", FORK, false },
        { "", "[alias]\npf = \"!git push 'Fork'\"\n", FORK, false },
        { "", "[user]\nname = fork\n[url \"https://h/\"]\ninsteadof = fork:\n", FORK, true },
        { "", "[remotes]\nall = a fork\n", FORK, false },
        { "[branch \"x\"]\nremote = fork\n", "", FORK, false },
        { "", "[remote \"fork\"]\nprune = true\n", FORK, false },
        { "", FORK, FOLLOW("fork"), true },
        { "[remote \"up\"]\nurl = https://h/c\n", "", FORK, false },
        { "[remote \"up\"]\nurl = https://h/c\n", "", ORIGIN, false },
        { "[remote \"up\"]\nurl = https://h/c\n", "", FOLLOW("up"), true },
        { "[remote \"up\"]\nurl = https://h/c\nskipFetchAll = true\n", "", FOLLOW("up"), false },
        { ORIGIN, "", FORK, true },
        { ORIGIN, "", FOLLOW("origin"), true },
        { ORIGIN "skipFetchAll\n", "", FOLLOW("origin"), false },
        { ORIGIN FORK, "", FOLLOW("origin"), true },
        { "", "[url \"git@h:\"]\ninsteadof = https://h/\n", FORK, true },
        { "", "[url \"/srv/\"]\ninsteadof = https://h/\n", FORK, false },
        { "", "[url \"file:///srv/\"]\npushinsteadof = https://\n", FORK, false },
        { "[url \"ext::sh -c \"]\ninsteadof = https:\n", "", FORK, false },
        { "", "[url \"x::\"]\ninsteadof = https:\n", FORK, false },
        { "", "[url \"/srv/\"]\ninsteadof = https://other/\n", FORK, true },
        { "", "[includeIf \"hasconfig:remote.*.url:https://h/**\"]\npath = x\n", FORK, false },
        { "[includeIf \"hasconfig:remote.*.url:**/b\"]\npath = x\n", "", FORK, false },
        { "", "[includeIf \"hasconfig:remote.*.url:https://work/**\"]\npath = x\n", FORK, true },
        { "", "[includeIf \"hasconfig:new:https://work/**\"]\npath = x\n", FORK, false },
        { "", "[includeIf \"gitdir:~/work/\"]\npath = x\n", FORK, true },
        { ORIGIN FORK ORIGIN, "", FOLLOW("fork"), false },
        { "[remote \"up\"]\nurl = https://h/c\n" FORK, "", FOLLOW("origin"), false },
        { ORIGIN, "[branch \"m\"]\nrebase = true\n", FOLLOW("origin"), false },
        { ORIGIN, "[branch \"m\"]\npushRemote = x\n", FOLLOW("origin"), false },
        { ORIGIN, "[branch \"M\"]\npushRemote = x\n", FOLLOW("origin"), true },
    };
    struct said said;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_buf struct buf out = BUF_INIT(GIT_CONFIG_ADD_ROOM), copy = BUF_INIT(4096);

        buf_printf(&copy, "%s%s", rows[i].now, rows[i].more);
        assert_int_equal(buf_nul(&copy), 0);
        assert_int_equal(add_beside(rows[i].now, (const char *)copy.p, rows[i].now, rows[i].elsewhere, &out, &said), 0);
        if ((said.left[0] == '\0') != rows[i].added)
            fail_msg("row %zu: added %s, left %s", i, said.kept, said.left);
    }
}

static void
bounds(void **state)
{
    cleanup_buf struct buf copy = BUF_INIT(1 << 20), out = BUF_INIT(GIT_CONFIG_ADD_ROOM);
    struct said said = { "", "" };
    size_t lines = 0;

    (void)state;
    for (int i = 0; i < 2 * GIT_CONFIG_ADD_MAX; i++)
        buf_printf(&copy, "[branch \"b%d\"]\nremote = origin\n", i);
    assert_int_equal(git_config_add(STR_LIT(""), (struct str){ (const char *)copy.p, copy.n },
                                    &(struct git_config_owner){ .now = STR_LIT("[remote \"origin\"]\nurl = x\n"),
                                                                .elsewhere = STR_LIT("") }, &out, note, &said), 0);
    for (size_t i = 0; i < out.n; i++)
        lines += out.p[i] == '\n';
    assert_int_equal(lines, 2 * GIT_CONFIG_ADD_MAX);
}

static bool
is_there(void *ctx, const char *name)
{
    return strcmp(name, ctx) == 0;
}

/* A remote's name that is something else already, and lines that old versions of git would read as two. */
static void
names_and_lines(void **state)
{
    static char path[] = "here";
    static const char *const names[] = { "here", "x.git", "there", "x.git.y" };
    cleanup_buf struct buf copy = BUF_INIT(1 << 20), out = BUF_INIT(GIT_CONFIG_ADD_ROOM);
    struct said said = { "", "" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        buf_printf(&copy, "[remote \"%s\"]\nurl = https://h/x\n", names[i]);
    for (int n = 900; n < 1100; n += 100)
        buf_printf(&copy, "[branch \"b%d\"]\ndescription = \"%0*d\"\n", n, n, 0);
    for (int i = 0; i < 2; i++) {
        buf_printf(&copy, "[branch \"c%d\"]\ndescription = \"", i);
        for (int k = 0; k < 400 + i * 200; k++)
            buf_puts(&copy, "\\\"");
        buf_puts(&copy, "\"\n");
    }
    assert_int_equal(git_config_add(STR_LIT(""), (struct str){ (const char *)copy.p, copy.n },
                                    &(struct git_config_owner){ .now = STR_LIT(""), .elsewhere = STR_LIT(""),
                                                                .is_taken = is_there, .ctx = path }, &out, note, &said), 0);
    assert_string_equal(said.left, "remote.here.url remote.x.git.url branch.b1000.description branch.c1.description ");
}

/* The owner's file is locked meanwhile: it must not take long, whatever was written inside. */
static void
pace(void **state)
{
    cleanup_buf struct buf now = BUF_INIT(1 << 20), copy = BUF_INIT(1 << 20), out = BUF_INIT(GIT_CONFIG_ADD_ROOM);
    struct said said = { "", "" };
    clock_t began;

    (void)state;
    for (int i = 0; i < 5000; i++)
        buf_printf(&now, "[branch \"b%d\"]\nremote = origin\nmerge = refs/heads/b%d\n", i, i);
    for (int i = 0; i < 10; i++)
        buf_printf(&now, "[url \"https://x%d/\"]\ninsteadof = y%d:\n", i, i);
    for (int i = 0; copy.n < (1 << 20) - 100; i++)
        buf_printf(&copy, "[remote \"r%d\"]\nurl = https://h\n", i);
    began = clock();
    assert_int_equal(git_config_add(STR_LIT(""), (struct str){ (const char *)copy.p, copy.n },
                                    &(struct git_config_owner){ .now = { (const char *)now.p, now.n },
                                                                .elsewhere = STR_LIT("") }, &out, note, &said), 0);
    assert_true(clock() - began < 5 * CLOCKS_PER_SEC);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_added), cmocka_unit_test(beside_the_owner), cmocka_unit_test(where_git_goes), cmocka_unit_test(bounds),
        cmocka_unit_test(names_and_lines), cmocka_unit_test(pace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
