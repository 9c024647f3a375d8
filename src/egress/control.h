/* egress/control.h: what the supervisor says to cloche-egress
 *
 * One SOCK_SEQPACKET message is one frame (wire/packet.h), and a list of fields (proto/field.h). The answers are JSON,
 * one object a message (log.c), as the network log has them.
 *
 * At first come the rules, what stands for the whole run (parent proxies, certificates, the vault), and GO: it opens
 * and says {"event": "up"}, or "failed" with the reason. Later CHANGE begins another set of rules, and GO ends it: it
 * replaces the former one as a whole or, when one of its rules is none, not at all.
 */
#ifndef CLOCHE_EGRESS_CONTROL_H
#define CLOCHE_EGRESS_CONTROL_H

#include <limits.h>

#include "egress/rule_wire.h"
#include "match/ip.h"
#include "proto/field.h"

#define EGRESS_PARENT_PIECE 1024    /* bytes of a parent proxy's address, or of the list of hosts without one */

enum ask_says { ASK_NO, ASK_YES, ASK_HOST };    /* HOST: yes to all that comes on the connections that wait */
enum parent_part { PARENT_HTTP, PARENT_HTTPS, PARENT_NO_PROXY };

#define EGRESS_SAY_RULE(F) F(REST, text, 1, RULE_WIRE_MAX - 1)      /* rule_wire.h */
PROTO_STRUCT(egress_rule, EGRESS_SAY_RULE);

#define EGRESS_SAY_CHANGE(F) F(U64_IN, number, 1, INT64_MAX)
PROTO_STRUCT(egress_change, EGRESS_SAY_CHANGE);

#define EGRESS_SAY_ASK(F) F(U32, ms)
PROTO_STRUCT(egress_ask, EGRESS_SAY_ASK);

#define EGRESS_SAY_PARENT(F) \
    F(ENUM, parent_part, part, PARENT_HTTP, PARENT_NO_PROXY) \
    F(STR, text, EGRESS_PARENT_PIECE)       /* a URL, or a piece of the list */
PROTO_STRUCT(egress_parent, EGRESS_SAY_PARENT);

#define EGRESS_SAY_TRUST(F) F(TEXT, file, PATH_MAX)
PROTO_STRUCT(egress_trust, EGRESS_SAY_TRUST);

#define EGRESS_SAY_NAME_SERVER(F) F(TEXT, address, IP_TEXT_MAX - 1)
PROTO_STRUCT(egress_name_server, EGRESS_SAY_NAME_SERVER);

#define EGRESS_SAY_ANSWER(F) \
    F(U32, number) \
    F(ENUM, ask_says, says, ASK_NO, ASK_HOST) \
    F(TEXT, by, 127)                        /* who answered */
PROTO_STRUCT(egress_answer, EGRESS_SAY_ANSWER);

#define EGRESS_SAY_LOOK(F) \
    F(BOOL, open_tls) \
    F(BOOL, refuse_opaque) \
    F(BOOL, refuse_moving)
PROTO_STRUCT(egress_look, EGRESS_SAY_LOOK);

#define EGRESS_SAY_STRIP(F) F(TEXT, name, POLICY_STRIP_NAME_MAX)
PROTO_STRUCT(egress_strip, EGRESS_SAY_STRIP);

#define EGRESS_TO(M) \
    M(EGRESS_RULE,    1, egress_rule) \
    M(EGRESS_SRT,     2, nothing)           /* the rules are in the SRT dialect */ \
    M(EGRESS_ASK,     3, egress_ask)        /* about what no rule names, and wait for so long */ \
    M(EGRESS_PARENT,  4, egress_parent) \
    M(EGRESS_TRUST,   5, egress_trust)      /* certificates in that file, beside the host's */ \
    M(EGRESS_VAULT,   6, nothing)           /* there is one */ \
    M(EGRESS_GO,      7, nothing)           /* that was all */ \
    M(EGRESS_CHANGE,  8, egress_change)     /* what follows replaces the rules */ \
    M(EGRESS_ANSWER,  9, egress_answer)     /* to a question */ \
    M(EGRESS_NAME_SERVER, 10, egress_name_server)   /* asked in place of the host's; by ip_format() */ \
    M(EGRESS_LOOK,   11, egress_look)       /* into what, for the whole run (decide.h) */ \
    M(EGRESS_STRIP,  12, egress_strip)      /* a field that answers lose */
PROTO_EDGE(egress_of_supervisor, EGRESS_TO);

#endif
