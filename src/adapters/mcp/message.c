/* adapters/mcp/message.c: see message.h */
#include "adapters/mcp/message.h"

#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/base64.h"

const char *const mcp_versions[] = { "2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26" };
const size_t mcp_n_versions = ARRAY_LEN(mcp_versions);

int
mcp_version(const char *text)
{
    for (size_t i = 0; i < mcp_n_versions; i++)
        if (strcmp(mcp_versions[i], text) == 0)
            return (int)i;
    return -1;
}

/* --- messages ----------------------------------------------------------------------------------------------------- */

/* Before a parser that calls itself sees it. */
static bool
too_deep(const char *p, size_t n)
{
    size_t depth = 0;
    bool in_string = false;

    for (size_t i = 0; i < n; i++) {
        if (in_string) {
            if (p[i] == '\\')
                i++;
            else if (p[i] == '"')
                in_string = false;
        } else if (p[i] == '"') {
            in_string = true;
        } else if (p[i] == '{' || p[i] == '[') {
            if (++depth > MCP_DEPTH_MAX)
                return true;
        } else if ((p[i] == '}' || p[i] == ']') && depth > 0) {
            depth--;
        }
    }
    return false;
}

static bool
id_well(const json_t *id)
{
    return json_is_integer(id) || (json_is_string(id) && json_string_length(id) <= MCP_ID_MAX);
}

static int
request_of(struct mcp_message *out, const json_t *id, const char **why)
{
    const json_t *method = json_object_get(out->whole, "method");
    json_t *params = json_object_get(out->whole, "params");

    *why = "method is a short string";
    if (!json_is_string(method) || json_string_length(method) == 0 || json_string_length(method) > MCP_METHOD_MAX)
        return MCP_INVALID_REQUEST;
    *why = "a request has no result";
    if (json_object_get(out->whole, "result") != NULL || json_object_get(out->whole, "error") != NULL)
        return MCP_INVALID_REQUEST;
    *why = "params is an object";
    if (params != NULL && !json_is_object(params))
        return MCP_INVALID_REQUEST;
    out->method = json_string_value(method);
    out->params = params;
    out->kind = id != NULL ? MCP_REQUEST : MCP_NOTIFICATION;
    return 0;
}

static int
response_of(struct mcp_message *out, const char **why)
{
    out->result = json_object_get(out->whole, "result");
    out->error = json_object_get(out->whole, "error");
    *why = "a message has a method, or an id and one of result and error";
    if (out->id == NULL || (out->result == NULL) == (out->error == NULL))
        return MCP_INVALID_REQUEST;
    *why = "result and error are objects";
    if ((out->result != NULL && !json_is_object(out->result)) || (out->error != NULL && !json_is_object(out->error)))
        return MCP_INVALID_REQUEST;
    out->kind = MCP_RESPONSE;
    return 0;
}

int
mcp_parse(const char *p, size_t n, struct mcp_message *out, const char **why)
{
    const char *version;
    json_t *id;

    *out = (struct mcp_message){ .kind = 0 };
    *why = "the message is nested too deeply";
    if (too_deep(p, n))
        return MCP_PARSE_ERROR;
    *why = "the message is not valid JSON";
    out->whole = json_loadb(p, n, JSON_REJECT_DUPLICATES, NULL);
    if (out->whole == NULL)
        return MCP_PARSE_ERROR;
    *why = "one message a request: batches are refused";
    if (json_is_array(out->whole))
        return MCP_INVALID_REQUEST;
    *why = "a message is an object";
    if (!json_is_object(out->whole))
        return MCP_INVALID_REQUEST;
    id = json_object_get(out->whole, "id");
    *why = "id is a whole number or a string of at most 256 bytes";
    if (id != NULL && !id_well(id))
        return MCP_INVALID_REQUEST;
    out->id = id;
    version = json_string_value(json_object_get(out->whole, "jsonrpc"));
    *why = "jsonrpc is \"2.0\"";
    if (version == NULL || strcmp(version, "2.0") != 0)
        return MCP_INVALID_REQUEST;
    return json_object_get(out->whole, "method") != NULL ? request_of(out, id, why) : response_of(out, why);
}

void
mcp_message_free(struct mcp_message *m)
{
    json_decref(m->whole);
    *m = (struct mcp_message){ .kind = 0 };
}

/* --- headers ------------------------------------------------------------------------------------------------------ */

static bool
unbase64(const char *p, size_t n, char *out, size_t size)
{
    cleanup_buf struct buf b = BUF_INIT(size);

    if (base64_get(&b, p, n) < 0 || buf_nul(&b) < 0 || strlen((const char *)b.p) != b.n)
        return false;
    memcpy(out, b.p, b.n + 1);
    return true;
}

bool
mcp_header_text(const char *value, char out[MCP_NAME_MAX + 1])
{
    static const char open[] = "=?base64?", end[] = "?=";
    size_t n, first = sizeof(open) - 1, last = sizeof(end) - 1;

    value += strspn(value, " \t");
    n = strlen(value);
    while (n > 0 && (value[n - 1] == ' ' || value[n - 1] == '\t'))
        n--;
    if (n >= first + last && memcmp(value, open, first) == 0 && memcmp(value + n - last, end, last) == 0)
        return unbase64(value + first, n - first - last, out, MCP_NAME_MAX + 1);
    if (n > MCP_NAME_MAX)
        return false;
    memcpy(out, value, n);
    out[n] = '\0';
    return true;
}

/* Whether the media type at p[0..n), without its parameters, is @type. */
static bool
type_is(const char *p, size_t n, const char *type)
{
    size_t end = 0;

    while (end < n && p[end] != ';' && p[end] != ' ' && p[end] != '\t')
        end++;
    return end == strlen(type) && strncasecmp(p, type, end) == 0;
}

bool
mcp_accepts(const char *accept, bool *stream)
{
    bool json = false;

    *stream = false;
    for (const char *at = accept, *end; *at != '\0'; at = *end == ',' ? end + 1 : end) {
        at += strspn(at, " \t");
        end = strchrnul(at, ',');
        size_t n = (size_t)(end - at);
        bool any = type_is(at, n, "*/*");
        json = json || any || type_is(at, n, "application/json") || type_is(at, n, "application/*");
        *stream = *stream || any || type_is(at, n, "text/event-stream") || type_is(at, n, "text/*");
    }
    return json && *stream;
}

bool
mcp_is_json(const char *type)
{
    return type_is(type + strspn(type, " \t"), strlen(type + strspn(type, " \t")), "application/json");
}
