/* egress/h2_head.h: heads of HTTP/2 messages, read as strictly as those of HTTP/1.1, and written
 *
 * Theory: what decides, places secrets and signs is made for one kind of head (http1.h), and two readers of one head
 * would sooner or later differ. So the fields of an HTTP/2 head (RFC 9113 §8) become the text that the same message has
 * in HTTP/1.1, and the one parser reads it. A byte that could change that text (CR, LF, NUL, a blank in a method or a
 * path) never gets into it. What goes out is made from the parsed head, like there.
 *
 * Stricter than RFC 9113 on purpose: a pseudo field twice or unknown, an upper-case name, a field that concerns the
 * connection, TE but "trailers", blanks around a value, Host that is not :authority, a scheme but https, and CONNECT
 * are refused. Cookie crumbs are joined (§8.2.3), for a placeholder must not hide between two of them.
 *
 * Pure; memory is the buffers' alone. Lengths count as HTTP1_HEAD_MAX and HTTP1_FIELDS_MAX say, each field with the 32
 * bytes more that SETTINGS_MAX_HEADER_LIST_SIZE counts, so that a small block that unpacks to a large head is cut off.
 */
#ifndef CLOCHE_EGRESS_H2_HEAD_H
#define CLOCHE_EGRESS_H2_HEAD_H

#include "base/buf.h"
#include "egress/exchange.h"
#include "wire/http1.h"

enum h2_kind { H2_REQUEST, H2_RESPONSE, H2_TRAILER };

enum { H2_METHOD, H2_SCHEME, H2_AUTHORITY, H2_PATH, H2_STATUS, H2_HOST, H2_PSEUDOS };

/* A head while its fields come in. */
struct h2_block {
    enum h2_kind kind;
    struct buf raw;             /* values of the pseudo fields, and of Host */
    struct buf fields;          /* the others, as lines */
    struct buf cookie;
    struct { bool there; size_t at, n; } pseudo[H2_PSEUDOS];
    size_t listed;              /* bytes as SETTINGS_MAX_HEADER_LIST_SIZE counts them */
    size_t n_fields;
    bool te;                    /* "te: trailers" */
    bool length;                /* Content-Length is there */
    enum http1_result fault;    /* the first; HTTP1_OK: none yet */
};

void h2_block_begin(struct h2_block *b, enum h2_kind kind);
void h2_block_free(struct h2_block *b);
/* One field, in the order in which they came. What is wrong stays in b->fault. */
void h2_block_field(struct h2_block *b, struct str name, struct str value);

/* All of it is here: write it to @text (fresh, ceiling HTTP1_HEAD_MAX or more; @out points into it) and read it. @end:
 * no body follows. Without that, a body of unknown length reads as HTTP1_BODY_CHUNKED. HTTP1_OK, or the fault. */
enum http1_result h2_block_request(const struct h2_block *b, bool end, struct buf *text, struct http1_head *out);
/* @method: the request's. 101 is refused. */
enum http1_result h2_block_response(const struct h2_block *b, bool end, struct str method, struct buf *text,
                                    struct http1_head *out);
/* Of @out only the fields are to be read. */
enum http1_result h2_block_trailer(const struct h2_block *b, struct buf *text, struct http1_head *out);

/* A field that goes out; borrowed from what it was made of, or from the struct's own memory. */
struct h2_field {
    struct str name, value;
    bool secret;                /* may hold one: nobody is to keep it in a table (RFC 7541 §7.1.3) */
};

#define H2_FIELDS_MAX (HTTP1_FIELDS_MAX + EXCHANGE_EDITS_MAX + 8)

struct h2_fields {
    size_t n;
    struct h2_field v[H2_FIELDS_MAX];
    struct buf own;
};

/* Where a request goes. */
struct h2_target {
    struct str host;            /* canonical, without brackets */
    uint16_t port;              /* 443 is not written */
    bool te;                    /* the client reads trailers */
};

/* Fill @out, which has to be fresh (zero), with what http1_write_* would write of the same: no field of the connection,
 * @edit's (may be NULL) changes, every piece checked again. @length: the body keeps its announced length. 0, or -1: a
 * piece may not stand where it would, or no memory. */
int h2_fields_request(struct h2_fields *out, const struct http1_head *head, const struct exchange_edit *edit,
                      const struct h2_target *to, bool length);
int h2_fields_response(struct h2_fields *out, const struct http1_head *head, const struct exchange_edit *edit,
                       bool length);
int h2_fields_trailer(struct h2_fields *out, const struct http1_head *head, const struct exchange_edit *edit);
/* Wipes it. */
void h2_fields_free(struct h2_fields *f);

#endif
