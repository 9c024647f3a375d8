/* run/direct.c: the command without any wall
 *
 * Mode off, and the fallback that a policy may ask for. It is never silent: a warning on stderr that no flag turns
 * off, and a line in $XDG_STATE_HOME/cloche/unsandboxed.log (JSON, appended).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "match/path.h"
#include "policy/place.h"
#include "program/core.h"
#include "program/say.h"
#include "program/state.h"
#include "run/session.h"

static void
record(const struct session *s, const char *why)
{
    cleanup_close int dir = state_dir_open(NULL);
    cleanup_close int fd =
        dir < 0 ? -1 : openat(dir, "unsandboxed.log", O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    char when[40];
    time_t now = time(NULL);
    struct tm utc;
    json_t *argv = json_array(), *line;
    char *text;

    for (size_t i = 0; s->argv[i] != NULL; i++)
        json_array_append_new(argv, json_string_nocheck(s->argv[i]));
    strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    line = json_pack("{s:s, s:s, s:s, s:i, s:o}", "timestamp", when, "type", "sandbox_off", "reason", why, "uid",
                     (int)getuid(), "argv", argv);
    text = line != NULL ? json_dumps(line, JSON_COMPACT) : NULL;
    if (fd < 0 || text == NULL) {
        cli_warn("this run could not be recorded in unsandboxed.log: %s", strerror(errno));
    } else {
        struct buf out = BUF_INIT(1 << 20);
        buf_puts(&out, text);
        buf_puts(&out, "\n");
        if (io_write_full(fd, out.p, out.n) < 0)
            cli_warn("this run could not be recorded in unsandboxed.log: %s", strerror(errno));
        buf_free(&out);
    }
    free(text);
    json_decref(line);
}

static void
warn_loudly(const struct session *s, const char *why)
{
    const char *url = s->policy->fallback_url.p;

    cli_warn("NO SANDBOX: the command runs directly on this host, with all of your rights (%s)", why);
    if (s->policy->mode.v != MODE_OFF)
        cli_warn("what is missing and how to get it: `cloche doctor`%s%s", url != NULL ? "; guidance: " : "",
                 url != NULL ? url : "");
}

/* What a folder below @inside is called on the host, where that is @host. */
static bool
below(const char *path, const char *inside, const char *host, char out[PATH_MAX])
{
    return path_within(str_of(path), str_of(inside)) &&
           snprintf(out, PATH_MAX, "%s%s", host, path + strlen(inside)) < PATH_MAX;
}

/* Where the command would have been, by its name on the host. What only the sandbox would have had (a workspace in
 * memory, its home) is nowhere: then where the caller is. */
static const char *
workdir(const struct policy *p, char out[PATH_MAX])
{
    const char *path = p->workdir.p;

    if (path == NULL || p->view.v == VIEW_HOST)
        return path;
    for (size_t i = p->n_binds; i-- > 0;)       /* parents come first */
        if (below(path, p->binds[i].dest, p->binds[i].source, out))
            return out;
    return p->workspace.dir != NULL && below(path, policy_workspace_at(p), p->workspace.dir, out) ? out : NULL;
}

static _Noreturn void
child(const struct session *s, int status)
{
    char room[PATH_MAX];
    const char *dir = workdir(s->policy, room);
    int why;

    if (dir != NULL && chdir(dir) < 0) {
        why = errno;
        io_write_full(status, &why, sizeof(why));
        _exit(EXIT_REFUSED);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
    sigaction(SIGXFSZ, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
    if (s->no_stdin) {
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        dup2(null, STDIN_FILENO);
    }
    for (size_t i = 0; i < s->policy->n_env; i++)
        if (s->policy->env[i].value != NULL)
            setenv(s->policy->env[i].name, s->policy->env[i].value, 1);
    core_as_it_was();
    /* execvp takes non-const words for historical reasons and changes none of them */
    execvp(s->argv[0], (char *const *)(uintptr_t)s->argv);
    why = errno;
    io_write_full(status, &why, sizeof(why));
    _exit(why == ENOENT ? EXIT_NO_COMMAND : EXIT_CANNOT_EXEC);
}

/* Wait for the command and pass on what is sent to us; what the terminal sends, and what the command sends to its own
 * group, has reached it without us. */
static void
attend(pid_t pid, const sigset_t *set, int *status, struct rusage *usage)
{
    siginfo_t info;

    for (;;) {
        pid_t ended = wait4(pid, status, WNOHANG, usage);
        if (ended == pid || (ended < 0 && errno != EINTR))
            return;
        if (sigwaitinfo(set, &info) > 0 && info.si_signo != SIGCHLD && info.si_code != SI_KERNEL &&
            info.si_pid != pid)
            kill(pid, info.si_signo);
    }
}

int
direct_run(const struct session *s, const char *why, struct session_result *r, struct err *err)
{
    cleanup_close int read_end = -1;
    int pipe_fds[2], status = 0, failed;
    sigset_t passed, old;
    struct rusage usage = { .ru_maxrss = 0 };
    struct timespec begin, end;
    pid_t pid;

    if (s->capture)
        return err_set(err, ERR_USAGE, "cli.off.capture",
                       "--json captures output only in a sandbox; use --report with mode off");
    if (s->file != NULL)
        return err_set(err, ERR_UNSUPPORTED, "cli.off.code",
                       "code is put into the root of a sandbox, and there is none (%s)", why);
    warn_loudly(s, why);
    record(s, why);
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return err_sys(err, errno, "cli.pipe", "pipe");
    clock_gettime(CLOCK_MONOTONIC, &begin);
    session_passed_signals(&passed);
    sigaddset(&passed, SIGCHLD);
    /* inherited as ignored, the kernel would take the command's end for itself */
    sigaction(SIGCHLD, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
    sigprocmask(SIG_BLOCK, &passed, &old);
    pid = fork();
    if (pid < 0) {
        sigprocmask(SIG_SETMASK, &old, NULL);
        return err_sys(err, errno, "cli.fork", "fork");
    }
    if (pid == 0)
        child(s, pipe_fds[1]);
    close(pipe_fds[1]);
    read_end = pipe_fds[0];
    if (io_read_full(read_end, &failed, sizeof(failed)) == 0)
        cli_warn("%s: %s", s->argv[0], strerror(failed));
    attend(pid, &passed, &status, &usage);
    sigprocmask(SIG_SETMASK, &old, NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    r->engine = "none";
    r->choice.n = 0;
    r->memory_by = r->cpu_by = r->pids_by = r->disk_by = "none";
    r->duration_us = (uint64_t)((end.tv_sec - begin.tv_sec) * 1000000 + (end.tv_nsec - begin.tv_nsec) / 1000);
    r->usage.cpu_us = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
                      (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    r->reason = WIFSIGNALED(status) ? REASON_SIGNALED : REASON_EXITED;
    r->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    r->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    snprintf(r->warnings[0], sizeof(r->warnings[0]), "no sandbox: %s", why);
    r->n_warnings = 1;
    return 0;
}
