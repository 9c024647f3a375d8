/* egress/unpack.h: a compressed body (Content-Encoding gzip or deflate, RFC 9110 §8.4.1) as it comes, to plain bytes
 *
 * Pure but for zlib's memory, which is some 40 KiB and does not grow. How much comes out of one call is bounded, so a
 * small body that becomes a huge one moves at the pace of whoever reads it.
 */
#ifndef CLOCHE_EGRESS_UNPACK_H
#define CLOCHE_EGRESS_UNPACK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

#define UNPACK_STEP 65536       /* bytes out of one call, about */

enum unpack_kind {
    UNPACK_PLAIN,               /* no encoding, or "identity" */
    UNPACK_GZIP,
    UNPACK_DEFLATE,             /* zlib's frame, or none: servers disagree */
    UNPACK_UNKNOWN,             /* several, or one that this cannot read */
};

/* What a Content-Encoding field's value asks for. */
enum unpack_kind unpack_kind(struct str value);

struct unpack;

struct unpack *unpack_new(enum unpack_kind kind);       /* GZIP or DEFLATE. NULL: no memory */
void unpack_free(struct unpack *u);                     /* NULL is fine */

/* Take *@used of the @n bytes and append what they are to @out. What was not taken has to be offered again. @end:
 * nothing follows. 0, or -1: not what was announced, bytes behind its end, cut short, or @out cannot take it. */
int unpack_feed(struct unpack *u, const void *p, size_t n, bool end, struct buf *out, size_t *used);
/* The whole of it has come out. */
bool unpack_done(const struct unpack *u);

#endif
