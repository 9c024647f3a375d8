/* wall/root.c: see root.h */
#include "wall/root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "wall/mnt.h"
#include "wall/pivot.h"
#include "wall/root_dev.h"
#include "wall/root_priv.h"

static int
fail(struct err *err, const char *what)
{
    return err_sys(err, errno, "wall.root", "root file system: %s", what);
}

int
root_tmpfs(const struct root_plan *plan, const char *mode, struct err *err)
{
    char size[32], inodes[32], uid[16], gid[16];
    struct mnt_option options[5];
    size_t n = 0;

    snprintf(uid, sizeof(uid), "%u", plan->uid);
    snprintf(gid, sizeof(gid), "%u", plan->gid);
    options[n++] = (struct mnt_option){ "mode", mode };
    options[n++] = (struct mnt_option){ "uid", uid };
    options[n++] = (struct mnt_option){ "gid", gid };
    if (plan->tmpfs_bytes > 0) {
        snprintf(size, sizeof(size), "%llu", (unsigned long long)plan->tmpfs_bytes);
        options[n++] = (struct mnt_option){ "size", size };
    }
    if (plan->tmpfs_inodes > 0) {
        snprintf(inodes, sizeof(inodes), "%llu", (unsigned long long)plan->tmpfs_inodes);
        options[n++] = (struct mnt_option){ "nr_inodes", inodes };
    }
    return mnt_new("tmpfs", options, n, 0, err);
}

/* Folders are made in the tmpfs root, in layers over it (whose upper side it is) and, not to be listed, in masks with
 * holes; nowhere else. */
static int
mkdirs_ours(struct builder *b, const char *path)
{
    int fd = mnt_mkdirs(b->root, path, 0755, b->dev);

    for (size_t i = 0; fd < 0 && errno == ENOENT && i < b->n_layers; i++)
        fd = mnt_mkdirs(b->root, path, 0755, b->layers[i]);
    return fd < 0 && errno == ENOENT ? mnt_mkdirs(b->root, path, 0111, b->scratch_dev) : fd;
}

/* The folder that holds @dest, made where it is missing; *name is the last component. The descriptor is the
 * builder's. */
static int
parent_of(struct builder *b, const char *dest, const char **name)
{
    char path[4096];
    const char *slash = strrchr(dest, '/');
    size_t n = (size_t)(slash - dest);
    struct stat st;

    *name = slash + 1;
    if (n >= sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(path, dest, n);
    path[n] = '\0';
    if (b->parent >= 0 && strcmp(path, b->parent_path) == 0)
        return b->parent;
    close_fd(&b->parent);
    b->parent_path[0] = '\1';     /* no path: too long to remember, or not there */
    b->parent = mkdirs_ours(b, path);
    if (b->parent < 0 || fstat(b->parent, &st) < 0)
        return -1;
    b->parent_dev = st.st_dev;
    if (n < sizeof(b->parent_path))
        memcpy(b->parent_path, path, n + 1);
    return b->parent;
}

static int
no_place(const struct root_item *item, struct err *err)
{
    err_sys(err, errno, "wall.bind.destination", "there is no place for %s at %s",
            item->source != NULL ? item->source : "the workspace", item->dest);
    return err_hint(err, "nothing is ever created in a folder of the host (/usr, /opt, a bound tree): choose another "
                         "destination, or make an empty one there first");
}

/* Attach @tree at the item's destination, whose mount point, a directory or a file as @mode (of what comes) says, is
 * made where the folder is ours: in the tmpfs root, or in a mask with holes. */
static int
attach_at_dest(struct builder *b, int tree, const struct root_item *item, mode_t mode, struct err *err)
{
    const char *name;
    int dir = parent_of(b, item->dest, &name);

    if (dir < 0)
        return item->fleeting && errno == ENOENT ? 0 : no_place(item, err);
    if (b->parent_dev == b->dev || b->parent_dev == b->scratch_dev || root_is_layer(b, b->parent_dev)) {
        int made = S_ISDIR(mode) ? mkdirat(dir, name, 0755) : mknodat(dir, name, S_IFREG | 0644, 0);
        if (made < 0 && errno != EEXIST)
            return fail(err, item->dest);
    }
    /* EINVAL: a file would lie on a folder, or the other way round */
    if (mnt_attach_at(tree, dir, name, err) == 0 || (item->fleeting && errno == ENOENT))
        return 0;
    return errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EINVAL ? no_place(item, err)
                                                                                     : err_wrap(err, "%s", item->dest);
}

/* A detached tree for @item: the parent's, or our own clone of the path, checked against what the parent saw. */
int
root_tree_of(const struct root_item *item, unsigned flags, struct stat *st, struct err *err)
{
    cleanup_close int tree = -1;

    if (item->tree >= 0)
        tree = fcntl(item->tree, F_DUPFD_CLOEXEC, 10);
    else
        tree = mnt_clone(AT_FDCWD, item->source, flags, -1, err);
    if (tree < 0)
        return item->tree >= 0 ? fail(err, "descriptor of a bound tree") : -1;
    if (fstat(tree, st) < 0)
        return fail(err, item->source);
    if (item->tree < 0 && item->check_identity && (st->st_dev != item->dev || st->st_ino != item->ino)) {
        err_set(err, ERR_DENIED, "wall.bind.changed", "%s was replaced while the sandbox was being made",
                item->source);
        return err_hint(err, "another process renames it; run again when it is stable");
    }
    return take_fd(&tree);
}

static int
do_bind(struct builder *b, const struct root_item *item, struct err *err)
{
    unsigned flags = (item->writable ? 0 : MNT_RO) | (item->recursive ? MNT_RECURSIVE : 0);
    cleanup_close int tree = -1;
    struct stat st;

    if (item->tree < 0 && item->optional && access(item->source, F_OK) < 0)
        return 0;       /* not there, or not for this user: what is optional is left out */
    tree = root_tree_of(item, flags, &st, err);
    if (tree < 0)
        return err_wrap(err, "%s", item->source);
    return attach_at_dest(b, tree, item, st.st_mode, err);
}

/* Attach @of again at @at, which is @item's destination. */
static int
attach_again(int of, unsigned flags, int at, const struct root_item *item, struct err *err)
{
    cleanup_close int tree = mnt_clone(of, "", flags, -1, err);

    return tree < 0 || mnt_attach(tree, at, err) < 0 ? err_wrap(err, "%s", item->dest) : 0;
}

/* Attach an existing object of the new root on itself, read-only: it can be neither changed nor replaced. */
static int
do_pin(struct builder *b, const struct root_item *item, struct err *err)
{
    cleanup_close int at = mnt_open_beneath(b->root, item->dest, O_PATH | O_NOFOLLOW, false);
    struct stat st;

    if (at < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : fail(err, item->dest);
    if (fstat(at, &st) < 0)
        return fail(err, item->dest);
    if (S_ISLNK(st.st_mode))
        return 0;       /* nothing can be attached to a link: what it leads to is pinned where it lies */
    return attach_again(at, MNT_RECURSIVE | (item->writable ? 0 : MNT_RO), at, item, err);
}

/* Attach what was made as @name in the scratch folder at @at, which is @item's destination. */
static int
attach_made(struct builder *b, const char *name, unsigned flags, int at, const struct root_item *item, struct err *err)
{
    cleanup_close int made = openat(b->scratch, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

    return made < 0 ? fail(err, item->dest) : attach_again(made, flags, at, item, err);
}

/* A folder of its own that can be passed through but not listed; the places to open are mounted in it afterwards. */
static int
mask_with_holes(struct builder *b, const struct root_item *item, int at, struct err *err)
{
    char name[32];

    snprintf(name, sizeof(name), "m%u", b->n_masks++);
    if (mkdirat(b->scratch, name, 0111) < 0)
        return fail(err, item->dest);
    return attach_made(b, name, 0, at, item, err);
}

static int
do_seal(struct builder *b, const struct root_item *item, struct err *err)
{
    cleanup_close int at = mnt_open_beneath(b->root, item->dest, O_PATH | O_NOFOLLOW, false);

    return at < 0 ? fail(err, item->dest) : mnt_protect(at, MNT_RO, err);
}

static int
do_mask(struct builder *b, const struct root_item *item, struct err *err)
{
    cleanup_close int at = mnt_open_beneath(b->root, item->dest, O_PATH | O_NOFOLLOW, false);
    struct stat st;

    if (at < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : fail(err, item->dest);
    if (fstat(at, &st) < 0)
        return fail(err, item->dest);
    if (S_ISLNK(st.st_mode))
        return 0;       /* what it points to is masked where it is */
    if (item->holes && S_ISDIR(st.st_mode))
        return mask_with_holes(b, item, at, err);
    return attach_again(S_ISDIR(st.st_mode) ? b->mask_dir : b->mask_file, MNT_RO, at, item, err);
}

static int
do_symlink(struct builder *b, const struct root_item *item, struct err *err)
{
    const char *name;
    int dir = parent_of(b, item->dest, &name);

    if (dir < 0 || (symlinkat(item->source, dir, name) < 0 && errno != EEXIST))
        return fail(err, item->dest);
    return 0;
}

static int
do_file(struct builder *b, const struct root_item *item, struct err *err)
{
    const char *name;
    int dir = parent_of(b, item->dest, &name);

    if (dir < 0)
        return fail(err, item->dest);
    if (b->parent_dev != b->dev)
        return err_set(err, ERR_POLICY, "wall.root.file", "%s would be made in a folder of the host", item->dest);
    cleanup_close int fd = openat(dir, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, item->mode);
    if (fd < 0 || io_write_full(fd, item->source, item->size) < 0)
        return fail(err, item->dest);
    return 0;
}

static int
do_dir(struct builder *b, const struct root_item *item, struct err *err)
{
    const char *name;
    int dir = parent_of(b, item->dest, &name);

    if (dir < 0 || (mkdirat(dir, name, item->mode) < 0 && errno != EEXIST))
        return fail(err, item->dest);
    return 0;
}

/* A writable island under a read-only root: the directory attached on itself without the read-only flag. */
static int
do_writable(struct builder *b, const struct root_item *item, struct err *err)
{
    cleanup_close int at = mnt_open_beneath(b->root, item->dest, O_PATH | O_NOFOLLOW, false);

    return at < 0 ? fail(err, item->dest) : attach_again(at, 0, at, item, err);
}

/* Host view: cover a directory of the host by a fresh directory of our tmpfs. */
static int
do_tmpfs(struct builder *b, const struct root_item *item, struct err *err)
{
    cleanup_close int at = mnt_open_beneath(b->root, item->dest, O_PATH | O_DIRECTORY, false);
    char name[64];

    if (at < 0)
        return errno == ENOENT && item->optional ? 0 : fail(err, item->dest);
    snprintf(name, sizeof(name), "d%td", item - b->plan->items);
    if (mkdirat(b->scratch, name, item->mode) < 0)
        return fail(err, item->dest);
    return attach_made(b, name, 0, at, item, err);
}

static int
do_cover(struct builder *b, const struct root_item *item, struct err *err)
{
    cleanup_close int at = mnt_open_beneath(b->root, item->dest, O_PATH | O_NOFOLLOW, false);
    cleanup_close int fd = -1;
    char name[64];

    if (at < 0)
        return item->optional && errno == ENOENT ? 0 : fail(err, item->dest);
    snprintf(name, sizeof(name), "c%td", item - b->plan->items);
    fd = openat(b->scratch, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, item->mode);
    if (fd < 0 || io_write_full(fd, item->source, item->size) < 0)
        return fail(err, item->dest);
    if (item->kept != NULL && (*item->kept = openat(b->scratch, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)) < 0)
        return fail(err, item->dest);
    return attach_made(b, name, item->writable ? 0 : MNT_RO, at, item, err);
}

static int
do_overlay(struct builder *b, const struct root_item *item, struct err *err)
{
    cleanup_close int tree = b->plan->overlay_mount(b->plan->overlay_ctx, err);

    if (tree < 0)
        return err_wrap(err, "copy-on-write workspace");
    return attach_at_dest(b, tree, item, S_IFDIR, err);
}

static int
do_item(struct builder *b, const struct root_item *item, struct err *err)
{
    switch (item->op) {
    case ROOT_BIND:     return do_bind(b, item, err);
    case ROOT_SYMLINK:  return do_symlink(b, item, err);
    case ROOT_DIR:      return do_dir(b, item, err);
    case ROOT_FILE:     return do_file(b, item, err);
    case ROOT_MASK:     return do_mask(b, item, err);
    case ROOT_SEAL:     return do_seal(b, item, err);
    case ROOT_PIN:      return do_pin(b, item, err);
    case ROOT_WRITABLE: return do_writable(b, item, err);
    case ROOT_TMPFS:    return do_tmpfs(b, item, err);
    case ROOT_COVER:    return do_cover(b, item, err);
    case ROOT_OVERLAY:  return do_overlay(b, item, err);
    case ROOT_LAYER:    return root_layer(b, item, err);
    }
    return err_set(err, ERR_SYSTEM, "wall.root", "root file system: unknown item %d", (int)item->op);
}

/* The sources of masks: an empty directory and an empty file that nobody may open. */
static int
masks_make(struct builder *b, struct err *err)
{
    if (mkdirat(b->scratch, "dir", 0) < 0)
        return fail(err, "mask");
    close_fd(&b->mask_dir);
    b->mask_dir = openat(b->scratch, "dir", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    cleanup_close int made = openat(b->scratch, "file", O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0);
    if (made < 0 || b->mask_dir < 0)
        return fail(err, "mask");
    b->mask_file = openat(b->scratch, "file", O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return b->mask_file < 0 ? fail(err, "mask") : mnt_protects(b->mask_dir, err);
}

/* Parts of /proc that speak of the whole machine. An ordinary uid may read the first and could write none of the
 * second; where the sandbox's user is uid 0 outside (root of a container without privileges) its file modes protect
 * nothing, and the longer lists hold too (CVE-2022-0492 class). Defence in depth: the uid is what counts. */
struct proc_name { const char *name; bool folder; };
static const struct proc_name proc_masked[] = {
    { "keys", false }, { "key-users", false }, { "kallsyms", false }, { "interrupts", false }, { "pressure", true },
};
static const struct proc_name proc_masked_root[] = {
    { "acpi", true }, { "kcore", false }, { "latency_stats", false }, { "timer_list", false },
    { "sched_debug", false }, { "scsi", true }, { "kmsg", false }, { "kpagecount", false }, { "kpageflags", false },
    { "kpagecgroup", false }, { "vmallocinfo", false }, { "slabinfo", false }, { "config.gz", false },
};
static const char *const proc_readonly[] = { "sys", "sysrq-trigger" };
static const char *const proc_readonly_root[] = { "irq", "bus", "fs" };

const char *
root_proc_name(size_t i, bool *masked)
{
    *masked = i < ARRAY_LEN(proc_masked);
    if (*masked)
        return proc_masked[i].name;
    i -= ARRAY_LEN(proc_masked);
    return i < ARRAY_LEN(proc_readonly) ? proc_readonly[i] : NULL;
}

/* In a procfs that was mounted a moment ago nobody else has been: names are what they seem. */
static int
proc_mask(struct builder *b, int proc, const struct proc_name *names, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        cleanup_close int tree = mnt_clone(names[i].folder ? b->mask_dir : b->mask_file, "", MNT_RO, -1, err);
        struct err absent = ERR_INIT;
        if (tree < 0)
            return err_wrap(err, "/proc/%s", names[i].name);
        if (mnt_attach_at(tree, proc, names[i].name, &absent) < 0 && errno != ENOENT)
            return err_sys(err, errno, "wall.root", "root file system: /proc/%s", names[i].name);
    }
    return 0;
}

static int
proc_pin(int proc, const char *const *names, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        cleanup_close int tree = -1;
        if (!io_present(proc, names[i]) && errno == ENOENT)
            continue;
        tree = mnt_clone(proc, names[i], MNT_RECURSIVE | MNT_RO, -1, err);
        if (tree < 0 || mnt_attach_at(tree, proc, names[i], err) < 0)
            return err_wrap(err, "/proc/%s", names[i]);
    }
    return 0;
}

#define N(a) ARRAY_LEN(a)

static int
proc_close(struct builder *b, int proc, struct err *err)
{
    if (proc_mask(b, proc, proc_masked, N(proc_masked), err) < 0 ||
        proc_pin(proc, proc_readonly, N(proc_readonly), err) < 0)
        return -1;
    if (!b->plan->outside_root)
        return 0;
    return proc_mask(b, proc, proc_masked_root, N(proc_masked_root), err) < 0 ||
                   proc_pin(proc, proc_readonly_root, N(proc_readonly_root), err) < 0
               ? -1 : 0;
}

static int
proc_mount(struct builder *b, struct err *err)
{
    const struct mnt_option full[] = { { "hidepid", "invisible" } };
    const struct mnt_option subset[] = { { "subset", "pid" }, { "hidepid", "invisible" } };
    cleanup_close int tree = -1, at = -1;

    if (b->plan->proc_tree >= 0)
        tree = fcntl(b->plan->proc_tree, F_DUPFD_CLOEXEC, 10);
    else
        tree = b->plan->proc_subset ? mnt_new("proc", subset, b->plan->proc_open ? 1 : 2, MNT_NOEXEC, err)
                                    : mnt_new("proc", full, b->plan->proc_open ? 0 : 1, MNT_NOEXEC, err);
    if (tree < 0) {
        err_wrap(err, "/proc");
        return err_hint(err, "where a container runtime covers parts of /proc the kernel gives no other one: start the "
                        "container with --security-opt systempaths=unconfined (Podman: unmask=ALL), or run as its "
                        "root with --cap-add SYS_ADMIN; --mode light does not need its own /proc");
    }
    at = b->plan->host_view ? mnt_open_beneath(b->root, "proc", O_PATH, false) : mkdirs_ours(b, "proc");
    if (at < 0)
        return fail(err, "/proc");
    if (mnt_attach(tree, at, err) < 0)
        return err_wrap(err, "/proc");
    /* with subset=pid nothing but processes is there */
    return b->plan->proc_subset ? 0 : proc_close(b, tree, err);
}

static int
dev_make(struct builder *b, struct err *err)
{
    cleanup_close int dev = -1, tree = -1, at = -1;

    if (!b->plan->host_view) {
        dev = mnt_mkdirs(b->root, "/dev", 0755, b->dev);
        return dev < 0 ? fail(err, "/dev") : root_dev_fill(dev, b->plan->outside_root, err);
    }
    /* host view: a directory of ours covers the host's /dev before it is filled */
    if (mkdirat(b->scratch, "dev", 0755) < 0)
        return fail(err, "/dev");
    dev = openat(b->scratch, "dev", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    at = mnt_open_beneath(b->root, "/dev", O_PATH | O_DIRECTORY, false);
    if (dev < 0 || at < 0)
        return fail(err, "/dev");
    tree = mnt_clone(dev, "", 0, -1, err);
    if (tree < 0 || mnt_attach(tree, at, err) < 0)
        return err_wrap(err, "/dev");
    return root_dev_fill(tree, b->plan->outside_root, err);
}

/* Attach @tree over @place of the old tree. It must belong to this mount namespace, since before Linux 6.15 a detached
 * mount can be neither cloned nor mounted on. Over "/" it stays out of every path lookup: those start below it, at
 * the process's root. */
static int
move_in(int tree, const char *place, struct err *err)
{
    cleanup_close int at = open(place, O_PATH | O_DIRECTORY | O_CLOEXEC);

    return at < 0 ? fail(err, place) : mnt_attach(tree, at, err);
}

/* @folder of the place that the root is built in. */
static int
move_to_place(int tree, const struct root_plan *plan, const char *folder, struct err *err)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", plan->place, folder);
    return move_in(tree, path, err);
}

/* Somewhere that nothing is bound from, and not /proc: what is built later still looks there. */
static int
hide(int tree, const struct root_plan *plan, struct err *err)
{
    static const char *const places[] = { "/sys", "/mnt", "/media", "/srv", "/boot" };

    if (plan->place != NULL)
        return move_to_place(tree, plan, "scratch", err);
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (access(places[i], F_OK) == 0)
            return move_in(tree, places[i], err);
    return err_set(err, ERR_UNSUPPORTED, "wall.root",
                   "root file system: none of /sys, /mnt, /media, /srv, /boot is there");
}

/* Over everything, or at its place. */
static int
begin(int root, const struct root_plan *plan, struct err *err)
{
    return plan->place != NULL ? move_to_place(root, plan, "root", err) : move_in(root, "/", err);
}

/* What the kernel shows of itself. */
static int
proc_and_dev(struct builder *b, struct err *err)
{
    if (b->plan->place == NULL)
        return proc_mount(b, err) < 0 || dev_make(b, err) < 0 ? -1 : 0;
    return mkdirat(b->root, "proc", 0755) < 0 || mkdirat(b->root, "dev", 0755) < 0 ? fail(err, "/proc and /dev") : 0;
}

int
root_enter(const struct root_plan *plan, int *disk, struct err *err)
{
    struct builder b = { .plan = plan, .root = -1, .scratch = -1, .base = -1, .mask_dir = -1, .mask_file = -1,
                         .parent = -1 };
    cleanup_close int root = -1, hidden = -1, base = -1, mask_dir = -1, mask_file = -1;
    struct stat st;

    if (plan->n_items > ROOT_BINDS_MAX)
        return err_set(err, ERR_POLICY, "wall.root.too-many", "%zu mounts; the limit is %d", plan->n_items,
                       ROOT_BINDS_MAX);
    umask(0);           /* modes below are meant as they are written */
    if (plan->host_view) {
        root = plan->host_tree >= 0 ? fcntl(plan->host_tree, F_DUPFD_CLOEXEC, 10)
                                    : mnt_clone(AT_FDCWD, "/", MNT_RECURSIVE | MNT_RO, -1, err);
        if (root < 0)
            return err_wrap(err, "host view");
    } else if (!plan->layers) {
        root = root_tmpfs(plan, "0755", err);
        if (root < 0)
            return err_wrap(err, "root file system");
    }
    /* a tmpfs of its own: whatever is in it can be reached only where it was attached */
    hidden = root_tmpfs(plan, "0755", err);
    if (hidden < 0 || hide(hidden, plan, err) < 0)
        return err_wrap(err, "root file system");
    if (plan->layers) {
        root = root_base(&b, hidden, err);
        base = b.base;
    }
    if (root < 0 || begin(root, plan, err) < 0)
        return err_wrap(err, "root file system");
    b.root = root;
    if (fstat(root, &st) < 0)
        return fail(err, "root");
    /* the host's own tree is nobody's to make folders in */
    b.dev = plan->host_view ? (dev_t)-1 : st.st_dev;
    if (fstat(hidden, &st) < 0)
        return fail(err, "tmpfs");
    b.scratch_dev = st.st_dev;
    b.scratch = hidden;
    if (masks_make(&b, err) < 0)
        return -1;
    mask_dir = b.mask_dir;
    mask_file = b.mask_file;
    if (proc_and_dev(&b, err) < 0)
        return -1;
    for (size_t i = 0; i < plan->n_items; i++)
        if (do_item(&b, &plan->items[i], err) < 0)
            return -1;
    close_fd(&b.parent);
    if (plan->readonly_root && mnt_protect(root, MNT_RO, err) < 0)
        return -1;
    umask(0022);
    if (plan->place == NULL && pivot_into(root, plan->by_chroot, err) < 0)
        return -1;
    *disk = plan->host_view ? take_fd(&hidden) : take_fd(&root);
    return 0;
}
