/* match/publish.c: see publish.h */
#include "match/publish.h"

#include <stdio.h>
#include <string.h>

/* What stands behind the last colon of @s, which becomes what is before it. Without one all of it, and @s is "". */
static struct str
last_part(struct str *s)
{
    size_t at = s->n;
    struct str part;

    while (at > 0 && s->p[at - 1] != ':')
        at--;
    part = (struct str){ s->p + at, s->n - at };
    s->n = at > 0 ? at - 1 : 0;
    return part;
}

static bool
is_number(struct str s)
{
    uint64_t v;

    return str_parse_u64(s, UINT64_MAX, &v);
}

static bool
address(struct str s, struct ip *out)
{
    bool bracketed = s.n > 2 && s.p[0] == '[' && s.p[s.n - 1] == ']';

    if (bracketed)
        s = (struct str){ s.p + 1, s.n - 2 };
    return ip_parse(s, out) && (out->family == 6) == bracketed;
}

const char *
publish_parse(struct str text, struct publish *out)
{
    static const struct ip here = { .b = { 127, 0, 0, 1 }, .family = 4 };
    struct str rest = text, last = last_part(&rest), second;
    uint64_t port, host_port;

    out->ip = here;
    if (!str_parse_u64(last, UINT16_MAX, &port) || port == 0 || (rest.n == 0 && last.n != text.n))
        return "is no port of the sandbox: a number from 1 to 65535";
    host_port = port;
    if (rest.n > 0 && rest.p[rest.n - 1] != ']') {
        struct str before = rest;
        second = last_part(&before);
        if (is_number(second)) {
            if (!str_parse_u64(second, UINT16_MAX, &host_port))
                return "names no port of the host: a number up to 65535";
            if (before.n == 0 && second.n != rest.n)
                return "has an empty address";
            rest = before;
        }
    }
    if (rest.n > 0 && !address(rest, &out->ip))
        return "names no address of this host: an IPv4 address, or an IPv6 address in brackets";
    if (host_port > 0 && host_port < PUBLISH_PRIVILEGED)
        return "names a privileged port of the host (below 1024)";
    out->host_port = (uint16_t)host_port;
    out->port = (uint16_t)port;
    return NULL;
}

void
publish_format(const struct publish *p, char out[PUBLISH_TEXT_MAX])
{
    char ip[IP_TEXT_MAX];
    bool six = p->ip.family == 6;

    ip_format(&p->ip, ip);
    snprintf(out, PUBLISH_TEXT_MAX, "%s%s%s:%u:%u", six ? "[" : "", ip, six ? "]" : "", (unsigned)p->host_port,
             (unsigned)p->port);
}

bool
publish_is_local(const struct publish *p)
{
    return ip_classify(p->ip) == IP_LOOPBACK;
}
