/* workspace/planted_path.c: programs in a folder that are on the owner's PATH, in place of others (see planted.h)
 *
 * `.venv/bin` of an activated environment, `node_modules/.bin`: what has the name of a program that comes later on the
 * PATH is run by whoever types that name anywhere, `git` or `ls`.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/dirents.h"
#include "match/path.h"
#include "workspace/planted.h"

#define LOOKED_AT 100000        /* names */

struct search {
    const char *dir;
    struct timespec since;
    struct planted *out;
    size_t left;
};

/* Cut folders off the search path *@path up to the first that has a whole path. False: that was all. */
static bool
next_folder(const char **path, char out[PATH_MAX])
{
    struct str folder;

    while (path_list_next(path, &folder))
        if (folder.p[0] == '/' && folder.n < PATH_MAX) {
            snprintf(out, PATH_MAX, "%.*s", (int)folder.n, folder.p);
            return true;
        }
    return false;
}

/* The program @name further on, outside of the folder. */
static bool
hidden_by(const struct search *s, const char *name, const char *later, char out[PATH_MAX])
{
    char folder[PATH_MAX], real[PATH_MAX];
    struct stat st;

    while (next_folder(&later, folder))
        if (snprintf(out, PATH_MAX, "%s/%s", folder, name) < PATH_MAX && stat(out, &st) == 0 && S_ISREG(st.st_mode) &&
            (st.st_mode & 0111) != 0 && realpath(folder, real) != NULL && !path_within(str_of(real), str_of(s->dir)))
            return true;
    return false;
}

static void
look_at(struct search *s, const char *folder, const char *later)
{
    cleanup_close int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
    struct dirents names = { .fd = fd };
    char path[PATH_MAX], other[PATH_MAX], detail[sizeof(((struct planted_find *)0)->detail)];
    const char *name, *below = folder + strlen(s->dir);
    struct stat st;

    while (fd >= 0 && (name = dirents_next(&names)) != NULL) {
        if (s->left-- == 0) {
            s->out->complete = false;
            s->left = 0;
            return;
        }
        if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISDIR(st.st_mode) ||
            !planted_changed(&s->since, &st.st_ctim) || !hidden_by(s, name, later, other) ||
            snprintf(path, sizeof(path), "%s/%s", below + (below[0] == '/'), name) >= (int)sizeof(path))
            continue;
        snprintf(detail, sizeof(detail), "in place of %s", other);
        planted_add(s->out, below[0] == '\0' ? name : path, "program on your PATH", "whoever types its name", detail);
    }
    s->out->complete &= names.failed == 0;
}

void
planted_path(const char *dir, const char *path, const struct timespec *since, struct planted *out)
{
    char root[PATH_MAX], folder[PATH_MAX], real[PATH_MAX];
    struct search s = { .dir = root, .since = planted_since(since), .out = out, .left = LOOKED_AT };

    if (path == NULL || realpath(dir, root) == NULL || strcmp(root, "/") == 0)
        return;
    while (next_folder(&path, folder))
        if (realpath(folder, real) != NULL && path_within(str_of(real), str_of(root)))
            look_at(&s, real, path);
}
