/* warden/ticket.h: a ticket for an editor's session: what it says, signed, as text
 *
 * "cloche_ticket_", and in hexadecimal digits what it says, in this order, and the HMAC-SHA256 of that under a key that
 * the caller has. Pure functions.
 */
#ifndef CLOCHE_WARDEN_TICKET_H
#define CLOCHE_WARDEN_TICKET_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/edge.h"

struct ticket {
    char id[EDGE_ID + 1], box[EDGE_ID + 1], person[EDGE_ID + 1];    /* @person "" the daemon's owner */
    char workspace[EDGE_ID + 1];        /* a digest */
    bool writes, screen;
    uint64_t until_ms;                  /* it must be used before that */
    uint32_t seconds;                   /* of the session */
};

/* The other ids are ids. 0, or -1: there is no room, which cannot be. */
int ticket_write(const uint8_t key[SHA256_SIZE], const struct ticket *t, char out[EDGE_TICKET_MAX + 1]);
/* False: nobody who has the key signed that. */
bool ticket_read(const uint8_t key[SHA256_SIZE], const char *text, struct ticket *t);

#endif
