/* match/door.c: addresses to listen on, Host and Origin (see door.h) */
#include "match/door.h"

#include <string.h>

static bool
after(struct str *s, struct str prefix)
{
    if (!str_starts(*s, prefix))
        return false;
    *s = (struct str){ s->p + prefix.n, s->n - prefix.n };
    return true;
}

static bool
tcp(struct str text, struct door *out, const char **why)
{
    const char *colon = memrchr(text.p, ':', text.n);
    struct str host, port;
    uint64_t number;

    *why = "has no port: tcp:127.0.0.1:PORT, tcp:[::1]:PORT; port 0 is any free one";
    if (colon == NULL)
        return false;
    host = (struct str){ text.p, (size_t)(colon - text.p) };
    port = (struct str){ colon + 1, text.n - host.n - 1 };
    *why = "has a port that is not a number up to 65535";
    if (!str_parse_u64(port, 65535, &number) || port.n > 5)
        return false;
    *why = "names no address: a host's name may lead anywhere, so it takes 127.0.0.1, [::1] or another address";
    if (host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']') {
        host = (struct str){ host.p + 1, host.n - 2 };
        if (!ip_parse(host, &out->ip) || out->ip.family != 6)
            return false;
    } else if (!ip_parse(host, &out->ip) || out->ip.family != 4) {
        return false;
    }
    out->tcp = true;
    out->port = (uint16_t)number;
    return true;
}

bool
door_parse(struct str text, struct door *out, const char **why)
{
    *out = (struct door){ .tcp = false };
    *why = "holds a NUL";
    if (memchr(text.p, '\0', text.n) != NULL)
        return false;
    if (after(&text, STR_LIT("tcp:")))
        return tcp(text, out, why);
    *why = "is neither unix:PATH nor tcp:ADDRESS:PORT";
    if (!after(&text, STR_LIT("unix:")))
        return false;
    out->path = text;
    *why = "has no path: unix:PATH";
    return text.n > 0;
}

bool
door_is_loopback(const struct door *door)
{
    return !door->tcp || ip_classify(door->ip) == IP_LOOPBACK;
}

bool
door_host(struct str value, uint16_t default_port, const struct host_pattern *allowed, size_t n, bool any_address)
{
    struct host host;
    struct str name;
    uint16_t port;

    if (host_split_port(value, &name, &port) != HOST_OK || host_canonical(name, &host) != HOST_OK)
        return false;
    if (any_address && host.is_ip)
        return true;
    for (size_t i = 0; i < n; i++)
        if (host_match(&allowed[i], &host, port != 0 ? port : default_port))
            return true;
    return false;
}

static bool
origin(struct str rest, bool https, struct door_origin *out)
{
    struct str name;
    uint16_t port;

    *out = (struct door_origin){ .https = https };
    if (host_split_port(rest, &name, &port) != HOST_OK || host_canonical(name, &out->host) != HOST_OK)
        return false;
    out->port = port != 0 ? port : https ? 443 : 80;
    return true;
}

bool
door_origin(struct str value, struct door_origin *out)
{
    bool https = after(&value, STR_LIT("https://"));

    return (https || after(&value, STR_LIT("http://"))) && origin(value, https, out);
}

bool
door_origin_of_host(struct str value, bool https, struct door_origin *out)
{
    return origin(value, https, out);
}

bool
door_origin_eq(const struct door_origin *a, const struct door_origin *b)
{
    return a->https == b->https && a->port == b->port && a->host.n == b->host.n &&
           memcmp(a->host.name, b->host.name, a->host.n) == 0;
}
