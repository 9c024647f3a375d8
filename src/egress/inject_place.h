/* egress/inject_place.h: where in the head of a request a placeholder gives way to its value
 *
 * A binding names the places (vault/binding.h); elsewhere the placeholder stays what it is. Pure: the head and what was
 * leased go in, the edit comes out.
 */
#ifndef CLOCHE_EGRESS_INJECT_PLACE_H
#define CLOCHE_EGRESS_INJECT_PLACE_H

#include "base/buf.h"
#include "egress/exchange.h"
#include "vault/client.h"

/* Value and placeholder of one secret, both @n bytes. */
struct inject_pair {
    const struct binding *binding;
    enum vault_role role;
    const uint8_t *placeholder, *value;
    size_t n;
};

#define INJECT_TEXT_MAX (4 * HTTP1_HEAD_MAX)

/* Fill @edit's target, drop and add. What it points to is in @head, or in @text, which has to be empty with the ceiling
 * INJECT_TEXT_MAX, is not touched while @edit is in use, and holds values: its caller wipes it. 0, or -1: too much to
 * change. */
int inject_place(const struct http1_head *head, const struct inject_pair *pairs, size_t n, struct buf *text,
                 struct exchange_edit *edit);
/* inject_add.c, likewise, after it: the header that @pair's binding adds, in place of all of that name. */
int inject_add(const struct http1_head *head, const struct inject_pair *pair, struct buf *text,
               struct exchange_edit *edit);

#endif
