/* engine/native/fill.c: see fill.h */
#include "engine/native/fill.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
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

int
plan_fill(struct native_plan *plan, const struct policy *p, struct err *err)
{
    cleanup_close int fd = -1;
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
    if (plan->privileged) {
        int userns = plan_idmap(plan, st.st_uid, st.st_gid, err);
        plan->fill = userns < 0 ? -1 : mnt_clone(fd, "", MNT_RO, userns, err);
        return plan->fill < 0 ? err_wrap(err, "the template's folder") : 0;
    }
    plan->fill = take_fd(&fd);
    return 0;
}

static int
fill(int template, const struct engine_place *place, struct err *err)
{
    cleanup_close int from = tree_open(template, place->name, O_RDONLY | O_DIRECTORY);
    cleanup_close int to = open(place->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct tree_copy copy = { .from = from, .to = to };

    if (from < 0 && errno == ENOENT)
        return 0;
    if (from < 0 || to < 0)
        return err_sys(err, errno, "template.open", "%s of the template", place->name);
    return tree_copy(&copy, err);
}

int
fill_places(const struct native_plan *plan, struct err *err)
{
    for (size_t i = 0; plan->fill >= 0 && i < ENGINE_PLACES; i++)
        if (fill(plan->fill, &engine_places[i], err) < 0)
            return -1;
    return 0;
}
