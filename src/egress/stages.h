/* egress/stages.h: how the stages of a connection begin: for way.c, and nobody else calls these (tools/checksrc.py)
 */
#ifndef CLOCHE_EGRESS_STAGES_H
#define CLOCHE_EGRESS_STAGES_H

#include "egress/way.h"

/* conn_first.c: a connection to a port that a rule names has come. */
void conn_port_arrived(struct conn *c);
/* conn_dial.c: the decision was yes: find addresses and dial. @literal: the one address, instead of a name to resolve.
 */
void conn_dial(struct conn *c, const struct ip *literal);
/* conn_parent.c: c->server leads to c->parent: ask it to dial. */
void parent_begin(struct conn *c);
/* conn_inner.c: the tunnel is open, and the client knows. */
void inner_begin(struct conn *c);
/* conn_relay.c: let the bytes pass, first those that were read already. */
void relay_begin(struct conn *c);

/* conn_http.c: the client speaks HTTP from c->in on, in a tunnel with c->server; or both ends of TLS that is opened are
 * ready, or c->failed. */
void http_begin(struct conn *c);
void http_begin_opened(struct conn *c);
/* c->server is there, for the request that waits; what the sandbox asked for goes nowhere. */
void http_dialled(struct conn *c);
void http_failed(struct conn *c, const struct answer *answer);

/* conn_h2.c: both ends of an opened TLS connection agreed on HTTP/2; or the client did, and c->failed. */
void h2_begin(struct conn *c);

/* conn_tls.c: c->in begins with a proper ClientHello for c->host; in a tunnel c->server is there already. */
void tls_begin(struct conn *c);
/* c->server is connected: now TLS with it. c->server and c->server_tls came from the pool. */
void tls_up_begin(struct conn *c);
void tls_up_again(struct conn *c);
/* It goes nowhere: the client is told when its handshake is done. */
void tls_failed(struct conn *c, const struct answer *answer);

#endif
