/* egress/tls_ctx.c: what all TLS ends of the process share: settings, trust, certificates, sessions to resume */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "egress/tls_priv.h"
#include "wall/trust.h"

#define SUITES_12 "ECDHE+AESGCM:ECDHE+CHACHA20"     /* TLS 1.3 has no others than such */
/* the cheapest of them first: its SHA-256 goes a dozen times through every handshake */
#define SUITES_13 "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
#define TICKETS   1
#define LEAF_MAX  4096

/* Say what OpenSSL says; its queue is empty afterwards. */
static int
fail(struct err *err, const char *code, const char *what)
{
    const char *why = ERR_reason_error_string(ERR_peek_last_error());

    ERR_clear_error();
    return err_set(err, ERR_SYSTEM, code, "%s: %s", what, why != NULL ? why : "TLS library failed");
}

static SSL_CTX *
settings(const SSL_METHOD *method)
{
    SSL_CTX *x = SSL_CTX_new(method);
    char groups[] = "X25519:P-256:P-384:P-521";

    if (x == NULL)
        return NULL;
    SSL_CTX_set_security_level(x, 2);
    SSL_CTX_set_options(x, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(x, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(x, 1);       /* a record in one call: not its head, then the rest */
    if (SSL_CTX_set_min_proto_version(x, TLS1_2_VERSION) != 1 || SSL_CTX_set_cipher_list(x, SUITES_12) != 1 ||
        SSL_CTX_set_ciphersuites(x, SUITES_13) != 1 || SSL_CTX_set1_groups_list(x, groups) != 1) {
        SSL_CTX_free(x);
        return NULL;
    }
    return x;
}

struct tls_ctx *
tls_ctx_new(struct err *err)
{
    struct tls_ctx *x;

    /* the configuration file of the host's library could load code and lower what is set here */
    if (OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) != 1) {
        fail(err, "egress.tls", "start the TLS library");
        return NULL;
    }
    x = calloc(1, sizeof(*x));
    if (x == NULL) {
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
        return NULL;
    }
    x->server = settings(TLS_server_method());
    x->client = settings(TLS_client_method());
    x->bio = tls_bio_method();
    if (x->server == NULL || x->client == NULL || x->bio == NULL) {
        fail(err, "egress.tls", "TLS settings");
        tls_ctx_free(x);
        return NULL;
    }
    SSL_CTX_set_session_cache_mode(x->server, SSL_SESS_CACHE_OFF);      /* tickets only: the client keeps them */
    SSL_CTX_set_num_tickets(x->server, TICKETS);
    SSL_CTX_set_options(x->server, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_mode(x->server, SSL_MODE_NO_AUTO_CHAIN);    /* a leaf goes out alone: no issuer is to be looked for */
    SSL_CTX_set_alpn_select_cb(x->server, tls_on_alpn, NULL);
    SSL_CTX_set_session_cache_mode(x->client, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(x->client, tls_on_session);
    SSL_CTX_set_verify(x->client, SSL_VERIFY_PEER, NULL);
    return x;
}

static void
leaf_clear(struct tls_leaf *leaf)
{
    X509_free(leaf->cert);
    EVP_PKEY_free(leaf->key);
    memset(leaf, 0, sizeof(*leaf));
}

void
tls_ctx_free(struct tls_ctx *x)
{
    if (x == NULL)
        return;
    for (size_t i = 0; i < TLS_LEAVES_MAX; i++)
        leaf_clear(&x->leaves[i]);
    for (size_t i = 0; i < TLS_SESSIONS_MAX; i++)
        SSL_SESSION_free(x->sessions[i].session);
    SSL_CTX_free(x->server);
    SSL_CTX_free(x->client);
    BIO_meth_free(x->bio);
    free(x);
}

/* --- trust ------------------------------------------------------------------------------------------------------- */

int
tls_trust_file(struct tls_ctx *x, const char *path, struct err *err)
{
    X509_LOOKUP *files = X509_STORE_add_lookup(SSL_CTX_get_cert_store(x->client), X509_LOOKUP_file());
    struct stat st;

    if (stat(path, &st) < 0)
        return err_sys(err, errno, "egress.trust", "%s", path);
    if (!S_ISREG(st.st_mode) || st.st_size > TRUST_MAX)
        return err_set(err, ERR_LIMIT, "egress.trust", "%s: not a file of certificates of at most %u MiB", path,
                       TRUST_MAX >> 20);
    ERR_clear_error();
    if (files == NULL || X509_load_cert_file(files, path, X509_FILETYPE_PEM) <= 0) {
        ERR_clear_error();
        err_set(err, ERR_POLICY, "egress.trust", "%s: no certificates in PEM form that can be read", path);
        return err_hint(err, "a file of trusted certificates begins with -----BEGIN CERTIFICATE-----");
    }
    return 0;
}

int
tls_trust_system(struct tls_ctx *x, struct err *err)
{
    const char *bundle = trust_bundle();

    if (bundle == NULL)
        err_set(err, ERR_UNSUPPORTED, "egress.trust", "this host has no bundle of trusted certificates");
    else if (tls_trust_file(x, bundle, err) == 0)
        return 0;
    return err_hint(err, "it comes with the package ca-certificates; update-ca-certificates writes it");
}

/* --- certificates for the sandbox -------------------------------------------------------------------------------- */

static struct tls_leaf *
leaf_find(struct tls_ctx *x, const char *name)
{
    for (size_t i = 0; i < TLS_LEAVES_MAX; i++)
        if (x->leaves[i].cert != NULL && strcmp(x->leaves[i].name, name) == 0)
            return &x->leaves[i];
    return NULL;
}

/* Its own, a free one, or the longest unused. */
static struct tls_leaf *
leaf_place(struct tls_ctx *x, const char *name)
{
    struct tls_leaf *best = leaf_find(x, name);

    for (size_t i = 0; i < TLS_LEAVES_MAX && best == NULL; i++)
        if (x->leaves[i].cert == NULL)
            best = &x->leaves[i];
    for (size_t i = 0; i < TLS_LEAVES_MAX && best == NULL; i++)
        for (best = &x->leaves[0]; i < TLS_LEAVES_MAX; i++)
            if (x->leaves[i].used < best->used)
                best = &x->leaves[i];
    leaf_clear(best);
    return best;
}

static EVP_PKEY *
read_key(const uint8_t *key, size_t n)
{
    const unsigned char *at = key;
    PKCS8_PRIV_KEY_INFO *info = d2i_PKCS8_PRIV_KEY_INFO(NULL, &at, (long)n);
    EVP_PKEY *out = info == NULL ? NULL : EVP_PKCS82PKEY(info);

    PKCS8_PRIV_KEY_INFO_free(info);
    return out;
}

int
tls_leaf_put(struct tls_ctx *x, const struct host *host, const uint8_t *certificate, size_t certificate_n,
             const uint8_t *key, size_t key_n, uint64_t until_ms, struct err *err)
{
    struct tls_leaf leaf = { .until_ms = until_ms, .used = ++x->count };
    const unsigned char *at = certificate;

    if (host->n == 0 || certificate_n > LEAF_MAX || key_n > LEAF_MAX)
        return err_set(err, ERR_PROTOCOL, "egress.leaf", "a certificate that is too large");
    ERR_clear_error();
    leaf.key = read_key(key, key_n);
    leaf.cert = d2i_X509(NULL, &at, (long)certificate_n);
    if (leaf.key == NULL || leaf.cert == NULL || X509_check_private_key(leaf.cert, leaf.key) != 1) {
        leaf_clear(&leaf);
        return fail(err, "egress.leaf", "the certificate made for the sandbox");
    }
    memcpy(leaf.name, host->name, host->n);
    *leaf_place(x, leaf.name) = leaf;
    return 0;
}

bool
tls_leaf_have(struct tls_ctx *x, const struct host *host, uint64_t now_ms)
{
    const struct tls_leaf *leaf = leaf_find(x, host->name);

    return leaf != NULL && now_ms < leaf->until_ms;
}

int
tls_leaf_use(struct tls_ctx *x, const char *name, SSL *ssl)
{
    struct tls_leaf *leaf = leaf_find(x, name);

    if (leaf == NULL)
        return -1;
    leaf->used = ++x->count;
    return SSL_use_cert_and_key(ssl, leaf->cert, leaf->key, NULL, 1) == 1 ? 0 : -1;
}

/* --- sessions with servers --------------------------------------------------------------------------------------- */

SSL_SESSION *
tls_session_find(struct tls_ctx *x, const char *name, uint16_t port)
{
    for (size_t i = 0; i < TLS_SESSIONS_MAX; i++) {
        struct tls_session *s = &x->sessions[i];
        if (s->session == NULL || s->port != port || strcmp(s->name, name) != 0)
            continue;
        s->used = ++x->count;
        /* OpenSSL spoils one that a TLS 1.3 handshake has used, although the next connection may begin before this one
         * has got another */
        return SSL_SESSION_is_resumable(s->session) ? SSL_SESSION_dup(s->session) : NULL;
    }
    return NULL;
}

void
tls_session_put(struct tls_ctx *x, const char *name, uint16_t port, SSL_SESSION *session)
{
    struct tls_session *place = NULL, *oldest = &x->sessions[0];

    for (size_t i = 0; i < TLS_SESSIONS_MAX; i++) {
        struct tls_session *s = &x->sessions[i];
        if (s->used < oldest->used)
            oldest = s;
        if (s->session != NULL && s->port == port && strcmp(s->name, name) == 0)
            place = s;
    }
    if (place == NULL)
        place = oldest;         /* a free one was never used */
    /* a copy: what becomes of the connection is no matter of its session's */
    session = SSL_SESSION_dup(session);
    if (session == NULL)
        return;
    SSL_SESSION_free(place->session);
    *place = (struct tls_session){ .port = port, .used = ++x->count, .session = session };
    memcpy(place->name, name, strlen(name));
}
