/* tests/unit/test_guard_run.h: run a function or a program under the name guard
 *
 * The child installs the filter as the guest's children do; this process is the supervisor and serves until the
 * child has ended. Without a plan the same child runs bare.
 */
#ifndef TEST_GUARD_RUN_H
#define TEST_GUARD_RUN_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest/guard.h"

struct run {
    int (*fn)(void *arg);       /* in the child; 0: all was well */
    void *arg;
    int chdir_fd;               /* -1: stay */
    struct guard *guard;        /* left open for denials when @keep */
    bool keep;
    int status;                 /* of waitpid */
};

/* Serve until @pid ends; every other child is a worker. */
static inline int
run_serve(struct guard *g, int listener, pid_t pid)
{
    int status = -1, pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    bool ended = false;

    while (!ended) {
        struct pollfd p[2] = { { .fd = listener, .events = POLLIN }, { .fd = pidfd, .events = POLLIN } };
        pid_t got;
        int st;

        if (poll(p, 2, 1000) < 0 && errno != EINTR)
            abort();
        if (p[0].revents != 0 && listener >= 0) {
            int rc = guard_on_notify(g, listener);

            if (rc < 0)
                abort();
            if (rc == 1) {
                close(listener);
                listener = -1;
            }
        }
        while ((got = waitpid(-1, &st, WNOHANG)) > 0) {
            if (got == pid) {
                status = st;
                ended = true;
            } else if (g != NULL) {
                (void)guard_worker_ended(g, got);
            }
        }
    }
    if (listener >= 0)
        close(listener);
    close(pidfd);
    return status;
}

/* 0, or -1 when the guard could not be set up. */
static inline int
run_under(struct run *r, const struct guard_plan *plan)
{
    static struct guard_filter filter;
    struct err err = ERR_INIT;
    int pair[2], listener = -1;
    pid_t pid;

    r->guard = NULL;
    if (plan != NULL) {
        guard_filter_build(plan->flags, &filter);
        if (guard_new(plan, &r->guard, &err) < 0) {
            fprintf(stderr, "guard_new: %s\n", err.msg);
            return -1;
        }
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    fflush(NULL);
    pid = fork();
    if (pid < 0)
        return -1;
    if (pid == 0) {
        int failed = 0;

        alarm(300);
        prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);     /* as execve would */
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (r->chdir_fd >= 0 && fchdir(r->chdir_fd) < 0)
            _exit(120);
        if (plan != NULL && (failed = guard_child_install(&filter, pair[1])) != 0) {
            fprintf(stderr, "guard_child_install: %s\n", strerror(failed));
            _exit(121);
        }
        close(pair[0]);
        close(pair[1]);
        _exit(r->fn(r->arg));
    }
    close(pair[1]);
    if (plan != NULL) {
        listener = guard_listener_take(pair[0]);
        if (listener < 0)
            kill(pid, SIGKILL);
    }
    close(pair[0]);
    r->status = run_serve(r->guard, listener, pid);
    if (!r->keep) {
        guard_free(r->guard);
        r->guard = NULL;
    }
    return 0;
}

static inline bool
run_ok(const struct run *r)
{
    return WIFEXITED(r->status) && WEXITSTATUS(r->status) == 0;
}

/* A fresh directory; the name is static storage of the caller's. */
static inline char *
run_tmpdir(char room[64])
{
    strcpy(room, "/tmp/cloche-guard-XXXXXX");
    if (mkdtemp(room) == NULL)
        abort();
    return room;
}

static inline int
run_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static inline void
run_remove(const char *dir)
{
    (void)nftw(dir, run_remove_one, 32, FTW_DEPTH | FTW_PHYS);
}

#endif
