/* egress/grpc_cut.h: where the messages of a gRPC body end
 *
 * A search that holds back bytes, because a pattern may begin with them, would hold up a conversation in which each
 * side waits for the other's whole message. No field of a message goes on in the next one, so the search may end with
 * each: five bytes in front of a message say how long it is ("Length-Prefixed-Message" of gRPC over HTTP/2). Pure.
 */
#ifndef CLOCHE_EGRESS_GRPC_CUT_H
#define CLOCHE_EGRESS_GRPC_CUT_H

#include "wire/http1.h"
#include "egress/swap.h"

struct grpc_cut {
    bool on;                    /* the body is one of gRPC */
    uint8_t have;               /* bytes of the five */
    uint32_t left;              /* of the message */
};

void grpc_cut_begin(struct grpc_cut *c, const struct http1_head *head);
/* How many of the @n bytes are up to the end of the message; *@end: it ends with them. All, when it does not, or the
 * body is none of gRPC. */
size_t grpc_cut_next(struct grpc_cut *c, const uint8_t *p, size_t n, bool *end);
/* swap_feed(), message by message. */
int grpc_cut_feed(struct grpc_cut *c, struct swap *s, struct str data, bool last, struct buf *out);

#endif
