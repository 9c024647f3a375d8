/* egress/unpack: whatever the bytes and the cuts, what comes out of one call is bounded, a call makes progress, and the
 * cuts change nothing
 *
 * Input: one byte of kind and step, then the packed bytes.
 */
#include "fuzz.h"

#include <string.h>

#include "egress/unpack.h"

#define OUT_MAX (8u << 20)

/* 0 when it was all of a body. */
static int
unpack_all(enum unpack_kind kind, const uint8_t *p, size_t n, size_t step, struct buf *out)
{
    struct unpack *u = unpack_new(kind);
    int r = 0;

    FUZZ_ASSERT(u != NULL);
    for (size_t at = 0; r == 0 && at < n;) {
        size_t offer = n - at < step ? n - at : step, used = 0, before = out->n;
        r = unpack_feed(u, p + at, offer, at + offer == n, out, &used);
        FUZZ_ASSERT(used <= offer);
        FUZZ_ASSERT(r < 0 || used > 0 || out->n > before);
        FUZZ_ASSERT(out->n - before < UNPACK_STEP + 65536);
        at += used;
    }
    if (r == 0 && n > 0 && !unpack_done(u))
        r = -1;
    unpack_free(u);
    return r;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct buf whole = BUF_INIT(OUT_MAX), cut = BUF_INIT(OUT_MAX);
    enum unpack_kind kind;
    int a, b;

    if (n == 0)
        return 0;
    kind = data[0] & 1 ? UNPACK_GZIP : UNPACK_DEFLATE;
    a = unpack_all(kind, data + 1, n - 1, n, &whole);
    b = unpack_all(kind, data + 1, n - 1, 1 + (data[0] >> 1), &cut);
    FUZZ_ASSERT(a == b || !buf_ok(&whole) || !buf_ok(&cut));
    if (a == 0 && b == 0)
        FUZZ_ASSERT(whole.n == cut.n && (whole.n == 0 || memcmp(whole.p, cut.p, whole.n) == 0));
    buf_free(&whole);
    buf_free(&cut);
    return 0;
}
