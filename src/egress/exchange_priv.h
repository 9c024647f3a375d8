/* egress/exchange_priv.h: what the files of the exchange share */
#ifndef CLOCHE_EGRESS_EXCHANGE_PRIV_H
#define CLOCHE_EGRESS_EXCHANGE_PRIV_H

#include "egress/exchange.h"

#define EXCHANGE_CHUNK (64 * 1024)          /* read at once */
#define EXCHANGE_HIGH  (64 * 1024)          /* with so much on its way out nothing more is understood */

/* exchange_up.c, exchange_down.c: understand some of the @n bytes; how many are done with. */
size_t exchange_take_request(struct exchange *x, const uint8_t *p, size_t n);
size_t exchange_take_response(struct exchange *x, const uint8_t *p, size_t n);
/* Their bodies' filters have room again. */
void exchange_resume_request(struct exchange *x);
void exchange_resume_response(struct exchange *x);
/* Ask the filter about a collected body, and send it. */
void exchange_send_whole(struct exchange *x);
/* A request whose body the owner sees: do what the owner said. */
void exchange_follow_gathered(struct exchange *x);
void exchange_client_ended(struct exchange *x);
/* @properly: not by an error */
void exchange_server_ended(struct exchange *x, bool properly);

/* exchange_body.c */
void exchange_put(struct exchange *x, struct exchange_way *w, const void *p, size_t n);
/* What follows an upgrade. */
void exchange_put_raw(struct exchange *x, struct exchange_way *w, const void *p, size_t n);
/* The body that @head announces passes @w from now on, and goes out framed as @out. */
enum http1_result exchange_body_begin(struct exchange_way *w, const struct http1_head *head, enum http1_framing out,
                                      bool filtered);
/* HTTP1_OK: all of it has passed; HTTP1_MORE; or a fault, after which x->result may say more. */
enum http1_result exchange_body_pass(struct exchange *x, struct exchange_way *w, const uint8_t *p, size_t n,
                                     size_t *used);
/* Offer again what the filter did not take. */
enum http1_result exchange_body_resume(struct exchange *x, struct exchange_way *w);
/* The peer closed; HTTP1_OK when that ends the body. */
enum http1_result exchange_body_close(struct exchange *x, struct exchange_way *w);

/* exchange.c */
void exchange_fail(struct exchange *x, unsigned status, const char *phrase, const char *reason, const char *detail);
void exchange_break(struct exchange *x);

static inline bool
exchange_waits(const struct exchange_way *w)
{
    return w->held.n > 0 || w->held_last || w->out.n >= EXCHANGE_HIGH;
}

#endif
