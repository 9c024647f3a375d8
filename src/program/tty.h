/* program/tty.h: the caller's terminal: its size, and raw while a terminal inside is shown on it
 */
#ifndef CLOCHE_PROGRAM_TTY_H
#define CLOCHE_PROGRAM_TTY_H

#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

#include "base/err.h"

struct tty_state {
    bool raw;
    int fd;
    struct termios saved;
};
int tty_size(int fd, uint16_t *rows, uint16_t *cols);
int tty_raw(struct tty_state *t, int fd, struct err *err);
void tty_restore(struct tty_state *t);

#endif
