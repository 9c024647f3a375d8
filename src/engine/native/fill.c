/* engine/native/fill.c: see fill.h */
#include "engine/native/fill.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "engine/engine.h"
#include "wall/mnt.h"
#include "workspace/copy.h"
#include "workspace/tree.h"

static int
refuse(struct err *err)
{
    err_set(err, ERR_UNSUPPORTED, "template.view", "a template fills the folders of a root of the sandbox's own");
    return err_hint(err, "mode standard or max, view private, engine native, and no folder of the host as workspace");
}

/* --- below -------------------------------------------------------------------------------------------------------- */

/* Whether the template @fd is to lie below; -1: it is larger than what the sandbox may have. */
static int
lies_below(int fd, const struct policy *p, struct err *err)
{
    char text[32];
    ssize_t n = readlinkat(fd, ENGINE_BELOW, text, sizeof(text));
    uint64_t bytes;

    if (n < 0)
        return errno == ENOENT ? 0 : err_sys(err, errno, "template.open", "the size of the template");
    if (!str_parse_u64((struct str){ text, (size_t)n }, UINT64_MAX, &bytes))
        return err_set(err, ERR_SYSTEM, "template.open", "the size of the template cannot be read");
    if (p->limits.disk.v == 0 || bytes <= p->limits.disk.v)
        return 1;
    err_set(err, ERR_LIMIT, "template.full", "its files are %llu bytes, more than limits.disk",
            (unsigned long long)bytes);
    return err_hint(err, "raise limits.disk of the new sandbox, or remove files first");
}

int
plan_below(struct native_plan *plan, const char *inside, struct err *err)
{
    for (size_t i = 0; plan->below >= 0 && i < ENGINE_PLACES; i++) {
        const struct engine_place *place = &engine_places[i];
        cleanup_close int fd = -1;
        struct root_item *item;
        if (strcmp(place->path, inside) != 0)
            continue;
        fd = tree_open(plan->below, place->name, O_RDONLY | O_DIRECTORY);
        if (fd < 0)
            return errno == ENOENT ? 0 : err_sys(err, errno, "template.open", "%s of the template", place->name);
        item = plan_stored(plan, ROOT_LAYER, fd, plan_printf(plan, "%s/%s", plan->real.fill, place->name), inside, err);
        if (item == NULL)
            return -1;
        item->writable = true;
        item->optional = true;
        plan->root.layers = true;
        plan->root.layer_mount = overlay_mount_folders;
    }
    return 0;
}

/* --- the plan ----------------------------------------------------------------------------------------------------- */

int
plan_fill(struct native_plan *plan, const struct policy *p, struct err *err)
{
    cleanup_close int fd = -1;
    int below;
    struct stat st;

    if (p->fill == NULL)
        return 0;
    if (plan->light || plan->by_runtime || p->view.v != VIEW_PRIVATE || p->workspace.kind != WORKSPACE_TMPFS)
        return refuse(err);
    fd = open(p->fill, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return err_set(err, ERR_DENIED, "template.gone", "the template that it begins with was removed");
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, errno, "template.open", "the template's folder");
    below = lies_below(fd, p, err);
    if (below < 0)
        return -1;
    if (plan->privileged) {
        int userns = plan_idmap(plan, st.st_uid, st.st_gid, err);
        plan->fill = userns < 0 ? -1 : mnt_clone(fd, "", MNT_RO, userns, err);
        if (plan->fill < 0)
            return err_wrap(err, "the template's folder");
    } else {
        plan->fill = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    }
    if (below == 0 || plan->fill < 0)
        return plan->fill < 0 ? err_sys(err, errno, "template.open", "the template's folder") : 0;
    plan->below = take_fd(&fd);
    /* what the plan makes in these folders is there first, and so above */
    return plan_files(plan, p, err) < 0 || plan_below(plan, POLICY_HOME, err) < 0 || plan_below(plan, "/tmp", err) < 0
               ? -1 : 0;
}

/* --- copies ------------------------------------------------------------------------------------------------------- */

static int
fill(int template, const struct engine_place *place, struct err *err)
{
    cleanup_close int from = tree_open(template, place->name, O_RDONLY | O_DIRECTORY);
    cleanup_close int to = open(place->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct tree_copy copy = { .from = from, .to = to };
    struct statfs fs;

    if (from < 0 && errno == ENOENT)
        return 0;
    if (from < 0 || to < 0)
        return err_sys(err, errno, "template.open", "%s of the template", place->name);
    if (fstatfs(to, &fs) < 0)
        return err_sys(err, errno, "template.open", "%s", place->path);
    return fs.f_type == OVERLAYFS_SUPER_MAGIC ? 0 : tree_copy(&copy, err);
}

int
fill_places(const struct native_plan *plan, struct err *err)
{
    for (size_t i = 0; plan->fill >= 0 && i < ENGINE_PLACES; i++)
        if (fill(plan->fill, &engine_places[i], err) < 0)
            return -1;
    return 0;
}
