/* tests/unit/test_guard_light.c: without mounts, what exists is protected by the guard too (GUARD_EXISTING), and with
 * them what they do not hold (GUARD_WRITES) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/time.h>
#include <sys/xattr.h>
#include <utime.h>

#include "test_guard_run.h"

static const char *const usual[] = { ".git/hooks", ".git/config", ".bashrc", ".vscode", "secrets", NULL };

static void
host_made(const char *dir)
{
    char from[512], to[512];

    run_dir(dir, ".git");
    run_dir(dir, ".git/hooks");
    run_file(dir, ".git/hooks/pre-commit", "host");
    run_dir(dir, "secrets");
    run_dir(dir, "secrets/deep");
    run_file(dir, "secrets/deep/file", "host");
    run_file(dir, ".bashrc", "host");
    run_file(dir, "mine", "agent");
    run_dir(dir, "empty");
    /* the host has another name for it in the same tree */
    snprintf(from, sizeof(from), "%s/.bashrc", dir);
    snprintf(to, sizeof(to), "%s/alias", dir);
    if (link(from, to) < 0)
        abort();
}

static int
writing(void *arg)
{
    char text[64];
    int fd, dir = open("secrets/deep", O_RDONLY | O_DIRECTORY);

    (void)arg;
    WANT(EACCES, open(".bashrc", O_WRONLY));
    WANT(EACCES, open(".bashrc", O_RDWR));
    WANT(EACCES, open(".bashrc", O_RDONLY | O_TRUNC));
    WANT(EACCES, open(".bashrc", O_WRONLY | O_CREAT | O_TRUNC, 0644));
    WANT(EACCES, open(".bashrc", O_WRONLY | O_APPEND));
    WANT(EACCES, open("alias", O_WRONLY));
    WANT(EACCES, open(".git/hooks/pre-commit", O_WRONLY));
    WANT(EACCES, openat(dir, "file", O_WRONLY));
    WANT(EACCES, openat(dir, "../deep/file", O_WRONLY));
    WANT(EACCES, truncate(".bashrc", 0));
    WANT(EACCES, truncate("secrets/deep/file", 0));
    WANT(0, symlink(".bashrc", "l"));
    WANT(EACCES, open("l", O_WRONLY));
    WANT(EACCES, truncate("l", 0));
    /* reading is free, and does not become writing */
    fd = open(".bashrc", O_RDONLY);
    CHECK(fd >= 0);
    snprintf(text, sizeof(text), "/proc/self/fd/%d", fd);
    WANT(EACCES, open(text, O_WRONLY));
    WANT(EACCES, truncate(text, 0));
    WANT(EACCES, fchmod(fd, 0777));
    WANT(EACCES, futimens(fd, NULL));
    fd = open(".bashrc", O_PATH);
    snprintf(text, sizeof(text), "/dev/fd/%d", fd);
    WANT(EACCES, open(text, O_RDWR));
    WANT(0, open("mine", O_WRONLY | O_TRUNC));
    WANT(0, truncate("mine", 100));
    return run_failures;
}

static int
removing(void *arg)
{
    char text[64];
    int alias;

    (void)arg;
    WANT(EACCES, unlink(".bashrc"));
    WANT(EACCES, unlink("secrets/deep/file"));
    WANT(EACCES, rmdir("secrets/deep"));
    WANT(EACCES, unlinkat(AT_FDCWD, ".git/hooks/pre-commit", 0));
    WANT(EACCES, unlinkat(AT_FDCWD, ".git/hooks", AT_REMOVEDIR));
    WANT(EACCES, rename(".git/hooks/pre-commit", "x"));
    WANT(EACCES, rename("secrets", "x"));
    WANT(EACCES, rename("mine", "secrets/x"));
    WANT(EBUSY, rename(".git", "x"));
    WANT(ENOENT, unlink(".vscode"));
    WANT(ENOTEMPTY, rmdir(".git"));
    alias = open("alias", O_RDONLY);
    WANT(0, unlink("alias"));
    /* opened by a name that is gone: still the protected file */
    WANT(EACCES, fchmod(alias, 0777));
    snprintf(text, sizeof(text), "/proc/self/fd/%d", alias);
    WANT(EACCES, open(text, O_WRONLY));
    alias = open("mine", O_RDONLY);
    WANT(0, link("mine", "mine2"));
    WANT(0, unlink("mine2"));
    WANT(0, fchmod(alias, 0640));
    WANT(0, unlink("mine"));
    WANT(0, rmdir("empty"));
    return run_failures;
}

static int
marking(void *arg)
{
    struct utimbuf old = { 1, 1 };
    struct timeval tv[2] = { { 1, 0 }, { 1, 0 } };
    int file = open(".bashrc", O_RDONLY), dir = open("secrets", O_RDONLY | O_DIRECTORY);

    (void)arg;
    WANT(EACCES, chmod(".bashrc", 0777));
    WANT(EACCES, chmod(".git/hooks/pre-commit", 0777));
    WANT(EACCES, chmod("secrets", 0777));
    WANT(EACCES, chmod("secrets/.", 0777));
    WANT(EACCES, chmod("secrets/deep/..", 0777));
    WANT(EACCES, chmod("alias", 0777));
    WANT(EACCES, fchmodat(dir, "deep/file", 0777, 0));
    WANT(EACCES, fchmod(file, 0777));
    WANT(EACCES, fchmod(dir, 0777));
    WANT(EACCES, chown(".bashrc", getuid(), getgid()));
    WANT(EACCES, lchown(".bashrc", getuid(), getgid()));
    WANT(EACCES, fchown(file, getuid(), getgid()));
    WANT(EACCES, fchownat(file, "", getuid(), getgid(), AT_EMPTY_PATH));
    WANT(EACCES, setxattr(".bashrc", "user.k", "v", 1, 0));
    WANT(EACCES, lsetxattr(".bashrc", "user.k", "v", 1, 0));
    WANT(EACCES, fsetxattr(file, "user.k", "v", 1, 0));
    WANT(EACCES, removexattr(".bashrc", "user.k"));
    WANT(EACCES, fremovexattr(file, "user.k"));
    WANT(EACCES, utime(".bashrc", &old));
    WANT(EACCES, utimes(".bashrc", tv));
    WANT(EACCES, futimens(file, NULL));
    WANT(EACCES, utimensat(file, "", NULL, AT_EMPTY_PATH));
    WANT(ENOSYS, syscall(452, AT_FDCWD, ".bashrc", 0777, 0));       /* fchmodat2 */
    WANT(ENOSYS, syscall(463, AT_FDCWD, ".bashrc", 0, "user.k", NULL, 0));
    WANT(0, chmod("mine", 0600));
    WANT(0, utime("mine", &old));
    WANT(0, chmod(".git", 0700));
    WANT(0, chmod(".", 0755));
    return run_failures;
}

/* An old pointer file is as good as a directory: where it points, hooks may be. */
static void
worktree(const char *dir)
{
    run_file(dir, ".git", "gitdir: /elsewhere");
}

static int
pointer_file(void *arg)
{
    (void)arg;
    WANT(EACCES, open(".git", O_WRONLY));
    WANT(EACCES, unlink(".git"));
    WANT(EBUSY, rename(".git", "x"));
    WANT(0, open(".git", O_RDONLY));
    return run_failures;
}

static void
contents_stay(struct guard *g, const char *dir)
{
    char path[512], text[16] = "";
    int fd;

    (void)g;
    snprintf(path, sizeof(path), "%s/.bashrc", dir);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, text, sizeof(text) - 1), 4);
    assert_string_equal(text, "host");
    close(fd);
}

#define CASE(fn, prepare, after)                                                                            \
    static void test_##fn(void **state)                                                                     \
    {                                                                                                       \
        (void)state;                                                                                        \
        assert_true(run_one(&(struct run_case){ GUARD_EXISTING, usual, prepare, fn, after, NULL }));        \
    }

/* in standard mode the same holds of what a mount does not hold (made by the host since the start), but for removing */
#define CASE_OF_BOTH(fn, prepare, after)                                                                    \
    CASE(fn, prepare, after)                                                                                \
    static void test_##fn##_standard(void **state)                                                          \
    {                                                                                                       \
        (void)state;                                                                                        \
        assert_true(run_one(&(struct run_case){ GUARD_WRITES, usual, prepare, fn, after, NULL }));          \
    }

CASE_OF_BOTH(writing, host_made, contents_stay)
CASE(removing, host_made, contents_stay)
CASE_OF_BOTH(marking, host_made, contents_stay)
CASE(pointer_file, worktree, NULL)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writing),
        cmocka_unit_test(test_writing_standard),
        cmocka_unit_test(test_removing),
        cmocka_unit_test(test_marking),
        cmocka_unit_test(test_marking_standard),
        cmocka_unit_test(test_pointer_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
