/* guest/guard_git_look.c: a directory that is to be a git place, or part of one, is looked through; other spellings of
 * names (see guard_git.h) */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/dirents.h"
#include "guest/guard_git.h"

#define LOOK_MAX 4096           /* entries of a directory that is looked through; more is refused */

struct looking {
    struct guard *g;
    struct git_site site;       /* the git place */
    size_t left;                /* entries that may still be looked at */
    char *rule;
};

/* Exchange the judged file for a copy. A mount on it is the host's file, and cannot be written. */
static int
exchange(struct looking *l, int dir, const char *name, enum git_state state)
{
    cleanup_close int file = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    int rc;

    if (file < 0)
        return guard_git_refuse(l->rule, git_state_name(state), " that cannot be read");
    rc = git_copy_file(file, dir, name, state, &l->site, 0, l->rule, NULL);
    if (rc == EBUSY || rc == EROFS)
        return 0;
    return rc == 0 || rc == EACCES ? rc : guard_git_refuse(l->rule, git_state_name(state), " that cannot be exchanged");
}

static int look_through(struct looking *l, int dir, struct str sub);

/* `remotes` in the refs of a repository, which are no place by their shape: branches of remotes. */
static bool
is_branches(const struct looking *l, int dir, const char *name)
{
    return name_same("remotes", name, strlen(name)) && str_ends(l->site.path, STR_LIT("/refs")) &&
           !git_parts_place(git_parts_there(dir));
}

/* One entry, @name of @dir, which is @sub of the place. */
static int
look_at_entry(struct looking *l, int dir, struct str sub, const char *name)
{
    enum git_state state = git_state_in(sub, str_of(name));
    cleanup_close int below = -1;
    struct stat st;

    if (state == GIT_STATE_NONE || state == GIT_STATE_COPY || (sub.n == 0 && is_branches(l, dir, name)) ||
        (state == GIT_STATE_CONFIG && (l->g->flags & GUARD_GIT_ANY_CONFIG) != 0))
        return 0;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : guard_git_refuse(l->rule, git_state_name(state), " that cannot be looked at");
    switch (state) {
    case GIT_STATE_HOOK:
    case GIT_STATE_SERVER:
    case GIT_STATE_REMOTE:
        return guard_git_refuse(l->rule, git_state_name(state), "");
    case GIT_STATE_HOOKS:
    case GIT_STATE_DIR:
        below = S_ISDIR(st.st_mode) ? openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
        return below >= 0 ? look_through(l, below, str_of(name))
                          : guard_git_refuse(l->rule, git_state_name(state), " that is not a plain directory");
    default:
        break;
    }
    if (!S_ISREG(st.st_mode))
        return guard_git_refuse(l->rule, git_state_name(state), " that is not a plain file");
    return state == GIT_STATE_SAMPLE || state == GIT_STATE_REDIRECT ? 0 : exchange(l, dir, name, state);
}

/* @dir is closed by the caller; @sub: "" for the git place itself. */
static int
look_through(struct looking *l, int dir, struct str sub)
{
    cleanup_close int listed = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_dir DIR *list = listed >= 0 ? fdopendir(listed) : NULL;
    struct dirent *entry;
    int rc = 0;

    if (list == NULL)
        return guard_git_refuse(l->rule, "a directory that cannot be listed", "");
    listed = -1;
    while (rc == 0 && (entry = readdir(list)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (l->left-- == 0)
            return guard_git_refuse(l->rule, "a directory with too many entries", "");
        rc = look_at_entry(l, dir, sub, entry->d_name);
    }
    return rc;
}

/* @dir is, or becomes, @sub of a git place at @path. */
int
git_may_become(struct guard *g, int dir, struct str sub, struct str path, char rule[GIT_RULE_MAX])
{
    struct looking l = { .g = g, .site = git_site_of(g, path), .left = LOOK_MAX, .rule = rule };
    int rc = sub.n == 0 ? git_place_leads(dir, rule) : 0;

    return rc == 0 ? look_through(&l, dir, sub) : rc;
}

/* --- names that the file system takes for others */

static bool
is_at(int dir, const char *name, const struct stat *made)
{
    struct stat st;

    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && ident_eq(ident_of(&st), ident_of(made));
}

/* Locks of an index, whose names go on as git likes. */
static bool
is_index_lock(int dir, const struct stat *made)
{
    cleanup_close int listed = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct dirents names = { .fd = listed };
    const char *name;

    while (listed >= 0 && (name = dirents_next(&names)) != NULL)
        if (git_is_index_lock(str_of(name)) && is_at(dir, name, made))
            return true;
    return listed < 0 || names.failed != 0;
}

bool
git_aliased(const struct guard *g, int dir, const struct stat *dir_st, const struct stat *made)
{
    static const char *const names[] = { ".git", "HEAD", "objects", "refs", "commondir", "gitdir", "config",
        "config.worktree", "hooks", "rebase-merge", "rebase-apply", "sequencer", "remotes", "branches",
        "index", "index.lock", "config.lock", "config.worktree.lock", "MERGE_RR", "MERGE_RR.lock", "git-rebase-todo",
        "git-rebase-todo.lock", "todo", "todo.lock", "opts", "opts.lock", "strategy", "strategy.lock", "strategy_opts",
        "strategy_opts.lock", "apply-opt", "apply-opt.lock", "author-script", "author-script.lock", "bisect_names",
        "msgnum", "end", "next", "last" };

    if ((g->flags & GUARD_GIT) == 0 || guard_is_own(g, dir_st->st_dev))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (is_at(dir, names[i], made))
            return true;
    return git_parts_place(git_parts_there(dir)) && is_index_lock(dir, made);
}
