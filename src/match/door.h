/* match/door.h: the addresses of a server of ours, and what a client says of where it came to and from
 *
 * A browser can be made to send requests to any address, under any name that a stranger's DNS gives it. Who really
 * meant this server says so in Host (RFC 9110 §7.2); on whose behalf a page asks is in Origin (RFC 6454 §7). Pure.
 */
#ifndef CLOCHE_MATCH_DOOR_H
#define CLOCHE_MATCH_DOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "match/host.h"

struct door {
    bool tcp;
    struct str path;        /* unix: borrowed from the text, not empty */
    struct ip ip;           /* tcp */
    uint16_t port;          /* 0: any free one */
};

/* "unix:PATH", "tcp:ADDRESS:PORT", "tcp:[ADDRESS]:PORT": the whole of @text. False with @why, a sentence's end. */
bool door_parse(struct str text, struct door *out, const char **why);
/* Reached from this host only. */
bool door_is_loopback(const struct door *door);

/* Whether the value of a Host header names one of @allowed, at any port unless the pattern has one. @default_port is
 * what no port means. @any_address: an address is fine, whichever (it came to one of ours, and no name led there). */
bool door_host(struct str value, uint16_t default_port, const struct host_pattern *allowed, size_t n, bool any_address);

struct door_origin {
    bool https;
    struct host host;
    uint16_t port;
};

/* "http://HOST[:PORT]" or "https://HOST[:PORT]" and nothing behind it. "null" is none. */
bool door_origin(struct str value, struct door_origin *out);
/* What a page that this server itself sent would say: by the scheme and the Host that it was asked for. */
bool door_origin_of_host(struct str value, bool https, struct door_origin *out);
bool door_origin_eq(const struct door_origin *a, const struct door_origin *b);

#endif
