/* policy/settings.c: the keys of our own settings, in YAML or JSON
 *
 * Three vocabularies meet here: ours, the source's SandboxManagerConfig (R43), and the source's `security.sandbox`
 * YAML (R67). A key of the last two is another spelling of one of ours, so each row carries the canonical name and
 * giving both is a duplicate. Keys that this release knows but cannot keep are refused by name, not as unknown.
 */
#include <string.h>

#include "match/ip.h"
#include "policy/schema.h"

#define OFFSET(field) offsetof(struct policy, field)
#define SETTER(fn) (&(const struct setter){ fn })
#define MIB ((uint64_t)1 << 20)

static int
apply_version(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    (void)rule;
    if (schema_expect(l, v, NODE_NUMBER) < 0)
        return -1;
    if (str_eq(v->text, STR_LIT("1")))
        return 0;
    schema_fail(l, v, "policy.version", "version %s is not known", v->text.p);
    return err_hint(l->err, "this release reads version 1");
}

static int
apply_limit(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    struct where w = schema_where(l, v);
    const struct limit_spec *spec = limit_by_key(str_of(rule->arg));

    if (v->type != NODE_STRING && v->type != NODE_NUMBER)
        return schema_expect(l, v, NODE_STRING);
    return set_limit(l->p, spec, v->text, &w, l->err);
}

static int
apply_limit_mib(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    struct where w = schema_where(l, v);
    const struct limit_spec *spec = limit_by_key(str_of(rule->arg));

    if (schema_expect(l, v, NODE_NUMBER) < 0)
        return -1;
    return set_limit_scaled(l->p, spec, v->text, MIB, &w, l->err);
}

static int
apply_fallback_url(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    if (apply_string(l, v, rule) < 0)
        return -1;
    if (str_starts(v->text, STR_LIT("https://")) || str_starts(v->text, STR_LIT("http://")))
        return 0;
    return schema_fail(l, v, "policy.fallback.url", "expected an http or https URL");
}

static const struct key_rule fallback_rules[] = {
    { "action", "fallback.action", apply_text, SETTER(set_fallback), 0, 0 },
    { "url", "fallback.url", apply_fallback_url, NULL, OFFSET(fallback_url), 0 },
    { NULL },
};

static int
apply_fallback(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    if (v->type == NODE_MAP)
        return schema_walk(l, v, fallback_rules);
    return apply_text(l, v, rule);
}

static const struct key_rule workspace_dir_rule = {
    "dir", "workspace.dir", apply_text, SETTER(set_workspace_dir), 0, 0 };

/* The kind is applied after the directory, whatever their order in the file. */
static int
apply_workspace(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    const struct node *kind;
    struct where w;

    if (v->type != NODE_MAP)
        return apply_text(l, v, rule);
    for (const struct node *m = v->first; m != NULL; m = m->next) {
        size_t mark = schema_enter_key(l, m->key);
        if (str_eq(m->key, STR_LIT("dir"))) {
            if (apply_text(l, m, &workspace_dir_rule) < 0)
                return -1;
        } else if (!str_eq(m->key, STR_LIT("kind"))) {
            schema_fail(l, m, "policy.unknown-key", "unknown key");
            return err_hint(l->err, "known here: dir, kind");
        }
        schema_leave(l, mark);
    }
    kind = node_member(v, "kind");
    if (kind == NULL)
        return 0;
    w = schema_where(l, kind);
    if (schema_expect(l, kind, NODE_STRING) < 0)
        return -1;
    if (str_eq(kind->text, STR_LIT("tmpfs")) && node_member(v, "dir") == NULL)
        return set_workspace(l->p, kind->text, &w, l->err);
    return set_workspace_kind(l->p, kind->text, &w, l->err);
}

static int
apply_bind_map(struct loader *l, const struct node *v)
{
    const struct node *source = node_member(v, "source"), *dest = node_member(v, "dest");
    const struct node *access = node_member(v, "access");
    struct where w = schema_where(l, v);
    size_t known = 1U + (dest != NULL ? 1U : 0U) + (access != NULL ? 1U : 0U);
    bool writable;

    if (source == NULL || known != v->n)
        return schema_fail(l, v, "policy.bind.syntax", "a bind has the keys source and, optionally, dest and access");
    if (schema_expect(l, source, NODE_STRING) < 0 || (dest != NULL && schema_expect(l, dest, NODE_STRING) < 0) ||
        (access != NULL && schema_expect(l, access, NODE_STRING) < 0))
        return -1;
    writable = access != NULL && str_eq(access->text, STR_LIT("rw"));
    if (access != NULL && !writable && !str_eq(access->text, STR_LIT("ro")))
        return schema_fail(l, v, "policy.bind.access", "access must be ro or rw");
    return set_bind_parts(l->p, source->text, dest != NULL ? dest->text : (struct str){ NULL, 0 }, writable, &w,
                          l->err);
}

static int
apply_bind(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    struct where w = schema_where(l, v);

    (void)rule;
    if (v->type == NODE_MAP)
        return apply_bind_map(l, v);
    return schema_expect(l, v, NODE_STRING) < 0 ? -1 : set_bind(l->p, v->text, &w, l->err);
}

static int
apply_binds(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    return schema_items(l, v, apply_bind, rule);
}

/* The strings that the map @v has under @n @keys; *@known: how many. */
static int
string_parts(struct loader *l, const struct node *v, const char *const *keys, size_t n, struct str *parts,
             size_t *known)
{
    *known = 0;
    for (size_t i = 0; i < n; i++) {
        const struct node *part = node_member(v, keys[i]);
        if (part == NULL)
            continue;
        if (schema_expect(l, part, NODE_STRING) < 0)
            return -1;
        parts[i] = part->text;
        ++*known;
    }
    return 0;
}

static int
apply_secret_map(struct loader *l, const struct node *v)
{
    static const char *const keys[] = { "name", "binding", "add", "env" };
    struct str parts[4] = { { NULL, 0 } };
    struct where w = schema_where(l, v);
    size_t known;

    if (string_parts(l, v, keys, 4, parts, &known) < 0)
        return -1;
    if (parts[0].n == 0 || known != v->n)
        return schema_fail(l, v, "policy.secret.syntax",
                           "a secret has the keys name and, optionally, binding, add and env");
    return set_secret_parts(l->p, &(struct secret_parts){ parts[0], parts[1], parts[2], parts[3] }, &w, l->err);
}

static int
apply_secret(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    struct where w = schema_where(l, v);

    (void)rule;
    if (v->type == NODE_MAP)
        return apply_secret_map(l, v);
    return schema_expect(l, v, NODE_STRING) < 0 ? -1 : set_secret(l->p, v->text, &w, l->err);
}

static int
apply_secrets(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    return schema_items(l, v, apply_secret, rule);
}

static int
apply_secret_file_map(struct loader *l, const struct node *v)
{
    static const char *const keys[] = { "path", "text", "template" };
    struct str parts[3] = { { NULL, 0 } };
    struct where w = schema_where(l, v);
    size_t known;

    if (string_parts(l, v, keys, 3, parts, &known) < 0)
        return -1;
    if (parts[0].n == 0 || known != v->n || known != 2 || parts[1].n + parts[2].n == 0)
        return schema_fail(l, v, "policy.secret-file.syntax",
                           "a file with placeholders has the keys path and either text or template");
    return set_secret_file_parts(l->p, parts[0], parts[1], parts[2], &w, l->err);
}

static int
apply_secret_file(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    struct where w = schema_where(l, v);

    (void)rule;
    if (v->type == NODE_MAP)
        return apply_secret_file_map(l, v);
    return schema_expect(l, v, NODE_STRING) < 0 ? -1 : set_secret_file(l->p, v->text, &w, l->err);
}

static int
apply_secret_files(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    return schema_items(l, v, apply_secret_file, rule);
}

static int
apply_env(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    (void)rule;
    if (schema_expect(l, v, NODE_MAP) < 0)
        return -1;
    for (const struct node *m = v->first; m != NULL; m = m->next) {
        size_t mark = schema_enter_key(l, m->key);
        struct where w = schema_where(l, m);
        if (m->type == NODE_LIST || m->type == NODE_MAP)
            return schema_expect(l, m, NODE_STRING);
        if (set_env(l->p, m->key, m->type == NODE_NULL ? NULL : &m->text, &w, l->err) < 0)
            return -1;
        schema_leave(l, mark);
    }
    return 0;
}

/* --- keys that are known and not kept: refused with the reason ------------------------------------------------- */

struct excuse { const char *code, *why, *hint; };

/* Refused unless it asks for nothing: false, an empty list or map, none. */
static int
apply_not_yet(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    const struct excuse *excuse = rule->arg;
    bool empty = v->type == NODE_NULL || (v->type == NODE_BOOL && !v->truth) ||
                 ((v->type == NODE_LIST || v->type == NODE_MAP) && v->n == 0);

    if (empty)
        return 0;
    schema_fail(l, v, excuse->code, "%s", excuse->why);
    return err_hint(l->err, "%s", excuse->hint);
}

static int
check_capability(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    static const char *const caps[] = {
        "ALL", "AUDIT_CONTROL", "AUDIT_READ", "AUDIT_WRITE", "BLOCK_SUSPEND", "BPF", "CHECKPOINT_RESTORE", "CHOWN",
        "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "IPC_LOCK", "IPC_OWNER", "KILL", "LEASE",
        "LINUX_IMMUTABLE", "MAC_ADMIN", "MAC_OVERRIDE", "MKNOD", "NET_ADMIN", "NET_BIND_SERVICE", "NET_BROADCAST",
        "NET_RAW", "PERFMON", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYSLOG", "SYS_ADMIN", "SYS_BOOT",
        "SYS_CHROOT", "SYS_MODULE", "SYS_NICE", "SYS_PACCT", "SYS_PTRACE", "SYS_RAWIO", "SYS_RESOURCE", "SYS_TIME",
        "SYS_TTY_CONFIG", "WAKE_ALARM",
    };
    struct str name = v->text;
    char shown[SHOW_MAX];

    (void)rule;
    if (schema_expect(l, v, NODE_STRING) < 0)
        return -1;
    if (str_starts(name, STR_LIT("CAP_")))
        name = (struct str){ name.p + 4, name.n - 4 };
    for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++)
        if (str_eq_c(name, caps[i]))
            return 0;   /* every capability is always dropped */
    return schema_fail(l, v, "policy.capability", "%s is no capability", show(v->text, shown));
}

static int
apply_cap_drop(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    return schema_items(l, v, check_capability, rule);
}

static int
check_name_server(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    char shown[SHOW_MAX];
    struct ip ip;

    (void)rule;
    if (schema_expect(l, v, NODE_STRING) < 0)
        return -1;
    return ip_parse(v->text, &ip) ? 0 : schema_fail(l, v, "policy.dns", "%s is no address", show(v->text, shown));
}

static int
apply_dns(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    if (schema_items(l, v, check_name_server, rule) < 0)
        return -1;
    if (v->n == 0)
        return 0;
    schema_fail(l, v, "policy.dns.not-yet", "name servers cannot be chosen in this release");
    return err_hint(l->err, "leave it out: the host's are asked, for the names that rules allow");
}

static const struct excuse image_excuse = {
    "policy.image.engine", "the native engine runs on the host's own system, not on an image",
    "leave it out, or use an engine with images when it is there" };
static const struct excuse prefix_excuse = {
    "policy.container-prefix", "the native engine has no containers to name", "leave it out" };
static const struct excuse cap_add_excuse = {
    "policy.capability.add", "no capability is ever given to a sandbox", "leave it out" };
static const struct excuse ports_excuse = {
    "policy.ports.not-yet", "publishing ports is not in this release", "leave it out" };
static const struct excuse languages_excuse = {
    "policy.languages.not-yet", "images and default packages per language are not in this release", "leave it out" };
static const struct excuse registries_excuse = {
    "policy.network.not-yet", "hosts of registries are not listed here",
    "write network.registries: [npm, pypi], which asks the installed clients for them, or network.allow" };
static const struct excuse network_on_excuse = {
    "policy.network.not-yet", "a network that is open to all hosts is not a default here",
    "write enabled_by_default: false and the hosts in network.allow, or \"network: host\"" };

static int
apply_browser(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    const struct node *enabled = node_member(v, "enabled");

    (void)rule;
    if (schema_expect(l, v, NODE_MAP) < 0)
        return -1;
    if (v->n == 0 || (enabled != NULL && enabled->type == NODE_BOOL && !enabled->truth))
        return 0;
    schema_fail(l, v, "policy.browser.not-yet", "a browser sandbox is not in this release");
    return err_hint(l->err, "write enabled: false, or leave it out");
}

/* --- the tables ------------------------------------------------------------------------------------------------ */

static const struct key_rule limits_rules[] = {
    { "memory", "limits.memory", apply_limit, "memory", 0, 0 },
    { "cpus", "limits.cpus", apply_limit, "cpus", 0, 0 },
    { "pids", "limits.pids", apply_limit, "pids", 0, 0 },
    { "disk", "limits.disk", apply_limit, "disk", 0, 0 },
    { "time", "limits.time", apply_limit, "time", 0, 0 },
    { "grace", "limits.grace", apply_limit, "grace", 0, 0 },
    { "output", "limits.output", apply_limit, "output", 0, 0 },
    { "open-files", "limits.open-files", apply_limit, "open-files", 0, 0 },
    { "max-memory-mb", "limits.memory", apply_limit_mib, "memory", 0, 0 },
    { "max-cpu-cores", "limits.cpus", apply_limit, "cpus", 0, 0 },
    { "max-disk-mb", "limits.disk", apply_limit_mib, "disk", 0, 0 },
    { "max-execution-time", "limits.time", apply_limit, "time", 0, 0 },
    { "max-output-bytes", "limits.output", apply_limit, "output", 0, 0 },
    { NULL },
};

static const struct key_rule filesystem_rules[] = {
    { "deny-read", "filesystem.deny-read", apply_list, NULL, OFFSET(deny_read), ENTRY_PATH },
    { "allow-read", "filesystem.allow-read", apply_list, NULL, OFFSET(allow_read), ENTRY_PATH },
    { "allow-write", "filesystem.allow-write", apply_list, NULL, OFFSET(allow_write), ENTRY_PATH },
    { "deny-write", "filesystem.deny-write", apply_list, NULL, OFFSET(deny_write), ENTRY_PATH },
    { "protect", "filesystem.protect", apply_list, NULL, OFFSET(protect), ENTRY_NAMES },
    { "allow-git-config", "filesystem.allow-git-config", apply_bool, NULL, OFFSET(allow_git_config), 0 },
    { "deny-hard-links", "filesystem.deny-hard-links", apply_bool, NULL, OFFSET(deny_hard_links), 0 },
    { "protect-depth", "filesystem.protect-depth", apply_search_depth, NULL, 0, 0 },
    { NULL },
};

static const struct key_rule parent_rules[] = {
    { "http", "network.parent-proxy.http", apply_text, SETTER(set_parent_http), 0, 0 },
    { "https", "network.parent-proxy.https", apply_text, SETTER(set_parent_https), 0, 0 },
    { "no-proxy", "network.parent-proxy.no-proxy", apply_text, SETTER(set_no_proxy), 0, 0 },
    { NULL },
};

static int
apply_ask(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    struct where w = schema_where(l, v);

    (void)rule;
    return schema_expect(l, v, NODE_BOOL) < 0 ? -1 : set_ask(l->p, v->truth, &w);
}

static const struct key_rule network_rules[] = {
    { "mode", "network.mode", apply_text, SETTER(set_network), 0, 0 },
    { "allow", "network.allow", apply_list, NULL, OFFSET(allow_domains), ENTRY_HOST },
    { "deny", "network.deny", apply_list, NULL, OFFSET(deny_domains), ENTRY_HOST },
    { "registries", "network.registries", apply_list, NULL, OFFSET(registries), ENTRY_REGISTRY },
    { "ask", "network.ask", apply_ask, NULL, 0, 0 },
    { "ask-timeout", "network.ask-timeout", apply_text, SETTER(set_ask_timeout), 0, 0 },
    { "allow-local-binding", "network.allow-local-binding", apply_bool, NULL, OFFSET(allow_local_binding), 0 },
    { "extra-ca", "network.extra-ca", apply_list, NULL, OFFSET(extra_ca), ENTRY_LITERAL },
    { "parent-proxy", "network.parent-proxy", apply_map, parent_rules, 0, 0 },
    { "enabled-by-default", "network.mode", apply_not_yet, &network_on_excuse, 0, 0 },
    { "allowed-registries", "network.allowed-registries", apply_not_yet, &registries_excuse, 0, 0 },
    { NULL },
};

static int
apply_network(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    struct policy *p = l->p;

    if (v->type != NODE_MAP)
        return apply_text(l, v, rule);
    if (schema_walk(l, v, network_rules) < 0)
        return -1;
    if (p->allow_domains.n + p->registries.n > 0 && !origin_explicit(&p->network.from)) {
        p->network.v = NETWORK_ALLOWLIST;
        p->network.from = p->allow_domains.n > 0 ? p->allow_domains.from : p->registries.from;
    }
    return 0;
}

static const struct key_rule sockets_rules[] = {
    { "allow", "unix-sockets.allow", apply_list, NULL, OFFSET(unix_sockets), ENTRY_SOCKET },
    { "all", "unix-sockets.all", apply_bool, NULL, OFFSET(all_unix_sockets), 0 },
    { NULL },
};

static int
apply_sockets(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    return v->type == NODE_MAP ? schema_walk(l, v, sockets_rules) : apply_list(l, v, rule);
}

static int
apply_enabled(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    struct where w = schema_where(l, v);

    (void)rule;
    if (schema_expect(l, v, NODE_BOOL) < 0)
        return -1;
    return v->truth ? 0 : set_mode(l->p, STR_LIT("off"), &w, l->err);
}

/* The source's own YAML: security: sandbox: ... (R67). */
static const struct key_rule sandbox_rules[] = {
    { "enabled", "mode", apply_enabled, NULL, 0, 0 },
    { "runtime", "engine", apply_text, SETTER(set_engine), 0, 0 },
    { "limits", "limits", apply_map, limits_rules, 0, 0 },
    { "network", "network", apply_network, SETTER(set_network), 0, 0 },
    { "languages", "languages", apply_not_yet, &languages_excuse, 0, 0 },
    { NULL },
};

static const struct key_rule security_rules[] = {
    { "sandbox", "security.sandbox", apply_map, sandbox_rules, 0, 0 },
    { NULL },
};

static const struct key_rule top_rules[] = {
    { "version", "version", apply_version, NULL, 0, 0 },
    { "mode", "mode", apply_text, SETTER(set_mode), 0, 0 },
    { "engine", "engine", apply_text, SETTER(set_engine), 0, 0 },
    { "fallback", "fallback", apply_fallback, SETTER(set_fallback), 0, 0 },
    { "audit", "audit", apply_text, SETTER(set_audit), 0, 0 },
    { "view", "view", apply_text, SETTER(set_view), 0, 0 },
    { "workspace", "workspace", apply_workspace, SETTER(set_workspace), 0, 0 },
    { "workdir", "workdir", apply_text, SETTER(set_workdir), 0, 0 },
    { "binds", "binds", apply_binds, NULL, 0, 0 },
    { "filesystem", "filesystem", apply_map, filesystem_rules, 0, 0 },
    { "unix-sockets", "unix-sockets", apply_sockets, NULL, OFFSET(unix_sockets), ENTRY_SOCKET },
    { "network", "network", apply_network, SETTER(set_network), 0, 0 },
    { "preset", "preset", apply_text, SETTER(set_preset), 0, 0 },
    { "limits", "limits", apply_map, limits_rules, 0, 0 },
    { "env", "env", apply_env, NULL, 0, 0 },
    { "secrets", "secrets", apply_secrets, NULL, 0, 0 },
    { "secret-files", "secret-files", apply_secret_files, NULL, 0, 0 },
    { "user", "user", apply_text, SETTER(set_user), 0, 0 },
    { "hostname", "hostname", apply_text, SETTER(set_hostname), 0, 0 },
    { "read-only-root", "read-only-root", apply_bool, NULL, OFFSET(read_only_root), 0 },
    { "allow-nested-user-namespaces", "allow-nested-user-namespaces", apply_bool, NULL, OFFSET(nested_userns), 0 },
    /* SandboxManagerConfig */
    { "engine-type", "engine", apply_text, SETTER(set_engine), 0, 0 },
    { "workspace-root", "workspace", apply_text, SETTER(set_workspace_dir), 0, 0 },
    { "memory", "limits.memory", apply_limit, "memory", 0, 0 },
    { "cpus", "limits.cpus", apply_limit, "cpus", 0, 0 },
    { "pids-limit", "limits.pids", apply_limit, "pids", 0, 0 },
    { "cap-drop", "cap-drop", apply_cap_drop, NULL, 0, 0 },
    { "cap-add", "cap-add", apply_not_yet, &cap_add_excuse, 0, 0 },
    { "dns", "dns", apply_dns, NULL, 0, 0 },
    { "image", "image", apply_not_yet, &image_excuse, 0, 0 },
    { "container-prefix", "container-prefix", apply_not_yet, &prefix_excuse, 0, 0 },
    { "ports", "ports", apply_not_yet, &ports_excuse, 0, 0 },
    { "browser", "browser", apply_browser, NULL, 0, 0 },
    { "security", "security", apply_map, security_rules, 0, 0 },
    { NULL },
};

/* `mode` and `view` decide what other values mean (`workdir`, say), so they are read before their neighbours. */
static int
apply_first(struct loader *l, const struct node *root, const char *name, text_setter *set)
{
    const struct node *v = node_member(root, name);
    struct setter setter = { set };
    const struct key_rule rule = { .name = name, .apply = apply_text, .arg = &setter };
    size_t mark;

    if (v == NULL)
        return 0;
    mark = schema_enter_key(l, v->key);
    if (apply_text(l, v, &rule) < 0)
        return -1;
    schema_leave(l, mark);
    return 0;
}

int
settings_apply(struct loader *l, const struct node *root)
{
    if (root->type != NODE_MAP)
        return schema_expect(l, root, NODE_MAP);
    if (root->n == 0) {
        schema_fail(l, root, "policy.file.empty", "the file says nothing");
        return err_hint(l->err, "an empty policy is never taken for the default one; write \"mode\": \"standard\" if "
                        "that is meant");
    }
    if (apply_first(l, root, "mode", set_mode) < 0 || apply_first(l, root, "view", set_view) < 0)
        return -1;
    return schema_walk(l, root, top_rules);
}
