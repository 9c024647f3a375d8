/* guest/guard_remove.c: removing a name
 *
 * Asked for where a folder of the host is writable: in light mode no mount holds what is protected; elsewhere the mount
 * goes when a program of the owner's replaces the file by a rename, and there is none on what it makes meanwhile. What
 * no rule speaks of is removed without a look at it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/kernel.h"
#include "guest/guard_priv.h"

/* What is at @at is protected: the kernel's own answer where a mount holds it. It is not asked: by then the host
 * may have put another file there, and its mount is gone. */
static int
refuse_removal(struct call *c, const struct place *at, const char *name, const char *rule)
{
    struct statx sx;

    if ((c->g->flags & GUARD_EXISTING) != 0)
        return deny(c, at, rule, EACCES);
    if (read_only_mount(at->dir))
        return -EROFS;
    if (kernel_statx(at->dir, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &sx) == 0 &&
        (sx.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0)
        return -EBUSY;
    return deny(c, at, rule, EACCES);
}

int
remove_name(struct call *c, int dirfd, const char *path, int flags)
{
    unfilled cleanup_place struct place at;
    const char *rule = "";
    unfilled char name[PATH_MAX + 1];
    struct stat st;
    int rc;

    place_init(&at);
    if ((rc = walk_parent(c, dirfd, path, &at)) < 0)
        return rc;
    /* most are free, and need not be looked at */
    if (judge_make(c, &at, false, &rule)) {
        if (fstatat(at.dir, place_name(&at, name), &st, AT_SYMLINK_NOFOLLOW) < 0)
            return -errno;
        if (judge_make(c, &at, S_ISDIR(st.st_mode), &rule))
            return refuse_removal(c, &at, name, rule);
        if ((flags & AT_REMOVEDIR) == 0)
            return -EISDIR;
    }
    if ((rc = git_call_leave(c, &at)) < 0)
        return rc;
    if (!caller_still_waits(c))
        return ANSWERED;
    return unlinkat(at.dir, at.name, flags) < 0 ? -errno : 0;
}
