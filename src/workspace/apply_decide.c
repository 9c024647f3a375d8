/* workspace/apply_decide.c: which changes are taken over; nothing here touches a file */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "workspace/apply.h"
#include "workspace/tree.h"

/* Whether one of the chosen paths is @path or above it. */
static bool
chosen(const struct apply_options *o, struct str path)
{
    for (size_t i = 0; i < o->n_paths; i++) {
        struct str p = str_of(o->paths[i]);
        if (p.n == 0 || str_eq(p, path) || (path.n > p.n && path.p[p.n] == '/' && memcmp(path.p, p.p, p.n) == 0))
            return true;
    }
    return o->n_paths == 0;
}

static bool
named(const struct apply_options *o, struct str path)
{
    return o->n_paths > 0 && chosen(o, path);
}

static enum fate
own_fate(const struct change *e, const struct apply_options *o, struct str path)
{
    if (e->kind == CHANGE_NONE || !chosen(o, path))
        return FATE_LEFT;
    if ((e->flags & CHANGE_NEVER) != 0 ||
        ((e->flags & (CHANGE_PROTECTED | CHANGE_GIT)) != 0 && !(o->include_protected && named(o, path))) ||
        ((e->flags & CHANGE_OUTSIDE) != 0 && !o->allow_outside_links))
        return FATE_WITHHELD;
    return (e->flags & CHANGE_HOST) != 0 && !o->force ? FATE_CONFLICT : FATE_APPLIED;
}

static int
own_fates(const struct changes *c, const struct apply_options *o, struct apply_plan *plan, struct err *err)
{
    cleanup_buf struct buf path = BUF_INIT(2 * TREE_PATH_MAX);

    for (size_t i = 1; i < c->n; i++) {
        if ((c->v[i].flags & CHANGE_TOO_DEEP) != 0) {
            plan->fate[i] = o->n_paths == 0 ? FATE_WITHHELD : FATE_LEFT;
            continue;
        }
        if (change_path(c, i, &path) < 0)
            return err_set(err, ERR_LIMIT, "workspace.apply.path", "a path is too long");
        plan->fate[i] = own_fate(&c->v[i], o, (struct str){ .p = (char *)path.p, .n = path.n });
    }
    return 0;
}

/* Whether change @i makes a directory of it that was none. */
static bool
becomes_directory(const struct change *e)
{
    return S_ISDIR(e->upper.mode) && !S_ISDIR(e->lower.mode);
}

/* A directory goes only as a whole: what must stay in it keeps it. Children come after their parents. */
static void
keep_for_children(const struct changes *c, struct apply_plan *plan)
{
    for (size_t i = c->n - 1; i > 0; i--) {
        size_t parent = c->v[i].parent;
        const struct change *p = &c->v[parent];
        bool goes = S_ISDIR(p->lower.mode) && !S_ISDIR(p->upper.mode);
        if (goes && plan->fate[parent] == FATE_APPLIED && plan->fate[i] != FATE_APPLIED)
            plan->fate[parent] = plan->fate[i] == FATE_CONFLICT ? FATE_CONFLICT : FATE_WITHHELD;
        /* a chosen file needs the new directories above it */
        if (plan->fate[i] == FATE_APPLIED && plan->fate[parent] == FATE_LEFT && p->kind == CHANGE_ADDED &&
            S_ISDIR(p->upper.mode))
            plan->fate[parent] = (p->flags & CHANGE_HOST) != 0 ? FATE_CONFLICT : FATE_APPLIED;
    }
}

/* Nothing can be put below a directory that is not made, or taken out of one that is replaced as a whole: such a
 * directory that is not applied closes all below it. */
static int
follow_parents(const struct changes *c, struct apply_plan *plan, struct err *err)
{
    cleanup_free bool *closed = calloc(c->n, sizeof(*closed));

    if (closed == NULL)
        return err_set(err, ERR_SYSTEM, "workspace.memory", "no memory");
    for (size_t i = 1; i < c->n; i++) {
        const struct change *p = &c->v[c->v[i].parent];
        enum fate above = plan->fate[c->v[i].parent];
        bool replaced = p->kind == CHANGE_TYPE && S_ISDIR(p->lower.mode);
        closed[i] = closed[c->v[i].parent] || ((becomes_directory(p) || replaced) && above != FATE_APPLIED);
        if (closed[i] && plan->fate[i] == FATE_APPLIED)
            plan->fate[i] = above == FATE_CONFLICT ? FATE_CONFLICT : FATE_WITHHELD;
    }
    return 0;
}

static int
check_paths(const struct changes *c, const struct apply_options *o, struct err *err)
{
    cleanup_buf struct buf path = BUF_INIT(2 * TREE_PATH_MAX);

    for (size_t k = 0; k < o->n_paths; k++) {
        const struct apply_options one = { .paths = &o->paths[k], .n_paths = 1 };
        bool found = false;
        for (size_t i = change_next(c, 0); i != CHANGE_NOT && !found; i = change_next(c, i))
            found = (c->v[i].flags & CHANGE_TOO_DEEP) == 0 && change_path(c, i, &path) == 0 &&
                    chosen(&one, (struct str){ .p = (char *)path.p, .n = path.n });
        if (!found && o->paths[k][0] != '\0') {
            err_set(err, ERR_NOT_FOUND, "workspace.apply.no-such-change", "%s has no change", o->paths[k]);
            return err_hint(err, "`cloche diff --name-only` lists what changed");
        }
    }
    return 0;
}

int
apply_decide(const struct changes *c, const struct apply_options *options, struct apply_plan *plan, struct err *err)
{
    *plan = (struct apply_plan){ .fate = NULL };
    if (options->include_protected && options->n_paths == 0) {
        err_set(err, ERR_USAGE, "workspace.apply.protected", "--include-protected takes over only what is named");
        return err_hint(err, "name the protected files: cloche apply --include-protected PATH...");
    }
    if (check_paths(c, options, err) < 0)
        return -1;
    plan->fate = calloc(c->n, sizeof(*plan->fate));
    if (plan->fate == NULL)
        return err_set(err, ERR_SYSTEM, "workspace.memory", "no memory");
    int r = own_fates(c, options, plan, err);
    if (r == 0) {
        keep_for_children(c, plan);
        r = follow_parents(c, plan, err);
    }
    if (r < 0) {
        apply_plan_free(plan);
        return -1;
    }
    for (size_t i = 1; i < c->n; i++) {
        plan->n_applied += plan->fate[i] == FATE_APPLIED;
        plan->n_withheld += plan->fate[i] == FATE_WITHHELD;
        plan->n_conflicts += plan->fate[i] == FATE_CONFLICT;
    }
    return 0;
}

void
apply_plan_free(struct apply_plan *plan)
{
    free(plan->fate);
    *plan = (struct apply_plan){ .fate = NULL };
}
