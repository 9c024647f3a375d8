/* adapters/mcp/post.c: POST, GET and DELETE of /mcp: who says what in which form of the protocol */
#include <string.h>

#include "adapters/mcp/mcp.h"
#include "wire/json_text.h"
#include "wire/whole.h"

/* --- methods ------------------------------------------------------------------------------------------------------ */

static json_t *
capabilities(void)
{
    json_t *own = json_pack("{s:{}}", "tools"), *more = json_loads(mcp_extra.capabilities, 0, NULL);

    if (more != NULL)
        json_object_update(own, more);
    json_decref(more);
    return own;
}

static const char instructions[] =
    "Each sandbox is a closed place of its own: no file of this host, no network unless it was made with one. "
    "code_execute without sandbox_id makes one and names it in its result; pass that id to go on in it, and end it "
    "with code_destroy_sandbox.";

static void
discover(struct visit *r)
{
    mcp_result(r, json_pack("{s:[s], s:o, s:s, s:i, s:s}", "supportedVersions", mcp_versions[MCP_VERSION_STATELESS],
                            "capabilities", capabilities(), "instructions", instructions, "ttlMs", 0, "cacheScope",
                            "private"));
}

static void
initialize(struct visit *r)
{
    json_t *params = r->mcp->message.params, *offered = json_object_get(params, "capabilities");
    const char *wanted = json_string_value(json_object_get(params, "protocolVersion"));
    int version = wanted != NULL ? mcp_version(wanted) : -1;
    struct mcp_session *s;

    if (wanted == NULL) {
        mcp_error(r, MCP_INVALID_PARAMS, NULL, "params.protocolVersion is missing");
        return;
    }
    if (json_dumpb(offered, NULL, 0, JSON_COMPACT) > MCP_CAPABILITIES_MAX) {
        mcp_error(r, MCP_INVALID_PARAMS, NULL, "params.capabilities has more than %d bytes", MCP_CAPABILITIES_MAX);
        return;
    }
    /* what we do not know, or what has no sessions, becomes the newest that has: the client decides */
    version = version <= MCP_VERSION_STATELESS ? MCP_VERSION_STATELESS + 1 : version;
    s = mcp_session_new(r, version, json_is_object(offered) ? offered : NULL);
    if (s == NULL) {
        mcp_error(r, MCP_INTERNAL, NULL, "no session can be made");
        return;
    }
    r->mcp->version = version;
    visit_put(r, "Mcp-Session-Id", s->id);
    mcp_result(r, json_pack("{s:s, s:o, s:o, s:s}", "protocolVersion", mcp_versions[version], "capabilities",
                            capabilities(), "serverInfo", mcp_server_info(), "instructions", instructions));
}

static void
list_tools(struct visit *r)
{
    json_t *result = json_pack("{s:o}", "tools", mcp_tools_json());

    if (json_object_get(r->mcp->message.params, "cursor") != NULL) {
        json_decref(result);
        mcp_error(r, MCP_INVALID_PARAMS, NULL, "there is no such cursor: the list is one page");
        return;
    }
    if (mcp_is_stateless(r)) {
        json_object_set_new(result, "ttlMs", json_integer(300000));
        json_object_set_new(result, "cacheScope", json_string("public"));
    }
    mcp_result(r, result);
}

static void
call_tool(struct visit *r)
{
    struct mcp_call *call = r->mcp;
    json_t *params = call->message.params, *meta = json_object_get(params, "_meta");
    const char *name = json_string_value(json_object_get(params, "name"));
    json_t *args = json_object_get(params, "arguments"), *token = json_object_get(meta, "progressToken");
    char why[256];

    call->tool = name != NULL ? mcp_tool_find(name) : NULL;
    if (call->tool == NULL) {
        mcp_error(r, MCP_INVALID_PARAMS, NULL, "there is no tool %.64s", name != NULL ? name : "without a name");
        return;
    }
    if (args != NULL && !json_is_object(args)) {
        mcp_error(r, MCP_INVALID_PARAMS, NULL, "arguments is an object");
        return;
    }
    call->args = args != NULL ? json_incref(args) : json_object();
    json_whole_numbers(call->args);
    json_drop_nulls(call->args, NULL);
    if (json_string_length(token) > MCP_ID_MAX) {
        mcp_error(r, MCP_INVALID_PARAMS, NULL, "params._meta.progressToken has more than %d bytes", MCP_ID_MAX);
        return;
    }
    call->token = json_is_string(token) || json_is_integer(token) ? token : NULL;
    if (!mcp_schema_fits(json_object_get(call->tool->listed, "inputSchema"), call->args, why, sizeof(why)))
        mcp_fail(r, "InvalidArguments", "%s", why);
    else
        mcp_gate(r);
}

static void
dispatch(struct visit *r)
{
    const char *method = r->mcp->message.method;
    bool stateless = mcp_is_stateless(r);

    if (stateless && strcmp(method, "server/discover") == 0)
        discover(r);
    else if (!stateless && strcmp(method, "ping") == 0)
        mcp_result(r, json_object());
    else if (strcmp(method, "tools/list") == 0)
        list_tools(r);
    else if (strcmp(method, "tools/call") == 0)
        call_tool(r);
    else if (mcp_extra.method == NULL || !mcp_extra.method(r, method, r->mcp->message.params))
        mcp_error(r, MCP_NO_METHOD, NULL, "there is no method %s", method);
}

/* --- the stateless form ------------------------------------------------------------------------------------------- */

static json_t *
supported(const char *requested)
{
    return json_pack("{s:[s], s:o}", "supported", mcp_versions[MCP_VERSION_STATELESS], "requested",
                     json_of_text((const uint8_t *)requested, strlen(requested)));
}

/* A header is there and says what the body says. */
static bool
header_is(struct visit *r, const char *header, const char *body)
{
    const char *value = visit_header(r, header);
    char text[MCP_NAME_MAX + 1];

    if (value != NULL && body != NULL && mcp_header_text(value, text) && strcmp(text, body) == 0)
        return true;
    mcp_turn_away(r, HTTP_BAD_REQUEST, MCP_HEADER_MISMATCH, NULL, "the header %s %s", header,
              value == NULL ? "is missing" : "is not what the message says");
    return false;
}

/* What the header Mcp-Name repeats; NULL: this method has none. */
static const char *
named_in(const struct mcp_message *m)
{
    const char *key = strcmp(m->method, "tools/call") == 0 || strcmp(m->method, "prompts/get") == 0 ? "name"
                      : strcmp(m->method, "resources/read") == 0 ? "uri" : NULL;

    return key != NULL ? json_string_value(json_object_get(m->params, key)) : NULL;
}

static void
stateless(struct visit *r, const json_t *meta)
{
    const struct mcp_message *m = &r->mcp->message;
    const char *version = json_string_value(json_object_get(meta, MCP_META "protocolVersion"));
    json_t *offered = json_object_get(meta, MCP_META "clientCapabilities");
    const char *header = visit_header(r, "MCP-Protocol-Version"), *name = named_in(m);

    r->mcp->version = MCP_VERSION_STATELESS;
    if (version == NULL) {
        if (header != NULL && mcp_version(header) < 0)
            mcp_turn_away(r, HTTP_BAD_REQUEST, MCP_NO_VERSION, supported(header), "unsupported protocol version");
        else
            mcp_turn_away(r, HTTP_BAD_REQUEST, MCP_INVALID_PARAMS, NULL,
                      "params._meta has no " MCP_META "protocolVersion");
        return;
    }
    if (!header_is(r, "MCP-Protocol-Version", version))
        return;
    if (mcp_version(version) != MCP_VERSION_STATELESS) {
        mcp_turn_away(r, HTTP_BAD_REQUEST, MCP_NO_VERSION, supported(version), "unsupported protocol version");
        return;
    }
    if (!json_is_object(offered)) {
        mcp_turn_away(r, HTTP_BAD_REQUEST, MCP_INVALID_PARAMS, NULL,
                  "params._meta has no " MCP_META "clientCapabilities");
        return;
    }
    if (!header_is(r, "Mcp-Method", m->method) || (name != NULL && !header_is(r, "Mcp-Name", name)))
        return;
    r->mcp->capabilities = json_incref(offered);
    if (m->kind == MCP_REQUEST)
        dispatch(r);
    else
        visit_empty(r, HTTP_ACCEPTED);      /* there is none that would mean anything here */
}

/* --- the form with sessions --------------------------------------------------------------------------------------- */

/* NULL: said. */
static struct mcp_session *
session_of(struct visit *r)
{
    const char *id = visit_header(r, "Mcp-Session-Id");
    struct mcp_session *s = id != NULL ? mcp_session_find(r->who, id) : NULL;

    if (id == NULL)
        mcp_turn_away(r, HTTP_BAD_REQUEST, MCP_INVALID_REQUEST, NULL,
                  "the header Mcp-Session-Id is missing: begin with initialize, or with server/discover");
    else if (s == NULL)
        mcp_turn_away(r, HTTP_NOT_FOUND, MCP_INVALID_REQUEST, NULL, "there is no such session: initialize again");
    if (s == NULL)
        return NULL;
    r->mcp->session = s;
    r->mcp->version = s->version;
    r->mcp->capabilities = json_incref(s->capabilities);
    memcpy(r->mcp->session_id, s->id, sizeof(s->id));
    return s;
}

/* The client's answer to a question of ours. */
static void
hear_answer(struct visit *by, const struct mcp_session *s)
{
    const char *id = json_string_value(by->mcp->message.id);

    for (struct visit *r = adapters_visits; id != NULL && r != NULL; r = r->next) {
        if (!mcp_is_live(r) || r->mcp->wait[0] == '\0' || strcmp(r->mcp->wait, id) != 0 ||
            strcmp(r->mcp->session_id, s->id) != 0)
            continue;
        r->mcp->wait[0] = '\0';
        r->mcp->answered(r, by->mcp->message.result);
        return;
    }
}

static void
hear_notification(struct visit *r, const struct mcp_session *s)
{
    const json_t *id = json_object_get(r->mcp->message.params, "requestId");

    if (strcmp(r->mcp->message.method, "notifications/cancelled") == 0 && id != NULL)
        mcp_cancel_in(r, s->id, id);
}

static void
with_session(struct visit *r)
{
    const struct mcp_message *m = &r->mcp->message;
    const char *version = visit_header(r, "MCP-Protocol-Version");
    struct mcp_session *s;

    r->mcp->version = MCP_VERSION_STATELESS + 1;
    if (version != NULL && mcp_version(version) <= MCP_VERSION_STATELESS) {
        mcp_turn_away(r, HTTP_BAD_REQUEST, MCP_INVALID_REQUEST, NULL, "MCP-Protocol-Version names no version with "
                  "sessions");
        return;
    }
    if (m->kind == MCP_REQUEST && strcmp(m->method, "initialize") == 0) {
        initialize(r);
        return;
    }
    s = session_of(r);
    if (s == NULL)
        return;
    if (m->kind == MCP_REQUEST) {
        dispatch(r);
        return;
    }
    if (m->kind == MCP_RESPONSE)
        hear_answer(r, s);
    else
        hear_notification(r, s);
    r->mcp->over = true;
    visit_empty(r, HTTP_ACCEPTED);
}

/* --- routes ------------------------------------------------------------------------------------------------------- */

void
mcp_post(struct visit *r)
{
    const char *type = visit_header(r, "Content-Type"), *accept = visit_header(r, "Accept");
    const char *version = visit_header(r, "MCP-Protocol-Version"), *why;
    json_t *meta;
    int code;

    if (!mcp_begin(r))
        return;
    if (type == NULL || !mcp_is_json(type)) {
        mcp_turn_away(r, HTTP_MEDIA_TYPE, MCP_INVALID_REQUEST, NULL,
                      "Content-Type is application/json");
        return;
    }
    if (!mcp_accepts(accept != NULL ? accept : "*/*", &r->mcp->streams)) {
        mcp_turn_away(r, HTTP_NOT_ACCEPTABLE, MCP_INVALID_REQUEST, NULL,
                  "Accept lists application/json and text/event-stream");
        return;
    }
    if (r->no_room) {
        mcp_turn_away(r, HTTP_TOO_LARGE, MCP_INVALID_REQUEST, NULL, "the message has too many values");
        return;
    }
    code = mcp_parse(r->body.p, r->body.n, &r->mcp->message, &why);
    if (code != 0) {
        mcp_turn_away(r, HTTP_BAD_REQUEST, code, NULL, "%s", why);
        return;
    }
    meta = json_object_get(r->mcp->message.params, "_meta");
    if ((version != NULL && (mcp_version(version) == MCP_VERSION_STATELESS || mcp_version(version) < 0)) ||
        json_object_get(meta, MCP_META "protocolVersion") != NULL)
        stateless(r, meta);
    else
        with_session(r);
}

/* What is said outside of an answer would come here; nothing is, but clients ask for it and take a refusal ill. */
void
mcp_get(struct visit *r)
{
    if (!mcp_begin(r))
        return;
    if (visit_header(r, "Mcp-Session-Id") == NULL) {
        visit_put(r, "Allow", "POST");
        mcp_turn_away(r, HTTP_NOT_ALLOWED, MCP_INVALID_REQUEST, NULL, "without a session there is only POST");
        return;
    }
    if (session_of(r) == NULL)
        return;
    for (struct visit *other = adapters_visits; other != NULL; other = other->next)
        if (other != r && mcp_is_live(other) && other->mcp->message.whole == NULL &&
            strcmp(other->mcp->session_id, r->mcp->session_id) == 0)
            mcp_cancel(other);      /* one of them a session */
    r->mcp->streams = true;
    mcp_begin_stream(r);
    if (r->mcp->streaming)
        visit_add(r, ":\r\n\r\n", 5);
}

void
mcp_delete(struct visit *r)
{
    struct mcp_session *s;

    if (!mcp_begin(r))
        return;
    s = session_of(r);
    if (s == NULL)
        return;
    mcp_cancel_in(r, s->id, NULL);
    mcp_session_end(s);
    r->mcp->over = true;
    visit_empty(r, HTTP_NO_CONTENT);
}
