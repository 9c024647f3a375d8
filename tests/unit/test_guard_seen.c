/* tests/unit/test_guard_seen.c: what the guard keeps of a caller is the caller's, and is so now
 *
 * Working directory and umask are kept of callers that come again and again (guard_seen.c). Whatever changes them, and
 * whoever gets the number of one that is gone, the next call must not see what was.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mount.h>

#include "base/array.h"
#include "test_guard_run.h"

#define TIMES   6       /* enough calls to be known by */

static const char *const usual[] = { ".git/hooks", ".git/config", ".bashrc", NULL };

/* The mode that a new file gets; it is removed again. -1: it cannot be made. */
static int
mode_made(const char *name)
{
    int fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
    struct stat st;
    int mode = fd >= 0 && fstat(fd, &st) == 0 ? (int)(st.st_mode & 0777) : -1;

    if (fd >= 0)
        close(fd);
    return unlink(name) < 0 ? -1 : mode;
}

static void
become_known(const char *name)
{
    for (int i = 0; i < TIMES; i++)
        CHECK(mode_made(name) >= 0);
}

static char *
below(const char *dir, const char *name)
{
    static char rooms[2][PATH_MAX];
    static unsigned next;
    char *room = rooms[next++ % 2];

    snprintf(room, PATH_MAX, "%s/%s", dir, name);
    return room;
}

/* --- the umask */

static int
umask_of_oneself(void *dir)
{
    static const mode_t masks[] = { 022, 077, 0, 027, 0777, 022 };

    for (size_t i = 0; i < ARRAY_LEN(masks); i++) {
        umask(masks[i]);
        for (int k = 0; k < TIMES; k++) {
            CHECK(mode_made("f") == (int)(0666 & ~masks[i]));
            CHECK(mode_made(below(dir, "g")) == (int)(0666 & ~masks[i]));
        }
    }
    /* the answer of the call is the kernel's own */
    CHECK(umask(077) == 022);
    CHECK(umask(022) == 077);
    return run_failures;
}

static int
umask_of_sockets(void *arg)
{
    static const mode_t masks[] = { 022, 077, 0, 022 };

    (void)arg;
    for (size_t i = 0; i < ARRAY_LEN(masks); i++) {
        umask(masks[i]);
        for (int k = 0; k < TIMES; k++) {
            struct stat st;

            WANT(0, bind_here("s"));
            CHECK(stat("s", &st) == 0 && (st.st_mode & 0777) == (0777 & ~masks[i]));
            CHECK(unlink("s") == 0);
        }
    }
    return run_failures;
}

static atomic_uint turn;
static atomic_bool over;

/* Makes files without end, so that the umask is read while others set it. */
static void *
make_without_end(void *arg)
{
    while (!atomic_load(&over))
        (void)mode_made(arg);
    return NULL;
}

static void *
set_umasks(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 200; i++) {
        umask((mode_t)(i % 8 << 3 | i % 5));
        atomic_fetch_add(&turn, 1);
        while (atomic_load(&turn) % 2 == 1)
            sched_yield();
    }
    return NULL;
}

/* Threads share one: what one of them has set is so for all, at once. */
static int
umask_of_a_thread(void *arg)
{
    static char noise[] = "noise";
    pthread_t setter, maker;

    (void)arg;
    become_known("f");
    CHECK(pthread_create(&maker, NULL, make_without_end, noise) == 0);
    CHECK(pthread_create(&setter, NULL, set_umasks, NULL) == 0);
    for (unsigned i = 0; i < 200; i++) {
        while (atomic_load(&turn) % 2 == 0)
            (void)mode_made("f");       /* while the other is on its way through umask() */
        CHECK(mode_made("f") == (int)(0666 & ~(i % 8 << 3 | i % 5)));
        CHECK(mode_made("f") == (int)(0666 & ~(i % 8 << 3 | i % 5)));
        atomic_fetch_add(&turn, 1);
    }
    CHECK(pthread_join(setter, NULL) == 0);
    atomic_store(&over, true);
    CHECK(pthread_join(maker, NULL) == 0);
    return run_failures;
}

static int
umask_of_a_child(void *arg)
{
    (void)arg;
    umask(022);
    become_known("f");
    for (int i = 0; i < 8; i++) {
        pid_t pid = fork();
        int status = -1;

        if (pid == 0) {
            CHECK(mode_made("c") == 0644);
            umask(i % 2 == 0 ? 077 : 0);
            for (int k = 0; k < TIMES; k++)
                CHECK(mode_made("c") == (i % 2 == 0 ? 0600 : 0666));
            _exit(run_failures);
        }
        CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
        CHECK(mode_made("f") == 0644);
    }
    return run_failures;
}

/* A child with the number @number, or any for 0. */
static pid_t
fork_as(pid_t number)
{
    struct { uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size; }
        args = { .exit_signal = SIGCHLD, .set_tid = number != 0 ? (uintptr_t)&number : 0, .set_tid_size = number != 0 };

    return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* Whoever gets the number of a caller that is gone is another caller. */
static int
number_again(void *dir)
{
    pid_t first = fork_as(0), second;
    int status = -1;

    if (first == 0) {
        umask(0);
        CHECK(mkdir("d", 0755) == 0 && chdir("d") == 0);
        become_known("c");
        CHECK(mode_made(below(dir, "c")) == 0666);
        _exit(run_failures);
    }
    CHECK(waitpid(first, &status, 0) == first && status == 0);
    second = fork_as(first);
    if (second < 0 && errno == EPERM)
        return run_failures;    /* for the privileged */
    if (second == 0) {
        CHECK(mode_made(below(dir, "a")) == 0644);
        CHECK(make_file("b") == 0 || access(below(dir, "b"), F_OK) == 0);
        CHECK(access(below(dir, "d/b"), F_OK) < 0);
        _exit(run_failures);
    }
    CHECK(second == first && waitpid(second, &status, 0) == second && status == 0);
    return run_failures;
}

static void *
become_the_process(void *arg)
{
    if (unshare(CLONE_FS) < 0)
        return arg;
    umask(077);
    CHECK(mode_made("t") == 0600);
    atomic_store(&turn, 1);
    while (atomic_load(&turn) == 1)
        sched_yield();
    execl("/bin/sh", "sh", "-c", ": > x; : > x; test \"$(stat -c %a x)\" = 600", NULL);
    return arg;
}

/* A thread with a umask of its own becomes the process, and has its number then. */
static int
umask_of_a_thread_that_execs(void *arg)
{
    pthread_t t;

    umask(022);
    become_known("f");
    CHECK(pthread_create(&t, NULL, become_the_process, arg) == 0);
    while (atomic_load(&turn) == 0)
        sched_yield();
    become_known("f");
    atomic_store(&turn, 2);
    pthread_join(t, NULL);
    return 1;   /* not reached */
}

static void
umasks(void **state)
{
    (void)state;
    assert_true(run_one(&(struct run_case){ GUARD_NAMES, usual, NULL, umask_of_oneself, NULL, NULL }));
    assert_true(run_one(&(struct run_case){ GUARD_CONNECT, NULL, NULL, umask_of_sockets, NULL, NULL }));
    assert_true(run_one(&(struct run_case){ GUARD_NAMES | GUARD_CONNECT, usual, NULL, umask_of_sockets, NULL, NULL }));
    assert_true(run_one(&(struct run_case){ GUARD_WRITES, usual, NULL, umask_of_a_thread, NULL, NULL }));
    assert_true(run_one(&(struct run_case){ GUARD_WRITES, usual, NULL, umask_of_a_child, NULL, NULL }));
    assert_true(run_one(&(struct run_case){ GUARD_NAMES, usual, NULL, umask_of_a_thread_that_execs, NULL, NULL }));
}

static void
numbers(void **state)
{
    (void)state;
    assert_true(run_one(&(struct run_case){ GUARD_WRITES, usual, NULL, number_again, NULL, NULL }));
}

/* --- the working directory */

static int
changed_directories(void *dir)
{
    int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

    CHECK(mkdir("a", 0755) == 0 && mkdir("b", 0755) == 0 && mkdir("a/b", 0755) == 0);
    for (int i = 0; i < TIMES; i++) {
        CHECK(chdir("a") == 0);
        become_known("f");
        WANT(0, make_file("in-a"));
        CHECK(unlink(below(dir, "a/in-a")) == 0);
        CHECK(chdir("b") == 0);
        WANT(0, make_file("in-ab"));
        CHECK(unlink(below(dir, "a/b/in-ab")) == 0);
        CHECK(fchdir(here) == 0);
        WANT(0, make_file("in-top"));
        CHECK(unlink(below(dir, "in-top")) == 0);
        WANT(EACCES, make_file(".bashrc"));
    }
    return run_failures;
}

/* Where we are becomes another place, by our hand or by another's. */
static int
moved_directories(void *dir)
{
    pid_t pid;
    int status = -1;

    CHECK(mkdir("x", 0755) == 0 && chdir("x") == 0);
    become_known("hooks");
    WANT(0, rename(below(dir, "x"), below(dir, ".git")));
    WANT(EACCES, mkdir("hooks", 0755));
    WANT(EACCES, make_file("config"));
    WANT(0, make_file("free"));
    CHECK(access(below(dir, ".git/free"), F_OK) == 0);
    CHECK(chdir("..") == 0 && mkdir("y", 0755) == 0 && chdir("y") == 0);
    become_known("f");
    pid = fork();
    if (pid == 0) {
        WANT(0, rename(below(dir, "y"), below(dir, "z")));
        WANT(0, mkdir(below(dir, "y"), 0755));
        _exit(run_failures);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    WANT(0, make_file("f"));
    CHECK(access(below(dir, "z/f"), F_OK) == 0 && access(below(dir, "y/f"), F_OK) < 0);
    /* one that is removed takes nothing any more, not even when another has its name */
    CHECK(unlink("f") == 0 && rmdir(below(dir, "z")) == 0 && mkdir(below(dir, "z"), 0755) == 0);
    WANT(ENOENT, make_file("f"));
    WANT(ENOENT, mkdir("f", 0755));
    CHECK(chdir(below(dir, "z")) == 0);
    WANT(0, make_file("f"));
    CHECK(access(below(dir, "z/f"), F_OK) == 0);
    return run_failures;
}

static int
other_threads_directory(void *dir)
{
    pthread_t t;

    /* while one thread makes files, the other changes where both are */
    atomic_store(&over, false);
    CHECK(mkdir("p", 0755) == 0 && mkdir("q", 0755) == 0);
    CHECK(pthread_create(&t, NULL, make_without_end, below(dir, "noise")) == 0);
    for (int i = 0; i < 100; i++) {
        const char *where = i % 2 == 0 ? "p" : "q";
        char name[32];

        CHECK(chdir(below(dir, where)) == 0);
        snprintf(name, sizeof(name), "%d", i);
        WANT(0, make_file(name));
        CHECK(chdir(dir) == 0);
        CHECK(access(below(where, name), F_OK) == 0);
    }
    atomic_store(&over, true);
    CHECK(pthread_join(t, NULL) == 0);
    return run_failures;
}

static void
directories(void **state)
{
    (void)state;
    assert_true(run_one(&(struct run_case){ GUARD_WRITES, usual, NULL, changed_directories, NULL, NULL }));
    assert_true(run_one(&(struct run_case){ GUARD_WRITES | GUARD_GIT, usual, NULL, changed_directories, NULL, NULL }));
    assert_true(run_one(&(struct run_case){ GUARD_WRITES, usual, NULL, moved_directories, NULL, NULL }));
    assert_true(run_one(&(struct run_case){ GUARD_WRITES, usual, NULL, other_threads_directory, NULL, NULL }));
}

static char again[64];

static void
mount_read_only(const char *dir)
{
    run_tmpdir(again);
    if (mount(dir, again, NULL, MS_BIND, NULL) < 0 ||
        mount(NULL, again, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) < 0)
        again[0] = '\0';
}

/* The same directory through another mount is another one to write to. */
static int
two_mounts(void *dir)
{
    CHECK(again[0] != '\0');
    for (int i = 0; i < TIMES; i++) {
        become_known("f");
        WANT(0, make_file("f"));
        CHECK(chdir(again) == 0);
        WANT(EROFS, make_file("g"));
        WANT(EROFS, mkdir("g", 0755));
        WANT(EROFS, rename("f", "g"));
        WANT(EROFS, chmod("f", 0600));
        WANT(EROFS, open("f", O_WRONLY));
        CHECK(chdir(dir) == 0);
        CHECK(unlink("f") == 0 && access("g", F_OK) < 0);
    }
    return run_failures;
}

static void
unmount_again(struct guard *g, const char *dir)
{
    (void)g;
    (void)dir;
    if (again[0] != '\0')
        (void)umount2(again, MNT_DETACH);
    (void)rmdir(again);
}

static void
mounts(void **state)
{
    (void)state;
    if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        skip();
    assert_true(run_one(&(struct run_case){ GUARD_WRITES, usual, mount_read_only, two_mounts, unmount_again, NULL }));
}

/* --- new files are opened as they were asked for */

static int
flags_of_new_files(void *arg)
{
    static const int ways[] = { O_EXCL, O_TRUNC, O_APPEND, O_NONBLOCK, O_EXCL | O_APPEND | O_NONBLOCK, O_SYNC, 0 };

    (void)arg;
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        for (int again_i = 0; again_i < 2; again_i++) {
            int fd = open("f", O_CREAT | O_RDWR | ways[i], 0600), now = fd < 0 ? -1 : fcntl(fd, F_GETFL);

            if (again_i == 1 && (ways[i] & O_EXCL) != 0)
                break;
            CHECK(fd >= 0 && fcntl(fd, F_GETFD) == 0);
            CHECK((now & (O_ACCMODE | O_APPEND | O_NONBLOCK)) == (O_RDWR | (ways[i] & (O_APPEND | O_NONBLOCK))));
            CHECK((now & O_SYNC) == (ways[i] & O_SYNC) && (now & (O_NOFOLLOW | O_CREAT | O_EXCL)) == 0);
            close(fd);
        }
        CHECK(unlink("f") == 0);
    }
    /* whose mode allows nothing: who makes it has it open all the same */
    WANT(0, open("none", O_CREAT | O_RDWR, 0));
    WANT(0, open("ro", O_CREAT | O_EXCL | O_RDWR, 0444));
    WANT(EEXIST, open("ro", O_CREAT | O_EXCL | O_RDWR, 0444));
    WANT(0, symlink("target", "dangling"));
    WANT(EEXIST, open("dangling", O_CREAT | O_EXCL | O_WRONLY, 0600));
    WANT(0, open("dangling", O_CREAT | O_WRONLY, 0600));
    CHECK(access("target", F_OK) == 0);
    WANT(ELOOP, open("dangling", O_CREAT | O_WRONLY | O_NOFOLLOW, 0600));
    WANT(EISDIR, open("new/", O_CREAT | O_WRONLY, 0600));
    WANT(EISDIR, open(".", O_CREAT | O_WRONLY, 0600));
    WANT(ENOENT, open("", O_CREAT | O_WRONLY, 0600));
    return run_failures;
}

static void
new_files(void **state)
{
    (void)state;
    assert_true(run_one(&(struct run_case){ GUARD_WRITES, usual, NULL, flags_of_new_files, NULL, NULL }));
    assert_true(run_one(&(struct run_case){ GUARD_NAMES, usual, NULL, flags_of_new_files, NULL, NULL }));
    assert_true(run_one(&(struct run_case){ GUARD_WRITES | GUARD_GIT, usual, NULL, flags_of_new_files, NULL, NULL }));
}

/* --- where a directory lies, by its path alone */

static int
ways_to_hooks(void *dir)
{
    static const char *const ways[] = { "repo/hooks/pre-commit", "l/pre-commit", "r/hooks/pre-commit", "repo//hooks/pre-commit",
        "repo/./hooks/pre-commit", "plain/../repo/hooks/pre-commit", "repo/HOOKS/../hooks/pre-commit", "l/../hooks/pre-commit",
        "repo/hooks/deep/pre-commit", "l/deep/x" };

    CHECK(mkdir("plain", 0755) == 0 && mkdir("repo", 0755) == 0 && mkdir("repo/HOOKS", 0755) == 0);
    CHECK(mkdir("repo/objects", 0755) == 0 && mkdir("repo/refs", 0755) == 0 && mkdir("repo/hooks", 0755) == 0);
    CHECK(symlink("repo/hooks", "l") == 0 && symlink(below(dir, "repo"), "r") == 0);
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        if (strstr(ways[i], "deep") != NULL)
            (void)mkdir("repo/hooks/deep", 0755);
        CHECK(make_file(below(dir, ways[i])) < 0 && (errno == EACCES || errno == ENOENT));
        CHECK(rename(below(dir, "plain"), below(dir, ways[i])) < 0);
    }
    CHECK(chdir("repo/hooks") == 0);
    for (int i = 0; i < TIMES; i++)
        WANT(EACCES, make_file("pre-commit"));
    WANT(EACCES, rename(below(dir, "plain"), "pre-commit"));
    WANT(0, make_file("x.sample"));
    WANT(EACCES, rename("x.sample", "pre-commit"));
    WANT(EACCES, rename(below(dir, "repo/hooks/x.sample"), below(dir, "repo/hooks/pre-commit")));
    WANT(0, rename(below(dir, "repo/hooks/x.sample"), below(dir, "repo/hooks/y.sample")));
    WANT(EACCES, rename("y.sample", below(dir, "l/pre-commit")));
    WANT(ENOENT, rename("y.sample", ""));
    WANT(EBUSY, rename("y.sample", "."));
    return run_failures;
}

static void
paths(void **state)
{
    (void)state;
    assert_true(run_one(&(struct run_case){ GUARD_WRITES | GUARD_GIT, usual, NULL, ways_to_hooks, NULL, NULL }));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(umasks),
        cmocka_unit_test(numbers),
        cmocka_unit_test(directories),
        cmocka_unit_test(new_files),
        cmocka_unit_test(paths),
        cmocka_unit_test(mounts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
