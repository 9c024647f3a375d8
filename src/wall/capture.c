/* wall/capture.c: see capture.h */
#include "wall/capture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"

#define LOOPBACK_INDEX 1        /* `lo` is the first interface of every namespace */
#define BACKLOG        1024
#define LAST_TABLE     100      /* of the route, where it is the last */
#define LAST_PRIORITY  32768    /* after main and default */

#ifndef IPV6_FREEBIND
#define IPV6_FREEBIND 78        /* Linux 4.15 */
#endif

struct route_request {
    struct nlmsghdr h;
    struct rtmsg r;
    struct rtattr oif_header;
    uint32_t oif;
    struct rtattr source_header;        /* IPv4, where it is the last */
    struct in_addr source;
};

struct rule_request {
    struct nlmsghdr h;
    struct fib_rule_hdr r;
    struct rtattr priority_header;
    uint32_t priority;
    struct rtattr protocol_header;
    uint8_t protocol, pad[3];
    struct rtattr ports_header;
    struct fib_rule_port_range ports;
};

struct address_request {
    struct nlmsghdr h;
    struct ifaddrmsg a;
    struct rtattr header;
    uint8_t address[16];
};

struct route_answer {
    struct nlmsghdr h;
    struct nlmsgerr e;
};

static int
fail(struct err *err, const char *what)
{
    return err_sys(err, errno, "wall.capture", "capture the network: %s", what);
}

/* Send and hear what the kernel says. */
static int
ask(int netlink, const void *request, size_t size, const char *what, struct err *err)
{
    union { struct route_answer answer; char room[1024]; } got;
    ssize_t n;

    if (send(netlink, request, size, 0) != (ssize_t)size)
        return fail(err, what);
    n = recv(netlink, &got, sizeof(got), 0);
    if (n < (ssize_t)sizeof(got.answer) || got.answer.h.nlmsg_type != NLMSG_ERROR)
        return err_set(err, ERR_PROTOCOL, "wall.capture", "capture the network: no answer about the %s", what);
    errno = -got.answer.e.error;
    return errno != 0 ? fail(err, what) : 0;
}

/* `ip address add ADDRESS/32 dev lo`: with 127.0.0.1 and ::1 alone a resolver that looks at the host's addresses first
 * (AI_ADDRCONFIG) takes it for a host without network, and asks for nothing. */
static int
add_address(int netlink, int family, const char *text, struct err *err)
{
    size_t size = family == AF_INET ? 4 : 16;
    struct address_request request = {
        .h = { .nlmsg_len = (uint32_t)(offsetof(struct address_request, address) + size), .nlmsg_type = RTM_NEWADDR,
               .nlmsg_seq = (uint32_t)family, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL },
        .a = { .ifa_family = (uint8_t)family, .ifa_prefixlen = (uint8_t)(8 * size), .ifa_flags = IFA_F_NODAD,
               .ifa_scope = RT_SCOPE_UNIVERSE, .ifa_index = LOOPBACK_INDEX },
        .header = { .rta_len = (unsigned short)RTA_LENGTH(size), .rta_type = IFA_LOCAL },
    };

    if (inet_pton(family, text, request.address) != 1)
        return err_set(err, ERR_SYSTEM, "wall.capture", "the service address is invalid");
    return ask(netlink, &request, request.h.nlmsg_len, "service address", err);
}

/* `ip rule add priority 32768 ipproto PROTOCOL dport PORT lookup 100` */
static int
look_last(int netlink, uint8_t family, uint8_t protocol, uint16_t port, struct err *err)
{
    const struct rule_request request = {
        .h = { .nlmsg_len = sizeof(request), .nlmsg_type = RTM_NEWRULE, .nlmsg_seq = family,
               .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL },
        .r = { .family = family, .table = LAST_TABLE, .action = FR_ACT_TO_TBL },
        .priority_header = { .rta_len = RTA_LENGTH(sizeof(uint32_t)), .rta_type = FRA_PRIORITY },
        .priority = LAST_PRIORITY,
        .protocol_header = { .rta_len = RTA_LENGTH(sizeof(uint8_t)), .rta_type = FRA_IP_PROTO },
        .protocol = protocol,
        .ports_header = { .rta_len = RTA_LENGTH(sizeof(request.ports)), .rta_type = FRA_DPORT_RANGE },
        .ports = { .start = port, .end = port },
    };

    return ask(netlink, &request, sizeof(request), "rule of routes", err);
}

/* What is listened on, and nothing else: an address that is ours by such a route is none that the kernel refuses from,
 * so where nobody listens there has to be no route. */
static int
look_last_for(int netlink, uint8_t family, const uint16_t *ports, size_t n_ports, struct err *err)
{
    static const uint16_t always[] = { 53, 80, 443 };

    if (look_last(netlink, family, IPPROTO_UDP, 53, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(always) + n_ports; i++) {
        uint16_t port = i < ARRAY_LEN(always) ? always[i] : ports[i - ARRAY_LEN(always)];
        if (look_last(netlink, family, IPPROTO_TCP, port, err) < 0)
            return -1;
    }
    return 0;
}

/* `ip route add local default dev lo`. The last one names the address that who connects has: the kernel takes the
 * destination for it, and looks for that in the table of all others only. */
static int
route_everything_here(int netlink, uint8_t family, enum capture_order order, struct err *err)
{
    bool names = family == AF_INET && order == CAPTURE_LAST;
    struct route_request request = {
        .h = { .nlmsg_len = names ? sizeof(request) : offsetof(struct route_request, source_header),
               .nlmsg_type = RTM_NEWROUTE, .nlmsg_seq = family,
               .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL },
        .r = { .rtm_family = family, .rtm_table = order == CAPTURE_LAST ? LAST_TABLE : RT_TABLE_LOCAL,
               .rtm_protocol = RTPROT_STATIC, .rtm_scope = RT_SCOPE_HOST, .rtm_type = RTN_LOCAL },
        .oif_header = { .rta_len = RTA_LENGTH(sizeof(uint32_t)), .rta_type = RTA_OIF },
        .oif = LOOPBACK_INDEX,
        .source_header = { .rta_len = RTA_LENGTH(sizeof(struct in_addr)), .rta_type = RTA_PREFSRC },
    };

    if (inet_pton(AF_INET, CAPTURE_SERVICE_ADDRESS, &request.source) != 1)
        return err_set(err, ERR_SYSTEM, "wall.capture", "the service address is invalid");
    return ask(netlink, &request, request.h.nlmsg_len, family == AF_INET ? "IPv4 route" : "IPv6 route", err);
}

static int
listen_at(int type, const struct sockaddr *address, socklen_t n, struct err *err)
{
    cleanup_close int fd = socket(address->sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1, off = 0;

    if (fd < 0)
        return fail(err, "socket");
    if (address->sa_family == AF_INET6) {
        if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0)
            return fail(err, "IPV6_V6ONLY");
        /* an answer comes from the address that was asked, which is ours by the route only */
        if (type == SOCK_DGRAM && (setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on)) < 0 ||
                                   setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof(on)) < 0))
            return fail(err, "IPV6_RECVPKTINFO");
    }
    if (type == SOCK_DGRAM && setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on)) < 0)
        return fail(err, "IP_PKTINFO");
    if (bind(fd, address, n) < 0)
        return fail(err, "bind");
    if (type == SOCK_STREAM && listen(fd, BACKLOG) < 0)
        return fail(err, "listen");
    return take_fd(&fd);
}

/* Port @port of every address. */
static int
listen_everywhere(int type, uint16_t port, bool v6, struct err *err)
{
    const struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    const struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(port) };

    return v6 ? listen_at(type, (const struct sockaddr *)&six, sizeof(six), err)
              : listen_at(type, (const struct sockaddr *)&four, sizeof(four), err);
}

static int
listen_service(uint16_t port, struct err *err)
{
    struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(port) };

    if (inet_pton(AF_INET, CAPTURE_SERVICE_ADDRESS, &four.sin_addr) != 1)
        return err_set(err, ERR_SYSTEM, "wall.capture", "the service address is invalid");
    return listen_at(SOCK_STREAM, (const struct sockaddr *)&four, sizeof(four), err);
}

static int
open_all(const uint16_t *ports, size_t n_ports, int fds[CAPTURE_LISTENERS], bool v6, struct err *err)
{
    fds[CAPTURE_DNS_UDP] = listen_everywhere(SOCK_DGRAM, 53, v6, err);
    fds[CAPTURE_DNS_TCP] = fds[CAPTURE_DNS_UDP] < 0 ? -1 : listen_everywhere(SOCK_STREAM, 53, v6, err);
    fds[CAPTURE_HTTP] = fds[CAPTURE_DNS_TCP] < 0 ? -1 : listen_everywhere(SOCK_STREAM, 80, v6, err);
    fds[CAPTURE_TLS] = fds[CAPTURE_HTTP] < 0 ? -1 : listen_everywhere(SOCK_STREAM, 443, v6, err);
    fds[CAPTURE_PROXY] = fds[CAPTURE_TLS] < 0 ? -1 : listen_service(CAPTURE_PROXY_PORT, err);
    fds[CAPTURE_SOCKS] = fds[CAPTURE_PROXY] < 0 ? -1 : listen_service(CAPTURE_SOCKS_PORT, err);
    if (fds[CAPTURE_SOCKS] < 0)
        return -1;
    for (size_t i = 0; i < n_ports; i++) {
        fds[CAPTURE_PORT + i] = listen_everywhere(SOCK_STREAM, ports[i], v6, err);
        if (fds[CAPTURE_PORT + i] < 0)
            return err_wrap(err, "port %u", ports[i]);
    }
    return 0;
}

/* They answer from the address that was asked, which is ours by the route only: with CAPTURE_LAST not by one that the
 * kernel looks at. */
static int
answer_from_everywhere(const int fds[CAPTURE_LISTENERS], struct err *err)
{
    const int on = 1;

    for (size_t i = 0; i < CAPTURE_LISTENERS; i++)
        if (fds[i] >= 0 && setsockopt(fds[i], IPPROTO_IP, IP_TRANSPARENT, &on, sizeof(on)) < 0)
            return fail(err, "IP_TRANSPARENT");
    return 0;
}

/* Whether this namespace has IPv6: compiled in, and not switched off for new interfaces (disable_ipv6). When it has, it
 * has the service's address afterwards. 1, 0, or -1 with @err. */
static int
try_ipv6(int netlink, struct err *err)
{
    cleanup_close int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return 0;
    if (add_address(netlink, AF_INET6, CAPTURE_SERVICE_ADDRESS_6, err) == 0)
        return 1;
    return errno == EACCES || errno == EOPNOTSUPP || errno == EADDRNOTAVAIL ? 0 : -1;
}

int
capture_open(const uint16_t *ports, size_t n_ports, enum capture_order order, int fds[CAPTURE_LISTENERS],
             struct err *err)
{
    cleanup_close int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    int six;

    for (size_t i = 0; i < CAPTURE_LISTENERS; i++)
        fds[i] = -1;
    if (n_ports > CAPTURE_PORTS_MAX)
        return err_set(err, ERR_LIMIT, "wall.capture", "%zu ports; the limit is %d", n_ports, CAPTURE_PORTS_MAX);
    if (netlink < 0)
        return fail(err, "netlink");
    if (add_address(netlink, AF_INET, CAPTURE_SERVICE_ADDRESS, err) < 0 ||
        route_everything_here(netlink, AF_INET, order, err) < 0)
        return -1;
    six = try_ipv6(netlink, err);
    if (six < 0 || (six > 0 && route_everything_here(netlink, AF_INET6, order, err) < 0))
        return -1;
    if (order == CAPTURE_LAST && (look_last_for(netlink, AF_INET, ports, n_ports, err) < 0 ||
                                  (six > 0 && look_last_for(netlink, AF_INET6, ports, n_ports, err) < 0)))
        return -1;
    if (open_all(ports, n_ports, fds, six > 0, err) == 0 &&
        (order == CAPTURE_FIRST || answer_from_everywhere(fds, err) == 0))
        return 0;
    for (size_t i = 0; i < CAPTURE_LISTENERS; i++)
        close_fd(&fds[i]);
    return -1;
}
