/* guest/guard_device.c: the host's devices in mode light
 *
 * There is no /dev of the sandbox's own there, and in /dev/pts are the terminals of whoever started it. A command gets
 * the devices that lead to nobody else, its own terminal, and the other ends of terminals that it makes itself. For
 * these Landlock has no rule: they are not there when the domain is made. So commands may open none by themselves
 * (own_domain.h), and the guard, which may, tells by what each is. Opening for reading alone does not come by here, and
 * nobody opens the end of a terminal so.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/guard_priv.h"

#ifndef TIOCGPTN
#define TIOCGPTN 0x80045430
#endif

#define PTS_MAJOR      136U
#define PTS_PER_MAJOR  256U

/* The device of a terminal's number as /proc has it. */
static dev_t
device_of_tty(unsigned nr)
{
    /* the high bits of the minor are behind the major */
    return makedev((nr >> 8) & 0xfff, (nr & 0xff) | ((nr >> 12) & 0xfff00));
}

/* null, zero, full, random, urandom; ptmx makes a new one */
static bool
is_plain(dev_t device)
{
    unsigned n = minor(device);

    return (major(device) == 1 && (n == 3 || n == 5 || (n >= 7 && n <= 9))) || device == makedev(5, 2);
}

/* Those of which the making end is closed are gone: their numbers are somebody else's by now, or will be. */
static void
forget_gone(struct guard *g)
{
    size_t n = 0;
    struct stat st;

    for (size_t i = 0; i < g->n_terminals; i++) {
        if (fstat(g->terminals[i], &st) == 0 && st.st_nlink > 0)
            g->terminals[n++] = g->terminals[i];
        else
            close(g->terminals[i]);
    }
    g->n_terminals = n;
}

/* Asked of one that is open already: what is there under that number now was there then. */
static bool
made_here(struct guard *g, dev_t device)
{
    struct stat st;

    forget_gone(g);
    for (size_t i = 0; i < g->n_terminals; i++)
        if (fstat(g->terminals[i], &st) == 0 && st.st_rdev == device)
            return true;
    return false;
}

bool
device_closed(struct call *c, const struct stat *st)
{
    unsigned nr;

    if ((c->g->flags & GUARD_DEVICES) == 0 || (!S_ISCHR(st->st_mode) && !S_ISBLK(st->st_mode)))
        return false;
    if (S_ISBLK(st->st_mode))
        return true;
    if (is_plain(st->st_rdev))
        return false;
    nr = caller_tty(c);
    return (nr == 0 || st->st_rdev != device_of_tty(nr)) && !made_here(c->g, st->st_rdev);
}

int
device_open_tty(struct call *c, int flags)
{
    unsigned nr = caller_tty(c);
    unsigned maj = major(device_of_tty(nr)), min = minor(device_of_tty(nr));
    char path[32];
    struct stat st;
    int fd;

    if (nr == 0 || maj < PTS_MAJOR || maj > PTS_MAJOR + 7)
        return -ENXIO;
    snprintf(path, sizeof(path), "dev/pts/%u", (maj - PTS_MAJOR) * PTS_PER_MAJOR + min);
    fd = (int)syscall(SYS_openat, c->g->root, path,
                      (flags & ~(O_CREAT | O_EXCL)) | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return -ENXIO;
    if (fstat(fd, &st) < 0 || !S_ISCHR(st.st_mode) || st.st_rdev != makedev(maj, min)) {
        close(fd);
        return -ENXIO;
    }
    return fd;
}

void
device_note(struct guard *g, int fd, const struct stat *st)
{
    cleanup_close int end = -1;
    char path[32];
    unsigned nr;
    struct stat is;

    if ((g->flags & GUARD_DEVICES) == 0 || !S_ISCHR(st->st_mode) || st->st_rdev != makedev(5, 2))
        return;
    forget_gone(g);
    if (g->n_terminals == TERMINALS_MAX || syscall(SYS_ioctl, fd, TIOCGPTN, &nr) < 0)
        return;
    snprintf(path, sizeof(path), "dev/pts/%u", nr);
    end = openat(g->root, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    /* of another devpts than the one at /dev/pts: then it has no name here either */
    if (end < 0 || fstat(end, &is) < 0 || !S_ISCHR(is.st_mode) ||
        is.st_rdev != makedev(PTS_MAJOR + nr / PTS_PER_MAJOR, nr % PTS_PER_MAJOR))
        return;
    g->terminals[g->n_terminals++] = take_fd(&end);
}

void
device_forget_all(struct guard *g)
{
    for (size_t i = 0; i < g->n_terminals; i++)
        close(g->terminals[i]);
    g->n_terminals = 0;
}
