/* workspace/overlay.c: see overlay.h for who calls what, and when */
#include "workspace/overlay.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/kernel.h"

#define KERNEL_NEEDED "Linux 5.11 (5.19 as root) with CONFIG_OVERLAY_FS"

/* Directories of the host that are surely there; the child covers one for a moment, in its own namespace only. */
static const char *const staging_places[] = { "/usr", "/var", "/tmp", "/etc" };

int
overlay_clone_idmapped(int fd, int idmap_userns, bool read_only, struct err *err)
{
    cleanup_close int tree = kernel_open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE);
    if (tree < 0)
        return err_sys(err, errno, "wall.overlay.clone", "cannot clone the mount of a copy-on-write layer");

    struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, .propagation = MS_PRIVATE };
    if (read_only)
        attr.attr_set |= MOUNT_ATTR_RDONLY;
    if (idmap_userns >= 0) {
        attr.attr_set |= MOUNT_ATTR_IDMAP;
        attr.userns_fd = (unsigned)idmap_userns;
    }
    if (kernel_mount_setattr(tree, "", AT_EMPTY_PATH, &attr) < 0) {
        int saved = errno;
        if (idmap_userns < 0 || (saved != EINVAL && saved != EOPNOTSUPP && saved != ENOSYS))
            return err_sys(err, saved, "wall.overlay.clone", "cannot set the attributes of a copy-on-write layer");
        err_set(err, ERR_UNSUPPORTED, "wall.overlay.unsupported",
                "a copy-on-write workspace as root needs idmapped mounts, and this file system has none");
        return err_hint(err, "use a file system with idmapped mounts (ext4, xfs, btrfs; tmpfs from Linux 6.3) for the "
                        "project and for the state directory, run as the project's owner, or use --workspace DIR:ro");
    }
    return take_fd(&tree);
}

/* Refuse with what the kernel says about the mount: its log line when there is one. */
static int
overlay_refuse(int context, int saved_errno, const char *what, struct err *err)
{
    char text[256];
    ssize_t n = context < 0 ? -1 : read(context, text, sizeof(text) - 1);

    if (n > 0) {
        text[n] = '\0';
        text[strcspn(text, "\n")] = '\0';
    }
    err_set(err, ERR_UNSUPPORTED, "wall.overlay.unsupported", "cannot mount a copy-on-write workspace: %s: %s%s%s",
            what, strerror(saved_errno), n > 0 ? "; the kernel says: " : "", n > 0 ? text : "");
    return err_hint(err, "overlayfs inside a user namespace needs %s, and the state directory on a file system with "
                    "user xattrs and O_TMPFILE (ext4, xfs, btrfs; not NFS, not another overlay): set XDG_STATE_HOME "
                    "to one, or use --workspace DIR:ro", KERNEL_NEEDED);
}

/* An fd on the directory in a mount that this process may use as a layer. */
static int
dir_open(const struct overlay_dir *dir, const char *what, struct err *err)
{
    cleanup_close int fd = -1;
    struct stat st;

    if (dir->tree >= 0)
        fd = openat(dir->tree, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    else
        fd = open(dir->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, errno, "wall.overlay.open", "cannot open the %s %s", what, dir->path);
    if (st.st_dev != dir->dev || st.st_ino != dir->ino)
        return err_set(err, ERR_DENIED, "wall.overlay.changed",
                       "the %s %s was replaced while the sandbox was being made",
                       what, dir->path);
    return take_fd(&fd);
}

/* Before 6.15 a layer must be attached in the caller's mount namespace. Cover some directory with a small tmpfs and
 * attach the inherited trees below it; the overlay takes private clones, so all of it can go again at once. */
static int
stage(const struct overlay_plan *plan, struct err *err)
{
    cleanup_close int context = kernel_fsopen("tmpfs");
    if (context < 0 || kernel_fsconfig(context, FSCONFIG_SET_STRING, "size", "64k", 0) < 0 ||
        kernel_fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return err_sys(err, errno, "wall.overlay.stage", "cannot make a staging tmpfs");

    cleanup_close int stage_fd = kernel_fsmount(context, 0);
    if (stage_fd < 0)
        return err_sys(err, errno, "wall.overlay.stage", "cannot make a staging tmpfs");

    size_t i = 0;
    while (i < ARRAY_LEN(staging_places) &&
           kernel_move_mount(stage_fd, "", AT_FDCWD, staging_places[i], MOVE_MOUNT_F_EMPTY_PATH) < 0)
        i++;
    if (i == ARRAY_LEN(staging_places))
        return err_sys(err, errno, "wall.overlay.stage", "cannot attach a staging tmpfs");

    const int trees[2] = { plan->lower.tree, plan->layers.tree };
    static const char *const names[2] = { "lower", "layers" };
    for (int k = 0; k < 2; k++) {
        if (trees[k] < 0)
            continue;
        if (mkdirat(stage_fd, names[k], 0700) < 0 ||
            kernel_move_mount(trees[k], "", stage_fd, names[k], MOVE_MOUNT_F_EMPTY_PATH) < 0)
            return err_sys(err, errno, "wall.overlay.stage", "cannot attach the %s", names[k]);
    }
    return take_fd(&stage_fd);
}

static void
unstage(int stage_fd)
{
    char path[32];

    if (stage_fd < 0)
        return;
    /* A mount's root is unmounted through any path that leads to it. */
    snprintf(path, sizeof(path), "/proc/self/fd/%d", stage_fd);
    umount2(path, MNT_DETACH);
}

struct option {
    const char *fd_key;     /* key when given as a descriptor (6.13+) */
    const char *path_key;   /* key when given as a string */
    int fd;
};

static int
set_layers(int context, const struct option *options, size_t n, bool by_fd)
{
    for (size_t i = 0; i < n; i++) {
        char path[32];

        snprintf(path, sizeof(path), "/proc/self/fd/%d", options[i].fd);
        if (by_fd ? kernel_fsconfig(context, FSCONFIG_SET_FD, options[i].fd_key, NULL, options[i].fd) < 0
                  : kernel_fsconfig(context, FSCONFIG_SET_STRING, options[i].path_key, path, 0) < 0)
            return -1;
    }
    return 0;
}

static int
mount_folders(int lower, int upper, int work, bool by_fd, struct err *err)
{
    const struct option layers[] = {
        { "lowerdir+", "lowerdir", lower }, { "upperdir", "upperdir", upper }, { "workdir", "workdir", work },
    };
    static const char *const settings[][2] = {
        { "redirect_dir", "nofollow" }, { "index", "off" }, { "metacopy", "off" },
    };
    cleanup_close int context = kernel_fsopen("overlay");

    if (context < 0)
        return overlay_refuse(-1, errno, "fsopen overlay", err);
    if (kernel_fsconfig(context, FSCONFIG_SET_FLAG, "userxattr", NULL, 0) < 0)
        return overlay_refuse(context, errno, "option userxattr", err);
    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        if (kernel_fsconfig(context, FSCONFIG_SET_STRING, settings[i][0], settings[i][1], 0) < 0)
            return overlay_refuse(context, errno, settings[i][0], err);
    if (set_layers(context, layers, ARRAY_LEN(layers), by_fd) < 0)
        return overlay_refuse(context, errno, "layers", err);
    if (kernel_fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return overlay_refuse(context, errno, "create", err);

    int mount = kernel_fsmount(context, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    if (mount < 0)
        return overlay_refuse(context, errno, "fsmount", err);
    return mount;
}

static int
mount_layers(const struct overlay_plan *plan, bool by_fd, struct err *err)
{
    cleanup_close int lower = dir_open(&plan->lower, "project", err);
    if (lower < 0)
        return -1;
    cleanup_close int layers = dir_open(&plan->layers, "state directory", err);
    if (layers < 0)
        return -1;
    cleanup_close int upper = openat(layers, OVERLAY_UPPER, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    cleanup_close int work = openat(layers, OVERLAY_WORK, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (upper < 0 || work < 0)
        return err_sys(err, errno, "wall.overlay.open", "cannot open the layers in %s", plan->layers.path);
    return mount_folders(lower, upper, work, by_fd, err);
}

int
overlay_mount_folders(int lower, int upper, int work, struct err *err)
{
    int mount = mount_folders(lower, upper, work, true, NULL);

    if (mount >= 0)
        return mount;
    mount = mount_folders(lower, upper, work, false, err);
    if (mount < 0)
        err_hint(err, "overlayfs inside a user namespace needs %s, and the state directory on a file system that can "
                 "lie below an overlay: set XDG_STATE_HOME to one", KERNEL_NEEDED);
    return mount;
}

int
overlay_mount_detached(const struct overlay_plan *plan, struct err *err)
{
    if (!plan->no_fd_options) {
        struct err first = ERR_INIT;
        int mount = mount_layers(plan, true, &first);
        if (mount >= 0)
            return mount;
        if (first.kind != ERR_UNSUPPORTED) {
            if (err != NULL)
                *err = first;
            return -1;
        }
    }

    /* Strings name the layers through /proc/self/fd, so /proc must be mounted here; no path of the host is parsed. */
    cleanup_close int stage_fd = -1;
    if (plan->lower.tree >= 0 || plan->layers.tree >= 0) {
        stage_fd = stage(plan, err);
        if (stage_fd < 0)
            return -1;
    }
    int mount = mount_layers(plan, false, err);
    unstage(stage_fd);
    return mount;
}
