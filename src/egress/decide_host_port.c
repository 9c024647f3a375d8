/* egress/decide_host_port.c: see decide_host_port.h */
#include "egress/decide_host_port.h"

static const char *const names[] = { HOST_OWN_NAMES };

enum host_fault
decide_host_port_pattern(struct str port, struct host_pattern *out)
{
    uint64_t number;
    enum host_fault fault = host_pattern_cloche(str_of(names[0]), out);

    if (!str_parse_u64(port, UINT16_MAX, &number) || number == 0)
        return HOST_BAD_PORT;
    out->port = (uint16_t)number;
    return fault;
}

bool
decide_names_host(const struct decide_rules *rules, const struct host *host)
{
    return rules->host_ports.n > 0 && host_is_own_name((struct str){ host->name, host->n });
}

const struct decide_rule *
decide_find_host_port(const struct decide_rules *rules, uint16_t port)
{
    for (size_t i = 0; i < rules->host_ports.n; i++)
        if (port == 0 || rules->host_ports.v[i].pattern.port == port)
            return &rules->host_ports.v[i];
    return NULL;
}

bool
decide_is_host_port(const struct decide_rules *rules, const struct host *host, uint16_t port)
{
    return !rules->closed && port != 0 && decide_names_host(rules, host) && decide_find_host_port(rules, port) != NULL;
}
