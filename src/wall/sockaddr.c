/* wall/sockaddr.c: see sockaddr.h */
#include "wall/sockaddr.h"

#include <string.h>

socklen_t
sockaddr_of(const struct ip *ip, uint16_t port, union address *out)
{
    memset(out, 0, sizeof(*out));
    if (ip->family == 4) {
        out->four = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port) };
        memcpy(&out->four.sin_addr, ip->b, 4);
        return sizeof(out->four);
    }
    out->six = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(port) };
    memcpy(&out->six.sin6_addr, ip->b, 16);
    return sizeof(out->six);
}

bool
sockaddr_ip(const struct sockaddr *a, size_t n, struct ip *out, uint16_t *port)
{
    const struct sockaddr_in *four = (const void *)a;
    const struct sockaddr_in6 *six = (const void *)a;

    memset(out, 0, sizeof(*out));
    if (a != NULL && n >= sizeof(*four) && a->sa_family == AF_INET) {
        out->family = 4;
        memcpy(out->b, &four->sin_addr, 4);
    } else if (a != NULL && n >= sizeof(*six) && a->sa_family == AF_INET6) {
        out->family = 6;
        memcpy(out->b, &six->sin6_addr, 16);
    } else {
        return false;
    }
    if (port != NULL)
        *port = ntohs(out->family == 4 ? four->sin_port : six->sin6_port);
    return true;
}

bool
sockaddr_local(int fd, struct ip *out, uint16_t *port)
{
    union address a;
    socklen_t n = sizeof(a);

    memset(out, 0, sizeof(*out));
    if (getsockname(fd, &a.any, &n) < 0 || !sockaddr_ip(&a.any, n, out, port))
        return false;
    if (out->family == 6 && IN6_IS_ADDR_V4MAPPED(&a.six.sin6_addr)) {
        memset(out, 0, sizeof(*out));
        out->family = 4;
        memcpy(out->b, a.six.sin6_addr.s6_addr + 12, 4);
    }
    return true;
}
