/* audit/feed.h: the newest entries in memory, and subscribers to new ones
 *
 * Holds at most AUDIT_FEED_MAX entries; with one more it is cut to the newest half. Subscribers are called before
 * audit_feed_push() returns. For one thread.
 */
#ifndef CLOCHE_AUDIT_FEED_H
#define CLOCHE_AUDIT_FEED_H

#include "audit/filter.h"

#define AUDIT_FEED_MAX         5000
#define AUDIT_FEED_SUBSCRIBERS 64

struct audit_feed;

typedef void audit_feed_fn(void *ctx, struct str text, const struct audit_line *line);

/* NULL: no memory. */
struct audit_feed *audit_feed_new(void);
void audit_feed_free(struct audit_feed *f);

/* One entry: @text (copied) is its line without newline. False when it is none, or there is no memory. */
bool audit_feed_push(struct audit_feed *f, struct str text);
size_t audit_feed_size(const struct audit_feed *f);
/* The newest @limit entries that @filter (NULL: all) lets through, oldest first. How many. */
size_t audit_feed_query(const struct audit_feed *f, const struct audit_filter *filter, size_t limit, audit_feed_fn *fn,
                        void *ctx);

/* A handle for audit_feed_unsubscribe, or -1: there are AUDIT_FEED_SUBSCRIBERS. */
int audit_feed_subscribe(struct audit_feed *f, audit_feed_fn *fn, void *ctx);
void audit_feed_unsubscribe(struct audit_feed *f, int handle);

#endif
