/* engine/native/net.c: the cgroup of what carries a sandbox's network */
#include <stdio.h>

#include "engine/native/native.h"

#define NET_MEMORY       (512UL * 1024 * 1024)
#define NET_MEMORY_LEAST (64UL * 1024 * 1024)

/* What carries a sandbox's connections works for it and counts against what it may have, beside it: the sandbox must
 * not be able to have its own gatekeeper killed for want of memory that it used itself. */
void
native_net_find(struct native *sb, const struct policy *p)
{
    uint64_t memory = p->limits.memory.v > 0 && p->limits.memory.v < NET_MEMORY ? p->limits.memory.v : NET_MEMORY;
    char name[sizeof(sb->id) + 8];

    if (p->network.v != NETWORK_ALLOWLIST || p->mode.v == MODE_LIGHT)
        return;
    memory = memory < NET_MEMORY_LEAST ? NET_MEMORY_LEAST : memory;
    sb->net_limits = (struct cgroup_limits){ .memory = memory, .sockets = memory };
    snprintf(name, sizeof(name), "%s-net", sb->id);
    cgroup_find(&sb->net_cgroup, name, &sb->net_limits);
}

/* Without one it goes on: the process bounds its own memory (egress/confine.c). */
void
native_net_make(struct native *sb)
{
    struct err err = ERR_INIT;

    if (cgroup_make(&sb->net_cgroup, -1, &sb->net_limits, &err) < 0)
        plan_warn(&sb->plan, "what carries the network is in no cgroup: %s", err.msg);
}
