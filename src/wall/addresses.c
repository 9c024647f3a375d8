/* wall/addresses.c: see addresses.h */
#include "wall/addresses.h"

#include <errno.h>
#include <ifaddrs.h>

#include "wall/sockaddr.h"

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
        if (!sockaddr_ip(a->ifa_addr, sizeof(union address), &ip, NULL))
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
