/* wall/cgroup_priv.h: what cgroup.c, cgroup_adopt.c and cgroup_use.c share */
#ifndef CLOCHE_WALL_CGROUP_PRIV_H
#define CLOCHE_WALL_CGROUP_PRIV_H

#include "wall/cgroup.h"

enum { H_MEMORY, H_CPU, H_PIDS };       /* places in the arrays of v1 */

/* The number in @file of @dir: behind "@key " at the start of a line, or all of it where @key is NULL. 0: there is
 * none. */
uint64_t cgroup_value(int dir, const char *file, const char *key);

/* The cgroup's path in the hierarchy of @controller ("" for v2) in the text of /proc/PID/cgroup, ended by a NUL. */
bool cgroup_path_of(const struct buf *text, const char *controller, char *out, size_t size);
bool cgroup_is_fs(const char *path, long magic);

#endif
