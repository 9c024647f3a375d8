/* wall/root_priv.h: what the files that build a root (root.c, root_layer.c) share
 */
#ifndef CLOCHE_WALL_ROOT_PRIV_H
#define CLOCHE_WALL_ROOT_PRIV_H

#include <sys/stat.h>

#include "wall/root.h"

#define LAYERS_MAX 256

/* What the build carries along. */
struct builder {
    const struct root_plan *plan;
    int root;           /* the new root: a directory fd of the attached tmpfs (or host copy) */
    dev_t dev;          /* of the tmpfs root: only there mount points are made */
    int scratch;        /* a directory of the tmpfs that nothing inside can name: mask sources live here */
    dev_t scratch_dev;
    int base;           /* with layers: the tmpfs that the root is the folder "root" of, somewhere hidden; else -1 */
    dev_t layers[LAYERS_MAX];       /* the overlays that lie in it */
    size_t n_layers;
    unsigned n_masks;
    int mask_dir;       /* empty directory, mode 000 */
    int mask_file;      /* empty file, mode 000 */
    int parent;         /* the folder that the last item was put into, and its path: items come in runs */
    dev_t parent_dev;
    char parent_path[256];
};

/* root.c: a tmpfs of the plan's size; a detached tree for @item, and what it is */
int root_tmpfs(const struct root_plan *plan, const char *mode, struct err *err);
int root_tree_of(const struct root_item *item, unsigned flags, struct stat *st, struct err *err);

/* root_layer.c: the tmpfs with the root as a folder of it, beside those that overlays work in: all of it counts as one.
 * The root as a detached mount, or -1 with @err; b->base is the caller's too. */
int root_base(struct builder *b, int hidden, struct err *err);
/* ROOT_LAYER */
int root_layer(struct builder *b, const struct root_item *item, struct err *err);
bool root_is_layer(const struct builder *b, dev_t dev);

#endif
