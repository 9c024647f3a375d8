/* guest/look.h: what is left to a command that may look at the workspace, and do nothing else
 *
 * An editor's server that inspects (docs/attach.md): a Landlock domain in which files of the workspace, and what a
 * program needs to be one, can be read, and nothing can be written, made, removed or connected to; it executes
 * OpenSSH's server, which it becomes, and nothing else. And a system call filter for what no domain knows: modes,
 * owners, times, attributes, locks, signals, other processes, sockets, memory that is shared. Both are the kernel's,
 * above all that holds in the sandbox anyway; they hold whatever that server is told, or is.
 */
#ifndef CLOCHE_GUEST_LOOK_H
#define CLOCHE_GUEST_LOOK_H

/* In the working directory that can be looked at. No allocation: fit for a clone child. 0, or -1 with errno: ENOSYS or
 * EOPNOTSUPP where there is no Landlock. */
int look_enter(void);

#endif
