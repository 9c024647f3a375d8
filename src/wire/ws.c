/* wire/ws.c: see ws.h */
#include "wire/ws.h"

#include <string.h>
#include <sys/random.h>

#define FIN      0x80
#define RESERVED 0x70
#define MASKED   0x80
#define STEP     4096       /* bytes unmasked at once */

static bool
is_control(uint8_t opcode)
{
    return opcode >= WS_CLOSE;
}

/* --- heads -------------------------------------------------------------------------------------------------------- */

enum ws_result
ws_head(const uint8_t *p, size_t n, struct ws_frame *out)
{
    size_t wide, at = 2;

    if (n < 1)
        return WS_MORE;
    *out = (struct ws_frame){ .fin = (p[0] & FIN) != 0, .opcode = p[0] & 15 };
    if (p[0] & RESERVED)
        return WS_RESERVED;
    if ((out->opcode > WS_BINARY && out->opcode < WS_CLOSE) || out->opcode > WS_PONG)
        return WS_OPCODE;
    if (n < 2)
        return WS_MORE;
    out->masked = (p[1] & MASKED) != 0;
    out->length = p[1] & 127;
    if (is_control(out->opcode) && (!out->fin || out->length > WS_CONTROL_MAX))
        return WS_CONTROL;
    wide = out->length == 126 ? 2 : out->length == 127 ? 8 : 0;
    if (n < at + wide)
        return WS_MORE;
    if (wide > 0) {
        out->length = 0;
        for (size_t i = 0; i < wide; i++)
            out->length = out->length << 8 | p[at++];
        if (out->length >> 63 != 0 || out->length < (wide == 2 ? 126 : 65536))
            return WS_LENGTH;
    }
    if (out->masked) {
        if (n < at + 4)
            return WS_MORE;
        memcpy(out->key, p + at, 4);
        at += 4;
    }
    out->head = at;
    return WS_OK;
}

int
ws_write_head(struct buf *out, bool fin, uint8_t opcode, uint64_t length, const uint8_t *key)
{
    uint8_t p[WS_HEAD_MAX] = { (uint8_t)((fin ? FIN : 0) | opcode) };
    size_t wide = length < 126 ? 0 : length < 65536 ? 2 : 8, n = 2;

    p[1] = (uint8_t)((key != NULL ? MASKED : 0) | (wide == 0 ? (uint8_t)length : wide == 2 ? 126 : 127));
    for (size_t i = 0; i < wide; i++)
        p[n++] = (uint8_t)(length >> 8 * (wide - 1 - i));
    if (key != NULL) {
        memcpy(p + n, key, 4);
        n += 4;
    }
    return buf_append(out, p, n);
}

/* --- one direction ------------------------------------------------------------------------------------------------ */

void
ws_init(struct ws_way *w, bool client)
{
    *w = (struct ws_way){ .client = client, .text = BUF_INIT(4 * WS_FLUSH) };
}

void
ws_free(struct ws_way *w)
{
    if (w->text.p != NULL)
        explicit_bzero(w->text.p, w->text.cap);
    buf_free(&w->text);
    explicit_bzero(w->control, sizeof(w->control));
}

/* A frame of ours. */
static enum ws_result
ws_put(const struct ws_way *w, bool fin, uint8_t opcode, const uint8_t *p, size_t n, struct buf *out)
{
    uint8_t key[4];
    size_t at;

    if (w->client && getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key))
        return WS_ROOM;
    if (ws_write_head(out, fin, opcode, n, w->client ? key : NULL) < 0)
        return WS_ROOM;
    at = out->n;
    if (n > 0 && buf_append(out, p, n) < 0)
        return WS_ROOM;
    for (size_t i = 0; w->client && i < n; i++)
        out->p[at + i] ^= key[i & 3];
    return WS_OK;
}

/* What is known of the message goes out. */
static enum ws_result
flush(struct ws_way *w, bool end, struct buf *out)
{
    enum ws_result r;

    if (w->text.n == 0 && !end)
        return WS_OK;
    r = ws_put(w, end, w->begun ? WS_CONTINUATION : w->opcode, w->text.p, w->text.n, out);
    w->begun = !end;
    buf_reset(&w->text);
    return r;
}

/* @p: unmasked bytes of the frame at hand, of which none is left afterwards when @end. */
static enum ws_result
message_bytes(struct ws_way *w, const uint8_t *p, size_t n, bool end, ws_bytes_fn *fn, void *ctx, struct buf *out)
{
    bool last = end && w->frame.fin;

    if ((n > 0 || last) && fn(ctx, false, p, n, last, &w->text) < 0)
        return WS_REFUSED;
    if (!buf_ok(&w->text))
        return WS_ROOM;
    w->message = !last;
    return last || w->text.n >= WS_FLUSH ? flush(w, last, out) : WS_OK;
}

static enum ws_result
control_bytes(struct ws_way *w, const uint8_t *p, size_t n, bool end, ws_bytes_fn *fn, void *ctx, struct buf *out)
{
    uint8_t room[2 * WS_CONTROL_MAX];
    struct buf made = BUF_INIT_IN(room, sizeof(room));
    enum ws_result r;

    if (n > 0)
        memcpy(w->control + w->control_n, p, n);    /* ws_head() has judged its length */
    w->control_n += n;
    if (!end)
        return WS_OK;
    if (fn(ctx, true, w->control, w->control_n, true, &made) < 0)
        return WS_REFUSED;
    w->control_n = 0;
    if (!buf_ok(&made) || made.n > WS_CONTROL_MAX)
        return WS_ROOM;
    r = flush(w, false, out);
    if (r == WS_OK)
        r = ws_put(w, true, w->frame.opcode, made.p, made.n, out);
    w->closed = w->frame.opcode == WS_CLOSE;
    explicit_bzero(room, sizeof(room));
    return r;
}

/* A whole head is there. */
static enum ws_result
ws_begin(struct ws_way *w)
{
    const struct ws_frame *f = &w->frame;

    if (f->masked != w->client)
        return WS_MASK;
    if (!is_control(f->opcode) && (f->opcode == WS_CONTINUATION) != w->message)
        return WS_ORDER;
    if (f->opcode == WS_TEXT || f->opcode == WS_BINARY) {
        w->message = true;
        w->begun = false;
        w->opcode = f->opcode;
    }
    w->inside = true;
    w->left = f->length;
    return WS_OK;
}

/* Bytes of the payload; how many in *@used. */
static enum ws_result
payload(struct ws_way *w, const uint8_t *p, size_t n, size_t *used, ws_bytes_fn *fn, void *ctx, struct buf *out)
{
    uint8_t plain[STEP];
    size_t step = n < sizeof(plain) ? n : sizeof(plain);
    uint64_t done = w->frame.length - w->left;
    enum ws_result r;

    if (step > w->left)
        step = (size_t)w->left;
    for (size_t i = 0; i < step; i++)
        plain[i] = w->frame.masked ? p[i] ^ w->frame.key[(done + i) & 3] : p[i];
    w->left -= step;
    w->inside = w->left > 0;
    *used = step;
    r = is_control(w->frame.opcode) ? control_bytes(w, plain, step, !w->inside, fn, ctx, out)
                                    : message_bytes(w, plain, step, !w->inside, fn, ctx, out);
    explicit_bzero(plain, step);
    return r;
}

enum ws_result
ws_feed(struct ws_way *w, const uint8_t *p, size_t n, ws_bytes_fn *fn, void *ctx, struct buf *out)
{
    enum ws_result r = WS_OK;
    size_t used;

    for (size_t at = 0; at < n && r == WS_OK && !w->closed;) {
        if (w->inside) {
            r = payload(w, p + at, n - at, &used, fn, ctx, out);
            at += used;
            continue;
        }
        w->head[w->head_n++] = p[at++];
        r = ws_head(w->head, w->head_n, &w->frame);
        if (r == WS_MORE) {
            r = WS_OK;
            continue;
        }
        w->head_n = 0;
        if (r == WS_OK)
            r = ws_begin(w);
        if (r == WS_OK && w->left == 0)
            r = payload(w, p, 0, &used, fn, ctx, out);
    }
    return r == WS_OK ? flush(w, false, out) : r;
}
