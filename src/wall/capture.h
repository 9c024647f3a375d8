/* wall/capture.h: a network namespace in which every address leads to listeners of ours
 *
 * The namespace has `lo` and nothing else. A local default route (`ip route add local default dev lo`, for IPv6 too)
 * makes every destination an address of this host, so that a connection to anywhere arrives at whoever listens on its
 * port here, and getsockname(2) on it tells where it was meant to go. Where nobody listens it is refused at once. The
 * listeners are handed out to a process in another namespace, which accepts on them: a socket stays in the namespace
 * that it was made in. No address translation, no virtual cable, no privilege on the host.
 */
#ifndef CLOCHE_WALL_CAPTURE_H
#define CLOCHE_WALL_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Where proxies and the name server are, as the sandbox sees them: an address for benchmarks (RFC 2544) that no name is
 * ever given, so that ports of the loopback address stay the sandbox's own. */
#define CAPTURE_SERVICE_ADDRESS "198.18.0.1"
#define CAPTURE_SERVICE_ADDRESS_6 "fd63:6c6f:6368::1"   /* so that there is an address of each family */
#define CAPTURE_PROXY_PORT 3128
#define CAPTURE_SOCKS_PORT 1080
#define CAPTURE_PORTS_MAX  32

enum capture_listener {
    CAPTURE_DNS_UDP,        /* one socket for both families; the destination comes as packet information */
    CAPTURE_DNS_TCP,
    CAPTURE_HTTP,           /* 80, any address */
    CAPTURE_TLS,            /* 443, any address */
    CAPTURE_PROXY,          /* CAPTURE_SERVICE_ADDRESS */
    CAPTURE_SOCKS,
    CAPTURE_PORT,           /* the first of up to CAPTURE_PORTS_MAX further ports, any address */
    CAPTURE_LISTENERS = CAPTURE_PORT + CAPTURE_PORTS_MAX
};

/* Where the route is: before all others; or after all others, for a network in which others come to be (a machine with
 * bridges of its own, whose containers arrive here by it). The last one is for the ports that are listened on: for
 * others there is none. */
enum capture_order { CAPTURE_FIRST, CAPTURE_LAST };

/* In a fresh network namespace in which `lo` is up: routes and listeners (O_CLOEXEC, non-blocking) into @fds, also for
 * the @n_ports further @ports, none of which is one of the others'; -1 where there is none. A port that is listened on
 * at any address is taken at 127.0.0.1 as well. The caller has CAP_NET_ADMIN and CAP_NET_BIND_SERVICE there. 0, or -1
 * with @err and every descriptor closed. Without IPv6 in the kernel there is IPv4 alone. */
int capture_open(const uint16_t *ports, size_t n_ports, enum capture_order order, int fds[CAPTURE_LISTENERS],
                 struct err *err);

#endif
