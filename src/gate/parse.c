/* gate/parse.c: rules from YAML (see gate.h; docs/gate.md has the keys) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/rules.h"
#include "match/computer_name.h"

/* What a match may take beside the account of match.c: frames open at once, and memory in KiB. */
#define MATCH_MAX (2 * GATE_FUEL)
#define DEPTH_MAX 20000
#define HEAP_MAX  (16 * 1024)

static const uint32_t timeouts[GATE_RISKS] = {
    [GATE_LOW] = 120, [GATE_MEDIUM] = 120, [GATE_HIGH] = 60, [GATE_CRITICAL] = 30,
};

uint32_t
gate_timeout_of(enum gate_risk risk)
{
    return timeouts[risk];
}

static int
parse_refuse(const char *name, unsigned line, struct err *err, const char *what)
{
    return err_set(err, ERR_POLICY, "gate.rule", "%s:%u: %s", name, line, what);
}

/* --- one rule ----------------------------------------------------------------------------------------------------- */

static int
put_tools(struct rule *r, const struct node *list, const char *name, struct err *err)
{
    char tool[GATE_NAME_MAX + 1];

    if (list->type != NODE_LIST || list->n == 0 || list->n > GATE_TOOLS_MAX)
        return parse_refuse(name, list->line, err, "tools is a list of 1 to 64 names");
    for (const struct node *m = list->first; m != NULL; m = m->next) {
        size_t n = m->text.n;
        bool star = m->type == NODE_STRING && n > 0 && n <= GATE_NAME_MAX && m->text.p[n - 1] == '*';
        if (m->type == NODE_STRING && n <= GATE_NAME_MAX)
            snprintf(tool, sizeof(tool), "%.*s", (int)(star ? n - 1 : n), m->text.p);
        if (m->type != NODE_STRING || n > GATE_NAME_MAX || (!gate_tool_well(tool) && !(star && n == 1)))
            return parse_refuse(name, m->line, err,
                                "a tool is a name of letters, digits and ._:/-, its beginning with \"*\" "
                                                    "behind it, or \"*\"");
        r->tools[r->n_tools++] = m->text.p;
    }
    return 0;
}

static int
put_risk(struct rule *r, const struct node *v, const char *name, struct err *err)
{
    return v->type == NODE_STRING && gate_risk_parse(v->text.p, &r->risk)
               ? 0 : parse_refuse(name, v->line, err, "risk is LOW, MEDIUM, HIGH or CRITICAL");
}

static int
put_timeout(struct rule *r, const struct node *v, const char *name, struct err *err)
{
    uint64_t seconds;

    if (v->type != NODE_NUMBER || !str_parse_u64(v->text, GATE_TIMEOUT_MAX, &seconds) || seconds == 0)
        return parse_refuse(name, v->line, err, "timeout is a whole number of seconds from 1 to 86400");
    r->timeout_s = (uint32_t)seconds;
    return 0;
}

static int
put_rule_member(struct rule *r, const struct node *m, const char *name, struct err *err)
{
    if (str_eq_c(m->key, "name"))
        r->name = m->type == NODE_STRING && gate_tool_well(m->text.p) ? m->text.p : NULL;
    else if (str_eq_c(m->key, "tools"))
        return put_tools(r, m, name, err);
    else if (str_eq_c(m->key, "conditions"))
        return gate_conditions(r, m, name, err);
    else if (str_eq_c(m->key, "risk"))
        return put_risk(r, m, name, err);
    else if (str_eq_c(m->key, "timeout"))
        return put_timeout(r, m, name, err);
    else if (str_eq_c(m->key, "description") && m->type == NODE_STRING && m->text.n <= 200)
        r->description = m->text.p;
    else if (str_eq_c(m->key, "require_approval") && m->type == NODE_BOOL)
        r->ask = m->truth;
    else {
        parse_refuse(name, m->key_line, err, "no key of a rule, or not a value for it");
        return err_hint(err, "name, tools, conditions, risk, require_approval, timeout, description");
    }
    return 0;
}

/* Of what is written, not of how: neither blanks nor comments nor quotes count. */
static void
digest_node(struct sha256 *h, const struct node *v)
{
    const uint64_t sizes[4] = { (uint64_t)v->type, v->key.n, v->text.n, v->n };
    const uint8_t truth = v->truth;

    sha256_add(h, sizes, sizeof(sizes));
    sha256_add(h, &truth, sizeof(truth));
    if (v->key.n > 0)
        sha256_add(h, v->key.p, v->key.n);
    if (v->text.n > 0)
        sha256_add(h, v->text.p, v->text.n);
    for (const struct node *m = v->first; m != NULL; m = m->next)
        digest_node(h, m);
}

/* Whether one tool can be meant by both. */
static bool
tools_meet(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    bool a_star = a[n - 1] == '*', b_star = b[m - 1] == '*';
    size_t more = a_star && b_star ? (n < m ? n : m) - 1 : a_star ? n - 1 : m - 1;

    return a_star || b_star ? strncmp(a, b, more) == 0 : strcmp(a, b) == 0;
}

static bool
rules_meet(const struct rule *a, const struct rule *b)
{
    for (size_t i = 0; i < a->n_tools; i++)
        for (size_t j = 0; j < b->n_tools; j++)
            if (tools_meet(a->tools[i], b->tools[j]))
                return true;
    return false;
}

/* What comes to the last rule is also what those before it leave over. */
static void
digest_rule(struct gate *g, const struct node *map)
{
    struct rule *r = g->rules[g->n_rules - 1];
    uint8_t hash[SHA256_SIZE];
    struct sha256 h;

    sha256_init(&h);
    digest_node(&h, map);
    for (size_t i = 0; i + 1 < g->n_rules; i++)
        if (rules_meet(g->rules[i], r))
            sha256_add(&h, g->rules[i]->digest, SHA256_TEXT);
    sha256_end(&h, hash);
    sha256_text(hash, r->digest);
}

/* A rule for `computer` that compares its action with a name that no action has when it is judged: it never held. */
static const char *
unheard_of(const struct rule *r)
{
    const char *alias = NULL;
    bool meant = false;

    for (size_t i = 0; i < r->n_tools; i++)
        meant = meant || strcmp(r->tools[i], "computer") == 0;
    for (size_t i = 0; meant && i < r->n_conditions; i++) {
        const struct condition *c = &r->conditions[i];
        bool compares = c->op == IS_EQUALS || c->op == IS_NOT_EQUALS || c->op == IS_ONE_OF;
        size_t n = json_is_array(c->value) ? json_array_size(c->value) : 1;
        for (size_t k = 0; compares && strcmp(c->param, "action") == 0 && k < n; k++) {
            const char *name = json_string_value(json_is_array(c->value) ? json_array_get(c->value, k) : c->value);
            if (name != NULL && computer_alias(name) != NULL)
                alias = name;
        }
    }
    return alias;
}

static int
put_rule(struct gate *g, const struct node *map, const char *name, struct err *err)
{
    struct rule *r = calloc(1, sizeof(*r));
    const char *alias;

    if (r == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    *r = (struct rule){ .description = "", .risk = GATE_RISKS, .ask = true };
    g->rules[g->n_rules++] = r;
    if (map->type != NODE_MAP)
        return parse_refuse(name, map->line, err, "a rule is a map");
    for (const struct node *m = map->first; m != NULL; m = m->next)
        if (put_rule_member(r, m, name, err) < 0)
            return -1;
    if (r->name == NULL)
        return parse_refuse(name, map->line, err, "a rule has a name, of at most 63 letters, digits and ._:/-");
    if (r->n_tools == 0 || r->risk == GATE_RISKS)
        return parse_refuse(name, map->line, err, "a rule has tools and a risk");
    alias = unheard_of(r);
    if (alias != NULL) {
        err_set(err, ERR_POLICY, "gate.condition", "%s:%u: no action of computer is judged as \"%s\"", name, map->line,
                alias);
        return err_hint(err, "call it %s", computer_alias(alias));
    }
    r->timeout_s = r->timeout_s != 0 ? r->timeout_s : gate_timeout_of(r->risk);
    for (size_t i = 0; i + 1 < g->n_rules; i++)
        if (strcmp(g->rules[i]->name, r->name) == 0)
            return parse_refuse(name, map->line, err, "another rule has this name");
    digest_rule(g, map);
    return 0;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static int
put_levels(struct gate *g, const struct node *list, const char *name, struct err *err)
{
    memset(g->level, 0, sizeof(g->level));
    if (list->type != NODE_LIST)
        return parse_refuse(name, list->line, err, "auto-approve is a list of LOW, MEDIUM and HIGH");
    for (const struct node *m = list->first; m != NULL; m = m->next) {
        enum gate_risk risk;
        if (m->type != NODE_STRING || !gate_risk_parse(m->text.p, &risk))
            return parse_refuse(name, m->line, err, "auto-approve is a list of LOW, MEDIUM and HIGH");
        if (risk == GATE_CRITICAL) {
            parse_refuse(name, m->line, err, "CRITICAL is never approved by its level");
            return err_hint(err, "write a rule with require_approval: false for exactly what you mean");
        }
        g->level[risk] = true;
    }
    return 0;
}

static int
put_rules(struct gate *g, const struct node *list, const char *name, struct err *err)
{
    if (list->type != NODE_LIST)
        return parse_refuse(name, list->line, err, "rules is a list");
    if (list->n > GATE_RULES_MAX - g->n_rules)
        return parse_refuse(name, list->line, err, "more rules than there can be");
    for (const struct node *m = list->first; m != NULL; m = m->next)
        if (put_rule(g, m, name, err) < 0)
            return -1;
    return 0;
}

static int
put_member(struct gate *g, const struct node *m, const char *name, struct err *err)
{
    if (str_eq_c(m->key, "rules"))
        return put_rules(g, m, name, err);
    if (str_eq_c(m->key, "auto-approve"))
        return put_levels(g, m, name, err);
    if (str_eq_c(m->key, "defaults") && m->type == NODE_BOOL) {
        g->defaults = m->truth;
        return 0;
    }
    if (str_eq_c(m->key, "apply-to") && m->type == NODE_STRING &&
        (str_eq_c(m->text, "agents") || str_eq_c(m->text, "all"))) {
        g->for_all = str_eq_c(m->text, "all");
        return 0;
    }
    parse_refuse(name, m->key_line, err, "no key of gate, or not a value for it");
    return err_hint(err, "rules, auto-approve, defaults (true, false), apply-to (agents, all)");
}

static int
put_gate(struct gate *g, const char *name, const void *data, size_t n, struct err *err)
{
    const struct node *top = doc_parse_yaml(g->arena, name, data, n, err), *map;

    if (top == NULL)
        return -1;
    map = top->type == NODE_MAP ? node_member(top, "gate") : NULL;
    if (map == NULL)
        return parse_refuse(name, top->line, err, "there is no key \"gate\" in it");
    if (map->type == NODE_STRING && str_eq_c(map->text, "off")) {
        g->off = true;
        return 0;
    }
    if (map->type != NODE_MAP)
        return parse_refuse(name, map->line, err, "gate is a map, or the word off");
    for (const struct node *m = map->first; m != NULL; m = m->next)
        if (put_member(g, m, name, err) < 0)
            return -1;
    return 0;
}

static void
name_levels(struct gate *g)
{
    size_t used = 0;

    snprintf(g->levels, sizeof(g->levels), "none");
    for (enum gate_risk i = GATE_LOW; i < GATE_RISKS; i++)
        if (g->level[i])
            used += (size_t)snprintf(g->levels + used, sizeof(g->levels) - used, "%s%s", used > 0 ? ", " : "",
                                     gate_risk_name(i));
}

/* That nothing is asked at all is another set of rules too. */
static void
digest_all(struct gate *g)
{
    uint8_t hash[SHA256_SIZE];
    struct sha256 h;

    sha256_init(&h);
    sha256_add(&h, g->off ? "off" : "on", g->off ? 4 : 3);
    for (size_t i = 0; i < g->n_rules; i++)
        sha256_add(&h, g->rules[i]->digest, SHA256_TEXT);
    sha256_end(&h, hash);
    sha256_text(hash, g->digest);
}

struct gate *
gate_new(const char *name, const void *data, size_t n, struct err *err)
{
    struct gate *g = calloc(1, sizeof(*g));

    if (g != NULL) {
        g->defaults = g->level[GATE_LOW] = true;
        g->arena = arena_new(16 * 1024);
        g->match = pcre2_match_context_create(NULL);
        g->found = pcre2_match_data_create(1, NULL);
    }
    if (g == NULL || g->arena == NULL || g->match == NULL || g->found == NULL) {
        gate_free(g);
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
        return NULL;
    }
    pcre2_set_match_limit(g->match, MATCH_MAX);
    pcre2_set_depth_limit(g->match, DEPTH_MAX);
    pcre2_set_heap_limit(g->match, HEAP_MAX);
    if ((data != NULL && put_gate(g, name, data, n, err) < 0) ||
        (g->defaults && put_gate(g, "built-in", gate_builtin, strlen(gate_builtin), err) < 0)) {
        gate_free(g);
        return NULL;
    }
    name_levels(g);
    digest_all(g);
    return g;
}

void
gate_free(struct gate *g)
{
    if (g == NULL)
        return;
    for (size_t i = 0; i < g->n_rules; i++) {
        for (size_t k = 0; k < g->rules[i]->n_conditions; k++) {
            json_decref(g->rules[i]->conditions[k].value);
            pcre2_code_free(g->rules[i]->conditions[k].re);
        }
        free(g->rules[i]);
    }
    pcre2_match_data_free(g->found);
    pcre2_match_context_free(g->match);
    arena_free(g->arena);
    free(g);
}

bool
gate_is_off(const struct gate *g)
{
    return g->off;
}

bool
gate_for_all(const struct gate *g)
{
    return g->for_all;
}

const char *
gate_levels(const struct gate *g)
{
    return g->levels;
}

size_t
gate_n_rules(const struct gate *g)
{
    return g->n_rules;
}

const char *
gate_rule_digest(const struct gate *g, const char *rule)
{
    if (rule[0] == '\0')
        return g->digest;
    for (size_t i = 0; i < g->n_rules; i++)
        if (strcmp(g->rules[i]->name, rule) == 0)
            return g->rules[i]->digest;
    return "";
}
