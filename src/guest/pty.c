/* guest/pty.c: terminals of the sandbox's own devpts
 *
 * The slave is opened through the master (TIOCGPTPEER), never by path: /dev belongs to whoever runs in the
 * sandbox as much as to us.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/guest.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER 0x5441
#endif

int
pty_resize(int master, uint16_t rows, uint16_t cols)
{
    const struct winsize size = { .ws_row = rows, .ws_col = cols };

    return ioctl(master, TIOCSWINSZ, &size) < 0 ? errno : 0;
}

int
pty_open(uint16_t rows, uint16_t cols, int *master, int *slave)
{
    cleanup_close int m = openat(AT_FDCWD, "/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    cleanup_close int s = -1;
    int unlocked = 0;

    if (m < 0)
        return errno;
    if (ioctl(m, TIOCSPTLCK, &unlocked) < 0)
        return errno;
    s = ioctl(m, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (s < 0)
        return errno;
    if (rows != 0 && cols != 0 && pty_resize(m, rows, cols) != 0)
        return errno;
    *master = take_fd(&m);
    *slave = take_fd(&s);
    return 0;
}

pid_t
pty_foreground(int master)
{
    pid_t group = 0;

    return ioctl(master, TIOCGPGRP, &group) < 0 || group <= 1 ? 0 : group;
}
