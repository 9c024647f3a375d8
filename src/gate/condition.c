/* gate/condition.c: what a rule says about parameters, from its file */
#include <string.h>

#include "gate/rules.h"

#define PARENS_MAX  100
#define OPERATORS_LISTED \
    "{param: NAME, and one of equals, not-equals, one-of, matches, contains, range, present, only}"

static const struct { const char *name; enum operator op; } operators[OPERATORS] = {
    { "equals", IS_EQUALS }, { "not-equals", IS_NOT_EQUALS }, { "one-of", IS_ONE_OF }, { "matches", IS_MATCHES },
    { "contains", IS_CONTAINS }, { "range", IS_RANGE }, { "present", IS_PRESENT }, { "only", IS_ONLY },
};

static int
condition_refuse(const char *name, const struct node *at, struct err *err, const char *what)
{
    err_set(err, ERR_POLICY, "gate.condition", "%s:%u: %s", name, at->line, what);
    return err_hint(err, OPERATORS_LISTED);
}

/* A scalar, or a list of those. NULL: no memory, or something else. */
static json_t *
json_of(const struct node *n)
{
    json_t *list;

    switch (n->type) {
    case NODE_NULL:
        return json_null();
    case NODE_BOOL:
        return json_boolean(n->truth);
    case NODE_NUMBER:
        return json_loadb(n->text.p, n->text.n, JSON_DECODE_ANY, NULL);
    case NODE_STRING:
        return json_stringn(n->text.p, n->text.n);
    case NODE_LIST:
        list = json_array();
        for (const struct node *m = n->first; m != NULL; m = m->next) {
            if (m->type == NODE_LIST || m->type == NODE_MAP || json_array_append_new(list, json_of(m)) < 0) {
                json_decref(list);
                return NULL;
            }
        }
        return list;
    default:
        return NULL;
    }
}

static int
compile(struct condition *c, const struct node *v, const char *name, struct err *err)
{
    pcre2_compile_context *ctx = pcre2_compile_context_create(NULL);
    uint32_t options = PCRE2_UTF | PCRE2_CASELESS | PCRE2_AUTO_CALLOUT;
    PCRE2_UCHAR said[200];
    PCRE2_SIZE at = 0;
    int code = 0;

    if (ctx == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    options |= c->op == IS_CONTAINS ? PCRE2_LITERAL : PCRE2_DOTALL | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
    pcre2_set_max_pattern_length(ctx, GATE_PATTERN_MAX);
    pcre2_set_parens_nest_limit(ctx, PARENS_MAX);
    c->re = pcre2_compile((PCRE2_SPTR)v->text.p, v->text.n, options, &code, &at, ctx);
    pcre2_compile_context_free(ctx);
    if (c->re != NULL)
        return 0;
    pcre2_get_error_message(code, said, sizeof(said));
    err_set(err, ERR_POLICY, "gate.pattern", "%s:%u: no pattern: %s, at its byte %zu", name, v->line,
            (const char *)said, at);
    return err_hint(err, "Perl's regular expressions (pcre2pattern(3)), at most %d bytes", GATE_PATTERN_MAX);
}

static int
range_of(struct condition *c, const struct node *v, const char *name, struct err *err)
{
    c->min = -__builtin_inf();
    c->max = __builtin_inf();
    if (v->type != NODE_MAP || v->n == 0)
        return condition_refuse(name, v, err, "range is {min: NUMBER, max: NUMBER}, or one of them");
    for (const struct node *m = v->first; m != NULL; m = m->next) {
        bool is_min = str_eq_c(m->key, "min");
        json_t *number = m->type == NODE_NUMBER && (is_min || str_eq_c(m->key, "max")) ? json_of(m) : NULL;
        if (number == NULL)
            return condition_refuse(name, m, err, "range is {min: NUMBER, max: NUMBER}, or one of them");
        *(is_min ? &c->min : &c->max) = json_number_value(number);
        json_decref(number);
    }
    return c->min <= c->max ? 0 : condition_refuse(name, v, err, "nothing is in this range");
}

static int
value_of(struct condition *c, const struct node *v, const char *name, struct err *err)
{
    switch (c->op) {
    case IS_MATCHES:
    case IS_CONTAINS:
        if (v->type != NODE_STRING || v->text.n == 0)
            return condition_refuse(name, v, err, "the text to look for is a string that is not empty");
        return compile(c, v, name, err);
    case IS_RANGE:
        return range_of(c, v, name, err);
    case IS_PRESENT:
        if (v->type != NODE_BOOL)
            return condition_refuse(name, v, err, "present is true or false");
        c->present = v->truth;
        return 0;
    case IS_ONE_OF:
    case IS_ONLY:
        if (v->type != NODE_LIST || v->n == 0)
            return condition_refuse(name, v, err, "one-of and only have a list that is not empty");
        break;
    default:
        break;
    }
    c->value = json_of(v);
    return c->value != NULL ? 0
           : condition_refuse(name, v, err, "a string, number, true, false, null, or a list of these");
}

static int
condition_of(struct condition *c, const struct node *map, const char *name, struct err *err)
{
    const struct node *param = map->type == NODE_MAP ? node_member(map, "param") : NULL;

    if (param == NULL || param->type != NODE_STRING || param->text.n == 0)
        return condition_refuse(name, map, err, "a condition names its param");
    if (map->n != 2)
        return condition_refuse(name, map, err, "a condition has one param and says one thing about it");
    c->param = param->text.p;
    for (const struct node *m = map->first; m != NULL; m = m->next) {
        if (m == param)
            continue;
        for (size_t i = 0; i < OPERATORS; i++) {
            if (str_eq_c(m->key, operators[i].name)) {
                c->op = operators[i].op;
                return value_of(c, m, name, err);
            }
        }
        err_set(err, ERR_POLICY, "gate.condition", "%s:%u: there is no condition \"%.*s\"", name, m->line,
                (int)(m->key.n < 64 ? m->key.n : 64), m->key.p);
        return err_hint(err, OPERATORS_LISTED);
    }
    return condition_refuse(name, map, err, "a condition says one thing about its param");
}

int
gate_conditions(struct rule *r, const struct node *list, const char *name, struct err *err)
{
    if (list->type != NODE_LIST || list->n == 0 || list->n > GATE_CONDITIONS_MAX)
        return condition_refuse(name, list, err,
                                "conditions is a list of 1 to 16 of them; leave it out for a rule without any");
    for (const struct node *m = list->first; m != NULL; m = m->next)
        /* counted before it is whole, so that what it holds is freed */
        if (condition_of(&r->conditions[r->n_conditions++], m, name, err) < 0)
            return -1;
    return 0;
}
