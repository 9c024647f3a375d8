/* vault/value.c: where a value comes from: the terminal, stdin, a variable, a file or a program; never the command
 * line, which every user of the host can read in /proc */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "vault/cmd.h"

#define TYPED_MAX 4095      /* bytes of one line that a terminal gives */

static int
too_long(const char *what, size_t max, struct err *err)
{
    return err_set(err, ERR_LIMIT, "vault.value", "%s gives more than %zu bytes", what, max);
}

int
value_read_fd(int fd, size_t max, const char *what, struct secret *out, struct err *err)
{
    cleanup_secret struct secret room = { NULL, 0 };
    size_t n = 0;

    if (secret_alloc(&room, max + 1, err) < 0)
        return -1;
    for (;;) {
        ssize_t got = read(fd, room.p + n, room.n - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_sys(err, errno, "vault.input", "%s", what);
        if (got == 0)
            return secret_copy(out, room.p, n, err);
        n += (size_t)got;
        if (n > max)
            return too_long(what, max, err);
    }
}

/* --- the terminal ------------------------------------------------------------------------------------------------- */

static int
read_line(int tty, struct secret *out, struct err *err)
{
    cleanup_secret struct secret room = { NULL, 0 };
    ssize_t n;

    if (secret_alloc(&room, TYPED_MAX + 1, err) < 0)
        return -1;
    do
        n = read(tty, room.p, room.n);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return err_set(err, ERR_USAGE, "vault.input", "nothing was typed");
    return secret_copy(out, room.p, (size_t)n, err);
}

static int
ask_terminal(const char *name, struct secret *out, struct err *err)
{
    cleanup_close int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    struct termios before, quiet;
    sigset_t set, old;
    int r;

    if (tty < 0 || tcgetattr(tty, &before) < 0)
        return err_sys(err, errno, "vault.input", "/dev/tty");
    /* the terminal must get its echo back whatever happens */
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGQUIT);
    sigaddset(&set, SIGTSTP);
    sigaddset(&set, SIGHUP);
    quiet = before;
    quiet.c_lflag = (quiet.c_lflag | ICANON) & ~(tcflag_t)(ECHO | ISIG);
    sigprocmask(SIG_BLOCK, &set, &old);
    if (tcsetattr(tty, TCSAFLUSH, &quiet) < 0) {
        sigprocmask(SIG_SETMASK, &old, NULL);
        return err_sys(err, errno, "vault.input", "/dev/tty");
    }
    dprintf(tty, "value of %s (not shown): ", name);
    r = read_line(tty, out, err);
    dprintf(tty, "\n");
    tcsetattr(tty, TCSAFLUSH, &before);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return r;
}

/* --- variable, file, program -------------------------------------------------------------------------------------- */

static int
from_variable(const char *name, struct secret *out, struct err *err)
{
    const char *value = store_env_valid(str_of(name)) ? getenv(name) : NULL;

    if (!store_env_valid(str_of(name)))
        return err_set(err, ERR_USAGE, "vault.input", "--from-env takes the name of a variable");
    if (value == NULL) {
        err_set(err, ERR_USAGE, "vault.input", "the variable %.64s is not set", name);
        return err_hint(err, "export it, or give the value on standard input");
    }
    return secret_copy(out, value, strlen(value), err);
}

static int
from_file(const char *path, struct secret *out, struct err *err)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    return fd < 0 ? err_sys(err, errno, "vault.input", "%s", path)
                  : value_read_fd(fd, STORE_PLAIN_MAX + 2, path, out, err);
}

static int
from_command(char **command, struct secret *out, struct err *err)
{
    cleanup_close int from = -1, to = -1;
    int ends[2], status, r;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, errno, "vault.input", "pipe");
    from = ends[0];
    to = ends[1];
    pid = fork();
    if (pid < 0)
        return err_sys(err, errno, "vault.input", "fork");
    if (pid == 0) {
        if (dup2(to, STDOUT_FILENO) < 0)
            _exit(127);
        execvp(command[0], command);
        _exit(127);
    }
    close_fd(&to);
    r = value_read_fd(from, STORE_PLAIN_MAX + 2, command[0], out, err);
    close_fd(&from);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_sys(err, errno, "vault.input", "%s", command[0]);
    if (r == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
        secret_free(out);
        return err_set(err, ERR_USAGE, "vault.input", "%.200s failed (%s %d)", command[0],
                       WIFEXITED(status) ? "exit code" : "signal",
                       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    }
    return r;
}

int
value_read(const struct cmd_options *o, struct secret *out, struct err *err)
{
    int r = o->from_env != NULL         ? from_variable(o->from_env, out, err)
            : o->from_file != NULL      ? from_file(o->from_file, out, err)
            : o->command != NULL        ? from_command(o->command, out, err)
            : isatty(STDIN_FILENO)      ? ask_terminal(o->name, out, err)
                                        : value_read_fd(STDIN_FILENO, STORE_PLAIN_MAX + 2, "standard input", out, err);

    if (r < 0)
        return -1;
    if (out->n > 0 && out->p[out->n - 1] == '\n')
        out->n--;
    if (out->n > 0 && out->p[out->n - 1] == '\r')
        out->n--;
    return 0;
}
