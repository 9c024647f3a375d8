/* wall/scope.h: a cgroup from systemd's user manager
 *
 * An ordinary user cannot move a process out of a login session's cgroup; the user manager can. It is asked to start
 * a transient scope around the child (org.freedesktop.systemd1 StartTransientUnit) with the limits as unit properties;
 * systemd removes the scope when its last process is gone. Asking goes through systemd's own busctl: ten milliseconds,
 * spent only where limits were asked for.
 */
#ifndef CLOCHE_WALL_SCOPE_H
#define CLOCHE_WALL_SCOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct cgroup_limits;

/* Whether this user's manager can be asked: cgroup v2, a user bus, busctl. Asks nothing. */
bool scope_available(void);

/* Start cloche-@id.scope around @pid and wait until the kernel says that @pid is in it. @path gets its directory below
 * /sys/fs/cgroup. 0 or -1 with @err (wall.scope). */
int scope_start(pid_t pid, const char *id, const struct cgroup_limits *limits, char *path, size_t size,
                struct err *err);

#endif
