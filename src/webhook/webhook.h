/* webhook/webhook.h: cloche-webhook: tells one server of approvals (docs/gate.md)
 *
 * The warden says what was asked for and what was decided, and never waits for this process; nobody hears of an answer
 * but this process, so no answer decides anything. One thread, one event after the other (post/post.h); what does
 * not get through is tried again, later and later, then given up.
 */
#ifndef CLOCHE_WEBHOOK_WEBHOOK_H
#define CLOCHE_WEBHOOK_WEBHOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/loop.h"
#include "match/hook_url.h"
#include "post/post.h"
#include "proto/edge_gate.h"

#define WEBHOOK_TRIES     5     /* after 1, 4, 16, 64 seconds */
#define WEBHOOK_QUEUE     64    /* events; the oldest of who has most gives way */
#define WEBHOOK_BODY_MAX  8192
#define WEBHOOK_SECRET_MAX 1024
#define WEBHOOK_SIGNATURE (2 + 20 + 4 + SHA256_TEXT)

/* What it is told at its start; texts are slices of @text. */
struct webhook_settings {
    struct hook_url url;
    const char *page;           /* where the daemon is reached: "https://HOST[:PORT]"; "" not known */
    const char *ca;             /* a file of certificates to trust besides the host's own; "" none */
    uint64_t timeout_ms;        /* of one try */
    const uint8_t *secret;
    size_t n_secret;            /* 0: nothing is signed */
};

struct webhook_event {
    char id[EDGE_ID + 1];       /* the approval's */
    char caller[EDGE_CALLER_MAX + 1];   /* whose places it takes; all keys are one */
    const char *name;           /* "approval.requested" ... */
    uint64_t until_ms;          /* on the boot clock: telling it later is of no use; 0 always of use */
    unsigned tries;
    uint64_t due_ms;            /* on the loop's clock */
    struct buf body;
};

struct webhook {
    const struct webhook_settings *s;
    struct loop loop;
    struct post post;           /* one try */
    struct webhook_event queue[WEBHOOK_QUEUE];
    size_t n;                   /* the first one is under way, or waits for its time */
    struct timer time;
};

/* event.c: as JSON, without a parameter of what is asked for. 0 or -1: no memory, or too long. */
int webhook_body(const struct edge_approval *a, const char *name, const char *page, struct buf *out);
/* "t=SECONDS,v1=HEX": HMAC-SHA256 over "SECONDS.BODY". False: the library failed. Pure. */
bool webhook_sign(const void *secret, size_t n_secret, uint64_t seconds, const void *body, size_t n,
                  char out[WEBHOOK_SIGNATURE + 1]);

/* send.c */
void webhook_answered(struct post *p, const struct post_answer *a, const char *why);
void webhook_put(struct webhook *h, const struct edge_approval *a, const char *name);
void webhook_turn(struct webhook *h);           /* after each round: when the next is begun, or takes too long */

#endif
