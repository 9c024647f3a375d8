/* egress/sniff.h: which protocol a connection to the forward-proxy port speaks
 *
 * One port takes them all, because clients disagree about which variable names which proxy. Pure, and decided on as few
 * bytes as settle it: never more than SNIFF_MAX. What follows is that protocol's parser's matter; a wrong guess here is
 * a refusal there.
 */
#ifndef CLOCHE_EGRESS_SNIFF_H
#define CLOCHE_EGRESS_SNIFF_H

#include <stddef.h>
#include <stdint.h>

#define SNIFF_METHOD_MAX 20     /* bytes of a method; the longest registered one has 17 (UPDATEREDIRECTREF) */
#define SNIFF_MAX (SNIFF_METHOD_MAX + 1)

enum sniff {
    SNIFF_MORE,         /* could still be several */
    SNIFF_HTTP,         /* a method in capitals and a space (RFC 9112) */
    SNIFF_HTTP2,        /* the preface of HTTP/2 without negotiation (RFC 9113 3.4): to be refused by name */
    SNIFF_TLS,
    SNIFF_SOCKS4,
    SNIFF_SOCKS5,
    SNIFF_UNKNOWN,
};

enum sniff sniff(const uint8_t *p, size_t n);

/* Whether what no sniff() knows is a request all the same, to a server that is generous: any method, any blanks. Judged
 * on the first line that is not empty, which then ends with its version. MORE: the first *@safe bytes are no part of
 * the version, and may be passed on; the next call is about the rest. */
enum sniff_line { SNIFF_LINE_MORE, SNIFF_LINE_NONE, SNIFF_LINE_REQUEST };
enum sniff_line sniff_line(const uint8_t *p, size_t n, size_t *safe);

const char *sniff_name(enum sniff what);    /* "socks5" */

#endif
