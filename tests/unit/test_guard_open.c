/* tests/unit/test_guard_open.c: the guard opens as the kernel would have for the caller, and only for the caller
 *
 * Terminals, pipes and magic links; what waits and is interrupted; pointers that lead nowhere; many threads, their own
 * directories and masks; callers that die in the middle; and what is the guard's own and must stay so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>
#include <pty.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>

#include "base/array.h"
#include "test_guard_run.h"

static const char *const usual[] = { ".git/hooks", ".bashrc", NULL };

static double
now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool
same_file(int a, int b)
{
    struct stat x, y;

    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* `> /dev/stderr` for whatever standard error is. */
static int
redirections(void *arg)
{
    int pipe_fds[2], sockets[2], file, fd;
    char text[64], c = 0;

    (void)arg;
    CHECK(pipe(pipe_fds) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    file = open("file", O_CREAT | O_RDWR, 0600);
    CHECK(write(file, "kept", 4) == 4);

    dup2(pipe_fds[1], 1);
    fd = open("/dev/stdout", O_CREAT | O_WRONLY | O_TRUNC, 0666);
    CHECK(fd >= 0 && write(fd, "p", 1) == 1 && read(pipe_fds[0], &c, 1) == 1 && c == 'p');
    CHECK((fcntl(fd, F_GETFL) & O_NONBLOCK) == 0);
    close(fd);
    fd = open("/proc/self/fd/1", O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0666);
    CHECK(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC && (fcntl(fd, F_GETFL) & O_APPEND) != 0);
    close(fd);
    dup2(file, 1);
    fd = open("/dev/stdout", O_CREAT | O_WRONLY | O_APPEND, 0666);
    CHECK(fd >= 0 && same_file(fd, file) && write(fd, "!", 1) == 1 && lseek(fd, 0, SEEK_END) == 5);
    close(fd);
    WANT(EEXIST, open("/dev/stdout", O_CREAT | O_EXCL | O_WRONLY, 0666));
    WANT(ELOOP, open("/proc/self/fd/1", O_CREAT | O_NOFOLLOW | O_WRONLY, 0666));
    dup2(sockets[0], 1);
    WANT(ENXIO, open("/dev/stdout", O_CREAT | O_WRONLY, 0666));
    dup2(open(".", O_RDONLY | O_DIRECTORY), 1);
    WANT(EISDIR, open("/dev/stdout", O_CREAT | O_WRONLY, 0666));
    /* a file that has no name any more */
    unlink("file");
    snprintf(text, sizeof(text), "/dev/fd/%d", file);
    fd = open(text, O_CREAT | O_RDWR, 0600);
    CHECK(fd >= 0 && same_file(fd, file));
    WANT(ENOENT, open("/dev/fd/999", O_CREAT | O_WRONLY, 0666));
    WANT(0, open("/dev/null", O_CREAT | O_WRONLY | O_TRUNC, 0666));
    fd = open("/proc/self/oom_score_adj", O_CREAT | O_WRONLY | O_TRUNC, 0666);
    CHECK(fd >= 0 && write(fd, "500", 3) == 3);
    fd = open("/proc/thread-self/comm", O_CREAT | O_WRONLY | O_TRUNC, 0666);
    CHECK(fd >= 0 && write(fd, "renamed", 7) == 7);
    CHECK(prctl(PR_GET_NAME, text) == 0 && strcmp(text, "renamed") == 0);
    return run_failures;
}

/* /dev/tty is the caller's terminal, and stays the caller's. */
static int
terminal(void *arg)
{
    int master, slave, fd, status;
    char c = 0;
    pid_t pid;

    (void)arg;
    CHECK(setsid() > 0);
    WANT(ENXIO, open("/dev/tty", O_CREAT | O_WRONLY, 0666));
    if (openpty(&master, &slave, NULL, NULL, NULL) < 0)
        return 1;
    CHECK(ioctl(slave, TIOCSCTTY, 0) == 0);
    fd = open("/dev/tty", O_CREAT | O_WRONLY | O_TRUNC, 0666);
    CHECK(fd >= 0 && write(fd, "t", 1) == 1 && read(master, &c, 1) == 1 && c == 't');
    CHECK(isatty(fd) && (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0);
    WANT(EEXIST, open("/dev/tty", O_CREAT | O_EXCL | O_WRONLY, 0666));
    dup2(slave, 2);
    fd = open("/dev/stderr", O_CREAT | O_WRONLY, 0666);
    CHECK(fd >= 0 && same_file(fd, slave));
    pid = fork();
    if (pid == 0) {
        setsid();
        run_failures = 0;
        /* another session: no terminal, and opening one by name must not make it the guard's */
        WANT(ENXIO, open("/dev/tty", O_CREAT | O_RDWR, 0666));
        _exit(run_failures);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    return run_failures;
}

static volatile sig_atomic_t alarms;

static void
on_alarm(int signo)
{
    (void)signo;
    alarms++;
}

static pid_t
in_child(int (*fn)(void))
{
    pid_t pid = fork();

    if (pid == 0) {
        run_failures = 0;
        _exit(fn() + run_failures);
    }
    return pid;
}

static const char *fifo = "fifo";

static int
fifo_writer(void)
{
    int fd = open(fifo, O_CREAT | O_WRONLY, 0600);

    CHECK(fd >= 0 && (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0);
    CHECK(write(fd, "w", 1) == 1);
    return 0;
}

static int
fifo_reader(void)
{
    char c = 0;
    int fd = open(fifo, O_CREAT | O_RDONLY, 0600);

    CHECK(fd >= 0 && read(fd, &c, 1) == 1 && c == 'w');
    return 0;
}

/* Opening one end waits for the other, and meanwhile everybody else is served. */
static int
fifos(void *arg)
{
    struct sigaction act = { .sa_handler = on_alarm };
    /* again and again: on a busy machine the first could come before the wait has begun */
    const struct itimerval soon = { { 0, 150000 }, { 0, 150000 } }, never = { { 0, 0 }, { 0, 0 } };
    int status;
    pid_t a, b;

    (void)arg;
    WANT(0, mkfifo("fifo", 0600));
    WANT(ENXIO, open("fifo", O_CREAT | O_WRONLY | O_NONBLOCK, 0600));
    a = in_child(fifo_writer);
    usleep(50000);
    CHECK(waitpid(a, NULL, WNOHANG) == 0);
    for (int i = 0; i < 50; i++)
        WANT(0, make_file("busy"));
    b = in_child(fifo_reader);
    CHECK(waitpid(b, &status, 0) == b && status == 0);
    CHECK(waitpid(a, &status, 0) == a && status == 0);
    /* the other way round */
    b = in_child(fifo_reader);
    usleep(50000);
    CHECK(waitpid(b, NULL, WNOHANG) == 0);
    a = in_child(fifo_writer);
    CHECK(waitpid(a, &status, 0) == a && status == 0);
    CHECK(waitpid(b, &status, 0) == b && status == 0);
    /* a signal with a handler ends the wait, SIGKILL ends the waiter */
    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &soon, NULL);
    WANT(EINTR, open("fifo", O_CREAT | O_WRONLY, 0600));
    setitimer(ITIMER_REAL, &never, NULL);
    CHECK(alarms >= 1);
    a = in_child(fifo_writer);
    usleep(30000);
    CHECK(kill(a, SIGKILL) == 0 && waitpid(a, &status, 0) == a && WIFSIGNALED(status));
    a = in_child(fifo_writer);
    usleep(30000);
    CHECK(kill(a, SIGTERM) == 0 && waitpid(a, &status, 0) == a && WIFSIGNALED(status));
    alarm(300);
    WANT(0, open("fifo", O_CREAT | O_RDWR, 0600));
    return run_failures;
}

#define FIFOS 10            /* at once: each has a worker that waits by itself */

/* The worker that waits looks up every 50 ms; its answer comes whole, also when that falls together. */
static int
fifo_moments(void *arg)
{
    char names[FIFOS][16];
    pid_t writers[FIFOS], readers[FIFOS];
    int status;

    (void)arg;
    for (unsigned i = 0; i < FIFOS; i++) {
        snprintf(names[i], sizeof(names[i]), "fifo%u", i);
        WANT(0, mkfifo(names[i], 0600));
    }
    for (unsigned moment = 0; moment < 60; moment += FIFOS) {
        for (unsigned i = 0; i < FIFOS; i++) {
            fifo = names[i];
            writers[i] = in_child(fifo_writer);
        }
        usleep(48000 + moment * 60);
        for (unsigned i = 0; i < FIFOS; i++) {
            fifo = names[i];
            readers[i] = in_child(fifo_reader);
            usleep(60);
        }
        for (unsigned i = 0; i < FIFOS; i++) {
            CHECK(waitpid(writers[i], &status, 0) == writers[i] && status == 0);
            CHECK(waitpid(readers[i], &status, 0) == readers[i] && status == 0);
        }
    }
    return run_failures;
}

/* A lease makes an open wait for its holder, who is the attacker. */
static int
lease(void *arg)
{
    int fd, status;
    double from;
    pid_t pid;

    (void)arg;
    fd = open("leased", O_CREAT | O_RDWR, 0600);
    if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
        return 0;       /* not on this file system */
    signal(SIGIO, SIG_IGN);
    pid = fork();
    if (pid == 0) {
        close(fd);
        _exit(make_file("leased") < 0);
    }
    usleep(50000);
    from = now();
    for (int i = 0; i < 20; i++)
        WANT(0, make_file("other"));
    CHECK(now() - from < 10);
    CHECK(waitpid(pid, &status, WNOHANG) == 0);
    CHECK(fcntl(fd, F_SETLEASE, F_UNLCK) == 0);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    return run_failures;
}

/* --- arguments */

static int
pointers(void *arg)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *map = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *end;
    const char *bad = (const char *)(uintptr_t)8;

    (void)arg;
    CHECK(map != MAP_FAILED && munmap(map + 2 * page, page) == 0);
    WANT(EFAULT, syscall(SYS_openat, AT_FDCWD, bad, O_CREAT | O_RDWR, 0600));
    WANT(EFAULT, syscall(SYS_openat, AT_FDCWD, NULL, O_CREAT | O_RDWR, 0600));
    WANT(EFAULT, syscall(SYS_openat, AT_FDCWD, (uintptr_t)-1, O_CREAT | O_RDWR, 0600));
    WANT(EFAULT, syscall(SYS_renameat2, AT_FDCWD, bad, AT_FDCWD, "x", 0));
    WANT(EFAULT, syscall(SYS_symlinkat, bad, AT_FDCWD, "x"));
    /* ends right before the hole; has no end before it; crosses a page */
    end = map + 2 * page;
    strcpy(end - 5, "edge");
    WANT(0, make_file(end - 5));
    memset(end - 8, 'x', 8);
    WANT(EFAULT, make_file(end - 8));
    strcpy(map + page - 3, "across");
    WANT(0, make_file(map + page - 3));
    CHECK(access("across", F_OK) == 0 && access("edge", F_OK) == 0);
    /* 4095 bytes are a path, 4096 are not */
    memset(map, '/', page);
    map[0] = '.';
    strcpy(map + 4094, "l");
    WANT(0, make_file(map));
    strcpy(map + 4095, "l");
    map[4094] = '/';
    WANT(ENAMETOOLONG, make_file(map));
    WANT(ENOENT, make_file(""));
    WANT(EBADF, openat(777, "x", O_CREAT | O_RDWR, 0600));
    WANT(EBADF, openat(-5, "x", O_CREAT | O_RDWR, 0600));
    WANT(ENOTDIR, openat(open("l", O_RDONLY), "x", O_CREAT | O_RDWR, 0600));
    return run_failures;
}

static int
unnamed(void *arg)
{
    char text[64];
    int fd, dir = open(".", O_PATH);

    (void)arg;
    WANT(0, mkdir(".git", 0755));
    fd = open(".", O_TMPFILE | O_RDWR, 0600);
    if (fd < 0)
        return errno == EOPNOTSUPP ? 0 : 1;
    snprintf(text, sizeof(text), "/proc/self/fd/%d", fd);
    WANT(EACCES, linkat(AT_FDCWD, text, AT_FDCWD, ".bashrc", AT_SYMLINK_FOLLOW));
    WANT(EACCES, linkat(AT_FDCWD, text, dir, ".git/hooks", AT_SYMLINK_FOLLOW));
    WANT(EACCES, linkat(fd, "", dir, ".bashrc", AT_EMPTY_PATH));
    WANT(0, linkat(AT_FDCWD, text, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
    CHECK(access("named", F_OK) == 0);
    fd = open(".", O_TMPFILE | O_EXCL | O_RDWR, 0600);
    snprintf(text, sizeof(text), "/proc/self/fd/%d", fd);
    WANT(ENOENT, linkat(AT_FDCWD, text, AT_FDCWD, "unlinkable", AT_SYMLINK_FOLLOW));
    return run_failures;
}

/* The guard does the work, the limit is the caller's. */
static int
descriptor_limit(void *arg)
{
    struct rlimit r = { 16, 16 };
    int n = 0;

    (void)arg;
    setrlimit(RLIMIT_NOFILE, &r);
    while (open("many", O_CREAT | O_RDWR, 0600) >= 0 && n < 100)
        n++;
    CHECK(errno == EMFILE && n > 0 && n < 16);
    return run_failures;
}

/* --- ways around are closed */

static int
closed(void *arg)
{
    struct { uint64_t flags, mode, resolve; } how = { O_CREAT | O_WRONLY, 0600, 0 };
    char subvolume[4096] = { 0 };

    (void)arg;
    WANT(ENOSYS, syscall(SYS_openat2, AT_FDCWD, ".bashrc", &how, sizeof(how)));
    WANT(ENOSYS, syscall(425, 8, subvolume));                               /* io_uring_setup */
    WANT(EOPNOTSUPP, syscall(444, NULL, 0, 1));                             /* landlock_create_ruleset */
    WANT(EOPNOTSUPP, syscall(446, 0, 0));                                   /* landlock_restrict_self */
    WANT(EPERM, syscall(SYS_open_by_handle_at, 0, subvolume, 0));
    WANT(EPERM, chroot("."));
    WANT(ENOTTY, ioctl(0, 0x5000940eUL, subvolume));                        /* BTRFS_IOC_SUBVOL_CREATE */
    WANT(ENOTTY, ioctl(0, 0x50009418UL, subvolume));                        /* BTRFS_IOC_SUBVOL_CREATE_V2 */
    WANT(ENOTTY, syscall(SYS_ioctl, 0, 0xffffffff5000940eUL, subvolume));   /* the same, high bits set */
    WANT(0, prctl(PR_SET_DUMPABLE, 0));
    CHECK(prctl(PR_GET_DUMPABLE) == 1);
    WANT(0, make_file("served"));
#if defined(__x86_64__)
    WANT(ENOSYS, syscall(0x40000000 | SYS_mkdir, "x32", 0700));
#endif
    return run_failures;
}

static int
nested(void *arg)
{
    static struct guard_filter f;
    int pair[2];

    (void)arg;
    guard_filter_build(GUARD_NAMES, &f);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    CHECK(guard_child_install(&f, pair[0]) == EBUSY);
    return run_failures;
}

/* What the guard could open in its own /proc entries, and the caller could not. */
static int
not_the_guards(void *arg)
{
    static const char *const entries[] = { "fd/0", "fd/1", "fd/3", "fd/4", "fd/5", "cwd/stolen", "root/tmp/stolen",
                                           "task/%d/cwd/stolen", "oom_score_adj", "mem", "comm" };
    pid_t guard = getppid();
    char text[128], entry[64];
    int dir, fds;

    (void)arg;
    snprintf(text, sizeof(text), "/proc/%d", guard);
    dir = open(text, O_PATH | O_DIRECTORY);
    snprintf(text, sizeof(text), "/proc/%d/fd", guard);
    fds = open(text, O_PATH);
    for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(entry, sizeof(entry), entries[i], guard);
#pragma GCC diagnostic pop
        snprintf(text, sizeof(text), "/proc/%d/%s", guard, entry);
        WANT(EACCES, open(text, O_CREAT | O_RDWR, 0600));
        WANT(EACCES, openat(dir, entry, O_CREAT | O_RDWR, 0600));
    }
    WANT(EACCES, openat(fds, "4", O_CREAT | O_RDWR, 0600));
    WANT(EACCES, openat(fds, "../cwd/stolen", O_CREAT | O_RDWR, 0600));
    snprintf(text, sizeof(text), "/proc/%d/mem", guard);
    dir = open(text, O_PATH);
    if (dir >= 0) {
        snprintf(text, sizeof(text), "/proc/self/fd/%d", dir);
        WANT(EACCES, open(text, O_CREAT | O_RDWR, 0600));
    }
    snprintf(text, sizeof(text), "/proc/%d/cwd", guard);
    WANT(0, symlink(text, "l"));
    WANT(EACCES, make_file("l/stolen"));
    return run_failures;
}

/* --- threads and processes */

static void *
thread_of_its_own(void *arg)
{
    long id = (long)arg;
    char name[64];
    struct stat st;
    int fd;

    if (unshare(CLONE_FS) < 0)
        return (void *)1;
    snprintf(name, sizeof(name), "t%ld", id);
    if (mkdir(name, 0755) < 0 || chdir(name) < 0)
        return (void *)2;
    umask((mode_t)(id % 2 == 0 ? 077 : 002));
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        fd = open(name, O_CREAT | O_EXCL | O_RDWR, 0666);
        if (fd < 0 || fstat(fd, &st) < 0 || (st.st_mode & 0777) != (id % 2 == 0 ? 0600u : 0664u))
            return (void *)3;
        close(fd);
        snprintf(name + 32, sizeof(name) - 32, "r%d", i);
        if (rename(name, name + 32) < 0)
            return (void *)4;
    }
    return NULL;
}

static int
threads(void *arg)
{
    pthread_t t[8];
    char name[64];

    (void)arg;
    for (long i = 0; i < 8; i++)
        CHECK(pthread_create(&t[i], NULL, thread_of_its_own, (void *)i) == 0);
    for (long i = 0; i < 8; i++) {
        void *rc;

        CHECK(pthread_join(t[i], &rc) == 0);
        if (rc != NULL)
            dprintf(2, "thread %ld: step %ld\n", i, (long)rc);
        CHECK(rc == NULL);
        snprintf(name, sizeof(name), "t%ld/r99", i);
        CHECK(access(name, F_OK) == 0);
    }
    return run_failures;
}

static void *
thread_with_descriptors(void *arg)
{
    int fd;

    (void)arg;
    if (unshare(CLONE_FILES) < 0)
        return (void *)1;
    /* this number means another file for the rest of the process */
    dup2(open("a", O_RDONLY | O_DIRECTORY), 90);
    fd = openat(90, "in-a", O_CREAT | O_RDWR, 0600);
    return fd < 0 ? (void *)2 : NULL;
}

static int
own_descriptors(void *arg)
{
    pthread_t t;
    void *rc;

    (void)arg;
    CHECK(mkdir("a", 0755) == 0 && mkdir("b", 0755) == 0);
    dup2(open("b", O_RDONLY | O_DIRECTORY), 90);
    CHECK(pthread_create(&t, NULL, thread_with_descriptors, NULL) == 0 && pthread_join(t, &rc) == 0 && rc == NULL);
    CHECK(access("a/in-a", F_OK) == 0 && access("b/in-a", F_OK) < 0);
    return run_failures;
}

static void *
keep_opening(void *arg)
{
    char name[32];

    (void)arg;
    for (int i = 0;; i++) {
        snprintf(name, sizeof(name), "k%d", i % 50);
        (void)make_file(name);
    }
    return NULL;
}

/* Killed, or replaced by execve, in the middle of a call: nobody else is harmed. */
static int
sudden_ends(void *arg)
{
    (void)arg;
    for (int i = 0; i < 40; i++) {
        int status;
        pid_t pid = fork();

        if (pid == 0) {
            pthread_t t;

            for (int k = 0; k < 3; k++)
                pthread_create(&t, NULL, keep_opening, NULL);
            usleep((useconds_t)(i * 37 % 1000));
            if (i % 2 == 0)
                execl("/bin/true", "true", (char *)NULL);
            keep_opening(NULL);
        }
        if (i % 2 != 0) {
            usleep((useconds_t)(500 + i * 53 % 3000));
            kill(pid, SIGKILL);
        }
        CHECK(waitpid(pid, &status, 0) == pid && (i % 2 != 0 ? WIFSIGNALED(status) : status == 0));
        WANT(0, make_file("alive"));
    }
    return run_failures;
}

static void
on_usr1(int signo)
{
    (void)signo;
}

/* Signals while calls are served: with SA_RESTART nothing is lost and nothing happens twice. */
static int
signals(void *arg)
{
    struct sigaction act = { .sa_handler = on_usr1, .sa_flags = SA_RESTART };
    struct itimerval often = { { 0, 300 }, { 0, 300 } };
    char name[32];

    (void)arg;
    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 1500; i++) {
        snprintf(name, sizeof(name), "d%d", i);
        WANT(0, mkdir(name, 0755));
        WANT(0, rmdir(name));
    }
    return run_failures;
}

/* --- the supervisor's side */

static int
count_own_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    while (d != NULL && readdir(d) != NULL)
        n++;
    if (d != NULL)
        closedir(d);
    return n;
}

static int
a_bit_of_everything(void *arg)
{
    (void)arg;
    for (int i = 0; i < 50; i++) {
        struct stat st;

        (void)make_file("a");
        (void)make_file("missing/a");
        (void)make_file(".bashrc");
        (void)make_file("/dev/stderr");
        (void)mkdir("d", 0755);
        (void)rename("d", "e");
        (void)rename("e", ".git");
        (void)rename(".git", "d");
        (void)!link("a", "b");
        (void)!symlink("a", "loop/x/y");
        (void)open("/proc/self/fd/77", O_CREAT, 0600);
        (void)stat("a", &st);
        (void)unlink("b");
        (void)close(open(".", O_TMPFILE | O_RDWR, 0600));
    }
    return 0;
}

static void
descriptors_stay(void **state)
{
    int before = count_own_fds();

    (void)state;
    assert_true(run_one(&(struct run_case){ GUARD_NAMES | GUARD_EXISTING | GUARD_CONNECT, usual, NULL,
                                            a_bit_of_everything, NULL, NULL }));
    assert_int_equal(count_own_fds(), before);
}

#define CASE(fn)                                                                                            \
    CASE_AT(fn, false)
#define CASE_AT(fn, in_mem)                                                                                 \
    static void test_##fn(void **state)                                                                     \
    {                                                                                                       \
        struct run_case names = { .flags = GUARD_NAMES, .rules = usual, .child = fn, .in_memory = in_mem }; \
        struct run_case writes = names, all = names;                                                        \
                                                                                                            \
        (void)state;                                                                                        \
        writes.flags |= GUARD_WRITES;                                                                       \
        all.flags |= GUARD_EXISTING;                                                                        \
        assert_true(run_one(&names));                                                                       \
        assert_true(run_one(&writes));                                                                      \
        assert_true(run_one(&all));                                                                         \
    }

CASE(redirections)
CASE(terminal)
CASE(fifos)
CASE(fifo_moments)
CASE(lease)
CASE(pointers)
CASE(unnamed)
CASE(descriptor_limit)
CASE(closed)
CASE(nested)
CASE(not_the_guards)
CASE_AT(threads, true)
CASE(own_descriptors)
CASE(sudden_ends)
CASE_AT(signals, true)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_redirections),
        cmocka_unit_test(test_terminal),
        cmocka_unit_test(test_fifos),
        cmocka_unit_test(test_fifo_moments),
        cmocka_unit_test(test_lease),
        cmocka_unit_test(test_pointers),
        cmocka_unit_test(test_unnamed),
        cmocka_unit_test(test_descriptor_limit),
        cmocka_unit_test(test_closed),
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_not_the_guards),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_own_descriptors),
        cmocka_unit_test(test_sudden_ends),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(descriptors_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
