/* imager/build_sandbox.h: what builds of images run: a command line of `cloche run`, and what it says on the way */
#ifndef CLOCHE_IMAGER_BUILD_SANDBOX_H
#define CLOCHE_IMAGER_BUILD_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/array.h"
#include "base/err.h"
#include "imager/imager.h"

#define BUILD_WORDS_MAX 320     /* those behind are left out: tables and limits keep below it */

struct build_words {
    const char *v[BUILD_WORDS_MAX + 1];     /* ended by NULL; all borrowed but those in own */
    size_t n;
    char *own[3];               /* those that were put together: freed by build_words_free() */
    size_t n_own;
    char cloche[PATH_MAX], time[24];
};

void build_words_free(struct build_words *w);
void build_put(struct build_words *w, const char *const *v, size_t n);
#define BUILD_PUT(w, ...) \
    build_put(w, (const char *const[]){ __VA_ARGS__ }, ARRAY_LEN(((const char *const[]){ __VA_ARGS__ })))

/* "cloche run" of the cloche that we belong to, for the time of @o, with its way out by name. 0 or -1 with @err. */
int build_put_run(struct build_words *w, const struct image_options *o, struct err *err);

/* A build: the words, with @in as standard input and @out as standard output. 0, and @out is at its start; -1 with
 * @err, which says of @what was built why it was not, and @hint where there is no better one. */
struct build_job {
    const struct build_words *words;
    int in, out;                /* borrowed; in: from its start on */
    const char *what, *hint;
    uint64_t file_max;          /* bytes of a file that anything it starts may write */
};
int build_in_sandbox(const struct build_job *job, const struct image_options *o, struct err *err);

#endif
