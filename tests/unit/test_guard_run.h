/* tests/unit/test_guard_run.h: run a function or a program under the name guard
 *
 * The child installs the filter as the guest's children do; this process is the supervisor and serves until the
 * child has ended. Without a plan the same child runs bare.
 */
#ifndef CLOCHE_TESTS_UNIT_TEST_GUARD_RUN_H
#define CLOCHE_TESTS_UNIT_TEST_GUARD_RUN_H

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
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest/guard.h"
#include "memory_dir.h"

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
            int rc = guard_on_notify(g, listener, p[0].revents);

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

/* --- checks inside the child: say the line, count, go on */

static int run_failures __attribute__((unused));

static inline void
run_check(const char *file, int line, const char *what, long rc, int got, int want)
{
    if (want == 0 ? rc >= 0 : (rc < 0 && got == want))
        return;
    run_failures++;
    dprintf(2, "%s:%d: %s: got %ld (%s), want %s\n", file, line, what, rc, rc < 0 ? strerror(got) : "success",
            want == 0 ? "success" : strerror(want));
}

/* @call must succeed (0) or fail with that errno. */
#define WANT(want, call)                                                        \
    do {                                                                        \
        long rc_;                                                               \
        errno = 0;                                                              \
        rc_ = (long)(call);                                                     \
        run_check(__FILE__, __LINE__, #call, rc_, errno, (want));               \
    } while (0)
#define CHECK(cond)                                                             \
    do {                                                                        \
        if (!(cond)) {                                                          \
            run_failures++;                                                     \
            dprintf(2, "%s:%d: %s is false\n", __FILE__, __LINE__, #cond);      \
        }                                                                       \
    } while (0)

/* One guarded run in a fresh directory, which is also the working directory. Returns whether all checks held;
 * @after (may be NULL) looks at the guard and the directory before they go. */
struct run_case {
    uint32_t flags;
    const char *const *rules;                       /* NULL-terminated, below the directory */
    void (*prepare)(const char *dir);               /* as the host, before */
    int (*child)(void *dir);
    void (*after)(struct guard *g, const char *dir);
    void (*plan)(struct guard_plan *plan, const char *dir);
    bool in_memory;                                 /* the directory: for thousands of files */
};

static inline bool
run_one(const struct run_case *rc)
{
    static char room[64];
    struct guard_plan plan = GUARD_PLAN_INIT;
    struct err err = ERR_INIT;
    char *dir = rc->in_memory ? memory_dir(room, sizeof(room), "cloche-guard") : run_tmpdir(room);
    struct run r = { .fn = rc->child, .arg = dir, .keep = true };
    bool ok;

    if (dir == NULL)
        abort();
    plan.flags = rc->flags;
    for (size_t i = 0; rc->rules != NULL && rc->rules[i] != NULL; i++)
        if (guard_plan_protect(&plan, dir, rc->rules[i], &err) < 0)
            abort();
    if (rc->plan != NULL)
        rc->plan(&plan, dir);
    if (rc->prepare != NULL)
        rc->prepare(dir);
    r.chdir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ok = run_under(&r, &plan) == 0 && run_ok(&r);
    if (!ok)
        fprintf(stderr, "child: status %#x\n", (unsigned)r.status);
    if (rc->after != NULL)
        rc->after(r.guard, dir);
    guard_free(r.guard);
    guard_plan_free(&plan);
    close(r.chdir_fd);
    run_remove(dir);
    return ok;
}

/* As the host: a file with @text below @dir. */
static inline void
run_file(const char *dir, const char *name, const char *text)
{
    char path[512];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        abort();
    close(fd);
}

static inline void
run_dir(const char *dir, const char *name)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    if (mkdir(path, 0755) < 0)
        abort();
}

/* A new file through a call that traps; its descriptor is closed again. */
static inline int
make_file(const char *path)
{
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

    if (fd >= 0)
        close(fd);
    return fd;
}

/* A new socket's name; errno is bind(2)'s. */
static inline int
bind_here(const char *path)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), rc, saved;

    strcpy(un.sun_path, path);
    rc = bind(sock, (struct sockaddr *)&un, sizeof(un));
    saved = errno;
    close(sock);
    errno = saved;
    return rc;
}

#endif
