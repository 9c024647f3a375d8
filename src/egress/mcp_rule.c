/* egress/mcp_rule.c: see mcp_rule.h */
#include "egress/mcp_rule.h"

#include <jansson.h>
#include <string.h>

#include "base/array.h"
#include "base/base64.h"
#include "base/cleanup.h"

#define METHOD_MAX 128

/* The fields that say something of the message. */
struct fields {
    const struct http1_field *type, *encoding, *method, *name, *upgrade;
};

void
mcp_fault(struct mcp_message *out, const char *fault)
{
    *out = (struct mcp_message){ .kind = MCP_BAD, .fault = fault };
}

/* --- the head ----------------------------------------------------------------------------------------------------- */

static bool
same_but_for_dashes(struct str written, struct str name)
{
    if (written.n != name.n)
        return false;
    for (size_t i = 0; i < name.n; i++) {
        char c = written.p[i] == '_' ? '-' : written.p[i];
        if (!http1_equal((struct str){ &c, 1 }, (struct str){ name.p + i, 1 }))
            return false;
    }
    return true;
}

/* What is wrong with them, or NULL. */
static const char *
find_fields(const struct http1_head *head, struct fields *out)
{
    const struct { struct str name; const struct http1_field **slot; } known[] = {
        { STR_LIT("content-type"), &out->type }, { STR_LIT("content-encoding"), &out->encoding },
        { STR_LIT("mcp-method"), &out->method }, { STR_LIT("mcp-name"), &out->name },
        { STR_LIT("upgrade"), &out->upgrade },
    };

    *out = (struct fields){ NULL, NULL, NULL, NULL, NULL };
    for (size_t i = 0; i < head->n_fields; i++) {
        const struct http1_field *f = &head->fields[i];
        for (size_t k = 0; k < ARRAY_LEN(known); k++) {
            if (!same_but_for_dashes(f->name, known[k].name))
                continue;
            if (!http1_equal(f->name, known[k].name))
                return "a field's name with \"_\" for \"-\"";
            if (*known[k].slot != NULL)
                return "a field that may be there once is there twice";
            *known[k].slot = f;
        }
    }
    return NULL;
}

static struct str
trim(struct str s)
{
    for (; s.n > 0 && (*s.p == ' ' || *s.p == '\t'); s.n--)
        s.p++;
    for (; s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'); s.n--)
        ;
    return s;
}

/* application/json, with or without a charset of UTF-8. */
static bool
is_json(struct str type)
{
    const char *semicolon = type.n > 0 ? memchr(type.p, ';', type.n) : NULL;
    size_t n = semicolon != NULL ? (size_t)(semicolon - type.p) : type.n;
    struct str rest;

    if (!http1_equal(trim((struct str){ type.p, n }), STR_LIT("application/json")))
        return false;
    if (semicolon == NULL)
        return true;
    rest = trim((struct str){ semicolon + 1, type.n - n - 1 });
    return http1_equal(rest, STR_LIT("charset=utf-8")) || http1_equal(rest, STR_LIT("charset=\"utf-8\""));
}

static const char *
post_fault(const struct http1_head *head, const struct fields *f, bool body)
{
    if (!body)
        return "no message in the body";
    if (head->framing == HTTP1_BODY_LENGTH && head->body_length > MCP_BODY_MAX)
        return "the body is too large to be looked at";
    if (f->type == NULL || !is_json(f->type->value))
        return "the body is not application/json in UTF-8";
    return f->encoding != NULL ? "the body is encoded" : NULL;
}

void
mcp_read_head(const struct http1_head *head, struct mcp_message *out)
{
    bool body = head->framing == HTTP1_BODY_CHUNKED || (head->framing == HTTP1_BODY_LENGTH && head->body_length > 0);
    bool post = str_eq_c(head->method, "POST");
    bool session = str_eq_c(head->method, "GET") || str_eq_c(head->method, "DELETE");
    struct fields f;
    const char *fault = find_fields(head, &f);

    if (fault == NULL && f.upgrade != NULL)
        fault = "an upgrade, behind which nothing can be read";
    if (fault == NULL && post)
        fault = post_fault(head, &f, body);
    else if (fault == NULL && body)
        fault = "a body in another request than POST";
    else if (fault == NULL && (f.method != NULL || f.name != NULL))
        fault = "a field about a message, and no message";
    if (fault != NULL)
        mcp_fault(out, fault);
    else
        *out = (struct mcp_message){ .kind = post ? MCP_UNREAD : session ? MCP_OTHER : MCP_ELSE };
}

/* --- the message -------------------------------------------------------------------------------------------------- */

static struct str
text_of(const json_t *value)
{
    return (struct str){ json_string_value(value), json_string_length(value) };
}

/* Blanks at the ends are no matter; a line break within is one. */
static bool
has_line_break(struct str body)
{
    while (body.n > 0 && memchr(" \t\r\n", body.p[body.n - 1], 4) != NULL)
        body.n--;
    return body.n > 0 && (memchr(body.p, '\n', body.n) != NULL || memchr(body.p, '\r', body.n) != NULL);
}

static bool
is_method(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= ' ' || s.p[i] > '~')
            return false;
    return s.n > 0 && s.n <= METHOD_MAX;
}

/* The members of JSON-RPC, and no others: some servers do not mind case. */
static const char *
envelope_fault(json_t *o)
{
    static const char *const known[] = { "jsonrpc", "id", "method", "params", "result", "error" };
    const json_t *method = json_object_get(o, "method"), *params = json_object_get(o, "params");
    bool answer = json_object_get(o, "result") != NULL || json_object_get(o, "error") != NULL;
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        n += json_object_get(o, known[i]) != NULL;
    if (n != json_object_size(o))
        return "members that JSON-RPC does not have";
    if (!json_is_string(json_object_get(o, "jsonrpc")) || !str_eq_c(text_of(json_object_get(o, "jsonrpc")), "2.0"))
        return "not JSON-RPC 2.0";
    if ((method != NULL) == answer)
        return "neither plainly a request nor plainly an answer";
    if (method != NULL && (!json_is_string(method) || !is_method(text_of(method))))
        return "a method that is not a plain word";
    return params != NULL && (answer || !json_is_object(params)) ? "parameters that are no object" : NULL;
}

/* The one parameter that says which tool, prompt, resource or task is meant. */
static const json_t *
named(const json_t *params)
{
    static const char *const keys[] = { "name", "uri", "taskId" };

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const json_t *v = json_object_get(params, keys[i]);
        if (json_is_string(v))
            return v;
    }
    return NULL;
}

/* @value is @text, or that in the field's own base64. */
static bool
says(struct str value, struct str text)
{
    cleanup_buf struct buf b = BUF_INIT(2 * MCP_BODY_MAX);

    if (str_eq(value, text))
        return true;
    buf_puts(&b, "=?base64?");
    (void)base64_put(&b, text.p, text.n);
    buf_puts(&b, "?=");
    return buf_ok(&b) && str_eq(value, (struct str){ (const char *)b.p, b.n });
}

static bool
fields_agree(const struct fields *f, const json_t *method, const json_t *params, bool call)
{
    const json_t *name = named(params);

    if (f->method != NULL && (method == NULL || !str_eq(f->method->value, text_of(method))))
        return false;
    if (f->name == NULL)
        return true;
    if (name == NULL)
        return false;
    return call ? str_eq(f->name->value, text_of(name)) : says(f->name->value, text_of(name));
}

static bool
has_second_name(json_t *params)
{
    const char *key;
    json_t *value;

    json_object_foreach(params, key, value)
        if (strcmp(key, "name") != 0 && http1_equal(str_of(key), STR_LIT("name")))
            return true;
    return false;
}

static const char *
call_fault(json_t *params, struct mcp_message *out)
{
    const json_t *name = json_object_get(params, "name");

    if (!json_is_string(name) || !tool_is_name(text_of(name)))
        return "the tool's name is not plain: letters, digits, _ - . and /, at most 128";
    if (has_second_name(params))
        return "the tool is named twice";
    memcpy(out->name, text_of(name).p, text_of(name).n);
    out->tool = (struct str){ out->name, text_of(name).n };
    return NULL;
}

static const char *
message_fault(json_t *o, const struct fields *f, struct mcp_message *out)
{
    const json_t *method = json_object_get(o, "method");
    json_t *params = json_object_get(o, "params");
    const char *fault = json_is_object(o) ? envelope_fault(o) : "several messages in one";
    bool call;

    if (fault != NULL)
        return fault;
    call = method != NULL && str_eq_c(text_of(method), "tools/call");
    if (!call && method != NULL && http1_equal(text_of(method), STR_LIT("tools/call")))
        return "tools/call in another spelling";
    out->kind = call ? MCP_CALL : MCP_OTHER;
    fault = call ? call_fault(params, out) : NULL;
    if (fault == NULL && !fields_agree(f, method, params, call))
        fault = "Mcp-Method or Mcp-Name says another thing than the message";
    return fault;
}

void
mcp_read(const struct http1_head *head, struct str body, struct mcp_message *out)
{
    /* numbers may be larger than ours; what they are is no matter */
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL;
    const char *fault;
    struct fields f;
    json_t *o;

    mcp_read_head(head, out);
    if (out->kind != MCP_UNREAD)
        return;
    (void)find_fields(head, &f);
    if (body.n > MCP_BODY_MAX) {
        mcp_fault(out, "the body is too large to be looked at");
        return;
    }
    if (has_line_break(body)) {
        mcp_fault(out, "a line break within the message");
        return;
    }
    o = body.n > 0 ? json_loadb(body.p, body.n, flags, NULL) : NULL;
    fault = o == NULL ? "not one message in JSON, in one spelling" : message_fault(o, &f, out);
    json_decref(o);
    if (fault != NULL)
        mcp_fault(out, fault);
}
