/* policy/ports.c: ports of hosts that programs inside connect to without knowing of a proxy; a port, an address as
 * values of a list */
#include <stdio.h>

#include "match/host.h"
#include "match/ip.h"
#include "policy/internal.h"

#define SSH_PORT 22

/* Someone listens on these inside anyway: names, HTTP, TLS, and the proxy's own two. */
static bool
has_listener(uint16_t port)
{
    return port == 53 || port == 80 || port == 443 || port == 1080 || port == 3128;
}

/* A rule of SRT's without a port is every port. One of those speaks a protocol whose clients know no proxy and that
 * people expect of such a rule: SSH, and git over it. The others need a proxy request. */
static uint16_t
wanted_port(const struct policy *p, const struct host_pattern *pattern)
{
    return pattern->port == 0 && p->srt ? SSH_PORT : pattern->port;
}

/* False: there is no room for it. */
static bool
port_add(uint16_t out[POLICY_TCP_PORTS_MAX], size_t *n, uint16_t port)
{
    size_t at = 0;

    while (at < *n && out[at] != port)
        at++;
    if (at < *n)
        return true;
    if (*n == POLICY_TCP_PORTS_MAX)
        return false;
    out[(*n)++] = port;
    return true;
}

bool
policy_tcp_ports(const struct policy *p, uint16_t out[POLICY_TCP_PORTS_MAX], size_t *n,
                 const struct policy_entry **over)
{
    *n = 0;
    for (size_t i = 0; i < p->host_ports.n; i++) {
        uint64_t port;
        if (!str_parse_u64(str_of(p->host_ports.v[i].value), 65535, &port) || has_listener((uint16_t)port) ||
            port_add(out, n, (uint16_t)port))
            continue;
        if (over != NULL)
            *over = &p->host_ports.v[i];
        return false;
    }
    for (size_t i = 0; i < p->allow_domains.n; i++) {
        const struct policy_entry *entry = &p->allow_domains.v[i];
        struct host_pattern pattern;
        uint16_t port;
        if ((p->srt ? host_pattern_srt(str_of(entry->value), false, &pattern)
                    : host_pattern_cloche(str_of(entry->value), &pattern)) != HOST_OK)
            continue;
        port = wanted_port(p, &pattern);
        if (port == 0 || has_listener(port))
            continue;
        if (port_add(out, n, port) || pattern.port == 0)      /* 0: nobody named it */
            continue;
        if (over != NULL)
            *over = entry;
        return false;
    }
    return true;
}

int
entry_port(struct policy *p, struct str text, struct policy_entry *entry, const struct where *w, struct err *err)
{
    char shown[SHOW_MAX], canonical[8];
    uint64_t port;

    if (!str_parse_u64(text, 65535, &port) || port == 0) {
        where_fail(w, err, "policy.port", "%s is not a port from 1 to 65535", show(text, shown));
        return err_hint(err, "a number alone, such as 11434: what is reached is always this host's loopback");
    }
    snprintf(canonical, sizeof(canonical), "%u", (unsigned)port);
    entry->value = arena_copy(p->arena, str_of(canonical));
    return 0;
}

int
entry_address(struct policy *p, struct str text, struct policy_entry *entry, const struct where *w, struct err *err)
{
    char canonical[IP_TEXT_MAX], shown[SHOW_MAX];
    struct ip ip;

    if (!ip_parse(text, &ip)) {
        where_fail(w, err, "policy.dns", "%s is not an address", show(text, shown));
        return err_hint(err, "write it like 9.9.9.9 or 2620:fe::fe; its port is 53");
    }
    ip_format(&ip, canonical);
    entry->value = arena_copy(p->arena, str_of(canonical));
    return 0;
}
