/* workspace/diff: an upper layer made by hand is read as overlayfs means it */
#include "base/array.h"
#include "test_cow_fixture.h"

#include "workspace/patch.h"

static void
expect_change(const struct fixture *f, const char *path, enum change_kind kind, unsigned flags)
{
    const struct change *e = change(f, path);

    if (e->kind != kind || e->flags != flags)
        fail_msg("%s: %s, flags %#x", path, change_kind_name(e->kind), e->flags);
}

static void
every_kind(void **state)
{
    struct fixture *f = *state;

    put(f->project, "same", "same");
    put(f->project, "content", "old");
    put(f->project, "mode", "m");
    put(f->project, "gone", "g");
    put(f->project, "becomes-dir", "f");
    folder(f->project, "becomes-file");
    put(f->project, "becomes-file/child", "c");
    assert_int_equal(symlinkat("a", f->project, "link"), 0);
    folder(f->project, "chmod-dir");
    fixture_run(f);
    put(f->upper, "same", "same");          /* copied up, and untouched or touched only */
    put(f->upper, "content", "new");
    put(f->upper, "mode", "m");
    assert_int_equal(fchmodat(f->upper, "mode", 0755, 0), 0);
    whiteout(f->upper, "gone");
    whiteout(f->upper, "never-was");
    folder(f->upper, "becomes-dir");
    put(f->upper, "becomes-dir/x", "x");
    put(f->upper, "becomes-file", "y");
    assert_int_equal(symlinkat("b", f->upper, "link"), 0);
    folder(f->upper, "chmod-dir");
    assert_int_equal(fchmodat(f->upper, "chmod-dir", 0700, 0), 0);
    folder(f->upper, "fresh");
    put(f->upper, "fresh/file", "f");
    scan(f);
    expect_change(f, "content", CHANGE_MODIFIED, 0);
    expect_change(f, "mode", CHANGE_MODE, 0);
    expect_change(f, "gone", CHANGE_DELETED, 0);
    expect_change(f, "becomes-dir", CHANGE_TYPE, 0);
    expect_change(f, "becomes-dir/x", CHANGE_ADDED, 0);
    expect_change(f, "becomes-file", CHANGE_TYPE, 0);
    expect_change(f, "becomes-file/child", CHANGE_DELETED, 0);
    expect_change(f, "link", CHANGE_MODIFIED, 0);
    expect_change(f, "chmod-dir", CHANGE_MODE, 0);
    expect_change(f, "fresh", CHANGE_ADDED, 0);
    expect_change(f, "fresh/file", CHANGE_ADDED, 0);
    assert_int_equal(count_changes(f), 11);
}

static void
opaque_and_merged_directories(void **state)
{
    struct fixture *f = *state;

    folder(f->project, "opaque");
    put(f->project, "opaque/hidden", "h");
    put(f->project, "opaque/kept", "k");
    folder(f->project, "merged");
    put(f->project, "merged/shown", "s");
    fixture_run(f);
    folder(f->upper, "opaque");
    mark(f->upper, "opaque", "user.overlay.opaque", "y");
    put(f->upper, "opaque/kept", "k");
    put(f->upper, "opaque/new", "n");
    folder(f->upper, "merged");
    put(f->upper, "merged/more", "m");
    scan(f);
    expect_change(f, "opaque/hidden", CHANGE_DELETED, 0);
    expect_change(f, "opaque/new", CHANGE_ADDED, 0);
    expect_change(f, "merged/more", CHANGE_ADDED, 0);
    assert_int_equal(count_changes(f), 3);
}

static void
whiteouts_as_attributes(void **state)
{
    struct fixture *f = *state;

    folder(f->project, "d");
    put(f->project, "d/gone", "g");
    put(f->project, "d/empty", "e");
    fixture_run(f);
    folder(f->upper, "d");
    mark(f->upper, "d", "user.overlay.opaque", "x");
    put(f->upper, "d/gone", "");
    mark(f->upper, "d/gone", "user.overlay.whiteout", "y");
    put(f->upper, "d/empty", "");       /* without the mark: emptied */
    put(f->upper, "marked", "");        /* the mark alone, where overlayfs does not look for it */
    mark(f->upper, "marked", "user.overlay.whiteout", "y");
    scan(f);
    expect_change(f, "d/gone", CHANGE_DELETED, 0);
    expect_change(f, "d/empty", CHANGE_MODIFIED, 0);
    expect_change(f, "marked", CHANGE_ADDED, 0);
}

static void
what_is_flagged(void **state)
{
    struct fixture *f = *state;

    folder(f->project, ".git");
    folder(f->project, ".git/hooks");
    put(f->project, ".git/hooks/a", "a");
    fixture_run(f);
    folder(f->upper, ".git");
    folder(f->upper, ".git/hooks");
    put(f->upper, ".git/hooks/evil", "e");
    put(f->upper, ".git/index", "i");
    folder(f->upper, "sub");
    put(f->upper, "sub/.git", "gitdir: ../evil");       /* a file where a directory could be: a redirection */
    assert_int_equal(mkfifoat(f->upper, "fifo", 0644), 0);
    assert_int_equal(symlinkat("/etc/passwd", f->upper, "out"), 0);
    assert_int_equal(symlinkat("../x", f->upper, "sub/in"), 0);
    put(f->upper, "suid", "s");
    assert_int_equal(fchmodat(f->upper, "suid", 04755, 0), 0);
    put(f->upper, "hidden", "s");
    mark(f->upper, "hidden", "user.overlay.overlay.opaque", "y");
    folder(f->upper, "keys");
    put(f->upper, "keys/id", "secret");
    scan(f);
    expect_change(f, ".git/hooks/evil", CHANGE_ADDED, CHANGE_PROTECTED | CHANGE_GIT);
    expect_change(f, ".git/index", CHANGE_ADDED, CHANGE_GIT);
    expect_change(f, "sub/.git", CHANGE_ADDED, CHANGE_PROTECTED | CHANGE_GIT);
    expect_change(f, "fifo", CHANGE_ADDED, CHANGE_SPECIAL);
    expect_change(f, "out", CHANGE_ADDED, CHANGE_OUTSIDE);
    expect_change(f, "sub/in", CHANGE_ADDED, 0);
    expect_change(f, "suid", CHANGE_ADDED, CHANGE_SETID);
    expect_change(f, "hidden", CHANGE_ADDED, CHANGE_ATTRS_LOST);
    expect_change(f, "keys/id", CHANGE_ADDED, CHANGE_PROTECTED);
}

/* A repository of the project's, one that the run makes, and one that it completes (issue 13, A1). */
static void
state_of_git(void **state)
{
    struct fixture *f = *state;
    static const char harmless[] = "[core]\n\tbare = false\n", harm[] = "[core]\n\tfsmonitor = x\n";
    static const char *const parts[] = { "old/objects", "old/refs", "new", "new/objects", "new/refs", "new/hooks", "half/refs",
        "good", "good/.git", "good/.git/objects", "good/.git/refs", "good/.git/hooks", "good/.git/modules",
        "good/.git/modules/m", "good/.git/modules/m/hooks", "new/.git", "new/.git/hooks" };

    folder(f->project, "old");
    put(f->project, "old/HEAD", "ref: refs/heads/a\n");
    folder(f->project, "half");
    folder(f->project, "half/objects");
    put(f->project, "half/config", harm);
    for (size_t i = 0; i < 2; i++)
        folder(f->project, parts[i]);
    fixture_run(f);
    folder(f->upper, "old");
    folder(f->upper, "half");
    for (size_t i = 2; i < ARRAY_LEN(parts); i++)
        folder(f->upper, parts[i]);
    whiteout(f->upper, "old/HEAD");
    put(f->upper, "old/config", harm);
    put(f->upper, "old/shallow", "i");
    put(f->upper, "old/index", "no index");
    put(f->upper, "new/config", harmless);
    put(f->upper, "new/config.worktree", harm);
    put(f->upper, "new/hooks/pre-commit", "x");
    put(f->upper, "new/hooks/pre-commit.sample", "x");
    put(f->upper, "half/refs/x", "x");
    put(f->upper, "half/other", "x");
    put(f->upper, "good/.git/config", harmless);
    put(f->upper, "good/.git/hooks/a.sample", "x");
    put(f->upper, "good/.git/hooks/a", "x");
    put(f->upper, "good/.git/modules/m/hooks/a", "x");
    put(f->upper, "new/.git/hooks/a", "x");
    put(f->upper, "file", "x");
    scan(f);
    expect_change(f, "old/HEAD", CHANGE_DELETED, CHANGE_GIT);
    expect_change(f, "old/config", CHANGE_ADDED, CHANGE_GIT);
    expect_change(f, "old/shallow", CHANGE_ADDED, 0);
    expect_change(f, "old/index", CHANGE_ADDED, CHANGE_GIT);
    expect_change(f, "new/config", CHANGE_ADDED, 0);
    expect_change(f, "new/config.worktree", CHANGE_ADDED, CHANGE_GIT);
    expect_change(f, "new/hooks", CHANGE_ADDED, 0);
    expect_change(f, "new/hooks/pre-commit", CHANGE_ADDED, CHANGE_GIT);
    expect_change(f, "new/hooks/pre-commit.sample", CHANGE_ADDED, 0);
    expect_change(f, "half/refs", CHANGE_ADDED, CHANGE_GIT);     /* it would make half/config count */
    expect_change(f, "half/refs/x", CHANGE_ADDED, CHANGE_GIT);
    expect_change(f, "half/other", CHANGE_ADDED, 0);
    expect_change(f, "good/.git/config", CHANGE_ADDED, 0);
    expect_change(f, "good/.git/hooks", CHANGE_ADDED, 0);
    expect_change(f, "good/.git/hooks/a.sample", CHANGE_ADDED, 0);
    expect_change(f, "good/.git/hooks/a", CHANGE_ADDED, CHANGE_GIT | CHANGE_PROTECTED);
    /* a `.git` is one whatever it lacks, and so is the place of a submodule: a later run, or git, may complete it */
    expect_change(f, "good/.git/modules/m/hooks/a", CHANGE_ADDED, CHANGE_PROTECTED | CHANGE_GIT);
    expect_change(f, "new/.git/hooks/a", CHANGE_ADDED, CHANGE_PROTECTED | CHANGE_GIT);
}

static void
what_the_host_changed(void **state)
{
    struct fixture *f = *state;

    put(f->project, "both", "1");
    put(f->project, "host-only", "1");
    put(f->project, "ours", "1");
    folder(f->project, "gone-dir");
    folder(f->project, "moved");
    put(f->project, "moved/f", "1");
    fixture_run(f);
    put(f->upper, "both", "sandbox");
    put(f->upper, "ours", "sandbox");
    whiteout(f->upper, "gone-dir");
    folder(f->upper, "moved");
    mark(f->upper, "moved", "user.overlay.origin", "x");
    put(f->upper, "moved/f", "sandbox");
    put(f->project, "both", "host");
    put(f->project, "host-only", "host");
    put(f->project, "gone-dir/fresh", "host");
    assert_int_equal(renameat(f->project, "moved", f->project, "elsewhere"), 0);
    scan(f);
    expect_change(f, "both", CHANGE_MODIFIED, CHANGE_HOST);
    expect_change(f, "ours", CHANGE_MODIFIED, 0);
    expect_change(f, "gone-dir/fresh", CHANGE_DELETED, CHANGE_HOST);
    expect_change(f, "moved", CHANGE_ADDED, CHANGE_HOST);
    assert_true(find(f, "host-only") == CHANGE_NOT);
    /* the same on both sides is no conflict */
    put(f->project, "both", "sandbox");
    scan(f);
    assert_true(find(f, "both") == CHANGE_NOT);
}

static void
renames(void **state)
{
    struct fixture *f = *state;

    put(f->project, "old", "some content");
    put(f->project, "decoy", "same length!");
    fixture_run(f);
    put(f->upper, "new", "some content");
    struct stat st;
    assert_int_equal(fstatat(f->project, "old", &st, 0), 0);
    const struct timespec times[2] = { st.st_atim, st.st_mtim };
    assert_int_equal(utimensat(f->upper, "new", times, 0), 0);
    assert_int_equal(utimensat(f->project, "decoy", times, 0), 0);
    f->in.since.tv_sec++;   /* the decoy was touched just now */
    whiteout(f->upper, "old");
    whiteout(f->upper, "decoy");
    scan(f);
    assert_int_equal(change(f, "new")->pair, find(f, "old"));
    assert_int_equal(change(f, "decoy")->pair, CHANGE_NOT);
}

/* A tree that no path string reaches the end of: reported once, not entered, and no recursion. */
static void
ten_thousand_levels(void **state)
{
    struct fixture *f = *state;
    size_t deep = 0;

    fixture_run(f);
    int at = fcntl(f->upper, F_DUPFD_CLOEXEC, 0);
    for (int i = 0; i < 10000; i++) {
        folder(at, "d");
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(at);
        at = next;
    }
    close(at);
    scan(f);
    for (size_t i = change_next(&f->c, 0); i != CHANGE_NOT; i = change_next(&f->c, i))
        deep += (f->c.v[i].flags & CHANGE_TOO_DEEP) != 0;
    assert_int_equal(deep, 1);
    assert_true(f->c.n > 1500 && f->c.n < 2100);
}

static void
many_entries(void **state)
{
    struct fixture *f = *state;
    char name[32];

    fixture_run(f);
    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof(name), "f%05d", i);
        assert_int_equal(mknodat(f->upper, name, S_IFREG | 0644, 0), 0);
    }
    scan(f);
    assert_int_equal(count_changes(f), 20000);
    assert_string_equal(f->c.v[change_next(&f->c, 0)].name, "f00000");
}

static void
holes_are_not_read(void **state)
{
    struct fixture *f = *state;

    put(f->project, "sparse", "x");
    assert_int_equal(fchmodat(f->project, "sparse", 0644, 0), 0);
    cleanup_close int a = openat(f->project, "sparse", O_RDWR | O_CLOEXEC);
    assert_int_equal(ftruncate(a, 8LL << 40), 0);
    fixture_run(f);
    put(f->upper, "sparse", "x");
    cleanup_close int b = openat(f->upper, "sparse", O_RDWR | O_CLOEXEC);
    assert_int_equal(ftruncate(b, 8LL << 40), 0);
    scan(f);
    assert_int_equal(count_changes(f), 0);
    assert_int_equal(pwrite(b, "y", 1, (8LL << 40) - 1), 1);
    scan(f);
    expect_change(f, "sparse", CHANGE_MODIFIED, 0);
}

/* Modes that keep their owner out are lifted, and still told. */
static void
closed_directories(void **state)
{
    struct fixture *f = *state;

    fixture_run(f);
    folder(f->upper, "closed");
    put(f->upper, "closed/f", "f");
    assert_int_equal(fchmodat(f->upper, "closed/f", 0, 0), 0);
    assert_int_equal(fchmodat(f->upper, "closed", 0, 0), 0);
    for (int i = 0; i < 2; i++) {
        scan(f);
        assert_int_equal(change(f, "closed")->upper.mode, S_IFDIR);
        assert_int_equal(change(f, "closed/f")->upper.mode, S_IFREG);
    }
}

static void
patches(void **state)
{
    static const struct patch_style style = { false, false };
    struct fixture *f = *state;
    cleanup_buf struct buf out = BUF_INIT(PATCH_TEXT_MAX);
    struct patch_count n;
    struct err err = ERR_INIT;
    size_t i;

    put(f->project, "t", "one\ntwo\nthree\n");
    put(f->project, "gone", "g\n");
    fixture_run(f);
    put(f->upper, "t", "one\n2\nthree\nfour\n");
    whiteout(f->upper, "gone");
    put(f->upper, "bin", "a");
    cleanup_close int fd = openat(f->upper, "bin", O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "\0\1", 2, 0), 2);
    scan(f);
    i = find(f, "t");
    assert_int_equal(patch_count(&f->in, &f->c, i, &n, &err), 0);
    assert_int_equal(n.added, 2);
    assert_int_equal(n.removed, 1);
    for (i = change_next(&f->c, 0); i != CHANGE_NOT; i = change_next(&f->c, i))
        assert_int_equal(patch_write(&f->in, &f->c, i, &style, &out, &err), 0);
    assert_int_equal(buf_nul(&out), 0);
    assert_string_equal((char *)out.p,
        "diff --git a/bin b/bin\nnew file mode 100644\nBinary files /dev/null and b/bin differ\n"
        "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-g\n"
        "diff --git a/t b/t\n--- a/t\n+++ b/t\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n three\n+four\n");
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define IN_MEMORY(name) cmocka_unit_test_setup_teardown(name, fixture_setup_in_memory, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(every_kind), T(opaque_and_merged_directories), T(whiteouts_as_attributes), T(what_is_flagged),
        T(state_of_git),
        T(what_the_host_changed), T(renames), IN_MEMORY(ten_thousand_levels), IN_MEMORY(many_entries), T(holes_are_not_read),
        T(closed_directories), T(patches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
