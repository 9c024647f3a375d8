/* keeper/keeper_live.c: a command that its client steers while it runs: stdin as it is typed, a window's size, signals
 *
 * The front may have EDGE_CHUNK bytes of stdin under way that the command did not take. So its socket is always read,
 * and a signal is never stuck behind input that nobody reads.
 */
#include "keeper/keeper.h"

void
live_taken(struct op *o, size_t n)
{
    uint8_t room[32];
    struct buf frame = BUF_INIT_IN(room, sizeof(room));
    size_t at = frame_begin(&frame, EDGE_TAKEN, 0, 0);

    buf_put_be32(&frame, (uint32_t)n);
    if (n > 0)
        op_say(o, &frame, at);
}

int
live_on_resize(void *ctx, const struct frame *f)
{
    struct op *o = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    uint16_t rows = wire_be16(&in), cols = wire_be16(&in);

    if (!wire_done(&in) || rows == 0 || cols == 0)
        return -1;
    return o->channel != 0 ? guest_client_resize(o->k->l.client, o->channel, rows, cols, NULL) : 0;
}

int
live_on_signal(void *ctx, const struct frame *f)
{
    struct op *o = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    uint8_t signo = wire_u8(&in);

    if (!wire_done(&in) || signo < 1 || signo > 64)
        return -1;
    if (o->channel != 0)
        op_signal(o, signo);
    return 0;
}
