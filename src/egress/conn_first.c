/* egress/conn_first.c: where does it want to go?
 *
 * A connection says so in one of four ways: by the address it was made to (which stands for a name), by the name in its
 * ClientHello, by a proxy request, by a Host field. Where it says so twice, both must be the same name.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "egress/conn.h"
#include "egress/dns_msg.h"
#include "egress/sniff.h"
#include "egress/tls_hello.h"

#define TLS_HANDSHAKE 0x16

static const struct str no_rule = { "", 0 };

/* More is needed: false when more cannot come. */
static bool
may_wait(struct conn *c)
{
    return !c->client_eof && c->in.n < CONN_FIRST_MAX;
}

/* Decide about c->host (or @ip) at c->port, and go or refuse. */
static void decide_again(struct conn *c);

static void
decide_and_go(struct conn *c, enum decide_via via, const struct ip *ip)
{
    struct decide_request request = { .via = via, .port = c->port, .ip = ip };
    struct decide_verdict verdict;

    c->asked_ip = ip != NULL ? *ip : (struct ip){ .family = 0 };
    if (ip == NULL)
        request.host = (struct str){ c->host.name, c->host.n };
    if (!conn_decide(c, &request, &verdict, decide_again))
        return;
    c->host = verdict.host;
    c->inspect = verdict.inspect;
    if (verdict.kind != DECIDE_ALLOW)
        conn_refuse(c, verdict.reason, verdict.detail, verdict.rule);
    else if (c->came == CAPTURE_TLS && tls_wanted(c))
        tls_begin(c);
    else
        conn_go(c, ip);
}

static void
decide_again(struct conn *c)
{
    const struct ip ip = c->asked_ip;

    decide_and_go(c, c->asked_via, ip.family != 0 ? &ip : NULL);
}

static void
deny(struct conn *c, const char *reason, const char *detail)
{
    const struct decide_request request = { .via = DECIDE_TLS_SNI, .host = { c->host.name, c->host.n },
                                            .port = c->port };
    const struct decide_verdict verdict = { .kind = DECIDE_DENY, .reason = reason, .detail = detail };

    log_decision(c->e, &request, &verdict);
    conn_refuse(c, reason, detail, no_rule);
}

static bool
same_name(const struct conn *c, const char *name, size_t n)
{
    return c->host.n == n && memcmp(c->host.name, name, n) == 0;
}

/* What is wrong with a ClientHello for the name in c->host, or NULL. */
static const char *
hello_fault(const struct conn *c, const struct tls_hello *hello, const char **detail)
{
    *detail = "";
    if (hello->has_ech) {
        *detail = "the name in it may not be the one that is meant (encrypted ClientHello)";
        return "tls-ech";
    }
    if (c->host.is_ip)
        return hello->has_sni ? "tls-name-mismatch" : NULL;
    if (!hello->has_sni) {
        *detail = "the ClientHello names no host";
        return "tls-no-name";
    }
    *detail = "the ClientHello names another host";
    return same_name(c, hello->sni, hello->sni_n) ? NULL : "tls-name-mismatch";
}

/* Port 443 of any address. */
static void
first_tls(struct conn *c)
{
    struct tls_hello hello;
    enum tls_hello_status status = tls_hello_parse(c->in.p, c->in.n, &hello);
    const char *fault, *detail;

    if (status == TLS_HELLO_MORE) {
        if (!may_wait(c))
            conn_end(c);
        return;
    }
    if (status != TLS_HELLO_OK) {
        deny(c, tls_hello_word(status), "");
        return;
    }
    if (!c->held) {
        /* an address that stands for no name: a literal, or one that was given out long ago */
        c->host = (struct host){ .is_ip = true, .ip = c->meant };
        c->host.n = ip_format(&c->meant, c->host.name);
    }
    fault = hello_fault(c, &hello, &detail);
    if (fault != NULL)
        deny(c, fault, detail);
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
        conn_refuse(c, "socks", "", no_rule);
}

static void
socks_request(struct conn *c)
{
    struct socks5_request request;
    uint8_t reply[SOCKS5_REPLY_MAX];
    enum socks_status status = socks5_request(c->in.p, c->in.n, &request);

    if (status == SOCKS_MORE) {
        if (!may_wait(c))
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
        if (!may_wait(c))
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

    if (status == SOCKS_MORE && may_wait(c))
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
    if (!may_wait(c))
        conn_end(c);
}

/* --- the proxy port ---------------------------------------------------------------------------------------------- */

static void
first_proxy(struct conn *c)
{
    switch (sniff(c->in.p, c->in.n)) {
    case SNIFF_MORE:
        if (!may_wait(c))
            conn_end(c);
        break;
    case SNIFF_HTTP:
        c->speech = SPEECH_HTTP;
        http_first(c);
        break;
    case SNIFF_SOCKS5: first_socks(c); break;
    case SNIFF_SOCKS4: first_socks4(c); break;
    case SNIFF_TLS:
        c->speech = SPEECH_TLS;
        deny(c, "proxy-tls", "this port is a plain proxy");
        break;
    case SNIFF_HTTP2:
    case SNIFF_UNKNOWN: conn_end(c); break;
    }
}

void
conn_first(struct conn *c)
{
    if (c->in.n == 0) {
        if (c->client_eof)
            conn_end(c);
        return;
    }
    switch (c->came) {
    case CAPTURE_TLS: first_tls(c); break;
    case CAPTURE_HTTP: http_first(c); break;
    case CAPTURE_DNS_TCP: first_dns(c); break;
    case CAPTURE_PROXY:
    case CAPTURE_SOCKS:
        if (c->socks_greeted)
            first_socks(c);
        else
            first_proxy(c);
        break;
    case CAPTURE_PORT: conn_port_first(c); break;
    case CAPTURE_DNS_UDP:
    case CAPTURE_LISTENERS: conn_end(c); break;
    }
}

/* --- inside a tunnel --------------------------------------------------------------------------------------------- */

static void
inner_tls(struct conn *c)
{
    struct tls_hello hello;
    enum tls_hello_status status = tls_hello_parse(c->in.p, c->in.n, &hello);
    const char *fault, *detail = "";

    if (status == TLS_HELLO_MORE && may_wait(c))
        return;
    fault = status != TLS_HELLO_OK ? tls_hello_word(status) : hello_fault(c, &hello, &detail);
    if (fault == NULL && tls_wanted(c)) {
        tls_begin(c);
        return;
    }
    if (fault == NULL && c->server_tls != NULL) {
        tls_drop_server(c);     /* it was kept, for TLS that is opened */
        conn_go(c, NULL);
        return;
    }
    if (fault == NULL) {
        conn_relay(c);
        return;
    }
    c->speech = SPEECH_TLS;
    deny(c, fault, detail);
}

static void
inner_http(struct conn *c)
{
    struct http1_head head;
    struct host host;
    enum http1_result result = http1_parse_request(c->in.p, c->in.n, &head);

    if (result == HTTP1_MORE && may_wait(c))
        return;
    c->speech = SPEECH_HTTP;
    if (result != HTTP1_OK)
        deny(c, http1_word(result), "in a tunnel");
    else if (host_canonical(head.authority.host, &host) != HOST_OK || !same_name(c, host.name, host.n))
        deny(c, "http-name-mismatch", "the request in the tunnel names another host");
    else
        http_first(c);
}

void
conn_hidden_request(struct conn *c)
{
    deny(c, "tunnel-protocol", "a request that hides its host");
}

bool
conn_hello_again(struct conn *c, const uint8_t *p, size_t n)
{
    struct tls_hello hello;
    enum tls_hello_status status = tls_hello_parse(p, n, &hello);
    const char *fault, *detail = "";

    if (status == TLS_HELLO_MORE || status == TLS_HELLO_TYPE)
        return status == TLS_HELLO_TYPE;        /* of an older version another message follows */
    fault = status != TLS_HELLO_OK ? tls_hello_word(status) : hello_fault(c, &hello, &detail);
    if (fault == NULL)
        return true;
    c->speech = SPEECH_TLS;
    deny(c, fault, detail);
    return false;
}

void
conn_opaque(struct conn *c)
{
    if (c->inspect)
        deny(c, "cannot-inspect", "a rule asks for more than can be seen in this protocol");
    else
        conn_relay(c);
}

/* The tunnel is open. What names a host at its beginning must name the one that was asked for; other protocols pass. On
 * 80 and 443 nothing else is expected, and nothing else passes. */
void
conn_inner(struct conn *c)
{
    enum sniff what = sniff(c->in.p, c->in.n);
    bool known = c->port == 80 || c->port == 443;

    /* what servers may take for one of those all the same: any TLS version, empty lines before a request, h2 */
    if (c->in.n > 0 && c->in.p[0] == TLS_HANDSHAKE)
        what = SNIFF_TLS;
    if (c->in.n > 0 && (c->in.p[0] == '\r' || c->in.p[0] == '\n' || what == SNIFF_HTTP2)) {
        conn_hidden_request(c);
        return;
    }
    if (what == SNIFF_MORE && may_wait(c)) {
        if (loop_watch(&c->e->loop, &c->client, EPOLLIN) < 0)
            conn_end(c);
        return;
    }
    if (what != SNIFF_TLS && what != SNIFF_MORE && c->server_tls != NULL)
        tls_drop_server(c);     /* likewise */
    if (what == SNIFF_TLS)
        inner_tls(c);
    else if (what == SNIFF_HTTP)
        inner_http(c);
    else if (known)
        deny(c, "tunnel-protocol", "neither TLS nor HTTP in a tunnel to 80 or 443");
    else if (conn_look_line(c))
        conn_opaque(c);
    else
        inner_http(c);
    if (c->state == CONN_INNER && loop_watch(&c->e->loop, &c->client, EPOLLIN) < 0)
        conn_end(c);
}
