/* workspace/cow, tree: the store refuses what is not ours; removal copes with anything */
#include "base/array.h"
#include "test_cow_fixture.h"

static void
made_found_and_discarded(void **state)
{
    struct fixture *f = *state;
    struct cow_state other = COW_STATE_INIT;
    struct err err = ERR_INIT;
    struct cow_info *list;
    char id[COW_ID_MAX + 1], path[128];

    put(f->project, "x", "x");
    assert_int_equal(fchmod(f->project, 0750), 0);
    fixture_run(f);
    assert_int_equal(mode_of(f->state.state_fd, ".") & 0777, 0700);
    assert_int_equal(mode_of(f->state.dir_fd, "upper") & 0777, 0750);
    assert_int_equal(cow_create(f->state.project, FIXTURE_ID, fixture_names, &other, &err), -1);

    assert_int_equal(cow_list(&list, &err), 1);
    assert_true(list[0].busy);
    assert_string_equal(list[0].id, FIXTURE_ID);
    assert_string_equal(list[0].project, f->state.project);
    cow_list_free(list, 1);

    assert_int_equal(cow_open(FIXTURE_ID, COW_LOCK_EXCLUSIVE, &other, &err), -1);
    assert_string_equal(err.code, "workspace.state.busy");
    close_fd(&f->state.lock_fd);
    assert_int_equal(cow_open(FIXTURE_ID, COW_LOCK_EXCLUSIVE, &other, &err), 0);

    snprintf(path, sizeof(path), "%s/project", f->root);
    assert_int_equal(cow_find(NULL, path, id, &err), 0);
    assert_string_equal(id, FIXTURE_ID);
    assert_int_equal(cow_find("0011", "/", id, &err), 0);
    assert_int_equal(cow_find(path, "/", id, &err), 0);
    assert_int_equal(cow_find("001", "/", id, &err), -1);
    assert_int_equal(cow_find(NULL, "/", id, &err), -1);
    assert_string_equal(err.code, "workspace.state.none");

    cleanup_close int project = cow_project_open(&other, &err);
    assert_true(project >= 0);
    assert_int_equal(cow_discard(&other, &err), 0);
    assert_int_equal(cow_list(&list, &err), 0);
    cow_list_free(list, 0);
}

static void
replaced_project_is_refused(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;

    fixture_run(f);
    assert_int_equal(renameat(f->root_fd, "project", f->root_fd, "moved"), 0);
    assert_int_equal(mkdirat(f->root_fd, "project", 0755), 0);
    assert_int_equal(cow_project_open(&f->state, &err), -1);
    assert_string_equal(err.code, "workspace.project.changed");
    assert_int_equal(tree_remove(f->root_fd, "moved", NULL), 0);
}

static void
expect_unsafe(struct fixture *f, const char *code)
{
    struct cow_state s = COW_STATE_INIT;
    struct err err = ERR_INIT;
    char path[128];

    snprintf(path, sizeof(path), "%s/project", f->root);
    assert_int_equal(cow_create(path, FIXTURE_ID, fixture_names, &s, &err), -1);
    assert_string_equal(err.code, code);
    assert_true(err.hint[0] != '\0');
}

static void
store_that_is_not_ours(void **state)
{
    struct fixture *f = *state;
    char path[128];

    assert_int_equal(symlinkat("../project", f->root_fd, "state/cloche"), 0);
    expect_unsafe(f, "workspace.state.unsafe");
    expect(f->project, "cow", NULL);
    assert_int_equal(unlinkat(f->root_fd, "state/cloche", 0), 0);
    folder(f->root_fd, "state/cloche");
    assert_int_equal(symlinkat("../../project", f->root_fd, "state/cloche/cow"), 0);
    expect_unsafe(f, "workspace.state.unsafe");
    assert_int_equal(unlinkat(f->root_fd, "state/cloche/cow", 0), 0);
    assert_int_equal(fchmodat(f->root_fd, "state/cloche", 0777, 0), 0);
    expect_unsafe(f, "workspace.state.unsafe");
    assert_int_equal(fchmodat(f->root_fd, "state/cloche", 0700, 0), 0);
    /* overlayfs cannot have it, and the sandbox would see our books */
    snprintf(path, sizeof(path), "%s/project/sub", f->root);
    setenv("XDG_STATE_HOME", path, 1);
    expect_unsafe(f, "workspace.state.inside-project");
}

static void
damaged_states_can_be_discarded(void **state)
{
    struct fixture *f = *state;
    struct cow_state s = COW_STATE_INIT;
    struct err err = ERR_INIT;

    fixture_run(f);
    put(f->state.state_fd, "meta.json", "{\"version\": 1");
    close_fd(&f->state.lock_fd);
    assert_int_equal(cow_open(FIXTURE_ID, COW_LOCK_EXCLUSIVE, &s, &err), -1);
    assert_string_equal(err.code, "workspace.state.meta");
    assert_int_equal(cow_open(FIXTURE_ID, COW_LOCK_DISCARD, &s, &err), 0);
    assert_int_equal(cow_discard(&s, &err), 0);
}

/* The names that the run's policy protects come back as they were, whatever bytes they have. */
static void
names_of_the_run(void **state)
{
    static const char *const names[] = { "deploy.sh", "conf/a b\n\xff%41", NULL };
    struct fixture *f = *state;
    struct cow_state made = COW_STATE_INIT, read = COW_STATE_INIT;
    struct err err = ERR_INIT;
    char path[128];

    snprintf(path, sizeof(path), "%s/project", f->root);
    assert_int_equal(cow_create(path, FIXTURE_ID, names, &made, &err), 0);
    assert_int_equal(cow_open(FIXTURE_ID, COW_LOCK_NONE, &read, &err), 0);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(made.protect[i], names[i]);
        assert_string_equal(read.protect[i], names[i]);
    }
    assert_null(read.protect[2]);
    cow_close(&read);
    assert_int_equal(cow_discard(&made, &err), 0);
}

/* A state from before they were written down says so; one that has lost them, or has others, is damaged. */
static void
names_that_are_none(void **state)
{
    static const struct { int version; const char *names; int opens; } rows[] = {
        { 1, "", 0 }, { 2, ", \"protect\": []", 0 }, { 2, ", \"protect\": [\"a%20b\"]", 0 },
        { 2, "", -1 }, { 1, ", \"protect\": []", -1 }, { 3, ", \"protect\": []", -1 }, { 2, ", \"protect\": null", -1 },
        { 2, ", \"protect\": {}", -1 }, { 2, ", \"protect\": [1]", -1 }, { 2, ", \"protect\": [\"\"]", -1 },
        { 2, ", \"protect\": [\"%00\"]", -1 }, { 2, ", \"protect\": [\"a b\"]", -1 }, { 2, ", \"more\": []", -1 },
    };
    struct fixture *f = *state;

    fixture_run(f);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cow_state s = COW_STATE_INIT;
        struct err err = ERR_INIT;
        char text[512];
        snprintf(text, sizeof(text), "{\"version\": %d, \"id\": \"%s\", \"project\": \"/p\", \"dev\": 1, \"ino\": 1, "
                 "\"boot\": \"b\", \"created_s\": 1, \"created_ns\": 1%s}", rows[i].version, FIXTURE_ID, rows[i].names);
        put(f->state.state_fd, "meta.json", text);
        if (cow_open(FIXTURE_ID, COW_LOCK_NONE, &s, &err) != rows[i].opens)
            fail_msg("%s: %s", text, err.msg);
        if (rows[i].opens == 0)
            assert_true((s.protect == NULL) == (rows[i].version == 1));
        else
            assert_string_equal(err.code, "workspace.state.meta");
        cow_close(&s);
    }
}

/* Deep, closed, and with a queue left by an interrupted removal. */
static void
removal(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;

    folder(f->root_fd, "t");
    int at = openat(f->root_fd, "t", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 12000; i++) {
        folder(at, "d");
        put(at, "f", "f");
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (i % 100 == 50)
            assert_int_equal(fchmod(at, 0), 0);
        close(at);
        at = next;
    }
    close(at);
    assert_int_equal(symlinkat("/", f->root_fd, "t/root"), 0);
    assert_int_equal(symlinkat("../project", f->root_fd, "t/out"), 0);
    assert_int_equal(mkfifoat(f->root_fd, "t/fifo", 0), 0);
    put(f->project, "stays", "s");
    folder(f->root_fd, "t.removing");
    folder(f->root_fd, "t.removing/0");
    folder(f->root_fd, "t.removing/7");
    put(f->root_fd, "t.removing/file", "f");
    put(f->root_fd, "t.removing/7/f", "f");
    if (tree_remove(f->root_fd, "t", &err) < 0)
        fail_msg("%s", err.msg);
    expect(f->root_fd, "t", NULL);
    expect(f->root_fd, "t.removing", NULL);
    expect(f->project, "stays", "s");
    assert_int_equal(tree_remove(f->root_fd, "t", &err), 0);
}

static void
opening_stays_inside(void **state)
{
    struct fixture *f = *state;
    const char *name;

    folder(f->project, "a");
    put(f->project, "a/f", "f");
    assert_int_equal(symlinkat("a", f->project, "link"), 0);
    assert_int_equal(symlinkat("/etc", f->project, "etc"), 0);
    static const char *const refused[] = { "..", "../state", "link/f", "etc/passwd", "/etc/passwd", "a/../../state" };
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        assert_int_equal(tree_open(f->project, refused[i], O_RDONLY), -1);
    cleanup_close int fd = tree_open(f->project, "a/f", O_RDONLY);
    assert_true(fd >= 0);
    cleanup_close int dir = tree_open_parent(f->project, "a/f", &name);
    assert_true(dir >= 0);
    assert_string_equal(name, "f");
    assert_int_equal(mkfifoat(f->project, "fifo", 0644), 0);
    assert_int_equal(tree_open_file(f->project, "fifo", false), -1);
    assert_int_equal(errno, ENXIO);
    assert_int_equal(tree_open_file(f->project, "link", false), -1);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define IN_MEMORY(name) cmocka_unit_test_setup_teardown(name, fixture_setup_in_memory, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(made_found_and_discarded), T(replaced_project_is_refused), T(store_that_is_not_ours),
        T(damaged_states_can_be_discarded), T(names_of_the_run), T(names_that_are_none), IN_MEMORY(removal), T(opening_stays_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
