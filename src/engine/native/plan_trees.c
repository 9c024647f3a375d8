/* engine/native/plan_trees.c: the host's folders that are visible inside
 *
 * Each is opened once, by descriptor, when the plan is made; what is mounted later is that object or nothing
 * (a privileged parent clones it at once; an ordinary user's child opens the path again and compares). As root the
 * sandbox's user owns nothing on the host, so a bound tree is idmapped: its owner on disk is the sandbox's user inside.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "engine/native/plan.h"
#include "engine/native/plan_real.h"
#include "match/path.h"
#include "wall/mnt.h"
#include "workspace/cow.h"

int
plan_idmap(struct native_plan *plan, uint32_t uid, uint32_t gid, struct err *err)
{
    int fd;

    for (size_t i = 0; i < plan->n_idmaps; i++)
        if (plan->idmaps[i].uid == uid && plan->idmaps[i].gid == gid)
            return plan->idmaps[i].fd;
    if (plan->n_idmaps == PLAN_OWNERS_MAX)
        return err_set(err, ERR_LIMIT, "wall.idmap.too-many", "the bound folders have more than %d different owners",
                       PLAN_OWNERS_MAX);
    fd = ns_idmap(uid, plan->ids.outside_uid, gid, plan->ids.outside_gid, err);
    if (fd < 0)
        return -1;
    plan->idmaps[plan->n_idmaps].uid = uid;
    plan->idmaps[plan->n_idmaps].gid = gid;
    plan->idmaps[plan->n_idmaps++].fd = fd;
    return fd;
}

/* The caller's name for a folder is followed once, here, wherever it leads; but not to what nobody would name. */
static int
check_target(const char *path, const char *real, bool workspace, struct err *err)
{
    const char *unfit = strcmp(path, real) == 0 ? NULL : policy_source_unfit(real, workspace);

    if (unfit == NULL)
        return 0;
    err_set(err, ERR_POLICY, workspace ? "policy.workspace.system" : "policy.bind.source", "%s leads to %s, %s", path,
            real, unfit);
    return err_hint(err, "name the folder itself if it is meant");
}

/* The same for the home: named itself it wants a kind of workspace (policy/validate.c), behind a link it does too. */
static int
check_home(const struct policy *p, const char *real, struct err *err)
{
    char home[PATH_MAX];

    if (p->home == NULL || p->workspace.kind_given || realpath(p->home, home) == NULL ||
        !path_within(str_of(home), str_of(real)))
        return 0;
    err_set(err, ERR_POLICY, "policy.workspace.home", "%s leads to %s, which holds the whole home directory",
            p->workspace.dir, real);
    return err_hint(err, "name the project's directory; if the home is meant, say how: %s:ro, :cow or :rw", real);
}

/* Open @path and note it as a tree of the plan. Returns it, or NULL with @err. */
static struct plan_tree *
tree_add(struct native_plan *plan, const char *path, const char *inside, bool writable, struct err *err)
{
    struct plan_tree *tree;
    char real[PATH_MAX];
    struct stat st;

    if (plan->n_trees == PLAN_TREES_MAX) {
        err_set(err, ERR_LIMIT, "wall.bind.too-many", "more than %d bound folders", PLAN_TREES_MAX);
        return NULL;
    }
    tree = &plan->trees[plan->n_trees];
    *tree = (struct plan_tree){ .writable = writable, .fd = open(path, O_PATH | O_CLOEXEC) };
    if (tree->fd < 0) {
        err_sys(err, errno, "wall.bind.open", "%s", path);
        if (errno == ENOENT)
            err_hint(err, "the path must exist on the host before the sandbox starts");
        return NULL;
    }
    plan->n_trees++;
    if (!plan_real_path(tree->fd, real, sizeof(real)) || fstat(tree->fd, &st) < 0) {
        err_sys(err, errno, "wall.bind.open", "%s", path);
        return NULL;
    }
    if (check_target(path, real, false, err) < 0)
        return NULL;
    tree->host = plan_printf(plan, "%s", real);
    tree->inside = inside != NULL ? inside : tree->host;
    tree->is_dir = S_ISDIR(st.st_mode);
    tree->owner_uid = st.st_uid;
    tree->owner_gid = st.st_gid;
    if (tree->host == NULL) {
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
        return NULL;
    }
    return tree;
}

static int
tree_mount(struct native_plan *plan, const struct plan_tree *tree, struct err *err)
{
    struct root_item *item = plan_item(plan, ROOT_BIND, tree->host, tree->inside, err);
    struct stat st;

    if (item == NULL)
        return -1;
    if (fstat(tree->fd, &st) < 0)
        return err_sys(err, errno, "wall.bind.open", "%s", tree->host);
    item->writable = tree->writable;
    item->recursive = tree->is_dir;
    item->dev = st.st_dev;
    item->ino = st.st_ino;
    item->check_identity = true;
    if (plan->privileged) {
        int userns = plan_idmap(plan, tree->owner_uid, tree->owner_gid, err);
        if (userns < 0)
            return -1;
        /* not recursive: each mount below would have to allow another owner, and most do not */
        item->tree = mnt_clone(tree->fd, "", tree->writable ? 0 : MNT_RO, userns, err);
        if (item->tree < 0) {
            err_wrap(err, "%s", tree->host);
            return err_hint(err, "as root a folder is bound under another owner, which this file system cannot do; "
                            "run as the folder's owner (uid %u) instead", tree->owner_uid);
        }
    }
    if (tree->writable)
        plan->host_trees_writable = true;
    return plan_rule(plan, tree->inside, tree->writable ? LANDLOCK_FULL : LANDLOCK_READ_EXEC, false, err);
}

static int
mount_cow(void *ctx, struct err *err)
{
    return overlay_mount_detached(ctx, err);
}

/* The copy-on-write workspace: state outside the project, layers for the child. */
static int
cow(struct native_plan *plan, const struct plan_tree *project, const char *id, struct err *err)
{
    struct cow_state *state = &plan->cow;
    struct stat lower, layers;

    if (cow_create(project->host, id, state, err) < 0)
        return err_wrap(err, "copy-on-write workspace");
    if (fstat(project->fd, &lower) < 0 || fstat(state->dir_fd, &layers) < 0)
        return err_sys(err, errno, "wall.overlay", "copy-on-write state");
    plan->overlay.lower = (struct overlay_dir){ -1, project->host, lower.st_dev, lower.st_ino };
    plan->overlay.layers = (struct overlay_dir){ -1, state->path, layers.st_dev, layers.st_ino };
    if (plan->privileged) {
        int userns = plan_idmap(plan, project->owner_uid, project->owner_gid, err);
        if (userns < 0)
            return -1;
        plan->overlay.lower.tree = overlay_clone_idmapped(project->fd, userns, true, err);
        if (plan->overlay.lower.tree < 0)
            return -1;
        plan->overlay.layers.tree = overlay_clone_idmapped(state->dir_fd, userns, false, err);
        if (plan->overlay.layers.tree < 0)
            return -1;
    }
    plan->root.overlay_mount = mount_cow;
    plan->root.overlay_ctx = &plan->overlay;
    if (plan_item(plan, ROOT_OVERLAY, NULL, project->inside, err) == NULL)
        return -1;
    return plan_rule(plan, project->inside, LANDLOCK_FULL, false, err);
}

static int
workspace(struct native_plan *plan, const struct policy *p, const char *id, struct err *err)
{
    const char *inside = p->view.v == VIEW_HOST || plan->light ? NULL : "/workspace";
    struct plan_tree *tree;

    if (p->workspace.kind == WORKSPACE_TMPFS) {
        struct root_item *item;
        plan->workspace_inside = inside;
        if (inside == NULL)
            return 0;
        item = plan_item(plan, ROOT_DIR, NULL, inside, err);
        if (item == NULL || (plan->root.readonly_root && plan_item(plan, ROOT_WRITABLE, NULL, inside, err) == NULL))
            return -1;
        return plan_rule(plan, inside, LANDLOCK_FULL, false, err);
    }
    tree = tree_add(plan, p->workspace.dir, inside, p->workspace.kind == WORKSPACE_RW, err);
    if (tree == NULL)
        return err_wrap(err, "workspace");
    if (check_target(p->workspace.dir, tree->host, true, err) < 0 || check_home(p, tree->host, err) < 0)
        return -1;
    if (!tree->is_dir)
        return err_set(err, ERR_POLICY, "policy.workspace.not-a-folder", "workspace %s is not a folder", tree->host);
    plan->workspace_inside = tree->inside;
    tree->cow = p->workspace.kind == WORKSPACE_COW;
    if (tree->cow)
        return cow(plan, tree, id, err);
    return plan->light ? plan_rule(plan, tree->inside, tree->writable ? LANDLOCK_FULL : LANDLOCK_READ_EXEC, false, err)
                       : tree_mount(plan, tree, err);
}

static int
add_listed(struct native_plan *plan, const struct policy_entry *e, bool writable, struct err *err)
{
    struct plan_tree *tree;

    /* In the host view absent places are simply not there; wildcards are searched among the host's folders later. What
     * lies in a tree that is visible already only lifts a denial there (plan_closed.c). */
    if (access(e->value, F_OK) < 0 && errno == ENOENT)
        return 0;
    for (size_t i = 0; !writable && i < plan->n_trees; i++)
        if (path_within(str_of(e->value), str_of(plan->trees[i].host)))
            return 0;
    tree = tree_add(plan, e->value, NULL, writable, err);
    if (tree == NULL)
        return err_wrap(err, "%s %s", writable ? "allow-write" : "allow-read", e->written);
    if (plan->light)
        return plan_rule(plan, tree->inside, writable ? LANDLOCK_FULL : LANDLOCK_READ_EXEC, false, err);
    return tree_mount(plan, tree, err);
}

static int
lists(struct native_plan *plan, const struct policy *p, struct err *err)
{
    /* in the host view everything can be read: allow-read only lifts denials (plan_protect.c) */
    for (size_t i = 0; p->view.v == VIEW_PRIVATE && i < p->allow_read.n; i++)
        if (add_listed(plan, &p->allow_read.v[i], false, err) < 0)
            return -1;
    for (size_t i = 0; i < p->allow_write.n; i++)
        if (add_listed(plan, &p->allow_write.v[i], true, err) < 0)
            return -1;
    return 0;
}

/* At the same place the later one covers the earlier, as it was asked for. */
static int
by_destination(const void *a, const void *b)
{
    const struct root_item *x = a, *y = b;
    int order = strcmp(x->dest, y->dest);

    return order != 0 ? order : x->turn < y->turn ? -1 : x->turn > y->turn;
}

int
plan_trees(struct native_plan *plan, const struct policy *p, const char *id, struct err *err)
{
    size_t first;
    int r = 0;

    first = plan->n_items;
    r = workspace(plan, p, id, err);
    for (size_t i = 0; r == 0 && i < p->n_binds; i++) {
        struct plan_tree *tree = tree_add(plan, p->binds[i].source, plan->light ? NULL : p->binds[i].dest,
                                          p->binds[i].writable, err);
        if (tree == NULL)
            r = err_wrap(err, "bind");
        else if (plan->light)
            r = plan_rule(plan, tree->inside, tree->writable ? LANDLOCK_FULL : LANDLOCK_READ_EXEC, false, err);
        else
            r = tree_mount(plan, tree, err);
    }
    if (r == 0)
        r = lists(plan, p, err);
    if (r < 0)
        return -1;
    /* parents before what lies in them; ROOT_DIR and ROOT_WRITABLE of /workspace come in that order already */
    if (p->workspace.kind != WORKSPACE_TMPFS)
        qsort(plan->items + first, plan->n_items - first, sizeof(plan->items[0]), by_destination);
    plan->workdir = p->workdir.p != NULL             ? p->workdir.p
                    : plan->workspace_inside != NULL ? plan->workspace_inside
                                                     : NULL;
    if (plan->workdir == NULL) {
        char cwd[PATH_MAX];
        if (getcwd(cwd, sizeof(cwd)) == NULL || cwd[0] != '/')
            return err_sys(err, errno, "wall.cwd", "the working directory");
        plan->workdir = plan_printf(plan, "%s", cwd);
    }
    return 0;
}
