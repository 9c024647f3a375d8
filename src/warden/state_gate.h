/* warden/state_gate.h: approvals and grants in state.db (state.h)
 *
 * As there: what has returned survives the end of the process.
 */
#ifndef CLOCHE_WARDEN_STATE_GATE_H
#define CLOCHE_WARDEN_STATE_GATE_H

#include "base/sha256.h"
#include "proto/edge_gate.h"
#include "warden/state.h"

#define STATE_APPROVALS_MAX 1000    /* records of decided ones that are kept, the newest of each caller */
#define STATE_GRANTS_MAX    1000

struct state_gate;

/* Its tables in @s, made where they are missing. The process's for ever; NULL with @err. */
struct state_gate *state_gate_open(struct state *s, struct err *err);

/* Insert or replace. 0 or -1 with @err. */
int state_approval_put(struct state_gate *g, const struct edge_approval *a, struct err *err);
/* Both or neither. */
int state_approval_grant(struct state_gate *g, const struct edge_approval *a, const struct edge_grant *grant,
                         struct err *err);
int state_grant_forget(struct state_gate *g, const char *id, struct err *err);
/* Forget what is above the ceilings, and grants that are over at @now_ms or whose sandbox is no more on record. */
int state_gate_prune(struct state_gate *g, uint64_t now_ms, struct err *err);

/* What is found is the callback's for the time of the call. */
typedef void state_approval_fn(void *ctx, const struct edge_approval *a);
typedef void state_grant_fn(void *ctx, const struct edge_grant *grant);

/* One by its id ("" any), of that state (0 any), of that caller ("" any), the newest @limit, newest first. How many or
 * -1 with @err. */
int state_approvals(struct state_gate *g, const char *id, unsigned state, const char *caller, unsigned limit,
                    state_approval_fn *fn, void *ctx, struct err *err);
/* The same from behind one on, which was created at @after_ms ("" the newest; 0: it says so itself, if it is there
 * still). *more: there are older ones. */
struct state_approvals_query {
    const char *id, *caller, *after;
    unsigned state, limit;
    uint64_t after_ms;
};
int state_approvals_from(struct state_gate *g, const struct state_approvals_query *asked, state_approval_fn *fn,
                         void *ctx, bool *more, struct err *err);
/* Those for all sandboxes of a caller do not count for @box any more. 0 or -1 with @err. */
int state_grants_void(struct state_gate *g, const char *box, struct err *err);
/* What is approved for @box and not used is denied, by nobody, for that reason. 0 or -1 with @err. */
int state_approvals_void(struct state_gate *g, const char *box, const char *reason, struct err *err);
/* By what all that is there was judged, as digests; "" where that is not known. 0 or -1 with @err. */
struct state_judged {
    char rules[SHA256_TEXT + 1];        /* the gate's */
    char defaults[SHA256_TEXT + 1];     /* what sandboxes get without asking */
};
int state_judged_put(struct state_gate *g, const struct state_judged *by, struct err *err);
int state_judged(struct state_gate *g, struct state_judged *out, struct err *err);
/* All of them, oldest first. How many or -1 with @err. */
int state_grants(struct state_gate *g, state_grant_fn *fn, void *ctx, struct err *err);
/* Those for this operation by this caller that stand at @now_ms, of that rule as it is now (@digest): how many, or -1
 * with @err. */
int state_granted(struct state_gate *g, const char *caller, const char *tool, const char *rule, const char *digest,
                  const char *box, uint64_t now_ms, struct err *err);

#endif
