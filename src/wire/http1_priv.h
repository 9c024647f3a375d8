/* wire/http1_priv.h: what the files of the HTTP/1 codec share
 *
 * The grammar's byte classes as one table, so that a byte is judged the same wherever it stands.
 */
#ifndef CLOCHE_WIRE_HTTP1_PRIV_H
#define CLOCHE_WIRE_HTTP1_PRIV_H

#include "wire/http1.h"

enum http1_class {
    C_TOKEN = 0x01,     /* tchar */
    C_VALUE = 0x02,     /* field value: VCHAR, obs-text, SP, HTAB */
    C_PATH = 0x04,      /* path of a target: RFC 3986 pchar and "/", and what browsers send unescaped: [ ] ^ { | } */
    C_QUERY = 0x08,     /* the same, "?", and "\" and "`", which no server takes for a path separator there */
    C_HOST = 0x10,      /* a name or an IPv4 address */
    C_HEX = 0x20,
};

extern const uint8_t http1_class[256];

static inline bool
http1_is(uint8_t c, unsigned classes)
{
    return (http1_class[c] & classes) != 0;
}

/* Path and query of a target: begins with "/" or "?" or is empty, every byte allowed, every % with two digits. */
bool http1_target_ok(struct str path, struct str query);

/* Meaning, once every line is well formed: fills authority, framing, connection. */
enum http1_result http1_settle_request(struct http1_head *head, bool any_host);
enum http1_result http1_settle_response(struct http1_head *head, struct str method);

#endif
