/* cli/watch.h: what ps, top, events and logs share: sandboxes of a running cloche serve, as rows for a person
 *
 * Names and words are a stranger's: what is printed of them went through workspace/quote.h.
 */
#ifndef CLOCHE_CLI_WATCH_H
#define CLOCHE_CLI_WATCH_H

#include "client/api_verb.h"
#include "proto/edge.h"

struct watch_options {
    struct api_verb v;
    bool all, follow, once;
    const char *label, *sandbox, *limit, *interval, *exec;
};

/* Which flags a verb has, beside --json and --socket. */
#define WATCH_ALL      0x01
#define WATCH_LABEL    0x02
#define WATCH_FOLLOW   0x04
#define WATCH_SANDBOX  0x08
#define WATCH_LIMIT    0x10
#define WATCH_ONCE     0x20     /* and --interval */
#define WATCH_OPERAND  0x40
#define WATCH_EXEC     0x80

/* argv[1..] into @o, which is all zero. 0 or -1 with @err. */
int watch_options(struct watch_options *o, unsigned flags, int argc, char **argv, struct err *err);

/* The id of the sandbox that @which is the id or name of: an id itself, which is not asked about. 0 or -1 with @err. */
int watch_resolve(const struct watch_options *o, const char *which, char id[EDGE_ID + 1], struct err *err);
/* The daemon's sandboxes with what they use, an array that the caller releases: each as /v1/sandboxes has it, and
 * "usage" as /v1/usage has it, or null. NULL with @err. */
json_t *watch_sandboxes(const struct watch_options *o, struct err *err);
/* The table: a line each, at most @width characters (0: any) and @height lines (0: any). With @before, an earlier
 * answer, and the microseconds since, the processor in percent; else its time. */
int watch_table(struct buf *out, const json_t *boxes, const json_t *before, uint64_t us, size_t width, size_t height);

#endif
