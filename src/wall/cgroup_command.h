/* wall/cgroup_command.h: limits on one command inside a sandbox
 *
 * Its cgroup lies below the sandbox's, so that the sandbox's limits hold for it too, whatever its own are. The command
 * joins before its program starts, as the sandbox's first process does. What it starts stays in there: nothing inside
 * sees a cgroup's files.
 */
#ifndef CLOCHE_WALL_CGROUP_COMMAND_H
#define CLOCHE_WALL_CGROUP_COMMAND_H

#include "wall/cgroup.h"

/* Make the cgroup @number of @outer, of a sandbox that was made with limits.commands, into @out: all of @limits hold.
 * 0; or -1 with @err and nothing made: limits.no-cgroup (not here, and why), wall.cgroup (the kernel refused).
 * The files to join by are @out->tasks; whoever has sent them closes them with cgroup_command_sent(). Its end is
 * cgroup_destroy(), which is false while something that the command left behind runs. */
int cgroup_command_make(const struct cgroup *outer, unsigned number, const struct cgroup_limits *limits,
                        struct cgroup *out, struct err *err);
void cgroup_command_sent(struct cgroup *cg);

/* The sandbox may use @cpu_milli from now on: so may @cg, and v1 lets nobody have more than those around. */
void cgroup_command_lower(const struct cgroup *cg, uint64_t cpu_milli);

#endif
