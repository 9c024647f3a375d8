/* match/host.h: host names, and the patterns that rules match them with
 *
 * A name is made canonical once (case, trailing dot, every spelling of an address) into a struct host; patterns are
 * parsed once into a struct host_pattern; matching compares the two and never sees text again. Dialects differ in
 * what a star means, so each has its own parser:
 *
 *              x.com    *.x.com                     **.x.com                bare *        port
 *   cloche     exact    one label, not the apex     any depth, not apex     refused       x.com:443
 *   SRT        exact    any depth, not the apex     refused                 deny list     x.com:443, *:22
 */
#ifndef CLOCHE_MATCH_HOST_H
#define CLOCHE_MATCH_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "match/ip.h"

#define HOST_NAME_MAX_LEN 253   /* bytes of a name; 63 of a label */
#define HOST_TEXT_MAX (HOST_NAME_MAX_LEN + 7)   /* of a pattern as written: any name, its last dot and ":65535" */

enum host_fault {
    HOST_OK = 0,
    HOST_EMPTY,
    HOST_TOO_LONG,
    HOST_LABEL_TOO_LONG,
    HOST_EMPTY_LABEL,
    HOST_CONTROL,           /* NUL, CR, LF or another control byte, or a blank */
    HOST_NOT_ASCII,
    HOST_BAD_BYTE,
    HOST_HYPHEN,            /* a label begins or ends with "-" */
    HOST_URL,               /* scheme, path, query, user */
    HOST_ZONE,              /* IPv6 zone id */
    HOST_BRACKETS,
    HOST_COLONS,            /* an IPv6 address without brackets */
    HOST_BAD_PORT,
    HOST_BAD_NUMBER,        /* ends like an IPv4 address, but is none */
    HOST_BARE_STAR,
    HOST_TOO_WIDE,          /* `*.com` */
    HOST_BAD_STAR,          /* a star anywhere but in front */
    HOST_STAR_IP,
};

/* "would allow a whole top-level domain", for messages; and the stable code ("policy.host.too-wide"). */
const char *host_fault_text(enum host_fault fault);
const char *host_fault_code(enum host_fault fault);

struct host {
    char name[HOST_NAME_MAX_LEN + 1];   /* lower case, no trailing dot; an address in canonical text, no brackets */
    size_t n;
    bool is_ip;
    struct ip ip;                       /* unwrapped: ::ffff:10.0.0.1 is 10.0.0.1 */
};

enum host_pattern_kind { HOST_EXACT, HOST_ONE_LABEL, HOST_ANY_DEPTH, HOST_ANY };

struct host_pattern {
    enum host_pattern_kind kind;
    struct host host;       /* the whole name, or what follows the star */
    uint16_t port;          /* 0: any port */
};

/* The canonical form of a host as a client named it: a name, an address in any spelling, with or without brackets.
 * No port. */
enum host_fault host_canonical(struct str text, struct host *out);

/* "HOST", "HOST:PORT", "[V6]", "[V6]:PORT"; @port is 0 when none was given. */
enum host_fault host_split_port(struct str text, struct str *host, uint16_t *port);

enum host_fault host_pattern_cloche(struct str text, struct host_pattern *out);
enum host_fault host_pattern_srt(struct str text, bool deny_list, struct host_pattern *out);

/* Whether @pattern matches @host at @port (0: port unknown, which only a pattern without port matches). */
bool host_match(const struct host_pattern *pattern, const struct host *host, uint16_t port);
/* Whether each host that @inner matches is one that @outer matches; ports are not compared. */
bool host_pattern_within(const struct host_pattern *inner, const struct host_pattern *outer);
/* Names inside for the host's own loopback (--allow-host-port). @name is canonical. */
#define HOST_OWN_NAMES "host.cloche.internal", "host.docker.internal"
bool host_is_own_name(struct str name);
/* Names that clouds give to their metadata services. Their addresses are refused too; a parent proxy that resolves
 * names itself would not know that. @name is canonical. */
bool host_is_metadata(struct str name);

#endif
