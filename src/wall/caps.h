/* wall/caps.h: privileges to zero */
#ifndef CLOCHE_WALL_CAPS_H
#define CLOCHE_WALL_CAPS_H

#include <stdbool.h>

#include "base/err.h"

/* Whether the kernel says what the caller holds: 0, or -1 with @err. A filter around us may keep it from us; then
 * nothing that depends on it is known, and the two below say no. */
int caps_can_tell(struct err *err);

/* Whether the caller is a root that can run a sandbox as another user of the host: uid 0 with CAP_SYS_ADMIN, CAP_SETUID
 * and CAP_SETGID. An outer sandbox may have left it uid 0 alone. */
bool caps_give_identity(void);

/* Whether the caller is a root that can run light mode as another user: uid 0 with what it takes to become it, to give
 * it its folders, to end its processes and to remove what it made. Docker's default root is one. */
bool caps_give_user(void);

/* Whether the caller has groups beside its own, and is a root that may give them up, whatever else it lacks. */
bool caps_give_groups_up(void);

/* After a change of uid with PR_SET_KEEPCAPS: make what is permitted effective again. 0 or -1. */
int caps_raise(struct err *err);

/* In the child, last step but the filters: bounding, ambient, inheritable, permitted and effective sets to zero,
 * securebits locked so that uid 0 would mean nothing, no_new_privs. Irreversible. */
int caps_drop_all(struct err *err);

#endif
