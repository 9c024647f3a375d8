/* wall/pivot.c: see pivot.h */
#include "wall/pivot.h"

#include <errno.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int
fail(struct err *err, const char *what)
{
    return err_sys(err, errno, "wall.root", "root file system: %s", what);
}

bool
pivot_is_filtered(void)
{
    /* of a caller who may mount the kernel looks at the paths next */
    return syscall(SYS_pivot_root, NULL, NULL) < 0 && (errno == EPERM || errno == ENOSYS);
}

/* Out of it leads a chroot(2) of one's own, for which nothing inside has the capability as long as it may not make user
 * namespaces: "/" is ours, and ".." of it. */
static int
by_chroot_into(int root, struct err *err)
{
    return fchdir(root) < 0 || chroot(".") < 0 || chdir("/") < 0 ? fail(err, "chroot") : 0;
}

/* The old root lies over the new one until it is detached: ".." of it leads there. There are environments that answer
 * the call with a success that is none. */
static int
is_detached(struct err *err)
{
    struct stat root, above;

    if (stat("/", &root) < 0 || stat("/..", &above) < 0)
        return fail(err, "look at it");
    if (root.st_dev == above.st_dev && root.st_ino == above.st_ino)
        return 0;
    return err_not_done(err, "wall.root", "root file system: the old root is still there after umount2");
}

int
pivot_into(int root, bool by_chroot, struct err *err)
{
    if (by_chroot)
        return by_chroot_into(root, err);
    if (fchdir(root) < 0)
        return fail(err, "enter");
    if (syscall(SYS_pivot_root, ".", ".") < 0)
        return fail(err, "pivot_root");
    if (umount2(".", MNT_DETACH) < 0)
        return fail(err, "detach the old root");
    return chdir("/") < 0 ? fail(err, "enter") : is_detached(err);
}
