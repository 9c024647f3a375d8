/* workspace/tree.h: walking, reading and removing trees that somebody hostile has filled
 *
 * Everything goes through directory descriptors. No path is followed through a symbolic link, out of its root or
 * onto another file system; nothing recurses on the C stack; nothing that might block (a FIFO, a device) is opened
 * for reading. Names are bytes.
 */
#ifndef CLOCHE_WORKSPACE_TREE_H
#define CLOCHE_WORKSPACE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"

#define TREE_PATH_MAX  4000         /* bytes of a path below the root; what lies deeper is reported, not entered */
#define TREE_NAMES_MAX 2000000      /* entries of one directory */

/* Open @path ("" or "." for the root itself) below @root, crossing neither a symlink nor a mount. O_CLOEXEC and
 * O_NOFOLLOW are added to @flags. openat2 where there is one, component by component where not. -1 with errno. */
int tree_open(int root, const char *path, int flags);
/* The directory that holds the last component of @path; *name points to that component within @path. -1 with errno. */
int tree_open_parent(int root, const char *path, const char **name);

#define TREE_MODE_XATTR "user.cloche.mode"

/* Make the directory @name enterable for its owner, and tell which mode it had. For trees of our own only (the upper
 * layer): a mode that keeps its owner out is lifted, and kept in TREE_MODE_XATTR so that a later call tells the same.
 * (A sandbox may have put that xattr there: it could as well have chosen the mode.) 0, or -1 with errno. */
int tree_lift(int dir, const char *name, mode_t *mode);

/* Open the regular file @name for reading; ENXIO for any other kind. With @lift (trees of our own only) a mode that
 * keeps its owner out is lifted for the moment of opening. -1 with errno. */
int tree_open_file(int dir, const char *name, bool lift);

/* The names in one directory, sorted by bytes. */
struct tree_names {
    char **v;
    size_t n;
    char *text;         /* owns the names */
};
/* @dir stays open and stays the caller's. 0, or -1 with errno (EFBIG past TREE_NAMES_MAX). */
int tree_names_read(int dir, struct tree_names *out);
void tree_names_free(struct tree_names *names);

/* Remove @name in @dir and all below it: trees of any depth, directories without any permission. Two descriptors are
 * open at a time: directories that are met are moved flat into a queue directory beside it before they are emptied.
 * A mount point in the tree stops it (EBUSY, EXDEV). Absent is success. -1 with @err; what remains can be removed by
 * calling again. */
int tree_remove(int dir, const char *name, struct err *err);

#endif
