/* wire/rfb.c: of who looks nothing passes but what looks, by a reading of its own; and what passes is the same however
 * the viewer's bytes are cut
 *
 * Input: the first byte's lowest bit: it controls; the rest of it, and one: the length of the pieces.
 */
#include "fuzz.h"

#include <string.h>

#include "base/cleanup.h"
#include "wire/rfb.h"

static size_t
be(const uint8_t *p, size_t n)
{
    size_t v = 0;

    for (size_t i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

/* The length of the message at @p, of what passes to a display; 0: no such message passes. */
static size_t
message(const uint8_t *p, size_t n, bool control)
{
    switch (p[0]) {
    case 0: return 20;
    case 2: return n >= 4 ? 4 + 4 * be(p + 2, 2) : 0;
    case 3: return 10;
    case 150: return 10;
    case 248: return n >= 9 ? 9 + be(p + 8, 1) : 0;
    default: break;
    }
    if (!control)
        return 0;
    switch (p[0]) {
    case 4: return 8;
    case 5: return 6;
    case 6: return n >= 8 ? 8 + (p[4] < 128 ? be(p + 4, 4) : 0x100000000 - be(p + 4, 4)) : 0;
    case 251: return n >= 8 ? 8 + 16 * be(p + 6, 1) : 0;
    case 255: return n >= 2 && p[1] == 0 ? 12 : 0;
    default: return 0;
    }
}

static void
reads(const uint8_t *p, size_t n, bool control)
{
    static const char hello[] = "RFB 003.008\n\1\1";
    size_t greeting = n < sizeof(hello) - 1 ? n : sizeof(hello) - 1;

    FUZZ_ASSERT(n == 0 || (n >= 12 && memcmp(p, hello, greeting) == 0));
    for (size_t at = greeting; at < n;) {
        size_t size = message(p + at, n - at, control);
        FUZZ_ASSERT(size > 0 && size <= n - at && size <= RFB_MESSAGE_MAX);
        at += size;
    }
}

static int
feed(const uint8_t *p, size_t n, size_t piece, bool control, struct buf *out)
{
    struct err err = ERR_INIT;
    struct rfb r;
    int rc = 0;

    rfb_init(&r, control);
    for (size_t at = 0; at < n && rc == 0; at += piece)
        rc = rfb_feed(&r, p + at, piece < n - at ? piece : n - at, out, &err);
    rfb_free(&r);
    return rc;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    cleanup_buf struct buf whole = BUF_INIT(1UL << 24), cut = BUF_INIT(1UL << 24);
    bool control;
    int rc;

    if (n == 0)
        return 0;
    control = (data[0] & 1) != 0;
    rc = feed(data + 1, n - 1, n, control, &whole);
    FUZZ_ASSERT(rc == feed(data + 1, n - 1, 1 + (size_t)data[0] / 2, control, &cut));
    FUZZ_ASSERT(whole.n == cut.n && (whole.n == 0 || memcmp(whole.p, cut.p, whole.n) == 0));
    FUZZ_ASSERT(whole.n <= n);
    reads(whole.p, whole.n, control);
    return 0;
}
