/* run/session_pass.c: the caller's own streams, handed to the command
 *
 * Terminals, pipes, sockets and devices are passed as they are. Two things would go wrong inside: a pipe belongs to
 * whoever made it, so that as root the sandbox's user could not open it again (`echo > /dev/stderr`); and a file of the
 * host could be rewritten, or its mode and times changed, through its descriptor. So a pipe is given to the sandbox's
 * user, and in place of a file the command gets a pipe that is copied from or into the file here. Both streams into one
 * file share one pipe: their order stays. A folder is refused: it is a way into the host's tree.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "run/session_priv.h"

/* To the sandbox's user, where that is another one than ours. */
static int
give(const struct live *l, int fd)
{
    const struct sandbox_facts *facts = sandbox_facts(l->sb);

    return facts->other_user ? fchown(fd, facts->uid, facts->gid) : 0;
}

static int
own_pipe(struct live *l, struct copy *c, int target, struct err *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, errno, "cli.pipe", "pipe");
    c->from = ends[0];
    c->target = target;
    if (io_set_nonblock(ends[0], true) < 0 || give(l, ends[1]) < 0) {
        close(ends[1]);
        return err_sys(err, errno, "cli.pipe", "pipe");
    }
    return ends[1];
}

/* A regular file as stdin: the command reads a pipe that pass_feed fills. */
static int
feed_pipe(struct live *l, struct err *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, errno, "cli.pipe", "pipe");
    l->feed = ends[1];
    if (io_set_nonblock(ends[1], true) < 0 || give(l, ends[0]) < 0) {
        close(ends[0]);
        return err_sys(err, errno, "cli.pipe", "pipe");
    }
    return ends[0];
}

int
pass_feed(struct live *l)
{
    if (l->in == NULL && (l->in = malloc(STDIN_CHUNK)) == NULL)
        return -1;
    for (;;) {
        ssize_t n;
        if (l->in_at == l->in_n) {
            n = read(STDIN_FILENO, l->in, STDIN_CHUNK);
            if (n < 0 && errno == EINTR)
                continue;
            if (n <= 0)
                break;
            l->in_n = (size_t)n;
            l->in_at = 0;
        }
        n = write(l->feed, l->in + l->in_at, l->in_n - l->in_at);
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;      /* nobody reads any more */
        l->in_at += (size_t)n;
    }
    close_fd(&l->feed);
    return 0;
}

/* Only a pipe without a name: a FIFO in the file system is the host's, and stays whose it is. */
static bool
nameless_pipe(int fd, const struct stat *st)
{
    struct statfs fs;

    return S_ISFIFO(st->st_mode) && fstatfs(fd, &fs) == 0 && fs.f_type == PIPEFS_MAGIC;
}

int
pass_open(struct live *l, int fds[3], struct err *err)
{
    struct stat st[3];

    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fstat(fd, &st[fd]) < 0)
            return err_sys(err, errno, "cli.stdio", "descriptor %d", fd);
        if (!S_ISDIR(st[fd].st_mode) && !S_ISBLK(st[fd].st_mode))
            continue;
        err_set(err, ERR_USAGE, "cli.stdio.kind", "descriptor %d is a folder or a disk: a way into the host", fd);
        return err_hint(err, "standard input, output and error can be terminals, pipes, sockets and files");
    }
    if (fds[STDIN_FILENO] == STDIN_FILENO && S_ISREG(st[STDIN_FILENO].st_mode) &&
        (fds[STDIN_FILENO] = feed_pipe(l, err)) < 0)
        return -1;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        fds[fd] = fd;
        /* refused where it is somebody else's: then only opening it again fails */
        if (sandbox_facts(l->sb)->other_user && nameless_pipe(fd, &st[fd]) && give(l, fd) < 0 && errno != EPERM)
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
    if (fds[0] > STDERR_FILENO)
        close(fds[0]);
    if (fds[1] > STDERR_FILENO)
        close(fds[1]);
    if (fds[2] > STDERR_FILENO && fds[2] != fds[1])
        close(fds[2]);
}

int
pass_copy(struct copy *c, struct err *err)
{
    static char chunk[65536];   /* not on the stack: only what is read costs memory */

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
