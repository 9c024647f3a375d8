/* front/range.h: the Range header (RFC 9110 §14.2): one range of bytes, or none that counts */
#ifndef CLOCHE_FRONT_RANGE_H
#define CLOCHE_FRONT_RANGE_H

#include <stdint.h>

enum range {
    RANGE_WHOLE,        /* none, several, another unit, or malformed: each means the whole, as the RFC permits */
    RANGE_PART,
    RANGE_OUTSIDE,      /* well-formed, and nothing of it is there */
};

/* What @header asks for of @size bytes; with PART, @first <= @last < @size. Pure. */
enum range range_of(const char *header, uint64_t size, uint64_t *first, uint64_t *last);

#endif
