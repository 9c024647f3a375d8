/* egress/inject_sign.h: what of a request AWS Signature Version 4 is made over, as it will be sent (vault/sigv4.h)
 *
 * Pure. The signature itself is the vault's.
 */
#ifndef CLOCHE_EGRESS_INJECT_SIGN_H
#define CLOCHE_EGRESS_INJECT_SIGN_H

#include "base/buf.h"
#include "egress/exchange.h"
#include "wire/http1.h"
#include "vault/sigv4.h"

struct inject_sign {
    struct sigv4_authorization claim;       /* of the client's Authorization field */
    struct str date;                        /* x-amz-date */
    uint8_t canonical[SIGV4_HASH];
    char signed_headers[1024];
};

/* How a request says what its body is. */
enum inject_payload {
    INJECT_PAYLOAD_SAID,    /* x-amz-content-sha256: a hash, or a word (UNSIGNED-PAYLOAD and with -TRAILER) that stands
                             * for bodies that are not signed; no body at all */
    INJECT_PAYLOAD_HASH,    /* by a hash in the signature alone: the whole body has to be known first */
    INJECT_PAYLOAD_PIECES,  /* each piece is signed, with the signature of the piece before: not made anew */
};
enum inject_payload inject_sign_payload(const struct http1_head *head);

/* Which of the fields that ask for compressed or partial answers are not sent. */
enum inject_asked {
    INJECT_ASKED_AS_IT_IS,
    INJECT_ASKED_PLAINLY,   /* those for compressed ones */
    INJECT_ASKED_WHOLE,     /* both */
};
/* Into the edit of a request whose answer has to come readable, and whole: not for INJECT_ASKED_AS_IT_IS. */
void inject_leave_out(enum inject_asked asked, struct exchange_edit *edit);

/* Whether @head has an Authorization of that kind; @out->claim says what is in it. */
bool inject_sign_claim(const struct http1_head *head, struct inject_sign *out);

/* The rest of @out. @host: the Host field as it is sent. @token, when it has bytes, is what x-amz-security-token is
 * sent with. @body: the SHA-256 of the body, for INJECT_PAYLOAD_HASH; else NULL. NULL, or why it cannot be signed. */
const char *inject_sign_prepare(const struct http1_head *head, struct str host, struct str token,
                                enum inject_asked asked, const uint8_t *body, struct inject_sign *out);

#endif
