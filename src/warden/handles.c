/* warden/handles.c: the numbers by which a front names its callers (see handles.h) */
#include <string.h>

#include "proto/edge_gate.h"
#include "warden/handles.h"

/* Where a new one goes among the places from @first on. */
static struct handle *
room(struct handle *first, handle_good_fn *good, void *ctx)
{
    struct handle *oldest = first;

    for (struct handle *at = first; at < first + HANDLE_WAYS; at++)
        if (at->number == 0)
            return at;
    for (struct handle *at = first; at < first + HANDLE_WAYS; at++) {
        if (!good(ctx, at->hash))
            return at;
        if (at->used < oldest->used)
            oldest = at;
    }
    return oldest;
}

uint32_t
handle_of(struct handles *h, const uint8_t hash[SHA256_SIZE], handle_good_fn *good, void *ctx)
{
    uint32_t place = ((uint32_t)hash[0] << 8 | hash[1]) % (WARDEN_HANDLES / HANDLE_WAYS) * HANDLE_WAYS;
    struct handle *first = &h->at[place], *new;
    uint32_t number;

    for (struct handle *at = first; at < first + HANDLE_WAYS; at++) {
        if (at->number != 0 && memcmp(at->hash, hash, SHA256_SIZE) == 0) {
            at->used = ++h->uses;
            return at->number;
        }
    }
    new = room(first, good, ctx);
    number = new->number != 0 ? new->number : (uint32_t)(new - h->at);
    if (number >= EDGE_PASS - WARDEN_HANDLES)
        return 0;       /* the next one would be another's, of long ago */
    h->ended += new->number != 0;
    new->number = number + WARDEN_HANDLES;
    new->used = ++h->uses;
    memcpy(new->hash, hash, SHA256_SIZE);
    return new->number;
}

const struct handle *
handle_find(struct handles *h, uint32_t number)
{
    struct handle *at = &h->at[number % WARDEN_HANDLES];

    if (number == 0 || at->number != number)
        return NULL;
    at->used = ++h->uses;
    return at;
}
