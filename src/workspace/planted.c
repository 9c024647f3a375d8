/* workspace/planted.c: see planted.h */
#include "workspace/planted.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/dirents.h"
#include "base/io.h"
#include "base/kernel.h"
#include "match/path.h"
#include "workspace/git_place.h"
#include "workspace/tree.h"

#define NAMES_MAX   (16UL << 20)    /* bytes of the names of one directory's directories */
#define CLOCK_EVERY 256             /* entries between two looks at the clock */
#define GIT_RUNS    "the next git command there, or above where it is a submodule"

/* A directory that is being searched. */
struct level {
    int fd;
    struct buf below;       /* names of its directories, each with a NUL */
    size_t next;            /* the next of them in @below */
    size_t path_n;          /* bytes of the path up to here */
    const char *dir;        /* the table's directory that it is (@own) or lies below, or NULL */
    bool own;
    bool place;             /* git takes it for a repository */
};

struct search {
    const struct planted_input *in;
    struct planted *out;
    struct level *levels;       /* PLANTED_DEPTH of them */
    size_t n;
    struct buf path;            /* of the directory on top, and of the entry looked at */
    char root[PATH_TEXT_MAX + 1];
    struct timespec since;
    uint64_t began, ends;
    bool stop;
};

struct timespec
planted_since(const struct timespec *began)
{
    struct timespec since = *began;

    /* the kernel's stamps are of its last tick, up to 10 ms old */
    since.tv_nsec -= 20 * 1000 * 1000;
    if (since.tv_nsec < 0) {
        since.tv_nsec += 1000 * 1000 * 1000;
        since.tv_sec--;
    }
    return since;
}

bool
planted_changed(const struct timespec *since, const struct timespec *t)
{
    return t->tv_sec > since->tv_sec || (t->tv_sec == since->tv_sec && t->tv_nsec >= since->tv_nsec);
}

static bool
changed(const struct search *s, const struct timespec *t)
{
    return s->in->since == NULL || planted_changed(&s->since, t);
}

/* The path of @name in the directory on top, NUL-terminated; NULL when it is too long. */
static const char *
path_of(struct search *s, const char *name)
{
    buf_reset(&s->path);
    s->path.n = s->levels[s->n - 1].path_n;
    if (s->path.n > 0)
        buf_puts(&s->path, "/");
    buf_puts(&s->path, name);
    return buf_nul(&s->path) == 0 ? (const char *)s->path.p : NULL;
}

void
planted_add(struct planted *p, const char *path, const char *what, const char *runs, const char *detail)
{
    char *copy = path != NULL && p->n < PLANTED_KEPT ? strdup(path) : NULL;

    /* as a rule there is none */
    if (copy != NULL && p->v == NULL)
        p->v = calloc(PLANTED_KEPT, sizeof(*p->v));
    if (copy == NULL || p->v == NULL) {
        free(copy);
        p->more++;
        return;
    }
    p->v[p->n] = (struct planted_find){ .path = copy, .what = what, .runs = runs };
    snprintf(p->v[p->n].detail, sizeof(p->v[p->n].detail), "%s", detail);
    p->n++;
}

static void
found(struct search *s, const char *name, const char *what, const char *runs, const char *detail)
{
    planted_add(s->out, path_of(s, name), what, runs, detail);
}

/* --- git --- */

/* Whether @target, as a file in the directory on top says it, lies in the folder. (What is there is searched for
 * itself.) */
static bool
leads_inside(struct search *s, struct str target)
{
    cleanup_buf struct buf base = BUF_INIT(2 * PATH_MAX);
    char out[PATH_TEXT_MAX + 1];
    size_t n, root = strlen(s->root);

    buf_puts(&base, s->root);
    buf_puts(&base, "/");
    buf_append(&base, s->path.p, s->levels[s->n - 1].path_n);
    if (!buf_ok(&base) || path_normalise(target, (struct str){ (const char *)base.p, base.n }, false, out, sizeof(out),
                                         &n) != PATH_OK || !path_within((struct str){ out, n }, str_of(s->root)))
        return false;
    cleanup_close int fd = tree_open(s->in->folder, out + root + (root > 1 && n > root), O_PATH);
    return fd >= 0 || (errno != ELOOP && errno != EXDEV);
}

/* The text of the small file @name of the directory on top. */
static bool
small_file(struct search *s, const char *name, struct buf *text)
{
    cleanup_close int fd = tree_open_file(s->levels[s->n - 1].fd, name, false);

    return fd >= 0 && io_read_all(fd, text) == 0;
}

/* A `.git` that is no directory. */
static void
look_at_git_file(struct search *s, const char *name)
{
    cleanup_buf struct buf text = BUF_INIT(GIT_HEAD_MAX);
    struct str target;

    bool read = small_file(s, name, &text);
    struct str whole = { (const char *)text.p, text.n };
    if (!read || !git_file_target(whole, &target) || !leads_inside(s, target))
        found(s, name, "redirection of git", GIT_RUNS, "leads out of the folder");
    else if (!git_file_harmless(whole))
        found(s, name, "redirection of git", GIT_RUNS, "leads to what is no .git");
}

static bool
at_offence(void *ctx, const struct git_offence *o)
{
    struct search *s = ctx;
    struct level *l = &s->levels[s->n - 1];
    cleanup_buf struct buf text = BUF_INIT(GIT_HEAD_MAX);
    struct str target;
    struct stat st;

    if (fstatat(l->fd, o->path, &st, AT_SYMLINK_NOFOLLOW) < 0 || (!l->place && !changed(s, &st.st_ctim)))
        return true;
    if (git_part_of(str_of(o->path)) == GIT_PART_COMMONDIR && S_ISREG(st.st_mode) && small_file(s, o->path, &text) &&
        git_redirect_target((struct str){ (const char *)text.p, text.n }, &target) && leads_inside(s, target) &&
        git_common_harmless((struct str){ (const char *)text.p, text.n },
                            (struct str){ (const char *)s->path.p, l->path_n }))
        return true;
    const char *detail = o->state == GIT_STATE_COMMONDIR ? "leads out of the folder, or to what is no .git"
                                                         : o->fault.key;
    found(s, o->path, git_state_name(o->state), GIT_RUNS, S_ISLNK(st.st_mode) ? "a symbolic link" : detail);
    return true;
}

/* Whether the directory on top became a repository in the time that is asked about. */
static bool
formed(const struct search *s, int fd)
{
    static const char *const names[] = { "objects", "refs", "commondir" };
    struct statx x;

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (kernel_statx(fd, names[i], AT_SYMLINK_NOFOLLOW, STATX_BTIME, &x) == 0 && (x.stx_mask & STATX_BTIME) != 0 &&
            changed(s, &(struct timespec){ .tv_sec = x.stx_btime.tv_sec, .tv_nsec = x.stx_btime.tv_nsec }))
            return true;
    return false;
}

static void
look_at_place(struct search *s)
{
    struct level *l = &s->levels[s->n - 1];

    /* of a repository that was none before, what is older counts too */
    l->place = s->in->since == NULL || formed(s, l->fd);
    (void)git_place_search(l->fd, s->n - 1, at_offence, s);
    if (s->n == 1 && l->place)
        found(s, "HEAD", "bare repository", GIT_RUNS, "git takes the folder itself for one");
    l->place = true;
}

/* --- the walk --- */

static bool
is_file(uint8_t type)
{
    return type == DT_REG || type == DT_LNK || type == DT_UNKNOWN;
}

static void
look_at_entry(struct search *s, const char *name, uint8_t type)
{
    struct level *l = &s->levels[s->n - 1];
    bool git = strcasecmp(name, ".git") == 0;
    const struct planted_row *row = git ? NULL : planted_match(l->dir, l->own, name);
    struct stat st;

    /* in place of a directory of the table, whatever it leads to */
    bool link = !git && row == NULL && type != DT_REG && name[0] == '.' && (row = planted_below(name)) != NULL;
    if ((!git && row == NULL) || !is_file(type) || fstatat(l->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        S_ISDIR(st.st_mode) || (link && !S_ISLNK(st.st_mode)) || !changed(s, &st.st_ctim))
        return;
    if (git)
        look_at_git_file(s, name);
    else
        found(s, name, row->what, row->runs, link ? "a symbolic link" : "");
}

static bool
out_of_bounds(struct search *s)
{
    uint64_t n = ++s->out->entries;

    if ((s->in->max_entries > 0 && n > s->in->max_entries) ||
        (s->ends > 0 && n % CLOCK_EVERY == 0 && clock_us() > s->ends))
        s->stop = true;
    return s->stop;
}

static bool
is_directory(struct search *s, const char *name, uint8_t type)
{
    struct stat st;

    if (type != DT_UNKNOWN)
        return type == DT_DIR;
    return fstatat(s->levels[s->n - 1].fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Read the names of the directory on top. */
static void
read_level(struct search *s)
{
    struct level *l = &s->levels[s->n - 1];
    struct dirents names = { .fd = l->fd };
    const char *name;
    unsigned parts = 0;

    while ((name = dirents_next(&names)) != NULL && !out_of_bounds(s)) {
        uint8_t type = names.type;
        parts |= git_part_of(str_of(name));
        look_at_entry(s, name, type);
        if (is_directory(s, name, type) && buf_append(&l->below, name, strlen(name) + 1) < 0)
            s->out->complete = false;
    }
    s->out->complete &= names.failed == 0;
    if (git_parts_place(parts))
        look_at_place(s);
}

static void
enter(struct search *s, int fd, const char *name)
{
    const struct level *above = s->n > 0 ? &s->levels[s->n - 1] : NULL;
    struct level *l = &s->levels[s->n];
    const char *own = planted_dir(name);

    *l = (struct level){ .fd = fd, .below = BUF_INIT(NAMES_MAX),
                         .dir = own != NULL ? own : above != NULL ? above->dir : NULL, .own = own != NULL };
    if (above != NULL && path_of(s, name) != NULL)
        l->path_n = s->path.n;
    s->n++;
    read_level(s);
}

/* Git stores there by content; nothing in it is obeyed but by a redirection, which is found by itself. */
static bool
store(const struct level *l, const char *name)
{
    return l->place && git_part_of(str_of(name)) == GIT_PART_OBJECTS;
}

/* Go on with the directory on top: into its next directory, or out of it. */
static void
step(struct search *s)
{
    struct level *l = &s->levels[s->n - 1];

    if (l->next >= l->below.n) {
        close_fd(&l->fd);
        buf_free(&l->below);
        s->n--;
        return;
    }
    const char *name = (const char *)l->below.p + l->next;
    l->next += strlen(name) + 1;
    if (store(l, name))
        return;
    int fd = s->n < PLANTED_DEPTH ? tree_open(l->fd, name, O_RDONLY | O_DIRECTORY) : -1;
    if (fd >= 0)
        enter(s, fd, name);
    else if (s->n == PLANTED_DEPTH || (errno != ENOENT && errno != EXDEV && errno != ENOTDIR && errno != ELOOP))
        s->out->complete = false;
}

static int
prepare(struct search *s, struct err *err)
{
    char link[64];

    snprintf(link, sizeof(link), "/proc/self/fd/%d", s->in->folder);
    ssize_t n = readlink(link, s->root, sizeof(s->root) - 1);
    int fd = n > 0 ? tree_open(s->in->folder, "", O_RDONLY | O_DIRECTORY) : -1;
    if (fd < 0)
        return err_sys(err, errno, "workspace.planted", "cannot open the folder");
    s->root[n] = '\0';
    s->levels = calloc(PLANTED_DEPTH, sizeof(*s->levels));
    if (s->levels == NULL) {
        close_fd(&fd);
        return err_set(err, ERR_SYSTEM, "workspace.memory", "no memory");
    }
    if (s->in->since != NULL)
        s->since = planted_since(s->in->since);
    enter(s, fd, "");
    return 0;
}

int
planted_scan(const struct planted_input *in, struct planted *out, struct err *err)
{
    uint64_t now = clock_us();
    struct search s = { .in = in, .out = out, .path = BUF_INIT(TREE_PATH_MAX), .began = now,
                        .ends = in->max_us > 0 ? now + in->max_us : 0 };

    *out = (struct planted){ .complete = true };
    int r = prepare(&s, err);
    while (r == 0 && s.n > 0 && !s.stop)
        step(&s);
    while (s.n > 0) {
        close_fd(&s.levels[--s.n].fd);
        buf_free(&s.levels[s.n].below);
    }
    out->complete &= !s.stop;
    out->us = clock_us() - s.began;
    free(s.levels);
    buf_free(&s.path);
    if (r < 0)
        planted_free(out);
    return r;
}

void
planted_free(struct planted *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->v[i].path);
    free(p->v);
    *p = (struct planted)PLANTED_INIT;
}
