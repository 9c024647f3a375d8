/* imager/work.h: the process that reads a stranger's image
 *
 * It is a child of cloche-image's with three walls around it before it reads a byte: a root of its own (chroot, as an
 * ordinary user in a user namespace) in the folder of what is under way, Landlock rules for that folder and the source
 * alone, and a list of system calls without sockets, signals and programs. It has no capability. Where neither of the
 * first two can be had nothing is unpacked.
 */
#ifndef CLOCHE_IMAGER_WORK_H
#define CLOCHE_IMAGER_WORK_H

#include "image/image.h"
#include "imager/tree.h"

struct work {
    int source;                 /* the archive (at its beginning) or folder */
    bool folder;
    int place;                  /* the folder that it works in: "root" and "spool" are made in it */
    const char *name;           /* which of several images; NULL: there is one */
    struct image_platform platform;
    bool any_platform;          /* the configuration may be for another one */
    const char *config;         /* of files themselves, which have none: the object "config" as JSON; NULL: {} */
    struct tree_limits limits;
};

/* Asked with HEX of a tree when it is known: whether it need not be unpacked. */
typedef bool work_has(void *ctx, const char *tree);

/* Run the process. Its record ("id", "manifest", "index", "name", "bytes", "entries", "left_out" and what
 * image_config_read() knows) is the caller's; *@unpacked: there is a tree "root". NULL with @err. */
json_t *work_run(const struct work *w, work_has *has, void *ctx, bool *unpacked, struct err *err);

#endif
