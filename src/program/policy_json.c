/* program/policy_json.c: see policy_json.h */
#include "program/policy_json.h"

#include <stdio.h>
#include <string.h>

#include "policy/describe.h"
#include "program/state.h"

/* jansson refuses bytes that are not UTF-8, which paths may hold: those become "?". */
json_t *
policy_json_text(const char *s)
{
    json_t *out = s != NULL ? json_string(s) : json_null();
    char copy[4096];
    size_t n = 0;

    if (out != NULL)
        return out;
    for (; s[n] != '\0' && n < sizeof(copy) - 1; n++)
        copy[n] = (unsigned char)s[n] < 0x80 ? s[n] : '?';
    copy[n] = '\0';
    return json_string(copy);
}

static json_t *
json_origin(const struct origin *from)
{
    static const char *const kinds[] = {
        [ORIGIN_DEFAULT] = "default", [ORIGIN_MODE] = "mode", [ORIGIN_FILE] = "file", [ORIGIN_FLAG] = "flag",
        [ORIGIN_BUILTIN] = "builtin" };
    json_t *out = json_object();

    json_object_set_new(out, "kind", policy_json_text(kinds[from->kind]));
    json_object_set_new(out, "name", policy_json_text(from->name));
    if (from->line > 0)
        json_object_set_new(out, "line", json_integer(from->line));
    return out;
}

static void
json_scope(json_t *out, const struct policy_scope *scope)
{
    json_t *methods = scope != NULL && scope->n_methods > 0 ? json_array() : NULL;
    json_t *tools = scope != NULL && scope->n_tools > 0 ? json_array() : NULL;

    for (size_t i = 0; methods != NULL && i < scope->n_methods; i++)
        json_array_append_new(methods, policy_json_text(scope->methods[i]));
    if (methods != NULL)
        json_object_set_new(out, "methods", methods);
    if (scope != NULL && scope->path != NULL)
        json_object_set_new(out, "path", policy_json_text(scope->path));
    if (scope == NULL || scope->n_tools == 0)
        return;
    for (size_t i = 0; i < scope->n_tools; i++)
        json_array_append_new(tools, policy_json_text(scope->tools[i]));
    json_object_set_new(out, "mcp", json_pack("{s:O}", "tools", tools));
    json_decref(tools);
}

static json_t *
json_row(const struct policy_row *row)
{
    json_t *out = json_object();

    if (row->type == ROW_NUMBER)
        json_object_set_new(out, "value", json_integer((json_int_t)row->number));
    else if (row->type == ROW_BOOL)
        json_object_set_new(out, "value", json_boolean(row->truth));
    else
        json_object_set_new(out, "value", policy_json_text(row->text));
    if (row->type == ROW_ENTRY) {
        json_object_set_new(out, "written", policy_json_text(row->written));
        json_object_set_new(out, "literal", json_boolean(row->literal));
        json_scope(out, row->scope);
    }
    json_object_set_new(out, "from", json_origin(row->from));
    return out;
}

struct into { json_t *object; bool builtin; };

/* "limits.memory" becomes a member of the object "limits". */
static int
add_row(void *ctx, const struct policy_row *row)
{
    const struct into *into = ctx;
    json_t *object = into->object;
    const char *name = row->key, *dot = strchr(row->key, '.');
    char group[64];

    if (!into->builtin && row->from->kind == ORIGIN_BUILTIN)
        return 0;
    if (dot != NULL) {
        snprintf(group, sizeof(group), "%.*s", (int)(dot - name), name);
        if (json_object_get(object, group) == NULL)
            json_object_set_new(object, group, json_object());
        object = json_object_get(object, group);
        name = dot + 1;
    }
    if (row->type == ROW_ENTRY || row->type == ROW_NO_ENTRIES) {
        if (json_object_get(object, name) == NULL)
            json_object_set_new(object, name, json_array());
        if (row->type == ROW_ENTRY)
            json_array_append_new(json_object_get(object, name), json_row(row));
        return 0;
    }
    json_object_set_new(object, name, json_row(row));
    return 0;
}

void
policy_json(const struct policy *p, bool builtin, json_t *object)
{
    struct into into = { object, builtin };

    (void)policy_describe(p, add_row, &into);
}

void
cli_policy_hash(const struct policy *p, uint8_t digest[SHA256_SIZE])
{
    uint8_t key[STATE_KEY] = { 0 };

    _Static_assert(STATE_KEY == POLICY_DIGEST_KEY, "one is the other");
    if (policy_hides(p))
        state_key("digest.key", key);
    policy_digest(p, key, digest);
    explicit_bzero(key, sizeof(key));
}

void
cli_policy_digest(const struct policy *p, char hex[SHA256_TEXT + 1])
{
    uint8_t digest[SHA256_SIZE];

    cli_policy_hash(p, digest);
    sha256_text(digest, hex);
}
