/* front/gate.c: /v1/approvals and /v1/grants: what waits for somebody, and what was decided (docs/gate.md) */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/clock.h"
#include "front/front.h"

#define FOLLOWED_MAX (4UL * 1024 * 1024)    /* of events that a follower did not take yet */

static void
gate_refuse(struct request *r, const char *what)
{
    reply_error(r, MHD_HTTP_BAD_REQUEST, "gate.request", "docs/gate.md has the form", "%s", what);
}

/* --- waiting, or not ---------------------------------------------------------------------------------------------- */

/* RFC 7240 4.1 */
void
gate_look(struct request *r)
{
    const char *prefer = MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, "Prefer");

    for (; prefer != NULL && *prefer != '\0'; prefer += strcspn(prefer, ",")) {
        prefer += strspn(prefer, ", \t");
        if (strncasecmp(prefer, "respond-async", 13) == 0 && strchr(",; \t", prefer[13]) != NULL)
            r->async = true;
    }
}

void
reply_waits(struct request *r, const struct edge_verdict *v)
{
    char url[sizeof("/v1/approvals/") + EDGE_ID];

    if (r->live != NULL) {      /* it has its 101, and cannot be told to come again */
        reply_error(r, MHD_HTTP_CONFLICT, "gate.waits", "docs/gate.md", "somebody has to approve it first");
        return;
    }
    snprintf(url, sizeof(url), "/v1/approvals/%s", v->approval);
    reply_json(r, MHD_HTTP_ACCEPTED,
               json_pack("{s:s, s:s, s:s, s:s, s:o, s:I}", "approval", v->approval, "state", "pending", "url", url,
                         "risk", gate_risk_name(v->risk), "rule", v->rule[0] != '\0' ? json_string(v->rule)
                         : json_null(), "timeout", (json_int_t)v->timeout_s));
    reply_location(r, url);
    if (r->response != NULL)
        (void)MHD_add_response_header(r->response, "Preference-Applied", "respond-async");
}

/* --- approvals ---------------------------------------------------------------------------------------------------- */

static json_t *
text_or_null(const char *text)
{
    return text[0] != '\0' ? json_of_text((const uint8_t *)text, strlen(text)) : json_null();
}

static json_t *
json_of_approval(const struct edge_approval *a)
{
    uint64_t now = clock_wall_ms();
    bool pending = a->state == APPROVAL_PENDING;
    json_t *params = a->params[0] != '\0' ? json_loads(a->params, 0, NULL) : NULL;

    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:b}",
                     "id", a->id, "state", approval_state_name(a->state), "risk", gate_risk_name(a->risk), "tool",
                     a->tool, "params", params != NULL ? params : json_null(), "sandbox", text_or_null(a->box),
                     "caller", a->caller, "caller_name", text_or_null(a->caller_text), "rule", text_or_null(a->rule),
                     "description", text_or_null(a->description), "digest", a->digest, "created_ms",
                     (json_int_t)a->created_ms, "expires_ms", (json_int_t)a->until_ms, "remaining_ms",
                     (json_int_t)(pending && a->until_ms > now ? a->until_ms - now : 0), "decided_ms",
                     a->decided_ms > 0 ? json_integer((json_int_t)a->decided_ms) : json_null(), "decided_by",
                     text_or_null(a->by), "decided_by_name", text_or_null(a->by_text), "reason",
                     text_or_null(a->reason), "used", a->used);
}

static void
on_item(struct request *r, const struct edge_approval *a)
{
    json_array_append_new(r->list, json_of_approval(a));
}

static void
on_list_end(struct request *r, uint32_t count, bool more)
{
    (void)count;
    reply_json(r, MHD_HTTP_OK, json_pack("{s:O, s:b, s:o}", "approvals", r->list, "more", more, "next",
                                         json_of_next(r->list, more)));
}

static void
on_one_end(struct request *r, uint32_t count, bool more)
{
    json_t *one = json_array_get(r->list, 0);

    (void)count;
    (void)more;
    if (one == NULL)
        reply_error(r, MHD_HTTP_NOT_FOUND, "gate.not-found", "GET /v1/approvals lists them",
                    "there is no such approval");
    else
        reply_json(r, MHD_HTTP_OK, json_incref(one));
}

static const struct answers list_answers = { .approval = on_item, .end = on_list_end };
static const struct answers one_answers = { .approval = on_item, .end = on_one_end };

static void
gate_list(struct request *r)
{
    char state[16], limit[8], after[EDGE_CURSOR_MAX + 1], id[EDGE_ID + 1];
    bool bad = false;
    const char *s = query_get(r, "state", state, sizeof(state), &bad);
    const char *l = query_get(r, "limit", limit, sizeof(limit), &bad);
    const char *a = query_get(r, "after", after, sizeof(after), &bad);
    enum approval_state which = (enum approval_state)0;
    uint64_t n = EDGE_APPROVALS, created;

    if (bad || (s != NULL && strcmp(s, "all") != 0 && !approval_state_parse(s, &which)) ||
        (l != NULL && (!str_parse_u64(str_of(l), EDGE_APPROVALS, &n) || n == 0)) ||
        (a != NULL && a[0] != '\0' && !edge_cursor(a, id, &created))) {      /* "": from the beginning */
        gate_refuse(r,
                    "state=pending, approved, denied, timeout or all, limit=1..100, after=NEXT of the former answer");
        return;
    }
    r->list = json_array();
    ask_approvals(r, false, which, (uint16_t)n, "", a != NULL ? a : "", &list_answers);
}

static bool
id_well(struct request *r)
{
    if (edge_is_id(r->id))
        return true;
    gate_refuse(r, "it is named by its id, 32 hexadecimal digits");
    return false;
}

static void
get(struct request *r)
{
    if (!id_well(r))
        return;
    r->list = json_array();
    ask_approvals(r, false, 0, 1, r->id, "", &one_answers);
}

/* --- deciding ----------------------------------------------------------------------------------------------------- */

static bool
members_well(const json_t *body, bool approve)
{
    static const char *const known[] = { "scope", "expires", "reason", "digest", NULL };

    /* a denial has only the last ones */
    return body == NULL || (json_is_object(body) && json_unknown(body, approve ? known : known + 2) == NULL);
}

static void
decide(struct request *r, bool approve)
{
    const json_t *scope = json_object_get(r->json, "scope"), *expires = json_object_get(r->json, "expires");
    const json_t *reason = json_object_get(r->json, "reason"), *digest = json_object_get(r->json, "digest");
    struct edge_decision d = { .id = r->id, .approve = approve, .scope = SCOPE_ONCE, .reason = "", .digest = "" };

    if (!id_well(r))
        return;
    if (!members_well(r->json, approve)) {
        gate_refuse(r, approve ? "the body is an object; known members: scope, expires, reason, digest"
                               : "the body is an object; known members: reason, digest");
        return;
    }
    if (reason != NULL) {
        d.reason = json_cstr(reason);
        if (d.reason == NULL || strlen(d.reason) > EDGE_REASON_MAX) {
            gate_refuse(r, "reason is a string of at most 500 bytes");
            return;
        }
    }
    if (digest != NULL) {
        d.digest = json_cstr(digest);
        if (d.digest == NULL || !edge_digest_well(d.digest)) {
            gate_refuse(r, "digest is the one that was shown, 64 hexadecimal digits");
            return;
        }
    }
    if (scope != NULL && (!json_is_string(scope) || !approval_scope_parse(json_string_value(scope), &d.scope))) {
        gate_refuse(r, "scope is once, sandbox or caller");
        return;
    }
    if (expires != NULL && (!json_is_integer(expires) || json_integer_value(expires) < 1 ||
                            json_integer_value(expires) > (json_int_t)GRANT_SECONDS_MAX || d.scope == SCOPE_ONCE)) {
        gate_refuse(r, "expires is a whole number of seconds from 1 to 2592000, for the scopes sandbox and caller");
        return;
    }
    d.seconds = expires != NULL ? (uint32_t)json_integer_value(expires) : 0;
    r->list = json_array();
    ask(r, EDGE_ASK_DECIDE, EDGE_ASK_DECIDE_SHAPE(), &d, &one_answers);
}

static void
approve(struct request *r)
{
    decide(r, true);
}

static void
deny(struct request *r)
{
    decide(r, false);
}

/* --- following ---------------------------------------------------------------------------------------------------- */

static void
on_change(struct request *r, const struct edge_approval *a)
{
    if (r->out.n < FOLLOWED_MAX)
        stream_event(r, NULL, "approval", json_of_approval(a));
    else
        stream_break(r);
}

static void
on_followed(struct request *r, uint32_t count, bool more)
{
    (void)count;
    (void)more;
    r->ticket = r->followed;        /* more comes, unless that was all that is wanted */
    reply_stream(r, "text/event-stream");
    if (r->followed == 0)
        stream_close(r);
}

static const struct answers follow_answers = { .approval = on_change, .end = on_followed, .no = stream_refuse };

static void
follow(struct request *r)
{
    char room[8];
    bool bad = false;
    const char *text = query_get(r, "follow", room, sizeof(room), &bad);

    if (bad || (text != NULL && strcmp(text, "true") != 0 && strcmp(text, "false") != 0))
        gate_refuse(r, "follow=true or false");
    else
        ask_approvals(r, text == NULL || text[0] == 't', APPROVAL_PENDING, EDGE_APPROVALS_OPEN, "", "",
                      &follow_answers);
}

/* --- grants ------------------------------------------------------------------------------------------------------- */

static void
on_grant(struct request *r, const struct edge_grant *g)
{
    json_array_append_new(r->list, json_pack("{s:s, s:s, s:s, s:s, s:o, s:I, s:o, s:o}", "id", g->id, "tool", g->tool,
                                             "rule", g->rule, "caller", g->caller, "sandbox", text_or_null(g->box),
                                             "created_ms", (json_int_t)g->created_ms, "expires_ms", g->until_ms > 0
                                             ? json_integer((json_int_t)g->until_ms) : json_null(), "granted_by_name",
                                             text_or_null(g->by_text)));
}

static void
on_grants_end(struct request *r, uint32_t count, bool more)
{
    (void)count;
    (void)more;
    reply_json(r, MHD_HTTP_OK, json_pack("{s:O}", "grants", r->list));
}

static void
on_revoked(struct request *r, uint32_t count, bool more)
{
    (void)count;
    (void)more;
    reply_json(r, MHD_HTTP_OK, json_pack("{s:s}", "revoked", r->id));
}

static const struct answers grants_answers = { .grant = on_grant, .end = on_grants_end };
static const struct answers revoked_answers = { .end = on_revoked };

static void
grants(struct request *r)
{
    r->list = json_array();
    ASK(r, EDGE_ASK_GRANTS, &grants_answers, .id = "");
}

static void
end_grant(struct request *r)
{
    if (id_well(r))
        ASK(r, EDGE_ASK_GRANTS, &revoked_answers, .id = r->id);
}

const struct route gate_routes[] = {
    { "GET",    "/v1/approvals",            gate_list, false, false, false },
    { "GET",    "/v1/approvals/stream",     follow,    false, false, .endless = true },
    { "GET",    "/v1/approvals/{}",         get,       false, false, false },
    { "POST",   "/v1/approvals/{}/approve", approve,   true,  false, false },
    { "POST",   "/v1/approvals/{}/deny",    deny,      true,  false, false },
    { "GET",    "/v1/grants",               grants,    false, false, false },
    { "DELETE", "/v1/grants/{}",            end_grant, false, false, false },
};
const size_t gate_n_routes = ARRAY_LEN(gate_routes);
