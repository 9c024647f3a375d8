/* hosts/registry_trust.c: certificates that a registry's client is set up for, and addresses that no name opens */
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "hosts/registry_priv.h"
#include "match/host.h"
#include "match/ip.h"
#include "program/say.h"

int
registry_trust(struct registry *r, const char *file)
{
    if (file == NULL || file[0] != '/')
        return 0;
    if (registry_check_config(r, file) < 0)
        return -1;
    json_array_append_new(r->cas, json_string(file));
    return 0;
}

/* An address of @host that is not public, into @out. */
static bool
is_inner(const struct host *host, char out[IP_TEXT_MAX])
{
    const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    struct addrinfo *found = NULL;
    bool inner = false;

    if (host->is_ip || getaddrinfo(host->name, NULL, &hints, &found) != 0)
        return false;
    for (const struct addrinfo *a = found; a != NULL && !inner; a = a->ai_next) {
        char text[NI_MAXHOST];
        struct ip ip;
        inner = getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof(text), NULL, 0, NI_NUMERICHOST) == 0 &&
                ip_parse(str_of(text), &ip) && ip_classify(ip) != IP_PUBLIC;
        if (inner)
            ip_format(&ip, out);
    }
    freeaddrinfo(found);
    return inner;
}

void
registry_look_up(struct registry *r)
{
    for (size_t i = 0; i < r->n && r->p->parent_proxy.http.p == NULL; i++) {
        struct host_pattern pattern;
        char ip[IP_TEXT_MAX];
        if (host_pattern_cloche(str_of(r->hosts[i]), &pattern) == HOST_OK && is_inner(&pattern.host, ip))
            json_object_set_new(r->inner, r->hosts[i], json_string(ip));
    }
}

void
registry_say_inner(const char *origin, const json_t *inner)
{
    const char *host;
    json_t *ip;

    /* jansson's macro takes no const */
    json_object_foreach((json_t *)(uintptr_t)inner, host, ip) {
        const char *address = json_string_value(ip), *port = strrchr(host, ':');
        bool v6 = address != NULL && strchr(address, ':') != NULL;
        if (address != NULL)
            cli_warn("%s: %s leads to %s, which is not a public address: names never open such, so it will be refused "
                     "(address-no-rule); if it is meant: --allow-domain '%s%s%s%s'",
                     origin, host, address, v6 ? "[" : "", address, v6 ? "]" : "", port != NULL ? port : "");
    }
}
