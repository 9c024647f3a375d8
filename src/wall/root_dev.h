/* wall/root_dev.h: what is in the /dev of a private root */
#ifndef CLOCHE_WALL_ROOT_DEV_H
#define CLOCHE_WALL_ROOT_DEV_H

#include <stdbool.h>

#include "base/err.h"

/* Into the folder @dev, of a tmpfs that nobody else writes to yet: the devices that every program may have, the host's
 * own, and terminals of its own. @outside_root: the sandbox's user is the host's uid 0, who could change the devices'
 * modes for everybody. 0 or -1 with @err. */
int root_dev_fill(int dev, bool outside_root, struct err *err);

#endif
