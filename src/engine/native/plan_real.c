/* engine/native/plan_real.c: see plan_real.h */
#include "engine/native/plan_real.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "engine/native/expand.h"
#include "match/path.h"
#include "wall/mnt.h"

#define LINKS_MAX 40            /* as the kernel (path_resolution(7)) */

struct gather {
    struct native_plan *plan;
    const struct policy_entry *rule;
    const char *host;           /* of the tree that is walked */
    struct policy_list *out;
};

bool
plan_real_path(int fd, char *out, size_t size)
{
    char link[64];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, out, size - 1);
    if (n < 0)
        return false;
    out[n] = '\0';
    errno = ENOENT;
    return out[0] == '/';
}

static int
append(struct policy_list *list, const struct policy_entry *entry, struct err *err)
{
    struct policy_entry *bigger = reallocarray(list->v, list->n + 1, sizeof(*bigger));

    if (bigger == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    list->v = bigger;
    list->v[list->n++] = *entry;
    return 0;
}

/* The rule @rule said for @path, when that is not where it really lies. */
static int
add_real(struct native_plan *plan, const struct policy_entry *rule, const char *path, struct policy_list *out,
         struct err *err)
{
    cleanup_close int fd = open(path, O_PATH | O_CLOEXEC);
    struct policy_entry entry = *rule;
    char real[PATH_MAX];

    if (fd < 0)
        return 0;       /* leads nowhere, or nowhere that this user could look into */
    if (!plan_real_path(fd, real, sizeof(real)) || strcmp(real, path) == 0)
        return 0;
    entry.value = plan_printf(plan, "%s", real);
    entry.literal = true;
    return entry.value == NULL ? err_set(err, ERR_SYSTEM, "memory", "out of memory") : append(out, &entry, err);
}

static int
on_glob_hit(void *ctx, const char *relative, struct err *err)
{
    struct gather *g = ctx;
    char path[2 * PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", strcmp(g->host, "/") == 0 ? "" : g->host, relative);
    return add_real(g->plan, g->rule, path, g->out, err);
}

static int
gather_glob(struct native_plan *plan, const struct policy *p, const struct policy_entry *rule, struct policy_list *out,
            struct err *err)
{
    struct gather g = { plan, rule, "/", out };

    if (plan->light || p->view.v == VIEW_HOST) {
        cleanup_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        return root < 0 ? err_sys(err, errno, "wall.root", "/")
                        : expand_rule(root, "/", rule, on_glob_hit, NULL, &g, err);
    }
    for (size_t i = 0; i < plan->n_trees; i++) {
        g.host = plan->trees[i].host;
        if (plan->trees[i].is_dir && expand_rule(plan->trees[i].fd, g.host, rule, on_glob_hit, NULL, &g, err) < 0)
            return -1;
    }
    return 0;
}

int
plan_real_rules(struct native_plan *plan, const struct policy *p, const struct policy_list *in,
                struct policy_list *out, struct err *err)
{
    for (size_t i = 0; i < in->n; i++) {
        const struct policy_entry *rule = &in->v[i];
        bool plain = rule->literal || !path_has_glob(str_of(rule->value));

        if (append(out, rule, err) < 0)
            return -1;
        if (plain ? add_real(plan, rule, rule->value, out, err) < 0 : gather_glob(plan, p, rule, out, err) < 0)
            return -1;
    }
    return 0;
}

#define PARENTS_MAX 96

/* A folder that places were looked for in. */
struct parent {
    const char *path;
    size_t n;
    int fd;         /* -1: it is not there */
};

struct parents {
    struct parent v[PARENTS_MAX];
    size_t n;
};

/* The folder that @path lies in, opened once. NULL: nobody can say by it whether the path is there. */
static const struct parent *
parent_of(struct parents *known, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash == NULL || slash == path ? 1 : (size_t)(slash - path);
    char folder[PATH_MAX];
    struct parent *p;

    /* neighbours in the table are neighbours on the disk */
    for (size_t i = known->n; i-- > 0;)
        if (known->v[i].n == n && memcmp(known->v[i].path, path, n) == 0)
            return &known->v[i];
    if (slash == NULL || known->n == PARENTS_MAX || n >= sizeof(folder))
        return NULL;
    memcpy(folder, path, n);
    folder[n] = '\0';
    p = &known->v[known->n];
    *p = (struct parent){ path, n, open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) };
    if (p->fd < 0 && errno != ENOENT && errno != ENOTDIR)
        return NULL;
    known->n++;
    return p;
}

static bool
is_absent(struct parents *known, const char *path)
{
    const struct parent *parent = parent_of(known, path);
    struct stat st;

    if (parent == NULL)
        return false;
    return parent->fd < 0 || (fstatat(parent->fd, strrchr(path, '/') + 1, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
                              (errno == ENOENT || errno == ENOTDIR));
}

int
plan_real_places(struct native_plan *plan, const struct policy *p, const struct policy_list *in,
                 struct policy_list *out, struct err *err)
{
    struct policy_list present = { .n = 0 };
    struct parents known = { .n = 0 };
    int r = 0;

    for (size_t i = 0; i < in->n && r == 0; i++)
        if (!in->v[i].literal || !is_absent(&known, in->v[i].value))
            r = append(&present, &in->v[i], err);
    for (size_t i = 0; i < known.n; i++)
        close_fd(&known.v[i].fd);
    if (r == 0)
        r = plan_real_rules(plan, p, &present, out, err);
    free(present.v);
    return r;
}

int
plan_real_below(int fd, const char *host, const char *relative, char *out, size_t size, struct err *err)
{
    cleanup_close int target = mnt_open_beneath(fd, relative, O_PATH, true);
    const char *below;
    char real[PATH_MAX];

    if (target < 0 && (errno == ENOSYS || errno == EPERM)) {
        err_set(err, ERR_UNSUPPORTED, "wall.openat2.unsupported",
                "where %s leads cannot be found safely without openat2", relative);
        return err_hint(err, "it needs Linux 5.6 and no outer seccomp filter that hides openat2");
    }
    if (target < 0 || !plan_real_path(target, real, sizeof(real)))
        return 0;
    below = expand_below(real, host);
    if (below == NULL || below[0] == '\0' || strlen(below) >= size)
        return 0;
    memcpy(out, below, strlen(below) + 1);
    return 1;
}

/* One component more behind the @n bytes of @out. How long it is then, or 0: no room. */
static size_t
add_component(char out[PATH_MAX], size_t n, struct str component)
{
    if (str_eq_c(component, "."))
        return n;
    if (str_eq_c(component, "..")) {
        while (n > 1 && out[--n] != '/')
            ;
    } else {
        if (n + 1 + component.n >= PATH_MAX)
            return 0;
        if (n > 1)
            out[n++] = '/';
        memcpy(out + n, component.p, component.n);
        n += component.n;
    }
    out[n] = '\0';
    return n;
}

bool
plan_real_future(const char *path, char out[PATH_MAX])
{
    char left[2 * PATH_MAX], next[2 * PATH_MAX], link[PATH_MAX];
    const char *at = left;
    size_t n = 1, before = 1;
    unsigned links = 0;

    if (path[0] != '/' || strlen(path) >= PATH_MAX)
        return false;
    memcpy(left, path, strlen(path) + 1);
    memcpy(out, "/", 2);
    for (;; before = n) {
        struct str component;
        ssize_t target;

        at += strspn(at, "/");
        component = (struct str){ at, strcspn(at, "/") };
        if (component.n == 0)
            return true;
        at += component.n;
        n = add_component(out, n, component);
        if (n == 0)
            return false;
        target = readlink(out, link, sizeof(link) - 1);
        if (target <= 0)
            continue;
        if (++links > LINKS_MAX || (size_t)target + strlen(at) + 2 > sizeof(left))
            return false;
        snprintf(next, sizeof(next), "%.*s/%s", (int)target, link, at);
        memcpy(left, next, strlen(next) + 1);
        at = left;
        n = link[0] == '/' ? 1 : before;
        out[n] = '\0';
    }
}
