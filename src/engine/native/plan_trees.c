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
    fd = ns_idmap(uid, plan->ids.outside_uid, gid, plan->ids.outside_gid, plan->also_id, err);
    if (fd < 0)
        return -1;
    plan->idmaps[plan->n_idmaps].uid = uid;
    plan->idmaps[plan->n_idmaps].gid = gid;
    plan->idmaps[plan->n_idmaps++].fd = fd;
    return fd;
}

/* The home, named itself, wants a kind of workspace (policy/validate.c); behind a link it does too. */
static int
check_home(const struct policy *p, const char *real, struct err *err)
{
    char home[PATH_MAX];

    if (p->home == NULL || p->workspace.kind_given || realpath(p->home, home) == NULL ||
        !path_within(str_of(home), str_of(real)))
        return 0;
    err_set(err, ERR_POLICY, "policy.workspace.home", "the workspace leads to %s, which holds the whole home directory",
            real);
    return err_hint(err, "name the project's directory; if the home is meant, say how: %s:ro, :cow or :rw", real);
}

/* The object at @path, which has no link in it (plan_rules.c): one that is there now was put there since. */
static int
open_real(const char *path)
{
    cleanup_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    return root < 0 ? -1 : mnt_open_beneath(root, path, O_PATH, false);
}

/* Open @path and note it as a tree of the plan. Returns it, or NULL with @err. */
static struct plan_tree *
tree_add(struct native_plan *plan, const char *path, const char *inside, bool writable, struct err *err)
{
    struct plan_tree *tree;
    struct judged judged;
    struct place place;
    struct stat st;

    if (plan->n_trees == PLAN_TREES_MAX) {
        err_set(err, ERR_LIMIT, "wall.bind.too-many", "more than %d bound folders: the first that does not fit is %s",
                PLAN_TREES_MAX, path);
        err_hint(err, "make fewer folders writable, or one that holds several");
        return NULL;
    }
    tree = &plan->trees[plan->n_trees];
    *tree = (struct plan_tree){ .host = path, .inside = inside != NULL ? inside : path, .fd = open_real(path) };
    if (tree->fd < 0 || fstat(tree->fd, &st) < 0) {
        err_sys(err, errno, "wall.bind.open", "%s", path);
        if (errno == ENOENT)
            err_hint(err, "the path must exist on the host before the sandbox starts");
        else if (errno == ELOOP)
            err_hint(err, "a link was put there while the sandbox was being made");
        close_fd(&tree->fd);
        return NULL;
    }
    plan->n_trees++;
    tree->inside_n = strlen(tree->inside);
    tree->is_dir = S_ISDIR(st.st_mode);
    tree->owner_uid = st.st_uid;
    tree->owner_gid = st.st_gid;
    tree->dev = st.st_dev;
    tree->ino = st.st_ino;
    plan_judge_there(plan, tree->inside, &place, &judged);
    tree->writable = writable && judged.write;
    return tree;
}

int
plan_tree_mount(struct native_plan *plan, const struct plan_tree *tree, bool writable, struct err *err)
{
    struct root_item *item = plan_item(plan, ROOT_BIND, tree->host, tree->inside, err);
    struct stat st;

    if (item == NULL)
        return -1;
    if (fstat(tree->fd, &st) < 0)
        return err_sys(err, errno, "wall.bind.open", "%s", tree->host);
    item->writable = writable;
    item->recursive = tree->is_dir;
    item->dev = st.st_dev;
    item->ino = st.st_ino;
    item->check_identity = true;
    if (plan->privileged || plan->as_owner) {
        int userns = plan->privileged ? plan_idmap(plan, tree->owner_uid, tree->owner_gid, err) : -1;
        if (userns < 0 && plan->privileged)
            return -1;
        /* not recursive: each mount below would have to allow another owner, and most do not */
        item->tree = mnt_clone(tree->fd, "", writable ? 0 : MNT_RO, userns, err);
        if (item->tree < 0) {
            err_wrap(err, "%s", tree->host);
            if (tree->owner_uid != 0)
                return err_hint(err, "as root a folder is bound under another owner, which this file system cannot do; "
                                "run as the folder's owner (uid %u) instead", tree->owner_uid);
            return err_hint(err, "as root a folder is bound under another owner, which this file system cannot do; "
                            "keep it on ext4, xfs, btrfs (in a container: a volume), or give it to an ordinary user");
        }
    }
    if (writable)
        plan->host_trees_writable = true;
    return plan_rule(plan, tree->inside, writable ? LANDLOCK_FULL : LANDLOCK_READ_EXEC, false, err);
}

static int
mount_cow(void *ctx, struct err *err)
{
    return overlay_mount_detached(ctx, err);
}

struct root_item *
plan_stored(struct native_plan *plan, enum root_op op, int fd, const char *source, const char *dest, struct err *err)
{
    struct root_item *item = plan_item(plan, op, source, source != NULL ? dest : NULL, err);
    struct stat st;
    int userns = -1;

    if (item == NULL)
        return NULL;
    if (fstat(fd, &st) < 0) {
        err_sys(err, errno, "wall.bind.open", "%s", source);
        return NULL;
    }
    item->check_identity = true;
    item->dev = st.st_dev;
    item->ino = st.st_ino;
    if (!plan->privileged && !plan->as_owner)
        return item;
    if (plan->privileged && (userns = plan_idmap(plan, st.st_uid, st.st_gid, err)) < 0)
        return NULL;
    item->tree = mnt_clone(fd, "", MNT_RO, userns, err);
    if (item->tree < 0) {
        err_wrap(err, "%s", source);
        return NULL;
    }
    return item;
}

/* The copy-on-write workspace: state outside the project, layers for the child. */
static int
cow(struct native_plan *plan, const struct policy *p, const struct plan_tree *project, const char *id, struct err *err)
{
    cleanup_free const char **protect = policy_protect_added(p);
    struct cow_state *state = &plan->cow;
    struct stat lower, layers;

    if (protect == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (cow_create(project->host, id, protect, state, err) < 0)
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
    return 0;
}

static int
workspace(struct native_plan *plan, const struct policy *p, const char *id, struct err *err)
{
    const char *inside = p->view.v == VIEW_HOST || plan->light ? NULL : policy_workspace_at(&plan->real);
    struct plan_tree *tree;
    struct judged judged;
    struct place place;

    if (p->workspace.kind == WORKSPACE_TMPFS) {
        struct root_item *item;
        plan->workspace_inside = inside;
        if (inside == NULL)
            return 0;
        item = plan_item(plan, ROOT_DIR, NULL, inside, err);
        if (item == NULL || (plan->root.readonly_root && plan_item(plan, ROOT_WRITABLE, NULL, inside, err) == NULL))
            return -1;
        return plan_rule(plan, inside, LANDLOCK_FULL, false, err) < 0 ? -1 : plan_below(plan, inside, err);
    }
    tree = tree_add(plan, p->workspace.dir, inside, p->workspace.kind == WORKSPACE_RW, err);
    if (tree == NULL)
        return err_wrap(err, "workspace");
    if (check_home(p, tree->host, err) < 0)
        return -1;
    if (!tree->is_dir)
        return err_set(err, ERR_POLICY, "policy.workspace.not-a-folder", "workspace %s is not a folder", tree->host);
    plan->workspace_inside = tree->inside;
    plan_judge_there(plan, tree->inside, &place, &judged);
    tree->cow = p->workspace.kind == WORKSPACE_COW && judged.write;
    if (p->workspace.kind == WORKSPACE_COW && !tree->cow)
        plan_warn(plan, "deny-write closes the whole workspace: there is nothing to copy, it is read-only");
    return tree->cow ? cow(plan, p, tree, id, err) : 0;
}

static int
add_listed(struct native_plan *plan, const struct policy_entry *e, bool writable, struct err *err)
{
    /* What lies in a tree that is visible already only lifts a denial there (plan_places.c). */
    for (size_t i = 0; !writable && i < plan->n_trees; i++)
        if (path_within(str_of(e->value), str_of(plan->trees[i].host)))
            return 0;
    if (tree_add(plan, e->value, NULL, writable, err) == NULL)
        return err_wrap(err, "%s %s", writable ? "allow-write" : "allow-read", e->written);
    return 0;
}

static int
lists(struct native_plan *plan, const struct policy *p, struct err *err)
{
    /* in the host view everything can be read: allow-read only lifts denials (plan_places.c) */
    for (size_t i = 0; p->view.v == VIEW_PRIVATE && i < p->allow_read.n; i++)
        if (add_listed(plan, &p->allow_read.v[i], false, err) < 0)
            return -1;
    for (size_t i = 0; i < p->allow_write.n; i++)
        if (add_listed(plan, &p->allow_write.v[i], true, err) < 0)
            return -1;
    return 0;
}

int
plan_trees(struct native_plan *plan, const struct policy *p, const char *id, struct err *err)
{
    if (workspace(plan, p, id, err) < 0)
        return -1;
    for (size_t i = 0; i < p->n_binds; i++)
        if (tree_add(plan, p->binds[i].source, plan->light ? NULL : p->binds[i].dest, p->binds[i].writable, err) ==
            NULL)
            return err_wrap(err, "bind");
    if (lists(plan, p, err) < 0)
        return -1;
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
