/* engine/native/expand.h: which existing objects of a tree a path rule names
 *
 * The tree may be hostile: it is walked by descriptor, symlinks are never followed, and depth and number of
 * visited folders are bounded (a walk that meets a bound is refused, never cut silently).
 */
#ifndef CLOCHE_ENGINE_NATIVE_EXPAND_H
#define CLOCHE_ENGINE_NATIVE_EXPAND_H

#include <stdbool.h>

#include "base/err.h"
#include "engine/led.h"
#include "policy/policy.h"

#define EXPAND_DEPTH_MAX   64
#define EXPAND_FOLDERS_MAX 50000

/* Called with a path relative to the tree ("" is the tree itself). Non-zero ends the walk with -1. */
typedef int expand_fn(void *ctx, const char *relative, struct err *err);

/* Each object below the folder @fd, which is @host on the host, that @rule names and that exists. For a folder that
 * cannot be looked into and is the caller's own, whose owner inside could open it again, @shut is called (may be NULL).
 * 0 or -1 with @err. */
int expand_rule(int fd, const char *host, const struct policy_entry *rule, expand_fn *found, expand_fn *shut,
                void *ctx, struct err *err);

/* Each place below the folder @fd, at most @depth folders down, where one of @names (relative paths of one or more
 * names) exists, or cannot be looked for as above. The folder itself is not searched: depth 1 is its direct children's
 * contents. */
int expand_names(int fd, const struct policy_list *names, unsigned depth, expand_fn *found, void *ctx,
                 struct err *err);

/* expand_below(): engine/led.h */

#endif
