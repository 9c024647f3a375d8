/* workspace/copy.h: a tree that somebody hostile has filled, once more
 *
 * Folders, regular files (their holes, and names that are one file, stay so) and symbolic links, which are never
 * followed; with modes but for set-id bits, times, and the attributes that travel (xattr.h). What is mounted in the
 * tree, sockets, FIFOs and devices are left out. Nothing is written over: a name that is there already stays as it is.
 */
#ifndef CLOCHE_WORKSPACE_COPY_H
#define CLOCHE_WORKSPACE_COPY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct tree_copy {
    int from, to;           /* folders; with the right to read */
    bool owned;             /* all of it is to belong to */
    uid_t uid;
    gid_t gid;
    uint64_t bytes_max;     /* of contents; 0 no ceiling */
    /* what came of it, and of earlier ones with the same struct */
    uint64_t bytes, entries;
};

/* 0, or -1 with @err: template.full where there is no room for it, or more than @bytes_max; what was copied stays. A
 * mode of @from that keeps its owner out is lifted meanwhile, so nobody else should use it. */
int tree_copy(struct tree_copy *c, struct err *err);

#endif
