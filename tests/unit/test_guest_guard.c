/* the name guard as the guest serves it: commands and file requests alike, reported to the host */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/guard.h"
#include "guest_run.h"

static struct run r;

/* A guest whose root is guarded. The plan names the root, so the root must be there before the guest is set up. */
static int
start(void **state)
{
    cleanup_guard_plan struct guard_plan plan = GUARD_PLAN_INIT;
    struct msg_setup setup = { .flags = MSG_SETUP_LIGHT };
    struct buf wire = BUF_INIT(MSG_GUARD_MAX);

    (void)state;
    if (guard_probe(NULL) < 0)
        return 0;               /* each test skips */
    run_start_raw(&r);
    plan.flags = GUARD_NAMES | GUARD_EXISTING | GUARD_GIT;
    assert_int_equal(guard_plan_protect(&plan, r.root, ".git/hooks", NULL), 0);
    assert_int_equal(guard_plan_protect(&plan, r.root, ".bashrc", NULL), 0);
    assert_int_equal(guard_plan_emit(&plan, &wire, NULL), 0);
    setup.root = r.root;
    setup.guard = wire.p;
    setup.guard_n = (uint32_t)wire.n;
    assert_int_equal(guest_client_new(r.fd, &r.c, &r.err), 0);
    assert_int_equal(guest_client_setup(r.c, &setup, &r.err), 0);
    buf_free(&wire);
    return 0;
}

static int
stop(void **state)
{
    (void)state;
    if (r.pid != 0)
        assert_int_equal(run_stop(&r), 0);
    memset(&r, 0, sizeof(r));
    return 0;
}

static void
need_guard(void)
{
    if (r.pid == 0)
        skip();
}

static bool
exists(const char *name)
{
    char path[256];
    struct stat st;

    snprintf(path, sizeof(path), "%s/%s", r.root, name);
    return lstat(path, &st) == 0;
}

static void
test_commands_cannot_make_protected_names(void **state)
{
    (void)state;
    need_guard();
    run_sh(&r, "mkdir .git && echo made; mkdir .git/hooks || echo no; echo x > .bashrc || echo no; ln -s a .bashrc || echo no; "
               "mkdir t; mv t .git/hooks || echo no; echo y > fine; cat fine");
    assert_string_equal(run_text(&r.out), "made\nno\nno\nno\nno\ny\n");
    assert_true(exists(".git") && exists("fine") && exists("t"));
    assert_false(exists(".git/hooks") || exists(".bashrc"));
    assert_non_null(strstr(run_text(&r.denied), "mkdir "));
    assert_non_null(strstr(run_text(&r.denied), "/.git/hooks"));
    assert_non_null(strstr(run_text(&r.denied), "/.bashrc"));
}

static void
test_every_process_of_a_command_is_guarded(void **state)
{
    (void)state;
    need_guard();
    run_sh(&r, "(setsid sh -c 'sleep 0.2; echo x > .bashrc; echo $? > status' >/dev/null 2>&1 &) ; exit 0");
    assert_int_equal(r.exit.status, 0);
    run_sh(&r, "while ! [ -s status ]; do sleep 0.02; done; cat status");   /* long after its command ended */
    assert_string_not_equal(run_text(&r.out), "0\n");
    assert_false(exists(".bashrc"));
}

static void
test_several_commands_at_once(void **state)
{
    static const char *const argv[] = { "sh", "-c", "i=0; while [ $i -lt 50 ]; do mkdir .git/hooks; mkdir d$$-$i; i=$((i+1)); done", NULL };

    (void)state;
    need_guard();
    run_prepare(&r, "mkdir .git");
    for (int i = 0; i < 8; i++)
        (void)run_exec(&r, EXEC_STDIO_STREAM, argv);
    while (r.n_exits < 8)
        assert_true(run_pump(&r, RUN_PATIENCE));
    run_sh(&r, "ls -d d* | wc -l");
    assert_string_equal(run_text(&r.out), "400\n");
    assert_false(exists(".git/hooks"));
}

static void
test_file_requests_are_guarded(void **state)
{
    struct msg_file m = { .path = ".bashrc" };

    (void)state;
    need_guard();
    assert_int_equal(run_write(&r, ".bashrc", MSG_FILE_CREATE, "x", 1), -1);
    assert_string_equal(r.err.code, "files.denied");
    assert_int_equal(run_write(&r, ".git/hooks/pre-commit", MSG_FILE_CREATE | MSG_FILE_PARENTS, "x", 1), -1);
    assert_string_equal(r.err.code, "files.denied");
    m.path = ".git/hooks";
    assert_int_equal(run_file(&r, MSG_FILE_MKDIR, &m), -1);
    assert_string_equal(r.err.code, "files.denied");
    assert_int_equal(run_write(&r, "plain", MSG_FILE_CREATE, "x", 1), 0);
    m = (struct msg_file){ .path = "plain", .to = ".bashrc" };
    assert_int_equal(run_file(&r, MSG_FILE_RENAME, &m), -1);
    assert_string_equal(r.err.code, "files.denied");
    assert_false(exists(".bashrc") || exists(".git/hooks"));
}

/* The name is judged when it is made, not when its writing began: the directory has another name by then. */
static void
test_file_requests_make_nothing_that_git_executes(void **state)
{
    static const char good[] = "[core]\n\tbare = false\n", evil[] = "[core]\n\tfsmonitor = evil\n";
    const uint8_t whole = MSG_FILE_CREATE | MSG_FILE_TRUNCATE | MSG_FILE_PARENTS;
    struct msg_file m = { .path = "evil", .to = "n/.git/config" };
    char text[64] = "";
    FILE *f;

    (void)state;
    need_guard();
    assert_int_equal(run_write(&r, "n/.git/config", whole, evil, strlen(evil)), -1);
    assert_string_equal(r.err.code, "files.denied");
    assert_false(exists("n/.git/config"));
    assert_int_equal(run_write(&r, "n/.git/config", whole, good, strlen(good)), 0);
    assert_int_equal(run_write(&r, "n/.git/config", MSG_FILE_APPEND, evil, strlen(evil)), -1);
    assert_int_equal(run_write(&r, "n/.git/config", 0, evil, strlen(evil)), -1);
    assert_int_equal(run_write(&r, "evil", whole, evil, strlen(evil)), 0);
    assert_int_equal(run_file(&r, MSG_FILE_RENAME, &m), -1);
    assert_int_equal(run_write(&r, "n/.git/hooks/pre-commit", whole, "x", 1), -1);
    assert_int_equal(run_write(&r, "n/.git/hooks/pre-commit.sample", whole, "x", 1), 0);
    assert_int_equal(run_write(&r, "d/config", whole, evil, strlen(evil)), 0);
    m = (struct msg_file){ .path = "d/objects" };
    assert_int_equal(run_file(&r, MSG_FILE_MKDIR, &m), 0);
    m.path = "d/refs";
    assert_int_equal(run_file(&r, MSG_FILE_MKDIR, &m), -1);
    assert_int_equal(run_write(&r, "good", whole, good, strlen(good)), 0);
    m = (struct msg_file){ .path = "good", .to = "d/config" };
    assert_int_equal(run_file(&r, MSG_FILE_RENAME, &m), 0);
    m = (struct msg_file){ .path = "d/refs" };
    assert_int_equal(run_file(&r, MSG_FILE_MKDIR, &m), 0);
    assert_int_equal(chdir(r.root), 0);
    f = fopen("n/.git/config", "r");
    assert_non_null(f);
    assert_int_equal(fread(text, 1, sizeof(text) - 1, f), strlen(good));
    fclose(f);
    assert_string_equal(text, good);
    assert_int_equal(chdir("/"), 0);
}

static void
test_a_directory_that_moves_under_a_write(void **state)
{
    const struct msg_file m = { .path = "d/hooks", .flags = MSG_FILE_CREATE | MSG_FILE_TRUNCATE };
    size_t taken;
    uint16_t id;

    (void)state;
    need_guard();
    run_prepare(&r, "mkdir d");
    assert_int_equal(guest_client_file(r.c, MSG_FILE_WRITE, &m, &id, &r.err), 0);
    assert_int_equal(guest_client_file_chunk(r.c, id, "x", 1, &taken, &r.err), 0);
    run_sh(&r, "mv d .git && echo moved");
    assert_string_equal(run_text(&r.out), "moved\n");
    assert_int_equal(guest_client_file_end(r.c, id, &r.err), 0);
    r.file_done = r.file_failed = false;
    run_until(&r, &r.file_done);
    assert_true(r.file_failed);
    assert_int_equal(r.file_error.sys_errno, EACCES);
    assert_true(exists(".git"));
    assert_false(exists(".git/hooks"));
    run_sh(&r, "ls -A .git");
    assert_string_equal(run_text(&r.out), "");
}

static void
test_command_that_fails_leaves_no_listener(void **state)
{
    static const char *const argv[] = { "./nothing-here", NULL };

    (void)state;
    need_guard();
    for (int i = 0; i < 400; i++) {     /* more than there is room for listeners */
        run_exec(&r, EXEC_STDIO_STREAM, argv);
        run_until(&r, &r.failed);
        assert_int_equal(r.exec_failed.stage, EXEC_STAGE_EXEC);
    }
    for (int i = 0; i < 300; i++)
        run_sh(&r, "exit 0");
    assert_int_equal(r.exit.status, 0);
}

static void
test_unguarded_command(void **state)
{
    static const char *const argv[] = { "sh", "-c", "echo x > .bashrc", NULL };
    static const char *const env[] = { "PATH=/bin:/usr/bin", NULL };
    struct guest_exec x = GUEST_EXEC_INIT;
    uint16_t channel;

    (void)state;
    need_guard();
    x.argv = argv;
    x.env = env;
    x.cwd = r.root;
    x.flags = MSG_EXEC_NO_GUARD;        /* the host asked for it: a setup step of its own */
    assert_int_equal(guest_client_exec(r.c, &x, &channel, &r.err), 0);
    run_until(&r, &r.exited);
    assert_int_equal(r.exit.status, 0);
    assert_true(exists(".bashrc"));
}

int
main(void)
{
#define IN_GUEST(t) cmocka_unit_test_setup_teardown(t, start, stop)
    const struct CMUnitTest tests[] = {
        IN_GUEST(test_commands_cannot_make_protected_names),
        IN_GUEST(test_every_process_of_a_command_is_guarded),
        IN_GUEST(test_several_commands_at_once),
        IN_GUEST(test_file_requests_are_guarded),
        IN_GUEST(test_file_requests_make_nothing_that_git_executes),
        IN_GUEST(test_a_directory_that_moves_under_a_write),
        IN_GUEST(test_command_that_fails_leaves_no_listener),
        IN_GUEST(test_unguarded_command),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
