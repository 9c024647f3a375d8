/* wire/frame.c: see frame.h */
#include "wire/frame.h"

#include <string.h>

static uint16_t
load_be16(const uint8_t *p)
{
    return (uint16_t)((uint16_t)(p[0] << 8) | p[1]);
}

static uint32_t
load_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void
store_be32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

bool
frame_header_decode(const uint8_t *p, size_t n, struct frame *f)
{
    if (n < FRAME_HEADER)
        return false;
    f->type = p[0];
    f->flags = p[1];
    f->channel = load_be16(p + 2);
    f->length = load_be32(p + 4);
    f->payload = NULL;
    return true;
}

void
frame_header_encode(uint8_t out[FRAME_HEADER], uint8_t type, uint8_t flags, uint16_t channel, uint32_t length)
{
    out[0] = type;
    out[1] = flags;
    out[2] = (uint8_t)(channel >> 8);
    out[3] = (uint8_t)channel;
    store_be32(out + 4, length);
}

int
frame_append(struct buf *b, uint8_t type, uint8_t flags, uint16_t channel, const void *payload, size_t n)
{
    uint8_t header[FRAME_HEADER];
    size_t whole;

    if (n > UINT32_MAX || __builtin_add_overflow(n, (size_t)FRAME_HEADER, &whole) || buf_reserve(b, whole) < 0) {
        b->broken = true;
        return -1;
    }
    frame_header_encode(header, type, flags, channel, (uint32_t)n);
    (void)buf_append(b, header, sizeof(header));
    return buf_append(b, payload, n);
}

size_t
frame_begin(struct buf *b, uint8_t type, uint8_t flags, uint16_t channel)
{
    uint8_t header[FRAME_HEADER];
    size_t at = b->n;

    frame_header_encode(header, type, flags, channel, 0);
    return buf_append(b, header, sizeof(header)) < 0 ? SIZE_MAX : at;
}

int
frame_end(struct buf *b, size_t at)
{
    size_t length;

    if (!buf_ok(b) || at > b->n || b->n - at < FRAME_HEADER)
        return -1;
    length = b->n - at - FRAME_HEADER;
    if (length > UINT32_MAX) {
        b->broken = true;
        return -1;
    }
    store_be32(b->p + at + 4, (uint32_t)length);
    return 0;
}

struct wire_in
wire_in_of(const void *p, size_t n)
{
    return (struct wire_in){ .p = p, .n = n, .bad = false };
}

const uint8_t *
wire_bytes(struct wire_in *in, size_t n)
{
    const uint8_t *p = in->p;

    if (in->bad || n > in->n) {
        in->bad = true;
        return NULL;
    }
    in->p += n;
    in->n -= n;
    return p;
}

uint8_t
wire_u8(struct wire_in *in)
{
    const uint8_t *p = wire_bytes(in, 1);
    return p == NULL ? 0 : p[0];
}

uint16_t
wire_be16(struct wire_in *in)
{
    const uint8_t *p = wire_bytes(in, 2);
    return p == NULL ? 0 : load_be16(p);
}

uint32_t
wire_be32(struct wire_in *in)
{
    const uint8_t *p = wire_bytes(in, 4);
    return p == NULL ? 0 : load_be32(p);
}

uint64_t
wire_be64(struct wire_in *in)
{
    const uint8_t *p = wire_bytes(in, 8);
    return p == NULL ? 0 : (uint64_t)load_be32(p) << 32 | load_be32(p + 4);
}

const char *
wire_cstr(struct wire_in *in, uint32_t max, uint32_t *length)
{
    uint32_t n = wire_be32(in);
    const uint8_t *p;

    if (in->bad || n > max) {
        in->bad = true;
        return NULL;
    }
    p = wire_bytes(in, (size_t)n + 1);
    if (p == NULL)
        return NULL;
    if (p[n] != 0 || memchr(p, 0, n) != NULL) {
        in->bad = true;
        return NULL;
    }
    if (length != NULL)
        *length = n;
    return (const char *)p;
}

bool
wire_done(const struct wire_in *in)
{
    return !in->bad && in->n == 0;
}

int
wire_put_cstr(struct buf *b, const char *s, uint32_t max)
{
    size_t n = strlen(s);

    if (n > max) {
        b->broken = true;
        return -1;
    }
    (void)buf_put_be32(b, (uint32_t)n);
    return buf_append(b, s, n + 1);
}
