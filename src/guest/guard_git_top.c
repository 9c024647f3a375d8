/* guest/guard_git_top.c: what git takes for the repository stays the one that it takes (see guard_git.h)
 *
 * On its way up git passes a `.git` that is no repository, and takes the folder itself for one if it has the shape. The
 * owner's git may have checked that shape out, with any configuration, and no call in here made it. So nothing in here
 * takes from `.git` at the top, or from one in a folder of that shape, what makes it a repository. Mounts cannot do
 * that: who replaces a file by a rename, as the owner's git does with HEAD, takes the mount away too.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "guest/guard_git.h"

static const char *const parts[] = { "HEAD", "objects", "refs" };

/* `.git` of the tree @i as it is now. 1; 0: there is none; -1: it cannot be told. */
static int
top_now(const struct guard *g, size_t i, struct stat *st)
{
    bool itself = str_ends(str_of(g->rules.roots[i].path), STR_LIT("/.git"));

    if (fstatat(g->rules.roots[i].fd, itself ? "" : ".git", st, itself ? AT_EMPTY_PATH : 0) == 0)
        return 1;
    return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -1;
}

bool
git_is_top(const struct guard *g, struct ident id)
{
    for (size_t i = 0; i < g->rules.n_roots; i++) {
        struct stat st;
        int there = top_now(g, i, &st);

        if (there < 0 || (there > 0 && ident_eq(ident_of(&st), id)))
            return true;
    }
    return false;
}

bool
git_is_top_head(const struct guard *g, int dir, const struct stat *dir_st, struct str name)
{
    struct stat st;

    return (g->flags & GUARD_GIT) != 0 && git_part_of(name) == GIT_PART_HEAD && git_is_top(g, ident_of(dir_st)) &&
           fstatat(dir, "HEAD", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

/* Whether @dir is the `.git` of a folder that git would take for a repository without it. */
static bool
hides_another(int dir, struct ident id)
{
    cleanup_close int above = openat(dir, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat st;

    return above >= 0 && git_parts_place(git_parts_there(above)) && fstatat(above, ".git", &st, 0) == 0 &&
           ident_eq(ident_of(&st), id);
}

bool
git_is_needed(const struct guard *g, int dir, struct ident id)
{
    return git_is_top(g, id) || hides_another(dir, id);
}

/* Is @name in @dir what @what is there, by whatever name the file system knows it? */
static bool
is_named(const struct guard *g, int dir, struct str name, const char *what)
{
    char text[NAME_MAX + 1];
    struct stat st, now;

    if (name_same(what, name.p, name.n))
        return true;
    if (name.n > NAME_MAX || !rules_ambiguous(g, name.p, name.n))
        return false;
    memcpy(text, name.p, name.n);
    text[name.n] = '\0';
    return fstatat(dir, text, &st, AT_SYMLINK_NOFOLLOW) == 0 && fstatat(dir, what, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
           ident_eq(ident_of(&st), ident_of(&now));
}

/* Which of the parts that are in @dir @name is. */
static bool
is_part(const struct guard *g, int dir, struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (is_named(g, dir, name, parts[i]))
            return true;
    return false;
}

/* `.git` of a folder that git would take for a repository without it: made during this run, or deeper than the rules by
 * name look. */
static bool
is_hiding(const struct guard *g, int dir, struct str name)
{
    return is_named(g, dir, name, ".git") && git_parts_place(git_parts_there(dir));
}

bool
git_keeps(const struct guard *g, int dir, const struct stat *dir_st, struct str name)
{
    return (g->flags & GUARD_GIT) != 0 && !guard_is_own(g, dir_st->st_dev) &&
           ((is_part(g, dir, name) && git_is_needed(g, dir, ident_of(dir_st))) || is_hiding(g, dir, name));
}

/* Whether @object is @dir or one of its parts. */
static bool
is_part_object(int dir, struct ident id)
{
    struct stat st;

    if (fstat(dir, &st) == 0 && ident_eq(ident_of(&st), id))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (fstatat(dir, parts[i], &st, 0) == 0 && ident_eq(ident_of(&st), id))
            return true;
    return false;
}

bool
git_keeps_open(const struct guard *g, int object, const struct stat *st)
{
    char name[OBJECT_NAME_ROOM];
    struct stat dir_st;

    if ((g->flags & GUARD_GIT) == 0 || guard_is_own(g, st->st_dev))
        return false;
    for (size_t i = 0; i < g->rules.n_roots; i++) {
        bool itself = str_ends(str_of(g->rules.roots[i].path), STR_LIT("/.git"));
        cleanup_close int top = openat(g->rules.roots[i].fd, itself ? "." : ".git", O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (top >= 0 && is_part_object(top, ident_of(st)))
            return true;
    }
    if (S_ISDIR(st->st_mode) && hides_another(object, ident_of(st)))
        return true;
    cleanup_close int dir = S_ISDIR(st->st_mode) ? openat(object, "..", O_PATH | O_DIRECTORY | O_CLOEXEC)
                                                 : object_parent(g, object, st, name);
    return dir >= 0 && fstat(dir, &dir_st) == 0 && hides_another(dir, ident_of(&dir_st)) &&
           is_part_object(dir, ident_of(st));
}
