/* gate/settle.c: one form for what can be said in more than one way (see gate.h)
 *
 * A table names the parameters that are like that. Parameters are brought to the form before they are judged, shown and
 * digested; what a rule compares them with, when it does, by the same function. Patterns are texts of people, who
 * may mean a file by its path in the workspace or by the whole one: they are searched for in each of those.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "gate/rules.h"
#include "match/host.h"
#include "match/language.h"
#include "match/package.h"
#include "match/path.h"

static const struct row { const char *tool, *param; enum kind kind; const char *otherwise; } rows[] = {
    { "code_read_file", "file_path", KIND_PATH, NULL },
    { "code_write_file", "file_path", KIND_PATH, NULL },
    { "code_delete_file", "file_path", KIND_PATH, NULL },
    { "code_list_files", "path", KIND_PATH, "." },
    { "code_make_folder", "path", KIND_PATH, NULL },
    { "code_execute", "cwd", KIND_PATH, NULL },
    { "code_execute", "collect", KIND_PATH, NULL },
    { "code_execute", "language", KIND_LANGUAGE, NULL },
    { "code_execute", "allowed_domains", KIND_HOST, NULL },
    { "code_execute", "policy.network.allow", KIND_HOST, NULL },
    { "sandbox_create", "policy.network.allow", KIND_HOST, NULL },
    { "sandbox_policy", "policy.network.allow", KIND_HOST, NULL },
    { "code_install_package", "package", KIND_PACKAGE, NULL },
    { "code_install_package", "registry", KIND_TEXT, "pypi" },
    { NULL, "sandbox_id", KIND_SANDBOX, NULL },
};

static bool
row_is(const struct row *row, const char *tool)
{
    return row->tool == NULL || strcmp(row->tool, tool) == 0;
}

static const struct row *
row_of(const char *tool, const char *param)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (row_is(&rows[i], tool) && strcmp(rows[i].param, param) == 0)
            return &rows[i];
    return NULL;
}

enum kind
gate_kind(const char *tool, const char *param)
{
    const struct row *row = row_of(tool, param);

    return row != NULL ? row->kind : KIND_TEXT;
}

/* The time of a command: seconds are MCP's word for it, milliseconds the other routes'. */
static json_t *
time_of(const char *param, const json_t *params)
{
    bool ms = strcmp(param, "timeout_ms") == 0;
    const json_t *said = json_object_get(params, ms ? "timeout" : "timeout_ms");
    json_int_t n = json_integer_value(said);

    if (!json_is_integer(said) || n < 0 || n > INT64_MAX / 1000)
        return NULL;
    return ms ? json_integer(n * 1000) : n % 1000 == 0 ? json_integer(n / 1000) : json_real((double)n / 1000);
}

json_t *
gate_elsewhere(const char *tool, const char *param, const json_t *params, const struct gate_place *at)
{
    if (strcmp(tool, "code_execute") == 0 && (strcmp(param, "timeout") == 0 || strcmp(param, "timeout_ms") == 0))
        return time_of(param, params);
    return gate_kind(tool, param) == KIND_SANDBOX && at->id != NULL && at->id[0] != '\0' ? json_string(at->id) : NULL;
}

json_t *
gate_otherwise(const char *tool, const char *param)
{
    const struct row *row = row_of(tool, param);

    return row != NULL && row->otherwise != NULL ? json_string(row->otherwise) : NULL;
}

struct gate_place
gate_here(const struct gate_place *at, const json_t *params)
{
    const char *registry = json_string_value(json_object_get(params, "registry"));
    struct gate_place here = at != NULL ? *at : (struct gate_place){ .call = true };

    here.npm = registry != NULL && strcmp(registry, "pypi") != 0;
    return here;
}

/* --- languages of the user's own ---------------------------------------------------------------------------------- */

static struct {
    struct language rows[LANGUAGES_MORE];       /* their names: how they are run is nothing of the gate's */
    char texts[LANGUAGES_MORE][2][LANGUAGE_TEXT_MAX + 1];
    size_t n;
} own;

void
gate_no_languages(void)
{
    own.n = 0;
    language_more(NULL, 0);
}

bool
gate_language(const char *name, const char *alias)
{
    if (own.n == LANGUAGES_MORE || name[0] == '\0')
        return false;
    snprintf(own.texts[own.n][0], sizeof(own.texts[own.n][0]), "%s", name);
    snprintf(own.texts[own.n][1], sizeof(own.texts[own.n][1]), "%s", alias);
    own.rows[own.n] = (struct language){ .name = own.texts[own.n][0], .alias = own.texts[own.n][1] };
    language_more(own.rows, ++own.n);
    return true;
}

/* --- the forms ---------------------------------------------------------------------------------------------------- */

static const char *
root_of(const struct gate_place *at)
{
    return at->root != NULL ? at->root : "";
}

/* What MCP calls /workspace is the workspace, wherever that is; of a route only where it is that. */
static json_t *
path_form(const char *text, size_t n, const struct gate_place *at)
{
    cleanup_free char *path = malloc(n + 2);

    if (path == NULL)
        return NULL;
    memcpy(path, text, n + 1);
    if (at->call)
        path_below(GATE_WORKSPACE, path);
    path_below(root_of(at), path);
    if (root_of(at)[0] == '\0')
        path_below(GATE_WORKSPACE, path);
    return json_string(path);
}

static json_t *
host_form(const char *text)
{
    static const char *const stars[] = { [HOST_EXACT] = "", [HOST_ONE_LABEL] = "*.", [HOST_ANY_DEPTH] = "**." };
    struct host_pattern p;
    char port[8] = "";
    bool v6;

    if (host_pattern_cloche(str_of(text), &p) != HOST_OK || p.kind > HOST_ANY_DEPTH)
        return json_string(text);       /* it is refused */
    v6 = strchr(p.host.name, ':') != NULL;
    if (p.port != 0)
        snprintf(port, sizeof(port), ":%u", p.port);
    return json_sprintf("%s%s%s%s%s", stars[p.kind], v6 ? "[" : "", p.host.name, v6 ? "]" : "", port);
}

/* PyPI knows a package by any spelling of its name; npm by one. */
static json_t *
package_form(const char *text, size_t n, const struct gate_place *at)
{
    cleanup_free char *package = !at->npm ? strdup(text) : NULL;

    if (package == NULL)
        return json_stringn(text, n);
    package_settle(package);
    return json_string(package);
}

json_t *
gate_form(enum kind kind, const json_t *v, const struct gate_place *at)
{
    const char *text = json_string_value(v);
    const struct language *l;
    json_t *list, *one;
    size_t i, n = json_string_length(v);

    if (json_is_array(v)) {
        list = json_array();
        json_array_foreach(v, i, one) {
            if (json_array_append_new(list, gate_form(kind, one, at)) < 0) {
                json_decref(list);
                return NULL;
            }
        }
        return list;
    }
    if (text != NULL && n == 0 && kind == KIND_PATH)
        return json_string(".");
    if (text == NULL || n == 0 || strlen(text) != n)    /* no text of that kind: it is refused */
        return json_incref((json_t *)(uintptr_t)v);
    switch (kind) {
    case KIND_PATH:
        return path_form(text, n, at);
    case KIND_HOST:
        return host_form(text);
    case KIND_PACKAGE:
        return package_form(text, n, at);
    case KIND_LANGUAGE:
        l = language_find(text);
        return l != NULL ? json_string(l->name) : json_incref((json_t *)(uintptr_t)v);
    default:
        return json_incref((json_t *)(uintptr_t)v);
    }
}

static json_t *
joined(const char *root, const char *path)
{
    size_t n = strlen(root);

    if (path[0] == '/' || root[0] != '/')
        return NULL;
    while (n > 0 && root[n - 1] == '/')
        n--;
    return strcmp(path, ".") == 0 ? json_sprintf("%.*s", n > 0 ? (int)n : 1, root)
                                  : json_sprintf("%.*s/%s", (int)n, root, path);
}

json_t *
gate_other_form(enum kind kind, const json_t *v, const struct gate_place *at, unsigned i)
{
    const char *text = json_string_value(v);

    if (kind == KIND_SANDBOX && i == 0)
        return at->name != NULL && at->name[0] != '\0' ? json_string(at->name) : NULL;
    if (kind != KIND_PATH || text == NULL || i > 1)
        return NULL;
    if (i == 1 && strcmp(root_of(at), GATE_WORKSPACE) == 0)
        return NULL;
    return joined(i == 0 ? GATE_WORKSPACE : root_of(at), text);
}

/* --- parameters --------------------------------------------------------------------------------------------------- */

/* Where @param ("a.b") is: the object that has it, and its last name; NULL: nowhere. */
static json_t *
holder(json_t *params, const char *param, const char **last)
{
    const char *dot;

    for (; params != NULL && (dot = strchr(param, '.')) != NULL; param = dot + 1)
        params = json_object_getn(params, param, (size_t)(dot - param));
    *last = param;
    return json_object_get(params, param) != NULL ? params : NULL;
}

bool
gate_settle(const char *tool, json_t *params, const struct gate_place *at)
{
    const struct gate_place here = gate_here(at, params);
    const char *last;
    json_t *in, *file;
    size_t i;

    for (i = 0; i < ARRAY_LEN(rows); i++) {
        if (!row_is(&rows[i], tool) || rows[i].kind == KIND_TEXT)
            continue;
        in = holder(params, rows[i].param, &last);
        if (in != NULL && rows[i].kind == KIND_SANDBOX && here.id != NULL && here.id[0] != '\0' &&
            json_object_set_new(in, last, json_string(here.id)) < 0)
            return false;
        if (in != NULL && rows[i].kind != KIND_SANDBOX &&
            json_object_set_new(in, last, gate_form(rows[i].kind, json_object_get(in, last), &here)) < 0)
            return false;
    }
    if (strcmp(tool, "code_execute") != 0)
        return true;
    json_array_foreach(json_object_get(params, "files"), i, file)
        if (json_is_object(file) && !gate_settle("code_write_file", file, at))
            return false;
    return true;
}
