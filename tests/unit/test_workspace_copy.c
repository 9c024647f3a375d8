/* workspace/copy: a hostile tree once more, and nothing of what lies beside it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "workspace/copy.h"
#include "workspace/tree.h"

struct fixture {
    char root[64];
    int dir, from, to;
};

static int
setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    snprintf(f->root, sizeof(f->root), "/tmp/cloche-copy-XXXXXX");
    assert_non_null(mkdtemp(f->root));
    f->dir = open(f->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(f->dir, "from", 0755), 0);
    assert_int_equal(mkdirat(f->dir, "to", 0755), 0);
    f->from = openat(f->dir, "from", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    f->to = openat(f->dir, "to", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(f->from >= 0 && f->to >= 0);
    *state = f;
    return 0;
}

static int
teardown(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(tree_remove(f->dir, "from", NULL), 0);
    assert_int_equal(tree_remove(f->dir, "to", NULL), 0);
    close_fd(&f->from);
    close_fd(&f->to);
    close_fd(&f->dir);
    assert_int_equal(rmdir(f->root), 0);
    free(f);
    return 0;
}

static void
put(int dir, const char *name, const char *text)
{
    cleanup_close int fd = openat(dir, name, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static const char *
got(int dir, const char *name)
{
    static char text[256];
    cleanup_close int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

    if (n < 0)
        return "(none)";
    text[n] = '\0';
    return text;
}

static struct stat
look(int dir, const char *name)
{
    struct stat st = { .st_mode = 0 };

    (void)fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW);
    return st;
}

static int
copy(struct fixture *f, uint64_t most, struct err *err)
{
    struct tree_copy c = { .from = f->from, .to = f->to, .bytes_max = most };

    return tree_copy(&c, err);
}

static void
what_comes_along(void **state)
{
    struct fixture *f = *state;
    const struct timespec times[] = { { 1000, 0 }, { 1000000000, 5 } };
    struct err err = ERR_INIT;
    char to[64] = "";

    assert_int_equal(mkdirat(f->from, "d", 0755), 0);
    assert_int_equal(mkdirat(f->from, "d/e", 0755), 0);
    put(f->from, "d/e/f", "text");
    assert_int_equal(fchmodat(f->from, "d/e/f", 06751, 0), 0);
    assert_int_equal(utimensat(f->from, "d/e/f", times, 0), 0);
    assert_int_equal(linkat(f->from, "d/e/f", f->from, "again", 0), 0);
    assert_int_equal(symlinkat("/etc/passwd", f->from, "link"), 0);
    assert_int_equal(symlinkat("..", f->from, "up"), 0);
    assert_int_equal(mkfifoat(f->from, "fifo", 0644), 0);
    assert_int_equal(fchmodat(f->from, "d/e", 01500, 0), 0);
    assert_int_equal(copy(f, 0, &err), 0);
    assert_string_equal(got(f->to, "again"), "text");
    assert_int_equal(look(f->to, "d/e/f").st_mode & 07777, 0751);
    assert_int_equal(look(f->to, "d/e/f").st_mtim.tv_sec, 1000000000);
    assert_int_equal(look(f->to, "d/e/f").st_ino, look(f->to, "again").st_ino);
    assert_int_equal(look(f->to, "d/e").st_mode & 07777, 01500);
    assert_int_equal(readlinkat(f->to, "link", to, sizeof(to)), 11);
    assert_string_equal(to, "/etc/passwd");
    assert_true(S_ISLNK(look(f->to, "up").st_mode));
    assert_int_equal(look(f->to, "fifo").st_mode, 0);
    assert_int_equal(fchmodat(f->from, "d/e", 0700, 0), 0);
}

static void
holes_stay(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;

    put(f->from, "sparse", "begin");
    cleanup_close int fd = openat(f->from, "sparse", O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "middle", 6, 50 * 1024 * 1024), 6);
    assert_int_equal(ftruncate(fd, 100 * 1024 * 1024), 0);
    assert_int_equal(copy(f, 1024 * 1024, &err), 0);
    assert_int_equal(look(f->to, "sparse").st_size, 100 * 1024 * 1024);
    assert_true(look(f->to, "sparse").st_blocks < 4096);
    assert_string_equal(got(f->to, "sparse"), "begin");
}

/* What is there already stays, and nothing is written through it. */
static void
nothing_is_written_over(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;

    put(f->dir, "beside", "mine");
    put(f->from, "a", "new");
    put(f->from, "b", "new");
    assert_int_equal(mkdirat(f->from, "c", 0755), 0);
    put(f->from, "c/in", "new");
    put(f->to, "a", "old");
    assert_int_equal(symlinkat("../beside", f->to, "b"), 0);
    assert_int_equal(symlinkat("..", f->to, "c"), 0);
    assert_int_equal(copy(f, 0, &err), 0);
    assert_string_equal(got(f->to, "a"), "old");
    assert_string_equal(got(f->dir, "beside"), "mine");
    assert_int_equal(look(f->dir, "in").st_mode, 0);
    assert_int_equal(unlinkat(f->dir, "beside", 0), 0);
}

static void
folders_that_are_shut(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;

    assert_int_equal(mkdirat(f->from, "shut", 0700), 0);
    assert_int_equal(mkdirat(f->from, "shut/in", 0700), 0);
    put(f->from, "shut/in/f", "text");
    assert_int_equal(fchmodat(f->from, "shut/in/f", 0, 0), 0);
    assert_int_equal(fchmodat(f->from, "shut/in", 0400, 0), 0);
    assert_int_equal(fchmodat(f->from, "shut", 0, 0), 0);
    assert_int_equal(copy(f, 0, &err), 0);
    for (int i = 0; i < 2; i++) {       /* both are, and each is as it was */
        int dir = i == 0 ? f->from : f->to;
        assert_int_equal(look(dir, "shut").st_mode & 07777, 0);
        assert_int_equal(fchmodat(dir, "shut", 0700, 0), 0);
        assert_int_equal(look(dir, "shut/in").st_mode & 07777, 0400);
        assert_int_equal(fchmodat(dir, "shut/in", 0700, 0), 0);
        assert_int_equal(look(dir, "shut/in/f").st_mode & 07777, 0);
        assert_int_equal(fchmodat(dir, "shut/in/f", 0600, 0), 0);
        assert_string_equal(got(dir, "shut/in/f"), "text");
    }
}

static void
no_more_than_may_be(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;

    put(f->from, "a", "0123456789");
    put(f->from, "b", "0123456789");
    assert_int_equal(copy(f, 19, &err), -1);
    assert_string_equal(err.code, "template.full");
}

static void
deep_ones(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    char path[TREE_PATH_MAX + 8] = "d";

    for (size_t n = 1; n < TREE_PATH_MAX - 4; n += 2) {
        assert_int_equal(mkdirat(f->from, path, 0755), 0);
        memcpy(path + n, "/d", 3);
    }
    assert_int_equal(copy(f, 0, &err), 0);
    path[strlen(path) - 2] = '\0';
    assert_true(S_ISDIR(look(f->to, path).st_mode));
}

/* What is mounted in the tree is somebody else's. */
static void
mounts_are_not_entered(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    char path[128];

    assert_int_equal(mkdirat(f->from, "m", 0755), 0);
    snprintf(path, sizeof(path), "%s/from/m", f->root);
    if (mount("none", path, "tmpfs", 0, NULL) < 0) {
        assert_true(errno == EPERM);
        skip();
    }
    put(f->from, "m/secret", "text");
    assert_int_equal(copy(f, 0, &err), 0);
    assert_int_equal(umount(path), 0);
    assert_int_equal(look(f->to, "m/secret").st_mode, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_comes_along, setup, teardown),
        cmocka_unit_test_setup_teardown(holes_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_is_written_over, setup, teardown),
        cmocka_unit_test_setup_teardown(folders_that_are_shut, setup, teardown),
        cmocka_unit_test_setup_teardown(no_more_than_may_be, setup, teardown),
        cmocka_unit_test_setup_teardown(deep_ones, setup, teardown),
        cmocka_unit_test_setup_teardown(mounts_are_not_entered, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
