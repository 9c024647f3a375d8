/* match/hook_url.c: see hook_url.h */
#include "match/hook_url.h"

#include <string.h>

#include "match/ip.h"

static bool
is_here(const struct host *host)
{
    return host->is_ip ? ip_classify(host->ip) == IP_LOOPBACK
                       : str_eq((struct str){ host->name, host->n }, STR_LIT("localhost"));
}

static const char *
fault_of(struct str url, struct hook_url *out)
{
    size_t scheme = str_starts(url, STR_LIT("https://")) ? 8 : str_starts(url, STR_LIT("http://")) ? 7 : 0, end;
    struct str host;

    if (url.n > HOOK_URL_MAX)
        return "is too long";
    for (size_t i = 0; i < url.n; i++)
        if (url.p[i] <= ' ' || url.p[i] > '~' || url.p[i] == '#' || url.p[i] == '"' || url.p[i] == '\\')
            return "contains a character that is not allowed in a URL here";
    if (scheme == 0)
        return "does not begin with https:// (or http://, to this host)";
    for (end = scheme; end < url.n && url.p[end] != '/' && url.p[end] != '?'; end++)
        ;
    out->https = scheme == 8;
    out->port = 0;
    out->authority = (struct str){ url.p + scheme, end - scheme };
    out->path = (struct str){ url.p + end, url.n - end };
    if (out->path.n > 0 && out->path.p[0] == '?')
        return "has no path before its query";
    if (memchr(out->authority.p, '@', out->authority.n) != NULL)
        return "has a user or password";
    if (host_split_port(out->authority, &host, &out->port) != HOST_OK || host_canonical(host, &out->host) != HOST_OK)
        return "names no host and port";
    if (out->port == 0)
        out->port = out->https ? 443 : 80;
    return out->https || is_here(&out->host)
               ? NULL : "is http to another host: what is told would go there in the clear";
}

bool
hook_url(struct str url, struct hook_url *out, const char **why)
{
    *why = fault_of(url, out);
    return *why == NULL;
}
