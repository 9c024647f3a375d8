/* egress/parent.h: the proxy that stands between this one and the world (the policy's network.parent-proxy)
 *
 * Its address is the user's own word and may be anywhere, on the host's loopback too. Names that it is asked for are
 * resolved by it, not here; addresses that the sandbox names itself are judged before it is asked. To the sandbox it
 * is not there: it would open whatever it opens.
 */
#ifndef CLOCHE_EGRESS_PARENT_H
#define CLOCHE_EGRESS_PARENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "egress/control.h"
#include "match/host.h"
#include "match/ip.h"

#define PARENT_ADDRESSES_MAX 32
#define PARENT_AUTH_MAX 384

struct parent {
    struct host host;               /* n is 0: none */
    uint16_t port;
    char authorization[PARENT_AUTH_MAX];    /* value of Proxy-Authorization */
    size_t authorization_n;
    struct ip known[PARENT_ADDRESSES_MAX];  /* where it was found last */
    size_t n_known;
};

struct parents {
    struct parent http, https;      /* for plain HTTP, for everything else */
    struct buf no_proxy;
};

/* A URL of the policy's or, of the hosts without a proxy, a piece of the list. 0 or -1 with @err. */
int parents_add(struct parents *p, enum parent_part part, struct str text, struct err *err);
/* The one to ask for @host at @port; NULL: none, go straight. */
struct parent *parents_for(struct parents *p, bool plain_http, const struct host *host, uint16_t port);
/* Whether the sandbox names a parent, or an address where one was found. */
bool parents_named(const struct parents *p, const struct host *host, uint16_t port);
/* Whether one has that port: by whatever name or address of the host's it is known, its port here may be it. */
bool parents_port(const struct parents *p, uint16_t port);
bool parents_at(const struct parents *p, const struct ip *ip, uint16_t port);

#endif
