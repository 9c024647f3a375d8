/* match/proxy.c: see proxy.h */
#include "match/proxy.h"

#include <string.h>

const char *
proxy_fault_text(enum proxy_fault fault)
{
    switch (fault) {
    case PROXY_OK: return "is right";
    case PROXY_TOO_LONG: return "is too long";
    case PROXY_SCHEME: return "is not reached over plain http";
    case PROXY_HOST: return "names no host";
    case PROXY_PORT: return "has no port from 1 to 65535";
    case PROXY_USER: return "has a user or password that cannot be read";
    case PROXY_PATH: return "has something behind its port";
    }
    return "";
}

static struct str
from(struct str s, size_t at)
{
    return (struct str){ s.p + at, s.n - at };
}

static enum proxy_fault
decode_user(struct str text, struct proxy_url *out)
{
    for (size_t i = 0; i < text.n; i++) {
        uint64_t byte = (uint8_t)text.p[i];

        if (byte == '%') {
            if (text.n - i < 3 || !str_parse_hex((struct str){ text.p + i + 1, 2 }, 255, &byte))
                return PROXY_USER;
            i += 2;
        }
        if (byte < 0x20 || byte == 0x7f || out->user_n == sizeof(out->user))
            return PROXY_USER;
        out->user[out->user_n++] = (char)byte;
    }
    return PROXY_OK;
}

static enum proxy_fault
parse_authority(struct str text, struct proxy_url *out)
{
    struct str host;

    out->port = 80;
    if (host_split_port(text, &host, &out->port) != HOST_OK)
        return PROXY_PORT;
    if (out->port == 0)
        out->port = 80;
    return host_canonical(host, &out->host) == HOST_OK ? PROXY_OK : PROXY_HOST;
}

enum proxy_fault
proxy_parse(struct str url, struct proxy_url *out)
{
    static const char http[] = "http://";
    const char *at;
    size_t n = 0;

    memset(out, 0, sizeof(*out));
    if (url.n > PROXY_URL_MAX)
        return PROXY_TOO_LONG;
    if (str_starts(url, STR_LIT(http)))
        url = from(url, sizeof(http) - 1);
    else if (url.n >= 3 && memmem(url.p, url.n, "://", 3) != NULL)
        return PROXY_SCHEME;
    while (n < url.n && url.p[n] != '/' && url.p[n] != '?' && url.p[n] != '#')
        n++;
    if (n < url.n && !str_eq_c(from(url, n), "/"))
        return PROXY_PATH;
    url.n = n;
    at = n > 0 ? memrchr(url.p, '@', n) : NULL;
    if (at != NULL) {
        size_t user_n = (size_t)(at - url.p);
        if (decode_user((struct str){ url.p, user_n }, out) != PROXY_OK)
            return PROXY_USER;
        url = from(url, user_n + 1);
    }
    return parse_authority(url, out);
}

/* --- no_proxy ----------------------------------------------------------------------------------------------------- */

static bool
in_range(const struct ip *ip, struct str entry)
{
    const char *slash = memchr(entry.p, '/', entry.n);
    size_t n = (size_t)(slash - entry.p);
    struct ip range;
    uint64_t bits;

    if (!ip_parse((struct str){ entry.p, n }, &range) || range.family != ip->family ||
        !str_parse_u64(from(entry, n + 1), range.family == 4 ? 32 : 128, &bits))
        return false;
    for (size_t i = 0; i < bits; i++) {
        uint8_t bit = (uint8_t)(0x80 >> i % 8);
        if ((range.b[i / 8] & bit) != (ip->b[i / 8] & bit))
            return false;
    }
    return true;
}

/* @name ends in "." and @suffix. */
static bool
is_below(const struct host *host, const struct host *suffix)
{
    return host->n > suffix->n && host->name[host->n - suffix->n - 1] == '.' &&
           memcmp(host->name + host->n - suffix->n, suffix->name, suffix->n) == 0;
}

static bool
entry_fits(struct str entry, const struct host *host, uint16_t port)
{
    struct str name;
    struct host canonical;
    uint16_t only = 0;
    bool below = false;

    if (str_eq_c(entry, "*"))
        return true;
    if (memchr(entry.p, '/', entry.n) != NULL)
        return host->is_ip && in_range(&host->ip, entry);
    if (str_starts(entry, STR_LIT("*.")))
        entry = from(entry, 1);
    if (str_starts(entry, STR_LIT("."))) {
        entry = from(entry, 1);
        below = true;
    }
    if (host_split_port(entry, &name, &only) != HOST_OK || (only != 0 && only != port) ||
        host_canonical(name, &canonical) != HOST_OK)
        return false;
    if (canonical.is_ip || host->is_ip)
        return canonical.is_ip && host->is_ip && ip_eq(&canonical.ip, &host->ip);
    return is_below(host, &canonical) ||
           (!below && host->n == canonical.n && memcmp(host->name, canonical.name, host->n) == 0);
}

bool
proxy_skips(struct str list, const struct host *host, uint16_t port)
{
    size_t at = 0;

    while (at < list.n) {
        size_t n = 0;
        while (at + n < list.n && memchr(", \t", list.p[at + n], 3) == NULL)
            n++;
        if (n > 0 && entry_fits((struct str){ list.p + at, n }, host, port))
            return true;
        at += n + 1;
    }
    return false;
}
