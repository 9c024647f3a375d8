/* egress/why_host.c: see why_host.h */
#include "egress/why_host.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "egress/decide.h"
#include "match/host.h"

struct target {
    struct host host;
    struct str text;            /* as it was written, without port and brackets */
    uint16_t port;
    bool port_given;
};

static int
parse_target(const char *text, struct target *out, struct err *err)
{
    enum host_fault fault = HOST_OK;
    struct ip ip;

    *out = (struct target){ .text = str_of(text) };
    if (!ip_parse(out->text, &ip))      /* an IPv6 address without brackets has no port */
        fault = host_split_port(str_of(text), &out->text, &out->port);
    if (fault == HOST_OK)
        fault = host_canonical(out->text, &out->host);
    if (fault != HOST_OK) {
        err_set(err, ERR_USAGE, host_fault_code(fault), "--host: the host %s", host_fault_text(fault));
        return err_hint(err, "write HOST or HOST:PORT");
    }
    out->port_given = out->port != 0;
    out->port = out->port_given ? out->port : WHY_HOST_PORT;
    return 0;
}

/* What such a request would ask of an MCP server, if it is well made. */
static void
message_of(struct str method, const char *tool, struct mcp_message *out)
{
    bool post = str_eq_c(method, "POST"), session = str_eq_c(method, "GET") || str_eq_c(method, "DELETE");

    if (tool != NULL && (!post || !tool_is_name(str_of(tool))))
        *out = (struct mcp_message){ .kind = MCP_BAD, .fault = post ? "such a name no rule can be held against"
                                                                    : "a tool is called with POST" };
    else
        *out = (struct mcp_message){ .kind = tool != NULL ? MCP_CALL : post || session ? MCP_OTHER : MCP_ELSE,
                                     .tool = str_of(tool != NULL ? tool : "") };
}

/* Both steps of a decision for an address; for a name the first, which is all that can be known of it. */
static void
judge(const struct decide_rules *rules, const struct target *t, const struct why_request *asked,
      struct decide_verdict *verdict)
{
    struct decide_request request = { .via = DECIDE_CONNECT, .host = t->text, .port = t->port };
    struct mcp_message message;

    if (asked != NULL && (asked->method != NULL || asked->path != NULL || asked->tool != NULL)) {
        request.via = DECIDE_HTTP;
        request.method = str_of(asked->method != NULL ? asked->method : asked->tool != NULL ? "POST" : "GET");
        request.path = str_of(asked->path != NULL ? asked->path : "/");
        message_of(request.method, asked->tool, &message);
        request.mcp = &message;
    }
    decide(rules, &request, verdict);
    if (verdict->kind == DECIDE_ALLOW && verdict->host.is_ip) {
        struct decide_verdict dialled;
        decide_address(rules, &verdict->host.ip, 1, t->port, &dialled);
        if (dialled.kind != DECIDE_ALLOW)
            *verdict = dialled;
    }
}

static bool
one_of(const char *reason, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(reason, words[i]) == 0)
            return true;
    return false;
}

/* The flag that opens it; none for what no rule opens. */
static void
suggest(const struct policy *p, const struct target *t, const char *reason, struct why *out)
{
    static const char *const curable[] = { "network-none", "network-no-rule", "port-no-rule", "address-no-rule" };
    bool six = t->host.is_ip && t->host.ip.family == 6, usual = t->port == 80 || t->port == 443;
    /* a flag's "none" is not overruled by another flag */
    const char *network = p->network.v == NETWORK_NONE && p->network.from.kind == ORIGIN_FLAG
                              ? "--network allowlist " : "";
    char port[8] = "";

    if (!one_of(reason, curable, ARRAY_LEN(curable)))
        return;
    if (p->mode.v == MODE_LIGHT) {
        snprintf(out->flag, sizeof(out->flag), "--network host");
        return;
    }
    if (host_is_own_name((struct str){ t->host.name, t->host.n })) {
        snprintf(out->flag, sizeof(out->flag), "%s--allow-host-port %u", network, t->port);
        return;
    }
    if (!usual || strcmp(reason, "port-no-rule") == 0)
        snprintf(port, sizeof(port), ":%u", t->port);
    snprintf(out->flag, sizeof(out->flag), "%s--allow-domain %s%s%s%s", network, six ? "[" : "", t->host.name,
             six ? "]" : "", port);
}

static void
explain(const struct target *t, const struct decide_verdict *v, bool calls_none, struct why *out)
{
    const char *at = t->port_given ? "" : " (asked about port 443)";

    if (v->kind == DECIDE_ALLOW && v->inspect)
        why_say(out, "rules for it look at method or path%s: ask about a request with --method and --url-path", at);
    else if (v->kind == DECIDE_ALLOW && strcmp(v->reason, "allow-host-port") == 0)
        why_say(out, "it is port %u of this host's loopback, which is open to the sandbox%s", t->port, at);
    else if (v->kind == DECIDE_ALLOW && calls_none)
        why_say(out, "the rule \"%s\" allows it%s, if it calls no tool: ask about one with --tool", out->rule, at);
    else if (v->kind == DECIDE_ALLOW)
        why_say(out, "the rule \"%s\" allows it%s", out->rule, at);
    else if (strcmp(v->reason, "mcp-body") == 0)
        why_say(out, "rules for %s look at what tool is called, and cannot here: %s", t->host.name, v->detail);
    else if (out->rule[0] != '\0')
        why_say(out, "the rule \"%s\" refuses it%s", out->rule, at);
    else if (strcmp(v->reason, "network-none") == 0)
        why_say(out, "the sandbox has no network");
    else if (strcmp(v->reason, "port-no-rule") == 0)
        why_say(out, "a rule names %s, but none its port %u", t->host.name, t->port);
    else if (strcmp(v->reason, "scope-no-rule") == 0)
        why_say(out, "rules name %s, but none this method and path", t->host.name);
    else if (strcmp(v->reason, "mcp-no-rule") == 0)
        why_say(out, "rules open tools of the MCP server at %s, but not this one", t->host.name);
    else if (strcmp(v->reason, "path-ambiguous") == 0)
        why_say(out, "rules for %s look at paths, and servers read this one in different ways", t->host.name);
    else if (strcmp(v->reason, "address-no-rule") == 0)
        why_say(out, "%s is a %s address and no rule is that address%s", t->host.name,
                ip_class_name(ip_classify(t->host.ip)), at);
    else if (strcmp(v->reason, "network-no-rule") == 0)
        why_say(out, "no rule names %s, and what no rule names is closed", t->host.name);
    else
        why_say(out, "whatever the rules: %s", v->detail);
}

int
egress_why_host(const struct policy *p, const struct ip *own, size_t n_own, const char *target,
                const struct why_request *request, struct why *out, struct err *err)
{
    cleanup_decide_rules struct decide_rules rules = DECIDE_RULES_INIT;
    struct decide_verdict verdict;
    struct target t;

    memset(out, 0, sizeof(*out));
    if (parse_target(target, &t, err) < 0)
        return -1;
    if (p->mode.v == MODE_OFF || p->network.v == NETWORK_HOST) {
        out->allowed = true;
        out->reason = "network-host";
        out->source = p->network.from;
        why_say(out, "the sandbox has the host's own network");
        return 0;
    }
    if (decide_compile(p, &rules, err) < 0)
        return -1;
    rules.own = own;
    rules.n_own = n_own;
    judge(&rules, &t, request, &verdict);
    out->allowed = verdict.kind == DECIDE_ALLOW;
    out->reason = verdict.reason;
    out->source = verdict.from;
    snprintf(out->rule, sizeof(out->rule), "%.*s", (int)verdict.rule.n, verdict.rule.n > 0 ? verdict.rule.p : "");
    explain(&t, &verdict, rules.mcp && verdict.narrow && request != NULL && request->tool == NULL, out);
    suggest(p, &t, verdict.reason, out);
    return 0;
}
