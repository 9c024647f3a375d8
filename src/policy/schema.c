/* policy/schema.c: see schema.h */
#include "policy/schema.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct where
schema_where(const struct loader *l, const struct node *v)
{
    return (struct where){
        .from = { .kind = ORIGIN_FILE, .name = l->name, .line = v->key.n > 0 ? v->key_line : v->line },
        .key = l->path,
    };
}

int
schema_fail(struct loader *l, const struct node *v, const char *code, const char *fmt, ...)
{
    struct where w = schema_where(l, v);
    char text[ERR_MSG_MAX + 1];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return where_fail(&w, l->err, code, "%s", text);
}

int
schema_expect(struct loader *l, const struct node *v, enum node_type type)
{
    if (v->type == type)
        return 0;
    return schema_fail(l, v, "policy.type", "expected %s, found %s", node_type_text(type), node_type_text(v->type));
}

static void
path_append(struct loader *l, const char *separator, struct str key)
{
    int n = snprintf(l->path + l->path_n, sizeof(l->path) - l->path_n, "%s%.*s", l->path_n > 0 ? separator : "",
                     (int)(key.n > 64 ? 64 : key.n), key.p);

    if (n > 0)
        l->path_n += (size_t)n < sizeof(l->path) - l->path_n ? (size_t)n : sizeof(l->path) - l->path_n - 1;
}

size_t
schema_enter_key(struct loader *l, struct str key)
{
    size_t mark = l->path_n;

    path_append(l, ".", key);
    return mark;
}

size_t
schema_enter_index(struct loader *l, size_t index)
{
    size_t mark = l->path_n;
    char text[32];

    snprintf(text, sizeof(text), "[%zu]", index);
    path_append(l, "", str_of(text));
    return mark;
}

void
schema_leave(struct loader *l, size_t mark)
{
    l->path_n = mark;
    l->path[mark] = '\0';
}

/* Whether @key is @name, or its camelCase or snake_case form. */
static bool
same_key(struct str key, const char *name, bool exact)
{
    bool snake = true, camel = true;
    size_t at = 0;

    if (str_eq_c(key, name))
        return true;
    if (exact)
        return false;
    for (const char *c = name; *c != '\0'; c++) {
        char want_snake = *c == '-' ? '_' : *c;
        if (snake && !((size_t)(c - name) < key.n && key.p[c - name] == want_snake))
            snake = false;
        if (*c == '-')
            continue;
        char want_camel = c > name && c[-1] == '-' && *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
        if (camel && !(at < key.n && key.p[at] == want_camel))
            camel = false;
        at++;
    }
    return (snake && key.n == strlen(name)) || (camel && at == key.n);
}

/* Letters to change, add, drop or swap to get from @a to @b; case, `-` and `_` cost nothing. Long keys: no idea. */
static size_t
distance(struct str a, struct str b)
{
    enum { MAX = 40 };      /* at most STR_DISTANCE_MAX */
    size_t n = 0, m = 0;
    char x[MAX], y[MAX];

    for (size_t i = 0; i < a.n && n < MAX; i++)
        if (a.p[i] != '-' && a.p[i] != '_')
            x[n++] = ascii_lower(a.p[i]);
    for (size_t i = 0; i < b.n && m < MAX; i++)
        if (b.p[i] != '-' && b.p[i] != '_')
            y[m++] = ascii_lower(b.p[i]);
    return str_distance((struct str){ x, n }, (struct str){ y, m });
}

/* A sentence about what was left out (policy->notes). 0 or -1 with the error. */
static int
schema_note(struct loader *l, const struct node *v, const char *what)
{
    char text[SCHEMA_PATH_MAX + 256];
    struct policy_entry entry = { .literal = true, .from = schema_where(l, v).from };

    snprintf(text, sizeof(text), "%s:%u: %s %s", l->name, v->key_line, l->path, what);
    entry.value = entry.written = arena_copy(l->p->arena, str_of(text));
    return entry.value != NULL ? list_push(l->p, &l->p->notes, entry, l->err) : policy_no_memory(l->err);
}

/* The name of @full in @section, or NULL: it is not right there. */
static const char *
name_in(const char *full, const char *section)
{
    size_t n = strlen(section);

    if (full == NULL || strncmp(full, section, n) != 0 || (n > 0 && full[n++] != '.'))
        return NULL;
    return strchr(full + n, '.') == NULL ? full + n : NULL;
}

static int
apply_spec(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    return schema_read(l, v, rule->arg);
}

/* The next key that is known behind *@i, which counts rows of the policy's table, then @rules. */
static bool
next_key(const struct loader *l, const char *section, const struct key_rule *rules, size_t *i, struct key_rule *out)
{
    for (; *i < policy_n_specs; ++*i) {
        const struct policy_spec *s = &policy_specs[*i];
        const char *full = l->exact ? s->srt : s->no_file == NULL ? s->key : NULL;
        const char *name = section != NULL ? name_in(full, section) : NULL;
        if (name == NULL)
            continue;
        *out = (struct key_rule){ .name = name, .canon = s->key, .apply = apply_spec, .arg = s };
        ++*i;
        return true;
    }
    if (rules == NULL || rules[*i - policy_n_specs].name == NULL)
        return false;
    *out = rules[(*i)++ - policy_n_specs];
    return true;
}

static int
unknown_key(struct loader *l, const struct node *member, const char *section, const struct key_rule *rules)
{
    const char *nearest = NULL;
    size_t best = 4, used = 0, i = 0;
    char names[ERR_HINT_MAX + 1] = "";
    struct key_rule known;

    while (next_key(l, section, rules, &i, &known)) {
        size_t d = distance(member->key, str_of(known.name));
        if (same_key(member->key, known.name, false))
            d = 0;      /* in another spelling */
        if (d < best && 2 * d < strlen(known.name) + 2) {
            best = d;
            nearest = known.name;
        }
        if (used < sizeof(names))
            used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", used > 0 ? ", " : "", known.name);
    }
    /* one that is nearly a known one may have been meant to close something */
    if (l->lenient && nearest == NULL)
        return schema_note(l, member, "is not a key that is known here: it has no effect");
    schema_fail(l, member, "policy.unknown-key", "unknown key");
    if (nearest != NULL)
        return err_hint(l->err, "did you mean \"%s\"?", nearest);
    return err_hint(l->err, "known here: %s", names);
}

static int
note_seen(struct loader *l, const struct node *member, const char *canon)
{
    for (size_t i = 0; i < l->n_seen; i++) {
        if (strcmp(l->seen[i].canon, canon) != 0)
            continue;
        schema_fail(l, member, "policy.duplicate-key", "another spelling of \"%s\", given in line %u", canon,
                    l->seen[i].line);
        return err_hint(l->err, "keep one of the two");
    }
    if (l->n_seen < SCHEMA_SEEN_MAX) {
        l->seen[l->n_seen].canon = canon;
        l->seen[l->n_seen++].line = member->key_line;
    }
    return 0;
}

int
schema_items(struct loader *l, const struct node *v, item_reader *read, const void *arg)
{
    size_t i = 0;

    if (schema_expect(l, v, NODE_LIST) < 0)
        return -1;
    for (const struct node *item = v->first; item != NULL; item = item->next) {
        size_t mark = schema_enter_index(l, i++);
        if (read(l, item, arg) < 0)
            return -1;
        schema_leave(l, mark);
    }
    return 0;
}

static int
read_member(struct loader *l, const struct node *m, const char *section, const struct key_rule *rules)
{
    struct key_rule rule;
    size_t i = 0;

    while (next_key(l, section, rules, &i, &rule))
        if (same_key(m->key, rule.name, l->exact))
            return rule.canon != NULL && note_seen(l, m, rule.canon) < 0 ? -1 : rule.apply(l, m, &rule);
    return unknown_key(l, m, section, rules);
}

int
schema_walk(struct loader *l, const struct node *map, const char *section, const struct key_rule *rules)
{
    if (schema_expect(l, map, NODE_MAP) < 0)
        return -1;
    for (const struct node *m = map->first; m != NULL; m = m->next) {
        size_t mark = schema_enter_key(l, m->key);
        if (read_member(l, m, section, rules) < 0)
            return -1;
        schema_leave(l, mark);
    }
    return 0;
}

int
schema_text(struct loader *l, const struct node *v, const struct policy_spec *s)
{
    struct where w = schema_where(l, v);

    if (v->type != NODE_STRING && v->type != NODE_NUMBER)
        return schema_expect(l, v, NODE_STRING);
    return spec_set(l->p, s, v->text, &w, l->err);
}

int
read_depth(struct loader *l, const struct node *v, const struct policy_spec *s)
{
    struct origin from = schema_where(l, v).from;
    uint64_t depth;

    if (schema_expect(l, v, NODE_NUMBER) < 0)
        return -1;
    if (!str_parse_u64(v->text, s->max, &depth) || depth < s->min)
        return schema_fail(l, v, "policy.protect.depth", "%s is not a depth from 1 to 10", v->text.p);
    (void)spec_put(l->p, s, depth, &from);
    return 0;
}

/* An entry: a string, or {path: ..., literal: true} in a list of paths. */
static int
read_entry(struct loader *l, const struct node *v, const void *arg)
{
    const struct policy_spec *s = arg;
    struct policy_list *list = spec_at(l->p, s);
    enum entry_kind kind = spec_entry(s, l->exact);
    struct where w = schema_where(l, v);
    const struct node *path = v, *literal = NULL;

    if (v->type == NODE_MAP && kind == ENTRY_HOST)
        return apply_host_rule(l, v, list);
    if (v->type == NODE_MAP && (kind == ENTRY_PATH || kind == ENTRY_SOCKET)) {
        path = node_member(v, "path");
        literal = node_member(v, "literal");
        if (path == NULL || v->n != (literal != NULL ? 2U : 1U))
            return schema_fail(l, v, "policy.type", "an entry has the keys path and, optionally, literal");
        if (literal != NULL && schema_expect(l, literal, NODE_BOOL) < 0)
            return -1;
        if (literal != NULL && literal->truth)
            kind = ENTRY_LITERAL;
    }
    if (!((kind == ENTRY_PUBLISH || kind == ENTRY_PORT) && v->type == NODE_NUMBER) &&
        schema_expect(l, path, NODE_STRING) < 0)
        return -1;
    return list_add(l->p, list, kind, path->text, &w, l->err);
}

static int
read_list(struct loader *l, const struct node *v, const struct policy_spec *s)
{
    struct policy_list *list = spec_at(l->p, s);
    struct where w = schema_where(l, v);

    if (schema_expect(l, v, NODE_LIST) < 0)
        return -1;
    /* who is given no more than the layers below adds to what those deny; an empty list would take that back */
    if (l->p->denials_add && v->n > 0 && s->ceiling == CEILING_KEPT) {
        list->set = true;
        list->from = w.from;
    } else {
        list_begin(list, &w);
    }
    return schema_items(l, v, read_entry, s);
}

/* A record: its map, or what its flag says. */
static int
read_record(struct loader *l, const struct node *v, const void *arg)
{
    const struct policy_spec *s = arg;

    if (v->type == NODE_MAP)
        return s->item(l, v, s);
    return schema_expect(l, v, NODE_STRING) < 0 ? -1 : schema_text(l, v, s);
}

int
schema_read(struct loader *l, const struct node *v, const struct policy_spec *s)
{
    struct where w = schema_where(l, v);

    if (s->read != NULL)
        return s->read(l, v, s);
    if (s->kind == SPEC_LIST)
        return read_list(l, v, s);
    if (s->kind == SPEC_RECORDS)
        return schema_items(l, v, read_record, s);
    if (s->kind != SPEC_BOOL)
        return schema_text(l, v, s);
    if (schema_expect(l, v, NODE_BOOL) < 0)
        return -1;
    set_bool(l->p, s, v->truth, &w);
    return 0;
}

int
apply_as(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    return schema_read(l, v, policy_spec_by_key(str_of(rule->arg != NULL ? rule->arg : rule->canon)));
}

int
apply_map(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    return schema_walk(l, v, rule->canon, rule->arg);
}
