/* egress/way.h: the stages of a connection, and what follows on which
 *
 * A stage does one thing with a connection, knows no other stage, and ends with one of the words below. way.c alone
 * knows what comes next; its table lists all stages.
 */
#ifndef CLOCHE_EGRESS_WAY_H
#define CLOCHE_EGRESS_WAY_H

#include "egress/conn.h"

struct conn_stage {
    void (*client)(struct conn *c, uint32_t events);    /* NULL: nothing is read now; its end ends the connection */
    void (*server)(struct conn *c, uint32_t events);    /* NULL: nothing is expected from there */
    void (*late)(struct conn *c);                       /* c->deadline_ms has passed. NULL: the connection ends */
    /* Somebody may be asked about what this stage decides on (conn_ask.c): there is an answer, or other rules, so
     * decide again; it was refused. NULL: nobody is asked. */
    void (*again)(struct conn *c);
    void (*refused)(struct conn *c, uint32_t question, const struct decide_request *request,
                    const struct decide_verdict *verdict);
    /* Of several requests at a time some may wait while the others go on: does one wait for the answer to @question, do
     * @others for another one? NULL: the connection waits as a whole. */
    bool (*waits_for)(const struct conn *c, uint32_t question, bool *others);
    bool (*leads_out)(const struct conn *c);            /* the host's rules hold for it. NULL: it leads nowhere yet */
    void (*left)(struct conn *c);                       /* the connection ends here: wait for no answer any more */
    void (*free)(struct conn *c);                       /* what it holds; called in every stage, also twice */
};

extern const struct conn_stage stage_first, stage_asking, stage_resolving, stage_dialling, stage_parent, stage_inner,
    stage_leaf, stage_tls_up, stage_tls_down, stage_relay, stage_exchange, stage_h2, stage_linger, stage_ended;
extern const struct conn_stage *const conn_stages[CONN_STATES];

bool stage_leads_out(const struct conn *c);     /* always */

/* --- the words ---------------------------------------------------------------------------------------------------- */

/* It came, and has said nothing yet. */
void way_arrived(struct conn *c);
/* Its first bytes, or the ports that it came from, said where to, and the decision was yes. @literal: to this address,
 * instead of to what the name leads to. */
void way_allowed(struct conn *c, const struct ip *literal);
/* c->in begins with a request of HTTP/1. */
void way_request(struct conn *c);
/* A server is needed, at c->host and c->port. */
void way_dial(struct conn *c);
/* c->server is connected, to the host or to c->parent. */
void way_connected(struct conn *c);
/* Likewise, and it was kept from another client, with TLS where that is opened. */
void way_kept(struct conn *c);
/* Bytes for c->server reach c->host. */
void way_open(struct conn *c);
/* In the tunnel a ClientHello for c->host has come; or what cannot be read, and no rule wants to see it. */
void way_hello(struct conn *c);
void way_opaque(struct conn *c);
/* TLS that is opened: the server has proved who it is, and an exchange was waiting for it. */
void way_again(struct conn *c);
/* TLS that is opened: both ends have agreed on that version of HTTP. */
void way_agreed(struct conn *c, bool h2);

#endif
