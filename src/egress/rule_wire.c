/* egress/rule_wire.c: see rule_wire.h */
#include "egress/rule_wire.h"

#include <string.h>

#include "base/array.h"

static const char *const lists[] = { [DECIDE_ALLOWS] = "allow", [DECIDE_DENIES] = "deny",
                                     [DECIDE_HOST_PORT] = "host-port", [DECIDE_KEPT] = "keep-tls" };

static json_t *
origin_json(const struct origin *from)
{
    char text[POLICY_ORIGIN_TEXT_MAX];
    json_t *out = json_string(policy_origin_text(from, text));

    if (out != NULL)
        return out;
    for (char *c = text; *c != '\0'; c++)
        *c = (unsigned char)*c < 0x80 ? *c : '?';
    return json_string(text);
}

int
rule_write(const struct policy_entry *entry, enum decide_which which, char out[RULE_WIRE_MAX], struct err *err)
{
    json_t *o = json_pack("{s:s, s:s, s:s, s:o}", "list", lists[which], "host", entry->value, "text",
                          entry->written, "origin", origin_json(&entry->from));
    const struct policy_scope *scope = entry->scope;
    json_t *methods = json_array(), *tools = json_array();
    size_t n;

    for (size_t i = 0; scope != NULL && i < scope->n_methods; i++)
        json_array_append_new(methods, json_string(scope->methods[i]));
    if (json_array_size(methods) > 0)
        json_object_set(o, "methods", methods);
    if (scope != NULL && scope->path != NULL)
        json_object_set_new(o, "path", json_string(scope->path));
    for (size_t i = 0; scope != NULL && i < scope->n_tools; i++)
        json_array_append_new(tools, json_string(scope->tools[i]));
    if (json_array_size(tools) > 0)
        json_object_set(o, "tools", tools);
    json_decref(methods);
    json_decref(tools);
    n = o != NULL ? json_dumpb(o, out, RULE_WIRE_MAX, JSON_COMPACT) : 0;
    json_decref(o);
    if (n == 0 || n >= RULE_WIRE_MAX)
        return err_set(err, ERR_LIMIT, "egress.rules", "the rule \"%.60s\" is too long", entry->written);
    return (int)n;
}

static int
no_rule(struct err *err, const char *why)
{
    return err_set(err, ERR_PROTOCOL, "egress.rules", "a message that is not a rule: %s", why);
}

static struct str
text_of(const json_t *value)
{
    return (struct str){ json_string_value(value), json_string_length(value) };
}

/* Copies of nothing: the strings are the array's. */
static int
read_texts(const json_t *list, struct str *out, size_t max, size_t *n_out, struct err *err)
{
    size_t n = json_array_size(list);

    if (!json_is_array(list) || n == 0 || n > max)
        return no_rule(err, "its methods or tools");
    for (size_t i = 0; i < n; i++) {
        const json_t *text = json_array_get(list, i);
        if (!json_is_string(text))
            return no_rule(err, "a method or tool");
        out[(*n_out)++] = text_of(text);
    }
    return 0;
}

static int
rule_wire_add(const json_t *o, struct decide_rules *rules, struct err *err)
{
    const json_t *list = json_object_get(o, "list"), *host = json_object_get(o, "host");
    const json_t *text = json_object_get(o, "text"), *origin = json_object_get(o, "origin");
    const json_t *methods = json_object_get(o, "methods"), *path = json_object_get(o, "path");
    const json_t *tools = json_object_get(o, "tools");
    size_t known = 4U + (methods != NULL ? 1U : 0U) + (path != NULL ? 1U : 0U) + (tools != NULL ? 1U : 0U);
    struct origin from = { .kind = ORIGIN_FILE, .name = json_string_value(origin) };
    struct decide_scope scope = { .path = { "", 0 } };
    enum decide_which which = DECIDE_ALLOWS;
    struct decide_list *to;

    if (!json_is_string(list) || !json_is_string(host) || !json_is_string(text) || !json_is_string(origin) ||
        (path != NULL && !json_is_string(path)) || json_object_size(o) != known)
        return no_rule(err, "its members");
    while (which < ARRAY_LEN(lists) && !str_eq_c(text_of(list), lists[which]))
        which++;
    if (which == ARRAY_LEN(lists) || (which >= DECIDE_HOST_PORT && known > 4))
        return no_rule(err, "its list");
    if ((methods != NULL && read_texts(methods, scope.methods, DECIDE_METHODS_MAX, &scope.n_methods, err) < 0) ||
        (tools != NULL && read_texts(tools, scope.tools, DECIDE_TOOLS_MAX, &scope.n_tools, err) < 0))
        return -1;
    if (path != NULL)
        scope.path = text_of(path);
    if (path != NULL && scope.path.n == 0)
        return no_rule(err, "its path");
    if (decide_rules_add(rules, which, text_of(host), &from, &scope, err) < 0)
        return -1;
    to = decide_list_of(rules, which);
    to->v[to->n - 1].text = text_of(text);
    return 0;
}

int
rule_read(const char *message, size_t n, json_t *keep, struct decide_rules *rules, struct err *err)
{
    json_t *o = n < RULE_WIRE_MAX ? json_loadb(message, n, JSON_REJECT_DUPLICATES, NULL) : NULL;
    int r;

    if (!json_is_object(o)) {
        json_decref(o);
        return no_rule(err, "no JSON object");
    }
    if (json_array_append(keep, o) < 0) {
        json_decref(o);
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    }
    r = rule_wire_add(o, rules, err);
    json_decref(o);
    if (r < 0)
        json_array_remove(keep, json_array_size(keep) - 1);
    return r;
}
