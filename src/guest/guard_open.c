/* guest/guard_open.c: open, openat and creat, performed for the caller
 *
 * The guard opens without following (it follows by itself, in the caller's name), with O_NOCTTY (the terminal would
 * become the guard's) and O_NONBLOCK (it must not wait for a FIFO's other end or a lease), and takes the last one back
 * before the descriptor leaves. An existing file is tried first without O_CREAT: only a creation needs the caller's
 * umask, which may be the dearest thing to ask for. What was not there a moment ago is made with O_EXCL: such a file is
 * new and plain, so there is nothing to wait for and nothing to look at.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/guard_git.h"

#define PIPEFS_MAGIC 0x50495045
/* what open() knows; it drops other bits, where openat2() refuses them */
#define VALID_FLAGS  (O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND | O_NONBLOCK | O_SYNC | O_ASYNC | \
                      O_DIRECT | O_DIRECTORY | O_NOFOLLOW | O_NOATIME | O_CLOEXEC)
#define FOLLOW       (INT_MIN + 1)      /* the last name is a symbolic link to follow */

struct opening {
    struct call *c;
    int flags;                  /* as the caller gave them */
    mode_t mode;
    struct place at;            /* last: what is before it is zeroed */
};

struct open_job {
    int object;                 /* O_PATH */
    int flags;
};

static int
raw_open(int dir, const char *name, int flags, mode_t mode)
{
    long fd = syscall(SYS_openat, dir, name, flags, (unsigned)mode);

    return fd < 0 ? -errno : (int)fd;
}

/* Open @name in @dir, a symbolic link being ELOOP. Not by O_NOFOLLOW, which the caller would find in F_GETFL. */
static int
open_no_links(int dir, const char *name, int flags, mode_t mode)
{
    const struct gs_open_how how = { .flags = (uint64_t)(flags & VALID_FLAGS),
                                     .mode = (flags & O_CREAT) != 0 ? mode : 0,
                                     .resolve = GS_RESOLVE_NO_SYMLINKS };
    long fd = syscall(GS_NR_openat2, dir, name, &how, sizeof(how));

    return fd < 0 ? -errno : (int)fd;
}

static int
open_here(int dir, const char *name, int flags, mode_t mode)
{
    int fd = open_no_links(dir, name, flags, mode);

    return fd == -ENOSYS ? raw_open(dir, name, flags | O_NOFOLLOW, mode) : fd;
}

static bool
writes(int flags)
{
    return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0;
}

/* How much of a file's content there will be. */
static uint64_t
kept(const struct opening *o)
{
    return (o->flags & O_TRUNC) != 0 ? 0 : UINT64_MAX;
}

/* --- what may block */

static int
open_job(struct call *c, const void *p)
{
    const struct open_job *job = p;
    int fd = raw_open(AT_FDCWD, fd_path(job->object).text, job->flags | O_NOCTTY | O_CLOEXEC, 0);

    if (fd < 0)
        return fd;
    worker_settle();
    return answer_fd_closed(c, fd, (job->flags & O_CLOEXEC) != 0);
}

/* Open the object in a worker, and wait there. */
static int
open_later(const struct opening *o, int object)
{
    const struct open_job job = { object, o->flags & ~(O_CREAT | O_EXCL | O_NOFOLLOW) };
    struct stat st;

    if (fstat(object, &st) < 0 || device_closed(o->c, &st))
        return -EACCES;
    return worker_start(o->c, &object, 1, open_job, &job);
}

/* --- the end of an opening that worked */

static int
hand_over(const struct opening *o, int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0 || ((o->flags & O_CREAT) != 0 && S_ISDIR(st.st_mode))) {
        close(fd);
        return -EISDIR;
    }
    if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(5, 0)) {
        close(fd);
        fd = device_open_tty(o->c, o->flags);
        if (fd < 0)
            return fd;
    } else if (device_closed(o->c, &st)) {
        close(fd);
        return -EACCES;
    }
    device_note(o->c->g, fd, &st);
    if ((o->flags & O_NONBLOCK) == 0) {
        /* F_SETFL changes these and O_NONBLOCK, nothing else */
        if (fcntl(fd, F_SETFL, o->flags & (O_APPEND | O_ASYNC | O_DIRECT | O_NOATIME)) < 0) {
            close(fd);
            return -EACCES;
        }
    }
    return answer_fd(o->c, fd, (o->flags & O_CLOEXEC) != 0);
}

/* --- an object that has no place: behind one of /proc's magic links */

static bool
is_pipe(int object)
{
    struct statfs fs;

    return fstatfs(object, &fs) == 0 && fs.f_type == PIPEFS_MAGIC;
}

static int
open_object(struct opening *o, int object)
{
    cleanup_close int copy = -1;
    const char *rule = "";
    struct stat st;
    int fd;

    if (fstat(object, &st) < 0)
        return -errno;
    if ((o->c->g->flags & GUARD_WRITES) != 0 && writes(o->flags) && object_protected(o->c->g, object, &rule) &&
        !held_by_mount(o->c->g, object)) {
        deny_object(o->c, object, rule);
        return -EACCES;
    }
    if (writes(o->flags) && (fd = git_call_object(o->c, object)) < 0)
        return fd;
    if (!caller_waits(o->c))
        return ANSWERED;
    if (writes(o->flags)) {
        fd = unshare_object(o->c, object, kept(o), &copy);
        if (fd < 0)
            return fd;
        object = copy >= 0 ? copy : object;
    }
    if (S_ISFIFO(st.st_mode) && (o->flags & (O_NONBLOCK | O_ACCMODE)) == O_RDONLY && !is_pipe(object))
        return open_later(o, object);
    if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(5, 0)) {
        fd = device_open_tty(o->c, o->flags);
    } else {
        fd = raw_open(AT_FDCWD, fd_path(object).text,
                      (o->flags & ~(O_CREAT | O_EXCL | O_NOFOLLOW)) | O_NOCTTY | O_NONBLOCK | O_CLOEXEC, 0);
    }
    if ((fd == -EAGAIN || (fd == -ENXIO && S_ISFIFO(st.st_mode))) && (o->flags & O_NONBLOCK) == 0)
        return open_later(o, object);
    return fd < 0 ? fd : hand_over(o, fd);
}

/* --- a name in a directory */

/* What is opened at a place is looked at again (unshare_opened). */
static bool
is_settled(const struct opening *o)
{
    return (o->c->g->flags & GUARD_WRITES) != 0 && writes(o->flags);
}

/* By now @object may be another file than the FIFO, or the one with a lease, that was found there. */
static int
place_later(struct opening *o, int object)
{
    int rc = is_settled(o) ? unshare_opened(o->c, &o->at, object) : 0;

    return rc < 0 ? rc : open_later(o, object);
}

/* The first try said why not; the kernel would have gone on. */
static int
open_failed(struct opening *o, int error)
{
    cleanup_close int object = -1;
    unfilled char name[PATH_MAX + 1];
    struct stat st;

    if (error != -ELOOP && error != -ENOTDIR && error != -ENXIO && error != -EAGAIN)
        return error;
    object = raw_open(o->at.dir, place_name(&o->at, name), O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    if (object < 0 || fstat(object, &st) < 0)
        return error;
    if (S_ISLNK(st.st_mode))
        return (error == -ELOOP || error == -ENOTDIR) &&
               ((o->flags & O_NOFOLLOW) == 0 || o->at.name[o->at.name_n] == '/') ? FOLLOW : error;
    if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(5, 0)) {
        int fd = device_open_tty(o->c, o->flags);

        return fd < 0 ? fd : hand_over(o, fd);
    }
    if ((o->flags & O_NONBLOCK) == 0 && (error == -EAGAIN || (error == -ENXIO && S_ISFIFO(st.st_mode))))
        return place_later(o, object);
    return error;
}

/* A FIFO's reader must wait; opening it for a moment to find that out would let its writer pass. */
static int
reader_of_fifo(struct opening *o)
{
    cleanup_close int object = -1;
    unfilled char name[PATH_MAX + 1];
    struct stat st;

    if ((o->flags & (O_ACCMODE | O_NONBLOCK)) != O_RDONLY ||
        fstatat(o->at.dir, place_name(&o->at, name), &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISFIFO(st.st_mode) ||
        o->at.name[o->at.name_n] == '/')
        return 0;
    if ((o->flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
        return -EEXIST;
    object = raw_open(o->at.dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    return object < 0 ? object : place_later(o, object);
}

/* Create: only here the umask counts, and only here a name may turn out to be another. */
static int
create(struct opening *o, int flags)
{
    const char *rule = "";
    unfilled char name[PATH_MAX + 1];
    bool look = rules_ambiguous(o->c->g, o->at.name, o->at.name_n);
    struct stat st;
    int fd, rc = caller_umask(o->c);

    if (rc < 0)
        return rc;
    if (!caller_still_waits(o->c))
        return ANSWERED;
    (void)place_name(&o->at, name);
    if (look && fstatat(o->at.dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        look = false;       /* it was there before */
    caller_umask_begin(o->c);
    fd = open_here(o->at.dir, o->at.name, flags, o->mode);
    caller_umask_end(o->c);
    if (fd < 0 || !look || !rules_aliased(o->c->g, o->at.dir, &o->at.dir_st, name, &rule))
        return fd;
    close(fd);
    (void)unlinkat(o->at.dir, name, 0);
    return deny(o->c, &o->at, rule, EACCES);
}

/* This place may not be created in; what exists may be opened, unless that too is ours to refuse. */
static int
open_closed(struct opening *o, const char *rule)
{
    cleanup_close int object = -1;
    unfilled char name[PATH_MAX + 1];
    struct stat st;

    if (fstatat(o->at.dir, place_name(&o->at, name), &st, AT_SYMLINK_NOFOLLOW) < 0) {
        if (errno != ENOENT || (o->flags & O_CREAT) == 0)
            return -errno;
        return deny(o->c, &o->at, rule, EACCES);
    }
    if ((o->flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
        return -EEXIST;
    if ((o->flags & O_CREAT) != 0 && S_ISDIR(st.st_mode))
        return -EISDIR;
    if ((o->c->g->flags & GUARD_WRITES) == 0 || !writes(o->flags) || S_ISLNK(st.st_mode))
        return 0;
    object = raw_open(o->at.dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    if (object < 0)
        return object;
    return held_by_mount(o->c->g, object) ? 0 : deny(o->c, &o->at, rule, EACCES);
}

/* Make what is not there. The descriptor is as it will be handed over. -EEXIST: it is there after all. */
static int
create_new(struct opening *o)
{
    return create(o, (o->flags & ~O_TRUNC) | O_CREAT | O_EXCL | O_CLOEXEC);
}

/* Another name of a protected file is the protected file; and a file with names outside is copied first. *@absent:
 * there is nothing by that name. */
static int
settle_hard_link(struct opening *o, bool *absent)
{
    const char *rule = "";
    struct stat st;
    int rc;

    /* with a '/' behind the name the kernel has nothing to write to */
    if ((o->c->g->flags & GUARD_WRITES) == 0 || !writes(o->flags) || o->at.name[o->at.name_n] == '/' ||
        (o->flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
        return 0;
    if (fstatat(o->at.dir, o->at.name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        *absent = errno == ENOENT;
        return *absent ? 0 : -errno;
    }
    if (st.st_nlink < 2 || S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode))
        return 0;
    if (S_ISREG(st.st_mode) && rules_same_object(o->c->g, &st, &rule))
        return deny(o->c, &o->at, rule, EACCES);
    rc = unshare_place(o->c, &o->at, kept(o));
    return rc < 0 ? rc : 0;
}

/* State of git's that is judged when it is complete. */
static int
write_later(struct opening *o)
{
    int fd, rc = later_open(o->c, &o->at, o->flags, o->mode, &fd);

    if (rc == -EACCES)
        return deny(o->c, &o->at, "git state: written in place", EACCES);
    return rc < 0 ? rc : hand_over(o, fd);
}

/* Empty what was opened and found to be the file that was judged: not before. */
static int
empty(const struct opening *o, int fd)
{
    struct stat st;
    int again;

    if (fstat(fd, &st) < 0)
        return -errno;
    if ((o->flags & O_ACCMODE) != O_RDONLY)
        return S_ISREG(st.st_mode) && ftruncate(fd, 0) < 0 ? -errno : 0;
    if (S_ISREG(st.st_mode) && (o->flags & O_CREAT) != 0 && st.st_size == 0)
        return 0;       /* perhaps new, with a mode that forbids writing */
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return 0;
    again = raw_open(AT_FDCWD, fd_path(fd).text, O_WRONLY | O_TRUNC | O_NONBLOCK | O_CLOEXEC, 0);
    return again < 0 ? again : close(again);
}

/* @fd, of a place that was judged, or an error. */
static int
settle_opened(struct opening *o, int fd)
{
    int rc = unshare_opened(o->c, &o->at, fd);

    if (rc == 0 && (o->flags & O_TRUNC) != 0)
        rc = empty(o, fd);
    if (rc == 0)
        return fd;
    close(fd);
    return rc;
}

/* The kernel's way, which may find anything. */
static int
open_or_create(struct opening *o, bool plain, bool closed)
{
    int flags = o->flags | O_NOCTTY | O_NONBLOCK | O_CLOEXEC, fd;

    if (is_settled(o))
        flags &= ~O_TRUNC;
    if (closed)
        flags &= ~(O_CREAT | O_EXCL);
    /* O_EXCL and O_DIRECTORY mean something else together with O_CREAT; in a sticky directory O_CREAT brings the
     * kernel's protection against planted files (fs.protected_regular) */
    if ((flags & O_CREAT) != 0 &&
        ((flags & (O_EXCL | O_DIRECTORY)) != 0 || (o->at.dir_st.st_mode & S_ISVTX) != 0 || !plain))
        return create(o, flags);
    fd = open_here(o->at.dir, o->at.name, flags & ~O_CREAT, 0);
    return fd == -ENOENT && (flags & O_CREAT) != 0 ? create(o, flags) : fd;
}

/* Look again at the place of @fd (guard_after.c); @is_new: it was made. */
static int
judge_again(struct opening *o, int fd, bool is_new)
{
    int rc = after_opened(o->c, &o->at, o->flags);

    if (rc == 0)
        return fd;
    close(fd);
    if (is_new)
        after_undo(&o->at, S_IFREG);
    return rc;
}

/* Make a file that nothing is known of, but that it may be absent (as the one before it was), or must be. FOLLOW: that
 * is for the kernel's way. */
static int
open_new(struct opening *o, bool plain, bool absent)
{
    bool exclusive = (o->flags & O_EXCL) != 0;
    struct seen *s = seen_of(o->c);
    int fd;

    if (!plain || (o->flags & (O_CREAT | O_DIRECTORY)) != O_CREAT ||
        !(exclusive || absent || (s != NULL && s->makes_new)))
        return FOLLOW;
    fd = create_new(o);
    s = seen_of(o->c);
    if (s != NULL && !exclusive)
        s->makes_new = fd >= 0;
    if (fd >= 0)
        fd = judge_again(o, fd, true);
    if (fd >= 0)
        return answer_fd(o->c, fd, (o->flags & O_CLOEXEC) != 0);
    return exclusive || fd != -EEXIST ? fd : FOLLOW;
}

/* Most files that are made have a name, and lie on a path, that nobody asks about: no rule, and nothing of git's. Then
 * one call walks there and makes the file, and nothing of it would have been judged otherwise: links on the way are
 * refused. FOLLOW: the long way, whatever came of it. */
static int
open_unasked(struct opening *o, int dirfd, const char *path)
{
    unfilled char text[2 * PATH_MAX];
    const struct seen *s = seen_of(o->c);
    int base, fd;
    ssize_t n;

    if ((o->flags & (O_CREAT | O_DIRECTORY)) != O_CREAT ||
        ((o->flags & O_EXCL) == 0 && (s == NULL || !s->makes_new)))
        return FOLLOW;
    n = walk_text(o->c, dirfd, path, text, &base);
    if (n < 0 || !rules_no_name(o->c->g, (struct str){ text, (size_t)n }) ||
        !git_no_name((struct str){ text, (size_t)n }) || caller_umask(o->c) < 0)
        return FOLLOW;
    if (!caller_waits(o->c))
        return ANSWERED;
    caller_umask_begin(o->c);
    fd = open_no_links(base, path, (o->flags & ~O_TRUNC) | O_CREAT | O_EXCL | O_CLOEXEC, o->mode);
    caller_umask_end(o->c);
    if (fd < 0)
        return FOLLOW;
    if (after_unasked(o->c, fd, path, text))
        return answer_fd(o->c, fd, (o->flags & O_CLOEXEC) != 0);
    close(fd);
    return -EACCES;
}

static int
open_place(struct opening *o)
{
    const char *rule = "";
    struct stat st;
    bool closed = judge_make(o->c, &o->at, false, &rule);
    bool plain = o->at.name[o->at.name_n] != '/' && o->at.name[0] != '/';
    bool absent = false;
    int fd, rc;

    if ((o->flags & O_CREAT) != 0 && lock_is(o->c->g, &o->at) &&
        fstatat(o->at.dir, o->at.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return caller_waits(o->c) ? lock_make(o->c, &o->at, o->flags) : ANSWERED;
    if (closed && (rc = open_closed(o, rule)) < 0)
        return rc;
    if (!closed && (rc = git_call_open(o->c, &o->at, o->flags)) != 0)
        return rc < 0 ? rc : write_later(o);
    if (!caller_waits(o->c))
        return ANSWERED;
    if (!closed && (rc = open_new(o, plain, false)) != FOLLOW)
        return rc;
    if (!closed && (rc = settle_hard_link(o, &absent)) < 0)
        return rc;
    if (absent && (rc = open_new(o, plain, true)) != FOLLOW)
        return rc;
    if ((rc = reader_of_fifo(o)) != 0)
        return rc;
    fd = open_or_create(o, plain, closed);
    if (fd == ANSWERED)
        return fd;
    if (fd < 0)
        return open_failed(o, fd);
    if (is_settled(o) && (fd = settle_opened(o, fd)) < 0)
        return fd;
    if (!closed && (fd = judge_again(o, fd, false)) < 0)
        return fd;
    return hand_over(o, fd);
}

/* --- O_TMPFILE: a file without a name; to give it one is linkat's business */

static int
open_unnamed(struct opening *o, int dirfd, const char *path)
{
    cleanup_close int object = -1, dir = -1;
    int fd, rc = walk_object(o->c, dirfd, path, (o->flags & O_NOFOLLOW) == 0, &o->at, &object);

    if (rc < 0 || (rc = caller_umask(o->c)) < 0)
        return rc;
    if (object < 0) {
        dir = raw_open(o->at.dir, o->at.name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
        if (dir < 0)
            return dir;
    }
    if (!caller_waits(o->c))
        return ANSWERED;
    caller_umask_begin(o->c);
    fd = raw_open(object >= 0 ? object : dir, ".", (o->flags & ~O_NOFOLLOW) | O_CLOEXEC, o->mode);
    caller_umask_end(o->c);
    return fd < 0 ? fd : answer_fd(o->c, fd, (o->flags & O_CLOEXEC) != 0);
}

/* --- */

static int
open_path(struct opening *o, int dirfd, const char *path)
{
    int links = 0, rc;

    if ((o->flags & GS_OPEN_TMPFILE) != 0)
        return open_unnamed(o, dirfd, path);
    if ((rc = open_unasked(o, dirfd, path)) != FOLLOW)
        return rc;
    rc = walk_parent(o->c, dirfd, path, &o->at);
    while (rc == 0) {
        cleanup_close int object = -1;

        rc = open_place(o);
        if (rc != FOLLOW)
            return rc;
        rc = walk_follow(o->c, &o->at, &links, &object);
        if (object >= 0)
            return open_object(o, object);
    }
    return rc;
}

int
call_open(struct call *c)
{
    unfilled struct opening o;
    unfilled char path[PATH_MAX];
    int dirfd = AT_FDCWD, rc;
    const uint64_t *a = c->args;

    memset(&o, 0, offsetof(struct opening, at));
    o.c = c;
    place_init(&o.at);
    if (c->nr == SYS_openat)
        dirfd = (int)*a++;
    o.flags = (int)a[1];
    o.mode = (mode_t)(a[2] & 07777);
#ifdef SYS_creat
    if (c->nr == SYS_creat) {
        o.flags = O_CREAT | O_WRONLY | O_TRUNC;
        o.mode = (mode_t)(a[1] & 07777);
    }
#endif
    if ((o.flags & O_CREAT) == 0)
        c->op = "write";
    /* the wall's filter says so too, of all programs; here it is said by who makes the file */
    if ((o.flags & (O_CREAT | GS_OPEN_TMPFILE)) != 0 && (o.mode & MODE_SPECIAL) != 0)
        return -EPERM;
    /* combinations that are wrong whatever the path is, the kernel names before it looks at the path */
    if ((o.flags & (O_DIRECTORY | GS_OPEN_TMPFILE)) != 0 && raw_open(-1, "", o.flags, o.mode) == -EINVAL)
        return -EINVAL;
    rc = caller_string(c, a[0], path);
    if (rc == 0)
        rc = open_path(&o, dirfd, path);
    place_close(&o.at);
    return rc;
}
