/* program/helper_lacks.c: which shared library a program of cloche's own cannot be started for want of
 *
 * The dynamic linker ends such a program with status 127 before its first line, and says why where nobody looks. Told
 * by its environment to list what it would load, it starts nothing and names what it does not find. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "program/helper.h"

#define LIST_MS  2000
#define LIST_MAX (64 * 1024)

static pid_t
helper_lacks_list(char *program, int to)
{
    char traced[] = "LD_TRACE_LOADED_OBJECTS=1", *argv[] = { program, NULL }, *env[] = { traced, NULL };
    posix_spawn_file_actions_t actions;
    pid_t pid = -1;

    if (posix_spawn_file_actions_init(&actions) != 0)
        return -1;
    if (posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) != 0 ||
        posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO) != 0 ||
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) != 0 ||
        posix_spawn(&pid, program, &actions, NULL, argv, env) != 0)
        pid = -1;
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

/* "\tlibcares.so.2 => not found": its name onto @out. */
static void
note_missing(const char *text, char *out, size_t n)
{
    size_t used = 0;

    for (const char *line = text, *end; *line != '\0'; line = *end == '\n' ? end + 1 : end) {
        const char *arrow = strstr(line, " => not found");
        int wrote;
        end = strchrnul(line, '\n');
        if (arrow == NULL || arrow > end)
            continue;
        line += strspn(line, "\t ");
        wrote = snprintf(out + used, n - used, "%s%.*s", used > 0 ? ", " : "", (int)(arrow - line), line);
        if (wrote < 0 || (size_t)wrote >= n - used)
            return;
        used += (size_t)wrote;
    }
}

bool
helper_lacks(const char *folder, const char *name, char *out, size_t n)
{
    cleanup_buf struct buf text = BUF_INIT(LIST_MAX);
    cleanup_close int from = -1, to = -1;
    uint64_t end = clock_ms() + LIST_MS, now;
    char program[PATH_MAX];
    uint8_t some[4096];
    int ends[2];
    ssize_t got;
    pid_t pid;

    out[0] = '\0';
    if (helper_find(folder, name, program, NULL) < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return false;
    from = ends[0];
    to = ends[1];
    pid = helper_lacks_list(program, to);
    close_fd(&to);
    while (pid > 0 && (now = clock_ms()) < end) {
        struct pollfd p = { .fd = from, .events = POLLIN };
        if (poll(&p, 1, (int)(end - now)) <= 0 || (got = read(from, some, sizeof(some))) <= 0 ||
            buf_append(&text, some, (size_t)got) < 0)
            break;
    }
    if (pid > 0) {
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (buf_nul(&text) == 0)
        note_missing((const char *)text.p, out, n);
    return out[0] != '\0';
}

int
helper_complete(const char *folder, const char *name, struct err *err)
{
    char lacks[256];

    if (!helper_lacks(folder, name, lacks, sizeof(lacks)))
        return 0;
    err_set(err, ERR_UNSUPPORTED, "cli.program.library", "%s cannot start: %s is not on this system", name, lacks);
    return err_hint(err, "install the package that has it (" HELPER_PACKAGES "); `cloche doctor` "
                    "looks at every program");
}
