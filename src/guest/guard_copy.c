/* guest/guard_copy.c: a file with names elsewhere is copied before it is changed
 *
 * As an overlay copies up: the name in the writable tree becomes a file of its own, with the same content, mode, times
 * and attributes, and then the call that wanted to change the file goes to that one. The other names keep the file that
 * they had. Where no copy can be made (a folder that cannot be written to, a file of another owner, one that is too
 * large, anything but a regular file) the call is refused.
 *
 * The copy gets its name by rename: whoever opens the name finds the former file or the whole copy.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/kernel.h"
#include "base/str.h"
#include "guest/guard_priv.h"

#define COPY_MAX        (1024ull * 1024 * 1024)     /* bytes that are copied; the rest of the sandbox waits for it */
#define CHUNK           (1024 * 1024)
#define NAMES_MAX       65536
#define VALUE_MAX       65536
#define TRIES           8
#define FICLONE_REQUEST 0x40049409ul
#define RULE            "hard link outside"

struct temp {
    int dir;
    char name[32];
    int fd;
};

static int
temp_make(struct temp *t)
{
    uint64_t number;

    for (int i = 0; i < TRIES; i++) {
        if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
            return -EIO;
        snprintf(t->name, sizeof(t->name), ".cloche-%016llx", (unsigned long long)number);
        t->fd = openat(t->dir, t->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (t->fd >= 0)
            return 0;
        if (errno != EEXIST)
            return -errno;
    }
    return -EEXIST;
}

static int
copy_plainly(int from, int to, uint64_t n)
{
    cleanup_free char *chunk = malloc(CHUNK);

    if (chunk == NULL)
        return -ENOMEM;
    for (uint64_t at = 0; at < n;) {
        size_t want = n - at < CHUNK ? (size_t)(n - at) : CHUNK;
        ssize_t got = pread(from, chunk, want, (off_t)at);

        if (got < 0)
            return -errno;
        if (got == 0)
            return 0;           /* it is shorter by now */
        for (ssize_t done = 0; done < got;) {
            ssize_t put = pwrite(to, chunk + done, (size_t)(got - done), (off_t)at + done);

            if (put <= 0)
                return put < 0 ? -errno : -EIO;
            done += put;
        }
        at += (uint64_t)got;
    }
    return 0;
}

static int
copy_content(int from, int to, uint64_t n)
{
    struct stat st;
    loff_t in = 0, out = 0;

    if (n == 0)
        return 0;
    /* the whole file, without copying a byte, where the file system can */
    if (fstat(from, &st) == 0 && syscall(SYS_ioctl, to, FICLONE_REQUEST, from) == 0)
        return n < (uint64_t)st.st_size && ftruncate(to, (off_t)n) < 0 ? -errno : 0;
    if (n > COPY_MAX)
        return -EFBIG;
    while ((uint64_t)out < n) {
        long got = syscall(SYS_copy_file_range, from, &in, to, &out, (size_t)(n - (uint64_t)out), 0U);

        if (got < 0)
            return out == 0 ? copy_plainly(from, to, n) : -errno;
        if (got == 0)
            return out == 0 ? copy_plainly(from, to, n) : 0;
    }
    return 0;
}

/* What belongs to the file by its label or by its capabilities is the system's to give, and a write would take the
 * capabilities away. */
static bool
is_copied(const char *xattr)
{
    return !str_starts(str_of(xattr), STR_LIT("security.")) && !str_starts(str_of(xattr), STR_LIT("trusted."));
}

static int
copy_attributes(int from, int to)
{
    cleanup_free char *names = malloc(NAMES_MAX + VALUE_MAX);
    char *value;
    ssize_t n, got;

    if (names == NULL)
        return -ENOMEM;
    value = names + NAMES_MAX;
    n = flistxattr(from, names, NAMES_MAX);
    if (n < 0)
        return errno == ENOTSUP ? 0 : -errno;
    for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1) {
        if (!is_copied(names + at))
            continue;
        got = fgetxattr(from, names + at, value, VALUE_MAX);
        if (got < 0 || fsetxattr(to, names + at, value, (size_t)got, 0) < 0)
            return -errno;
    }
    return 0;
}

/* Group and mode; set-user-ID goes with any change of a file. In a group that we are not of, what the group may do is
 * no more than what everybody may. */
static int
copy_mode(int to, const struct stat *st)
{
    mode_t mode = st->st_mode & 0777;
    struct stat now;

    if (fstat(to, &now) < 0)
        return -errno;
    if (now.st_gid != st->st_gid && fchown(to, (uid_t)-1, st->st_gid) < 0)
        mode &= ~(mode_t)070 | (mode & 07) << 3;
    return fchmod(to, mode) < 0 ? -errno : 0;
}

static int
fill(int from, const struct stat *st, int to, uint64_t keep)
{
    const struct timespec times[2] = { st->st_atim, st->st_mtim };
    uint64_t n = (uint64_t)st->st_size < keep ? (uint64_t)st->st_size : keep;
    int rc = copy_content(from, to, n);

    if (rc == 0)
        rc = copy_attributes(from, to);
    if (rc == 0)
        rc = copy_mode(to, st);
    return rc < 0 ? rc : futimens(to, times) < 0 ? -errno : 0;
}

static int
copy_up(struct guard *g, int dir, const char *name, const struct stat *was, uint64_t keep)
{
    cleanup_close int from = -1, to = -1;
    struct temp t = { .dir = dir, .fd = -1 };
    struct stat st;
    int rc;

    if (!S_ISREG(was->st_mode) || was->st_uid != g->uid)
        return -EACCES;
    from = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (from < 0 || fstat(from, &st) < 0)
        return -errno;
    if (!ident_eq(ident_of(&st), ident_of(was)))
        return -EAGAIN;
    if ((rc = temp_make(&t)) < 0)
        return rc;
    to = t.fd;
    rc = fill(from, &st, to, keep);
    if (rc == 0 && renameat(dir, t.name, dir, name) == 0)
        return 0;
    rc = rc < 0 ? rc : -errno;
    (void)unlinkat(dir, t.name, 0);
    return rc;
}

/* Not for want of a right, but for want of room: the caller's own error, no refusal of ours. */
static bool
is_shortage(int rc)
{
    return rc == -ENOSPC || rc == -EDQUOT || rc == -ENOMEM || rc == -EMFILE || rc == -ENFILE || rc == -EIO;
}

int
unshare_name(struct guard *g, int dir, const char *name, uint64_t keep)
{
    cleanup_close int object = -1;
    struct stat st;
    int rc;

    if (g->aliases == NULL)
        return 0;
    object = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    /* the call itself says what is wrong, unless by then nothing is */
    if (object < 0 || fstat(object, &st) < 0)
        return is_shortage(-errno) ? -errno : 0;
    if (st.st_nlink < 2 || !alias_outside(g, object) || read_only_mount(object))
        return 0;
    rc = copy_up(g, dir, name, &st, keep);
    return rc < 0 ? is_shortage(rc) ? rc : -EACCES : 1;
}

int
unshare_place(struct call *c, const struct place *at, uint64_t keep)
{
    unfilled char name[PATH_MAX + 1];
    int rc;

    if (c->g->aliases == NULL || at->name[0] == '/')
        return 0;
    rc = unshare_name(c->g, at->dir, place_name(at, name), keep);
    return rc == -EACCES ? deny(c, at, RULE, EACCES) : rc;
}

int
unshare_object(struct call *c, int object, uint64_t keep, int *copy)
{
    cleanup_close int dir = -1;
    char name[OBJECT_NAME_ROOM];
    struct stat st;
    int rc;

    /* also with one name: the one that it was opened by may be gone, and the other one outside */
    if (c->g->aliases == NULL || fstat(object, &st) < 0 || st.st_nlink == 0 || S_ISDIR(st.st_mode) ||
        !alias_outside(c->g, object) || read_only_mount(object))
        return 0;
    dir = object_parent(c->g, object, &st, name);
    rc = dir < 0 ? -EACCES : unshare_name(c->g, dir, name, keep);
    if (rc == 1) {
        *copy = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (*copy < 0)
            return -errno;
        rc = alias_outside(c->g, *copy) ? -EACCES : 1;      /* another sandbox renames too */
        if (rc == 1)
            return rc;
        close_fd(copy);
    }
    if (rc == 0 || rc == -EACCES) {
        deny_object(c, object, RULE);
        return -EACCES;
    }
    return rc;
}

int
unshare_opened(struct call *c, const struct place *at, int fd)
{
    unfilled char name[PATH_MAX + 1];
    const char *rule = RULE;
    struct stat st, now;

    if (c->g->aliases == NULL)
        return 0;
    if (fstat(fd, &st) < 0)
        return -errno;
    /* one name is no other's, if it is still the one that it was reached by */
    if (!S_ISREG(st.st_mode) ||
        (st.st_nlink == 1 && fstatat(at->dir, place_name(at, name), &now, AT_SYMLINK_NOFOLLOW) == 0 &&
         ident_eq(ident_of(&now), ident_of(&st))))
        return 0;
    if ((st.st_nlink > 1 && rules_same_object(c->g, &st, &rule)) || (alias_outside(c->g, fd) && !read_only_mount(fd)))
        return deny(c, at, rule, EACCES);
    return 0;
}

/* @dirfd/@name for what a file request does: borrowed, not to be closed. */
static int
named_place(struct guard *g, int dirfd, const char *name, struct place *out)
{
    size_t n = strlen(name);

    if (n > NAME_MAX)
        return ENAMETOOLONG;
    *out = (struct place){ .dir = dirfd, .name_n = n };
    memcpy(out->name, name, n + 1);
    rules_next_call(&g->rules);
    return 0;
}

int
guard_opened(struct guard *g, int dirfd, const char *name, int fd)
{
    struct place p;
    struct call c = { .g = g, .op = "write" };
    int e = named_place(g, dirfd, name, &p);

    return e != 0 ? e : -unshare_opened(&c, &p, fd);
}

int
guard_unshare(struct guard *g, int dirfd, const char *name, uint64_t keep)
{
    struct place p;
    struct call c = { .g = g, .op = "write" };
    int e = named_place(g, dirfd, name, &p), rc;

    if (e != 0)
        return e;
    rc = unshare_place(&c, &p, keep);
    return rc < 0 ? -rc : 0;
}
