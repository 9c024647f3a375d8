/* match/ip.h: internet addresses as rules see them
 *
 * One address has many spellings (2130706433, 0x7f.1, ::ffff:7f00:1, 64:ff9b::7f00:1 ...). A rule that compares text
 * is a rule that can be walked around, so text is parsed once into a struct ip, an address that only carries another
 * one is unwrapped, and classes are decided on the bytes.
 */
#ifndef CLOCHE_MATCH_IP_H
#define CLOCHE_MATCH_IP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define IP_TEXT_MAX 46      /* bytes that ip_format needs, with the NUL */

struct ip {
    uint8_t b[16];          /* network order; an IPv4 address uses the first 4 */
    uint8_t family;         /* 4 or 6 */
};

/* Most restrictive first: where an address could be two of these, it is the earlier one. */
enum ip_class {
    IP_UNSPECIFIED,         /* ::, 0.0.0.0 */
    IP_THIS_NETWORK,        /* 0/8 */
    IP_LINK_LOCAL,          /* 169.254/16, fe80::/10: where cloud metadata lives */
    IP_METADATA,            /* metadata services elsewhere: 168.63.129.16, 100.100.100.200, fd00:ec2::254 ... */
    IP_LOOPBACK,            /* 127/8, ::1 */
    IP_PRIVATE,             /* 10/8, 172.16/12, 192.168/16, fc00::/7, fec0::/10 */
    IP_SHARED,              /* 100.64/10 */
    IP_MULTICAST,           /* 224/4, ff00::/8 */
    IP_BROADCAST,
    IP_SPECIAL,             /* documentation, benchmarking, reserved, discard, translation prefixes */
    IP_PUBLIC,
};

const char *ip_class_name(enum ip_class c);     /* "link-local" */

/* Strict text: a dotted quad without leading zeros, or RFC 4291 (no zone, no brackets). The whole of @s or false. */
bool ip_parse(struct str s, struct ip *out);

/* What a C library's resolver also takes for an address: additionally inet_aton forms (1 to 4 parts, decimal, octal,
 * hexadecimal), and an IPv6 address in brackets. */
bool ip_parse_loose(struct str s, struct ip *out);

/* The address that @ip stands for: IPv4 inside mapped, compatible, SIIT, NAT64 (64:ff9b::/96, 64:ff9b:1::/48), 6to4
 * and Teredo (the client) forms; any other address is returned as it is. */
struct ip ip_unwrap(struct ip ip);

/* The class of what @ip stands for. An embedding of a public address is IP_PUBLIC only for mapped, compatible, SIIT
 * and 64:ff9b::/96 forms; tunnels (6to4, Teredo) and local translation prefixes are IP_SPECIAL at best, and what they
 * or an ISATAP interface id carry counts when it is the more restricted of the two. */
enum ip_class ip_classify(struct ip ip);

/* RFC 5952 text (dotted quad for IPv4). Returns the length. */
size_t ip_format(const struct ip *ip, char out[IP_TEXT_MAX]);

bool ip_eq(const struct ip *a, const struct ip *b);

/* The source's helper functions (R44). */

/* 0/8, 169.254/16, fe80::/10, ::, ::1: refused whatever the configuration says. */
bool ip_is_always_blocked(struct ip ip);
/* isBlockedPrivateOrLinkLocalIp: the above, or 10/8, 127/8, 172.16/12, 192.168/16, fc00::/7, in any spelling or
 * embedding. Text that is no address at all counts as blocked. */
bool ip_is_blocked_private_or_link_local(struct str text);
/* isLoopbackHost: "localhost", a name below it, the usual aliases, or any spelling of a loopback address. */
bool ip_is_loopback_host(struct str host);
/* normalizeIpForPolicy: the canonical text of what @text stands for. False when it is not an address. */
bool ip_normalise_for_policy(struct str text, char out[IP_TEXT_MAX]);

#endif
