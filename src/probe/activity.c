/* probe/activity.c: what programs do, then the same questions again
 *
 * A wall must be the same after children, threads, execs and terminals as before them. A second thread and a
 * second process stay alive while the posture is taken, so that "every thread" has something to find.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "probe/probe.h"

#define CHILDREN 8
#define THREADS  4

static pthread_barrier_t ready;

static void *
idle_thread(void *argument)
{
    (void)argument;
    pthread_barrier_wait(&ready);
    for (;;)
        pause();
    return NULL;
}

static int
wait_for(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Programs of the place itself, and ourselves again: each may be missing, none may hang. */
static int
run_children(void)
{
    static const char *const programs[] = { "/proc/self/exe", "/bin/true", "/usr/bin/env", "/bin/sh" };

    for (int i = 0; i < CHILDREN; i++) {
        char path[64], word[] = "nothing";
        char *argv[] = { path, word, NULL };
        pid_t pid = fork();

        if (pid < 0)
            return -1;
        if (pid == 0) {
            int null = open("/dev/null", O_RDWR | O_CLOEXEC);
            snprintf(path, sizeof(path), "%s", programs[i % 4]);
            if (null >= 0 && (dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0))
                _exit(1);
            if (i % 4 == 3)
                argv[1] = NULL;
            execv(path, argv);
            _exit(127);
        }
        wait_for(pid);
    }
    return 0;
}

/* A child on a terminal of its own. No terminal is no failure: a place may have none. */
static void
use_terminal(void)
{
    cleanup_close int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    char name[64];
    pid_t pid;

    if (master < 0 || unlockpt(master) < 0 || ptsname_r(master, name, sizeof(name)) != 0)
        return;
    pid = fork();
    if (pid == 0) {
        setsid();
        cleanup_close int slave = open(name, O_RDWR | O_CLOEXEC);
        if (slave >= 0)
            ioctl(slave, TIOCSCTTY, 0);
        _exit(slave >= 0 && write(slave, "x", 1) == 1 ? 0 : 1);
    }
    if (pid > 0)
        wait_for(pid);
}

/* Descriptors of many kinds, opened and closed: none may turn up later. */
static void
use_descriptors(void)
{
    int pair[2], ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0) {
        close(pair[0]);
        close(pair[1]);
    }
    if (pipe2(ends, O_CLOEXEC) == 0) {
        close(ends[0]);
        close(ends[1]);
    }
    int memory = memfd_create("activity", MFD_CLOEXEC);
    if (memory >= 0)
        close(memory);
}

int
activity_run(const struct probe *p, int fd)
{
    pthread_t threads[THREADS];
    unsigned started = 0;
    pid_t sleeper;
    int result;

    if (run_children() < 0)
        return fprintf(stderr, "cloche-probe: fork: %s\n", strerror(errno)), -1;
    use_terminal();
    use_descriptors();
    if (pthread_barrier_init(&ready, NULL, THREADS + 1) != 0)
        return -1;
    for (; started < THREADS; started++)
        if (pthread_create(&threads[started], NULL, idle_thread, NULL) != 0)
            return fprintf(stderr, "cloche-probe: no thread: %s\n", strerror(errno)), -1;
    pthread_barrier_wait(&ready);
    sleeper = fork();
    if (sleeper == 0) {
        for (;;)
            pause();
    }
    result = posture_write(p, fd);
    if (sleeper > 0) {
        kill(sleeper, SIGKILL);
        wait_for(sleeper);
    }
    return result;
}
