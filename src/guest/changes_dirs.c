/* guest/changes_dirs.c: which directory is behind each watch (see changes.h) */
#include "guest/changes.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/cleanup.h"

#define MASK                                                                                                  \
    (IN_CREATE | IN_DELETE | IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF |           \
     IN_MOVE_SELF | IN_EXCL_UNLINK | IN_ONLYDIR)
#define OPEN_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

int
dirs_find(struct changes *c, int wd)
{
    if (c->last >= 0 && (size_t)c->last < c->n_dirs && c->dirs[c->last].wd == wd)
        return wd >= 0 ? c->last : -1;
    for (size_t i = 0; wd >= 0 && i < c->n_dirs; i++)
        if (c->dirs[i].wd == wd)
            return c->last = (int)i;
    return -1;
}

int
dirs_child(const struct changes *c, int parent, const char *name)
{
    for (size_t i = 0; i < c->n_dirs; i++)
        if (c->dirs[i].wd >= 0 && c->dirs[i].parent == parent && c->dirs[i].name != NULL &&
            strcmp(c->dirs[i].name, name) == 0)
            return (int)i;
    return -1;
}

int
dirs_path(const struct changes *c, int dir, const char *name, char out[MSG_PATH_MAX + 1])
{
    char room[MSG_PATH_MAX + 1];
    size_t at = sizeof(room) - 1, n = strlen(name);

    room[at] = '\0';
    /* from its end: @dir is one of ours, and no directory is below itself (is_below) */
    for (;;) {
        if (n + 1 > at)
            return -1;
        at -= n;
        memcpy(room + at, name, n);
        if (dir == CHANGES_ROOT)
            break;
        if (n > 0)
            room[--at] = '/';
        name = c->dirs[dir].name;
        n = strlen(name);
        dir = c->dirs[dir].parent;
    }
    memcpy(out, room + at, sizeof(room) - at);
    return 0;
}

/* Whether @dir is @above or somewhere in it. */
static bool
is_below(const struct changes *c, int dir, int above)
{
    for (; dir >= 0; dir = c->dirs[dir].parent)
        if (dir == above)
            return true;
    return false;
}

void
dirs_set_unread(struct changes *c, int i, bool unread)
{
    c->n_unread -= c->dirs[i].unread ? 1 : 0;
    c->n_unread += unread ? 1 : 0;
    c->dirs[i].unread = unread;
}

static void
forget(struct changes *c, int i)
{
    struct change_dir *d = &c->dirs[i];

    dirs_set_unread(c, i, false);
    (void)inotify_rm_watch(c->fd, d->wd);       /* gone already, where the directory is */
    free(d->name);
    *d = (struct change_dir){ .wd = -1, .parent = -1 };
    c->n_live--;
}

void
dirs_drop(struct changes *c, int index)
{
    bool more = true;

    forget(c, index);
    /* those whose parent is none any more, whatever their order */
    while (more) {
        more = false;
        for (size_t i = 0; i < c->n_dirs; i++) {
            const struct change_dir *d = &c->dirs[i];
            if (d->wd < 0 || d->parent < 0 || c->dirs[d->parent].wd >= 0)
                continue;
            forget(c, (int)i);
            more = true;
        }
    }
}

void
dirs_clear(struct changes *c)
{
    for (size_t i = 0; i < c->n_dirs; i++)
        free(c->dirs[i].name);
    free(c->dirs);
    c->dirs = NULL;
    c->n_dirs = c->cap = c->n_live = c->n_unread = 0;
    c->last = -1;
}

/* An empty place: index, or -1 without memory. */
static int
new_place(struct changes *c)
{
    size_t cap = c->cap == 0 ? 16 : 2 * c->cap;
    struct change_dir *more;

    for (size_t i = 0; c->n_live < c->n_dirs && i < c->n_dirs; i++)
        if (c->dirs[i].wd < 0)
            return (int)i;
    if (c->n_dirs == c->cap) {
        more = realloc(c->dirs, cap * sizeof(*more));
        if (more == NULL)
            return -1;
        c->dirs = more;
        c->cap = cap;
    }
    c->dirs[c->n_dirs] = (struct change_dir){ .wd = -1, .parent = -1 };
    return (int)c->n_dirs++;
}

/* It takes a descriptor's word for what is watched: a path could lead elsewhere by now. */
static int
add_watch(struct changes *c, int fd, int *wd)
{
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    *wd = inotify_add_watch(c->fd, path, MASK);
    if (*wd >= 0)
        return 0;
    return errno == ENOSPC ? FILES_WATCH_SYSTEM : errno;
}

/* The directory of index @i is @name in @parent now. Its watch stays. @name is taken when 0 is returned. */
static int
move_to(struct changes *c, int i, int parent, char *name)
{
    int other = dirs_child(c, parent, name);

    if (i == CHANGES_ROOT || is_below(c, parent, i))
        return DIRS_LOST;
    if (other >= 0 && is_below(c, i, other))
        return DIRS_LOST;
    if (other >= 0)
        dirs_drop(c, other);
    free(c->dirs[i].name);
    c->dirs[i].name = name;
    c->dirs[i].parent = parent;
    c->lost = c->lost || c->missed;
    return 0;
}

/* A new one. @name is taken when 0 is returned. */
static int
changes_dirs_add(struct changes *c, int wd, int parent, char *name)
{
    int other = parent >= 0 ? dirs_child(c, parent, name) : -1, i;

    if (other >= 0)
        dirs_drop(c, other);
    i = c->n_live < MSG_WATCH_DIRS_MAX ? new_place(c) : -1;
    if (i < 0) {
        (void)inotify_rm_watch(c->fd, wd);
        return c->n_live < MSG_WATCH_DIRS_MAX ? ENOMEM : FILES_WATCH_DIRS;
    }
    c->dirs[i] = (struct change_dir){ .wd = wd, .parent = parent, .name = name };
    c->n_live++;
    dirs_set_unread(c, i, c->recursive);
    return 0;
}

int
dirs_place(struct changes *c, int fd, int parent, const char *name, int was)
{
    cleanup_free char *own = NULL;
    char path[MSG_PATH_MAX + 1];
    int wd, i, rc;

    /* whatever is in it has to have a name */
    if (parent >= 0 && (dirs_path(c, parent, name, path) < 0 || strlen(path) > MSG_PATH_MAX - MSG_NAME_MAX - 2))
        return DIRS_DEEP;
    rc = add_watch(c, fd, &wd);
    if (rc != 0)
        return rc;
    i = dirs_find(c, wd);
    if (i >= 0 && c->dirs[i].parent == parent && (parent < 0 || strcmp(c->dirs[i].name, name) == 0))
        return 0;       /* as is known */
    if (i >= 0 && i != was)
        return DIRS_LOST;
    if (parent >= 0 && (own = strdup(name)) == NULL)
        return ENOMEM;
    rc = i >= 0 ? move_to(c, i, parent, own) : changes_dirs_add(c, wd, parent, own);
    if (rc == 0)
        own = NULL;
    return rc;
}

int
dirs_same(struct changes *c, int fd, int index)
{
    int wd, rc = add_watch(c, fd, &wd);

    if (rc != 0 || wd == c->dirs[index].wd)
        return rc;
    if (dirs_find(c, wd) < 0)
        (void)inotify_rm_watch(c->fd, wd);      /* it is placed where it is found */
    return DIRS_LOST;
}

/* The directory that was asked for, as long as its path leads there. */
static int
open_root(struct guest *g, const struct changes *c, int *fd)
{
    cleanup_close int dir = -1;
    struct walk_place at;
    struct stat st;

    if (files_walk(g, c->path, true, &at) != 0)
        return FILES_WATCH_GONE;
    dir = at.dir;
    *fd = openat(dir, at.name, OPEN_FLAGS);
    if (*fd < 0)
        return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? errno : FILES_WATCH_GONE;
    if (fstat(*fd, &st) == 0 && st.st_dev == c->dev && st.st_ino == c->ino)
        return 0;
    close_fd(fd);
    return FILES_WATCH_GONE;
}

int
dirs_open(struct guest *g, const struct changes *c, int dir, const char *name, int *fd)
{
    char path[MSG_PATH_MAX + 1];
    int rc;

    *fd = -1;
    if (dirs_path(c, dir, name, path) < 0)
        return ENAMETOOLONG;
    rc = open_root(g, c, fd);
    for (char *at = path, *end; rc == 0 && *at != '\0'; at = end) {
        cleanup_close int above = *fd;
        end = at + strcspn(at, "/");
        if (*end == '/')
            *end++ = '\0';
        *fd = openat(above, at, OPEN_FLAGS);
        if (*fd < 0)
            rc = errno;
    }
    return rc;
}
