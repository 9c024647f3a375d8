/* engine/native/light_folder.c: see light_folder.h */
#include "engine/native/light_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "workspace/tree.h"

#define PARENT "/tmp"

int
light_folder_plan(struct native_plan *plan, const char *id, struct err *err)
{
    plan->light_folder = plan_printf(plan, PARENT "/cloche-%s", id);
    plan->light_home = plan_printf(plan, PARENT "/cloche-%s/home", id);
    plan->light_tmp = plan_printf(plan, PARENT "/cloche-%s/tmp", id);
    if (plan->light_folder == NULL || plan->light_home == NULL || plan->light_tmp == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    return 0;
}

static int
own_folder(const struct native_plan *plan, int at, const char *name)
{
    if (mkdirat(at, name, 0700) < 0)
        return -1;
    return plan->ids.outside_uid == geteuid()
               ? 0 : fchownat(at, name, plan->ids.outside_uid, plan->ids.outside_gid, AT_SYMLINK_NOFOLLOW);
}

int
light_folder_make(const struct native_plan *plan, struct err *err)
{
    cleanup_close int at = open(PARENT, O_PATH | O_DIRECTORY | O_CLOEXEC);
    cleanup_close int folder = -1;
    const char *name = strrchr(plan->light_folder, '/') + 1;

    /* mkdir refuses whatever is there, a link included */
    if (at < 0 || own_folder(plan, at, name) < 0)
        return err_sys(err, errno, "wall.light.folder", "%s", plan->light_folder);
    folder = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0 || own_folder(plan, folder, "home") < 0 || own_folder(plan, folder, "tmp") < 0)
        return err_sys(err, errno, "wall.light.folder", "%s", plan->light_folder);
    return 0;
}

int
light_folder_remove(const struct native_plan *plan, struct err *err)
{
    cleanup_close int at = -1;

    if (plan->light_folder == NULL)
        return 0;
    at = open(PARENT, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (at < 0)
        return err_sys(err, errno, "wall.light.folder", PARENT);
    return tree_remove(at, strrchr(plan->light_folder, '/') + 1, err);
}
