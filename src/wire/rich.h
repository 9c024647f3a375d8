/* wire/rich.h: results of code in a context (docs/daemon.md), as its driver says them and as they are told
 *
 * A result is parts, each "KEY SIZE\n" and so many bytes; a key is one of a few, and there once. What comes from there
 * was said by whoever has the sandbox: it is text to be passed on, of a bounded size, or nothing.
 */
#ifndef CLOCHE_WIRE_RICH_H
#define CLOCHE_WIRE_RICH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define RICH_MAX     (8UL * 1024 * 1024)    /* bytes of all results of one call, and of its error */
#define RICH_RESULTS 256                    /* of one call */
#define RICH_VALUES  4096                   /* in all JSON of one call: more are not told, */
#define RICH_VALUE   256UL                  /* and each may take so many bytes */
#define RICH_DEPTH   64

/* All zero at the beginning. */
struct rich {
    struct buf part;                        /* of the result at hand */
    bool lost;                              /* some of that is missing: it is none */
    bool cut;                               /* and so some of them are */
    size_t error_bytes;                     /* of the error, */
    size_t bytes;                           /* of all results that came whole, */
    size_t values;                          /* and in their JSON; RICH_VALUES + 1: there were more */
    json_t *results;                        /* NULL: none yet */
    json_t *error;                          /* what the code raised; NULL: nothing */
};

/* A result: {"main": bool, "text": ..., "html": ...}, or an error: {"name", "value", "traceback"}. NULL: it is neither.
 * @values grows by those in its JSON. */
json_t *rich_read(const uint8_t *p, size_t n, size_t *values);
/* What came of it; @room: whether there is memory for so much. The result that is whole with that, borrowed, or
 * NULL. */
json_t *rich_add(struct rich *r, const uint8_t *p, size_t n, bool last, bool room);
size_t rich_held(const struct rich *r);     /* bytes */
/* results, results_truncated, error: into an answer. */
void rich_put(const struct rich *r, json_t *answer);
void rich_free(struct rich *r);

#endif
