/* guest/walk.h: where a path below the root really leads
 *
 * A file request names a path; other processes of the sandbox may change every part of it at any moment. The
 * answer is therefore a place, not a path: an open directory that was reached without leaving the root, and one
 * name in it that the caller acts on without following a symbolic link. openat2(RESOLVE_BENEATH) does the walk;
 * where the kernel has none, or a link is absolute (and may still lead below the root), one component at a time
 * with O_NOFOLLOW does.
 */
#ifndef CLOCHE_GUEST_WALK_H
#define CLOCHE_GUEST_WALK_H

#include <limits.h>
#include <stdbool.h>

#define WALK_DEPTH_MAX 256      /* directories held open by the slow walk */
#define WALK_LINKS_MAX 40       /* symbolic links on the way, as the kernel's own limit */

struct walk_place {
    int dir;                    /* O_PATH, the caller's to close */
    char name[NAME_MAX + 1];    /* one component; "." when the place is @dir itself */
};

#define WALK_ESCAPES (-1)       /* the place is not below the root */

/* @rel is relative to @root and holds no `..` of its own (msg_path_shape). With @follow, a symbolic link at the end
 * is followed too, as far as it leads (to a name that does not exist, possibly). @root_path: absolute link targets
 * at or below it are below @root. 0, an errno, or WALK_ESCAPES; @out->dir is -1 unless 0. */
int walk_to(int root, const char *root_path, const char *rel, bool follow, struct walk_place *out);
/* The slow way only; walk_to chooses it by itself. */
int walk_slow(int root, const char *root_path, const char *rel, bool follow, struct walk_place *out);

#endif
