/* guest/guard_object.c: an object that was reached without its directory: where does it lie, and is that protected? */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "guest/guard_priv.h"

/* --- where something lies, as text */

ssize_t
fd_text(const struct guard *g, int fd, char *out, size_t room)
{
    char name[16];

    snprintf(name, sizeof(name), "%d", fd);
    return readlinkat(g->fds, name, out, room);
}

static bool
go_home(struct guard *g)
{
    g->stands = false;
    return fchdir(g->home) == 0;
}

void
text_done(struct guard *g)
{
    if (g->stands)
        (void)go_home(g);
    g->lent = -1;
}

/* To go there and ask is half the price of the link below /proc. What getcwd() does not say (a directory that was
 * removed, or is out of reach) the link does. The caller's own directory, which stays open while the call is served, is
 * asked about before and after: we stay there between. */
ssize_t
dir_text(struct guard *g, int dir, char *out, size_t room)
{
    bool stays = dir == g->lent;
    long n = -1;

    if (g->home >= 0 && ((stays && g->stands) || fchdir(dir) == 0)) {
        n = syscall(SYS_getcwd, out, room);
        g->stands = stays;
        if (!stays && !go_home(g))
            n = -1;
    }
    return n > 1 && out[0] == '/' ? (ssize_t)n - 1 : fd_text(g, dir, out, room);
}

int
object_parent(const struct guard *g, int object, const struct stat *st, char name[OBJECT_NAME_ROOM])
{
    cleanup_close int dir = -1;
    unfilled char path[PATH_MAX];
    struct stat there;
    char *slash;
    ssize_t n;

    name[0] = '\0';
    n = fd_text(g, object, path, sizeof(path) - 1);
    if (n <= 0 || path[0] != '/')
        return -1;
    path[n] = '\0';
    slash = strrchr(path, '/');
    if (strlen(slash + 1) >= OBJECT_NAME_ROOM)
        return -1;
    memcpy(name, slash + 1, strlen(slash + 1) + 1);
    *slash = '\0';
    dir = open(slash == path ? "/" : path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || fstatat(dir, name, &there, AT_SYMLINK_NOFOLLOW) < 0 || !ident_eq(ident_of(st), ident_of(&there)))
        return -1;
    return take_fd(&dir);
}

/* Most have a path that no rule knows a name of. */
static bool
lies_free(const struct guard *g, int object)
{
    unfilled char path[PATH_MAX];
    ssize_t n = fd_text(g, object, path, sizeof(path));
    struct str text = { path, n > 0 && n < (ssize_t)sizeof(path) ? (size_t)n : 0 };

    return rules_no_name(g, text) && !str_ends(text, STR_LIT(" (deleted)"));
}

bool
object_protected(struct guard *g, int object, const char **rule)
{
    cleanup_close int dir = -1;
    char name[OBJECT_NAME_ROOM];
    struct stat st, dir_st;

    *rule = "file without a path";
    if (g->rules.n_entries == 0)
        return false;
    if (fstat(object, &st) < 0)
        return true;
    /* has no name that could be protected: deleted, unnamed, a pipe */
    if (st.st_nlink == 0 || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode)))
        return false;
    if (S_ISDIR(st.st_mode))
        return rules_below(g, object, rule) != PLACE_FREE;
    if (st.st_nlink > 1 && rules_same_object(g, &st, rule))
        return true;
    *rule = "file without a path";
    if (lies_free(g, object))
        return false;
    dir = object_parent(g, object, &st, name);
    if (name[0] == '\0')
        return true;
    if (dir < 0 || fstat(dir, &dir_st) < 0)
        /* opened by a name that is gone, while it has another: the host's link to a protected file, or free */
        return rules_same_object(g, &st, rule) || !str_ends(str_of(name), STR_LIT(" (deleted)"));
    return rules_place(g, dir, &dir_st, name, strlen(name), rule) != PLACE_FREE;
}

bool
read_only_mount(int object)
{
    struct statfs fs;

    return fstatfs(object, &fs) == 0 && (fs.f_flags & ST_RDONLY) != 0;
}

bool
held_by_mount(const struct guard *g, int object)
{
    return (g->flags & GUARD_EXISTING) == 0 && read_only_mount(object);
}

void
deny_object(struct call *c, int object, const char *rule)
{
    unfilled char path[PATH_MAX];
    ssize_t n = fd_text(c->g, object, path, sizeof(path) - 1);

    path[n > 0 ? n : 0] = '\0';
    deny_text(c->g, c->op, path, rule);
}
