/* imager/tree.h: the files of an image while its layers are laid over each other
 *
 * What comes in is a stranger's, names and all. Everything is done by descriptor below one folder: the folder that a
 * name lies in is opened by openat2(2) with RESOLVE_IN_ROOT, so that links of the image lead within it and nowhere
 * else, the last component is never followed, and what is there in its place is removed first. Whiteouts remove what
 * lower layers brought and spare what this layer did.
 *
 * All files belong to whoever unpacks, and will be the sandbox's own user's. So their owner may read and write them,
 * and enter folders, whatever the image says, as the root of a container may. No file keeps setuid or setgid, nor
 * extended attributes (capabilities among them). Devices, FIFOs and sockets are left out, and counted.
 */
#ifndef CLOCHE_IMAGER_TREE_H
#define CLOCHE_IMAGER_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/err.h"

#define TREE_NAME_MAX  4095         /* bytes of a name */
#define TREE_DEPTH_MAX 100          /* folders below each other */

struct tree_limits {
    uint64_t bytes;                 /* of all files, holes counted */
    uint64_t entries;               /* of all layers together */
};

/* What was left out, and what there is. */
struct tree_count {
    uint64_t bytes, entries, devices, fifos, setuid, whiteouts;
};

struct tree {
    int root;                       /* the folder; the caller's */
    struct tree_limits limits;
    struct tree_count count;
    uint64_t *own;                  /* inodes that this layer made: a set */
    size_t n_own, cap_own;
    int parent;                     /* the folder of the last entry, and its name */
    char parent_name[TREE_NAME_MAX + 1];
};

int tree_init(struct tree *t, int root, const struct tree_limits *limits, struct err *err);
void tree_free(struct tree *t);
/* Another layer begins: what is there is of lower ones. */
void tree_layer(struct tree *t);

/* @name as an archive writes it. All: 0, or -1 with @err (image.path, image.limit ...). */
int tree_folder(struct tree *t, const char *name, mode_t mode, struct err *err);
int tree_link(struct tree *t, const char *name, const char *text, struct err *err);
/* @target is another name of the archive's, of a file that is there. */
int tree_hard_link(struct tree *t, const char *name, const char *target, struct err *err);
/* A new empty file for writing (O_CLOEXEC, the caller's); @size is what it will have. */
int tree_file(struct tree *t, const char *name, mode_t mode, uint64_t size, struct err *err);
/* What was left out: a count only, and room for the name is not needed. */
int tree_left_out(struct tree *t, const char *name, mode_t kind, struct err *err);
/* 1: the name is a whiteout, and what it means is done (or it is none's business: AUFS's own files); 0: it is none. */
int tree_whiteout(struct tree *t, const char *name, struct err *err);

/* The hint for what errno @why kept from being written. -1. */
int tree_hint(int why, struct err *err);

/* Remove all that is in the folder @dir. 0, or -1 with errno. */
int tree_empty(int dir);

#endif
