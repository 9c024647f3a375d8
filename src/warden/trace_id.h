/* warden/trace_id.h: ids of traces and spans as text (W3C Trace Context) */
#ifndef CLOCHE_WARDEN_TRACE_ID_H
#define CLOCHE_WARDEN_TRACE_ID_H

#include <stddef.h>
#include <stdint.h>

/* @bytes, 16 or 8 of them, as lower case digits; all zero becomes another one, for that is no id. */
void trace_digits(const uint8_t *bytes, size_t n, char *out);

#endif
