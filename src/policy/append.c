/* policy/append.c: see append.h
 *
 * libyaml says where things begin and end; JSON is YAML in flow style. What it counts as one character may be several
 * bytes.
 */
#include "policy/append.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <yaml.h>

#define DEPTH_MAX 64

struct edit {
    yaml_document_t *doc;
    struct str text, rule;
    struct buf *out;
    struct err *err;
};

static int
no_place(struct edit *e, const char *why)
{
    err_set(e->err, ERR_POLICY, "policy.append", "%s", why);
    return err_hint(e->err, "add it by hand: network: {allow: [\"%.*s\"]}", (int)e->rule.n, e->rule.p);
}

/* The byte at which the @index-th character begins. */
static size_t
byte_of(const struct edit *e, size_t index)
{
    size_t at = 0;

    for (; index > 0 && at < e->text.n; index--)
        for (at++; at < e->text.n && ((unsigned char)e->text.p[at] & 0xc0) == 0x80;)
            at++;
    return at;
}

static yaml_node_t *
member(const struct edit *e, const yaml_node_t *map, const char *key)
{
    for (const yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++) {
        const yaml_node_t *k = yaml_document_get_node(e->doc, p->key);
        if (k != NULL && k->type == YAML_SCALAR_NODE && k->data.scalar.length == strlen(key) &&
            memcmp(k->data.scalar.value, key, strlen(key)) == 0)
            return yaml_document_get_node(e->doc, p->value);
    }
    return NULL;
}

static bool
is_flow(const yaml_node_t *node)
{
    return node->type == YAML_MAPPING_NODE ? node->data.mapping.style == YAML_FLOW_MAPPING_STYLE
                                           : node->data.sequence.style == YAML_FLOW_SEQUENCE_STYLE;
}

/* The byte behind @node. What libyaml calls the end of a block collection is where the next thing begins, so it is that
 * of its last member. */
static size_t
end_of(const struct edit *e, const yaml_node_t *node)
{
    for (int i = 0; i < DEPTH_MAX && node != NULL && node->type != YAML_SCALAR_NODE && !is_flow(node); i++) {
        const yaml_node_t *last = NULL;
        if (node->type == YAML_SEQUENCE_NODE && node->data.sequence.items.top > node->data.sequence.items.start)
            last = yaml_document_get_node(e->doc, node->data.sequence.items.top[-1]);
        if (node->type == YAML_MAPPING_NODE && node->data.mapping.pairs.top > node->data.mapping.pairs.start)
            last = yaml_document_get_node(e->doc, node->data.mapping.pairs.top[-1].value);
        if (last == NULL)
            return byte_of(e, node->start_mark.index);
        node = last;
    }
    return node != NULL ? byte_of(e, node->end_mark.index) : e->text.n;
}

/* The file with @a, the rule in quotes, and @b put in at byte @at. */
static int
append_put(struct edit *e, size_t at, const char *a, const char *b)
{
    buf_append(e->out, e->text.p, at);
    buf_printf(e->out, "%s\"%.*s\"%s", a, (int)e->rule.n, e->rule.p, b);
    return buf_append(e->out, e->text.p + at, e->text.n - at) < 0
               ? err_set(e->err, ERR_LIMIT, "policy.append", "no room for a longer file") : 0;
}

static const char *
newline_of(const struct edit *e)
{
    const char *first = memchr(e->text.p, '\n', e->text.n);

    return first != NULL && first > e->text.p && first[-1] == '\r' ? "\r\n" : "\n";
}

/* A line of its own behind the line in which byte @at is, indented by @column. */
static int
put_line(struct edit *e, size_t at, size_t column, const char *key)
{
    const char *end = memchr(e->text.p + at, '\n', e->text.n - at);
    size_t begin = end != NULL ? (size_t)(end - e->text.p) + 1 : e->text.n;
    char before[512];

    if (column > 200)
        return no_place(e, "its lists are indented too deep");
    snprintf(before, sizeof(before), "%s%*s%s", end == NULL ? newline_of(e) : "", (int)column, "", key);
    return append_put(e, begin, before, end == NULL && e->text.n == 0 ? "" : newline_of(e));
}

static int
into_list(struct edit *e, const yaml_node_t *list)
{
    const int *last = list->data.sequence.items.top;
    bool empty = last == list->data.sequence.items.start;

    if (!is_flow(list))
        return put_line(e, end_of(e, list), list->start_mark.column, "- ");
    if (empty)
        return append_put(e, byte_of(e, list->start_mark.index) + 1, "", "");
    return append_put(e, end_of(e, yaml_document_get_node(e->doc, last[-1])), ", ", "");
}

/* @network without a list: one is put in front of its members. */
static int
into_network(struct edit *e, const yaml_node_t *network)
{
    bool empty = network->data.mapping.pairs.start == network->data.mapping.pairs.top;
    size_t at = byte_of(e, network->start_mark.index);
    char before[256], after[256];

    if (is_flow(network))
        return append_put(e, at + 1, "\"allow\": [", empty ? "]" : "], ");
    if (network->start_mark.column > 200)
        return no_place(e, "its keys are indented too deep");
    snprintf(before, sizeof(before), "allow:%s%*s- ", newline_of(e), (int)network->start_mark.column + 2, "");
    snprintf(after, sizeof(after), "%s%*s", newline_of(e), (int)network->start_mark.column, "");
    return append_put(e, at, before, after);
}

static int
into_root(struct edit *e, const yaml_node_t *root)
{
    bool empty = root->data.mapping.pairs.start == root->data.mapping.pairs.top;

    if (is_flow(root))
        return append_put(e, byte_of(e, root->start_mark.index) + 1, "\"network\": {\"allow\": [",
                          empty ? "]}" : "]}, ");
    if (root->start_mark.column != 0)
        return no_place(e, "its keys are indented");
    return append_put(e, byte_of(e, root->start_mark.index), newline_of(e)[0] == '\r' ? "network:\r\n  allow:\r\n    - "
                                                                                     : "network:\n  allow:\n    - ",
                      newline_of(e));
}

static int
edit(struct edit *e)
{
    const yaml_node_t *root = yaml_document_get_root_node(e->doc), *network, *allow;

    if (root == NULL || root->type != YAML_MAPPING_NODE)
        return no_place(e, "it is not a map of settings");
    network = member(e, root, "network");
    if (network == NULL)
        return into_root(e, root);
    if (network->type != YAML_MAPPING_NODE)
        return no_place(e, "its \"network\" is one word, not a map with a list");
    allow = member(e, network, "allow");
    if (allow == NULL)
        return into_network(e, network);
    return allow->type == YAML_SEQUENCE_NODE ? into_list(e, allow) : no_place(e, "its \"network.allow\" is not a list");
}

int
policy_append_allow(struct str text, struct str rule, struct buf *out, struct err *err)
{
    struct edit e = { .text = text, .rule = rule, .out = out, .err = err };
    yaml_parser_t parser;
    yaml_document_t doc;
    int r;

    /* a quote or a line's end in it would say something else */
    for (size_t i = 0; i < rule.n; i++)
        if ((unsigned char)rule.p[i] <= ' ' || rule.p[i] == '"' || rule.p[i] == '\\' || (unsigned char)rule.p[i] > '~')
            return err_set(err, ERR_POLICY, "policy.append", "not a host");
    if (text.n >= 3 && memcmp(text.p, "\xef\xbb\xbf", 3) == 0)
        return no_place(&e, "it begins with a byte order mark");
    if (!yaml_parser_initialize(&parser))
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, text.n > 0 ? (const unsigned char *)text.p : (const unsigned char *)"",
                                 text.n);        /* NULL is no input to it */
    if (!yaml_parser_load(&parser, &doc)) {
        yaml_parser_delete(&parser);
        return no_place(&e, "it is not YAML or JSON");
    }
    e.doc = &doc;
    r = edit(&e);
    yaml_document_delete(&doc);
    yaml_parser_delete(&parser);
    return r;
}
