/* guest/changes.c: see changes.h */
#include "guest/changes.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define PAIR_US 20000           /* for the second half of a rename, which the kernel queues right after the first */
#define NEED    (3 * MSG_CHANGE_MAX)    /* one step says no more than that: three changes */

/* --- beginning and end -------------------------------------------------------------------------------------------- */

struct changes *
changes_of(struct guest *g, uint16_t request)
{
    for (size_t i = 0; g->n_changes > 0 && i < MSG_WATCHES_MAX; i++)
        if (g->changes[i] != NULL && g->changes[i]->request == request)
            return g->changes[i];
    return NULL;
}

static void
stop_reading(struct changes *c)
{
    if (c->names == NULL)
        return;
    close(c->names->fd);
    free(c->names);
    c->names = NULL;
}

static void
changes_free(struct guest *g, struct changes *c)
{
    for (size_t i = 0; i < MSG_WATCHES_MAX; i++) {
        if (g->changes[i] != c)
            continue;
        g->changes[i] = NULL;
        g->n_changes--;
    }
    stop_reading(c);
    dirs_clear(c);
    close_fd(&c->fd);
    free(c);
}

int
changes_end(struct guest *g, struct changes *c, int error)
{
    uint16_t request = c->request;

    changes_free(g, c);
    return files_fail(g, request, error);
}

/* Nothing is watched yet; then the directory itself, and in further steps what is below it. */
static int
place_all(struct guest *g, struct changes *c)
{
    cleanup_close int fd = -1;
    int rc;

    stop_reading(c);
    dirs_clear(c);
    close_fd(&c->fd);
    c->at = c->n = 0;
    c->lost = c->missed = c->move.is = false;
    c->quiet = true;
    c->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (c->fd < 0)
        return errno == EMFILE ? FILES_WATCH_SYSTEM : errno;
    rc = dirs_open(g, c, CHANGES_ROOT, "", &fd);
    return rc != 0 ? rc : dirs_place(c, fd, -1, "", -1);
}

/* The place that the path leads to is the one that is watched from here on. */
static int
identify(struct guest *g, struct changes *c, const char *path)
{
    cleanup_close int dir = -1, fd = -1;
    struct walk_place at;
    struct stat st;
    int rc = files_walk(g, path, true, &at);

    if (rc != 0)
        return rc;
    dir = at.dir;
    fd = openat(dir, at.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return files_open_error(errno);
    if (fstat(fd, &st) < 0)
        return errno;
    c->dev = st.st_dev;
    c->ino = st.st_ino;
    memcpy(c->path, path, strlen(path) + 1);
    return place_all(g, c);
}

int
changes_begin(struct guest *g, uint16_t request, const struct msg_file *m)
{
    struct changes *c;
    size_t i;
    int rc;

    if ((m->flags & ~MSG_FILE_RECURSIVE) != 0 || m->length < MSG_WATCH_WINDOW_MIN || m->length > MSG_WATCH_WINDOW_MAX)
        return -1;
    if (g->root < 0)
        return files_fail(g, request, FILES_NO_ROOT);
    for (i = 0; i < MSG_WATCHES_MAX && g->changes[i] != NULL; i++)
        ;
    if (i == MSG_WATCHES_MAX)
        return files_fail(g, request, FILES_WATCHES);
    c = calloc(1, sizeof(*c));
    if (c == NULL)
        return files_fail(g, request, ENOMEM);
    c->request = request;
    c->fd = c->last = -1;
    c->recursive = (m->flags & MSG_FILE_RECURSIVE) != 0;
    c->room = c->window = (uint32_t)m->length;
    g->changes[i] = c;
    g->n_changes++;
    rc = identify(g, c, m->path);
    return rc == 0 ? 0 : changes_end(g, c, rc);
}

int
changes_on_more(struct guest *g, const struct frame *f)
{
    struct changes *c = changes_of(g, f->channel);
    uint32_t bytes;

    if (!msg_get_u32(f, &bytes))
        return -1;
    if (c == NULL)
        return 0;               /* over already, and its answer is on the way */
    if (bytes > c->window - c->room)
        return -1;
    c->room += bytes;
    return 0;
}

/* --- saying ------------------------------------------------------------------------------------------------------- */

static bool
can_say(const struct guest *g, const struct changes *c)
{
    return c->room >= NEED && !link_full(&g->link);
}

static int
say_paths(struct guest *g, struct changes *c, enum change_kind kind, bool directory, const char *path, const char *from)
{
    const struct msg_change m = { .kind = (uint8_t)kind, .directory = directory, .path = path, .from = from };
    struct buf *out = &g->link.out;
    size_t before = out->n;

    if (msg_put_change(out, c->request, &m) < 0)
        return -1;
    c->room -= (uint32_t)(out->n - before - FRAME_HEADER);
    return 0;
}

static int
say(struct guest *g, struct changes *c, enum change_kind kind, bool directory, int dir, const char *name)
{
    char path[MSG_PATH_MAX + 1];

    if (dirs_path(c, dir, name, path) < 0) {
        c->lost = true;         /* what is above it got longer names since */
        return 0;
    }
    return say_paths(g, c, kind, directory, path, "");
}

/* A directory that cannot be had. One that is gone is told by what comes, as is one above it that was renamed. */
static int
not_placed(struct guest *g, struct changes *c, int rc, int dir, const char *name)
{
    if (dir == CHANGES_ROOT && name[0] == '\0' && (rc == EACCES || rc == EPERM))
        return 1;               /* what is watched itself */
    switch (rc) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP: c->missed = true; return 0;
    case EACCES:
    case EPERM:
    case DIRS_DEEP: return say(g, c, CHANGE_UNWATCHED, true, dir, name);
    case DIRS_LOST:
        /* one directory at two places is watched at the other one; one that was renamed meanwhile is told to be */
        if (c->quiet)
            return say(g, c, CHANGE_UNWATCHED, true, dir, name);
        c->lost = true;
        return 0;
    case ENAMETOOLONG: c->lost = true; return 0;
    default: return 1;          /* the watch ends with that */
    }
}

/* The name of a file that is not whole yet: it is told when it has its own. */
static bool
is_ours(bool directory, const char *name)
{
    return !directory && replace_name_of(name) != REPLACE_NO_NAME;
}

/* --- reading directories ------------------------------------------------------------------------------------------ */

/* All directories are watched that there are: said once, then again whenever something was missed. */
static int
all_placed(struct guest *g, struct changes *c)
{
    c->quiet = false;
    if (c->told)
        return say_paths(g, c, CHANGE_OVERFLOW, false, "", "");
    c->told = true;
    return say_paths(g, c, CHANGE_WATCHING, false, "", "");
}

/* Open the next one that was not read yet. As read_entries(). */
static int
read_next(struct guest *g, struct changes *c, int *error)
{
    cleanup_close int fd = -1;
    int i = 0, rc;

    while (!c->dirs[i].unread)
        i++;
    dirs_set_unread(c, i, false);
    rc = dirs_open(g, c, i, "", &fd);
    if (rc == 0)
        rc = dirs_same(c, fd, i);
    if (rc == DIRS_LOST)
        rc = ENOENT;            /* another one is there; where it is now is told by what comes */
    if (rc != 0) {
        *error = rc;
        return not_placed(g, c, rc, i, "");
    }
    c->names = calloc(1, sizeof(*c->names));
    if (c->names == NULL) {
        *error = ENOMEM;
        return 1;
    }
    c->names->fd = take_fd(&fd);
    c->reading = i;
    return 0;
}

static int
read_entry(struct guest *g, struct changes *c, const char *name, int *error)
{
    cleanup_close int fd = -1;
    struct stat st;
    bool directory;
    int rc;

    /* longer ones than NAME_MAX are where names are UTF-16 (exFAT): they are not told */
    if (strlen(name) > NAME_MAX || fstatat(c->names->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    directory = S_ISDIR(st.st_mode);
    if (is_ours(directory, name))
        return 0;
    if (!c->quiet && say(g, c, CHANGE_CREATED, directory, c->reading, name) < 0)
        return -1;
    if (!directory)
        return 0;
    fd = openat(c->names->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
        return 0;               /* it is no more what it was */
    rc = fd < 0 ? errno : dirs_place(c, fd, c->reading, name, -1);
    if (rc == 0)
        return 0;
    *error = rc;
    return not_placed(g, c, rc, c->reading, name);
}

/* A batch of names. 0; 1: it ends with *error; -1 */
static int
read_entries(struct guest *g, struct changes *c, int *error)
{
    const char *name;
    int rc = 0;

    if (c->names == NULL)
        return read_next(g, c, error);
    do {
        name = dirents_next(c->names);
        if (name != NULL)
            rc = read_entry(g, c, name, error);
    } while (name != NULL && rc == 0 && can_say(g, c) && !dirents_drained(c->names));
    if (name == NULL && rc == 0 && c->names->failed != 0 && c->names->failed != ENOENT) {
        *error = c->names->failed;
        rc = 1;
    }
    if (name == NULL || rc != 0)
        stop_reading(c);
    return rc;
}

/* --- what the kernel says ----------------------------------------------------------------------------------------- */

static void
drop_child(struct changes *c, int parent, const char *name)
{
    int i = dirs_child(c, parent, name);

    if (i >= 0)
        dirs_drop(c, i);
}

/* It was moved to where nobody watches, or the other half comes alone. */
static int
move_over(struct guest *g, struct changes *c)
{
    int dir = dirs_find(c, c->move.wd);

    c->move.is = false;
    if (dir < 0)
        return 0;               /* so was the directory that it was in */
    if (is_ours(c->move.directory, c->move.name))
        return 0;
    if (c->move.directory)
        drop_child(c, dir, c->move.name);
    return say(g, c, CHANGE_DELETED, c->move.directory, dir, c->move.name);
}

/* A directory is there: watch it, and tell what is in it, unless it is @was. */
static int
descend(struct guest *g, struct changes *c, int dir, const char *name, int was, int *error)
{
    cleanup_close int fd = -1;
    int rc;

    if (!c->recursive || c->lost)
        return 0;
    rc = dirs_open(g, c, dir, name, &fd);
    if (rc == 0)
        rc = dirs_place(c, fd, dir, name, was);
    if (rc == 0)
        return 0;
    *error = rc;
    return not_placed(g, c, rc, dir, name);
}

static int
appeared(struct guest *g, struct changes *c, int dir, const struct inotify_event *ev, int *error)
{
    bool directory = (ev->mask & IN_ISDIR) != 0;

    if (say(g, c, CHANGE_CREATED, directory, dir, ev->name) < 0)
        return -1;
    return directory ? descend(g, c, dir, ev->name, -1, error) : 0;
}

static int
moved(struct guest *g, struct changes *c, int dir, const struct inotify_event *ev, int *error)
{
    char path[MSG_PATH_MAX + 1], from[MSG_PATH_MAX + 1], name[NAME_MAX + 1];
    bool directory = (ev->mask & IN_ISDIR) != 0;
    enum replace_name ours = directory ? REPLACE_NO_NAME : replace_name_of(c->move.name);
    int before = dirs_find(c, c->move.wd), rc;

    memcpy(name, c->move.name, strlen(c->move.name) + 1);
    c->move.is = false;
    if (ours != REPLACE_NO_NAME)
        return say(g, c, ours == REPLACE_NEW ? CHANGE_CREATED : CHANGE_MODIFIED, false, dir, ev->name);
    if (before < 0)
        return appeared(g, c, dir, ev, error);
    if (dirs_path(c, before, name, from) < 0 || dirs_path(c, dir, ev->name, path) < 0) {
        c->lost = true;
        return 0;
    }
    if (say_paths(g, c, CHANGE_RENAMED, directory, path, from) < 0)
        return -1;
    if (!directory)
        return 0;
    rc = descend(g, c, dir, ev->name, dirs_child(c, before, name), error);
    /* where it went with its watch nothing is left of it */
    before = dirs_find(c, c->move.wd);
    if (before >= 0 && dirs_child(c, before, name) >= 0) {
        drop_child(c, before, name);
        c->lost = true;         /* another one may have its name by now (RENAME_EXCHANGE) */
    }
    return rc;
}

/* 0; 1: the watch ends with *error; -1 */
static int
on_event(struct guest *g, struct changes *c, const struct inotify_event *ev, int *error)
{
    bool directory = (ev->mask & IN_ISDIR) != 0;
    int dir;

    if ((ev->mask & IN_Q_OVERFLOW) != 0)
        c->lost = true;
    if (c->move.is && ((ev->mask & IN_MOVED_TO) == 0 || ev->cookie != c->move.cookie) && move_over(g, c) < 0)
        return -1;
    dir = dirs_find(c, ev->wd);
    if (c->lost || dir < 0)
        return 0;
    if (dir == CHANGES_ROOT && (ev->mask & (IN_IGNORED | IN_UNMOUNT | IN_DELETE_SELF | IN_MOVE_SELF)) != 0) {
        *error = FILES_WATCH_GONE;
        return 1;
    }
    if ((ev->mask & (IN_IGNORED | IN_UNMOUNT)) != 0)
        dirs_drop(c, dir);
    /* without a name it is about the directory itself, which its parent's watch has told */
    if ((ev->mask & (IN_IGNORED | IN_UNMOUNT)) != 0 || ev->len == 0 || ev->name[0] == '\0' ||
        strnlen(ev->name, ev->len) > NAME_MAX)
        return 0;
    if ((ev->mask & IN_MOVED_FROM) != 0) {
        c->move = (struct change_move){ .is = true, .directory = directory, .cookie = ev->cookie, .wd = ev->wd,
                                        .until_us = clock_us() + PAIR_US };
        memcpy(c->move.name, ev->name, strnlen(ev->name, NAME_MAX));
        return 0;
    }
    if ((ev->mask & IN_MOVED_TO) != 0 && c->move.is)
        return moved(g, c, dir, ev, error);
    if (is_ours(directory, ev->name))
        return 0;
    if ((ev->mask & (IN_CREATE | IN_MOVED_TO)) != 0)
        return appeared(g, c, dir, ev, error);
    if ((ev->mask & IN_DELETE) != 0 && directory)
        drop_child(c, dir, ev->name);
    return say(g, c, (ev->mask & IN_DELETE) != 0 ? CHANGE_DELETED : CHANGE_MODIFIED, directory, dir, ev->name);
}

static int
look_at_batch(struct guest *g, struct changes *c, int *error)
{
    int rc = 0;

    while (c->at < c->n && rc == 0 && !c->lost && c->n_unread == 0 && can_say(g, c)) {
        const struct inotify_event *ev = (const struct inotify_event *)(const void *)(c->batch + c->at);
        c->at += sizeof(*ev) + ev->len;
        rc = on_event(g, c, ev, error);
    }
    return rc;
}

/* --- the loop ----------------------------------------------------------------------------------------------------- */

/* There is something to do without the kernel's saying more. */
static bool
is_busy(const struct changes *c)
{
    return c->lost || c->missed || c->quiet || c->n_unread > 0 || c->names != NULL || c->at < c->n;
}

bool
changes_wants(const struct guest *g, const struct changes *c)
{
    return can_say(g, c) && !is_busy(c);
}

/* What the kernel has next: 0, 1 when the watch ends with *error. */
static int
fill(struct guest *g, struct changes *c, int *error)
{
    cleanup_close int fd = -1;
    ssize_t n = read(c->fd, c->batch, sizeof(c->batch));

    c->at = c->n = 0;
    if (n <= 0) {
        *error = errno;
        return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : 1;
    }
    c->n = (size_t)n;
    /* names are told below a path: it has to lead there still */
    *error = dirs_open(g, c, CHANGES_ROOT, "", &fd);
    return *error != 0;
}

int
changes_read(struct guest *g, struct changes *c)
{
    int error;

    return fill(g, c, &error) == 0 ? 0 : changes_end(g, c, error);
}

/* All that there was is told. Half a rename waits for a moment. */
static int
rest(struct guest *g, struct changes *c, int *error)
{
    int rc = fill(g, c, error);

    if (rc != 0 || c->n > 0)
        return rc;
    c->missed = false;
    return c->move.is && clock_us() >= c->move.until_us ? move_over(g, c) : 0;
}

static int
step(struct guest *g, struct changes *c)
{
    int error = 0, rc;

    if (c->lost && !c->quiet) {
        error = place_all(g, c);
        rc = error != 0;
    } else if (c->names != NULL || c->n_unread > 0) {
        rc = read_entries(g, c, &error);
    } else if (c->quiet) {
        rc = all_placed(g, c);
    } else if (c->at < c->n) {
        rc = look_at_batch(g, c, &error);
    } else {
        rc = c->missed || c->move.is ? rest(g, c, &error) : 0;
    }
    return rc == 1 ? changes_end(g, c, error) : rc;
}

int
changes_step(struct guest *g)
{
    for (size_t i = 0; g->n_changes > 0 && i < MSG_WATCHES_MAX; i++)
        if (g->changes[i] != NULL && can_say(g, g->changes[i]) && step(g, g->changes[i]) < 0)
            return -1;
    return 0;
}

int
changes_patience(const struct guest *g)
{
    int ms = -1;

    for (size_t i = 0; g->n_changes > 0 && i < MSG_WATCHES_MAX; i++) {
        const struct changes *c = g->changes[i];
        uint64_t now;

        if (c == NULL || !can_say(g, c))
            continue;
        if (is_busy(c))
            return 0;
        if (!c->move.is)
            continue;
        now = clock_us();
        if (now >= c->move.until_us)
            return 0;
        ms = (int)((c->move.until_us - now) / 1000 + 1);
    }
    return ms;
}
