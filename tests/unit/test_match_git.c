/* match/git_config, match/git_index, match/git_shape: which of git's state runs programs (issue 13, A1): the reader of configurations
 * beside the real git, the list of harmless keys, todo lists, option files, and the shape of a repository */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "match/git_config.h"
#include "match/git_index.h"
#include "match/git_shape.h"

#define N(a) ARRAY_LEN(a)
#define L(s) { s, sizeof(s) - 1 }

static void
harmless_keys(void **state)
{
    /* as git itself writes them */
    static const char *const rows[] = {
        "",
        "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n",
        "[remote \"origin\"]\n\turl = https://example.org/a.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n",
        "[remote \"origin\"]\r\n\turl = git@example.org:a/b.git\r\n",
        "[remote \"o\"]\n url = ../other\n[remote \"p\"]\n url = /srv/git/a.git\n url = ssh://u@h:22/a\n",
        "[remote \"o\"]\n url = ssh://[::1]/a\n",
        "[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n\trebase = true\n",
        "[submodule \"lib/x\"]\n\tactive = true\n\turl = ../x\n\tupdate = checkout\n",
        "[user]\n\tname = A \"B\" C\n\temail = a@example.org # mine\n",
        "\xef\xbb\xbf[core]\n bare\n",
        "[core] bare = true\n[CORE] BARE = yes ; x",
        "[core]\n\tfsmonitor = false\n",
        "[extensions]\n\tworktreeConfig = true\n\tobjectFormat = sha256\n",
        "[color \"diff\"]\n\tmeta = bold \"#ff0000\"\n[advice]\n\tdetachedHead = false\n",
        "[pull]\nrebase=false\n[init]\ndefaultBranch=main\n[gc]\nauto=0\n[index]\nversion=4\n",
        "[core]\n\tworktree = ..\n", "[core]\n\tworktree = ../lib/x\n", "[core]\n\tworktree = sub\n",
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct git_config_fault fault;
        if (git_config_judge(str_of(rows[i]), 1, &fault) != 0)
            fail_msg("%s: %s", rows[i], fault.key);
    }
}

static void
harmful_keys(void **state)
{
    static const struct { struct str text; const char *key; } rows[] = {
        { L("[core]\nfsmonitor = ./x\n"), "core.fsmonitor" },
        { L("[core]\nfsmonitor = true\n"), "core.fsmonitor" },      /* starts a daemon */
        { L("[core]\nfsmonitor\n"), "core.fsmonitor" },
        { L("[core]bare=true\n[core]fsMonitor=x"), "core.fsmonitor" },
        { L("[core]\nbare = \\\nfalse\n fsmonitor = x\n"), "core.fsmonitor" },
        { L("[core]\nbare = false # \\\nfsmonitor = x\n"), "core.fsmonitor" },
        { L("[core]\nsshCommand = x\n"), "core.sshcommand" }, { L("[core]\nhooksPath = x\n"), "core.hookspath" },
        { L("[core]\npager = x\n"), "core.pager" }, { L("[core]\neditor = x\n"), "core.editor" },
        { L("[core]\naskPass = x\n"), "core.askpass" }, { L("[core]\ngitProxy = x\n"), "core.gitproxy" },
        { L("[core]\nalternateRefsCommand = x\n"), "core.alternaterefscommand" },
        { L("[core]\nattributesFile = x\n"), "core.attributesfile" },
        { L("[core]\nsharedRepository = world\n"), "core.sharedrepository" },
        { L("[core]\nsharedRepository = 0666\n"), "core.sharedrepository" },
        { L("[core]\nworktree = /home/u\n"), "core.worktree" }, { L("[core]\nworktree = ../../x\n"), "core.worktree" },
        { L("[core]\nworktree = a/../../x\n"), "core.worktree" }, { L("[core]\nworktree = ../..\n"), "core.worktree" },
        { L("[core \"x\"]\nbare = true\n"), "core.x.bare" }, { L("[core.x]\nbare = true\n"), "core.x.bare" },
        { L("[include]\npath = x\n"), "include.path" },
        { L("[includeIf \"gitdir:/\"]\npath = x\n"), "includeif.gitdir:/.path" },
        { L("[diff]\nexternal = x\n"), "diff.external" }, { L("[diff \"a\"]\ntextconv = x\n"), "diff.a.textconv" },
        { L("[filter \"a\"]\nclean = x\n"), "filter.a.clean" }, { L("[merge \"a\"]\ndriver = x\n"), "merge.a.driver" },
        { L("[alias]\nst = !x\n"), "alias.st" }, { L("[credential]\nhelper = !x\n"), "credential.helper" },
        { L("[gpg]\nprogram = x\n"), "gpg.program" }, { L("[commit]\ngpgSign = true\n"), "commit.gpgsign" },
        { L("[log]\nshowSignature = true\n"), "log.showsignature" },
        { L("[remote \"o\"]\nurl = ext::sh -c x\n"), "remote.o.url" },
        { L("[remote \"o\"]\nurl = \"\"ext::x\n"), "remote.o.url" },
        { L("[remote \"o\"]\nurl = -x\n"), "remote.o.url" }, { L("[remote \"o\"]\nurl = x://a\n"), "remote.o.url" },
        { L("[remote \"o\"]\nurl = ssh://-oProxyCommand=x/a\n"), "remote.o.url" },
        { L("[remote \"o\"]\nurl = \"https://a\\nb\"\n"), "remote.o.url" },
        { L("[remote \"o\"]\nurl\n"), "remote.o.url" },
        { L("[remote \"o\"]\nvcs = x\n"), "remote.o.vcs" }, { L("[remote \"o\"]\nuploadpack = x\n"), "remote.o.uploadpack" },
        { L("[remote \"ext::x\"]\npromisor = true\n"), "remote.ext::x.promisor" },
        { L("[branch \"m\"]\nremote = ext::x\n"), "branch.m.remote" },
        { L("[extensions]\npartialClone = ext::x\n"), "extensions.partialclone" },
        /* a look at it would fetch from there */
        { L("[extensions]\npartialClone = o\n"), "extensions.partialclone" },
        { L("[remote \"o\"]\nurl = https://h/x\npromisor = true\n"), "remote.o.promisor" },
        { L("[remote \"o\"]\npromisor\n"), "remote.o.promisor" },
        { L("[submodule \"a\"]\nupdate = !x\n"), "submodule.a.update" },
        { L("[submodule \"../a\"]\nurl = x\n"), "submodule.../a.url" },
        { L("[submodule \"a\"]\npath = ../x\n"), "submodule.a.path" },
        { L("[protocol \"ext\"]\nallow = always\n"), "protocol.ext.allow" },
        { L("[http]\nproxy = x\n"), "http.proxy" }, { L("[url \"ext::x\"]\ninsteadOf = h\n"), "url.ext::x.insteadof" },
        { L("[sequence]\neditor = x\n"), "sequence.editor" }, { L("[pager]\nlog = x\n"), "pager.log" },
        { L("[feature]\nexperimental = true\n"), "feature.experimental" }, { L("[trailer \"a\"]\ncmd = x\n"), "trailer.a.cmd" },
        { L("[core]\nunheard-of = 1\n"), "core.unheard-of" },
        { L("[a \"\x1b]0;\"]\nb\n"), "a.?]0;.b" },
        /* not certainly read as git reads it */
        { L("[core]\nbare = true\0\n"), "" }, { L("[core]\rbare = true\n"), "" }, { L("bare = true\n"), "" },
        { L("[core\nbare = true\n"), "" }, { L("[core]\nbare = \"true\n"), "" }, { L("[core]\nbare = \\q\n"), "" },
        { L("[core]\nbare true\n"), "" }, { L("[core] x # y\n"), "" }, { L("[core \"x]\nbare\n"), "" },
        { L("[core \"x\" ]\nbare\n"), "" }, { L("[]\nbare\n"), "" }, { L("[core]\n1 = 2\n"), "" },
        { L("\xef\xbb[core]\nbare\n"), "" },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct git_config_fault fault;
        if (git_config_judge(rows[i].text, 1, &fault) != -1)
            fail_msg("taken for harmless: %s", rows[i].text.p);
        assert_string_equal(fault.key, rows[i].key);
    }
}

static void
paths(void **state)
{
    static const struct { const char *value, *want; } rows[] = {
        { "/a/b", "/a/b" }, { "~/b", "/home/u/b" }, { "~u/b/c", "/home/u/b/c" }, { "~u", NULL },
        { ":(optional)~u/b", "/home/u/b" }, { "b", "/base/b" }, { "", NULL },
        /* as of git 2.52 */
        { ":(optional)b", "/base/b" }, { ":(optional)~/b", "/home/u/b" }, { ":(optional)/b", "/b" }, { ":(optional)", NULL },
    };
    char out[64];

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        bool got = git_config_path(str_of(rows[i].value), "/home/u", "/base", out, sizeof(out));
        if (got != (rows[i].want != NULL) || (got && strcmp(out, rows[i].want) != 0))
            fail_msg("%s: %s", rows[i].value, got ? out : "nowhere");
    }
}

static void
limits(void **state)
{
    static char text[GIT_CONFIG_MAX + 64];
    struct git_config_fault fault;

    (void)state;
    memset(text, '\n', sizeof(text));
    assert_int_equal(git_config_judge((struct str){ text, GIT_CONFIG_MAX }, 1, NULL), 0);
    assert_int_equal(git_config_judge((struct str){ text, GIT_CONFIG_MAX + 1 }, 1, NULL), -1);
    int n = snprintf(text, sizeof(text), "[user]\nname = ");
    memset(text + n, 'x', GIT_CONFIG_VALUE_MAX);
    assert_int_equal(git_config_judge((struct str){ text, (size_t)n + GIT_CONFIG_VALUE_MAX }, 1, NULL), 0);
    text[n + GIT_CONFIG_VALUE_MAX] = 'x';
    assert_int_equal(git_config_judge((struct str){ text, (size_t)n + GIT_CONFIG_VALUE_MAX + 1 }, 1, &fault), -1);
    assert_string_equal(fault.key, "");
    n = snprintf(text, sizeof(text), "[a \"%0*d\"]\nb\n", GIT_CONFIG_KEY_MAX, 0);
    assert_int_equal(git_config_judge((struct str){ text, (size_t)n }, 1, &fault), -1);
    assert_string_equal(fault.key, "");
    n = snprintf(text, sizeof(text), "[a \"%0*d\"]\nb\n", 500, 0);
    assert_int_equal(git_config_judge((struct str){ text, (size_t)n }, 1, &fault), -1);
    assert_int_equal(strlen(fault.key), GIT_CONFIG_SAID_MAX);
}

/* --- the reader beside git --- */

/* `git config --list -z -f` on @text, into @out. Whether git took it; -1 when there is no git. */
static int
git_reads(int fd, const char *path, struct str text, struct buf *out)
{
    extern char **environ;
    const char *argv[] = { "git", "config", "--list", "-z", "-f", path, NULL };
    posix_spawn_file_actions_t files;
    int p[2], status;
    pid_t pid;

    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pwrite(fd, text.p, text.n, 0), (ssize_t)text.n);
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, p[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int r = posix_spawnp(&pid, "git", &files, NULL, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&files);
    close(p[1]);
    if (r == 0) {
        assert_int_equal(io_read_all(p[0], out), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
    }
    close(p[0]);
    return r == 0 ? WIFEXITED(status) && WEXITSTATUS(status) == 0 : -1;
}

/* What we read, in the form that git writes. Whether it was read to its end. */
static bool
we_read(struct str text, struct buf *out)
{
    struct git_config_reader r;
    struct git_config_entry e;
    int got;

    git_config_open(&r, text);
    while ((got = git_config_next(&r, &e)) > 0) {
        buf_append(out, e.key.p, e.key.n);
        if (e.has_value) {
            buf_puts(out, "\n");
            buf_append(out, e.value.p, e.value.n);
        }
        buf_put_u8(out, 0);
    }
    return got == 0;
}

/* Older versions of git write a blank for white space within a value. */
static void
blanks(struct buf *b)
{
    for (size_t i = 0; i < b->n; i++)
        b->p[i] = b->p[i] == '\t' ? ' ' : b->p[i];
}

static uint32_t seed;

static uint32_t
next(uint32_t n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
}

static struct str
random_file(char *to, size_t cap)
{
    static const struct str well[] = { L("[core]\n"), L("[remote \"a b\"]\n"), L("[x.Y]"), L("[x \"q\\\"\\\\\"]\r\n"),
        L("key = value\n"), L("Name-2=a  \t b ; c\n"), L("v = \"a # b\" c\n"), L("w = a\\\n b\n"), L("bare\n"),
        L("u = \\t\\n\\b\\\\\\\"\n"), L("# c\n"), L("\n"), L("  k =\n"), L("e = \"\"  x\"\"  \n"), L("s =  a \"\" \n") };
    static const struct str odd[] = { L("["), L("]"), L("\""), L("\\"), L("="), L("#"), L(";"), L("\n"), L("\r\n"), L("\t"),
        L(" "), L("a"), L("1"), L("."), L("-"), L("\xc3\xa9"), L("\xef\xbb\xbf"), L("\\q"), L("[core \"x"), L("_"), L("\r") };
    size_t n = next(8) == 0 ? 0 : (size_t)snprintf(to, cap, "[s]\n");
    uint32_t strange = next(3);

    for (uint32_t i = 2 + next(12); i > 0; i--) {
        struct str s = next(6) < strange ? odd[next(N(odd))] : well[next(N(well))];
        if (n + s.n > cap)
            break;
        memcpy(to + n, s.p, s.n);
        n += s.n;
    }
    return (struct str){ to, n };
}

static void
as_git_reads(void **state)
{
    int taken = 0, refused = 0;
    int fd = memfd_create("config", 0);
    char path[64], room[512];

    (void)state;
    assert_true(fd >= 0);
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
    for (seed = 13; taken + refused < 300;) {
        cleanup_buf struct buf git = BUF_INIT(1 << 16), ours = BUF_INIT(1 << 16);
        struct str text = random_file(room, sizeof(room));
        int theirs = git_reads(fd, path, text, &git);
        if (theirs < 0) {
            close(fd);
            skip();     /* no git here; the escape tests need one and say so */
        }
        bool read = we_read(text, &ours);
        blanks(&git);
        blanks(&ours);
        if (read && (!theirs || git.n != ours.n || (git.n > 0 && memcmp(git.p, ours.p, git.n) != 0)))
            fail_msg("git %s:\n%.*s\n", theirs ? "reads otherwise" : "refuses", (int)text.n, text.p);
        /* what only we refuse: a lone CR, and a key without a section */
        if (!read && theirs && memchr(text.p, '\r', text.n) == NULL && str_starts(text, STR_LIT("[s]")))
            fail_msg("git reads what we refuse:\n%.*s\n", (int)text.n, text.p);
        taken += read;
        refused += !read;
    }
    close(fd);
    assert_true(taken > 100 && refused > 50);
}

/* --- shape --- */

static void
places(void **state)
{
    (void)state;
    assert_int_equal(git_part_of(STR_LIT("HEAD")), GIT_PART_HEAD);
    assert_int_equal(git_part_of(STR_LIT("Objects")), GIT_PART_OBJECTS);
    assert_int_equal(git_part_of(STR_LIT("refs")), GIT_PART_REFS);
    assert_int_equal(git_part_of(STR_LIT("commondir")), GIT_PART_COMMONDIR);
    assert_int_equal(git_part_of(STR_LIT("HEAD.lock")), GIT_PART_NONE);
    assert_true(git_parts_place(GIT_PART_OBJECTS | GIT_PART_REFS));
    assert_true(git_parts_place(GIT_PART_HEAD | GIT_PART_COMMONDIR));
    assert_false(git_parts_place(GIT_PART_HEAD | GIT_PART_REFS));
    assert_false(git_parts_place(GIT_PART_COMMONDIR | GIT_PART_REFS));
    assert_false(git_parts_place(0));
}

static void
states(void **state)
{
    static const struct { const char *path; enum git_state want; } rows[] = {
        { "config", GIT_STATE_CONFIG }, { "Config.Worktree", GIT_STATE_CONFIG }, { "config.lock", GIT_STATE_CONFIG },
        { "hooks", GIT_STATE_HOOKS }, { "hooks/pre-commit", GIT_STATE_HOOK }, { "HOOKS/x", GIT_STATE_HOOK },
        { "hooks/pre-commit.sample", GIT_STATE_SAMPLE }, { "hooks/.sample", GIT_STATE_HOOK },
        { "hooks/a/b.sample", GIT_STATE_HOOK }, { "commondir", GIT_STATE_COMMONDIR }, { "gitdir", GIT_STATE_REDIRECT },
        { "rebase-merge", GIT_STATE_DIR }, { "rebase-merge/git-rebase-todo", GIT_STATE_TODO },
        { "sequencer/todo", GIT_STATE_TODO }, { "sequencer/opts", GIT_STATE_OPTION }, { "rebase-merge/done", GIT_STATE_NONE },
        { "rebase-merge/msgnum", GIT_STATE_OPTION }, { "rebase-apply/next", GIT_STATE_OPTION }, { "BISECT_NAMES", GIT_STATE_OPTION },
        { "msgnum", GIT_STATE_NONE }, { "next", GIT_STATE_NONE }, { "gitweb", GIT_STATE_DIR }, { "pid", GIT_STATE_SERVER },
        { "gitweb/lighttpd", GIT_STATE_SERVER }, { "gitweb/a/b", GIT_STATE_SERVER },
        { "rebase-apply/apply-opt", GIT_STATE_OPTION }, { "remotes/o", GIT_STATE_REMOTE },
        { "branches/a/b", GIT_STATE_REMOTE }, { "refs/heads/hooks/x", GIT_STATE_NONE }, { "modules/a/config", GIT_STATE_NONE },
        { "", GIT_STATE_NONE },
        { "index", GIT_STATE_INDEX }, { "Index", GIT_STATE_INDEX }, { "sharedindex.12ab", GIT_STATE_INDEX }, { "sharedindex.", GIT_STATE_NONE },
        { "Index.LOCK", GIT_STATE_INDEX }, { "index.lock.lock", GIT_STATE_INDEX },
        { "config.worktree.lock", GIT_STATE_CONFIG }, { "next-index-12.lock", GIT_STATE_INDEX },
        { "next-index-12.lock.lock", GIT_STATE_INDEX }, { "sharedindex_a1", GIT_STATE_INDEX },
        { "rebase-merge/git-rebase-todo.lock", GIT_STATE_TODO }, { "sequencer/opts.lock", GIT_STATE_OPTION },
        { "merge_rr.lock", GIT_STATE_RERERE }, { "hooks.lock", GIT_STATE_NONE },
        { "packed-refs.lock", GIT_STATE_NONE }, { ".lock", GIT_STATE_NONE }, { "refs/index.lock", GIT_STATE_NONE },
        { "judged-copy-0123456789abcdef", GIT_STATE_COPY }, { "rebase-merge/Judged-Copy-0123456789ABCDEF", GIT_STATE_COPY },
        { "judged-copy-12", GIT_STATE_NONE }, { "judged-copy-0123456789abcdef0", GIT_STATE_NONE }, { "judged-copy-0123456789abcdeg", GIT_STATE_NONE },
        { "refs/index", GIT_STATE_NONE },
        { "MERGE_RR", GIT_STATE_RERERE },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        if (git_state_of(str_of(rows[i].path)) != rows[i].want)
            fail_msg("%s", rows[i].path);
        assert_true((git_state_name(rows[i].want) == NULL) == (rows[i].want == GIT_STATE_NONE));
    }
    assert_false(git_state_harmless(GIT_STATE_HOOK, STR_LIT("pre-commit"), STR_LIT(""), 1, NULL));
    assert_true(git_state_harmless(GIT_STATE_RERERE, STR_LIT("MERGE_RR"), STR_LIT(""), 1, NULL));
    assert_false(git_state_harmless(GIT_STATE_RERERE, STR_LIT("MERGE_RR"), STR_LIT("1\ta"), 1, NULL));
    assert_true(git_state_harmless(GIT_STATE_OPTION, STR_LIT("strategy.lock"), STR_LIT("ort\n"), 1, NULL));
    assert_false(git_state_harmless(GIT_STATE_OPTION, STR_LIT("strategy.lock"), STR_LIT("../x\n"), 1, NULL));
    assert_false(git_state_harmless(GIT_STATE_COPY, STR_LIT("judged-copy-1"), STR_LIT(""), 1, NULL));
    assert_false(git_state_harmless(GIT_STATE_INDEX, STR_LIT("index"), STR_LIT(""), 1, NULL));
    assert_false(git_state_harmless(GIT_STATE_REMOTE, STR_LIT("o"), STR_LIT(""), 1, NULL));
    assert_true(git_state_harmless(GIT_STATE_SAMPLE, STR_LIT("a.sample"), STR_LIT("#!/bin/sh"), 1, NULL));
}

/* --- indexes, made by hand */

static void
put32(struct buf *b, uint32_t v)
{
    const unsigned char bytes[4] = { (unsigned char)(v >> 24), (unsigned char)(v >> 16), (unsigned char)(v >> 8), (unsigned char)v };

    buf_append(b, bytes, 4);
}

static void
zeros(struct buf *b, size_t n)
{
    while (n-- > 0)
        buf_append(b, "", 1);
}

static void
put_entry(struct buf *b, const char *path, uint32_t mode, size_t oid)
{
    size_t n = strlen(path), head = 42 + oid;

    zeros(b, 24);
    put32(b, mode);
    zeros(b, 12 + oid);
    const unsigned char flags[2] = { (unsigned char)(n >> 8), (unsigned char)n };
    buf_append(b, flags, 2);
    buf_append(b, path, n);
    zeros(b, ((head + n + 8) & ~(size_t)7) - head - n);
}

/* An index with @path and `z`, and what @more says behind them. */
static bool
judged_index(const char *path, uint32_t mode, size_t oid, struct str more)
{
    cleanup_buf struct buf b = BUF_INIT(1 << 16);

    buf_puts(&b, "DIRC");
    put32(&b, 2);
    put32(&b, 2);
    put_entry(&b, path, mode, oid);
    put_entry(&b, "z", 0100644, oid);
    buf_append(&b, more.p, more.n);
    zeros(&b, oid);
    return git_index_harmless((struct str){ (const char *)b.p, b.n }, oid);
}

static void
indexes(void **state)
{
    static const char *const paths[] = { "a", "a/b/c", "", "..a", "a..", ".github/x", ".gitignore", "x.git/HEAD", "a/.gitmodules", "git~2", ".git2",
        "\xc3\xa9/x", ".gi\xc3\xa9" };
    static const char *const bad[] = { ".git", ".git/hooks/x", "a/.GIT/config", "../x", "a/../../x", "a/..", "/etc/x", "a//b", "a/", "/", ".",
        "./a", "..", "GIT~1/x", ".git./x", ".git /x", ".git:x", ".git\\x", ".g\xe2\x80\x8cit/x", ".git\xe2\x80\x8c" };
    /* blocks and ends, as git writes them for threads; entries of `a` and `z` are 64 bytes each, from 12 on */
    static const struct { struct str more; bool want; } more[] = {
        { L("abcd\0\0\0\1x"), true }, { L("abcd\0\0\0\2x"), false }, { L("abc"), false },
        { L("IEOT\0\0\0\14\0\0\0\1\0\0\0\14\0\0\0\2"), true }, { L("IEOT\0\0\0\14\0\0\0\1\0\0\0\15\0\0\0\2"), false },
        { L("IEOT\0\0\0\14\0\0\0\1\0\0\0\14\0\0\0\1"), false }, { L("IEOT\0\0\0\14\0\0\0\1\0\0\0\14\0\0\0\3"), false },
        { L("IEOT\0\0\0\24\0\0\0\1\0\0\0\14\0\0\0\1\0\0\0\114\0\0\0\1"), true },
        { L("IEOT\0\0\0\24\0\0\0\1\0\0\0\14\0\0\0\1\0\0\0\74\0\0\0\1"), false }, { L("IEOT\0\0\0\4\0\0\0\1"), false },
        { L("EOIE\0\0\0\30\0\0\0\214" "01234567890123456789"), true }, { L("EOIE\0\0\0\30\0\0\0\114" "01234567890123456789"), false },
        { L("abcd\0\0\0\40" "EOIE\0\0\0\30\0\0\0\114" "01234567890123456789"), false }, { L("link\0\0\0\1x"), false },
    };

    (void)state;
    for (size_t oid = 20; oid <= 32; oid += 12) {
        for (size_t i = 0; i < N(paths); i++)
            if (!judged_index(paths[i], 0100644, oid, STR_LIT("")))
                fail_msg("%s", paths[i]);
        for (size_t i = 0; i < N(bad); i++)
            if (judged_index(bad[i], 0100644, oid, STR_LIT("")))
                fail_msg("%s", bad[i]);
        assert_true(judged_index("d/", 040000, oid, STR_LIT("")));
        assert_false(judged_index(".git/", 040000, oid, STR_LIT("")) || judged_index("d//", 040000, oid, STR_LIT("")));
        assert_false(judged_index("a/.GitModules", 0120000, oid, STR_LIT("")));
    }
    for (size_t i = 0; i < N(more); i++)
        if (judged_index("a", 0100644, 20, more[i].more) != more[i].want)
            fail_msg("extension %zu", i);
    assert_false(git_index_harmless(STR_LIT(""), 20) || git_index_harmless(STR_LIT("DIRC"), 20));
    assert_true(git_oid_bytes(STR_LIT("[extensions]\n\tobjectFormat = sha256\n")) == 32);
    assert_true(git_oid_bytes(STR_LIT("[core]\n\tbare = false\n")) == 20);
}

static void
work_trees(void **state)
{
    static const struct { const char *path; size_t modules, ups; } rows[] = {
        { "", 0, 0 }, { ".git", 0, 1 }, { "a", 0, 1 }, { "a/b/c/.git", 0, 1 }, { "a/modules/x", 0, 1 }, { ".git/modules", 2, 1 },
        { ".git/modules/a", 3, 3 }, { "x/y/.GIT/Modules/a/b", 4, 4 }, { ".git/modules/a/modules/b", 5, 5 },
        { ".git/modules/a/.git/modules/b", 3, 3 }, { ".git/x/modules/a", 0, 1 }, { "x.git/modules/a", 0, 1 },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++)
        if (git_modules_depth(str_of(rows[i].path)) != rows[i].modules || git_worktree_ups(str_of(rows[i].path)) != rows[i].ups)
            fail_msg("%s", rows[i].path);
}

static void
todos(void **state)
{
    static const struct { struct str text; bool want; } rows[] = {
        { L(""), true }, { L("pick 1234567 One\nreword 12 x\n# exec x\n\n  f 1\n\tdrop 2\n"), true },
        { L("label onto\nreset onto\nmerge -C 12 x # y\nupdate-ref refs/heads/a\nnoop\nbreak\n"), true },
        { L("pick 1 a\nexec touch x\n"), false }, { L("x touch x"), false }, { L("  \texec y"), false },
        { L("pick 1\r\nx\ty\r\n"), false }, { L("; pick 1\n"), false }, { L("pick 1\0\nexec y"), false },
        { L("pickx 1\n"), false }, { L("PICK 1\n"), false },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++)
        if (git_todo_harmless(rows[i].text) != rows[i].want)
            fail_msg("%s", rows[i].text.p);
}

static void
options(void **state)
{
    static const struct { const char *name; struct str text; bool want; } rows[] = {
        { "strategy", L("ort\n"), true }, { "strategy", L("ours"), true }, { "strategy", L("../../x\n"), false },
        { "strategy", L(""), false }, { "strategy", L("ort\nx\n"), false }, { "strategy", L("mine\n"), false },
        { "apply-opt", L("\n"), true }, { "apply-opt", L(" '-p1' '--whitespace=fix'\n"), true },
        { "apply-opt", L(" '--unsafe-paths'\n"), false }, { "apply-opt", L(" --unsafe-paths\n"), false },
        { "apply-opt", L(" '--build-fake-ancestor=../x'\n"), false }, { "apply-opt", L(" '--directory=../..'\n"), false },
        { "opts", L("[options]\n\tsignoff = true\n\tstrategy = ort\n"), true },
        { "opts", L("[options]\n\tstrategy = ../x\n"), false }, { "opts", L("[options]\n\tgpg-sign = x\n"), false },
        { "opts", L("[core]\n\tpager = x\n"), false },
        { "author-script", L("GIT_AUTHOR_NAME='A O'\\''B'\nGIT_AUTHOR_EMAIL='a@b'\nGIT_AUTHOR_DATE='@1 +0000'\n"), true },
        { "strategy_opts", L(" --theirs '--find-renames=50%' \"--subtree=a/b\"\n"), true }, { "strategy_opts", L(""), true },
        { "strategy_opts", L(" --x=$(y)\n"), false }, { "strategy_opts", L(" '--x' `y`\n"), false },
        { "strategy_opts", L(" --x; y\n"), false }, { "strategy_opts", L("y\n"), false }, { "strategy_opts", L("'-x''y'\n"), false },
        { "author-script", L("GIT_AUTHOR_NAME='A'; touch x\n"), false },
        { "author-script", L("GIT_AUTHOR_NAME=$(x)\n"), false }, { "author-script", L("PATH='x'\n"), false },
        { "author-script", L("GIT_AUTHOR_NAME='A\n"), false },
        { "msgnum", L("12\n"), true }, { "end", L("3"), true }, { "next", L("0001\n"), true }, { "last", L(""), true },
        { "msgnum", L("$(x)\n"), false }, { "end", L("3`x`\n"), false }, { "next", L("1\n\\w\n"), false }, { "last", L("3 \n"), false },
        { "BISECT_NAMES", L(" '--' 'a b' 'it'\\''s'\n"), true }, { "BISECT_NAMES", L("\n"), true }, { "BISECT_NAMES", L("; x\n"), false },
        { "BISECT_NAMES", L(" 'a' $(x)\n"), false }, { "BISECT_NAMES", L(" 'a\n"), false }, { "BISECT_NAMES", L("'a'\n; x\n"), false },
        { "BISECT_NAMES", L(" 'a'\\; x\n"), false },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++)
        if (git_state_harmless(GIT_STATE_OPTION, str_of(rows[i].name), rows[i].text, 1, NULL) != rows[i].want)
            fail_msg("%s: %s", rows[i].name, rows[i].text.p);
}

static void
own_files(void **state)
{
    static const char *const ours[] = { "index", "Index", "COMMIT_EDITMSG", "commit_editmsg", "FETCH_HEAD", "AUTO_MERGE",
        "HEAD", "packed-refs", "logs", "LOGS", "logs/HEAD", "logs/refs/heads/a/b", "refs/heads/a", "objects/info",
        "objects/ab/cd", "info/exclude", "worktrees", "worktrees/x", "modules/x/index", "rebase-merge/message",
        "sharedindex.abc", "rr-cache/x" };
    static const char *const others[] = { "", "a", "src/index", "src/logs/HEAD", "CLAUDE.md", "README.md", "node_modules",
        "index.html", "index/a", "COMMIT_EDITMSG/a", "logs2/a", "fsmonitor--daemon.ipc" };

    (void)state;
    for (size_t i = 0; i < N(ours); i++)
        if (!git_writes(str_of(ours[i])))
            fail_msg("%s", ours[i]);
    for (size_t i = 0; i < N(others); i++)
        if (git_writes(str_of(others[i])))
            fail_msg("%s", others[i]);
    assert_true(git_writes_below(STR_LIT("logs/refs")) && git_writes_below(STR_LIT("modules")));
    assert_false(git_writes_below(STR_LIT("index")) || git_writes_below(STR_LIT("a/logs")));
}

static void
redirects(void **state)
{
    struct str to;

    (void)state;
    assert_true(git_file_target(STR_LIT("gitdir: ../.git/modules/a\n"), &to));
    assert_true(str_eq_c(to, "../.git/modules/a"));
    assert_false(git_file_target(STR_LIT("gitdir:x\n"), &to));
    assert_false(git_file_target(STR_LIT("x"), &to));
    assert_false(git_file_target(STR_LIT("gitdir: \n"), &to));
    assert_true(git_redirect_target(STR_LIT("../..\r\n"), &to));
    assert_true(str_eq_c(to, "../.."));
    assert_false(git_redirect_target(STR_LIT("a\nb\n"), &to));
    assert_true(git_head_harmless(STR_LIT("ref: refs/heads/main\n")));
}

static void
leads(void **state)
{
    static const char *const files[] = { "../.git/modules/a", "../../.git/modules/a/modules/b", "/w/.git/worktrees/x", ".git", "a/../.git/",
        "../m/.git", "./.git/./modules/a", ".git/modules/a/.git/x" };
    static const char *const no_files[] = { "../evil", "store", "../.git/x", "../.git/objects/modules/a", "../.git/modules/../../evil",
        "../.git/..", "../.GIT/modules/a", "../x.git/worktrees/y", "../.git/worktrees/./..", "..git", "/" };
    static const struct { const char *place, *text; bool want; } rows[] = {
        { "/w/.git/worktrees/x", "../..", true }, { "/w/.git/worktrees/x", "../../../evil", false }, { "/w/.git/x", "../..", false },
        { "/w/a/.git", "../..", false }, { "/w/a/.git", "../evil", false }, { "/w/.git/worktrees/x", "../../x", false },
        { "/w/.git/worktrees/x", "../../modules/y", true }, { "/w/.git/worktrees/x", "/w/.git/", true }, { "/w/.git/worktrees/x", "/evil", false },
        { "/w/b.git/worktrees/x", "../..", true }, { "/w/b.git/worktrees/x", "../../..", false }, { "/w/b.git/x", "../evil", false },
        { "/w/linked", "../.git", true }, { "/w/.git/worktrees/x", "./../..", true }, { "/w/.git/modules/a/worktrees/x", "../..", true },
        { "/w/.git/worktrees/x", "y/../../..", false }, { "/w/.git/worktrees/x", "../../../../../../../..", false },
        { "/w/.GIT/x", "../..", false }, { ".git/worktrees/x", "../..", true }, { "x", "../..", true },
    };
    char text[100];

    (void)state;
    for (size_t i = 0; i < N(files) + N(no_files); i++) {
        const char *to = i < N(files) ? files[i] : no_files[i - N(files)];
        snprintf(text, sizeof(text), "gitdir: %s\n", to);
        if (git_file_harmless(str_of(text)) != (i < N(files)))
            fail_msg("%s", to);
    }
    for (size_t i = 0; i < N(rows); i++)
        if (git_common_harmless(str_of(rows[i].text), str_of(rows[i].place)) != rows[i].want)
            fail_msg("%s: %s", rows[i].place, rows[i].text);
    assert_true(git_common_harmless(STR_LIT(GIT_COMMON_TEXT), STR_LIT("/w/.git/worktrees/x")));
    assert_false(git_common_harmless(STR_LIT("a\nb"), STR_LIT("/w/.git/worktrees/x")));
}

static void
heads(void **state)
{
    (void)state;
    assert_true(git_head_harmless(STR_LIT("0123456789abcdef0123456789abcdef01234567\n")));
    assert_false(git_head_harmless(STR_LIT("ref: ../x\n")));
    assert_false(git_head_harmless(STR_LIT("0123\n")));
    assert_false(git_head_harmless(STR_LIT("")));
    assert_false(git_head_harmless(STR_LIT("ref: refs/heads/main\nx\n")));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(harmless_keys), cmocka_unit_test(harmful_keys), cmocka_unit_test(paths), cmocka_unit_test(limits),
        cmocka_unit_test(as_git_reads), cmocka_unit_test(places), cmocka_unit_test(states), cmocka_unit_test(todos),
        cmocka_unit_test(options), cmocka_unit_test(redirects), cmocka_unit_test(leads), cmocka_unit_test(heads),
        cmocka_unit_test(own_files), cmocka_unit_test(work_trees), cmocka_unit_test(indexes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
