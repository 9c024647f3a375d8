/* wall/root_layer.c: folders of the host as lower layers of the root's own (ROOT_LAYER)
 *
 * The upper layer is the folder of the tmpfs that the overlay then covers. So what was made in it before is what is
 * seen first, whatever the lower one has under that name, and all that is written counts against the tmpfs's size.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "wall/mnt.h"
#include "wall/root_priv.h"

#define MARK "user.overlay.opaque"

static int
fail(struct err *err, const char *what)
{
    return err_sys(err, errno, "wall.root", "root file system: %s", what);
}

bool
root_is_layer(const struct builder *b, dev_t dev)
{
    for (size_t i = 0; i < b->n_layers; i++)
        if (b->layers[i] == dev)
            return true;
    return false;
}

/* A folder @name of @at, made: O_PATH, or -1 with errno. */
static int
make_folder(int at, const char *name, mode_t mode)
{
    return mkdirat(at, name, mode) < 0 ? -1 : openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Whether the tmpfs takes the marks of an overlay (Linux 6.6). Without them a folder that was removed and made again
 * cannot be told from one that was not, and mkdir(2) fails. */
static int
keeps_marks(int base, const char *work, struct err *err)
{
    cleanup_close int fd = openat(base, work, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return fail(err, work);
    if (fsetxattr(fd, MARK, "y", 1, 0) == 0 && fremovexattr(fd, MARK) == 0)
        return 0;
    return err_set(err, ERR_UNSUPPORTED, "wall.root.marks", "the tmpfs has no attributes, which Linux 6.6 gives it");
}

/* What of the root lies there already is the upper folder of an overlay over it, seen past the mounts of the root. The
 * lower one has to belong to this mount namespace before Linux 6.15. */
static int
layer_overlay(struct builder *b, const struct root_item *item, struct err *err)
{
    cleanup_close int root = openat(b->base, "root", O_PATH | O_DIRECTORY | O_CLOEXEC), upper = -1, work = -1;
    cleanup_close int place = -1, lower = -1, tree = -1;
    char name[64];
    struct stat st;

    tree = root_tree_of(item, MNT_RO, &st, err);
    if (tree < 0)
        return err_wrap(err, "%s", item->source);
    snprintf(name, sizeof(name), "l%td", item - b->plan->items);
    place = make_folder(b->scratch, name, 0755);
    if (place < 0 || mnt_attach(tree, place, err) < 0)
        return place < 0 ? fail(err, item->dest) : err_wrap(err, "%s", item->source);
    lower = openat(b->scratch, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    upper = root < 0 ? -1 : mnt_open_beneath(root, item->dest, O_PATH | O_DIRECTORY, false);
    name[0] = 'w';
    work = make_folder(b->base, name, 0700);
    if (lower < 0 || upper < 0 || work < 0)
        return fail(err, item->dest);
    if (item->optional && keeps_marks(b->base, name, err) < 0)
        return -1;
    return b->plan->layer_mount(lower, upper, work, err);
}

int
root_layer(struct builder *b, const struct root_item *item, struct err *err)
{
    struct err why = ERR_INIT;
    cleanup_close int overlay = layer_overlay(b, item, &why), at = -1;
    struct stat st;

    if (overlay < 0 && item->optional && why.kind == ERR_UNSUPPORTED)
        return 0;
    if (overlay < 0) {
        if (err != NULL)
            *err = why;
        return err_wrap(err, "the files that lie below %s", item->dest);
    }
    at = mnt_open_beneath(b->root, item->dest, O_PATH | O_DIRECTORY, false);
    if (at < 0 || fstat(overlay, &st) < 0)
        return fail(err, item->dest);
    if (b->n_layers == LAYERS_MAX)
        return err_set(err, ERR_LIMIT, "wall.root.too-many", "more than %d layers", LAYERS_MAX);
    b->layers[b->n_layers++] = st.st_dev;
    return (!item->writable && mnt_protect(overlay, MNT_RO, err) < 0) || mnt_attach(overlay, at, err) < 0
               ? err_wrap(err, "%s", item->dest) : 0;
}

int
root_base(struct builder *b, int hidden, struct err *err)
{
    cleanup_close int base = root_tmpfs(b->plan, "0755", err), at = -1, root = -1;

    if (base < 0)
        return -1;
    at = make_folder(hidden, "base", 0755);
    if (at < 0 || mnt_attach(base, at, err) < 0)
        return at < 0 ? fail(err, "tmpfs") : -1;
    root = make_folder(base, "root", 0755);
    if (root < 0)
        return fail(err, "tmpfs");
    b->base = take_fd(&base);
    return mnt_clone(b->base, "root", 0, -1, err);
}
