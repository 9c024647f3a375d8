/* vault/sigv4.h: AWS Signature Version 4, in two halves
 *
 * cloche-egress makes the canonical request of what it is about to send and hashes it; the vault, which alone has the
 * secret access key, signs the hash for one date, region and service. So what leaves the vault is a signature: no key,
 * and none derived from it. ("Create a signed AWS API request", IAM User Guide.)
 *
 * Only the header form (Authorization) is signed anew; presigned URLs and bodies signed chunk by chunk
 * (STREAMING-AWS4-HMAC-SHA256-PAYLOAD) are not. Pure.
 */
#ifndef CLOCHE_VAULT_SIGV4_H
#define CLOCHE_VAULT_SIGV4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/sha256.h"
#include "base/str.h"
#include "vault/seal.h"

#define SIGV4_HASH       SHA256_SIZE
#define SIGV4_HEX        SHA256_TEXT
#define SIGV4_DATE       16         /* "20260102T030405Z" */
#define SIGV4_PARAMS_MAX 256        /* of a query */
#define SIGV4_SIGNED_MAX 64         /* signed headers */

/* The parts of a client's "AWS4-HMAC-SHA256 Credential=ID/DATE/REGION/SERVICE/aws4_request, SignedHeaders=...,
 * Signature=...". Borrowed from the text. */
struct sigv4_authorization {
    struct str id, day, region, service;
    struct str signed_headers;      /* "host;x-amz-date": lower case, sorted, "host" among them */
};

/* False when @text is not of that form. */
bool sigv4_parse(struct str text, struct sigv4_authorization *out);

struct sigv4_header { struct str name, value; };

struct sigv4_request {
    struct str method, target;              /* as sent: path and query */
    const struct sigv4_header *headers;     /* as sent, in order; one may come more than once */
    size_t n_headers;
    struct str signed_headers;              /* as in struct sigv4_authorization; each has to be among @headers */
    struct str payload;                     /* x-amz-content-sha256 when it is sent; else the body's SHA-256 in
                                             * lower-case hexadecimal */
    bool s3;                                /* the path is taken as it is sent, neither encoded again nor normalised */
};

/* Append the canonical request. False: malformed, above a limit, or a signed header is missing. */
bool sigv4_canonical(const struct sigv4_request *r, struct buf *out);
bool sigv4_hash(const void *p, size_t n, uint8_t out[SIGV4_HASH]);

/* Whether @date is "YYYYMMDDThhmmssZ" and within @slack_s of @now (seconds since 1970). */
bool sigv4_date_near(struct str date, uint64_t now, uint64_t slack_s);

/* The value of the Authorization header, NUL-terminated, for the canonical request whose hash is @canonical. The
 * vault's half: @id and @key are secret. False: no room, or no memory. */
bool sigv4_sign(const struct secret *id, const struct secret *key, struct str date, struct str region,
                struct str service, struct str signed_headers, const uint8_t canonical[SIGV4_HASH], struct buf *out);

#endif
