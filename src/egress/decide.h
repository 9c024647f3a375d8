/* egress/decide.h: the one decision about every way out of a sandbox
 *
 * CONNECT, plain HTTP, SOCKS, SNI, plain TCP and DNS all ask here, so that none of them is a way around another. Pure:
 * rules and request in, verdict out.
 *
 * In two steps. decide() judges what the client said: a name, or an address as a literal. decide_address() judges what
 * the name resolved to, before any of it is dialled. Only both together open a connection.
 *
 *   - A deny rule beats every allow rule; what no rule allows is denied (or asked about).
 *   - A name is made canonical once (match/host.h). A rule matches in its own dialect.
 *   - An allow rule without a port means 80 and 443; in the SRT dialect it means every port, as SRT's users expect. A
 *     deny rule without a port means every port.
 *   - An address is taken only as inet_pton(3) reads it, never as 127.1 or ::ffff:7f00:1, and only when a rule is
 *     exactly that address.
 *   - Loopback, link-local, unspecified, multicast and metadata addresses, the host's own, and names for them are
 *     refused whatever the rules say. Private, shared and special-purpose ones need a rule that is that address.
 *   - A port of the host's loopback may be opened by its number. Then two names that nobody can own
 *     (HOST_OWN_NAMES) lead to it, at that port; nothing is looked up for them, and no other name leads there.
 *   - Among the addresses of one name, one that is refused refuses them all: a resolver that mixes them lies.
 */
#ifndef CLOCHE_EGRESS_DECIDE_H
#define CLOCHE_EGRESS_DECIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "match/host.h"
#include "match/ip.h"
#include "egress/mcp_rule.h"
#include "egress/meant.h"
#include "policy/policy.h"

#define DECIDE_METHODS_MAX POLICY_METHODS_MAX
#define DECIDE_TOOLS_MAX POLICY_TOOLS_MAX
#define DECIDE_ADDRESSES_MAX 64     /* answers for one name; more is refused */

/* Narrows a rule to requests. All strings are borrowed. A rule that has a scope can be judged only on a request that
 * we can read, so a connection that it may concern has to be inspected. */
struct decide_scope {
    struct str methods[DECIDE_METHODS_MAX];     /* exact, as in "GET" */
    size_t n_methods;                           /* 0: every method */
    struct str path;            /* of url_path_pattern(), over the path without query; empty: every path */
    struct str tools[DECIDE_TOOLS_MAX];         /* patterns of match/tool.h. An allow rule with such opens an MCP server
                                                 * for these tools' calls and for what calls none; a deny rule closes
                                                 * the calls */
    size_t n_tools;             /* 0: the rule is none about MCP */
};

struct decide_rule {
    struct host_pattern pattern;
    bool has_scope;
    struct decide_scope scope;
    struct str text;            /* as written; borrowed */
    struct origin from;         /* its name is borrowed */
};

struct decide_list {
    struct decide_rule *v;
    uint64_t *kin;              /* of each (decide_kin.h) */
    size_t n;
};

/* The lists of rules. A DECIDE_HOST_PORT is a port alone, in decimal; a DECIDE_KEPT is a host whose TLS is not opened
 * because all is. */
enum decide_which { DECIDE_ALLOWS, DECIDE_DENIES, DECIDE_HOST_PORT, DECIDE_KEPT };

/* What is looked into beside what rules about requests ask for. */
struct decide_look {
    bool open_tls;              /* TLS to every host that is allowed, but to DECIDE_KEPT */
    bool refuse_opaque;         /* what is not looked into does not pass */
    bool refuse_moving;         /* requests whose path url_path_moves(), or whose @meant is unclear */
};

/* Compiled rules of one sandbox. Made once, then only read. */
struct decide_rules {
    bool closed;                /* network: none */
    bool srt;
    bool mcp;                   /* a rule is about tools: requests have to say what they call */
    bool ask;                   /* set by the caller: what no rule names is DECIDE_ASK instead of DECIDE_DENY */
    struct origin from;         /* of the network setting: what answers when no rule does */
    struct decide_list allow, deny, host_ports, kept;
    struct decide_look look;
    const struct ip *own;       /* set by the caller, borrowed: addresses of the host's interfaces, never dialled */
    size_t n_own;
};

#define DECIDE_RULES_INIT { .closed = true }
#define cleanup_decide_rules __attribute__((cleanup(decide_rules_free)))

/* Compile the policy's network rules into @out, which must be fresh (DECIDE_RULES_INIT). The policy must outlive them.
 * 0, or -1 with @err: out of memory, a rule that is none (policy_validate would have said so), or a policy that gives
 * the sandbox the host's own network, where there is nothing to decide. */
int decide_compile(const struct policy *policy, struct decide_rules *out, struct err *err);
struct decide_list *decide_list_of(struct decide_rules *rules, enum decide_which which);
/* Add one rule in the rules' dialect; @scope may be NULL, its strings and @text must outlive the rules. */
int decide_rules_add(struct decide_rules *rules, enum decide_which which, struct str text, const struct origin *from,
                     const struct decide_scope *scope, struct err *err);
void decide_rules_free(struct decide_rules *rules);

enum decide_via { DECIDE_DNS, DECIDE_CONNECT, DECIDE_HTTP, DECIDE_TLS_SNI, DECIDE_SOCKS, DECIDE_TCP };

struct decide_request {
    enum decide_via via;
    struct str host;            /* as the client said it, without port; IPv6 in brackets for CONNECT and HTTP only */
    const struct ip *ip;        /* instead of @host (then empty): an address that came as bytes (SOCKS, TCP) */
    uint16_t port;              /* 0 for DNS, and only there */
    struct str method, path;    /* HTTP only: of the request line, the path in origin form */
    struct str query;           /* ... and what is behind it, which no rule is about: who is asked sees it */
    struct meant meant;         /* ... what its fields say instead */
    const struct mcp_message *mcp;      /* HTTP only: what it asks of an MCP server; NULL is MCP_UNREAD */
};

enum decide_kind { DECIDE_DENY = 0, DECIDE_ALLOW, DECIDE_ASK };

struct decide_verdict {
    enum decide_kind kind;
    bool inspect;               /* ALLOW and ASK: a rule with a scope may concern it, so every request must be read and
                                 * decided again with DECIDE_HTTP. Whoever cannot do that refuses the connection. Not
                                 * set for DNS and HTTP */
    bool open, clear;           /* ALLOW and ASK, as @inspect: its TLS is opened (decide_look); nothing that stays
                                 * closed may pass */
    bool narrow;                /* HTTP: for this host the rules look at more than the host: another request may be
                                 * decided otherwise */
    bool unread;                /* HTTP: with DENY; what the request asks of an MCP server decides. Collect its body and
                                 * decide again. Only where @mcp was MCP_UNREAD; nothing is to be logged */
    const char *reason;         /* stable word, static: see decide.c */
    const char *detail;         /* for people, static; may be "" */
    struct str rule;            /* the rule that decided, as written; empty when none did. Borrowed from the rules */
    struct origin from;         /* where that rule, or the setting that stands in for it, came from */
    struct host host;           /* canonical; n is 0 when the host was none. For decide_address: the address that was
                                 * refused */
};

void decide(const struct decide_rules *rules, const struct decide_request *request, struct decide_verdict *out);

/* Whether all of the @n resolved addresses (or the one literal that decide() allowed) may be dialled at @port. ALLOW or
 * DENY, never ASK. */
void decide_address(const struct decide_rules *rules, const struct ip *set, size_t n, uint16_t port,
                    struct decide_verdict *out);

/* Whether @host at @port is the host's own loopback at that port, which a rule has opened. */
bool decide_is_host_port(const struct decide_rules *rules, const struct host *host, uint16_t port);

#endif
