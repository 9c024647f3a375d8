/* keeper/keeper_volume.c: a durable workspace: its folder, how much is in it, and its removal
 *
 * Folders of volumes lie in one folder of the daemon's, each named by its id. One is made beside its place and renamed
 * into it, so that none is half made; the lock on it is held as long as the sandbox may write, so that a sandbox that
 * is still dying when its daemon was killed shares it with no other one. As root it belongs to a user that nobody is: a
 * program in it that sets its user is nobody's.
 *
 * No quota of the file system is there for everybody, so a process of its own adds up what is in it, every few seconds,
 * and the sandbox ends when that is more than its limit of disk.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/kernel.h"
#include "keeper/keeper.h"
#include "policy/policy.h"
#include "workspace/tree.h"

#define LOCK_MS   10000
#define LOOK_US   3000000UL
#define FOLDERS_MAX (16U * 1024 * 1024)     /* bytes of names of folders that wait to be looked into */
#define NOBODYS   0x70000000U               /* uids from here on; what sandboxes are outside, too */

/* --- the folder --------------------------------------------------------------------------------------------------- */

int
keeper_volume_new(int dir, const char *id, struct err *err)
{
    char name[EDGE_ID + 8];
    uint32_t owner;
    int fd;

    snprintf(name, sizeof(name), ".new-%s", id);
    if (tree_remove(dir, name, err) < 0)
        return -1;
    if (getrandom(&owner, sizeof(owner), 0) != sizeof(owner) || mkdirat(dir, name, 0700) < 0)
        return err_sys(err, errno, "volume.make", "the volume's folder");
    owner = NOBODYS | (owner & 0xffffff);
    fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && (geteuid() != 0 || fchown(fd, owner, owner) == 0))
        return fd;
    err_sys(err, errno, "volume.make", "the owner of the volume's folder");
    close_fd(&fd);
    return -1;
}

static int
make_folder(int dir, const char *id, struct err *err)
{
    cleanup_close int fd = keeper_volume_new(dir, id, err);
    char name[EDGE_ID + 8];

    if (fd < 0)
        return -1;
    snprintf(name, sizeof(name), ".new-%s", id);
    if (kernel_renameat2(dir, name, dir, id, RENAME_NOREPLACE) < 0)
        return err_sys(err, errno, "volume.make", "the volume's folder");
    return 0;
}

/* Its modes are the sandbox's to set, but for this one. */
static int
open_folder(int dir, const char *id, struct err *err)
{
    struct stat st;
    int fd;

    if (fstatat(dir, id, &st, AT_SYMLINK_NOFOLLOW) < 0 && (errno != ENOENT || make_folder(dir, id, err) < 0 ||
                                                          fstatat(dir, id, &st, AT_SYMLINK_NOFOLLOW) < 0)) {
        if (err->kind == ERR_NONE)
            err_sys(err, errno, "volume.open", "the volume's folder");
        return -1;
    }
    if (!S_ISDIR(st.st_mode))
        return err_set(err, ERR_SYSTEM, "volume.open", "the volume is not a folder");
    if ((st.st_mode & 07777) != 0700 && fchmodat(dir, id, 0700, 0) < 0)
        return err_sys(err, errno, "volume.open", "the volume's folder");
    fd = openat(dir, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? err_sys(err, errno, "volume.open", "the volume's folder") : fd;
}

static int
lock(int fd, struct err *err)
{
    uint64_t end = clock_ms() + LOCK_MS;

    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return err_sys(err, errno, "volume.open", "flock");
        if (clock_ms() >= end)
            return err_set(err, ERR_DENIED, "volume.busy", "another sandbox still has this volume");
        usleep(20000);
    }
    return 0;
}

int
keeper_volumes_folder(const struct keeper_live *k, struct err *err)
{
    int fd = open(k->daemon.volumes, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? err_sys(err, errno, "volume.open", "%s", k->daemon.volumes) : fd;
}

/* --- how much is in it -------------------------------------------------------------------------------------------- */

struct measure {
    int root;
    uint64_t bytes, entries;        /* left */
    struct buf folders;             /* paths below @root that are to be looked into, each with its NUL */
};

/* A folder's owner has all rights in it. 0 or -1. */
static int
lift(int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -1;
    return (st.st_mode & S_IRWXU) == S_IRWXU ? 0 : fchmod(fd, (st.st_mode & 07777) | S_IRWXU);
}

/* One entry of @dir, which may be readable and yet keep its owner from what is in it. 0 or -1 with errno. */
static int
look(int dir, const char *name, struct stat *st)
{
    if (fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    return errno != EACCES || lift(dir) < 0 ? -1 : fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW);
}

/* Those of one folder. False: there is more than may be, or what cannot be told. */
static bool
measure_folder(struct measure *m, int fd, const char *path)
{
    DIR *dir = fdopendir(fd);
    struct dirent *e;
    bool well = true;

    if (dir == NULL) {
        close(fd);
        return false;
    }
    while (well && (e = readdir(dir)) != NULL) {
        struct stat st;
        uint64_t bytes;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (look(dirfd(dir), e->d_name, &st) < 0) {
            well = errno == ENOENT;     /* it went meanwhile */
            continue;
        }
        bytes = (uint64_t)st.st_blocks * 512 / (st.st_nlink > 0 && !S_ISDIR(st.st_mode) ? st.st_nlink : 1);
        well = m->entries > 0 && bytes <= m->bytes;
        m->entries--;
        m->bytes -= bytes;
        if (well && S_ISDIR(st.st_mode))
            well = strlen(path) + 1 + strlen(e->d_name) < TREE_PATH_MAX &&
                   buf_printf(&m->folders, "%s%s%s", path, path[0] != '\0' ? "/" : "", e->d_name) == 0 &&
                   buf_put_u8(&m->folders, 0) == 0;
    }
    closedir(dir);
    return well;
}

/* A folder that keeps its owner out would hide what is in it. Which mode that was need not be kept: where it cannot be
 * (no extended attributes, no space) the folder is looked into all the same. */
static int
open_lifted(int root, const char *path)
{
    cleanup_close int parent = -1;
    const char *name;
    mode_t mode;

    if (lift(root) < 0)
        return -1;
    if (path[0] != '\0') {
        parent = tree_open_parent(root, path, &name);
        if (parent < 0)
            return -1;
        (void)tree_lift(parent, name, &mode);
    }
    return tree_open(root, path, O_RDONLY | O_DIRECTORY);
}

/* Whether no more than that is below @root. */
static bool
fits(int root, uint64_t bytes)
{
    struct measure m = { .root = root, .bytes = bytes, .entries = bytes / 4096 + 1024,
                         .folders = BUF_INIT(FOLDERS_MAX) };
    char path[TREE_PATH_MAX + 1] = "";
    bool well = true;

    for (bool more = true; more && well;) {
        int fd = tree_open(root, path, O_RDONLY | O_DIRECTORY);
        if (fd < 0 && errno == EACCES)
            fd = open_lifted(root, path);
        if (fd >= 0)
            well = measure_folder(&m, fd, path);
        else
            well = path[0] != '\0' &&      /* it went, or was replaced; the volume itself does neither */
                   (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EXDEV);
        more = m.folders.n > 0;
        if (more) {         /* the last one */
            size_t at = m.folders.n - 1;
            while (at > 0 && m.folders.p[at - 1] != 0)
                at--;
            memcpy(path, m.folders.p + at, m.folders.n - at);
            m.folders.n = at;
        }
    }
    buf_free(&m.folders);
    return well;
}

/* A process that says by its end whether it fits, so that the sandbox's streams do not wait. */
static void
start_looking(struct keeper_live *k)
{
    pid_t pid = fork();

    if (pid != 0) {
        k->volume_pid = pid > 0 ? pid : 0;
        return;
    }
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || dup2(k->volume_fd, 3) < 0)
        _exit(2);
    (void)io_close_from(4);
    _exit(fits(3, k->limits.disk.v) ? 0 : 1);
}

void
keeper_volume_look(struct keeper_live *k, uint64_t now)
{
    int status;

    if (k->volume_fd < 0 || k->limits.disk.v == 0)
        return;
    if (k->volume_pid == 0 && now >= k->volume_us) {
        k->volume_began_us = now;
        start_looking(k);
    }
    if (k->volume_pid == 0 || waitpid(k->volume_pid, &status, WNOHANG) != k->volume_pid)
        return;
    k->volume_pid = 0;
    /* a large one is not added up all the time */
    k->volume_us = now + LOOK_US + 4 * (now - k->volume_began_us);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
        keeper_gone(k, "its volume is larger than its disk limit");
}

/* --- its life ----------------------------------------------------------------------------------------------------- */

static int
take_as_workspace(struct policy *p, const char *volumes, const char *id, struct err *err)
{
    char path[PATH_MAX];

    if (p->workspace.kind != WORKSPACE_TMPFS || p->workspace.dir != NULL || p->workspace.kind_given) {
        err_set(err, ERR_POLICY, "volume.workspace", "the policy names a workspace, and so does the volume");
        return err_hint(err, "leave \"workspace\" out of the policy, or make the sandbox without a volume");
    }
    if (p->view.v != VIEW_PRIVATE || p->mode.v == MODE_LIGHT) {
        err_set(err, ERR_POLICY, "volume.view", "a volume is bound at /workspace, which needs a root of the "
                "sandbox's own");
        return err_hint(err, "mode standard or max, and view private");
    }
    if (snprintf(path, sizeof(path), "%s/%s", volumes, id) >= (int)sizeof(path))
        return err_set(err, ERR_LIMIT, "volume.open", "%s: the path is too long", volumes);
    p->workspace.dir = strdup(path);
    if (p->workspace.dir == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    p->workspace.kind = WORKSPACE_RW;
    p->workspace.own = true;
    return 0;
}

int
keeper_volume_open(struct keeper_live *k, const char *id, struct err *err)
{
    cleanup_close int dir = -1, fd = -1;

    if (id[0] == '\0')
        return 0;
    if (take_as_workspace(&k->policy, k->daemon.volumes, id, err) < 0 || (dir = keeper_volumes_folder(k, err)) < 0 ||
        (fd = open_folder(dir, id, err)) < 0 || lock(fd, err) < 0)
        return -1;
    if (k->policy.limits.disk.v > 0 && !fits(fd, k->policy.limits.disk.v)) {
        err_set(err, ERR_LIMIT, "volume.full", "the volume is larger than the limit of disk");
        return err_hint(err, "remove it, or raise limits.disk");
    }
    k->volume_fd = take_fd(&fd);
    return 0;
}

void
keeper_volume_close(struct keeper_live *k)
{
    if (k->volume_pid > 0 && kill(k->volume_pid, SIGKILL) == 0)
        (void)waitpid(k->volume_pid, NULL, 0);
    k->volume_pid = 0;
    close_fd(&k->volume_fd);
}

/* One that is there. A mode that keeps its owner out is the sandbox's doing. -1 with errno. */
static int
open_old(int dir, const char *id)
{
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, fd = openat(dir, id, flags);

    if (fd < 0 && errno == EACCES && fchmodat(dir, id, 0700, 0) == 0)
        fd = openat(dir, id, flags);
    return fd;
}

int
keeper_volume_remove(struct keeper_live *k, const char *id, struct err *err)
{
    cleanup_close int dir = keeper_volumes_folder(k, err), fd = -1;
    char name[EDGE_ID + 8];

    snprintf(name, sizeof(name), ".new-%s", id);
    if (dir < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return -1;
    fd = open_old(dir, id);
    if (fd < 0 && errno != ENOENT)      /* nothing is removed without its lock */
        return err_sys(err, errno, "volume.open", "the volume's folder");
    if (fd >= 0 && lock(fd, err) < 0)
        return -1;
    return tree_remove(dir, name, err) < 0 || tree_remove(dir, id, err) < 0 ? -1 : 0;
}
