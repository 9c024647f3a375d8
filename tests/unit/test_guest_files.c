/* cloche-guest: file requests, in the real program; what leads out of the root is refused */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/io.h"
#include "guest_run.h"

static struct run r;

static const char *
in_root(const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", r.root, name);
    return path;
}

static int
request(uint8_t type, const char *path, uint8_t flags)
{
    const struct msg_file m = { .path = path, .flags = flags };

    return run_file(&r, type, &m);
}

static void
must(int rc)
{
    if (rc != 0)
        fail_msg("%s [%s]", r.err.msg, r.err.code);
}

static void
refused(int rc, const char *code)
{
    assert_int_equal(rc, -1);
    assert_string_equal(r.err.code, code);
    if (strcmp(code, "files.path-escapes") == 0)
        assert_string_equal(r.err.msg, "Path escapes workspace.");
}

static void
test_write_and_read(void **state)
{
    const size_t n = 3 * 1024 * 1024 + 5;
    uint8_t *data = malloc(n);
    struct stat st;

    (void)state;
    for (size_t i = 0; i < n; i++)
        data[i] = (uint8_t)(i * 40503U >> 7);
    must(run_write(&r, "big", MSG_FILE_CREATE, data, n));
    assert_int_equal(r.file_count, n);
    assert_int_equal(stat(in_root("big"), &st), 0);
    assert_int_equal(st.st_size, n);
    must(request(MSG_FILE_READ, in_root("big"), 0));        /* an absolute path below the root is as good */
    assert_int_equal(r.file_count, n);
    assert_int_equal(r.out.n, n);
    assert_memory_equal(r.out.p, data, n);
    free(data);
}

static void
test_read_a_part(void **state)
{
    struct msg_file m = { .path = "f", .offset = 3, .length = 4 };

    (void)state;
    must(run_write(&r, "f", MSG_FILE_CREATE, "0123456789", 10));
    must(run_file(&r, MSG_FILE_READ, &m));
    assert_string_equal(run_text(&r.out), "3456");
    m.offset = 8;
    m.length = 100;
    must(run_file(&r, MSG_FILE_READ, &m));
    assert_string_equal(run_text(&r.out), "89");
    m.offset = 100;
    must(run_file(&r, MSG_FILE_READ, &m));
    assert_int_equal(r.out.n, 0);
    m.offset = UINT64_C(1) << 63;
    m.path = "nothing";
    m.offset = 0;
    refused(run_file(&r, MSG_FILE_READ, &m), "files.not-found");
}

static void
test_empty_and_odd_names(void **state)
{
    static const char *const names[] = { "with space", "new\nline", "-rf", "\xff\xfe", "..dots..", "a'b\"c$d" };

    (void)state;
    must(run_write(&r, "empty", MSG_FILE_CREATE, "", 0));
    must(request(MSG_FILE_READ, "empty", 0));
    assert_int_equal(r.out.n, 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        must(run_write(&r, names[i], MSG_FILE_CREATE | MSG_FILE_EXCLUSIVE, "x", 1));
        must(request(MSG_FILE_READ, names[i], 0));
        assert_string_equal(run_text(&r.out), "x");
        must(request(MSG_FILE_REMOVE, names[i], 0));
    }
}

static void
test_write_flags(void **state)
{
    (void)state;
    refused(run_write(&r, "f", 0, "x", 1), "files.not-found");
    must(run_write(&r, "f", MSG_FILE_CREATE | MSG_FILE_EXCLUSIVE, "long text", 9));
    refused(run_write(&r, "f", MSG_FILE_CREATE | MSG_FILE_EXCLUSIVE, "y", 1), "files.exists");
    must(run_write(&r, "f", 0, "L", 1));
    must(request(MSG_FILE_READ, "f", 0));
    assert_string_equal(run_text(&r.out), "Long text");
    must(run_write(&r, "f", MSG_FILE_APPEND, "!", 1));
    must(request(MSG_FILE_READ, "f", 0));
    assert_string_equal(run_text(&r.out), "Long text!");
    must(run_write(&r, "f", MSG_FILE_TRUNCATE, "z", 1));
    must(request(MSG_FILE_READ, "f", 0));
    assert_string_equal(run_text(&r.out), "z");
    refused(run_write(&r, "a/b/c", MSG_FILE_CREATE, "x", 1), "files.not-found");
    must(run_write(&r, "a/b/c", MSG_FILE_CREATE | MSG_FILE_PARENTS, "x", 1));
    refused(run_write(&r, "a/b", MSG_FILE_CREATE, "x", 1), "files.is-a-directory");
    refused(run_write(&r, "f/g", MSG_FILE_CREATE | MSG_FILE_PARENTS, "x", 1), "files.not-a-directory");
}

static void
test_mode(void **state)
{
    static const uint32_t modes[] = { 0755, 0777, 0600, 0640 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {     /* a new one, then that one */
        const struct msg_file m = { .path = "script", .flags = MSG_FILE_CREATE, .mode = modes[i] };
        uint16_t id;
        assert_int_equal(guest_client_file(r.c, MSG_FILE_WRITE, &m, &id, &r.err), 0);
        assert_int_equal(guest_client_file_end(r.c, id, &r.err), 0);
        r.file_done = r.file_failed = false;
        run_until(&r, &r.file_done);
        must(request(MSG_FILE_STAT, "script", 0));
        assert_int_equal(r.info.mode, S_IFREG | modes[i]);
    }
    must(run_write(&r, "script", MSG_FILE_CREATE | MSG_FILE_TRUNCATE, "x", 1));     /* says nothing of it */
    must(request(MSG_FILE_STAT, "script", 0));
    assert_int_equal(r.info.mode, S_IFREG | 0640);
}

static void
test_list_and_stat(void **state)
{
    (void)state;
    run_prepare(&r, "mkdir d; echo 12345 > d/file; mkdir d/sub; ln -s file d/link; touch d/.hidden");
    must(request(MSG_FILE_LIST, "d", 0));
    assert_int_equal(r.file_count, 4);
    assert_non_null(strstr(run_text(&r.names), "f file\n"));
    assert_non_null(strstr(run_text(&r.names), "d sub\n"));
    assert_non_null(strstr(run_text(&r.names), "l link\n"));
    assert_non_null(strstr(run_text(&r.names), "f .hidden\n"));
    must(request(MSG_FILE_STAT, "d/link", 0));
    assert_true(S_ISREG(r.info.mode));
    assert_int_equal(r.info.size, 6);
    assert_true(r.info.mtime_ns > 0);
    must(request(MSG_FILE_STAT, "d/link", MSG_FILE_NOFOLLOW));
    assert_true(S_ISLNK(r.info.mode));
    must(request(MSG_FILE_STAT, r.root, 0));
    assert_true(S_ISDIR(r.info.mode));
    refused(request(MSG_FILE_LIST, "d/file", 0), "files.not-a-directory");
    refused(request(MSG_FILE_STAT, "d/none", 0), "files.not-found");
}

static void
test_list_many(void **state)
{
    size_t lines = 0;

    (void)state;
    run_prepare(&r, "mkdir d; cd d; i=0; while [ $i -lt 3000 ]; do printf 'f%d-%0200d\\n' $i 0; i=$((i+1)); done | xargs touch");
    must(request(MSG_FILE_LIST, "d", 0));
    assert_int_equal(r.file_count, 3000);
    for (size_t i = 0; i < r.names.n; i++)
        lines += r.names.p[i] == '\n';
    assert_int_equal(lines, 3000);
}

static void
test_mkdir_rename_remove(void **state)
{
    struct msg_file m = { .path = "a", .to = "b" };

    (void)state;
    must(request(MSG_FILE_MKDIR, "a", 0));
    refused(request(MSG_FILE_MKDIR, "a", 0), "files.exists");
    must(request(MSG_FILE_MKDIR, "a", MSG_FILE_PARENTS));
    must(request(MSG_FILE_MKDIR, in_root("x//y/./z/"), MSG_FILE_PARENTS));
    must(request(MSG_FILE_STAT, "x/y/z", 0));
    refused(request(MSG_FILE_MKDIR, "q/r", 0), "files.not-found");
    must(run_write(&r, "a/f", MSG_FILE_CREATE, "1", 1));
    refused(request(MSG_FILE_MKDIR, "a/f", MSG_FILE_PARENTS), "files.exists");
    must(run_file(&r, MSG_FILE_RENAME, &m));
    must(request(MSG_FILE_STAT, "b/f", 0));
    must(run_write(&r, "g", MSG_FILE_CREATE, "2", 1));
    m = (struct msg_file){ .path = "g", .to = "b/f", .flags = MSG_FILE_EXCLUSIVE };
    refused(run_file(&r, MSG_FILE_RENAME, &m), "files.exists");
    m.flags = 0;
    must(run_file(&r, MSG_FILE_RENAME, &m));
    refused(request(MSG_FILE_REMOVE, "b", 0), "files.not-empty");
    must(request(MSG_FILE_REMOVE, "b", MSG_FILE_RECURSIVE));
    assert_int_equal(r.file_count, 2);
    refused(request(MSG_FILE_REMOVE, "b", MSG_FILE_RECURSIVE), "files.not-found");
    refused(request(MSG_FILE_REMOVE, ".", MSG_FILE_RECURSIVE), "files.busy");
    must(request(MSG_FILE_LIST, ".", 0));
    assert_string_equal(run_text(&r.names), "d x\n");
}

static void
test_remove_a_large_tree(void **state)
{
    (void)state;
    run_prepare(&r, "many=$(seq 1 60); mkdir t; cd t; for a in 1 2 3 4 5 6 7 8 9; do mkdir -p $a/1/c $a/2/c $a/3/c $a/4/c $a/5/c; "
                    "for b in 1 2 3 4 5; do for c in $many; do : > $a/$b/$c; done; done; done; "
                    "for b in ?/?; do echo $b/out; done | xargs -n 1 ln -s /etc");
    must(request(MSG_FILE_REMOVE, "t", MSG_FILE_RECURSIVE));
    assert_int_equal(r.file_count, 9 * 5 * (60 + 1 + 1 + 1) + 9 + 1);
    assert_int_equal(access("/etc/passwd", F_OK), 0);
    must(request(MSG_FILE_LIST, ".", 0));
    assert_int_equal(r.names.n, 0);
}

static void
test_remove_too_deep(void **state)
{
    (void)state;
    run_prepare(&r, "p=t; i=0; while [ $i -lt 100 ]; do p=$p/d; i=$((i+1)); done; mkdir -p $p");
    must(request(MSG_FILE_REMOVE, "t", MSG_FILE_RECURSIVE));
    run_prepare(&r, "p=t; i=0; while [ $i -lt 200 ]; do p=$p/d; i=$((i+1)); done; mkdir -p $p");
    refused(request(MSG_FILE_REMOVE, "t", MSG_FILE_RECURSIVE), "files.too-deep");
    run_prepare(&r, "rm -rf t");
}

static const char *const escapes[] = {
    "..", "../x", "a/../../x", "/etc/passwd", "/", "", "/tmp", "sub/../..",
};

static void
test_shapes_that_escape(void **state)
{
    char sibling[128];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(escapes); i++) {
        refused(request(MSG_FILE_READ, escapes[i], 0), "files.path-escapes");
        refused(run_write(&r, escapes[i], MSG_FILE_CREATE, "x", 1), "files.path-escapes");
        refused(request(MSG_FILE_REMOVE, escapes[i], MSG_FILE_RECURSIVE), "files.path-escapes");
    }
    snprintf(sibling, sizeof(sibling), "%sx/file", r.root);     /* the root's name is a prefix of another's */
    refused(request(MSG_FILE_READ, sibling, 0), "files.path-escapes");
}

/* The client refuses those shapes; the guest must not trust it. Each is asked of the guest itself. */
static void
test_guest_checks_shapes_itself(void **state)
{
    struct buf b = BUF_INIT(65536);
    size_t answers = 0;

    (void)state;
    run_start_raw(&r);
    assert_int_equal(msg_put_setup(&b, &(struct msg_setup){ .version = 1, .flags = MSG_SETUP_LIGHT, .root = r.root }), 0);
    for (uint16_t i = 0; i < ARRAY_LEN(escapes); i++)
        assert_int_equal(msg_put_file(&b, MSG_FILE_STAT, (uint16_t)(i + 1), &(struct msg_file){ .path = escapes[i] }), 0);
    assert_int_equal(io_write_full(r.fd, b.p, b.n), 0);
    buf_free(&b);
    while (answers < ARRAY_LEN(escapes)) {
        uint8_t raw[FRAME_HEADER + 16];
        struct msg_file_error e;
        struct frame f;

        assert_int_equal(io_read_full(r.fd, raw, FRAME_HEADER), 0);
        assert_true(frame_header_decode(raw, FRAME_HEADER, &f));
        assert_in_range(f.length, 1, 16);
        assert_int_equal(io_read_full(r.fd, raw + FRAME_HEADER, f.length), 0);
        f.payload = raw + FRAME_HEADER;
        if (f.type == MSG_HELLO)
            continue;
        assert_int_equal(f.type, MSG_FILE_ERROR);
        assert_true(msg_get_file_error(&f, &e));
        assert_int_equal(e.code, FILE_CODE_ESCAPES);
        answers++;
    }
    assert_int_equal(run_stop(&r), 0);
}

static void
test_links_that_escape(void **state)
{
    static const char *const links[] = {
        "abs-file", "abs-dir/passwd", "rel-file", "rel-dir/passwd", "chain", "in/up/passwd", "proc/root/etc/passwd",
    };
    struct msg_file m = { .path = "f", .to = "abs-dir/new" };
    struct stat st;

    (void)state;
    run_prepare(&r, "echo inside > f; mkdir in; ln -s /etc/passwd abs-file; ln -s /etc abs-dir; "
                    "ln -s ../../etc/passwd rel-file; ln -s ../../../../../../etc rel-dir; ln -s chain2 chain; "
                    "ln -s abs-file chain2; ln -s ../../../../etc in/up; ln -s /proc/self proc; ln -s loop loop");
    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        refused(request(MSG_FILE_READ, links[i], 0), "files.path-escapes");
        refused(request(MSG_FILE_STAT, links[i], 0), "files.path-escapes");
        refused(run_write(&r, links[i], MSG_FILE_TRUNCATE, "x", 1), "files.path-escapes");
    }
    refused(request(MSG_FILE_LIST, "abs-dir", 0), "files.path-escapes");
    refused(request(MSG_FILE_MKDIR, "abs-dir/new", 0), "files.path-escapes");
    refused(request(MSG_FILE_MKDIR, "abs-dir/new/er", MSG_FILE_PARENTS), "files.path-escapes");
    refused(request(MSG_FILE_REMOVE, "rel-dir/passwd", 0), "files.path-escapes");
    refused(run_write(&r, "rel-dir/new", MSG_FILE_CREATE | MSG_FILE_PARENTS, "x", 1), "files.path-escapes");
    refused(run_file(&r, MSG_FILE_RENAME, &m), "files.path-escapes");
    refused(request(MSG_FILE_READ, "loop", 0), "files.symlink-loop");
    /* The link itself is the workspace's own: it may be looked at, renamed and removed, and its target stays. */
    must(request(MSG_FILE_STAT, "abs-file", MSG_FILE_NOFOLLOW));
    assert_true(S_ISLNK(r.info.mode));
    must(request(MSG_FILE_REMOVE, "abs-file", 0));
    must(request(MSG_FILE_REMOVE, "abs-dir", MSG_FILE_RECURSIVE));
    assert_int_equal(stat("/etc/passwd", &st), 0);
}

static void
test_links_that_stay(void **state)
{
    char script[512];

    (void)state;
    snprintf(script, sizeof(script),
             "mkdir -p a/b; echo deep > a/b/f; ln -s a/b short; ln -s %s/a/b abs; ln -s ../b/f a/b/self; "
             "ln -s %s rooted; ln -s missing dangling; ln -s %s/made later; mkdir -p p/.git/hooks; ln -s .git/hooks p/h", r.root, r.root, r.root);
    run_prepare(&r, script);
    must(request(MSG_FILE_READ, "short/f", 0));
    assert_string_equal(run_text(&r.out), "deep\n");
    must(request(MSG_FILE_READ, "abs/f", 0));           /* absolute, and yet below the root */
    assert_string_equal(run_text(&r.out), "deep\n");
    must(request(MSG_FILE_READ, "a/b/self", 0));
    assert_string_equal(run_text(&r.out), "deep\n");
    must(request(MSG_FILE_READ, "rooted/rooted/abs/self", 0));
    assert_string_equal(run_text(&r.out), "deep\n");
    must(run_write(&r, "dangling", MSG_FILE_CREATE, "made", 4));
    must(request(MSG_FILE_READ, "missing", 0));
    assert_string_equal(run_text(&r.out), "made");
    must(run_write(&r, "later", MSG_FILE_CREATE, "abs", 3));
    must(request(MSG_FILE_READ, "made", 0));
    assert_string_equal(run_text(&r.out), "abs");
    refused(run_write(&r, "later", MSG_FILE_CREATE | MSG_FILE_EXCLUSIVE, "x", 1), "files.exists");
}

static void
test_not_regular(void **state)
{
    (void)state;
    run_prepare(&r, "mkfifo fifo; mkdir d; perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => \"sock\", Listen => 1)'");
    refused(request(MSG_FILE_READ, "fifo", 0), "files.not-regular");
    refused(run_write(&r, "fifo", MSG_FILE_CREATE, "x", 1), "files.not-regular");
    refused(request(MSG_FILE_READ, "sock", 0), "files.not-regular");
    refused(request(MSG_FILE_READ, "d", 0), "files.is-a-directory");
    must(request(MSG_FILE_REMOVE, "fifo", 0));
}

static void
test_permissions(void **state)
{
    (void)state;
    if (geteuid() == 0)
        skip();                 /* root is not stopped by modes; the sandbox's guest is never root */
    run_prepare(&r, "echo s > secret; chmod 0 secret; mkdir closed; chmod 0 closed");
    refused(request(MSG_FILE_READ, "secret", 0), "files.denied");
    refused(request(MSG_FILE_READ, "closed/x", 0), "files.denied");
    refused(request(MSG_FILE_LIST, "closed", 0), "files.denied");
}

static void
test_without_a_root(void **state)
{
    (void)state;
    run_start(&r, &(struct msg_setup){ .flags = MSG_SETUP_LIGHT, .root = "" });
    refused(request(MSG_FILE_READ, "f", 0), "files.no-workspace");
    refused(request(MSG_FILE_STAT, "f", 0), "files.no-workspace");
    refused(run_write(&r, "f", MSG_FILE_CREATE, "x", 1), "files.no-workspace");
    assert_int_equal(run_stop(&r), 0);
}

static void
test_cancelled_write(void **state)
{
    const struct msg_file m = { .path = "f", .flags = MSG_FILE_CREATE };
    char chunk[65536] = "";
    size_t taken, sent = 0;
    uint16_t id;

    (void)state;
    assert_int_equal(guest_client_file(r.c, MSG_FILE_WRITE, &m, &id, &r.err), 0);
    while (sent < 10 * sizeof(chunk)) {
        assert_int_equal(guest_client_file_chunk(r.c, id, chunk, sizeof(chunk), &taken, &r.err), 0);
        sent += taken;
        (void)run_pump(&r, 10);
    }
    assert_int_equal(guest_client_file_cancel(r.c, id, &r.err), 0);
    r.file_done = r.file_failed = false;
    run_until(&r, &r.file_done);
    assert_true(r.file_failed);
    assert_int_equal(r.file_error.code, FILE_CODE_CANCELLED);
    must(request(MSG_FILE_STAT, "f", 0));
    assert_int_equal(r.info.size, sent);
}

/* A write that fails half-way ends the request and nothing else. A file size limit on the guest stands in for a
 * full disk. */
static void
test_failing_write(void **state)
{
    const struct rlimit limit = { .rlim_cur = 100000, .rlim_max = 100000 };
    uint8_t *data = calloc(1, 1000000);

    (void)state;
    assert_int_equal(prlimit(r.pid, RLIMIT_FSIZE, &limit, NULL), 0);
    refused(run_write(&r, "f", MSG_FILE_CREATE, data, 1000000), "files.too-large");
    must(request(MSG_FILE_STAT, "f", 0));
    assert_int_equal(r.info.size, 100000);
    must(run_write(&r, "g", MSG_FILE_CREATE, data, 10));
    free(data);
}

static void
test_several_at_once(void **state)
{
    uint16_t ids[MSG_FILES_MAX], extra;
    struct guest_event ev;
    size_t bytes = 0;
    int done = 0;

    (void)state;
    run_prepare(&r, "head -c 400000 /dev/zero > z");
    for (int i = 0; i < MSG_FILES_MAX; i++)
        assert_int_equal(guest_client_file(r.c, MSG_FILE_READ, &(struct msg_file){ .path = "z" }, &ids[i], &r.err), 0);
    assert_int_equal(guest_client_file(r.c, MSG_FILE_READ, &(struct msg_file){ .path = "z" }, &extra, &r.err), -1);
    assert_string_equal(r.err.code, "files.too-many");
    assert_int_equal(guest_client_file_cancel(r.c, ids[5], &r.err), 0);
    while (done < MSG_FILES_MAX) {
        int rc;

        assert_int_equal(guest_client_pump(r.c, &r.err), 0);
        while ((rc = guest_client_next(r.c, &ev, &r.err)) > 0) {
            bytes += ev.type == GUEST_FILE_DATA && ev.channel != ids[5] ? ev.data.n : 0;
            done += ev.type == GUEST_FILE_DONE || ev.type == GUEST_FILE_FAILED;
        }
        assert_int_equal(rc, 0);
    }
    assert_int_equal(bytes, (MSG_FILES_MAX - 1) * 400000);
}

/* A process keeps swapping a directory for a link that leads out; whatever is answered, nothing outside is touched. */
static void
test_racing_renamer(void **state)
{
    static const char *const argv[] = {
        "sh", "-c", "mkdir real; ln -s /etc fake; while :; do mv -T real at; mv -T at real; mv -T fake at; mv -T at fake; done", NULL
    };
    int inside = 0, missing = 0, escaping = 0;
    uint16_t channel = run_exec(&r, EXEC_STDIO_STREAM, argv);

    (void)state;
    run_until(&r, &r.started);
    for (int i = 0; i < 3000; i++) {
        int rc = run_write(&r, "at/cloche-unit-planted", MSG_FILE_CREATE, "x", 1);

        if (rc == 0)
            inside++;
        else if (strcmp(r.err.code, "files.path-escapes") == 0)
            escaping++;
        else if (strcmp(r.err.code, "files.not-found") == 0 || strcmp(r.err.code, "files.not-a-directory") == 0)
            missing++;
        else
            fail_msg("%s", r.err.msg);
    }
    assert_int_equal(access("/etc/cloche-unit-planted", F_OK), -1);
    assert_true(inside + missing + escaping == 3000);
    assert_int_equal(guest_client_signal(r.c, channel, 9, SIGNAL_GROUP, &r.err), 0);
    run_until(&r, &r.exited);
}

int
main(void)
{
#define IN_GUEST(t) RUN_TEST(t, &r)
#define IN_MEMORY(t) RUN_TEST_IN_MEMORY(t, &r)
    const struct CMUnitTest tests[] = {
        IN_GUEST(test_write_and_read),
        IN_GUEST(test_read_a_part),
        IN_GUEST(test_empty_and_odd_names),
        IN_GUEST(test_write_flags),
        IN_GUEST(test_mode),
        IN_GUEST(test_list_and_stat),
        IN_MEMORY(test_list_many),
        IN_GUEST(test_mkdir_rename_remove),
        IN_MEMORY(test_remove_a_large_tree),
        IN_MEMORY(test_remove_too_deep),
        IN_GUEST(test_shapes_that_escape),
        cmocka_unit_test(test_guest_checks_shapes_itself),
        IN_GUEST(test_links_that_escape),
        IN_GUEST(test_links_that_stay),
        IN_GUEST(test_not_regular),
        IN_GUEST(test_permissions),
        cmocka_unit_test(test_without_a_root),
        IN_GUEST(test_cancelled_write),
        IN_GUEST(test_failing_write),
        IN_GUEST(test_several_at_once),
        IN_GUEST(test_racing_renamer),
    };

    int failed = cmocka_run_group_tests_name("this kernel", tests, NULL, NULL);

    run_old_kernel = true;
    return failed + cmocka_run_group_tests_name("without openat2, close_range and O_TMPFILE", tests, NULL, NULL);
}
