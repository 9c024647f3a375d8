/* gate/match.c: from an operation to a verdict (see gate.h)
 *
 * Texts come from agents, patterns from the owner, and a pattern that is fine for people's texts can take longer than
 * the world lasts on one that was made for it. So the matcher calls back before each step of each pattern, and every
 * step, and every byte that was passed since the last one, is paid from one account for the whole verdict.
 */
#include <stdlib.h>
#include <string.h>

#include "gate/rules.h"

#define BYTES_A_STEP 16     /* that the matcher passes in the time of a step */

enum answer { NO, YES, UNKNOWN };

struct search {
    const struct gate *g;
    const pcre2_code *re;
    const struct gate_place *at;
    uint64_t fuel;
    size_t last;            /* where the last step was */
};

static int
on_step(pcre2_callout_block *block, void *ctx)
{
    struct search *s = ctx;
    size_t now = block->current_position, way = now > s->last ? now - s->last : s->last - now;
    uint64_t price = 1 + way / BYTES_A_STEP;

    s->last = now;
    if (s->fuel < price) {
        s->fuel = 0;
        return PCRE2_ERROR_MATCHLIMIT;
    }
    s->fuel -= price;
    return 0;
}

static enum answer
search_text(struct search *s, const char *text, size_t n)
{
    int r;

    if (n > GATE_TEXT_MAX || s->fuel == 0)
        return UNKNOWN;
    s->last = 0;
    pcre2_set_callout(s->g->match, on_step, s);
    r = pcre2_match(s->re, (PCRE2_SPTR)text, n, 0, 0, s->g->found, s->g->match);
    return r >= 0 ? YES : r == PCRE2_ERROR_NOMATCH ? NO : UNKNOWN;
}

/* Either is enough, and what is not known is no longer a no. */
static enum answer
or(enum answer a, enum answer b)
{
    return a == YES || b == YES ? YES : a == UNKNOWN || b == UNKNOWN ? UNKNOWN : NO;
}

/* In a string; in each text of a list or object, names included, and in the whole of it as JSON. */
static enum answer
search_value(struct search *s, const json_t *v, bool whole)
{
    enum answer a = NO;
    const char *name;
    json_t *member;
    char *text;
    size_t i;

    if (json_is_string(v))
        return search_text(s, json_string_value(v), json_string_length(v));
    if (whole) {
        text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
        a = text != NULL ? search_text(s, text, strlen(text)) : UNKNOWN;
        free(text);
    }
    json_array_foreach(v, i, member) {
        if (a == YES)
            break;
        a = or(a, search_value(s, member, false));
    }
    json_object_foreach((json_t *)(uintptr_t)v, name, member) {
        if (a == YES)
            break;
        a = or(a, or(search_text(s, name, strlen(name)), search_value(s, member, false)));
    }
    return a;
}

static const json_t *
find(const json_t *params, const char *path)
{
    const json_t *at = params;

    for (const char *end; at != NULL; path = end + 1) {
        end = strchrnul(path, '.');
        at = json_object_getn(at, path, (size_t)(end - path));
        if (*end == '\0')
            break;
    }
    return at;
}

static enum answer
one_of(const json_t *list, const json_t *v)
{
    const json_t *one;
    size_t i;

    json_array_foreach(list, i, one) {
        if (json_equal(one, v))
            return YES;
    }
    return NO;
}

/* An object, and every member's name is listed. */
static enum answer
only(const json_t *list, const json_t *v)
{
    const char *name;
    json_t *member;

    if (!json_is_object(v))
        return NO;
    json_object_foreach((json_t *)(uintptr_t)v, name, member) {
        const json_t *one;
        size_t i;
        json_array_foreach(list, i, one) {
            if (json_is_string(one) && strcmp(json_string_value(one), name) == 0)
                break;
        }
        if (i == json_array_size(list))
            return NO;
    }
    return YES;
}

/* @c, whose value is @value, of @v. */
static enum answer
says(struct search *s, const struct condition *c, const json_t *value, const json_t *v)
{
    switch (c->op) {
    case IS_EQUALS:
    case IS_NOT_EQUALS:         /* turned by holds() */
        return json_equal(v, value) ? YES : NO;
    case IS_ONE_OF:
        return one_of(value, v);
    case IS_ONLY:
        return only(value, v);
    case IS_RANGE:
        if (!json_is_number(v))
            return UNKNOWN;
        return json_number_value(v) >= c->min && json_number_value(v) <= c->max ? YES : NO;
    case IS_MATCHES:
    case IS_CONTAINS:
        s->re = c->re;
        return s->fuel > 0 ? search_value(s, v, true) : UNKNOWN;
    default:
        return UNKNOWN;
    }
}

/* @c of @v, with what it compares in the form that it has at @at. */
static enum answer
says_at(struct search *s, const struct condition *c, enum kind kind, const struct gate_place *at, const json_t *v)
{
    json_t *value = gate_form(kind, c->value, at);
    enum answer a = value != NULL ? says(s, c, value, v) : UNKNOWN;

    json_decref(value);
    return a;
}

/* A rule's /workspace is the workspace, as that of a call; and the folder of that name, where it is another one. */
static enum answer
compares(struct search *s, const struct condition *c, enum kind kind, const json_t *v)
{
    struct gate_place called = *s->at;
    enum answer a = says_at(s, c, kind, s->at, v);

    called.call = true;
    return a != YES && kind == KIND_PATH && !s->at->call ? or(a, says_at(s, c, kind, &called, v)) : a;
}

/* Of each form that people may know @v by, until one holds; what is compared is in the one that is judged. */
static enum answer
says_any(struct search *s, const struct condition *c, enum kind kind, const json_t *v)
{
    bool searched = c->op == IS_MATCHES || c->op == IS_CONTAINS;
    bool compared = c->op == IS_EQUALS || c->op == IS_NOT_EQUALS || c->op == IS_ONE_OF;
    enum answer a = compared ? compares(s, c, kind, v) : says(s, c, c->value, v);
    json_t *other;

    for (unsigned i = 0; a != YES && (searched || (compared && kind == KIND_SANDBOX)) &&
                         (other = gate_other_form(kind, v, s->at, i)) != NULL; i++) {
        a = or(a, says(s, c, c->value, other));
        json_decref(other);
    }
    return a;
}

static enum answer
holds(struct search *s, const struct condition *c, const char *tool, const json_t *params)
{
    json_t *v = json_incref((json_t *)(uintptr_t)find(params, c->param));
    enum answer a;

    if (v == NULL)
        v = gate_elsewhere(tool, c->param, params, s->at);
    if (c->op == IS_PRESENT) {
        a = (v != NULL) == c->present ? YES : NO;
        json_decref(v);
        return a;
    }
    if (v == NULL)
        v = gate_otherwise(tool, c->param);
    if (v == NULL)
        return NO;
    a = says_any(s, c, gate_kind(tool, c->param), v);
    json_decref(v);
    return c->op != IS_NOT_EQUALS || a == UNKNOWN ? a : a == YES ? NO : YES;
}

static bool
is_about(const struct rule *r, const char *tool)
{
    for (size_t i = 0; i < r->n_tools; i++) {
        size_t n = strlen(r->tools[i]);
        if (r->tools[i][n - 1] == '*' ? strncmp(r->tools[i], tool, n - 1) == 0 : strcmp(r->tools[i], tool) == 0)
            return true;
    }
    return false;
}

static enum answer
matches(struct search *s, const struct rule *r, const char *tool, const json_t *params)
{
    bool unknown = false;

    for (size_t i = 0; i < r->n_conditions; i++) {
        enum answer a = holds(s, &r->conditions[i], tool, params);
        if (a == NO)
            return NO;
        unknown = unknown || a == UNKNOWN;
    }
    return unknown ? UNKNOWN : YES;
}

bool
gate_stricter(const struct gate_verdict *a, const struct gate_verdict *b)
{
    if (a->ask != b->ask)
        return a->ask;
    if (a->risk != b->risk)
        return a->risk > b->risk;
    return a->timeout_s < b->timeout_s;
}

void
gate_judge(const struct gate *g, const char *tool, const json_t *params, const struct gate_place *at, uint32_t fuel,
           struct gate_verdict *out)
{
    const struct gate_place here = gate_here(at, params);
    struct search s = { .g = g, .at = &here, .fuel = fuel < GATE_FUEL ? fuel : GATE_FUEL };
    const uint64_t full = s.fuel;
    struct gate_verdict found = { .ask = !g->level[GATE_MEDIUM], .risk = GATE_MEDIUM,
                                  .timeout_s = gate_timeout_of(GATE_MEDIUM), .rule = "", .description = "" };
    struct gate_verdict maybe = { .rule = NULL };

    for (size_t i = 0; i < g->n_rules && !g->off; i++) {
        const struct rule *r = g->rules[i];
        enum answer a = is_about(r, tool) ? matches(&s, r, tool, params) : NO;
        const struct gate_verdict v = { .ask = r->ask && !g->level[r->risk], .risk = r->risk,
                                        .timeout_s = r->timeout_s, .rule = r->name, .description = r->description };
        if (a == UNKNOWN && (maybe.rule == NULL || gate_stricter(&v, &maybe)))
            maybe = v;
        if (a == YES) {
            found = v;
            break;
        }
    }
    if (maybe.rule != NULL && gate_stricter(&maybe, &found))
        found = maybe;
    found.unsure = maybe.rule != NULL;
    found.ask = found.ask && !g->off;
    found.cost = (uint32_t)(full - s.fuel);
    *out = found;
}
