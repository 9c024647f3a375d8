/* engine/native/plan_protect.c: what stays closed inside the trees that were opened
 *
 * deny-read and credential places become masks, deny-write and protected names become read-only pins, names that do
 * not exist yet go to the guard. In light mode there are no mounts: denied reads are carved out of what Landlock
 * grants, denied writes go to the guard.
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
#include "engine/native/expand.h"
#include "engine/native/plan.h"
#include "match/path.h"
#include "wall/mnt.h"

struct closing {
    struct native_plan *plan;
    const struct policy *policy;
    const struct plan_tree *tree;
};

static char *
inside_path(struct native_plan *plan, const struct plan_tree *tree, const char *relative)
{
    const char *base = strcmp(tree->inside, "/") == 0 ? "" : tree->inside;

    return *relative == '\0' ? plan_printf(plan, "%s", tree->inside) : plan_printf(plan, "%s/%s", base, relative);
}

static int
add_absent(struct native_plan *plan, const char *root, const char *name, struct err *err)
{
    struct plan_absent *bigger;

    for (size_t i = 0; i < plan->n_absent; i++)
        if (strcmp(plan->absent[i].root, root) == 0 && strcmp(plan->absent[i].name, name) == 0)
            return 0;
    bigger = reallocarray(plan->absent, plan->n_absent + 1, sizeof(*bigger));
    if (bigger == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    plan->absent = bigger;
    plan->absent[plan->n_absent++] = (struct plan_absent){ root, plan_printf(plan, "%s", name) };
    plan->guard_names = true;
    return 0;
}

static int
found_closed(void *ctx, const char *relative, struct err *err)
{
    struct closing *c = ctx;
    char *path = inside_path(c->plan, c->tree, relative);

    /* a tree that the user opened by name is open, whatever wider rule closes its surroundings */
    if (*relative == '\0')
        return 0;
    if (c->plan->light)
        return add_absent(c->plan, c->tree->inside, relative, err);
    return plan_item(c->plan, ROOT_PIN, NULL, path, err) != NULL ? 0 : -1;
}

static int
absent_closed(void *ctx, const char *relative, struct err *err)
{
    struct closing *c = ctx;

    return *relative != '\0' ? add_absent(c->plan, c->tree->inside, relative, err) : 0;
}

static int
close_writes(struct native_plan *plan, const struct policy *p, const struct plan_tree *tree, struct err *err)
{
    struct closing c = { plan, p, tree };

    for (size_t i = 0; i < p->deny_write.n; i++)
        if (expand_rule(tree->fd, tree->host, &p->deny_write.v[i], found_closed, absent_closed, &c, err) < 0)
            return err_wrap(err, "%s", p->deny_write.v[i].written);
    return 0;
}

/* A protected name that is a symlink protects what it leads to inside the tree (a link out of it leads to nothing
 * writable). */
static int
protect_link(struct native_plan *plan, const struct plan_tree *tree, const char *name, struct err *err)
{
    cleanup_close int target = mnt_open_beneath(tree->fd, name, O_PATH, true);
    char link[64], real[PATH_MAX];
    size_t base = strlen(tree->host);
    ssize_t n;

    if (target < 0 && (errno == ENOSYS || errno == EPERM)) {
        err_set(err, ERR_UNSUPPORTED, "wall.openat2.unsupported", "%s is a symbolic link, and where it leads cannot be found "
                "safely without openat2", name);
        return err_hint(err, "it needs Linux 5.6 and no outer seccomp filter that hides openat2");
    }
    if (target < 0)
        return 0;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", target);
    n = readlink(link, real, sizeof(real) - 1);
    if (n <= 0)
        return 0;
    real[n] = '\0';
    if (strncmp(real, tree->host, base) != 0 || real[base] != '/')
        return 0;
    return plan_item(plan, ROOT_PIN, NULL, inside_path(plan, tree, real + base + 1), err) != NULL ? 0 : -1;
}

static int
found_protected(void *ctx, const char *relative, struct err *err)
{
    struct closing *c = ctx;

    if (c->plan->light)
        return add_absent(c->plan, c->tree->inside, relative, err);
    return plan_item(c->plan, ROOT_PIN, NULL, inside_path(c->plan, c->tree, relative), err) != NULL ? 0 : -1;
}

/* The mandatory names: at the top of each writable tree, and existing ones deeper down. */
static int
protect_names(struct native_plan *plan, const struct policy *p, const struct plan_tree *tree, struct err *err)
{
    struct closing c = { plan, p, tree };
    const struct policy_list *names = &p->protect;

    for (size_t i = 0; i < names->n; i++) {
        const char *name = names->v[i].value;
        cleanup_close int hit = -1;
        struct stat st;

        hit = mnt_open_beneath(tree->fd, name, O_PATH | O_NOFOLLOW, false);
        if (hit < 0 || fstat(hit, &st) < 0) {
            /* absent, or reached through a symlink: then the guard watches the name where it really is */
            if (add_absent(plan, tree->inside, name, err) < 0)
                return -1;
            continue;
        }
        /* replaced by another object, the name would be unprotected: the guard refuses that too */
        if (S_ISLNK(st.st_mode) ? protect_link(plan, tree, name, err) < 0 : found_protected(&c, name, err) < 0)
            return -1;
        if (add_absent(plan, tree->inside, name, err) < 0)
            return -1;
    }
    return expand_names(tree->fd, names, (unsigned)p->protect_depth.v - 1, found_protected, &c, err);
}

static int
sockets(struct native_plan *plan, const struct policy *p, struct err *err)
{
    size_t n = 0;

    plan->sockets = calloc(p->unix_sockets.n + 1, sizeof(*plan->sockets));
    if (plan->sockets == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    for (size_t i = 0; i < p->unix_sockets.n; i++) {
        const char *path = p->unix_sockets.v[i].value;
        struct root_item *item;

        plan->sockets[n++] = path;
        if (p->view.v == VIEW_HOST || plan->light)
            continue;
        /* in a private root the socket must be made visible too */
        item = plan_item(plan, ROOT_BIND, path, path, err);
        if (item == NULL)
            return -1;
        item->optional = true;
        item->writable = true;
    }
    plan->n_sockets = n;
    /* without a tree of the host there is no socket but the sandbox's own */
    plan->guard_connect =
        !p->all_unix_sockets.v && (plan->n_trees > 0 || n > 0 || plan->light || p->view.v == VIEW_HOST);
    return 0;
}

/* The host view's own tree: everything, read-only. */
static int
host_view(struct native_plan *plan, const struct policy *p, struct err *err)
{
    cleanup_close int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct plan_tree host = { .host = "/", .inside = "/", .is_dir = true, .fd = fd };

    if (fd < 0)
        return err_sys(err, errno, "wall.root", "/");
    if (plan_closed(plan, p, &host, err) < 0)
        return -1;
    return plan->privileged ? plan_host_secrets(plan, err) : 0;
}

int
plan_protect(struct native_plan *plan, const struct policy *p, struct err *err)
{
    if (plan->light ? plan_light(plan, p, err) < 0 : p->view.v == VIEW_HOST && host_view(plan, p, err) < 0)
        return -1;
    for (size_t i = 0; i < plan->n_trees; i++) {
        const struct plan_tree *tree = &plan->trees[i];

        if (!tree->is_dir)
            continue;
        /* a copy-on-write tree keeps protected names from being applied instead (workspace/protect.h) */
        if (tree->writable && protect_names(plan, p, tree, err) < 0)
            return -1;
        if ((tree->writable || tree->cow) && close_writes(plan, p, tree, err) < 0)
            return -1;
        if (!plan->light && p->view.v == VIEW_PRIVATE && plan_closed(plan, p, tree, err) < 0)
            return -1;
    }
    return sockets(plan, p, err);
}
