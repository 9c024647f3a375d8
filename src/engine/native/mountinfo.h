/* engine/native/mountinfo.h: the mounts that this process sees (/proc/self/mountinfo)
 *
 * A line is "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [FIELD]... - TYPE SOURCE OPTIONS" (proc_pid_mountinfo(5)); blanks
 * and other marks in names are written as \ooo.
 */
#ifndef CLOCHE_ENGINE_NATIVE_MOUNTINFO_H
#define CLOCHE_ENGINE_NATIVE_MOUNTINFO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define MOUNTINFO_MAX (4UL * 1024 * 1024)       /* bytes of the whole table */

struct mount_line {
    uint64_t id;
    const char *device;         /* "MAJOR:MINOR" of the file system, which all of its mounts have in common */
    const char *root;           /* what of the file system is mounted: a path in it */
    const char *point;          /* where */
    const char *type;
};

/* The whole table into @text, NUL-terminated, which has a ceiling of its own. 0, or -1 with @err. */
int mountinfo_read(struct buf *text, struct err *err);

/* The next line of @at, which is cut into pieces for it; they live as long as the text. False at the end. A line of
 * another form is passed over. */
bool mountinfo_next(char **at, struct mount_line *out);

#endif
