/* bench/timer.c: time whole processes, from before posix_spawn until nothing of them is left
 *
 *   timer spaced COUNT PAUSE_MS -- COMMAND...   one at a time, the machine at rest in between
 *   timer closed COUNT 0        -- COMMAND...   one after the other, without a pause
 *   timer burst  COUNT 0        -- COMMAND...   all at once; each is timed from the beginning of the burst
 *
 * Prints one duration a line, in nanoseconds; for a burst then a last line "total NS". A command that does not exit 0
 * ends the measurement with status 1: a fast refusal is not a fast sandbox. `%N` in an argument becomes a number that
 * is unique for each run (OCI runtimes want a name). The command's output goes to /dev/null, its errors to ours.
 *
 * Some peers end before their sandbox does: its process 1 is then still taking namespaces and mounts down. The timer is
 * a subreaper (prctl(2)), so those processes become its children, and a run is over when the last one is gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COUNT_MAX 100000
#define ARG_MAX_BYTES 4096
#define ARGUMENTS_MAX 250
#define LEFTOVER_S 10           /* a peer that leaves something running for good is an error */

extern char **environ;

static posix_spawn_file_actions_t actions;
static posix_spawnattr_t attributes;
static unsigned sequence;

static uint64_t
now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void
fail(const char *what, int code)
{
    fprintf(stderr, "timer: %s: %s\n", what, strerror(code));
    exit(2);
}

/* Copy @argv with `%N` replaced; the copy is small and lives until the next call. */
static char **
numbered(char **argv)
{
    static char text[ARG_MAX_BYTES];
    static char *out[ARGUMENTS_MAX + 1];
    char *hole, *p = text;
    size_t i;

    sequence++;
    for (i = 0; argv[i] != NULL && i + 1 < sizeof(out) / sizeof(out[0]); i++) {
        hole = strstr(argv[i], "%N");
        out[i] = argv[i];
        if (hole == NULL)
            continue;
        int n = snprintf(p, (size_t)(text + sizeof(text) - p), "%.*s%d-%u%s", (int)(hole - argv[i]), argv[i],
                         (int)getpid(), sequence, hole + 2);
        if (n < 0 || n >= text + sizeof(text) - p)
            fail("arguments are too long", E2BIG);
        out[i] = p;
        p += n + 1;
    }
    if (argv[i] != NULL)
        fail("too many arguments", E2BIG);
    out[i] = NULL;
    return out;
}

static pid_t
start(char **argv)
{
    pid_t pid;
    char **words = numbered(argv);
    int r = posix_spawnp(&pid, words[0], &actions, &attributes, words, environ);

    if (r != 0)
        fail(words[0], r);
    return pid;
}

static void
must_be_zero(int status)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    fprintf(stderr, "timer: the command ended with status 0x%x\n", (unsigned)status);
    exit(1);
}

/* Reap what was left to us, until there is nothing. */
static void
until_nothing_is_left(void)
{
    const struct timespec patience = { .tv_sec = LEFTOVER_S };
    sigset_t chld;
    pid_t pid;

    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    while ((pid = waitpid(-1, NULL, WNOHANG)) >= 0 || errno == EINTR)
        if (pid == 0 && sigtimedwait(&chld, NULL, &patience) < 0 && errno == EAGAIN) {
            fprintf(stderr, "timer: the command left processes running\n");
            exit(1);
        }
}

static void
one_by_one(char **argv, size_t count, uint64_t pause_ms)
{
    struct timespec pause = { .tv_sec = (time_t)(pause_ms / 1000), .tv_nsec = (long)(pause_ms % 1000) * 1000000 };

    for (size_t i = 0; i < count; i++) {
        uint64_t began;
        int status;
        pid_t pid;

        if (pause_ms > 0)
            nanosleep(&pause, NULL);
        began = now();
        pid = start(argv);
        while (waitpid(pid, &status, 0) < 0)
            if (errno != EINTR)
                fail("waitpid", errno);
        must_be_zero(status);
        until_nothing_is_left();
        printf("%llu\n", (unsigned long long)(now() - began));
    }
}

/* The place of @pid among the @count started, or @count for a process that was left to us. */
static size_t
place_of(const pid_t *pids, size_t count, pid_t pid)
{
    size_t i = 0;

    while (i < count && pids[i] != pid)
        i++;
    return i;
}

static void
all_at_once(char **argv, size_t count)
{
    uint64_t began = now();
    pid_t *pids = calloc(count, sizeof(*pids));
    int status;
    pid_t pid;

    if (pids == NULL)
        fail("calloc", errno);
    for (size_t i = 0; i < count; i++)
        pids[i] = start(argv);
    for (size_t left = count; left > 0;) {
        pid = waitpid(-1, &status, 0);
        if (pid < 0 && errno != EINTR)
            fail("waitpid", errno);
        if (pid < 0 || place_of(pids, count, pid) == count)
            continue;
        printf("%llu\n", (unsigned long long)(now() - began));
        must_be_zero(status);
        left--;
    }
    until_nothing_is_left();
    printf("total %llu\n", (unsigned long long)(now() - began));
    free(pids);
}

/* Whole decimal input or refusal; this program stands alone, without base/str.h. */
static uint64_t
number(const char *text, uint64_t max)
{
    uint64_t v = 0;

    for (const char *p = text; *p != '\0' || p == text; p++) {
        if (*p < '0' || *p > '9' || v > max)
            fail("not a number, or too large", EINVAL);
        v = v * 10 + (uint64_t)(*p - '0');
    }
    if (v > max)
        fail("number too large", EINVAL);
    return v;
}

/* SIGCHLD stays blocked here, to be waited for; what is started begins with nothing blocked. */
static void
inherit_orphans(void)
{
    sigset_t chld, none;

    sigemptyset(&none);
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 || sigprocmask(SIG_BLOCK, &chld, NULL) < 0)
        fail("become a subreaper", errno);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
}

int
main(int argc, char **argv)
{
    if (argc < 6 || strcmp(argv[4], "--") != 0) {
        fprintf(stderr, "usage: timer spaced|closed|burst COUNT PAUSE_MS -- COMMAND...\n");
        return 2;
    }
    inherit_orphans();
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    if (strcmp(argv[1], "burst") == 0)
        all_at_once(argv + 5, number(argv[2], COUNT_MAX));
    else
        one_by_one(argv + 5, number(argv[2], COUNT_MAX), strcmp(argv[1], "spaced") == 0 ? number(argv[3], 10000) : 0);
    return 0;
}
