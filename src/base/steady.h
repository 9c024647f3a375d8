/* base/steady.h: time that only goes by, whatever the host's clock is set to
 *
 * What fills again with time (what may be spent in an hour), and what is thrown away at an age, must not be had by
 * setting the clock forward. So this time goes by as the machine's own does (CLOCK_BOOTTIME: set by nobody, and it goes
 * on while the machine sleeps). It is kept on record for the next process. Within one boot of the machine nothing else
 * counts; after another one nothing but the wall clock says how long the machine was off, and it is believed.
 */
#ifndef CLOCHE_BASE_STEADY_H
#define CLOCHE_BASE_STEADY_H

#include <stdint.h>

#define STEADY_BOOT 79
#define STEADY_WRITTEN_S 1767225600 /* 2026: this program is younger, so a clock that says less is wrong */

struct steady {
    uint64_t at_ms;             /* since 1970, about: where the wall clock was when this began */
    uint64_t boot_ms;           /* the boot clock then */
};

/* What is kept of it. */
struct steady_kept {
    uint64_t at_ms, boot_ms;
    uint64_t wall_ms;           /* what the host's clock said */
    char boot[STEADY_BOOT + 1]; /* which boot that was */
};

/* Which boot of the machine this is, and (steady_boot) with which namespace of time; "" where that cannot be known,
 * which is another one than any. They open files. */
void steady_machine(char out[STEADY_BOOT + 1]);
void steady_boot(char out[STEADY_BOOT + 1]);

/* It begins at @wall_ms, with the boot clock at @boot_ms. */
struct steady steady_begin(uint64_t wall_ms, uint64_t boot_ms);
/* It goes on after @k. */
struct steady steady_after(const struct steady_kept *k, const char *boot, uint64_t wall_ms, uint64_t boot_ms);
/* The time, where the boot clock says @boot_ms. */
uint64_t steady_at(const struct steady *s, uint64_t boot_ms);
/* For how many seconds a file has not been changed that was at @changed_s, which the host's clock said (since 1970).
 * Never more than either clock says, so that no file is older by a clock that is set; and where this time began with a
 * clock that was ahead, the host's judges. Where it began before this program was written, it says nothing of files
 * that are younger than that: then the host's judges these alone. */
uint64_t steady_age_s(const struct steady *s, uint64_t boot_ms, uint64_t wall_ms, int64_t changed_s);

#endif
