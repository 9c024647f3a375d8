/* egress/way.c: what follows on which (way.h)
 *
 *                   ┌─► ASKING: back, when there is an answer
 *      arrived ─► FIRST ─┬─ allowed ─┬──────────────────────────────► dial
 *                        │           └─ its TLS is opened ─► LEAF ──► dial
 *                        └─ request ─► EXCHANGE, for each request ──► dial
 *
 *      dial ─► RESOLVING ─► DIALLING ─┬─ connected, to the host ───────────► open
 *                                     └─ to a parent proxy ─► PARENT ──────► open
 *
 *      open ─┬─ an exchange, or TLS that is opened, waits for it ─► TLS_UP ─► TLS_DOWN ─► agreed
 *            ├─ a tunnel ─► INNER ─┬─ hello ──► LEAF or RELAY
 *            │                     ├─ request ► EXCHANGE
 *            │                     └─ opaque ─► RELAY
 *            └─ RELAY
 *
 *      agreed ─► EXCHANGE or H2
 *
 *      refused, unreachable ─► the client is told in its own protocol ─► LINGER ─► ENDED
 */
#include "egress/stages.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/cleanup.h"

#define TUNNEL_MS 600000        /* until something comes in it */

const struct conn_stage *const conn_stages[CONN_STATES] = {
    [CONN_FIRST] = &stage_first,         [CONN_ASKING] = &stage_asking,     [CONN_RESOLVING] = &stage_resolving,
    [CONN_DIALLING] = &stage_dialling,   [CONN_PARENT] = &stage_parent,     [CONN_INNER] = &stage_inner,
    [CONN_LEAF] = &stage_leaf,           [CONN_TLS_UP] = &stage_tls_up,     [CONN_TLS_DOWN] = &stage_tls_down,
    [CONN_RELAY] = &stage_relay,         [CONN_EXCHANGE] = &stage_exchange, [CONN_H2] = &stage_h2,
    [CONN_LINGER] = &stage_linger,       [CONN_ENDED] = &stage_ended,
};

bool
stage_leads_out(const struct conn *c)
{
    (void)c;
    return true;
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

void
way_arrived(struct conn *c)
{
    if (c->came == CAPTURE_PORT)
        conn_port_arrived(c);
}

/* TLS that nothing opens, where all that passes has to be looked into. */
static void
stays_closed(struct conn *c)
{
    c->speech = SPEECH_TLS;
    conn_deny(c, DECIDE_TLS_SNI, "opaque-tunnel", "TLS to this host is not opened, and what stays closed is refused");
}

void
way_allowed(struct conn *c, const struct ip *literal)
{
    if (c->came == CAPTURE_TLS && tls_wanted(c))
        tls_begin(c);
    else if (c->came == CAPTURE_TLS && c->clear)
        stays_closed(c);
    else
        conn_dial(c, literal);
}

void
way_request(struct conn *c)
{
    http_begin(c);
}

void
way_dial(struct conn *c)
{
    conn_dial(c, NULL);
}

void
way_connected(struct conn *c)
{
    if (c->parent != NULL && (!c->http || c->tls))
        parent_begin(c);
    else
        way_open(c);
}

void
way_kept(struct conn *c)
{
    if (!c->tls)
        way_open(c);
    else
        tls_up_again(c);
}

/* The client of a tunnel is told that it stands. */
static int
say_open(struct conn *c)
{
    static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    uint8_t reply[SOCKS5_REPLY_MAX];

    if (c->speech == SPEECH_CONNECT)
        return conn_say(c, established, sizeof(established) - 1);
    return c->speech == SPEECH_SOCKS ? conn_say(c, reply, socks5_reply(SOCKS5_SUCCEEDED, NULL, 0, reply)) : 0;
}

void
way_open(struct conn *c)
{
    bool tunnel = c->speech == SPEECH_CONNECT || c->speech == SPEECH_SOCKS || c->came == CAPTURE_PORT;

    if (c->tls) {
        tls_up_begin(c);
    } else if (c->http) {
        http_dialled(c);
    } else if (say_open(c) < 0) {
        conn_end(c);
    } else if (tunnel) {
        conn_patience(c, TUNNEL_MS);
        inner_begin(c);
    } else {
        relay_begin(c);
    }
}

void
way_hello(struct conn *c)
{
    if (tls_wanted(c)) {
        tls_begin(c);
    } else if (c->clear) {
        stays_closed(c);
    } else if (c->server_tls != NULL) {
        conn_drop_server(c);    /* it was kept, for TLS that is opened */
        way_dial(c);
    } else {
        relay_begin(c);
    }
}

void
way_opaque(struct conn *c)
{
    relay_begin(c);
}

void
way_again(struct conn *c)
{
    http_dialled(c);
}

void
way_agreed(struct conn *c, bool h2)
{
    (h2 ? h2_begin : http_begin_opened)(c);
}

/* --- no ----------------------------------------------------------------------------------------------------------- */

static int
say_http(struct conn *c, const struct answer *answer)
{
    cleanup_buf struct buf out = BUF_INIT(ANSWER_MAX);

    return answer_write(&out, answer, false, false) < 0 ? -1 : conn_say(c, out.p, out.n);
}

static void
say_failure(struct conn *c, const struct answer *answer, enum socks5_code code)
{
    /* fatal, access_denied (RFC 8446 §6.2) */
    static const uint8_t alert[] = { 21, 3, 1, 0, 2, 2, 49 };
    uint8_t reply[SOCKS5_REPLY_MAX];
    int r = 0;

    switch (c->speech) {
    case SPEECH_NONE: break;
    case SPEECH_HTTP:
    case SPEECH_CONNECT: r = say_http(c, answer); break;
    case SPEECH_SOCKS: r = conn_say(c, reply, socks5_reply(code, NULL, 0, reply)); break;
    case SPEECH_TLS: r = conn_say(c, alert, sizeof(alert)); break;
    }
    if (r < 0)
        conn_end(c);
    else
        conn_linger(c);
}

void
conn_fail(struct conn *c, const struct answer *answer, enum socks5_code code)
{
    if (c->http)
        http_failed(c, answer);
    else if (c->tls)
        tls_failed(c, answer);
    else
        say_failure(c, answer, code);
}

void
conn_refuse(struct conn *c, const char *reason, const char *detail, struct str rule)
{
    const struct answer answer = { .status = 403, .phrase = "Forbidden", .reason = reason, .detail = detail,
                                   .rule = rule, .host = { c->host.name, c->host.n }, .port = c->port,
                                   .srt = c->e->rules->srt };

    conn_fail(c, &answer, SOCKS5_NOT_ALLOWED);
}

void
conn_unreachable(struct conn *c, int saved_errno, const char *why)
{
    bool slow = saved_errno == ETIMEDOUT;
    const struct answer answer = { .status = slow ? 504 : 502, .phrase = slow ? "Gateway Timeout" : "Bad Gateway",
                                   .reason = "unreachable", .detail = why, .rule = { "", 0 },
                                   .host = { c->host.name, c->host.n }, .port = c->port };

    log_failed(c->e, &c->host, c->port, why);
    conn_fail(c, &answer, saved_errno != 0 ? socks5_code_of(saved_errno) : SOCKS5_HOST_UNREACHABLE);
}

/* --- events ------------------------------------------------------------------------------------------------------- */

void
conn_on_client(struct watch *w, uint32_t events)
{
    struct conn *c = w->owner;

    if (conn_stages[c->state]->client != NULL) {
        conn_stages[c->state]->client(c, events);
    } else if (events & (EPOLLERR | EPOLLHUP)) {
        if (c->state == CONN_RESOLVING || c->state == CONN_DIALLING)
            log_failed(c->e, &c->host, c->port, "given up before it was connected");
        conn_end(c);
    }
}

void
conn_on_server(struct watch *w, uint32_t events)
{
    struct conn *c = w->owner;

    if (conn_stages[c->state]->server != NULL)
        conn_stages[c->state]->server(c, events);
}

void
conn_tick(struct egress *e)
{
    pool_tick(e);
    for (struct conn *c = e->conns, *next; c != NULL; c = next) {
        const struct conn_stage *stage = conn_stages[c->state];
        next = c->next;
        if (c->state == CONN_RELAY && (c->up.starved || c->down.starved))
            stage->client(c, EPOLLIN | EPOLLOUT);
        else if (e->loop.now_ms < c->deadline_ms)
            continue;
        else if (stage->late != NULL)
            stage->late(c);
        else
            conn_end(c);
    }
}
