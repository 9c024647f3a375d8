/* cloche-guest: what changes below a directory, told by the real program */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "guest_run.h"

#define WINDOW (128U * 1024)

static struct run r;
static size_t heard;     /* of what it said */

static int
start(void **state)
{
    (void)state;
    run_start(&r, NULL);
    heard = 0;
    return 0;
}

static int
start_in_memory(void **state)
{
    run_in_memory = true;
    (void)start(state);
    run_in_memory = false;
    return 0;
}

static int
stop(void **state)
{
    (void)state;
    assert_int_equal(run_stop(&r), 0);
    return 0;
}

static uint16_t
watch_with(const char *path, uint8_t flags, uint32_t window)
{
    const struct msg_file m = { .path = path, .flags = flags, .length = window };
    uint16_t request = 0;

    r.file_done = r.file_failed = false;
    if (guest_client_file(r.c, MSG_FILE_WATCH, &m, &request, &r.err) < 0)
        fail_msg("%s", r.err.msg);
    return request;
}

/* Until @line was said, since the last such call. */
static void
until(const char *line)
{
    size_t from = heard;

    for (;;) {
        const char *all = run_text(&r.changes), *at = strstr(all + from, line);
        if (at != NULL && (at == all || at[-1] == '\n')) {
            heard = (size_t)(at - all) + strlen(line);
            return;
        }
        if (r.changes.n > from + 512)
            from = r.changes.n - 512;       /* a line has not so much */
        if (r.file_failed)
            fail_msg("it ended with %d, %u", r.file_error.code, r.file_error.sys_errno);
        if (!run_pump(&r, RUN_PATIENCE))
            fail_msg("never said: %safter %s", line, all + heard);
    }
}

static uint16_t
watch(const char *path, uint8_t flags)
{
    uint16_t request = watch_with(path, flags, WINDOW);

    until("watching \n");
    return request;
}

static void
ends(uint8_t code)
{
    run_until(&r, &r.file_done);
    assert_true(r.file_failed);
    assert_int_equal(r.file_error.code, code);
}

static void
test_kinds(void **state)
{
    (void)state;
    watch(".", 0);
    run_prepare(&r, "echo x > f; mv f g; rm g; mkdir d; touch d/not-told; mv d e; rmdir e 2>/dev/null; rm -r e");
    until("created f\n");
    until("modified f\n");
    until("renamed g < f\n");
    until("deleted g\n");
    until("created d/\n");
    until("renamed e/ < d\n");
    until("deleted e/\n");
    assert_null(strstr(run_text(&r.changes), "not-told"));
}

/* A file that is written whole is told under its own name, once it is; the temporary one is nobody's business. */
static void
test_written_whole(void **state)
{
    const struct msg_file m = { .path = "d/f", .flags = MSG_FILE_CREATE | MSG_FILE_TRUNCATE, .mode = 0640 };
    uint16_t id;

    (void)state;
    run_prepare(&r, "mkdir d");
    watch(".", MSG_FILE_RECURSIVE);
    assert_int_equal(run_write(&r, "d/f", MSG_FILE_CREATE | MSG_FILE_TRUNCATE, "x", 1), 0);
    until("created d/f\n");
    assert_int_equal(run_write(&r, "d/f", MSG_FILE_CREATE | MSG_FILE_TRUNCATE, "yy", 2), 0);
    until("modified d/f\n");
    assert_int_equal(guest_client_file(r.c, MSG_FILE_WRITE, &m, &id, &r.err), 0);
    assert_int_equal(guest_client_file_cancel(r.c, id, &r.err), 0);
    run_prepare(&r, "rm d/f; mkdir end");
    until("deleted d/f\n");
    until("created end/\n");
    assert_string_equal(run_text(&r.changes), "watching \ncreated d/f\nmodified d/f\ndeleted d/f\ncreated end/\n");
}

static void
test_below(void **state)
{
    (void)state;
    run_prepare(&r, "mkdir -p a/b out");
    watch(r.root, MSG_FILE_RECURSIVE);
    run_prepare(&r, "touch a/b/f; mkdir -p n/e/w; touch n/e/w/f");
    until("created a/b/f\n");
    until("created n/e/w/f\n");
    /* a directory that was renamed has its new name, one that left is told no more, one that comes is told whole */
    run_prepare(&r, "mv n m; touch m/e/w/g; mv m/e e; touch e/w/h m/i");
    until("renamed m/ < n\n");
    until("created m/e/w/g\n");
    until("renamed e/ < m/e\n");
    until("created e/w/h\n");
    until("created m/i\n");
    run_prepare(&r, "mv e ../cloche-unit-away-$$; touch ../cloche-unit-away-$$/w/unseen; mv ../cloche-unit-away-$$ back; touch z");
    until("deleted e/\n");
    until("created back/\n");
    until("created back/w/unseen\n");
    until("created z\n");
}

static void
test_links_are_not_followed(void **state)
{
    (void)state;
    run_prepare(&r, "mkdir -p /tmp/cloche-unit-side a; ln -s /tmp/cloche-unit-side a/link; ln -s a in; ln -s /etc out");
    watch(".", MSG_FILE_RECURSIVE);
    run_prepare(&r, "touch /tmp/cloche-unit-side/f; ln -s / root; touch end; rm -r /tmp/cloche-unit-side");
    until("created end\n");
    assert_null(strstr(run_text(&r.changes), "link/"));
    watch("in", 0);
    run_prepare(&r, "touch a/there");
    until("created there\n");
    (void)watch_with("out", 0, WINDOW);
    ends(FILE_CODE_ESCAPES);
}

static void
test_where_it_is_not(void **state)
{
    (void)state;
    run_prepare(&r, "touch file; mkdir -p d/e f");
    (void)watch_with("nothing", 0, WINDOW);
    ends(FILE_CODE_ERRNO);
    (void)watch_with("file", 0, WINDOW);
    ends(FILE_CODE_ERRNO);
    watch("f", 0);
    run_prepare(&r, "rmdir f");
    ends(FILE_CODE_WATCH_GONE);
    watch("d/e", 0);
    run_prepare(&r, "mv d g; touch g/e/f");
    ends(FILE_CODE_WATCH_GONE);
}

static void
test_cancelled_and_too_many(void **state)
{
    uint16_t request[MSG_WATCHES_MAX];
    const struct msg_file m = { .path = ".", .length = WINDOW };
    uint16_t more;

    (void)state;
    for (size_t turn = 0; turn < 3; turn++) {
        for (size_t i = 0; i < MSG_WATCHES_MAX; i++)
            request[i] = watch(".", MSG_FILE_RECURSIVE);
        assert_int_equal(guest_client_file(r.c, MSG_FILE_WATCH, &m, &more, &r.err), -1);
        assert_string_equal(r.err.code, "watch.too-many");
        r.err = (struct err)ERR_INIT;
        assert_int_equal(run_write(&r, "beside", MSG_FILE_CREATE, "x", 1), 0);
        for (size_t i = 0; i < MSG_WATCHES_MAX; i++) {
            r.file_done = false;
            assert_int_equal(guest_client_file_cancel(r.c, request[i], &r.err), 0);
            ends(FILE_CODE_CANCELLED);
        }
    }
}

/* Without credit nothing is read but by the kernel, which drops what is too much; that is told, and all is there again. */
static void
test_who_gives_no_credit(void **state)
{
    uint16_t request;

    (void)state;
    r.change_hold = true;
    request = watch_with(".", MSG_FILE_RECURSIVE, MSG_WATCH_WINDOW_MIN);
    until("watching \n");
    run_prepare(&r, "for i in $(seq 8000); do echo > f$i; done; rm -r f*; mkdir -p d/e");
    while (run_pump(&r, 300))
        ;
    assert_true(r.changes.n <= MSG_WATCH_WINDOW_MIN);
    r.change_hold = false;
    assert_int_equal(guest_client_file_more(r.c, request, r.change_owed, &r.err), 0);
    until("overflow \n");
    run_prepare(&r, "touch d/e/f");
    until("created d/e/f\n");
}

static void
test_too_many_directories(void **state)
{
    (void)state;
    run_prepare(&r, "mkdir m; cd m; seq 4096 | xargs mkdir");
    (void)watch_with(".", MSG_FILE_RECURSIVE, WINDOW);
    ends(FILE_CODE_WATCH_DIRS);
    run_prepare(&r, "rmdir m/1 m/2");
    watch(".", MSG_FILE_RECURSIVE);
    run_prepare(&r, "mkdir one-more");
    ends(FILE_CODE_WATCH_DIRS);
    assert_int_equal(run_write(&r, "f", MSG_FILE_CREATE, "x", 1), 0);
}

/* Directories that are renamed all the time: nothing outside is watched, and when that is over nothing is missing. */
static void
test_racing_renames(void **state)
{
    static const char *const argv[] = {
        "sh", "-c",
        ("mkdir -p a/x b; for i in $(seq 60); do mv a c; mkdir -p a/x/y; mv b d; rm -r a; mv c a; mv d b; ln -s /etc l; "
         "mkdir -p b/$i/n; mv b/$i a/q; rm -r a/q; rm l; done; touch over"), NULL
    };

    (void)state;
    watch(".", MSG_FILE_RECURSIVE);
    (void)run_exec(&r, EXEC_STDIO_STREAM, argv);
    run_until(&r, &r.exited);
    while (run_pump(&r, 500))
        ;
    assert_false(r.file_failed);
    assert_null(strstr(run_text(&r.changes), "l/"));
    heard = r.changes.n;
    run_prepare(&r, "touch a/x/f b/g; mkdir -p a/x/z/z; touch a/x/z/z/f; touch end");
    until("created a/x/f\n");
    until("created b/g\n");
    until("created a/x/z/z/f\n");
}

static void
test_more_than_was_given(void **state)
{
    uint16_t request = 0;

    (void)state;
    request = watch(".", 0);
    assert_int_equal(guest_client_file_more(r.c, request, WINDOW, &r.err), -1);
    assert_string_equal(r.err.code, "guest.window");
    r.err = (struct err)ERR_INIT;
}

int
main(void)
{
#define IN_GUEST(t) cmocka_unit_test_setup_teardown(t, start, stop)
#define IN_MEMORY(t) cmocka_unit_test_setup_teardown(t, start_in_memory, stop)
    const struct CMUnitTest tests[] = {
        IN_GUEST(test_kinds),
        IN_GUEST(test_written_whole),
        IN_GUEST(test_below),
        IN_GUEST(test_links_are_not_followed),
        IN_GUEST(test_where_it_is_not),
        IN_GUEST(test_cancelled_and_too_many),
        IN_MEMORY(test_who_gives_no_credit),
        IN_MEMORY(test_too_many_directories),
        IN_GUEST(test_racing_renames),
        IN_GUEST(test_more_than_was_given),
    };

    int failed = cmocka_run_group_tests_name("this kernel", tests, NULL, NULL);

    run_old_kernel = true;
    return failed + cmocka_run_group_tests_name("without openat2, close_range and O_TMPFILE", tests, NULL, NULL);
}
