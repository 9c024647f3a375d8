/* engine/native/plan_closed.c: what cannot be read inside a visible tree, and the holes in that
 *
 * deny-read and credential places are masked, allow-read opens places below them again, a deeper deny-read closes
 * those: the longer path wins. So masks and holes are applied parents first. A mask with holes is a folder of our own
 * that can be passed through and not listed, with the opened places mounted in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "engine/native/expand.h"
#include "engine/native/plan.h"
#include "match/path.h"
#include "wall/mnt.h"

struct place {
    char *relative;     /* below the tree; never "" */
    bool hole;
};

struct collector {
    struct native_plan *plan;
    struct place *v;
    size_t n, cap;
    bool hole;
};

static int
collect(void *ctx, const char *relative, struct err *err)
{
    struct collector *c = ctx;

    /* a tree that the user opened by name is open, whatever wider rule closes its surroundings */
    if (*relative == '\0')
        return 0;
    if (c->n == c->cap) {
        size_t cap = c->cap == 0 ? 128 : c->cap * 2;
        struct place *bigger = reallocarray(c->v, cap, sizeof(*bigger));
        if (bigger == NULL)
            return err_set(err, ERR_SYSTEM, "memory", "out of memory");
        c->v = bigger;
        c->cap = cap;
    }
    c->v[c->n] = (struct place){ plan_printf(c->plan, "%s", relative), c->hole };
    if (c->v[c->n++].relative == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    return 0;
}

static int
collect_list(struct collector *c, const struct plan_tree *tree, const struct policy_list *list, struct err *err)
{
    for (size_t i = 0; i < list->n; i++)
        if (expand_rule(tree->fd, tree->host, &list->v[i], collect, NULL, c, err) < 0)
            return err_wrap(err, "%s", list->v[i].written);
    return 0;
}

/* Parents first; of the same place the hole last: naming exactly a closed place opens it. */
static int
by_path(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    int order = strcmp(x->relative, y->relative);

    return order != 0 ? order : (int)x->hole - (int)y->hole;
}

static bool
lies_in(const char *path, const char *folder)
{
    return path_within(str_of(path), str_of(folder)) && strcmp(path, folder) != 0;
}

/* Whether a hole is to be made directly in the mask @i. */
static bool
has_hole(const struct collector *c, size_t i)
{
    for (size_t k = i + 1; k < c->n; k++)
        if (c->v[k].hole && lies_in(c->v[k].relative, c->v[i].relative))
            return true;
    return false;
}

/* The nearest place around @i that decides about it: only a hole in something masked has to be mounted. */
static const struct place *
around(const struct collector *c, size_t i)
{
    const struct place *nearest = NULL;

    for (size_t k = 0; k < i; k++)
        if (lies_in(c->v[i].relative, c->v[k].relative))
            nearest = &c->v[k];
    return nearest;
}

static char *
join(struct native_plan *plan, const char *base, const char *relative)
{
    return plan_printf(plan, "%s/%s", strcmp(base, "/") == 0 ? "" : base, relative);
}

static int
add_hole(struct native_plan *plan, const struct plan_tree *tree, const char *relative, struct err *err)
{
    struct root_item *item =
        plan_item(plan, ROOT_BIND, join(plan, tree->host, relative), join(plan, tree->inside, relative), err);
    cleanup_close int fd = -1;
    struct stat st;

    if (item == NULL)
        return -1;
    fd = mnt_open_beneath(tree->fd, relative, O_PATH | O_NOFOLLOW, false);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, errno, "wall.bind.open", "%s", item->source);
    item->recursive = S_ISDIR(st.st_mode);
    item->dev = st.st_dev;
    item->ino = st.st_ino;
    item->check_identity = true;
    if (plan->privileged) {
        int userns = plan_idmap(plan, st.st_uid, st.st_gid, err);
        if (userns < 0)
            return -1;
        item->recursive = false;
        item->tree = mnt_clone(fd, "", MNT_RO, userns, err);
        if (item->tree < 0)
            return err_wrap(err, "%s", item->source);
    }
    return 0;
}

static int
add_mask(struct native_plan *plan, const struct plan_tree *tree, const char *relative, bool holes, struct err *err)
{
    struct root_item *item = plan_item(plan, ROOT_MASK, NULL, join(plan, tree->inside, relative), err);

    if (item == NULL)
        return -1;
    item->holes = holes;
    /* a mask holds its own name; its folders could be moved, and what lies behind it be shown to the next run */
    return tree->writable && strchr(relative, '/') != NULL ? plan_guard_name(plan, tree->inside, relative, err) : 0;
}

static int
apply(struct collector *c, const struct plan_tree *tree, struct err *err)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct place *outer = around(c, i), *next = i + 1 < c->n ? &c->v[i + 1] : NULL;
        bool same = next != NULL && strcmp(next->relative, c->v[i].relative) == 0;

        if (c->v[i].hole) {
            if (outer != NULL && !outer->hole && add_hole(c->plan, tree, c->v[i].relative, err) < 0)
                return -1;
        } else if (!same && (outer == NULL || outer->hole)) {
            if (add_mask(c->plan, tree, c->v[i].relative, has_hole(c, i), err) < 0)
                return -1;
        }
    }
    for (size_t i = 0; i < c->n; i++)
        if (!c->v[i].hole && has_hole(c, i) &&
            plan_item(c->plan, ROOT_SEAL, NULL, join(c->plan, tree->inside, c->v[i].relative), err) == NULL)
            return -1;
    return 0;
}

int
plan_closed(struct native_plan *plan, const struct policy *p, const struct plan_tree *tree, struct err *err)
{
    struct collector c = { .plan = plan };
    int r;

    r = collect_list(&c, tree, &plan->denied_reads, err);
    c.hole = true;
    if (r == 0 && c.n > 0)
        r = collect_list(&c, tree, &p->allow_read, err);
    if (r == 0 && c.n > 0) {
        qsort(c.v, c.n, sizeof(*c.v), by_path);
        r = apply(&c, tree, err);
    }
    free(c.v);
    return r;
}
