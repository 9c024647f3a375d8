/* base/hold.c: see hold.h */
#include "base/hold.h"

unsigned
hold_caller(uint32_t who)
{
    return who == 0 ? HOLD_NOBODY : HOLD_KEYS + 1 + who % (HOLD_CALLERS - HOLD_KEYS - 1);
}

bool
hold_has(const struct hold *h, unsigned caller, bool whole, size_t n)
{
    if (h->all > h->max || n > h->max - h->all)
        return false;
    return whole || h->all + n <= h->max / 2 ||
           (n <= h->max / HOLD_SHARES && h->by[caller] <= h->max / HOLD_SHARES - n);
}

void
hold_count(struct hold *h, unsigned caller, size_t was, size_t is)
{
    h->all += is - was;
    h->by[caller] += is - was;
}
