/* program/tty.c: see tty.h */
#include "program/tty.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

int
tty_size(int fd, uint16_t *rows, uint16_t *cols)
{
    struct winsize size;

    if (ioctl(fd, TIOCGWINSZ, &size) < 0 || size.ws_row == 0 || size.ws_col == 0)
        return -1;
    *rows = size.ws_row;
    *cols = size.ws_col;
    return 0;
}

int
tty_raw(struct tty_state *t, int fd, struct err *err)
{
    struct termios raw;

    if (tcgetattr(fd, &t->saved) < 0)
        return errno == ENOTTY ? 0 : err_sys(err, errno, "cli.tty", "terminal attributes");
    raw = t->saved;
    cfmakeraw(&raw);
    /* TCSADRAIN would wait for a stopped reader */
    if (tcsetattr(fd, TCSANOW, &raw) < 0)
        return err_sys(err, errno, "cli.tty", "raw mode");
    t->raw = true;
    t->fd = fd;
    return 0;
}

void
tty_restore(struct tty_state *t)
{
    if (t->raw)
        tcsetattr(t->fd, TCSADRAIN, &t->saved);
    t->raw = false;
}
