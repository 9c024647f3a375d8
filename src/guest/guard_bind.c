/* guest/guard_bind.c: does a name that was just made belong to the socket that was bound by it?
 *
 * Theory: the kernel binds by the caller's own bytes, and says of a socket only those. Another sandbox of the same tree
 * may put a socket of its own at that name, or another directory in the place of one on the way, so that the kernel
 * binds in that one. It can do neither without a rename, link or creation in a directory that we watch (inotify), and
 * each of them holds its directory's lock until it has told of itself. So: every directory on the way is watched, then
 * looked at again (from here on nothing moves unseen), and after the call each lock is taken once before what was told
 * is read. What cannot be watched is not known: a symbolic link or `..` on the way, a directory that cannot be read.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/guard_priv.h"

static int
watch_add(const struct guard *g, int dir, uint32_t mask)
{
    return inotify_add_watch(g->bind_watch, fd_path(dir).text, mask | IN_MOVE_SELF | IN_DELETE_SELF | IN_ONLYDIR);
}

/* Cut the next component off *@path, into @name. False: it is the last, or too long. */
static bool
next_name(const char **path, char name[NAME_MAX + 1])
{
    const char *p = *path + strspn(*path, "/");
    size_t n = strcspn(p, "/");

    *path = p + n;
    if (n == 0 || n > NAME_MAX || p[n + strspn(p + n, "/")] == '\0')
        return false;
    memcpy(name, p, n);
    name[n] = '\0';
    return true;
}

/* Whether the directory @step says is still that one. */
static bool
step_holds(const struct bind_step *step)
{
    struct stat st;

    return fstatat(step->in, step->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && ident_eq(ident_of(&st), step->id);
}

/* Watch the directories on the way from @dir, which is the watch's own. True: it ends in @end. */
static bool
watch_way(struct guard *g, struct bind_watch *w, int dir, const char *path, struct ident end)
{
    cleanup_close int cur = dir;
    struct bind_step *step;
    struct stat st;

    while (w->n < BIND_STEPS_MAX && next_name(&path, w->steps[w->n].name)) {
        step = &w->steps[w->n];
        if (strcmp(step->name, ".") == 0)
            continue;
        if (strcmp(step->name, "..") == 0)
            return false;
        int next = openat(cur, step->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        step->in = take_fd(&cur);
        w->n++;
        cur = next;
        if (cur < 0 || fstat(cur, &st) < 0)
            return false;
        step->id = ident_of(&st);
        /* above the trees nothing inside moves anything */
        step->watch = watch_add(g, cur, 0);
        if (step->watch < 0 && (errno != EACCES || socket_tree_of(g, cur) != NULL))
            return false;
    }
    return w->n < BIND_STEPS_MAX && fstat(cur, &st) == 0 && ident_eq(ident_of(&st), end);
}

void
bind_watch_begin(struct guard *g, struct bind_watch *w, int cwd, const char *path, const struct place *at)
{
    char old[4096];
    bool known = true;

    if (g->bind_watch < 0)
        g->bind_watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (g->bind_watch < 0)
        return;
    while (read(g->bind_watch, old, sizeof(old)) > 0)
        ;   /* of the last time */
    /* where the held directory is named instead there is no way (bind_at()) */
    if (at->at_once)
        known = watch_way(g, w, cwd < 0 ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : fcntl(cwd, F_DUPFD_CLOEXEC, 0),
                          path, ident_of(&at->dir_st));
    for (size_t i = 0; i < w->n && known; i++)
        known = step_holds(&w->steps[i]);
    if (known)
        w->name = watch_add(g, at->dir, IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM);
}

void
bind_watch_end(struct guard *g, struct bind_watch *w)
{
    for (size_t i = 0; i < w->n; i++) {
        if (w->steps[i].watch >= 0)
            (void)inotify_rm_watch(g->bind_watch, w->steps[i].watch);
        close_fd(&w->steps[i].in);
    }
    if (w->name >= 0)
        (void)inotify_rm_watch(g->bind_watch, w->name);
    w->n = 0;
}

static bool
is_ascii(const char *name)
{
    while (*name > 0)
        name++;
    return *name == '\0';
}

/* To some file system, which may fold names. */
static bool
may_be_name(const char *a, const char *b)
{
    return !is_ascii(a) || !is_ascii(b) || strcasecmp(a, b) == 0;
}

/* How often @name came, by what was told; more than once also when something on the way moved. That it went counts too:
 * of two alike the kernel tells one, if nothing was in between. */
static unsigned
times_told(struct guard *g, const struct bind_watch *w, const char *name)
{
    union { struct inotify_event event; char bytes[4096]; } room;
    unsigned times = 0;
    ssize_t n;

    while ((n = read(g->bind_watch, room.bytes, sizeof(room.bytes))) > 0) {
        for (size_t at = 0; at < (size_t)n;) {
            const struct inotify_event *ev = (const struct inotify_event *)(const void *)(room.bytes + at);

            at += sizeof(*ev) + ev->len;
            if ((ev->mask & (IN_Q_OVERFLOW | IN_MOVE_SELF | IN_DELETE_SELF)) != 0)
                times = 2;
            else if (ev->wd == w->name && (ev->len == 0 || may_be_name(ev->name, name)))
                times++;
        }
    }
    return errno == EAGAIN ? times : 2;
}

bool
bind_watch_told_once(struct guard *g, const struct bind_watch *w, const struct place *at)
{
    /* links that come to nothing, but wait for the directory */
    for (size_t i = 0; i < w->n; i++) {
        const struct bind_step *s = &w->steps[i];
        if (linkat(s->in, s->name, s->in, s->name, 0) == 0 || errno != EEXIST)
            return false;
    }
    /* where it was gone, this one is told to have come again */
    (void)!linkat(at->dir, at->name, at->dir, at->name, 0);
    return times_told(g, w, at->name) == 1;
}
