/* wall/root_dev.c: see root_dev.h */
#include "wall/root_dev.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "wall/mnt.h"

static int
fail(struct err *err, const char *what)
{
    return err_sys(err, errno, "wall.root", "root file system: %s", what);
}

/* One host device at dev/@name. The object is opened first and must be the character device it claims to be. @keep:
 * its mode and owner cannot be changed, and its times not set, for the mount is read-only, which the device is not. */
static int
device(int dev, const char *name, unsigned major_no, unsigned minor_no, bool keep, struct err *err)
{
    char path[32];
    cleanup_close int tree = -1;
    struct stat st;

    snprintf(path, sizeof(path), "/dev/%s", name);
    tree = mnt_clone(AT_FDCWD, path, MNT_DEV | (keep ? MNT_RO : MNT_AS_IS), -1, err);
    if (tree < 0)
        return err_wrap(err, "%s", path);
    if (fstat(tree, &st) < 0)
        return fail(err, path);
    if (!S_ISCHR(st.st_mode) || major(st.st_rdev) != major_no || minor(st.st_rdev) != minor_no) {
        err_set(err, ERR_DENIED, "wall.root.device", "%s is not character device %u:%u", path, major_no, minor_no);
        return err_hint(err, "the host's /dev was tampered with or is not a real one");
    }
    if (mknodat(dev, name, S_IFREG | 0666, 0) < 0)
        return fail(err, path);
    return mnt_attach_at(tree, dev, name, err);
}

int
root_dev_fill(int dev, bool outside_root, struct err *err)
{
    static const struct { const char *name; unsigned major_no, minor_no; } devices[] = {
        { "null", 1, 3 }, { "zero", 1, 5 }, { "full", 1, 7 }, { "random", 1, 8 }, { "urandom", 1, 9 }, { "tty", 5, 0 },
    };
    static const char *const links[][2] = {
        { "/proc/self/fd", "fd" },         { "/proc/self/fd/0", "stdin" }, { "/proc/self/fd/1", "stdout" },
        { "/proc/self/fd/2", "stderr" }, { "pts/ptmx", "ptmx" },
    };
    const struct mnt_option pts_options[] = { { "ptmxmode", "0666" }, { "mode", "0600" } };
    cleanup_close int pts = -1;

    for (size_t i = 0; i < ARRAY_LEN(devices); i++)
        if (device(dev, devices[i].name, devices[i].major_no, devices[i].minor_no, outside_root, err) < 0)
            return -1;
    for (size_t i = 0; i < ARRAY_LEN(links); i++)
        if (symlinkat(links[i][0], dev, links[i][1]) < 0)
            return fail(err, links[i][1]);
    if (mkdirat(dev, "shm", 01777) < 0 || mkdirat(dev, "pts", 0755) < 0)
        return fail(err, "/dev");
    /* a new instance: no terminal of the host is in it (CVE-2025-52565 class) */
    pts = mnt_new("devpts", pts_options, 2, MNT_DEV | MNT_NOEXEC, err);
    if (pts < 0)
        return err_wrap(err, "/dev/pts");
    return mnt_attach_at(pts, dev, "pts", err);
}
