/* workspace/changes.c: the tree of changes, and walking it */
#include "workspace/changes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define NAMES_MAX   (256UL * 1024 * 1024)
#define COMPARE_BUF 65536

int
changes_name(struct changes *c, struct change *e, const char *name, struct err *err)
{
    size_t n = strlen(name) + 1;

    if (c->n >= CHANGES_MAX || c->bytes + n > NAMES_MAX) {
        err_set(err, ERR_LIMIT, "workspace.diff.too-large",
                "more than %d entries were changed (or their names exceed %lu MiB)",
                CHANGES_MAX, NAMES_MAX >> 20);
        return err_hint(err, "the state cannot be compared: discard it, or look into its layers/upper by hand");
    }
    e->name = malloc(n);
    if (e->name == NULL)
        return err_set(err, ERR_SYSTEM, "workspace.memory", "no memory");
    memcpy(e->name, name, n);
    c->bytes += n;
    return 0;
}

int
changes_drop(struct change *e, int r)
{
    free(e->name);
    free(e->lower.target);
    free(e->upper.target);
    e->name = e->lower.target = e->upper.target = NULL;
    return r;
}

int
changes_add(struct changes *c, struct change *e, struct err *err)
{
    if (c->n == c->cap) {
        size_t cap = c->cap > 0 ? c->cap * 2 : 64;
        struct change *grown = reallocarray(c->v, cap, sizeof(*grown));
        if (grown == NULL)
            return changes_drop(e, err_set(err, ERR_SYSTEM, "workspace.memory", "no memory"));
        c->v = grown;
        c->cap = cap;
    }
    c->v[c->n++] = *e;
    return 0;
}

void
changes_free(struct changes *c)
{
    for (size_t i = 0; i < c->n; i++)
        changes_drop(&c->v[i], 0);
    free(c->v);
    *c = (struct changes)CHANGES_INIT;
}

void
changes_mark(struct changes *c, size_t i)
{
    while (i != CHANGE_NOT && !c->v[i].has_changes) {
        c->v[i].has_changes = true;
        i = c->v[i].parent;
    }
}

int
change_path(const struct changes *c, size_t i, struct buf *path)
{
    size_t n = 0;

    /* from the leaf up: the length first, then each name at its place */
    for (size_t k = i; c->v[k].parent != CHANGE_NOT; k = c->v[k].parent)
        n += strlen(c->v[k].name) + 1;
    buf_reset(path);
    if (buf_reserve(path, n > 0 ? n : 1) < 0)     /* the last name has a NUL and no slash */
        return -1;
    path->n = n > 0 ? n - 1 : 0;
    path->p[path->n] = '\0';
    size_t at = path->n;
    for (size_t k = i; c->v[k].parent != CHANGE_NOT; k = c->v[k].parent) {
        size_t len = strlen(c->v[k].name);
        at -= len;
        memcpy(path->p + at, c->v[k].name, len);
        if (at > 0)
            path->p[--at] = '/';
    }
    return 0;
}

size_t
change_walk(const struct changes *c, size_t i, bool skip)
{
    if (!skip && c->v[i].n > 0)
        return c->v[i].first;
    while (c->v[i].parent != CHANGE_NOT) {
        const struct change *parent = &c->v[c->v[i].parent];
        if (i + 1 < parent->first + parent->n)
            return i + 1;
        i = c->v[i].parent;
    }
    return CHANGE_NOT;
}

size_t
change_next(const struct changes *c, size_t i)
{
    do
        i = change_walk(c, i, !c->v[i].has_changes);
    while (i != CHANGE_NOT && c->v[i].kind == CHANGE_NONE);
    return i;
}

const char *
change_kind_name(enum change_kind kind)
{
    static const char *const names[] = { "unchanged", "added", "modified", "deleted", "type-changed", "mode-changed" };

    return names[kind];
}

const char *
change_type_name(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return "file";
    case S_IFDIR:
        return "directory";
    case S_IFLNK:
        return "symlink";
    case S_IFIFO:
        return "fifo";
    case S_IFSOCK:
        return "socket";
    default:
        return "device";
    }
}

/* Where the next bytes of @fd that are no hole begin; the end of the file when there are none. */
static off_t
next_data(int fd, off_t at, off_t size)
{
    off_t data = lseek(fd, at, SEEK_DATA);

    if (data < 0)
        return errno == ENXIO ? size : at;  /* no support for holes: everything is data */
    return data;
}

int
diff_same_content(int a, int b)
{
    struct stat sa, sb;
    off_t at = 0;

    if (fstat(a, &sa) < 0 || fstat(b, &sb) < 0)
        return -1;
    if (sa.st_size != sb.st_size)
        return 0;
    cleanup_free char *pa = malloc(2 * COMPARE_BUF);
    if (pa == NULL)
        return -1;
    char *pb = pa + COMPARE_BUF;
    while (at < sa.st_size) {
        off_t da = next_data(a, at, sa.st_size), db = next_data(b, at, sa.st_size);
        at = da < db ? da : db;
        ssize_t na = pread(a, pa, COMPARE_BUF, at);
        ssize_t nb = na > 0 ? pread(b, pb, (size_t)na, at) : na;
        if (na < 0 || nb < 0)
            return -1;
        if (na != nb || memcmp(pa, pb, (size_t)na) != 0)
            return 0;
        if (na == 0)
            break;
        at += na;
    }
    return 1;
}
