/* egress/why_host.h: `cloche why --host`: what egress would answer, asked of the very rules that it decides with
 *
 * Pure. A name is judged as a name: what it resolves to is known only when a connection is made.
 */
#ifndef CLOCHE_EGRESS_WHY_HOST_H
#define CLOCHE_EGRESS_WHY_HOST_H

#include <stddef.h>

#include "base/err.h"
#include "match/ip.h"
#include "policy/policy.h"
#include "policy/why.h"

#define WHY_HOST_PORT 443       /* what is asked about when the target names no port */

/* A request to ask about. Some may be NULL: GET (POST where there is a tool), or /, or no call of an MCP server's tool;
 * all: about the connection. */
struct why_request {
    const char *method, *path, *tool;
};

/* @target: HOST or HOST:PORT, as a program would write it. @request may be NULL. @own (@n_own of them, may be none)
 * are the addresses of the host's interfaces. 0, or -1 with @err when @target is no host, or there is no memory for the
 * rules. Call on a validated policy. */
int egress_why_host(const struct policy *p, const struct ip *own, size_t n_own, const char *target,
                    const struct why_request *request, struct why *out, struct err *err);

#endif
