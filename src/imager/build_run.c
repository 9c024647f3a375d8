/* imager/build_run.c: see build_run.h */
#include "imager/build_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"

#define LINE_MAX_BYTES 4096
#define GRACE_MS       10000

static _Noreturn void
child(const struct build_child *c, int said)
{
    const struct rlimit size = { c->max, c->max };
    const struct sigaction usual = { .sa_handler = SIG_DFL };
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigaction(SIGPIPE, &usual, NULL);
    sigaction(SIGXFSZ, &usual, NULL);
    umask(022);
    if (null >= 0 && dup2(c->in >= 0 ? c->in : null, 0) >= 0 && dup2(c->out >= 0 ? c->out : null, 1) >= 0 &&
        dup2(said, 2) >= 0 && chdir("/") == 0 && (c->max == 0 || setrlimit(RLIMIT_FSIZE, &size) == 0)) {
        (void)io_close_from(3);
        execvp(c->argv[0], (char *const *)(uintptr_t)c->argv);
    }
    dprintf(2, "%s: %s\n", c->argv[0], strerror(errno));
    _exit(127);
}

/* What came, line by line; a line that is too long is cut. @at: how much of one is in @text. */
static void
lines(const struct build_child *c, char text[LINE_MAX_BYTES], size_t *at, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] != '\n' && p[i] != '\r') {
            if (*at + 1 < LINE_MAX_BYTES)
                text[(*at)++] = p[i];
            continue;
        }
        text[*at] = '\0';
        if (*at > 0)
            c->line(c->ctx, text);
        *at = 0;
    }
}

/* Until it closes what it says, or its time is up: false. */
static bool
listen_to(const struct build_child *c, int said, uint64_t end)
{
    struct pollfd p = { .fd = said, .events = POLLIN };
    char text[LINE_MAX_BYTES], chunk[4096];
    size_t at = 0;
    uint64_t now;

    while ((now = clock_ms()) < end) {
        ssize_t n = poll(&p, 1, end - now > 60000 ? 60000 : (int)(end - now));
        if (n > 0)
            n = read(said, chunk, sizeof(chunk));
        else if (n == 0 || errno == EINTR)
            continue;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            lines(c, text, &at, "\n", 1);
            return true;
        }
        lines(c, text, &at, chunk, (size_t)n);
    }
    return false;
}

int
build_run(const struct build_child *c, struct err *err)
{
    cleanup_close int said = -1, say = -1;
    int ends[2], status;
    bool done;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, errno, "image.build", "pipe");
    said = ends[0];
    say = ends[1];
    fflush(NULL);
    pid = fork();
    if (pid < 0)
        return err_sys(err, errno, "image.build", "fork");
    if (pid == 0)
        child(c, say);
    close_fd(&say);
    done = listen_to(c, said, clock_ms() + c->ms);
    if (!done) {
        (void)kill(pid, SIGTERM);
        (void)listen_to(c, said, clock_ms() + GRACE_MS);
        (void)kill(pid, SIGKILL);
    }
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_sys(err, errno, "image.build", "wait");
    if (!done)
        return err_set(err, ERR_LIMIT, "image.build.time", "%s took longer than %llu s", c->argv[0],
                       (unsigned long long)(c->ms / 1000));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
