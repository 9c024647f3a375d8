/* adapters/mcp/call.c: how calls of tools end, and what their arguments say */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "adapters/mcp/mcp.h"
#include "wire/json_text.h"

void
mcp_done(struct visit *r, json_t *structured, bool failed)
{
    mcp_done_with(r, structured, failed, NULL);
}

void
mcp_done_with(struct visit *r, json_t *structured, bool failed, json_t *more)
{
    cleanup_free char *text = structured != NULL ? json_dumps(structured, JSON_COMPACT | JSON_REAL_PRECISION(15))
                                                   : NULL;
    json_t *result = text != NULL ? json_pack("{s:[{s:s, s:s}], s:o, s:b}", "content", "type", "text", "text", text,
                                              "structuredContent", structured, "isError", failed) : NULL;

    if (result != NULL && json_array_size(more) > 0)
        json_array_extend(json_object_get(result, "content"), more);
    json_decref(more);
    if (result == NULL)
        mcp_error(r, MCP_INTERNAL, NULL, "the result cannot be told");
    else
        mcp_result(r, result);
}

static void
fail(struct visit *r, const char *type, const char *text)
{
    json_t *body = json_pack("{s:b, s:o, s:s}", "success", 0, "error",
                             json_of_text((const uint8_t *)text, strlen(text)), "error_type", type);

    if (r->mcp->box[0] != '\0')
        json_object_set_new(body, "sandbox_id", json_string(r->mcp->box));
    mcp_done(r, body, true);
}

void
mcp_fail(struct visit *r, const char *type, const char *fmt, ...)
{
    char text[2048];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fail(r, type, text);
}

void
mcp_fail_err(struct visit *r, const struct err *err)
{
    char text[2048];

    snprintf(text, sizeof(text), "%s%s%s", err->msg, err->hint[0] != '\0' ? ": " : "", err->hint);
    fail(r, err->code, text);
}

const char *
mcp_text(const struct visit *r, const char *name)
{
    return json_string_value(json_object_get(r->mcp->args, name));
}

bool
mcp_true(const struct visit *r, const char *name)
{
    return json_is_true(json_object_get(r->mcp->args, name));
}
