/* wall/cgroup_priv.h: what cgroup.c and cgroup_use.c share */
#ifndef CLOCHE_WALL_CGROUP_PRIV_H
#define CLOCHE_WALL_CGROUP_PRIV_H

#include "wall/cgroup.h"

enum { H_MEMORY, H_CPU, H_PIDS };       /* places in the arrays of v1 */

/* The number in @file of @dir: behind "@key " at the start of a line, or all of it where @key is NULL. 0: there is
 * none. */
uint64_t cgroup_value(int dir, const char *file, const char *key);

#endif
