/* vault/ca.h: the installation CA and the certificates it issues
 *
 * ECDSA on P-256. The CA may sign end certificates only (pathlen 0, keyCertSign). A leaf names one host (DNS or IP),
 * serves servers only, and lives a day; its key is made with it.
 */
#ifndef CLOCHE_VAULT_CA_H
#define CLOCHE_VAULT_CA_H

#include "base/buf.h"
#include "base/err.h"
#include "match/host.h"
#include "vault/seal.h"

#define CA_LEAF_S   (24 * 3600)         /* a leaf lives that long */
#define CA_RENEW_S  (12 * 3600)         /* and is asked for again after that */

struct ca;

/* A new one, packed for the store. 0 or -1 with @err. */
int ca_make(struct secret *packed, struct err *err);
/* NULL with @err (vault.ca.damaged, vault.ca.expired). Free with ca_free. */
struct ca *ca_open(const struct secret *packed, struct err *err);
void ca_free(struct ca *ca);

int ca_pem(const struct ca *ca, struct buf *out, struct err *err);
/* The certificate's SHA-256, hexadecimal, and its end in seconds since 1970. */
int ca_describe(const struct ca *ca, char fingerprint[65], uint64_t *not_after, struct err *err);

/* DER: certificate, and PKCS#8 key into locked memory. */
int ca_issue(const struct ca *ca, const struct host *host, struct buf *certificate, struct secret *key,
             struct err *err);

#endif
