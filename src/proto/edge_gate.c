/* proto/edge_gate.c: see edge_gate.h */
#include "proto/edge_gate.h"

#include <string.h>

static const char *const states[APPROVAL_STATES] = {
    [APPROVAL_PENDING] = "pending", [APPROVAL_APPROVED] = "approved", [APPROVAL_DENIED] = "denied",
    [APPROVAL_TIMEOUT] = "timeout",
};
static const char *const scopes[SCOPES] = {
    [SCOPE_ONCE] = "once", [SCOPE_SANDBOX] = "sandbox", [SCOPE_CALLER] = "caller",
};

const char *
approval_state_name(enum approval_state state)
{
    return states[state];
}

const char *
approval_scope_name(enum approval_scope scope)
{
    return scopes[scope];
}

bool
approval_state_parse(const char *name, enum approval_state *out)
{
    int i;

    if (!edge_word(states, 1, APPROVAL_STATES, name, &i))
        return false;
    *out = (enum approval_state)i;
    return true;
}

bool
approval_scope_parse(const char *name, enum approval_scope *out)
{
    int i;

    if (!edge_word(scopes, 1, SCOPES, name, &i))
        return false;
    *out = (enum approval_scope)i;
    return true;
}

bool
edge_caller_well(const char *text)
{
    const char *colon = strchr(text, ':');
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz");

    if (n == 0 || n > 15)
        return false;
    return text[n] == '\0' || (colon == text + n && edge_is_id(colon + 1));
}

bool
edge_maybe_caller(const char *text)
{
    return text[0] == '\0' || edge_caller_well(text);
}

bool
edge_digest_well(const char *text)
{
    return strspn(text, "0123456789abcdef") == SHA256_TEXT && text[SHA256_TEXT] == '\0';
}

bool
edge_maybe_digest(const char *text)
{
    return text[0] == '\0' || edge_digest_well(text);
}

static bool
verdict_well(const struct edge_verdict *v)
{
    return (v->pass == 0 || ((v->pass & EDGE_PASS) != 0 && v->says == GATE_ALLOWED)) &&
           (v->approval[0] != '\0' || v->says != GATE_WAIT);
}

static bool
decision_well(const struct edge_decision *d)
{
    return d->scope != SCOPE_ONCE || d->seconds == 0;
}

PROTO_SHAPE(edge_approval, EDGE_APPROVAL_FIELDS)
PROTO_SHAPE(edge_hook, EDGE_HOOK_FIELDS)
PROTO_SHAPE(edge_grant, EDGE_GRANT_FIELDS)
PROTO_SHAPE_WELL(edge_verdict, EDGE_VERDICT_FIELDS, verdict_well)
PROTO_SHAPE_WELL(edge_decision, EDGE_DECISION_FIELDS, decision_well)
