/* policy/settings.c: the keys of our own settings, in YAML or JSON
 *
 * Three vocabularies meet here: ours (the policy's table, spec.h), the source's SandboxManagerConfig (R43), and the
 * source's `security.sandbox` YAML (R67). A key of the last two is another spelling of one of ours, so each row carries
 * the canonical name and giving both is a duplicate. Keys that this release knows but cannot keep are refused by name,
 * not as unknown.
 */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "match/language.h"
#include "policy/schema.h"

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

/* A whole number of MiB; 0: no limit. */
static int
apply_mib(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    struct where w = schema_where(l, v);
    char text[32];

    if (schema_expect(l, v, NODE_NUMBER) < 0)
        return -1;
    snprintf(text, sizeof(text), "%.20s%s", v->text.p, str_eq(v->text, STR_LIT("0")) ? "" : "m");
    return spec_set(l->p, policy_spec_by_key(str_of(rule->canon)), str_of(text), &w, l->err);
}

int
read_fallback_url(struct loader *l, const struct node *v, const struct policy_spec *s)
{
    if (schema_expect(l, v, NODE_STRING) < 0 || schema_text(l, v, s) < 0)
        return -1;
    if (str_starts(v->text, STR_LIT("https://")) || str_starts(v->text, STR_LIT("http://")))
        return 0;
    return schema_fail(l, v, "policy.fallback.url", "expected an http or https URL");
}

int
read_fallback(struct loader *l, const struct node *v, const struct policy_spec *s)
{
    static const struct key_rule rules[] = { { "action", "fallback.action", apply_as, "fallback", 0 }, { NULL } };

    return v->type == NODE_MAP ? schema_walk(l, v, s->key, rules) : schema_text(l, v, s);
}

static int
apply_workspace_dir(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    struct where w = schema_where(l, v);

    (void)rule;
    if (v->type != NODE_STRING && v->type != NODE_NUMBER)
        return schema_expect(l, v, NODE_STRING);
    return set_workspace_dir(l->p, v->text, &w, l->err);
}

/* The kind is applied after the directory, whatever their order in the file. */
int
read_workspace(struct loader *l, const struct node *v, const struct policy_spec *s)
{
    const struct node *kind;
    struct where w;

    if (v->type != NODE_MAP)
        return schema_text(l, v, s);
    for (const struct node *m = v->first; m != NULL; m = m->next) {
        size_t mark = schema_enter_key(l, m->key);
        if (str_eq(m->key, STR_LIT("dir"))) {
            if (apply_workspace_dir(l, m, NULL) < 0)
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
        return set_workspace(l->p, s, kind->text, &w, l->err);
    return set_workspace_kind(l->p, s, kind->text, &w, l->err);
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

int
read_bind(struct loader *l, const struct node *v, const struct policy_spec *s)
{
    static const char *const keys[] = { "source", "dest", "access" };
    struct str parts[3] = { { NULL, 0 } };
    struct where w = schema_where(l, v);
    size_t known;
    bool writable;

    (void)s;
    if (string_parts(l, v, keys, 3, parts, &known) < 0)
        return -1;
    if (parts[0].p == NULL || known != v->n)
        return schema_fail(l, v, "policy.bind.syntax", "a bind has the keys source and, optionally, dest and access");
    writable = str_eq(parts[2], STR_LIT("rw"));
    if (parts[2].p != NULL && !writable && !str_eq(parts[2], STR_LIT("ro")))
        return schema_fail(l, v, "policy.bind.access", "access must be ro or rw");
    return set_bind_parts(l->p, parts[0], parts[1], writable, &w, l->err);
}

int
read_secret(struct loader *l, const struct node *v, const struct policy_spec *s)
{
    static const char *const keys[] = { "name", "binding", "add", "env" };
    struct str parts[4] = { { NULL, 0 } };
    struct where w = schema_where(l, v);
    size_t known;

    (void)s;
    if (string_parts(l, v, keys, 4, parts, &known) < 0)
        return -1;
    if (parts[0].n == 0 || known != v->n)
        return schema_fail(l, v, "policy.secret.syntax",
                           "a secret has the keys name and, optionally, binding, add and env");
    return set_secret_parts(l->p, &(struct secret_parts){ parts[0], parts[1], parts[2], parts[3] }, &w, l->err);
}

int
read_secret_file(struct loader *l, const struct node *v, const struct policy_spec *s)
{
    static const char *const keys[] = { "path", "text", "template" };
    struct str parts[3] = { { NULL, 0 } };
    struct where w = schema_where(l, v);
    size_t known;

    (void)s;
    if (string_parts(l, v, keys, 3, parts, &known) < 0)
        return -1;
    if (parts[0].n == 0 || known != v->n || known != 2 || parts[1].n + parts[2].n == 0)
        return schema_fail(l, v, "policy.secret-file.syntax",
                           "a file with placeholders has the keys path and either text or template");
    return set_secret_file_parts(l->p, parts[0], parts[1], parts[2], &w, l->err);
}

int
read_env(struct loader *l, const struct node *v, const struct policy_spec *s)
{
    (void)s;
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
check_capability(struct loader *l, const struct node *v, const void *arg)
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

    (void)arg;
    if (schema_expect(l, v, NODE_STRING) < 0)
        return -1;
    if (str_starts(name, STR_LIT("CAP_")))
        name = (struct str){ name.p + 4, name.n - 4 };
    for (size_t i = 0; i < ARRAY_LEN(caps); i++)
        if (str_eq_c(name, caps[i]))
            return 0;   /* every capability is always dropped */
    return schema_fail(l, v, "policy.capability", "%s is not a capability", show(v->text, shown));
}

static int
apply_cap_drop(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    return schema_items(l, v, check_capability, rule);
}

static const struct excuse cap_add_excuse = {
    "policy.capability.add", "no capability is ever given to a sandbox", "leave it out" };
static const struct excuse image_excuse = {
    "policy.languages.not-yet", "a sandbox has one image, for all of its languages",
    "write image: beside it (cloche image), and make another sandbox for another one" };
static const struct excuse packages_excuse = {
    "policy.languages.not-yet", "nothing is installed into every sandbox: an installation runs what strangers wrote",
    "install where they are used (cloche code --package, code_install_package), or in an image" };
static const struct excuse registries_excuse = {
    "policy.network.not-yet", "a list of hosts would pass by a mirror that the client here is set up for",
    "write network.registries: [npm, pypi]: the hosts are those of the installed clients, for installations too" };
static const struct excuse network_on_excuse = {
    "policy.network.not-yet", "a network that is open to all hosts is not a default here",
    "write enabled_by_default: false and the hosts in network.allow, or \"network: host\"" };

static int
apply_browser(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    static const struct { const char *key; enum node_type type; const char *as, *why; } members[] = {
        { "enabled", NODE_BOOL, NULL, "" },
        { "headless", NODE_BOOL, "true", "the browser has no screen" },
        { "autoStart", NODE_BOOL, "true", "the browser starts with the first request for it" },
        { "autoStartTimeoutMs", NODE_NUMBER, "60000", "the browser has 60 s to start" },
        { "cdpPort", NODE_NUMBER, NULL, "it has no port of the host's: it is reached at /v1/sandboxes/{id}/browser" },
        { "vncPort", NODE_NUMBER, NULL, "it has no screen that VNC could show" },
        { "image", NODE_STRING, NULL, "it runs in the sandbox itself: write image: beside browser:" },
    };
    const struct node *enabled = node_member(v, "enabled");

    (void)rule;
    if (schema_expect(l, v, NODE_MAP) < 0)
        return -1;
    if (enabled != NULL && enabled->type == NODE_BOOL && !enabled->truth)
        return 0;
    for (const struct node *m = v->first; m != NULL; m = m->next) {
        size_t i = 0;
        while (i < ARRAY_LEN(members) && !str_eq_c(m->key, members[i].key))
            i++;
        if (i == ARRAY_LEN(members))
            return schema_fail(l, m, "policy.browser", "browser has no such member");
        if (m->type != members[i].type)
            return schema_expect(l, m, members[i].type);
        if (i == 0 || (members[i].as != NULL && (m->type == NODE_BOOL ? m->truth : str_eq_c(m->text, members[i].as))))
            continue;
        schema_fail(l, m, "policy.browser", "%s", members[i].why);
        return err_hint(l->err, "leave it out (docs/browser.md)");
    }
    return 0;
}

static const struct key_rule language_rules[] = {
    { "image", NULL, apply_not_yet, &image_excuse, 0 },
    { "default-packages", NULL, apply_not_yet, &packages_excuse, 0 },
    { NULL },
};

/* That a language is there says nothing: all are (match/language.h). */
static int
apply_languages(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    (void)rule;
    if (schema_expect(l, v, NODE_MAP) < 0)
        return -1;
    for (const struct node *m = v->first; m != NULL; m = m->next) {
        size_t mark = schema_enter_key(l, m->key);
        char shown[SHOW_MAX];
        if (language_find(m->key.p) == NULL) {
            schema_fail(l, m, "policy.languages.unknown", "no code in %s is run here", show(m->key, shown));
            return err_hint(l->err, "python, javascript, shell; a file in runtimes.d adds one (docs/runtimes.md)");
        }
        if (schema_walk(l, m, NULL, language_rules) < 0)
            return -1;
        schema_leave(l, mark);
    }
    return 0;
}

/* A note (policy->notes) that is @written like its key. */
static int
note_hitl(struct loader *l, const struct node *v)
{
    char text[SCHEMA_PATH_MAX + 256];
    struct policy_entry entry = { .literal = true, .from = schema_where(l, v).from };

    snprintf(text, sizeof(text), "%s:%u: %s: people are asked by the gate of cloche serve, and nowhere else; --ask "
             "asks about hosts  [policy.hitl]", l->name, v->key_line, l->path);
    entry.value = arena_copy(l->p->arena, str_of(text));
    entry.written = arena_copy(l->p->arena, str_of(l->path));
    return entry.value != NULL && entry.written != NULL ? list_push(l->p, &l->p->notes, entry, l->err)
                                                        : policy_no_memory(l->err);
}

/* The gate asks people, and LOW is not asked about: what says otherwise is the daemon's configuration. Where there is
 * no gate, whoever loads this says so. */
static int
apply_hitl_switch(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    if (schema_expect(l, v, NODE_BOOL) < 0)
        return -1;
    if (v->truth)
        return strcmp(rule->name, "enabled") == 0 ? note_hitl(l, v) : 0;
    schema_fail(l, v, "policy.hitl", "whom to ask is no matter of one sandbox's settings");
    return err_hint(l->err, "in the configuration of cloche serve: %s (docs/gate.md)", (const char *)rule->arg);
}

static const struct key_rule hitl_rules[] = {
    { "enabled", NULL, apply_hitl_switch, "gate: off", 0 },
    { "auto-approve-low-risk", NULL, apply_hitl_switch, "gate: {auto-approve: []}", 0 },
    { NULL },
};

/* --- the tables ------------------------------------------------------------------------------------------------ */

static const struct key_rule limits_rules[] = {
    { "max-memory-mb", "limits.memory", apply_mib, NULL, 0 },
    { "max-cpu-cores", "limits.cpus", apply_as, NULL, 0 },
    { "max-disk-mb", "limits.disk", apply_mib, NULL, 0 },
    { "max-execution-time", "limits.time", apply_as, NULL, 0 },
    { "max-output-bytes", "limits.output", apply_as, NULL, 0 },
    { NULL },
};

static const struct key_rule network_rules[] = {
    { "parent-proxy", "network.parent-proxy", apply_map, NULL, 0 },
    { "enabled-by-default", "network.mode", apply_not_yet, &network_on_excuse, 0 },
    { "allowed-registries", "network.allowed-registries", apply_not_yet, &registries_excuse, 0 },
    { NULL },
};

static int
apply_network(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    struct policy *p = l->p;

    if (v->type != NODE_MAP)
        return schema_text(l, v, policy_spec_by_key(STR_LIT("network.mode")));
    if (schema_walk(l, v, rule->canon, network_rules) < 0)
        return -1;
    if (p->allow_domains.n + p->registries.n + p->host_ports.n > 0 && !origin_explicit(&p->network.from)) {
        p->network.v = NETWORK_ALLOWLIST;
        p->network.from = p->allow_domains.n > 0 ? p->allow_domains.from
                          : p->registries.n > 0 ? p->registries.from : p->host_ports.from;
    }
    return 0;
}

static int
apply_sockets(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    return v->type == NODE_MAP ? schema_walk(l, v, rule->canon, NULL)
                               : schema_read(l, v, policy_spec_by_key(STR_LIT("unix-sockets.allow")));
}

static int
apply_enabled(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    struct where w = schema_where(l, v);

    if (schema_expect(l, v, NODE_BOOL) < 0)
        return -1;
    return v->truth ? 0 : spec_set(l->p, policy_spec_by_key(str_of(rule->canon)), STR_LIT("off"), &w, l->err);
}

/* The source's own YAML: security: sandbox: ... (R67). */
static const struct key_rule sandbox_rules[] = {
    { "enabled", "mode", apply_enabled, NULL, 0 },
    { "runtime", "engine", apply_as, NULL, 0 },
    { "limits", "limits", apply_map, limits_rules, 0 },
    { "network", "network", apply_network, NULL, 0 },
    { "languages", "languages", apply_languages, NULL, 0 },
    { "hitl", "security.hitl", apply_map, hitl_rules, 0 },
    { NULL },
};

static const struct key_rule security_rules[] = {
    { "sandbox", "security.sandbox", apply_map, sandbox_rules, 0 },
    { "hitl", "security.hitl", apply_map, hitl_rules, 0 },
    { NULL },
};

static const struct key_rule top_rules[] = {
    { "version", "version", apply_version, NULL, 0 },
    { "filesystem", "filesystem", apply_map, NULL, 0 },
    { "syscalls", "syscalls", apply_map, NULL, 0 },
    { "unix-sockets", "unix-sockets", apply_sockets, NULL, 0 },
    { "network", "network", apply_network, NULL, 0 },
    { "limits", "limits", apply_map, limits_rules, 0 },
    /* SandboxManagerConfig */
    { "engine-type", "engine", apply_as, NULL, 0 },
    { "workspace-root", "workspace", apply_workspace_dir, NULL, 0 },
    { "memory", "limits.memory", apply_as, NULL, 0 },
    { "cpus", "limits.cpus", apply_as, NULL, 0 },
    { "pids-limit", "limits.pids", apply_as, NULL, 0 },
    { "cap-drop", "cap-drop", apply_cap_drop, NULL, 0 },
    { "cap-add", "cap-add", apply_not_yet, &cap_add_excuse, 0 },
    { "dns", "network.dns", apply_as, NULL, 0 },
    { "ports", "network.publish", apply_as, NULL, 0 },
    { "browser", "browser", apply_browser, NULL, 0 },
    { "security", "security", apply_map, security_rules, 0 },
    { NULL },
};

/* `mode` and `view` decide what other values mean (`workdir`, say), so they are read before their neighbours. */
static int
read_first(struct loader *l, const struct node *root, const char *name)
{
    const struct node *v = node_member(root, name);
    size_t mark;

    if (v == NULL)
        return 0;
    mark = schema_enter_key(l, v->key);
    if (schema_read(l, v, policy_spec_by_key(str_of(name))) < 0)
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
    if (read_first(l, root, "mode") < 0 || read_first(l, root, "view") < 0)
        return -1;
    return schema_walk(l, root, "", top_rules);
}
