/* guest/guard_git_own.c: no link where git itself writes (see guard_git.h)
 *
 * Git opens, renames over and removes files of its own at every command: `git status` writes the index, `git commit` a
 * message and a line of a log, `git gc` clears .git/worktrees. It follows a symbolic link in their place, so one that
 * the sandbox left there would have the owner's git overwrite, or empty, what the link leads to, with text that the
 * sandbox chose (.git/MERGE_MSG, the names of branches). Within the repository it is no better: its configuration is a
 * file as well. Where such a link leads does not matter, since the way can be changed later.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/dirents.h"
#include "guest/guard_git.h"

#define LEADS_MAX  (1u << 17)   /* entries that are looked at for one call; more is refused */
#define LEVELS_MAX 64           /* ... and directories in each other */
#define BELOW_MAX  (1u << 19)   /* entries below a directory that is moved to a `.git` */

static int
guard_git_own_refuse(char rule[GIT_RULE_MAX], const char *why)
{
    snprintf(rule, GIT_RULE_MAX, "git state: %s", why);
    return EACCES;
}

static int
refuse_lead(char rule[GIT_RULE_MAX])
{
    return guard_git_own_refuse(rule, "neither file nor directory where git writes");
}

/* Is @name, in @dir at @path, something that @is says of a git place's own? */
static bool
is_own(int dir, struct str path, struct str name, bool (*is)(struct str))
{
    char below[PATH_MAX + NAME_MAX + 2];
    unsigned levels = 0;
    size_t end = path.n;

    if (path.n == 0 || path.p[0] != '/')
        return true;            /* a path that is too long to be told */
    for (;; levels++) {
        size_t skip = end < path.n ? end + 1 : end;
        int n = snprintf(below, sizeof(below), "%.*s%s%.*s", (int)(path.n - skip), path.p + skip,
                         skip < path.n ? "/" : "", (int)name.n, name.p);

        if (n < 0 || (size_t)n >= sizeof(below))
            return true;
        if (is((struct str){ below, (size_t)n })) {
            cleanup_close int place = levels > 0 ? git_open_above(dir, levels) : -1;

            if (levels > 0 && place < 0)
                return true;
            if (git_is_place(levels > 0 ? place : dir, (struct str){ path.p, end }))
                return true;
        }
        if (end == 0)
            return false;
        while (end > 0 && path.p[end - 1] != '/')
            end--;
        end -= end > 0;
    }
}

int
git_may_lead(int dir, struct str path, struct str name, char rule[GIT_RULE_MAX])
{
    return is_own(dir, path, name, git_writes) ? refuse_lead(rule) : 0;
}

/* --- looking through a directory */

struct search {
    size_t left;
    char *rule;
};

/* Loose objects: git makes them under other names, and only reads these. */
static bool
is_fan(const char *dir, const char *name)
{
    return name_same("objects", dir, strlen(dir)) && strlen(name) == 2 && str_hex_digit(name[0]) >= 0 &&
           str_hex_digit(name[1]) >= 0;
}

static bool
is_any(struct str path)
{
    (void)path;
    return true;
}

/* @leads says which entries must lead nowhere, @down into which directories to look. */
static int
search(struct search *s, int above, const char *name, unsigned level, bool (*leads)(struct str),
       bool (*down)(struct str))
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    cleanup_close int fd = level < LEVELS_MAX ? openat(above, name, flags) : -1;
    cleanup_dir DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;
    struct stat st;
    int rc = 0;

    if (list == NULL)
        return guard_git_own_refuse(s->rule, "a directory that cannot be looked through");
    fd = -1;
    while (rc == 0 && (entry = readdir(list)) != NULL) {
        const char *own = entry->d_name;
        mode_t type = (mode_t)DTTOIF(entry->d_type);

        if (strcmp(own, ".") == 0 || strcmp(own, "..") == 0)
            continue;
        if (s->left-- == 0)
            return guard_git_own_refuse(s->rule, "a directory with too many entries");
        if (type == 0)
            type = fstatat(dirfd(list), own, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_mode & S_IFMT : S_IFLNK;
        if (S_ISDIR(type) && down(str_of(own)) && !is_fan(name, own))
            rc = search(s, dirfd(list), own, level + 1, is_any, is_any);
        else if (!S_ISDIR(type) && !S_ISREG(type) && leads(str_of(own)))
            rc = refuse_lead(s->rule);
    }
    return rc;
}

int
git_may_bring_leads(int from, const char *from_name, int dir, struct str path, struct str name, char rule[GIT_RULE_MAX])
{
    struct search s = { .left = LEADS_MAX, .rule = rule };

    return is_own(dir, path, name, git_writes_below) ? search(&s, from, from_name, 0, is_any, is_any) : 0;
}

int
git_place_leads(int dir, char rule[GIT_RULE_MAX])
{
    struct search s = { .left = LEADS_MAX, .rule = rule };

    return search(&s, dir, ".", 0, git_writes, git_writes_below);
}

/* --- each directory below one */

struct each {
    int (*put)(void *ctx, int dir, struct str path, char rule[GIT_RULE_MAX]);
    void *ctx;
    size_t left;
    char *rule;
    char path[2 * PATH_MAX];    /* "": too long */
};

static int
each_below(struct each *e, int above, const char *name, size_t path_n, unsigned level)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    cleanup_close int fd = level < LEVELS_MAX ? openat(above, name, flags) : -1;
    struct dirents names = { .fd = fd };
    const char *entry;
    struct stat st;
    int rc;

    if (fd < 0)
        return guard_git_own_refuse(e->rule, "a directory that cannot be looked through");
    if ((rc = e->put(e->ctx, fd, (struct str){ e->path, path_n }, e->rule)) != 0)
        return rc;
    while (rc == 0 && (entry = dirents_next(&names)) != NULL) {
        size_t n = strlen(entry) + 1;
        bool fits = path_n > 0 && path_n + n < PATH_MAX;

        if (e->left-- == 0)
            return guard_git_own_refuse(e->rule, "a directory with too many entries");
        if (!dirents_maybe_directory(&names) || fstatat(fd, entry, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISDIR(st.st_mode))
            continue;
        if (fits) {
            e->path[path_n] = '/';
            memcpy(e->path + path_n + 1, entry, n);
        }
        rc = each_below(e, fd, entry, fits ? path_n + n : 0, level + 1);
    }
    return names.failed != 0 ? guard_git_own_refuse(e->rule, "a directory that cannot be looked through") : rc;
}

int
git_each_directory(int from, const char *from_name, const char *path,
                   int (*put)(void *ctx, int dir, struct str path, char rule[GIT_RULE_MAX]), void *ctx,
                   char rule[GIT_RULE_MAX])
{
    struct each e = { .put = put, .ctx = ctx, .left = BELOW_MAX, .rule = rule };

    snprintf(e.path, sizeof(e.path), "%s", path);
    return each_below(&e, from, from_name, strlen(e.path), 0);
}

bool
git_no_name(struct str path)
{
    for (size_t at = 0; at < path.n;) {
        const char *slash = memchr(path.p + at, '/', path.n - at);
        size_t len = slash != NULL ? (size_t)(slash - path.p) - at : path.n - at;
        struct str name = { path.p + at, len };

        if (name_same(".git", name.p, len) || git_part_of(name) != GIT_PART_NONE ||
            git_state_in(STR_LIT(""), name) != GIT_STATE_NONE)
            return false;
        at += len + 1;
    }
    return true;
}
