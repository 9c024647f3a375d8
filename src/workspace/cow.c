/* workspace/cow.c: see cow.h */
#include "workspace/cow.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "workspace/overlay.h"
#include "workspace/store.h"
#include "workspace/tree.h"

static void
names_free(char **names)
{
    for (char **at = names; at != NULL && *at != NULL; at++)
        free(*at);
    free(names);
}

static char **
names_copy(const char *const *names)
{
    size_t n = 0;
    char **out;

    while (names[n] != NULL)
        n++;
    out = calloc(n + 1, sizeof(*out));
    for (size_t i = 0; out != NULL && i < n; i++)
        if ((out[i] = strdup(names[i])) == NULL) {
            names_free(out);
            return NULL;
        }
    return out;
}

void
cow_close(struct cow_state *state)
{
    close_fd(&state->dir_fd);
    close_fd(&state->state_fd);
    close_fd(&state->lock_fd);
    free(state->project);
    free(state->path);
    state->project = state->path = NULL;
    names_free(state->protect);
    state->protect = NULL;
}

static void
boot_id(char out[64])
{
    cleanup_buf struct buf text = BUF_INIT(63);

    out[0] = '\0';
    if (io_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", &text) == 0 && buf_nul(&text) == 0) {
        memcpy(out, text.p, text.n + 1);
        out[strcspn(out, "\n")] = '\0';
    }
}

/* Overlayfs cannot have its upper layer inside its lower one, and a project must not hold our own books. */
static int
refuse_inside_project(int store, const struct stat *project, const char *path, struct err *err)
{
    cleanup_close int at = fcntl(store, F_DUPFD_CLOEXEC, 0);
    struct stat st, last = { .st_ino = 0 };

    while (at >= 0 && fstat(at, &st) == 0) {
        if (st.st_dev == project->st_dev && st.st_ino == project->st_ino) {
            err_set(err, ERR_POLICY, "workspace.state.inside-project",
                    "the state directory lies inside the project %s, which a copy-on-write workspace cannot have",
                    path);
            return err_hint(err, "set XDG_STATE_HOME to a directory outside it, or choose a smaller project directory");
        }
        if (st.st_dev == last.st_dev && st.st_ino == last.st_ino)
            return 0;
        last = st;
        int up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        close_fd(&at);
        at = up;
    }
    return err_sys(err, errno, "workspace.state.open", "cannot look at the directories above the state directory");
}

/* A directory in @dir that belongs to the project's owner. */
static int
layer_make(int dir, const char *name, const struct stat *project, mode_t mode, struct err *err)
{
    if (mkdirat(dir, name, 0700) < 0)
        return err_sys(err, errno, "workspace.state.create", "cannot make %s", name);
    cleanup_close int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, errno, "workspace.state.create", "cannot open %s", name);
    if (geteuid() == 0 && fchown(fd, project->st_uid, project->st_gid) < 0)
        return err_sys(err, errno, "workspace.state.create", "cannot give %s to uid %u", name, project->st_uid);
    if (fchmod(fd, mode) < 0)
        return err_sys(err, errno, "workspace.state.create", "cannot set the mode of %s", name);
    return take_fd(&fd);
}

static int
layers_make(struct cow_state *state, const struct stat *project, struct err *err)
{
    state->dir_fd = layer_make(state->state_fd, "layers", project, 0700, err);
    if (state->dir_fd < 0)
        return -1;
    /* the root of the overlay has the mode and times of upper/ */
    cleanup_close int upper = layer_make(state->dir_fd, OVERLAY_UPPER, project, project->st_mode & 01777, err);
    if (upper < 0)
        return -1;
    cleanup_close int work = layer_make(state->dir_fd, OVERLAY_WORK, project, 0700, err);
    if (work < 0)
        return -1;
    const struct timespec times[2] = { project->st_atim, project->st_mtim };
    if (futimens(upper, times) < 0)
        return err_sys(err, errno, "workspace.state.create", "cannot set the times of upper");
    return 0;
}

static int
lock_take(struct cow_state *state, bool create, struct err *err)
{
    int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | (create ? O_CREAT | O_EXCL : 0);

    state->lock_fd = openat(state->state_fd, "lock", flags, 0600);
    if (state->lock_fd < 0)
        return err_sys(err, errno, "workspace.state.lock", "cannot open the lock of the state %s", state->id);
    if (flock(state->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    int saved = errno;
    close_fd(&state->lock_fd);
    if (saved != EWOULDBLOCK)
        return err_sys(err, saved, "workspace.state.lock", "cannot lock the state %s", state->id);
    err_set(err, ERR_DENIED, "workspace.state.busy",
            "the state %s is in use: its sandbox still runs, or another cloche works on it",
            state->id);
    return err_hint(err, "wait until the run has ended, or end it");
}

/* A run that died before it made its lock left a state without one: nobody else can have it. */
static bool
lock_missing(struct cow_state *state, struct err *err)
{
    if (io_present(state->state_fd, "lock") || errno != ENOENT)
        return false;
    return lock_take(state, true, err) == 0;
}

static int
state_fill(struct cow_state *out, const char *project, struct err *err)
{
    struct stat st;

    cleanup_close int fd = open(project, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, errno, "workspace.project.open", "cannot open the project %s", project);
    if (refuse_inside_project(out->state_fd, &st, project, err) < 0)
        return -1;
    if (layers_make(out, &st, err) < 0)
        return -1;
    out->dev = st.st_dev;
    out->ino = st.st_ino;
    boot_id(out->boot);
    if (fstat(out->lock_fd, &st) < 0)
        return err_sys(err, errno, "workspace.state.create", "cannot stat the lock");
    out->created = st.st_ctim;
    return meta_write(out->state_fd, out, err);
}

/* Copy @id, name the layers, and own a copy of @project (NULL: not known yet). */
static int
state_name(struct cow_state *out, const char *id, const char *project, struct err *err)
{
    cleanup_buf struct buf path = BUF_INIT(PATH_MAX);

    if (!store_id_valid(id))
        return err_set(err, ERR_USAGE, "workspace.state.id", "\"%s\" is not an id of a copy-on-write state", id);
    memcpy(out->id, id, strlen(id) + 1);
    if (store_path(&path, err) < 0)
        return -1;
    buf_printf(&path, "/%s/layers", id);
    if (buf_nul(&path) == 0)
        out->path = strdup((const char *)path.p);
    if (project != NULL)
        out->project = strdup(project);
    if (out->path == NULL || (project != NULL && out->project == NULL))
        return err_set(err, ERR_SYSTEM, "workspace.state.memory", "no memory");
    return 0;
}

int
cow_create(const char *project, const char *id, const char *const *protect, struct cow_state *out, struct err *err)
{
    cleanup_cow struct cow_state state = COW_STATE_INIT;
    cleanup_close int store = -1;

    if (project[0] != '/')
        return err_set(err, ERR_USAGE, "workspace.project.open", "the project %s is not an absolute path", project);
    if (state_name(&state, id, project, err) < 0)
        return -1;
    if ((state.protect = names_copy(protect)) == NULL)
        return err_set(err, ERR_SYSTEM, "workspace.state.memory", "no memory");
    store = store_open(true, err);
    if (store < 0)
        return -1;
    if (mkdirat(store, id, 0700) < 0)
        return err_sys(err, errno, "workspace.state.create", "cannot make the state %s", id);
    state.state_fd = store_enter(store, id, err);
    if (state.state_fd < 0)
        return -1;
    if (lock_take(&state, true, err) < 0 || state_fill(&state, project, err) < 0) {
        tree_remove(store, id, NULL);
        return -1;
    }
    *out = state;
    state = (struct cow_state)COW_STATE_INIT;
    return 0;
}

int
cow_open(const char *id, enum cow_lock lock, struct cow_state *out, struct err *err)
{
    cleanup_cow struct cow_state state = COW_STATE_INIT;

    if (state_name(&state, id, NULL, err) < 0)
        return -1;
    cleanup_close int store = store_open(false, err);
    if (store < 0)
        return -1;
    state.state_fd = store_enter(store, id, err);
    if (state.state_fd < 0)
        return -1;
    if (lock != COW_LOCK_NONE && lock_take(&state, false, err) < 0 &&
        !(lock == COW_LOCK_DISCARD && lock_missing(&state, err)))
        return -1;
    if (meta_read(state.state_fd, &state, lock == COW_LOCK_DISCARD ? NULL : err) < 0 && lock != COW_LOCK_DISCARD)
        return -1;
    state.dir_fd = openat(state.state_fd, "layers", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (state.dir_fd < 0 && lock != COW_LOCK_DISCARD)
        return err_sys(err, errno, "workspace.state.open", "cannot open the layers of the state %s", id);
    *out = state;
    state = (struct cow_state)COW_STATE_INIT;
    return 0;
}

bool
cow_busy(const struct cow_state *state)
{
    if (state->lock_fd >= 0)
        return false;
    cleanup_close int fd = openat(state->state_fd, "lock", O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

int
cow_project_open(const struct cow_state *state, struct err *err)
{
    char boot[64];
    struct stat st;

    cleanup_close int fd = open(state->project, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, errno, "workspace.project.open", "cannot open the project %s", state->project);
    boot_id(boot);
    /* device numbers may change over a reboot; inode numbers do not */
    if (st.st_ino != state->ino || (strcmp(boot, state->boot) == 0 && st.st_dev != state->dev)) {
        err_set(err, ERR_DENIED, "workspace.project.changed", "%s is not the directory that the run %.12s worked on",
                state->project, state->id);
        return err_hint(err, "it was replaced or moved: move it back, or `cloche discard %.12s`", state->id);
    }
    return take_fd(&fd);
}

int
cow_discard(struct cow_state *state, struct err *err)
{
    char gone[COW_ID_MAX + 16];

    if (state->lock_fd < 0)
        return err_set(err, ERR_USAGE, "workspace.state.lock", "the state %s is not locked", state->id);
    cleanup_close int store = store_open(false, err);
    if (store < 0)
        return -1;
    /* away from the list at once; cow_list() finishes what an interruption leaves, unless the store is locked */
    if (flock(store, LOCK_EX) < 0)
        return err_sys(err, errno, "workspace.state.discard", "cannot lock the state directory");
    snprintf(gone, sizeof(gone), ".discard-%s", state->id);
    if (renameat(store, state->id, store, gone) < 0)
        return err_sys(err, errno, "workspace.state.discard", "cannot discard the state %s", state->id);
    int r = tree_remove(store, gone, err);
    if (r == 0)
        cow_close(state);
    return r;
}
