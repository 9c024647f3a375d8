/* policy/host_rule.c: a rule about a host that is narrowed to some requests
 *
 *     {host: api.example.org, port: 443, methods: [GET, HEAD], path: "/v1/items"}
 *     {host: mcp.example.org, path: "/mcp", mcp: {tools: ["read_*", search]}}
 */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "match/host.h"
#include "match/tool.h"
#include "match/url_path.h"
#include "policy/schema.h"

#define WRITTEN_MAX (HOST_TEXT_MAX + POLICY_METHODS_MAX * 33 + PATH_TEXT_MAX + \
                     POLICY_TOOLS_MAX * (TOOL_NAME_MAX + 1) + 16)
#define METHOD_MAX  32      /* bytes of one */

struct parts {
    const struct node *host, *port, *methods, *path, *mcp;
};

static int
take_parts(struct loader *l, const struct node *v, struct parts *out)
{
    const struct { const char *key; const struct node **slot; enum node_type type; } known[] = {
        { "host", &out->host, NODE_STRING },
        { "port", &out->port, NODE_NUMBER },
        { "methods", &out->methods, NODE_LIST },
        { "path", &out->path, NODE_STRING },
        { "mcp", &out->mcp, NODE_MAP },
    };

    for (const struct node *m = v->first; m != NULL; m = m->next) {
        size_t mark = schema_enter_key(l, m->key), i = 0;
        while (i < ARRAY_LEN(known) && !str_eq_c(m->key, known[i].key))
            i++;
        if (i == ARRAY_LEN(known)) {
            schema_fail(l, m, "policy.unknown-key", "unknown key");
            return err_hint(l->err, "known here: host, port, methods, path, mcp");
        }
        if (schema_expect(l, m, known[i].type) < 0)
            return -1;
        *known[i].slot = m;
        schema_leave(l, mark);
    }
    if (out->host != NULL)
        return 0;
    schema_fail(l, v, "policy.rule.host", "the rule names no host");
    return err_hint(l->err, "write {host: api.example.org, methods: [GET], path: \"/v1/**\"}");
}

/* The pattern of host and port. It is judged without the port first, so that a refusal shows what was written. */
static int
add_host(struct loader *l, const struct parts *parts, struct policy_list *list)
{
    size_t mark = schema_enter_key(l, STR_LIT("host"));
    struct where w = schema_where(l, parts->host);
    char text[HOST_TEXT_MAX + 8];
    struct str bare;
    uint16_t in_host;
    uint64_t port;

    if (list_add(l->p, list, ENTRY_HOST, parts->host->text, &w, l->err) < 0)
        return -1;
    schema_leave(l, mark);
    if (parts->port == NULL)
        return 0;
    mark = schema_enter_key(l, STR_LIT("port"));
    w = schema_where(l, parts->port);
    if (!str_parse_u64(parts->port->text, 65535, &port) || port == 0)
        return schema_fail(l, parts->port, "policy.host.port", "%s is not a port from 1 to 65535", parts->port->text.p);
    if (host_split_port(parts->host->text, &bare, &in_host) != HOST_OK || in_host != 0) {
        schema_fail(l, parts->port, "policy.host.port", "the host has a port already");
        return err_hint(l->err, "keep one of the two");
    }
    list->n--;
    snprintf(text, sizeof(text), "%s:%u", parts->host->text.p, (unsigned)port);
    if (list_add(l->p, list, ENTRY_HOST, str_of(text), &w, l->err) < 0)
        return -1;
    schema_leave(l, mark);
    return 0;
}

static bool
is_method(struct str s)
{
    bool ok = s.n > 0 && s.n <= METHOD_MAX;

    for (size_t i = 0; ok && i < s.n; i++)
        ok = (s.p[i] >= 'A' && s.p[i] <= 'Z') || s.p[i] == '-' || s.p[i] == '_';
    return ok;
}

static int
take_methods(struct loader *l, const struct node *v, struct policy_scope *scope)
{
    char shown[SHOW_MAX];
    size_t mark = schema_enter_key(l, v->key);

    if (v->n == 0 || v->n > POLICY_METHODS_MAX) {
        schema_fail(l, v, "policy.rule.methods", "%zu methods; a rule has 1 to %d", v->n, POLICY_METHODS_MAX);
        return err_hint(l->err, "leave it out for every method");
    }
    for (const struct node *m = v->first; m != NULL; m = m->next) {
        size_t inner = schema_enter_index(l, scope->n_methods);
        if (schema_expect(l, m, NODE_STRING) < 0)
            return -1;
        if (!is_method(m->text) || str_eq_c(m->text, "CONNECT")) {
            schema_fail(l, m, "policy.rule.methods", "%s is not a method of a request", show(m->text, shown));
            return err_hint(l->err, "write it in capitals: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS ...");
        }
        scope->methods[scope->n_methods] = arena_copy(l->p->arena, m->text);
        if (scope->methods[scope->n_methods++] == NULL)
            return policy_no_memory(l->err);
        schema_leave(l, inner);
    }
    schema_leave(l, mark);
    return 0;
}

static int
take_path(struct loader *l, const struct node *v, struct policy_scope *scope)
{
    char pattern[PATH_TEXT_MAX + 1], shown[SHOW_MAX];
    size_t mark = schema_enter_key(l, v->key), n;
    const char *fault = url_path_pattern(v->text, pattern, &n);

    if (fault != NULL) {
        schema_fail(l, v, "policy.rule.path", "%s %s", show(v->text, shown), fault);
        return err_hint(l->err, "write what follows the host, without query: \"/v1/**\" is /v1 and all below it");
    }
    scope->path = arena_copy(l->p->arena, (struct str){ pattern, n });
    schema_leave(l, mark);
    return scope->path != NULL ? 0 : policy_no_memory(l->err);
}

static int
take_tools(struct loader *l, const struct node *v, struct policy_scope *scope)
{
    char shown[SHOW_MAX];
    size_t mark = schema_enter_key(l, v->key);

    if (v->n == 0 || v->n > POLICY_TOOLS_MAX)
        return schema_fail(l, v, "policy.rule.mcp", "%zu tools; a rule has 1 to %d", v->n, POLICY_TOOLS_MAX);
    for (const struct node *t = v->first; t != NULL; t = t->next) {
        size_t inner = schema_enter_index(l, scope->n_tools);
        if (schema_expect(l, t, NODE_STRING) < 0)
            return -1;
        if (!tool_is_pattern(t->text)) {
            schema_fail(l, t, "policy.rule.mcp", "%s is not a tool's name", show(t->text, shown));
            return err_hint(l->err, "letters, digits, _ - . and /, at most %d of them; * for any number of them",
                            TOOL_NAME_MAX);
        }
        scope->tools[scope->n_tools] = arena_copy(l->p->arena, t->text);
        if (scope->tools[scope->n_tools++] == NULL)
            return policy_no_memory(l->err);
        schema_leave(l, inner);
    }
    schema_leave(l, mark);
    return 0;
}

/* {tools: [...]}. An allow rule needs a path: a GET passes it whatever it asks for. */
static int
take_mcp(struct loader *l, const struct parts *parts, struct policy_scope *scope, bool deny)
{
    const struct node *v = parts->mcp, *tools = NULL;
    size_t mark = schema_enter_key(l, v->key);

    for (const struct node *m = v->first; m != NULL; m = m->next) {
        size_t inner = schema_enter_key(l, m->key);
        if (!str_eq_c(m->key, "tools")) {
            schema_fail(l, m, "policy.unknown-key", "unknown key");
            return err_hint(l->err, "known here: tools");
        }
        if (schema_expect(l, m, NODE_LIST) < 0)
            return -1;
        tools = m;
        schema_leave(l, inner);
    }
    if (tools == NULL || (parts->path == NULL && !deny)) {
        schema_fail(l, v, "policy.rule.mcp", tools == NULL ? "the rule names no tool" : "the rule names no path");
        return err_hint(l->err, "write {host: mcp.example.org, path: /mcp, mcp: {tools: [\"read_*\"]}}");
    }
    if (take_tools(l, tools, scope) < 0)
        return -1;
    schema_leave(l, mark);
    return 0;
}

/* As one line, for messages and reports: "api.example.org:443 GET,HEAD /v1/items mcp:read_*,search". */
static char *
describe(struct policy *p, const char *host, const struct policy_scope *scope)
{
    char text[WRITTEN_MAX];
    size_t n = (size_t)snprintf(text, sizeof(text), "%s", host);

    for (size_t i = 0; i < scope->n_methods && n < sizeof(text); i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%c%s", i == 0 ? ' ' : ',', scope->methods[i]);
    if (scope->path != NULL && n < sizeof(text))
        n += (size_t)snprintf(text + n, sizeof(text) - n, " %s", scope->path);
    for (size_t i = 0; i < scope->n_tools && n < sizeof(text); i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i == 0 ? " mcp:" : ",", scope->tools[i]);
    return arena_copy(p->arena, str_of(text));
}

int
apply_host_rule(struct loader *l, const struct node *v, struct policy_list *list)
{
    struct parts parts = { NULL, NULL, NULL, NULL, NULL };
    struct policy_scope *scope;
    struct policy_entry *entry;

    if (take_parts(l, v, &parts) < 0 || add_host(l, &parts, list) < 0)
        return -1;
    entry = &list->v[list->n - 1];
    entry->from = schema_where(l, v).from;
    if (parts.methods == NULL && parts.path == NULL && parts.mcp == NULL)
        return 0;
    scope = arena_alloc(l->p->arena, sizeof(*scope));
    if (scope == NULL)
        return policy_no_memory(l->err);
    if ((parts.methods != NULL && take_methods(l, parts.methods, scope) < 0) ||
        (parts.path != NULL && take_path(l, parts.path, scope) < 0) ||
        (parts.mcp != NULL && take_mcp(l, &parts, scope, list == &l->p->deny_domains) < 0))
        return -1;
    entry->scope = scope;
    entry->written = describe(l->p, entry->value, scope);
    return entry->written != NULL ? 0 : policy_no_memory(l->err);
}
