/* guest/guard_walk.c: from the bytes of a path to a directory that is held
 *
 * The common case is one openat2() for the parent, which refuses magic links: they would lead into the guard's own
 * /proc/self instead of the caller's. Whatever meets procfs on its way, or fails, is walked again name by name, with
 * the caller's numbers and descriptors in place of ours. No name in the sandbox moves meanwhile, because all
 * renames and links are served by this thread, one after the other.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/guard_priv.h"

#define PROC_ROOT_INO 1

void
place_close(struct place *p)
{
    if (!p->borrowed)
        close_fd(&p->dir);
    p->dir = -1;
    p->borrowed = false;
}

const char *
place_name(const struct place *p, char room[PATH_MAX + 1])
{
    memcpy(room, p->name, p->name_n);
    room[p->name_n] = '\0';
    return room;
}

struct fd_path
fd_path(int fd)
{
    struct fd_path p;

    snprintf(p.text, sizeof(p.text), "/proc/self/fd/%d", fd);
    return p;
}

bool
walk_is_proc(int fd)
{
    struct statfs fs;

    /* What cannot be told is treated with more care, not less. */
    return fstatfs(fd, &fs) < 0 || fs.f_type == GS_PROC_MAGIC;
}

/* Our own entries in /proc would open for us what they would not for the caller, and so would those of a worker. */
int
walk_refuse_own_proc(const struct guard *g, int fd)
{
    char text[128], own[32];
    struct stat st;
    size_t len;
    ssize_t n;

    if (fstat(fd, &st) < 0 || st.st_dev != g->proc_dev)
        return -EACCES;     /* another procfs: we cannot tell whose numbers it shows */
    n = fd_text(g, fd, text, sizeof(text) - 1);
    if (n < 0)
        return -EACCES;
    text[n] = '\0';
    for (size_t i = 0; i <= g->n_workers; i++) {
        len = (size_t)snprintf(own, sizeof(own), "/proc/%d", (int)(i == g->n_workers ? g->pid : g->workers[i]));
        if (strncmp(text, own, len) == 0 && (text[len] == '\0' || text[len] == '/' || text[len] == ' '))
            return -EACCES;
    }
    return strncmp(text, "/proc", 5) == 0 && (text[5] == '\0' || text[5] == '/') ? 0 : -EACCES;
}

/* --- name by name */

struct walk {
    struct call *c;
    int cur;                    /* O_PATH, owned */
    bool proc;                  /* cur is on procfs */
    int *links;
    const char *rest;           /* what is left; in one of the guard's two buffers, or the caller's string */
    unsigned buffer;
};

static int
enter(struct walk *w, int next)
{
    if (next < 0)
        return -errno;
    close_fd(&w->cur);
    w->cur = next;
    w->proc = walk_is_proc(next);
    return w->proc ? walk_refuse_own_proc(w->c->g, next) : 0;
}

static int
enter_root(struct walk *w)
{
    return enter(w, fcntl(w->c->g->root, F_DUPFD_CLOEXEC, 0));
}

/* Put @target in front of what is left. */
static int
expand(struct walk *w, const char *target, size_t n)
{
    char *to = w->c->g->rest[w->buffer];
    size_t left = strlen(w->rest);

    if (n == 0)
        return -ENOENT;
    if (n + 1 + left >= WALK_REST_MAX)
        return -ENAMETOOLONG;
    memcpy(to, target, n);
    to[n] = '/';
    memcpy(to + n + 1, w->rest, left + 1);
    /* "a/" + nothing must not ask for a directory where the link alone would not: the walk's end decides that */
    w->rest = to;
    w->buffer ^= 1;
    return target[0] == '/' ? enter_root(w) : 0;
}

static int
count_link(int *links)
{
    return ++*links > WALK_LINKS_MAX ? -ELOOP : 0;
}

/* /proc/self and /proc/thread-self mean the caller, not us. 1 when @name was one of them. */
static int
expand_self(struct walk *w, const char *name)
{
    bool thread = strcmp(name, "thread-self") == 0;
    char text[64];
    struct stat st;
    int rc, n;

    if (!w->proc || (!thread && strcmp(name, "self") != 0) || fstat(w->cur, &st) < 0 || st.st_ino != PROC_ROOT_INO)
        return 0;
    if ((rc = count_link(w->links)) < 0 || (rc = caller_status(w->c)) < 0)
        return rc;
    if (thread)
        n = snprintf(text, sizeof(text), "%d/task/%d", (int)w->c->tgid, (int)w->c->tid);
    else
        n = snprintf(text, sizeof(text), "%d", (int)w->c->tgid);
    rc = expand(w, text, (size_t)n);
    return rc < 0 ? rc : 1;
}

static bool
no_symlinks_here(int fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) == 0 && (fs.f_flags & GS_ST_NOSYMFOLLOW) != 0;
}

/* All symbolic links of procfs but those in its root directory jump to an object; their text only describes it. */
static bool
is_magic(const struct walk *w)
{
    struct stat st;

    return w->proc && (fstat(w->cur, &st) < 0 || st.st_ino != PROC_ROOT_INO);
}

static int
step_link(struct walk *w, int link, const char *name)
{
    char target[PATH_MAX];
    ssize_t n;
    int rc = count_link(w->links);

    if (rc < 0)
        return rc;
    if (no_symlinks_here(link))
        return -ELOOP;
    if (is_magic(w))
        return enter(w, openat(w->cur, name, O_PATH | O_CLOEXEC));
    n = readlinkat(link, "", target, sizeof(target));
    if (n < 0)
        return -errno;
    if (n == (ssize_t)sizeof(target))
        return -ENAMETOOLONG;
    return expand(w, target, (size_t)n);
}

static int
step(struct walk *w, const char *name)
{
    cleanup_close int next = -1;
    struct stat st;
    int rc;

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return enter(w, openat(w->cur, name, O_PATH | O_CLOEXEC));
    if ((rc = expand_self(w, name)) != 0)
        return rc < 0 ? rc : 0;
    next = openat(w->cur, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0 || fstat(next, &st) < 0)
        return -errno;
    if (S_ISLNK(st.st_mode))
        return step_link(w, next, name);
    return enter(w, take_fd(&next));
}

/* Walk all of @path from @w->cur. The end may be anything; a '/' behind it is not looked at. */
static int
walk_all(struct walk *w, const char *path)
{
    char name[NAME_MAX + 1];
    int rc;

    w->rest = path;
    for (;;) {
        size_t n;

        w->rest += strspn(w->rest, "/");
        n = strcspn(w->rest, "/");
        if (n == 0)
            return 0;
        if (n > NAME_MAX)
            return -ENAMETOOLONG;
        memcpy(name, w->rest, n);
        name[n] = '\0';
        w->rest += n;
        if ((rc = step(w, name)) < 0)
            return rc;
    }
}

/* --- to a parent */

/* A directory on a file system that is known not to be procfs saves a call. */
static bool
is_proc(const struct guard *g, int fd, const struct stat *st)
{
    for (size_t i = 0; i < g->n_plain_devs; i++)
        if (g->plain_devs[i] == st->st_dev)
            return false;
    return walk_is_proc(fd);
}

static int
open_parent(int base, const char *parent, uint64_t resolve)
{
    const struct gs_open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = resolve };

    return (int)syscall(GS_NR_openat2, base, parent, &how, sizeof(how));
}

/* Nothing is there, and no link was on the way, that could mean something else to the caller. */
static bool
is_absent(int base, const char *parent)
{
    int dir = open_parent(base, parent, GS_RESOLVE_NO_SYMLINKS);

    if (dir >= 0)
        close(dir);
    return dir < 0 && errno == ENOENT;
}

/* One system call for the parent, mostly. False: walk; with -ENOENT in @out's dir there is none. A path from the top on
 * which there is no link says by itself where the directory lies. */
static bool
parent_at_once(struct guard *g, int base, const char *parent, size_t n, struct place *out)
{
    bool plain = rules_path_is_plain(parent, n);

    out->dir = open_parent(base, parent, plain ? GS_RESOLVE_NO_SYMLINKS : GS_RESOLVE_NO_MAGICLINKS);
    if (out->dir < 0 && errno == ENOENT && (plain || is_absent(base, parent))) {
        out->dir = -ENOENT;
        return false;
    }
    if (out->dir < 0 && plain) {
        plain = false;
        out->dir = open_parent(base, parent, GS_RESOLVE_NO_MAGICLINKS);
    }
    if (out->dir < 0)
        return false;
    if (fstat(out->dir, &out->dir_st) < 0 || is_proc(g, out->dir, &out->dir_st)) {
        place_close(out);
        return false;
    }
    if (plain)
        rules_path_is(&g->rules, &out->dir_st, parent, n);
    return true;
}

static int
parent_by_name(struct call *c, int base, const char *parent, int *links, struct place *out)
{
    struct walk w = { .c = c, .cur = -1, .links = links };
    int rc = parent[0] == '/' ? enter_root(&w) : enter(&w, fcntl(base, F_DUPFD_CLOEXEC, 0));

    if (rc == 0)
        rc = walk_all(&w, parent);
    if (rc < 0) {
        close_fd(&w.cur);
        return rc;
    }
    out->dir = w.cur;
    out->on_proc = w.proc;
    return 0;
}

/* Split @path: the parent's length, and the name (with one '/' when the path ended in some). */
static void
split(const char *path, size_t *parent_n, struct place *out)
{
    size_t n = strlen(path), end = n, start;

    while (end > 0 && path[end - 1] == '/')
        end--;
    if (end == 0) {
        /* the root directory itself: the kernel's own answer for "/" is the right one */
        memcpy(out->name, "/", 2);
        out->name_n = 1;
        *parent_n = 1;
        return;
    }
    for (start = end; start > 0 && path[start - 1] != '/'; start--)
        ;
    out->name_n = end - start;
    memcpy(out->name, path + start, out->name_n);
    out->name[out->name_n] = '\0';
    if (end < n)
        memcpy(out->name + out->name_n, "/", 2);
    *parent_n = start;
}

int
walk_parent_from(struct call *c, int base, const char *path, int *links, struct place *out)
{
    unfilled char parent[PATH_MAX];
    size_t n;
    int rc;

    if (path[0] == '\0')
        return -ENOENT;
    if (strlen(path) >= sizeof(parent))
        return -ENAMETOOLONG;
    place_close(out);
    out->on_proc = false;
    split(path, &n, out);
    memcpy(parent, path, n);
    parent[n] = '\0';
    if (n == 0)
        memcpy(parent, ".", 2);
    out->at_once = parent_at_once(c->g, base, parent, n, out);
    if (out->at_once)
        return 0;           /* a directory */
    if (out->dir == -ENOENT) {
        out->dir = -1;
        return -ENOENT;
    }
    rc = parent_by_name(c, base, parent, links, out);
    if (rc < 0)
        return rc;
    if (fstat(out->dir, &out->dir_st) < 0)
        return -errno;
    return S_ISDIR(out->dir_st.st_mode) ? 0 : -ENOTDIR;
}

/* A bare name: its parent is @base itself. */
static int
parent_is(struct call *c, int base, const char *name, struct place *out)
{
    size_t n;
    int rc;

    if (strlen(name) >= PATH_MAX)
        return -ENAMETOOLONG;
    split(name, &n, out);
    out->dir = base;
    if (c->cwd_lent && base == c->cwd) {
        out->on_proc = false;
        out->at_once = true;
        out->dir_st = c->cwd_st;
        return 0;
    }
    if (fstat(base, &out->dir_st) < 0)
        return -errno;
    out->on_proc = is_proc(c->g, base, &out->dir_st);
    out->at_once = !out->on_proc;
    if (out->on_proc && (rc = walk_refuse_own_proc(c->g, base)) < 0)
        return rc;
    return S_ISDIR(out->dir_st.st_mode) ? 0 : -ENOTDIR;
}

int
walk_parent(struct call *c, int dirfd, const char *path, struct place *out)
{
    cleanup_close int owned = -1;
    int links = 0, base = AT_FDCWD;

    if (path[0] == '\0')
        return -ENOENT;
    if (path[0] != '/') {
        base = caller_dir(c, dirfd, &owned);
        if (base < 0)
            return base;
        if (strchr(path, '/') == NULL) {
            place_close(out);
            out->borrowed = owned < 0;
            (void)take_fd(&owned);
            return parent_is(c, base, path, out);
        }
    }
    return walk_parent_from(c, base, path, &links, out);
}

int
walk_parent_as(struct call *c, int dirfd, const char *path, int as_dirfd, const char *as_path,
               const struct place *as, struct place *out)
{
    size_t n = strlen(path), up, as_up = strlen(as_path);

    while (as_up > 0 && as_path[as_up - 1] != '/')
        as_up--;
    for (up = n; up > 0 && path[up - 1] != '/'; up--)
        ;
    /* a '/' behind a name belongs to the name */
    if (!as->at_once || as->name[as->name_n] == '/' || up == n || up != as_up || memcmp(path, as_path, up) != 0 ||
        (path[0] != '/' && dirfd != as_dirfd))
        return walk_parent(c, dirfd, path, out);
    place_close(out);
    out->dir = as->dir;
    out->borrowed = true;
    out->dir_st = as->dir_st;
    out->at_once = true;
    out->on_proc = false;
    split(path, &up, out);
    return 0;
}

/* --- through the last name */

/* fs.protected_symlinks: in a sticky directory that all may write to, links of others are not followed. The kernel
 * checks it when it follows; here we follow. */
static bool
link_of_a_stranger(const struct call *c, const struct place *p, const struct stat *link)
{
    return (p->dir_st.st_mode & (S_ISVTX | S_IWOTH)) == (S_ISVTX | S_IWOTH) && link->st_uid != c->g->uid &&
           link->st_uid != p->dir_st.st_uid;
}

int
walk_follow(struct call *c, struct place *p, int *links, int *object)
{
    cleanup_close int link = -1;
    struct walk w = { .c = c, .cur = p->dir, .proc = p->on_proc, .links = links, .rest = "" };
    unfilled char name[PATH_MAX + 1], target[PATH_MAX];
    bool slash = p->name[p->name_n] == '/';
    struct place from;
    struct stat st;
    ssize_t n;
    int rc;

    *object = -1;
    (void)place_name(p, name);
    if ((rc = count_link(links)) < 0)
        return rc;
    link = openat(p->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (link < 0 || fstat(link, &st) < 0)
        return -errno;
    if (no_symlinks_here(link))
        return -ELOOP;
    if (is_magic(&w)) {
        *object = openat(p->dir, name, O_PATH | O_CLOEXEC);
        if (*object < 0)
            return -errno;
        if (slash && (fstat(*object, &st) < 0 || !S_ISDIR(st.st_mode))) {
            close_fd(object);
            return -ENOTDIR;
        }
        if (!walk_is_proc(*object) || (rc = walk_refuse_own_proc(c->g, *object)) == 0)
            return 0;
        close_fd(object);
        return rc;
    }
    if (link_of_a_stranger(c, p, &st))
        return -EACCES;
    if (p->on_proc && (strcmp(name, "self") == 0 || strcmp(name, "thread-self") == 0))
        return -EISDIR;         /* a directory, whoever asks */
    n = readlinkat(link, "", target, sizeof(target) - 1);
    if (n < 0)
        return -errno;
    target[n] = '\0';
    from = *p;
    p->dir = -1;
    p->borrowed = false;
    rc = walk_parent_from(c, from.dir, target, links, p);
    place_close(&from);
    /* what the link was asked to be, its target must be */
    if (rc == 0 && slash && p->name[p->name_n] != '/' && p->name_n < PATH_MAX)
        memcpy(p->name + p->name_n, "/", 2);
    return rc;
}

int
walk_object(struct call *c, int dirfd, const char *path, bool follow, struct place *out, int *object)
{
    struct stat st;
    int links = 0, rc = walk_parent(c, dirfd, path, out);

    *object = -1;
    while (rc == 0) {
        unfilled char name[PATH_MAX + 1];
        bool slash = out->name[out->name_n] == '/';

        if ((!follow && !slash) || out->name[0] == '/' ||
            fstatat(out->dir, place_name(out, name), &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISLNK(st.st_mode))
            return 0;
        rc = walk_follow(c, out, &links, object);
        if (*object >= 0)
            return 0;
    }
    return rc;
}

/* --- a path as text */

/* Is nothing between the '/' of this path, or behind it, empty? */
static bool
has_whole_names(const char *path, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (path[i] == '/' && (i + 1 == n || path[i + 1] == '/'))
            return false;
    return n > 0;
}

ssize_t
walk_text(struct call *c, int dirfd, const char *path, char *text, int *base)
{
    size_t n = strlen(path);
    struct str dir = STR_LIT("");
    struct seen *s = seen_of(c);

    if (n >= PATH_MAX || !has_whole_names(path, n))
        return -1;
    *base = c->g->root;
    if (path[0] != '/') {
        /* a directory that is known not to be one of /proc's */
        if (dirfd != AT_FDCWD || s == NULL || !(c->cwd_lent || (c->cwd < 0 && seen_cwd(c, s))))
            return -1;
        *base = c->cwd;
        dir = rules_path(c->g, c->cwd, &c->cwd_st);
        if (dir.n == 0 || dir.p[0] != '/')
            return -1;
        memcpy(text, dir.p, dir.n);
        text[dir.n++] = '/';
    }
    memcpy(text + dir.n, path, n);
    return (ssize_t)(dir.n + n);
}
