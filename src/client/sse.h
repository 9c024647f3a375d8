/* client/sse.h: server-sent events, read from a byte stream (HTML, "Server-sent events", 9.2.6)
 *
 * Pure: bytes in as they come, in any pieces, events out. CR LF, LF and CR end a line; `event`, `data` and `id` are
 * known, comments and other fields are passed over; `retry` too, for nothing here connects again by itself.
 */
#ifndef CLOCHE_CLIENT_SSE_H
#define CLOCHE_CLIENT_SSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define SSE_NAME_MAX 64
#define SSE_ID_MAX   128
#define SSE_DATA_MAX (32UL * 1024 * 1024)   /* of one event */

struct sse {
    struct buf line, data;
    char name[SSE_NAME_MAX + 1], id[SSE_ID_MAX + 1];    /* longer ones are cut */
    bool cr;                                            /* the last byte was one: a LF belongs to it */
};

#define SSE_INIT { .line = BUF_INIT(SSE_DATA_MAX), .data = BUF_INIT(SSE_DATA_MAX) }

/* An event: its name ("message" where it has none), the last id that was said ("" none), its data of @n bytes, a NUL
 * behind them. Borrowed. Return 0 to go on, anything else to stop. */
typedef int sse_fn(void *ctx, const char *name, const char *id, const char *data, size_t n);

/* 0; what @fn returned, if not 0: the rest of p[0..n) is dropped then; -1 with errno EMSGSIZE: a line or an event
 * is too long. */
int sse_feed(struct sse *s, const void *p, size_t n, sse_fn *fn, void *ctx);
void sse_free(struct sse *s);

#endif
