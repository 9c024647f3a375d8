/* base/hold.h: how much memory callers may have a front keep for them, and how many connections
 *
 * A front that runs out of memory answers nobody. So what it keeps, bodies that come and answers that their clients
 * have not taken, has a bound for all together, and so have connections whose requests are under way; and while half of
 * that is in use nobody has more than a share, so that one caller's many clients that read nothing, or wait, take none
 * of what others need. Callers are told apart by a number that may be two callers' at once: they share then, which only
 * makes it less.
 */
#ifndef CLOCHE_BASE_HOLD_H
#define CLOCHE_BASE_HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOLD_CALLERS 4096
#define HOLD_SHARES  8          /* nobody has more than one of them then */
#define HOLD_NOBODY  0          /* the caller of who comes without a credential */
#define HOLD_KEYS    1          /* and that of all keys of sandboxes: an agent has as many as it likes */

struct hold {
    size_t max, all;
    size_t by[HOLD_CALLERS];
};

/* The number of the caller of that handle (HOLD_NOBODY for 0). */
unsigned hold_caller(uint32_t who);
/* Whether there is room for @n more of them. @whole: to this caller belongs all that there is. */
bool hold_has(const struct hold *h, unsigned caller, bool whole, size_t n);
/* What @caller has is @is where it was @was. */
void hold_count(struct hold *h, unsigned caller, size_t was, size_t is);

#endif
