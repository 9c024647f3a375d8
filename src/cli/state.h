/* cli/state.h: where cloche keeps what outlives a run */
#ifndef CLOCHE_CLI_STATE_H
#define CLOCHE_CLI_STATE_H

#include "base/err.h"

/* Open (making it, 0700) $XDG_STATE_HOME/cloche, ~/.local/state/cloche by default, /var/lib/cloche as root.
 * Returns an O_CLOEXEC directory fd, or -1 with @err. */
int state_dir_open(struct err *err);

#endif
