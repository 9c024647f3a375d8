/* wall/addresses.h: the addresses of this network namespace's interfaces */
#ifndef CLOCHE_WALL_ADDRESSES_H
#define CLOCHE_WALL_ADDRESSES_H

#include <stddef.h>

#include "base/err.h"
#include "match/ip.h"

#define ADDRESSES_MAX 1024

/* All of them into @out, their number into @n. 0, or -1 with @err; more than fit is an error, since one left out would
 * not be refused. */
int interface_addresses(struct ip out[ADDRESSES_MAX], size_t *n, struct err *err);

#endif
