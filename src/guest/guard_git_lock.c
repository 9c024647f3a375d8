/* guest/guard_git_lock.c: a lock that git renames into place (see guard_git.h)
 *
 * git makes `index.lock`, writes it, and renames it to `index`; so do the owner's git on the host and a program inside,
 * under the same name. Anybody may remove one that was left, so whoever makes the name inside may do it in the place
 * of the owner's, whose git then renames what it finds. Therefore nobody inside ever writes to what has that name. It
 * is made, so that it excludes others, and stays empty; its maker gets a file without a name. The rename gives the new
 * name to a judged copy of that.
 *
 * git also reads its lock by name (`git commit -a`, hooks), and reading passes no guard. So the guard has a write lease
 * on what has the name: who opens it waits in the kernel until it has been filled, judged, with what was written, if
 * nobody has that open for writing any more. Where there are no leases it is filled like what is written in place
 * (guard_git_later.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/guard_git.h"

static void
drop(struct guard *g, struct held *h)
{
    close_fd(&h->dir);
    close_fd(&h->named);
    close_fd(&h->file);
    *h = g->held[--g->n_held];
}

void
held_forget_all(struct guard *g)
{
    while (g->n_held > 0)
        drop(g, &g->held[g->n_held - 1]);
}

/* A signal says that somebody waits for a lease; without a handler it would end us. */
static bool
has_handler(void)
{
    struct sigaction sa;

    return sigaction(SIGIO, NULL, &sa) == 0 && sa.sa_handler != SIG_DFL;
}

static void
lease(struct held *h)
{
    h->leased = has_handler() && fcntl(h->named, F_SETLEASE, F_WRLCK) == 0;
}

static void
release(struct held *h)
{
    if (h->leased)
        (void)fcntl(h->named, F_SETLEASE, F_UNLCK);
    h->leased = false;
}

/* Has it its name? The owner may have removed it, or renamed it into place. */
static bool
is_still(const struct held *h)
{
    struct stat st;

    return fstatat(h->dir, h->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && ident_eq(h->id, ident_of(&st));
}

/* What has the name gets what was written, if it may. 0 or a negated errno. */
static int
fill(struct guard *g, struct held *h)
{
    struct call c = { .g = g, .op = "write" };
    struct place p = { .dir = h->dir, .name_n = strlen(h->name) };
    char rule[GIT_RULE_MAX] = "";
    const char *other = "";
    int rc;

    h->dirty = false;
    memcpy(p.name, h->name, p.name_n + 1);
    if (!is_still(h))
        return -ENOENT;
    if (fstat(h->dir, &p.dir_st) < 0)
        return -errno;
    /* the directory may have been moved since */
    rules_next_call(&g->rules);
    if (judge_make(&c, &p, false, &other))
        rc = deny(&c, &p, other, EACCES);
    else if ((rc = -git_fill(g, h->file, h->dir, &p.dir_st, h->name, h->named, rule)) == -EACCES)
        (void)deny(&c, &p, rule, EACCES);
    rules_next_call(&g->rules);
    return rc;
}

bool
held_settle(struct guard *g)
{
    bool waits = false;

    for (size_t i = 0; i < g->n_held; i++) {
        struct held *h = &g->held[i];

        if (h->dirty && !h->leased && later_is_closed(h->file))
            (void)fill(g, h);
        waits = waits || (h->dirty && !h->leased);
    }
    return waits;
}

void
guard_lease_broken(struct guard *g)
{
    for (size_t i = 0; i < g->n_held; i++) {
        struct held *h = &g->held[i];

        if (!h->leased || fcntl(h->named, F_GETLEASE) == F_WRLCK)
            continue;
        if (h->dirty && later_is_closed(h->file))
            (void)fill(g, h);
        release(h);
    }
}

/* The lock at @p that was made inside. What has the name may be another by now. */
static struct held *
find(struct guard *g, const struct place *p)
{
    for (size_t i = 0; i < g->n_held; i++) {
        struct held *h = &g->held[i];

        if (!ident_eq(h->dir_id, ident_of(&p->dir_st)) || strlen(h->name) != p->name_n ||
            memcmp(h->name, p->name, p->name_n) != 0)
            continue;
        if (is_still(h))
            return h;
        drop(g, h);
        return NULL;
    }
    return NULL;
}

int
held_file(struct guard *g, const struct place *p)
{
    struct held *h = find(g, p);

    return h != NULL ? h->file : -1;
}

/* What has the name @to, which a lock's copy got, is a lock itself (`index.lock.lock` became `index.lock`), which its
 * maker goes on to write. */
static void
hold_as(struct held *h, const struct place *to, const char *name, int *copy)
{
    struct stat st;
    int dir = fcntl(to->dir, F_DUPFD_CLOEXEC, 0);

    release(h);
    close_fd(&h->dir);
    close_fd(&h->named);
    h->dir = dir;
    h->named = *copy;
    *copy = -1;
    h->dirty = false;
    h->dir_id = ident_of(&to->dir_st);
    h->id = fstat(h->named, &st) == 0 ? ident_of(&st) : (struct ident){ 0, 0 };
    memcpy(h->name, name, strlen(name) + 1);
    lease(h);
}

int
held_rename(struct guard *g, const struct place *from, const struct place *to, unsigned flags, char *rule)
{
    struct held *found = find(g, from), h;
    char name[PATH_MAX + 1];
    cleanup_close int copy = -1;
    struct stat st;
    int rc;

    if (found == NULL)
        return ENOENT;
    (void)place_name(to, name);
    /* two names of one file: the kernel does nothing then */
    if (fstatat(to->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && ident_eq(found->id, ident_of(&st)))
        return (flags & GS_RENAME_NOREPLACE) != 0 ? EEXIST : 0;
    rc = git_copy_to(g, found->file, to->dir, &to->dir_st, name, flags, rule, &copy);
    if (rc != 0)
        return rc;
    if (is_still(found))
        (void)unlinkat(found->dir, found->name, 0);
    /* out of the way, and what was held by the other name is dropped */
    h = *found;
    *found = g->held[--g->n_held];
    (void)find(g, to);
    found = &g->held[g->n_held++];
    *found = h;
    if (copy >= 0 && git_is_lock(str_of(name)))
        hold_as(found, to, name, &copy);
    else
        drop(g, found);
    return 0;
}

int
held_put(struct guard *g, const struct place *p)
{
    struct held *h = find(g, p);
    int rc = h != NULL && h->dirty ? fill(g, h) : 0;

    if (h != NULL && rc == 0)
        drop(g, h);
    return rc;
}

/* Room for one more: the names of others were removed, as git does when it gives up. */
static bool
make_room(struct guard *g)
{
    struct stat st;

    for (size_t i = g->n_held; i-- > 0;)
        if (fstat(g->held[i].named, &st) < 0 || st.st_nlink == 0)
            drop(g, &g->held[i]);
    return g->n_held < HELD_MAX;
}

/* The file that its maker writes to. */
static int
unnamed(const struct held *h)
{
    int fd = h->leased ? openat(h->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;

    /* a file system that has none of these, or cannot tell who writes */
    return fd >= 0 ? fd : memfd_create("lock", MFD_CLOEXEC);
}

static int
begin(struct held *h, mode_t mode, int flags, int *writer)
{
    cleanup_close int file = -1;
    struct stat st;

    if (h->dir < 0 || fstat(h->named, &st) < 0 || fchmod(h->named, mode) < 0)
        return -errno;
    h->id = ident_of(&st);
    lease(h);
    file = unnamed(h);
    if (file < 0)
        return -errno;
    h->file = open(fd_path(file).text, O_RDONLY | O_CLOEXEC);
    *writer = open(fd_path(file).text, (flags & (O_ACCMODE | O_APPEND)) | O_NONBLOCK | O_CLOEXEC);
    return h->file < 0 || *writer < 0 || fchmod(*writer, mode) < 0 ? -errno : 0;
}

static int
make(struct call *c, const struct place *p, int flags, mode_t mode, int *writer)
{
    struct guard *g = c->g;
    struct held *h;
    int rc;

    if (!make_room(g))
        return deny(c, p, "git state: too many locks at once", EACCES);
    if ((rc = caller_umask(c)) < 0)
        return -EACCES;
    if (!caller_waits(c))
        return ANSWERED;
    h = &g->held[g->n_held];
    *h = (struct held){ .dir = -1, .file = -1, .dir_id = ident_of(&p->dir_st), .dirty = true };
    memcpy(h->name, p->name, p->name_n + 1);
    h->named = openat(p->dir, h->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (h->named < 0)       /* there is one, which is the host's or another sandbox's */
        return errno == EEXIST && (flags & O_EXCL) == 0 ? -EACCES : -errno;
    h->dir = fcntl(p->dir, F_DUPFD_CLOEXEC, 0);
    g->n_held++;
    rc = begin(h, mode & ~c->umask & 0777, flags, writer);
    if (rc < 0) {
        close_fd(writer);
        (void)unlinkat(p->dir, h->name, 0);
        drop(g, h);
    }
    return rc;
}

int
held_open(struct call *c, const struct place *p, int flags, mode_t mode, int *writer)
{
    struct held *h = find(c->g, p);

    *writer = -1;
    if (h == NULL)
        return (flags & O_CREAT) != 0 ? make(c, p, flags, mode, writer) : -EACCES;
    if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
        return -EEXIST;
    *writer = open(fd_path(h->file).text, (flags & (O_ACCMODE | O_APPEND | O_TRUNC)) | O_NONBLOCK | O_CLOEXEC);
    if (*writer < 0)
        return -errno;
    h->dirty = true;
    if (!h->leased)
        lease(h);
    return 0;
}
