/* guest/guard_git_move.c: a work tree stays in the project when repositories are moved (see guard_git.h)
 *
 * A submodule's repository has its work tree further up (core.worktree), so how far up one may be depends on where the
 * repository lies. It is judged when it gets its configuration; after that it must not come to where the same steps
 * lead out of the repository that holds it, or out of the tree.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/dirents.h"
#include "guest/guard_git.h"

bool
git_below_top(const struct guard *g, struct str path, struct str *below)
{
    size_t longest = 0;

    for (size_t i = 0; i < g->rules.n_roots; i++) {
        char root[PATH_MAX];
        ssize_t n = fd_text(g, g->rules.roots[i].fd, root, sizeof(root));

        if (n > (ssize_t)longest && n > 1 && (size_t)n <= path.n && memcmp(root, path.p, (size_t)n) == 0 &&
            ((size_t)n == path.n || path.p[n] == '/'))
            longest = (size_t)n;
    }
    *below = STR_LIT("");
    if (longest > 0 && longest < path.n)
        *below = (struct str){ path.p + longest + 1, path.n - longest - 1 };
    return longest > 0;
}

/* Where @name in @dir lies below the top of its tree, in @room; from the root on where it is in no tree, as in the
 * TMPDIR of mode light. False: it cannot be told. */
static bool
name_below_top(struct guard *g, int dir, const struct stat *dir_st, struct str name, char room[2 * PATH_MAX],
               struct str *out)
{
    struct str below, path = rules_path(g, dir, dir_st);
    int n;

    if (path.n == 0 || path.p[0] != '/')
        return false;
    if (!git_below_top(g, path, &below))
        below = (struct str){ path.p + 1, path.n - 1 };
    n = snprintf(room, 2 * PATH_MAX, "%.*s%s%.*s", (int)below.n, below.p, below.n > 0 ? "/" : "", (int)name.n, name.p);
    *out = (struct str){ room, n > 0 && n < 2 * PATH_MAX ? (size_t)n : 0 };
    return out->n > 0;
}

/* Whether the directory @name in @dir has submodules' repositories. What cannot be told has. */
static bool
has_modules(int dir, struct str name)
{
    char text[NAME_MAX + 1];
    const char *entry;

    if (name.n >= sizeof(text))
        return true;
    memcpy(text, name.p, name.n);
    text[name.n] = '\0';
    cleanup_close int fd = openat(dir, text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct dirents names = { .fd = fd };
    /* in either case, as git_modules_depth() takes it */
    while (fd >= 0 && (entry = dirents_next(&names)) != NULL)
        if (name_same("modules", entry, strlen(entry)))
            return true;
    return fd < 0 ? errno != ENOTDIR && errno != ENOENT : names.failed != 0;
}

/* By such a name git_modules_depth() goes. */
static bool
is_step(struct str name)
{
    return name_same(".git", name.p, name.n) || name_same("modules", name.p, name.n);
}

bool
git_keeps_worktrees(struct guard *g, int from, struct str from_name, int to, const struct stat *to_st,
                    struct str to_name, const char **why)
{
    char source[2 * PATH_MAX], target[2 * PATH_MAX];
    struct str was, is;
    struct stat from_st;
    size_t depth;

    *why = "a directory whose path cannot be told";
    if (fstat(from, &from_st) < 0)
        return false;
    if (!name_below_top(g, from, &from_st, from_name, source, &was) ||
        !name_below_top(g, to, to_st, to_name, target, &is))
        return ident_eq(ident_of(&from_st), ident_of(to_st)) && !is_step(from_name) && !is_step(to_name);
    *why = "repositories of submodules moved";
    depth = git_modules_depth(was);
    if (depth > 0 || git_modules_depth(is) > 0)
        return git_modules_depth(is) >= depth;
    return !name_same(".git", from_name.p, from_name.n) || name_same(".git", to_name.p, to_name.n) ||
           !has_modules(from, from_name);
}

/* The name of the directory @up above the last one of @path. */
static struct str
name_above(struct str path, unsigned up)
{
    size_t end = path.n;

    for (;; up--) {
        size_t start = end;

        while (start > 0 && path.p[start - 1] != '/')
            start--;
        if (up == 0 || start == 0)
            return (struct str){ path.p + start, end - start };
        end = start - 1;
    }
}

/* Whether the directory @up above @dir is a git place by its name or shape. What cannot be told is. */
static bool
is_place_above(int dir, struct str path, unsigned up)
{
    struct str name = name_above(path, up);

    if (name_same(".git", name.p, name.n))
        return true;
    cleanup_close int above = up > 0 ? git_open_above(dir, up) : -1;
    return (up > 0 && above < 0) || git_parts_place(git_parts_there(up > 0 ? above : dir));
}

/* Whether the directory @up above @dir is .git/worktrees/NAME, or that of another git place. */
static bool
is_worktree(int dir, struct str path, unsigned up)
{
    struct str list = name_above(path, up + 1);

    return name_same("worktrees", list.p, list.n) && is_place_above(dir, path, up + 2);
}

/* Git makes the repository of a submodule below `modules` in the one that holds it, or in the worktree's part of that.
 * A submodule's name may have '/' in it, and may lead into what is the refs of another by its shape: what git says of
 * that one its HEAD decides, which may be another thing the next moment. So all that is there counts. */
bool
git_is_begun(int dir, struct str path)
{
    struct str name;

    if (is_worktree(dir, path, 0))
        return true;
    for (unsigned up = 1; (name = name_above(path, up)).n > 0; up++)
        if (name_same("modules", name.p, name.n) &&
            (is_place_above(dir, path, up + 1) || is_worktree(dir, path, up + 1)))
            return true;
    return false;
}

static bool
holds_repositories(struct str name)
{
    return name_same("modules", name.p, name.n) || name_same("worktrees", name.p, name.n);
}

bool
git_brings_begun(int dir, struct str path, struct str name)
{
    if (holds_repositories(name) && (is_place_above(dir, path, 0) || is_worktree(dir, path, 0)))
        return true;
    if (holds_repositories(name_above(path, 0)) && (is_place_above(dir, path, 1) || is_worktree(dir, path, 1)))
        return true;
    return git_is_begun(dir, path);
}
