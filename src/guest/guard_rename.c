/* guest/guard_rename.c: rename, performed for the caller
 *
 * A rename can make a protected name in three ways: it gives that name; it moves a directory that holds the rest of
 * a protected path to where the path's beginning is; it moves away a directory on the path, so that another can take
 * its place. All three are looked for, and with RENAME_EXCHANGE in both directions.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/guard_priv.h"

struct renaming {
    struct call *c;
    unsigned flags;
    bool directory;             /* one of the two is, or may be */
    bool copy;                  /* a judged copy takes the name (guard_git.h) */
    bool into_own;              /* what is in it goes into the file that lies over a protected one */
    mode_t from_type, to_type;  /* of what goes from each; to_type with RENAME_EXCHANGE only */
    struct ident from_id;
    struct place from, to;      /* last: what is before them is zeroed */
};

static bool
special_name(const struct place *p)
{
    return p->name[0] == '/' || (p->name_n == 1 && p->name[0] == '.') ||
           (p->name_n == 2 && p->name[0] == '.' && p->name[1] == '.');
}

static int
stat_name(const struct place *p, struct stat *st)
{
    unfilled char name[PATH_MAX + 1];

    return fstatat(p->dir, place_name(p, name), st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* Does the directory @p bring something protected with it to @to? */
static bool
brings(struct call *c, const struct place *p, const struct place *to, const char **rule)
{
    unfilled char name[PATH_MAX + 1];
    cleanup_close int dir = openat(p->dir, place_name(p, name), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return dir < 0 || rules_brings(c->g, dir, &to->dir_st, to->name, to->name_n, rule);
}

/* May the object (@st) leave @place? */
static int
may_leave(struct call *c, const struct place *place, const struct stat *st)
{
    const char *rule = "";

    switch (rules_place(c->g, place->dir, &place->dir_st, place->name, place->name_n, &rule)) {
    case PLACE_PROTECTED:
        return deny(c, place, rule, EACCES);
    case PLACE_INTERIOR:
        return deny(c, place, rule, EBUSY);
    case PLACE_FREE:
        break;
    }
    if (S_ISDIR(st->st_mode) && rules_holds(c->g, ident_of(st), &rule))
        return deny(c, place, rule, EBUSY);
    return git_call_move(c, place);
}

#define COME_INTO_OWN (GIT_CALL_COPY + 1)

/* May the object (@st) come from @from to @place? GIT_CALL_COPY: as a copy; COME_INTO_OWN: into the file of the
 * sandbox's own that lies there. */
static int
may_come(struct call *c, const struct place *from, const struct stat *st, struct place *place)
{
    const char *rule = "";

    switch (rules_place(c->g, place->dir, &place->dir_st, place->name, place->name_n, &rule)) {
    case PLACE_PROTECTED:
        if (S_ISREG(st->st_mode) && rules_own(c->g, place->dir, &place->dir_st, place->name, place->name_n))
            return COME_INTO_OWN;
        return deny(c, place, rule, EACCES);
    case PLACE_INTERIOR:
        if (!S_ISDIR(st->st_mode) || brings(c, from, place, &rule))
            return deny(c, place, rule, EACCES);
        break;
    case PLACE_FREE:
        break;
    }
    return git_call_come(c, from, st, place);
}

/* Of two mistakes the kernel names its favourite one, so a call that must fail is made, unless it would matter if it
 * did not fail after all. */
static bool
free_place(struct call *c, const struct place *p)
{
    const char *rule = "";

    return rules_place(c->g, p->dir, &p->dir_st, p->name, p->name_n, &rule) == PLACE_FREE;
}

static int
judge(struct renaming *r)
{
    struct stat from_st, to_st;
    int rc;

    /* the kernel's own answers: EBUSY, EINVAL, ENOTEMPTY; nothing can come of it */
    r->directory = true;
    if (special_name(&r->from) || special_name(&r->to))
        return 0;
    if ((rc = stat_name(&r->from, &from_st)) < 0)
        return free_place(r->c, &r->to) ? 0 : rc;
    if ((rc = may_leave(r->c, &r->from, &from_st)) < 0 || (rc = may_come(r->c, &r->from, &from_st, &r->to)) < 0)
        return rc;
    r->copy = rc == GIT_CALL_COPY;
    r->into_own = rc == COME_INTO_OWN;
    r->from_type = from_st.st_mode & S_IFMT;
    r->from_id = ident_of(&from_st);
    r->directory = S_ISDIR(from_st.st_mode) || (r->flags & GS_RENAME_EXCHANGE) != 0;
    if ((r->flags & GS_RENAME_EXCHANGE) == 0)
        return 0;
    if ((rc = stat_name(&r->to, &to_st)) < 0)
        return free_place(r->c, &r->from) ? 0 : rc;
    r->to_type = to_st.st_mode & S_IFMT;
    if ((rc = may_leave(r->c, &r->to, &to_st)) < 0)
        return rc;
    rc = may_come(r->c, &r->to, &to_st, &r->from);
    /* two copies cannot change places at once */
    return rc >= 0 && (r->copy || r->into_own || rc != 0) ? deny(r->c, &r->to, "git state: exchanged", EACCES) : rc;
}

static long
rename_raw(const struct place *from, const char *from_name, const struct place *to, const char *to_name, unsigned flags)
{
    return syscall(SYS_renameat2, from->dir, from_name, to->dir, to_name, flags);
}

/* All of @file is then in the sandbox's own file, which lies over @to as a mount. */
static int
put_own(struct call *c, const struct place *to, int file)
{
    char name[PATH_MAX + 1];
    cleanup_close int own = openat(to->dir, place_name(to, name),
                                   O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;

    if (own < 0)
        return -errno;
    /* the host may have put another file there since it was looked at, and its mount is gone */
    if (fstat(own, &st) < 0 || !S_ISREG(st.st_mode) || st.st_dev == to->dir_st.st_dev)
        return deny(c, to, "git state: config of the host's", EACCES);
    return -git_copy_whole(file, own);
}

/* A file that lies over another as a mount cannot be replaced: it gets what is in the one that was to take its place.
 * Not at once as by a rename, but nobody outside ever reads it. */
static int
write_own(const struct renaming *r)
{
    char from[PATH_MAX + 1];
    cleanup_close int file = -1;
    int rc;

    if (r->from.name[r->from.name_n] == '/' || r->to.name[r->to.name_n] == '/')
        return -ENOTDIR;
    if ((r->flags & GS_RENAME_NOREPLACE) != 0)
        return -EEXIST;
    file = openat(r->from.dir, place_name(&r->from, from), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0)
        return -errno;
    rc = put_own(r->c, &r->to, file);
    return rc == 0 && unlinkat(r->from.dir, from, 0) < 0 && errno != ENOENT ? -errno : rc;
}

/* The lock that this caller made becomes the file. */
static int
commit_lock(const struct renaming *r)
{
    const struct place *to = &r->to;
    int rc;

    if (to->name[to->name_n] == '/' || !rules_own(r->c->g, to->dir, &to->dir_st, to->name, to->name_n))
        return deny(r->c, to, "git state: lock", EACCES);
    if (r->flags != 0)
        return -EEXIST;
    if (!caller_waits(r->c))
        return ANSWERED;
    rc = put_own(r->c, to, lock_file(r->c));
    if (rc == 0)
        lock_drop(r->c);
    return rc;
}

/* What came from @from is at @at now (guard_after.c): may it be there? It need not be what was looked at before, which
 * another sandbox may have exchanged, and its type goes to @type. */
static int
came(struct call *c, const struct place *from, const struct place *at, mode_t *type)
{
    const char *rule = "a place that changed";
    struct stat st;
    int rc = stat_name(at, &st);

    /* gone again: by another sandbox, whose guard judged that */
    if (rc < 0)
        return rc == -ENOENT ? 0 : deny(c, at, rule, EACCES);
    *type = st.st_mode & S_IFMT;
    if (S_ISDIR(st.st_mode))
        rules_moved(&c->g->rules);
    switch (rules_place(c->g, at->dir, &at->dir_st, at->name, at->name_n, &rule)) {
    case PLACE_PROTECTED:
        return deny(c, at, rule, EACCES);
    case PLACE_INTERIOR:
        if (!S_ISDIR(st.st_mode) || brings(c, at, at, &rule))
            return deny(c, at, rule, EACCES);
        break;
    case PLACE_FREE:
        break;
    }
    return git_call_came(c, from, &st, at);
}

/* What was given back need not be what came from there: if it may not be at @at either, away. */
static void
judge_back(struct call *c, const struct place *from, const struct place *at)
{
    mode_t type = 0;

    if (came(c, from, at, &type) < 0)
        after_undo(at, type);
}

/* Back; where another sandbox has taken the old name meanwhile, away. */
static void
undo(struct renaming *r)
{
    char from[PATH_MAX + 1], to[PATH_MAX + 1];
    unsigned back = (r->flags & GS_RENAME_EXCHANGE) != 0 ? GS_RENAME_EXCHANGE : GS_RENAME_NOREPLACE;
    struct stat st;

    if (rename_raw(&r->to, place_name(&r->to, to), &r->from, place_name(&r->from, from), back) < 0) {
        after_undo(&r->to, r->from_type);
        if (back == GS_RENAME_EXCHANGE)
            after_undo(&r->from, r->to_type);
    } else if (back == GS_RENAME_EXCHANGE) {
        judge_back(r->c, &r->from, &r->to);
        judge_back(r->c, &r->to, &r->from);
    } else if (stat_name(&r->from, &st) < 0 || !ident_eq(r->from_id, ident_of(&st))) {
        judge_back(r->c, &r->to, &r->from);
    }
}

static int
judge_again(struct renaming *r)
{
    int rc;

    rules_next_call(&r->c->g->rules);
    rc = came(r->c, &r->from, &r->to, &r->from_type);
    if (rc == 0 && (r->flags & GS_RENAME_EXCHANGE) != 0)
        rc = came(r->c, &r->to, &r->from, &r->to_type);
    if (rc < 0)
        undo(r);
    return rc;
}

static int
perform(struct renaming *r)
{
    const char *rule = "";
    unfilled char name[PATH_MAX + 1];
    int rc;

    if (!caller_waits(r->c))
        return ANSWERED;
    if (r->directory)
        rules_moved(&r->c->g->rules);
    if (!r->copy && ((rc = held_put(r->c->g, &r->from)) < 0 ||
                     ((r->flags & GS_RENAME_EXCHANGE) != 0 && (rc = held_put(r->c->g, &r->to)) < 0)))
        return rc;
    if (r->into_own)
        return write_own(r);
    if (r->copy)
        return git_call_copy(r->c, &r->from, &r->to, r->flags);
    if (rename_raw(&r->from, r->from.name, &r->to, r->to.name, r->flags) < 0)
        return errno == EBUSY ? deny(r->c, &r->to, "bound by itself, so it cannot be replaced: bind its folder", EBUSY)
                              : -errno;
    (void)place_name(&r->to, name);
    if (!rules_ambiguous(r->c->g, r->to.name, r->to.name_n) ||
        !rules_aliased(r->c->g, r->to.dir, &r->to.dir_st, name, &rule))
        return judge_again(r);
    /* the file system took the name for a protected one */
    undo(r);
    return deny(r->c, &r->to, rule, EACCES);
}

int
call_rename(struct call *c)
{
    unfilled struct renaming r;
    unfilled char from[PATH_MAX], to[PATH_MAX];
    int olddir = AT_FDCWD, newdir = AT_FDCWD, rc;
    bool both;
    uint64_t old = c->args[0], new = c->args[1];

    memset(&r, 0, offsetof(struct renaming, from));
    r.c = c;
    place_init(&r.from);
    place_init(&r.to);
    if (c->args[4] != 0 && c->nr == SYS_renameat2)
        r.flags = (unsigned)c->args[4];
    if (c->nr == SYS_renameat2
#ifdef SYS_renameat
        || c->nr == SYS_renameat
#endif
    ) {
        olddir = (int)c->args[0];
        old = c->args[1];
        newdir = (int)c->args[2];
        new = c->args[3];
    }
    if ((r.flags & ~(GS_RENAME_NOREPLACE | GS_RENAME_EXCHANGE | GS_RENAME_WHITEOUT)) != 0 ||
        ((r.flags & GS_RENAME_EXCHANGE) != 0 && (r.flags & ~GS_RENAME_EXCHANGE) != 0))
        return -EINVAL;
    if ((r.flags & GS_RENAME_WHITEOUT) != 0)
        return -EPERM;      /* makes a device node, for overlay file systems */
    both = caller_strings(c, old, from, new, to);
    rc = both ? 0 : caller_string(c, old, from);
    if (rc == 0)
        rc = walk_parent(c, olddir, from, &r.from);
    if (rc == 0 && !both)
        rc = caller_string(c, new, to);
    if (rc == 0)
        rc = walk_parent_as(c, newdir, to, olddir, from, &r.from, &r.to);
    if (rc == 0 && lock_file(c) >= 0 && lock_is(c->g, &r.from)) {
        rc = commit_lock(&r);
    } else if (rc == 0) {
        rc = judge(&r);
        if (rc == 0)
            rc = perform(&r);
    }
    place_close(&r.to);
    place_close(&r.from);
    return rc;
}
