/* engine/led.h: what in a folder the owner's programs are led to from elsewhere
 *
 * Theory: a protected name is a name, but what has it leads on. Git's configuration names hooks, further configuration
 * and programs in the project itself (core.hooksPath, include.path, `core.fsmonitor = tools/watch`); a hook, a start-up
 * file in the home, an editor's settings may be a symbolic link into the project. What they lead to is run or obeyed as
 * they are, so it is closed as they are: the plan makes it read-only (plan_git.c), apply withholds it
 * (cli/cow_common.c).
 *
 * Who writes to the folder may have put things there that lead nowhere good. They can only close more; and links are
 * followed only where a sandbox cannot have made them: at protected names at the top, and in `.git`.
 */
#ifndef CLOCHE_ENGINE_LED_H
#define CLOCHE_ENGINE_LED_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "policy/policy.h"

enum led_kind {
    LED_NAME,           /* a name on the way: nothing else may get it */
    LED_PLACE,          /* what is run or obeyed, there or not */
    LED_TOP,            /* a place that is the folder itself, or around it: it cannot be closed */
    LED_EVERYWHERE,     /* no place, but what is run in each repository, relative to it: also in those made later */
};

/* @path is absolute and normal, of a place the links are resolved; it need not lie in the folder. Non-zero ends the
 * search with -1. */
typedef int led_put(void *ctx, const char *path, enum led_kind kind, struct err *err);

struct led;

/* For the folder @host (links resolved), which @fd is, by the protected names and the homes of @p: the caller's, and as
 * root that of the folder's owner, who will work there. All are borrowed. Free with led_free(). NULL: out of memory,
 * with @err. */
struct led *led_new(int fd, const char *host, const struct policy *p, led_put *put, void *ctx, struct err *err);
void led_free(struct led *l);
#define cleanup_led __attribute__((cleanup(led_cleanup)))
static inline void
led_cleanup(struct led **l)
{
    led_free(*l);
}

/* Each 0 or -1 with @err. */
/* The owner's configuration, and what the home has by protected names. Before the others: what it names in every
 * repository they look for. */
int led_owner(struct led *l, bool git, struct err *err);
/* The repository whose work tree the folder is, or lies in. */
int led_top(struct led *l, struct err *err);
/* The repository, in the folder, of which @relative is the `.git`, a directory or a file. */
int led_nested(struct led *l, const char *relative, struct err *err);
/* The protected place @relative, which exists: where it leads when it is a link, and where the links in it lead. */
int led_protected(struct led *l, const char *relative, struct err *err);
/* All of these, by a search of the folder @depth levels deep. */
int led_find(struct led *l, bool git, unsigned depth, struct err *err);

/* All that led_owner() and led_top() read of git's configuration, conditions of includes or not, as one text; it lives
 * as long as @l. Broken where there is more than is kept. */
const struct buf *led_said(const struct led *l);

/* @names and `.git`, which led_nested() is for; lives as long as @l. NULL: out of memory. */
const struct policy_list *led_names(struct led *l);
/* Whether a hit of a search for these is a repository for led_nested(). */
bool led_is_repository(const struct led *l, const char *relative);
/* Whether a hit below the top is followed: what is in a repository, where a sandbox makes no links. */
bool led_follows(const char *relative);

/* The part of @path, absolute, below the folder @host: "" when it is that folder, NULL when it is not there. */
const char *expand_below(const char *path, const char *host);

/* Where @relative really lies below the folder @fd, which is @host: links inside the tree are followed. Into @out, a
 * path relative to the tree: 1; 0 when it does not exist or leads out of the tree; -1 with @err. */
int plan_real_below(int fd, const char *host, const char *relative, char *out, size_t size, struct err *err);

#endif
