/* wall/addresses.c: see addresses.h */
#include "wall/addresses.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

/* False for what is no internet address. */
static bool
address_of(const struct sockaddr *a, struct ip *out)
{
    memset(out, 0, sizeof(*out));
    if (a == NULL || (a->sa_family != AF_INET && a->sa_family != AF_INET6))
        return false;
    out->family = a->sa_family == AF_INET ? 4 : 6;
    if (out->family == 4)
        memcpy(out->b, &((const struct sockaddr_in *)(const void *)a)->sin_addr, 4);
    else
        memcpy(out->b, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr, 16);
    return true;
}

int
interface_addresses(struct ip out[ADDRESSES_MAX], size_t *n, struct err *err)
{
    struct ifaddrs *list = NULL;
    bool fits = true;

    *n = 0;
    if (getifaddrs(&list) < 0)
        return err_sys(err, errno, "wall.addresses", "getifaddrs");
    for (struct ifaddrs *a = list; a != NULL && fits; a = a->ifa_next) {
        struct ip ip;
        if (!address_of(a->ifa_addr, &ip))
            continue;
        fits = *n < ADDRESSES_MAX;
        if (fits)
            out[(*n)++] = ip;
    }
    freeifaddrs(list);
    if (!fits)
        return err_set(err, ERR_LIMIT, "wall.addresses", "the host has more than %d addresses", ADDRESSES_MAX);
    return 0;
}
