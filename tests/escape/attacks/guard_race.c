/* tests/escape/attacks/guard_race.c: make a protected name by being quicker than whoever checks it
 *
 *   guard_race ATTACK MILLISECONDS     in the project's directory; exit 0: the name was made, 1: it was not
 *
 * Each attack changes, while a call is under way, what the call's arguments mean: the bytes of the path, the directory
 * that a name or descriptor stands for, the working directory. Without a guard each succeeds at once, since nothing
 * stops the plain call either; the point is that with it none does.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE (1 << 1)
#endif

struct shared {
    atomic_bool stop;
    atomic_bool seen;           /* a protected name was there, be it for a moment */
    char path[64];
};

static struct shared *shared;
static int swapped = 40;        /* a descriptor number that changes its meaning */

static double
seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int
planted(void)
{
    struct stat st;

    if (lstat(".git/hooks", &st) == 0 || lstat(".bashrc", &st) == 0 || lstat("r/branches/origin", &st) == 0)
        atomic_store(&shared->seen, 1);
    return atomic_load(&shared->seen);
}

static int
exchange(const char *a, const char *b)
{
    return (int)syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);
}

/* --- the bytes of the path */

static void *
swap_bytes(void *arg)
{
    volatile char *p = shared->path;

    (void)arg;
    /* ".git/hooks" and "xgit/hooks" differ in one byte, ".bashrc" and "xbashrc" too */
    while (!atomic_load_explicit(&shared->stop, memory_order_relaxed))
        p[0] = p[0] == '.' ? 'x' : '.';
    return NULL;
}

static void
try_bytes(void)
{
    int fd = open(shared->path, O_CREAT | O_WRONLY, 0600);

    if (fd >= 0)
        close(fd);
    unlink("xbashrc");
}

static void
try_bytes_dir(void)
{
    (void)mkdir(shared->path, 0700);
    (void)rmdir("xgit/hooks");
}

static void
try_bytes_rename(void)
{
    int fd = open("payload", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
    (void)rename("payload", shared->path);
    unlink("xbashrc");
}

static void
try_bytes_link(void)
{
    (void)!symlink("/etc/hosts", shared->path);
    unlink("xbashrc");
}

/* --- the directories behind the names */

static void *
swap_names(void *arg)
{
    (void)arg;
    while (!atomic_load(&shared->stop)) {
        (void)exchange("door", "way");          /* a directory, and a link to .git */
        (void)exchange(".git", "xgit");
    }
    return NULL;
}

static void
try_door(void)
{
    (void)mkdir("door/hooks", 0700);
    (void)mkdir("xgit/hooks", 0700);
    if (planted())
        return;
    (void)rmdir("door/hooks");
    (void)rmdir("way/hooks");
    (void)rmdir("xgit/hooks");
}

static void *
move_in(void *arg)
{
    (void)arg;
    /* the project's .git goes, a directory with what fits comes */
    while (!atomic_load(&shared->stop)) {
        (void)rename(".git", "old");
        (void)rename("xgit", ".git");
        (void)planted();
        (void)rename(".git", "xgit");
        (void)rename("old", ".git");
    }
    return NULL;
}

/* --- new files with names that nobody asks about, where a repository that was made here has remotes */

static char whole[4096];        /* the absolute path of "door/origin" */

static void *
swap_doors(void *arg)
{
    (void)arg;
    while (!atomic_load(&shared->stop))
        (void)exchange("door", "way-to-branches");
    return NULL;
}

static void
try_new(const char *path)
{
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
}

static void
try_new_at_doors(void)
{
    try_new("door/origin");
    try_new(whole);
    if (planted())
        return;
    (void)unlink("door/origin");
    (void)unlink("way-to-branches/pre-commit");
}

/* --- the directories behind descriptors, and the working directory */

static void *
swap_descriptor(void *arg)
{
    int good = open("xgit", O_RDONLY | O_DIRECTORY), bad = open(".git", O_RDONLY | O_DIRECTORY);

    (void)arg;
    while (!atomic_load_explicit(&shared->stop, memory_order_relaxed)) {
        dup2(good, swapped);
        dup2(bad, swapped);
    }
    return NULL;
}

static void
try_descriptor(void)
{
    (void)mkdirat(swapped, "hooks", 0700);
    (void)rmdir("xgit/hooks");
}

static int top = -1;

static void *
swap_cwd(void *arg)
{
    (void)arg;
    while (!atomic_load_explicit(&shared->stop, memory_order_relaxed)) {
        (void)!fchdir(top);
        (void)!chdir("xgit");
        (void)!fchdir(top);
        (void)!chdir(".git");
    }
    return NULL;
}

static void
try_cwd(void)
{
    (void)mkdir("hooks", 0700);
    (void)unlinkat(top, "xgit/hooks", AT_REMOVEDIR);
    (void)unlinkat(top, "hooks", AT_REMOVEDIR);
}

static void *
swap_cwd_to_branches(void *arg)
{
    int safe = open("door", O_RDONLY | O_DIRECTORY), bad = open("r/branches", O_RDONLY | O_DIRECTORY);

    (void)arg;
    while (!atomic_load_explicit(&shared->stop, memory_order_relaxed)) {
        (void)!fchdir(safe);
        (void)!fchdir(bad);
    }
    return NULL;
}

static void
try_new_in_cwd(void)
{
    try_new("origin");
    (void)unlinkat(top, "door/origin", 0);
}

/* Each call is killed somewhere; a half-done one must not be a done one. */
static void
try_killed(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        for (;;)
            try_bytes();
    }
    usleep(2000);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static const struct attack {
    const char *name, *path;
    void *(*racer)(void *);
    void (*attempt)(void);
    int processes;              /* the racer is another process on shared memory */
} attacks[] = {
    { "open", ".bashrc", swap_bytes, try_bytes, 0 },
    { "open-process", ".bashrc", swap_bytes, try_bytes, 1 },
    { "mkdir", ".git/hooks", swap_bytes, try_bytes_dir, 0 },
    { "rename", ".bashrc", swap_bytes, try_bytes_rename, 0 },
    { "symlink", ".bashrc", swap_bytes, try_bytes_link, 0 },
    { "links", "", swap_names, try_door, 0 },
    { "parents", "", move_in, try_door, 0 },
    { "descriptor", "", swap_descriptor, try_descriptor, 0 },
    { "cwd", "", swap_cwd, try_cwd, 0 },
    { "killed", ".bashrc", swap_bytes, try_killed, 0 },
    { "new-links", "", swap_doors, try_new_at_doors, 0 },
    { "new-cwd", "", swap_cwd_to_branches, try_new_in_cwd, 0 },
};

static void
prepare(const struct attack *a)
{
    strcpy(shared->path, a->path);
    atomic_store(&shared->stop, 0);
    (void)mkdir(".git", 0755);
    (void)mkdir("xgit", 0755);
    (void)mkdir("door", 0755);
    (void)!symlink(".git", "way");
    (void)mkdir("r", 0755);
    (void)mkdir("r/objects", 0755);
    (void)mkdir("r/refs", 0755);
    (void)mkdir("r/branches", 0755);
    (void)!symlink("r/branches", "way-to-branches");
    if (getcwd(whole, sizeof(whole) - sizeof("/door/origin")) != NULL)
        strcat(whole, "/door/origin");
    top = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int
race(const struct attack *a, double limit)
{
    double until = seconds() + limit;
    pthread_t thread;
    pid_t pid = -1;
    int won = 0;

    if (a->processes) {
        pid = fork();
        if (pid == 0) {
            a->racer(NULL);
            _exit(0);
        }
    } else if (pthread_create(&thread, NULL, a->racer, NULL) != 0) {
        return 2;
    }
    while (seconds() < until && !won) {
        for (int i = 0; i < 20; i++)
            a->attempt();
        if (fchdir(top) == 0)
            won = planted();
    }
    atomic_store(&shared->stop, 1);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    else
        pthread_join(thread, NULL);
    return fchdir(top) == 0 && planted() ? 0 : 1;
}

/* Milliseconds in words of digits. */
static double
duration(const char *text)
{
    int ms = 0;

    for (; *text >= '0' && *text <= '9' && ms < 100000; text++)
        ms = ms * 10 + (*text - '0');
    return ms / 1000.0;
}

int
main(int argc, char **argv)
{
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (argc != 3 || shared == MAP_FAILED)
        return 2;
    for (size_t i = 0; i < ARRAY_LEN(attacks); i++) {
        if (strcmp(attacks[i].name, argv[1]) != 0)
            continue;
        prepare(&attacks[i]);
        return race(&attacks[i], duration(argv[2]));
    }
    return 2;
}
