/* guest/guard_rules.c: is this place one of those that must not come into being?
 *
 * Decided by identity, not by text: a name counts in a directory whose device and inode number are those that the
 * rule's own directory has at this moment, so the same tree seen through two mounts, or entered through a descriptor,
 * is the same tree. Names are compared without regard to ASCII case, on every file system: `.GIT/hooks` is
 * `.git/hooks` where it matters, and nobody misses it where it does not. What a file system may fold beyond ASCII is
 * caught after the fact (rules_aliased), before the caller gets it into its hands.
 *
 * Most names occur in no rule at all; a hash lookup says so, and no system call is made.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/guard_priv.h"

#define UP_MAX PATH_MAX         /* levels up from a directory; deeper is refused */
#define SUSPECTS_MAX 32         /* more: all are looked at */

/* What a path of the rules leads to at this moment. Links on the way are followed: only the host can have made them. */
enum now {
    NOW_ABSENT,
    NOW_THERE,
    NOW_SHUT,                   /* cannot be told: behind a directory that may not be searched, which is told instead */
};

/* What was closed to reading is a folder of the sandbox's own in its place, which nobody in here can open: what the
 * rules name behind it is not there. */
static bool
is_mask(int root, const char *path)
{
    cleanup_close int fd = openat(root, path[0] == '\0' ? "." : path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct statfs fs;

    return fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == GS_TMPFS_MAGIC && (fs.f_flags & ST_RDONLY) != 0;
}

/* Who owns a directory can shut it, act in it through descriptors that it holds, and open it again: until then what is
 * behind it counts as everywhere that it could be. A directory of another owner was not shut from in here. */
static enum now
behind_shut(int root, const char *path, struct stat *st)
{
    char above[2 * PATH_MAX];

    snprintf(above, sizeof(above), "%s", path);
    do {
        char *slash = strrchr(above, '/');

        *(slash != NULL ? slash : above) = '\0';
        if (fstatat(root, above, st, above[0] == '\0' ? AT_EMPTY_PATH : 0) == 0)
            return st->st_uid == geteuid() && !is_mask(root, above) ? NOW_SHUT : NOW_ABSENT;
    } while (above[0] != '\0');
    return NOW_SHUT;
}

static enum now
look_now(int root, const char *path, struct stat *st)
{
    if (fstatat(root, path, st, path[0] == '\0' ? AT_EMPTY_PATH : 0) == 0)
        return NOW_THERE;
    return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? NOW_ABSENT : behind_shut(root, path, st);
}

/* The directory that @index stands for. */
static enum now
dir_now(const struct rules *r, uint32_t index, struct ident *out)
{
    const struct name_dir *d = &r->dirs[index];
    struct stat st;
    enum now now = look_now(r->roots[d->root].fd, d->path, &st);

    if (now != NOW_ABSENT)
        *out = ident_of(&st);
    return now;
}

/* Whether @dir_st is that directory, or could be. */
static bool
is_dir_now(const struct rules *r, uint32_t index, const struct stat *dir_st)
{
    struct ident id;
    enum now now = dir_now(r, index, &id);

    return now == NOW_SHUT || (now == NOW_THERE && ident_eq(id, ident_of(dir_st)));
}

static enum now
entry_now(const struct rules *r, const struct name_entry *e, struct stat *st)
{
    const struct name_dir *d = &r->dirs[e->dir];
    unfilled char path[2 * PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s%s%s", d->path, d->path[0] != '\0' ? "/" : "", e->name);

    return n > 0 && (size_t)n < sizeof(path) ? look_now(r->roots[d->root].fd, path, st) : NOW_ABSENT;
}

/* Walk the entries of one hash. */
static const struct name_entry *
next_entry(const struct rules *r, uint32_t hash, const char *name, size_t n, size_t *step)
{
    for (;; ++*step) {
        uint32_t slot = r->table[(hash + *step) & r->table_mask];
        const struct name_entry *e;

        if (slot == 0)
            return NULL;
        e = &r->entries[slot - 1];
        if (e->hash == hash && name_same(e->name, name, n)) {
            ++*step;
            return e;
        }
    }
}

/* Might a file system take @name for another name? Non-ASCII folding, short names, streams, cut dots and blanks. */
static bool
ambiguous(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)p[i] >= 0x80 || p[i] == '~' || p[i] == ':' || p[i] == '\\')
            return true;
    return n > 0 && (p[n - 1] == '.' || p[n - 1] == ' ');
}

/* The leaves (protected or open again) that could be @dir or lie above it, judging by the names on its path. */
struct suspects {
    bool all;                   /* the path cannot be judged by its text */
    size_t n;
    uint32_t entry[SUSPECTS_MAX];
};

static void
suspect_name(const struct rules *r, const char *p, size_t n, struct suspects *out)
{
    const struct name_entry *e;
    size_t step = 0;

    out->all |= ambiguous(p, n);
    while ((e = next_entry(r, name_hash(p, n), p, n, &step)) != NULL) {
        if (!e->protect && !e->allow)
            continue;
        if (out->n == SUSPECTS_MAX)
            out->all = true;
        else
            out->entry[out->n++] = (uint32_t)(e - r->entries);
    }
}

struct str
rules_path(struct guard *g, int dir, const struct stat *dir_st)
{
    struct rules *r = &g->rules;
    ssize_t n;

    if (!r->path.valid || !ident_eq(r->path.id, ident_of(dir_st))) {
        n = dir_text(g, dir, r->path.text, sizeof(r->path.text));
        r->path.n = n > 0 && n < (ssize_t)sizeof(r->path.text) ? (size_t)n : 0;
        r->path.id = ident_of(dir_st);
        r->path.valid = true;
    }
    return (struct str){ r->path.text, r->path.n };
}

bool
rules_path_is_plain(const char *p, size_t n)
{
    size_t at = 1;

    if (n < 2 || p[0] != '/' || p[n - 1] != '/')
        return false;
    while (at < n) {
        size_t len = (size_t)((const char *)memchr(p + at, '/', n - at) - (p + at));

        /* "." and ".." end with a dot */
        if (len == 0 || ambiguous(p + at, len))
            return false;
        at += len + 1;
    }
    return true;
}

void
rules_path_is(struct rules *r, const struct stat *dir_st, const char *p, size_t n)
{
    r->path.n = n - 1;
    memcpy(r->path.text, p, n - 1);
    r->path.id = ident_of(dir_st);
    r->path.valid = true;
}

static void
suspect_path(struct guard *g, int dir, const struct stat *dir_st, struct suspects *out)
{
    const struct rules *r = &g->rules;
    struct str path = rules_path(g, dir, dir_st);

    out->n = 0;
    out->all = path.n == 0;
    for (size_t at = 0; !out->all && at < path.n;) {
        const char *slash = memchr(path.p + at, '/', path.n - at);
        size_t len = slash != NULL ? (size_t)(slash - path.p) - at : path.n - at;

        if (len > 0)
            suspect_name(r, path.p + at, len, out);
        at += len + 1;
    }
}

/* What the suspects are at this moment. */
struct leaf_now {
    const struct name_entry *entry;
    struct ident id;
    bool shut;                  /* somewhere below @id, which is closed for that as long as it is shut */
};

static size_t
leaves_now(const struct rules *r, const struct suspects *s, struct leaf_now *out)
{
    size_t n = 0, total = s->all ? r->n_entries : s->n;

    for (size_t i = 0; i < total; i++) {
        const struct name_entry *e = &r->entries[s->all ? i : s->entry[i]];
        struct stat st;
        enum now now = e->protect || e->allow ? entry_now(r, e, &st) : NOW_ABSENT;

        if (now == NOW_THERE || (now == NOW_SHUT && e->protect))
            out[n++] = (struct leaf_now){ e, ident_of(&st), now == NOW_SHUT };
    }
    return n;
}

/* @self: @id is the directory that is asked about. One that is shut can be opened again. */
static const struct name_entry *
leaf_of(const struct leaf_now *leaves, size_t n, struct ident id, bool self)
{
    const struct name_entry *found = NULL;

    for (size_t i = 0; i < n; i++) {
        if (!ident_eq(leaves[i].id, id) || (self && leaves[i].shut))
            continue;
        found = leaves[i].entry;
        if (found->protect)
            return found;
    }
    return found;
}

static bool
known_free(const struct rules *r, struct ident id)
{
    for (size_t i = 0; i < r->n_free_dirs; i++)
        if (ident_eq(r->free_dirs[i].id, id))
            return true;
    return false;
}

static void
remember_free(struct rules *r, int dir)
{
    struct stat st;
    int fd;

    if (fstat(dir, &st) < 0 || known_free(r, ident_of(&st)))
        return;
    /* not @dir itself, which may be the caller's, with a lock of his */
    fd = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (r->n_free_dirs < FREE_DIRS_MAX)
        r->n_free_dirs++;
    else
        close(r->free_dirs[r->next_free_dir].fd);
    r->free_dirs[r->next_free_dir].fd = fd;
    r->free_dirs[r->next_free_dir].id = ident_of(&st);
    r->next_free_dir = (r->next_free_dir + 1) % FREE_DIRS_MAX;
}

void
rules_moved(struct rules *r)
{
    for (size_t i = 0; i < r->n_free_dirs; i++)
        close(r->free_dirs[i].fd);
    r->n_free_dirs = r->next_free_dir = 0;
}

/* The directory above @cur; by its path where @cur itself is shut. */
static int
open_up(const struct guard *g, int cur, const struct stat *st)
{
    char name[OBJECT_NAME_ROOM];
    int up = openat(cur, "..", O_PATH | O_CLOEXEC);

    return up >= 0 || errno != EACCES ? up : object_parent(g, cur, st, name);
}

static bool
any_shut(const struct leaf_now *leaves, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (leaves[i].shut)
            return true;
    return false;
}

/* Up from @dir to the top, or to a directory that was climbed from before (@known): the first leaf met decides. */
static enum place_kind
climb(const struct guard *g, int dir, const struct leaf_now *leaves, size_t n, bool known, const char **rule)
{
    cleanup_close int cur = fcntl(dir, F_DUPFD_CLOEXEC, 0);
    const struct rules *r = &g->rules;
    struct ident before = { 0, 0 };

    for (int level = 0; cur >= 0 && level < UP_MAX; level++) {
        const struct name_entry *e;
        struct stat st;
        int up;

        if (fstat(cur, &st) < 0)
            break;
        if (level > 0 && ident_eq(ident_of(&st), before))
            return PLACE_FREE;      /* the top */
        before = ident_of(&st);
        e = leaf_of(leaves, n, before, level == 0);
        if (e != NULL) {
            *rule = e->rule;
            return e->protect ? PLACE_PROTECTED : PLACE_FREE;
        }
        if (known && known_free(r, before))
            return PLACE_FREE;
        up = open_up(g, cur, &st);
        close_fd(&cur);
        cur = up;
    }
    /* cannot be told */
    *rule = "unreachable directory";
    return PLACE_PROTECTED;
}

static enum place_kind
below(struct guard *g, int dir, const struct stat *dir_st, const char **rule)
{
    struct rules *r = &g->rules;
    enum place_kind kind;
    struct leaf_now few[SUSPECTS_MAX];
    cleanup_free struct leaf_now *many = NULL;
    struct leaf_now *leaves = few;
    struct suspects s;
    bool known;
    size_t n;

    if (r->n_entries == 0)
        return PLACE_FREE;
    suspect_path(g, dir, dir_st, &s);
    if (s.all) {
        leaves = many = calloc(r->n_entries, sizeof(*many));
        if (many == NULL) {
            *rule = "out of memory";
            return PLACE_PROTECTED;
        }
    }
    n = leaves_now(r, &s, leaves);
    if (n == 0)
        return PLACE_FREE;
    /* what is free is so for the leaves that could be told */
    known = !any_shut(leaves, n);
    kind = climb(g, dir, leaves, n, known, rule);
    if (kind == PLACE_FREE && known)
        remember_free(r, dir);
    return kind;
}

enum place_kind
rules_below(struct guard *g, int dir, const char **rule)
{
    struct stat st;

    *rule = "unreachable directory";
    return fstat(dir, &st) < 0 ? PLACE_PROTECTED : below(g, dir, &st, rule);
}

bool
rules_no_name(const struct guard *g, struct str path)
{
    const struct rules *r = &g->rules;

    for (size_t at = 0; at < path.n;) {
        const char *slash = memchr(path.p + at, '/', path.n - at);
        size_t len = slash != NULL ? (size_t)(slash - path.p) - at : path.n - at, step = 0;

        if (ambiguous(path.p + at, len) ||
            next_entry(r, name_hash(path.p + at, len), path.p + at, len, &step) != NULL)
            return false;
        at += len + 1;
    }
    return path.n > 0 && path.p[0] == '/';
}

enum place_kind
rules_place(struct guard *g, int dir, const struct stat *dir_st, const char *name, size_t name_n, const char **rule)
{
    const struct rules *r = &g->rules;
    enum place_kind kind = PLACE_FREE;
    const struct name_entry *e;
    bool open_again = false;
    size_t step = 0;

    if (r->n_entries == 0)
        return PLACE_FREE;
    while ((e = next_entry(r, name_hash(name, name_n), name, name_n, &step)) != NULL) {
        if (!is_dir_now(r, e->dir, dir_st))
            continue;
        if (e->protect) {
            *rule = e->rule;
            return PLACE_PROTECTED;
        }
        open_again |= e->allow;
        if (e->interior) {
            kind = PLACE_INTERIOR;
            *rule = e->rule;
        }
    }
    if (kind != PLACE_FREE || open_again)
        return kind;
    if (!g->rules.below.valid || !ident_eq(g->rules.below.id, ident_of(dir_st))) {
        g->rules.below.kind = below(g, dir, dir_st, &g->rules.below.rule);
        g->rules.below.id = ident_of(dir_st);
        g->rules.below.valid = true;
    }
    if (g->rules.below.kind != PLACE_FREE)
        *rule = g->rules.below.rule;
    return g->rules.below.kind;
}

bool
rules_own(const struct guard *g, int dir, const struct stat *dir_st, const char *name, size_t name_n)
{
    const struct rules *r = &g->rules;
    const struct name_entry *e;
    struct stat st;
    size_t step = 0;

    while ((e = next_entry(r, name_hash(name, name_n), name, name_n, &step)) != NULL)
        if (e->own && is_dir_now(r, e->dir, dir_st))
            /* where the host has put another file there, its mount is gone with the one before */
            return fstatat(dir, e->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
                   st.st_dev != dir_st->st_dev;
    return false;
}

bool
rules_same_object(struct guard *g, const struct stat *st, const char **rule)
{
    const struct rules *r = &g->rules;

    for (size_t i = 0; i < r->n_entries; i++) {
        struct stat now;
        enum now is = r->entries[i].protect ? entry_now(r, &r->entries[i], &now) : NOW_ABSENT;

        if (is == NOW_SHUT || (is == NOW_THERE && ident_eq(ident_of(&now), ident_of(st)))) {
            *rule = r->entries[i].rule;
            return true;
        }
    }
    return false;
}

/* Does the directory @source hold what must not be in a directory that will be @dir_index? A name on the way that is
 * no plain directory may lead anywhere. */
static bool
holds_below(const struct rules *r, int source, uint32_t dir_index, const char **rule)
{
    for (size_t i = 0; i < r->n_entries; i++) {
        const struct name_entry *e = &r->entries[i];
        cleanup_close int next = -1;
        struct stat st;

        if (e->dir != dir_index || (!e->protect && !e->interior))
            continue;
        *rule = e->rule;
        if (fstatat(source, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
            if (errno == ENOENT)
                continue;
            return true;
        }
        if (e->protect || !S_ISDIR(st.st_mode))
            return true;
        next = openat(source, e->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0 || holds_below(r, next, e->child, rule))
            return true;
    }
    return false;
}

bool
rules_brings(struct guard *g, int source, const struct stat *dir_st, const char *name, size_t name_n,
             const char **rule)
{
    const struct rules *r = &g->rules;
    const struct name_entry *e;
    size_t step = 0;

    while ((e = next_entry(r, name_hash(name, name_n), name, name_n, &step)) != NULL) {
        if (e->interior && is_dir_now(r, e->dir, dir_st) && holds_below(r, source, e->child, rule))
            return true;
    }
    return false;
}

/* 1: @id is @fd or on the way from there to the top; 0: it is not; -1: the way cannot be walked to its end. */
int
rules_on_the_way(int fd, struct ident id)
{
    cleanup_close int cur = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    struct ident before = { 0, 0 };

    for (int level = 0; cur >= 0 && level < UP_MAX; level++) {
        struct stat st;
        int up;

        if (fstat(cur, &st) < 0)
            return -1;
        if (ident_eq(ident_of(&st), id))
            return 1;
        if (level > 0 && ident_eq(ident_of(&st), before))
            return 0;
        before = ident_of(&st);
        up = openat(cur, "..", O_PATH | O_CLOEXEC);
        if (up < 0)
            return -1;
        close_fd(&cur);
        cur = up;
    }
    return -1;
}

bool
rules_holds(struct guard *g, struct ident id, const char **rule)
{
    const struct rules *r = &g->rules;

    for (size_t i = 0; i < r->n_dirs; i++) {
        struct ident is;
        enum now now = r->dirs[i].path[0] != '\0' ? dir_now(r, (uint32_t)i, &is) : NOW_ABSENT;

        if (now == NOW_SHUT || (now == NOW_THERE && ident_eq(is, id))) {
            *rule = r->roots[r->dirs[i].root].path;
            return true;
        }
    }
    for (size_t i = 0; i < r->n_roots; i++) {
        /* above a directory that cannot be entered nobody in here can rename */
        if (rules_on_the_way(r->roots[i].fd, id) == 1) {
            *rule = r->roots[i].path;
            return true;
        }
    }
    return false;
}

/* --- names that a file system takes for others */

bool
rules_ambiguous(const struct guard *g, const char *name, size_t name_n)
{
    return (g->rules.n_entries > 0 || (g->flags & GUARD_GIT) != 0) && ambiguous(name, name_n);
}

bool
rules_aliased(struct guard *g, int dir, const struct stat *dir_st, const char *name, const char **rule)
{
    const struct rules *r = &g->rules;
    struct stat made;

    if (fstatat(dir, name, &made, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    *rule = "git state: another spelling of a name";
    if (git_aliased(g, dir, dir_st, &made))
        return true;
    for (size_t i = 0; i < r->n_entries; i++) {
        const struct name_entry *e = &r->entries[i];
        struct stat st;

        if ((e->protect || e->interior) && is_dir_now(r, e->dir, dir_st) &&
            fstatat(dir, e->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && ident_eq(ident_of(&st), ident_of(&made))) {
            *rule = e->rule;
            return true;
        }
    }
    return false;
}
