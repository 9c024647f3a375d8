/* engine/native/plan_places.c: the trees, and what is closed and opened again within them
 *
 * Every place that a rule names is looked at in one order, parents first, and policy_judge() says what it is to be:
 * closed, readable or writable. Where that differs from what lies around it a mount is made: a mask closes, a bind
 * opens again. A mask with places to be opened in it is a folder of our own that can be passed through and not listed.
 * deny-write and protected names come last, as pins over all of it (plan_protect.c): nothing opens those again.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "engine/native/expand.h"
#include "engine/native/plan.h"
#include "match/path.h"
#include "wall/mnt.h"

enum state { NOT_THERE, CLOSED, READABLE, WRITABLE };

struct mark {
    const char *inside;
    const struct plan_tree *tree;       /* the tree that it is in */
    const char *relative;               /* below it; "" when it is the tree itself */
    enum state want;
    bool held;                          /* a mask that must be there although nothing in it is opened: the workdir is */
};

struct collector {
    struct native_plan *plan;
    struct mark *v;
    size_t n, cap;
};

void
plan_judge(const struct native_plan *plan, const char *inside, struct place *place, struct judged *out)
{
    policy_place_inside(&plan->real, inside, place);
    policy_judge(&plan->real, place, NULL, out);
}

void
plan_judge_there(const struct native_plan *plan, const char *inside, struct place *place, struct judged *out)
{
    struct policy p = plan->real;

    p.credentials = plan->credentials;
    policy_place_inside(&plan->real, inside, place);
    policy_judge(&p, place, NULL, out);
}

static enum state
state_of(const struct judged *j)
{
    return !j->read ? CLOSED : j->write ? WRITABLE : READABLE;
}

static char *
join(struct native_plan *plan, const char *base, const char *relative)
{
    if (*relative == '\0')
        return plan_printf(plan, "%s", base);
    return plan_printf(plan, "%s/%s", strcmp(base, "/") == 0 ? "" : base, relative);
}

static int
add_mark(struct collector *c, const struct plan_tree *tree, const char *relative, const char *inside, enum state want,
         struct err *err)
{
    if (c->n == c->cap) {
        size_t cap = c->cap == 0 ? 128 : c->cap * 2;
        struct mark *bigger = reallocarray(c->v, cap, sizeof(*bigger));
        if (bigger == NULL)
            return err_set(err, ERR_SYSTEM, "memory", "out of memory");
        c->v = bigger;
        c->cap = cap;
    }
    if (inside == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    c->v[c->n++] = (struct mark){ inside, tree, relative, want, false };
    return 0;
}

const struct plan_tree *
plan_shown_by(const struct native_plan *plan, const char *inside)
{
    const struct plan_tree *best = NULL;
    struct str path = str_of(inside);

    for (size_t i = 0; i < plan->n_trees; i++) {
        const struct plan_tree *tree = &plan->trees[i];
        if (path_within(path, (struct str){ tree->inside, tree->inside_n }) &&
            (best == NULL || tree->inside_n >= best->inside_n))
            best = tree;
    }
    return best;
}

/* Where a name is that is there, and no link: nothing can be mounted on a link, what it leads to has a rule of its own
 * (plan_rules.c). -1: that cannot be told. */
static int
is_place(const struct plan_tree *tree, const char *relative, struct err *err)
{
    cleanup_close int fd = -1;
    struct stat st;
    int there = plan_look_at(tree, relative, &fd, err);

    if (there <= 0)
        return there;
    if (fstat(fd, &st) < 0)
        return err_sys(err, errno, "wall.expand.unseen", "%s/%s", tree->host, relative);
    return !S_ISLNK(st.st_mode);
}

static int
mark_name(struct collector *c, const struct plan_tree *tree, const char *relative, struct err *err)
{
    const char *inside = join(c->plan, tree->inside, relative);
    struct judged judged;
    struct place place;

    if (inside == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    /* what another tree covers is that one's */
    if (strcmp(tree->host, "/") != 0 && plan_shown_by(c->plan, inside) != tree)
        return 0;
    plan_judge_there(c->plan, inside, &place, &judged);
    /* deny-write and protected names are pinned afterwards */
    return add_mark(c, tree, relative, inside,
                    judged.write_why == WRITE_DENIED || judged.write_why == WRITE_PROTECTED ? WRITABLE
                                                                                           : state_of(&judged), err);
}

static int
mark_list(struct collector *c, const struct plan_tree *tree, const struct policy_list *list, struct err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        const char *relative = expand_below(list->v[i].value, tree->host);
        int there;

        if (relative == NULL || *relative == '\0' || list->v[i].absent)
            continue;
        there = is_place(tree, relative, err);
        if (there < 0 || (there > 0 && mark_name(c, tree, relative, err) < 0))
            return -1;
    }
    return 0;
}

static int
mark_lists(struct collector *c, const struct plan_tree *tree, struct err *err)
{
    const struct policy *real = &c->plan->real;
    size_t before = c->n;

    if (!tree->is_dir)
        return 0;
    if (mark_list(c, tree, &real->deny_read, err) < 0 || mark_list(c, tree, &real->credentials, err) < 0)
        return -1;
    return c->n > before ? mark_list(c, tree, &real->allow_read, err) : 0;
}

/* Parents first; of one place the tree that was asked for last, then the others. */
static int
by_path(const void *a, const void *b)
{
    const struct mark *x = a, *y = b;
    int order = strcmp(x->inside, y->inside);

    if (order != 0)
        return order;
    if ((*x->relative == '\0') != (*y->relative == '\0'))
        return *x->relative == '\0' ? -1 : 1;
    return x->tree < y->tree ? 1 : x->tree > y->tree ? -1 : 0;
}

static void
sort(struct collector *c)
{
    size_t kept = 0;

    if (c->n > 0)               /* qsort(3) takes no NULL */
        qsort(c->v, c->n, sizeof(*c->v), by_path);
    for (size_t i = 0; i < c->n; i++)
        if (kept == 0 || strcmp(c->v[kept - 1].inside, c->v[i].inside) != 0)
            c->v[kept++] = c->v[i];
    c->n = kept;
}

static bool
lies_in(const char *path, const char *folder)
{
    return path_within(str_of(path), str_of(folder)) && strcmp(path, folder) != 0;
}

/* The nearest mark around @i; NULL: none. */
static const struct mark *
around(const struct collector *c, size_t i)
{
    for (size_t k = i; k > 0; k--)
        if (lies_in(c->v[i].inside, c->v[k - 1].inside))
            return &c->v[k - 1];
    return NULL;
}

static bool
has_hole(const struct collector *c, size_t i)
{
    for (size_t k = i + 1; k < c->n && path_within(str_of(c->v[k].inside), str_of(c->v[i].inside)); k++)
        if (c->v[k].want != CLOSED)
            return true;
    return c->v[i].held;
}

/* A place within a tree again, read-only: the host's own object, for the mask lies over the tree's. */
static int
add_hole(struct native_plan *plan, const struct mark *m, struct err *err)
{
    struct root_item *item = plan_item(plan, ROOT_BIND, join(plan, m->tree->host, m->relative), m->inside, err);
    cleanup_close int fd = -1;
    struct stat st;

    if (item == NULL)
        return -1;
    fd = mnt_open_beneath(m->tree->fd, m->relative, O_PATH | O_NOFOLLOW, false);
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

/* The tree around @m that the sandbox can write, and @m's name in it. */
static const struct plan_tree *
written_around(const struct native_plan *plan, const char *inside, const char **relative)
{
    const struct plan_tree *best = NULL;

    for (size_t i = 0; i < plan->n_trees; i++) {
        const struct plan_tree *t = &plan->trees[i];
        if (t->writable && lies_in(inside, t->inside) && (best == NULL || strlen(t->inside) > strlen(best->inside)))
            best = t;
    }
    *relative = best != NULL ? expand_below(inside, best->inside) : NULL;
    return best;
}

/* What is mounted on a name holds that name; its folders could be moved, and what lies behind it be shown, or written,
 * in the next run. */
static int
hold_name(struct native_plan *plan, const struct mark *m, struct err *err)
{
    const char *relative;
    const struct plan_tree *tree = written_around(plan, m->inside, &relative);

    return tree != NULL && strchr(relative, '/') != NULL ? plan_guard_name(plan, tree->inside, relative, err) : 0;
}

static int
add_mask(struct native_plan *plan, const struct mark *m, bool holes, struct err *err)
{
    struct root_item *item = plan_item(plan, ROOT_MASK, NULL, m->inside, err);

    if (item == NULL)
        return -1;
    item->holes = holes;
    return hold_name(plan, m, err);
}

static int
mount_tree(struct native_plan *plan, const struct mark *m, const struct mark *outer, struct err *err)
{
    const struct plan_tree *tree;
    const char *relative;

    if (m->tree->cow) {
        if (plan_item(plan, ROOT_OVERLAY, NULL, m->inside, err) == NULL)
            return -1;
        return plan_rule(plan, m->inside, LANDLOCK_FULL, false, err);
    }
    /* writable below a mask: the guard, which keeps the way to the mask, is not to keep this */
    if (m->tree->writable && outer != NULL && outer->want == CLOSED &&
        (tree = written_around(plan, m->inside, &relative)) != NULL &&
        plan_guard_reopen(plan, tree->inside, relative, err) < 0)
        return -1;
    return plan_tree_mount(plan, m->tree, m->tree->writable, err);
}

static int
apply(struct collector *c, bool host, struct err *err)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct mark *m = &c->v[i], *outer = around(c, i);
        enum state state = outer != NULL ? outer->want : host ? READABLE : NOT_THERE;

        if (*m->relative == '\0' && m->want != CLOSED) {
            if ((!host || m->want != READABLE || state != READABLE) && mount_tree(c->plan, m, outer, err) < 0)
                return -1;
        } else if (m->want == CLOSED) {
            if (state != CLOSED && add_mask(c->plan, m, has_hole(c, i), err) < 0)
                return -1;
        } else if (state == CLOSED) {
            if (add_hole(c->plan, m, err) < 0)
                return -1;
        } else if (state == WRITABLE && m->want == READABLE &&
                   (plan_item(c->plan, ROOT_PIN, NULL, m->inside, err) == NULL || hold_name(c->plan, m, err) < 0)) {
            return -1;
        }
    }
    return 0;
}

/* A working directory in what is closed is an empty folder there: the mask that it is made in, or NULL. */
static struct mark *
around_workdir(struct collector *c)
{
    struct mark *mask = NULL;
    struct judged judged;
    struct place place;

    plan_judge(c->plan, c->plan->workdir, &place, &judged);
    for (size_t i = 0; !judged.read && i < c->n; i++)
        if (path_within(str_of(c->plan->workdir), str_of(c->v[i].inside)))
            mask = &c->v[i];
    return mask != NULL && mask->want == CLOSED ? mask : NULL;
}

/* After what is opened in them has been mounted, masks are read-only too. Those in another mask are part of it. */
static int
seal(struct collector *c, struct err *err)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct mark *outer = around(c, i);
        if (c->v[i].want == CLOSED && (outer == NULL || outer->want != CLOSED) && has_hole(c, i) &&
            plan_item(c->plan, ROOT_SEAL, NULL, c->v[i].inside, err) == NULL)
            return -1;
    }
    return 0;
}

static int
collect(struct collector *c, const struct plan_tree *root, struct err *err)
{
    struct native_plan *plan = c->plan;

    for (size_t i = 0; i < plan->n_trees; i++) {
        const struct plan_tree *t = &plan->trees[i];
        if (add_mark(c, t, "", t->inside, t->writable || t->cow ? WRITABLE : READABLE, err) < 0)
            return -1;
    }
    if (root != NULL)
        return mark_lists(c, root, err);
    for (size_t i = 0; i < plan->n_trees; i++)
        if (mark_lists(c, &plan->trees[i], err) < 0)
            return -1;
    return 0;
}

static int
light_rules(struct native_plan *plan, struct err *err)
{
    for (size_t i = 0; i < plan->n_trees; i++) {
        const struct plan_tree *t = &plan->trees[i];
        if (plan_rule(plan, t->inside, t->writable ? LANDLOCK_FULL : LANDLOCK_READ_EXEC, false, err) < 0)
            return -1;
        plan->rules[plan->n_rules - 1].tree = t;
    }
    return 0;
}

int
plan_places(struct native_plan *plan, struct err *err)
{
    bool host = plan->real.view.v == VIEW_HOST;
    cleanup_close int fd = host && !plan->light ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    const struct plan_tree root = { .host = "/", .inside = "/", .is_dir = true, .fd = fd };
    struct collector c = { .plan = plan };
    int r;

    if (plan->light)
        return light_rules(plan, err);
    if (host && fd < 0)
        return err_sys(err, errno, "wall.root", "/");
    r = collect(&c, host ? &root : NULL, err);
    if (r == 0) {
        struct root_item *item = NULL;
        struct mark *mask;
        sort(&c);
        mask = around_workdir(&c);
        if (mask != NULL) {
            mask->held = true;
            plan_warn(plan, "the working directory %s is closed to the sandbox: it is empty there", plan->workdir);
        }
        r = apply(&c, host, err);
        if (r == 0 && mask != NULL && (item = plan_item(plan, ROOT_DIR, NULL, plan->workdir, err)) == NULL)
            r = -1;
        if (item != NULL)
            item->mode = 0111;
        if (r == 0)
            r = seal(&c, err);
    }
    free(c.v);
    return r;
}
