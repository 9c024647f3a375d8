/* proto/edge_recovery.c: recovery by itself, as it is said and as it is counted (see edge.h) */
#include "proto/edge.h"

bool
edge_recovery_well(const struct edge_recovery *r)
{
    bool after = r->after_s <= EDGE_RECOVER_AFTER || r->after_s == EDGE_RECOVER_NEVER;

    return after && r->tries <= EDGE_RECOVER_TRIES &&
           (r->window_s == 0 || (r->window_s >= EDGE_RECOVER_WINDOW_MIN && r->window_s <= EDGE_RECOVER_WINDOW));
}

uint32_t
recovery_used(const struct edge_recovery *r, uint64_t age_ms)
{
    return r->began_ms == 0 || age_ms >= (uint64_t)r->window_s * 1000 ? 0 : r->used;
}

uint32_t
recovery_wait_s(const struct edge_recovery *r, uint64_t age_ms, bool gone)
{
    uint32_t used = recovery_used(r, age_ms), most = r->window_s > r->after_s ? r->window_s : r->after_s;
    uint64_t wait = r->after_s;

    if (r->after_s == 0 || used >= r->tries)
        return 0;
    /* what is gone does not come back: a moment, for what it held to be free, is enough the first time */
    if (gone && used == 0)
        return 1;
    for (uint32_t i = gone ? 1 : 0; i < used && wait < most; i++)
        wait *= 2;
    return wait < most ? (uint32_t)wait : most;
}
