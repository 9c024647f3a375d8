/* keeper/keeper_live.c: a command that its client steers while it runs: stdin as it is typed, a window's size, signals
 *
 * The front may have EDGE_CHUNK bytes of stdin under way that the command did not take. So its socket is always read,
 * and a signal is never stuck behind input that nobody reads.
 */
#include "keeper/keeper.h"

void
live_taken(struct op *o, size_t n)
{
    if (n > 0)
        PROTO_SAY(op_say, o, EDGE_TAKEN, .number = (uint32_t)n);
}

int
live_on_resize(struct op *o, const struct edge_resize *m)
{
    return o->channel != 0 ? guest_client_resize(o->k->l.client, o->channel, m->rows, m->cols, NULL) : 0;
}

int
live_on_signal(struct op *o, const struct edge_signal *m)
{
    if (o->channel != 0)
        op_signal(o, m->signo);
    return 0;
}
