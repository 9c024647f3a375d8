/* engine/native/plan_real.h: where paths really lead
 *
 * A mask, a pin or a mount lies on an object, not on a name. What links make of a name is found here, once; the rules
 * are rewritten accordingly by plan_rules.c.
 */
#ifndef CLOCHE_ENGINE_NATIVE_PLAN_REAL_H
#define CLOCHE_ENGINE_NATIVE_PLAN_REAL_H

#include <limits.h>
#include <sys/stat.h>

#include "engine/native/plan.h"

/* Where the object behind @fd really lies on the host, links resolved (proc_pid_fd(5)). False with errno when it has no
 * absolute path here. */
bool plan_real_path(int fd, char *out, size_t size);

/* plan_real_below(): engine/led.h */

/* Where something that would be made at the absolute @path would really come to lie: links are followed, also those
 * that lead nowhere yet, and the rest is added as it is. False: it is no absolute path, too long, or has too many
 * links. */
bool plan_real_future(const char *path, char out[PATH_MAX]);

/* The same. @on_link (may be NULL) is told of each link on the way, where it really lies; false ends the walk, with
 * false. */
typedef bool plan_real_link(void *ctx, const char *at);
bool plan_real_walk(const char *path, char out[PATH_MAX], plan_real_link *on_link, void *ctx);

/* The pattern with the part before its first special character as it really lies. NULL: out of memory. */
const char *plan_real_pattern(struct native_plan *plan, const char *pattern);

/* The folder on the way to the absolute @path that nobody may search (chmod 0) and that is the caller's own: what runs
 * inside as its owner can open it again, and finds there what nobody could look at before the start. False: the way
 * can be seen to its end, or it is another's to open. */
bool plan_real_shut(const char *path, char out[PATH_MAX]);
/* Whether the folder that @st is of, which we may not look into now, can be opened again (chmod) from inside: it is the
 * caller's own. Root, on a file system that refuses root, stands for the owner, as whom the sandbox then runs. */
bool plan_real_opens_again(const struct stat *st);

/* A link that was met on the way to something. */
struct plan_link {
    const char *at;         /* where it lies, absolute, without links */
    uint32_t owner;
};

struct plan_way {
    const char *real;       /* absolute, without links; what it names need not exist */
    struct plan_link *links;
    size_t n_links;
};

/* The same with the links that were met; all of it lives as long as the plan. */
bool plan_real_way(struct native_plan *plan, const char *path, struct plan_way *way);

#endif
