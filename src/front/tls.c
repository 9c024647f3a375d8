/* front/tls.c: certificate and key of the front for strangers
 *
 * The library asks for them at each handshake, so that new ones (a reload) count from the next connection on. Those
 * before stay until the ones after the next come: a handshake that has begun still uses them.
 */
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "front/front.h"

#define CHAIN_MAX 16

struct identity {
    gnutls_pcert_st certs[CHAIN_MAX];
    unsigned n;
    gnutls_privkey_t key;
};

static struct identity *now, *before;       /* NULL: none */

static void
forget(struct identity *i)
{
    for (unsigned k = 0; i != NULL && k < i->n; k++)
        gnutls_pcert_deinit(&i->certs[k]);
    if (i != NULL && i->key != NULL)
        gnutls_privkey_deinit(i->key);
    free(i);
}

static int
tls_refuse(struct err *err, const char *what, int why)
{
    err_set(err, ERR_USAGE, "serve.tls.refused", "%s: %s", what, gnutls_strerror(why));
    return err_hint(err, "tls-cert is the certificate first, then those that signed it; tls-key its own key, without a "
                    "password");
}

/* Whether the two belong together. */
static int
match(const gnutls_datum_t *cert, const gnutls_datum_t *key, struct err *err)
{
    gnutls_certificate_credentials_t both;
    int r = gnutls_certificate_allocate_credentials(&both);

    if (r < 0)
        return tls_refuse(err, "tls-cert", r);
    r = gnutls_certificate_set_x509_key_mem(both, cert, key, GNUTLS_X509_FMT_PEM);
    gnutls_certificate_free_credentials(both);
    return r < 0 ? tls_refuse(err, "tls-cert and tls-key", r) : 0;
}

static int
load(struct identity *i, const gnutls_datum_t *cert, const gnutls_datum_t *key, struct err *err)
{
    unsigned n = CHAIN_MAX;
    int r;

    if (match(cert, key, err) < 0)
        return -1;
    r = gnutls_pcert_list_import_x509_raw(i->certs, &n, cert, GNUTLS_X509_FMT_PEM,
                                          GNUTLS_X509_CRT_LIST_FAIL_IF_UNSORTED);
    if (r < 0)
        return tls_refuse(err, "tls-cert", r);
    i->n = n;
    r = gnutls_privkey_init(&i->key);
    if (r == 0)
        r = gnutls_privkey_import_x509_raw(i->key, key, GNUTLS_X509_FMT_PEM, NULL, 0);
    return r < 0 ? tls_refuse(err, "tls-key", r) : 0;
}

int
tls_take(int pem, uint32_t cert_n, uint32_t key_n, struct err *err)
{
    size_t total = (size_t)cert_n + key_n;
    cleanup_free uint8_t *text = calloc(1, total + 2);
    struct identity *new = calloc(1, sizeof(*new));
    gnutls_datum_t cert, key;
    int r = -1;

    if (text == NULL || new == NULL || io_read_full(pem, text, cert_n) < 0 ||
        io_read_full(pem, text + cert_n + 1, key_n) < 0)
        err_set(err, ERR_SYSTEM, "serve.tls.read", "the certificate did not arrive");
    else {
        cert = (gnutls_datum_t){ text, cert_n };
        key = (gnutls_datum_t){ text + cert_n + 1, key_n };
        r = load(new, &cert, &key, err);
    }
    if (text != NULL)
        explicit_bzero(text, total + 2);
    if (r < 0) {
        forget(new);
        return -1;
    }
    forget(before);
    before = now;
    now = new;
    return 0;
}

int
tls_identity(gnutls_session_t session, const struct gnutls_cert_retr_st *info, gnutls_pcert_st **certs, unsigned *n,
             gnutls_ocsp_data_st **ocsp, unsigned *n_ocsp, gnutls_privkey_t *key, unsigned *flags)
{
    (void)session;
    (void)info;
    if (now == NULL)
        return -1;
    *certs = now->certs;
    *n = now->n;
    *key = now->key;
    *ocsp = NULL;
    *n_ocsp = 0;
    *flags = 0;
    return 0;
}
