/* warden/latest.h: what time it is for what ends at a time: never earlier than it was
 *
 * The wall clock can be set back, by somebody or by a server of time that somebody pretends to be; then what had ended
 * would begin anew. So the latest time that was seen counts, and from there on what has gone by since, until the wall
 * clock is ahead of that again. It is on record, so that it counts for the next process too. Pure but for the clocks.
 */
#ifndef CLOCHE_WARDEN_LATEST_H
#define CLOCHE_WARDEN_LATEST_H

#include <stdint.h>

#define LATEST_KEEP_MS 10000    /* between two times on record */
#define LATEST_BACK_MS 60000    /* a wall clock that is behind by more is spoken of */

struct latest {
    uint64_t wall_ms, mono_ms;  /* since 1970; on the boot clock, when that was seen */
    uint64_t kept_ms;           /* on record */
};

/* The time, where the clocks say @wall_ms and @mono_ms. */
uint64_t latest_at(const struct latest *l, uint64_t wall_ms, uint64_t mono_ms);

#endif
