/* egress/inject.h: secrets into the requests of one client connection, and out of the answers
 *
 * The sandbox knows placeholders. What the vault leases for a request takes their place where the binding says: in the
 * head (inject_place.h), in the body; and the answer is searched for the values, in every form of swap.h, which become
 * placeholders again. So that they can be found, the answer is asked for uncompressed and whole, and unpacked when it
 * is compressed all the same.
 *
 * A placeholder in a request to a host that its secret is not bound to is refused: nobody sends one there by accident.
 * What follows a WebSocket handshake is treated as bodies and answers are, where a secret concerns its host.
 *
 * It is the filter (exchange.h) of one exchange, one request at a time, or of one stream of HTTP/2 (h2.h):
 *
 *      inject_request ─► INJECT_GO | INJECT_REFUSE | INJECT_WAIT ─► ready() ─► inject_refused() or go
 *      then the exchange calls inject_filter, with the struct inject as its context
 */
#ifndef CLOCHE_EGRESS_INJECT_H
#define CLOCHE_EGRESS_INJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "egress/exchange.h"
#include "egress/grpc_cut.h"
#include "vault/client.h"

#define INJECT_WAIT_MS 15000    /* for the vault's answers to one request */
#define INJECT_WHOLE_MAX 32     /* bodies that are collected at a time, of EXCHANGE_WHOLE_MAX bytes each */

struct inject_ws;
struct swap;
struct unpack;

struct inject_owner {
    /* The vault has answered. */
    void (*ready)(void *ctx);
    /* For the log: the secret @name (may be empty) was on its way to where it must not go (@critical), or is not to be
     * had. @reason is a stable word; NULL: its value takes the place of a placeholder in a request's head. */
    void (*note)(void *ctx, const char *reason, const char *name, bool critical);
    /* ... its value was in an answer, and is not in what the client gets of it. Each secret once in a connection's
     * life, as of those that are put into requests. */
    void (*scrubbed)(void *ctx, const char *name);
};

/* Ids of secrets of which the log knows that their values went out, and were kept out of an answer. */
struct inject_told { uint32_t out, in; };

/* Fields are inject's. */
struct inject {
    struct vault_client *vault;             /* NULL: this run has no secrets, and nothing is done */
    const struct inject_owner *owner;
    void *ctx;
    const uint64_t *now_ms;
    uint32_t concerned;                     /* ids of the secrets that may go to this request's host, port and scheme */
    uint32_t known;                         /* ... that are bound to its host: the answer is searched for them */
    uint32_t seen;                          /* ... whose placeholder is in its head, or whose header is added */
    uint32_t added;                         /* ... the latter */
    uint32_t kept;                          /* ... that do not go to what its fields say that it means (meant.h) */
    uint32_t used;                          /* ids of values that any request of the connection has had */
    struct inject_told *told;               /* the connection's */
    uint32_t ticket;                        /* a question to the vault is open */
    uint64_t late_ms;                       /* ... and is not waited for longer than that */
    struct vault_lease *lease;
    struct swap *up, *down;                 /* of the body, of the answer; NULL: it passes unseen */
    struct grpc_cut up_cut, down_cut;       /* where they may end: a call of gRPC over HTTP/2 */
    uint32_t forbidden;                     /* ids that may not be in the body */
    struct unpack *unpack;
    struct inject_ws *ws;                   /* frames are looked at; NULL: no WebSocket, or no secret concerned */
    bool trailers;                          /* set by the owner: an answer's trailers pass, and are searched too */
    bool sign;                              /* it bears AWS's signature, made with placeholders: to be made anew */
    uint32_t sign_id;                       /* of the access key */
    bool ids_alone;                         /* the answer is searched for AWS's access key ids and nothing else */
    bool judged;                            /* the body was decided on as it is: no value goes into it. Set by the owner
                                             * before inject_request() */
    bool can_wait;                          /* the exchange knows exchange_edit.wait. Set by who owns both */
    bool sign_whole, collecting, hashed;    /* its body has to be known for that; comes in; its hash is: */
    uint8_t hash[32];
    struct binding_request place;           /* where it goes; its strings are in @head */
    struct buf head;                        /* of the request that is to be signed */
    char authorization[VAULT_AUTHORIZATION_MAX + 1];    /* the new one */
    struct buf text;                        /* what the edit under way points to */
    const char *refuse, *detail;
};

/* @vault may be NULL. @told: of all that belongs to one connection, 0 at first. @now_ms: the loop's clock. Both are
 * borrowed. */
void inject_init(struct inject *j, struct vault_client *vault, const struct inject_owner *owner, void *ctx,
                 struct inject_told *told, const uint64_t *now_ms);
/* Wipes what it has. */
void inject_free(struct inject *j);

enum inject_result { INJECT_GO, INJECT_WAIT, INJECT_REFUSE };
/* The next request, whose head was read and allowed. @r says where it goes. */
enum inject_result inject_request(struct inject *j, const struct http1_head *head, const struct binding_request *r);
/* Stable word of why not, with text in *@detail; NULL: it may go. After INJECT_REFUSE, or in ready(). */
const char *inject_refused(const struct inject *j, const char **detail);

/* When the vault's answer is late, on the loop's clock; 0: none is waited for. From then on inject_late() may be
 * called, once: the request is refused (vault-slow), ready() is not called any more. */
uint64_t inject_deadline(const struct inject *j);
void inject_late(struct inject *j);

extern const struct exchange_filter inject_filter;

#endif
