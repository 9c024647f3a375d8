/* wire/whole.h: what clients write otherwise than they mean it: numbers that are whole (JSON has one kind, RFC 8259, 6,
 * and a client whose language has another one too writes 1500.0 for what it computed), and members that they do not
 * have
 */
#ifndef CLOCHE_WIRE_WHOLE_H
#define CLOCHE_WIRE_WHOLE_H

#include <jansson.h>

/* Make integers of them, in all of @json; what is no integer of each client (above 2^53) stays. */
void json_whole_numbers(json_t *json);
/* A member that is null is none: many clients say so of each that was not set. Remove them from all objects of @json,
 * but not from what is in the outermost's member @but (NULL: no such), where null has a meaning. */
void json_drop_nulls(json_t *json, const char *but);

#endif
