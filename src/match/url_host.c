/* match/url_host.c: see url_host.h */
#include "match/url_host.h"

#include <stdio.h>
#include <string.h>

static bool
scheme_is(struct str url, struct str scheme)
{
    if (url.n < scheme.n)
        return false;
    for (size_t i = 0; i < scheme.n; i++) {
        char c = url.p[i];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if (c != scheme.p[i])
            return false;
    }
    return true;
}

/* Up to the first of "/?#". A backslash there is a slash to some parsers, so it is none to us. */
static bool
authority(struct str rest, struct str *out)
{
    size_t n = 0;

    while (n < rest.n && rest.p[n] != '/' && rest.p[n] != '?' && rest.p[n] != '#')
        if (rest.p[n++] == '\\')
            return false;
    *out = (struct str){ rest.p, n };
    return true;
}

bool
url_host(struct str url, char out[URL_HOST_MAX])
{
    bool tls = scheme_is(url, STR_LIT("https://"));
    size_t skip = tls ? 8 : 7;
    struct str text, name;
    struct host host;
    const char *at;
    uint16_t port;
    bool six;

    if ((!tls && !scheme_is(url, STR_LIT("http://"))) ||
        !authority((struct str){ url.p + skip, url.n - skip }, &text))
        return false;
    at = text.n > 0 ? memchr(text.p, '@', text.n) : NULL;
    if (at != NULL)
        text = (struct str){ at + 1, text.n - (size_t)(at + 1 - text.p) };
    if (host_split_port(text, &name, &port) != HOST_OK || host_canonical(name, &host) != HOST_OK)
        return false;
    six = host.is_ip && host.ip.family == 6;
    snprintf(out, URL_HOST_MAX, "%s%s%s:%u", six ? "[" : "", host.name, six ? "]" : "",
             port != 0 ? port : tls ? 443U : 80U);
    return true;
}
