/* workspace/copy.c: see copy.h
 *
 * Folders are made enterable and get their modes last, from the deepest up; so are those of the source that keep their
 * owner out put back. Two descriptors of folders are open at a time, and two of files.
 */
#include "workspace/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/kernel.h"
#include "workspace/tree.h"
#include "workspace/xattr.h"

#define PATHS_MAX (64U * 1024 * 1024)   /* bytes of all paths of folders, and of files with several names */
#define LINK_SLOTS 65536                /* a power of two; three quarters of them are used */
#define PIECE     (256U * 1024)

struct folder {
    size_t path;            /* its place in struct copy's paths */
    mode_t mode;
    bool lifted;            /* the source's has to get @mode back */
};

struct twin {               /* a file with several names: its first one */
    dev_t dev;
    ino_t ino;              /* 0 none */
    size_t path;
};

struct copy {
    struct tree_copy *c;
    struct statx root;      /* of the source: what is on another mount is left out */
    struct buf paths;
    struct folder *folders;
    size_t n, room;
    struct twin *twins;     /* NULL: there was none yet */
    size_t n_twins;
    char *piece;
};

static int
fail(const char *path, struct err *err)
{
    if (errno == ENOSPC || errno == EDQUOT) {
        err_set(err, ERR_LIMIT, "template.full", "there is no room for all of its files");
        return err_hint(err, "make room where the daemon has its state, raise limits.disk, or remove files first");
    }
    return err_sys(err, errno, "template.copy", "copy %s", path[0] != '\0' ? path : "a folder");
}

static const char *
path_at(const struct copy *k, size_t at)
{
    return (const char *)k->paths.p + at;
}

/* "@folder/@name" as a path of its own. -1 with errno. */
static int
path_put(struct copy *k, size_t folder, const char *name, size_t *out)
{
    size_t n = strlen(path_at(k, folder)), m = strlen(name);
    char path[TREE_PATH_MAX + 1];

    if (n + 1 + m > TREE_PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(path, path_at(k, folder), n);
    if (n > 0)
        path[n++] = '/';
    memcpy(path + n, name, m + 1);
    *out = k->paths.n;
    if (buf_append(&k->paths, path, n + m + 1) == 0)
        return 0;
    errno = ENOMEM;
    return -1;
}

static int
folder_put(struct copy *k, size_t path, mode_t mode)
{
    if (k->n == k->room) {
        size_t room = k->room > 0 ? 2 * k->room : 64;
        struct folder *more = realloc(k->folders, room * sizeof(*more));
        if (more == NULL)
            return -1;
        k->folders = more;
        k->room = room;
    }
    k->folders[k->n++] = (struct folder){ .path = path, .mode = mode & 01777 };
    return 0;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static int
is_ours(const struct copy *k, int fd)
{
    return k->c->owned ? fchown(fd, k->c->uid, k->c->gid) : 0;
}

static int
counts(struct copy *k, uint64_t n)
{
    k->c->bytes += n;
    if (k->c->bytes_max == 0 || k->c->bytes <= k->c->bytes_max)
        return 0;
    errno = EDQUOT;
    return -1;
}

/* The kernel's way, which shares the blocks where the file system can: as far as it goes. */
static off_t
share_data(int in, int out, off_t at, off_t end)
{
    off_t to = at;
    ssize_t n;

    while (at < end && (n = copy_file_range(in, &at, out, &to, (size_t)(end - at), 0)) > 0)
        ;
    return at;
}

/* What lies from @at on, up to a hole. -1 with errno. */
static int
copy_data(struct copy *k, int in, int out, off_t at, off_t end)
{
    off_t shared = share_data(in, out, at, end);

    if (shared > at && counts(k, (uint64_t)(shared - at)) < 0)
        return -1;
    at = shared;
    while (at < end) {
        size_t want = end - at < (off_t)PIECE ? (size_t)(end - at) : PIECE;
        ssize_t got = pread(in, k->piece, want, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return (int)got;    /* shorter than it was */
        for (ssize_t put = 0, n; put < got; put += n) {
            n = pwrite(out, k->piece + put, (size_t)(got - put), at + put);
            if (n < 0 && errno != EINTR)
                return -1;
            n = n < 0 ? 0 : n;
        }
        if (counts(k, (uint64_t)got) < 0)
            return -1;
        at += got;
    }
    return 0;
}

static int
copy_contents(struct copy *k, int in, int out, off_t size)
{
    if (ftruncate(out, size) < 0)
        return -1;
    for (off_t at = 0; at < size;) {
        off_t data = lseek(in, at, SEEK_DATA), end;
        if (data < 0 && errno == ENXIO)
            return 0;           /* a hole up to its end */
        if (data < 0)
            data = at;          /* a file system that knows no holes */
        end = lseek(in, data, SEEK_HOLE);
        if (end < 0)
            end = size;
        if (copy_data(k, in, out, data, end) < 0)
            return -1;
        at = end;
    }
    return 0;
}

/* What holds for a file and a folder alike, last of all. */
static int
same_as(int in, int out, const struct stat *st, mode_t mode)
{
    const struct timespec times[] = { st->st_atim, st->st_mtim };

    return xattr_copy(in, out) < 0 || fchmod(out, mode) < 0 || futimens(out, times) < 0 ? -1 : 0;
}

/* The place for that file of the table. In an overlay each layer has numbers of its own. */
static struct twin *
twin_of(struct copy *k, const struct stat *st)
{
    size_t at = (size_t)(st->st_ino * 0x9e3779b97f4a7c15ULL) & (LINK_SLOTS - 1);

    while (k->twins[at].ino != 0 && (k->twins[at].ino != st->st_ino || k->twins[at].dev != st->st_dev))
        at = (at + 1) & (LINK_SLOTS - 1);
    return &k->twins[at];
}

/* Whether @name became another name of a file that was copied: 1; 0: it has to be copied; -1 with errno. */
static int
twin_link(struct copy *k, const struct stat *st, size_t folder, int dst, const char *name)
{
    cleanup_close int parent = -1;
    struct twin *t;
    const char *old;

    if (st->st_nlink < 2)
        return 0;
    if (k->twins == NULL && (k->twins = calloc(LINK_SLOTS, sizeof(*k->twins))) == NULL)
        return -1;
    t = twin_of(k, st);
    if (t->ino == 0) {
        if (k->n_twins < LINK_SLOTS / 4 * 3) {
            if (path_put(k, folder, name, &t->path) < 0)
                return -1;
            t->dev = st->st_dev;
            t->ino = st->st_ino;
            k->n_twins++;
        }
        return 0;
    }
    parent = tree_open_parent(k->c->to, path_at(k, t->path), &old);
    if (parent < 0)
        return -1;
    return linkat(parent, old, dst, name, 0) == 0 || errno == EEXIST ? 1 : errno == ENOENT ? 0 : -1;
}

static int
copy_file(struct copy *k, size_t folder, int src, int dst, const char *name)
{
    cleanup_close int in = tree_open_file(src, name, true), out = -1;
    struct stat st;
    int linked;

    if (in < 0 || fstat(in, &st) < 0)
        return -1;
    linked = twin_link(k, &st, folder, dst, name);
    if (linked != 0)
        return linked < 0 ? -1 : 0;
    out = openat(dst, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (out < 0)
        return errno == EEXIST ? 0 : -1;
    return copy_contents(k, in, out, st.st_size) < 0 || is_ours(k, out) < 0 ||
           same_as(in, out, &st, st.st_mode & 0777) < 0 ? -1 : 0;
}

static int
copy_link(const struct copy *k, int src, int dst, const char *name)
{
    char to[PATH_MAX];
    ssize_t n = readlinkat(src, name, to, sizeof(to) - 1);

    if (n < 0)
        return -1;
    to[n] = '\0';
    if (symlinkat(to, dst, name) < 0)
        return errno == EEXIST ? 0 : -1;
    return k->c->owned ? fchownat(dst, name, k->c->uid, k->c->gid, AT_SYMLINK_NOFOLLOW) : 0;
}

/* --- folders ------------------------------------------------------------------------------------------------------ */

static int
make_folder(struct copy *k, size_t folder, int dst, const char *name, mode_t mode)
{
    cleanup_close int made = -1;
    size_t path;

    if (mkdirat(dst, name, 0700) < 0 && errno != EEXIST)
        return -1;
    made = openat(dst, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (made < 0)
        return errno == ENOTDIR || errno == ELOOP ? 0 : -1;     /* another thing of that name is there */
    return path_put(k, folder, name, &path) < 0 || folder_put(k, path, mode) < 0 || is_ours(k, made) < 0 ? -1 : 0;
}

/* Whether that is mounted in the source. In an overlay each layer's files have a device of their own, so it is the
 * mount that tells; before Linux 5.8, which does not tell mounts, there are no such overlays. */
static bool
is_mounted(const struct copy *k, const struct statx *sx)
{
    if ((sx->stx_mask & k->root.stx_mask & STATX_MNT_ID) != 0)
        return sx->stx_mnt_id != k->root.stx_mnt_id;
    return sx->stx_dev_major != k->root.stx_dev_major || sx->stx_dev_minor != k->root.stx_dev_minor;
}

static int
copy_entry(struct copy *k, size_t folder, int src, int dst, const char *name)
{
    struct statx sx;
    mode_t mode;

    if (kernel_statx(src, name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_MNT_ID, &sx) < 0)
        return errno == ENOENT ? 0 : -1;
    mode = sx.stx_mode;
    if (is_mounted(k, &sx) || !(S_ISDIR(mode) || S_ISREG(mode) || S_ISLNK(mode)))
        return 0;
    k->c->entries++;
    return S_ISDIR(mode) ? make_folder(k, folder, dst, name, mode)
           : S_ISREG(mode) ? copy_file(k, folder, src, dst, name) : copy_link(k, src, dst, name);
}

/* The folder @f of the source, whose mode may keep its owner out. -1 with errno. */
static int
open_source(const struct copy *k, struct folder *f)
{
    cleanup_close int parent = -1;
    int fd = tree_open(k->c->from, path_at(k, f->path), O_RDONLY | O_DIRECTORY);
    struct stat st;
    const char *name;

    if (fd >= 0 && fstatat(fd, ".", &st, 0) == 0)       /* it can be passed through, too */
        return fd;
    if ((errno != EACCES || path_at(k, f->path)[0] == '\0'))
        return -1;
    close_fd(&fd);
    parent = tree_open_parent(k->c->from, path_at(k, f->path), &name);
    if (parent < 0 || fchmodat(parent, name, f->mode | S_IRWXU, 0) < 0)
        return -1;
    f->lifted = true;
    return tree_open(k->c->from, path_at(k, f->path), O_RDONLY | O_DIRECTORY);
}

static int
copy_folder(struct copy *k, size_t i, struct err *err)
{
    size_t path = k->folders[i].path;
    cleanup_close int src = open_source(k, &k->folders[i]), dst = -1;
    struct tree_names names;
    int r = 0;

    if (src < 0)        /* a mount, or what became one */
        return errno == EXDEV || errno == ENOENT ? 0 : fail(path_at(k, path), err);
    dst = tree_open(k->c->to, path_at(k, path), O_RDONLY | O_DIRECTORY);
    if (dst < 0 || tree_names_read(src, &names) < 0)
        return fail(path_at(k, path), err);
    for (size_t j = 0; j < names.n && r == 0; j++)
        if (copy_entry(k, path, src, dst, names.v[j]) < 0)
            r = fail(names.v[j], err);
    tree_names_free(&names);
    return r;
}

/* The modes of both sides, from the deepest on: until then all were enterable. */
static int
settle(struct copy *k, bool all, struct err *err)
{
    int r = 0;

    for (size_t i = k->n; i-- > 1;) {
        const struct folder *f = &k->folders[i];
        const char *path = path_at(k, f->path);
        cleanup_close int src = tree_open(k->c->from, path, O_RDONLY | O_DIRECTORY);
        cleanup_close int dst = all && r == 0 ? tree_open(k->c->to, path, O_RDONLY | O_DIRECTORY) : -1;
        struct stat st;
        if (src >= 0 && dst >= 0 && (fstat(src, &st) < 0 || same_as(src, dst, &st, f->mode) < 0))
            r = fail(path, err);
        if (src >= 0 && f->lifted)
            (void)fchmod(src, f->mode);
    }
    return r;
}

int
tree_copy(struct tree_copy *c, struct err *err)
{
    struct copy k = { .c = c, .paths = BUF_INIT(PATHS_MAX) };
    int r = -1;

    if (kernel_statx(c->from, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &k.root) < 0)
        return fail("", err);
    k.piece = malloc(PIECE);
    if (k.piece == NULL || buf_put_u8(&k.paths, 0) < 0 || folder_put(&k, 0, k.root.stx_mode) < 0) {
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
    } else {
        r = 0;
        for (size_t i = 0; i < k.n && r == 0; i++)
            r = copy_folder(&k, i, err);
        if (settle(&k, r == 0, err) < 0)
            r = -1;
    }
    free(k.piece);
    free(k.twins);
    free(k.folders);
    buf_free(&k.paths);
    return r;
}
