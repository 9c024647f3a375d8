/* egress/decide.c: see decide.h
 *
 * Reasons. Allowed: allow-domain, allow-host-port. Denied by a rule: deny-domain. For want of one: network-none,
 * network-no-rule, port-no-rule (the host has a rule, the port none), scope-no-rule (neither method nor path has one),
 * mcp-no-rule (the MCP server has one, the tool none), address-no-rule. Where a rule is about tools: mcp-body (what is
 * asked is not plain). Whatever the rules: bad-host, bad-port, address-form, address-embedded, address-not-here,
 * local-name, metadata-name, always-blocked, host-address, path-ambiguous, no-address, too-many-addresses.
 */
#include "egress/decide.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "egress/decide_kin.h"
#include "egress/decide_host_port.h"
#include "egress/decide_look.h"
#include "egress/decide_scope.h"
#include "egress/fake.h"
#include "match/path.h"
#include "match/tool.h"

#define LIST_FIRST 8
#define KIN_WORTH  16

/* --- compiling -------------------------------------------------------------------------------------------------- */

/* A list has room for the next power of two, so no capacity is stored. */
static struct decide_rule *
list_slot(struct decide_list *list)
{
    bool full = list->n == 0 || (list->n >= LIST_FIRST && (list->n & (list->n - 1)) == 0);
    size_t room = list->n == 0 ? LIST_FIRST : list->n * 2, bytes;
    struct decide_rule *v;
    uint64_t *kin;

    if (list->n >= POLICY_LIST_MAX || !size_mul(room, sizeof(*v), &bytes))
        return NULL;
    if (full) {
        v = realloc(list->v, bytes);
        if (v == NULL)
            return NULL;
        list->v = v;
        kin = realloc(list->kin, room * sizeof(*kin));      /* which is less than @bytes */
        if (kin == NULL)
            return NULL;
        list->kin = kin;
    }
    return &list->v[list->n];
}

/* A rule whose scope cannot be read would fit nothing, and a deny rule that fits nothing is open. */
static int
check_scope(const struct decide_scope *scope, struct err *err)
{
    char normal[PATH_TEXT_MAX + 1];
    enum path_fault fault;
    size_t n;

    if (scope->n_methods > DECIDE_METHODS_MAX)
        return err_set(err, ERR_LIMIT, "egress.methods", "%zu methods in one rule", scope->n_methods);
    for (size_t i = 0; i < scope->n_methods; i++)
        if (scope->methods[i].n == 0)
            return err_set(err, ERR_POLICY, "egress.methods", "an empty method");
    if (scope->n_tools > DECIDE_TOOLS_MAX)
        return err_set(err, ERR_LIMIT, "egress.tools", "%zu tools in one rule", scope->n_tools);
    for (size_t i = 0; i < scope->n_tools; i++)
        if (!tool_is_pattern(scope->tools[i]))
            return err_set(err, ERR_POLICY, "egress.tools", "a tool's name that is none");
    if (scope->path.n == 0)
        return 0;
    fault = path_normalise(scope->path, (struct str){ NULL, 0 }, true, normal, sizeof(normal), &n);
    if (fault != PATH_OK)
        return err_set(err, ERR_POLICY, "egress.path", "the rule's path %s", path_fault_text(fault));
    return 0;
}

struct decide_list *
decide_list_of(struct decide_rules *rules, enum decide_which which)
{
    return which == DECIDE_DENIES ? &rules->deny : which == DECIDE_HOST_PORT ? &rules->host_ports
           : which == DECIDE_KEPT ? &rules->kept : &rules->allow;
}

int
decide_rules_add(struct decide_rules *rules, enum decide_which which, struct str text, const struct origin *from,
                 const struct decide_scope *scope, struct err *err)
{
    struct decide_list *list = decide_list_of(rules, which);
    struct decide_rule *rule = list_slot(list);
    enum host_fault fault;

    if (rule == NULL)
        return err_set(err, ERR_LIMIT, "egress.rules", "no room for another rule (%zu)", list->n);
    *rule = (struct decide_rule){ .text = text, .from = *from };
    if (which == DECIDE_HOST_PORT)
        fault = decide_host_port_pattern(text, &rule->pattern);
    else
        fault = rules->srt ? host_pattern_srt(text, which == DECIDE_DENIES, &rule->pattern)
                           : host_pattern_cloche(text, &rule->pattern);
    if (fault != HOST_OK)
        return err_set(err, ERR_POLICY, host_fault_code(fault), "rule %zu %s", list->n + 1, host_fault_text(fault));
    if (scope != NULL) {
        if (check_scope(scope, err) < 0)
            return -1;
        rule->scope = *scope;
        rule->has_scope = scope->n_methods > 0 || scope->path.n > 0 || scope->n_tools > 0;
        rules->mcp |= scope->n_tools > 0;
    }
    list->kin[list->n] = decide_kin_of_pattern(&rule->pattern);
    list->n++;
    return 0;
}

/* The policy's scope, borrowed. NULL stays NULL. */
static const struct decide_scope *
scope_of(const struct policy_scope *from, struct decide_scope *out)
{
    if (from == NULL)
        return NULL;
    *out = (struct decide_scope){ .n_methods = from->n_methods, .path = str_of(from->path != NULL ? from->path : ""),
                                  .n_tools = from->n_tools };
    for (size_t i = 0; i < from->n_methods; i++)
        out->methods[i] = str_of(from->methods[i]);
    for (size_t i = 0; i < from->n_tools; i++)
        out->tools[i] = str_of(from->tools[i]);
    return out;
}

static int
compile_list(struct decide_rules *rules, enum decide_which which, const struct policy_list *list, struct err *err)
{
    static const char *const keys[] = { "network.allow", "network.deny", "network.host-ports", "network.keep-tls" };
    struct decide_list *to = decide_list_of(rules, which);

    for (size_t i = 0; i < list->n; i++) {
        struct decide_scope scope;
        if (decide_rules_add(rules, which, str_of(list->v[i].value), &list->v[i].from,
                             scope_of(list->v[i].scope, &scope), err) < 0)
            return err_wrap(err, "%s", keys[which]);
        to->v[to->n - 1].text = str_of(list->v[i].written);
    }
    return 0;
}

int
decide_compile(const struct policy *policy, struct decide_rules *out, struct err *err)
{
    const struct policy_list *const lists[] = { &policy->allow_domains, &policy->deny_domains, &policy->host_ports,
                                                &policy->keep_tls };

    out->srt = policy->srt;
    out->from = policy->network.from;
    if (policy->mode.v == MODE_OFF || policy->network.v == NETWORK_HOST)
        return err_set(err, ERR_POLICY, "egress.host-network", "the sandbox has the host's own network");
    for (enum decide_which which = DECIDE_ALLOWS; which <= DECIDE_KEPT; which++)
        if (compile_list(out, which, lists[which], err) < 0)
            return -1;
    out->look = (struct decide_look){ policy->open_tls.v, policy->refuse_opaque.v, policy->refuse_moving.v };
    out->closed = policy->network.v != NETWORK_ALLOWLIST;
    return 0;
}

void
decide_rules_free(struct decide_rules *rules)
{
    struct decide_list *const lists[] = { &rules->allow, &rules->deny, &rules->host_ports, &rules->kept };

    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        free(lists[i]->v);
        free(lists[i]->kin);
        *lists[i] = (struct decide_list){ .n = 0 };
    }
    rules->closed = true;
}

/* --- what is refused whatever the rules say ---------------------------------------------------------------------- */

/* Never reachable, whatever the rules say. */
static bool
decide_always_blocked(enum ip_class class)
{
    switch (class) {
    case IP_PRIVATE:
    case IP_SHARED:
    case IP_SPECIAL:
    case IP_PUBLIC:
        return false;
    case IP_UNSPECIFIED:
    case IP_THIS_NETWORK:
    case IP_LINK_LOCAL:
    case IP_METADATA:
    case IP_LOOPBACK:
    case IP_MULTICAST:
    case IP_BROADCAST:
        return true;
    }
    return true;
}

static void
deny(struct decide_verdict *out, const char *reason, const char *detail)
{
    out->kind = DECIDE_DENY;
    out->reason = reason;
    out->detail = detail;
}

static const char no_network[] = "the sandbox has no network";

static void
start(const struct decide_rules *rules, struct decide_verdict *out)
{
    *out = (struct decide_verdict){ .from = rules->from };
    deny(out, "network-none", no_network);
}

static void
by_rule(struct decide_verdict *out, enum decide_kind kind, const char *reason, const struct decide_rule *rule)
{
    out->kind = kind;
    out->reason = reason;
    out->detail = "";
    out->rule = rule->text;
    out->from = rule->from;
}

/* An address that came as text must be what inet_pton reads, in brackets only where a URL's authority has them: every
 * other spelling is one that a filter and a resolver may read differently. */
static bool
literal_ok(const struct decide_request *request, struct decide_verdict *out)
{
    struct str text = request->host;
    struct ip ip;

    if (request->via == DECIDE_DNS || request->via == DECIDE_TLS_SNI) {
        deny(out, "address-not-here", "an address where only a name may stand");
        return false;
    }
    if (request->ip != NULL) {
        ip = *request->ip;
    } else {
        bool may = request->via == DECIDE_CONNECT || request->via == DECIDE_HTTP;
        if (may && text.n > 2 && text.p[0] == '[' && text.p[text.n - 1] == ']')
            text = (struct str){ text.p + 1, text.n - 2 };
        if (!ip_parse(text, &ip)) {
            deny(out, "address-form", "an address in another spelling than inet_pton's");
            return false;
        }
    }
    if (!ip_eq(&ip, &out->host.ip)) {       /* host_canonical unwrapped it */
        deny(out, "address-embedded", "an address that carries another one");
        return false;
    }
    return true;
}

static bool
read_host(const struct decide_request *request, struct decide_verdict *out)
{
    char text[IP_TEXT_MAX];
    struct str host = request->host;
    enum host_fault fault;

    if (request->ip != NULL) {
        if (host.n > 0 || (request->ip->family != 4 && request->ip->family != 6)) {
            deny(out, "bad-host", "a name and an address, or no family");
            return false;
        }
        host = (struct str){ text, ip_format(request->ip, text) };
    }
    fault = host_canonical(host, &out->host);
    if (fault != HOST_OK) {
        out->host = (struct host){ .n = 0 };
        deny(out, "bad-host", host_fault_text(fault));
        return false;
    }
    return !out->host.is_ip || literal_ok(request, out);
}

static bool
is_own(const struct decide_rules *rules, const struct ip *ip)
{
    struct ip inner = ip_unwrap(*ip);

    for (size_t i = 0; i < rules->n_own; i++)
        if (ip_eq(&rules->own[i], ip) || ip_eq(&rules->own[i], &inner))
            return true;
    return false;
}

/* Addresses and names that no rule opens. */
static bool
never(const struct decide_rules *rules, struct decide_verdict *out)
{
    struct str name = { out->host.name, out->host.n };

    if (out->host.is_ip) {
        if (decide_always_blocked(ip_classify(out->host.ip)))
            deny(out, "always-blocked", ip_class_name(ip_classify(out->host.ip)));
        else if (is_own(rules, &out->host.ip))
            deny(out, "host-address", "an address of the host itself");
        else if (fake_in_range(&out->host.ip))
            deny(out, "always-blocked", "an address that stands for a name, inside");
        else
            return false;
        return true;
    }
    if (ip_is_loopback_host(name))
        deny(out, "local-name", "a name for the host itself");
    else if (host_is_metadata(name))
        deny(out, "metadata-name", "a name for a metadata service");
    else
        return false;
    return true;
}

/* --- rules -------------------------------------------------------------------------------------------------------- */

/* Whether a pattern matches the host at any port: its own port is always one that it matches. */
static bool
names_host(const struct decide_rule *rule, const struct host *host)
{
    return host_match(&rule->pattern, host, rule->pattern.port);
}

static bool
port_open(const struct decide_rules *rules, const struct decide_rule *rule, uint16_t port)
{
    if (rule->pattern.port != 0)
        return rule->pattern.port == port;
    return rules->srt || port == 80 || port == 443;
}

/* How far a rule for this host and port concerns the request itself. */
static enum scope_fit
fit_of(const struct decide_rule *rule, const struct decide_request *request, bool deny)
{
    enum scope_fit fit;

    if (!rule->has_scope)
        return SCOPE_YES;
    if (request->via != DECIDE_HTTP)
        return SCOPE_UNKNOWN;
    if (request->meant.unclear)
        return SCOPE_AMBIGUOUS;
    fit = decide_scope_fit(&rule->scope, request->method, request->path, request->mcp, deny);
    /* what opens it has to open both methods; what closes one closes it */
    if (request->meant.method.n > 0 && fit == (deny ? SCOPE_NO : SCOPE_YES))
        fit = decide_scope_fit(&rule->scope, request->meant.method, request->path, request->mcp, deny);
    return fit;
}

/* What to hold against the list's rules; comparing a few costs less than finding out which. */
static uint64_t
kin_for(const struct decide_list *list, const struct host *host)
{
    return list->n < KIN_WORTH ? KIN_ALL : decide_kin_of_host(host);
}

/* True when a deny rule decided. For DNS only rules for every port count: the name may be good at another one. */
static bool
try_deny(const struct decide_rules *rules, const struct decide_request *request, struct decide_verdict *out)
{
    uint64_t kin = kin_for(&rules->deny, &out->host);

    for (size_t i = 0; i < rules->deny.n; i++) {
        const struct decide_rule *rule = &rules->deny.v[i];
        if ((rules->deny.kin[i] & kin) == 0 || !host_match(&rule->pattern, &out->host, request->port))
            continue;
        switch (fit_of(rule, request, true)) {
        case SCOPE_YES:
            by_rule(out, DECIDE_DENY, "deny-domain", rule);
            return true;
        case SCOPE_AMBIGUOUS:
            by_rule(out, DECIDE_DENY, "path-ambiguous", rule);
            return true;
        case SCOPE_GARBLED:
            by_rule(out, DECIDE_DENY, "mcp-body", rule);
            out->detail = request->mcp->fault;
            return true;
        case SCOPE_UNKNOWN:
            out->inspect = true;
            break;
        case SCOPE_UNREAD:
            out->unread = out->narrow = true;
            break;
        case SCOPE_TOOL:
        case SCOPE_NO:
            out->narrow = true;
            break;
        }
    }
    return false;
}

/* Of two reasons why no rule fits: what was asked of an MCP server says more than that another rule is about something
 * else. */
static const char *
nearer(const char *had, const char *now)
{
    return had != NULL && strncmp(had, "mcp-", 4) == 0 ? had : now;
}

/* The first allow rule that fits; one without a scope is better than one that asks for inspection. @near says how
 * close the others came. */
static const struct decide_rule *
find_allow(const struct decide_rules *rules, const struct decide_request *request, struct decide_verdict *out,
           bool *inspect, const char **near)
{
    const struct host *host = &out->host;
    const struct decide_rule *scoped = NULL;
    uint64_t kin = kin_for(&rules->allow, host);
    bool unread = false;

    for (size_t i = 0; i < rules->allow.n; i++) {
        const struct decide_rule *rule = &rules->allow.v[i];
        if ((rules->allow.kin[i] & kin) == 0 || !names_host(rule, host))
            continue;
        if (request->via != DECIDE_DNS && !port_open(rules, rule, request->port)) {
            *near = *near == NULL ? "port-no-rule" : *near;
            continue;
        }
        switch (fit_of(rule, request, false)) {
        case SCOPE_YES:
            return rule;
        case SCOPE_UNREAD:
            unread = true;
            break;
        case SCOPE_UNKNOWN:
            scoped = scoped == NULL ? rule : scoped;
            break;
        case SCOPE_AMBIGUOUS:
            *near = nearer(*near, "path-ambiguous");
            break;
        case SCOPE_TOOL:
            *near = "mcp-no-rule";
            break;
        case SCOPE_GARBLED:
            *near = "mcp-body";
            break;
        case SCOPE_NO:
            *near = nearer(*near, "scope-no-rule");
            break;
        }
    }
    out->unread |= unread;
    *inspect = *inspect || scoped != NULL;
    return scoped;
}

static void
no_rule(const struct decide_rules *rules, const struct mcp_message *mcp, const char *near, struct decide_verdict *out)
{
    const char *plain = out->host.is_ip ? "address-no-rule" : "network-no-rule";
    /* a question names the host alone, and a yes to that is none to any tool of it */
    bool askable = near == NULL || (strcmp(near, "path-ambiguous") != 0 && strncmp(near, "mcp-", 4) != 0);

    deny(out, near != NULL ? near : plain, "what no rule names is closed");
    if (near != NULL && strcmp(near, "mcp-body") == 0)
        out->detail = mcp->fault;
    if (rules->ask && askable)
        out->kind = DECIDE_ASK;
}

void
decide_judge(const struct decide_rules *rules, const struct decide_request *request, struct decide_verdict *out)
{
    const struct decide_rule *rule;
    const char *near = NULL;
    bool inspect, body, host_port;

    start(rules, out);
    if (!read_host(request, out) || never(rules, out))
        return;
    if ((request->port == 0) != (request->via == DECIDE_DNS)) {
        deny(out, "bad-port", "no port, or one where none can be");
        return;
    }
    if (rules->closed) {
        deny(out, "network-none", no_network);
        return;
    }
    if (try_deny(rules, request, out)) {
        out->inspect = false;
        return;
    }
    inspect = out->inspect;
    body = out->unread;
    out->inspect = out->unread = false;
    host_port = decide_names_host(rules, &out->host);
    rule = host_port ? decide_find_host_port(rules, request->port) : find_allow(rules, request, out, &inspect, &near);
    if (host_port && rule == NULL) {        /* nobody is asked about it */
        deny(out, "port-no-rule", "what no rule names is closed");
        return;
    }
    out->unread |= body && (rule != NULL || rules->ask);
    if (out->unread) {
        deny(out, "mcp-body", "the request was not read");
        out->narrow = true;
        return;
    }
    if (rule == NULL) {
        no_rule(rules, request->mcp, near, out);
        /* a yes to the host is no yes to what a deny rule looks for in it */
        out->inspect = out->kind == DECIDE_ASK && inspect && request->via != DECIDE_DNS;
        return;
    }
    by_rule(out, DECIDE_ALLOW, host_port ? "allow-host-port" : "allow-domain", rule);
    out->narrow = out->narrow || rule->has_scope;
    out->inspect = inspect && request->via != DECIDE_DNS;
}

/* --- resolved addresses ------------------------------------------------------------------------------------------ */

/* The deny rule, without a scope, that the address falls under: by itself or by what it carries. */
static const struct decide_rule *
denied_address(const struct decide_rules *rules, const struct host *host, uint16_t port)
{
    for (size_t i = 0; i < rules->deny.n; i++) {
        const struct decide_rule *rule = &rules->deny.v[i];
        if (!rule->has_scope && rule->pattern.kind == HOST_EXACT && host_match(&rule->pattern, host, port))
            return rule;
    }
    return NULL;
}

/* A rule that is this very address opens it, at the rule's ports. */
static bool
address_named(const struct decide_rules *rules, const struct ip *ip, const struct host *host, uint16_t port)
{
    if (!ip_eq(ip, &host->ip))      /* what only carries that address is not that address */
        return false;
    for (size_t i = 0; i < rules->allow.n; i++) {
        const struct decide_rule *rule = &rules->allow.v[i];
        if (rule->pattern.kind == HOST_EXACT && names_host(rule, host) && port_open(rules, rule, port))
            return true;
    }
    return false;
}

/* False when @ip may not be dialled; @out then says why. */
static bool
address_ok(const struct decide_rules *rules, const struct ip *ip, uint16_t port, struct decide_verdict *out)
{
    struct host host = { .is_ip = true, .ip = ip_unwrap(*ip) };
    const struct decide_rule *rule;
    enum ip_class class;

    if (ip->family != 4 && ip->family != 6) {
        deny(out, "bad-host", "no family");
        return false;
    }
    host.n = ip_format(&host.ip, host.name);
    out->host = (struct host){ .is_ip = true, .ip = *ip };
    out->host.n = ip_format(ip, out->host.name);
    class = ip_classify(*ip);
    rule = denied_address(rules, &host, port);
    if (decide_always_blocked(class))
        deny(out, "always-blocked", ip_class_name(class));
    else if (is_own(rules, ip))
        deny(out, "host-address", "an address of the host itself");
    else if (fake_in_range(ip))
        deny(out, "always-blocked", "an address that stands for a name, inside");
    else if (rule != NULL)
        by_rule(out, DECIDE_DENY, "deny-domain", rule);
    else if (class != IP_PUBLIC && !address_named(rules, ip, &host, port))
        deny(out, "address-no-rule", ip_class_name(class));
    else
        return true;
    return false;
}

void
decide_address(const struct decide_rules *rules, const struct ip *set, size_t n, uint16_t port,
               struct decide_verdict *out)
{
    start(rules, out);
    if (rules->closed)
        return;
    if (port == 0) {
        deny(out, "bad-port", "no port");
        return;
    }
    if (n == 0) {
        deny(out, "no-address", "the name has no address");
        return;
    }
    if (n > DECIDE_ADDRESSES_MAX) {
        deny(out, "too-many-addresses", "more answers than a name may have");
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (!address_ok(rules, &set[i], port, out))
            return;
    out->host = (struct host){ .n = 0 };
    out->kind = DECIDE_ALLOW;
    out->reason = "address-ok";
    out->detail = "";
}
