/* engine/native/plan_git.c: what git on the host would run, or read for that, in a writable tree
 *
 * What the owner's configuration names in the project, and what links lead to there (led.h), is protected like
 * `.git/hooks`, there or not. The project's own configuration is read too: the sandbox cannot change it, but anybody
 * may have written it, so it is read with bounds and can only close more.
 *
 * The repository at the top keeps its HEAD: without it git would look for another one, further up or in the folder
 * itself. HEAD is mounted on itself, which costs no other file anything, and written to by the guard
 * (guest/guard_git.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "engine/native/expand.h"
#include "engine/led.h"
#include "engine/native/plan.h"
#include "wall/mnt.h"

int
plan_led(void *ctx, const char *path, enum led_kind kind, struct err *err)
{
    struct native_plan *plan = ctx;

    if (kind == LED_EVERYWHERE)
        return plan_warn(plan, "git's configuration names %.100s in every repository: in one that is made inside it is "
                         "not protected", path);
    for (size_t i = 0; i < plan->n_trees; i++) {
        const struct plan_tree *tree = &plan->trees[i];
        const char *below = tree->writable && tree->is_dir ? expand_below(path, tree->host) : NULL;

        if (below == NULL)
            continue;
        if (below[0] == '\0' && kind == LED_TOP)
            (void)plan_warn(plan, "git's configuration names programs at the top of %s: they are not protected",
                            tree->host);
        else if (below[0] != '\0' && (kind == LED_NAME ? plan_guard_name(plan, tree->inside, below, err)
                                                       : plan_protect_place(plan, tree, below, err)) < 0)
            return -1;
    }
    return 0;
}

bool
plan_git_watched(const struct policy *p)
{
    for (size_t i = 0; i < p->protect.n; i++)
        if (strcmp(p->protect.v[i].value, ".git/hooks") == 0)
            return true;
    return false;
}

bool
plan_git_later(const struct policy *p, const struct plan_tree *tree, const char *name)
{
    struct stat st;

    return plan_git_watched(p) && strncmp(name, ".git/", 5) == 0 &&
           fstatat(tree->fd, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

static int
keep_head(struct native_plan *plan, const struct plan_tree *tree, struct err *err)
{
    cleanup_close int head = mnt_open_beneath(tree->fd, ".git/HEAD", O_PATH | O_NOFOLLOW, false);
    struct root_item *item;
    struct stat st;

    if (head < 0 && !mnt_is_absent(errno))
        return err_sys(err, errno, "wall.expand.unseen", "%s/.git/HEAD", tree->host);
    /* in light mode, where there are no mounts, the guard is asked about removing too */
    if (plan->light || head < 0 || fstat(head, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    item = plan_item(plan, ROOT_PIN, NULL,
                     plan_printf(plan, "%s/.git/HEAD", strcmp(tree->inside, "/") == 0 ? "" : tree->inside), err);
    if (item == NULL)
        return -1;
    item->writable = true;
    return 0;
}

int
plan_git(struct native_plan *plan, const struct policy *p, const struct plan_tree *tree, struct led *led,
         struct err *err)
{
    bool git = plan_git_watched(p);

    if (led_owner(led, git, err) < 0)
        return -1;
    if (!git)
        return 0;
    plan->guard_git = true;
    plan->guard_git_config = !p->allow_git_config.v;
    return led_top(led, err) < 0 ? -1 : keep_head(plan, tree, err);
}
