/* workspace/stage.c: copies of what the sandbox made, as the project will get them
 *
 * Owner, mode bits and attributes are decided here: permission bits only, the project's owner, user.* attributes. Names
 * that shared an inode in the sandbox share one again.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "workspace/apply_priv.h"
#include "workspace/overlay.h"
#include "workspace/tree.h"
#include "workspace/xattr.h"

#define COPY_BUF 131072

struct stage_link {
    uint64_t ino;
    char *path;         /* where in the stage its first name is; NULL: not yet */
};

/* --- several names of one inode --------------------------------------------------------------------------------- */

static int
by_ino(const void *a, const void *b)
{
    const struct stage_link *x = a, *y = b;

    return x->ino < y->ino ? -1 : x->ino > y->ino;
}

static int
collect_links(struct stage *s, struct err *err)
{
    size_t n = 0;

    for (size_t i = 1; i < s->c->n; i++)
        n += s->plan->fate[i] == FATE_APPLIED && S_ISREG(s->c->v[i].upper.mode) && s->c->v[i].upper.nlink > 1;
    s->links = calloc(n + 1, sizeof(*s->links));
    if (s->links == NULL)
        return err_set(err, ERR_SYSTEM, "workspace.memory", "no memory");
    n = 0;
    for (size_t i = 1; i < s->c->n; i++)
        if (s->plan->fate[i] == FATE_APPLIED && S_ISREG(s->c->v[i].upper.mode) && s->c->v[i].upper.nlink > 1)
            s->links[n++].ino = s->c->v[i].upper.ino;
    qsort(s->links, n, sizeof(*s->links), by_ino);
    for (size_t i = 0; i < n; i++)
        if (s->n_links == 0 || s->links[s->n_links - 1].ino != s->links[i].ino)
            s->links[s->n_links++].ino = s->links[i].ino;
    return 0;
}

static struct stage_link *
link_of(const struct stage *s, const struct change *e)
{
    const struct stage_link want = { .ino = e->upper.ino };

    if (!S_ISREG(e->upper.mode) || e->upper.nlink < 2)
        return NULL;
    return bsearch(&want, s->links, s->n_links, sizeof(*s->links), by_ino);
}

int
stage_open(struct stage *s, const struct diff_input *in, const struct changes *c, const struct apply_plan *plan, int fd,
           struct err *err)
{
    struct stat st;

    *s = (struct stage){ .fd = fd, .upper = -1, .in = in, .c = c, .plan = plan, .chown = geteuid() == 0,
                         .sync_each = plan->n_applied <= APPLY_SYNC_EACH };
    if (fstat(in->project, &st) < 0)
        return err_sys(err, errno, "workspace.apply.stage", "cannot stat the project");
    s->uid = st.st_uid;
    s->gid = st.st_gid;
    s->upper = tree_open(in->layers, OVERLAY_UPPER, O_RDONLY | O_DIRECTORY);
    if (s->upper < 0)
        return err_sys(err, errno, "workspace.apply.stage", "cannot open the upper layer");
    return collect_links(s, err);
}

void
stage_close(struct stage *s)
{
    close_fd(&s->upper);
    for (size_t i = 0; i < s->n_links; i++)
        free(s->links[i].path);
    free(s->links);
    s->links = NULL;
    s->n_links = 0;
}

/* --- content ---------------------------------------------------------------------------------------------------- */

static int
copy_range(int from, int to, off_t at, off_t end, char *buffer)
{
    while (at < end) {
        size_t want = end - at < COPY_BUF ? (size_t)(end - at) : COPY_BUF;
        ssize_t n = pread(from, buffer, want, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            if (n == 0)
                errno = ESTALE;     /* shorter than it was: somebody works on it */
            return -1;
        }
        for (ssize_t done = 0; done < n;) {
            ssize_t w = pwrite(to, buffer + done, (size_t)(n - done), at + done);
            if (w < 0 && errno != EINTR)
                return -1;
            done += w > 0 ? w : 0;
        }
        at += n;
    }
    return 0;
}

/* The bytes of @from, holes kept; shared with it where the file system can. */
static int
copy_content(int from, int to, off_t size)
{
    off_t at = 0;

    if (size == 0)
        return 0;
    if (ioctl(to, FICLONE, from) == 0)
        return 0;
    cleanup_free char *buffer = malloc(COPY_BUF);
    if (buffer == NULL || ftruncate(to, size) < 0)
        return -1;
    while (at < size) {
        off_t data = lseek(from, at, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            return 0;
        if (data < 0)
            data = at;
        off_t hole = lseek(from, data, SEEK_HOLE);
        if (hole < 0 || hole > size)
            hole = size;
        if (copy_range(from, to, data, hole, buffer) < 0)
            return -1;
        at = hole;
    }
    return 0;
}

/* Owner, attributes, mode and times of a copied file. Group and access control list are those of the project's own. */
static int
finish_file(const struct stage *s, const struct change *e, int from, int to, int lower)
{
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, e->upper.mtime };

    if (s->chown && fchown(to, s->uid, s->gid) < 0)
        return -1;
    if (lower >= 0 && e->lower.uid == (s->chown ? s->uid : geteuid()) && fchown(to, (uid_t)-1, e->lower.gid) < 0) {
        /* a group that we are not in: the file gets ours */
    }
    if (xattr_copy(from, to) < 0)
        return -1;
    if (lower >= 0)
        xattr_keep(lower, to);
    if (fchmod(to, e->upper.mode & 0777) < 0 || futimens(to, times) < 0)
        return -1;
    return s->sync_each ? fsync(to) : 0;
}

static int
copy_file(const struct stage *s, const struct change *e, const char *path, int to_dir, const char *to_name)
{
    const char *name;
    struct stat st;

    cleanup_close int dir = tree_open_parent(s->upper, path, &name);
    cleanup_close int from = dir >= 0 ? tree_open_file(dir, name, true) : -1;
    if (from < 0 || fstat(from, &st) < 0)
        return -1;
    if (st.st_ino != e->upper.ino || (uint64_t)st.st_size != e->upper.size) {
        errno = ESTALE;
        return -1;
    }
    cleanup_close int lower = -1;
    if (S_ISREG(e->lower.mode)) {
        cleanup_close int lower_dir = tree_open_parent(s->in->project, path, &name);
        lower = lower_dir >= 0 ? tree_open_file(lower_dir, name, false) : -1;
    }
    cleanup_close int to = openat(to_dir, to_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0 || copy_content(from, to, st.st_size) < 0)
        return -1;
    return finish_file(s, e, from, to, lower);
}

static int
copy_symlink(const struct stage *s, const struct change *e, int dir, const char *name)
{
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, e->upper.mtime };

    if (symlinkat(e->upper.target, dir, name) < 0)
        return -1;
    if (s->chown && fchownat(dir, name, s->uid, s->gid, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    return utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW);
}

/* Another name for the inode that is staged at @first. */
static int
link_again(const struct stage *s, const char *first, int dir, const char *name)
{
    const char *first_name;

    cleanup_close int first_dir = tree_open_parent(s->fd, first, &first_name);
    return first_dir < 0 ? -1 : linkat(first_dir, first_name, dir, name, 0);
}

/* --- one entry, one tree ---------------------------------------------------------------------------------------- */

/* Make change @i as @to (below the stage). Directories stay open to us until stage_directories. */
static int
stage_entry(struct stage *s, size_t i, const char *from, const char *to)
{
    const struct change *e = &s->c->v[i];
    struct stage_link *link = link_of(s, e);
    const char *name;

    cleanup_close int dir = tree_open_parent(s->fd, to, &name);
    if (dir < 0)
        return -1;
    if (S_ISDIR(e->upper.mode))
        return mkdirat(dir, name, 0700);
    if (S_ISLNK(e->upper.mode))
        return copy_symlink(s, e, dir, name);
    if (link != NULL && link->path != NULL)
        return link_again(s, link->path, dir, name);
    if (copy_file(s, e, from, dir, name) < 0)
        return -1;
    if (link != NULL) {
        link->path = strdup(to);
        if (link->path == NULL)
            return -1;
    }
    return 0;
}

/* Owner, mode, attributes and times of a staged directory. The top one stays writable: it has to be moved. */
static int
finish_directory(const struct stage *s, const struct change *e, const char *from, const char *to, bool top)
{
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, e->upper.mtime };

    cleanup_close int source = tree_open(s->upper, from, O_RDONLY | O_DIRECTORY);
    cleanup_close int fd = tree_open(s->fd, to, O_RDONLY | O_DIRECTORY);
    if (source < 0 || fd < 0 || xattr_copy(source, fd) < 0)
        return -1;
    if (s->chown && fchown(fd, s->uid, s->gid) < 0)
        return -1;
    return fchmod(fd, (e->upper.mode & 0777) | (top ? S_IRWXU : 0)) < 0 ? -1 : futimens(fd, times);
}

static bool
below(const struct changes *c, size_t i, size_t top)
{
    while (c->v[i].depth > c->v[top].depth)
        i = c->v[i].parent;
    return i == top;
}

struct staged {
    size_t *v;
    size_t n, cap;
};

static int
remember(struct staged *list, size_t i)
{
    if (list->n == list->cap) {
        size_t cap = list->cap > 0 ? list->cap * 2 : 64;
        size_t *grown = reallocarray(list->v, cap, sizeof(*grown));
        if (grown == NULL)
            return -1;
        list->v = grown;
        list->cap = cap;
    }
    list->v[list->n++] = i;
    return 0;
}

/* The path of change @i in the stage: its slot, then what is below the slot's own change. */
static int
stage_path(const struct stage *s, size_t i, size_t top, const char *slot, struct buf *from, struct buf *to)
{
    cleanup_buf struct buf top_path = BUF_INIT(2 * TREE_PATH_MAX);

    if (change_path(s->c, i, from) < 0 || change_path(s->c, top, &top_path) < 0)
        return -1;
    buf_reset(to);
    buf_puts(to, slot);
    buf_puts(to, (const char *)from->p + top_path.n);
    return buf_nul(to);
}

static int
build_tree(struct stage *s, size_t top, const char *slot, struct staged *list)
{
    cleanup_buf struct buf from = BUF_INIT(2 * TREE_PATH_MAX);
    cleanup_buf struct buf to = BUF_INIT(2 * TREE_PATH_MAX);

    for (size_t i = top; i != CHANGE_NOT && below(s->c, i, top);) {
        const struct change *e = &s->c->v[i];
        bool made = s->plan->fate[i] == FATE_APPLIED && e->upper.mode != 0;
        if (made && (stage_path(s, i, top, slot, &from, &to) < 0 ||
                     stage_entry(s, i, (const char *)from.p, (const char *)to.p) < 0 || remember(list, i) < 0))
            return -1;
        i = change_walk(s->c, i, !made || !S_ISDIR(e->upper.mode));
    }
    for (size_t k = list->n; k > 0; k--) {
        const struct change *e = &s->c->v[list->v[k - 1]];
        if (S_ISDIR(e->upper.mode) &&
            (stage_path(s, list->v[k - 1], top, slot, &from, &to) < 0 ||
             finish_directory(s, e, (const char *)from.p, (const char *)to.p, k == 1) < 0))
            return -1;
    }
    return 0;
}

int
stage_build(struct stage *s, size_t i, struct step *step, struct err *err)
{
    struct staged list = { .v = NULL };
    char slot[16];
    struct stat st;

    slot_name(slot, 'n', step->slot);
    int r = build_tree(s, i, slot, &list);
    if (r == 0)
        r = fstatat(s->fd, slot, &st, AT_SYMLINK_NOFOLLOW);
    free(list.v);
    if (r < 0)
        return err_sys(err, errno, "workspace.apply.stage", "cannot copy a change out of the upper layer; "
                       "the project is as it was");
    step->new_ino = st.st_ino;
    step->new_mode = s->c->v[i].upper.mode & (S_IFMT | 0777);
    return 0;
}
