/* cloche-guest: a file that is written whole is seen whole, whatever ends its writing and whoever is in the way */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "guest_run.h"

#define WHOLE (MSG_FILE_CREATE | MSG_FILE_TRUNCATE)
#define FRESH (MSG_FILE_CREATE | MSG_FILE_EXCLUSIVE)

static struct run r;
static const uint8_t data[300000];

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
}

static const char *
in_root(const char *name)
{
    static char path[512];

    snprintf(path, sizeof(path), "%s/%s", r.root, name);
    return path;
}

static struct stat
stat_of(const char *name)
{
    struct stat st;

    assert_int_equal(lstat(in_root(name), &st), 0);
    return st;
}

/* The file as a shell would show it. */
static void
holds(const char *name, const char *text)
{
    char got[256] = "";
    int fd = open(in_root(name), O_RDONLY);

    assert_true(fd >= 0);
    assert_true(read(fd, got, sizeof(got) - 1) >= 0);
    close(fd);
    assert_string_equal(got, text);
}

/* All names of the root but what is temporary: "a b ". */
static const char *
names(void)
{
    static char line[1024];
    cleanup_dir DIR *dir = opendir(r.root);
    const struct dirent *e;

    assert_non_null(dir);
    line[0] = '\0';
    while ((e = readdir(dir)) != NULL) {
        size_t n = strlen(line);
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && strncmp(e->d_name, ".cloche-", 8) != 0)
            (void)snprintf(line + n, sizeof(line) - n, "%s ", e->d_name);
    }
    return line;
}

static void
nothing_temporary(void)
{
    run_prepare(&r, "! find . -name '.cloche-*' | grep .");
}

static uint16_t
begin_with(const struct msg_file *m, const void *p, size_t n)
{
    const uint8_t *at = p;
    uint16_t id;
    size_t taken;

    r.file_done = r.file_failed = false;
    r.err = (struct err)ERR_INIT;
    must(guest_client_file(r.c, MSG_FILE_WRITE, m, &id, &r.err));
    while (n > 0) {
        must(guest_client_file_chunk(r.c, id, at, n, &taken, &r.err));
        at += taken;
        n -= taken;
        (void)run_pump(&r, 1);
    }
    return id;
}

/* After all that came before was acted on. */
static uint16_t
begin(const char *path, uint8_t flags, const void *p, size_t n)
{
    const struct msg_file m = { .path = path, .flags = flags }, root = { .path = "." };
    uint16_t id = begin_with(&m, p, n);

    must(run_file(&r, MSG_FILE_STAT, &root));
    r.file_done = r.file_failed = false;
    return id;
}

static int
end(uint16_t id)
{
    r.file_done = r.file_failed = false;
    must(guest_client_file_end(r.c, id, &r.err));
    run_until(&r, &r.file_done);
    return r.file_failed ? guest_file_err(&r.file_error, "it", &r.err) : 0;
}

static void
cancel(uint16_t id)
{
    must(guest_client_file_cancel(r.c, id, &r.err));
    run_until(&r, &r.file_done);
    assert_true(r.file_failed);
    assert_int_equal(r.file_error.code, FILE_CODE_CANCELLED);
}

static void
test_what_breaks_off_changes_nothing(void **state)
{
    static const size_t parts[] = { 0, 1, 100000, sizeof(data) };
    struct stat before, after;

    (void)state;
    run_prepare(&r, "printf former > f; chmod 640 f");
    before = stat_of("f");
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        uint16_t id = begin("f", WHOLE, data, parts[i]);

        holds("f", "former");
        cancel(id);
        holds("f", "former");
        id = begin("new", WHOLE, data, parts[i]);
        assert_string_equal(names(), "f ");
        cancel(id);
        id = begin("new", FRESH, data, parts[i]);
        assert_string_equal(names(), "f ");
        cancel(id);
        assert_string_equal(names(), "f ");
    }
    nothing_temporary();
    after = stat_of("f");
    assert_true(before.st_ino == after.st_ino && before.st_mode == after.st_mode);
    assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
}

/* A limit of the guest's stands in for a full disk. */
static void
test_no_room(void **state)
{
    const struct rlimit limit = { .rlim_cur = 100000, .rlim_max = 100000 };

    (void)state;
    run_prepare(&r, "printf former > f");
    assert_int_equal(prlimit(r.pid, RLIMIT_FSIZE, &limit, NULL), 0);
    refused(run_write(&r, "f", WHOLE, data, sizeof(data)), "files.too-large");
    holds("f", "former");
    refused(run_write(&r, "new", WHOLE, data, sizeof(data)), "files.too-large");
    assert_string_equal(names(), "f ");
    nothing_temporary();
    must(run_write(&r, "f", WHOLE, "later", 5));
    holds("f", "later");
}

static void
test_whole_or_not_at_all(void **state)
{
    char got[16] = "";
    uint16_t id;
    int fd;

    (void)state;
    run_prepare(&r, "printf former > f; chmod 640 f; ln -s f link");
    fd = open(in_root("f"), O_RDONLY);
    assert_true(fd >= 0);
    id = begin("link", WHOLE, "new", 3);
    holds("f", "former");
    must(end(id));
    holds("f", "new");
    assert_int_equal(stat_of("f").st_mode, S_IFREG | 0640);
    assert_true(S_ISLNK(stat_of("link").st_mode));
    assert_int_equal(read(fd, got, sizeof(got)), 6);    /* who had it open reads on in what it was */
    assert_string_equal(got, "former");
    close(fd);
    must(end(begin("empty", WHOLE, "", 0)));
    assert_int_equal(stat_of("empty").st_size, 0);
    must(end(begin_with(&(struct msg_file){ .path = "f", .flags = WHOLE, .mode = 0777 }, "x", 1)));
    assert_int_equal(stat_of("f").st_mode, S_IFREG | 0777);
    must(end(begin_with(&(struct msg_file){ .path = "fresh", .flags = FRESH, .mode = 0606 }, "x", 1)));
    assert_int_equal(stat_of("fresh").st_mode, S_IFREG | 0606);
    nothing_temporary();
}

static void
test_two_at_once(void **state)
{
    uint16_t one, two;

    (void)state;
    run_prepare(&r, "printf former > f");
    one = begin("f", WHOLE, "first", 5);
    two = begin("f", WHOLE, "second", 6);
    must(end(two));
    holds("f", "second");
    must(end(one));
    holds("f", "first");
    one = begin("new", FRESH, "first", 5);
    two = begin("new", FRESH, "second", 6);
    must(end(two));
    refused(end(one), "files.exists");
    holds("new", "second");
    one = begin("newer", WHOLE, "first", 5);
    two = begin("newer", WHOLE, "second", 6);
    must(end(one));
    must(end(two));
    holds("newer", "second");
    nothing_temporary();
}

/* What would not be the same file any more is written as ever. */
static void
test_in_place(void **state)
{
    ino_t before;

    (void)state;
    run_prepare(&r, "printf former > f; ln f g; printf former > x; mkfifo p; mkdir d");
    before = stat_of("f").st_ino;
    must(run_write(&r, "f", WHOLE, "new", 3));
    assert_true(stat_of("f").st_ino == before);
    holds("g", "new");
    before = stat_of("x").st_ino;
    must(run_write(&r, "x", MSG_FILE_CREATE, "FO", 2));             /* not all of it */
    holds("x", "FOrmer");
    must(run_write(&r, "x", MSG_FILE_CREATE | MSG_FILE_APPEND, "!", 1));
    holds("x", "FOrmer!");
    must(run_write(&r, "x", MSG_FILE_EXCLUSIVE, "f", 1));
    holds("x", "fOrmer!");
    if (setxattr(in_root("x"), "user.note", "n", 1, 0) == 0) {
        must(run_write(&r, "x", WHOLE, "new", 3));
        assert_int_equal(getxattr(in_root("x"), "user.note", NULL, 0), 1);
    }
    assert_true(stat_of("x").st_ino == before);
    refused(run_write(&r, "p", WHOLE, "x", 1), "files.not-regular");
    refused(run_write(&r, "d", WHOLE, "x", 1), "files.is-a-directory");
    refused(run_write(&r, "none", MSG_FILE_TRUNCATE, "x", 1), "files.not-found");
    nothing_temporary();
}

static void
test_of_others(void **state)
{
    struct stat st;

    (void)state;
    if (geteuid() != 0)
        skip();
    run_prepare(&r, "printf former > f; chown 1234:1235 f; printf former > g; chown 0:1235 g; chmod 660 g");
    must(run_write(&r, "f", WHOLE, "new", 3));
    st = stat_of("f");
    assert_true(st.st_uid == 1234 && st.st_gid == 1235 && st.st_size == 3);
    must(run_write(&r, "g", WHOLE, "new", 3));
    st = stat_of("g");
    assert_true(st.st_uid == 0 && st.st_gid == 1235 && st.st_mode == (S_IFREG | 0660));
}

static void
test_where_nothing_may_be_made(void **state)
{
    (void)state;
    if (geteuid() == 0)
        skip();                 /* root is not stopped by modes; the sandbox's guest is never root */
    run_prepare(&r, "mkdir d; printf former > d/f; printf former > d/ro; chmod 400 d/ro; chmod 500 d");
    must(run_write(&r, "d/f", WHOLE, "new", 3));
    holds("d/f", "new");
    refused(run_write(&r, "d/ro", WHOLE, "new", 3), "files.denied");
    refused(run_write(&r, "d/new", WHOLE, "new", 3), "files.denied");
    run_prepare(&r, "chmod 700 d");
    refused(run_write(&r, "d/ro", WHOLE, "new", 3), "files.denied");
    holds("d/ro", "former");
}

/* What others put there while it is written. */
static void
test_what_comes_between(void **state)
{
    static const struct { const char *script, *code; } rows[] = {
        { "rm d/f; ln -s /etc/cloche-unit-planted d/f", "files.path-escapes" },
        { "rm d/f; ln -s ../other d/f",                 "files.path-escapes" },
        { "rm d/f; mkdir d/f",                          "files.is-a-directory" },
        { "rm d/f; mkfifo d/f",                         "files.not-regular" },
        { "rm -r d",                                    "files.not-found" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint16_t id;

        run_prepare(&r, "rm -rf d other; mkdir d; printf former > d/f; printf other > other");
        id = begin("d/f", WHOLE, "new", 3);
        run_prepare(&r, rows[i].script);
        refused(end(id), rows[i].code);
        holds("other", "other");
        assert_int_equal(access("/etc/cloche-unit-planted", F_OK), -1);
        nothing_temporary();
    }
    /* it is written where the path led: there it is, under whatever name */
    run_prepare(&r, "rm -rf d; mkdir d; printf former > d/f");
    {
        uint16_t id = begin("d/f", WHOLE, "new", 3);

        run_prepare(&r, "mv d e; ln -s /etc d");
        must(end(id));
        holds("e/f", "new");
    }
    nothing_temporary();
}

/* Where there is a temporary name while it is written, nothing is gained by taking it. */
static void
test_a_taken_temporary_name(void **state)
{
    uint16_t id;

    (void)state;
    if (!run_old_kernel)
        skip();
    run_prepare(&r, "printf former > f");
    id = begin("f", WHOLE, "new", 3);
    run_prepare(&r, "t=$(ls -A | grep ^.cloche-); rm $t; ln -s /etc/passwd $t");
    refused(end(id), "files.busy");
    holds("f", "former");
    id = begin("f", WHOLE, "new", 3);
    run_prepare(&r, "rm .cloche-*");
    refused(end(id), "files.not-found");
    holds("f", "former");
    nothing_temporary();
}

/* A process does all of that all the time: whatever is answered, nothing outside is touched, nothing is half there. */
static void
test_races(void **state)
{
    static const char *const argv[] = {
        "sh", "-c", ("mkdir real; while :; do mv -T real at; ln -sf /etc/cloche-unit-planted at/f; rm -f at/.cloche-*; mv -T at real; "
                     "ln -s /etc at; rm -f real/f; rm at; done 2>/dev/null"), NULL
    };
    uint16_t channel = run_exec(&r, EXEC_STDIO_STREAM, argv);
    int done = 0, not_done = 0;

    (void)state;
    run_until(&r, &r.started);
    for (int i = 0; i < 3000 || done < 100 || not_done < 100; i++) {
        if (run_write(&r, i % 2 == 0 ? "at/f" : "real/f", WHOLE, "x", 1) == 0)
            done++;
        else
            not_done++;
    }
    assert_int_equal(access("/etc/cloche-unit-planted", F_OK), -1);
    assert_int_equal(access("/etc/f", F_OK), -1);
    assert_int_equal(guest_client_signal(r.c, channel, 9, SIGNAL_GROUP, &r.err), 0);
    run_until(&r, &r.exited);
    nothing_temporary();
}

int
main(void)
{
#define IN_GUEST(t) RUN_TEST(t, &r)
    const struct CMUnitTest tests[] = {
        IN_GUEST(test_what_breaks_off_changes_nothing),
        IN_GUEST(test_no_room),
        IN_GUEST(test_whole_or_not_at_all),
        IN_GUEST(test_two_at_once),
        IN_GUEST(test_in_place),
        IN_GUEST(test_of_others),
        IN_GUEST(test_where_nothing_may_be_made),
        IN_GUEST(test_what_comes_between),
        IN_GUEST(test_a_taken_temporary_name),
        IN_GUEST(test_races),
    };
    int failed = cmocka_run_group_tests_name("this kernel", tests, NULL, NULL);

    run_old_kernel = true;
    return failed + cmocka_run_group_tests_name("without openat2, close_range and O_TMPFILE", tests, NULL, NULL);
}
