/* workspace/git_mark.c: see git_mark.h */
#include "workspace/git_mark.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "match/git_shape.h"
#include "match/path.h"
#include "workspace/git_place.h"
#include "workspace/overlay.h"
#include "workspace/tree.h"

/* What the innermost repository around an entry is. */
enum around {
    AROUND_NONE = 0,
    AROUND_OLD,         /* the project's */
    AROUND_NEW,         /* the run made it one */
};

struct mark {
    const struct diff_input *in;
    struct changes *c;
    int upper;
    enum around *around;            /* one per change */
    char project[PATH_TEXT_MAX + 1];
};

static struct str
name_of(const struct change *e)
{
    return str_of(e->name);
}

static bool
dot_git(const struct change *e)
{
    return strcasecmp(e->name, ".git") == 0;
}

/* The directory that holds change @i, in the upper layer. -1 with errno. */
static int
open_above(const struct mark *m, size_t i)
{
    cleanup_buf struct buf path = BUF_INIT(TREE_PATH_MAX + 1);

    if (change_path(m->c, m->c->v[i].parent, &path) < 0) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return tree_open(m->upper, (const char *)path.p, O_RDONLY | O_DIRECTORY);
}

/* --- redirections --- */

/* @target, as a file in the directory of change @base says it, relative to the project. False when it leaves it. */
static bool
target_inside(const struct mark *m, size_t base, struct str target, char out[PATH_TEXT_MAX + 1])
{
    cleanup_buf struct buf path = BUF_INIT(TREE_PATH_MAX + 1), from = BUF_INIT(2 * PATH_MAX);
    size_t n, skip = strlen(m->project);

    if (change_path(m->c, base, &path) < 0)
        return false;
    buf_puts(&from, m->project);
    buf_puts(&from, "/");
    buf_append(&from, path.p, path.n);
    if (!buf_ok(&from) || path_normalise(target, (struct str){ (const char *)from.p, from.n }, false, out,
                                         PATH_TEXT_MAX + 1, &n) != PATH_OK ||
        !path_within((struct str){ out, n }, str_of(m->project)))
        return false;
    skip += skip > 1 && n > skip;       /* the slash behind it; a project "/" ends in one */
    memmove(out, out + skip, n - skip + 1);
    return true;
}

enum way { WAY_NEW, WAY_OLD, WAY_LINK };

/* The change called @name in the directory of change @i; CHANGE_NOT: there is none. */
static size_t
change_named(const struct changes *c, size_t i, struct str name)
{
    size_t k = c->v[i].first, end = k + c->v[i].n;

    while (k < end && !str_eq(name_of(&c->v[k]), name))
        k++;
    return k < end ? k : CHANGE_NOT;
}

/* How the changes lead to the directory @path: to one that they have, nowhere, or to a symlink that the run made, which
 * may lead anywhere. */
static enum way
changed_way(const struct mark *m, const char *path)
{
    size_t at = 0;

    while (*path != '\0') {
        size_t n = strcspn(path, "/"), k = change_named(m->c, at, (struct str){ path, n });
        if (k == CHANGE_NOT)
            return WAY_OLD;
        if (S_ISLNK(m->c->v[k].upper.mode))
            return WAY_LINK;
        at = k;
        path += n + (path[n] == '/');
    }
    return S_ISDIR(m->c->v[at].upper.mode) ? WAY_NEW : WAY_OLD;
}

/* Whether git may be led to @target from the directory of change @base: it is there, in the project, and what the
 * project itself has there is harmless or is its own repository. (What the run put there is judged for itself.) */
static bool
target_harmless(const struct mark *m, size_t base, struct str target)
{
    char path[PATH_TEXT_MAX + 1];

    if (!target_inside(m, base, target, path))
        return false;
    enum way way = changed_way(m, path);
    cleanup_close int fd = tree_open(m->in->project, path, O_RDONLY | O_DIRECTORY);
    if (way == WAY_LINK || fd < 0)
        return way == WAY_NEW && errno == ENOENT;
    return path_within(str_of(path), STR_LIT(".git")) || git_place_harmless(fd, 0, NULL);
}

/* Whether the repository of change @place may have a commondir that says @text. */
static bool
common_harmless(const struct mark *m, size_t place, struct str text)
{
    cleanup_buf struct buf path = BUF_INIT(TREE_PATH_MAX + 1);

    return change_path(m->c, place, &path) == 0 &&
           git_common_harmless(text, (struct str){ (const char *)path.p, path.n });
}

/* --- one entry of a repository --- */

/* How long names of objects are in the repository @place, as it will be: its own configuration says it, or that of the
 * one that has it for a worktree. */
static size_t
oid_of(const struct mark *m, size_t place)
{
    cleanup_buf struct buf path = BUF_INIT(TREE_PATH_MAX + 1);

    if (change_path(m->c, place, &path) < 0)
        return GIT_OID_BYTES;
    for (int i = 0; i < 3; i++) {
        cleanup_close int upper = tree_open(m->upper, (const char *)path.p, O_RDONLY | O_DIRECTORY);
        cleanup_close int lower = tree_open(m->in->project, (const char *)path.p, O_RDONLY | O_DIRECTORY);
        size_t oid = upper >= 0 ? git_place_oid(upper) : 0;
        if (oid == 0 && lower >= 0)
            oid = git_place_oid(lower);
        char *slash = strrchr((char *)path.p, '/');
        if (oid > 0 || slash == NULL)
            return oid > 0 ? oid : GIT_OID_BYTES;
        *slash = '\0';
    }
    return GIT_OID_BYTES;
}

/* Whether what the run made of change @i, which is @state in a repository @depth deep, is harmless. */
static bool
entry_harmless(const struct mark *m, size_t i, enum git_state state, size_t depth)
{
    const struct change *e = &m->c->v[i];
    cleanup_buf struct buf text = BUF_INIT(GIT_PLACE_TEXT(state));
    struct str target;

    if (state == GIT_STATE_HOOKS || state == GIT_STATE_DIR)
        return S_ISDIR(e->upper.mode);
    if (!S_ISREG(e->upper.mode) || state == GIT_STATE_HOOK || state == GIT_STATE_REMOTE ||
        state == GIT_STATE_SERVER)
        return false;
    if (state == GIT_STATE_SAMPLE)
        return true;
    cleanup_close int above = open_above(m, i);
    cleanup_close int fd = above >= 0 ? tree_open_file(above, e->name, true) : -1;
    if (fd < 0 || io_read_all(fd, &text) < 0)
        return false;
    struct str s = { (const char *)text.p, text.n };
    if (state == GIT_STATE_INDEX)
        return git_index_harmless(s, oid_of(m, e->parent));
    if (!git_state_harmless(state, name_of(e), s, depth, NULL))
        return false;
    return state != GIT_STATE_COMMONDIR ||
           (common_harmless(m, e->parent, s) && git_redirect_target(s, &target) &&
            target_harmless(m, e->parent, target));
}

/* Whether @e is `remotes` in the refs, or in their logs, of a repository: branches of remotes. */
static bool
is_branches(const struct mark *m, size_t i, const struct change *e)
{
    return m->around[i] == AROUND_NONE && strcasecmp(m->c->v[i].name, "refs") == 0 &&
           strcasecmp(e->name, "remotes") == 0;
}

/* Judge the changes among the entries of directory @i, called @dir ("" for the repository itself). */
static void
mark_entries(struct mark *m, size_t i, struct str dir, size_t depth)
{
    for (size_t k = m->c->v[i].first, end = k + m->c->v[i].n; k < end; k++) {
        struct change *e = &m->c->v[k];
        enum git_state state = git_state_in(dir, name_of(e));
        if (state == GIT_STATE_NONE || e->upper.mode == 0)
            continue;
        /* the mode makes a hook one, and nothing else */
        if ((e->kind != CHANGE_MODE || state == GIT_STATE_HOOK) && !entry_harmless(m, k, state, depth))
            e->flags |= CHANGE_GIT;
        else if (dir.n == 0 && (state == GIT_STATE_HOOKS || state == GIT_STATE_DIR) && !is_branches(m, i, e))
            mark_entries(m, k, name_of(e), depth);
    }
}

/* Links that the run made where git itself writes: below directory @i, which is @dir of the repository ("" for it). */
static void
mark_leads(struct mark *m, size_t i, struct str dir)
{
    for (size_t k = m->c->v[i].first, end = k + m->c->v[i].n; k < end; k++) {
        struct change *e = &m->c->v[k];
        struct str top = dir.n > 0 ? dir : name_of(e);
        if (S_ISLNK(e->upper.mode) && e->kind != CHANGE_NONE && (dir.n > 0 || git_writes(top)))
            e->flags |= CHANGE_GIT;
        else if (S_ISDIR(e->upper.mode) && git_writes_below(top))
            mark_leads(m, k, top);
    }
}

/* --- repositories --- */

/* Whether the changes of directory @e have a name that means something to git in a repository. */
static bool
has_state(const struct changes *c, const struct change *e)
{
    for (size_t k = e->first; k < e->first + e->n; k++)
        if (git_state_in(STR_LIT(""), name_of(&c->v[k])) != GIT_STATE_NONE)
            return true;
    return false;
}

/* Whether they have a name by which git writes. */
static bool
has_own(const struct changes *c, const struct change *e)
{
    for (size_t k = e->first; k < e->first + e->n; k++)
        if (c->v[k].upper.mode != 0 && git_writes(name_of(&c->v[k])))
            return true;
    return false;
}

/* The parts that the changes of directory @e have on either side. */
static unsigned
parts_changed(const struct changes *c, const struct change *e)
{
    unsigned parts = 0;

    for (size_t k = e->first; k < e->first + e->n; k++)
        parts |= git_part_of(name_of(&c->v[k]));
    return parts;
}

/* The parts of repository @i: those that go from an old one, or that make a new one around what is not harmless. */
static void
mark_parts(struct mark *m, size_t i, bool gone)
{
    for (size_t k = m->c->v[i].first, end = k + m->c->v[i].n; k < end; k++) {
        struct change *e = &m->c->v[k];
        if (git_part_of(name_of(e)) == GIT_PART_NONE)
            continue;
        bool goes = e->kind == CHANGE_DELETED || e->kind == CHANGE_TYPE;
        if (gone ? goes : e->upper.mode != 0 && e->kind != CHANGE_NONE)
            e->flags |= CHANGE_GIT;
    }
}

/* Whether the directory @i is where git makes the repository of a submodule: below `modules` in the one that holds it,
 * or in the worktree's part of that. A submodule's name may lead into what is the refs of another one by its shape. */
static bool
in_modules(const struct mark *m, size_t i)
{
    const struct change *v = m->c->v;

    for (size_t k = i > 0 ? v[i].parent : 0; k > 0; k = v[k].parent) {
        size_t up = v[k].parent;
        if (strcasecmp(v[k].name, "modules") == 0 &&
            (v[up].git_place || dot_git(&v[up]) || (up > 0 && strcasecmp(v[v[up].parent].name, "worktrees") == 0)))
            return true;
    }
    return false;
}

static void
mark_directory(struct mark *m, size_t i)
{
    struct change *e = &m->c->v[i];
    cleanup_buf struct buf path = BUF_INIT(TREE_PATH_MAX + 1);
    cleanup_close int lower = -1;

    unsigned parts = parts_changed(m->c, e);
    bool state = has_state(m->c, e);

    /* a new directory belongs to the new one around it, unless it may become a repository by itself */
    if (i > 0 && m->around[e->parent] == AROUND_NEW && !S_ISDIR(e->lower.mode) && !state && !dot_git(e))
        m->around[i] = AROUND_NEW;
    if ((!state && parts == 0 && !has_own(m->c, e)) || change_path(m->c, i, &path) < 0)
        return;
    if (S_ISDIR(e->lower.mode))
        lower = tree_open(m->in->project, (const char *)path.p, O_RDONLY | O_DIRECTORY);
    unsigned before = lower >= 0 ? git_place_parts(lower) : 0;
    bool whole = git_parts_place(before | parts);
    /* a `.git` will be one some day, and a submodule's; the guard asks for no shape there */
    if (!whole && !dot_git(e) && !in_modules(m, i))
        return;
    if (whole)
        m->around[i] = git_parts_place(before) ? AROUND_OLD : AROUND_NEW;
    e->git_place = true;
    e->git_new = m->around[i] == AROUND_NEW;
    size_t ups = git_worktree_ups((struct str){ (const char *)path.p, path.n });
    mark_entries(m, i, STR_LIT(""), ups);
    mark_leads(m, i, STR_LIT(""));
    if (m->around[i] == AROUND_OLD)
        mark_parts(m, i, true);
    else if (lower >= 0 && !git_place_harmless(lower, ups, NULL))
        mark_parts(m, i, false);
}

/* A `.git` that is no directory leads git to another one. */
static void
mark_git_file(struct mark *m, size_t i)
{
    struct change *e = &m->c->v[i];
    cleanup_buf struct buf text = BUF_INIT(GIT_HEAD_MAX);
    struct str target;

    if (!dot_git(e) || e->upper.mode == 0 || S_ISDIR(e->upper.mode) || e->kind == CHANGE_MODE)
        return;
    cleanup_close int above = open_above(m, i);
    cleanup_close int fd = above >= 0 && S_ISREG(e->upper.mode) ? tree_open_file(above, e->name, true) : -1;
    if (fd < 0 || io_read_all(fd, &text) < 0 || !git_file_harmless((struct str){ (const char *)text.p, text.n }) ||
        !git_file_target((struct str){ (const char *)text.p, text.n }, &target) ||
        !target_harmless(m, e->parent, target))
        e->flags |= CHANGE_GIT;
}

/* Take the protection from change @i when it is new, and no name but git's gives it. */
static bool
unprotect(struct mark *m, size_t i)
{
    cleanup_buf struct buf path = BUF_INIT(TREE_PATH_MAX + 1);
    struct change *e = &m->c->v[i];

    if ((e->flags & (CHANGE_PROTECTED | CHANGE_GIT)) != CHANGE_PROTECTED || e->kind != CHANGE_ADDED ||
        (!S_ISREG(e->upper.mode) && !S_ISDIR(e->upper.mode)) || change_path(m->c, i, &path) < 0 ||
        !protect_only_git(m->in->protect, (struct str){ (const char *)path.p, path.n }))
        return false;
    e->flags &= ~(unsigned)CHANGE_PROTECTED;
    return true;
}

/* What is new and harmless need not wait for its name alone: a repository that the run made with all that is in it, the
 * directories that it needs, and a `.git` file that leads to one. */
static void
free_new(struct mark *m, size_t i)
{
    const struct change *e = &m->c->v[i];

    if (m->around[e->parent] == AROUND_NEW || m->around[i] == AROUND_NEW || (dot_git(e) && S_ISREG(e->upper.mode)))
        unprotect(m, i);
    for (size_t k = e->parent; m->around[i] == AROUND_NEW && k > 0 && S_ISDIR(m->c->v[k].upper.mode); )
        k = unprotect(m, k) ? m->c->v[k].parent : 0;
}

int
git_mark(const struct diff_input *in, struct changes *c, struct err *err)
{
    cleanup_close int upper = tree_open(in->layers, OVERLAY_UPPER, O_RDONLY | O_DIRECTORY);
    cleanup_free enum around *around = calloc(c->n, sizeof(*around));
    struct mark m = { .in = in, .c = c, .upper = upper, .around = around };
    char link[64];

    if (around == NULL)
        return err_set(err, ERR_SYSTEM, "workspace.memory", "no memory");
    snprintf(link, sizeof(link), "/proc/self/fd/%d", in->project);
    ssize_t n = readlink(link, m.project, sizeof(m.project) - 1);
    if (upper < 0 || n <= 0)
        return err_sys(err, errno, "workspace.diff.read", "cannot open the upper layer");
    m.project[n] = '\0';
    for (size_t i = 0; i < c->n; i++)       /* parents come before their children */
        if (S_ISDIR(c->v[i].upper.mode) && (c->v[i].flags & CHANGE_NEVER) == 0)
            mark_directory(&m, i);
    for (size_t i = 1; i < c->n; i++) {
        mark_git_file(&m, i);
        if ((c->v[c->v[i].parent].flags & CHANGE_GIT) != 0)
            c->v[i].flags |= CHANGE_GIT;    /* an empty part would complete the shape as well */
        free_new(&m, i);
    }
    return 0;
}

/* --- after the moves */

/* The parts of the directory @dir, looked at more than once: who changes them meanwhile may show no whole shape at any
 * one time. */
static unsigned
parts_now(int dir)
{
    unsigned parts = 0;

    for (int i = 0; i < 3; i++)
        parts |= git_place_parts(dir);
    return parts;
}

struct late {
    const struct changes *c;
    const enum fate *fate;
    size_t place;
    bool all;               /* what no change put there counts too */
};

/* The change at @path below directory @i; CHANGE_NOT: there is none. */
static size_t
change_at(const struct changes *c, size_t i, const char *path)
{
    while (*path != '\0' && i != CHANGE_NOT) {
        size_t n = strcspn(path, "/");
        i = change_named(c, i, (struct str){ path, n });
        path += n + (path[n] == '/');
    }
    return i;
}

/* Go on when the offence is what a person named, or a commondir that was judged. */
static bool
was_judged(void *ctx, const struct git_offence *o)
{
    const struct late *l = ctx;
    size_t k = change_at(l->c, l->place, o->path);

    if (k == CHANGE_NOT || l->fate[k] != FATE_APPLIED)
        return !l->all;
    return (l->c->v[k].flags & CHANGE_GIT) != 0 || o->state == GIT_STATE_COMMONDIR;
}

bool
git_mark_holds(const struct changes *c, const enum fate *fate, size_t i, int dir)
{
    const struct change *e = &c->v[i];
    struct late l = { .c = c, .fate = fate, .place = i, .all = e->git_new };
    cleanup_buf struct buf path = BUF_INIT(TREE_PATH_MAX + 1);
    bool came = e->git_new;

    if (!e->git_place)
        return (!has_state(c, e) && parts_changed(c, e) == 0 && !has_own(c, e)) || !git_parts_place(parts_now(dir));
    for (size_t k = e->first; k < e->first + e->n; k++) {
        const struct change *part = &c->v[k];
        enum git_state state = git_state_in(STR_LIT(""), name_of(part));
        if (fate[k] != FATE_APPLIED || part->lower.mode != 0)
            continue;
        came = came || state == GIT_STATE_INDEX;
        if (git_part_of(name_of(part)) == GIT_PART_NONE)
            continue;
        /* named by a person, who was told what is there */
        l.all = (part->flags & CHANGE_GIT) == 0;
        came = true;
        if (!l.all)
            break;
    }
    return !came || (change_path(c, i, &path) == 0 &&
                     git_place_search(dir, git_worktree_ups((struct str){ (const char *)path.p, path.n }), was_judged,
                                      &l) == 0);
}
