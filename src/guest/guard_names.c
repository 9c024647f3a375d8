/* guest/guard_names.c: mkdir, mknod, symlink and link, performed for the caller */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/guard_priv.h"

static bool
exists(const struct place *p)
{
    unfilled char name[PATH_MAX + 1];
    struct stat st;

    return fstatat(p->dir, place_name(p, name), &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* May something be made at @p? 0, or the refusal: EEXIST where the kernel would say so too. */
static int
may_make(struct call *c, const struct place *p, bool directory)
{
    const char *rule = "";

    if (!judge_make(c, p, directory, &rule))
        return 0;
    return exists(p) ? -EEXIST : deny(c, p, rule, EACCES);
}

/* After @p was made: take it away again when the file system took its name for a protected one, or it may not be there
 * any more. */
static int
made(struct call *c, const struct place *p, long rc, mode_t type)
{
    const char *rule = "";
    unfilled char name[PATH_MAX + 1];

    if (rc < 0)
        return -errno;
    if (!rules_ambiguous(c->g, p->name, p->name_n) ||
        !rules_aliased(c->g, p->dir, &p->dir_st, place_name(p, name), &rule))
        return after_made(c, p, type);
    after_undo(p, type);
    return deny(c, p, rule, EACCES);
}

int
call_make(struct call *c)
{
    unfilled cleanup_place struct place at;
    const uint64_t *a = c->args;
    bool directory = c->nr == SYS_mkdirat;
    unfilled char path[PATH_MAX];
    int dirfd = AT_FDCWD, rc;
    long made_rc;

    place_init(&at);
    if (c->nr == SYS_mkdirat || c->nr == SYS_mknodat)
        dirfd = (int)*a++;
#ifdef SYS_mkdir
    directory |= c->nr == SYS_mkdir;
#endif
    /* a type that is wrong whatever the path is, the kernel names before it looks at the path */
    if (!directory && syscall(SYS_mknodat, -1, "", (unsigned)a[1], (unsigned)a[2]) < 0 && errno != ENOENT)
        return -errno;
    if (!directory && (a[1] & MODE_SPECIAL) != 0)
        return -EPERM;
    if ((rc = caller_string(c, a[0], path)) < 0 || (rc = walk_parent(c, dirfd, path, &at)) < 0 ||
        (rc = may_make(c, &at, directory)) < 0 ||
        (rc = git_call_make(c, &at, directory, (a[1] & S_IFMT) == 0 || (a[1] & S_IFMT) == S_IFREG)) < 0 ||
        (rc = caller_umask(c)) < 0)
        return rc;
    if (!caller_waits(c))
        return ANSWERED;
    caller_umask_begin(c);
    if (directory)
        made_rc = syscall(SYS_mkdirat, at.dir, at.name, (unsigned)a[1]);
    else
        made_rc = syscall(SYS_mknodat, at.dir, at.name, (unsigned)a[1], (unsigned)a[2]);
    caller_umask_end(c);
    return made(c, &at, made_rc, directory ? S_IFDIR : (a[1] & S_IFMT) == 0 ? S_IFREG : (mode_t)(a[1] & S_IFMT));
}

int
call_symlink(struct call *c)
{
    unfilled cleanup_place struct place at;
    const uint64_t *a = c->args;
    unfilled char target[PATH_MAX], path[PATH_MAX];
    int dirfd = AT_FDCWD, rc;

    place_init(&at);
    if ((rc = caller_string(c, a[0], target)) < 0)
        return rc;
    if (c->nr == SYS_symlinkat)
        dirfd = (int)*++a;
    if (target[0] == '\0')
        return -ENOENT;
    if ((rc = caller_string(c, a[1], path)) < 0 || (rc = walk_parent(c, dirfd, path, &at)) < 0 ||
        (rc = may_make(c, &at, false)) < 0 || (rc = git_call_make(c, &at, false, false)) < 0)
        return rc;
    if (!caller_waits(c))
        return ANSWERED;
    return made(c, &at, symlinkat(target, at.dir, at.name), S_IFLNK);
}

/* --- link */

struct linking {
    int olddir, newdir, flags;
    int new_error;              /* of copying @new: the kernel tells it only once the old name was found */
    char old[PATH_MAX], new[PATH_MAX];
};

/* The file that gets another name, held before anything is asked about its place: what another sandbox puts there later
 * is not linked. @placed: it has a place. */
static int
link_source(struct call *c, const struct linking *l, struct place *from, int *object, bool *placed)
{
    const char *rule = "";
    int rc;

    *object = -1;
    if (l->old[0] == '\0' && (l->flags & AT_EMPTY_PATH) != 0) {
        *object = l->olddir == AT_FDCWD ? -ENOENT : caller_fd(c, l->olddir);
        rc = *object < 0 ? *object : 0;
    } else {
        rc = walk_object(c, l->olddir, l->old, (l->flags & AT_SYMLINK_FOLLOW) != 0, from, object);
    }
    *placed = *object < 0;
    if (rc < 0)
        return rc;
    if (!*placed) {
        if (!object_protected(c->g, *object, &rule))
            return git_call_object(c, *object);
        deny_object(c, *object, rule);
        return -EACCES;
    }
    *object = openat(from->dir, from->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (*object < 0)
        return -errno;
    return judge_make(c, from, true, &rule) ? deny(c, from, rule, EACCES) : git_call_link_from(c, from);
}

static int
link_it(struct call *c, const struct linking *l)
{
    cleanup_place struct place from = PLACE_INIT, to = PLACE_INIT;
    cleanup_close int object = -1;
    int source = -1;
    bool known = false, placed;
    int rc = link_source(c, l, &from, &source, &placed);
    struct stat st;
    long linked;

    object = source >= 0 ? source : -1;
    if (rc < 0 || (rc = l->new_error) < 0 || (rc = walk_parent(c, l->newdir, l->new, &to)) < 0 ||
        (rc = may_make(c, &to, false)) < 0)
        return rc;
    if (fstat(object, &st) < 0)
        return -errno;
    if ((rc = git_call_link_to(c, &to, S_ISREG(st.st_mode))) < 0)
        return rc;
    if (!caller_waits(c))
        return ANSWERED;
    known = alias_walked(c->g) && alias_known(c->g, object);
    linked = syscall(SYS_linkat, AT_FDCWD, fd_path(object).text, to.dir, to.name, AT_SYMLINK_FOLLOW);
    rc = made(c, &to, linked, st.st_mode & S_IFMT);
    if (rc == 0 && known)
        alias_linked(c->g, object);
    return rc;
}

int
call_link(struct call *c)
{
    struct linking l = { .olddir = AT_FDCWD, .newdir = AT_FDCWD };
    uint64_t old = c->args[0], new = c->args[1];
    int rc;

    if (c->nr == SYS_linkat) {
        l.olddir = (int)c->args[0];
        old = c->args[1];
        l.newdir = (int)c->args[2];
        new = c->args[3];
        l.flags = (int)c->args[4];
    }
    if ((l.flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH)) != 0)
        return -EINVAL;
    rc = caller_string(c, old, l.old);
    l.new_error = caller_string(c, new, l.new);
    return rc < 0 ? rc : link_it(c, &l);
}
