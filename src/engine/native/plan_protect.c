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

#include "base/array.h"
#include "base/cleanup.h"
#include "engine/native/expand.h"
#include "engine/native/plan.h"
#include "engine/native/plan_real.h"
#include "guest/guard.h"
#include "match/path.h"
#include "wall/mnt.h"

#define PINS_SPARE  256         /* mounts that are left to others; what is found beyond that the guard keeps alone */
#define USUAL_STORE "/.local/share/cloche"    /* below home, where nothing says otherwise */

struct closing {
    struct native_plan *plan;
    const struct policy *policy;
    const struct plan_tree *tree;
    struct led *led;            /* NULL: where it leads is known */
};

int
plan_look_at(const struct plan_tree *tree, const char *relative, int *out, struct err *err)
{
    *out = mnt_open_beneath(tree->fd, relative, O_PATH | O_NOFOLLOW, false);
    if (*out >= 0)
        return 1;
    return mnt_is_absent(errno) ? 0 : err_sys(err, errno, "wall.expand.unseen", "%s/%s", tree->host, relative);
}

static char *
inside_path(struct native_plan *plan, const struct plan_tree *tree, const char *relative)
{
    const char *base = strcmp(tree->inside, "/") == 0 ? "" : tree->inside;

    return *relative == '\0' ? plan_printf(plan, "%s", tree->inside) : plan_printf(plan, "%s/%s", base, relative);
}

/* @root's names are those that do not fit any more. */
static int
too_many(const struct native_plan *plan, const char *root, struct err *err)
{
    err_set(err, ERR_LIMIT, "guard.plan.limit",
            "more than %d different names for the name guard, in %zu writable folder%s up to %s: protected names, and "
            "what is found in the folders of such names, and what their repositories' configurations lead to",
            GUARD_RULES_MAX, plan->names.n_roots, plan->names.n_roots == 1 ? "" : "s", root);
    return err_hint(err, "make fewer folders writable, or lower filesystem.protect-depth");
}

int
plan_guard_name(struct native_plan *plan, const char *root, const char *name, struct err *err)
{
    plan->guard_names = true;
    if (guard_plan_protect(&plan->names, root, name, err) == 0)
        return 0;
    /* said here already: who wrote what leads on may have written millions */
    return plan->names.n_rules == GUARD_RULES_MAX ? too_many(plan, root, err) : -1;
}

int
plan_guard_reopen(struct native_plan *plan, const char *root, const char *name, struct err *err)
{
    struct plan_reopened *bigger = reallocarray(plan->reopened, plan->n_reopened + 1, sizeof(*bigger));

    if (bigger == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    plan->reopened = bigger;
    plan->reopened[plan->n_reopened++] = (struct plan_reopened){ .root = root, .name = plan_printf(plan, "%s", name) };
    return plan->reopened[plan->n_reopened - 1].name != NULL ? 0 : err_set(err, ERR_SYSTEM, "memory", "out of memory");
}

/* Whether another tree lies over the tree's @relative: what is seen there is another file, with rules of its own. */
static bool
is_covered(const struct native_plan *plan, const struct plan_tree *tree, const char *relative, const char *inside)
{
    const struct plan_tree *shown = plan_shown_by(plan, inside);
    const char *below = shown != NULL ? expand_below(inside, shown->inside) : NULL;
    size_t n = strlen(tree->host) - (strcmp(tree->host, "/") == 0);
    char host[2 * PATH_MAX], real[2 * PATH_MAX];

    if (shown == NULL || shown == tree || below == NULL)
        return false;
    snprintf(host, sizeof(host), "%.*s/%s", (int)n, tree->host, relative);
    snprintf(real, sizeof(real), "%s%s%s", shown->host, *below != '\0' ? "/" : "", below);
    return strcmp(host, real) != 0;
}

/* A read-only mount of @inside on itself. When a program of the owner's replaces the file (an editor that saves it, git
 * that writes its configuration), the mount goes with the old one. So the guard, which has the name too, is asked about
 * removing as well. In light mode there are no mounts, and there is no room for thousands of them. */
static int
pin(struct native_plan *plan, const char *inside, struct err *err)
{
    if (plan->light)
        return 0;
    plan->guard_existing |= plan->n_items >= PLAN_ITEMS_MAX - PINS_SPARE;
    return plan->guard_existing || plan_item(plan, ROOT_PIN, NULL, inside, err) != NULL ? 0 : -1;
}

/* Names below the tree that are not to be written: there is a pin for what exists, and the guard keeps its folders from
 * being moved away from under it, and what is absent from coming into being. */
static int
close_writes(struct native_plan *plan, const struct plan_tree *tree, const struct policy_list *list, struct err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        const char *relative = expand_below(list->v[i].value, tree->host);
        cleanup_close int hit = -1;
        char *inside;

        if (relative == NULL || *relative == '\0')
            continue;
        if ((inside = inside_path(plan, tree, relative)) == NULL)
            return err_set(err, ERR_SYSTEM, "memory", "out of memory");
        if (is_covered(plan, tree, relative, inside))
            continue;
        if (plan_guard_name(plan, tree->inside, relative, err) < 0)
            return -1;
        if (!plan->light && (plan_look_at(tree, relative, &hit, err) < 0 || (hit >= 0 && pin(plan, inside, err) < 0)))
            return -1;
    }
    return 0;
}

/* What is not to be read and is not there: what the sandbox made of it would be taken for the real thing outside. */
static int
close_absent(struct native_plan *plan, const struct plan_tree *tree, const struct policy_list *list, struct err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        const char *relative = expand_below(list->v[i].value, tree->host);
        cleanup_close int hit = -1;
        char *inside;

        if (relative == NULL || *relative == '\0')
            continue;
        if (!list->v[i].absent && plan_look_at(tree, relative, &hit, err) < 0)
            return -1;
        if (hit >= 0)
            continue;
        if ((inside = inside_path(plan, tree, relative)) == NULL)
            return err_set(err, ERR_SYSTEM, "memory", "out of memory");
        if (!is_covered(plan, tree, relative, inside) && plan_guard_name(plan, tree->inside, relative, err) < 0)
            return -1;
    }
    return 0;
}

static int
found_protected(void *ctx, const char *relative, struct err *err)
{
    struct closing *c = ctx;
    char *inside = inside_path(c->plan, c->tree, relative);
    int own;

    if (inside == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    /* by the guard the file itself would be closed, under the name that another tree has for it too */
    if (!is_covered(c->plan, c->tree, relative, inside) &&
        plan_guard_name(c->plan, c->tree->inside, relative, err) < 0)
        return -1;
    own = plan_git_own(c->plan, c->tree, relative, inside, err);
    /* the owner's git writes there what becomes its configuration */
    if (own == 0 && strcmp(relative, ".git/config") == 0 &&
        plan_guard_name(c->plan, c->tree->inside, ".git/config.lock", err) < 0)
        return -1;
    return own != 0 ? own < 0 ? -1 : 0 : pin(c->plan, inside, err);
}

/* ... and so is where it leads. */
static int
found_at_top(void *ctx, const char *relative, struct err *err)
{
    struct closing *c = ctx;

    return found_protected(c, relative, err) < 0 || led_protected(c->led, relative, err) < 0 ? -1 : 0;
}

int
plan_protect_place(struct native_plan *plan, const struct plan_tree *tree, const char *relative, struct err *err)
{
    cleanup_close int hit = -1;
    struct closing c = { plan, NULL, tree, NULL };
    const char *inside = inside_path(plan, tree, relative);

    if (inside == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (is_covered(plan, tree, relative, inside))
        return 0;       /* what is seen there is another file */
    if (plan_look_at(tree, relative, &hit, err) < 0)
        return -1;
    return hit >= 0 ? found_protected(&c, relative, err) : plan_guard_name(plan, tree->inside, relative, err);
}

/* A protected name that is a link, or lies behind one (`.git -> elsewhere`): where it really is in the tree is
 * protected too, and so is the name in the real folder when it does not exist yet. A link out of the tree leads to
 * nothing that can be written. */
static int
protect_real(struct closing *c, const char *name, struct err *err)
{
    const char *slash = strrchr(name, '/');
    char real[PATH_MAX], parent[PATH_MAX];
    char *path;
    int found = plan_real_below(c->tree->fd, c->tree->host, name, real, sizeof(real), err);

    if (found != 0)
        return found < 0 ? -1 : strcmp(real, name) == 0 ? 0 : found_at_top(c, real, err);
    if (slash == NULL)
        return 0;
    snprintf(parent, sizeof(parent), "%.*s", (int)(slash - name), name);
    found = plan_real_below(c->tree->fd, c->tree->host, parent, real, sizeof(real), err);
    if (found <= 0 || strcmp(real, parent) == 0)
        return found < 0 ? -1 : 0;
    path = plan_printf(c->plan, "%s%s", real, slash);
    return path == NULL ? err_set(err, ERR_SYSTEM, "memory", "out of memory")
                        : plan_guard_name(c->plan, c->tree->inside, path, err);
}

/* `.git` as a file (a worktree's, a submodule's) says where git finds its hooks: a file in the place of a protected
 * name's folder is protected itself. */
static int
protect_file_above(struct closing *c, const char *name, struct err *err)
{
    const char *slash = strchr(name, '/');
    char above[PATH_MAX];
    cleanup_close int hit = -1;
    struct stat st;

    if (slash == NULL)
        return 0;
    snprintf(above, sizeof(above), "%.*s", (int)(slash - name), name);
    if (plan_look_at(c->tree, above, &hit, err) < 0)
        return -1;
    if (hit < 0 || (fstat(hit, &st) == 0 && !S_ISREG(st.st_mode)))
        return 0;
    return found_protected(c, above, err);
}

/* A name of the tree's that leads into another one which lies over it: what is there is that one's file, and has the
 * name. A pin where nothing is is none. */
static int
protect_covered(struct closing *c, const char *name, struct err *err)
{
    char *inside = inside_path(c->plan, c->tree, name);

    if (inside == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (c->plan->light || !is_covered(c->plan, c->tree, name, inside))
        return 0;
    return plan_item(c->plan, ROOT_PIN, NULL, inside, err) != NULL ? 0 : -1;
}

/* Names of one folder are neighbours in the list: whether there is anything that @name begins with is asked once. */
struct first {
    const char *name;
    size_t n;
    bool absent;
};

static bool
begins_absent(struct first *known, const struct plan_tree *tree, const char *name)
{
    size_t n = strcspn(name, "/");
    char first[NAME_MAX + 1];
    struct stat st;

    if (known->name != NULL && known->n == n && memcmp(known->name, name, n) == 0)
        return known->absent;
    if (n >= sizeof(first))
        return false;
    memcpy(first, name, n);
    first[n] = '\0';
    *known = (struct first){ name, n, fstatat(tree->fd, first, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT };
    return known->absent;
}

static int
protect_name(struct closing *c, const char *name, struct err *err)
{
    cleanup_close int hit = -1;
    struct stat st;

    if (plan_look_at(c->tree, name, &hit, err) < 0)
        return -1;
    if (hit >= 0 && fstat(hit, &st) == 0 && !S_ISLNK(st.st_mode))
        return found_at_top(c, name, err);
    if (hit >= 0 && led_protected(c->led, name, err) < 0)
        return -1;
    return plan_guard_name(c->plan, c->tree->inside, name, err) < 0 || protect_real(c, name, err) < 0
               ? -1 : protect_file_above(c, name, err);
}

/* Whether @name is the folder that the protected name @entry is in, which has others that need no protection. Git's are
 * looked through by themselves (led.h); below .config nothing but a home's is obeyed. */
static bool
is_folder_of(const char *name, size_t n, const char *entry)
{
    return entry[n] == '/' && strncasecmp(name, entry, n) == 0 && strncasecmp(entry, ".git/", 5) != 0 &&
           strncasecmp(entry, ".config/", 8) != 0;
}

/* Further down a protected name is closed where it is, and also where the folder that it would be in is: a program that
 * made the folder will look for it (Mercurial, of a subrepository, when it is asked about the one above). */
static int
protect_in(struct closing *c, const char *folder, struct err *err)
{
    const struct policy_list *names = &c->policy->protect;
    const char *slash = strrchr(folder, '/'), *last = slash != NULL ? slash + 1 : folder;
    size_t n = strlen(last);

    for (size_t i = 0; i < names->n; i++) {
        const char *entry = names->v[i].value;
        if (!is_folder_of(last, n, entry))
            continue;
        cleanup_close int hit = -1;
        char *path = plan_printf(c->plan, "%s%s", folder, entry + n);
        if (path == NULL)
            return err_set(err, ERR_SYSTEM, "memory", "out of memory");
        /* one that exists is found by its own name */
        if (plan_look_at(c->tree, path, &hit, err) < 0 || (hit < 0 && protect_name(c, path, err) < 0))
            return -1;
    }
    return 0;
}

static bool
has_names_in(const struct closing *c, const char *folder)
{
    const char *slash = strrchr(folder, '/'), *last = slash != NULL ? slash + 1 : folder;
    bool in = false;

    for (size_t i = 0; i < c->policy->protect.n; i++) {
        const char *entry = c->policy->protect.v[i].value;
        if (strcasecmp(entry, last) == 0)
            return false;
        in = in || is_folder_of(last, strlen(last), entry);
    }
    return in;
}

static int
found_below(void *ctx, const char *relative, struct err *err)
{
    struct closing *c = ctx;

    if (led_is_repository(c->led, relative))
        return led_nested(c->led, relative, err);
    if (has_names_in(c, relative))
        return protect_in(c, relative, err);
    return led_follows(relative) ? found_at_top(c, relative, err) : found_protected(c, relative, err);
}

/* What is searched for further down: @names, and the folders that hold some of them. 0 with @out, whose list the caller
 * frees. */
static int
names_below(const struct policy *p, const struct policy_list *names, struct policy_list *out, struct err *err)
{
    static char folders[][12] = { ".hg", ".jj", ".sl", ".pijul", "_darcs", ".claude", ".codex", ".gemini",
        ".opencode" };

    *out = *names;
    out->v = calloc(names->n + ARRAY_LEN(folders), sizeof(*out->v));
    if (out->v == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    memcpy(out->v, names->v, names->n * sizeof(*out->v));
    for (size_t i = 0; !p->srt && i < ARRAY_LEN(folders); i++)
        out->v[out->n++] = (struct policy_entry){ .value = folders[i], .written = folders[i] };
    return 0;
}

/* The tree lies in the place of the first names of some: the others are at its top. */
static int
protect_rests(struct closing *c, struct err *err)
{
    const struct policy_list *names = &c->policy->protect;

    for (size_t i = 0; !c->policy->srt && i < names->n; i++) {
        const char *rest = policy_name_rest(str_of(c->tree->host), names->v[i].value);
        if (rest != NULL && protect_name(c, rest, err) < 0)
            return -1;
    }
    return 0;
}

/* The mandatory names: at the top of each writable tree, and existing ones deeper down. */
static int
protect_names(struct native_plan *plan, const struct policy *p, const struct plan_tree *tree, struct err *err)
{
    const struct policy_list *names = &p->protect, *more;
    cleanup_led struct led *led = led_new(tree->fd, tree->host, p, plan_led, plan, err);
    struct closing c = { plan, p, tree, led };
    struct first first = { .name = NULL };
    struct policy_list below = { .v = NULL };

    if (led == NULL || plan_git(plan, p, tree, led, err) < 0 || protect_rests(&c, err) < 0)
        return -1;

    for (size_t i = 0; i < names->n; i++) {
        const char *name = names->v[i].value;
        bool absent = begins_absent(&first, tree, name);

        if (protect_covered(&c, name, err) < 0)
            return -1;
        if (plan_git_later(p, tree, name))
            continue;
        /* what is not even begun is no link, nor behind one */
        if (absent ? plan_guard_name(plan, tree->inside, name, err) < 0 : protect_name(&c, name, err) < 0)
            return -1;
    }
    more = plan_git_watched(p) ? led_names(led) : names;
    if (more == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    int r = names_below(p, more, &below, err);
    if (r == 0)
        r = expand_names(tree->fd, &below, (unsigned)p->protect_depth.v - 1, found_below, &c, err);
    free(below.v);
    return r;
}

static int
close_place(struct native_plan *plan, const struct plan_tree *tree, const char *path, struct err *err)
{
    const char *below = expand_below(path, tree->host);

    return below != NULL && below[0] != '\0' ? plan_guard_name(plan, tree->inside, below, err) : 0;
}

/* The vault's folder in a tree that the sandbox writes: one that is not there yet is not for the sandbox to make, for
 * the next run would take its secrets, and its CA, for the owner's. */
static int
guard_store(struct native_plan *plan, const struct policy *p, const struct plan_tree *tree, struct err *err)
{
    const char *const places[] = { p->store, p->home != NULL ? plan_printf(plan, "%s" USUAL_STORE, p->home) : NULL };

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        char real[PATH_MAX];
        if (places[i] == NULL)
            continue;
        /* a tree is where it really lies, and the way to the store may lead over links into it (a HOME that is one);
         * a link within the tree is a name that could be made anew */
        if (close_place(plan, tree, places[i], err) < 0 ||
            (plan_real_future(places[i], real) && close_place(plan, tree, real, err) < 0))
            return -1;
    }
    return 0;
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
        char real[PATH_MAX];
        struct stat st;

        plan->sockets[n++] = path;
        if (p->view.v == VIEW_HOST || plan->light)
            continue;
        /* in a private root the socket must be made visible too */
        if (!plan_real_future(path, real) || lstat(real, &st) < 0)
            continue;
        item = plan_item(plan, ROOT_BIND, plan_printf(plan, "%s", real), path, err);
        if (item == NULL)
            return -1;
        item->optional = true;
        item->writable = true;
        item->check_identity = true;
        item->dev = st.st_dev;
        item->ino = st.st_ino;
    }
    plan->n_sockets = n;
    /* without a tree of the host there is no socket but the sandbox's own */
    plan->guard_connect =
        !p->all_unix_sockets.v && (plan->n_trees > 0 || n > 0 || plan->light || p->view.v == VIEW_HOST);
    return 0;
}

/* After all that can be opened again: no allow-read lifts these. A tree that is one of them was named by the user. */
static int
close_secrets(struct native_plan *plan, const struct plan_tree *tree, struct err *err)
{
    for (size_t i = 0; i < plan->root_secrets.n; i++) {
        const char *below = expand_below(plan->root_secrets.v[i].value, tree->host);
        if (below != NULL && below[0] != '\0' &&
            (plan_item(plan, ROOT_MASK, NULL, inside_path(plan, tree, below), err) == NULL ||
             (tree->writable && plan_guard_name(plan, tree->inside, below, err) < 0)))
            return -1;
    }
    return 0;
}

/* Light mode has no mount that would keep what allow-read opened again from being written. */
static int
close_reopened(struct native_plan *plan, const struct policy *p, const struct plan_tree *tree, struct err *err)
{
    for (size_t i = 0; plan->light && i < p->allow_read.n; i++) {
        const char *relative = expand_below(p->allow_read.v[i].value, tree->host);
        struct judged judged;
        struct place place;

        if (relative == NULL || *relative == '\0')
            continue;
        plan_judge(plan, p->allow_read.v[i].value, &place, &judged);
        if (judged.write_why == WRITE_REOPENED && plan_guard_name(plan, tree->inside, relative, err) < 0)
            return -1;
    }
    return 0;
}

static int
protect_tree(struct native_plan *plan, const struct policy *p, const struct plan_tree *tree, struct err *err)
{
    /* a copy-on-write tree keeps protected names from being applied instead (workspace/protect.h) */
    if (tree->writable && (protect_names(plan, p, tree, err) < 0 || guard_store(plan, p, tree, err) < 0 ||
                           close_reopened(plan, p, tree, err) < 0))
        return -1;
    if ((tree->writable || tree->cow) &&
        (close_absent(plan, tree, &p->deny_read, err) < 0 || close_absent(plan, tree, &p->credentials, err) < 0 ||
         close_writes(plan, tree, &p->deny_write, err) < 0))
        return -1;
    return plan->light || p->view.v == VIEW_HOST ? 0 : close_secrets(plan, tree, err);
}

int
plan_protect(struct native_plan *plan, const struct policy *p, struct err *err)
{
    const struct plan_tree host = { .host = "/", .inside = "/", .is_dir = true, .fd = -1 };

    if ((plan->n_trees > 0 || p->view.v == VIEW_HOST) && (plan->privileged || plan->ids.outside_uid == 0) &&
        !plan->light && plan_host_secrets(plan, p, &plan->root_secrets, err) < 0)
        return -1;
    if (plan->light ? plan_light(plan, p, err) < 0
                    : p->view.v == VIEW_HOST && close_secrets(plan, &host, err) < 0)
        return -1;
    for (size_t i = 0; i < plan->n_trees; i++)
        if (plan->trees[i].is_dir && protect_tree(plan, p, &plan->trees[i], err) < 0)
            return -1;
    return sockets(plan, p, err);
}
