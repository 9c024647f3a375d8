/* egress/tls_priv.h: what tls_ctx.c and tls_end.c share */
#ifndef CLOCHE_EGRESS_TLS_PRIV_H
#define CLOCHE_EGRESS_TLS_PRIV_H

#include <openssl/ssl.h>

#include "egress/tls_end.h"

#define TLS_HELD_MAX 512

struct tls_leaf {
    char name[HOST_NAME_MAX_LEN + 1];   /* empty: a free place */
    uint64_t until_ms, used;            /* used: by the context's count */
    X509 *cert;
    EVP_PKEY *key;
};

struct tls_session {
    char name[HOST_NAME_MAX_LEN + 1];
    uint16_t port;
    uint64_t used;
    SSL_SESSION *session;
};

struct tls_ctx {
    SSL_CTX *server, *client;
    BIO_METHOD *bio;
    uint64_t count;
    struct tls_leaf leaves[TLS_LEAVES_MAX];
    struct tls_session sessions[TLS_SESSIONS_MAX];
};

struct tls_end {
    struct tls_ctx *x;
    SSL *ssl;
    int fd;
    bool server;
    uint8_t *first;                     /* what was read before; NULL when it has been taken */
    size_t first_n, first_at;
    uint8_t held[TLS_HELD_MAX];         /* a ticket that goes out with what is sent next */
    size_t held_n;
    bool gone;                          /* the peer has ended its side of the socket */
    bool read_wants_out, write_wants_in;
    bool dry;                           /* what was read ahead, if anything, is not a whole record */
    bool cut;                           /* failed for good: no close message */
    int saved_errno;                    /* of the socket */
    enum tls_alpn alpn;                 /* server: the one that may be chosen */
    char name[HOST_NAME_MAX_LEN + 1];
    uint16_t port;
    const char *reason;
    char detail[256];
};

/* tls_ctx.c */
/* Show the leaf for @name; -1 when there is none. */
int tls_leaf_use(struct tls_ctx *x, const char *name, SSL *ssl);
/* The last session with that server, or NULL; a reference of the caller's. */
SSL_SESSION *tls_session_find(struct tls_ctx *x, const char *name, uint16_t port);
/* A copy of it is kept. */
void tls_session_put(struct tls_ctx *x, const char *name, uint16_t port, SSL_SESSION *session);

/* tls_end.c */
BIO_METHOD *tls_bio_method(void);
int tls_on_alpn(SSL *ssl, const unsigned char **out, unsigned char *outlen, const unsigned char *in, unsigned int n,
                void *arg);
int tls_on_session(SSL *ssl, SSL_SESSION *session);

#endif
