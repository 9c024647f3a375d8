/* cli/session_pass.c: the caller's own streams, handed to the command
 *
 * Terminals, pipes, sockets and devices are passed as they are. Two things would go wrong inside: a pipe belongs to
 * whoever made it, so that as root the sandbox's user could not open it again (`echo > /dev/stderr`); and a file of the
 * host could be read, truncated and rewritten through its descriptor. So a pipe is given to the sandbox's user, and in
 * place of a file the command gets a pipe that is copied into the file here. Both streams into one file share one
 * pipe: their order stays.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "cli/session_priv.h"

static int
own_pipe(struct live *l, struct copy *c, int target, struct err *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, errno, "cli.pipe", "pipe");
    c->from = ends[0];
    c->target = target;
    if (io_set_nonblock(ends[0], true) < 0 ||
        (l->sb->plan.privileged && fchown(ends[1], l->sb->plan.ids.outside_uid, l->sb->plan.ids.outside_gid) < 0)) {
        close(ends[1]);
        return err_sys(err, errno, "cli.pipe", "pipe");
    }
    return ends[1];
}

int
pass_open(struct live *l, int fds[3], struct err *err)
{
    struct stat st[3];

    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        fds[fd] = fd;
        if (fstat(fd, &st[fd]) < 0)
            return err_sys(err, errno, "cli.stdio", "descriptor %d", fd);
        /* refused where it is somebody else's: then only opening it again fails */
        if (S_ISFIFO(st[fd].st_mode) && l->sb->plan.privileged &&
            fchown(fd, l->sb->plan.ids.outside_uid, l->sb->plan.ids.outside_gid) < 0 && errno != EPERM)
            return err_sys(err, errno, "cli.stdio", "descriptor %d", fd);
        if (!S_ISREG(st[fd].st_mode))
            continue;
        if (fd == STDERR_FILENO && S_ISREG(st[STDOUT_FILENO].st_mode) && st[fd].st_dev == st[STDOUT_FILENO].st_dev &&
            st[fd].st_ino == st[STDOUT_FILENO].st_ino) {
            fds[fd] = fds[STDOUT_FILENO];
            continue;
        }
        fds[fd] = own_pipe(l, &l->copies[fd - STDOUT_FILENO], fd, err);
        if (fds[fd] < 0)
            return -1;
    }
    return 0;
}

void
pass_sent(const int fds[3])
{
    if (fds[1] > STDERR_FILENO)
        close(fds[1]);
    if (fds[2] > STDERR_FILENO && fds[2] != fds[1])
        close(fds[2]);
}

int
pass_copy(struct copy *c, struct err *err)
{
    char chunk[65536];

    while (c->from >= 0) {
        ssize_t n = read(c->from, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n <= 0) {
            close_fd(&c->from);
            return 0;
        }
        if (io_write_full(c->target, chunk, (size_t)n) < 0)
            return err_sys(err, errno, "cli.output", "write the command's output");
    }
    return 0;
}

/* Everything that could write is dead: what is in the pipe is all. */
int
pass_drain(struct live *l, struct err *err)
{
    int r = 0;

    for (size_t i = 0; i < 2; i++) {
        if (pass_copy(&l->copies[i], err) < 0)
            r = -1;
        close_fd(&l->copies[i].from);
    }
    return r;
}
