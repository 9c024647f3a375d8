/* proto/edge_gate.h: what is said of operations that somebody has to approve (edge.h; docs/gate.md) */
#ifndef CLOCHE_PROTO_EDGE_GATE_H
#define CLOCHE_PROTO_EDGE_GATE_H

#include "base/sha256.h"
#include "gate/names.h"
#include "proto/edge.h"

#define EDGE_CALLER_MAX   (EDGE_ID + 16)    /* "owner", "ROLE:ID of its token", "key:ID of the sandbox" */
#define EDGE_TEXT_MAX     255               /* of what is for people */
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

enum gate_says { GATE_ASIDE, GATE_ALLOWED, GATE_DENIED, GATE_WAIT };     /* the first is the warden's alone */

/* EDGE_GATE. */
#define EDGE_VERDICT_FIELDS(F) \
    F(ENUM, gate_says, says, GATE_ALLOWED, GATE_WAIT) \
    F(U32, pass)                /* ALLOWED, for ASK_GATE: the handle for the questions of this call; else 0 */ \
    F(ENUM, gate_risk, risk, 0, GATE_RISKS - 1) \
    F(U32, timeout_s)           /* WAIT: until it is denied */ \
    F(MAYBE_ID, approval)       /* its id; "" none was needed */ \
    F(TEXT, rule, GATE_NAME_MAX)    /* "": none is about this tool */ \
    F(COPY, reason, EDGE_REASON_MAX, NULL)      /* DENIED: why */
PROTO_STRUCT(edge_verdict, EDGE_VERDICT_FIELDS);

enum approval_state { APPROVAL_PENDING = 1, APPROVAL_APPROVED, APPROVAL_DENIED, APPROVAL_TIMEOUT, APPROVAL_STATES };
const char *approval_state_name(enum approval_state state);
bool approval_state_parse(const char *name, enum approval_state *out);

enum approval_scope { SCOPE_ONCE = 1, SCOPE_SANDBOX, SCOPE_CALLER, SCOPES };
const char *approval_scope_name(enum approval_scope scope);
bool approval_scope_parse(const char *name, enum approval_scope *out);

/* "owner", "agent:" and an id ...; or "" */
bool edge_caller_well(const char *text);
bool edge_maybe_caller(const char *text);
bool edge_digest_well(const char *text);
bool edge_maybe_digest(const char *text);

#define EDGE_APPROVAL_FIELDS(F) \
    F(ID, id) \
    F(ENUM, approval_state, state, 1, APPROVAL_STATES - 1) \
    F(ENUM, gate_risk, risk, 0, GATE_RISKS - 1) \
    F(BOOL, used)               /* what was approved has been done */ \
    F(U64, created_ms)          /* since 1970 */ \
    F(U64, until_ms)            /* PENDING is denied, APPROVED is void after it */ \
    F(U64, decided_ms) \
    F(MAYBE_ID, box)            /* "" none yet */ \
    F(COPY, digest, SHA256_TEXT, edge_digest_well)      /* of the tool, the sandbox, and everything of what will be
                                                         * done */ \
    F(TEXT_IF, caller, EDGE_CALLER_MAX, edge_caller_well)   /* who asks; */ \
    F(TEXT, caller_text, EDGE_TEXT_MAX)                     /* the same for people */ \
    F(TEXT_IF, tool, GATE_NAME_MAX, gate_tool_well) \
    F(TEXT, params, EDGE_PARAMS_MAX)    /* "": left out, as too long for a list */ \
    F(TEXT, rule, GATE_NAME_MAX) \
    F(TEXT, description, EDGE_TEXT_MAX) \
    F(TEXT_IF, by, EDGE_CALLER_MAX, edge_maybe_caller)      /* who decided, and what for; "" nobody */ \
    F(TEXT, by_text, EDGE_TEXT_MAX) \
    F(TEXT, reason, EDGE_REASON_MAX)
PROTO_STRUCT(edge_approval, EDGE_APPROVAL_FIELDS);

/* Warden to cloche-webhook; there is no answer. */
#define EDGE_HOOK_FIELDS(F) F(BOOL, decided) F(STRUCT_IN, edge_approval, approval)      /* without its parameters */
PROTO_STRUCT(edge_hook, EDGE_HOOK_FIELDS);
#define EDGE_TO_WEBHOOK(M) M(EDGE_HOOK, 207, edge_hook)
PROTO_EDGE(edge_to_webhook, EDGE_TO_WEBHOOK);

/* What is approved from now on without asking: that tool, where that rule asks, by that caller. */
#define EDGE_GRANT_FIELDS(F) \
    F(ID, id) \
    F(MAYBE_ID, box)            /* in that sandbox; "" in each of the caller's */ \
    F(U64, created_ms) \
    F(U64, until_ms)            /* 0: as long as the sandbox is on record */ \
    F(TEXT_IF, caller, EDGE_CALLER_MAX, edge_caller_well) \
    F(TEXT_IF, tool, GATE_NAME_MAX, gate_tool_well) \
    F(TEXT, rule, GATE_NAME_MAX) \
    F(TEXT, by_text, EDGE_TEXT_MAX) \
    F(BLANK, rule_digest)       /* of the rule as it was then, "" if it is none of the gate's; on record only */
PROTO_STRUCT(edge_grant, EDGE_GRANT_FIELDS);

/* EDGE_ASK_DECIDE. */
#define EDGE_DECISION_FIELDS(F) \
    F(TEXT_IF, id, EDGE_ID, edge_is_id) \
    F(BOOL, approve) \
    F(ENUM, approval_scope, scope, 1, SCOPES - 1) \
    F(U32_IN, seconds, 0, GRANT_SECONDS_MAX)    /* how long the grant of a wider scope stands; 0: see until_ms */ \
    F(TEXT, reason, EDGE_REASON_MAX) \
    F(TEXT_IF, digest, SHA256_TEXT, edge_maybe_digest)      /* of what was shown; "": of whatever it is */
PROTO_STRUCT(edge_decision, EDGE_DECISION_FIELDS);

#endif
