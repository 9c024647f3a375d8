/* policy/within.c: see within.h */
#include "policy/within.h"

#include <string.h>

#include "match/host.h"
#include "policy/internal.h"

/* @what: the entry; NULL: the value says nothing that the key does not. */
static int
more(struct err *err, const char *key, const char *what)
{
    err_set(err, ERR_DENIED, "policy.ceiling", "%s%s%.200s is more than the settings of cloche serve give to agents",
            key, what != NULL ? ": " : "", what != NULL ? what : "");
    return err_hint(err, "leave it out; or the operator writes it into --settings, or makes this sandbox");
}

static bool
same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool
same_scope(const struct policy_scope *a, const struct policy_scope *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    if (a->n_methods != b->n_methods || a->n_tools != b->n_tools || !same(a->path, b->path))
        return false;
    for (size_t i = 0; i < a->n_methods; i++)
        if (strcmp(a->methods[i], b->methods[i]) != 0)
            return false;
    for (size_t i = 0; i < a->n_tools; i++)
        if (strcmp(a->tools[i], b->tools[i]) != 0)
            return false;
    return true;
}

static bool
has(const struct policy_list *list, const struct policy_entry *e)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->v[i].literal == e->literal && same(list->v[i].value, e->value) &&
            same_scope(list->v[i].scope, e->scope))
            return true;
    return false;
}

/* The first entry of @small that is none of @large; NULL: there is none. */
static const char *
lacking(const struct policy_list *large, const struct policy_list *small)
{
    for (size_t i = 0; i < small->n; i++)
        if (!has(large, &small->v[i]))
            return small->v[i].value;
    return NULL;
}

static int
kept(const struct policy_spec *s, const struct policy *c, const struct policy *a, struct err *err)
{
    if (lacking(spec_in(a, s), spec_in(c, s)) == NULL)
        return 0;
    /* which ones is the operator's: they name files */
    err_set(err, ERR_DENIED, "policy.ceiling", "%s: what the settings of cloche serve deny is denied in every "
            "sandbox of an agent", s->key);
    return err_hint(err, "leave the list out, or say what is to be denied too");
}

/* Every record of the asked policy is covered by nothing, or by one of the ceiling's. */
static int
covered(const struct policy_spec *s, const struct policy *c, const struct policy *a, struct err *err)
{
    size_t n, m;
    const char *asked = spec_records(a, s, &n), *have = spec_records(c, s, &m);

    for (size_t i = 0; i < n; i++, asked += s->size) {
        bool found = s->covers(NULL, asked);
        const char *name;
        for (size_t j = 0; j < m && !found; j++)
            found = s->covers(have + j * s->size, asked);
        memcpy(&name, asked, sizeof(name));
        if (!found)
            return more(err, s->key, name);
    }
    return 0;
}

/* --- what hangs on rows ------------------------------------------------------------------------------------------- */

bool
bind_covers(const void *have, const void *asked)
{
    const struct policy_bind *c = have, *a = asked;

    return c != NULL && strcmp(c->source, a->source) == 0 && strcmp(c->dest, a->dest) == 0 &&
           (c->writable || !a->writable);
}

bool
env_covers(const void *have, const void *asked)
{
    const struct policy_env *c = have, *a = asked;

    /* words of its own are no more than a command could say */
    return a->value != NULL || (c != NULL && c->value == NULL && strcmp(c->name, a->name) == 0);
}

bool
secret_covers(const void *have, const void *asked)
{
    const struct policy_secret *c = have, *a = asked;

    return c != NULL && strcmp(c->name, a->name) == 0 && same(c->binding, a->binding) && same(c->add, a->add) &&
           same(c->env, a->env);
}

bool
secret_file_covers(const void *have, const void *asked)
{
    const struct policy_secret_file *c = have, *a = asked;

    return c != NULL && strcmp(c->path, a->path) == 0 && same(c->text, a->text) && same(c->template, a->template);
}

int
within_workspace(const struct policy_spec *s, const struct policy *c, const struct policy *a, struct err *err)
{
    enum workspace_kind kind = a->workspace.kind;

    if (a->workspace.dir == NULL)
        return 0;       /* in memory */
    if (c->workspace.dir == NULL || strcmp(a->workspace.dir, c->workspace.dir) != 0)
        return more(err, s->key, a->workspace.dir);
    /* the same folder: as it is there, or without writing to it */
    return kind == c->workspace.kind || kind == WORKSPACE_RO || (kind == WORKSPACE_COW &&
           c->workspace.kind == WORKSPACE_RW) ? 0 : more(err, s->key, "writing to the folder");
}

int
within_user(const struct policy_spec *s, const struct policy *c, const struct policy *a, struct err *err)
{
    return a->user.uid == c->user.uid && a->user.gid == c->user.gid ? 0 : more(err, s->key, NULL);
}

int
within_ask_timeout(const struct policy_spec *s, const struct policy *c, const struct policy *a, struct err *err)
{
    return a->ask.v && a->ask_ms.v > c->ask_ms.v ? more(err, s->key, NULL) : 0;
}

/* Whoever answers for names sees and leads them all: the operator's, and all of them, where there are names. */
int
within_name_servers(const struct policy_spec *s, const struct policy *c, const struct policy *a, struct err *err)
{
    const char *other = lacking(&c->name_servers, &a->name_servers);

    if (a->network.v != NETWORK_ALLOWLIST)
        return 0;
    if (other == NULL && lacking(&a->name_servers, &c->name_servers) != NULL)
        other = "fewer name servers";
    return other == NULL ? 0 : more(err, s->key, other);
}

/* --- rules about hosts -------------------------------------------------------------------------------------------- */

static bool
said(char *const *list, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], word) == 0)
            return true;
    return false;
}

/* Every path of the glob @inner is one of @outer's: it is the same, or @outer is "/FOLDER/" and all below. */
static bool
path_within(const char *inner, const char *outer)
{
    size_t n = outer != NULL ? strlen(outer) : 0;

    if (outer == NULL || (inner != NULL && strcmp(inner, outer) == 0))
        return true;
    return inner != NULL && n > 3 && strcmp(outer + n - 3, "/**") == 0 && strcspn(outer, "*[\\") == n - 2 &&
           strlen(inner) > n - 2 && strncmp(inner, outer, n - 2) == 0;
}

static bool
scope_within(const struct policy_scope *inner, const struct policy_scope *outer)
{
    if (outer == NULL)
        return true;
    if (inner == NULL)
        return false;
    if (!path_within(inner->path, outer->path) || (outer->n_methods > 0 && inner->n_methods == 0) ||
        (outer->n_tools > 0 && inner->n_tools == 0))
        return false;
    for (size_t i = 0; outer->n_methods > 0 && i < inner->n_methods; i++)
        if (!said(outer->methods, outer->n_methods, inner->methods[i]))
            return false;
    for (size_t i = 0; outer->n_tools > 0 && i < inner->n_tools; i++)
        if (!said(outer->tools, outer->n_tools, inner->tools[i]) && !said(outer->tools, outer->n_tools, "*"))
            return false;
    return true;
}

static bool
read_pattern(const struct policy *p, const struct policy_entry *e, struct host_pattern *out)
{
    return (p->srt ? host_pattern_srt(str_of(e->value), false, out)
                   : host_pattern_cloche(str_of(e->value), out)) == HOST_OK;
}

/* Each connection and request that the rule @e of @a lets through is one that a single rule of @c lets through. A rule
 * without a port is for 80 and 443, and one of SRT for any. */
static bool
host_within(const struct policy *c, const struct policy *a, const struct policy_entry *e)
{
    struct host_pattern inner, outer;

    if (!read_pattern(a, e, &inner))
        return false;
    for (size_t i = 0; i < c->allow_domains.n; i++) {
        const struct policy_entry *of = &c->allow_domains.v[i];
        if (!read_pattern(c, of, &outer) || !host_pattern_within(&inner, &outer) || !scope_within(e->scope, of->scope))
            continue;
        if (outer.port != 0 ? inner.port == outer.port
                            : c->srt || inner.port == 80 || inner.port == 443 || (inner.port == 0 && !a->srt))
            return true;
    }
    return false;
}

int
within_hosts(const struct policy_spec *s, const struct policy *c, const struct policy *a, struct err *err)
{
    for (size_t i = 0; i < a->allow_domains.n; i++)
        if (!host_within(c, a, &a->allow_domains.v[i]))
            return more(err, s->key, a->allow_domains.v[i].value);
    return 0;
}

/* --- the walk ----------------------------------------------------------------------------------------------------- */

/* What 0 is: no limit is more than any, and of a time to wait it is the least. */
static uint64_t
amount(const struct policy *p, const struct policy_spec *s)
{
    uint64_t v = policy_spec_value(p, s);

    return v == 0 && spec_endless(s) ? UINT64_MAX : v;
}

static const char *
text_of(const struct policy *p, const struct policy_spec *s)
{
    return s->kind == SPEC_TEXT ? ((const struct policy_string *)spec_in(p, s))->p : NULL;
}

static int
row_within(const struct policy_spec *s, const struct policy *c, const struct policy *a, struct err *err)
{
    const char *text = text_of(a, s);
    bool well = false;

    if (s->within != NULL)
        return s->within(s, c, a, err);
    switch (s->ceiling) {
    case CEILING_FREE:
        return 0;
    case CEILING_SAME:
        well = amount(a, s) == amount(c, s) && same(text, text_of(c, s));
        break;
    case CEILING_LESS:
        well = amount(a, s) <= amount(c, s);
        break;
    case CEILING_MORE:
        well = amount(a, s) >= amount(c, s);
        break;
    case CEILING_AMONG:
        if (s->kind == SPEC_LIST)
            return (text = lacking(spec_in(c, s), spec_in(a, s))) == NULL ? 0 : more(err, s->key, text);
        if (s->kind == SPEC_RECORDS)
            return covered(s, c, a, err);
        well = text == NULL || same(text, text_of(c, s));
        break;
    case CEILING_KEPT:
        return kept(s, c, a, err);
    }
    return well ? 0 : more(err, s->key, NULL);
}

int
policy_within(const struct policy *ceiling, const struct policy *asked, unsigned free, struct err *err)
{
    /* where there is no network rules about names are rules about nothing */
    bool closed = asked->network.v == NETWORK_NONE && !asked->srt;

    if (asked->srt && !ceiling->srt)
        return more(err, "settings", "SRT settings");
    if (asked->network.v == NETWORK_HOST && ceiling->network.v != NETWORK_HOST)     /* whoever judges names */
        return more(err, "network.mode", "the host's network");
    for (const struct policy_spec *s = policy_specs; s < policy_specs + policy_n_specs; s++)
        if ((s->free & free) == 0 && !(closed && (s->traits & SPEC_NAMES) != 0) &&
            row_within(s, ceiling, asked, err) < 0)
            return -1;
    return 0;
}
