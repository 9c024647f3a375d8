/* vault/client.h: cloche-egress's end of the vault
 *
 * The vault is another process. Over one SOCK_SEQPACKET socket it first says which placeholders this run has and what
 * they are bound to (never a value), then answers questions: the values for one request, a certificate for one host, a
 * signature. Every question is answered, in any order; the answer comes to the callback from vault_client_ready().
 * Nothing here blocks but vault_client_new(). One thread.
 *
 * Values live in struct vault_lease only, which the receiver frees (and so wipes) when the request's response is
 * through or the lease's time is over, whichever is first.
 */
#ifndef CLOCHE_VAULT_CLIENT_H
#define CLOCHE_VAULT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "vault/binding.h"

#define VAULT_SECRETS_MAX     16        /* placeholders of one run; ids are below it */
#define VAULT_NAME_MAX        64        /* bytes of a secret's name */
#define VAULT_VALUE_MIN       8         /* bytes of a value, and so of its placeholder */
#define VAULT_VALUE_MAX       4096
#define VAULT_LEAF_MAX        4096      /* bytes of a certificate, of a key */
#define VAULT_PATH_MAX        8192      /* bytes of a request's path; a longer one gets no lease */
#define VAULT_DATE_MAX        16        /* bytes of a request's date */
#define VAULT_AUTHORIZATION_MAX 1024    /* bytes of an Authorization header's value */
#define VAULT_QUESTIONS_MAX   4096      /* unanswered at a time */

enum vault_role {
    VAULT_ROLE_VALUE,           /* leased: takes its placeholder's place */
    VAULT_ROLE_AWS_ID,          /* access key id: comes back in vault_ask_signature's answer; leased for the search of
                                 * answers alone */
    VAULT_ROLE_AWS_KEY,         /* secret access key: never leaves the vault */
    VAULT_ROLE_AWS_TOKEN,       /* session token: leased, into the header x-amz-security-token */
};

/* One placeholder of this run. The three parts of an AWS credential are three of them with one binding and @name. */
struct vault_secret {
    uint32_t id;                        /* its place in the array, and its bit in a mask */
    enum vault_role role;
    char name[VAULT_NAME_MAX + 1];
    uint8_t placeholder[VAULT_VALUE_MAX];
    size_t n;                           /* bytes of placeholder, and of the value */
    struct binding binding;
    bool revoked;                       /* ... or its time is up: */
    bool expired;
};

struct vault_lease {
    uint32_t mask;                                      /* which secrets may go into the request */
    uint32_t search;                                    /* which it has values of: those, and what answers of the host
                                                         * are only to be searched for */
    const uint8_t *value[VAULT_SECRETS_MAX];            /* by id; NULL: not leased. As long as the placeholder */
    uint64_t expires_ms;                                /* CLOCK_MONOTONIC; not to be used from then on */
    size_t size;                                        /* of the memory below */
    uint8_t memory[];
};

/* A certificate for one host, issued by the installation CA. DER. */
struct vault_leaf {
    const uint8_t *certificate, *key;                   /* the key is PKCS#8; wiped when the callback returns */
    size_t certificate_n, key_n;
    uint64_t renew_ms;                                  /* CLOCK_MONOTONIC; ask again from then on */
};

struct vault_client;

/* @lease is the callback's: vault_lease_free(). NULL with @why when there is none: the request is then refused, for why
 * may be that the secret is revoked (vault.revoked), expired (vault.expired), not bound to this request
 * (vault.not-bound), or that the vault has ended (vault.ended). */
typedef void vault_lease_fn(void *ctx, struct vault_lease *lease, const struct err *why);
/* @leaf lives until the callback returns. NULL with @why. */
typedef void vault_leaf_fn(void *ctx, const struct vault_leaf *leaf, const struct err *why);
/* @authorization is the header's value, NULL with @why; it lives until the callback returns. */
typedef void vault_signature_fn(void *ctx, const char *authorization, const struct err *why);

struct vault_client_events {
    void *ctx;
    /* Those secrets are no longer, revoked or expired: @mask is of ids. Leases that hold one are to be dropped and
     * connections that used one closed, now. vault_client_secrets() has @revoked set already. May be called from
     * vault_client_ready() only. */
    void (*revoked)(void *ctx, uint32_t mask);
};

/* Take over the socket @fd (owned from here on, also on failure; becomes non-blocking) and read what the vault says
 * first; up to 10 s. NULL with @err. @events is copied. */
struct vault_client *vault_client_new(int fd, const struct vault_client_events *events, struct err *err);
/* Callbacks that wait are called with vault.ended. NULL is fine. */
void vault_client_free(struct vault_client *c);

/* To be watched for reading; -1 once the vault has ended. */
int vault_client_fd(const struct vault_client *c);
/* Read what is there and call back. 0, or -1 with @err when the vault ended or broke the dialogue: every callback that
 * waited has then been called with vault.ended, the fd is closed, and every later question fails at once. */
int vault_client_ready(struct vault_client *c, struct err *err);

/* The run's placeholders, @n of them. They live as long as @c and never move. */
const struct vault_secret *vault_client_secrets(const struct vault_client *c, size_t *n);
/* Ids (as a mask) of the secrets that may go to @host at @port. Revoked ones
 * too: their placeholders are still refused. */
uint32_t vault_client_concerned(const struct vault_client *c, bool tls, const struct host *host, uint16_t port);

/* Ids of those that are bound to @host, whatever the port, method and path: answers of the host are searched for them,
 * as a host may say to one request what it was told by another. */
uint32_t vault_client_known(const struct vault_client *c, const struct host *host);

/* Ask. A ticket (never 0) for vault_forget(), or 0 with @err (vault.ended, vault.busy; vault.not-bound: longer than the
 * vault takes) and the callback never called. The callback is never called before the function returns. */

/* The values of @want (a mask of ids) for @request; the lease may hold fewer than @want: in its mask exactly those
 * whose binding permits the request, and beside them those that are bound to its host. When there is none of either
 * there is no lease (vault.not-bound). */
uint32_t vault_ask_lease(struct vault_client *c, const struct binding_request *request, uint32_t want,
                         vault_lease_fn *fn, void *ctx, struct err *err);
uint32_t vault_ask_leaf(struct vault_client *c, const struct host *host, vault_leaf_fn *fn, void *ctx, struct err *err);

/* Sign @request anew with the credential whose access key id is the secret @id. @date is x-amz-date
 * ("20260102T030405Z"; refused when 15 minutes off), @canonical the SHA-256 of the canonical request (sigv4.h). */
struct vault_to_sign {
    struct str date, region, service, signed_headers;
    const uint8_t *canonical;           /* 32 bytes */
};
uint32_t vault_ask_signature(struct vault_client *c, const struct binding_request *request, uint32_t id,
                             const struct vault_to_sign *what, vault_signature_fn *fn, void *ctx, struct err *err);

/* The one who asked is gone: the callback will not be called; what comes is wiped. A ticket that was answered, or 0, is
 * no error. */
void vault_forget(struct vault_client *c, uint32_t ticket);

/* Wipe and free. NULL is fine. */
void vault_lease_free(struct vault_lease *lease);

#endif
