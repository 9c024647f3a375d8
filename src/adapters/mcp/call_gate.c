/* adapters/mcp/call_gate.c: what somebody has to approve (docs/gate.md), before a tool begins
 *
 * Whether, and until when, is the warden's to say; here it is said to the client in the way that it understands. A URL
 * where the client can show one: the answer is then given on the page that is there, with another credential. Never a
 * form of the client's: what it asks for would pass through the hands of who wants it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cleanup.h"
#include "adapters/mcp/mcp.h"

#define STATE_EXTRA_MS 600000       /* after the decision's own time, for the call to be made again */

static const struct visit_answers first_answers, waiting_answers;

/* Longer ones the warden judges by the operations that they come to, with what it can be shown of them. */
#define PARAMS_MAX (60UL * 1024)

static bool
hold_for(struct visit *r, bool hold)
{
    cleanup_free char *text = json_dumps(r->mcp->args, JSON_COMPACT);
    const char *id = mcp_text(r, "sandbox_id");

    r->async = false;
    if (text == NULL || strlen(text) > PARAMS_MAX || (id != NULL && !edge_is_id(id) && !edge_name_well(id)))
        return false;
    visit_gate(r, id != NULL ? id : "", r->mcp->tool->name, r->mcp->args, hold,
               hold ? &waiting_answers : &first_answers);
    r->mcp->judged = true;
    return true;
}

/* --- saying that somebody is asked -------------------------------------------------------------------------------- */

static bool
url_of(const struct visit *r, const struct edge_verdict *v, char *out, size_t size)
{
    const char *host = visit_header(r, "Host");

    if (!r->strangers || host == NULL || strlen(host) > 260)     /* a unix socket has no URL */
        return false;
    snprintf(out, size, "%s://%s/approvals/%s", r->tls ? "https" : "http", host, v->approval);
    return true;
}

static bool
shows_urls(const struct visit *r)
{
    return json_object_get(json_object_get(r->mcp->capabilities, "elicitation"), "url") != NULL;
}

static json_t *
message_of(const struct visit *r, const struct edge_verdict *v)
{
    return json_sprintf("%s needs somebody's approval (%s%s%s) within %u s. To decide: cloche approvals approve %s",
                        r->mcp->tool->name, gate_risk_name(v->risk), v->rule[0] != '\0' ? ", rule " : "", v->rule,
                        v->timeout_s, v->approval);
}

static json_t *
elicitation(const struct visit *r, const struct edge_verdict *v, const char *url)
{
    return json_pack("{s:s, s:o, s:s, s:s}", "mode", "url", "message", message_of(r, v), "url", url, "elicitationId",
                     v->approval);
}

static void
input_required(struct visit *r, const struct edge_verdict *v, const char *url)
{
    struct mcp_state s = { .who = r->who,
                           .expires_ms = clock_boot_ms() + (uint64_t)v->timeout_s * 1000 + STATE_EXTRA_MS };
    char text[MCP_STATE_MAX + 1];

    memcpy(s.about, v->approval, sizeof(v->approval));
    if (!mcp_call_digest(r->mcp->message.method, r->mcp->tool->name, r->mcp->args, s.digest)) {
        mcp_error(r, MCP_INTERNAL, NULL, "out of memory");
        return;
    }
    mcp_state_make(mcp_all.key, &s, text);
    mcp_result(r, json_pack("{s:s, s:{s:{s:s, s:o}}, s:s}", "resultType", "input_required", "inputRequests", "approval",
                            "method", "elicitation/create", "params", elicitation(r, v, url), "requestState", text));
}

static void
say_pending(struct visit *r, const struct edge_verdict *v, const char *url)
{
    json_t *message = message_of(r, v);
    json_t *body = json_pack("{s:b, s:o, s:s, s:s}", "success", 0, "error",
                             json_sprintf("%s. Then make this call again", json_string_value(message)), "error_type",
                             "ApprovalRequired", "approval_id", v->approval);

    json_decref(message);
    if (url[0] != '\0')
        json_object_set_new(body, "approval_url", json_string(url));
    mcp_done(r, body, true);
}

/* --- deciding ----------------------------------------------------------------------------------------------------- */

/* The client has shown it, or would not. What counts is what is decided there. */
static void
on_shown(struct visit *r, const json_t *result)
{
    const char *action = json_string_value(json_object_get(result, "action"));

    if (action == NULL || strcmp(action, "accept") != 0)
        mcp_fail(r, "gate.declined", "the user declined");
}

static void
on_wait(struct visit *r, const struct edge_verdict *v)
{
    char url[512] = "";
    bool shown = url_of(r, v, url, sizeof(url)) && shows_urls(r);

    if (mcp_is_stateless(r) && shown) {
        input_required(r, v, url);
        return;
    }
    if (mcp_is_stateless(r) || !r->mcp->streams || (!shown && r->mcp->token == NULL)) {
        say_pending(r, v, url);
        return;
    }
    /* a session: its client waits on this stream, and hears what for; one that could not be told would be left to
     * wonder */
    mcp_begin_stream(r);
    if (shown)
        mcp_ask_client(r, "elicitation/create", elicitation(r, v, url), on_shown);
    else if (r->mcp->token != NULL)
        mcp_say(r, json_pack("{s:s, s:s, s:{s:O, s:i, s:o}}", "jsonrpc", "2.0", "method", "notifications/progress",
                             "params", "progressToken", r->mcp->token, "progress", 0, "message", message_of(r, v)));
    r->mcp->holds = true;
    if (!r->mcp->tool->gated)
        r->mcp->tool->begin(r);
    else
        (void)hold_for(r, true);
}

void
mcp_verdict(struct visit *r, const struct edge_verdict *v)
{
    if (r->mcp->over)
        return;
    r->mcp->wait[0] = '\0';
    r->async = false;
    if (v->says == GATE_WAIT)
        on_wait(r, v);
    else if (v->says == GATE_DENIED)
        mcp_fail(r, "gate.denied", "%s", v->reason[0] != '\0' ? v->reason : "nobody approved it in time");
    else
        r->mcp->tool->begin(r);
}

static const struct visit_answers first_answers = { .gate = mcp_verdict, .no = mcp_fail_err };
static const struct visit_answers waiting_answers = { .gate = mcp_verdict, .no = mcp_fail_err };

/* The second round of a call that was told to show a URL. False: it is not what it was; said. */
static bool
comes_again(struct visit *r, bool *again)
{
    const json_t *state = json_object_get(r->mcp->message.params, "requestState");
    struct mcp_state s = { .who = r->who };

    *again = false;
    if (state == NULL || !mcp_is_stateless(r))
        return true;
    *again = json_is_string(state) &&
             mcp_call_digest(r->mcp->message.method, r->mcp->tool->name, r->mcp->args, s.digest) &&
             mcp_state_check(mcp_all.key, json_string_value(state), clock_boot_ms(), &s);
    if (!*again)
        mcp_error(r, MCP_INVALID_PARAMS, NULL, "requestState is not what this call was given, or too old");
    return *again;
}

void
mcp_gate(struct visit *r)
{
    bool again;

    if (r->mcp->tool->settle != NULL)
        r->mcp->tool->settle(r->mcp->args);
    if (!r->mcp->tool->gated) {
        r->mcp->tool->begin(r);
        return;
    }
    if (!comes_again(r, &again))
        return;
    /* whoever comes again waits: the approval is decided, or will be, or its time ends */
    if (!hold_for(r, again))
        r->mcp->tool->begin(r);
}

bool
mcp_gate_own(struct visit *r)
{
    bool again = r->mcp->holds;

    if (!again && !comes_again(r, &again))
        return false;
    r->async = !again;
    return true;
}
