/* workspace/diff.c: the upper layer against the project; see diff.h
 *
 * Directories are taken from a stack, one at a time, and opened by their path below each root in one openat2: no
 * descriptor outlives its directory, and no depth of tree needs more than two of them.
 */
#include "workspace/diff.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "workspace/changes.h"
#include "workspace/git_mark.h"
#include "workspace/overlay.h"
#include "workspace/planted.h"
#include "workspace/tree.h"
#include "workspace/xattr.h"

struct scan {
    const struct diff_input *in;
    struct changes *c;
    int upper;              /* upper/ */
    dev_t project_dev;
    size_t *stack;          /* directories still to be read */
    size_t n_stack, cap_stack;
};

/* One directory that is being read. */
struct scan_dir {
    size_t i;               /* its change */
    int upper, lower;       /* -1: not on this side */
    bool xwhiteouts;        /* whiteouts may be empty files with an attribute */
    bool lower_changed;     /* entries came or went on the host since the run began */
    struct buf path;
};

static bool
later(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

static int
push(struct scan *s, size_t i, struct err *err)
{
    if (s->n_stack == s->cap_stack) {
        size_t cap = s->cap_stack > 0 ? s->cap_stack * 2 : 256;
        size_t *grown = realloc(s->stack, cap * sizeof(*grown));
        if (grown == NULL)
            return err_set(err, ERR_SYSTEM, "workspace.memory", "no memory");
        s->stack = grown;
        s->cap_stack = cap;
    }
    s->stack[s->n_stack++] = i;
    return 0;
}

/* --- one entry --------------------------------------------------------------------------------------------------- */

static int
side_fill(struct change_side *side, int dir, const char *name, const struct stat *st)
{
    char target[TREE_PATH_MAX + 2];

    *side = (struct change_side){
        .mode = st->st_mode, .uid = st->st_uid, .gid = st->st_gid, .size = (uint64_t)st->st_size, .ino = st->st_ino,
        .dev = st->st_dev, .nlink = st->st_nlink, .mtime = st->st_mtim, .ctime = st->st_ctim,
    };
    if (!S_ISLNK(st->st_mode))
        return 0;
    ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);
    if (n < 0)
        return -1;
    target[n] = '\0';
    side->target = strdup(target);
    return side->target != NULL ? 0 : -1;
}

static bool
is_whiteout(const struct scan_dir *d, const char *name, const struct stat *st)
{
    if (S_ISCHR(st->st_mode))
        return st->st_rdev == makedev(0, 0);
    return d->xwhiteouts && S_ISREG(st->st_mode) && st->st_size == 0 &&
           xattr_overlay_mark(d->upper, name, "whiteout") != '\0';
}

/* Compare two regular files that are open: kind and flags of @e. */
static void
compare_open(struct change *e, int upper, int lower)
{
    int same;

    if (e->upper.size != e->lower.size || (same = diff_same_content(upper, lower)) == 0) {
        e->kind = CHANGE_MODIFIED;
    } else if (same < 0) {
        e->kind = CHANGE_MODIFIED;
        e->flags |= CHANGE_UNREADABLE;
    } else if (!xattr_same(upper, lower)) {
        e->kind = CHANGE_MODIFIED;
    } else {
        e->kind = (e->upper.mode & 07777) != (e->lower.mode & 07777) ? CHANGE_MODE : CHANGE_NONE;
    }
    if (e->kind != CHANGE_NONE && xattr_lost(upper, lower))
        e->flags |= CHANGE_ATTRS_LOST;
}

static int
compare_files(const struct scan_dir *d, struct change *e, struct err *err)
{
    cleanup_close int upper = tree_open_file(d->upper, e->name, true);
    cleanup_close int lower = -1;

    if (upper < 0)
        return err_sys(err, errno, "workspace.diff.read", "cannot read a changed file in the upper layer");
    if (!S_ISREG(e->lower.mode)) {
        if (xattr_lost(upper, -1))
            e->flags |= CHANGE_ATTRS_LOST;
        return 0;
    }
    lower = tree_open_file(d->lower, e->name, false);
    if (lower < 0) {
        e->kind = CHANGE_MODIFIED;
        e->flags |= CHANGE_UNREADABLE;
        return 0;
    }
    compare_open(e, upper, lower);
    return 0;
}

/* Both sides are there: which kind of change? */
static int
classify_both(const struct scan_dir *d, struct change *e, struct err *err)
{
    mode_t type = e->upper.mode & S_IFMT;

    if (type != (e->lower.mode & S_IFMT)) {
        e->kind = CHANGE_TYPE;
        return S_ISREG(type) ? compare_files(d, e, err) : 0;
    }
    if (S_ISREG(type))
        return compare_files(d, e, err);
    if (S_ISLNK(type))
        e->kind = strcmp(e->upper.target, e->lower.target) != 0 ? CHANGE_MODIFIED : CHANGE_NONE;
    else if (S_ISDIR(type))
        e->kind = (e->upper.mode & 0777) != (e->lower.mode & 0777) ? CHANGE_MODE : CHANGE_NONE;
    else
        e->kind = CHANGE_NONE;  /* a special file that was touched: no use telling */
    return 0;
}

/* What apply has to know, once the kind is clear. */
static void
flag_entry(const struct scan *s, const struct scan_dir *d, struct change *e)
{
    mode_t up = e->upper.mode;
    bool becomes_other = !S_ISDIR(up);

    if (up != 0 && !S_ISREG(up) && !S_ISLNK(up) && !S_ISDIR(up))
        e->flags |= CHANGE_SPECIAL;
    if (S_ISLNK(up) && !protect_link_inside(str_of(e->upper.target), e->depth - 1))
        e->flags |= CHANGE_OUTSIDE;
    if (((S_ISREG(up) && (up & 07000) != 0) || (S_ISDIR(up) && (up & 07000 & ~e->lower.mode) != 0)))
        e->flags |= CHANGE_SETID;
    if (e->lower.mode != 0 && e->lower.dev != s->project_dev)
        e->flags |= CHANGE_OTHER_FS;

    enum protect_match m = protect_below(s->in->protect, (struct str){ .p = (char *)d->path.p, .n = d->path.n },
                                         s->c->v[d->i].protection, e->lower.mode != 0);
    e->protection = (unsigned char)m;
    if (m == PROTECT_AT || (m == PROTECT_ABOVE && becomes_other))
        e->flags |= CHANGE_PROTECTED;

    if (e->lower.mode != 0) {
        /* of a directory that only goes, what is in it tells */
        bool tells = !S_ISDIR(e->lower.mode) || e->kind == CHANGE_TYPE;
        if (tells && later(e->lower.ctime, s->in->since))
            e->flags |= CHANGE_HOST;
    } else if (e->origin && d->lower >= 0 && (S_ISDIR(up) || d->lower_changed)) {
        e->flags |= CHANGE_HOST;    /* it was in the project, and is gone or renamed there */
    }
}

/* Fill the upper side of @e from @st; 1 when it is a whiteout. */
static int
upper_fill(const struct scan_dir *d, struct change *e, struct stat *st, struct err *err)
{
    mode_t mode;

    if (fstatat(d->upper, e->name, st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys(err, errno, "workspace.diff.read", "cannot stat an entry of the upper layer");
    if (is_whiteout(d, e->name, st))
        return 1;
    if (S_ISDIR(st->st_mode)) {
        if (tree_lift(d->upper, e->name, &mode) < 0)
            return err_sys(err, errno, "workspace.diff.read", "cannot enter a directory of the upper layer");
        st->st_mode = S_IFDIR | mode;
        e->opaque = xattr_overlay_mark(d->upper, e->name, "opaque") == 'y';
    }
    e->origin = xattr_overlay_origin(d->upper, e->name);
    return side_fill(&e->upper, d->upper, e->name, st) < 0
               ? err_sys(err, errno, "workspace.diff.read", "cannot read an entry of the upper layer") : 0;
}

/* Make the change of @name in @d, if it is one. @in_upper: the upper directory has that name. */
static int
entry(struct scan *s, struct scan_dir *d, const char *name, bool in_upper, struct err *err)
{
    struct change e = { .pair = CHANGE_NOT, .parent = d->i, .depth = s->c->v[d->i].depth + 1 };
    size_t path_n = d->path.n;
    struct stat st;

    if (changes_name(s->c, &e, name, err) < 0)
        return -1;
    int white = in_upper ? upper_fill(d, &e, &st, err) : 1;
    if (white < 0)
        return changes_drop(&e, -1);
    if (d->lower >= 0 && fstatat(d->lower, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        side_fill(&e.lower, d->lower, name, &st) < 0)
        return changes_drop(&e, err_sys(err, errno, "workspace.diff.read", "cannot read an entry of the project"));
    if (white && e.lower.mode == 0)
        return changes_drop(&e, 0);

    e.kind = white ? CHANGE_DELETED : CHANGE_ADDED;
    if (!white && e.lower.mode != 0 && classify_both(d, &e, err) < 0)
        return changes_drop(&e, -1);
    if (!white && e.lower.mode == 0 && S_ISREG(e.upper.mode) && compare_files(d, &e, err) < 0)
        return changes_drop(&e, -1);
    if (e.kind == CHANGE_NONE && !S_ISDIR(e.upper.mode))
        return changes_drop(&e, 0);

    if (path_n > 0)
        buf_puts(&d->path, "/");
    buf_puts(&d->path, name);
    if (buf_ok(&d->path) && d->path.n <= TREE_PATH_MAX)
        flag_entry(s, d, &e);
    else
        e.flags |= CHANGE_TOO_DEEP;
    buf_reset(&d->path);
    d->path.n = path_n;
    return changes_add(s->c, &e, err);
}

/* --- one directory ----------------------------------------------------------------------------------------------- */

/* The names of both sides that matter, merged in order. */
static int
entries(struct scan *s, struct scan_dir *d, const struct tree_names *upper, const struct tree_names *lower,
        struct err *err)
{
    size_t u = 0, l = 0;

    while (u < upper->n || l < lower->n) {
        int order = u == upper->n ? 1 : l == lower->n ? -1 : strcmp(upper->v[u], lower->v[l]);
        const char *name = order <= 0 ? upper->v[u] : lower->v[l];
        if (entry(s, d, name, order <= 0, err) < 0)
            return -1;
        u += order <= 0;
        l += order >= 0;
    }
    return 0;
}

static int
list_both(struct scan *s, struct scan_dir *d, struct err *err)
{
    struct tree_names upper = { .n = 0 }, lower = { .n = 0 };
    int r = 0;

    if (d->upper >= 0 && tree_names_read(d->upper, &upper) < 0)
        return err_sys(err, errno, "workspace.diff.read", "cannot list a directory of the upper layer");
    /* the project's own names matter where nothing of them shows through */
    if (d->lower >= 0 && (d->upper < 0 || s->c->v[d->i].opaque) && tree_names_read(d->lower, &lower) < 0)
        r = err_sys(err, errno, "workspace.diff.read", "cannot list a directory of the project");
    if (r == 0)
        r = entries(s, d, &upper, &lower, err);
    tree_names_free(&upper);
    tree_names_free(&lower);
    return r;
}

/* The directory cannot be looked into: a change that is reported and never applied. */
static void
closed(struct scan *s, size_t i, unsigned flag)
{
    if (s->c->v[i].kind == CHANGE_NONE)
        s->c->v[i].kind = CHANGE_MODIFIED;
    s->c->v[i].flags |= flag;
    changes_mark(s->c, i);
}

/* Open both sides of @d. 0: go on, 1: it stays closed, -1 with @err. */
static int
open_both(struct scan *s, struct scan_dir *d, struct err *err)
{
    const struct change *e = &s->c->v[d->i];
    struct stat st;

    if (change_path(s->c, d->i, &d->path) < 0) {
        closed(s, d->i, CHANGE_TOO_DEEP);
        return 1;
    }
    if (S_ISDIR(e->upper.mode)) {
        d->upper = tree_open(s->upper, (const char *)d->path.p, O_RDONLY | O_DIRECTORY);
        if (d->upper < 0)
            return err_sys(err, errno, "workspace.diff.read", "cannot open a directory of the upper layer");
        d->xwhiteouts = xattr_overlay_mark(d->upper, ".", "opaque") == 'x';
    }
    if (S_ISDIR(e->lower.mode)) {
        d->lower = tree_open(s->in->project, (const char *)d->path.p, O_RDONLY | O_DIRECTORY);
        if (d->lower < 0 || fstat(d->lower, &st) < 0) {
            closed(s, d->i, errno == EXDEV ? CHANGE_OTHER_FS : CHANGE_UNREADABLE);
            return 1;
        }
        d->lower_changed = later(st.st_ctim, s->in->since);
    }
    return 0;
}

static int
read_directory(struct scan *s, size_t i, struct err *err)
{
    struct scan_dir d = { .i = i, .upper = -1, .lower = -1, .path = BUF_INIT(TREE_PATH_MAX + 1) };
    int r = open_both(s, &d, err);

    if (r == 0) {
        size_t first = s->c->n;
        r = list_both(s, &d, err);
        s->c->v[i].first = first;
        s->c->v[i].n = s->c->n - first;
        for (size_t k = first; k < s->c->n && r == 0; k++) {
            const struct change *e = &s->c->v[k];
            if (e->kind != CHANGE_NONE)
                changes_mark(s->c, k);
            if ((S_ISDIR(e->upper.mode) || S_ISDIR(e->lower.mode)) &&
                (e->flags & (CHANGE_OTHER_FS | CHANGE_TOO_DEEP)) == 0)
                r = push(s, k, err);
        }
    }
    close_fd(&d.upper);
    close_fd(&d.lower);
    buf_free(&d.path);
    return r < 0 ? -1 : 0;
}

static int
scan_root(struct scan *s, struct err *err)
{
    struct change root = { .parent = CHANGE_NOT, .pair = CHANGE_NOT };
    struct stat lower;
    mode_t mode;

    if (tree_lift(s->in->layers, OVERLAY_UPPER, &mode) < 0)
        return err_sys(err, errno, "workspace.diff.read", "cannot open the upper layer");
    s->upper = tree_open(s->in->layers, OVERLAY_UPPER, O_RDONLY | O_DIRECTORY);
    if (s->upper < 0)
        return err_sys(err, errno, "workspace.diff.read", "cannot open the upper layer");
    if (fstat(s->in->project, &lower) < 0)
        return err_sys(err, errno, "workspace.diff.read", "cannot stat the project");
    s->project_dev = lower.st_dev;
    root.upper.mode = S_IFDIR | mode;
    root.lower = (struct change_side){ .mode = lower.st_mode, .dev = lower.st_dev, .ino = lower.st_ino,
                                       .uid = lower.st_uid, .gid = lower.st_gid };
    /* the project's own directory stays what it is: its mode is not the sandbox's to change */
    root.opaque = xattr_overlay_mark(s->upper, ".", "opaque") == 'y';
    if (changes_name(s->c, &root, "", err) < 0 || changes_add(s->c, &root, err) < 0)
        return -1;
    return push(s, 0, err);
}

/* Say which files other programs run or obey, of those that would be applied without a word. */
static int
mark_tools(struct changes *c, struct err *err)
{
    cleanup_free const char **dir = calloc(c->n, sizeof(*dir));

    if (dir == NULL)
        return err_set(err, ERR_SYSTEM, "workspace.memory", "no memory");
    for (size_t i = 1; i < c->n; i++) {     /* parents come before their children */
        struct change *e = &c->v[i];
        dir[i] = dir[e->parent];
        if (S_ISDIR(e->upper.mode)) {
            const char *own = planted_dir(e->name);
            dir[i] = own != NULL ? own : dir[i];
        } else if (e->upper.mode != 0 && e->kind != CHANGE_NONE && (e->flags & (CHANGE_PROTECTED | CHANGE_GIT)) == 0 &&
                   (planted_match(dir[i], planted_dir(c->v[e->parent].name) != NULL, e->name) != NULL ||
                    (S_ISLNK(e->upper.mode) && e->name[0] == '.' && planted_below(e->name) != NULL))) {
            e->flags |= CHANGE_TOOL;
        }
    }
    return 0;
}

int
diff_scan(const struct diff_input *in, struct changes *out, struct err *err)
{
    struct scan s = { .in = in, .c = out, .upper = -1 };
    int r;

    *out = (struct changes)CHANGES_INIT;
    r = scan_root(&s, err);
    while (r == 0 && s.n_stack > 0)
        r = read_directory(&s, s.stack[--s.n_stack], err);
    close_fd(&s.upper);
    free(s.stack);
    if (r == 0)
        r = git_mark(in, out, err);
    if (r == 0)
        r = mark_tools(out, err);
    if (r < 0)
        changes_free(out);
    return r;
}
