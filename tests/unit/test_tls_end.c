/* egress/tls_end: both ends against each other over a socket pair: who is believed, what is said when not, bytes */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/array.h"
#include "egress/tls_priv.h"

struct certificate { X509 *x; EVP_PKEY *key; };

static struct certificate ca;
static char ca_file[] = "/tmp/test_tls_end.XXXXXX";

static void
extend(X509 *x, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509_EXTENSION *e;

    X509V3_set_ctx_nodb(&ctx);
    e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    assert_non_null(e);
    X509_add_ext(x, e, -1);
    X509_EXTENSION_free(e);
}

/* @san NULL: a CA. @issuer NULL: signed by itself. @days: until. */
static struct certificate
issue(const char *name, const char *san, const struct certificate *issuer, int days)
{
    struct certificate c = { X509_new(), EVP_EC_gen("P-256") };
    static long serial;

    X509_set_version(c.x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(c.x), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(c.x), -10L * 86400);
    X509_gmtime_adj(X509_getm_notAfter(c.x), days * 86400L);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(c.x), "CN", MBSTRING_UTF8, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(c.x, X509_get_subject_name(issuer != NULL ? issuer->x : c.x));
    X509_set_pubkey(c.x, c.key);
    extend(c.x, NID_basic_constraints, san == NULL ? "critical,CA:TRUE" : "CA:FALSE");
    if (san != NULL)
        extend(c.x, NID_subject_alt_name, san);
    assert_true(X509_sign(c.x, issuer != NULL ? issuer->key : c.key, EVP_sha256()) > 0);
    return c;
}

static struct host
named(const char *name)
{
    struct host h;

    assert_int_equal(host_canonical(str_of(name), &h), HOST_OK);
    return h;
}

static struct tls_ctx *
context(bool trusting)
{
    struct err err = ERR_INIT;
    struct tls_ctx *x = tls_ctx_new(&err);

    assert_non_null(x);
    if (trusting)
        assert_int_equal(tls_trust_file(x, ca_file, &err), 0);
    return x;
}

static void
give(struct tls_ctx *x, const char *name, const struct certificate *c)
{
    unsigned char *cert = NULL, *key = NULL;
    PKCS8_PRIV_KEY_INFO *info = EVP_PKEY2PKCS8(c->key);
    int n = i2d_X509(c->x, &cert), k = i2d_PKCS8_PRIV_KEY_INFO(info, &key);
    struct host h = named(name);
    struct err err = ERR_INIT;

    assert_int_equal(tls_leaf_put(x, &h, cert, (size_t)n, key, (size_t)k, 1000, &err), 0);
    assert_true(tls_leaf_have(x, &h, 999) && !tls_leaf_have(x, &h, 1000));
    PKCS8_PRIV_KEY_INFO_free(info);
    OPENSSL_free(cert);
    OPENSSL_free(key);
}

struct pair {
    int fd[2];
    struct tls_ctx *x;
    struct tls_end *server, *client;
};

static void
close_pair(struct pair *p)
{
    tls_end_free(p->server);
    tls_end_free(p->client);
    tls_ctx_free(p->x);
    close(p->fd[0]);
    close(p->fd[1]);
}

static void
open_pair(struct pair *p, struct tls_ctx *x, const char *served, const char *wanted, unsigned offer)
{
    struct host s = named(served), w = named(wanted);
    uint8_t first[3];

    p->x = x;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, p->fd), 0);
    p->client = tls_client_new(x, p->fd[1], &w, 443, offer);
    assert_non_null(p->client);
    assert_int_equal(tls_handshake(p->client), TLS_AGAIN);
    /* some of it was read by somebody before */
    assert_int_equal(recv(p->fd[0], first, sizeof(first), 0), sizeof(first));
    p->server = tls_server_new(x, p->fd[0], &s, first, sizeof(first), TLS_ALPN_HTTP11);
    assert_non_null(p->server);
}

/* Until neither can go on. */
static void
shake(struct pair *p, enum tls_step *server, enum tls_step *client)
{
    *server = *client = TLS_AGAIN;
    for (int i = 0; i < 20 && *client != TLS_FAILED && (*server == TLS_AGAIN || *client == TLS_AGAIN); i++) {
        if (*server == TLS_AGAIN)
            *server = tls_handshake(p->server);
        if (*client == TLS_AGAIN)
            *client = tls_handshake(p->client);
    }
    if (*server == TLS_AGAIN)
        *server = tls_handshake(p->server);
}

static void
test_bytes(void **state)
{
    struct certificate c = issue("x", "DNS:a.example.org", &ca, 10);
    static char big[1 << 20], got[1 << 20];
    enum tls_step s, k;
    struct pair p;
    char room[64];
    size_t sent = 0, came = 0;

    (void)state;
    struct tls_ctx *x = context(true);
    give(x, "a.example.org", &c);
    open_pair(&p, x, "a.example.org", "a.example.org", TLS_ALPN_HTTP11 | TLS_ALPN_H2);
    shake(&p, &s, &k);
    assert_true(s == TLS_DONE && k == TLS_DONE);
    assert_int_equal(tls_alpn_chosen(p.client), TLS_ALPN_HTTP11);
    assert_int_equal(tls_recv(p.server, room, sizeof(room)), -1);
    assert_int_equal(errno, EAGAIN);
    for (size_t i = 0; i < sizeof(big); i++)
        big[i] = (char)(i * 7 / 3);
    while (came < sizeof(got)) {
        ssize_t n = sent < sizeof(big) ? tls_send(p.server, big + sent, sizeof(big) - sent) : 0;
        assert_true(n >= 0 || errno == EAGAIN);
        sent += n > 0 ? (size_t)n : 0;
        n = tls_recv(p.client, got + came, sizeof(got) - came);
        assert_true(n > 0 || errno == EAGAIN);
        came += n > 0 ? (size_t)n : 0;
    }
    assert_memory_equal(big, got, sizeof(big));
    /* one side ends, the other still speaks */
    assert_int_equal(tls_finish(p.server), 0);
    assert_int_equal(tls_recv(p.client, room, sizeof(room)), 0);
    assert_int_equal(tls_send(p.client, "still", 5), 5);
    assert_int_equal(tls_recv(p.server, room, sizeof(room)), 5);
    close(p.fd[1]);
    p.fd[1] = -1;
    assert_int_equal(tls_recv(p.server, room, sizeof(room)), -1);      /* cut off: not the end */
    assert_int_equal(errno, ECONNABORTED);
    close_pair(&p);
    X509_free(c.x);
    EVP_PKEY_free(c.key);
}

static void
test_who_is_believed(void **state)
{
    static const struct { const char *san, *wanted; bool by_ca; int days; const char *reason; } rows[] = {
        { "DNS:a.example.org", "a.example.org", true, 10, NULL },
        { "DNS:*.example.org", "a.example.org", true, 10, NULL },
        { "IP:203.0.114.7", "203.0.114.7", true, 10, NULL },
        { "DNS:b.example.org", "a.example.org", true, 10, "upstream-cert-name" },
        { "DNS:a*.example.org", "ab.example.org", true, 10, "upstream-cert-name" },
        { "DNS:*.example.org", "a.b.example.org", true, 10, "upstream-cert-name" },
        { "DNS:*.example.org", "203.0.114.7", true, 10, "upstream-cert-name" },
        { "IP:203.0.114.8", "203.0.114.7", true, 10, "upstream-cert-name" },
        { "DNS:a.example.org", "a.example.org", true, -1, "upstream-cert-expired" },
        { "DNS:a.example.org", "a.example.org", false, 10, "upstream-cert-untrusted" },
        { "URI:urn:x", "a.example.org", true, 10, "upstream-cert-name" },   /* its CN says a.example.org */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct certificate c = issue("a.example.org", rows[i].san, rows[i].by_ca ? &ca : NULL, rows[i].days);
        struct tls_ctx *x = context(true);
        enum tls_step s, k;
        struct pair p;

        give(x, "a.example.org", &c);
        open_pair(&p, x, "a.example.org", rows[i].wanted, TLS_ALPN_HTTP11);
        shake(&p, &s, &k);
        if (rows[i].reason == NULL)
            assert_true(s == TLS_DONE && k == TLS_DONE);
        else
            assert_int_equal(k, TLS_FAILED);
        if (rows[i].reason != NULL && strcmp(tls_reason(p.client), rows[i].reason) != 0)
            fail_msg("%zu: %s instead of %s", i, tls_reason(p.client), rows[i].reason);
        close_pair(&p);
        X509_free(c.x);
        EVP_PKEY_free(c.key);
    }
}

static void
test_client_refuses(void **state)
{
    struct certificate c = issue("x", "DNS:a.example.org", &ca, 10);
    struct tls_ctx *x = context(false);
    enum tls_step s, k;
    struct pair p;

    (void)state;
    give(x, "a.example.org", &c);
    open_pair(&p, x, "a.example.org", "a.example.org", TLS_ALPN_HTTP11);
    shake(&p, &s, &k);
    assert_true(k == TLS_FAILED && s == TLS_FAILED);
    assert_string_equal(tls_reason(p.server), "tls-client-refused");
    close_pair(&p);

    x = context(true);
    give(x, "a.example.org", &c);
    open_pair(&p, x, "a.example.org", "a.example.org", TLS_ALPN_H2);       /* nothing in common */
    shake(&p, &s, &k);
    assert_true(s == TLS_FAILED);
    assert_string_equal(tls_reason(p.server), "tls-client-handshake");
    close_pair(&p);
    X509_free(c.x);
    EVP_PKEY_free(c.key);
}

/* One byte each way, with which the client gets its tickets. */
static void
speak(struct pair *p)
{
    enum tls_step s, k;
    char byte;

    shake(p, &s, &k);
    assert_true(s == TLS_DONE && k == TLS_DONE);
    assert_int_equal(tls_send(p->server, "x", 1), 1);
    assert_int_equal(tls_recv(p->client, &byte, 1), 1);
}

static void
close_ends(struct pair *p)
{
    tls_end_free(p->server);
    tls_end_free(p->client);
    close(p->fd[0]);
    close(p->fd[1]);
}

/* Connections that begin at the same time, and one after another that was cut off, are resumed too. */
static void
test_resumed(void **state)
{
    struct certificate c = issue("x", "DNS:a.example.org", &ca, 10);
    struct tls_ctx *x = context(true);
    struct pair first, second, third;
    char byte;

    (void)state;
    give(x, "a.example.org", &c);
    open_pair(&first, x, "a.example.org", "a.example.org", TLS_ALPN_HTTP11);
    speak(&first);
    assert_false(SSL_session_reused(first.client->ssl));
    open_pair(&second, x, "a.example.org", "a.example.org", TLS_ALPN_HTTP11);
    open_pair(&third, x, "a.example.org", "a.example.org", TLS_ALPN_HTTP11);
    speak(&second);
    speak(&third);
    assert_true(SSL_session_reused(second.client->ssl) && SSL_session_reused(third.client->ssl));
    assert_int_equal(shutdown(third.fd[0], SHUT_RDWR), 0);
    assert_int_equal(tls_recv(third.client, &byte, 1), -1);
    assert_int_equal(errno, ECONNABORTED);
    close_ends(&first);
    close_ends(&second);
    close_ends(&third);
    open_pair(&first, x, "a.example.org", "a.example.org", TLS_ALPN_HTTP11);
    speak(&first);
    assert_true(SSL_session_reused(first.client->ssl));
    /* what another name got is no good for this one */
    give(x, "b.example.org", &c);
    open_pair(&second, x, "b.example.org", "b.example.org", TLS_ALPN_HTTP11);
    assert_null(tls_session_find(x, "b.example.org", 443));
    assert_null(tls_session_find(x, "a.example.org", 444));
    close_ends(&first);
    close_pair(&second);
    X509_free(c.x);
    EVP_PKEY_free(c.key);
}

/* A ticket is no packet of its own, and none is for a client that has gone: nor is an alert. */
static void
test_nothing_is_sent_alone(void **state)
{
    struct certificate c = issue("x", "DNS:a.example.org", &ca, 10);
    struct tls_ctx *x = context(true);
    enum tls_step server, client;
    struct pair p;
    char byte;

    (void)state;
    give(x, "a.example.org", &c);
    open_pair(&p, x, "a.example.org", "a.example.org", TLS_ALPN_HTTP11);
    shake(&p, &server, &client);
    assert_true(server == TLS_DONE && client == TLS_DONE);
    assert_true(tls_is_quiet(p.client) && tls_is_quiet(p.server));
    assert_null(tls_session_find(x, "a.example.org", 443));
    assert_int_equal(tls_send(p.server, "x", 1), 1);
    assert_false(tls_is_quiet(p.client));
    assert_int_equal(tls_recv(p.client, &byte, 1), 1);
    assert_true(tls_is_quiet(p.client));
    assert_non_null(p.x->sessions[0].session);
    assert_int_equal(shutdown(p.fd[1], SHUT_WR), 0);
    assert_false(tls_is_quiet(p.server));
    assert_int_equal(tls_recv(p.server, &byte, 1), -1);
    assert_int_equal(errno, ECONNABORTED);
    assert_int_equal(recv(p.fd[1], &byte, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    close_pair(&p);
    X509_free(c.x);
    EVP_PKEY_free(c.key);
}

/* Whole records that were read ahead are to be asked for; the beginning of one is not, for the socket will tell. */
static void
test_read_ahead(void **state)
{
    struct certificate c = issue("x", "DNS:a.example.org", &ca, 10);
    struct tls_ctx *x = context(true);
    uint8_t records[256];
    struct pair p;
    char got[16];
    ssize_t n;

    (void)state;
    give(x, "a.example.org", &c);
    open_pair(&p, x, "a.example.org", "a.example.org", TLS_ALPN_HTTP11);
    speak(&p);
    for (int i = 0; i < 3; i++)
        assert_int_equal(tls_send(p.client, "abc", 3), 3);
    n = recv(p.fd[0], records, sizeof(records), 0);
    assert_int_equal(n % 3, 0);
    assert_int_equal(send(p.fd[1], records, (size_t)n - 1, 0), n - 1);     /* the last one without its last byte */
    assert_false(tls_pending(p.server));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tls_recv(p.server, got, sizeof(got)), 3);
        assert_true(tls_pending(p.server));
    }
    assert_int_equal(tls_recv(p.server, got, sizeof(got)), -1);
    assert_int_equal(errno, EAGAIN);
    assert_false(tls_pending(p.server));
    assert_int_equal(send(p.fd[1], records + n - 1, 1, 0), 1);
    assert_int_equal(tls_recv(p.server, got, sizeof(got)), 3);
    assert_false(tls_pending(p.server));
    close_pair(&p);
    X509_free(c.x);
    EVP_PKEY_free(c.key);
}

static void
test_no_leaf(void **state)
{
    struct tls_ctx *x = context(false);
    struct host h = named("a.example.org");

    (void)state;
    assert_null(tls_server_new(x, -1, &h, NULL, 0, TLS_ALPN_HTTP11));
    tls_ctx_free(x);
}

static int
make_ca(void **state)
{
    int fd = mkstemp(ca_file);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

    (void)state;
    ca = issue("test CA", NULL, NULL, 10);
    return f == NULL || PEM_write_X509(f, ca.x) != 1 || fclose(f) != 0;
}

static int
drop_ca(void **state)
{
    (void)state;
    X509_free(ca.x);
    EVP_PKEY_free(ca.key);
    return unlink(ca_file);
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_bytes), cmocka_unit_test(test_who_is_believed),
                                        cmocka_unit_test(test_client_refuses), cmocka_unit_test(test_resumed),
                                        cmocka_unit_test(test_nothing_is_sent_alone), cmocka_unit_test(test_read_ahead),
                                        cmocka_unit_test(test_no_leaf) };

    return cmocka_run_group_tests(tests, make_ca, drop_ca);
}
