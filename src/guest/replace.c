/* guest/replace.c: see replace.h */
#include "guest/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/xattr.h>

#include "base/cleanup.h"
#include "base/kernel.h"
#include "base/str.h"
#include "guest/files.h"
#include "guest/guard_link.h"

#ifndef STATX_ATTR_MOUNT_ROOT
#define STATX_ATTR_MOUNT_ROOT 0x2000
#endif

#define PROC_PATH_MAX 32
#define XATTR_NAMES_MAX 4096
#define TRIES 8                 /* at a name that nobody has */

/* ".cloche-", what is this guest's, what is this file's, and for what */
#define STEM_N (sizeof(".cloche-") - 1 + 16)
#define TEMP_N (STEM_N + 1 + 16 + 2)

struct replacement {
    int dir;                    /* owned, O_PATH */
    bool exclusive;             /* nothing is replaced */
    char name[NAME_MAX + 1];
    char temp[TEMP_N + 1];      /* the name that it has; "" none */
};

/* --- temporary names ---------------------------------------------------------------------------------------------- */

static char stem[STEM_N + 1];

static int
random_hex(char out[17])
{
    uint8_t bytes[8];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return EIO;
    str_hex(bytes, sizeof(bytes), out);
    return 0;
}

static int
make_name(enum replace_name what, char out[TEMP_N + 1])
{
    char digits[17];

    if (stem[0] == '\0') {
        if (random_hex(digits) != 0)
            return EIO;
        (void)snprintf(stem, sizeof(stem), ".cloche-%s", digits);
    }
    if (random_hex(digits) != 0)
        return EIO;
    (void)snprintf(out, TEMP_N + 1, "%s-%s-%c", stem, digits, what == REPLACE_NEW ? 'n' : 'f');
    return 0;
}

enum replace_name
replace_name_of(const char *name)
{
    if (stem[0] == '\0' || strlen(name) != TEMP_N || memcmp(name, stem, STEM_N) != 0)
        return REPLACE_NO_NAME;
    return name[TEMP_N - 1] == 'n' ? REPLACE_NEW : REPLACE_FORMER;
}

/* --- what may be replaced ----------------------------------------------------------------------------------------- */

static bool
is_mount(const struct walk_place *place)
{
    struct statx sx;

    /* without the attribute (before Linux 5.8) the rename will say so */
    return kernel_statx(place->dir, place->name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &sx) == 0 &&
           (sx.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

/* Whether a call listed ACLs, or attributes of the file's users. Labels are the system's to give. */
static bool
are_attributes(const char *names, ssize_t n)
{
    if (n < 0)
        return errno != ENOTSUP;
    for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1)
        if (strncmp(names + at, "security.", sizeof("security.") - 1) != 0)
            return true;
    return false;
}

static bool
has_attributes(const struct walk_place *place)
{
    char path[PROC_PATH_MAX + NAME_MAX + 1], names[XATTR_NAMES_MAX];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", place->dir, place->name);
    return are_attributes(names, llistxattr(path, names, sizeof(names)));
}

static bool
is_replaceable(const struct walk_place *place, const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_nlink == 1 && st->st_uid == geteuid() &&
           faccessat(place->dir, place->name, W_OK, 0) == 0 && !is_mount(place) && !has_attributes(place);
}

/* --- the new file ------------------------------------------------------------------------------------------------- */

static void
proc_path(int fd, char out[PROC_PATH_MAX])
{
    (void)snprintf(out, PROC_PATH_MAX, "/proc/self/fd/%d", fd);
}

/* A file without a name gets one through /proc. */
static bool
can_be_named(int fd)
{
    char path[PROC_PATH_MAX];
    struct stat a, b;

    proc_path(fd, path);
    return fstat(fd, &a) == 0 && fstatat(AT_FDCWD, path, &b, 0) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int
create_named(struct replacement *r, enum replace_name what, mode_t mode, int *fd)
{
    for (int i = 0; i < TRIES; i++) {
        if (make_name(what, r->temp) != 0)
            return EIO;
        *fd = openat(r->dir, r->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (*fd >= 0)
            return 0;
        r->temp[0] = '\0';      /* what has that name is not ours */
        if (errno != EEXIST)
            return errno;
    }
    return EEXIST;
}

static int
create(struct replacement *r, enum replace_name what, mode_t mode, int *fd)
{
    *fd = openat(r->dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
    if (*fd >= 0 && can_be_named(*fd))
        return 0;
    /* EISDIR: a kernel, or a server, that does not know the flag */
    if (*fd < 0 && errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOSYS)
        return errno;
    close_fd(fd);
    return create_named(r, what, mode, fd);
}

/* Its group and mode are the former one's (@old), or @mode. Most often they are by now: each change of a file
 * without a name is told to who watches the directory. */
static int
settle(int fd, const struct stat *old, mode_t mode)
{
    char names[XATTR_NAMES_MAX];
    struct stat st;

    if (fstat(fd, &st) < 0)
        return errno;
    /* an ACL, where the directory has one for what is new in it */
    if (old != NULL && (st.st_uid != old->st_uid || are_attributes(names, flistxattr(fd, names, sizeof(names)))))
        return REPLACE_IN_PLACE;
    if (old != NULL && st.st_gid != old->st_gid && fchown(fd, (uid_t)-1, old->st_gid) < 0)
        return REPLACE_IN_PLACE;
    if ((st.st_mode & 0777) != mode && fchmod(fd, mode) < 0)
        return old != NULL ? REPLACE_IN_PLACE : errno;
    return 0;
}

static int
make(struct replacement *r, const struct stat *old, const struct msg_file *m, int *fd)
{
    bool exact = old != NULL || m->mode != 0;
    mode_t mode = (m->mode != 0 ? (mode_t)m->mode : old != NULL ? old->st_mode : 0666) & 0777, was = 0;
    int rc;

    if (exact)
        was = umask(0);
    rc = create(r, old == NULL ? REPLACE_NEW : REPLACE_FORMER, mode, fd);
    if (exact)
        (void)umask(was);
    if (rc == 0 && exact)
        rc = settle(*fd, old, mode);
    /* nothing may be made there: what is there may be written to, or not */
    if (rc == EACCES || rc == EPERM || rc == EROFS)
        rc = REPLACE_IN_PLACE;
    if (rc != 0)
        close_fd(fd);
    return rc;
}

bool
replace_is_meant(const struct msg_file *m)
{
    const uint8_t fresh = MSG_FILE_CREATE | MSG_FILE_EXCLUSIVE;

    return ((m->flags & MSG_FILE_TRUNCATE) != 0 || (m->flags & fresh) == fresh) && (m->flags & MSG_FILE_APPEND) == 0;
}

int
replace_begin(struct walk_place *place, const struct msg_file *m, struct replacement **out, int *fd)
{
    const bool exclusive = (m->flags & MSG_FILE_CREATE) != 0 && (m->flags & MSG_FILE_EXCLUSIVE) != 0;
    struct replacement *r;
    struct stat old;
    bool fresh = fstatat(place->dir, place->name, &old, AT_SYMLINK_NOFOLLOW) < 0;
    int rc;

    if (fresh && (errno != ENOENT || (m->flags & MSG_FILE_CREATE) == 0))
        return errno;
    if (!fresh && exclusive)
        return EEXIST;
    if (!fresh && !is_replaceable(place, &old))
        return REPLACE_IN_PLACE;
    r = calloc(1, sizeof(*r));
    if (r == NULL)
        return ENOMEM;
    r->exclusive = exclusive;
    r->dir = take_fd(&place->dir);
    memcpy(r->name, place->name, strlen(place->name) + 1);
    rc = make(r, fresh ? NULL : &old, m, fd);
    if (rc == 0) {
        *out = r;
        return 0;
    }
    place->dir = take_fd(&r->dir);
    if (r->temp[0] != '\0')
        (void)unlinkat(place->dir, r->temp, 0);
    free(r);
    return rc;
}

/* --- its name ----------------------------------------------------------------------------------------------------- */

/* File systems on other machines say only here that there was no room. */
static int
flush(int fd)
{
    int other = fcntl(fd, F_DUPFD_CLOEXEC, 0);

    return other < 0 || close(other) < 0 ? errno : 0;
}

static int
give_name(const struct replacement *r, int fd, const char *name)
{
    char path[PROC_PATH_MAX];

    proc_path(fd, path);
    return linkat(AT_FDCWD, path, r->dir, name, AT_SYMLINK_FOLLOW) < 0 ? errno : 0;
}

static int
give_temporary_name(struct replacement *r, int fd)
{
    int rc = EEXIST;

    for (int i = 0; i < TRIES && rc == EEXIST; i++) {
        if (make_name(REPLACE_FORMER, r->temp) != 0)
            rc = EIO;
        else
            rc = give_name(r, fd, r->temp);
    }
    if (rc != 0)
        r->temp[0] = '\0';
    return rc;
}

/* Whether the temporary name is @fd's still. */
static int
check_temporary_name(const struct replacement *r, int fd)
{
    struct stat a, b;

    if (fstat(fd, &a) < 0 || fstatat(r->dir, r->temp, &b, AT_SYMLINK_NOFOLLOW) < 0)
        return errno;
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino ? 0 : EBUSY;
}

static int
rename_over(struct replacement *r)
{
    int rc = kernel_renameat2(r->dir, r->temp, r->dir, r->name, r->exclusive ? RENAME_NOREPLACE : 0) < 0 ? errno : 0;

    /* a file system that does not know the flag: then the temporary name goes with the rest */
    if (rc == EINVAL && r->exclusive)
        return linkat(r->dir, r->temp, r->dir, r->name, 0) < 0 ? errno : 0;
    if (rc == 0)
        r->temp[0] = '\0';
    return rc;
}

/* Nothing may have come there since that is no file. */
static int
check_target(const struct replacement *r)
{
    struct stat st;

    if (fstatat(r->dir, r->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : errno;
    if (r->exclusive)
        return EEXIST;
    if (S_ISLNK(st.st_mode))
        return files_open_error(ELOOP);
    if (S_ISDIR(st.st_mode))
        return EISDIR;
    return S_ISREG(st.st_mode) ? 0 : FILES_NOT_REGULAR;
}

int
replace_finish(struct guest *g, struct replacement *r, int fd)
{
    int rc = guard_link_check(g, r->dir, r->name, "write");

    if (rc == 0)
        rc = flush(fd);
    if (rc == 0)
        rc = check_target(r);
    if (rc == 0)
        rc = guard_link_place(g, fd, r->dir, r->name, !r->exclusive);
    if (rc == GUARD_DONE)
        return 0;
    if (rc == 0 && r->temp[0] == '\0') {
        rc = give_name(r, fd, r->name);
        if (rc == 0)
            return guard_link_made(g, r->dir, r->name, false);
        if (rc != EEXIST || r->exclusive)
            return rc;
        rc = give_temporary_name(r, fd);
    }
    if (rc == 0)
        rc = check_temporary_name(r, fd);
    if (rc == 0)
        rc = rename_over(r);
    return rc == 0 ? guard_link_made(g, r->dir, r->name, false) : rc;
}

void
replace_free(struct replacement *r)
{
    if (r == NULL)
        return;
    if (r->temp[0] != '\0')
        (void)unlinkat(r->dir, r->temp, 0);
    close_fd(&r->dir);
    free(r);
}
