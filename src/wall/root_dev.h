/* wall/root_dev.h: what is in the /dev of a private root */
#ifndef CLOCHE_WALL_ROOT_DEV_H
#define CLOCHE_WALL_ROOT_DEV_H

#include "base/err.h"

/* Into the folder @dev, of a tmpfs that nobody else writes to yet: the devices that every program may have, the host's
 * own, and terminals of its own. 0 or -1 with @err. */
int root_dev_fill(int dev, struct err *err);

#endif
