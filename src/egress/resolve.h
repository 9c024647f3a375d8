/* egress/resolve.h: real names to real addresses, by c-ares, in the host's network
 *
 * Each connection asks once; all answers are handed over, so that the decision sees the whole set. An answer is kept
 * for as long as all of its records say (RFC 1035 §3.2.1), at most RESOLVE_KNOWN_S: many connections to one host are
 * usual. Failures, and what a file of the host says, are not.
 */
#ifndef CLOCHE_EGRESS_RESOLVE_H
#define CLOCHE_EGRESS_RESOLVE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/loop.h"
#include "match/host.h"
#include "match/ip.h"

#define RESOLVE_MAX 32          /* addresses of one name; more are as good as none */
#define RESOLVE_KNOWN   64      /* names whose answers are kept */
#define RESOLVE_KNOWN_S 30

struct resolver;

/* @n addresses, in the order in which they should be tried; 0 with @why (a constant) when there are none. Called from
 * resolver_ask itself when the answer is known at once. */
typedef void resolve_fn(void *ctx, const struct ip *addresses, size_t n, const char *why);

/* Reads the host's resolver configuration now: nothing is opened later. @servers: addresses, with commas between, that
 * are asked in place of the host's name servers (its file of hosts still counts); NULL: the host's. @l waits for what
 * it needs. */
struct resolver *resolver_new(struct loop *l, const char *servers, struct err *err);
void resolver_free(struct resolver *r);

/* @name is canonical and NUL-terminated. An answer comes exactly once, unless resolver_forget was called. */
void resolver_ask(struct resolver *r, const char *name, resolve_fn *fn, void *ctx);
/* @ctx goes away: its answer is dropped. */
void resolver_forget(struct resolver *r, void *ctx);

#endif
