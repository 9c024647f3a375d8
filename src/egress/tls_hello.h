/* egress/tls_hello.h: what a TLS ClientHello says about where its connection wants to go
 *
 * RFC 8446 and 5246 (records, ClientHello), RFC 6066 (server_name), RFC 7301 (ALPN), RFC 9849
 * (encrypted_client_hello). Pure: the bytes that a connection began with go in, a verdict comes out; nothing is
 * allocated and nothing points into the input afterwards. Every length is checked to be used up exactly, because a
 * name that we read differently than the server is a name that was never decided on.
 *
 * Call with all bytes received so far; after TLS_HELLO_MORE, call again with more. While the message is incomplete only
 * record headers are looked at, and there are at most TLS_HELLO_RECORDS_MAX of them.
 */
#ifndef CLOCHE_EGRESS_TLS_HELLO_H
#define CLOCHE_EGRESS_TLS_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "match/host.h"

#define TLS_HELLO_MAX 65536             /* bytes of the hello with its record headers */
#define TLS_HELLO_RECORD_MAX (16384 + 256)
#define TLS_HELLO_RECORDS_MAX 256       /* fragments; a client that needs more is playing games */
#define TLS_HELLO_ALPN_MAX 16           /* protocol names ... */
#define TLS_HELLO_ALPN_BYTES 256        /* ... and their bytes, each with its length in front */

enum tls_hello_status {
    TLS_HELLO_OK = 0,
    TLS_HELLO_MORE,             /* a proper beginning; the rest has not come yet */
    TLS_HELLO_NOT_TLS,          /* the first bytes are no TLS handshake record */
    /* It is TLS, and refused: */
    TLS_HELLO_TOO_LONG,
    TLS_HELLO_RECORD,           /* empty or over-long record, another record type between fragments, bad version */
    TLS_HELLO_FRAGMENTS,
    TLS_HELLO_TYPE,             /* a handshake message, but no ClientHello */
    TLS_HELLO_TRAILING,         /* bytes behind the hello in its own record */
    TLS_HELLO_LENGTH,           /* a length that does not fit what surrounds it */
    TLS_HELLO_VERSION,
    TLS_HELLO_DUPLICATE,        /* an extension twice */
    TLS_HELLO_EXTENSION,        /* an extension whose content is against its RFC */
    TLS_HELLO_SNI,              /* no, or more than, one host_name entry */
    TLS_HELLO_SNI_NAME,         /* its name is no host name: empty, an address, NUL, trailing dot, too long ... */
    TLS_HELLO_ALPN,             /* against RFC 7301, or more of it than we keep */
    TLS_HELLO_ECH_INNER,        /* an inner ClientHello in the clear */
};

struct tls_hello {
    size_t consumed;            /* bytes of the records that the hello came in */
    bool has_sni;
    bool has_ech;               /* encrypted_client_hello (outer, or its grease), or the older encrypted server name:
                                 * the name in has_sni may not be the one that is meant */
    bool has_alpn, alpn_h2, alpn_http11;
    bool early_data;            /* application data may follow before the server answers */
    size_t sni_n;
    char sni[HOST_NAME_MAX_LEN + 1];        /* canonical: lower case; NUL-terminated, without a NUL inside */
    uint16_t legacy_version;
    uint16_t version_max;       /* 0x0300 to 0x0304: the highest TLS version offered */
    size_t n_alpn;
    size_t alpn_bytes;
    uint8_t alpn[TLS_HELLO_ALPN_BYTES];     /* n_alpn names, each with one length byte in front */
};

/* @out is filled on TLS_HELLO_OK and zero otherwise. */
enum tls_hello_status tls_hello_parse(const uint8_t *p, size_t n, struct tls_hello *out);

/* Whether a server's first bytes are a HelloRetryRequest, which asks for a second ClientHello (RFC 8446 4.1.4). YES of
 * one that cannot be told apart. With 43 bytes it is known. */
enum tls_retry { TLS_RETRY_MORE, TLS_RETRY_NO, TLS_RETRY_YES };
enum tls_retry tls_retry(const uint8_t *p, size_t n);

/* The stable word for the audit: "tls-sni-name". */
const char *tls_hello_word(enum tls_hello_status status);

#endif
