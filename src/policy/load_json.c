/* policy/load_json.c: JSON as a tree with line numbers (see doc.h)
 *
 * jansson decides what is JSON and unescapes strings, but forgets lines. Its tree keeps the order of the text, so a
 * second walk over the (by then valid) text, token by token beside the tree, gives every value its line, and every
 * number its own spelling.
 */
#include <jansson.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/doc.h"
#include "policy/internal.h"

struct json_reader {
    struct arena *arena;
    const char *name;
    struct err *err;
    struct str text;
    size_t at;
    unsigned line;
    size_t nodes;
};

static void
free_json(json_t **root)
{
    json_decref(*root);
}

/* Move past a string that begins at @at; the index after its closing quote, or the end of the text. */
static size_t
skip_string(struct str text, size_t at)
{
    for (at++; at < text.n && text.p[at] != '"'; at++)
        if (text.p[at] == '\\')
            at++;
    return at < text.n ? at + 1 : text.n;
}

/* The next token of valid JSON: a bracket, a string with its quotes, or a word; commas and colons are between. */
static struct str
next_token(struct json_reader *r)
{
    struct str t = r->text;
    size_t start;

    while (r->at < t.n && strchr(" \t\r\n,:", t.p[r->at]) != NULL && t.p[r->at] != '\0') {
        if (t.p[r->at] == '\n')
            r->line++;
        r->at++;
    }
    start = r->at;
    if (r->at >= t.n)
        return (struct str){ t.p, 0 };
    if (t.p[r->at] == '"') {
        r->at = skip_string(t, r->at);
    } else if (strchr("{}[]", t.p[r->at]) != NULL) {
        r->at++;
    } else {
        while (r->at < t.n && strchr(" \t\r\n,:{}[]\"", t.p[r->at]) == NULL)
            r->at++;
    }
    return (struct str){ t.p + start, r->at - start };
}

static int
load_json_refuse(struct json_reader *r, unsigned line, const char *code, const char *text)
{
    struct where w = { .from = { .kind = ORIGIN_FILE, .name = r->name, .line = line } };

    return where_fail(&w, r->err, code, "%s", text);
}

/* Brackets are counted before jansson recurses into them. */
static int
check_depth(struct json_reader *r)
{
    size_t depth = 0;

    for (size_t i = 0; i < r->text.n; i++) {
        char c = r->text.p[i];
        if (c == '"') {
            i = skip_string(r->text, i) - 1;
        } else if (c == '{' || c == '[') {
            if (++depth > DOC_DEPTH_MAX)
                return load_json_refuse(r, r->line, "policy.file.too-deep", "nested too deeply");
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
        } else if (c == '\n') {
            r->line++;
        }
    }
    r->line = 1;
    return 0;
}

static int
copy_text(struct json_reader *r, struct str text, struct str *out)
{
    const char *copy;

    if (text.n > POLICY_STRING_MAX)
        return load_json_refuse(r, r->line, "policy.file.too-large", "a string longer than 65536 bytes");
    copy = arena_copy(r->arena, text);
    if (copy == NULL)
        return policy_no_memory(r->err);
    *out = (struct str){ copy, text.n };
    return 0;
}

static struct node *build(struct json_reader *r, json_t *value);

static int
build_map(struct json_reader *r, json_t *object, struct node *map)
{
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value) {
        struct str text;
        struct node *child;
        unsigned line;
        next_token(r);
        line = r->line;
        if (key[0] == '\0' || strlen(key) > 255)
            return load_json_refuse(r, line, "policy.json.key", "a key must have 1 to 255 bytes");
        if (copy_text(r, str_of(key), &text) < 0)
            return -1;
        child = build(r, value);
        if (child == NULL)
            return -1;
        child->key = text;
        child->key_line = line;
        if (node_append(map, child, r->name, r->err) < 0)
            return -1;
    }
    next_token(r);      /* the closing bracket */
    return 0;
}

static int
build_list(struct json_reader *r, json_t *array, struct node *list)
{
    size_t i;
    json_t *value;

    json_array_foreach(array, i, value) {
        struct node *child = build(r, value);
        if (child == NULL || node_append(list, child, r->name, r->err) < 0)
            return -1;
    }
    next_token(r);
    return 0;
}

static struct node *
build(struct json_reader *r, json_t *value)
{
    struct str token = next_token(r);
    struct node *node = arena_alloc(r->arena, sizeof(*node));
    int result = 0;

    if (node == NULL) {
        policy_no_memory(r->err);
        return NULL;
    }
    node->line = r->line;
    if (++r->nodes > DOC_NODES_MAX) {
        load_json_refuse(r, r->line, "policy.file.too-large", "too many values");
        return NULL;
    }
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        node->type = NODE_MAP;
        result = build_map(r, value, node);
        break;
    case JSON_ARRAY:
        node->type = NODE_LIST;
        result = build_list(r, value, node);
        break;
    case JSON_STRING:
        node->type = NODE_STRING;
        result = copy_text(r, (struct str){ json_string_value(value), json_string_length(value) }, &node->text);
        break;
    default:
        result = copy_text(r, token, &node->text);
        if (result == 0)
            node_type_plain(node);
        break;
    }
    return result == 0 ? node : NULL;
}

static int
refuse_parse(struct json_reader *r, const json_error_t *e)
{
    unsigned line = e->line > 0 ? (unsigned)e->line : 0;
    struct where w = { .from = { .kind = ORIGIN_FILE, .name = r->name, .line = line } };
    const char *near;

    if (json_error_code(e) == json_error_duplicate_key)
        return where_fail(&w, r->err, "policy.duplicate-key", "%s", e->text);
    if (json_error_code(e) == json_error_out_of_memory)
        return policy_no_memory(r->err);
    /* "near" and what stands there, which may be a password */
    near = strstr(e->text, " near '");
    return where_fail(&w, r->err, "policy.json.syntax", "not JSON: %.*s (column %d)",
                      (int)(near != NULL ? (size_t)(near - e->text) : strlen(e->text)), e->text, e->column);
}

/* Where the comment at @at ends (just past it), or @at when there is none, or none that ends. */
static size_t
comment_end(const char *text, size_t n, size_t at)
{
    if (at + 1 >= n || text[at] != '/')
        return at;
    if (text[at + 1] == '/') {
        const char *end = memchr(text + at, '\n', n - at);
        return end != NULL ? (size_t)(end - text) : n;
    }
    for (size_t i = at + 2; text[at + 1] == '*' && i + 1 < n; i++)
        if (text[i] == '*' && text[i + 1] == '/')
            return i + 2;
    return at;
}

bool
doc_blank_comments(char *text, size_t n)
{
    bool string = false, any = false;

    for (size_t i = 0; i < n;) {
        size_t end = string ? i : comment_end(text, n, i);
        if (end == i) {
            if (text[i] == '"')
                string = !string;
            i += string && text[i] == '\\' ? 2 : 1;
            continue;
        }
        any = true;
        for (; i < end; i++)
            if (text[i] != '\n')
                text[i] = ' ';
    }
    return any;
}

struct node *
doc_parse_json(struct arena *a, const char *name, const void *data, size_t n, struct err *err)
{
    struct json_reader r = { .arena = a, .name = name, .err = err, .text = { data, n }, .line = 1 };
    __attribute__((cleanup(free_json))) json_t *root = NULL;
    json_error_t e;

    if (check_depth(&r) < 0)
        return NULL;
    root = json_loadb(data, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
    if (root == NULL) {
        refuse_parse(&r, &e);
        return NULL;
    }
    return build(&r, root);
}
