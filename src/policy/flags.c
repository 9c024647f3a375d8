/* policy/flags.c: the policy's command line flags
 *
 * The table is what `--help` prints, what shells complete and what the verbs' parser asks; each row knows its own
 * setter. Single values replace what the settings file said; flags that name a list's entry add to it.
 */
#include <string.h>

#include "policy/internal.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

const struct policy_flag policy_flags[] = {
    { "--mode", "MODE", "off, light, standard (default) or max" },
    { "--settings", "FILE", "YAML, JSON or SRT settings; flags override it" },
    { "--engine", "ENGINE", "native, or auto (default)" },
    { "--fallback", "WHAT", "where the host lacks a wall: refuse (default), warn or no-sandbox" },
    { "--audit", "WHAT", "the audit record of the run: off, try (default) or required" },
    { "--view", "TREE", "private: an own root (default); host: the host's tree, read-only" },
    { "--workspace", "DIR[:rw|:ro|:cow]", "project folder at /workspace; rw by default" },
    { "--workdir", "PATH", "current directory inside" },
    { "--bind", "SRC[:DEST][:ro|:rw]", "show a host path inside; ro by default" },
    { "--allow-read", "PATH", "re-open a place below one that is closed" },
    { "--deny-read", "PATH", "path or glob that cannot be read" },
    { "--allow-write", "PATH", "path or glob that may be written" },
    { "--deny-write", "PATH", "path or glob that stays read-only" },
    { "--allow-git-config", NULL, "let .git/config be written" },
    { "--deny-hard-links", NULL, "hide files of bound folders that have names elsewhere too" },
    { "--read-only-root", NULL, "nothing is writable but /workspace, home and /tmp" },
    { "--network", "none|allowlist|host", "none (default), hosts by name, or the host's network" },
    { "--allow-domain", "HOST[:PORT]", "host that may be reached" },
    { "--deny-domain", "HOST[:PORT]", "host that may not be reached" },
    { "--allow-registry", "npm|pypi|go|debian|cargo|maven", "hosts that the installed client is set up for" },
    { "--preset", "ci", "open the hosts that a CI server's own variables name" },
    { "--extra-ca", "FILE", "certificates to trust beside the host's" },
    { "--secret", "NAME[=BINDING][,add=HEADER: TEXT]", "let it use a secret without seeing it (man cloche-secret)" },
    { "--secret-file", "PATH=NAME|PATH=@FILE", "a secret's placeholder in a file, or FILE with ${NAME} in it" },
    { "--ask", NULL, "ask about hosts that no rule names (cloche approvals) instead of refusing them" },
    { "--ask-timeout", "TIME", "how long to wait for the answer; 60s by default, then it is no" },
    { "--allow-unix-socket", "PATH", "unix socket that may be connected to" },
    { "--allow-all-unix-sockets", NULL, "connect to any unix socket that is visible" },
    { "--env", "NAME[=VALUE]", "set a variable, or pass the caller's" },
    { "--user", "UID[:GID]", "ids inside; 1000:1000 by default, never 0" },
    { "--hostname", "NAME", "host name inside" },
    { "--memory", "SIZE", "memory limit, such as 512m; none for no limit (so for all limits)" },
    { "--cpus", "N", "CPU limit, such as 0.5" },
    { "--pids", "N", "processes and threads" },
    { "--disk", "SIZE", "what /tmp, home and an empty /workspace may hold together" },
    { "--timeout", "TIME", "wall clock, such as 30s or 5m, then SIGTERM" },
    { "--grace", "TIME", "between SIGTERM and SIGKILL; 2s by default" },
    { "--output", "SIZE", "bytes of stdout and of stderr, each; the rest is cut" },
    { "--nofile", "N", "open files of one process" },
};
const size_t policy_n_flags = N(policy_flags);

const struct policy_flag *
policy_flag_lookup(const char *name)
{
    for (size_t i = 0; i < policy_n_flags; i++)
        if (strcmp(policy_flags[i].name, name) == 0)
            return &policy_flags[i];
    return NULL;
}

typedef int flag_setter(struct policy *p, struct str text, const struct where *w, struct err *err);

static const struct { const char *name; flag_setter *set; } scalars[] = {
    { "--mode", set_mode },           { "--engine", set_engine },   { "--fallback", set_fallback },
    { "--audit", set_audit },
    { "--view", set_view },           { "--workdir", set_workdir }, { "--workspace", set_workspace },
    { "--bind", set_bind },           { "--user", set_user },       { "--hostname", set_hostname },
    { "--network", set_network },     { "--preset", set_preset },   { "--secret", set_secret },
    { "--ask-timeout", set_ask_timeout }, { "--secret-file", set_secret_file },
};

static const struct { const char *name; size_t offset; enum entry_kind kind; } lists[] = {
    { "--allow-read", offsetof(struct policy, allow_read), ENTRY_PATH },
    { "--deny-read", offsetof(struct policy, deny_read), ENTRY_PATH },
    { "--allow-write", offsetof(struct policy, allow_write), ENTRY_PATH },
    { "--deny-write", offsetof(struct policy, deny_write), ENTRY_PATH },
    { "--allow-unix-socket", offsetof(struct policy, unix_sockets), ENTRY_SOCKET },
    { "--allow-domain", offsetof(struct policy, allow_domains), ENTRY_HOST },
    { "--deny-domain", offsetof(struct policy, deny_domains), ENTRY_HOST },
    { "--allow-registry", offsetof(struct policy, registries), ENTRY_REGISTRY },
    { "--extra-ca", offsetof(struct policy, extra_ca), ENTRY_LITERAL },
};

static const struct { const char *name; size_t offset; } switches[] = {
    { "--allow-git-config", offsetof(struct policy, allow_git_config) },
    { "--deny-hard-links", offsetof(struct policy, deny_hard_links) },
    { "--read-only-root", offsetof(struct policy, read_only_root) },
    { "--allow-all-unix-sockets", offsetof(struct policy, all_unix_sockets) },
};

static void *
field_at(struct policy *p, size_t offset)
{
    return (char *)p + offset;
}

static int
env_flag(struct policy *p, struct str text, const struct where *w, struct err *err)
{
    const char *equals = text.n > 0 ? memchr(text.p, '=', text.n) : NULL;
    struct str name = text, value;

    if (equals == NULL)
        return set_env(p, name, NULL, w, err);
    name.n = (size_t)(equals - text.p);
    value = (struct str){ equals + 1, text.n - name.n - 1 };
    return set_env(p, name, &value, w, err);
}

static int
list_flag(struct policy *p, size_t row, struct str text, const struct where *w, struct err *err)
{
    struct policy_list *list = field_at(p, lists[row].offset);
    enum entry_kind kind = lists[row].kind;

    if (kind == ENTRY_HOST && p->srt)
        kind = list == &p->deny_domains ? ENTRY_HOST_SRT_DENY : ENTRY_HOST_SRT;
    if (list_add(p, list, kind, text, w, err) < 0)
        return -1;
    if ((list == &p->allow_domains || list == &p->registries) && p->network.v == NETWORK_NONE &&
        p->network.from.kind != ORIGIN_FLAG) {
        p->network.v = NETWORK_ALLOWLIST;
        p->network.from = w->from;
    }
    return 0;
}

/* @from with a name of the policy's own. */
static int
keep_origin(struct policy *p, const struct origin *from, struct where *out, struct err *err)
{
    *out = (struct where){ .from = *from };
    out->from.name = from->name != NULL ? arena_copy(p->arena, str_of(from->name)) : NULL;
    return from->name != NULL && out->from.name == NULL ? policy_no_memory(err) : 0;
}

int
policy_give_env(struct policy *p, const char *name, const char *value, const struct origin *from, struct err *err)
{
    struct str text = str_of(value);
    struct where w;

    for (size_t i = 0; i < p->n_env; i++)
        if (strcmp(p->env[i].name, name) == 0)
            return 0;
    return keep_origin(p, from, &w, err) < 0 ? -1 : set_env(p, str_of(name), &text, &w, err);
}

int
policy_allow_host(struct policy *p, const char *host, const struct origin *from, struct err *err)
{
    struct where w;

    if (keep_origin(p, from, &w, err) < 0)
        return -1;
    return list_add(p, &p->allow_domains, p->srt ? ENTRY_HOST_SRT : ENTRY_HOST, str_of(host), &w, err);
}

int
policy_trust_file(struct policy *p, const char *file, const struct origin *from, struct err *err)
{
    struct where w;

    if (keep_origin(p, from, &w, err) < 0)
        return -1;
    return list_add(p, &p->extra_ca, ENTRY_LITERAL, str_of(file), &w, err);
}

int
policy_apply_flag(struct policy *p, const char *name, const char *value, const struct policy_host *host,
                  struct err *err)
{
    const struct policy_flag *flag = policy_flag_lookup(name);
    struct where w = { .from = { .kind = ORIGIN_FLAG }, .key = NULL };
    struct str text = str_of(value);

    (void)host;     /* its facts were kept by policy_init */
    if (flag == NULL || strcmp(name, "--settings") == 0)
        return err_set(err, ERR_USAGE, "policy.flag.unknown", "%s is no flag of the policy", name);
    w.from.name = flag->name;
    if ((value != NULL) != (flag->value != NULL)) {
        return err_set(err, ERR_USAGE, value != NULL ? "policy.flag.no-value" : "policy.flag.value",
                       value != NULL ? "%s takes no value" : "%s needs a value", name);
    }
    if (strcmp(name, "--ask") == 0)
        return set_ask(p, true, &w);
    for (size_t i = 0; i < n_limit_specs; i++)
        if (strcmp(limit_specs[i].flag, name) == 0)
            return set_limit(p, &limit_specs[i], text, &w, err);
    for (size_t i = 0; i < N(scalars); i++)
        if (strcmp(scalars[i].name, name) == 0)
            return scalars[i].set(p, text, &w, err);
    for (size_t i = 0; i < N(lists); i++)
        if (strcmp(lists[i].name, name) == 0)
            return list_flag(p, i, text, &w, err);
    for (size_t i = 0; i < N(switches); i++) {
        if (strcmp(switches[i].name, name) == 0) {
            set_bool(field_at(p, switches[i].offset), true, &w);
            return 0;
        }
    }
    return env_flag(p, text, &w, err);
}
