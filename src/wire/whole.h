/* wire/whole.h: numbers that are whole, however they are written: JSON has one kind (RFC 8259, 6), and a client whose
 * language has another one too writes 1500.0 for what it computed
 */
#ifndef CLOCHE_WIRE_WHOLE_H
#define CLOCHE_WIRE_WHOLE_H

#include <jansson.h>

/* Make integers of them, in all of @json; what is no integer of each client (above 2^53) stays. */
void json_whole_numbers(json_t *json);

#endif
