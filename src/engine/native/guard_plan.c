/* engine/native/guard_plan.c: the plan's closed names and sockets in the guard's words (guest/guard.h) */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/dirents.h"
#include "engine/native/native.h"
#include "guest/guard.h"

/* Light mode: Landlock does not see changes of mode, owner, times and attributes. So to the guard everything of the
 * host is protected, and the writable places are opened in it (the longer path wins). */
static int
close_host(const struct native_plan *plan, struct guard_plan *out, struct err *err)
{
    /* devices, which the guard tells apart by what they are (guest/guard_open.c) */
    static const char *const open_in_dev[] = { "dev/null", "dev/zero",    "dev/full", "dev/random",
                                               "dev/tty",  "dev/urandom", "dev/pts",  "dev/ptmx" };
    cleanup_close int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct dirents names = { .fd = root };
    const char *name;

    if (root < 0)
        return err_sys(err, errno, "wall.light", "/");
    while ((name = dirents_next(&names)) != NULL)
        if (strcmp(name, "proc") != 0 && guard_plan_protect(out, "/", name, err) < 0)
            return -1;
    /* what is not named is not protected */
    if (names.failed != 0)
        return err_sys(err, names.failed, "wall.light", "list /");
    for (size_t i = 0; i < ARRAY_LEN(open_in_dev); i++)
        if (guard_plan_allow(out, "/", open_in_dev[i], err) < 0)
            return -1;
    for (size_t i = 0; i < plan->n_trees; i++)
        if (plan->trees[i].writable && guard_plan_allow(out, "/", plan->trees[i].inside + 1, err) < 0)
            return -1;
    return guard_plan_allow(out, "/", plan->light_folder + 1, err);
}

/* A folder of the host whose files the sandbox may write to. */
static bool
writable_folder(const struct native_plan *plan)
{
    for (size_t i = 0; i < plan->n_trees; i++)
        if (plan->trees[i].writable && plan->trees[i].is_dir)
            return true;
    return false;
}

static int
fill(const struct native_plan *plan, struct guard_plan *out, struct err *err)
{
    out->flags = (plan->guard_names ? (uint32_t)GUARD_NAMES : 0) | (plan->guard_connect ? (uint32_t)GUARD_CONNECT : 0) |
                 (plan->light ? (uint32_t)GUARD_DEVICES : 0) | (plan->guard_existing ? (uint32_t)GUARD_EXISTING : 0) |
                 (writable_folder(plan) ? (uint32_t)GUARD_WRITES : 0) |
                 (plan->guard_names && writable_folder(plan) ? (uint32_t)GUARD_REMOVES : 0) |
                 (plan->guard_git ? (uint32_t)GUARD_GIT : 0) |
                 (plan->guard_git && !plan->guard_git_config ? (uint32_t)GUARD_GIT_ANY_CONFIG : 0);
    if (guard_plan_copy(out, &plan->names, err) < 0 || (plan->light && close_host(plan, out, err) < 0))
        return -1;
    for (size_t i = 0; i < plan->n_trees; i++)
        if (plan->trees[i].writable && guard_plan_tree(out, plan->trees[i].inside, err) < 0)
            return -1;
    if (plan->light && guard_plan_tree(out, plan->light_folder, err) < 0)
        return -1;
    for (size_t i = 0; i < plan->n_reopened; i++)
        if (guard_plan_allow(out, plan->reopened[i].root, plan->reopened[i].name, err) < 0)
            return -1;
    if (!plan->guard_connect)
        return 0;
    for (size_t i = 0; i < plan->n_sockets; i++)
        if (guard_plan_socket(out, plan->sockets[i], err) < 0)
            return -1;
    if (plan->light || plan->root.host_view)
        return guard_plan_socket_tree(out, "/", err);
    for (size_t i = 0; i < plan->n_trees; i++)
        if (guard_plan_socket_tree(out, plan->trees[i].inside, err) < 0)
            return -1;
    return 0;
}

int
native_guard_plan(const struct native *sb, struct buf *out, struct err *err)
{
    cleanup_guard_plan struct guard_plan plan = GUARD_PLAN_INIT;

    if (!sb->plan.light && !sb->plan.guard_names && !sb->plan.guard_connect && !writable_folder(&sb->plan))
        return 0;
    if (fill(&sb->plan, &plan, err) < 0 || guard_plan_emit(&plan, out, err) < 0)
        return -1;
    return 0;
}
