/* wall/mnt.c: see mnt.h */
#include "wall/mnt.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/kernel.h"

static int
missing_or(struct err *err, const char *call, const char *kernel, const char *what)
{
    if (errno == ENOSYS) {
        err_set(err, ERR_UNSUPPORTED, "wall.mount.unsupported", "%s: this kernel (or an outer sandbox) has no %s",
                what, call);
        return err_hint(err, "it needs Linux %s or newer, and no outer seccomp filter that hides %s; try --mode light",
                        kernel, call);
    }
    return err_sys(err, errno, "wall.mount", "%s: %s", what, call);
}

static uint64_t
attr_bits(unsigned flags)
{
    uint64_t bits = MOUNT_ATTR_NOSUID;

    if (flags & MNT_RO)
        bits |= MOUNT_ATTR_RDONLY;
    if (flags & MNT_NOEXEC)
        bits |= MOUNT_ATTR_NOEXEC;
    if (!(flags & MNT_DEV))
        bits |= MOUNT_ATTR_NODEV;
    if (flags & MNT_NOSYMFOLLOW)
        bits |= MOUNT_ATTR_NOSYMFOLLOW;
    return bits;
}

int
mnt_new(const char *fstype, const struct mnt_option *options, size_t n, unsigned flags, struct err *err)
{
    cleanup_close int fs = kernel_fsopen(fstype);
    int fd;

    if (fs < 0)
        return missing_or(err, "fsopen", "5.2", fstype);
    for (size_t i = 0; i < n; i++) {
        unsigned cmd = options[i].value != NULL ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;
        if (kernel_fsconfig(fs, cmd, options[i].key, options[i].value, 0) < 0)
            return err_sys(err, errno, "wall.mount", "%s: option %s", fstype, options[i].key);
    }
    if (kernel_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return err_sys(err, errno, "wall.mount", "%s: create", fstype);
    fd = kernel_fsmount(fs, (unsigned)attr_bits(flags));
    if (fd < 0)
        return err_sys(err, errno, "wall.mount", "%s: fsmount", fstype);
    return fd;
}

int
mnt_clone(int dirfd, const char *path, unsigned flags, int userns, struct err *err)
{
    unsigned recursive = flags & MNT_RECURSIVE ? (unsigned)AT_RECURSIVE : 0;
    unsigned empty = path[0] == '\0' ? (unsigned)AT_EMPTY_PATH : 0;
    struct mount_attr attr = { .attr_set = attr_bits(flags), .propagation = MS_PRIVATE };
    cleanup_close int fd = -1;

    fd = kernel_open_tree(dirfd, path, OPEN_TREE_CLONE | recursive | empty);
    if (fd < 0)
        return missing_or(err, "open_tree", "5.2", "bind mount");
    if (!(flags & MNT_AS_IS) && kernel_mount_setattr(fd, "", AT_EMPTY_PATH | recursive, &attr) < 0)
        return missing_or(err, "mount_setattr", "5.12", "bind mount");
    if (userns >= 0) {
        struct mount_attr idmap = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (unsigned)userns };
        if (kernel_mount_setattr(fd, "", AT_EMPTY_PATH | recursive, &idmap) < 0)
            return err_sys(err, errno, "wall.idmap", "the file system cannot be mounted with another owner");
    }
    return take_fd(&fd);
}

int
mnt_attach(int tree, int target, struct err *err)
{
    if (kernel_move_mount(tree, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
        return missing_or(err, "move_mount", "5.2", "attach");
    return 0;
}

int
mnt_attach_at(int tree, int dir, const char *name, struct err *err)
{
    /* without MOVE_MOUNT_T_SYMLINKS a link in the place of @name is not followed */
    if (kernel_move_mount(tree, "", dir, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return missing_or(err, "move_mount", "5.2", "attach");
    return 0;
}

int
mnt_protect(int mount_fd, unsigned flags, struct err *err)
{
    unsigned recursive = flags & MNT_RECURSIVE ? (unsigned)AT_RECURSIVE : 0;
    struct mount_attr attr = { .attr_set = attr_bits(flags) };

    if (kernel_mount_setattr(mount_fd, "", AT_EMPTY_PATH | recursive, &attr) < 0)
        return missing_or(err, "mount_setattr", "5.12", "mount attributes");
    return 0;
}

int
mnt_protects(int dir, struct err *err)
{
    cleanup_close int tree = mnt_clone(dir, "", MNT_RO, -1, err);
    struct statfs fs;

    if (tree < 0)
        return -1;
    if (fstatfs(tree, &fs) < 0)
        return err_sys(err, errno, "wall.mount", "look at a mount");
    if ((fs.f_flags & ST_RDONLY) == 0 || (fs.f_flags & ST_NOSUID) == 0)
        return err_not_done(err, "wall.mount.unsupported", "a mount is not read-only after mount_setattr made it so");
    /* to close a tree that is attached nowhere is to wait for an RCU grace period */
    return mnt_attach(tree, dir, err);
}

static int
open2(int root, const char *path, int flags, uint64_t resolve)
{
    struct open_how how = { .flags = (unsigned)(flags | O_CLOEXEC), .resolve = resolve | RESOLVE_NO_MAGICLINKS };

    for (;;) {
        int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
        if (fd >= 0 || (errno != EINTR && errno != EAGAIN))
            return fd;
    }
}

/* The next component of *path into @name; false at the end, errno ENAMETOOLONG when it is too long. */
static bool
next_component(const char **path, char name[NAME_MAX + 1], bool *bad)
{
    const char *end;
    size_t n;

    *bad = false;
    while (**path == '/')
        (*path)++;
    if (**path == '\0')
        return false;
    end = strchrnul(*path, '/');
    n = (size_t)(end - *path);
    if (n > NAME_MAX) {
        *bad = true;
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(name, *path, n);
    name[n] = '\0';
    if (strcmp(name, "..") == 0) {
        *bad = true;
        errno = EXDEV;
        return false;
    }
    *path = end;
    return true;
}

static int
enter(int at, const char *name)
{
    return openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* openat2 without openat2: one component at a time, each refused when it is a symlink. */
static int
walk_beneath(int root, const char *path, int flags)
{
    cleanup_close int at = -1;
    char name[NAME_MAX + 1], last[NAME_MAX + 1] = ".";
    bool bad, first = true;

    while (next_component(&path, name, &bad)) {
        int next;
        if (!first) {
            next = enter(at >= 0 ? at : root, last);
            if (next < 0)
                return -1;
            close_fd(&at);
            at = next;
        }
        first = false;
        memcpy(last, name, sizeof(last));
    }
    return bad ? -1 : openat(at >= 0 ? at : root, last, flags | O_NOFOLLOW | O_CLOEXEC);
}

int
mnt_open_beneath(int root, const char *path, int flags, bool symlinks)
{
    int fd;

    while (*path == '/')
        path++;
    fd = open2(root, *path == '\0' ? "." : path, flags, RESOLVE_BENEATH | (symlinks ? 0 : RESOLVE_NO_SYMLINKS));
    /* hidden by an outer filter, or Linux before 5.6; links within the tree cannot be followed safely without it */
    if (fd < 0 && (errno == ENOSYS || errno == EPERM) && !symlinks)
        return walk_beneath(root, path, flags);
    return fd;
}

bool
mnt_is_absent(int why)
{
    static const int absent[] = { ENOENT, ENOTDIR, ELOOP, EXDEV, EACCES, EPERM, ENAMETOOLONG, ENOTCONN, ESTALE, ESRCH };

    for (size_t i = 0; i < ARRAY_LEN(absent); i++)
        if (why == absent[i])
            return true;
    return false;
}

static bool
on_device(int dir, dev_t own)
{
    struct stat st;

    return fstat(dir, &st) == 0 && st.st_dev == own;
}

int
mnt_mkdirs(int dir, const char *path, mode_t mode, dev_t own)
{
    cleanup_close int at = -1;
    char name[NAME_MAX + 1];
    bool bad;

    while (next_component(&path, name, &bad)) {
        int here = at >= 0 ? at : dir, next = enter(here, name);
        if (next < 0 && errno == ENOENT && on_device(here, own)) {
            if (mkdirat(here, name, mode) < 0 && errno != EEXIST)
                return -1;
            next = enter(here, name);
        }
        if (next < 0)
            return -1;
        close_fd(&at);
        at = next;
    }
    if (bad)
        return -1;
    return at >= 0 ? take_fd(&at) : enter(dir, ".");
}
