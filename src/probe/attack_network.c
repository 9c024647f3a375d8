/* probe/attack_network.c: ways out, sockets of the host, socket families */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "probe/attack.h"

#define COUNT(rows) ARRAY_LEN(rows)

/* A TCP connection within @ms. When nobody answers at all the packet has still left: that is no wall. */
static enum outcome
dial(struct attempt *a, const struct sockaddr *to, socklen_t to_n, const char *name, int ms)
{
    cleanup_close int fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct pollfd p = { .fd = fd, .events = POLLOUT };
    int error = 0;
    socklen_t n = sizeof(error);

    if (fd < 0)
        return outcome_of(a, BLOCKED, "socket: %s", strerror(errno));
    if (connect(fd, to, to_n) == 0)
        return outcome_of(a, SUCCEEDED, "%s answers", name);
    if (errno != EINPROGRESS && errno != EAGAIN)
        return outcome_of(a, BLOCKED, "%s: %s", name, strerror(errno));
    if (poll(&p, 1, ms) == 0)
        return outcome_of(a, SUCCEEDED, "a packet went to %s; nobody answered", name);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) == 0 && error == 0)
        return outcome_of(a, SUCCEEDED, "%s answers", name);
    return outcome_of(a, BLOCKED, "%s: %s", name, strerror(error));
}

enum outcome
attack_host_loopback(struct attempt *a)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(a->p->tcp_port) };

    if (a->p->tcp_port == 0)
        return outcome_of(a, NOT_APPLICABLE, "no bait listens");
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return dial(a, (struct sockaddr *)&to, sizeof(to), "the host's 127.0.0.1", 1000);
}

enum outcome
attack_metadata(struct attempt *a)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(80) };

    to.sin_addr.s_addr = htonl(0xa9fea9fe);
    return dial(a, (struct sockaddr *)&to, sizeof(to), "169.254.169.254", 300);
}

/* Connecting a datagram socket asks for a route and sends nothing. */
static enum outcome
route(struct attempt *a, const struct sockaddr *to, socklen_t n, const char *name)
{
    cleanup_close int fd = socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return outcome_of(a, BLOCKED, "socket: %s", strerror(errno));
    if (connect(fd, to, n) == 0)
        return outcome_of(a, SUCCEEDED, "there is a route to %s", name);
    return outcome_of(a, BLOCKED, "%s: %s", name, strerror(errno));
}

enum outcome
attack_route_out(struct attempt *a)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(53) };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(53) };

    v4.sin_addr.s_addr = htonl(0xc0000201);     /* 192.0.2.1 and 2001:db8::1: for documentation only */
    v6.sin6_addr.s6_addr[0] = 0x20;
    v6.sin6_addr.s6_addr[1] = 0x01;
    v6.sin6_addr.s6_addr[2] = 0x0d;
    v6.sin6_addr.s6_addr[3] = 0xb8;
    v6.sin6_addr.s6_addr[15] = 1;
    if (route(a, (struct sockaddr *)&v6, sizeof(v6), "2001:db8::1") == SUCCEEDED)
        return SUCCEEDED;
    return route(a, (struct sockaddr *)&v4, sizeof(v4), "192.0.2.1");
}

static enum outcome
try_socket(struct attempt *a, int family, int type, int protocol, const char *name)
{
    cleanup_close int fd = socket(family, type | SOCK_CLOEXEC, protocol);

    if (fd >= 0)
        return outcome_of(a, SUCCEEDED, "a socket of %s was made", name);
    return outcome_of(a, BLOCKED, "%s: %s", name, strerror(errno));
}

enum outcome
attack_raw_sockets(struct attempt *a)
{
    if (try_socket(a, AF_INET, SOCK_RAW, IPPROTO_ICMP, "raw IPv4") == SUCCEEDED ||
        try_socket(a, AF_INET6, SOCK_RAW, IPPROTO_ICMPV6, "raw IPv6") == SUCCEEDED ||
        try_socket(a, AF_INET, SOCK_RAW, IPPROTO_RAW, "raw IP") == SUCCEEDED)
        return SUCCEEDED;
    return try_socket(a, AF_PACKET, SOCK_RAW, htons(3), "AF_PACKET");
}

enum outcome
attack_odd_families(struct attempt *a)
{
    static const struct { int family, type; const char *name, *protocol; } rows[] = {
        { 40, SOCK_STREAM, "AF_VSOCK", "AF_VSOCK" },   { 38, SOCK_SEQPACKET, "AF_ALG", "ALG" },
        { 44, SOCK_RAW, "AF_XDP", "XDP" },             { 15, SOCK_RAW, "AF_KEY", "KEY" },
        { 30, SOCK_SEQPACKET, "AF_TIPC", "TIPC" },     { 29, SOCK_RAW, "AF_CAN", "CAN_RAW" },
        { 31, SOCK_RAW, "AF_BLUETOOTH", "HCI" },       { 21, SOCK_SEQPACKET, "AF_RDS", "RDS" },
        { 43, SOCK_STREAM, "AF_SMC", "SMC" },          { 41, SOCK_SEQPACKET, "AF_KCM", "KCM" },
        { 39, SOCK_SEQPACKET, "AF_NFC", "NFC" },       { 42, SOCK_DGRAM, "AF_QIPCRTR", "QIPCRTR" },
        { 45, SOCK_DGRAM, "AF_MCTP", "MCTP" },         { 9, SOCK_SEQPACKET, "AF_X25", "X25" },
        { 3, SOCK_DGRAM, "AF_AX25", "AX25" },          { 24, SOCK_STREAM, "AF_PPPOX", "PPPOX" },
    };
    static char registered[65536];
    enum outcome o = outcome_of(a, NOT_APPLICABLE, "no such family is loaded, and asking for one would load it");

    /* asking for an absent family makes the kernel load its module: bare, only those that are there are tried */
    if (a->p->bare && read_small("/proc/net/protocols", registered, sizeof(registered)) < 0)
        return o;
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (a->p->bare && strstr(registered, rows[i].protocol) == NULL)
            continue;
        o = try_socket(a, rows[i].family, rows[i].type, 0, rows[i].name);
        if (o == SUCCEEDED)
            return o;
    }
    return o;
}

enum outcome
attack_netlink(struct attempt *a)
{
    static const struct { int protocol; bool builtin; const char *name;
    } rows[] = {
        { 15, true, "NETLINK_KOBJECT_UEVENT" }, { 16, true, "NETLINK_GENERIC" },
        { 9, false, "NETLINK_AUDIT" },          { 12, false, "NETLINK_NETFILTER" },
        { 6, false, "NETLINK_XFRM" },           { 4, false, "NETLINK_SOCK_DIAG" },
        { 21, false, "NETLINK_CRYPTO" },        { 11, false, "NETLINK_CONNECTOR" },
        { 18, false, "NETLINK_SCSITRANSPORT" },
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        if ((!a->p->bare || rows[i].builtin) &&
            try_socket(a, AF_NETLINK, SOCK_RAW, rows[i].protocol, rows[i].name) == SUCCEEDED)
            return SUCCEEDED;
    return BLOCKED;
}

enum outcome
attack_make_interface(struct attempt *a)
{
    cleanup_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq r = { 0 };

    memcpy(r.ifr_name, "lo", 3);
    if (fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &r) == 0) {
        enum outcome o = judge(a, "SIOCSIFFLAGS (to what they are)", ioctl(fd, SIOCSIFFLAGS, &r));
        if (o != BLOCKED)
            return o;
    }
    return try_open(a, "/dev/net/tun", O_RDWR);
}

/* @abstract: without the path's place in the file system. Every type that a daemon may listen with. */
static enum outcome
connect_unix(struct attempt *a, const char *path, bool abstract)
{
    static const int types[] = { SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM };
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    size_t n = strlen(path);
    socklen_t size;

    if (n + 1 >= sizeof(to.sun_path))
        return outcome_of(a, NOT_APPLICABLE, "%s is too long for a socket", path);
    memcpy(to.sun_path + abstract, path, n);
    size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
    for (size_t i = 0; i < COUNT(types); i++) {
        cleanup_close int fd = socket(AF_UNIX, types[i] | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

        if (fd < 0) {
            outcome_of(a, BLOCKED, "socket: %s", strerror(errno));
            continue;
        }
        if (connect(fd, (struct sockaddr *)&to, size) == 0)
            return outcome_of(a, SUCCEEDED, "connected to %s%s", abstract ? "@" : "", path);
        /* the wrong type, or a full queue: the socket was found, and only its manners stand between */
        if (errno == EAGAIN)
            return outcome_of(a, SUCCEEDED, "%s%s is there (%s)", abstract ? "@" : "", path, strerror(errno));
        outcome_of(a, BLOCKED, "%s%s: %s", abstract ? "@" : "", path, strerror(errno));
    }
    return BLOCKED;
}

enum outcome
attack_host_unix_socket(struct attempt *a)
{
    return a->p->unix_path == NULL ? outcome_of(a, NOT_APPLICABLE, "no bait listens")
                                   : connect_unix(a, a->p->unix_path, false);
}

enum outcome
attack_host_abstract_socket(struct attempt *a)
{
    return a->p->unix_abstract == NULL ? outcome_of(a, NOT_APPLICABLE, "no bait listens")
                                       : connect_unix(a, a->p->unix_abstract, true);
}

enum outcome
attack_control_sockets(struct attempt *a)
{
    static const char *const paths[] = {
        "/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock",
        "/run/crio/crio.sock", "/var/run/crio/crio.sock", "/run/k3s/containerd/containerd.sock", "/run/dockershim.sock",
        "/run/buildkit/buildkitd.sock", "/var/lib/lxd/unix.socket", "/run/libvirt/libvirt-sock", "/run/snapd.socket",
        "/run/dbus/system_bus_socket", "/run/systemd/private", "/run/systemd/notify", "/run/systemd/journal/stdout",
        "/var/lib/kubelet/device-plugins/kubelet.sock",
    };
    enum outcome o = absent(a, "any control socket");

    for (size_t i = 0; i < COUNT(paths); i++) {
        if (access(paths[i], F_OK) < 0)
            continue;
        o = connect_unix(a, paths[i], false);
        if (o == SUCCEEDED)
            return o;
    }
    return o;
}
