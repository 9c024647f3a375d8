/* wire/form.h: queries, and forms as browsers send them (application/x-www-form-urlencoded) */
#ifndef CLOCHE_WIRE_FORM_H
#define CLOCHE_WIRE_FORM_H

#include <stdbool.h>
#include <stddef.h>

/* The decoded value of a key, in @room; NULL when it is not there (or malformed: *bad). */
const char *form_get(const char *text, const char *key, char *room, size_t size, bool *bad);
/* Percent-decoding; false when malformed, when it holds a NUL, or does not fit. */
bool url_decode(const char *p, size_t n, bool plus, char *out, size_t size);

#endif
