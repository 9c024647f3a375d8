/* egress/conn_first.c: where does it want to go?
 *
 * A connection says so in one of four ways: by the address it was made to (which stands for a name), by the name in its
 * ClientHello, by a proxy request, by a Host field. Where it says so twice, both must be the same name.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "egress/dns_msg.h"
#include "egress/sniff.h"
#include "egress/tls_hello.h"
#include "egress/stages.h"
#include "wall/sockaddr.h"

#define TLS_HANDSHAKE 0x16

/* Decide about c->host (or @ip) at c->port, and go or refuse. */
static void
decide_and_go(struct conn *c, enum decide_via via, const struct ip *ip)
{
    struct decide_request request = { .via = via, .port = c->port, .ip = ip };
    struct decide_verdict verdict;

    c->asked_ip = ip != NULL ? *ip : (struct ip){ .family = 0 };
    if (ip == NULL)
        request.host = (struct str){ c->host.name, c->host.n };
    if (!conn_decide(c, &request, &verdict))
        return;
    conn_judged(c, &verdict);
    if (verdict.kind == DECIDE_ALLOW)
        way_allowed(c, ip);
    else
        conn_refuse(c, verdict.reason, verdict.detail, verdict.rule);
}

/* Port 443 of any address. */
static void
first_tls(struct conn *c)
{
    struct tls_hello hello;
    enum tls_hello_status status = tls_hello_parse(c->in.p, c->in.n, &hello);
    const char *fault, *detail;

    if (status == TLS_HELLO_MORE) {
        if (!conn_may_wait(c))
            conn_end(c);
        return;
    }
    if (status != TLS_HELLO_OK) {
        conn_deny(c, DECIDE_TLS_SNI, tls_hello_word(status), "");
        return;
    }
    if (!c->held) {
        /* an address that stands for no name: a literal, or one that was given out long ago */
        c->host = (struct host){ .is_ip = true, .ip = c->meant };
        c->host.n = ip_format(&c->meant, c->host.name);
    }
    fault = conn_hello_fault(c, &hello, &detail);
    if (fault != NULL)
        conn_deny(c, DECIDE_TLS_SNI, fault, detail);
    else
        decide_and_go(c, c->host.is_ip ? DECIDE_TCP : DECIDE_TLS_SNI, c->host.is_ip ? &c->meant : NULL);
}

/* --- SOCKS ------------------------------------------------------------------------------------------------------- */

static void
refuse_raw(struct conn *c, const void *answer, size_t n)
{
    c->speech = SPEECH_NONE;
    if (n > 0 && conn_say(c, answer, n) < 0)
        conn_end(c);
    else
        conn_refuse(c, "socks", "", (struct str){ "", 0 });
}

static void
socks_request(struct conn *c)
{
    struct socks5_request request;
    uint8_t reply[SOCKS5_REPLY_MAX];
    enum socks_status status = socks5_request(c->in.p, c->in.n, &request);

    if (status == SOCKS_MORE) {
        if (!conn_may_wait(c))
            conn_end(c);
        return;
    }
    if (status != SOCKS_OK) {
        refuse_raw(c, reply, status == SOCKS_REFUSED ? socks5_reply(request.code, NULL, 0, reply) : 0);
        return;
    }
    buf_consume(&c->in, request.consumed);
    c->speech = SPEECH_SOCKS;
    c->port = request.port;
    memset(&c->host, 0, sizeof(c->host));
    if (!request.is_name) {
        /* a client that resolved for itself brings a fake address: its name is meant */
        if (!fake_find(c->e->fakes, &request.ip, &c->host)) {
            decide_and_go(c, DECIDE_SOCKS, &request.ip);
            return;
        }
    } else {
        memcpy(c->host.name, request.host, request.host_n);
        c->host.n = request.host_n;
    }
    decide_and_go(c, DECIDE_SOCKS, NULL);
}

static void
first_socks(struct conn *c)
{
    struct socks5_greeting greeting;
    enum socks_status status;

    if (c->socks_greeted) {
        socks_request(c);
        return;
    }
    status = socks5_greeting(c->in.p, c->in.n, &greeting);
    if (status == SOCKS_MORE) {
        if (!conn_may_wait(c))
            conn_end(c);
        return;
    }
    if (status != SOCKS_OK) {
        refuse_raw(c, greeting.answer, status == SOCKS_REFUSED ? sizeof(greeting.answer) : 0);
        return;
    }
    if (conn_say(c, greeting.answer, sizeof(greeting.answer)) < 0) {
        conn_end(c);
        return;
    }
    buf_consume(&c->in, greeting.consumed);
    c->socks_greeted = true;
    if (c->in.n > 0)
        socks_request(c);
}

static void
first_socks4(struct conn *c)
{
    struct socks4_refusal refusal;
    enum socks_status status = socks4_request(c->in.p, c->in.n, &refusal);

    if (status == SOCKS_MORE && conn_may_wait(c))
        return;
    refuse_raw(c, refusal.answer, status == SOCKS_REFUSED ? sizeof(refusal.answer) : 0);
}

/* --- DNS over TCP ------------------------------------------------------------------------------------------------ */

static void
first_dns(struct conn *c)
{
    uint8_t answer[2 + DNS_REPLY_MAX];

    while (c->in.n >= 2) {
        size_t n = (size_t)c->in.p[0] << 8 | c->in.p[1], size;
        if (c->in.n < 2 + n)
            break;
        size = dns_answer(c->e, c->in.p + 2, n, true, answer + 2, DNS_REPLY_MAX);
        answer[0] = (uint8_t)(size >> 8);
        answer[1] = (uint8_t)size;
        buf_consume(&c->in, 2 + n);
        if (size == 0 || conn_say(c, answer, 2 + size) < 0) {
            conn_end(c);
            return;
        }
    }
    if (!conn_may_wait(c))
        conn_end(c);
}

/* --- the proxy port ---------------------------------------------------------------------------------------------- */

static void
first_proxy(struct conn *c)
{
    switch (sniff(c->in.p, c->in.n)) {
    case SNIFF_MORE:
        if (!conn_may_wait(c))
            conn_end(c);
        break;
    case SNIFF_HTTP:
        c->speech = SPEECH_HTTP;
        way_request(c);
        break;
    case SNIFF_SOCKS5: first_socks(c); break;
    case SNIFF_SOCKS4: first_socks4(c); break;
    case SNIFF_TLS:
        c->speech = SPEECH_TLS;
        conn_deny(c, DECIDE_TLS_SNI, "proxy-tls", "this port is a plain proxy");
        break;
    case SNIFF_HTTP2:
    case SNIFF_UNKNOWN: conn_end(c); break;
    }
}

/* --- a port that a rule names ------------------------------------------------------------------------------------ */

/* Where it was made to is all that is known, and in many protocols the server speaks first. So it is decided on at
 * once, and carried like a tunnel: a beginning that names a host must name this one. */
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
    if (!conn_decide(c, &request, &verdict))
        return;
    if (verdict.kind == DECIDE_ALLOW && (verdict.inspect || verdict.clear)) {
        /* the requests in it are decided on, when it says what it is */
        if (loop_watch(&c->e->loop, &c->client, EPOLLIN) < 0)
            conn_end(c);
        return;
    }
    conn_judged(c, &verdict);
    if (verdict.kind == DECIDE_ALLOW)
        way_allowed(c, verdict.host.is_ip ? &c->meant : NULL);
    else
        conn_refuse(c, verdict.reason, verdict.detail, verdict.rule);
}

/* --- the stage --------------------------------------------------------------------------------------------------- */

static void
first(struct conn *c, uint32_t events)
{
    (void)events;
    if (conn_read(c) < 0) {
        conn_end(c);
        return;
    }
    if (c->in.n == 0) {
        if (c->client_eof)
            conn_end(c);
        return;
    }
    if (c->came == CAPTURE_PORT) {
        bool tls = c->in.p[0] == TLS_HANDSHAKE;
        c->came = tls ? CAPTURE_TLS : CAPTURE_HTTP;
        c->speech = tls ? SPEECH_TLS : SPEECH_HTTP;
    }
    switch (c->came) {
    case CAPTURE_TLS: first_tls(c); break;
    case CAPTURE_HTTP: way_request(c); break;
    case CAPTURE_DNS_TCP: first_dns(c); break;
    case CAPTURE_PROXY:
    case CAPTURE_SOCKS:
        if (c->socks_greeted)
            first_socks(c);
        else
            first_proxy(c);
        break;
    case CAPTURE_PORT:
    case CAPTURE_DNS_UDP:
    case CAPTURE_LISTENERS: conn_end(c); break;
    }
}


/* Somebody was asked about it (conn_ask.c). */
static void
again(struct conn *c)
{
    const struct ip ip = c->asked_ip;

    if (c->came == CAPTURE_PORT)
        conn_port_arrived(c);
    else
        decide_and_go(c, c->asked_via, ip.family != 0 ? &ip : NULL);
}

static void
refused(struct conn *c, uint32_t question, const struct decide_request *request, const struct decide_verdict *verdict)
{
    (void)question;
    c->host = verdict->host;
    c->port = request->port;
    conn_refuse(c, verdict->reason, verdict->detail, verdict->rule);
}

const struct conn_stage stage_first = { .client = first, .again = again, .refused = refused };
