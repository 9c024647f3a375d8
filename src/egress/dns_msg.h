/* egress/dns_msg.h: the DNS messages that a sandbox sends, and the answers it gets
 *
 * RFC 1035 (messages), 2181 (TTL), 3596 (AAAA, ip6.arpa), 6891 (EDNS(0)), 9619 (exactly one question). For a responder
 * that recurses nowhere: a query either names a host that the policy allows, then it gets a fake address (fake.h), or
 * it gets an error. There is no builder for any other data, so HTTPS and SVCB (RFC 9460), which could carry keys for an
 * encrypted ClientHello, can only be answered NODATA.
 *
 * Everything here is pure: no I/O, no allocation, no globals. TCP's two length bytes are the caller's.
 */
#ifndef CLOCHE_EGRESS_DNS_MSG_H
#define CLOCHE_EGRESS_DNS_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "match/ip.h"

#define DNS_NAME_MAX     253    /* bytes of a name as text, without the trailing dot */
#define DNS_NAME_WIRE    255    /* bytes of a name on the wire */
#define DNS_LABEL_MAX    63
#define DNS_UDP_PLAIN    512    /* bytes of an answer for a client without EDNS */
#define DNS_UDP_MAX      1232   /* bytes of an answer for any client over UDP; what our own OPT record says */
#define DNS_TCP_MAX      65535
#define DNS_REPLY_MAX    576    /* no answer of ours is longer; a buffer of this size is always enough */
#define DNS_PRINT_MAX    1024   /* bytes that dns_name_print needs */
#define DNS_TTL_MAX      0x7fffffff     /* RFC 2181 §8 */

enum dns_type {
    DNS_TYPE_A = 1,
    DNS_TYPE_PTR = 12,
    DNS_TYPE_AAAA = 28,
    DNS_TYPE_OPT = 41,
    DNS_TYPE_SVCB = 64,
    DNS_TYPE_HTTPS = 65,
};

enum dns_rcode {
    DNS_NOERROR = 0,
    DNS_FORMERR = 1,
    DNS_SERVFAIL = 2,
    DNS_NXDOMAIN = 3,
    DNS_NOTIMP = 4,
    DNS_REFUSED = 5,
    DNS_BADVERS = 16,           /* needs EDNS to be said */
};

enum dns_verdict {
    DNS_ASKED,                  /* a question to answer: @name, @type */
    DNS_FAULTY,                 /* answer with dns_build_empty(q, q->fault), nothing else */
    DNS_DROP,                   /* no header, or itself a response: an answer could start a loop. Say nothing. */
};

struct dns_query {
    uint16_t id;
    uint8_t opcode;
    bool rd, cd;                /* copied into the answer */
    enum dns_rcode fault;       /* DNS_FAULTY: what to answer */

    /* What was asked. Set with DNS_ASKED; with DNS_FAULTY only where question_n > 0. */
    uint16_t type;              /* any 16 bits, not only those of enum dns_type */
    uint16_t class;
    /* Whether every label is made of [A-Za-z0-9_-] and there is one: only then can it be the name of a host. When not
     * (a NUL or a dot inside a label, the root ...) answer NXDOMAIN and look nothing up. Shape beyond that (hyphens,
     * names that are numbers) is for host_canonical(); a name that it takes for an address is no name either. */
    bool is_host;
    char name[DNS_NAME_MAX];    /* is_host: lower case, no trailing dot, @name_n bytes and no NUL. Otherwise empty. */
    size_t name_n;
    uint8_t question[DNS_NAME_WIRE + 4];    /* as it was asked, for the answer (resolvers compare the case) */
    size_t question_n;

    /* EDNS(0), when its record was read whole. */
    bool has_edns;
    uint16_t edns_size;         /* what the client takes, as it says; below 512 means 512 */

    size_t limit;               /* bytes of an answer by UDP; a caller on TCP sets DNS_TCP_MAX */
};

/* Read the message @p of @n bytes. Whatever is not exactly one question in class IN, opcode QUERY, with an uncompressed
 * name, no answer or authority records, well-formed additional records and nothing after them, is faulty. Sets all of
 * @out in every case. */
enum dns_verdict dns_parse_query(const uint8_t *p, size_t n, struct dns_query *out);

struct str dns_name(const struct dns_query *q);         /* borrowed from @q */
/* The name as it was asked, any bytes, for people: everything but [A-Za-z0-9_-] is \DDD. Returns the length (no NUL is
 * written); "." for the root and where no question was read. */
size_t dns_name_print(const struct dns_query *q, char out[DNS_PRINT_MAX]);
/* The address that the name stands for in in-addr.arpa (all four labels) or ip6.arpa (all 32). The type is not looked
 * at. */
bool dns_ptr_address(const struct dns_query *q, struct ip *out);

/* Builders write one answer into @out and return its length, at most @size and q->limit. What does not fit loses its
 * records and says so (TC), which sends the client to TCP. 0: nothing was written that may be sent, because the buffer
 * is smaller than even that, or the arguments contradict the question. Never SOA: an empty answer is not cached. */

/* The address of what was asked: A with an IPv4 address, AAAA with an IPv6 one; 0 for any other pair. */
size_t dns_build_address(const struct dns_query *q, const struct ip *ip, uint32_t ttl, uint8_t *out, size_t size);
/* The name that a PTR question asks for; 0 when @name is not a host name. */
size_t dns_build_ptr(const struct dns_query *q, struct str name, uint32_t ttl, uint8_t *out, size_t size);
/* An answer without records: DNS_NOERROR is NODATA (the name is there, the type is not). */
size_t dns_build_empty(const struct dns_query *q, enum dns_rcode rcode, uint8_t *out, size_t size);

#endif
