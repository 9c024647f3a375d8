/* tests/lib/mcp_fixtures.c: tools, resources and prompts that the protocol's conformance suite calls, in a build of
 * cloche-adapter of its own (never installed). What they say is the suite's to prescribe. */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "adapters/mcp/mcp.h"

#define JSON(...) #__VA_ARGS__
#define PNG "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
#define WAV "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
#define TEXT(s) "{\"content\": [{\"type\": \"text\", \"text\": \"" s "\"}]}"
#define ELICITS(key, message, field, type) "{\"" key "\": {\"method\": \"elicitation/create\", \"params\": {\"message\": \"" message \
    "\", \"requestedSchema\": {\"type\": \"object\", \"properties\": {\"" field "\": {\"type\": \"" type "\"}}, " \
    "\"required\": [\"" field "\"]}}}}"
#define STATE_MS 600000

static json_t *
parsed(const char *text)
{
    return json_loads(text, 0, NULL);
}

static void
say_text(struct visit *r, const char *text)
{
    mcp_result(r, json_pack("{s:[{s:s, s:s}]}", "content", "type", "text", "text", text));
}

/* --- tools that answer at once ---------------------------------------------------------------------------------------- */

static const struct { const char *name, *result; } plain[] = {
    { "test_simple_text", TEXT("This is a simple text response for testing.") },
    { "test_image_content", "{\"content\": [{\"type\": \"image\", \"data\": \"" PNG "\", \"mimeType\": \"image/png\"}]}" },
    { "test_audio_content", "{\"content\": [{\"type\": \"audio\", \"data\": \"" WAV "\", \"mimeType\": \"audio/wav\"}]}" },
    { "test_embedded_resource", JSON({"content": [{"type": "resource", "resource": {"uri": "test://embedded-resource",
        "mimeType": "text/plain", "text": "This is an embedded resource content."}}]}) },
    { "test_multiple_content_types", "{\"content\": [{\"type\": \"text\", \"text\": \"Multiple content types test:\"}, "
        "{\"type\": \"image\", \"data\": \"" PNG "\", \"mimeType\": \"image/png\"}, "
        JSON({"type": "resource", "resource": {"uri": "test://mixed-content-resource", "mimeType": "application/json",
            "text": "{\"test\":\"data\",\"value\":123}"}}]}) },
    { "test_error_handling", JSON({"isError": true, "content": [{"type": "text",
        "text": "This tool intentionally returns an error for testing"}]}) },
    { "test_logging_tool", TEXT("nothing was logged: nobody asked for it") },
    { "json_schema_2020_12_tool", TEXT("called") },
};

static void
say_plain(struct visit *r)
{
    for (size_t i = 0; i < ARRAY_LEN(plain); i++)
        if (strcmp(plain[i].name, r->mcp->tool->name) == 0)
            mcp_result(r, parsed(plain[i].result));
}

static void
notify(struct visit *r, const char *method, json_t *params)
{
    mcp_say(r, json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", method, "params", params));
}

static void
with_logging(struct visit *r)
{
    static const char *const lines[] = { "Tool execution started", "Tool processing data", "Tool execution completed" };

    mcp_begin_stream(r);
    for (size_t i = 0; i < 3; i++)
        notify(r, "notifications/message", json_pack("{s:s, s:s}", "level", "info", "data", lines[i]));
    say_text(r, "Tool with logging executed successfully");
}

static void
with_progress(struct visit *r)
{
    mcp_begin_stream(r);
    for (int i = 0; i <= 100 && r->mcp->token != NULL; i += 50)
        notify(r, "notifications/progress", json_pack("{s:O, s:i, s:i}", "progressToken", r->mcp->token, "progress", i,
                                                      "total", 100));
    say_text(r, "done");
}

/* --- tools that ask (sessions) ---------------------------------------------------------------------------------------- */

static void
heard(struct visit *r, const json_t *result)
{
    char text[2048];
    char *content = result != NULL ? json_dumps(json_object_get(result, "content"), JSON_COMPACT) : NULL;
    const char *said = json_string_value(json_object_get(json_object_get(result, "content"), "text"));
    const char *action = json_string_value(json_object_get(result, "action"));

    if (strcmp(r->mcp->tool->name, "test_sampling") == 0)
        snprintf(text, sizeof(text), "LLM response: %s", said != NULL ? said : "none");
    else
        snprintf(text, sizeof(text), "%s: action=%s, content=%s", strcmp(r->mcp->tool->name, "test_elicitation") == 0
                 ? "User response" : "Elicitation completed", action != NULL ? action : "none", content != NULL ? content : "{}");
    free(content);
    say_text(r, text);
}

static const struct { const char *name, *schema; } forms[] = {
    { "test_elicitation", JSON({"type": "object", "properties": {"username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"}}, "required": ["username", "email"]}) },
    { "test_elicitation_sep1034_defaults", JSON({"type": "object", "properties": {
        "name": {"type": "string", "default": "John Doe"}, "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true}}, "required": []}) },
    { "test_elicitation_sep1330_enums", JSON({"type": "object", "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": [{"const": "value1", "title": "First Option"},
            {"const": "value2", "title": "Second Option"}, {"const": "value3", "title": "Third Option"}]},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "minItems": 1, "maxItems": 3,
            "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"anyOf": [
            {"const": "value1", "title": "First Choice"}, {"const": "value2", "title": "Second Choice"},
            {"const": "value3", "title": "Third Choice"}]}}}, "required": []}) },
};

static void
ask_form(struct visit *r)
{
    const char *message = mcp_text(r, "message");

    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        if (strcmp(forms[i].name, r->mcp->tool->name) == 0)
            mcp_ask_client(r, "elicitation/create", json_pack("{s:s, s:s, s:o}", "mode", "form", "message", message != NULL
                           ? message : "Please fill this in", "requestedSchema", parsed(forms[i].schema)), heard);
}

static void
ask_sampling(struct visit *r)
{
    mcp_ask_client(r, "sampling/createMessage", json_pack("{s:[{s:s, s:{s:s, s:s}}], s:i}", "messages", "role", "user", "content",
                   "type", "text", "text", mcp_text(r, "prompt"), "maxTokens", 100), heard);
}

/* --- tools that need input (stateless) -------------------------------------------------------------------------------- */

static const struct rounds {
    const char *name;
    bool state;                 /* what comes back is bound to the call */
    const char *asks[3];        /* of each round; NULL: done */
    const char *done;
} rounds[] = {
    { "test_input_required_result_elicitation", false, { ELICITS("user_name", "What is your name?", "name", "string") }, "Hello!" },
    { "test_streaming_elicitation", false, { ELICITS("user_name", "What is your name?", "name", "string") }, "Hello!" },
    { "test_input_required_result_prompt", false, { ELICITS("user_context", "What context should the prompt use?", "context", "string") },
      NULL },
    { "test_input_required_result_sampling", false, { JSON({"capital_question": {"method": "sampling/createMessage", "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "What is the capital of France?"}}],
        "maxTokens": 100}}}) }, "Paris" },
    { "test_input_required_result_list_roots", false, { JSON({"client_roots": {"method": "roots/list", "params": {}}}) },
      "file:///test/root" },
    { "test_input_required_result_request_state", true, { ELICITS("confirm", "Please confirm", "ok", "boolean") }, "state-ok" },
    { "test_input_required_result_tampered_state", true, { ELICITS("confirm", "Please confirm", "ok", "boolean") }, "state-ok" },
    { "test_input_required_result_multiple_inputs", true, { JSON({
        "user_name": {"method": "elicitation/create", "params": {"message": "What is your name?", "requestedSchema": {
            "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}},
        "greeting": {"method": "sampling/createMessage", "params": {"messages": [{"role": "user", "content": {"type": "text",
            "text": "Generate a greeting"}}], "maxTokens": 50}},
        "client_roots": {"method": "roots/list", "params": {}}}) }, "all there" },
    { "test_input_required_result_multi_round", true, { ELICITS("step1", "Step 1: What is your name?", "name", "string"),
      ELICITS("step2", "Step 2: What is your favorite color?", "color", "string") }, "both there" },
    { "test_input_required_result_capabilities", false, { JSON({
        "ask": {"method": "elicitation/create", "params": {"message": "Name?", "requestedSchema": {"type": "object",
            "properties": {"name": {"type": "string"}}}}},
        "sample": {"method": "sampling/createMessage", "params": {"messages": [{"role": "user", "content": {"type": "text",
            "text": "Hello"}}], "maxTokens": 10}}}) }, "done" },
};

static const struct rounds *
rounds_of(const char *name)
{
    size_t i = ARRAY_LEN(rounds) - 1;

    while (i > 0 && strcmp(rounds[i].name, name) != 0)
        i--;
    return &rounds[i];
}

/* What the client said it can be asked. */
static bool
can(const struct visit *r, const char *method)
{
    const char *key = strncmp(method, "elicitation/", 12) == 0 ? "elicitation" : strncmp(method, "sampling/", 9) == 0 ? "sampling" : "roots";

    return json_object_get(r->mcp->capabilities, key) != NULL;
}

static bool
bound(struct visit *r, const char *name, struct mcp_state *s)
{
    s->who = r->who;
    return mcp_call_digest(r->mcp->message.method, name, r->mcp->args, s->digest);
}

static void
ask_round(struct visit *r, const struct rounds *w, int round)
{
    json_t *asks = parsed(w->asks[round]), *result = json_pack("{s:s, s:O}", "resultType", "input_required", "inputRequests", asks);
    struct mcp_state s = { .expires_ms = clock_wall_ms() + STATE_MS };
    char text[MCP_STATE_MAX + 1];
    const char *key;
    json_t *one;
    void *next;

    json_object_foreach_safe(asks, next, key, one)
        if (strcmp(w->name, "test_input_required_result_capabilities") == 0 &&
            !can(r, json_string_value(json_object_get(one, "method"))))
            json_object_del(asks, key);
    json_decref(asks);
    snprintf(s.about, sizeof(s.about), "%d", round + 1);
    if (w->state && bound(r, w->name, &s)) {
        mcp_state_make(mcp_all.key, &s, text);
        json_object_set_new(result, "requestState", json_string(text));
    }
    mcp_result(r, result);
}

/* Everything that was asked in that round is answered, in the form of an answer. */
static bool
answered(const struct rounds *w, int round, const json_t *responses)
{
    json_t *asks = parsed(w->asks[round]), *one;
    const char *key;
    bool all = true;

    json_object_foreach(asks, key, one) {
        const json_t *got = json_object_get(responses, key);
        const char *method = json_string_value(json_object_get(one, "method")), *action;
        action = json_string_value(json_object_get(got, "action"));
        all = all && method != NULL && json_is_object(got) && (strcmp(method, "elicitation/create") != 0 || (action != NULL &&
              (strcmp(action, "accept") != 0 || json_is_object(json_object_get(got, "content")))));
    }
    json_decref(asks);
    return all;
}

/* True: all rounds are through. Otherwise it has said what is missing. */
static bool
through(struct visit *r, const char *name)
{
    const struct rounds *w = rounds_of(name);
    const json_t *responses = json_object_get(r->mcp->message.params, "inputResponses");
    const char *text = json_string_value(json_object_get(r->mcp->message.params, "requestState"));
    struct mcp_state s = { .who = 0 };
    int round = 0;

    if (text != NULL && (!bound(r, name, &s) || !mcp_state_check(mcp_all.key, text, clock_wall_ms(), &s))) {
        mcp_error(r, MCP_INVALID_PARAMS, NULL, "requestState is not what it was");
        return false;
    }
    if (text != NULL)
        round = s.about[0] - '1';
    if ((w->state && text == NULL) || !answered(w, round, responses)) {
        ask_round(r, w, round);
        return false;
    }
    if (round + 1 < 3 && w->asks[round + 1] != NULL) {
        ask_round(r, w, round + 1);
        return false;
    }
    return true;
}

static void
need_input(struct visit *r)
{
    const char *name = r->mcp->tool->name;

    if (strcmp(name, "test_streaming_elicitation") == 0)
        mcp_begin_stream(r);
    if (through(r, name))
        say_text(r, rounds_of(name)->done);
}

static void
missing_capability(struct visit *r)
{
    if (can(r, "sampling/createMessage"))
        say_text(r, "sampling is there");
    else
        mcp_error(r, MCP_NO_CAPABILITY, parsed(JSON({"requiredCapabilities": {"sampling": {}}})), "sampling is needed");
}

/* --- resources and prompts -------------------------------------------------------------------------------------------- */

static void
cacheable(struct visit *r, json_t *result)
{
    if (mcp_is_stateless(r)) {
        json_object_set_new(result, "ttlMs", json_integer(1000));
        json_object_set_new(result, "cacheScope", json_string("private"));
    }
    mcp_result(r, result);
}

static void
read_resource(struct visit *r, const json_t *params)
{
    const char *uri = json_string_value(json_object_get(params, "uri"));
    int id;

    if (uri == NULL)
        uri = "";
    if (strcmp(uri, "test://static-text") == 0 || strcmp(uri, "test://watched-resource") == 0)
        cacheable(r, json_pack("{s:[{s:s, s:s, s:s}]}", "contents", "uri", uri, "mimeType", "text/plain", "text",
                               "This is the content of the static text resource."));
    else if (strcmp(uri, "test://static-binary") == 0)
        cacheable(r, json_pack("{s:[{s:s, s:s, s:s}]}", "contents", "uri", uri, "mimeType", "image/png", "blob", PNG));
    else if (strncmp(uri, "test://template/", 16) == 0 && (id = (int)strcspn(uri + 16, "/")) < 64 &&
             strcmp(uri + 16 + id, "/data") == 0) {
        char text[256];
        snprintf(text, sizeof(text), "{\"id\":\"%.*s\",\"templateTest\":true,\"data\":\"Data for ID: %.*s\"}", id, uri + 16, id, uri + 16);
        cacheable(r, json_pack("{s:[{s:s, s:s, s:s}]}", "contents", "uri", uri, "mimeType", "application/json", "text", text));
    } else
        mcp_error(r, MCP_INVALID_PARAMS, json_pack("{s:s}", "uri", uri), "Resource not found");
}

static json_t *
said_by_user(const char *text)
{
    return json_pack("{s:s, s:{s:s, s:s}}", "role", "user", "content", "type", "text", "text", text);
}

static void
get_prompt(struct visit *r, json_t *params)
{
    const char *name = json_string_value(json_object_get(params, "name"));
    json_t *args = json_object_get(params, "arguments");
    const char *one = json_string_value(json_object_get(args, "arg1")), *two = json_string_value(json_object_get(args, "arg2"));
    const char *uri = json_string_value(json_object_get(args, "resourceUri"));
    char text[512];

    if (name == NULL)
        name = "";
    if (strcmp(name, "test_simple_prompt") == 0) {
        mcp_result(r, json_pack("{s:[o]}", "messages", said_by_user("This is a simple prompt for testing.")));
    } else if (strcmp(name, "test_prompt_with_arguments") == 0 && one != NULL && two != NULL) {
        snprintf(text, sizeof(text), "Prompt with arguments: arg1='%s', arg2='%s'", one, two);
        mcp_result(r, json_pack("{s:[o]}", "messages", said_by_user(text)));
    } else if (strcmp(name, "test_prompt_with_embedded_resource") == 0 && uri != NULL) {
        mcp_result(r, json_pack("{s:[{s:s, s:{s:s, s:{s:s, s:s, s:s}}}, o]}", "messages", "role", "user", "content", "type",
                                "resource", "resource", "uri", uri, "mimeType", "text/plain", "text",
                                "Embedded resource content for testing.",
                                said_by_user("Please process the embedded resource above.")));
    } else if (strcmp(name, "test_prompt_with_image") == 0) {
        mcp_result(r, json_pack("{s:[{s:s, s:{s:s, s:s, s:s}}, o]}", "messages", "role", "user", "content", "type", "image",
                                "data", PNG, "mimeType", "image/png", said_by_user("Please analyze the image above.")));
    } else if (strcmp(name, "test_input_required_result_prompt") == 0) {
        if (through(r, name))
            mcp_result(r, json_pack("{s:[o]}", "messages", said_by_user("With that context.")));
    } else {
        mcp_error(r, MCP_INVALID_PARAMS, NULL, "there is no such prompt, or an argument is missing");
    }
}

static const char resources[] = JSON({"resources": [
    {"uri": "test://static-text", "name": "static-text", "description": "text", "mimeType": "text/plain"},
    {"uri": "test://static-binary", "name": "static-binary", "description": "binary", "mimeType": "image/png"},
    {"uri": "test://watched-resource", "name": "watched-resource", "description": "watched", "mimeType": "text/plain"}]});
static const char templates[] = JSON({"resourceTemplates": [{"uriTemplate": "test://template/{id}/data", "name": "template",
    "description": "a template", "mimeType": "application/json"}]});
static const char prompts[] = JSON({"prompts": [{"name": "test_simple_prompt", "description": "simple"},
    {"name": "test_prompt_with_arguments", "description": "arguments", "arguments": [
        {"name": "arg1", "description": "first", "required": true}, {"name": "arg2", "description": "second", "required": true}]},
    {"name": "test_prompt_with_embedded_resource", "description": "resource", "arguments": [
        {"name": "resourceUri", "description": "which", "required": true}]},
    {"name": "test_prompt_with_image", "description": "image"},
    {"name": "test_input_required_result_prompt", "description": "asks"}]});

static bool
method(struct visit *r, const char *name, json_t *params)
{
    if (strcmp(name, "resources/list") == 0)
        cacheable(r, parsed(resources));
    else if (strcmp(name, "resources/templates/list") == 0)
        cacheable(r, parsed(templates));
    else if (strcmp(name, "resources/read") == 0)
        read_resource(r, params);
    else if (strcmp(name, "prompts/list") == 0)
        cacheable(r, parsed(prompts));
    else if (strcmp(name, "prompts/get") == 0)
        get_prompt(r, params);
    else if (strcmp(name, "completion/complete") == 0)
        mcp_result(r, parsed(JSON({"completion": {"values": ["paris", "park"], "total": 2, "hasMore": false}})));
    else if (!mcp_is_stateless(r) && (strcmp(name, "logging/setLevel") == 0 || strcmp(name, "resources/subscribe") == 0 ||
                                      strcmp(name, "resources/unsubscribe") == 0))
        mcp_result(r, json_object());
    else
        return false;
    return true;
}

#define NONE JSON({"type": "object", "properties": {}})
#define TOOL(n, f) { .name = n, .description = "a fixture", .input = NONE, .begin = f }
#define ONE(n, arg, f) { .name = n, .description = "a fixture", .begin = f, \
    .input = "{\"type\": \"object\", \"properties\": {\"" arg "\": {\"type\": \"string\"}}, \"required\": [\"" arg "\"]}" }

static struct mcp_tool tools[] = {
    TOOL("test_simple_text", say_plain), TOOL("test_image_content", say_plain), TOOL("test_audio_content", say_plain),
    TOOL("test_embedded_resource", say_plain), TOOL("test_multiple_content_types", say_plain),
    TOOL("test_error_handling", say_plain), TOOL("test_logging_tool", say_plain),
    { .name = "json_schema_2020_12_tool", .description = "a fixture", .begin = say_plain, .input = JSON({
        "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
        "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}}, "additionalProperties": false}) },
    TOOL("test_tool_with_logging", with_logging), TOOL("test_tool_with_progress", with_progress),
    ONE("test_sampling", "prompt", ask_sampling), ONE("test_elicitation", "message", ask_form),
    TOOL("test_elicitation_sep1034_defaults", ask_form), TOOL("test_elicitation_sep1330_enums", ask_form),
    TOOL("test_missing_capability", missing_capability), TOOL("test_streaming_elicitation", need_input),
    TOOL("test_input_required_result_elicitation", need_input), TOOL("test_input_required_result_sampling", need_input),
    TOOL("test_input_required_result_list_roots", need_input), TOOL("test_input_required_result_request_state", need_input),
    TOOL("test_input_required_result_tampered_state", need_input), TOOL("test_input_required_result_multiple_inputs", need_input),
    TOOL("test_input_required_result_multi_round", need_input), TOOL("test_input_required_result_capabilities", need_input),
};

const struct mcp_extra mcp_extra = {
    .tools = tools, .n_tools = ARRAY_LEN(tools), .method = method,
    .capabilities = JSON({"resources": {}, "prompts": {}, "completions": {}, "logging": {}}),
};
