/* engine/native/plan_light.c: what can be read in light mode
 *
 * Landlock grants whole subtrees and cannot take a part away. So the readable host is everything, carved around the
 * denied places: a folder with no denied place in it is granted whole; one that has some is opened up and its
 * children are granted one by one. What is created in an opened-up folder later is not readable: it fails closed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/dirents.h"
#include "engine/native/plan.h"
#include "match/path.h"
#include "wall/mnt.h"

#define MARKS_MAX      1024
#define ROOT_NAMES_MAX 1024

struct carve {
    struct native_plan *plan;
    const char *marks[MARKS_MAX];        /* places where what may be read changes */
    size_t n;
};

/* Whether @path is what only root may read, where the sandbox stays root: no rule opens that. */
static bool
is_secret(const struct native_plan *plan, const char *path)
{
    for (size_t i = 0; i < plan->root_secrets.n; i++)
        if (path_within(str_of(path), str_of(plan->root_secrets.v[i].value)))
            return true;
    return false;
}

static int
grant(struct carve *c, int parent, const char *name, const char *path, struct err *err)
{
    bool around = false;
    struct dirent *entry;
    struct judged judged;
    struct place place;

    if (is_secret(c->plan, path))
        return 0;
    for (size_t i = 0; i < c->n; i++)
        around |= path_within(str_of(c->marks[i]), str_of(path)) && strcmp(c->marks[i], path) != 0;
    plan_judge_there(c->plan, path, &place, &judged);
    if (!around)
        return judged.read ? plan_rule(c->plan, path, LANDLOCK_READ_EXEC, true, err) : 0;
    cleanup_close int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    cleanup_close int list = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;
    cleanup_dir DIR *dir = list >= 0 ? fdopendir(list) : NULL;
    if (dir == NULL)
        return 0;   /* unreadable for us is unreadable for it */
    list = -1;
    while ((entry = readdir(dir)) != NULL) {
        char *child;
        /* a link is not granted: what it leads to is granted, or denied, where it lies */
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 || entry->d_type == DT_LNK)
            continue;
        child = plan_printf(c->plan, "%s/%s", strcmp(path, "/") == 0 ? "" : path, entry->d_name);
        if (child == NULL || grant(c, fd, entry->d_name, child, err) < 0)
            return -1;
    }
    return 0;
}

/* What cannot be looked at by us may be there, and for its reader: the sandbox's user need not be ours (root on a file
 * system that refuses root). */
static bool
is_there(const char *path, struct stat *st)
{
    if (lstat(path, st) == 0)
        return true;
    st->st_mode = 0;
    return errno != ENOENT && errno != ENOTDIR;
}

/* Apart from its callers' loops: what it needs to judge is zeroed each time. */
static bool
may_read(const struct native_plan *plan, const char *path)
{
    struct judged judged;
    struct place place;

    plan_judge(plan, path, &place, &judged);
    return judged.read;
}

static int
add_mark(struct carve *c, const char *path, struct err *err)
{
    if (c->n == MARKS_MAX)
        return err_set(err, ERR_LIMIT, "wall.light.too-many", "more than %d places are denied", MARKS_MAX);
    c->marks[c->n++] = path;
    return 0;
}

/* Whether @path, which we cannot look at, lies behind a folder that is opened up for a mark already: that folder is not
 * to be searched by us, so one place in it is as good as all. */
static bool
is_behind_mark(const struct carve *c, const char *path)
{
    char above[PATH_MAX];
    struct stat st;

    snprintf(above, sizeof(above), "%s", path);
    do
        *strrchr(above, '/') = '\0';
    while (above[0] != '\0' && lstat(above, &st) < 0);
    for (size_t k = 0; above[0] != '\0' && k < c->n; k++)
        if (path_within(str_of(c->marks[k]), str_of(above)) && strcmp(c->marks[k], above) != 0)
            return true;
    return false;
}

/* Places that the host has: what is not there needs no care, for nothing is granted by a name that is made later. What
 * opens again counts in what is closed (@closed_only). */
static int
mark(struct carve *c, const struct policy_list *list, bool closed_only, struct err *err)
{
    size_t closed = c->n;

    for (size_t i = 0; i < list->n; i++) {
        bool within = false;
        struct stat st;
        /* a link is never granted: what it leads to has a rule of its own */
        if (list->v[i].absent || !is_there(list->v[i].value, &st) || S_ISLNK(st.st_mode))
            continue;
        if (!closed_only)   /* a tree that was named is open, whatever closes its surroundings */
            within = !may_read(c->plan, list->v[i].value);
        for (size_t k = 0; k < closed && !within; k++)
            within = path_within(str_of(list->v[i].value), str_of(c->marks[k]));
        if (!within || (st.st_mode == 0 && is_behind_mark(c, list->v[i].value)))
            continue;
        if (add_mark(c, list->v[i].value, err) < 0)
            return -1;
    }
    return 0;
}

static int
mark_secrets(struct carve *c, struct err *err)
{
    for (size_t i = 0; i < c->plan->root_secrets.n; i++)
        if (add_mark(c, c->plan->root_secrets.v[i].value, err) < 0)
            return -1;
    return 0;
}

static int
deny_inside(const struct native_plan *plan, const struct policy_list *list, struct err *err)
{
    for (size_t t = 0; t < plan->n_trees; t++) {
        for (size_t i = 0; i < list->n; i++) {
            const char *denied = list->v[i].value;
            struct stat st;
            if (list->v[i].absent || strcmp(denied, plan->trees[t].host) == 0 ||
                !path_within(str_of(denied), str_of(plan->trees[t].host)) || !is_there(denied, &st))
                continue;
            if (may_read(plan, denied))
                continue;
            /* what is there decides it, so no weaker wall may follow from it */
            err_set(err, ERR_POLICY, "wall.light.deny-inside",
                    "light mode cannot hide %s inside %s, which is opened", denied, plan->trees[t].host);
            return err_hint(err, "Landlock grants whole folders; use --mode standard, or open a narrower folder");
        }
    }
    return 0;
}

static int
check_trees(const struct native_plan *plan, const struct policy *p, struct err *err)
{
    return deny_inside(plan, &p->deny_read, err) < 0 ? -1 : deny_inside(plan, &p->credentials, err);
}

/* For what each command opens below; what is made later is closed to it. */
static int
root_names(struct native_plan *plan, struct err *err)
{
    cleanup_close int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct dirents names = { .fd = root };
    const char *name;
    size_t n = 0;

    plan->root_names = (char **)(void *)plan_room(plan, (ROOT_NAMES_MAX + 1) * sizeof(*plan->root_names));
    if (plan->root_names == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (root < 0)
        return err_sys(err, errno, "wall.root", "/");
    while ((name = dirents_next(&names)) != NULL) {
        if (n == ROOT_NAMES_MAX)
            return err_set(err, ERR_LIMIT, "wall.light.too-many", "more than %d names in /", ROOT_NAMES_MAX);
        if ((plan->root_names[n++] = plan_printf(plan, "/%s", name)) == NULL)
            return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    }
    if (names.failed != 0)
        return err_sys(err, names.failed, "wall.root", "list /");
    plan->root_names[n] = NULL;
    return 0;
}

int
plan_light(struct native_plan *plan, const struct policy *p, struct err *err)
{
    cleanup_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    cleanup_free struct carve *c = calloc(1, sizeof(*c));

    if (c == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (root < 0)
        return err_sys(err, errno, "wall.root", "/");
    c->plan = plan;
    if (root_names(plan, err) < 0)
        return -1;
    if (plan->ids.outside_uid == 0 && plan_host_secrets(plan, p, &plan->root_secrets, err) < 0)
        return -1;
    if (mark_secrets(c, err) < 0 || mark(c, &p->deny_read, false, err) < 0 ||
        mark(c, &p->credentials, false, err) < 0 || mark(c, &p->allow_read, true, err) < 0 ||
        check_trees(plan, p, err) < 0)
        return -1;
    return grant(c, AT_FDCWD, "/", "/", err);
}
