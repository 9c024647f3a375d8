/* guest/remove.c: removing a tree that others may be changing
 *
 * Every level is held open and everything is removed by name from the open directory above it, never through a
 * path and never through "..", so that a directory that is moved away or replaced by a link while we are in it
 * leads nowhere. The first thing that cannot be removed ends the request.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/files.h"
#include "guest/guard_link.h"

#define STEP_NAMES 256          /* names per step */

struct level {
    int dir;                    /* where @name lies */
    char name[NAME_MAX + 1];    /* the directory being emptied: the next level's @dir */
};

struct remove_tree {
    size_t depth;
    struct level level[REMOVE_DEPTH_MAX];
    struct dirents names;       /* of the innermost directory */
};

int
remove_one(struct guest *g, int dir, const char *name, uint64_t *count)
{
    int rc = guard_link_check(g, dir, name, "remove");

    if (rc != 0)
        return rc;
    if (unlinkat(dir, name, 0) < 0) {
        /* Linux says EISDIR, POSIX EPERM: both may mean a directory. */
        int first = errno;

        if (first != EISDIR && first != EPERM)
            return first;
        if (unlinkat(dir, name, AT_REMOVEDIR) < 0)
            return errno == ENOTDIR ? first : errno == EEXIST ? ENOTEMPTY : errno;
    }
    ++*count;
    return 0;
}

/* Go into @name of @dir, which becomes the tree's if that works. */
static int
enter(struct remove_tree *t, int dir, const char *name)
{
    struct level *l = &t->level[t->depth];
    int fd;

    if (t->depth == REMOVE_DEPTH_MAX)
        return FILES_TOO_DEEP;
    fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno;
    t->depth++;
    l->dir = dir;
    memmove(l->name, name, strlen(name) + 1);
    t->names.fd = fd;
    t->names.at = t->names.n = 0;
    t->names.failed = 0;
    return 0;
}

/* The innermost directory is empty: remove it from the one above, and go on there from the start. */
static int
leave(struct guest *g, struct remove_tree *t, uint64_t *count)
{
    struct level *l = &t->level[t->depth - 1];
    int rc;

    close_fd(&t->names.fd);
    rc = remove_one(g, l->dir, l->name, count);
    /* Something new appeared in it meanwhile: look again. */
    if (rc == ENOTEMPTY) {
        t->depth--;
        rc = enter(t, l->dir, l->name);
        if (rc != 0)
            t->depth++;         /* for remove_tree_free */
        return rc;
    }
    if (rc != 0)
        return rc;
    t->depth--;
    t->names.fd = take_fd(&l->dir);
    t->names.at = t->names.n = 0;
    if (t->depth > 0 && lseek(t->names.fd, 0, SEEK_SET) < 0)
        return errno;
    return 0;
}

int
remove_tree_begin(int dir, const char *name, struct remove_tree **out)
{
    struct remove_tree *t = calloc(1, sizeof(*t));
    int rc;

    if (t == NULL)
        return ENOMEM;
    t->names.fd = -1;
    rc = enter(t, dir, name);
    if (rc != 0) {
        remove_tree_free(t);
        return rc;
    }
    *out = t;
    return 0;
}

int
remove_tree_step(struct guest *g, struct remove_tree *t, uint64_t *count)
{
    for (size_t i = 0; i < STEP_NAMES; i++) {
        const char *name = dirents_next(&t->names);
        char copy[NAME_MAX + 1];
        int rc;

        if (name == NULL && t->names.failed != 0)
            return t->names.failed;
        if (name == NULL) {
            rc = leave(g, t, count);
            if (rc != 0 || t->depth == 0)
                return rc;
            continue;
        }
        rc = remove_one(g, t->names.fd, name, count);
        if (rc == ENOTEMPTY) {
            memcpy(copy, name, strlen(name) + 1);
            rc = enter(t, t->names.fd, copy);
        }
        /* Somebody else removed it first. */
        if (rc != 0 && rc != ENOENT)
            return rc;
    }
    return REMOVE_MORE;
}

void
remove_tree_free(struct remove_tree *t)
{
    close_fd(&t->names.fd);
    for (size_t i = 0; i < t->depth; i++)
        close_fd(&t->level[i].dir);
    free(t);
}
