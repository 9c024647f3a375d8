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
#include "guest/guard_rules.h"

#define SUSPECTS_MAX 32         /* more: all are looked at */

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

/* The directory that @index stands for in the root @root. */
enum now
rules_dir_now(const struct rules *r, uint32_t index, size_t root, struct ident *out)
{
    struct stat st;
    enum now now = look_now(r->roots[root].fd, r->dirs[index].path, &st);

    if (now != NOW_ABSENT)
        *out = ident_of(&st);
    return now;
}

/* Whether @dir_st is that directory, or could be. */
static bool
rules_is_dir_now(const struct rules *r, uint32_t index, size_t root, const struct stat *dir_st)
{
    struct ident id;
    enum now now;

    if (r->dirs[index].path[0] == '\0' && r->roots[root].keeps)
        return ident_eq(r->roots[root].id, ident_of(dir_st));
    now = rules_dir_now(r, index, root, &id);
    return now == NOW_SHUT || (now == NOW_THERE && ident_eq(id, ident_of(dir_st)));
}

static enum now
entry_now(const struct rules *r, const struct name_entry *e, size_t root, struct stat *st)
{
    const struct name_dir *d = &r->dirs[e->dir];
    unfilled char path[2 * PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s%s%s", d->path, d->path[0] != '\0' ? "/" : "", e->name);

    return n > 0 && (size_t)n < sizeof(path) ? look_now(r->roots[root].fd, path, st) : NOW_ABSENT;
}

/* The same for many entries of one root after another: of a directory that is not there it is asked once. Begin with
 * looks_begin(): what was so in another call may be otherwise by now. */
static void
looks_begin(struct rules *r, size_t root)
{
    r->looked.root = root;
    memset(r->looked.dirs, 0, r->n_dirs);
}

static enum now
entry_looked(struct rules *r, const struct name_entry *e, struct stat *st)
{
    uint8_t *dir = &r->looked.dirs[e->dir];
    struct ident id;

    if (r->dirs[e->dir].path[0] != '\0' && *dir == 0)
        *dir = (uint8_t)(rules_dir_now(r, e->dir, r->looked.root, &id) + 1);
    return *dir == NOW_ABSENT + 1 ? NOW_ABSENT : entry_now(r, e, r->looked.root, st);
}

const char *
rules_text(const struct rules *r, const struct name_entry *e, size_t root, char text[RULE_TEXT_MAX])
{
    const char *path = r->roots[root].path;

    snprintf(text, RULE_TEXT_MAX, "%s/%s", strcmp(path, "/") == 0 ? "" : path, e->rule);
    return text;
}

/* Walk the entries of one hash. */
const struct name_entry *
rules_next_entry(const struct rules *r, uint32_t hash, const char *name, size_t n, size_t *step)
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
bool
rules_is_ambiguous(const char *p, size_t n)
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

    out->all |= rules_is_ambiguous(p, n);
    while ((e = rules_next_entry(r, name_hash(p, n), p, n, &step)) != NULL) {
        if (!guard_roots_any(&e->protect) && !guard_roots_any(&e->allow))
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
        if (len == 0 || rules_is_ambiguous(p + at, len))
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
    size_t root;
    struct ident id;
    bool protect;               /* or open again */
    bool shut;                  /* somewhere below @id, which is closed for that as long as it is shut */
};

struct leaves_now {
    struct leaf_now few[SUSPECTS_MAX];
    struct leaf_now *v;         /* @few, or more */
    size_t n, room;
};

static int
leaves_add(struct leaves_now *out, const struct leaf_now *leaf)
{
    struct leaf_now *bigger;

    if (out->n == out->room) {
        bigger = reallocarray(out->v == out->few ? NULL : out->v, 2 * out->room, sizeof(*bigger));
        if (bigger == NULL)
            return -1;
        if (out->v == out->few)
            memcpy(bigger, out->few, sizeof(out->few));
        out->v = bigger;
        out->room *= 2;
    }
    out->v[out->n++] = *leaf;
    return 0;
}

static void
leaves_free(struct leaves_now *leaves)
{
    if (leaves->v != leaves->few)
        free(leaves->v);
}

/* 0, or -1: no memory. */
static int
leaves_now(struct rules *r, const struct suspects *s, struct leaves_now *out)
{
    size_t total = s->all ? r->n_entries : s->n;

    for (size_t root = 0; root < r->n_roots; root++) {
        looks_begin(r, root);
        for (size_t i = 0; i < total; i++) {
            const struct name_entry *e = &r->entries[s->all ? i : s->entry[i]];
            bool protect = guard_roots_has(&e->protect, root);
            struct stat st;
            enum now now = protect || guard_roots_has(&e->allow, root) ? entry_looked(r, e, &st) : NOW_ABSENT;

            if ((now == NOW_THERE || (now == NOW_SHUT && protect)) &&
                leaves_add(out, &(struct leaf_now){ e, root, ident_of(&st), protect, now == NOW_SHUT }) < 0)
                return -1;
        }
    }
    return 0;
}

/* @self: @id is the directory that is asked about. One that is shut can be opened again. */
static const struct leaf_now *
leaf_of(const struct leaves_now *leaves, struct ident id, bool self)
{
    const struct leaf_now *found = NULL;

    for (size_t i = 0; i < leaves->n; i++) {
        if (!ident_eq(leaves->v[i].id, id) || (self && leaves->v[i].shut))
            continue;
        found = &leaves->v[i];
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
any_shut(const struct leaves_now *leaves)
{
    for (size_t i = 0; i < leaves->n; i++)
        if (leaves->v[i].shut)
            return true;
    return false;
}

/* Up from @dir to the top, or to a directory that was climbed from before (@known): the first leaf met decides. */
static enum place_kind
climb(const struct guard *g, int dir, const struct leaves_now *leaves, bool known, char text[RULE_TEXT_MAX],
      const char **rule)
{
    cleanup_close int cur = fcntl(dir, F_DUPFD_CLOEXEC, 0);
    const struct rules *r = &g->rules;
    struct ident before = { 0, 0 };

    for (int level = 0; cur >= 0 && level < UP_MAX; level++) {
        const struct leaf_now *leaf;
        struct stat st;
        int up;

        if (fstat(cur, &st) < 0)
            break;
        if (level > 0 && ident_eq(ident_of(&st), before))
            return PLACE_FREE;      /* the top */
        before = ident_of(&st);
        leaf = leaf_of(leaves, before, level == 0);
        if (leaf != NULL) {
            *rule = rules_text(r, leaf->entry, leaf->root, text);
            return leaf->protect ? PLACE_PROTECTED : PLACE_FREE;
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
below_leaves(struct guard *g, int dir, const struct leaves_now *leaves, char text[RULE_TEXT_MAX], const char **rule)
{
    /* what is free is so for the leaves that could be told */
    bool known = !any_shut(leaves);
    enum place_kind kind;

    if (leaves->n == 0)
        return PLACE_FREE;
    kind = climb(g, dir, leaves, known, text, rule);
    if (kind == PLACE_FREE && known)
        remember_free(&g->rules, dir);
    return kind;
}

static enum place_kind
below(struct guard *g, int dir, const struct stat *dir_st, char text[RULE_TEXT_MAX], const char **rule)
{
    struct rules *r = &g->rules;
    enum place_kind kind = PLACE_PROTECTED;
    unfilled struct leaves_now leaves;
    struct suspects s;

    if (r->n_entries == 0)
        return PLACE_FREE;
    suspect_path(g, dir, dir_st, &s);
    if (!s.all && s.n == 0)
        return PLACE_FREE;
    leaves.v = leaves.few;
    leaves.room = SUSPECTS_MAX;
    leaves.n = 0;
    if (leaves_now(r, &s, &leaves) < 0)
        *rule = "out of memory";
    else
        kind = below_leaves(g, dir, &leaves, text, rule);
    leaves_free(&leaves);
    return kind;
}

enum place_kind
rules_below(struct guard *g, int dir, const char **rule)
{
    struct stat st;

    *rule = "unreachable directory";
    return fstat(dir, &st) < 0 ? PLACE_PROTECTED : below(g, dir, &st, g->rules.text, rule);
}

bool
rules_no_name(const struct guard *g, struct str path)
{
    const struct rules *r = &g->rules;

    for (size_t at = 0; at < path.n;) {
        const char *slash = memchr(path.p + at, '/', path.n - at);
        size_t len = slash != NULL ? (size_t)(slash - path.p) - at : path.n - at, step = 0;

        if (rules_is_ambiguous(path.p + at, len) ||
            rules_next_entry(r, name_hash(path.p + at, len), path.p + at, len, &step) != NULL)
            return false;
        at += len + 1;
    }
    return path.n > 0 && path.p[0] == '/';
}

/* What the entry says of its name in the directory @dir_st, in whichever root that is. */
static enum place_kind
entry_place(struct rules *r, const struct name_entry *e, const struct stat *dir_st, bool *open_again, const char **rule)
{
    enum place_kind kind = PLACE_FREE;
    const struct guard_roots *in = &r->dirs[e->dir].in;

    for (size_t i = guard_roots_next(in, 0, r->n_roots); i < r->n_roots; i = guard_roots_next(in, i + 1, r->n_roots)) {
        bool protect = guard_roots_has(&e->protect, i), interior = guard_roots_has(&e->interior, i);
        bool allow = guard_roots_has(&e->allow, i);

        if ((!protect && !interior && !allow) || !rules_is_dir_now(r, e->dir, i, dir_st))
            continue;
        if (protect || interior)
            *rule = rules_text(r, e, i, r->text);
        if (protect)
            return PLACE_PROTECTED;
        *open_again |= allow;
        kind = interior ? PLACE_INTERIOR : kind;
    }
    return kind;
}

enum place_kind
rules_place(struct guard *g, int dir, const struct stat *dir_st, const char *name, size_t name_n, const char **rule)
{
    struct rules *r = &g->rules;
    enum place_kind kind = PLACE_FREE;
    const struct name_entry *e;
    bool open_again = false;
    size_t step = 0;

    if (r->n_entries == 0)
        return PLACE_FREE;
    while ((e = rules_next_entry(r, name_hash(name, name_n), name, name_n, &step)) != NULL) {
        enum place_kind here = entry_place(r, e, dir_st, &open_again, rule);
        if (here == PLACE_PROTECTED)
            return here;
        kind = here == PLACE_INTERIOR ? here : kind;
    }
    if (kind != PLACE_FREE || open_again)
        return kind;
    if (!r->below.valid || !ident_eq(r->below.id, ident_of(dir_st))) {
        r->below.kind = below(g, dir, dir_st, r->below.text, &r->below.rule);
        r->below.id = ident_of(dir_st);
        r->below.valid = true;
    }
    if (r->below.kind != PLACE_FREE)
        *rule = r->below.rule;
    return r->below.kind;
}

/* The first root from @from on in which @dir_st is the directory of @e and @in has it; the number of roots: none. */
size_t
rules_root_of(const struct rules *r, const struct name_entry *e, const struct guard_roots *in, size_t from,
        const struct stat *dir_st)
{
    size_t i = guard_roots_next(in, from, r->n_roots);

    while (i < r->n_roots && !rules_is_dir_now(r, e->dir, i, dir_st))
        i = guard_roots_next(in, i + 1, r->n_roots);
    return i;
}

bool
rules_own(const struct guard *g, int dir, const struct stat *dir_st, const char *name, size_t name_n)
{
    const struct rules *r = &g->rules;
    const struct name_entry *e;
    struct stat st;
    size_t step = 0;

    while ((e = rules_next_entry(r, name_hash(name, name_n), name, name_n, &step)) != NULL)
        /* just this spelling; and where the host has put another file there, its mount is gone with the one before */
        if (strlen(e->name) == name_n && memcmp(e->name, name, name_n) == 0 &&
            rules_root_of(r, e, &e->own, 0, dir_st) < r->n_roots &&
            fstatat(dir, e->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) && st.st_dev != dir_st->st_dev)
            return true;
    return false;
}

bool
rules_same_object(struct guard *g, const struct stat *st, const char **rule)
{
    struct rules *r = &g->rules;

    for (size_t root = 0; root < r->n_roots; root++) {
        looks_begin(r, root);
        for (size_t i = 0; i < r->n_entries; i++) {
            const struct name_entry *e = &r->entries[i];
            struct stat now;
            enum now is = guard_roots_has(&e->protect, root) ? entry_looked(r, e, &now) : NOW_ABSENT;

            if (is == NOW_SHUT || (is == NOW_THERE && ident_eq(ident_of(&now), ident_of(st)))) {
                *rule = rules_text(r, e, root, r->text);
                return true;
            }
        }
    }
    return false;
}
