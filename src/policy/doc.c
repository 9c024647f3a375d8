/* policy/doc.c: what the YAML and the JSON reader share (see doc.h) */
#include "policy/doc.h"

#include <string.h>

#include "policy/internal.h"

const char *
node_type_text(enum node_type type)
{
    static const char *const names[] = {
        [NODE_NULL] = "nothing", [NODE_BOOL] = "true or false", [NODE_NUMBER] = "a number",
        [NODE_STRING] = "a string", [NODE_LIST] = "a list", [NODE_MAP] = "a map",
    };

    return names[type];
}

const struct node *
node_member(const struct node *map, const char *key)
{
    if (map == NULL || map->type != NODE_MAP)
        return NULL;
    for (const struct node *m = map->first; m != NULL; m = m->next)
        if (str_eq_c(m->key, key))
            return m;
    return NULL;
}

static size_t
digits(struct str s, size_t at)
{
    size_t n = 0;

    while (at + n < s.n && s.p[at + n] >= '0' && s.p[at + n] <= '9')
        n++;
    return n;
}

/* RFC 8259's number, the whole of @s. */
static bool
is_number(struct str s)
{
    size_t at = s.n > 0 && s.p[0] == '-' ? 1 : 0;
    size_t n = digits(s, at);

    if (n == 0 || (n > 1 && s.p[at] == '0'))
        return false;
    at += n;
    if (at < s.n && s.p[at] == '.') {
        n = digits(s, at + 1);
        if (n == 0)
            return false;
        at += 1 + n;
    }
    if (at < s.n && (s.p[at] == 'e' || s.p[at] == 'E')) {
        at++;
        if (at < s.n && (s.p[at] == '+' || s.p[at] == '-'))
            at++;
        n = digits(s, at);
        if (n == 0)
            return false;
        at += n;
    }
    return at == s.n;
}

void
node_type_plain(struct node *node)
{
    node->type = NODE_STRING;
    if (node->text.n == 0 || str_eq(node->text, STR_LIT("~")) || str_eq(node->text, STR_LIT("null"))) {
        node->type = NODE_NULL;
    } else if (str_eq(node->text, STR_LIT("true")) || str_eq(node->text, STR_LIT("false"))) {
        node->type = NODE_BOOL;
        node->truth = node->text.n == 4;
    } else if (is_number(node->text)) {
        node->type = NODE_NUMBER;
    }
}

int
node_append(struct node *parent, struct node *child, const char *name, struct err *err)
{
    struct where w = { .from = { .kind = ORIGIN_FILE, .name = name, .line = child->line } };

    if (parent->type == NODE_MAP) {
        char shown[SHOW_MAX];
        w.from.line = child->key_line;
        if (parent->n >= DOC_KEYS_MAX)
            return where_fail(&w, err, "policy.file.too-large", "more than %d keys in one map", DOC_KEYS_MAX);
        for (const struct node *m = parent->first; m != NULL; m = m->next) {
            if (!str_eq(m->key, child->key))
                continue;
            where_fail(&w, err, "policy.duplicate-key", "key %s is there twice, first in line %u",
                       show(child->key, shown), m->key_line);
            return err_hint(err, "keep one of the two");
        }
    } else if (parent->n >= POLICY_LIST_MAX) {
        return where_fail(&w, err, "policy.list.too-long", "more than %d entries in one list", POLICY_LIST_MAX);
    }
    if (parent->last != NULL)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
    parent->n++;
    return 0;
}
