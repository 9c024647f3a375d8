/* base/held: a file that is opened while somebody removes it (open_and_hold) */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/held.h"

#define OPEN (O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC)

static char path[] = "/tmp/ct-held-XXXXXX";
static bool removes_now;        /* somebody does, between open() and flock() of the next who comes */

int
flock(int fd, int how)
{
    if (removes_now) {
        removes_now = false;
        assert_int_equal(unlink(path), 0);
    }
    return (int)syscall(SYS_flock, fd, how);
}

/* Somebody who has it alone for so long, and then removes it or does not. Returns when it is locked. */
static pid_t
somebody(long ms, bool removes)
{
    int fd = open(path, OPEN, 0600);
    pid_t child;

    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
        _exit(removes && unlink(path) < 0);     /* that ends the lock, which is shared with it alone then */
    }
    close(fd);
    return child;
}

static void
gone(pid_t child)
{
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static bool
is_there(int fd)
{
    struct stat at, st;

    return fstat(fd, &st) == 0 && stat(path, &at) == 0 && at.st_ino == st.st_ino && st.st_nlink == 1;
}

static void
test_who_removes_it_is_waited_for(void **state)
{
    (void)state;
    for (int removes = 0; removes <= 1; removes++) {
        pid_t child = somebody(30, removes != 0);
        int fd = open_and_hold(path, OPEN, 0600), other = open(path, O_RDONLY | O_CLOEXEC);

        gone(child);
        assert_true(fd >= 0);
        assert_true(is_there(fd));      /* not one that nobody finds any more */
        assert_int_equal(flock(other, LOCK_EX | LOCK_NB), -1);
        assert_int_equal(close(fd), 0);
        assert_int_equal(flock(other, LOCK_EX | LOCK_NB), 0);
        close(other);
    }
}

static void
test_what_was_removed_meanwhile_is_made_anew(void **state)
{
    int fd;

    (void)state;
    removes_now = true;
    fd = open_and_hold(path, OPEN, 0600);
    assert_true(fd >= 0 && !removes_now);
    assert_true(is_there(fd));
    close(fd);
}

static void
test_not_for_ever(void **state)
{
    int fd = open(path, OPEN, 0600);

    (void)state;
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    errno = 0;
    assert_int_equal(open_and_hold(path, OPEN, 0600), -1);
    assert_int_equal(errno, EWOULDBLOCK);
    close(fd);
}

static void
test_what_cannot_be_opened(void **state)
{
    (void)state;
    errno = 0;
    assert_int_equal(open_and_hold("/proc/no/such/folder/f", OPEN, 0600), -1);
    assert_int_equal(errno, ENOENT);
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_who_removes_it_is_waited_for),
                                        cmocka_unit_test(test_what_was_removed_meanwhile_is_made_anew),
                                        cmocka_unit_test(test_not_for_ever),
                                        cmocka_unit_test(test_what_cannot_be_opened) };
    int fd = mkstemp(path), r;

    if (fd < 0)
        return 1;
    close(fd);
    r = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(path);
    return r;
}
