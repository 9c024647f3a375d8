/* base/kernel.h: system calls that not every C library has a function for
 *
 * cloche is built against glibc and against musl (docs/development.md); musl 1.2.3 knows their numbers only. Each
 * function is the call itself: -1 with errno, arguments as in its man page. The constants and structures are the
 * kernel's own, unless the library has brought its copies already.
 */
#ifndef CLOCHE_BASE_KERNEL_H
#define CLOCHE_BASE_KERNEL_H

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef FSOPEN_CLOEXEC
#include <linux/mount.h>
#endif
#ifndef STATX_BASIC_STATS
#include <linux/stat.h>
#endif
#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000U
#endif
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#define RENAME_EXCHANGE (1 << 1)
#endif
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x0020
#endif
#ifndef MOUNT_ATTR_NOSYMFOLLOW
#define MOUNT_ATTR_NOSYMFOLLOW 0x00200000
#endif

static inline int
kernel_fsopen(const char *type)
{
    return (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);
}

static inline int
kernel_fsconfig(int fs, unsigned command, const char *key, const char *value, int aux)
{
    return (int)syscall(SYS_fsconfig, fs, command, key, value, aux);
}

static inline int
kernel_fsmount(int fs, unsigned attributes)
{
    return (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, attributes);
}

static inline int
kernel_open_tree(int dir, const char *path, unsigned flags)
{
    return (int)syscall(SYS_open_tree, dir, path, OPEN_TREE_CLOEXEC | flags);
}

static inline int
kernel_move_mount(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    return (int)syscall(SYS_move_mount, from_dir, from, to_dir, to, flags);
}

static inline int
kernel_mount_setattr(int dir, const char *path, unsigned flags, const struct mount_attr *attr)
{
    return (int)syscall(SYS_mount_setattr, dir, path, flags, attr, sizeof(*attr));
}

static inline int
kernel_statx(int dir, const char *path, int flags, unsigned mask, struct statx *out)
{
    return (int)syscall(SYS_statx, dir, path, flags, mask, out);
}

static inline int
kernel_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

static inline int
kernel_close_range(unsigned first, unsigned last, unsigned flags)
{
    return (int)syscall(SYS_close_range, first, last, flags);
}

/* setrlimit and getrlimit of this process, the resource a number (glibc has an enum there). Either may be NULL. */
static inline int
kernel_prlimit(int resource, const struct rlimit *set, struct rlimit *old)
{
    _Static_assert(sizeof(struct rlimit) == 16, "the kernel's struct rlimit64");
    return (int)syscall(SYS_prlimit64, 0, resource, set, old);
}

/* The third argument a pointer; requests have 32 bits, which libraries declare with and without a sign. */
static inline int
kernel_ioctl(int fd, unsigned long request, void *arg)
{
    return (int)syscall(SYS_ioctl, fd, request, arg);
}

#endif
