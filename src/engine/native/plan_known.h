/* engine/native/plan_known.h: which of the built-in places are there
 *
 * They are hundreds, most are not there, and many lie in one folder: each folder is opened once, and from the fourth
 * question on its names are read. Of a host at rest: what comes into being meanwhile is seen or not.
 */
#ifndef CLOCHE_ENGINE_NATIVE_PLAN_KNOWN_H
#define CLOCHE_ENGINE_NATIVE_PLAN_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_KNOWN_MAX 256      /* folders; of a place in a further one nothing is known */

#define PLAN_KNOWN_RECENT 4

struct plan_folder {
    const char *path;           /* its first @n bytes, of the path that was asked for: the caller's */
    size_t n;
    int fd;                     /* O_PATH; -1: it is not there */
    unsigned asked;
    uint64_t *seen;             /* its names, of each one's hash a bit: what has none is not there. NULL: not read */
};

/* Zero-initialise; paths that are asked for outlive it. */
struct plan_known {
    struct plan_folder v[PLAN_KNOWN_MAX];
    size_t n;
    size_t recent[PLAN_KNOWN_RECENT], next_recent;      /* folders found of late */
};

/* Whether nothing is at @path, absolute, not even a link; false where that cannot be said. */
bool plan_known_absent(struct plan_known *known, const char *path);
/* Whether the folder that @path lies in is there and no link is on the way to it. */
bool plan_known_plain(struct plan_known *known, const char *path);
void plan_known_forget(struct plan_known *known);

#endif
