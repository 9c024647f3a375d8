/* egress/decide_kin.c: see decide_kin.h */
#include "egress/decide_kin.h"

/* From the end to the front, so that one pass goes by all ends of a name: FNV-1a. */
#define SEED  2166136261u
#define PRIME 16777619u

static uint64_t
bit(uint32_t hash)
{
    return (uint64_t)1 << ((hash ^ hash >> 15) % 64);
}

uint64_t
decide_kin_of_host(const struct host *host)
{
    uint32_t hash = SEED;
    uint64_t all = 0;

    if (host->is_ip)
        return KIN_ALL;
    for (size_t i = host->n; i > 0; i--) {
        if (host->name[i - 1] == '.')
            all |= bit(hash);
        hash = (hash ^ (uint8_t)host->name[i - 1]) * PRIME;
    }
    return all | bit(hash);
}

uint64_t
decide_kin_of_pattern(const struct host_pattern *pattern)
{
    uint32_t hash = SEED;

    if (pattern->kind == HOST_ANY || pattern->host.is_ip)
        return KIN_ALL;
    for (size_t i = pattern->host.n; i > 0; i--)
        hash = (hash ^ (uint8_t)pattern->host.name[i - 1]) * PRIME;
    return bit(hash);
}
