/* warden/edge_gate.h: what is said of operations that somebody has to approve (edge.h; docs/gate.md) */
#ifndef CLOCHE_WARDEN_EDGE_GATE_H
#define CLOCHE_WARDEN_EDGE_GATE_H

#include "base/sha256.h"
#include "gate/names.h"
#include "warden/edge.h"

#define EDGE_CALLER_MAX   (EDGE_ID + 16)    /* "owner", "ROLE:ID of its token", "key:ID of the sandbox" */
#define EDGE_REASON_MAX   500               /* bytes that a decision may say */
#define EDGE_PARAMS_MAX   (64 * 1024)       /* JSON of what is asked about */
#define EDGE_PARAMS_SHORT 8192              /* longer ones are left out of lists */
#define EDGE_APPROVALS    100               /* of one answer */
#define EDGE_APPROVALS_OPEN 256             /* of the first that who follows is told: all that are pending */
#define GRANT_SECONDS_MAX (30UL * 86400)
#define GRANT_CRITICAL_S  86400UL           /* of a grant about a CRITICAL rule */

/* Flags in a question's frame (ASK_CREATE, ASK_OP ...): where somebody has to approve it, say so at once by EDGE_GATE
 * and do not wait. Without it the answer comes when it is decided. */
#define EDGE_ASYNC 0x01

/* The bit in a caller's handle that a pass is: the same caller, in the call that the gate let through. */
#define EDGE_PASS 0x80000000U

enum gate_says { GATE_ALLOWED = 1, GATE_DENIED, GATE_WAIT };

/* EDGE_GATE. */
struct edge_verdict {
    enum gate_says says;
    uint32_t pass;              /* ALLOWED, for ASK_GATE: the handle for the questions of this call; else 0 */
    enum gate_risk risk;
    uint32_t timeout_s;         /* WAIT: until it is denied */
    char approval[EDGE_ID + 1]; /* its id; "" none was needed */
    const char *rule;           /* "": none is about this tool */
    char reason[EDGE_REASON_MAX + 1];       /* DENIED: why */
};

enum approval_state { APPROVAL_PENDING = 1, APPROVAL_APPROVED, APPROVAL_DENIED, APPROVAL_TIMEOUT, APPROVAL_STATES };
const char *approval_state_name(enum approval_state state);
bool approval_state_parse(const char *name, enum approval_state *out);

enum approval_scope { SCOPE_ONCE = 1, SCOPE_SANDBOX, SCOPE_CALLER, SCOPES };
const char *approval_scope_name(enum approval_scope scope);
bool approval_scope_parse(const char *name, enum approval_scope *out);

struct edge_approval {
    char id[EDGE_ID + 1];
    enum approval_state state;
    enum gate_risk risk;
    bool used;                              /* what was approved has been done */
    uint64_t created_ms, until_ms, decided_ms;      /* since 1970; PENDING is denied, APPROVED is void after @until */
    char box[EDGE_ID + 1];                  /* "" none yet */
    char digest[SHA256_TEXT + 1];           /* of the tool, the sandbox, and everything of what will be done */
    const char *caller, *caller_text;       /* who asks; the same for people */
    const char *tool, *params;              /* @params "": left out, as too long for a list */
    const char *rule, *description;
    const char *by, *by_text, *reason;      /* who decided, and what for; "" nobody */
};

int edge_put_approval(struct buf *b, const struct edge_approval *a);
bool edge_get_approval(struct wire_in *in, struct edge_approval *a);

/* What is approved from now on without asking: that tool, where that rule asks, by that caller. */
struct edge_grant {
    char id[EDGE_ID + 1];
    char box[EDGE_ID + 1];                  /* in that sandbox; "" in each of the caller's */
    uint64_t created_ms, until_ms;          /* until_ms 0: as long as the sandbox is on record */
    const char *caller, *tool, *rule, *by_text;
    const char *rule_digest;                /* of the rule as it was then, "" if it is none of the gate's; on record
                                             * only: fronts are not told, and read "" */
};

int edge_put_grant(struct buf *b, const struct edge_grant *g);
bool edge_get_grant(struct wire_in *in, struct edge_grant *g);

int edge_put_verdict(struct buf *b, const struct edge_verdict *v);
bool edge_get_verdict(struct wire_in *in, struct edge_verdict *v);

/* EDGE_ASK_DECIDE. */
struct edge_decision {
    const char *id;
    bool approve;
    enum approval_scope scope;
    uint32_t seconds;                       /* how long the grant of a wider scope stands; 0: see until_ms */
    const char *reason;
};

int edge_put_decision(struct buf *b, const struct edge_decision *d);
bool edge_get_decision(struct wire_in *in, struct edge_decision *d);

/* "owner", "agent:" and an id ... */
bool edge_caller_well(const char *text);

#endif
