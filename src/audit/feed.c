/* audit/feed.c: see feed.h */
#include "audit/feed.h"

#include <stdlib.h>
#include <string.h>

struct audit_feed {
    struct str entries[AUDIT_FEED_MAX];     /* owned, oldest first */
    size_t n;
    struct { audit_feed_fn *fn; void *ctx; } subscribers[AUDIT_FEED_SUBSCRIBERS];
};

static void
drop(struct audit_feed *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free((char *)(uintptr_t)f->entries[i].p);
    memmove(f->entries, f->entries + n, (f->n - n) * sizeof(*f->entries));
    f->n -= n;
}

struct audit_feed *
audit_feed_new(void)
{
    return calloc(1, sizeof(struct audit_feed));
}

void
audit_feed_free(struct audit_feed *f)
{
    if (f == NULL)
        return;
    drop(f, f->n);
    free(f);
}

bool
audit_feed_push(struct audit_feed *f, struct str text)
{
    struct audit_line line;
    char *copy = audit_parse(text, &line) ? malloc(text.n) : NULL;

    if (copy == NULL)
        return false;
    memcpy(copy, text.p, text.n);
    if (f->n == AUDIT_FEED_MAX)
        drop(f, AUDIT_FEED_MAX + 1 - AUDIT_FEED_MAX / 2);
    f->entries[f->n++] = (struct str){ copy, text.n };
    for (size_t i = 0; i < AUDIT_FEED_SUBSCRIBERS; i++)
        if (f->subscribers[i].fn != NULL)
            f->subscribers[i].fn(f->subscribers[i].ctx, text, &line);
    return true;
}

size_t
audit_feed_size(const struct audit_feed *f)
{
    return f->n;
}

size_t
audit_feed_query(const struct audit_feed *f, const struct audit_filter *filter, size_t limit, audit_feed_fn *fn,
                 void *ctx)
{
    static const struct audit_filter all;
    struct audit_line line;
    size_t from = f->n, n = 0, told = 0;

    if (filter == NULL)
        filter = &all;
    while (from > 0 && n < limit)
        n += audit_parse(f->entries[--from], &line) && audit_filter_match(filter, &line);
    for (size_t i = from; i < f->n; i++) {
        if (!audit_parse(f->entries[i], &line) || !audit_filter_match(filter, &line))
            continue;
        fn(ctx, f->entries[i], &line);
        told++;
    }
    return told;
}

int
audit_feed_subscribe(struct audit_feed *f, audit_feed_fn *fn, void *ctx)
{
    for (int i = 0; i < AUDIT_FEED_SUBSCRIBERS; i++) {
        if (f->subscribers[i].fn != NULL)
            continue;
        f->subscribers[i].fn = fn;
        f->subscribers[i].ctx = ctx;
        return i;
    }
    return -1;
}

void
audit_feed_unsubscribe(struct audit_feed *f, int handle)
{
    if (handle >= 0 && handle < AUDIT_FEED_SUBSCRIBERS)
        f->subscribers[handle].fn = NULL;
}
