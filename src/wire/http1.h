/* wire/http1.h: HTTP/1.1 messages as a proxy must read them (RFC 9110, RFC 9112), strictly
 *
 * Theory: a message that two programs read differently is a way around the one that decides. So this codec has no
 * lenient mode: what is not plainly one message of known length is refused, and what is passed on is written again
 * from its parsed pieces (never copied through), with Host made from the target, one framing field of ours, and no
 * field that concerned only the connection it came in on.
 *
 * Everything here is a pure function over (pointer, length): no I/O, no allocation (but the writer's struct buf, which
 * has its caller's ceiling), no globals, no resolving and no policy. What a head hands out are slices of the input,
 * valid while the input is. A head is read from left to right and the first fault in byte order is reported, so a
 * prefix of a message gives HTTP1_MORE or the fault that the whole gives: how the bytes were cut into packets changes
 * nothing.
 *
 * Stricter than the RFCs on purpose: no obs-fold, no bare LF, no empty line before a request, no chunk extensions
 * (nobody needs them, and how they end is what servers disagree on), no Content-Length list or repetition even of equal
 * values, no HTAB around a Content-Length or Transfer-Encoding, no transfer coding but chunked, no empty Host, no
 * userinfo, no Expect but 100-continue, no malformed %XX in a target, no trailer that would frame or route.
 */
#ifndef CLOCHE_WIRE_HTTP1_H
#define CLOCHE_WIRE_HTTP1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

#define HTTP1_HEAD_MAX (64 * 1024)      /* bytes of a head, start line and last empty line included */
#define HTTP1_FIELDS_MAX 128
#define HTTP1_METHOD_MAX 32
#define HTTP1_TARGET_MAX (16 * 1024)
#define HTTP1_HOST_MAX 255              /* bytes of a host as written, without brackets and port */
#define HTTP1_OPTIONS_MAX 32            /* options in all Connection fields of one head */
#define HTTP1_TRAILER_MAX (8 * 1024)    /* bytes of trailer section, which is checked and dropped */
#define HTTP1_TRAILER_FIELDS_MAX 64

enum http1_result {
    HTTP1_OK = 0,
    HTTP1_MORE,                 /* a good beginning: more bytes are needed */
    /* bytes and lines */
    HTTP1_BARE_CR, HTTP1_BARE_LF, HTTP1_CONTROL_BYTE, HTTP1_HEAD_TOO_LARGE,
    /* start line */
    HTTP1_BAD_METHOD, HTTP1_METHOD_TOO_LONG, HTTP1_BAD_TARGET, HTTP1_TARGET_TOO_LONG, HTTP1_TARGET_FORM,
    HTTP1_BAD_VERSION, HTTP1_BAD_STATUS,
    /* fields */
    HTTP1_LEADING_SPACE, HTTP1_OBS_FOLD, HTTP1_EMPTY_NAME, HTTP1_BAD_NAME, HTTP1_SPACE_BEFORE_COLON,
    HTTP1_TOO_MANY_FIELDS,
    /* authority: of the target and of Host */
    HTTP1_NO_HOST, HTTP1_MANY_HOSTS, HTTP1_BAD_HOST, HTTP1_USERINFO, HTTP1_BAD_PORT, HTTP1_NO_PORT,
    /* framing */
    HTTP1_BAD_LENGTH, HTTP1_MANY_LENGTHS, HTTP1_BAD_CODING, HTTP1_CODING_IN_10, HTTP1_CODING_AND_LENGTH,
    HTTP1_UNEXPECTED_BODY,
    /* what a field asks of the connection */
    HTTP1_BAD_CONNECTION, HTTP1_BAD_EXPECT,
    /* bodies */
    HTTP1_BAD_CHUNK, HTTP1_BAD_TRAILER, HTTP1_TRAILER_TOO_LARGE, HTTP1_BODY_TOO_LARGE, HTTP1_BODY_CUT,
    HTTP1_RESULTS,
};

/* The fixed word for logs, audit and tests ("obs-fold"), and the status that answers a request refused so (400, 413,
 * 414, 417, 431, 501, 505; 0 for HTTP1_OK and HTTP1_MORE). Any number is safe to ask of. */
const char *http1_word(enum http1_result result);
unsigned http1_answer(enum http1_result result);

enum http1_host_kind { HTTP1_HOST_NONE = 0, HTTP1_HOST_NAME, HTTP1_HOST_IPV4, HTTP1_HOST_IPV6 };
enum http1_scheme { HTTP1_SCHEME_NONE = 0, HTTP1_SCHEME_HTTP, HTTP1_SCHEME_HTTPS };

/* HTTP1_HOST_NAME says only that it is no strict address: "0x7f.1" is a name here. What a host stands for is
 * host_canonical's to say (match/host.h). */
struct http1_authority {
    struct str text;            /* as written, brackets and port included */
    struct str host;            /* without brackets: only [A-Za-z0-9._-], or an IPv6 address */
    enum http1_host_kind kind;
    uint16_t port;              /* stated, else the target's scheme's; 0: not stated and no scheme */
    bool port_stated;
};

/* "host", "host:port", "[v6]", "[v6]:port", the whole of @text. With @need_port a missing port is HTTP1_NO_PORT. */
enum http1_result http1_authority_parse(struct str text, bool need_port, struct http1_authority *out);

struct http1_field {
    struct str name;            /* a token, as written */
    struct str value;           /* without blanks around it; no CR, LF, NUL or other control byte but HTAB */
    bool hop;                   /* concerns this connection only: not passed on (RFC 9110 §7.6.1) */
};

enum http1_form { HTTP1_FORM_NONE = 0, HTTP1_ORIGIN, HTTP1_ABSOLUTE, HTTP1_AUTHORITY, HTTP1_ASTERISK };
enum http1_framing { HTTP1_BODY_NONE = 0, HTTP1_BODY_LENGTH, HTTP1_BODY_CHUNKED, HTTP1_BODY_UNTIL_CLOSE };

struct http1_head {
    size_t length;              /* bytes of the head: the body begins here */
    unsigned minor;             /* HTTP/1.0 or HTTP/1.1 */

    /* requests */
    struct str method;
    struct str target;          /* as written */
    enum http1_form form;
    enum http1_scheme scheme;   /* of an absolute target */
    struct str path;            /* begins with "/"; empty for "http://host", CONNECT and "*" */
    struct str query;           /* with its "?", or empty */
    struct http1_authority authority;   /* who is asked for: the target's, else Host's; kind NONE: HTTP/1.0 without */
    struct http1_authority host;        /* the Host field's: the caller compares where they must agree */
    bool expect_continue;       /* the client waits for 100 before it sends the body */

    /* responses */
    unsigned status;            /* 100 to 999 */
    struct str reason;          /* may be empty */
    bool tunnel;                /* 101, or 2xx to CONNECT: what follows is no HTTP */

    /* both */
    enum http1_framing framing;
    uint64_t body_length;       /* of HTTP1_BODY_LENGTH */
    bool length_stated;         /* Content-Length was there (HEAD and 304: without a body) */
    uint64_t stated_length;
    bool keep_alive;            /* the peer leaves the connection open after this message */
    struct str upgrade;         /* the protocols asked for: Upgrade's value, if Connection names it and HTTP is 1.1 */
    size_t n_fields;
    struct http1_field fields[HTTP1_FIELDS_MAX];
};

/* Read the head that @p begins with, of at most HTTP1_HEAD_MAX bytes (the _max forms: @head_max, when that is less).
 * HTTP1_OK fills @out; after anything else @out holds nothing that may be used. */
enum http1_result http1_parse_request(const uint8_t *p, size_t n, struct http1_head *out);
enum http1_result http1_parse_request_max(const uint8_t *p, size_t n, size_t head_max, struct http1_head *out);
/* The same for who is reached by other ways than a name, and is told anything as Host: its value is not judged (@out's
 * authority and host are of kind NONE where it is malformed); two of them, or none in HTTP/1.1, are refused. */
enum http1_result http1_parse_request_any_host(const uint8_t *p, size_t n, size_t head_max, struct http1_head *out);
/* @method is the request's: HEAD and CONNECT change what follows the head. */
enum http1_result http1_parse_response(const uint8_t *p, size_t n, struct str method, struct http1_head *out);
enum http1_result http1_parse_response_max(const uint8_t *p, size_t n, size_t head_max, struct str method,
                                           struct http1_head *out);

/* Whether parsing again can tell anything new, when @seen of the @n bytes were there at the last attempt (which said
 * HTTP1_MORE). Bytes that trickle in would otherwise cost the square of their number. */
bool http1_worth_parsing(const uint8_t *p, size_t n, size_t seen, size_t head_max);

/* The first field of that name, whatever its case, from index *@at on (NULL: from the beginning); *@at is left behind
 * it. NULL when there is none. */
const struct http1_field *http1_find(const struct http1_head *head, struct str name, size_t *at);

/* Cut the next element of a comma list off *@rest, without blanks around it; empty elements are passed over. False at
 * the end. Quoted strings are not known: for Connection, TE and Upgrade, which have none. */
bool http1_list_next(struct str *rest, struct str *item);

bool http1_equal(struct str a, struct str b);   /* ASCII case does not matter */
bool http1_is_token(struct str s);              /* RFC 9110 §5.6.2: methods, names, options */
bool http1_is_value(struct str s);              /* may stand in a field value */
/* Whether fields of this name never pass a proxy, named in Connection or not. */
bool http1_is_hop(struct str name);
/* A trailer that would say where the message goes or ends: whoever sends it hopes for a reader that is not careful. */
bool http1_is_bad_trailer(struct str name);

/* Bodies ---------------------------------------------------------------------------------------------------------- */

struct http1_body {
    enum http1_framing framing;
    uint64_t left;              /* of the body (LENGTH) or of the chunk */
    uint64_t total;             /* bytes of data handed out or announced by chunk sizes */
    uint64_t max;
    uint8_t state;
    uint8_t digits;             /* of the chunk size so far */
    uint8_t name_n;             /* bytes of the trailer name; the first are in @name */
    uint8_t trailer_fields;
    uint32_t trailer_bytes;
    char name[24];
    enum http1_result fault;    /* once refused, refused for good */
};

/* A decoder for the body that @head announces, of at most @max bytes: HTTP1_OK, or HTTP1_BODY_TOO_LARGE when the
 * announced length is already more. */
enum http1_result http1_body_begin(struct http1_body *body, const struct http1_head *head, uint64_t max);

/* Take bytes from @p: *@used says how many, *@data is the slice of them that is body (maybe empty). HTTP1_MORE: go on
 * with the bytes after *@used, which is > 0 unless @n is 0; HTTP1_OK: that was all of the body, what follows is the
 * next message; anything else: a fault. A trailer section is checked by the field rules and dropped. */
enum http1_result http1_body_next(struct http1_body *body, const uint8_t *p, size_t n, struct str *data, size_t *used);

/* The peer closed: HTTP1_OK when the body is whole, else HTTP1_BODY_CUT (or the earlier fault). */
enum http1_result http1_body_end(const struct http1_body *body);

/* Writing --------------------------------------------------------------------------------------------------------- */

enum http1_connection { HTTP1_CONN_DEFAULT = 0, HTTP1_CONN_CLOSE, HTTP1_CONN_KEEP_ALIVE };

struct http1_add {
    struct str name, value;
};

/* What goes out. Of @from, the fields that are not hop-by-hop, not Host, Content-Length or Transfer-Encoding (which
 * are written from what is said here), and not named in @drop; then @add. */
struct http1_out {
    const struct http1_head *from;      /* its fields; NULL: none */
    const struct str *drop;             /* further names that are not passed on, whatever their case */
    size_t n_drop;
    const struct http1_add *add;        /* hop-by-hop names are allowed here only for Proxy-Authorization and
                                         * Proxy-Authenticate; Host and framing are refused */
    size_t n_add;
    enum http1_framing framing;         /* announced so; a request cannot be UNTIL_CLOSE */
    uint64_t body_length;
    enum http1_connection connection;
    struct str upgrade;                 /* when not empty: "Connection: Upgrade" and this as Upgrade */
};

struct http1_request_out {
    struct http1_out out;
    struct str method;
    enum http1_form form;       /* ORIGIN, ABSOLUTE (to a parent proxy), AUTHORITY (CONNECT), ASTERISK (OPTIONS) */
    enum http1_scheme scheme;   /* for the default port, which Host does not name; and an absolute target's */
    struct str host;            /* without brackets: a name, an IPv4 or an IPv6 address */
    uint16_t port;              /* never 0 */
    struct str path, query;     /* as struct http1_head has them */
};

/* HTTP1_BODY_NONE is for 1xx, 204, 304, HEAD and 2xx to CONNECT, and refused elsewhere, where silence would mean "until
 * close": an empty body is HTTP1_BODY_LENGTH 0. UNTIL_CLOSE wants HTTP1_CONN_CLOSE. */
struct http1_response_out {
    struct http1_out out;
    unsigned status;
    struct str reason;
    struct str method;          /* the request's */
};

/* Append the head to @b. Returns -1, with @b as it was, when a piece may not stand where it would (a value with CR, LF
 * or NUL, a name that is no token, a target that this parser would refuse ...) or when the buffer's ceiling was met
 * (then !buf_ok(@b)). Always HTTP/1.1. */
int http1_write_request(struct buf *b, const struct http1_request_out *req);
int http1_write_response(struct buf *b, const struct http1_response_out *res);
/* One chunk of at least one byte; and the last chunk with an empty trailer section. 0, or -1 as above. */
int http1_write_chunk(struct buf *b, struct str data);
int http1_write_last_chunk(struct buf *b);

#endif
