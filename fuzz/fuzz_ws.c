/* wire/ws: however the bytes are cut the same messages come out, as frames that are read again without fault */
#include "fuzz.h"

#include <string.h>

#include "wire/ws.h"

#define OUT_MAX (1 << 20)

/* Messages, then control frames, each with its kind in front and its end behind. */
struct read { struct buf messages, control; };

static int
copy(void *ctx, bool control, const uint8_t *p, size_t n, bool end, struct buf *out)
{
    (void)control;
    (void)end;
    (*(size_t *)ctx) += n;
    return buf_append(out, p, n);
}

static void
read_back(const struct buf *out, bool client, struct read *r)
{
    bool open = false;

    for (size_t at = 0; at < out->n;) {
        struct ws_frame f;
        struct buf *to;
        FUZZ_ASSERT(ws_head(out->p + at, out->n - at, &f) == WS_OK && f.masked == client);
        FUZZ_ASSERT(f.length <= out->n - at - f.head);
        to = f.opcode >= WS_CLOSE ? &r->control : &r->messages;
        if (f.opcode < WS_CLOSE) {
            FUZZ_ASSERT((f.opcode == WS_CONTINUATION) == open);
            open = !f.fin;
        }
        if (f.opcode != WS_CONTINUATION)
            buf_put_u8(to, f.opcode);
        for (size_t i = 0; i < f.length; i++)
            buf_put_u8(to, out->p[at + f.head + i] ^ (client ? f.key[i & 3] : 0));
        if (f.fin)
            buf_put_u8(to, 0xff);
        at += f.head + (size_t)f.length;
    }
}

static enum ws_result
pass(const uint8_t *p, size_t n, size_t step, bool client, struct read *r)
{
    struct buf out = BUF_INIT(OUT_MAX);
    enum ws_result result = WS_OK;
    size_t bytes = 0;
    struct ws_way w;

    ws_init(&w, client);
    for (size_t at = 0; at < n && result == WS_OK; at += step)
        result = ws_feed(&w, p + at, n - at < step ? n - at : step, copy, &bytes, &out);
    FUZZ_ASSERT(bytes <= n && result != WS_MORE && result != WS_REFUSED);
    read_back(&out, client, r);
    ws_free(&w);
    buf_free(&out);
    return result;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct read a = { BUF_INIT(OUT_MAX), BUF_INIT(OUT_MAX) }, b = { BUF_INIT(OUT_MAX), BUF_INIT(OUT_MAX) };
    bool client = n > 0 && (data[0] & 1);
    size_t step = n > 0 ? 1 + (data[0] >> 1) % 16 : 1;
    enum ws_result whole, cut;

    if (n < 1 || n > 8192)
        return 0;
    whole = pass(data + 1, n - 1, n, client, &a);
    cut = pass(data + 1, n - 1, step, client, &b);
    FUZZ_ASSERT(whole == cut);
    /* what was fed in one piece is not flushed when a later byte of it is refused */
    if (whole == WS_OK)
        FUZZ_ASSERT(a.messages.n == b.messages.n &&
                    (a.messages.n == 0 || memcmp(a.messages.p, b.messages.p, a.messages.n) == 0));
    FUZZ_ASSERT(a.control.n == b.control.n && (a.control.n == 0 || memcmp(a.control.p, b.control.p, a.control.n) == 0));
    buf_free(&a.messages);
    buf_free(&a.control);
    buf_free(&b.messages);
    buf_free(&b.control);
    return 0;
}
