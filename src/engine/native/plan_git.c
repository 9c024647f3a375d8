/* engine/native/plan_git.c: what git on the host would run, or read for that, in a writable tree
 *
 * What the owner's configuration names in the project, and what links lead to there (led.h), is protected like
 * `.git/hooks`, there or not. The project's own configuration is read too: the sandbox cannot change it, but anybody
 * may have written it, so it is read with bounds and can only close more.
 *
 * The repository at the top keeps its HEAD: without it git would look for another one, further up or in the folder
 * itself. HEAD is mounted on itself, and written to by the guard (guest/guard_git.h). The mount goes when the owner's
 * git replaces HEAD, and a repository that is made meanwhile has none, so the guard is asked about removing too.
 *
 * Its configuration cannot be written, but programs inside have to (`git remote add`). So a copy lies over it, which is
 * theirs to write and ends with the sandbox; what was added is looked at then (run/git_keep.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "engine/native/expand.h"
#include "engine/led.h"
#include "engine/native/plan.h"
#include "match/git_config.h"
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

/* The `.git` of a repository that lies elsewhere, as a worktree needs it. */
static bool
is_repository(const struct plan_tree *tree)
{
    return str_ends(str_of(tree->host), STR_LIT("/.git")) && str_ends(str_of(tree->inside), STR_LIT("/.git"));
}

static int
keep_head(struct native_plan *plan, const struct plan_tree *tree, struct err *err)
{
    const char *name = is_repository(tree) ? "HEAD" : ".git/HEAD";
    cleanup_close int head = mnt_open_beneath(tree->fd, name, O_PATH | O_NOFOLLOW, false);
    struct root_item *item;
    struct stat st;

    if (head < 0 && !mnt_is_absent(errno))
        return err_sys(err, errno, "wall.expand.unseen", "%s/%s", tree->host, name);
    /* in light mode there are no mounts */
    if (plan->light || head < 0 || fstat(head, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    item = plan_item(plan, ROOT_PIN, NULL,
                     plan_printf(plan, "%s/%s", strcmp(tree->inside, "/") == 0 ? "" : tree->inside, name), err);
    if (item == NULL)
        return -1;
    item->writable = true;
    return 0;
}

/* Of this tree; of a tree that was not looked at yet, all that is known. */
static void
note_said(const struct native_plan *plan, struct plan_own *own)
{
    own->said_at = plan->said_of == own->tree ? plan->said_at : 0;
    own->said_n = plan->said.n - own->said_at;
}

int
plan_git(struct native_plan *plan, const struct policy *p, const struct plan_tree *tree, struct led *led,
         struct err *err)
{
    bool git = plan_git_watched(p);
    const struct buf *said;

    if (led_owner(led, git, err) < 0)
        return -1;
    if (!git)
        return 0;
    plan->guard_git = true;
    plan->guard_git_config = !p->allow_git_config.v;
    if (led_top(led, err) < 0)
        return -1;
    said = led_said(led);
    plan->said_of = tree;
    plan->said_at = plan->said.n;
    plan->said_cut |= !buf_ok(said) || buf_append(&plan->said, said->p, said->n) < 0;
    /* what led into this one may have come before it */
    for (size_t i = 0; i < plan->n_own; i++)
        if (plan->own[i].tree == tree)
            note_said(plan, &plan->own[i]);
    return keep_head(plan, tree, err);
}

/* Read as git reads it, to its end. */
static bool
is_read(struct str text)
{
    struct git_config_reader r;
    struct git_config_entry e;
    int got;

    git_config_open(&r, text);
    while ((got = git_config_next(&r, &e)) > 0)
        ;
    return got == 0;
}

/* The text of a plain file that has one name, is the tree's, and could be changed; @text is empty where it is none. */
static bool
read_own(const struct plan_tree *tree, const char *relative, struct buf *text, mode_t *mode)
{
    cleanup_close int fd = mnt_open_beneath(tree->fd, relative, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, false);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1 || st.st_dev != tree->dev)
        return false;
    *mode = st.st_mode & 0777;
    return io_read_all(fd, text) == 0 && is_read((struct str){ (const char *)text->p, text->n });
}

static bool
is_own_already(const struct native_plan *plan, const struct plan_tree *tree, const char *relative)
{
    for (size_t i = 0; i < plan->n_own; i++)
        if (plan->own[i].tree == tree && strcmp(plan->own[i].relative, relative) == 0)
            return true;
    return false;
}

/* Of a repository at the top, or of one that is the tree itself. */
static const char *
config_of(const struct plan_tree *tree, const char *relative)
{
    static const char at_top[] = ".git/config";

    if (strcmp(relative, at_top) == 0)
        return at_top;
    return strcmp(relative, "config") == 0 && is_repository(tree) ? at_top + 5 : NULL;
}

int
plan_git_own(struct native_plan *plan, const struct plan_tree *tree, const char *relative, const char *inside,
             struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(GIT_CONFIG_MAX);
    struct plan_own *own = &plan->own[plan->n_own];
    const char *name = config_of(tree, relative);
    const struct policy *p = &plan->real;
    struct root_item *item;
    mode_t mode = 0;
    char *copy;

    if (plan->light || p->srt || p->allow_git_config.v || !plan_git_watched(p) || name == NULL)
        return 0;
    if (is_own_already(plan, tree, relative))
        return 1;
    if (plan->n_own == PLAN_OWN_MAX || plan->n_items >= PLAN_ITEMS_MAX / 2 ||
        !read_own(tree, relative, &text, &mode))
        return 0;
    copy = plan_room(plan, text.n + 1);
    item = copy == NULL ? NULL : plan_item(plan, ROOT_COVER, copy, inside, err);
    if (item == NULL)
        return copy == NULL ? err_set(err, ERR_SYSTEM, "memory", "out of memory") : -1;
    if (text.n > 0)
        memcpy(copy, text.p, text.n);
    *own = (struct plan_own){ .tree = tree, .relative = name, .text = copy, .n = text.n, .fd = -1 };
    item->size = text.n;
    item->mode = mode | 0600;
    item->writable = true;
    item->kept = &own->fd;
    note_said(plan, own);
    plan->n_own++;
    /* the owner's git writes to it, and inside it is no file at all (guest/guard_lock.c) */
    if (plan_guard_name(plan, tree->inside, plan_printf(plan, "%s.lock", name), err) < 0)
        return -1;
    return guard_plan_own(&plan->names, tree->inside, relative, err) < 0 ? -1 : 1;
}
