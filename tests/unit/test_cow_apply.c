/* workspace/apply: all of what was chosen or nothing, whoever works on the project meanwhile, and after SIGKILL */
#include "test_cow_fixture.h"

#include <sys/mman.h>

#include "workspace/apply_priv.h"

/* Scan, decide and commit; the result of commit. */
static int
apply_with(struct fixture *f, const struct apply_options *o, struct apply_plan *plan, struct err *err)
{
    scan(f);
    if (apply_decide(&f->c, o, plan, err) < 0)
        fail_msg("%s", err->msg);
    if (plan->n_conflicts > 0)
        return 1;
    return apply_commit(&f->state, &f->in, &f->c, plan, err);
}

static void
apply_ok(struct fixture *f, const struct apply_options *o, size_t applied, size_t withheld)
{
    struct err err = ERR_INIT;
    struct apply_plan plan;

    if (apply_with(f, o, &plan, &err) != 0)
        fail_msg("%s", err.msg);
    assert_int_equal(plan.n_applied, applied);
    assert_int_equal(plan.n_withheld, withheld);
    apply_plan_free(&plan);
    expect(f->state.state_fd, "journal", NULL);
    expect(f->state.state_fd, "stage", NULL);
}

static const struct apply_options everything = { .n_paths = 0 };

static void
every_kind(void **state)
{
    struct fixture *f = *state;
    struct stat st;

    put(f->project, "content", "old");
    put(f->project, "gone", "g");
    folder(f->project, "gone-dir");
    put(f->project, "gone-dir/x", "x");
    put(f->project, "becomes-dir", "f");
    folder(f->project, "becomes-file");
    put(f->project, "becomes-file/child", "c");
    folder(f->project, "chmod-dir");
    folder(f->project, "closes");
    put(f->project, "closes/f", "1");
    fixture_run(f);
    put(f->upper, "content", "new");
    const struct timespec times[2] = { { .tv_sec = 1 }, { .tv_sec = 1000000000, .tv_nsec = 5 } };
    assert_int_equal(utimensat(f->upper, "content", times, 0), 0);
    mark(f->upper, "content", "user.note", "hello");
    mark(f->upper, "content", "user.overlay.origin", "x");
    whiteout(f->upper, "gone");
    whiteout(f->upper, "gone-dir");
    folder(f->upper, "becomes-dir");
    put(f->upper, "becomes-dir/x", "x");
    put(f->upper, "becomes-file", "y");
    folder(f->upper, "chmod-dir");
    assert_int_equal(fchmodat(f->upper, "chmod-dir", 0750, 0), 0);
    folder(f->upper, "closes");
    put(f->upper, "closes/f", "2");
    assert_int_equal(fchmodat(f->upper, "closes", 0555, 0), 0);
    folder(f->upper, "fresh");
    put(f->upper, "fresh/a", "linked");
    assert_int_equal(linkat(f->upper, "fresh/a", f->upper, "b", 0), 0);
    assert_int_equal(symlinkat("../content", f->upper, "fresh/link"), 0);
    folder(f->upper, "fresh/read-only");
    put(f->upper, "fresh/read-only/f", "f");
    assert_int_equal(fchmodat(f->upper, "fresh/read-only", 0555, 0), 0);
    put(f->upper, "suid", "s");
    assert_int_equal(fchmodat(f->upper, "suid", 06755, 0), 0);

    apply_ok(f, &everything, 18, 0);
    expect(f->project, "content", "new");
    assert_int_equal(fstatat(f->project, "content", &st, 0), 0);
    assert_int_equal(st.st_mtim.tv_sec, 1000000000);
    assert_int_equal(st.st_mtim.tv_nsec, 5);
    cleanup_close int fd = openat(f->project, "content", O_RDONLY | O_CLOEXEC);
    char value[16];
    assert_int_equal(fgetxattr(fd, "user.note", value, sizeof(value)), 5);
    assert_int_equal(fgetxattr(fd, "user.overlay.origin", value, sizeof(value)), -1);
    expect(f->project, "gone", NULL);
    expect(f->project, "gone-dir", NULL);
    expect(f->project, "becomes-dir/x", "x");
    expect(f->project, "becomes-file", "y");
    assert_int_equal(mode_of(f->project, "chmod-dir"), S_IFDIR | 0750);
    expect(f->project, "closes/f", "2");
    assert_int_equal(mode_of(f->project, "closes"), S_IFDIR | 0555);
    assert_int_equal(mode_of(f->project, "fresh/read-only"), S_IFDIR | 0555);
    expect(f->project, "fresh/read-only/f", "f");
    assert_int_equal(fstatat(f->project, "b", &st, 0), 0);
    assert_int_equal(st.st_nlink, 2);
    assert_int_equal(mode_of(f->project, "suid"), S_IFREG | 0755);
    /* and then nothing is left to do */
    scan(f);
    assert_int_equal(count_changes(f), 1);      /* suid, whose bits are never taken over */
}

static void
withheld(void **state)
{
    struct fixture *f = *state;
    const char *named[] = { ".git/hooks/evil" };
    const struct apply_options include = { .paths = named, .n_paths = 1, .include_protected = true };

    folder(f->project, "dir");
    folder(f->project, "dir/.vscode");
    put(f->project, "dir/.vscode/tasks", "t");
    put(f->project, "dir/plain", "p");
    fixture_run(f);
    folder(f->upper, ".git");
    folder(f->upper, ".git/hooks");
    put(f->upper, ".git/hooks/evil", "e");
    put(f->upper, ".git/HEAD", "h");
    whiteout(f->upper, "dir");
    assert_int_equal(mkfifoat(f->upper, "fifo", 0644), 0);
    assert_int_equal(symlinkat("../../etc", f->upper, "out"), 0);
    put(f->upper, "good", "g");
    apply_ok(f, &everything, 4, 7);     /* .git, HEAD, dir/plain, good */
    expect(f->project, "good", "g");
    expect(f->project, ".git/HEAD", "h");
    expect(f->project, ".git/hooks", NULL);
    expect(f->project, "dir/.vscode/tasks", "t");
    expect(f->project, "dir/plain", NULL);
    expect(f->project, "fifo", NULL);
    expect(f->project, "out", NULL);

    struct err err = ERR_INIT;
    struct apply_plan plan;
    const struct apply_options blind = { .include_protected = true };
    scan(f);
    assert_int_equal(apply_decide(&f->c, &blind, &plan, &err), -1);
    assert_string_equal(err.code, "workspace.apply.protected");
    /* only what is named, with the directory that it needs: not its other children */
    put(f->upper, ".git/hooks/other", "o");
    const char *hooks[] = { ".git/hooks" };
    const struct apply_options all_hooks = { .paths = hooks, .n_paths = 1, .include_protected = true };
    scan(f);
    assert_int_equal(apply_decide(&f->c, &include, &plan, &err), 0);
    assert_int_equal(plan.n_applied, 2);
    assert_true(plan.fate[find(f, ".git/hooks/other")] == FATE_LEFT);
    apply_plan_free(&plan);
    apply_ok(f, &all_hooks, 3, 0);
    expect(f->project, ".git/hooks/evil", "e");

    const struct apply_options links = { .allow_outside_links = true };
    apply_ok(f, &links, 1, 4);
    assert_true(S_ISLNK(mode_of(f->project, "out")));
}

/* What cannot be put in a directory's place keeps all of it, however deep. */
static void
withheld_as_a_whole(void **state)
{
    struct fixture *f = *state;

    folder(f->project, "dir");
    folder(f->project, "dir/sub");
    put(f->project, "dir/sub/f", "f");
    put(f->project, "dir/g", "g");
    fixture_run(f);
    assert_int_equal(mkfifoat(f->upper, "dir", 0644), 0);
    put(f->upper, "other", "o");
    apply_ok(f, &everything, 1, 4);
    expect(f->project, "dir/sub/f", "f");
    expect(f->project, "other", "o");
}

static void
chosen_paths(void **state)
{
    struct fixture *f = *state;
    const char *one[] = { "new/deep/file" }, *none[] = { "nothing" };
    const struct apply_options a = { .paths = one, .n_paths = 1 }, b = { .paths = none, .n_paths = 1 };
    struct apply_plan plan;
    struct err err = ERR_INIT;

    fixture_run(f);
    folder(f->upper, "new");
    folder(f->upper, "new/deep");
    put(f->upper, "new/deep/file", "f");
    put(f->upper, "new/deep/file2", "not chosen");
    put(f->upper, "other", "o");
    apply_ok(f, &a, 3, 0);
    expect(f->project, "new/deep/file", "f");
    expect(f->project, "new/deep/file2", NULL);
    expect(f->project, "other", NULL);
    scan(f);
    assert_int_equal(apply_decide(&f->c, &b, &plan, &err), -1);
    assert_string_equal(err.code, "workspace.apply.no-such-change");
    apply_ok(f, &everything, 2, 0);
}

static void
conflicts_apply_nothing(void **state)
{
    struct fixture *f = *state;
    const struct apply_options force = { .force = true };
    struct apply_plan plan;
    struct err err = ERR_INIT;

    put(f->project, "both", "1");
    put(f->project, "ours", "1");
    fixture_run(f);
    put(f->upper, "both", "sandbox");
    put(f->upper, "ours", "sandbox");
    put(f->upper, "added-twice", "sandbox");
    put(f->project, "both", "host");
    put(f->project, "added-twice", "host");
    assert_int_equal(apply_with(f, &everything, &plan, &err), 1);
    assert_int_equal(plan.n_conflicts, 2);
    apply_plan_free(&plan);
    expect(f->project, "both", "host");
    expect(f->project, "ours", "1");
    apply_ok(f, &force, 3, 0);
    expect(f->project, "both", "sandbox");
    expect(f->project, "added-twice", "sandbox");
}

/* Links planted in the project are neither followed nor written through. */
static void
planted_links(void **state)
{
    struct fixture *f = *state;
    struct apply_plan plan;
    struct err err = ERR_INIT;

    folder(f->root_fd, "outside");
    put(f->root_fd, "outside/victim", "victim");
    folder(f->project, "sub");
    put(f->project, "sub/f", "1");
    put(f->project, "plain", "1");
    fixture_run(f);
    folder(f->upper, "sub");
    put(f->upper, "sub/victim", "evil");
    put(f->upper, "plain", "evil");
    scan(f);
    assert_int_equal(apply_decide(&f->c, &everything, &plan, &err), 0);
    assert_int_equal(plan.n_conflicts, 0);
    /* after the decision: a symlink for the directory, a hard link for the file */
    assert_int_equal(renameat(f->project, "sub", f->project, "sub-moved"), 0);
    assert_int_equal(symlinkat("../outside", f->project, "sub"), 0);
    assert_int_equal(apply_commit(&f->state, &f->in, &f->c, &plan, &err), -1);
    assert_string_equal(err.code, "workspace.apply.raced");
    expect(f->project, "plain", "1");
    expect(f->root_fd, "outside/victim", "victim");
    assert_int_equal(unlinkat(f->project, "sub", 0), 0);
    assert_int_equal(renameat(f->project, "sub-moved", f->project, "sub"), 0);
    assert_int_equal(unlinkat(f->project, "plain", 0), 0);
    assert_int_equal(linkat(f->root_fd, "outside/victim", f->project, "plain", 0), 0);
    assert_int_equal(apply_commit(&f->state, &f->in, &f->c, &plan, &err), -1);
    assert_string_equal(err.code, "workspace.apply.raced");
    expect(f->root_fd, "outside/victim", "victim");
    expect(f->project, "sub/victim", NULL);
    apply_plan_free(&plan);
    /* by decision a hard link is replaced, never written through */
    const struct apply_options force = { .force = true };
    apply_ok(f, &force, 2, 0);
    expect(f->project, "plain", "evil");
    expect(f->root_fd, "outside/victim", "victim");
    assert_int_equal(tree_remove(f->root_fd, "outside", &err), 0);
}

/* A step in the middle fails: what was done before it is undone. */
static void
failure_undoes(void **state)
{
    struct fixture *f = *state;
    struct apply_plan plan;
    struct err err = ERR_INIT;
    struct stat before, after;

    put(f->project, "a", "1");
    put(f->project, "b", "1");
    folder(f->project, "c");
    put(f->project, "c/x", "x");
    folder(f->project, "m");
    put(f->project, "z", "1");
    fixture_run(f);
    put(f->upper, "a", "2");
    whiteout(f->upper, "b");
    whiteout(f->upper, "c");
    folder(f->upper, "m");
    assert_int_equal(fchmodat(f->upper, "m", 0700, 0), 0);
    put(f->upper, "n", "new");
    put(f->upper, "z", "2");
    scan(f);
    assert_int_equal(fstatat(f->project, "a", &before, 0), 0);
    assert_int_equal(apply_decide(&f->c, &everything, &plan, &err), 0);
    put(f->project, "z", "host, meanwhile");
    assert_int_equal(apply_commit(&f->state, &f->in, &f->c, &plan, &err), -1);
    assert_string_equal(err.code, "workspace.apply.raced");
    apply_plan_free(&plan);
    assert_int_equal(fstatat(f->project, "a", &after, 0), 0);
    assert_true(before.st_ino == after.st_ino);
    expect(f->project, "a", "1");
    expect(f->project, "b", "1");
    expect(f->project, "c/x", "x");
    expect(f->project, "n", NULL);
    expect(f->project, "z", "host, meanwhile");
    assert_int_equal(mode_of(f->project, "m"), S_IFDIR | 0755);
    expect(f->state.state_fd, "journal", NULL);
    expect(f->state.state_fd, "stage", NULL);
}

static void
put_project(struct fixture *f)
{
    put(f->project, "a", "1");
    put(f->project, "gone", "1");
    folder(f->project, "dir");
    put(f->project, "dir/x", "x");
    fixture_run(f);
    put(f->upper, "a", "2");
    whiteout(f->upper, "gone");
    whiteout(f->upper, "dir");
    put(f->upper, "new", "new");
}

/* Every number of steps done when the power went. */
static void
interrupted_anywhere(void **state)
{
    struct fixture *f = *state;

    put_project(f);
    for (size_t done = 0; done <= 4; done++) {
        struct journal j = { .stage = "stage", .v = NULL };
        struct apply_plan plan;
        struct stage stage;
        struct err err = ERR_INIT;
        size_t change_of[4] = { 0 }, n = 0;

        scan(f);
        f->in.since.tv_sec += 100;      /* what we did ourselves in the round before is no conflict */
        scan(f);
        assert_int_equal(apply_decide(&f->c, &everything, &plan, &err), 0);
        assert_int_equal(mkdirat(f->state.state_fd, "stage", 0700), 0);
        cleanup_close int fd = openat(f->state.state_fd, "stage", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(stage_open(&stage, &f->in, &f->c, &plan, fd, &err), 0);
        static const struct { const char *path; enum step_kind kind; } steps[] = {
            { "a", STEP_OVER }, { "dir", STEP_REMOVE }, { "gone", STEP_REMOVE }, { "new", STEP_NEW } };
        for (n = 0; n < 4; n++) {
            size_t i = find(f, steps[n].path);
            assert_true(i != CHANGE_NOT);
            struct step s = { .kind = steps[n].kind, .slot = (uint32_t)n, .old_ino = f->c.v[i].lower.ino,
                              .old_mode = f->c.v[i].lower.mode };
            change_of[n] = i;
            if (s.kind != STEP_REMOVE)
                assert_int_equal(stage_build(&stage, i, &s, &err), 0);
            assert_int_equal(journal_add(&j, &s, steps[n].path, &err), 0);
        }
        assert_int_equal(journal_write(f->state.state_fd, &j, true, &err), 0);
        size_t all = j.n;
        j.n = done;
        struct moves moves = { .j = &j, .stage = fd, .project = f->project, .c = &f->c, .fate = plan.fate,
                               .change_of = change_of };
        assert_int_equal(moves_open(&moves, &err), 0);
        if (commit_steps(&moves, &err) < 0)
            fail_msg("%s", err.msg);
        moves_close(&moves);
        j.n = all;
        stage_close(&stage);
        apply_plan_free(&plan);
        journal_free(&j);

        assert_int_equal(apply_recover(&f->state, f->project, &err), 1);
        expect(f->project, "a", "1");
        expect(f->project, "gone", "1");
        expect(f->project, "dir/x", "x");
        expect(f->project, "new", NULL);
        expect(f->state.state_fd, "journal", NULL);
        expect(f->state.state_fd, "stage", NULL);
        assert_int_equal(apply_recover(&f->state, f->project, &err), 0);
    }
}

static void
damaged_journal_is_refused(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;

    put_project(f);
    put(f->state.state_fd, "journal", "cloche-apply 1 state stage\nremove 0 0 1 0 0 ../../etc\nend 1\n");
    assert_int_equal(apply_recover(&f->state, f->project, &err), -1);
    assert_string_equal(err.code, "workspace.apply.journal");
}

static void
sparse_files_stay_sparse(void **state)
{
    struct fixture *f = *state;
    struct stat st;

    fixture_run(f);
    put(f->upper, "sparse", "begin");
    cleanup_close int fd = openat(f->upper, "sparse", O_RDWR | O_CLOEXEC);
    assert_int_equal(ftruncate(fd, 4LL << 40), 0);
    assert_int_equal(pwrite(fd, "end", 3, 2LL << 40), 3);
    apply_ok(f, &everything, 1, 0);
    assert_int_equal(fstatat(f->project, "sparse", &st, 0), 0);
    assert_true(st.st_size == 4LL << 40);
    assert_true(st.st_blocks < 1024);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(every_kind), T(withheld), T(withheld_as_a_whole), T(chosen_paths), T(conflicts_apply_nothing),
            T(planted_links), T(failure_undoes),
        T(interrupted_anywhere), T(damaged_journal_is_refused), T(sparse_files_stay_sparse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
