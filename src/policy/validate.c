/* policy/validate.c: combinations that cannot be kept are refused, before anything starts
 *
 * Single values were judged where they were set (set.c). Here the whole is: what a mode cannot do, places that would
 * swallow each other, rules about paths that the sandbox will not have. What a person asked for is never dropped in
 * silence: either it holds, or the policy is refused with the name of the line or flag that asked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "match/path.h"
#include "policy/internal.h"
#include "policy/place.h"

#define N(a) ARRAY_LEN(a)

/* The first row whose value is refused @in and that a person asked for, or NULL. */
static const struct policy_spec *
first_asked(const struct policy *p, unsigned in)
{
    for (const struct policy_spec *s = policy_specs; s < policy_specs + policy_n_specs; s++) {
        uint64_t v = s->refused[in] != 0 ? policy_spec_value(p, s) : 0;
        if ((s->refused[in] >> (v < 7 ? v : 7) & 1) != 0 && origin_explicit(policy_spec_origin(p, s)))
            return s;
    }
    return NULL;
}

static int
refuse_row(const struct policy *p, const struct policy_spec *s, const char *code, const char *why, struct err *err)
{
    const struct origin *from = policy_spec_origin(p, s);

    return REFUSE(from, from->kind == ORIGIN_FILE ? s->key : NULL, code, "%s", why);
}

static int
check_mode(const struct policy *p, struct err *err)
{
    const struct { bool is; const char *code, *why, *hint; } rows[N_REFUSED_IN] = {
        [IN_OFF] = { p->mode.v == MODE_OFF, "policy.off.asks", "mode off has no wall that could keep this",
                     "use mode light or standard; with off only a writable workspace, the working directory, "
                     "variables, time, grace and output remain" },
        [IN_LIGHT] = { p->mode.v == MODE_LIGHT, "policy.light.asks", "mode light has no namespaces: it cannot give an "
                       "own tree, user, host name or disk", "use mode standard, or leave this out" },
        [IN_MAX] = { p->mode.v == MODE_MAX, "policy.max.asks", "mode max does not give this way", "use mode standard" },
        [IN_HOST_VIEW] = { p->view.v == VIEW_HOST, "policy.view.asks", "the host's tree has no file system of ours "
                           "that could be this", "use --view private, or leave this out" },
    };

    for (unsigned in = 0; in < N_REFUSED_IN; in++) {
        const struct policy_spec *s = rows[in].is ? first_asked(p, in) : NULL;
        if (s == NULL)
            continue;
        refuse_row(p, s, rows[in].code, rows[in].why, err);
        return err_hint(err, "%s", rows[in].hint);
    }
    return 0;
}

static int
check_max(const struct policy *p, struct err *err)
{
    if (p->mode.v != MODE_MAX)
        return 0;
    if (p->srt) {
        REFUSE(&p->mode.from, NULL, "policy.max.srt", "SRT settings describe the host's tree; mode max has none");
        return err_hint(err, "use mode standard");
    }
    for (const struct policy_spec *s = policy_specs; s < policy_specs + policy_n_specs; s++) {
        if (!spec_endless(s) || policy_spec_value(p, s) != 0)
            continue;
        refuse_row(p, s, "policy.max.unlimited", "mode max has a limit for everything", err);
        return err_hint(err, "give a larger value instead of none, or use mode standard");
    }
    return 0;
}

/* What is asked for at least is not given up where it cannot be had. */
static int
check_boundary(const struct policy *p, struct err *err)
{
    if (!origin_explicit(&p->boundary.from) || p->fallback.v == FALLBACK_REFUSE ||
        (p->fallback.v == FALLBACK_WARN && p->boundary.v == BOUNDARY_PROCESS))
        return 0;
    REFUSE(&p->boundary.from, p->boundary.from.kind == ORIGIN_FILE ? "boundary" : NULL, "policy.boundary.fallback",
           "at least the boundary %s is asked for, and fallback %s gives it up", policy_boundary_name(p->boundary.v),
           policy_fallback_words[p->fallback.v]);
    return err_hint(err, "use fallback refuse, or leave the boundary out");
}

/* What asks for a look into connections: its origin. NULL: nothing. */
static const struct origin *
looked_into(const struct policy *p)
{
    return p->open_tls.v ? &p->open_tls.from : p->refuse_opaque.v ? &p->refuse_opaque.from
           : p->refuse_moving.v ? &p->refuse_moving.from
           : p->strip_headers.n > 0 ? &p->strip_headers.v[0].from : NULL;
}

static int
check_look(const struct policy *p, struct err *err)
{
    if (p->network.v == NETWORK_HOST && looked_into(p) != NULL) {
        REFUSE(looked_into(p), NULL, "policy.network.look", "nothing is looked into on the host's own network");
        return err_hint(err, "allow hosts by name, or leave it out");
    }
    if (p->keep_tls.n > 0 && !p->open_tls.v) {
        REFUSE(&p->keep_tls.v[0].from, NULL, "policy.network.keep-tls",
               "hosts whose TLS is not opened, and nothing says that it is");
        return err_hint(err, "add open-tls (--open-tls), or leave them out");
    }
    if (p->strip_headers.n > POLICY_STRIP_MAX)
        return REFUSE(&p->strip_headers.v[0].from, NULL, "policy.network.header", "more than %d headers to strip",
                      POLICY_STRIP_MAX);
    return 0;
}

static int
check_network(const struct policy *p, struct err *err)
{
    const struct policy_list *named = p->allow_domains.n > 0 ? &p->allow_domains
                                      : p->registries.n > 0 ? &p->registries
                                      : p->host_ports.n > 0 ? &p->host_ports : &p->deny_domains;
    const struct policy_entry *over = NULL;
    uint16_t ports[POLICY_TCP_PORTS_MAX];
    size_t n_ports;

    if (p->network.v == NETWORK_HOST && named->n > 0 && p->mode.v != MODE_OFF) {
        REFUSE(&named->v[0].from, NULL, "policy.network.both",
               "rules about names cannot hold on the host's own network");
        return err_hint(err, "leave out the names, or \"network: host\"");
    }
    if (p->ask.v && p->network.v != NETWORK_ALLOWLIST) {
        REFUSE(&p->ask.from, NULL, "policy.network.ask", "to ask about hosts, the network has to be open by name");
        return err_hint(err, "leave out ask, or say \"network: allowlist\"");
    }
    if (p->network.v == NETWORK_ALLOWLIST && p->mode.v == MODE_LIGHT) {
        const struct origin *from = named->n > 0 ? &named->v[0].from : &p->network.from;
        REFUSE(from, NULL, "policy.network.light", "light mode has no network of its own to open by name");
        return err_hint(err, "use mode standard, or leave it out (no network)");
    }
    if (p->network.v != NETWORK_ALLOWLIST && p->extra_ca.n > 0 && !p->srt) {
        REFUSE(&p->extra_ca.v[0].from, NULL, "policy.network.extra-ca",
               "certificates to trust, but no network by name for them");
        return err_hint(err, "leave them out, or allow hosts by name");
    }
    if (p->network.v != NETWORK_ALLOWLIST && p->name_servers.n > 0) {
        REFUSE(&p->name_servers.v[0].from, NULL, "policy.dns.network",
               "name servers, but no network by name: nothing is asked there");
        return err_hint(err, "leave them out, or allow hosts by name");
    }
    if (p->name_servers.n > POLICY_NAME_SERVERS_MAX)
        return REFUSE(&p->name_servers.v[0].from, NULL, "policy.dns", "more than %d name servers",
                      POLICY_NAME_SERVERS_MAX);
    if (p->network.v != NETWORK_ALLOWLIST && p->n_secrets > 0) {
        REFUSE(&p->secrets[0].from, p->secrets[0].from.kind == ORIGIN_FILE ? "secrets" : NULL, "policy.secret.network",
               "the secret %s needs the network by name: only there is a placeholder exchanged", p->secrets[0].name);
        return err_hint(err, "add --allow-domain HOST for the hosts that it is for, and mode standard or max");
    }
    if (p->network.v == NETWORK_NONE && named->n > 0 && !p->srt) {
        REFUSE(&named->v[0].from, NULL, "policy.network.closed", "rules about names, but the network is closed");
        return err_hint(err, "leave them out, or say \"network: allowlist\"");
    }
    if (p->preset.p != NULL && p->network.v != NETWORK_ALLOWLIST && p->mode.v != MODE_OFF) {
        REFUSE(&p->preset.from, NULL, "policy.network.closed",
               "preset %s opens hosts by name, and the network is not open that way", p->preset.p);
        return err_hint(err, "leave it out, or say \"network: allowlist\"");
    }
    if (!policy_tcp_ports(p, ports, &n_ports, &over)) {
        REFUSE(&over->from, NULL, "policy.network.ports", "the rule \"%s\" names one port too many: %d is the limit",
               over->written, POLICY_TCP_PORTS_MAX);
        return err_hint(err, "leave the port out of rules for 80 and 443, and join rules that share a port");
    }
    return 0;
}

static bool
within(const char *path, const char *dir)
{
    return path_within(str_of(path), str_of(dir));
}

const char *
kernel_tree(const char *path)
{
    static const char *const trees[] = { "/proc", "/sys", "/dev" };

    for (size_t i = 0; i < N(trees); i++)
        if (within(path, trees[i]))
            return trees[i];
    return NULL;
}

static bool
system_folder(const char *path)
{
    static const char *const dirs[] = {
        "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/boot", "/var/lib", "/run" };

    for (size_t i = 0; i < N(dirs); i++)
        if (within(path, dirs[i]))
            return true;
    return false;
}

const char *
policy_source_unfit(const char *path, bool workspace)
{
    if (strcmp(path, "/") == 0)
        return "the whole host";
    if (kernel_tree(path) != NULL)
        return "the host's kernel interface";
    return workspace && system_folder(path) ? "a folder of the system" : NULL;
}

/* What the sandbox's own root has, or is made in. */
static const char *const own_dirs[] = {
    "/", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/tmp", "/var", "/run", "/home",
    POLICY_HOME, PLACE_WORKSPACE };

static int
check_bind(const struct policy *p, const struct policy_bind *bind, struct err *err)
{
    if (strcmp(bind->source, "/") == 0) {
        REFUSE(&bind->from, NULL, "policy.bind.source", "the whole host cannot be bound into a sandbox");
        return err_hint(err, "bind the directories that are needed, or use --view host");
    }
    if (kernel_tree(bind->source) != NULL) {
        REFUSE(&bind->from, NULL, "policy.bind.source", "source %s is the host's kernel interface", bind->source);
        return err_hint(err, "the sandbox has a /proc and /dev of its own");
    }
    if (p->view.v == VIEW_HOST) {
        if (strcmp(bind->source, bind->dest) == 0)
            return 0;
        REFUSE(&bind->from, NULL, "policy.bind.host-view", "in the host's tree %s cannot appear at %s", bind->source,
               bind->dest);
        return err_hint(err, "paths keep their place there: leave the destination out, or use --view private");
    }
    if (kernel_tree(bind->dest) != NULL) {
        REFUSE(&bind->from, NULL, "policy.bind.reserved", "destination %s lies in %s, which the sandbox makes itself",
               bind->dest, kernel_tree(bind->dest));
        return err_hint(err, "choose a destination such as /workspace/NAME or /mnt/NAME");
    }
    for (size_t i = 0; i < N(own_dirs); i++) {
        if (strcmp(bind->dest, own_dirs[i]) != 0 || strcmp(bind->dest, POLICY_HOME) == 0)
            continue;
        REFUSE(&bind->from, NULL, "policy.bind.reserved", "destination %s would hide what the sandbox puts there",
               bind->dest);
        return err_hint(err, strcmp(bind->dest, "/workspace") == 0 ? "use --workspace DIR for /workspace itself"
                                                                   : "bind below it, or to /mnt/NAME");
    }
    return 0;
}

static int
bind_order(const void *a, const void *b)
{
    const struct policy_bind *x = a, *y = b;

    return strcmp(x->dest, y->dest);    /* a parent is a prefix of its children, so it comes first */
}

static int
check_binds(const struct policy *p, struct err *err)
{
    for (size_t i = 0; i < p->n_binds; i++)
        if (check_bind(p, &p->binds[i], err) < 0)
            return -1;
    return 0;
}

/* After settling, which may add binds. */
static int
check_bind_order(struct policy *p, struct err *err)
{
    for (size_t i = 0; p->workspace.at != NULL && i < p->n_binds; i++)
        if (strcmp(p->binds[i].dest, p->workspace.at) == 0) {
            REFUSE(&p->binds[i].from, NULL, "policy.bind.twice", "the workspace keeps its path %s, where this bind "
                   "would be", p->workspace.at);
            return err_hint(err, "leave out the bind, or --keep-path");
        }
    if (p->n_binds < 2)
        return 0;
    qsort(p->binds, p->n_binds, sizeof(*p->binds), bind_order);
    for (size_t i = 1; i < p->n_binds; i++) {
        if (strcmp(p->binds[i - 1].dest, p->binds[i].dest) != 0)
            continue;
        REFUSE(&p->binds[i].from, NULL, "policy.bind.twice", "two binds have the destination %s", p->binds[i].dest);
        return err_hint(err, "keep one of %s and %s", p->binds[i - 1].source, p->binds[i].source);
    }
    return 0;
}

static int
check_workspace(const struct policy *p, struct err *err)
{
    const char *dir = p->workspace.dir;
    const struct origin *from = &p->workspace.from;

    if (dir == NULL) {
        if (p->workspace.kind == WORKSPACE_TMPFS)
            return 0;
        REFUSE(from, NULL, "policy.workspace.dir", "the workspace has a kind but no directory");
        return err_hint(err, "--workspace DIR:KIND, or workspace: {dir: ..., kind: ...}");
    }
    if (strcmp(dir, "/") == 0 || kernel_tree(dir) != NULL) {
        REFUSE(from, NULL, "policy.workspace.system", "%s cannot be a workspace", dir);
        return err_hint(err, "name the project's directory");
    }
    if (p->workspace.kind == WORKSPACE_RW && system_folder(dir)) {
        REFUSE(from, NULL, "policy.workspace.system", "%s belongs to the system and cannot be a writable workspace",
               dir);
        return err_hint(err, "use %s:ro or %s:cow", dir, dir);
    }
    if (p->home != NULL && within(p->home, dir) && !p->workspace.kind_given) {
        REFUSE(from, NULL, "policy.workspace.home", "%s holds the whole home directory", dir);
        return err_hint(err, "name the project's directory; if the home is meant, say how: %s:ro, :cow or :rw", dir);
    }
    if (p->view.v == VIEW_HOST && p->workspace.kind == WORKSPACE_COW) {
        REFUSE(from, NULL, "policy.workspace.host-view", "a copy-on-write workspace needs an own tree");
        return err_hint(err, "leave out --view host, or use %s:rw", dir);
    }
    return 0;
}

static const char *
hides(const char *dir)
{
    for (size_t i = 0; i < N(own_dirs); i++)
        if (within(own_dirs[i], dir))
            return own_dirs[i];
    return within("/var/tmp", dir) ? "/var/tmp" : NULL;
}

static int
keep_path(struct policy *p, struct err *err)
{
    const char *dir = p->workspace.dir, *hidden;

    if (!p->keep_path.v || p->view.v != VIEW_PRIVATE)
        return 0;
    if (dir == NULL) {
        REFUSE(&p->keep_path.from, NULL, "policy.keep-path.workspace", "there is no workspace to keep its path");
        return err_hint(err, "--workspace . --keep-path");
    }
    if (system_folder(dir)) {
        REFUSE(&p->keep_path.from, NULL, "policy.keep-path.reserved", "%s cannot keep its path: it lies in a folder of "
               "the system, which the sandbox has itself", dir);
        return err_hint(err, "leave it out: the workspace is then at /workspace");
    }
    hidden = hides(dir);
    if (hidden != NULL) {
        REFUSE(&p->keep_path.from, NULL, "policy.keep-path.reserved", "%s cannot keep its path: it would hide %s, "
               "which the sandbox has itself", dir, hidden);
        return err_hint(err, "leave it out: the workspace is then at /workspace");
    }
    p->workspace.at = arena_copy(p->arena, str_of(dir));
    return p->workspace.at != NULL ? 0 : policy_no_memory(err);
}

/* The home that is kept is a bind, unless another one is bound there. */
static int
kept_home(struct policy *p, struct err *err)
{
    static const struct where w = { .from = { .kind = ORIGIN_BUILTIN, .name = "the agent's home" } };

    if (p->kept_home == NULL)
        return 0;
    if (p->view.v != VIEW_PRIVATE) {
        REFUSE(&p->view.from, NULL, "policy.agent.view", "an agent has a root and a home of its own");
        return err_hint(err, "use mode standard or max with the private view, or `cloche run`");
    }
    for (size_t i = 0; i < p->n_binds; i++)
        if (strcmp(p->binds[i].dest, POLICY_HOME) == 0)
            return 0;
    if (set_bind_parts(p, str_of(p->kept_home), STR_LIT(POLICY_HOME), true, &w, err) < 0)
        return -1;
    p->binds[p->n_binds - 1].own = true;
    return 0;
}

int
policy_fits_daemon(const struct policy *p, struct err *err)
{
    if (p->publish.n > 0) {
        REFUSE(&p->publish.v[0].from, NULL, "policy.publish.daemon", "ports of sandboxes of cloche serve are exposed "
               "one by one");
        return err_hint(err, "leave out network.publish, and expose a port: `cloche ports`");
    }
    if (!p->keep_path.v)
        return 0;
    REFUSE(&p->keep_path.from, NULL, "policy.keep-path.daemon", "in sandboxes of cloche serve the workspace is at "
           "/workspace");
    return err_hint(err, "leave out keep-path; `cloche run`, `shell` and `code` have it");
}

static int
check_writes(const struct policy *p, struct err *err)
{
    for (size_t i = 0; i < p->allow_write.n; i++) {
        const struct policy_entry *entry = &p->allow_write.v[i];
        size_t n = entry->literal ? strlen(entry->value) : path_glob_prefix(str_of(entry->value));
        if (p->srt || n > 1)
            continue;
        REFUSE(&entry->from, NULL, "policy.write.root", "\"%s\" would make the whole tree writable", entry->written);
        return err_hint(err, "name the directories that have to be writable");
    }
    return 0;
}

int
policy_validate(struct policy *p, struct err *err)
{
    if (check_mode(p, err) < 0 || check_max(p, err) < 0 || check_boundary(p, err) < 0 || check_network(p, err) < 0 ||
        check_look(p, err) < 0 || check_publish(p, err) < 0 || check_workspace(p, err) < 0 ||
        keep_path(p, err) < 0 || kept_home(p, err) < 0 ||
        check_binds(p, err) < 0 ||
        check_secret_files(p, err) < 0 || check_calls(p, err) < 0 || check_writes(p, err) < 0 || settle(p, err) < 0)
        return -1;
    return check_bind_order(p, err);
}

const char *
policy_origin_text(const struct origin *from, char out[POLICY_ORIGIN_TEXT_MAX])
{
    const char *name = from->name != NULL ? from->name : "";

    switch (from->kind) {
    case ORIGIN_DEFAULT:
        snprintf(out, POLICY_ORIGIN_TEXT_MAX, "default");
        break;
    case ORIGIN_MODE:
        snprintf(out, POLICY_ORIGIN_TEXT_MAX, "mode %s", name);
        break;
    case ORIGIN_FILE:
        snprintf(out, POLICY_ORIGIN_TEXT_MAX, from->line > 0 ? "%s:%u" : "%s", name, from->line);
        break;
    case ORIGIN_FLAG:
        snprintf(out, POLICY_ORIGIN_TEXT_MAX, "%s", name);
        break;
    case ORIGIN_BUILTIN:
        snprintf(out, POLICY_ORIGIN_TEXT_MAX, "built in (%s)", name);
        break;
    }
    return out;
}
