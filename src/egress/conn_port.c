/* egress/conn_port.c: a plain TCP connection to a port that a rule names
 *
 * Where it was made to is all that is known, and in many protocols the server speaks first. So it is decided on at
 * once, and carried like a tunnel: a beginning that names a host must name this one.
 */
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "egress/conn.h"

#define TLS_HANDSHAKE 0x16

static uint16_t
port_of(int fd)
{
    union { struct sockaddr any; struct sockaddr_in four; struct sockaddr_in6 six; } a;
    socklen_t n = sizeof(a);

    if (getsockname(fd, &a.any, &n) < 0)
        return 0;
    return ntohs(a.any.sa_family == AF_INET6 ? a.six.sin6_port : a.four.sin_port);
}

void
conn_port_arrived(struct conn *c)
{
    struct decide_request request = { .via = DECIDE_TCP, .ip = c->held ? NULL : &c->meant };
    struct decide_verdict verdict;

    c->port = request.port = port_of(c->client.fd);
    if (c->held)
        request.host = (struct str){ c->host.name, c->host.n };
    if (!conn_decide(c, &request, &verdict, conn_port_arrived))
        return;
    if (verdict.kind == DECIDE_ALLOW && verdict.inspect) {
        /* the requests in it are decided on, when it says what it is */
        if (loop_watch(&c->e->loop, &c->client, EPOLLIN) < 0)
            conn_end(c);
        return;
    }
    c->host = verdict.host;
    if (verdict.kind == DECIDE_ALLOW)
        conn_go(c, verdict.host.is_ip ? &c->meant : NULL);
    else
        conn_refuse(c, verdict.reason, verdict.detail, verdict.rule);
}

void
conn_port_first(struct conn *c)
{
    bool tls = c->in.p[0] == TLS_HANDSHAKE;

    c->came = tls ? CAPTURE_TLS : CAPTURE_HTTP;
    c->speech = tls ? SPEECH_TLS : SPEECH_HTTP;
    conn_first(c);
}
