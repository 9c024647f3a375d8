/* tests/lib/filtered.c: run a command under cloche's system call filter and nothing else
 *
 *   filtered [--list standard|light|max] [--unix all|connected|pairs] [--ptrace] [--userns] [--closed]
 *            [--time N] -- COMMAND...
 *
 * With --time N: install N times, each in a fresh child, and print the nanoseconds of each, no command. Exit codes
 * as a shell's: 125 the filter could not be installed, 126/127 the command could not be started.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "wall/seccomp.h"

static const struct option options[] = {
    { "list", required_argument, NULL, 'l' }, { "unix", required_argument, NULL, 'u' },
    { "ptrace", no_argument, NULL, 'p' },     { "userns", no_argument, NULL, 'n' },
    { "closed", no_argument, NULL, 'c' },     { "time", required_argument, NULL, 't' },
    { NULL, 0, NULL, 0 },
};

static int
pick(const char *value, const char *const names[3])
{
    for (int i = 0; i < 3; i++)
        if (strcmp(value, names[i]) == 0)
            return i;
    fprintf(stderr, "filtered: unknown value \"%s\"\n", value);
    exit(125);
}

static uint64_t
now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* One installation in a child; its duration comes back through a pipe. */
static int
time_once(const struct seccomp_plan *plan)
{
    uint64_t ns = 0;
    int ends[2];
    pid_t child;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    child = fork();
    if (child == 0) {
        uint64_t start = now();
        int r = seccomp_install(plan, NULL);

        ns = now() - start;
        _exit(r == 0 && write(ends[1], &ns, sizeof(ns)) == (ssize_t)sizeof(ns) ? 0 : 1);
    }
    close(ends[1]);
    if (child < 0 || read(ends[0], &ns, sizeof(ns)) != (ssize_t)sizeof(ns) || waitpid(child, NULL, 0) < 0) {
        close(ends[0]);
        return -1;
    }
    close(ends[0]);
    printf("%" PRIu64 "\n", ns);
    return 0;
}

int
main(int argc, char **argv)
{
    static const char *const lists[3] = { "standard", "light", "max" };
    static const char *const sockets[3] = { "all", "connected", "pairs" };
    struct seccomp_plan plan = { .list = SECCOMP_LIST_STANDARD };
    struct err err = ERR_INIT;
    uint64_t times = 0;
    int opt;

    while ((opt = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        if (opt == 'l')
            plan.list = (enum seccomp_list)pick(optarg, lists);
        else if (opt == 'u')
            plan.unix_sockets = (enum seccomp_unix)pick(optarg, sockets);
        else if (opt == 'p')
            plan.ptrace = true;
        else if (opt == 'n')
            plan.nested_userns = true;
        else if (opt == 'c')
            plan.network_closed = true;
        else if (opt != 't' || !str_parse_u64(str_of(optarg), 1000000, &times))
            return 125;
    }
    for (uint64_t i = 0; i < times; i++)
        if (time_once(&plan) < 0)
            return 125;
    if (times > 0)
        return 0;
    if (optind >= argc) {
        fprintf(stderr, "filtered: no command\n");
        return 125;
    }
    if (seccomp_install(&plan, &err) < 0) {
        fprintf(stderr, "filtered: %s\n", err.msg);
        return 125;
    }
    execvp(argv[optind], &argv[optind]);
    fprintf(stderr, "filtered: %s: %s\n", argv[optind], strerror(errno));
    return errno == ENOENT ? 127 : 126;
}
