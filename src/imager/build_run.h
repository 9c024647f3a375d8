/* imager/build_run.h: another program as a child, for a bounded time
 *
 * No shell is between. It is told our own death by a signal, and killed at the end of its time.
 */
#ifndef CLOCHE_IMAGER_BUILD_RUN_H
#define CLOCHE_IMAGER_BUILD_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct build_child {
    const char *const *argv;    /* argv[0] by PATH, or absolute; ended by NULL */
    int in, out;                /* its descriptors 0 and 1, borrowed; -1: /dev/null */
    uint64_t ms;                /* how long it may take */
    uint64_t max;               /* bytes of a file that it, or what it starts, may write; 0: as we may */
    /* Each line that it says on descriptor 2, without its end. */
    void (*line)(void *ctx, const char *line);
    void *ctx;
};

/* Its exit code, 128 and its number for a signal; -1 with @err: it cannot be started, or took too long
 * (image.build.time). */
int build_run(const struct build_child *c, struct err *err);

#endif
