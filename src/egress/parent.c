/* egress/parent.c: see parent.h */
#include "egress/parent.h"

#include <string.h>

#include "base/base64.h"
#include "match/proxy.h"

static void
set_authorization(struct parent *parent, const struct proxy_url *url)
{
    uint8_t room[PARENT_AUTH_MAX];
    struct buf out = BUF_INIT_IN(room, sizeof(room));

    _Static_assert(PARENT_AUTH_MAX >= 6 + (PROXY_USER_MAX + 2) / 3 * 4, "room for all of it");
    buf_puts(&out, "Basic ");
    (void)base64_put(&out, url->user, url->user_n);
    memcpy(parent->authorization, out.p, out.n);
    parent->authorization_n = out.n;
}

int
parents_add(struct parents *p, enum parent_part part, struct str text, struct err *err)
{
    struct parent *parent = part == PARENT_HTTP ? &p->http : &p->https;
    struct proxy_url url;
    enum proxy_fault fault;

    if (part == PARENT_NO_PROXY) {
        p->no_proxy.max = NO_PROXY_MAX;
        return buf_append(&p->no_proxy, text.p, text.n) == 0
                   ? 0 : err_set(err, ERR_LIMIT, "egress.parent", "too many hosts without a proxy");
    }
    fault = proxy_parse(text, &url);
    if (fault != PROXY_OK)
        return err_set(err, ERR_PROTOCOL, "egress.parent", "the parent proxy %s", proxy_fault_text(fault));
    parent->host = url.host;
    parent->port = url.port;
    if (url.user_n > 0)
        set_authorization(parent, &url);
    if (url.host.is_ip) {
        parent->known[0] = url.host.ip;
        parent->n_known = 1;
    }
    return 0;
}

struct parent *
parents_for(struct parents *p, bool plain_http, const struct host *host, uint16_t port)
{
    struct parent *parent = plain_http || p->https.host.n == 0 ? &p->http : &p->https;

    if (parent->host.n == 0 || proxy_skips((struct str){ (const char *)p->no_proxy.p, p->no_proxy.n }, host, port))
        return NULL;
    return parent;
}

static bool
is_named(const struct parent *parent, const struct host *host, uint16_t port)
{
    return parent->host.n > 0 && parent->port == port && parent->host.n == host->n &&
           memcmp(parent->host.name, host->name, host->n) == 0;
}

bool
parents_named(const struct parents *p, const struct host *host, uint16_t port)
{
    return is_named(&p->http, host, port) || is_named(&p->https, host, port) ||
           (host->is_ip && parents_at(p, &host->ip, port));
}

static bool
is_at(const struct parent *parent, const struct ip *ip, uint16_t port)
{
    if (parent->port != port)
        return false;
    for (size_t i = 0; i < parent->n_known; i++)
        if (ip_eq(&parent->known[i], ip))
            return true;
    return false;
}

static bool
has_port(const struct parent *parent, uint16_t port)
{
    return parent->host.n > 0 && parent->port == port;
}

bool
parents_port(const struct parents *p, uint16_t port)
{
    return has_port(&p->http, port) || has_port(&p->https, port);
}

bool
parents_at(const struct parents *p, const struct ip *ip, uint16_t port)
{
    return is_at(&p->http, ip, port) || is_at(&p->https, ip, port);
}
