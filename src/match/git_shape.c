/* match/git_shape.c: see git_shape.h */
#include "match/git_shape.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"

bool
git_named(struct str name, const char *want)
{
    /* mostly the first byte tells, and this is asked of every name on a path for each row below */
    for (size_t i = 0; i < name.n; i++)
        if (want[i] == '\0' || ascii_lower(name.p[i]) != want[i])
            return false;
    return want[name.n] == '\0';
}

enum git_part
git_part_of(struct str name)
{
    if (git_named(name, "head"))
        return GIT_PART_HEAD;
    if (git_named(name, "objects"))
        return GIT_PART_OBJECTS;
    if (git_named(name, "refs"))
        return GIT_PART_REFS;
    return git_named(name, "commondir") ? GIT_PART_COMMONDIR : GIT_PART_NONE;
}

bool
git_parts_place(unsigned parts)
{
    const unsigned whole = GIT_PART_OBJECTS | GIT_PART_REFS, shared = GIT_PART_HEAD | GIT_PART_COMMONDIR;

    return (parts & whole) == whole || (parts & shared) == shared;
}

/* Directory and name below a git place, and what they are. A row with no name stands for every name that no row before
 * it has. */
static const struct row {
    const char *dir, *name;
    enum git_state state;
} rows[] = {
    { "", "config", GIT_STATE_CONFIG },
    { "", "config.worktree", GIT_STATE_CONFIG },
    { "", "hooks", GIT_STATE_HOOKS },
    { "", "commondir", GIT_STATE_COMMONDIR },
    { "", "gitdir", GIT_STATE_REDIRECT },
    { "", "index", GIT_STATE_INDEX },
    { "", "merge_rr", GIT_STATE_RERERE },
    { "", "bisect_names", GIT_STATE_OPTION },
    { "", "rebase-merge", GIT_STATE_DIR },
    { "", "rebase-apply", GIT_STATE_DIR },
    { "", "sequencer", GIT_STATE_DIR },
    { "", "remotes", GIT_STATE_DIR },
    { "", "branches", GIT_STATE_DIR },
    { "", "gitweb", GIT_STATE_DIR },
    { "", "pid", GIT_STATE_SERVER },
    { "rebase-merge", "git-rebase-todo", GIT_STATE_TODO },
    { "rebase-merge", "git-rebase-todo.backup", GIT_STATE_TODO },
    { "rebase-merge", "strategy", GIT_STATE_OPTION },
    { "rebase-merge", "strategy_opts", GIT_STATE_OPTION },
    { "rebase-merge", "author-script", GIT_STATE_OPTION },
    { "rebase-merge", "msgnum", GIT_STATE_OPTION },
    { "rebase-merge", "end", GIT_STATE_OPTION },
    { "rebase-apply", "apply-opt", GIT_STATE_OPTION },
    { "rebase-apply", "strategy", GIT_STATE_OPTION },
    { "rebase-apply", "strategy_opts", GIT_STATE_OPTION },
    { "rebase-apply", "author-script", GIT_STATE_OPTION },
    { "rebase-apply", "next", GIT_STATE_OPTION },
    { "rebase-apply", "last", GIT_STATE_OPTION },
    { "sequencer", "todo", GIT_STATE_TODO },
    { "sequencer", "opts", GIT_STATE_OPTION },
    { "hooks", NULL, GIT_STATE_HOOK },
    { "remotes", NULL, GIT_STATE_REMOTE },
    { "branches", NULL, GIT_STATE_REMOTE },
    { "gitweb", NULL, GIT_STATE_SERVER },
};

static bool
sample(struct str name)
{
    return git_name_ends(name, STR_LIT(".sample"));
}

/* The part of a split index that several have: its name goes on with its checksum. */
static bool
is_shared_index(struct str name)
{
    return git_name_begins(name, STR_LIT("sharedindex."));
}

static bool
is_copy(struct str name)
{
    static const struct str begin = STR_LIT(GIT_COPY_NAME);

    if (name.n != begin.n + GIT_COPY_DIGITS || !git_name_begins(name, begin))
        return false;
    for (size_t i = begin.n; i < name.n; i++)
        if (str_hex_digit(name.p[i]) < 0)
            return false;
    return true;
}

/* Only such state comes by a lock that git itself renames. */
static bool
comes_by_lock(enum git_state state)
{
    return state == GIT_STATE_CONFIG || state == GIT_STATE_INDEX || state == GIT_STATE_TODO ||
           state == GIT_STATE_OPTION || state == GIT_STATE_RERERE;
}

enum git_state
git_state_in(struct str dir, struct str name)
{
    enum git_state state = GIT_STATE_NONE;

    if (git_is_lock(name)) {
        struct str base = git_without_lock(name);

        if (dir.n == 0 && git_is_index_lock(name))
            return GIT_STATE_INDEX;
        if (base.n < name.n && comes_by_lock(state = git_state_in(dir, base)))
            return state;
    }
    if (dir.n == 0 && is_shared_index(name))
        return GIT_STATE_INDEX;
    if (is_copy(name))
        return GIT_STATE_COPY;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (!git_named(dir, rows[i].dir) || (rows[i].name != NULL && !git_named(name, rows[i].name)))
            continue;
        return rows[i].state == GIT_STATE_HOOK && sample(name) ? GIT_STATE_SAMPLE : rows[i].state;
    }
    return GIT_STATE_NONE;
}

enum git_state
git_state_of(struct str path)
{
    const char *slash = path.n > 0 ? memchr(path.p, '/', path.n) : NULL;

    if (slash == NULL)
        return git_state_in(STR_LIT(""), path);
    struct str dir = { path.p, (size_t)(slash - path.p) };
    struct str rest = { slash + 1, path.n - dir.n - 1 };
    if (memchr(rest.p, '/', rest.n) == NULL)
        return git_state_in(dir, rest);
    if (git_named(dir, "hooks"))
        return GIT_STATE_HOOK;
    if (git_named(dir, "gitweb"))
        return GIT_STATE_SERVER;
    return git_named(dir, "remotes") || git_named(dir, "branches") ? GIT_STATE_REMOTE : GIT_STATE_NONE;
}

const char *
git_state_name(enum git_state state)
{
    switch (state) {
    case GIT_STATE_NONE: break;
    case GIT_STATE_CONFIG: return "git configuration";
    case GIT_STATE_HOOKS: return "directory of git hooks";
    case GIT_STATE_HOOK: return "git hook";
    case GIT_STATE_SAMPLE: return "sample of a git hook";
    case GIT_STATE_FILE: case GIT_STATE_COMMONDIR: case GIT_STATE_REDIRECT: return "redirection of git";
    case GIT_STATE_DIR: return "directory of git's state";
    case GIT_STATE_TODO: return "git todo list";
    case GIT_STATE_OPTION: return "options of an interrupted git command";
    case GIT_STATE_REMOTE: return "git remote in the old form";
    case GIT_STATE_SERVER: return "file of git instaweb";
    case GIT_STATE_INDEX: return "git index";
    case GIT_STATE_RERERE: return "list of git rerere";
    case GIT_STATE_COPY: return "judged copy";
    case GIT_STATE_LEAD: return "link where git writes";
    }
    return NULL;
}

/* Directories in which git makes, changes and removes files of its own. */
static bool
is_own_directory(struct str name)
{
    static const char *const names[] = { "gitweb", "fsmonitor--daemon", "filter-repo", "annex", "logs", "refs",
        "objects", "info", "worktrees", "modules", "hooks",
        "rebase-merge", "rebase-apply", "sequencer", "remotes", "branches", "rr-cache", "reftable", "lost-found",
        "notes_merge_worktree", "lfs", "svn" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (git_named(name, names[i]))
            return true;
    return false;
}

/* Files at the top of a git place. Most are called like FETCH_HEAD or COMMIT_EDITMSG, and new ones will be. A lock
 * becomes what it is the lock of, link or not. */
static bool
is_own_file(struct str name)
{
    static const char *const names[] = { "head", "index", "packed-refs", "shallow", "config", "config.worktree",
        "commondir", "gitdir", "description", "gc.log", "gc.pid", "gitk.cache", "add_edit.patch", "addp-hunk-edit.diff",
        "merge_msg", "squash_msg", "commit_editmsg", "tag_editmsg", "fetch_head", "orig_head" };
    size_t i = 0;

    name = git_without_lock(name);
    if (git_name_ends(name, STR_LIT(".new")))
        name.n -= strlen(".new");
    while (i < name.n && ((name.p[i] >= 'A' && name.p[i] <= 'Z') || name.p[i] == '_'))
        i++;
    if (name.n > 0 && i == name.n)
        return true;
    for (i = 0; i < ARRAY_LEN(names); i++)
        if (git_named(name, names[i]))
            return true;
    return is_shared_index(name) || git_is_lock(name);
}

static struct str
first_name(struct str path)
{
    const char *slash = path.n > 0 ? memchr(path.p, '/', path.n) : NULL;

    return (struct str){ path.p, slash != NULL ? (size_t)(slash - path.p) : path.n };
}

bool
git_writes_below(struct str path)
{
    return is_own_directory(first_name(path));
}

bool
git_writes(struct str path)
{
    struct str first = first_name(path);

    return is_own_directory(first) || (first.n == path.n && is_own_file(path));
}

size_t
git_modules_depth(struct str path)
{
    size_t depth = 0, at = 0;
    bool dot_git = false;

    while (at <= path.n && path.n > 0) {
        const char *slash = at < path.n ? memchr(path.p + at, '/', path.n - at) : NULL;
        size_t end = slash != NULL ? (size_t)(slash - path.p) : path.n;
        struct str name = { path.p + at, end - at };

        if (dot_git && git_named(name, "modules"))
            depth = 2;
        else if (depth > 0)
            depth++;
        dot_git = git_named(name, ".git");
        at = end + 1;
    }
    return depth;
}

size_t
git_worktree_ups(struct str path)
{
    size_t depth = git_modules_depth(path);

    return depth > 2 ? depth : path.n > 0 ? 1 : 0;
}

bool
git_state_harmless(enum git_state state, struct str name, struct str text, size_t depth, struct git_config_fault *fault)
{
    struct str target;

    if (fault != NULL)
        fault->key[0] = '\0';
    switch (state) {
    case GIT_STATE_CONFIG: return git_config_judge(text, depth, fault) == 0;
    case GIT_STATE_TODO: return git_todo_harmless(text);
    case GIT_STATE_OPTION: return git_option_harmless(git_without_lock(name), text);
    case GIT_STATE_FILE: return git_file_harmless(text);
    case GIT_STATE_COMMONDIR: case GIT_STATE_REDIRECT: return git_redirect_target(text, &target);
    case GIT_STATE_RERERE: return text.n == 0;
    case GIT_STATE_HOOK: case GIT_STATE_REMOTE: case GIT_STATE_HOOKS: case GIT_STATE_DIR: case GIT_STATE_LEAD:
    case GIT_STATE_INDEX: case GIT_STATE_COPY: case GIT_STATE_SERVER:
        return false;
    case GIT_STATE_NONE: case GIT_STATE_SAMPLE: break;
    }
    return true;
}

bool
git_redirect_target(struct str text, struct str *target)
{
    while (text.n > 0 && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == '\r'))
        text.n--;
    *target = text;
    return text.n > 0 && text.n <= GIT_HEAD_MAX && memchr(text.p, '\0', text.n) == NULL &&
           memchr(text.p, '\n', text.n) == NULL;
}

bool
git_file_target(struct str text, struct str *target)
{
    static const struct str start = STR_LIT("gitdir: ");

    *target = STR_LIT("");
    return str_starts(text, start) && git_redirect_target((struct str){ text.p + start.n, text.n - start.n }, target);
}

/* --- where they may lead */

/* Cut the first component off @path, empty ones and `.` left out. None: "". */
static struct str
cut_component(struct str *path)
{
    for (;;) {
        const char *slash = path->n > 0 ? memchr(path->p, '/', path->n) : NULL;
        struct str name = { path->p, slash != NULL ? (size_t)(slash - path->p) : path->n };
        size_t skip = slash != NULL ? name.n + 1 : name.n;

        *path = (struct str){ path->p + skip, path->n - skip };
        if ((name.n > 0 && !str_eq_c(name, ".")) || skip == 0)
            return name;
    }
}

bool
git_below_dot_git(struct str path)
{
    struct str name;

    while ((name = cut_component(&path)).n > 0)
        if (git_named(name, ".git"))
            return true;
    return false;
}

static bool
has_up(struct str path)
{
    struct str name;

    while ((name = cut_component(&path)).n > 0)
        if (str_eq_c(name, ".."))
            return true;
    return false;
}

/* Whether @path ends in a `.git`, or in what that has for its submodules and worktrees: there no link leads on. */
static bool
ends_in_dot_git(struct str path)
{
    struct str name;

    while ((name = cut_component(&path)).n > 0) {
        struct str rest = path, next = cut_component(&rest);

        if (str_eq_c(name, ".git") && !has_up(path) &&
            (next.n == 0 || str_eq_c(next, "modules") || str_eq_c(next, "worktrees")))
            return true;
    }
    return false;
}

bool
git_file_harmless(struct str text)
{
    struct str target;

    return git_file_target(text, &target) && ends_in_dot_git(target);
}

/* Without its last component; false when it has none. */
static bool
cut_last(struct str *path)
{
    size_t was = path->n;

    while (path->n > 0 && path->p[path->n - 1] == '/')
        path->n--;
    while (path->n > 0 && path->p[path->n - 1] != '/')
        path->n--;
    return path->n < was;
}

bool
git_common_harmless(struct str text, struct str place)
{
    char joined[2 * GIT_HEAD_MAX + 2];
    struct str target, rest, name;
    int n;

    if (!git_redirect_target(text, &target))
        return false;
    if (target.p[0] == '/')
        return ends_in_dot_git(target);
    if (!git_below_dot_git(place) && str_eq_c(target, "../.."))
        return true;
    for (rest = target; name = cut_component(&rest), str_eq_c(name, ".."); target = rest)
        if (!cut_last(&place))
            return false;
    n = snprintf(joined, sizeof(joined), "%.*s/%.*s", (int)place.n, place.p, (int)target.n, target.p);
    return n > 0 && (size_t)n < sizeof(joined) && ends_in_dot_git((struct str){ joined, (size_t)n });
}
