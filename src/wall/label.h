/* wall/label.h: the label of a security module (AppArmor's profile, SELinux' context) that a sandbox runs under
 *
 * The kernel keeps it for the caller's next execve and applies it there; everything inside inherits it. It is a wall
 * beside the others: what it holds is the host's own policy, which cloche neither writes nor reads.
 */
#ifndef CLOCHE_WALL_LABEL_H
#define CLOCHE_WALL_LABEL_H

#include <stdbool.h>

#include "base/err.h"

enum label { LABEL_APPARMOR, LABEL_SELINUX, LABELS };

const char *label_name(enum label which);

/* Whether the running kernel has that module, and it is on. */
bool label_is_there(enum label which);

/* The caller's next execve is under @labels (NULL: as it is). No allocation: fit for a clone child; /proc has to be
 * one that shows the caller. 0, or -1 with @err: wall.label.unknown (the module has no such profile or context),
 * wall.label.refused (it forbids the change), wall.label. */
int label_next_exec(const char *const labels[LABELS], struct err *err);

#endif
