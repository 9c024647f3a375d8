/* egress/tls_end.c: see tls_end.h */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <openssl/err.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>

#include "egress/tls_priv.h"

/* --- the socket, behind what was read from it before -------------------------------------------------------------- */

static int
bio_read(BIO *b, char *p, int n)
{
    struct tls_end *t = BIO_get_data(b);
    ssize_t got;

    BIO_clear_retry_flags(b);
    if (n <= 0)
        return 0;
    if (t->first != NULL) {
        size_t take = t->first_n - t->first_at < (size_t)n ? t->first_n - t->first_at : (size_t)n;
        memcpy(p, t->first + t->first_at, take);
        t->first_at += take;
        if (t->first_at == t->first_n) {
            free(t->first);
            t->first = NULL;
        }
        return (int)take;
    }
    got = recv(t->fd, p, (size_t)n, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(b);
    else if (got < 0)
        t->saved_errno = errno;
    else if (got == 0) {
        BIO_set_flags(b, BIO_FLAGS_IN_EOF);
        t->gone = true;
    }
    return (int)got;
}

/* A ticket is no hurry: alone it would cost a packet, and wake the client for nothing. */
static bool
may_wait(const struct tls_end *t, size_t n)
{
    return t->server && SSL_get_state(t->ssl) == TLS_ST_SW_SESSION_TICKET && SSL_version(t->ssl) == TLS1_3_VERSION &&
           n <= sizeof(t->held) - t->held_n;
}

static ssize_t
send_with_held(struct tls_end *t, const char *p, size_t n)
{
    struct iovec parts[] = { { t->held, t->held_n }, { (void *)(uintptr_t)p, n } };
    struct msghdr m = { .msg_iov = parts, .msg_iovlen = 2 };
    ssize_t sent = sendmsg(t->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    size_t out = sent > 0 ? (size_t)sent : 0, held = out < t->held_n ? out : t->held_n;

    t->held_n -= held;
    memmove(t->held, t->held + held, t->held_n);
    if (sent >= 0 && out == held && n > 0) {
        errno = EAGAIN;
        return -1;
    }
    return sent < 0 ? -1 : (ssize_t)(out - held);
}

static int
bio_write(BIO *b, const char *p, int n)
{
    struct tls_end *t = BIO_get_data(b);
    ssize_t sent;

    BIO_clear_retry_flags(b);
    if (t->gone || n <= 0)      /* without a close message: all that comes now is the alert that says so */
        return n;
    if (may_wait(t, (size_t)n)) {
        memcpy(t->held + t->held_n, p, (size_t)n);
        t->held_n += (size_t)n;
        return n;
    }
    sent = t->held_n > 0 ? send_with_held(t, p, (size_t)n) : send(t->fd, p, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(b);
    else if (sent < 0)
        t->saved_errno = errno;
    return (int)sent;
}

static long
bio_control(BIO *b, int what, long number, void *p)
{
    (void)number;
    (void)p;
    if (what == BIO_CTRL_EOF)
        return BIO_test_flags(b, BIO_FLAGS_IN_EOF) != 0;
    return what == BIO_CTRL_FLUSH;
}

BIO_METHOD *
tls_bio_method(void)
{
    BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "cloche socket");

    if (m == NULL || BIO_meth_set_read(m, bio_read) != 1 || BIO_meth_set_write(m, bio_write) != 1 ||
        BIO_meth_set_ctrl(m, bio_control) != 1) {
        BIO_meth_free(m);
        return NULL;
    }
    return m;
}

/* --- the two ends ------------------------------------------------------------------------------------------------ */

static const unsigned char proto_h2[] = { 2, 'h', '2' };
static const unsigned char proto_http11[] = { 8, 'h', 't', 't', 'p', '/', '1', '.', '1' };

int
tls_on_alpn(SSL *ssl, const unsigned char **out, unsigned char *outlen, const unsigned char *in, unsigned int n,
            void *arg)
{
    const struct tls_end *t = SSL_get_app_data(ssl);
    const unsigned char *only = t->alpn == TLS_ALPN_H2 ? proto_h2 : proto_http11;
    unsigned size = t->alpn == TLS_ALPN_H2 ? sizeof(proto_h2) : sizeof(proto_http11);

    (void)arg;
    for (unsigned at = 0; at < n && at + 1U + in[at] <= n; at += 1U + in[at])
        if (in[at] == only[0] && memcmp(&in[at], only, size) == 0) {
            *out = &in[at + 1];
            *outlen = only[0];
            return SSL_TLSEXT_ERR_OK;
        }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

int
tls_on_session(SSL *ssl, SSL_SESSION *session)
{
    const struct tls_end *t = SSL_get_app_data(ssl);

    tls_session_put(t->x, t->name, t->port, session);
    return 0;
}

static struct tls_end *
end_new(struct tls_ctx *x, SSL_CTX *settings, int fd, const struct host *host)
{
    struct tls_end *t = calloc(1, sizeof(*t));
    BIO *b;

    if (t == NULL)
        return NULL;
    t->x = x;
    t->fd = fd;
    t->reason = "tls";
    memcpy(t->name, host->name, host->n);
    t->ssl = SSL_new(settings);
    b = t->ssl == NULL ? NULL : BIO_new(x->bio);
    if (b == NULL) {
        tls_end_free(t);
        return NULL;
    }
    BIO_set_data(b, t);
    BIO_set_init(b, 1);
    SSL_set_bio(t->ssl, b, b);
    SSL_set_app_data(t->ssl, t);
    return t;
}

struct tls_end *
tls_server_new(struct tls_ctx *x, int fd, const struct host *host, const void *first, size_t n, enum tls_alpn alpn)
{
    struct tls_end *t = n > TLS_FIRST_MAX ? NULL : end_new(x, x->server, fd, host);
    unsigned char id[SHA256_DIGEST_LENGTH];

    if (t == NULL)
        return NULL;
    t->server = true;
    t->alpn = alpn;
    t->first = n > 0 ? malloc(n) : NULL;
    t->first_n = n;
    if (t->first != NULL)
        memcpy(t->first, first, n);
    /* a ticket is good for the name that it was given out for */
    SHA256((const unsigned char *)host->name, host->n, id);
    if ((n > 0 && t->first == NULL) || tls_leaf_use(x, t->name, t->ssl) < 0 ||
        SSL_set_session_id_context(t->ssl, id, sizeof(id)) != 1) {
        tls_end_free(t);
        return NULL;
    }
    SSL_set_accept_state(t->ssl);
    return t;
}

static int
expect_host(struct tls_end *t, const struct host *host)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(t->ssl);

    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    /* what the user handed over as trusted is, a root or not */
    X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_PARTIAL_CHAIN);
    if (host->is_ip)
        return X509_VERIFY_PARAM_set1_ip(param, host->ip.b, host->ip.family == 4 ? 4 : 16) == 1 ? 0 : -1;
    return X509_VERIFY_PARAM_set1_host(param, host->name, host->n) == 1 &&
           SSL_set_tlsext_host_name(t->ssl, t->name) == 1 ? 0 : -1;
}

struct tls_end *
tls_client_new(struct tls_ctx *x, int fd, const struct host *host, uint16_t port, unsigned alpn)
{
    unsigned char offer[sizeof(proto_h2) + sizeof(proto_http11)];
    struct tls_end *t = end_new(x, x->client, fd, host);
    SSL_SESSION *again;
    unsigned n = 0;
    bool ok;

    if (t == NULL)
        return NULL;
    t->port = port;
    if (alpn & TLS_ALPN_H2) {
        memcpy(offer, proto_h2, sizeof(proto_h2));
        n += sizeof(proto_h2);
    }
    if (alpn & TLS_ALPN_HTTP11) {
        memcpy(offer + n, proto_http11, sizeof(proto_http11));
        n += sizeof(proto_http11);
    }
    again = tls_session_find(x, t->name, port);
    ok = expect_host(t, host) == 0 && (n == 0 || SSL_set_alpn_protos(t->ssl, offer, n) == 0) &&
         (again == NULL || SSL_set_session(t->ssl, again) == 1);
    SSL_SESSION_free(again);
    if (!ok) {
        tls_end_free(t);
        return NULL;
    }
    SSL_set_connect_state(t->ssl);
    return t;
}

void
tls_end_free(struct tls_end *t)
{
    if (t == NULL)
        return;
    /* a session that was not closed by message is good all the same */
    if (t->ssl != NULL && !t->cut)
        SSL_set_quiet_shutdown(t->ssl, 1), SSL_shutdown(t->ssl);
    SSL_free(t->ssl);
    free(t->first);
    free(t);
}

/* --- the handshake ----------------------------------------------------------------------------------------------- */

static const char *
verify_word(long result)
{
    switch (result) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID: return "upstream-cert-expired";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH: return "upstream-cert-name";
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE: return "upstream-cert-untrusted";
    default: return "upstream-cert";
    }
}

/* Whether the client said that it does not like the certificate. */
static bool
refused_certificate(int reason)
{
    switch (reason) {
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED: return true;
    default: return false;
    }
}

static void
explain(struct tls_end *t, int kind)
{
    unsigned long last = ERR_peek_error();
    long verified = SSL_get_verify_result(t->ssl);
    const char *why = ERR_reason_error_string(last);
    bool left = kind == SSL_ERROR_SYSCALL || (kind == SSL_ERROR_SSL && ERR_GET_LIB(last) == ERR_LIB_SSL &&
                                              ERR_GET_REASON(last) == SSL_R_UNEXPECTED_EOF_WHILE_READING);

    if (left)
        why = t->saved_errno != 0 ? strerror(t->saved_errno) : "the connection was closed";
    if (why == NULL)
        why = "the handshake failed";
    if (!t->server && verified != X509_V_OK) {
        t->reason = verify_word(verified);
        snprintf(t->detail, sizeof(t->detail), "the server's certificate: %s", X509_verify_cert_error_string(verified));
    } else if (!t->server) {
        t->reason = "upstream-tls";
        snprintf(t->detail, sizeof(t->detail), "TLS with the server: %s", why);
    } else if (left || (ERR_GET_LIB(last) == ERR_LIB_SSL && refused_certificate(ERR_GET_REASON(last)))) {
        t->reason = "tls-client-refused";
        snprintf(t->detail, sizeof(t->detail), "the client did not accept the sandbox's certificate: %s", why);
    } else {
        t->reason = "tls-client-handshake";
        snprintf(t->detail, sizeof(t->detail), "TLS with the client: %s", why);
    }
    t->cut = true;
    ERR_clear_error();
}

enum tls_step
tls_handshake(struct tls_end *t)
{
    int r, kind;

    if (t->cut)
        return TLS_FAILED;
    ERR_clear_error();
    r = SSL_do_handshake(t->ssl);
    if (r == 1) {
        t->read_wants_out = false;
        return TLS_DONE;
    }
    kind = SSL_get_error(t->ssl, r);
    t->read_wants_out = kind == SSL_ERROR_WANT_WRITE;
    if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE)
        return TLS_AGAIN;
    explain(t, kind);
    return TLS_FAILED;
}

const char *
tls_reason(const struct tls_end *t)
{
    return t->reason;
}

const char *
tls_detail(const struct tls_end *t)
{
    return t->detail;
}

enum tls_alpn
tls_alpn_chosen(const struct tls_end *t)
{
    const unsigned char *name = NULL;
    unsigned n = 0;

    SSL_get0_alpn_selected(t->ssl, &name, &n);
    if (n == 2 && memcmp(name, "h2", 2) == 0)
        return TLS_ALPN_H2;
    return n > 0 ? TLS_ALPN_HTTP11 : TLS_ALPN_NONE;
}

/* --- bytes ------------------------------------------------------------------------------------------------------- */

/* -1 with errno, for a call that gave @r. */
static ssize_t
failed(struct tls_end *t, int r, bool reading)
{
    int kind = SSL_get_error(t->ssl, r);
    unsigned long last = ERR_peek_error();

    if (kind == SSL_ERROR_ZERO_RETURN)
        return 0;
    if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) {
        if (reading)
            t->read_wants_out = kind == SSL_ERROR_WANT_WRITE;
        else
            t->write_wants_in = kind == SSL_ERROR_WANT_READ;
        errno = EAGAIN;
        return -1;
    }
    t->cut = true;
    if (kind == SSL_ERROR_SSL && ERR_GET_REASON(last) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
        errno = ECONNABORTED;
    else
        errno = t->saved_errno != 0 ? t->saved_errno : EPROTO;
    ERR_clear_error();
    return -1;
}

/* SSL_get_error() is about the queue as a whole; an empty one is the rule, and clearing it is not cheap. */
static void
forget_errors(void)
{
    if (ERR_peek_error() != 0)
        ERR_clear_error();
}

ssize_t
tls_recv(struct tls_end *t, void *p, size_t n)
{
    size_t got = 0;
    int r;

    if (t->cut) {
        errno = ECONNABORTED;
        return -1;
    }
    forget_errors();
    r = SSL_read_ex(t->ssl, p, n, &got);
    t->dry = r != 1;
    if (r == 1) {
        t->read_wants_out = false;
        return (ssize_t)got;
    }
    return failed(t, r, true);
}

ssize_t
tls_send(struct tls_end *t, const void *p, size_t n)
{
    size_t sent = 0;
    int r;

    if (t->cut || n == 0) {
        errno = EPIPE;
        return n == 0 ? 0 : -1;
    }
    forget_errors();
    r = SSL_write_ex(t->ssl, p, n, &sent);
    if (r == 1) {
        t->write_wants_in = false;
        return (ssize_t)sent;
    }
    if (failed(t, r, false) == 0)
        errno = EPIPE;
    return -1;
}

int
tls_finish(struct tls_end *t)
{
    if (!t->cut && (SSL_get_shutdown(t->ssl) & SSL_SENT_SHUTDOWN) == 0) {
        int r;
        ERR_clear_error();
        r = SSL_shutdown(t->ssl);
        if (r < 0 && failed(t, r, false) < 0 && errno == EAGAIN)
            return -1;
    }
    return shutdown(t->fd, SHUT_WR);
}

bool
tls_pending(const struct tls_end *t)
{
    return !t->cut && !t->dry && (SSL_has_pending(t->ssl) || t->first != NULL);
}

bool
tls_is_quiet(const struct tls_end *t)
{
    char byte;

    return !t->cut && t->first == NULL && SSL_is_init_finished(t->ssl) && SSL_get_shutdown(t->ssl) == 0 &&
           !SSL_has_pending(t->ssl) && recv(t->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

uint32_t
tls_events(const struct tls_end *t, bool want_in, bool want_out)
{
    bool shaking = !SSL_is_init_finished(t->ssl);
    uint32_t events = 0;

    if (shaking)
        return t->read_wants_out ? EPOLLOUT : EPOLLIN;
    if ((want_in && !t->read_wants_out) || (want_out && t->write_wants_in))
        events |= EPOLLIN;
    if ((want_out && !t->write_wants_in) || (want_in && t->read_wants_out))
        events |= EPOLLOUT;
    return events;
}
