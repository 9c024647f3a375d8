/* guest/guard_rules_move.c: what a moved directory brings along, and names that are others (see guard_rules.c) */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "guest/guard_rules.h"

#define PASSED_MAX 32

/* Does the directory @source hold what must not be in a directory that will be @dir_index of the root @root? A name on
 * the way that is no plain directory may lead anywhere. */
static bool
holds_below(struct rules *r, int source, uint32_t dir_index, size_t root, const char **rule)
{
    for (size_t i = 0; i < r->n_entries; i++) {
        const struct name_entry *e = &r->entries[i];
        bool protect = guard_roots_has(&e->protect, root);
        cleanup_close int next = -1;
        struct stat st;

        if (e->dir != dir_index || (!protect && !guard_roots_has(&e->interior, root)))
            continue;
        *rule = rules_text(r, e, root, r->text);
        if (fstatat(source, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
            if (errno == ENOENT)
                continue;
            return true;
        }
        if (protect || !S_ISDIR(st.st_mode))
            return true;
        next = openat(source, e->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0 || holds_below(r, next, e->child, root, rule))
            return true;
    }
    return false;
}

bool
rules_brings(struct guard *g, int source, const struct stat *dir_st, const char *name, size_t name_n,
             const char **rule)
{
    struct rules *r = &g->rules;
    const struct name_entry *e;
    size_t step = 0;

    while ((e = rules_next_entry(r, name_hash(name, name_n), name, name_n, &step)) != NULL)
        for (size_t i = rules_root_of(r, e, &e->interior, 0, dir_st); i < r->n_roots;
             i = rules_root_of(r, e, &e->interior, i + 1, dir_st))
            if (holds_below(r, source, e->child, i, rule))
                return true;
    return false;
}

/* The ways up from hundreds of roots lead over the same directories: those by which earlier ones of this call came to
 * the top. Not those of the same way: a tree that is mounted within itself leads over a directory twice. */
struct passed {
    struct ident id[PASSED_MAX];
    size_t n, before;           /* @before: of the earlier ways */
};

static bool
was_passed(struct passed *passed, struct ident id)
{
    for (size_t i = 0; i < passed->before; i++)
        if (ident_eq(passed->id[i], id))
            return true;
    if (passed->n < PASSED_MAX)
        passed->id[passed->n++] = id;
    return false;
}

/* 1: @id is @fd or on the way from there to the top; 0: it is not; -1: the way cannot be walked to its end. @passed may
 * be NULL. */
static int
on_the_way(int fd, struct ident id, struct passed *passed)
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
        /* a root itself is no other's way, mostly */
        if (level > 0 && (ident_eq(ident_of(&st), before) || (passed != NULL && was_passed(passed, ident_of(&st)))))
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

int
rules_on_the_way(int fd, struct ident id)
{
    return on_the_way(fd, id, NULL);
}

/* Whether @id is a directory between a root and a name, or could be one that is shut. */
static bool
is_between(const struct rules *r, size_t root, struct ident id)
{
    for (size_t i = 0; i < r->n_dirs; i++) {
        struct ident is;
        enum now now = r->dirs[i].path[0] != '\0' && guard_roots_has(&r->dirs[i].in, root)
                           ? rules_dir_now(r, (uint32_t)i, root, &is) : NOW_ABSENT;

        if (now == NOW_SHUT || (now == NOW_THERE && ident_eq(is, id)))
            return true;
    }
    return false;
}

bool
rules_holds(struct guard *g, struct ident id, const char **rule)
{
    const struct rules *r = &g->rules;
    struct passed passed = { .n = 0 };

    for (size_t i = 0; i < r->n_roots; i++) {
        int way = is_between(r, i, id) ? 1 : on_the_way(r->roots[i].fd, id, &passed);

        /* above a directory that cannot be entered nobody in here can rename */
        if (way == 1) {
            *rule = r->roots[i].path;
            return true;
        }
        if (way == 0)
            passed.before = passed.n;
        else
            passed.n = passed.before;
    }
    return false;
}

/* --- names that a file system takes for others */

bool
rules_ambiguous(const struct guard *g, const char *name, size_t name_n)
{
    return (g->rules.n_entries > 0 || (g->flags & GUARD_GIT) != 0) && rules_is_ambiguous(name, name_n);
}

bool
rules_aliased(struct guard *g, int dir, const struct stat *dir_st, const char *name, const char **rule)
{
    struct rules *r = &g->rules;
    struct stat made;

    if (fstatat(dir, name, &made, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    *rule = "git state: another spelling of a name";
    if (git_aliased(g, dir, dir_st, &made))
        return true;
    for (size_t i = 0; i < r->n_entries; i++) {
        const struct name_entry *e = &r->entries[i];
        struct stat st;
        size_t root;

        /* most names are not in this directory */
        if (fstatat(dir, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !ident_eq(ident_of(&st), ident_of(&made)))
            continue;
        root = rules_root_of(r, e, &e->protect, 0, dir_st);
        root = root < r->n_roots ? root : rules_root_of(r, e, &e->interior, 0, dir_st);
        if (root < r->n_roots) {
            *rule = rules_text(r, e, root, r->text);
            return true;
        }
    }
    return false;
}
