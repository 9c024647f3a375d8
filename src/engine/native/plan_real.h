/* engine/native/plan_real.h: rules that name a symbolic link also mean what it leads to
 *
 * A mask or a pin lies on an object, not on a name. `~/.ssh` that is a link to `~/dotfiles/ssh` would leave the keys
 * open under their own name, and a mask on the link itself cannot be mounted. So every rule gets a second one for the
 * place where it really leads, wherever that is.
 */
#ifndef CLOCHE_ENGINE_NATIVE_PLAN_REAL_H
#define CLOCHE_ENGINE_NATIVE_PLAN_REAL_H

#include <limits.h>

#include "engine/native/plan.h"

/* Where the object behind @fd really lies on the host, links resolved (proc_pid_fd(5)). False with errno when it has no
 * absolute path here. */
bool plan_real_path(int fd, char *out, size_t size);

/* @out gets the entries of @in and those that follow from links, found in the visible trees (globs) or by asking the
 * host (plain paths). The array belongs to the caller (free @out->v), its strings to the plan. */
int plan_real_rules(struct native_plan *plan, const struct policy *p, const struct policy_list *in,
                    struct policy_list *out, struct err *err);

/* The same for a long list of which little is there: an entry without anything at its path is left out. What cannot be
 * looked at stays. */
int plan_real_places(struct native_plan *plan, const struct policy *p, const struct policy_list *in,
                     struct policy_list *out, struct err *err);

/* Where @relative really lies below the folder @fd, which is @host: links inside the tree are followed. Into @out, a
 * path relative to the tree: 1; 0 when it does not exist or leads out of the tree; -1 with @err. */
int plan_real_below(int fd, const char *host, const char *relative, char *out, size_t size, struct err *err);

/* Where something that would be made at the absolute @path would really come to lie: links are followed, also those
 * that lead nowhere yet, and the rest is added as it is. False: it is no absolute path, too long, or has too many
 * links. */
bool plan_real_future(const char *path, char out[PATH_MAX]);

#endif
