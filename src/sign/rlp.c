/* sign/rlp.c: see rlp.h */
#include "sign/rlp.h"

#include <string.h>

#define BYTES 0x80      /* first byte of a string of bytes; of a list it is 0xc0 */
#define LIST  0xc0
#define SHORT 55        /* lengths up to here are in the first byte itself */

static void
put_length(struct buf *out, uint8_t kind, size_t n)
{
    uint8_t bytes[sizeof(n)];
    size_t used = 0;

    if (n <= SHORT) {
        (void)buf_put_u8(out, (uint8_t)(kind + n));
        return;
    }
    for (size_t left = n; left > 0; left >>= 8)
        bytes[sizeof(bytes) - ++used] = (uint8_t)left;
    (void)buf_put_u8(out, (uint8_t)(kind + SHORT + used));
    (void)buf_append(out, bytes + sizeof(bytes) - used, used);
}

void
rlp_put_bytes(struct buf *out, const void *p, size_t n)
{
    const uint8_t *bytes = p;

    if (n != 1 || bytes[0] >= BYTES)
        put_length(out, BYTES, n);
    if (n > 0)
        (void)buf_append(out, p, n);
}

void
rlp_put_u256(struct buf *out, const struct u256 *v)
{
    size_t n = u256_bytes(v);

    rlp_put_bytes(out, v->b + U256_SIZE - n, n);
}

void
rlp_put_number(struct buf *out, uint64_t v)
{
    const struct u256 wide = u256_of(v);

    rlp_put_u256(out, &wide);
}

void
rlp_put_list(struct buf *out, const void *p, size_t n)
{
    put_length(out, LIST, n);
    if (n > 0)
        (void)buf_append(out, p, n);
}

/* The length that stands in @digits bytes: no zero in front, and too long for a short form. */
static bool
long_length(struct rlp *from, size_t digits, size_t *n)
{
    if (digits > sizeof(*n) || from->n < digits || from->p[0] == 0)
        return false;
    *n = 0;
    for (size_t i = 0; i < digits; i++)
        *n = *n << 8 | from->p[i];
    from->p += digits;
    from->n -= digits;
    return *n > SHORT;
}

bool
rlp_next(struct rlp *from, struct rlp_item *item)
{
    struct rlp at = *from;
    size_t n;
    uint8_t first;

    if (at.n == 0)
        return false;
    first = at.p[0];
    item->is_list = first >= LIST;
    if (first < BYTES) {
        n = 1;
    } else {
        uint8_t kind = item->is_list ? LIST : BYTES;

        at.p++;
        at.n--;
        n = (size_t)(first - kind);
        if (n > SHORT && !long_length(&at, n - SHORT, &n))
            return false;
    }
    if (at.n < n || (first == BYTES + 1 && at.p[0] < BYTES))
        return false;
    item->in = (struct rlp){ at.p, n };
    from->p = at.p + n;
    from->n = at.n - n;
    return true;
}

bool
rlp_next_bytes(struct rlp *from, struct rlp *bytes)
{
    struct rlp at = *from;
    struct rlp_item item;

    if (!rlp_next(&at, &item) || item.is_list)
        return false;
    *from = at;
    *bytes = item.in;
    return true;
}

bool
rlp_next_exactly(struct rlp *from, void *out, size_t n)
{
    struct rlp bytes;

    if (!rlp_next_bytes(from, &bytes) || bytes.n != n)
        return false;
    memcpy(out, bytes.p, n);
    return true;
}

bool
rlp_next_u256(struct rlp *from, struct u256 *out)
{
    struct rlp bytes;

    return rlp_next_bytes(from, &bytes) && (bytes.n == 0 || bytes.p[0] != 0) &&
           u256_of_bytes(bytes.p, bytes.n, out);
}

bool
rlp_next_number(struct rlp *from, uint64_t max, uint64_t *out)
{
    struct u256 wide;

    return rlp_next_u256(from, &wide) && u256_to_u64(&wide, max, out);
}

bool
rlp_next_list(struct rlp *from, struct rlp *items)
{
    struct rlp at = *from;
    struct rlp_item item;

    if (!rlp_next(&at, &item) || !item.is_list)
        return false;
    *from = at;
    *items = item.in;
    return true;
}

/* Lists that are still to be read wait in an array: nothing here calls itself with a stranger's depth. */
bool
rlp_valid(struct rlp from)
{
    struct rlp open[RLP_DEPTH_MAX + 1] = { from };
    struct rlp_item item;
    size_t depth = 0;

    for (;;) {
        if (open[depth].n == 0) {
            if (depth == 0)
                return true;
            depth--;
            continue;
        }
        if (!rlp_next(&open[depth], &item))
            return false;
        if (item.is_list) {
            if (depth == RLP_DEPTH_MAX)
                return false;
            open[++depth] = item.in;
        }
    }
}
