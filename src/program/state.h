/* program/state.h: where cloche keeps what outlives a run */
#ifndef CLOCHE_PROGRAM_STATE_H
#define CLOCHE_PROGRAM_STATE_H

#include <limits.h>
#include <stdint.h>

#include "base/err.h"

/* Its path: absolute, there or not. 0 or -1 with @err. */
int state_dir_path(char out[PATH_MAX], struct err *err);
/* Is it, where it is there, a folder of this user's that others cannot write to? A link is none: what lies behind it
 * may be anybody's. 0 or -1 with @err (cli.state.unsafe). */
int state_dir_check(const char *path, struct err *err);
/* Open (making it, 0700) $XDG_STATE_HOME/cloche, ~/.local/state/cloche by default, /var/lib/cloche as root.
 * Returns an O_CLOEXEC directory fd, or -1 with @err; checked as above. */
int state_dir_open(struct err *err);
/* The folder @name in it (made, 0700), for what nobody else may write or read. The same; it is refused with @code when
 * it is somebody else's, or others may enter it. */
int state_own_open(const char *name, const char *code, struct err *err);

/* 32 random bytes in @name there, for nobody else to read; made with the first use. Where they cannot be kept they are
 * others each time: what is made with them is equal to nothing, and never wrongly equal. */
#define STATE_KEY 32
void state_key(const char *name, uint8_t key[STATE_KEY]);

/* Make every missing folder of the absolute @path, 0700. A descriptor of the last one, or -1 with errno. */
int state_make_path(const char *path);

#endif
