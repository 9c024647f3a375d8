/* client/sse: the same events come out, however the bytes were cut into pieces
 *
 * Input: the first byte is the length of a piece, the rest is the stream.
 */
#include "fuzz.h"

#include <string.h>

#include "base/cleanup.h"
#include "client/sse.h"

static int
on_event(void *ctx, const char *name, const char *id, const char *data, size_t n)
{
    struct buf *out = ctx;

    FUZZ_ASSERT(strlen(name) > 0 && strlen(name) <= SSE_NAME_MAX && strlen(id) <= SSE_ID_MAX && data[n] == '\0');
    buf_puts(out, name);
    buf_put_u8(out, 0);
    buf_puts(out, id);
    buf_put_u8(out, 0);
    buf_append(out, data, n);
    buf_put_u8(out, 0);
    return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    cleanup_buf struct buf whole = BUF_INIT(1 << 24), pieces = BUF_INIT(1 << 24);
    struct sse a = SSE_INIT, b = SSE_INIT;
    size_t piece;

    if (n == 0)
        return 0;
    piece = (size_t)data[0] + 1;
    data++;
    n--;
    FUZZ_ASSERT(sse_feed(&a, data, n, on_event, &whole) == 0);
    for (size_t at = 0; at < n; at += piece)
        FUZZ_ASSERT(sse_feed(&b, data + at, n - at < piece ? n - at : piece, on_event, &pieces) == 0);
    FUZZ_ASSERT(whole.n == pieces.n && (whole.n == 0 || memcmp(whole.p, pieces.p, whole.n) == 0));
    sse_free(&a);
    sse_free(&b);
    return 0;
}
