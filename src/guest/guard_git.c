/* guest/guard_git.c: what may come to a name where git might look (see guard_git.h)
 *
 * Functions answer 0 or an errno, as guard_check() does.
 */
#include "guest/guard_git.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"

#define DOT_GIT_LINK ".git that is neither directory nor file"
#define TOP_HEAD "HEAD of the repository at the top"
#define UP_MAX   (PATH_MAX / 3 - 1) /* directories between a name and the git place that it belongs to */
#define FAR_MAX  8              /* ... where the path is too long to be told */

int
guard_git_refuse(char rule[GIT_RULE_MAX], const char *what, const char *why)
{
    snprintf(rule, GIT_RULE_MAX, "git state: %s%s", what, why);
    return EACCES;
}

static bool
is_dot_git(const char *p, size_t n)
{
    return name_same(".git", p, n);
}

/* --- what a directory is */

/* What cannot be told is there: a directory that nobody may search now can be opened again. */
static bool
exists(int dir, const char *name)
{
    struct stat st;

    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

unsigned
git_parts_there(int dir)
{
    return (exists(dir, "objects") ? GIT_PART_OBJECTS : 0u) | (exists(dir, "refs") ? GIT_PART_REFS : 0u) |
           (exists(dir, "HEAD") ? GIT_PART_HEAD : 0u) | (exists(dir, "commondir") ? GIT_PART_COMMONDIR : 0u);
}

/* @path: where @dir lies; its last name may make it one too. */
static bool
is_whole(int dir, struct str path)
{
    size_t start = path.n;

    while (start > 0 && path.p[start - 1] != '/')
        start--;
    return is_dot_git(path.p + start, path.n - start) || git_parts_place(git_parts_there(dir));
}

bool
git_is_place(int dir, struct str path)
{
    return is_whole(dir, path) || git_is_begun(dir, path);
}

/* Whether @dir may be the beginning of a git place in which there is such state. `remotes` in a folder `refs` has
 * branches of remotes: it may be copied before the rest of its repository is. */
static bool
is_begun_for(int dir, struct str path, enum git_state state)
{
    if (state == GIT_STATE_NONE || (state == GIT_STATE_REMOTE && str_ends(path, STR_LIT("/refs"))))
        return false;
    return git_is_begun(dir, path);
}

/* How far core.worktree of a git place at @path may lead up. */
static size_t
depth_of(const struct guard *g, struct str path)
{
    struct str below;

    return git_below_top(g, path, &below) ? git_worktree_ups(below) : 0;
}

struct git_site
git_site_of(const struct guard *g, struct str path)
{
    return (struct git_site){ .path = path, .depth = depth_of(g, path) };
}

/* Trees of the sandbox's own, which end with it, are not looked at. */
static bool
is_watched(const struct guard *g, const struct stat *dir_st)
{
    return (g->flags & GUARD_GIT) != 0 && !guard_is_own(g, dir_st->st_dev);
}

/* The directory @levels above @dir. */
int
git_open_above(int dir, unsigned levels)
{
    char up[3 * UP_MAX + 1];

    if (levels == 0 || levels > UP_MAX)
        return -1;
    for (unsigned i = 0; i < levels; i++)
        memcpy(up + 3 * i, "../", 3);
    up[3 * levels] = '\0';
    return openat(dir, up, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Names below a git place that matter begin with one of these. */
static bool
is_subdirectory(const char *p, size_t n)
{
    enum git_state state = git_state_in(STR_LIT(""), (struct str){ p, n });

    return state == GIT_STATE_HOOKS || state == GIT_STATE_DIR;
}

/* A path that is too long to be told: the names of the nearest directories by asking for each that matters. */
static enum git_state
state_far_below(int dir, struct str name)
{
    static const char *const subs[] = { "hooks", "rebase-merge", "rebase-apply", "sequencer", "remotes", "branches" };
    struct stat st, there;

    for (unsigned up = 1; up <= FAR_MAX && fstat(dir, &st) == 0; up++) {
        cleanup_close int above = git_open_above(dir, up), child = up > 1 ? git_open_above(dir, up - 1) : -1;

        if (above < 0 || (up > 1 && (child < 0 || fstat(child, &st) < 0)))
            break;
        for (size_t i = 0; i < ARRAY_LEN(subs); i++) {
            enum git_state state = up == 1 ? git_state_in(str_of(subs[i]), name) : i == 0 ? GIT_STATE_HOOK
                                                                                          : GIT_STATE_NONE;

            if (state != GIT_STATE_NONE && fstatat(above, subs[i], &there, AT_SYMLINK_NOFOLLOW) == 0 &&
                ident_eq(ident_of(&there), ident_of(&st)))
                return state;
        }
    }
    return GIT_STATE_NONE;
}

/* The state of @name by what its directory's path has: "…/hooks/NAME" where what is above hooks is a git place. */
static enum git_state
state_below(int dir, struct str path, struct str name)
{
    unfilled char below[PATH_MAX + NAME_MAX + 2];
    unsigned levels = 0;
    size_t end = path.n;

    if (path.n == 0)
        return state_far_below(dir, name);
    while (end > 1) {
        size_t start = end;
        cleanup_close int place = -1;
        enum git_state state;
        int n;

        while (start > 0 && path.p[start - 1] != '/')
            start--;
        levels++;
        if (start > 1 && is_subdirectory(path.p + start, end - start)) {
            n = snprintf(below, sizeof(below), "%.*s/%.*s", (int)(path.n - start), path.p + start, (int)name.n, name.p);
            state = GIT_STATE_HOOK;
            if (n > 0 && (size_t)n < sizeof(below))
                state = git_state_of((struct str){ below, (size_t)n });
            if (state != GIT_STATE_NONE) {
                struct str at = { path.p, start - 1 };
                place = git_open_above(dir, levels);
                if (place < 0 || is_whole(place, at) || is_begun_for(place, at, state))
                    return state;
            }
        }
        end = start > 0 ? start - 1 : 0;
    }
    return GIT_STATE_NONE;
}

/* What @name in @dir is, or would be. All NONE and false costs no system call but the one for the path. */
static struct git_spot
look_at(struct guard *g, int dir, const struct stat *dir_st, struct str name, struct str *path)
{
    struct git_spot spot = { .state = GIT_STATE_NONE };
    enum git_state state = git_state_in(STR_LIT(""), name);
    unsigned part = git_part_of(name), there;

    *path = rules_path(g, dir, dir_st);
    spot.own = is_dot_git(name.p, name.n);
    if (state != GIT_STATE_NONE || part != GIT_PART_NONE) {
        size_t start = path->n;

        while (start > 0 && path->p[start - 1] != '/')
            start--;
        /* a directory whose name cannot be told may be called .git */
        there = path->n == 0 || is_dot_git(path->p + start, path->n - start) ? GIT_PART_OBJECTS | GIT_PART_REFS
                                                                             : git_parts_there(dir);
        spot.completes = part != GIT_PART_NONE && !git_parts_place(there) && git_parts_place(there | part);
        if (git_parts_place(there | part) || is_begun_for(dir, *path, state))
            spot.state = state;
    }
    /* what it leads to may cease to be there, and then git would look for another repository */
    if (spot.state == GIT_STATE_COMMONDIR && git_is_needed(g, dir, ident_of(dir_st)))
        spot.state = GIT_STATE_REMOTE;
    /* a copy may be made of a `.git` that is a file, whose folder is no git place */
    if (state == GIT_STATE_COPY)
        spot.state = state;
    if (spot.state == GIT_STATE_NONE)
        spot.state = state_below(dir, *path, name);
    if (spot.state == GIT_STATE_CONFIG && (g->flags & GUARD_GIT_ANY_CONFIG) != 0)
        spot.state = GIT_STATE_NONE;
    if (spot.own && spot.state == GIT_STATE_NONE)
        spot.state = GIT_STATE_FILE;
    return spot;
}

/* --- names that come into being */

static int
may_be_made(struct git_spot spot, enum git_arrival what, char rule[GIT_RULE_MAX])
{
    const char *said = git_state_name(spot.state);

    switch (spot.state) {
    case GIT_STATE_NONE:
        return 0;
    case GIT_STATE_HOOKS:
    case GIT_STATE_DIR:
        return what == GIT_ARRIVES_DIR ? 0 : guard_git_refuse(rule, said, " that is not a plain directory");
    case GIT_STATE_FILE:
        return what == GIT_ARRIVES_DIR ? 0 : guard_git_refuse(rule, said, " made other than by rename");
    case GIT_STATE_SAMPLE:
    case GIT_STATE_REDIRECT:
        return what == GIT_ARRIVES_FILE || what == GIT_ARRIVES_LINK
                   ? 0 : guard_git_refuse(rule, said, " that is not a plain file");
    case GIT_STATE_HOOK:
    case GIT_STATE_SERVER:
    case GIT_STATE_REMOTE:
        return guard_git_refuse(rule, said, "");
    default:
        return guard_git_refuse(rule, said, " made other than by rename");
    }
}

int
git_may_make(struct guard *g, int dir, const struct stat *dir_st, struct str name, enum git_arrival what,
             char rule[GIT_RULE_MAX])
{
    struct git_spot spot;
    struct str path;
    int rc;

    if (!is_watched(g, dir_st))
        return 0;
    spot = look_at(g, dir, dir_st, name, &path);
    rc = spot.own && what == GIT_ARRIVES_OTHER ? guard_git_refuse(rule, DOT_GIT_LINK, "")
                                               : may_be_made(spot, what, rule);
    if (rc == 0 && what == GIT_ARRIVES_OTHER)
        rc = git_may_lead(dir, path, name, rule);
    return rc == 0 && spot.completes ? git_may_become(g, dir, STR_LIT(""), path, rule) : rc;
}

/* --- looking again (guard_after.c) */

/* Whether @dir, at @path, is one by its shape; more than one look, for who changes the parts meanwhile may show no
 * whole shape at any one time. A `.git` is one whatever is in it. */
static bool
is_shaped_now(int dir, struct str path)
{
    size_t start = path.n;

    while (start > 0 && path.p[start - 1] != '/')
        start--;
    return !is_dot_git(path.p + start, path.n - start) && git_parts_place(git_parts_there(dir) | git_parts_there(dir));
}

bool
git_is_whole(struct guard *g, int dir, const struct stat *dir_st, struct str name)
{
    return git_part_of(name) == GIT_PART_NONE || !is_watched(g, dir_st) ||
           is_whole(dir, rules_path(g, dir, dir_st));
}

/* A directory that became a git place by @name, and perhaps by what another sandbox made beside it. */
static int
has_become(struct guard *g, int dir, const struct stat *dir_st, struct str name, bool whole, char rule[GIT_RULE_MAX])
{
    struct str path = rules_path(g, dir, dir_st);

    return whole || git_part_of(name) == GIT_PART_NONE || !is_shaped_now(dir, path)
               ? 0 : git_may_become(g, dir, STR_LIT(""), path, rule);
}

int
git_made(struct guard *g, int dir, const struct stat *dir_st, struct str name, enum git_arrival what, bool whole,
         char rule[GIT_RULE_MAX])
{
    int rc;

    if (!is_watched(g, dir_st))
        return 0;
    rc = git_may_make(g, dir, dir_st, name, what, rule);
    return rc == 0 ? has_become(g, dir, dir_st, name, whole, rule) : rc;
}

int
git_came(struct guard *g, int from, const char *from_name, const struct stat *st, int dir,
         const struct stat *dir_st, const char *name, bool whole, char rule[GIT_RULE_MAX])
{
    const char *why;
    int rc;

    if (!is_watched(g, dir_st))
        return 0;
    if (S_ISDIR(st->st_mode) && !git_keeps_worktrees(g, from, str_of(from_name), dir, dir_st, str_of(name), &why))
        return guard_git_refuse(rule, why, "");
    rc = git_may_rename(g, dir, name, st, dir, dir_st, str_of(name), rule);
    /* HEAD at the top may have come where none was */
    if (rc == GIT_BY_COPY && git_is_top_head(g, dir, dir_st, str_of(name)))
        return 0;
    if (rc == GIT_BY_COPY)
        return guard_git_refuse(rule, "a place that changed", "");
    return rc == 0 ? has_become(g, dir, dir_st, str_of(name), whole, rule) : rc;
}

static bool
is_redirect(enum git_state state)
{
    return state == GIT_STATE_FILE || state == GIT_STATE_COMMONDIR;
}

static bool
is_judged(enum git_state state)
{
    return state == GIT_STATE_CONFIG || state == GIT_STATE_TODO || state == GIT_STATE_OPTION ||
           state == GIT_STATE_INDEX || state == GIT_STATE_RERERE || is_redirect(state);
}

static bool
is_kept(enum git_state state)
{
    return is_judged(state) || state == GIT_STATE_HOOK || state == GIT_STATE_REMOTE || state == GIT_STATE_SERVER ||
           state == GIT_STATE_COPY;
}

int
git_may_write(struct guard *g, int dir, const struct stat *dir_st, struct str name, char rule[GIT_RULE_MAX])
{
    struct git_spot spot;
    struct str path;

    if (!is_watched(g, dir_st))
        return 0;
    if (git_keeps(g, dir, dir_st, name))
        return guard_git_refuse(rule, TOP_HEAD, " written in place");
    spot = look_at(g, dir, dir_st, name, &path);
    return is_kept(spot.state) ? guard_git_refuse(rule, git_state_name(spot.state), " written in place") : 0;
}

int
git_opened(struct guard *g, int dir, const struct stat *dir_st, struct str name, char rule[GIT_RULE_MAX])
{
    struct str path;
    enum git_state state = is_watched(g, dir_st) ? look_at(g, dir, dir_st, name, &path).state : GIT_STATE_NONE;

    return is_kept(state) ? guard_git_refuse(rule, git_state_name(state), " written in place") : 0;
}

bool
git_may_write_later(struct guard *g, int dir, const struct stat *dir_st, struct str name, bool there)
{
    struct str path;
    enum git_state state = look_at(g, dir, dir_st, name, &path).state;

    return state == GIT_STATE_OPTION || state == GIT_STATE_INDEX || is_redirect(state) ||
           (is_judged(state) && (!there || git_is_lock(name)));
}

int
git_may_link(struct guard *g, int dir, const struct stat *dir_st, struct str name, char rule[GIT_RULE_MAX])
{
    struct git_spot spot;
    struct str path;

    if (!is_watched(g, dir_st))
        return 0;
    if (git_keeps(g, dir, dir_st, name))
        return guard_git_refuse(rule, TOP_HEAD, " under another name");
    spot = look_at(g, dir, dir_st, name, &path);
    return is_kept(spot.state) ? guard_git_refuse(rule, git_state_name(spot.state), " under another name") : 0;
}

int
git_may_use_object(struct guard *g, int object, char rule[GIT_RULE_MAX])
{
    cleanup_close int dir = -1;
    char path[PATH_MAX];
    struct stat st, dir_st;
    char *slash;
    ssize_t n;

    if ((g->flags & GUARD_GIT) == 0 || fstat(object, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink == 0)
        return 0;
    n = fd_text(g, object, path, sizeof(path) - 1);
    if (n <= 0 || n == (ssize_t)sizeof(path) - 1)
        return guard_git_refuse(rule, "a file whose path cannot be told", "");
    if (path[0] != '/')
        return 0;
    path[n] = '\0';
    slash = strrchr(path, '/');
    *slash = '\0';
    dir = open(slash == path ? "/" : path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &dir_st) < 0)
        return errno == ENOENT ? 0 : guard_git_refuse(rule, "a file in a directory that cannot be searched", "");
    return git_may_write(g, dir, &dir_st, str_of(slash + 1), rule);
}

/* --- rename */

/* What a directory brings that becomes @sub of the git @place. */
static int
may_bring(struct guard *g, int from, const char *from_name, struct str sub, struct str place, char rule[GIT_RULE_MAX])
{
    cleanup_close int dir = openat(from, from_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return dir < 0 ? guard_git_refuse(rule, "a directory that cannot be listed", "")
                   : git_may_become(g, dir, sub, place, rule);
}

struct among {
    struct guard *g;
    bool all;                   /* each is one where it comes to */
};

static int
place_among(void *ctx, int dir, struct str path, char rule[GIT_RULE_MAX])
{
    const struct among *a = ctx;

    return path.n == 0 || a->all || git_is_place(dir, path) ? git_may_become(a->g, dir, STR_LIT(""), path, rule) : 0;
}

/* To a `.git`, and into it, redirections lead (git_file_harmless): so the repositories that a directory brings there
 * are judged. The owner's git may have checked them out, with whatever was in the tree. */
static int
may_bring_places(struct guard *g, int from, const char *from_name, struct str to_path, struct str to_name, bool all,
                 char rule[GIT_RULE_MAX])
{
    struct among a = { g, all };
    char path[PATH_MAX + NAME_MAX + 2];
    int n = snprintf(path, sizeof(path), "%.*s/%.*s", (int)to_path.n, to_path.p, (int)to_name.n, to_name.p);

    /* too long, or not to be told: so is what lies below */
    if (to_path.n == 0 || n < 0 || n >= PATH_MAX)
        path[0] = '\0';
    return git_each_directory(from, from_name, path, place_among, &a, rule);
}

int
git_may_rename(struct guard *g, int from, const char *from_name, const struct stat *st, int to,
               const struct stat *to_st, struct str to_name, char rule[GIT_RULE_MAX])
{
    struct git_spot spot;
    struct str path;
    const char *said;
    int rc = 0;

    if (!is_watched(g, to_st))
        return 0;
    if (git_is_top_head(g, to, to_st, to_name))
        return GIT_BY_COPY;
    if (S_ISDIR(st->st_mode) && !git_keeps_worktrees(g, from, str_of(from_name), to, to_st, to_name, &said))
        return guard_git_refuse(rule, said, "");
    spot = look_at(g, to, to_st, to_name, &path);
    said = git_state_name(spot.state);
    switch (spot.state) {
    case GIT_STATE_NONE:
        break;
    case GIT_STATE_HOOKS:
    case GIT_STATE_DIR:
        rc = S_ISDIR(st->st_mode) ? may_bring(g, from, from_name, to_name, path, rule)
                                  : guard_git_refuse(rule, said, " that is not a plain directory");
        break;
    case GIT_STATE_HOOK:
    case GIT_STATE_SERVER:
    case GIT_STATE_REMOTE:
    case GIT_STATE_COPY:
        rc = guard_git_refuse(rule, said, "");
        break;
    case GIT_STATE_FILE:
        rc = S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) ? 0 : guard_git_refuse(rule, DOT_GIT_LINK, "");
        break;
    default:
        rc = S_ISREG(st->st_mode) ? 0 : guard_git_refuse(rule, said, " that is not a plain file");
        break;
    }
    if (rc == 0 && spot.own && !S_ISDIR(st->st_mode) && !S_ISREG(st->st_mode))
        rc = guard_git_refuse(rule, DOT_GIT_LINK, "");
    if (rc == 0 && !S_ISREG(st->st_mode))
        rc = S_ISDIR(st->st_mode) ? git_may_bring_leads(from, from_name, to, path, to_name, rule)
                                  : git_may_lead(to, path, to_name, rule);
    if (rc == 0 && S_ISDIR(st->st_mode)) {
        bool begun = git_brings_begun(to, path, to_name);

        if (begun || spot.own || path.n == 0 || git_below_dot_git(path))
            rc = may_bring_places(g, from, from_name, path, to_name, begun && !git_below_dot_git(path), rule);
    }
    if (rc == 0 && spot.completes)
        rc = git_may_become(g, to, STR_LIT(""), path, rule);
    return rc == 0 && is_judged(spot.state) && S_ISREG(st->st_mode) ? GIT_BY_COPY : rc;
}

/* HEAD stays the file that it is: where it is a mount on itself, so that nothing removes it, no other can take its
 * place. Shorter or longer than before: a reader that comes between may see the end of the former line behind the new
 * one, which git does not take for a HEAD. */
static int
write_head(int source, int to, const char *to_name, char rule[GIT_RULE_MAX])
{
    cleanup_close int head = openat(to, to_name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    char text[GIT_HEAD_MAX];
    ssize_t n = pread(source, text, sizeof(text), 0);

    if (head < 0 || n < 0)
        return errno;
    if (!git_head_harmless((struct str){ text, (size_t)n }))
        return guard_git_refuse(rule, TOP_HEAD, " that names nothing");
    return pwrite(head, text, (size_t)n, 0) != n || ftruncate(head, n) < 0 ? EIO : 0;
}

int
git_copy_to(struct guard *g, int file, int to, const struct stat *to_st, const char *to_name, unsigned flags,
            char rule[GIT_RULE_MAX], int *copy)
{
    struct str path;

    if (git_is_top_head(g, to, to_st, str_of(to_name)))
        return (flags & GS_RENAME_NOREPLACE) != 0 ? EEXIST : write_head(file, to, to_name, rule);
    struct git_spot spot = look_at(g, to, to_st, str_of(to_name), &path);
    /* what was written in place (guard_git_later.c) may be in no git place any more */
    if (!is_judged(spot.state) && spot.state != GIT_STATE_NONE)
        return guard_git_refuse(rule, "a place that changed", "");
    struct git_site site = git_site_of(g, path);
    int rc = spot.completes ? git_may_become(g, to, STR_LIT(""), path, rule) : 0;
    if (rc == 0)
        rc = git_copy_file(file, to, to_name, spot.state, &site, flags, rule, copy);
    if (rc != 0)
        return rc;
    rules_next_call(&g->rules);
    enum git_state now = look_at(g, to, to_st, str_of(to_name), &path).state;
    if (now != spot.state && now != GIT_STATE_NONE)
        rc = guard_git_refuse(rule, "a place that changed", "");
    if (rc == 0)
        rc = has_become(g, to, to_st, str_of(to_name), !spot.completes, rule);
    if (rc != 0)
        (void)unlinkat(to, to_name, 0);
    return rc;
}

int
git_fill(struct guard *g, int file, int dir, const struct stat *dir_st, const char *name, int to,
         char rule[GIT_RULE_MAX])
{
    struct str path;
    enum git_state state = look_at(g, dir, dir_st, str_of(name), &path).state;
    struct git_site site = git_site_of(g, path);

    return git_fill_file(file, dir, name, state, &site, to, rule);
}

int
git_rename_copy(struct guard *g, int from, const char *from_name, int to, const struct stat *to_st,
                const char *to_name, unsigned flags, char rule[GIT_RULE_MAX])
{
    cleanup_close int file = openat(from, from_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st, target;
    int rc;

    if (file < 0 || fstat(file, &st) < 0)
        return errno;
    /* two names of one file: the kernel does nothing then */
    if (fstatat(to, to_name, &target, AT_SYMLINK_NOFOLLOW) == 0 && ident_eq(ident_of(&st), ident_of(&target)))
        return (flags & GS_RENAME_NOREPLACE) != 0 ? EEXIST : 0;
    rc = git_copy_to(g, file, to, to_st, to_name, flags, rule, NULL);
    if (rc == 0 && unlinkat(from, from_name, 0) < 0 && errno != ENOENT)
        rc = errno;
    return rc;
}
