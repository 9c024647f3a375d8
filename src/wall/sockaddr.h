/* wall/sockaddr.h: between struct ip and what the kernel calls an address */
#ifndef CLOCHE_WALL_SOCKADDR_H
#define CLOCHE_WALL_SOCKADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "match/ip.h"

union address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

/* @ip and @port into @out; how long that is. */
socklen_t sockaddr_of(const struct ip *ip, uint16_t port, union address *out);
/* What @a (of @n bytes; may be NULL) says, @port may be NULL. False: it is no internet address. */
bool sockaddr_ip(const struct sockaddr *a, size_t n, struct ip *out, uint16_t *port);
/* The local end of @fd: where a connection that was accepted was made to. IPv4 at a socket for both is IPv4. False: it
 * has none. */
bool sockaddr_local(int fd, struct ip *out, uint16_t *port);

#endif
