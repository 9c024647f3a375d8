/* policy/within.c: see within.h */
#include "policy/within.h"

#include <string.h>

#include "match/host.h"
#include "policy/internal.h"

static int
more(struct err *err, const char *member, const char *what)
{
    err_set(err, ERR_DENIED, "policy.ceiling", "%s: %.200s is more than the settings of cloche serve give to agents",
            member, what);
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

/* Every entry of @small is one of @large. */
static int
among(const char *member, const struct policy_list *small, const struct policy_list *large, struct err *err)
{
    for (size_t i = 0; i < small->n; i++)
        if (!has(large, &small->v[i]))
            return more(err, member, small->v[i].value);
    return 0;
}

/* Every entry of the ceiling's @list is kept in the asked one. */
static int
kept(const char *member, const struct policy_list *list, const struct policy_list *in, struct err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        if (has(in, &list->v[i]))
            continue;
        /* which ones is the operator's: they name files */
        err_set(err, ERR_DENIED, "policy.ceiling", "%s: what the settings of cloche serve deny is denied in every "
                "sandbox of an agent", member);
        return err_hint(err, "leave the list out, or say what is to be denied too");
    }
    return 0;
}

/* --- switches and numbers ----------------------------------------------------------------------------------------- */

struct flag { const char *member; bool asked, ceiling; };

static int
switches(const struct policy *c, const struct policy *a, struct err *err)
{
    const struct flag flags[] = {
        { "git-config", a->allow_git_config.v, c->allow_git_config.v },
        { "hard links", !a->deny_hard_links.v, !c->deny_hard_links.v },
        { "all unix sockets", a->all_unix_sockets.v, c->all_unix_sockets.v },
        { "ask", a->ask.v, c->ask.v },
        { "local binding", a->allow_local_binding.v, c->allow_local_binding.v },
        { "the daemon's environment", a->env_inherit.v, c->env_inherit.v },
        { "nested user namespaces", a->nested_userns.v, c->nested_userns.v },
        { "ptrace", a->ptrace.v, c->ptrace.v },
        { "a writable root", !a->read_only_root.v, !c->read_only_root.v },
        { "fewer protected folders", a->protect_depth.v < c->protect_depth.v, false },
        { "mode", a->mode.v < c->mode.v, false },
        { "the host's tree", a->view.v == VIEW_HOST, c->view.v == VIEW_HOST },
        { "fallback", a->fallback.v > c->fallback.v, false },
        { "audit", a->audit.v < c->audit.v, false },
        { "engine", !same(a->engine.p, c->engine.p), false },
        { "SRT settings", a->srt, c->srt },
        { "user", a->user.uid != c->user.uid || a->user.gid != c->user.gid, false },
        { "a parent proxy", !same(a->parent_proxy.http.p, c->parent_proxy.http.p) ||
                            !same(a->parent_proxy.https.p, c->parent_proxy.https.p) ||
                            !same(a->parent_proxy.no_proxy.p, c->parent_proxy.no_proxy.p), false },
    };

    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (flags[i].asked && !flags[i].ceiling)
            return more(err, "policy", flags[i].member);
    if (a->ask.v && a->ask_ms.v > c->ask_ms.v)
        return more(err, "network", "the time to ask");
    return 0;
}

static int
limits(const struct policy *c, const struct policy *a, struct err *err)
{
    struct policy_limits most = c->limits, want = a->limits;

    for (size_t i = 0; i < n_limit_specs; i++) {
        uint64_t limit = limit_field(&most, &limit_specs[i])->v, asked = limit_field(&want, &limit_specs[i])->v;
        bool endless = strcmp(limit_specs[i].none, "none") == 0;    /* what 0 is; of grace it is the least */
        if ((limit != 0 || !endless) && (asked > limit || (asked == 0 && endless)))
            return more(err, "limits", limit_specs[i].key);
    }
    return 0;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static int
workspace(const struct policy *c, const struct policy *a, struct err *err)
{
    enum workspace_kind kind = a->workspace.kind;

    if (a->workspace.dir == NULL)
        return 0;       /* in memory */
    if (c->workspace.dir == NULL || strcmp(a->workspace.dir, c->workspace.dir) != 0)
        return more(err, "workspace", a->workspace.dir);
    /* the same folder: as it is there, or without writing to it */
    return kind == c->workspace.kind || kind == WORKSPACE_RO || (kind == WORKSPACE_COW &&
           c->workspace.kind == WORKSPACE_RW) ? 0 : more(err, "workspace", "writing to the folder");
}

static int
binds(const struct policy *c, const struct policy *a, struct err *err)
{
    for (size_t i = 0; i < a->n_binds; i++) {
        const struct policy_bind *b = &a->binds[i];
        bool found = false;
        for (size_t j = 0; j < c->n_binds && !found; j++)
            found = strcmp(c->binds[j].source, b->source) == 0 && strcmp(c->binds[j].dest, b->dest) == 0 &&
                    (c->binds[j].writable || !b->writable);
        if (!found)
            return more(err, "bind", b->source);
    }
    return 0;
}

static int
files(const struct policy *c, const struct policy *a, struct err *err)
{
    if (workspace(c, a, err) < 0 || binds(c, a, err) < 0 ||
        among("allow-read", &a->allow_read, &c->allow_read, err) < 0 ||
        among("allow-write", &a->allow_write, &c->allow_write, err) < 0 ||
        kept("deny-read", &c->deny_read, &a->deny_read, err) < 0 ||
        kept("deny-write", &c->deny_write, &a->deny_write, err) < 0 ||
        kept("protect", &c->protect, &a->protect, err) < 0 ||
        kept("credentials", &c->credentials, &a->credentials, err) < 0)
        return -1;
    return among("unix-sockets", &a->unix_sockets, &c->unix_sockets, err);
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

static int
hosts(const struct policy *c, const struct policy *a, struct err *err)
{
    for (size_t i = 0; i < a->allow_domains.n; i++)
        if (!host_within(c, a, &a->allow_domains.v[i]))
            return more(err, "network.allow", a->allow_domains.v[i].value);
    return 0;
}

/* --- network and secrets ------------------------------------------------------------------------------------------ */

static int
network(const struct policy *c, const struct policy *a, unsigned free, struct err *err)
{
    bool named = (free & WITHIN_NETWORK) != 0, closed = a->network.v == NETWORK_NONE && !a->srt;

    if (a->network.v > c->network.v && (a->network.v == NETWORK_HOST || !named))
        return more(err, "network", a->network.v == NETWORK_HOST ? "the host's network" : "a network");
    if (!named && !closed && (hosts(c, a, err) < 0 || ((free & WITHIN_REGISTRIES) == 0 &&
                                                       among("registries", &a->registries, &c->registries, err) < 0)))
        return -1;
    if (a->preset.p != NULL && !same(a->preset.p, c->preset.p))
        return more(err, "preset", a->preset.p);
    /* where there is no network rules about names are rules about nothing */
    return !closed && kept("network.deny", &c->deny_domains, &a->deny_domains, err) < 0 ? -1
           : among("extra-ca", &a->extra_ca, &c->extra_ca, err);
}

static int
secrets(const struct policy *c, const struct policy *a, struct err *err)
{
    for (size_t i = 0; i < a->n_secrets; i++) {
        const struct policy_secret *s = &a->secrets[i];
        bool found = false;
        for (size_t j = 0; j < c->n_secrets && !found; j++)
            found = strcmp(c->secrets[j].name, s->name) == 0 && same(c->secrets[j].binding, s->binding) &&
                    same(c->secrets[j].add, s->add) && same(c->secrets[j].env, s->env);
        if (!found)
            return more(err, "secrets", s->name);
    }
    for (size_t i = 0; i < a->n_secret_files; i++) {
        const struct policy_secret_file *f = &a->secret_files[i];
        bool found = false;
        for (size_t j = 0; j < c->n_secret_files && !found; j++)
            found = strcmp(c->secret_files[j].path, f->path) == 0 && same(c->secret_files[j].text, f->text) &&
                    same(c->secret_files[j].template, f->template);
        if (!found)
            return more(err, "secret-files", f->path);
    }
    return 0;
}

static int
environment(const struct policy *c, const struct policy *a, struct err *err)
{
    for (size_t i = 0; i < a->n_env; i++) {
        bool found = a->env[i].value != NULL;       /* words of its own are no more than a command could say */
        for (size_t j = 0; j < c->n_env && !found; j++)
            found = c->env[j].value == NULL && strcmp(c->env[j].name, a->env[i].name) == 0;
        if (!found)
            return more(err, "env", a->env[i].name);
    }
    return kept("env-deny", &c->env_deny, &a->env_deny, err);
}

int
policy_within(const struct policy *ceiling, const struct policy *asked, unsigned free, struct err *err)
{
    if (switches(ceiling, asked, err) < 0 || files(ceiling, asked, err) < 0 ||
        network(ceiling, asked, free, err) < 0 || secrets(ceiling, asked, err) < 0 ||
        environment(ceiling, asked, err) < 0)
        return -1;
    return (free & WITHIN_LIMITS) != 0 ? 0 : limits(ceiling, asked, err);
}
