/* egress/conn_inner.c: the first bytes in a tunnel that is open
 *
 * What names a host there must name the one that was asked for; other protocols pass. On 80 and 443 nothing else is
 * expected, and nothing else passes.
 */
#include <string.h>
#include <sys/epoll.h>

#include "egress/sniff.h"
#include "egress/tls_hello.h"
#include "egress/stages.h"

#define TLS_HANDSHAKE 0x16

static void
inner_tls(struct conn *c)
{
    struct tls_hello hello;
    enum tls_hello_status status = tls_hello_parse(c->in.p, c->in.n, &hello);
    const char *fault, *detail = "";

    if (status == TLS_HELLO_MORE && conn_may_wait(c))
        return;
    fault = status != TLS_HELLO_OK ? tls_hello_word(status) : conn_hello_fault(c, &hello, &detail);
    if (fault == NULL) {
        way_hello(c);
        return;
    }
    c->speech = SPEECH_TLS;
    conn_deny(c, DECIDE_TLS_SNI, fault, detail);
}

static void
inner_http(struct conn *c)
{
    struct http1_head head;
    struct host host;
    enum http1_result result = http1_parse_request(c->in.p, c->in.n, &head);

    if (result == HTTP1_MORE && conn_may_wait(c))
        return;
    c->speech = SPEECH_HTTP;
    if (result != HTTP1_OK)
        conn_deny(c, DECIDE_TLS_SNI, http1_word(result), "in a tunnel");
    else if (host_canonical(head.authority.host, &host) != HOST_OK || !conn_same_place(c, &host, c->port))
        conn_deny(c, DECIDE_TLS_SNI, "http-name-mismatch", "the request in the tunnel names another host");
    else
        way_request(c);
}

/* A protocol that cannot be read: passed on, unless a rule wants to see requests. */
static void
opaque(struct conn *c)
{
    if (c->inspect)
        conn_deny(c, DECIDE_TLS_SNI, "cannot-inspect", "a rule asks for more than can be seen in this protocol");
    else if (c->clear)
        conn_deny(c, DECIDE_TLS_SNI, "opaque-tunnel", "what cannot be looked into is refused");
    else
        way_opaque(c);
}

/* The tunnel is open. What names a host at its beginning must name the one that was asked for; other protocols pass. On
 * 80 and 443 nothing else is expected, and nothing else passes. */
static void
inner(struct conn *c)
{
    enum sniff what = sniff(c->in.p, c->in.n);
    bool known = c->port == 80 || c->port == 443;

    /* what servers may take for one of those all the same: any TLS version, empty lines before a request, h2 */
    if (c->in.n > 0 && c->in.p[0] == TLS_HANDSHAKE)
        what = SNIFF_TLS;
    if (c->in.n > 0 && (c->in.p[0] == '\r' || c->in.p[0] == '\n' || what == SNIFF_HTTP2)) {
        conn_deny(c, DECIDE_TLS_SNI, "tunnel-protocol", "a request that hides its host");
        return;
    }
    if (what == SNIFF_MORE && conn_may_wait(c)) {
        if (loop_watch(&c->e->loop, &c->client, EPOLLIN) < 0)
            conn_end(c);
        return;
    }
    if (what != SNIFF_TLS && what != SNIFF_MORE && c->server_tls != NULL)
        conn_drop_server(c);     /* likewise */
    if (what == SNIFF_TLS)
        inner_tls(c);
    else if (what == SNIFF_HTTP)
        inner_http(c);
    else if (known)
        conn_deny(c, DECIDE_TLS_SNI, "tunnel-protocol", "neither TLS nor HTTP in a tunnel to 80 or 443");
    else if (conn_look_line(c))
        opaque(c);
    else
        inner_http(c);
    if (c->state == CONN_INNER && loop_watch(&c->e->loop, &c->client, EPOLLIN) < 0)
        conn_end(c);
}

/* --- the stage --------------------------------------------------------------------------------------------------- */

void
inner_begin(struct conn *c)
{
    c->state = CONN_INNER;
    c->speech = SPEECH_NONE;
    c->seen = 0;
    /* on ports of their own the server may speak first, and ends the watch for a host's name by that */
    if (loop_watch(&c->e->loop, &c->server, c->port == 80 || c->port == 443 ? 0 : EPOLLIN) < 0)
        conn_end(c);
    else
        inner(c);
}

static void
client(struct conn *c, uint32_t events)
{
    (void)events;
    if (conn_read(c) < 0)
        conn_end(c);
    else
        inner(c);
}

/* The server speaks first: no protocol that names a host does that. A client that has begun is heard out. */
static void
server(struct conn *c, uint32_t events)
{
    (void)events;
    if (c->in.n == 0)
        opaque(c);
    else
        loop_watch(&c->e->loop, &c->server, 0);
}

const struct conn_stage stage_inner = { .client = client, .server = server, .leads_out = stage_leads_out };
