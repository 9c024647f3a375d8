/* proto/edge_write.h: a WRITE as what it is judged by: the parameters of code_write_file (docs/gate.md)
 *
 * The warden says so of the operation itself; the front of the files that a call brings along, before there is any.
 * Only what is the same text is the same write.
 */
#ifndef CLOCHE_PROTO_EDGE_WRITE_H
#define CLOCHE_PROTO_EDGE_WRITE_H

#include <jansson.h>

#include "proto/edge.h"

#define EDGE_GIVEN_MAX 32       /* files that one call brings along */

/* NULL: its path is no text, or no memory. */
json_t *edge_write_params(const struct edge_op *op);
/* What @op, a WRITE, says of its content: p[0..n) is its beginning, or @whole. It borrows that. */
void edge_content_of(struct edge_op *op, const uint8_t *p, size_t n, bool whole);

#endif
