/* front/trace.h: the traceparent header (W3C Trace Context, Level 1): whose larger work a request is part of
 *
 * "00-TRACE-PARENT-FLAGS": a version, 16 bytes that name the whole trace, 8 that name the caller's own span, and flags,
 * all in lower case hexadecimal. What is malformed is as if it was not there, as the recommendation has it. Pure.
 */
#ifndef CLOCHE_FRONT_TRACE_H
#define CLOCHE_FRONT_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "warden/trace_id.h"

#define TRACE_ID   32       /* digits */
#define TRACE_SPAN 16
#define TRACE_TEXT 55       /* of a whole header of version 00 */

struct trace {
    char id[TRACE_ID + 1];
    char span[TRACE_SPAN + 1];
    bool sampled;           /* the one flag that is known */
};

/* A header's value. False, and @out untouched, unless it is well-formed: of version 00 to the letter, of a later one at
 * least its beginning, and neither id all zero. */
bool trace_parse(struct str header, struct trace *out);
/* The value for others, always of version 00. */
void trace_print(const struct trace *t, char out[TRACE_TEXT + 1]);
/* The @n bytes of an id of twice as many digits. */
void trace_bytes(const char *id, size_t n, uint8_t *out);

#endif
