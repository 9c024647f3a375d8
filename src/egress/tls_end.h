/* egress/tls_end.h: TLS on a socket that does not block, as the server towards the sandbox and as the client outwards
 *
 * OpenSSL 3.0 or later. TLS 1.2 and 1.3 only, forward-secret AEAD suites only, no renegotiation, no compression, no
 * early data. All that is read from files is read while the context is made, so that a process without files can go
 * on.
 *
 *   - Towards the sandbox: a certificate for one name, made by the vault; its key is the only private key here, and it
 *     is good for that name only.
 *   - Outwards: the server's chain is verified against the context's store, and its name (or address) against what was
 *     decided on: subjectAltName only, a wildcard only as a whole label, never the subject's common name.
 *
 * A handshake is driven by whoever has the socket: tls_handshake() whenever the socket is ready for tls_events(). After
 * it the end is a stream (stream.h).
 */
#ifndef CLOCHE_EGRESS_TLS_END_H
#define CLOCHE_EGRESS_TLS_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "match/host.h"

#define TLS_LEAVES_MAX   256            /* certificates that are kept; the longest unused gives way */
#define TLS_SESSIONS_MAX 128            /* of servers, to resume; likewise */

struct tls_ctx;
struct tls_end;

/* Before anything else of this file, and before the process gives its rights away. No configuration file is read. */
struct tls_ctx *tls_ctx_new(struct err *err);
void tls_ctx_free(struct tls_ctx *x);
/* Trust the certificates of the host's own bundle (wall/trust.h), and those in the PEM file @path. */
int tls_trust_system(struct tls_ctx *x, struct err *err);
int tls_trust_file(struct tls_ctx *x, const char *path, struct err *err);

/* Keep a certificate for @host: DER, with its key as PKCS#8, to be used until @until_ms (CLOCK_MONOTONIC). An earlier
 * one for the name is replaced. */
int tls_leaf_put(struct tls_ctx *x, const struct host *host, const uint8_t *certificate, size_t certificate_n,
                 const uint8_t *key, size_t key_n, uint64_t until_ms, struct err *err);
bool tls_leaf_have(struct tls_ctx *x, const struct host *host, uint64_t now_ms);

enum tls_alpn { TLS_ALPN_NONE = 0, TLS_ALPN_HTTP11 = 1, TLS_ALPN_H2 = 2 };      /* as offers: or-ed */

/* The server's end on @fd (borrowed) for a client that asks for @host; a leaf must be there. @first: what was read
 * from the socket already, at most TLS_FIRST_MAX bytes; copied. @alpn: the one protocol that is chosen when the client
 * offers it; a client that offers others only is refused (no_application_protocol), one that offers none gets none. */
#define TLS_FIRST_MAX (128 * 1024)
struct tls_end *tls_server_new(struct tls_ctx *x, int fd, const struct host *host, const void *first, size_t n,
                               enum tls_alpn alpn);
/* The client's end on @fd (borrowed) to a server that must prove to be @host. @alpn: what is offered, as a set. */
struct tls_end *tls_client_new(struct tls_ctx *x, int fd, const struct host *host, uint16_t port, unsigned alpn);
/* Without a close message, without the descriptor. */
void tls_end_free(struct tls_end *t);

enum tls_step { TLS_DONE, TLS_AGAIN, TLS_FAILED };
enum tls_step tls_handshake(struct tls_end *t);
/* Why it failed: a stable word (docs/network.md) and a sentence, both good as long as @t is. */
const char *tls_reason(const struct tls_end *t);
const char *tls_detail(const struct tls_end *t);
/* What was agreed on; NONE is to be read as HTTP/1.1. */
enum tls_alpn tls_alpn_chosen(const struct tls_end *t);

/* As stream.h says of a stream. */
ssize_t tls_recv(struct tls_end *t, void *p, size_t n);
ssize_t tls_send(struct tls_end *t, const void *p, size_t n);
int tls_finish(struct tls_end *t);
bool tls_pending(const struct tls_end *t);
/* Both ends go on, and not a byte of the peer's is waiting, here or at the socket. */
bool tls_is_quiet(const struct tls_end *t);
/* For a handshake: both wanted. */
uint32_t tls_events(const struct tls_end *t, bool want_in, bool want_out);

#endif
