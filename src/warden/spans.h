/* warden/spans.h: what a collector is told of sandboxes: their making and their end, what runs in them, what somebody
 * was asked, which connections were decided (docs/observability.md)
 *
 * All of it is nothing where no collector is configured, and where the client's traceparent says that its trace is not
 * recorded. Values that no record of a sandbox may have are in no span of it either.
 */
#ifndef CLOCHE_WARDEN_SPANS_H
#define CLOCHE_WARDEN_SPANS_H

#include "audit/audit.h"
#include "warden/warden.h"

void span_open(struct warden *w);
int span_on_edge(struct warden *w, const struct launch_export *m);      /* the launcher's word */
/* What happens in @b, or NULL the question at hand, is part of. */
struct work span_work(const struct warden *w, const struct box *b);

void span_asked_for(struct box *b);     /* by the question at hand */
void span_made(struct box *b, const struct err *why);       /* NULL: it is ready */
void span_ended(struct box *b);
void span_operation(struct warden *w, struct box *b, const struct keep_op_said *m, const struct work *work,
                    const uint8_t span[EDGE_SPAN], const char *command);
/* Its words, for that: without what must not be in a record of @b. The caller's to free; NULL no memory. */
char *span_command(const struct box *b, const struct edge_op *op);
/* An approval was decided, or its time is over. */
void span_approval(struct warden *w, const struct edge_approval *a, const struct work *work);
/* What a keeper says for the audit record: a connection, if it is one. */
void span_noted(struct warden *w, struct box *b, const struct audit_entry *e);

#endif
