/* wall/pivot.h: from the old root into the new one */
#ifndef CLOCHE_WALL_PIVOT_H
#define CLOCHE_WALL_PIVOT_H

#include <stdbool.h>

#include "base/err.h"

/* Whether a filter around us refuses pivot_root. Only of use to a caller with CAP_SYS_ADMIN. */
bool pivot_is_filtered(void);

/* Into @root, a descriptor of the mount that lies over "/": the old root is detached, or, @by_chroot, stays below ours,
 * where no path leads. 0 with the working directory "/", or -1 with @err. */
int pivot_into(int root, bool by_chroot, struct err *err);

#endif
