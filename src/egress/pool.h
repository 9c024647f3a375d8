/* egress/pool.h: connections to servers, under TLS, that wait for the next client
 *
 * Theory: to open TLS with a server costs more than all the rest of a short connection. So one whose last answer ended
 * in order is kept for a few seconds, and the next client that wants the same place gets it instead of a new one. This
 * process serves one sandbox, so nothing is shared between two. Taking one replaces dialling and nothing else: the
 * request, the name and the addresses that it has now are judged before, and it has to lead to one of those.
 *
 * Kept is HTTP/1.1 alone, and only what cannot have an answer waiting, or be somebody's: see exchange_rests(). Any
 * byte that comes while it waits ends it (an answer that nobody has asked for yet would be the next client's).
 */
#ifndef CLOCHE_EGRESS_POOL_H
#define CLOCHE_EGRESS_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "match/host.h"
#include "match/ip.h"

#define POOL_MAX       32       /* in all; the longest unused gives way */
#define POOL_PLACE_MAX 16       /* to one host and port */
#define POOL_IDLE_MS   4000     /* servers that keep connections do so for 5 s at least, as a rule */
#define POOL_AGE_MS    300000   /* since it was dialled */

struct conn;
struct egress;
struct tls_end;

struct pooled {
    struct egress *e;
    struct watch server;
    struct tls_end *tls;        /* NULL: a free place */
    struct host host;
    uint16_t port;
    struct ip address;          /* that it leads to */
    unsigned offered;           /* versions of HTTP that the server could choose among, as tls_end.h has them */
    uint32_t secrets;           /* ids of those that have passed on it */
    uint64_t dialled_ms, since_ms;      /* since: the last answer on it ended */
};

struct pool {
    struct pooled places[POOL_MAX];     /* zeroed: empty */
};

/* Keep @c's server connection, about whose exchange exchange_rests() says yes. It is the pool's then, or, if it may not
 * be kept, still @c's. */
void pool_keep(struct conn *c);
/* @c has c->addresses to go to, all of them judged: is there one that leads to c->host and c->port at one of those?
 * Then it is @c's: server, server_tls, and what c->rested_ms is next to. */
bool pool_take(struct conn *c);

/* Close those that have waited too long; those on which secrets of @mask have passed; all. */
void pool_tick(struct egress *e);
void pool_revoked(struct egress *e, uint32_t mask);
void pool_clear(struct egress *e);

#endif
