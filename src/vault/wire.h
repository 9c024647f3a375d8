/* vault/wire.h: what is said over the vault's two sockets
 *
 * One SOCK_SEQPACKET message is one frame (wire/frame.h). Who may say what, when and how long is in the tables of
 * serve.c and client.c. The supervisor is cloche run, the egress edge is cloche-egress.
 */
#ifndef CLOCHE_VAULT_WIRE_H
#define CLOCHE_VAULT_WIRE_H

#include "base/buf.h"
#include "base/err.h"
#include "vault/client.h"
#include "wire/frame.h"

#define VAULT_MESSAGE_MAX (VAULT_SECRETS_MAX * (VAULT_VALUE_MAX + 16) + BINDING_TEXT_MAX + 1024)
#define VAULT_CA_PEM_MAX  8192
#define VAULT_ADD_MAX     (BINDING_WORD_MAX + 2 + BINDING_ADD_MAX)
#define VAULT_ID_TEXT     32        /* hexadecimal digits */
#define VAULT_SEARCH_ONLY 0x80      /* with an id: it may not go into the request, its answer is searched for it */

enum vault_message {
    /* supervisor to vault */
    VAULT_BIND = 1,         /* name, binding, header to be added, variable (each "" as stored) */
    VAULT_START,            /* no more binds: the store's key is wiped */
    VAULT_EGRESS,           /* with one descriptor: the vault's end of a new egress edge; the one before is closed */
    VAULT_REVOKE,           /* id text */
    VAULT_PRINT,            /* a key of MASK_KEY bytes: what the values can be recognised by (base/mask.h) */
    /* vault to supervisor */
    VAULT_CA,               /* certificate, PEM; the store's folder: the first message, unless it is VAULT_NO */
    VAULT_BOUND,            /* id text, parts u8, each: role u8, variable, placeholder; then binding text */
    VAULT_STARTED,
    VAULT_PRINTED,          /* n u8, each (of a value or a form of it): name, length be32, hash be64, SHA-256:
                             * the answer to PRINT */
    VAULT_NO,               /* kind u8, errno be32, code, message, hint: the answer to BIND, or instead of CA */
    /* vault to egress */
    VAULT_ANNOUNCE = 32,    /* id u8, role u8, state u8, name, placeholder, binding text */
    VAULT_ANNOUNCED,
    VAULT_LEASED,           /* ticket be32, milliseconds be32, n u8, each: id u8 (| VAULT_SEARCH_ONLY), be32 length,
                             * value */
    VAULT_CERTIFIED,        /* ticket be32, milliseconds be32, certificate, key: be32 length and bytes each */
    VAULT_SIGNED,           /* ticket be32, authorization */
    VAULT_REFUSED,          /* ticket be32, an error */
    VAULT_REVOKED,          /* mask be32 */
    VAULT_EXPIRED,          /* mask be32 */
    /* egress to vault */
    VAULT_ASK_LEASE = 64,   /* ticket be32, want be32, request: tls u8, host, port be16, method, path */
    VAULT_ASK_LEAF,         /* ticket be32, host */
    VAULT_ASK_SIGNATURE,    /* ticket be32, id u8, request, date, region, service, signed headers, 32 bytes */
};

enum vault_state { VAULT_STATE_USABLE, VAULT_STATE_REVOKED, VAULT_STATE_EXPIRED };

/* A be32 length and that many bytes; wire_put_cstr is for what is a C string on both sides. */
int vault_put_bytes(struct buf *b, const void *p, size_t n);
/* Borrowed; NULL, and @in bad, when they are not there or more than @max. */
const uint8_t *vault_get_bytes(struct wire_in *in, size_t max, size_t *n);

int vault_put_request(struct buf *b, const struct binding_request *r);
/* Host and strings are borrowed from @in, but for the host, which is made canonical. False when malformed. */
bool vault_get_request(struct wire_in *in, struct binding_request *out);

/* Send one frame. 0; -1 with errno (EAGAIN on a non-blocking socket). @fd to pass along, or -1. */
int vault_send(int socket, const struct buf *frame, int fd);

/* Receive one message into @p, which has room for VAULT_MESSAGE_MAX + FRAME_HEADER + 1 bytes. 1 with @f filled, 0 at
 * the end, -1 with errno: EAGAIN, EPROTO for a message that is no single whole frame. A passed descriptor comes in @fd
 * (to be closed by the caller, -1 when there is none); NULL: descriptors are refused. */
int vault_receive(int socket, uint8_t *p, struct frame *f, int *fd, int flags);
#define VAULT_RECEIVE_ROOM (VAULT_MESSAGE_MAX + FRAME_HEADER + 1)

#endif
