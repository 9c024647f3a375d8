/* engine/native/guard_plan.c: the plan's closed names and sockets in the guard's words (guest/guard.h) */
#include "engine/native/native.h"
#include "guest/guard.h"

static int
fill(const struct native_plan *plan, struct guard_plan *out, struct err *err)
{
    out->flags = (plan->guard_names ? (uint32_t)GUARD_NAMES : 0) | (plan->guard_connect ? (uint32_t)GUARD_CONNECT : 0) |
                 (plan->light && plan->guard_names ? (uint32_t)GUARD_EXISTING : 0);
    for (size_t i = 0; i < plan->n_absent; i++)
        if (guard_plan_protect(out, plan->absent[i].root, plan->absent[i].name, err) < 0)
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
native_guard_plan(const struct sandbox *sb, struct buf *out, struct err *err)
{
    cleanup_guard_plan struct guard_plan plan = GUARD_PLAN_INIT;

    if (!sb->plan.guard_names && !sb->plan.guard_connect)
        return 0;
    if (fill(&sb->plan, &plan, err) < 0 || guard_plan_emit(&plan, out, err) < 0)
        return -1;
    return 0;
}
