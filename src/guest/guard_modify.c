/* guest/guard_modify.c: what changes a file that exists
 *
 * Changing a file's length, mode, owner, attributes and times goes through the guard as well (opening it for writing:
 * guard_open.c; removing: guard_remove.c). The object is taken hold of once, judged by where it lies, and changed
 * through the same descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "guest/guard_git.h"

#define XATTR_NAME_ROOM  256
#define XATTR_VALUE_MAX  65536

/* Attributes in which overlay file systems keep what a name stands for. */
static const char *const overlay_marks[] = { "user.overlay.", "trusted.overlay.", "user.fuseoverlayfs." };

enum change { CHANGE_REMOVE, CHANGE_LENGTH, CHANGE_MODE, CHANGE_OWNER, CHANGE_XATTR, CHANGE_TIMES };

/* One call, its arguments copied. */
struct changing {
    struct call *c;
    enum change what;
    int dirfd;
    int fd;                     /* the call names a descriptor; -1: a path */
    uint64_t path;              /* address */
    bool follow;
    int flags;
    int64_t length;
    mode_t mode;
    uid_t uid;
    gid_t gid;
    bool remove_xattr;
    char xattr[XATTR_NAME_ROOM];
    char *value;
    size_t value_n;
    bool now;
    struct timespec times[2];
};

/* --- doing it */

static int
later_length(struct call *c, const void *p)
{
    const struct changing *w = p;
    cleanup_close int fd = open(fd_path(w->fd).text, O_WRONLY | O_CLOEXEC);

    (void)c;
    return fd < 0 || ftruncate(fd, w->length) < 0 ? -errno : 0;
}

/* Never truncate(2) itself: it waits for a lease. */
static int
change_length(struct changing *w, int object)
{
    cleanup_close int fd = -1;
    struct stat st;

    if (fstat(object, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
    fd = open(fd_path(object).text, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == EAGAIN) {
        w->fd = object;
        return worker_start(w->c, &object, 1, later_length, w);
    }
    return fd < 0 || ftruncate(fd, w->length) < 0 ? -errno : 0;
}

/* Without the way through /proc, where the kernel knows one (Linux 6.6) and nothing refuses it. */
static int
chmod_object(struct guard *g, int object, mode_t mode)
{
    if (!g->no_fchmodat2) {
        if (syscall(GS_NR_fchmodat2, object, "", (unsigned)mode, AT_EMPTY_PATH) == 0)
            return 0;
        g->no_fchmodat2 = errno == ENOSYS;
        if (errno != ENOSYS && errno != EPERM)
            return -1;
    }
    return chmod(fd_path(object).text, mode);
}

/* Would the owner's git not see the repository any more (guard_git_top.c)? By its mode, or an ACL, which is another. */
static bool
shuts(const struct changing *w, int object)
{
    struct stat st;
    mode_t needed;

    if ((w->c->g->flags & GUARD_GIT) == 0 || fstat(object, &st) < 0)
        return false;
    needed = S_ISDIR(st.st_mode) ? S_IRUSR | S_IXUSR : S_IRUSR;
    if (w->what == CHANGE_MODE ? (w->mode & needed) == needed
                               : w->remove_xattr || strncmp(w->xattr, "system.", strlen("system.")) != 0)
        return false;
    if (!git_keeps_open(w->c->g, object, &st))
        return false;
    deny_object(w->c, object, "git state: what makes a folder the repository");
    return true;
}

/* @object is O_PATH (from a path) or the caller's own open file (@w->fd). */
static int
change(struct changing *w, int object)
{
    bool open_file = w->fd >= 0;
    struct fd_path path = fd_path(object);
    struct stat st;
    int rc = -1;

    /* the host's, its terminals among them */
    if ((w->c->g->flags & GUARD_DEVICES) != 0 &&
        (fstat(object, &st) < 0 || S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)))
        return -EPERM;
    switch (w->what) {
    case CHANGE_LENGTH:
        return change_length(w, object);
    case CHANGE_MODE:
        if (shuts(w, object))
            return -EPERM;
        if ((w->mode & S_ISUID) != 0 ||
            ((w->mode & MODE_SPECIAL) != 0 && (fstat(object, &st) < 0 || !S_ISDIR(st.st_mode))))
            return -EPERM;
        /* raw: musl's wrapper makes fchmod() work where the kernel refuses it */
        rc = open_file ? (int)syscall(SYS_fchmod, object, (unsigned)w->mode) : chmod_object(w->c->g, object, w->mode);
        break;
    case CHANGE_OWNER:
        rc = open_file && w->c->nr == SYS_fchown ? (int)syscall(SYS_fchown, object, w->uid, w->gid)
                                    : fchownat(object, "", w->uid, w->gid, AT_EMPTY_PATH);
        break;
    case CHANGE_XATTR:
        if (shuts(w, object))
            return -EPERM;
        if (w->remove_xattr)
            rc = open_file ? fremovexattr(object, w->xattr) : removexattr(path.text, w->xattr);
        else
            rc = open_file ? fsetxattr(object, w->xattr, w->value, w->value_n, w->flags)
                           : setxattr(path.text, w->xattr, w->value, w->value_n, w->flags);
        break;
    case CHANGE_TIMES:
        rc = open_file && w->path == 0 ? futimens(object, w->now ? NULL : w->times)
                                       : utimensat(object, "", w->now ? NULL : w->times, AT_EMPTY_PATH);
        break;
    case CHANGE_REMOVE:
        return -EINVAL;
    }
    return rc < 0 ? -errno : rc;
}

/* How much of a file's content is there after the call. */
static uint64_t
kept(const struct changing *w)
{
    return w->what == CHANGE_LENGTH ? (uint64_t)w->length : UINT64_MAX;
}

/* A mode or an owner that the file has already: package managers say what is so of each file that they link. */
static bool
changes_nothing(const struct changing *w, const struct stat *st)
{
    if (w->what == CHANGE_MODE)
        return (st->st_mode & 07777) == (w->mode & 07777);
    return w->what == CHANGE_OWNER && (w->uid == (uid_t)-1 || w->uid == st->st_uid) &&
           (w->gid == (gid_t)-1 || w->gid == st->st_gid);
}

/* Make *@object the file that may be changed. @at: where it lies, or NULL. 0; 1: nothing is to be done; negative. */
static int
unshare(struct changing *w, const struct place *at, int *object)
{
    struct stat st, now;
    int copy = -1, rc;

    if (w->c->g->aliases == NULL || fstat(*object, &st) < 0 || st.st_nlink == 0 || S_ISDIR(st.st_mode))
        return 0;
    /* one name is no other's, if it is still the one that it was reached by */
    if (st.st_nlink == 1 && at != NULL && fstatat(at->dir, at->name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
        ident_eq(ident_of(&now), ident_of(&st)))
        return 0;
    if (st.st_nlink == 1)
        at = NULL;
    if (st.st_uid == w->c->g->uid && (w->what != CHANGE_MODE || (w->mode & MODE_SPECIAL) == 0) &&
        changes_nothing(w, &st) && !read_only_mount(*object))
        return 1;
    if (at == NULL) {
        rc = unshare_object(w->c, *object, kept(w), &copy);
    } else {
        rc = unshare_place(w->c, at, kept(w));
        /* the name may be gone meanwhile, for not every unlink() passes here: what is held is not */
        if (rc == 0 && !read_only_mount(*object) && alias_outside(w->c->g, *object))
            return deny(w->c, at, "hard link outside", EACCES);
        if (rc == 1 && (copy = openat(at->dir, at->name, O_PATH | O_NOFOLLOW | O_CLOEXEC)) < 0)
            return -errno;
        if (rc == 1 && alias_outside(w->c->g, copy)) {      /* another sandbox renames too */
            close(copy);
            return deny(w->c, at, "hard link outside", EACCES);
        }
    }
    if (rc != 1)
        return rc;
    close(*object);
    *object = copy;
    w->fd = -1;
    return 0;
}

static int
change_fd(struct changing *w)
{
    cleanup_close int file = -1;
    const char *rule = "";
    int fd = caller_fd(w->c, w->fd), rc;

    if (fd < 0)
        return fd;
    file = fd;
    if (object_protected(w->c->g, file, &rule) && !held_by_mount(w->c->g, file)) {
        deny_object(w->c, file, rule);
        return -EACCES;
    }
    if (!caller_waits(w->c))
        return ANSWERED;
    rc = unshare(w, NULL, &file);
    return rc == 0 ? change(w, file) : rc < 0 ? rc : 0;
}

/* Judge an existing object by the place that its path gave. */
static int
judge_object(struct changing *w, const struct place *at, int object)
{
    const char *rule = "";
    struct stat st;

    if (fstat(object, &st) < 0)
        return -errno;
    if ((S_ISDIR(st.st_mode) ? rules_below(w->c->g, object, &rule) != PLACE_FREE
                             : judge_make(w->c, at, true, &rule) ||
                               (st.st_nlink > 1 && rules_same_object(w->c->g, &st, &rule))) &&
        !held_by_mount(w->c->g, object))
        return deny(w->c, at, rule, EACCES);
    return w->what == CHANGE_LENGTH ? git_call_write(w->c, at) : 0;
}

/* Take hold of what @path leads to. 1: at the place @at; 0: it has none; negative. */
static int
take_object(struct changing *w, const char *path, struct place *at, int *object)
{
    struct stat st;
    int rc = walk_parent(w->c, w->dirfd, path, at);

    /* most are no links, and a '/' behind the name may lead through one */
    if (rc == 0 && at->name[at->name_n] != '/' && at->name[0] != '/') {
        *object = openat(at->dir, at->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (*object < 0 && errno == ENOENT && lock_file(w->c) >= 0 && lock_is(w->c->g, at)) {
            *object = fcntl(lock_file(w->c), F_DUPFD_CLOEXEC, 0);
            return *object < 0 ? -errno : 0;
        }
        if (*object < 0)
            return -errno;
        int held = w->what != CHANGE_LENGTH ? held_file(w->c->g, at) : -1;
        if (held >= 0) {
            close(*object);
            *object = fcntl(held, F_DUPFD_CLOEXEC, 0);
            return *object < 0 ? -errno : 0;
        }
        if (!w->follow || (fstat(*object, &st) == 0 && !S_ISLNK(st.st_mode)))
            return 1;
        close_fd(object);
    }
    rc = rc < 0 ? rc : walk_object(w->c, w->dirfd, path, w->follow, at, object);
    if (rc < 0 || *object >= 0)
        return rc;
    *object = openat(at->dir, at->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return *object < 0 ? -errno : 1;
}

static int
change_path(struct changing *w, const char *path)
{
    unfilled cleanup_place struct place at;
    cleanup_close int object = -1;
    const char *rule = "";
    int found = -1, rc;
    bool placed;

    place_init(&at);
    rc = take_object(w, path, &at, &found);
    placed = rc == 1;
    object = found;
    if (rc < 0)
        return rc;
    if (!placed) {
        if (object_protected(w->c->g, object, &rule) && !held_by_mount(w->c->g, object)) {
            deny_object(w->c, object, rule);
            return -EACCES;
        }
        if (w->what == CHANGE_LENGTH && (rc = git_call_object(w->c, object)) < 0)
            return rc;
    } else if ((rc = judge_object(w, &at, object)) < 0) {
        return rc;
    }
    if (!caller_waits(w->c))
        return ANSWERED;
    rc = unshare(w, placed ? &at : NULL, &object);
    return rc == 0 ? change(w, object) : rc < 0 ? rc : 0;
}

/* --- copying the arguments */

static int
copy_xattr(struct changing *w, const uint64_t *a)
{
    int rc = caller_short_string(w->c, a[0], w->xattr, sizeof(w->xattr));

    if (rc < 0)
        return rc;
    if (w->xattr[0] == '\0')
        return -ERANGE;
    if (w->remove_xattr)
        return 0;
    /* an overlay that is mounted over this folder later would obey them, and hide files */
    for (size_t i = 0; i < ARRAY_LEN(overlay_marks); i++)
        if (strncmp(w->xattr, overlay_marks[i], strlen(overlay_marks[i])) == 0) {
            deny_text(w->c->g, w->c->op, w->xattr, "marks of overlays");
            return -EPERM;
        }
    if (a[2] > XATTR_VALUE_MAX)
        return -E2BIG;
    w->value_n = (size_t)a[2];
    w->flags = (int)a[3];
    w->value = malloc(w->value_n + 1);
    if (w->value == NULL)
        return -ENOMEM;
    return caller_bytes(w->c, a[1], w->value, w->value_n);
}

/* struct timeval[2] */
static int
copy_timevals(struct changing *w, uint64_t addr)
{
    int64_t tv[4];
    int rc;

    w->now = addr == 0;
    if (w->now)
        return 0;
    if ((rc = caller_bytes(w->c, addr, tv, sizeof(tv))) < 0)
        return rc;
    for (int i = 0; i < 2; i++) {
        if (tv[2 * i + 1] < 0 || tv[2 * i + 1] >= 1000000)
            return -EINVAL;
        w->times[i] = (struct timespec){ .tv_sec = tv[2 * i], .tv_nsec = tv[2 * i + 1] * 1000 };
    }
    return 0;
}

static int
decode_utimensat(struct changing *w, const uint64_t *a)
{
    int64_t ts[4];
    int rc;

    w->what = CHANGE_TIMES;
    w->dirfd = (int)a[0];
    w->path = a[1];
    w->flags = (int)a[3];
    w->follow = (w->flags & AT_SYMLINK_NOFOLLOW) == 0;
    w->now = a[2] == 0;
    if ((w->flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)) != 0)
        return -EINVAL;
    if (w->path == 0) {
        if (w->flags != 0)
            return -EINVAL;
        w->fd = w->dirfd;
        if (w->fd < 0)
            return w->fd == AT_FDCWD ? -EFAULT : -EBADF;
    }
    if (w->now)
        return 0;
    if ((rc = caller_bytes(w->c, a[2], ts, sizeof(ts))) < 0)
        return rc;
    for (int i = 0; i < 2; i++)
        w->times[i] = (struct timespec){ .tv_sec = ts[2 * i], .tv_nsec = ts[2 * i + 1] };
    return 0;
}

static void
decode_owner(struct changing *w, const uint64_t *a)
{
    w->what = CHANGE_OWNER;
    w->uid = (uid_t)a[0];
    w->gid = (gid_t)a[1];
}

#ifdef SYS_open
/* Calls that only older architectures have. */
static int
decode_old(struct changing *w, const uint64_t *a)
{
    int64_t tv[2];
    int rc;

    w->path = a[0];
    switch (w->c->nr) {
    case SYS_unlink:
        w->what = CHANGE_REMOVE;
        return 0;
    case SYS_rmdir:
        w->what = CHANGE_REMOVE;
        w->flags = AT_REMOVEDIR;
        return 0;
    case SYS_chmod:
        w->what = CHANGE_MODE;
        w->mode = (mode_t)a[1];
        return 0;
    case SYS_lchown:
        w->follow = false;
        __attribute__((fallthrough));
    case SYS_chown:
        decode_owner(w, a + 1);
        return 0;
    case SYS_utime:
        w->what = CHANGE_TIMES;
        w->now = a[1] == 0;
        if (w->now)
            return 0;
        if ((rc = caller_bytes(w->c, a[1], tv, sizeof(tv))) < 0)
            return rc;
        w->times[0].tv_sec = tv[0];
        w->times[1].tv_sec = tv[1];
        return 0;
    case SYS_utimes:
        w->what = CHANGE_TIMES;
        return copy_timevals(w, a[1]);
    case SYS_futimesat:
        w->what = CHANGE_TIMES;
        w->dirfd = (int)a[0];
        w->path = a[1];
        w->fd = w->path == 0 ? w->dirfd : -1;
        if (w->path == 0 && w->fd < 0)
            return w->fd == AT_FDCWD ? -EFAULT : -EBADF;
        return copy_timevals(w, a[2]);
    default:
        return -ENOSYS;
    }
}
#endif

static int
decode_fd(struct changing *w, const uint64_t *a)
{
    w->fd = (int)a[0];
    if (w->fd < 0)
        return -EBADF;
    switch (w->c->nr) {
    case SYS_fchmod:
        w->what = CHANGE_MODE;
        w->mode = (mode_t)a[1];
        return 0;
    case SYS_fchown:
        decode_owner(w, a + 1);
        return 0;
    default:
        w->what = CHANGE_XATTR;
        w->remove_xattr = w->c->nr == SYS_fremovexattr;
        return copy_xattr(w, a + 1);
    }
}

static int
decode(struct changing *w)
{
    const uint64_t *a = w->c->args;

    switch (w->c->nr) {
    case SYS_unlinkat:
        w->what = CHANGE_REMOVE;
        w->dirfd = (int)a[0];
        w->path = a[1];
        w->flags = (int)a[2];
        return (w->flags & ~AT_REMOVEDIR) != 0 ? -EINVAL : 0;
    case SYS_truncate:
        w->what = CHANGE_LENGTH;
        w->path = a[0];
        w->length = (int64_t)a[1];
        return w->length < 0 ? -EINVAL : 0;
    case SYS_fchmodat:
        w->what = CHANGE_MODE;
        w->dirfd = (int)a[0];
        w->path = a[1];
        w->mode = (mode_t)a[2];
        return 0;
    case SYS_fchownat:
        w->dirfd = (int)a[0];
        w->path = a[1];
        w->flags = (int)a[4];
        w->follow = (w->flags & AT_SYMLINK_NOFOLLOW) == 0;
        decode_owner(w, a + 2);
        return (w->flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)) != 0 ? -EINVAL : 0;
    case SYS_lsetxattr:
    case SYS_lremovexattr:
        w->follow = false;
        __attribute__((fallthrough));
    case SYS_setxattr:
    case SYS_removexattr:
        w->what = CHANGE_XATTR;
        w->path = a[0];
        w->remove_xattr = w->c->nr == SYS_removexattr || w->c->nr == SYS_lremovexattr;
        return copy_xattr(w, a + 1);
    case SYS_utimensat:
        return decode_utimensat(w, a);
    case SYS_fchmod:
    case SYS_fchown:
    case SYS_fsetxattr:
    case SYS_fremovexattr:
        return decode_fd(w, a);
    default:
#ifdef SYS_open
        return decode_old(w, a);
#else
        return -ENOSYS;
#endif
    }
}

static int
modify(struct changing *w)
{
    unfilled char path[PATH_MAX];
    int rc = decode(w);

    if (rc < 0)
        return rc;
    if (w->fd >= 0)
        return change_fd(w);
    if ((rc = caller_string(w->c, w->path, path)) < 0)
        return rc;
    if (w->what == CHANGE_REMOVE)
        return remove_name(w->c, w->dirfd, path, w->flags);
    if (path[0] == '\0' && (w->flags & AT_EMPTY_PATH) != 0 && w->what != CHANGE_XATTR) {
        w->fd = w->dirfd;
        if (w->fd != AT_FDCWD)
            return w->fd < 0 ? -EBADF : change_fd(w);
        w->fd = -1;
        memcpy(path, ".", 2);
    }
    return change_path(w, path);
}

int
call_modify(struct call *c)
{
    struct changing w = { .c = c, .dirfd = AT_FDCWD, .fd = -1, .follow = true };
    int rc = modify(&w);

    free(w.value);
    return rc;
}
