/* hosts/ask.c: see ask.h */
#include "hosts/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/str.h"
#include "match/path.h"

#define ENV_MAX  4096
#define PATH_FALLBACK "/usr/local/bin:/usr/bin:/bin"

void
ask_free(struct ask *a)
{
    buf_free(&a->out);
}

static bool
below(const char *path, const char *dir)
{
    return dir != NULL && path_within(str_of(path), str_of(dir));
}

static bool
writable_text(const struct policy *p, const char *path)
{
    if (below(path, p->workspace.dir))       /* read-only or a copy: still the project's */
        return true;
    for (size_t i = 0; i < p->n_binds; i++)
        if (p->binds[i].writable && below(path, p->binds[i].source))
            return true;
    for (size_t i = 0; i < p->allow_write.n; i++)
        if (path_covers(str_of(p->allow_write.v[i].value), p->allow_write.v[i].literal, str_of(path), NULL))
            return true;
    return false;
}

bool
ask_writable(const struct policy *p, const char *path)
{
    char real[PATH_MAX];

    return writable_text(p, path) || (realpath(path, real) != NULL && writable_text(p, real));
}

/* --- finding ---------------------------------------------------------------------------------------------------- */

/* "PATH=...": the caller's, without what is relative or writable inside. A program starts others by it (env, say). */
static int
safe_path(const struct policy *p, struct buf *out)
{
    const char *path = getenv("PATH");

    buf_puts(out, "PATH=");
    for (const char *at = path != NULL ? path : PATH_FALLBACK; *at != '\0';) {
        size_t n = strcspn(at, ":");
        char folder[PATH_MAX];
        if (at[0] == '/' && snprintf(folder, sizeof(folder), "%.*s", (int)n, at) < PATH_MAX && !ask_writable(p, folder))
            buf_printf(out, "%s%s", out->n > strlen("PATH=") ? ":" : "", folder);
        at += n + (at[n] == ':');
    }
    return buf_nul(out);
}

static int
find_in(const struct policy *p, const char *path, const char *name, char out[PATH_MAX], struct err *err)
{
    for (const char *at = path; *at != '\0';) {
        size_t n = strcspn(at, ":");
        if (snprintf(out, PATH_MAX, "%.*s/%s", (int)n, at, name) < PATH_MAX && access(out, X_OK) == 0 &&
            !ask_writable(p, out))
            return 0;
        at += n + (at[n] == ':');
    }
    err_set(err, ERR_UNSUPPORTED, "cli.client", "there is no %s in a folder of PATH that the sandbox cannot write",
            name);
    return err_hint(err, "install it, or name the hosts: --allow-domain HOST");
}

int
ask_find(const struct policy *p, const char *name, struct buf *path, char out[PATH_MAX], struct err *err)
{
    if (safe_path(p, path) < 0)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    return find_in(p, (const char *)path->p + strlen("PATH="), name, out, err);
}

/* --- its environment -------------------------------------------------------------------------------------------- */

static bool
named(const char *entry, const char *rule)
{
    size_t n = strcspn(entry, "="), rule_n = strcspn(rule, "=");

    if (rule_n > 0 && rule[rule_n - 1] == '*')
        return strncmp(entry, rule, rule_n - 1) == 0;
    return n == rule_n && strncmp(entry, rule, n) == 0;
}

/* `npm run` hands a project's configuration on as npm_config_...; a project is what the sandbox may write. */
static bool
left_out(const struct policy *p, const char *entry, const char *const *set)
{
    static const char *const projects[] = { "PATH", "PWD", "OLDPWD", "INIT_CWD", "PYTHONPATH" };

    for (size_t i = 0; i < ARRAY_LEN(projects); i++)
        if (named(entry, projects[i]))
            return true;
    if (getenv("npm_lifecycle_event") != NULL && named(entry, "npm_*"))
        return true;
    for (size_t i = 0; i < p->env_deny.n; i++)
        if (named(entry, p->env_deny.v[i].value))
            return true;
    for (size_t i = 0; set != NULL && set[i] != NULL; i++)
        if (named(entry, set[i]))
            return true;
    return false;
}

bool
ask_passes(const struct policy *p, const char *entry)
{
    return !left_out(p, entry, NULL);
}

static char **
environment(const struct policy *p, const char *path, const char *const *set)
{
    static char *env[ENV_MAX + 2];      /* one question at a time */
    size_t n = 0;

    env[n++] = (char *)(uintptr_t)path;

    for (char **e = environ; *e != NULL && n < ENV_MAX; e++)
        if (!left_out(p, *e, set))
            env[n++] = *e;
    for (size_t i = 0; set != NULL && set[i] != NULL && n < ENV_MAX; i++)
        if (strchr(set[i], '=') != NULL)
            env[n++] = (char *)(uintptr_t)set[i];
    env[n] = NULL;
    return env;
}

/* --- running ---------------------------------------------------------------------------------------------------- */

static _Noreturn void
child(const char *path, const char *const *argv, char **env, int out, int said)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(said, 2) < 0 || chdir("/") < 0)
        _exit(127);
    (void)io_close_from(3);
    execve(path, (char *const *)(uintptr_t)argv, env);
    _exit(127);
}

/* The last line of what came. */
static void
keep_last(struct ask *a, const char *said, size_t n)
{
    size_t start;

    while (n > 0 && (said[n - 1] == '\n' || said[n - 1] == '\r'))
        n--;
    for (start = n; start > 0 && said[start - 1] != '\n'; start--)
        ;
    snprintf(a->last, sizeof(a->last), "%.*s", (int)(n - start), said + start);
}

/* False when it says too much: nobody waits for the rest. */
static bool
listen_to(struct ask *a, int out, int said_fd, uint64_t end)
{
    uint64_t now;
    struct pollfd p[2] = { { .fd = out, .events = POLLIN }, { .fd = said_fd, .events = POLLIN } };
    char said[4096], chunk[4096];
    size_t said_n = 0;

    while ((p[0].fd >= 0 || p[1].fd >= 0) && (now = clock_us()) < end) {
        if (poll(p, 2, (int)((end - now) / 1000) + 1) <= 0)
            continue;
        for (size_t i = 0; i < 2; i++) {
            ssize_t n = p[i].revents == 0 ? -1 : read(p[i].fd, chunk, sizeof(chunk));
            if (p[i].revents == 0 || (n < 0 && errno == EINTR))
                continue;
            if (n > 0 && (i == 0 || a->both) && buf_append(&a->out, chunk, (size_t)n) < 0)
                return false;
            if (n <= 0) {
                p[i].fd = -1;
            } else if (i == 1) {
                /* the newest bytes: those before them give way */
                size_t keep = said_n + (size_t)n > sizeof(said) ? sizeof(said) - (size_t)n : said_n;
                memmove(said, said + said_n - keep, keep);
                memcpy(said + keep, chunk, (size_t)n);
                said_n = keep + (size_t)n;
            }
        }
    }
    keep_last(a, said, said_n);
    return true;
}

/* Its exit code, or -1 when it does not end before @end. */
static int
end_of(pid_t pid, uint64_t end)
{
    siginfo_t info = { .si_pid = 0 };
    int status;

    while (info.si_pid == 0 && clock_us() < end) {
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | WNOHANG) < 0 && errno != EINTR)
            break;
        if (info.si_pid == 0)
            poll(NULL, 0, 5);
    }
    kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int
ask_run(const struct policy *p, const char *const *argv, const char *const *set, struct ask *a, struct err *err)
{
    cleanup_close int out = -1, said = -1, out_end = -1, said_end = -1;
    cleanup_buf struct buf path = BUF_INIT(ASK_OUT_MAX);
    uint64_t end = clock_us() + ASK_MS * UINT64_C(1000);
    int pair[2];
    pid_t pid;

    buf_reset(&a->out);
    a->status = -1;
    a->late = false;
    if (ask_find(p, argv[0], &path, a->path, err) < 0)
        return -1;
    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_sys(err, errno, "cli.client", "pipe");
    out = pair[0];
    out_end = pair[1];
    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_sys(err, errno, "cli.client", "pipe");
    said = pair[0];
    said_end = pair[1];
    pid = fork();
    if (pid < 0)
        return err_sys(err, errno, "cli.client", "fork");
    if (pid == 0)
        child(a->path, argv, environment(p, (const char *)path.p, set), out_end, said_end);
    close_fd(&out_end);
    close_fd(&said_end);
    if (!listen_to(a, out, said, end)) {
        (void)end_of(pid, 0);
        return err_set(err, ERR_LIMIT, "cli.client", "%s says too much", argv[0]);
    }
    a->status = end_of(pid, end);
    a->late = a->status < 0 && clock_us() >= end;
    return buf_nul(&a->out) < 0 ? err_set(err, ERR_LIMIT, "cli.client", "%s says too much", argv[0]) : 0;
}
