/* workspace/xattr.h: the extended attributes that may travel from a sandbox to a project: user.*, and not our own
 *
 * user.overlay.* and user.fuseoverlayfs.* (overlays' books) and user.cloche.* stay behind; security.*, trusted.* and
 * access control lists that a sandbox made are never taken over.
 */
#ifndef CLOCHE_WORKSPACE_XATTR_H
#define CLOCHE_WORKSPACE_XATTR_H

#include <stdbool.h>

/* Whether the files behind @a and @b carry the same attributes of the kind that travels. */
bool xattr_same(int a, int b);
/* Whether @fd has attributes that would be lost: capabilities, an access control list that @lower (-1: no such file)
 * does not have, names that hide from overlayfs. */
bool xattr_lost(int fd, int lower);
/* Give @to those of @from that travel. Absent support on the target is no error. 0, or -1 with errno. */
int xattr_copy(int from, int to);
/* Keep what the project's own file had and no sandbox decides: its access control list and label. Best effort. */
void xattr_keep(int project_file, int to);

/* A one-letter overlayfs mark on @name in @dir: "opaque" → 'y' or 'x'. 0 when there is none. */
char xattr_overlay_mark(int dir, const char *name, const char *mark);
/* Whether @name in @dir was copied up from the lower layer. */
bool xattr_overlay_origin(int dir, const char *name);

#endif
