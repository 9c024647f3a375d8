/* policy/load_yaml.c: the strict subset of YAML, from libyaml's events (see doc.h)
 *
 * What is left out is what makes one text mean two things: aliases (and the documents that grow from them), tags,
 * merge keys, several documents, YAML 1.1's guesses about `no` and `0777`.
 */
#include <string.h>
#include <yaml.h>

#include "policy/doc.h"
#include "policy/internal.h"

struct yaml_reader {
    yaml_parser_t parser;
    struct arena *arena;
    const char *name;
    struct err *err;
    struct node *stack[DOC_DEPTH_MAX];  /* open lists and maps */
    size_t depth;
    struct node *root;
    struct str key;                     /* of the map on top, waiting for its value */
    unsigned key_line;
    bool has_key;
    size_t nodes;
};

static unsigned
line_of(const yaml_mark_t *mark)
{
    return mark->line < 0xfffffffe ? (unsigned)mark->line + 1 : 0;
}

static int
load_yaml_refuse(struct yaml_reader *r, const yaml_mark_t *mark, const char *code, const char *text)
{
    struct where w = { .from = { .kind = ORIGIN_FILE, .name = r->name, .line = line_of(mark) } };

    return where_fail(&w, r->err, code, "%s", text);
}

static int
refuse_subset(struct yaml_reader *r, const yaml_mark_t *mark, const char *what)
{
    struct where w = { .from = { .kind = ORIGIN_FILE, .name = r->name, .line = line_of(mark) } };

    where_fail(&w, r->err, "policy.yaml.subset", "%s not accepted in a policy", what);
    return err_hint(r->err, "write the value out in its place");
}

static int
refuse_parse(struct yaml_reader *r)
{
    const yaml_parser_t *parser = &r->parser;
    struct where w = { .from = { .kind = ORIGIN_FILE, .name = r->name, .line = line_of(&parser->problem_mark) } };

    if (parser->error == YAML_MEMORY_ERROR)
        return policy_no_memory(r->err);
    if (parser->error == YAML_READER_ERROR)
        w.from.line = 0;
    return where_fail(&w, r->err, "policy.yaml.syntax", "not YAML: %s",
                      parser->problem != NULL ? parser->problem : "unknown problem");
}

/* Put @node where it belongs: the document's root, a list, or a map after its key. */
static int
place(struct yaml_reader *r, struct node *node)
{
    struct node *parent = r->depth > 0 ? r->stack[r->depth - 1] : NULL;

    if (parent == NULL) {
        r->root = node;
        return 0;
    }
    if (parent->type == NODE_MAP) {
        node->key = r->key;
        node->key_line = r->key_line;
        r->has_key = false;
    }
    return node_append(parent, node, r->name, r->err);
}

static struct node *
new_node(struct yaml_reader *r, enum node_type type, const yaml_mark_t *mark)
{
    struct node *node;

    if (++r->nodes > DOC_NODES_MAX) {
        load_yaml_refuse(r, mark, "policy.file.too-large", "too many values");
        return NULL;
    }
    node = arena_alloc(r->arena, sizeof(*node));
    if (node == NULL) {
        policy_no_memory(r->err);
        return NULL;
    }
    node->type = type;
    node->line = line_of(mark);
    return node;
}

static bool
wants_key(const struct yaml_reader *r)
{
    return r->depth > 0 && r->stack[r->depth - 1]->type == NODE_MAP && !r->has_key;
}

static int
on_open(struct yaml_reader *r, enum node_type type, const yaml_event_t *event, const void *anchor, const void *tag)
{
    struct node *node;

    if (anchor != NULL)
        return refuse_subset(r, &event->start_mark, "anchors are");
    if (tag != NULL)
        return refuse_subset(r, &event->start_mark, "tags are");
    if (wants_key(r))
        return load_yaml_refuse(r, &event->start_mark, "policy.yaml.key", "a key must be a plain word");
    if (r->depth == DOC_DEPTH_MAX)
        return load_yaml_refuse(r, &event->start_mark, "policy.file.too-deep", "nested too deeply");
    node = new_node(r, type, &event->start_mark);
    if (node == NULL || place(r, node) < 0)
        return -1;
    r->stack[r->depth++] = node;
    r->has_key = false;
    return 0;
}

static int
on_close(struct yaml_reader *r)
{
    r->depth--;
    r->has_key = false;
    return 0;
}

static int
on_key(struct yaml_reader *r, const yaml_event_t *event, struct str text)
{
    if (text.n == 0 || text.n > 255)
        return load_yaml_refuse(r, &event->start_mark, "policy.yaml.key", "a key must have 1 to 255 bytes");
    if (str_eq(text, STR_LIT("<<")) && event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        return refuse_subset(r, &event->start_mark, "merge keys are");
    r->key = text;
    r->key_line = line_of(&event->start_mark);
    r->has_key = true;
    return 0;
}

static int
on_scalar(struct yaml_reader *r, const yaml_event_t *event)
{
    struct str text = { (const char *)event->data.scalar.value, event->data.scalar.length };
    struct node *node;
    char *copy;

    if (event->data.scalar.anchor != NULL)
        return refuse_subset(r, &event->start_mark, "anchors are");
    if (event->data.scalar.tag != NULL)
        return refuse_subset(r, &event->start_mark, "tags are");
    if (text.n > POLICY_STRING_MAX)
        return load_yaml_refuse(r, &event->start_mark, "policy.file.too-large", "a string longer than 65536 bytes");
    if (text.n > 0 && memchr(text.p, '\0', text.n) != NULL)
        return load_yaml_refuse(r, &event->start_mark, "policy.string.nul", "a string holds a NUL byte");
    copy = arena_copy(r->arena, text);
    if (copy == NULL)
        return policy_no_memory(r->err);
    text.p = copy;
    if (wants_key(r))
        return on_key(r, event, text);
    node = new_node(r, NODE_STRING, &event->start_mark);
    if (node == NULL)
        return -1;
    node->text = text;
    if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        node_type_plain(node);
    return place(r, node);
}

static int
on_document(struct yaml_reader *r, const yaml_event_t *event)
{
    if (r->root != NULL)
        return refuse_subset(r, &event->start_mark, "a second document is");
    if (event->data.document_start.version_directive != NULL ||
        event->data.document_start.tag_directives.start != event->data.document_start.tag_directives.end)
        return refuse_subset(r, &event->start_mark, "directives are");
    return 0;
}

static int
on_event(struct yaml_reader *r, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return on_document(r, event);
    case YAML_ALIAS_EVENT:
        return refuse_subset(r, &event->start_mark, "aliases are");
    case YAML_SCALAR_EVENT:
        return on_scalar(r, event);
    case YAML_SEQUENCE_START_EVENT:
        return on_open(r, NODE_LIST, event, event->data.sequence_start.anchor, event->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return on_open(r, NODE_MAP, event, event->data.mapping_start.anchor, event->data.mapping_start.tag);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return on_close(r);
    default:
        return 0;
    }
}

static int
read_events(struct yaml_reader *r)
{
    for (;;) {
        yaml_event_t event;
        bool end;
        int result;
        if (!yaml_parser_parse(&r->parser, &event))
            return refuse_parse(r);
        end = event.type == YAML_STREAM_END_EVENT;
        result = on_event(r, &event);
        yaml_event_delete(&event);
        if (end || result < 0)
            return result;
    }
}

struct node *
doc_parse_yaml(struct arena *a, const char *name, const void *data, size_t n, struct err *err)
{
    struct yaml_reader r = { .arena = a, .name = name, .err = err };
    int result;

    if (!yaml_parser_initialize(&r.parser)) {
        policy_no_memory(err);
        return NULL;
    }
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, n > 0 ? data : (const void *)"", n);    /* NULL is no input to it */
    result = read_events(&r);
    yaml_parser_delete(&r.parser);
    if (result < 0)
        return NULL;
    if (r.root == NULL || r.root->type == NODE_NULL) {
        err_set(err, ERR_POLICY, "policy.file.empty", "%s: the file says nothing", name);
        err_hint(err, "an empty policy is never taken for the default one; write \"mode: standard\" if that is meant");
        return NULL;
    }
    return r.root;
}
