/* egress/conn_port.c: a plain TCP connection to a port that a rule names
 *
 * Where it was made to is all that is known, and in many protocols the server speaks first. So it is decided on at
 * once, and carried like a tunnel: a beginning that names a host must name this one.
 */
#include <sys/epoll.h>
#include <sys/socket.h>

#include "egress/conn.h"
#include "wall/sockaddr.h"

#define TLS_HANDSHAKE 0x16

void
conn_port_arrived(struct conn *c)
{
    struct decide_request request = { .via = DECIDE_TCP, .ip = c->held ? NULL : &c->meant };
    struct decide_verdict verdict;
    struct ip here;

    if (!sockaddr_local(c->client.fd, &here, &c->port))
        c->port = 0;
    request.port = c->port;
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
