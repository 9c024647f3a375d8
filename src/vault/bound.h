/* vault/bound.h: the secrets of one run, with their values
 *
 * Made from the store while the store's key is still there; afterwards only these values and the CA's key are left.
 */
#ifndef CLOCHE_VAULT_BOUND_H
#define CLOCHE_VAULT_BOUND_H

#include "base/err.h"
#include "vault/client.h"
#include "vault/seal.h"
#include "vault/store.h"

#define LEASE_MS      60000         /* a lease lasts that long, or until the secret expires */
#define SIGN_SLACK_S  900           /* AWS's own */

/* One placeholder and what stands behind it. */
struct bound {
    enum vault_role role;
    char name[VAULT_NAME_MAX + 1];
    char id[33];
    char env[BINDING_WORD_MAX + 1];             /* "" none */
    uint8_t placeholder[VAULT_VALUE_MAX];
    size_t placeholder_n;
    struct secret value;                        /* as long. It stays when its use ends: it may be good elsewhere, or
                                                 * again, and what its hosts keep of it they say afterwards too */
    uint64_t expires;                           /* seconds since 1970; 0 never */
    bool revoked;                               /* it goes into nothing any more, */
    bool over;                                  /* nor then, its time being up, whatever the clock says later */
    struct binding binding;
};

struct bound_set {
    struct bound v[VAULT_SECRETS_MAX];
    size_t n;
};

/* Bind the stored secret @name for this run: its stored binding, or the built-in one called @builtin ("" as stored),
 * with the header @add ("" as stored) and the variable @env ("" as stored; none where a header is added). 0 with @first
 * and @count, the entries it became, or -1 with @err and @set as it was. */
int bound_add(struct bound_set *set, const struct store *store, const char *name, const char *builtin, const char *add,
              const char *env, size_t *first, size_t *count, struct err *err);

/* Which of @want go into @request, at @now (seconds since 1970). 0 with @err when none does, saying why. */
uint32_t bound_permitted(const struct bound_set *set, const struct binding_request *request, uint32_t want,
                         uint64_t now, struct err *err);
/* Which of @want its answer is to be searched for: all that are bound to its host, for whatever port, method and path
 * it is, and also those whose use has ended. Not AWS's secret access keys, which stay here. */
uint32_t bound_searched(const struct bound_set *set, const struct binding_request *request, uint32_t want);
/* How long a lease of @mask, which are to be put into a request, may last. */
uint32_t bound_lease_ms(const struct bound_set *set, uint32_t mask, uint64_t now);
/* The Authorization header for @request, signed with the credential at @id. 0 or -1 with @err. */
int bound_sign(const struct bound_set *set, const struct binding_request *request, uint32_t id,
               const struct vault_to_sign *what, uint64_t now, struct buf *out, struct err *err);

/* The value behind @id (a text) is put into nothing any more. Which entries, as a mask. */
uint32_t bound_revoke(struct bound_set *set, struct str id);
/* Likewise those whose time is up at @now. */
uint32_t bound_expire(struct bound_set *set, uint64_t now);
/* Seconds until the next one's time is up; 0: now, UINT64_MAX: never. */
uint64_t bound_next_expiry(const struct bound_set *set, uint64_t now);
void bound_free(struct bound_set *set);

#endif
