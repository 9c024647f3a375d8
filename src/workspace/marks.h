/* workspace/marks.h: files of the project that carry the marks of an overlay
 *
 * overlayfs stores its state in attributes; if it is mounted without privilege, in `user.overlay.*`, which a file's
 * owner may set. A file of the project with such attributes looks different in a copy-on-write workspace: an empty one
 * with `user.overlay.whiteout` is missing, one with `user.overlay.metacopy` cannot be opened. The run did not make
 * this change, so the list of changes does not show it. A run cannot set these attributes (guest/guard_modify.c); this
 * code finds and names files that have them already, from an archive or from another program.
 */
#ifndef CLOCHE_WORKSPACE_MARKS_H
#define CLOCHE_WORKSPACE_MARKS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define MARKS_NAMED_MAX 16              /* paths that are kept; the others are counted */
#define MARKS_LOOKED_MAX 2000000        /* entries looked at */
#define MARKS_DEPTH_MAX 256

struct marks {
    size_t n;                           /* files found */
    char *names[MARKS_NAMED_MAX];       /* relative; owned */
    size_t n_names;
    size_t looked;
    bool stopped;                       /* by a ceiling: there may be more */
};

#define MARKS_INIT { .n = 0 }
#define cleanup_marks __attribute__((cleanup(marks_free)))

/* Look through the folder @project. Nothing is followed, no other mount is entered, what cannot be read is left out.
 * The process's working directory is elsewhere meanwhile: for programs of one thread. 0 or -1 (workspace.memory,
 * workspace.cwd). */
int marks_find(int project, struct marks *out, struct err *err);
void marks_free(struct marks *m);

#endif
