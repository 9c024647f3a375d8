/* policy/ports.c: ports of hosts that programs inside connect to without knowing of a proxy */
#include "match/host.h"
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

bool
policy_tcp_ports(const struct policy *p, uint16_t out[POLICY_TCP_PORTS_MAX], size_t *n,
                 const struct policy_entry **over)
{
    *n = 0;
    for (size_t i = 0; i < p->allow_domains.n; i++) {
        const struct policy_entry *entry = &p->allow_domains.v[i];
        struct host_pattern pattern;
        size_t at = 0;
        uint16_t port;
        if ((p->srt ? host_pattern_srt(str_of(entry->value), false, &pattern)
                    : host_pattern_cloche(str_of(entry->value), &pattern)) != HOST_OK)
            continue;
        port = wanted_port(p, &pattern);
        if (port == 0 || has_listener(port))
            continue;
        while (at < *n && out[at] != port)
            at++;
        if (at < *n)
            continue;
        if (*n == POLICY_TCP_PORTS_MAX && pattern.port == 0)
            continue;       /* nobody named it */
        if (*n == POLICY_TCP_PORTS_MAX) {
            if (over != NULL)
                *over = entry;
            return false;
        }
        out[(*n)++] = port;
    }
    return true;
}
