/* machine/mux_frame.c: frames: see mux.h */
#include "machine/mux.h"

/* How long one of @type may be. */
static bool
fits(uint8_t type, size_t n)
{
    switch (type) {
    case MUX_OPEN: return n == MUX_ADDRESS;
    case MUX_DATA: return n >= 1 && n <= MUX_PIECE;
    case MUX_ROOM: return n == 4;
    case MUX_END:
    case MUX_RESET: return n == 0;
    default: return false;
    }
}

int
mux_read(const uint8_t *p, size_t n, struct mux_frame *out, size_t *size)
{
    size_t length;

    if (n < MUX_HEADER)
        return 0;
    length = (size_t)p[3] << 8 | p[4];
    *out = (struct mux_frame){ (uint16_t)(p[0] << 8 | p[1]), (enum mux_type)p[2], p + MUX_HEADER, length };
    *size = MUX_HEADER + length;
    if (out->channel >= MUX_CHANNELS || !fits(p[2], length))
        return -1;
    return n >= *size;
}

void
mux_put(struct buf *out, const struct mux_frame *f)
{
    buf_put_be16(out, f->channel);
    buf_put_u8(out, (uint8_t)f->type);
    buf_put_be16(out, (uint16_t)f->n);
    buf_append(out, f->p, f->n);
}
