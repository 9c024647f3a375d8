/* warden/sign.h: requests to sign, and the process that has the key (docs/signing.md)
 *
 * Each is judged by the signing policy here and, what needs no record, by cloche-signer once more. What was signed is
 * on the disk before the signer is asked, so limits hold whoever is killed when. What needs a person becomes an
 * approval (approvals.h), of the tool sign_transaction: its digest is of all fields and of the hash that will be
 * signed, so who comes with the same request's id and another transaction gets nothing.
 */
#ifndef CLOCHE_WARDEN_SIGN_H
#define CLOCHE_WARDEN_SIGN_H

#include "proto/edge_sign.h"
#include "sign/address.h"
#include "sign/policy.h"
#include "sign/typed.h"
#include "warden/approvals.h"

#define SIGN_TOOL       "sign_transaction"
#define SIGN_TOOL_TEXT  "sign_message"
#define SIGN_TOOL_TYPED "sign_typed_data"
#define SIGN_PERSON_S   300             /* a person has so long */
#define SIGN_KNOWN_MS   600000          /* what is over is known so long, to say so */
#define SIGN_WAITS_MAX  64              /* for the signer, which has one of them */
#define SIGN_TURN_MS    60000           /* one waits so long for its turn, */
#define SIGN_MADE_MS    30000           /* and the signer, whose token or server is given less, has so long for it */
#define SIGN_PENDINGS   (2 * APPROVALS_MAX)

/* What is to be signed: a transaction, with what it points to; or a text. */
struct sign_tx {
    enum sign_form form;
    struct tx tx;
    bool given;                         /* its nonce is one that we chose */
    uint8_t *data;                      /* owned */
    struct buf access;                  /* of the access list */
    char *text;                         /* of a message: owned; */
    struct typed typed;                 /* of typed data */
    char hash[2 * TX_HASH + 1];         /* what is signed */
};

/* What waits for a person. */
struct sign_pending {
    struct sign_pending *next;
    char request[SIGN_REQUEST_MAX + 1];
    char approval[EDGE_ID + 1], digest[SHA256_TEXT + 1], caller[EDGE_CALLER_MAX + 1], box[EDGE_ID + 1];
    uint8_t address[TX_ADDRESS];        /* of the account that it was asked of */
    uint64_t created_ms, until_ms;      /* on the wall clock */
    uint64_t forget_ms;                 /* on the monotonic one */
    struct sign_tx what;
    struct sign_verdict verdict;
    json_t *shown, *call;               /* the request as it came; what it calls, or NULL */
};

/* What waits for the signer, the first of which it was asked for. */
struct sign_wait {
    struct sign_wait *next;
    uint32_t number;
    struct buf frame;                   /* the question, until it is sent */
    bool sent;                          /* it may have signed */
    uint64_t until_ms;
    struct asker to;                    /* ticket 0: nobody waits any more */
    bool confirmed;
    enum sign_form form;
    char request[SIGN_REQUEST_MAX + 1], hash[2 * TX_HASH + 1], box[EDGE_ID + 1], who[EDGE_WHO_MAX + 1];
    char to_text[SIGN_ADDRESS_TEXT + 1];
    uint64_t chain, nonce;
    bool counts;                        /* that nonce does, until it is given back, and these are known: */
    bool was_free;                      /* it was one of those that came to nothing; */
    bool leaps;                         /* its caller said it, and left others out; */
    uint64_t settled;                   /* the next, but for those that wait: below it there may be signatures */
    struct sign_verdict verdict;
};

struct signing {
    struct watch edge;
    struct packet_queue out;
    struct msg_gate gate;
    bool ready;                         /* it has said whose key it has */
    uint8_t address[TX_ADDRESS];
    struct sign_policy policy;
    struct sign_wait *waits;            /* the oldest first */
    size_t n_waits;
    struct timer late;                  /* the time of one of them may be over */
    uint32_t numbers;
    struct sign_pending *pendings;      /* the newest first */
};

/* sign_edge.c: the signer. */
int sign_open(struct warden *w, struct err *err);
int sign_on_edge(struct warden *w, const struct nothing *m);       /* the launcher's word */
void sign_front_gone(struct warden *w, uint32_t front);
/* Whether one more may wait for the signer: to be asked before what is used up. 0 or -1 with @err. */
int sign_room(struct warden *w, struct err *err);
/* Have it signed, and answer @to. 0, or -1 with @err: it was not asked. */
int sign_now(struct warden *w, const char *request, const char *box, const struct sign_tx *what,
             const struct sign_verdict *verdict, bool confirmed, struct err *err);

/* sign.c: one request. */
struct sign_asked {
    const char *request;
    const struct ask_sign *m;           /* NULL: a text */
    json_t *shown;                      /* as it came */
    struct sign_tx what;
    bool value_well, value_negative;
    const char *failure;                /* why it cannot be signed even if it may; NULL */
    char text[160];                     /* of that */
};
/* What @m says, with the policy's defaults; @nonce where it says none. 0 or -1 with @err: no memory. */
int sign_read(struct warden *w, const struct ask_sign *m, uint64_t nonce, struct sign_asked *out, struct err *err);
/* The same of a text. */
int sign_read_text(const struct ask_sign_text *m, struct sign_asked *out, struct err *err);
void sign_tx_free(struct sign_tx *t);
void sign_asked_free(struct sign_asked *a);
/* By the policy and what is on record. 0 or -1 with @err. */
int sign_verdict(struct warden *w, const char *request, const struct sign_tx *what, struct sign_verdict *out,
                 struct err *err);
/* The same of a request, with what its texts could not say. */
int sign_verdict_asked(struct warden *w, const struct sign_asked *a, struct sign_verdict *out, struct err *err);
/* The call in it, as people read it; NULL: none. */
json_t *sign_call(const struct tx *tx);
void sign_answer(struct warden *w, struct asker to, bool done, json_t *body);      /* @body is taken */
json_t *sign_decision(const struct sign_verdict *v);
/* A result that is no signature. */
void sign_answer_no(struct warden *w, struct asker to, const char *error, const struct sign_verdict *v, bool confirmed);
/* An entry of the audit record, whose summary is @summary. */
void sign_entry(struct audit_entry *e, enum audit_type type, enum audit_severity severity, const char *summary,
                const char *request);

/* sign_ask.c: the approval of one that waits, while that is asked for or was given and not used; NULL: it is over. */
struct approval *sign_approval(struct warden *w, const struct sign_pending *p);

/* sign_nonce.c: whether @nonce is so far beyond @next that only a person has all others go on from there: transactions
 * behind a gap are not valid until somebody fills it. */
#define SIGN_NONCE_AHEAD 1024
bool sign_nonce_is_far(uint64_t nonce, uint64_t next);
/* Of a request that says none. One that waits keeps its own when it comes again; others do not take it. */
uint64_t sign_nonce_next(struct warden *w, const char *request, uint64_t chain, struct err *err);
/* The nonce of @what is used, unless it is given back. Who has one signed that is further on knows that those before it
 * are used, too. 0 or -1. */
int sign_nonce_use(struct warden *w, struct sign_wait *wait, const struct sign_tx *what, struct err *err);
/* There is a signature with its nonce, or perhaps. */
void sign_nonce_done(struct warden *w, const struct sign_wait *wait);
/* There is none, so another may have it, unless one that waits has it too; and all is as if nobody had said it. */
void sign_nonce_back(struct warden *w, const struct sign_wait *wait);

#endif
