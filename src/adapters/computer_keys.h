/* adapters/computer_keys.h: keys of an action, as xdotool takes them */
#ifndef CLOCHE_ADAPTERS_COMPUTER_KEYS_H
#define CLOCHE_ADAPTERS_COMPUTER_KEYS_H

#include "adapters/computer.h"

/* One more word for xdotool; where there is no room for it, c->words is broken. */
void computer_word(struct computer *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The keys of @a: {"keys": [...]} or {"text": "ctrl+c"}, {"keys": "ctrl+c"}, a word for each press with a plus behind.
 * -1 wrong, 0 none. */
int computer_keys(const json_t *a, struct computer *c);

#endif
