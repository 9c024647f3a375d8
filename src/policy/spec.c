/* policy/spec.c: the table of spec.h, and how its fields are reached */
#include "policy/spec.h"

#include "base/array.h"
#include "policy/internal.h"
#include "policy/within.h"

#define N(a) ARRAY_LEN(a)
#define MIB ((uint64_t)1 << 20)
#define TIB ((uint64_t)1 << 40)
#define YEAR_MS ((uint64_t)366 * 24 * 3600 * 1000)

#define FIELD(f) .at = offsetof(struct policy, f), .from = offsetof(struct policy, f.from)
#define WORD(f, words_, code_) .kind = SPEC_WORD, FIELD(f), .words = words_, .code = code_
#define TEXT(f) .kind = SPEC_TEXT, FIELD(f)
#define BOOL(f) .kind = SPEC_BOOL, FIELD(f)
#define NUMBER(f, unit_, min_, max_) .kind = SPEC_NUMBER, FIELD(f), .unit = unit_, .min = min_, .max = max_
#define LIST(f, entry_) .kind = SPEC_LIST, FIELD(f), .entry = entry_
#define RECORDS(f, type) \
    .kind = SPEC_RECORDS, .at = offsetof(struct policy, f), .size = sizeof(type), .from = offsetof(type, from)
#define OWN(f, member) .kind = SPEC_OWN, .at = offsetof(struct policy, member), .from = offsetof(struct policy, f.from)
#define KEY(key_, flag_, value_, help_) .key = key_, .flag = { flag_, value_, help_ }

/* policy.h has the length behind the array, the origin behind the value, and enums of this size */
_Static_assert(offsetof(struct policy, n_binds) == offsetof(struct policy, binds) + sizeof(void *), "");
_Static_assert(offsetof(struct policy, n_env) == offsetof(struct policy, env) + sizeof(void *), "");
_Static_assert(offsetof(struct policy, n_secrets) == offsetof(struct policy, secrets) + sizeof(void *), "");
_Static_assert(offsetof(struct policy, n_secret_files) == offsetof(struct policy, secret_files) + sizeof(void *), "");
_Static_assert(sizeof(enum policy_mode) == sizeof(unsigned), "");

/* Defaults. */
#define ALWAYS(v) .preset = { v, v, v, v, v, v }
#define BY_MODE(off, wall, max) .preset = { off, off, wall, wall, wall, max }
/* The source's own limits for running somebody's code (R65), and those of an interactive tool on a developer's machine,
 * where a build may take an hour and print a gigabyte; SRT limits nothing, and its settings cannot ask for it. Without
 * a wall only the caller's own means are left: a clock, and not reading further. docs/policy.md prints this. */
#define BY_VERB(off_code, code, tool, max) .preset = { 0, off_code, 0, code, tool, max }
#define LIMIT(f, unit_, min_, max_, none_) \
    NUMBER(limits.f, unit_, min_, max_), .none = none_, .ceiling = CEILING_LESS, .free = WITHIN_LIMITS

/* Which values are refused where. */
#define BIT(v) (1U << (v))
#define UNSET  BIT(0)
#define SET    0xfeU
#define ANY    0xffU
#define NOT_OFF .refused = { [IN_OFF] = SET }

const char *const policy_mode_words[] = { "off", "light", "standard", "max", NULL };
const char *const policy_fallback_words[] = { "refuse", "warn", "no-sandbox", NULL };
static const char *const records[] = { "off", "try", "required", NULL };
static const char *const workspaces[] = { "tmpfs", "rw", "ro", "cow", NULL };
const char *const policy_runtime_words[] = { "auto", "runsc", "crun", "runc", NULL };
const char *const policy_boundary_words[] = { "process", "kernel", "vm", NULL };
static const char *const views[] = { "private", "host", NULL };
static const char *const contents[] = { "host", "minimal", NULL };
static const char *const networks[] = { "none", "allowlist", "host", NULL };
static const char *const presets[] = { "ci", "development", NULL };

static const char no_need[] = "set it in a settings file: nobody needs it for one run";
static const char built_in[] = "it is built in, or SRT's: a floor that nothing shortens";
static const char by_mode[] = "the mode decides it";

const struct policy_spec policy_specs[] = {
    { KEY("mode", "--mode", "off|light|standard|max", "how strong the wall is; standard by default"),
      WORD(mode, policy_mode_words, "policy.mode"), .set = set_mode, .ceiling = CEILING_MORE },
    { KEY("settings", "--settings", "FILE", "YAML, JSON or SRT settings; flags override it"),
      .no_file = "settings do not name other settings", .kind = SPEC_FLAG, .ceiling = CEILING_FREE },
    { KEY("engine", "--engine", "ENGINE", "what builds the wall; auto by default"),
      TEXT(engine), .code = "policy.engine.unknown", .set = set_engine, .free = WITHIN_ENGINES },
    { KEY("runtime", "--runtime", "auto|runsc|crun|runc", "an OCI runtime that builds the wall, as root"),
      TEXT(runtime), .words = policy_runtime_words, .code = "policy.runtime.unknown", .free = WITHIN_ENGINES },
    { KEY("boundary", "--boundary", "process|kernel|vm",
          "what at least stands between the sandbox and the host's kernel; process by default"),
      WORD(boundary, policy_boundary_words, "policy.boundary"), .ceiling = CEILING_MORE,
      .refused = { [IN_OFF] = ANY, [IN_LIGHT] = SET } },
    { KEY("agent-engines", NULL, NULL, "engines and runtimes that agents of cloche serve may ask for"),
      .no_flag = no_need, LIST(agent_engines, ENTRY_ENGINE), .ceiling = CEILING_AMONG },
    { KEY("fallback", "--fallback", "refuse|warn|no-sandbox", "if the host cannot build the wall; refuse by default"),
      WORD(fallback, policy_fallback_words, "policy.fallback"), .read = read_fallback, .refused = { [IN_MAX] = SET },
      .ceiling = CEILING_LESS },
    { KEY("fallback.url", NULL, NULL, "http or https URL of instructions, shown in the warning of a fallback"),
      .no_flag = no_need, TEXT(fallback_url), .read = read_fallback_url, .traits = SPEC_QUIET,
      .ceiling = CEILING_FREE },
    { KEY("audit", "--audit", "off|try|required", "the audit record of the run; try by default"),
      WORD(audit, records, "policy.audit"), ALWAYS(RECORD_TRY), .ceiling = CEILING_MORE },
    { KEY("view", "--view", "private|host", "an own root (default), or the host's tree, read-only"),
      WORD(view, views, "policy.view"), .ceiling = CEILING_LESS,
      .refused = { [IN_OFF] = BIT(VIEW_PRIVATE), [IN_LIGHT] = BIT(VIEW_PRIVATE), [IN_MAX] = BIT(VIEW_HOST) } },
    { KEY("image", "--image", "NAME[@DIGEST]", "an image whose files are the system, instead of the host's"),
      TEXT(image), .set = set_image,
      .refused = { [IN_OFF] = SET, [IN_LIGHT] = SET, [IN_HOST_VIEW] = SET } },
    { KEY("container-prefix", NULL, NULL, "what the name of the sandbox's container begins with"),
      .no_flag = no_need, TEXT(container_prefix), .set = set_container_prefix,
      .refused = { [IN_OFF] = SET, [IN_LIGHT] = SET } },
    { KEY("contents", "--contents", "host|minimal",
          "whether packages of languages and clients of networks that the host has are there; code: minimal"),
      WORD(contents, contents, "policy.contents"), ALWAYS(CONTENTS_HOST), .ceiling = CEILING_MORE,
      .refused = { [IN_OFF] = BIT(CONTENTS_MINIMAL), [IN_LIGHT] = BIT(CONTENTS_MINIMAL),
                   [IN_HOST_VIEW] = BIT(CONTENTS_MINIMAL) } },
    { KEY("with", "--with", "curl|nc|ssh|wget|python-packages|node-packages",
          "what --contents minimal leaves out and is there nevertheless"),
      LIST(with, ENTRY_WITH), .ceiling = CEILING_AMONG },
    { KEY("workspace", "--workspace", "DIR[:rw|:ro|:cow]", "project folder at /workspace; rw by default"),
      OWN(workspace, workspace.kind), .words = workspaces, .set = set_workspace, .read = read_workspace,
      .show = show_workspace, .within = within_workspace,
      .refused = { [IN_OFF] = (uint8_t)~BIT(WORKSPACE_RW), [IN_LIGHT] = BIT(WORKSPACE_COW) | BIT(WORKSPACE_TMPFS),
                   [IN_HOST_VIEW] = BIT(WORKSPACE_TMPFS) } },
    { KEY("keep-path", "--keep-path", NULL, "the workspace keeps its own path inside, instead of /workspace"),
      BOOL(keep_path), .ceiling = CEILING_LESS },
    { KEY("workdir", "--workdir", "PATH", "current directory inside"),
      TEXT(workdir), .set = set_workdir, .ceiling = CEILING_FREE },

    /* files */
    { KEY("binds", "--bind", "SRC[:DEST][:ro|:rw]", "show a host path inside; ro by default"),
      RECORDS(binds, struct policy_bind), .set = set_bind, .item = read_bind, .line = line_of_bind,
      .covers = bind_covers, .ceiling = CEILING_AMONG, NOT_OFF },
    { KEY("filesystem.allow-read", "--allow-read", "PATH", "re-open a place below one that is closed"),
      .srt = "filesystem.allowRead", LIST(allow_read, ENTRY_PATH), .ceiling = CEILING_AMONG, NOT_OFF },
    { KEY("filesystem.deny-read", "--deny-read", "PATH", "path or glob that cannot be read"),
      .srt = "filesystem.denyRead", LIST(deny_read, ENTRY_PATH), .ceiling = CEILING_KEPT, NOT_OFF },
    { KEY("filesystem.allow-write", "--allow-write", "PATH", "path or glob that may be written"),
      .srt = "filesystem.allowWrite", LIST(allow_write, ENTRY_PATH), .ceiling = CEILING_AMONG,
      .refused = { [IN_OFF] = ANY } },
    { KEY("filesystem.deny-write", "--deny-write", "PATH", "path or glob that stays read-only"),
      .srt = "filesystem.denyWrite", LIST(deny_write, ENTRY_PATH), .ceiling = CEILING_KEPT, NOT_OFF },
    { KEY("filesystem.allow-git-config", "--allow-git-config", NULL, "let .git/config be written"),
      .srt = "filesystem.allowGitConfig", BOOL(allow_git_config), .ceiling = CEILING_LESS },
    { KEY("filesystem.deny-hard-links", "--deny-hard-links", NULL,
          "hide files of bound folders that also have names (hard links) elsewhere"),
      BOOL(deny_hard_links), .ceiling = CEILING_MORE },
    { KEY("filesystem.protect", NULL, NULL, "plain relative names that cannot be written, added to the built-in ones"),
      .no_flag = no_need, LIST(protect, ENTRY_NAMES), .ceiling = CEILING_KEPT, .refused = { [IN_OFF] = ANY } },
    { KEY("filesystem.protect-depth", NULL, NULL, "how deep to look for existing protected names"),
      .no_flag = no_need, .srt = "mandatoryDenySearchDepth", NUMBER(protect_depth, UNIT_COUNT, 1, 10),
      .read = read_depth, ALWAYS(3), .ceiling = CEILING_MORE },
    { KEY("credentials", NULL, NULL, "places of credentials that cannot be read"),
      .no_flag = built_in, .no_file = built_in, LIST(credentials, ENTRY_PATH), .ceiling = CEILING_KEPT },
    { KEY("read-only-root", "--read-only-root", NULL, "nothing is writable but /workspace, home and /tmp"),
      BOOL(read_only_root), BY_MODE(0, 0, 1), .ceiling = CEILING_MORE,
      .refused = { [IN_OFF] = SET, [IN_MAX] = UNSET } },

    /* network, secrets and sockets */
    { KEY("network.mode", "--network", "none|allowlist|host", "none (default), hosts by name, or the host's network"),
      WORD(network, networks, "policy.network.mode"), .set = set_network,
      BY_MODE(NETWORK_HOST, NETWORK_NONE, NETWORK_NONE), .ceiling = CEILING_LESS, .free = WITHIN_NETWORK,
      .refused = { [IN_OFF] = (uint8_t)~BIT(NETWORK_HOST), [IN_MAX] = BIT(NETWORK_HOST) } },
    { KEY("network.allow", "--allow-domain", "HOST[:PORT]", "host that the command may reach"),
      .srt = "network.allowedDomains", LIST(allow_domains, ENTRY_HOST), .within = within_hosts, .free = WITHIN_NETWORK,
      .traits = SPEC_OPENS | SPEC_CLOSES | SPEC_NAMES | SPEC_LIVE, NOT_OFF },
    { KEY("network.deny", "--deny-domain", "HOST[:PORT]", "host that the command may not reach"),
      .srt = "network.deniedDomains", LIST(deny_domains, ENTRY_HOST), .ceiling = CEILING_KEPT,
      .traits = SPEC_CLOSES | SPEC_NAMES | SPEC_LIVE, NOT_OFF },
    { KEY("network.registries", "--allow-registry", "npm|pypi|go|debian|cargo|maven",
          "hosts of the registry that the installed client uses"),
      LIST(registries, ENTRY_REGISTRY), .ceiling = CEILING_AMONG, .free = WITHIN_NETWORK | WITHIN_REGISTRIES,
      .traits = SPEC_OPENS | SPEC_CLOSES | SPEC_NAMES, NOT_OFF },
    { KEY("preset", "--preset", "ci|development",
          "allow the hosts of a CI job; or of package registries and code hosts"),
      TEXT(preset), .words = presets, .code = "policy.preset", .ceiling = CEILING_AMONG,
      .traits = SPEC_OPENS | SPEC_CLOSES, NOT_OFF },
    { KEY("network.extra-ca", "--extra-ca", "FILE", "certificates to trust besides the host's"),
      .srt = "network.tlsTerminate.extraCaCertPaths", LIST(extra_ca, ENTRY_LITERAL), .ceiling = CEILING_AMONG,
      .traits = SPEC_CLOSES },
    { KEY("network.dns", "--dns", "ADDRESS", "name server to ask (port 53) in place of the host's, up to 8"),
      LIST(name_servers, ENTRY_ADDRESS), .within = within_name_servers, .traits = SPEC_CLOSES },
    { KEY("network.open-tls", "--open-tls", NULL,
          "open TLS to every allowed host, to look into it (docs/interception.md)"),
      BOOL(open_tls), .ceiling = CEILING_MORE },
    { KEY("network.keep-tls", "--keep-tls", "HOST[:PORT]", "host whose TLS --open-tls does not open"),
      .srt = "network.tlsTerminate.excludeDomains", LIST(keep_tls, ENTRY_HOST_PLAIN), .ceiling = CEILING_AMONG },
    { KEY("network.refuse-opaque", "--refuse-opaque", NULL, "refuse connections that are not looked into"),
      .srt = "network.refuseOpaqueTunnels", BOOL(refuse_opaque), .ceiling = CEILING_MORE },
    { KEY("network.refuse-moving-paths", "--refuse-moving-paths", NULL,
          "refuse requests whose path means another one once dots, backslashes and leading slashes are resolved"),
      BOOL(refuse_moving), .ceiling = CEILING_MORE },
    { KEY("network.strip-headers", "--strip-header", "NAME",
          "header of answers that the command does not get, where they are looked into"),
      .srt = "network.stripResponseHeaders", LIST(strip_headers, ENTRY_FIELD), .ceiling = CEILING_KEPT },
    { KEY("network.parent-proxy.http", NULL, NULL,
          "proxy for plain HTTP: http://[USER:PASSWORD@]HOST[:PORT]"),
      .no_flag = "a flag's value is everybody's to read, and this may hold a password",
      .srt = "network.parentProxy.http", TEXT(parent_proxy.http), .set = set_parent, .show = show_parent,
      .hide = hide_parent },
    { KEY("network.parent-proxy.https", NULL, NULL, "proxy for everything else; by default that of http"),
      .no_flag = "as network.parent-proxy.http", .srt = "network.parentProxy.https", TEXT(parent_proxy.https),
      .set = set_parent, .show = show_parent, .hide = hide_parent },
    { KEY("network.parent-proxy.no-proxy", NULL, NULL, "hosts to reach without a proxy, in one string"),
      .no_flag = "as network.parent-proxy.http", .srt = "network.parentProxy.noProxy", TEXT(parent_proxy.no_proxy),
      .set = set_no_proxy, .traits = SPEC_QUIET },
    { KEY("secrets", "--secret", "NAME[=BINDING][,add=HEADER: TEXT]",
          "let the command use a secret without seeing it (man cloche-secret)"),
      RECORDS(secrets, struct policy_secret), .set = set_secret, .item = read_secret, .line = line_of_secret,
      .covers = secret_covers, .ceiling = CEILING_AMONG, .traits = SPEC_CLOSES, NOT_OFF },
    { KEY("secret-files", "--secret-file", "PATH=NAME|PATH=@FILE",
          "a secret's placeholder in a file, or FILE with ${NAME} in it"),
      RECORDS(secret_files, struct policy_secret_file), .set = set_secret_file, .item = read_secret_file,
      .line = line_of_secret_file, .hide = hide_secret_files, .covers = secret_file_covers, .ceiling = CEILING_AMONG,
      .traits = SPEC_CLOSES },
    { KEY("network.ask", "--ask", NULL,
          "ask about hosts that no rule names (cloche approvals) instead of refusing them"),
      BOOL(ask), .ceiling = CEILING_LESS, .traits = SPEC_OPENS | SPEC_CLOSES },
    { KEY("network.ask-timeout", "--ask-timeout", "TIME",
          "how long to wait for the answer, then refuse; 60s by default"),
      NUMBER(ask_ms, UNIT_MS, 1000, 3600000), .set = set_ask_timeout, .show = show_ask_timeout, ALWAYS(POLICY_ASK_MS),
      .within = within_ask_timeout },
    { KEY("network.publish", "--publish", "[[ADDRESS:]HPORT:]PORT",
          "let the host reach a port of the sandbox; at 127.0.0.1 unless ADDRESS says where"),
      LIST(publish, ENTRY_PUBLISH), .ceiling = CEILING_AMONG, .refused = { [IN_OFF] = SET, [IN_LIGHT] = SET } },
    { KEY("network.host-ports", "--allow-host-port", "PORT",
          "port of this host's loopback that the command reaches as host.cloche.internal and host.docker.internal"),
      LIST(host_ports, ENTRY_PORT), .ceiling = CEILING_AMONG,
      .traits = SPEC_OPENS | SPEC_CLOSES | SPEC_NAMES, NOT_OFF },
    { KEY("network.allow-local-binding", NULL, NULL, "accepted for SRT settings; servers inside may always listen"),
      .no_flag = no_need, .srt = "network.allowLocalBinding", BOOL(allow_local_binding), BY_MODE(1, 0, 0),
      .ceiling = CEILING_LESS },
    { KEY("unix-sockets.allow", "--allow-unix-socket", "PATH", "unix socket that the command may connect to"),
      .srt = "network.allowUnixSockets", LIST(unix_sockets, ENTRY_SOCKET), .ceiling = CEILING_AMONG, NOT_OFF },
    { KEY("unix-sockets.all", "--allow-all-unix-sockets", NULL, "connect to any unix socket that is visible"),
      .srt = "network.allowAllUnixSockets", BOOL(all_unix_sockets), BY_MODE(1, 0, 0), .ceiling = CEILING_LESS,
      .refused = { [IN_MAX] = SET } },

    /* the command's surroundings */
    { KEY("env", "--env", "NAME[=VALUE]", "set a variable, or pass the caller's"),
      RECORDS(env, struct policy_env), .set = set_env_text, .read = read_env, .line = line_of_env, .hide = hide_env,
      .covers = env_covers, .ceiling = CEILING_AMONG },
    { KEY("env-deny", NULL, NULL, "variables that are removed even when they are passed"),
      .no_flag = built_in, .no_file = built_in, LIST(env_deny, ENTRY_ENV_NAME), .ceiling = CEILING_KEPT },
    { KEY("env-inherit", NULL, NULL, "whether the caller's environment is passed"),
      .no_flag = by_mode, .no_file = by_mode, BOOL(env_inherit), BY_MODE(1, 0, 0), .ceiling = CEILING_LESS },
    { KEY("user", "--user", "UID[:GID]", "ids inside; 1000:1000 by default; 0 in a machine only"),
      OWN(user, user.uid), .set = set_user, .show = show_user, .within = within_user,
      .refused = { [IN_OFF] = ANY, [IN_LIGHT] = ANY } },
    { KEY("private-docker", "--private-docker", NULL, "a Docker Engine inside, of the image's; in a machine only"),
      BOOL(private_docker), .ceiling = CEILING_LESS,
      .refused = { [IN_OFF] = SET, [IN_LIGHT] = SET, [IN_MAX] = SET, [IN_HOST_VIEW] = SET } },
    { KEY("hostname", "--hostname", "NAME", "host name inside"),
      TEXT(hostname), .set = set_hostname, .ceiling = CEILING_FREE, .refused = { [IN_OFF] = ANY, [IN_LIGHT] = ANY } },
    { KEY("allow-nested-user-namespaces", NULL, NULL, "user namespaces may be made inside"),
      .no_flag = no_need, .srt = "allowNestedUserNamespaces", BOOL(nested_userns), .ceiling = CEILING_LESS,
      .refused = { [IN_LIGHT] = SET, [IN_MAX] = SET } },
    { KEY("ptrace", NULL, NULL, "debuggers inside"),
      .no_flag = by_mode, .no_file = by_mode, BOOL(ptrace), BY_MODE(1, 1, 0), .ceiling = CEILING_LESS },
    { KEY("syscalls.allow", "--allow-syscall", "NAME", "a system call that the mode's filter refuses"),
      LIST(allow_calls, ENTRY_CALL_ALLOW), .ceiling = CEILING_AMONG, NOT_OFF },
    { KEY("syscalls.deny", "--deny-syscall", "NAME", "a system call that no command may make"),
      LIST(deny_calls, ENTRY_CALL_DENY), .ceiling = CEILING_KEPT, NOT_OFF },
    { KEY("apparmor", "--apparmor", "PROFILE", "the AppArmor profile that everything inside runs under"),
      TEXT(apparmor), .code = "policy.label", .set = set_label, NOT_OFF },
    { KEY("selinux", "--selinux", "CONTEXT", "the SELinux context that everything inside runs in"),
      TEXT(selinux), .code = "policy.label", .set = set_label, NOT_OFF },

    /* limits */
    { KEY("limits.memory", "--memory", "SIZE", "memory limit, such as 512m; none: no limit (the same for all limits)"),
      LIMIT(memory, UNIT_BYTES, 4 * MIB, 1024 * TIB, "none"), BY_VERB(0, 512 * MIB, HALF_OF_RAM, 512 * MIB),
      NOT_OFF, .traits = SPEC_LIVE },
    { KEY("limits.cpus", "--cpus", "N", "CPU limit, such as 0.5"),
      LIMIT(cpu_milli, UNIT_MILLI, 10, 1024 * 1000, "none"), BY_VERB(0, 500, 0, 500), NOT_OFF, .traits = SPEC_LIVE },
    { KEY("limits.pids", "--pids", "N", "processes and threads"),
      LIMIT(pids, UNIT_COUNT, 2, 4194304, "none"), BY_VERB(0, 256, 4096, 64), NOT_OFF, .traits = SPEC_LIVE },
    { KEY("limits.disk", "--disk", "SIZE", "size of /tmp, home and an empty /workspace together"),
      LIMIT(disk, UNIT_BYTES, MIB, 1024 * TIB, "none"), BY_VERB(0, 1024 * MIB, 1024 * MIB, 256 * MIB),
      .refused = { [IN_OFF] = SET, [IN_LIGHT] = SET, [IN_HOST_VIEW] = SET } },
    { KEY("limits.time", "--timeout", "TIME", "wall clock limit, such as 30s or 5m; then SIGTERM"),
      LIMIT(time_ms, UNIT_MS, 1, YEAR_MS, "none"), BY_VERB(30000, 30000, 0, 30000), .traits = SPEC_LIVE },
    { KEY("limits.grace", "--grace", "TIME", "time between SIGTERM and SIGKILL; 2s by default"),
      LIMIT(grace_ms, UNIT_MS, 1, YEAR_MS, "kill at once"), ALWAYS(2000), .traits = SPEC_LIVE },
    { KEY("limits.output", "--output", "SIZE", "bytes of stdout and of stderr, each; the rest is cut"),
      LIMIT(output, UNIT_BYTES, 1, 1024 * TIB, "none"), BY_VERB(MIB, MIB, 0, MIB), .traits = SPEC_LIVE },
    { KEY("limits.open-files", "--nofile", "N", "open files of one process"),
      LIMIT(nofile, UNIT_COUNT, 16, 1073741816, "none"), BY_VERB(0, 1024, 65536, 256), NOT_OFF },
};
const size_t policy_n_specs = N(policy_specs);

const char *const policy_with_names[] = { "curl", "nc", "ssh", "wget", "python-packages", "node-packages", NULL };

const struct policy_spec *
policy_spec_by_key(struct str key)
{
    for (size_t i = 0; i < policy_n_specs; i++)
        if (str_eq_c(key, policy_specs[i].key))
            return &policy_specs[i];
    return NULL;
}

uint64_t
policy_spec_value(const struct policy *p, const struct policy_spec *s)
{
    const void *at = spec_in(p, s);
    unsigned word;
    size_t n;

    switch (s->kind) {
    case SPEC_FLAG:
        break;
    case SPEC_WORD:
    case SPEC_OWN:
        memcpy(&word, at, sizeof(word));
        return word;
    case SPEC_TEXT:
        return ((const struct policy_string *)at)->p != NULL;
    case SPEC_BOOL:
        return ((const struct policy_bool *)at)->v;
    case SPEC_NUMBER:
        return ((const struct policy_u64 *)at)->v;
    case SPEC_LIST:
        return ((const struct policy_list *)at)->n;
    case SPEC_RECORDS:
        (void)spec_records(p, s, &n);
        return n;
    }
    return 0;
}

const struct origin *
policy_spec_origin(const struct policy *p, const struct policy_spec *s)
{
    const char *base = (const char *)p;
    size_t n;

    if (s->kind == SPEC_FLAG)
        return &p->mode.from;
    if (s->kind == SPEC_RECORDS) {
        base = spec_records(p, s, &n);
        if (n == 0)
            return &p->mode.from;
    }
    return (const struct origin *)(const void *)(base + s->from);
}

bool
spec_put(struct policy *p, const struct policy_spec *s, uint64_t v, const struct origin *from)
{
    void *at = spec_at(p, s);
    unsigned word = (unsigned)v;

    if (s->kind == SPEC_WORD)
        memcpy(at, &word, sizeof(word));
    else if (s->kind == SPEC_BOOL)
        ((struct policy_bool *)at)->v = v != 0;
    else if (s->kind == SPEC_NUMBER)
        ((struct policy_u64 *)at)->v = v;
    else
        return false;
    memcpy((char *)p + s->from, from, sizeof(*from));
    return true;
}
