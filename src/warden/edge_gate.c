/* warden/edge_gate.c: see edge_gate.h */
#include "warden/edge_gate.h"

#include <string.h>

#define TEXT_MAX 255

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

static bool
digest_well(const char *text)
{
    return strspn(text, "0123456789abcdef") == SHA256_TEXT && text[SHA256_TEXT] == '\0';
}

/* --- approvals ---------------------------------------------------------------------------------------------------- */

int
edge_put_approval(struct buf *b, const struct edge_approval *a)
{
    edge_put_id(b, a->id);
    buf_put_u8(b, (uint8_t)a->state);
    buf_put_u8(b, (uint8_t)a->risk);
    buf_put_u8(b, a->used);
    buf_put_be64(b, a->created_ms);
    buf_put_be64(b, a->until_ms);
    buf_put_be64(b, a->decided_ms);
    edge_put_id(b, a->box);
    wire_put_cstr(b, a->digest, SHA256_TEXT);
    wire_put_cstr(b, a->caller, EDGE_CALLER_MAX);
    wire_put_cstr(b, a->caller_text, TEXT_MAX);
    wire_put_cstr(b, a->tool, GATE_NAME_MAX);
    wire_put_cstr(b, a->params, EDGE_PARAMS_MAX);
    wire_put_cstr(b, a->rule, GATE_NAME_MAX);
    wire_put_cstr(b, a->description, TEXT_MAX);
    wire_put_cstr(b, a->by, EDGE_CALLER_MAX);
    wire_put_cstr(b, a->by_text, TEXT_MAX);
    return wire_put_cstr(b, a->reason, EDGE_REASON_MAX);
}

bool
edge_get_approval(struct wire_in *in, struct edge_approval *a)
{
    const char *digest;
    uint8_t state, risk, used;

    if (!edge_get_id(in, a->id, false))
        return false;
    state = wire_u8(in);
    risk = wire_u8(in);
    used = wire_u8(in);
    a->created_ms = wire_be64(in);
    a->until_ms = wire_be64(in);
    a->decided_ms = wire_be64(in);
    if (!edge_get_id(in, a->box, true))
        return false;
    digest = wire_cstr(in, SHA256_TEXT, NULL);
    a->caller = wire_cstr(in, EDGE_CALLER_MAX, NULL);
    a->caller_text = wire_cstr(in, TEXT_MAX, NULL);
    a->tool = wire_cstr(in, GATE_NAME_MAX, NULL);
    a->params = wire_cstr(in, EDGE_PARAMS_MAX, NULL);
    a->rule = wire_cstr(in, GATE_NAME_MAX, NULL);
    a->description = wire_cstr(in, TEXT_MAX, NULL);
    a->by = wire_cstr(in, EDGE_CALLER_MAX, NULL);
    a->by_text = wire_cstr(in, TEXT_MAX, NULL);
    a->reason = wire_cstr(in, EDGE_REASON_MAX, NULL);
    if (in->bad || state == 0 || state >= APPROVAL_STATES || risk >= GATE_RISKS || used > 1 || !digest_well(digest) ||
        !edge_caller_well(a->caller) || !gate_tool_well(a->tool) || (a->by[0] != '\0' && !edge_caller_well(a->by)))
        return false;
    memcpy(a->digest, digest, SHA256_TEXT + 1);
    a->state = (enum approval_state)state;
    a->risk = (enum gate_risk)risk;
    a->used = used != 0;
    return true;
}

/* --- grants ------------------------------------------------------------------------------------------------------- */

int
edge_put_grant(struct buf *b, const struct edge_grant *g)
{
    edge_put_id(b, g->id);
    edge_put_id(b, g->box);
    buf_put_be64(b, g->created_ms);
    buf_put_be64(b, g->until_ms);
    wire_put_cstr(b, g->caller, EDGE_CALLER_MAX);
    wire_put_cstr(b, g->tool, GATE_NAME_MAX);
    wire_put_cstr(b, g->rule, GATE_NAME_MAX);
    return wire_put_cstr(b, g->by_text, TEXT_MAX);
}

bool
edge_get_grant(struct wire_in *in, struct edge_grant *g)
{
    if (!edge_get_id(in, g->id, false) || !edge_get_id(in, g->box, true))
        return false;
    g->created_ms = wire_be64(in);
    g->until_ms = wire_be64(in);
    g->caller = wire_cstr(in, EDGE_CALLER_MAX, NULL);
    g->tool = wire_cstr(in, GATE_NAME_MAX, NULL);
    g->rule = wire_cstr(in, GATE_NAME_MAX, NULL);
    g->by_text = wire_cstr(in, TEXT_MAX, NULL);
    g->rule_digest = "";
    return !in->bad && edge_caller_well(g->caller) && gate_tool_well(g->tool);
}

/* --- verdicts and decisions --------------------------------------------------------------------------------------- */

int
edge_put_verdict(struct buf *b, const struct edge_verdict *v)
{
    buf_put_u8(b, (uint8_t)v->says);
    buf_put_be32(b, v->pass);
    buf_put_u8(b, (uint8_t)v->risk);
    buf_put_be32(b, v->timeout_s);
    edge_put_id(b, v->approval);
    wire_put_cstr(b, v->rule, GATE_NAME_MAX);
    return wire_put_cstr(b, v->reason, EDGE_REASON_MAX);
}

bool
edge_get_verdict(struct wire_in *in, struct edge_verdict *v)
{
    uint8_t says = wire_u8(in), risk;
    const char *reason;

    v->pass = wire_be32(in);
    risk = wire_u8(in);
    v->timeout_s = wire_be32(in);
    if (!edge_get_id(in, v->approval, true))
        return false;
    v->rule = wire_cstr(in, GATE_NAME_MAX, NULL);
    reason = wire_cstr(in, EDGE_REASON_MAX, NULL);
    if (!wire_done(in) || says < GATE_ALLOWED || says > GATE_WAIT || risk >= GATE_RISKS ||
        (v->pass != 0 && ((v->pass & EDGE_PASS) == 0 || says != GATE_ALLOWED)) ||
        (v->approval[0] == '\0' && says == GATE_WAIT))
        return false;
    memcpy(v->reason, reason, strlen(reason) + 1);
    v->says = (enum gate_says)says;
    v->risk = (enum gate_risk)risk;
    return true;
}

int
edge_put_decision(struct buf *b, const struct edge_decision *d)
{
    edge_put_id(b, d->id);
    buf_put_u8(b, d->approve);
    buf_put_u8(b, (uint8_t)d->scope);
    buf_put_be32(b, d->seconds);
    return wire_put_cstr(b, d->reason, EDGE_REASON_MAX);
}

bool
edge_get_decision(struct wire_in *in, struct edge_decision *d)
{
    uint8_t approve, scope;

    d->id = wire_cstr(in, EDGE_ID, NULL);
    approve = wire_u8(in);
    scope = wire_u8(in);
    d->seconds = wire_be32(in);
    d->reason = wire_cstr(in, EDGE_REASON_MAX, NULL);
    if (!wire_done(in) || !edge_is_id(d->id) || approve > 1 || scope == 0 || scope >= SCOPES ||
        d->seconds > GRANT_SECONDS_MAX || (scope == SCOPE_ONCE && d->seconds != 0))
        return false;
    d->approve = approve != 0;
    d->scope = (enum approval_scope)scope;
    return true;
}
