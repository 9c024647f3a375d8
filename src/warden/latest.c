/* warden/latest.c: see latest.h */
#include "warden/latest.h"

#include "base/clock.h"

uint64_t
latest_at(const struct latest *l, uint64_t wall_ms, uint64_t mono_ms)
{
    uint64_t gone = clock_since(mono_ms, l->mono_ms);
    uint64_t least = l->wall_ms > UINT64_MAX - gone ? UINT64_MAX : l->wall_ms + gone;

    return wall_ms > least ? wall_ms : least;
}
