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

/* Whether this user's manager can be asked: cgroup v2, busctl, a user bus in our own pid namespace (in a container that
 * was given the host's bus, systemd would take our pids for other processes). Asks nothing. */
bool scope_available(void);

/* Whether the manager was handed the memory controller, as far as its directory is where systemd has it. */
bool scope_holds_memory(void);

/* Start the scope @unit around @pid and wait until the kernel says that @pid is in it. @path gets its directory below
 * /sys/fs/cgroup. 0 or -1 with @err (wall.scope); then there is no such scope. */
int scope_start(pid_t pid, const char *unit, const struct cgroup_limits *limits, char *path, size_t size,
                struct err *err);

/* Stop @unit, for whoever did not come to know that its process was moved: systemd keeps a scope whose process was
 * dying when it was to be moved, since that one never leaves it. It may be about to start: waits for that a while. */
void scope_stop(const char *unit);

#endif
