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

#include "base/cleanup.h"
#include "engine/native/expand.h"
#include "engine/native/plan.h"
#include "match/path.h"
#include "wall/mnt.h"

#define DENIED_MAX 1024

struct carve {
    struct native_plan *plan;
    char *denied[DENIED_MAX];
    size_t n;
};

static int
note_denied(void *ctx, const char *relative, struct err *err)
{
    struct carve *c = ctx;

    if (c->n == DENIED_MAX)
        return err_set(err, ERR_LIMIT, "wall.light.too-many", "more than %d places are denied", DENIED_MAX);
    c->denied[c->n] = plan_printf(c->plan, "/%s", relative);
    return c->denied[c->n++] == NULL ? err_set(err, ERR_SYSTEM, "memory", "out of memory") : 0;
}

static int
grant(struct carve *c, int parent, const char *name, const char *path, struct err *err)
{
    bool around = false;
    struct dirent *entry;

    for (size_t i = 0; i < c->n; i++) {
        if (path_within(str_of(path), str_of(c->denied[i])))
            return 0;
        around |= path_within(str_of(c->denied[i]), str_of(path));
    }
    if (!around)
        return plan_rule(c->plan, path, LANDLOCK_READ_EXEC, true, err);
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
    for (size_t i = 0; i < plan->denied_reads.n; i++) {
        const struct policy_entry *rule = &plan->denied_reads.v[i];
        bool open_again = false;
        for (size_t k = 0; k < p->allow_read.n; k++)
            open_again |= strcmp(p->allow_read.v[k].value, rule->value) == 0;
        if (!open_again && expand_rule(root, "/", rule, note_denied, NULL, c, err) < 0)
            return -1;
    }
    for (size_t t = 0; t < plan->n_trees; t++) {
        for (size_t i = 0; i < c->n; i++) {
            if (strcmp(c->denied[i], plan->trees[t].host) == 0 ||
                !path_within(str_of(c->denied[i]), str_of(plan->trees[t].host)))
                continue;
            /* what is there decides it, so no weaker wall may follow from it */
            err_set(err, ERR_POLICY, "wall.light.deny-inside",
                    "light mode cannot hide %s inside %s, which is opened", c->denied[i], plan->trees[t].host);
            return err_hint(err, "Landlock grants whole folders; use --mode standard, or open a narrower folder");
        }
    }
    return grant(c, AT_FDCWD, "/", "/", err);
}
