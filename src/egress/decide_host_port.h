/* egress/decide_host_port.h: ports of the host's own loopback, by two names that nobody can own (decide.c's own) */
#ifndef CLOCHE_EGRESS_DECIDE_HOST_PORT_H
#define CLOCHE_EGRESS_DECIDE_HOST_PORT_H

#include "egress/decide.h"

/* Of a port alone, in decimal, at the first of the names. */
enum host_fault decide_host_port_pattern(struct str port, struct host_pattern *out);
/* Whether @host is one of the names, and any port is open. */
bool decide_names_host(const struct decide_rules *rules, const struct host *host);
/* The rule that opens @port; 0 (DNS): any of them. NULL: none does. */
const struct decide_rule *decide_find_host_port(const struct decide_rules *rules, uint16_t port);

#endif
