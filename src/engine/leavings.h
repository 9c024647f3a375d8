/* engine/leavings.h: what stays of a sandbox when nobody is left to remove it
 *
 * A sandbox's folders (cgroups, that of light mode) are removed by whoever made it, and by its janitor when that was
 * killed. When both are killed at once nobody does. So a daemon keeps a note of each in a folder of its own, written
 * before anything is made and gone when nothing is left; the next daemon removes what notes name, and ends what still
 * runs there. A note is a line "of DEVICE:INODE", which is the folder, and lines "KIND PATH"; its file has the
 * sandbox's id as its name. In a copy of the folder (of a whole state folder, while its daemon runs) notes name
 * nothing.
 */
#ifndef CLOCHE_ENGINE_LEAVINGS_H
#define CLOCHE_ENGINE_LEAVINGS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Where sandboxes of this process are noted from now on: an absolute path of a folder of this user's own, copied. */
void leavings_keep(const char *folder);

#define LEAVINGS_SPARE "-spare" /* behind its name: a folder, where there is one, of notes that can be used again */

#define LEAVINGS_ID  32         /* digits of a sandbox's id */
#define LEAVINGS_MAX 1024       /* more are the next one's */

struct leavings {
    char folder[PATH_MAX];
    char ids[LEAVINGS_MAX][LEAVINGS_ID + 1];
    size_t n;
};

/* The notes that are in @folder now. How many. */
size_t leavings_list(const char *folder, struct leavings *l);
/* Remove what they name, and end what still runs in it; those of a daemon that lives are not to be among them. True
 * when nothing is left of all of them, which takes a few tries: processes need a moment to die. */
bool leavings_sweep(struct leavings *l);

#endif
