/* workspace/tree.c: see tree.h */
#include "workspace/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"

#define QUEUE_SUFFIX ".removing"

static int
open_beneath(int root, const char *path, int flags)
{
    struct open_how how = {
        .flags = (unsigned)(flags | O_CLOEXEC | O_NOFOLLOW),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };
    long fd;

    /* EAGAIN: something was renamed meanwhile and the kernel could not prove that the walk stayed inside */
    for (int i = 0; i < 64; i++) {
        fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            break;
    }
    return (int)fd;
}

/* The same rules without openat2: one component at a time. */
static int
open_stepwise(int root, const char *path, int flags)
{
    cleanup_close int at = fcntl(root, F_DUPFD_CLOEXEC, 0);
    struct stat top, st;

    if (at < 0 || fstat(at, &top) < 0)
        return -1;
    for (;;) {
        char name[NAME_MAX + 1];
        size_t n = strcspn(path, "/");
        bool last = path[n] == '\0';

        if (n == 0 || n > NAME_MAX || (n == 2 && memcmp(path, "..", 2) == 0)) {
            errno = n > NAME_MAX ? ENAMETOOLONG : EXDEV;
            return -1;
        }
        memcpy(name, path, n);
        name[n] = '\0';
        int next = openat(at, name, (last ? flags : O_PATH | O_DIRECTORY) | O_CLOEXEC | O_NOFOLLOW);
        if (next < 0)
            return -1;
        close_fd(&at);
        at = next;
        if (fstat(at, &st) < 0)
            return -1;
        if (st.st_dev != top.st_dev || (!last && !S_ISDIR(st.st_mode))) {
            errno = st.st_dev != top.st_dev ? EXDEV : ENOTDIR;
            return -1;
        }
        if (last)
            return take_fd(&at);
        path += n + 1;
    }
}

int
tree_open(int root, const char *path, int flags)
{
    int fd;

    if (*path == '\0')
        path = ".";
    fd = open_beneath(root, path, flags);
    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        fd = open_stepwise(root, path, flags);
    return fd;
}

int
tree_open_parent(int root, const char *path, const char **name)
{
    const char *slash = strrchr(path, '/');
    char parent[PATH_MAX];
    size_t n = slash != NULL ? (size_t)(slash - path) : 0;

    *name = slash != NULL ? slash + 1 : path;
    if (n >= sizeof(parent)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(parent, path, n);
    parent[n] = '\0';
    return tree_open(root, parent, O_PATH | O_DIRECTORY);
}

/* chmod of the very object that @fd (O_PATH) refers to. */
static int
chmod_object(int fd, mode_t mode)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return chmod(path, mode);
}

/* Whether a directory's owner has all rights in it. */
static bool
enterable(mode_t mode)
{
    return (mode & S_IRWXU) == S_IRWXU;
}

int
tree_lift(int dir, const char *name, mode_t *mode)
{
    char text[8], path[32];
    struct stat st;
    ssize_t n;

    cleanup_close int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    *mode = st.st_mode & 07777;
    if (!enterable(st.st_mode)) {
        /* user xattrs need write permission, so the mode goes first */
        if (chmod_object(fd, (st.st_mode & 07777) | S_IRWXU) < 0)
            return -1;
        snprintf(text, sizeof(text), "%04o", (unsigned)st.st_mode & 07777);
        return setxattr(path, TREE_MODE_XATTR, text, strlen(text), 0);
    }
    n = getxattr(path, TREE_MODE_XATTR, text, sizeof(text));
    if (n == 4) {
        mode_t was = 0;
        for (int i = 0; i < 4; i++)
            was = (was << 3) | (mode_t)(text[i] & 7);
        *mode = was;
    }
    return 0;
}

int
tree_open_file(int dir, const char *name, bool lift)
{
    int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    struct stat st;

    /* the type first: opening a device node or a FIFO is itself an act */
    cleanup_close int handle = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (handle < 0 || fstat(handle, &st) < 0)
        return -1;
    if (!S_ISREG(st.st_mode)) {
        errno = ENXIO;
        return -1;
    }
    int fd = openat(dir, name, flags);
    if (fd < 0 && errno == EACCES && lift && chmod_object(handle, (st.st_mode & 07777) | S_IRUSR) == 0) {
        fd = openat(dir, name, flags);
        int saved = errno;
        chmod_object(handle, st.st_mode & 07777);
        errno = saved;
    }
    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        errno = ESTALE;
        return -1;
    }
    return fd;
}

static int
by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Point into @text, which holds @n names, each with its NUL. */
static int
index_names(struct tree_names *out, char *text, size_t n)
{
    out->text = text;
    out->n = n;
    out->v = calloc(n > 0 ? n : 1, sizeof(*out->v));
    if (out->v == NULL) {
        tree_names_free(out);
        errno = ENOMEM;
        return -1;
    }
    for (size_t i = 0; i < n; i++) {
        out->v[i] = text;
        text += strlen(text) + 1;
    }
    qsort(out->v, n, sizeof(*out->v), by_bytes);
    return 0;
}

int
tree_names_read(int dir, struct tree_names *out)
{
    cleanup_buf struct buf text = BUF_INIT((size_t)TREE_NAMES_MAX * (NAME_MAX + 1));
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_dir DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    size_t n = 0;

    *out = (struct tree_names){ .v = NULL };
    if (d == NULL) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    for (;;) {
        errno = 0;
        const struct dirent *e = readdir(d);
        if (e == NULL)
            break;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (++n > TREE_NAMES_MAX) {
            errno = EFBIG;
            return -1;
        }
        if (buf_append(&text, e->d_name, strlen(e->d_name) + 1) < 0) {
            errno = ENOMEM;
            return -1;
        }
    }
    if (errno != 0)
        return -1;
    char *owned = (char *)text.p;
    text.p = NULL;
    text.n = text.cap = 0;
    return index_names(out, owned, n);
}

void
tree_names_free(struct tree_names *names)
{
    free(names->v);
    free(names->text);
    *names = (struct tree_names){ .v = NULL };
}

/* --- removal --------------------------------------------------------------------------------------------------- */

/* Give the owner all rights in the directory @name; -1 with errno (ENOTDIR when it is none). */
static int
make_enterable(int dir, const char *name)
{
    struct stat st;

    cleanup_close int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    return enterable(st.st_mode) ? 0 : chmod_object(fd, 0700);
}

/* Remove the child @name of @dir, or move it up into the queue when it is a directory. */
static int
detach_child(int dir, dev_t dev, const char *name, int queue, uint64_t *counter)
{
    struct stat st;
    char to[32];

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    if (st.st_dev != dev) {
        errno = EXDEV;
        return -1;
    }
    if (!S_ISDIR(st.st_mode))
        return unlinkat(dir, name, 0);
    /* a directory without write permission cannot change its parent */
    if (make_enterable(dir, name) < 0)
        return -1;
    snprintf(to, sizeof(to), "%llu", (unsigned long long)(*counter)++);
    return renameat(dir, name, queue, to);
}

/* Remove the entry @name of the queue; its directories move up into the queue. */
static int
empty_and_remove(int queue, const char *name, uint64_t *counter)
{
    struct tree_names names;
    struct stat st;
    int r = 0;

    if (make_enterable(queue, name) < 0)
        return errno == ENOTDIR || errno == ELOOP ? unlinkat(queue, name, 0) : -1;
    cleanup_close int dir = openat(queue, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &st) < 0 || tree_names_read(dir, &names) < 0)
        return -1;
    for (size_t i = 0; i < names.n && r == 0; i++)
        r = detach_child(dir, st.st_dev, names.v[i], queue, counter);
    tree_names_free(&names);
    return r < 0 ? -1 : unlinkat(queue, name, AT_REMOVEDIR);
}

/* The first number that no name in the queue uses (an interrupted removal leaves some). */
static uint64_t
next_number(const struct tree_names *names, uint64_t counter)
{
    for (size_t i = 0; i < names->n; i++) {
        uint64_t used;
        if (str_parse_u64(str_of(names->v[i]), UINT64_MAX - 1, &used) && used >= counter)
            counter = used + 1;
    }
    return counter;
}

static int
drain_queue(int queue)
{
    struct tree_names names;
    uint64_t counter = 1;
    size_t n;

    do {
        int r = 0;
        if (tree_names_read(queue, &names) < 0)
            return -1;
        n = names.n;
        counter = next_number(&names, counter);
        for (size_t i = 0; i < n && r == 0; i++)
            r = empty_and_remove(queue, names.v[i], &counter);
        tree_names_free(&names);
        if (r < 0)
            return -1;
    } while (n > 0);
    return 0;
}

/* Remove one entry of the directory @name of @dir, at its top or further down: what has none below it. An empty one
 * goes itself. */
static int
remove_one(int dir, const char *name)
{
    cleanup_close int above = fcntl(dir, F_DUPFD_CLOEXEC, 0);
    char at[NAME_MAX + 1];
    struct stat top, st;

    snprintf(at, sizeof(at), "%s", name);
    if (above < 0 || fstatat(dir, name, &top, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    for (;;) {
        struct tree_names names;

        if (make_enterable(above, at) < 0)
            return -1;
        cleanup_close int here = openat(above, at, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (here < 0 || tree_names_read(here, &names) < 0)
            return -1;
        if (names.n == 0) {
            tree_names_free(&names);
            return unlinkat(above, at, AT_REMOVEDIR);
        }
        snprintf(at, sizeof(at), "%s", names.v[0]);
        tree_names_free(&names);
        if (fstatat(here, at, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return -1;
        if (st.st_dev != top.st_dev) {
            errno = EXDEV;
            return -1;
        }
        if (!S_ISDIR(st.st_mode))
            return unlinkat(here, at, 0);
        close_fd(&above);
        above = take_fd(&here);
    }
}

/* On a disk without room for one more directory something of what is to go goes first: otherwise nothing could. */
static int
make_queue(int dir, const char *name, const char *queue_name)
{
    for (size_t i = 0; mkdirat(dir, queue_name, 0700) < 0 && errno != EEXIST; i++) {
        if ((errno != ENOSPC && errno != EDQUOT) || i == TREE_NAMES_MAX || remove_one(dir, name) < 0)
            return -1;
    }
    return 0;
}

/* Move the directory @name into the queue directory beside it, and empty that. */
static int
remove_directory(int dir, const char *name, const char *queue_name)
{
    struct stat st;

    /* it may be gone before there was room */
    if (make_queue(dir, name, queue_name) < 0)
        return errno == ENOENT && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT ? 0 : -1;
    cleanup_close int queue = openat(dir, queue_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (queue < 0)
        return -1;
    if (drain_queue(queue) < 0)     /* of an interrupted removal */
        return -1;
    if (make_enterable(dir, name) == 0) {
        if (renameat(dir, name, queue, "0") < 0)
            return -1;
    } else if (errno != ENOENT) {
        return -1;
    }
    if (drain_queue(queue) < 0)
        return -1;
    return unlinkat(dir, queue_name, AT_REMOVEDIR);
}

int
tree_remove(int dir, const char *name, struct err *err)
{
    char queue_name[NAME_MAX + 1];
    struct stat st;
    int n = snprintf(queue_name, sizeof(queue_name), "%s" QUEUE_SUFFIX, name);

    if (n < 0 || (size_t)n >= sizeof(queue_name))
        return err_set(err, ERR_LIMIT, "workspace.remove", "the name %s is too long to be removed", name);
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        if (errno != ENOENT)
            return err_sys(err, errno, "workspace.remove", "cannot remove %s", name);
        /* gone, but perhaps into the queue of an interrupted removal */
        if (fstatat(dir, queue_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return 0;
    } else if (!S_ISDIR(st.st_mode)) {
        if (unlinkat(dir, name, 0) < 0)
            return err_sys(err, errno, "workspace.remove", "cannot remove %s", name);
        return 0;
    }
    if (remove_directory(dir, name, queue_name) < 0)
        return err_sys(err, errno, "workspace.remove", "cannot remove %s", name);
    return 0;
}
