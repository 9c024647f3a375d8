/* base/clock.h: what time it is, as most callers want it
 *
 * Neither can fail: the clocks are always there and the addresses are ours (clock_gettime(2)).
 */
#ifndef CLOCHE_BASE_CLOCK_H
#define CLOCHE_BASE_CLOCK_H

#include <stdint.h>

/* Since an unnamed moment, never set back (CLOCK_MONOTONIC): for deadlines and durations. */
uint64_t clock_us(void);
uint64_t clock_ms(void);
/* Since the machine's start, set by nobody; goes on while the machine sleeps (CLOCK_BOOTTIME): see steady.h. */
uint64_t clock_boot_ms(void);
/* Milliseconds since 1970, as the machine believes (CLOCK_REALTIME): for people and records. */
uint64_t clock_wall_ms(void);
uint64_t clock_wall_us(void);

#define CLOCK_TEXT 39
/* Milliseconds since 1970, of whatever year, as RFC 3339 has them: "2026-11-21T17:00:00.123Z". */
void clock_text(int64_t ms, char out[CLOCK_TEXT + 1]);

/* How long ago @then was at @now; none where it is later, for @then may have been read after @now was. */
static inline uint64_t
clock_since(uint64_t now, uint64_t then)
{
    return now > then ? now - then : 0;
}

#endif
