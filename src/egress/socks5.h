/* egress/socks5.h: the server's side of SOCKS version 5 (RFC 1928)
 *
 * Pure: bytes received so far in, verdict and the bytes to answer with out. We are a SOCKS server for one purpose, a
 * TCP connection to a name (or to an address that a rule names): no authentication (who asks is known by the listening
 * socket), CONNECT only. SOCKS 4 and 4a are recognised so that they can be refused in their own words.
 *
 * A dialogue: socks5_greeting, send @answer, socks5_request, then send what socks5_reply builds. A client may send its
 * request together with the greeting; @consumed says where the next message begins.
 */
#ifndef CLOCHE_EGRESS_SOCKS5_H
#define CLOCHE_EGRESS_SOCKS5_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "match/host.h"
#include "match/ip.h"

#define SOCKS5_REPLY_MAX 22     /* bytes of a reply with an IPv6 address */
#define SOCKS5_REQUEST_MAX (4 + 1 + 255 + 2)
#define SOCKS4_REPLY 8
#define SOCKS4_TEXT_MAX 255     /* bytes of a SOCKS 4 user, and of a 4a name */

enum socks_status {
    SOCKS_OK = 0,
    SOCKS_MORE,         /* a proper beginning; the rest has not come yet */
    SOCKS_REFUSED,      /* send the answer, then close */
    SOCKS_NOT_SOCKS,    /* another protocol or version: close without an answer */
};

/* RFC 1928 section 6. */
enum socks5_code {
    SOCKS5_SUCCEEDED = 0x00,
    SOCKS5_FAILURE = 0x01,              /* also: a request that is no request */
    SOCKS5_NOT_ALLOWED = 0x02,          /* by ruleset: the policy says no */
    SOCKS5_NET_UNREACHABLE = 0x03,
    SOCKS5_HOST_UNREACHABLE = 0x04,     /* also: the name has no address */
    SOCKS5_REFUSED = 0x05,
    SOCKS5_TTL_EXPIRED = 0x06,          /* connection attempts timed out */
    SOCKS5_COMMAND = 0x07,              /* BIND, UDP ASSOCIATE, anything else */
    SOCKS5_ADDRESS_TYPE = 0x08,
};

struct socks5_greeting {
    size_t consumed;
    uint8_t answer[2];      /* on OK and REFUSED */
};

struct socks5_request {
    size_t consumed;
    enum socks5_code code;  /* on REFUSED: what to reply with */
    bool is_name;
    size_t host_n;          /* of a name: bytes [A-Za-z0-9_.-], as sent; otherwise 0 */
    char host[HOST_NAME_MAX_LEN + 1];
    struct ip ip;           /* when it is no name; as sent, not unwrapped */
    uint16_t port;          /* 1 to 65535 */
};

struct socks4_refusal {
    size_t consumed;
    bool is_4a;
    uint8_t answer[SOCKS4_REPLY];
};

/* OK when the client offers "no authentication". REFUSED when it offers only others, or none. */
enum socks_status socks5_greeting(const uint8_t *p, size_t n, struct socks5_greeting *out);

/* REFUSED: anything but CONNECT (0x07), an unknown address type (0x08), a name that is empty, longer than 253 bytes or
 * holds another byte than a host name has, a reserved byte that is not zero, port 0 (all 0x01). */
enum socks_status socks5_request(const uint8_t *p, size_t n, struct socks5_request *out);

/* The reply with @code into @out; @bound (may be NULL: 0.0.0.0:0, which tells the sandbox nothing) is the address that
 * we connect from. Returns its length. */
size_t socks5_reply(enum socks5_code code, const struct ip *bound, uint16_t port, uint8_t out[SOCKS5_REPLY_MAX]);

/* The code for what connect() or a resolver's end said; @saved_errno as errno(3) names it. */
enum socks5_code socks5_code_of(int saved_errno);

/* A SOCKS 4 or 4a request: never OK. REFUSED once it is here as a whole (so that the client reads the answer before
 * the connection ends) or has grown past what one may be. */
enum socks_status socks4_request(const uint8_t *p, size_t n, struct socks4_refusal *out);

#endif
