/* sign/rlp.h: Recursive Length Prefix, the encoding of what Ethereum signs
 *
 * (Yellow Paper, appendix B.) There is one encoding of each value: the reader refuses every other one, so that what was
 * read and what is signed cannot differ. Pure.
 */
#ifndef CLOCHE_SIGN_RLP_H
#define CLOCHE_SIGN_RLP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "sign/u256.h"

#define RLP_DEPTH_MAX 8     /* lists within lists that rlp_valid() follows */

/* Append one item. Failures mark @out as broken (buf.h). */
void rlp_put_bytes(struct buf *out, const void *p, size_t n);
void rlp_put_number(struct buf *out, uint64_t v);
void rlp_put_u256(struct buf *out, const struct u256 *v);
/* A list of the items that are encoded in p[0..n). */
void rlp_put_list(struct buf *out, const void *p, size_t n);

/* What is still to be read. */
struct rlp {
    const uint8_t *p;
    size_t n;
};

struct rlp_item {
    bool is_list;
    struct rlp in;          /* the bytes, or the items of the list; borrowed */
};

/* Take the first item. False: nothing is left, or it is not encoded as it has to be. A list's items are not looked
 * at. */
bool rlp_next(struct rlp *from, struct rlp_item *item);
/* The same of a certain kind. A number has no zeros in front and is at most @max. */
bool rlp_next_bytes(struct rlp *from, struct rlp *bytes);
bool rlp_next_exactly(struct rlp *from, void *out, size_t n);
bool rlp_next_number(struct rlp *from, uint64_t max, uint64_t *out);
bool rlp_next_u256(struct rlp *from, struct u256 *out);
bool rlp_next_list(struct rlp *from, struct rlp *items);
/* Whether all of @from are items, those of lists too, at most RLP_DEPTH_MAX deep. */
bool rlp_valid(struct rlp from);

#endif
