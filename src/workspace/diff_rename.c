/* workspace/diff_rename.c: deleted here, added there, the same file: a rename
 *
 * `mv` inside the sandbox keeps size, time and content, also where it had to copy. Candidates are found by size and
 * time, and are renames only when their bytes are the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "workspace/diff.h"
#include "workspace/overlay.h"
#include "workspace/tree.h"

#define CANDIDATES_MAX 16                           /* compared for one added file */
#define COMPARE_MAX    (4ULL * 1024 * 1024 * 1024)   /* bytes read in all; what comes after stays deleted and added */

struct key {
    uint64_t size;
    struct timespec mtime;
    size_t i;
};

static int
key_order(const struct key *a, const struct key *b)
{
    if (a->size != b->size)
        return a->size < b->size ? -1 : 1;
    if (a->mtime.tv_sec != b->mtime.tv_sec)
        return a->mtime.tv_sec < b->mtime.tv_sec ? -1 : 1;
    if (a->mtime.tv_nsec != b->mtime.tv_nsec)
        return a->mtime.tv_nsec < b->mtime.tv_nsec ? -1 : 1;
    return 0;
}

static int
by_key(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    int order = key_order(x, y);

    return order != 0 ? order : x->i < y->i ? -1 : x->i > y->i;
}

static int
open_change(const struct changes *c, size_t i, int root, bool lift)
{
    cleanup_buf struct buf path = BUF_INIT(TREE_PATH_MAX + 1);
    const char *name;

    if (change_path(c, i, &path) < 0)
        return -1;
    cleanup_close int dir = tree_open_parent(root, (const char *)path.p, &name);
    return dir < 0 ? -1 : tree_open_file(dir, name, lift);
}

/* The first of the sorted @keys that is not below @want. */
static size_t
lower_bound(const struct key *keys, size_t n, const struct key *want)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (key_order(&keys[mid], want) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void
match_one(const struct diff_input *in, int upper, struct changes *c, size_t i, const struct key *keys, size_t n,
          uint64_t *budget)
{
    struct change *e = &c->v[i];
    const struct key want = { .size = e->upper.size, .mtime = e->upper.mtime };
    size_t k = lower_bound(keys, n, &want);

    if (k == n || key_order(&keys[k], &want) != 0)
        return;
    cleanup_close int mine = open_change(c, i, upper, true);
    for (size_t tried = 0; mine >= 0 && k < n && tried < CANDIDATES_MAX && key_order(&keys[k], &want) == 0; k++) {
        struct change *gone = &c->v[keys[k].i];
        if (gone->pair != CHANGE_NOT || *budget < want.size)
            continue;
        *budget -= want.size;
        tried++;
        cleanup_close int theirs = open_change(c, keys[k].i, in->project, false);
        if (theirs < 0 || diff_same_content(mine, theirs) != 1)
            continue;
        e->pair = keys[k].i;
        gone->pair = i;
        e->flags &= ~(unsigned)CHANGE_HOST;     /* that it came from the project's tree is explained */
        return;
    }
}

int
diff_renames(const struct diff_input *in, struct changes *c, struct err *err)
{
    uint64_t budget = COMPARE_MAX;
    size_t n = 0;

    cleanup_close int upper = tree_open(in->layers, OVERLAY_UPPER, O_RDONLY | O_DIRECTORY);
    if (upper < 0)
        return err_sys(err, errno, "workspace.diff.read", "cannot open the upper layer");
    cleanup_free struct key *keys = calloc(c->n + 1, sizeof(*keys));
    if (keys == NULL)
        return err_set(err, ERR_SYSTEM, "workspace.memory", "no memory");
    for (size_t i = 0; i < c->n; i++) {
        const struct change *e = &c->v[i];
        if (e->kind == CHANGE_DELETED && S_ISREG(e->lower.mode) && e->lower.size > 0)
            keys[n++] = (struct key){ .size = e->lower.size, .mtime = e->lower.mtime, .i = i };
    }
    qsort(keys, n, sizeof(*keys), by_key);
    for (size_t i = 0; i < c->n && n > 0; i++) {
        const struct change *e = &c->v[i];
        if (e->kind == CHANGE_ADDED && S_ISREG(e->upper.mode) && e->upper.size > 0)
            match_one(in, upper, c, i, keys, n, &budget);
    }
    return 0;
}
