/* policy/publish.c: ports of the sandbox that are reached from the host */
#include <stdio.h>
#include <string.h>

#include "match/publish.h"
#include "policy/internal.h"
#include "policy/why.h"

int
entry_publish(struct policy *p, struct str text, struct policy_entry *entry, const struct where *w, struct err *err)
{
    struct publish v;
    char canonical[PUBLISH_TEXT_MAX], shown[SHOW_MAX];
    const char *wrong = publish_parse(text, &v);

    if (wrong != NULL) {
        where_fail(w, err, "policy.publish", "%s %s", show(text, shown), wrong);
        return err_hint(err, "PORT, HPORT:PORT, ADDRESS:PORT or ADDRESS:HPORT:PORT, such as 3000 or 8080:80");
    }
    publish_format(&v, canonical);
    entry->value = arena_copy(p->arena, str_of(canonical));
    return 0;
}

/* Behind these ports of a sandbox whose network is open by name is cloche-egress, at its loopback address too. */
static bool
leads_out(const struct policy *p, uint16_t port)
{
    uint16_t ports[POLICY_TCP_PORTS_MAX];
    size_t n = 0;

    if (p->network.v != NETWORK_ALLOWLIST)
        return false;
    if (port == 53 || port == 80 || port == 443)
        return true;
    (void)policy_tcp_ports(p, ports, &n, NULL);
    for (size_t i = 0; i < n; i++)
        if (ports[i] == port)
            return true;
    return false;
}

int
check_publish(const struct policy *p, struct err *err)
{
    const struct policy_entry *e = p->publish.v;
    struct publish v;

    if (p->publish.n == 0)
        return 0;
    if (p->network.v == NETWORK_HOST) {
        REFUSE(&e->from, NULL, "policy.publish.host", "the sandbox has the host's own network: its ports are there "
               "already");
        return err_hint(err, "leave it out, or \"network: host\"");
    }
    if (p->publish.n > PUBLISH_MAX)
        return REFUSE(&e->from, NULL, "policy.publish.many", "more than %d ports", PUBLISH_MAX);
    for (; e < p->publish.v + p->publish.n; e++) {
        if (publish_parse(str_of(e->value), &v) != NULL || !leads_out(p, v.port))
            continue;
        REFUSE(&e->from, NULL, "policy.publish.reserved", "port %u of this sandbox leads out of it: no server of its "
               "own can have it where the network is open by name", (unsigned)v.port);
        return err_hint(err, "let the server listen on another port, such as 8080");
    }
    return 0;
}

void
policy_why_port(const struct policy *p, uint16_t port, struct why *out)
{
    struct publish v;

    *out = (struct why){ .allowed = false, .reason = "not-published", .source = p->publish.from };
    for (size_t i = 0; i < p->publish.n; i++) {
        const struct policy_entry *e = &p->publish.v[i];
        if (publish_parse(str_of(e->value), &v) != NULL || v.port != port)
            continue;
        out->allowed = true;
        out->reason = "published";
        out->source = e->from;
        snprintf(out->rule, sizeof(out->rule), "%s", e->written);
        why_say(out, "the host reaches it at %.*s", (int)(strrchr(e->value, ':') - e->value), e->value);
        return;
    }
    if (p->network.v == NETWORK_HOST) {
        out->allowed = true;
        out->reason = "host-network";
        out->source = p->network.from;
        why_say(out, "the network is the host's own");
    } else if (leads_out(p, port)) {
        out->reason = "reserved";
        out->source = p->network.from;
        why_say(out, "that port leads out of the sandbox: no server of its own can have it");
    } else {
        why_say(out, "no port of a sandbox is reached from the host unless it is named");
        if (p->mode.v != MODE_LIGHT)
            snprintf(out->flag, sizeof(out->flag), port < PUBLISH_PRIVILEGED ? "--publish 8080:%u" : "--publish %u",
                     (unsigned)port);
    }
}
