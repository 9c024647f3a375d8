/* match/git_config_add: what of a sandbox's copy of a configuration comes to the owner's (issue 18, 10 v) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

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
add(const char *base, const char *copy, const char *now, struct buf *out, struct said *said)
{
    *said = (struct said){ "", "" };
    return git_config_add(str_of(base), str_of(copy), str_of(now), out, note, said);
}

static void
what_is_added(void **state)
{
    static const struct { const char *copy, *want, *left; } rows[] = {
        { OWNER, "", "" },
        { OWNER "[remote \"fork\"]\n url = https://h/b\n fetch = +refs/heads/*:refs/remotes/fork/*\n",
          "[remote \"fork\"]\n\turl = \"https://h/b\"\n\tfetch = \"+refs/heads/*:refs/remotes/fork/*\"\n", "" },
        { OWNER "[branch \"new\"]\nremote = origin\nmerge = refs/heads/new\n",
          "[branch \"new\"]\n\tremote = \"origin\"\n\tmerge = \"refs/heads/new\"\n", "" },
        { OWNER "[branch \"old\"]\nremote = origin\n", "[branch \"old\"]\n\tremote = \"origin\"\n", "" },
        { OWNER "[submodule \"lib\"]\nactive = true\nurl = ../lib\n",
          "[submodule \"lib\"]\n\tactive = \"true\"\n\turl = \"../lib\"\n", "" },
        { OWNER "[branch \"a\\\"b\\\\c\"]\ndescription = \"x \\\"; # \\n\\ty\\\\\"\n",
          "[branch \"a\\\"b\\\\c\"]\n\tdescription = \"x \\\"; # \\n\\ty\\\\\"\n", "" },
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

static void
bounds(void **state)
{
    cleanup_buf struct buf copy = BUF_INIT(1 << 20), out = BUF_INIT(GIT_CONFIG_ADD_ROOM);
    struct said said = { "", "" };
    size_t lines = 0;

    (void)state;
    for (int i = 0; i < 2 * GIT_CONFIG_ADD_MAX; i++)
        buf_printf(&copy, "[branch \"b%d\"]\nremote = origin\n", i);
    assert_int_equal(git_config_add(STR_LIT(""), (struct str){ (const char *)copy.p, copy.n }, STR_LIT(""), &out, note,
                                    &said), 0);
    for (size_t i = 0; i < out.n; i++)
        lines += out.p[i] == '\n';
    assert_int_equal(lines, 2 * GIT_CONFIG_ADD_MAX);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_added), cmocka_unit_test(beside_the_owner), cmocka_unit_test(bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
