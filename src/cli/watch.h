/* cli/watch.h: what ps, top, events and logs share: sandboxes of a running cloche serve, as rows for a person
 *
 * Names and words are a stranger's: what is printed of them went through workspace/quote.h.
 */
#ifndef CLOCHE_CLI_WATCH_H
#define CLOCHE_CLI_WATCH_H

#include "client/api_verb.h"
#include "proto/edge.h"

/* The options of these verbs; each has rows for those that it knows. */
struct watch_options {
    struct api_verb v;
    bool all, follow, once;
    const char *label, *sandbox, *limit, *interval, *exec;
};

/* The id of the sandbox that @which is the id or name of: an id itself, which is not asked about. 0 or -1 with @err. */
int watch_resolve(const struct watch_options *o, const char *which, char id[EDGE_ID + 1], struct err *err);
/* The daemon's sandboxes with what they use, an array that the caller releases: each as /v1/sandboxes has it, and
 * "usage" as /v1/usage has it, or null. NULL with @err. */
json_t *watch_sandboxes(const struct watch_options *o, struct err *err);
/* The table: a line each, at most @width characters (0: any) and @height lines (0: any). With @before, an earlier
 * answer, and the microseconds since, the processor in percent; else its time. */
int watch_table(struct buf *out, const json_t *boxes, const json_t *before, uint64_t us, size_t width, size_t height);

#endif
