/* wall/mnt.h: the mount API by file descriptor
 *
 * Thin wrappers over fsopen, open_tree, move_mount and mount_setattr (Linux 5.12 for the last), which never
 * resolve a path by string inside a tree that somebody else can write to. All descriptors are O_CLOEXEC.
 * ENOSYS becomes ERR_UNSUPPORTED with the kernel that has the call.
 */
#ifndef CLOCHE_WALL_MNT_H
#define CLOCHE_WALL_MNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum mnt_flags {
    MNT_RO = 1 << 0,
    MNT_NOEXEC = 1 << 1,
    MNT_DEV = 1 << 2,           /* device nodes work (default: nodev) */
    MNT_RECURSIVE = 1 << 3,
    MNT_NOSYMFOLLOW = 1 << 4,
    MNT_AS_IS = 1 << 5,         /* mnt_clone: keep the flags of the mount it comes from (one call less) */
};

struct mnt_option {
    const char *key;
    const char *value;          /* NULL: a flag */
};

/* A new file system instance as a detached mount. Returns its fd, or -1. nosuid always; nodev unless MNT_DEV. */
int mnt_new(const char *fstype, const struct mnt_option *options, size_t n, unsigned flags, struct err *err);

/* A detached copy of the mount at @dirfd/@path ("" with an fd means the fd itself), private, nosuid, nodev unless
 * MNT_DEV. With @userns >= 0 the copy is idmapped by that user namespace (needs privilege over the file system). */
int mnt_clone(int dirfd, const char *path, unsigned flags, int userns, struct err *err);

/* Attach the detached mount @tree on the object that @target refers to. */
int mnt_attach(int tree, int target, struct err *err);

/* Attach it on @name, one component, in the directory @dir, which nobody else writes to yet (the new root's own tmpfs,
 * a fresh procfs) or where a link in that place is not followed. errno stays: ENOENT when there is no such name. */
int mnt_attach_at(int tree, int dir, const char *name, struct err *err);

/* Set attributes on an attached or detached mount. */
int mnt_protect(int mount_fd, unsigned flags, struct err *err);

/* Whether attributes that are set are there, tried on a copy of @dir, which lies on a file system of our own and nobody
 * can name: the copy stays there. */
int mnt_protects(int dir, struct err *err);

/* openat2 of @path below @root: never leaves it, follows no magic link, and no symlink either unless @symlinks.
 * Returns an O_CLOEXEC fd or -1 with errno. */
int mnt_open_beneath(int root, const char *path, int flags, bool symlinks);
/* What an open that failed with @why says of the place: there is nothing, or nothing for others with our rights either.
 * Whatever else it was (no descriptor or memory left, a disk's error), something may be there. */
bool mnt_is_absent(int why);

/* Make the directory @path (several components) below @dir, each @mode, and return an O_PATH fd of the last.
 * Existing directories are entered; a symlink or a file on the way is refused (ENOTDIR, ELOOP). Nothing is created but
 * on the device @own: a mount point inside a tree of the host must exist already (ENOENT), so that no ghost file is
 * left there. -1 with errno. */
int mnt_mkdirs(int dir, const char *path, mode_t mode, dev_t own);

#endif
