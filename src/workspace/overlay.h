/* workspace/overlay.h: a copy-on-write view of a project, mounted inside the sandbox
 *
 * Theory. The overlay is mounted by the sandbox's own child, in its user and mount namespaces, so that whatever
 * overlayfs does to the layers (copy-up, whiteouts, the work directory) it does with the rights of the sandbox's
 * user and no more. What the child may touch is decided by what it is handed:
 *
 *   ordinary user   The child's user is the caller. It opens both directories by path in its own copy of the mount
 *                   tree and overlay_mount_detached() checks that they are the ones the parent saw (dev, ino).
 *   root            The child's user is a high host uid X that owns nothing; the project belongs to U. The
 *                   parent makes two detached clones, project (read-only) and state layers, both idmapped so that U on
 *                   disk is X in the kernel's eyes (overlay_clone_idmapped), and the child inherits them. Files that
 *                   the command makes are owned by U on disk. Needs Linux 5.19 (overlayfs on idmapped layers).
 *
 * Before it calls overlay_mount_detached() the child must be the user who will run the command (setresuid to the
 * mapped uid with PR_SET_KEEPCAPS, capabilities in its user namespace still held), because overlayfs keeps the
 * mounter's credentials and makes whiteouts with its fsuid; an id that the layers do not map fails with EOVERFLOW.
 *
 * Mount options, always: userxattr (trusted.* is not ours to write), redirect_dir=nofollow (a directory rename is
 * answered EXDEV and copied by the caller: the upper tree never refers to other paths), index=off, metacopy=off
 * (the upper holds whole files). The mount itself is nosuid,nodev.
 *
 * Overlayfs does not cross mounts: a file system mounted below the project shows as the empty directory under it.
 */
#ifndef CLOCHE_WORKSPACE_OVERLAY_H
#define CLOCHE_WORKSPACE_OVERLAY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define OVERLAY_UPPER "upper"   /* names below the layers directory */
#define OVERLAY_WORK  "work"

/* One directory, by inherited mount or by path. */
struct overlay_dir {
    int tree;               /* detached mount (open_tree clone) whose root is the directory, or -1 */
    const char *path;       /* absolute; used when @tree is -1; symlinks in its last component are refused */
    dev_t dev;              /* what the parent saw there: anything else is refused */
    ino_t ino;
};

struct overlay_plan {
    struct overlay_dir lower;       /* the project */
    struct overlay_dir layers;      /* holds OVERLAY_UPPER and OVERLAY_WORK */
    bool no_fd_options;             /* tests: take the way of kernels before 6.13 */
};

/* Mount the overlay. For the cloned child: no allocation, no lock, no thread.
 * Returns a detached mount (fsmount) that the caller owns and moves into place, or -1 with @err:
 * wall.overlay.unsupported when the kernel or the file system cannot, wall.overlay.changed when a path no longer
 * leads where it did. The fds in @plan stay open and stay the caller's. */
int overlay_mount_detached(const struct overlay_plan *plan, struct err *err);

/* The same of one folder over another, for the engine's images: descriptors of folders in mounts of this process's own
 * namespace, @upper and @work in one. /proc must be mounted. */
int overlay_mount_folders(int lower, int upper, int work, struct err *err);

/* In the privileged parent: clone the directory @fd (O_PATH is enough) into a detached mount, idmapped through
 * @idmap_userns (-1: no mapping) and read-only when @read_only. Returns an fd or -1 with @err. */
int overlay_clone_idmapped(int fd, int idmap_userns, bool read_only, struct err *err);

#endif
