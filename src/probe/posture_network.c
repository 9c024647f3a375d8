/* probe/posture_network.c: interfaces, routes, listeners, abstract sockets */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "probe/probe.h"

#define LINES_MAX 500

/* Calls @fn for each line of @path after @skip lines. False when it cannot be read. */
static bool
each_line(const char *path, unsigned skip, void (*fn)(struct jw *, const char *), struct jw *j)
{
    static char text[1 << 18];
    char *line = text;

    if (read_small(path, text, sizeof(text)) <= 0)
        return false;
    for (unsigned n = 0; *line != '\0' && n < LINES_MAX + skip; n++) {
        char *end = strchr(line, '\n');

        if (end != NULL)
            *end = '\0';
        if (n >= skip)
            fn(j, line);
        if (end == NULL)
            break;
        line = end + 1;
    }
    return true;
}

/* As each_line, of a file that is always there: a list that cannot be had is not an empty one. */
static void
each_line_of(const char *path, unsigned skip, void (*fn)(struct jw *, const char *), struct jw *j)
{
    if (!each_line(path, skip, fn, j))
        jw_text(j, NULL, path);
}

static void
put_interface(struct jw *j, const char *line)
{
    line += strspn(line, " ");
    jw_bytes(j, NULL, line, strcspn(line, ":"));
}

/* "Iface Destination Gateway ..." */
static void
put_route(struct jw *j, const char *line)
{
    jw_bytes(j, NULL, line, strcspn(line, "\t "));
}

/* The last word of an ipv6_route line is the device. */
static void
put_route6(struct jw *j, const char *line)
{
    size_t n = strlen(line), start;

    while (n > 0 && line[n - 1] == ' ')
        n--;
    start = n;
    while (start > 0 && line[start - 1] != ' ')
        start--;
    jw_bytes(j, NULL, line + start, n - start);
}

/* "sl local remote state ...": state 0A listens (TCP), 07 is an unconnected UDP socket */
static void
put_listener(struct jw *j, const char *line, const char *state)
{
    const char *colon = strchr(line, ':'), *local, *at;

    if (colon == NULL)
        return;
    local = colon + 1 + strspn(colon + 1, " ");
    at = local + strcspn(local, " ");
    at += strspn(at, " ");
    at += strcspn(at, " ");
    at += strspn(at, " ");
    if (strncmp(at, state, 2) == 0)
        jw_bytes(j, NULL, local, strcspn(local, " "));
}

static void
put_tcp(struct jw *j, const char *line)
{
    put_listener(j, line, "0A");
}

static void
put_udp(struct jw *j, const char *line)
{
    put_listener(j, line, "07");
}

/* "Num RefCount Protocol Flags Type St Inode Path": abstract names start with @ */
static void
put_abstract(struct jw *j, const char *line)
{
    const char *at = strstr(line, " @");

    if (at != NULL)
        jw_text(j, NULL, at + 1);
}

/* Does the kernel have a way to the documentation address 192.0.2.1? Connecting a datagram socket sends nothing. */
static bool
has_route_out(void)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
    cleanup_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    to.sin_addr.s_addr = htonl(0xc0000201);
    return fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0;
}

void
posture_network(struct jw *j)
{
    struct if_nameindex *names = if_nameindex();

    jw_array(j, "interfaces");
    if (names != NULL) {
        for (struct if_nameindex *i = names; i->if_index != 0; i++)
            jw_text(j, NULL, i->if_name);
        if_freenameindex(names);
    } else {
        each_line_of("/proc/self/net/dev", 2, put_interface, j);
    }
    jw_end_array(j);
    jw_array(j, "routes");
    each_line_of("/proc/self/net/route", 1, put_route, j);
    (void)each_line("/proc/self/net/ipv6_route", 0, put_route6, j);
    jw_end_array(j);
    jw_array(j, "tcp_listeners");
    each_line_of("/proc/self/net/tcp", 1, put_tcp, j);
    (void)each_line("/proc/self/net/tcp6", 1, put_tcp, j);
    jw_end_array(j);
    jw_array(j, "udp_sockets");
    each_line_of("/proc/self/net/udp", 1, put_udp, j);
    (void)each_line("/proc/self/net/udp6", 1, put_udp, j);
    jw_end_array(j);
    jw_array(j, "abstract_sockets");
    each_line_of("/proc/self/net/unix", 1, put_abstract, j);
    jw_end_array(j);
    jw_bool(j, "route_out", has_route_out());
}
