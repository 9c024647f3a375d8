/* egress/conn_http.c: HTTP, plain or in TLS that is opened (conn_tls.c): the owner of an exchange (exchange.h)
 *
 * Each request is decided by itself. On the proxy's port the next one may be for another host: the old connection
 * upstream ends, and the new one is resolved, judged and dialled like the first. A connection that was made to one
 * host (by its address, or through a tunnel) stays there.
 */
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "egress/stages.h"

static const struct str no_rule = { "", 0 };

static void
conn_http_refuse(struct conn *c, const struct decide_request *request, const struct decide_verdict *verdict)
{
    const struct answer answer = conn_answer(c, request, verdict);

    exchange_refuse(&c->x, &answer);
}

static void
deny(struct conn *c, const struct decide_request *request, const char *reason, const char *detail)
{
    const struct decide_verdict verdict = { .kind = DECIDE_DENY, .reason = reason, .detail = detail, .rule = no_rule };

    log_decision(c->e, request, &verdict);
    conn_http_refuse(c, request, &verdict);
}

static void http_event(struct conn *c, bool client, bool server);

/* Allowed: c->host and c->port say where to. */
static void
go(struct conn *c, bool narrow)
{
    struct exchange *x = &c->x;

    x->target.scheme = c->tls ? HTTP1_SCHEME_HTTPS : HTTP1_SCHEME_HTTP;
    x->target.host = (struct str){ c->host.name, c->host.n };
    x->target.port = c->port;
    x->target.narrow = narrow;
    if (x->server.fd >= 0)
        exchange_go(x);
    else
        way_dial(c);
}

/* --- secrets ----------------------------------------------------------------------------------------------------- */

static void
refuse_secret(struct conn *c)
{
    const struct answer answer = conn_answer_secret(c, &c->inject);

    exchange_refuse(&c->x, &answer);
}

/* The vault has answered what on_request() asked it. */
static void
on_lease(void *ctx)
{
    struct conn *c = ctx;
    const char *detail;

    if (inject_refused(&c->inject, &detail) != NULL)
        refuse_secret(c);
    else
        go(c, c->narrow);
    if (c->state == CONN_EXCHANGE)
        http_event(c, false, false);
}

static void
on_secret(void *ctx, const char *reason, const char *name, bool critical)
{
    conn_note_secret(ctx, reason, name, critical);
}

static void
on_scrubbed(void *ctx, const char *name)
{
    conn_note_scrubbed(ctx, name);
}

static const struct inject_owner secrets = { .ready = on_lease, .note = on_secret, .scrubbed = on_scrubbed };

/* The request may go to c->host: what of secrets? */
static void
go_with_secrets(struct conn *c, const struct http1_head *head, bool narrow)
{
    const struct binding_request r = { .tls = c->tls, .host = c->host, .port = c->port, .method = head->method,
                                       .path = head->path };

    c->narrow = narrow;
    switch (inject_request(&c->inject, head, &r)) {
    case INJECT_GO: go(c, narrow); break;
    case INJECT_WAIT: break;
    case INJECT_REFUSE: refuse_secret(c); break;
    }
}

static void
connect_request(struct conn *c, const struct http1_head *head)
{
    struct decide_request request = { .via = DECIDE_CONNECT, .host = head->authority.host,
                                      .port = head->authority.port };
    struct decide_verdict verdict;

    if (!conn_decide(c, &request, &verdict))
        return;
    if (verdict.kind != DECIDE_ALLOW) {
        conn_http_refuse(c, &request, &verdict);
        return;
    }
    exchange_hang_up(&c->x);
    conn_judged(c, &verdict);
    c->port = request.port;
    exchange_leave(&c->x);
}

static void
plain_request(struct conn *c, const struct http1_head *head)
{
    struct decide_request request = { .via = DECIDE_HTTP, .host = head->authority.host, .port = head->authority.port,
                                      .method = head->method, .path = head->path, .query = head->query,
                                      .meant = meant_of(head) };
    struct decide_verdict verdict;
    struct mcp_message message;
    struct str body;
    enum exchange_gather how = exchange_gathered(&c->x, &body);

    if (request.port == 0)
        request.port = c->tls ? 443 : 80;
    request.mcp = conn_read_mcp(c, head, how, body, &message);
    c->inject.judged = how != EXCHANGE_NOT_GATHERED;
    if (!conn_decide(c, &request, &verdict))
        return;
    if (verdict.unread && how == EXCHANGE_NOT_GATHERED) {
        exchange_collect(&c->x, MCP_BODY_MAX);
        return;
    }
    if (verdict.kind != DECIDE_ALLOW) {
        conn_http_refuse(c, &request, &verdict);
        return;
    }
    if (conn_same_place(c, &verdict.host, request.port)) {
        go_with_secrets(c, head, verdict.narrow);
    } else if (c->one_host) {
        deny(c, &request, "http-name-mismatch", "the request names another host than the connection was made to");
    } else {
        exchange_hang_up(&c->x);
        c->host = verdict.host;
        c->port = request.port;
        go_with_secrets(c, head, verdict.narrow);
    }
}

/* --- the exchange's owner ---------------------------------------------------------------------------------------- */

static void
on_fault(struct exchange *x, enum http1_result result)
{
    conn_note_fault(x->ctx, http1_word(result));
}

static void
on_request(struct exchange *x, const struct http1_head *head)
{
    struct conn *c = x->ctx;
    const struct decide_request request = { .via = DECIDE_HTTP, .host = { c->host.name, c->host.n }, .port = c->port };
    enum http1_scheme scheme = c->tls ? HTTP1_SCHEME_HTTPS : HTTP1_SCHEME_HTTP;

    c->any_request = true;
    if (c->failed) {
        c->failed = false;      /* the next request tries again */
        exchange_refuse(x, &c->failure);
    } else if (head->form == HTTP1_AUTHORITY && !c->one_host)
        connect_request(c, head);
    else if (head->form == HTTP1_AUTHORITY || (head->form == HTTP1_ABSOLUTE && head->scheme != scheme) ||
             (!c->one_host && head->form != HTTP1_ABSOLUTE) || head->authority.kind == HTTP1_HOST_NONE)
        deny(c, &request, http1_word(HTTP1_TARGET_FORM), "this is not how a request is put here");
    else
        plain_request(c, head);
}

static void
on_hang_up(struct exchange *x)
{
    struct conn *c = x->ctx;

    conn_drop_server(c);
    x->server = (struct stream){ .fd = -1 };
}

static void
on_dial(struct exchange *x)
{
    struct conn *c = x->ctx;

    c->fresh = true;
    way_dial(c);
}

static const struct exchange_owner owner = {
    .request = on_request, .fault = on_fault, .hang_up = on_hang_up, .dial = on_dial,
};

/* --- the connection ---------------------------------------------------------------------------------------------- */

static void
conn_http_free(struct conn *c)
{
    exchange_free(&c->x);
    inject_free(&c->inject);
    conn_page_free(c);
}

/* It was a CONNECT, and allowed. */
static void
leave(struct conn *c)
{
    buf_free(&c->in);
    c->in = c->x.up.in;
    c->x.up.in = (struct buf)BUF_INIT(0);
    c->client_eof = c->x.up.eof;
    conn_http_free(c);
    c->http = false;
    c->speech = SPEECH_CONNECT;
    way_dial(c);
}

/* Of what is waited for, the first that is late. */
static uint64_t
deadline(const struct conn *c)
{
    uint64_t vault = inject_deadline(&c->inject);

    return vault != 0 && vault < c->x.deadline_ms ? vault : c->x.deadline_ms;
}

/* The client is through with it; the next one may not be. */
static void
rest_server(struct conn *c)
{
    if (exchange_rests(&c->x))
        pool_keep(c);
}

static void
http_event(struct conn *c, bool client, bool server)
{
    struct loop *loop = &c->e->loop;

    switch (exchange_step(&c->x, client, server)) {
    case EXCHANGE_LIVE:
        if (c->state != CONN_EXCHANGE)
            return;         /* it dials, and there is nothing to do before that has ended */
        c->deadline_ms = deadline(c);
        if (loop_watch(loop, &c->client, exchange_client_events(&c->x)) < 0 ||
            loop_watch(loop, &c->server, exchange_server_events(&c->x)) < 0)
            conn_end(c);
        break;
    case EXCHANGE_DONE:
        if (c->tls && !c->any_request)
            conn_note_left(c);
        rest_server(c);
        c->client_eof = c->x.up.eof;
        conn_linger(c);
        break;
    case EXCHANGE_BROKEN:       /* a reset: the client must see that something is missing */
        rest_server(c);
        conn_end(c);
        break;
    case EXCHANGE_LEFT: leave(c); break;
    case EXCHANGE_FREED: break;
    }
}

static void
begin_exchange(struct conn *c)
{
    exchange_init(&c->x, &owner, c, c->client.fd, &c->e->loop.now_ms);
    inject_init(&c->inject, c->e->vault, &secrets, c, &c->secrets_told, &c->e->loop.now_ms);
    if (c->e->vault != NULL) {
        c->x.filter = &inject_filter;
        c->x.filter_ctx = &c->inject;
    }
    if (!c->tls && c->e->parents.http.authorization_n > 0) {
        c->x.filter = &conn_page_filter;
        c->x.filter_ctx = c;
    }
    c->inject.can_wait = true;
    c->x.strip = &c->e->strip;
    c->http = true;
    c->state = CONN_EXCHANGE;
    conn_part(c->client.fd, true);
}

/* c->server is where the requests go from now on. */
static void
use_server(struct conn *c)
{
    c->x.server = (struct stream){ .fd = c->server.fd, .tls = c->server_tls };
    c->x.server_used = c->rested_ms != 0;
    c->x.rested_ms = c->x.ended_ms = c->rested_ms;
    c->x.lends = c->tls && c->parent == NULL;
}

void
http_begin_opened(struct conn *c)
{
    begin_exchange(c);
    c->one_host = true;
    c->any_request = false;     /* CONNECT was one */
    c->x.client.tls = c->client_tls;
    use_server(c);
    http_event(c, true, false);
}

void
http_begin(struct conn *c)
{
    struct exchange *x = &c->x;
    bool tunnel = c->state == CONN_INNER;

    if (c->came == CAPTURE_HTTP && !c->held) {
        c->host = (struct host){ .is_ip = true, .ip = c->meant };
        c->host.n = ip_format(&c->meant, c->host.name);
    }
    begin_exchange(c);
    c->one_host = tunnel || c->came == CAPTURE_HTTP;
    if (tunnel)
        x->server.fd = c->server.fd;
    x->up.eof = c->client_eof;
    if (buf_append(&x->up.in, c->in.p, c->in.n) < 0) {
        conn_end(c);
        return;
    }
    buf_free(&c->in);
    http_event(c, false, false);
}

void
http_dialled(struct conn *c)
{
    c->state = CONN_EXCHANGE;
    use_server(c);
    c->x.target.absolute = c->parent != NULL && !c->tls;
    c->x.target.proxy_authorization = (struct str){ "", 0 };
    if (c->x.target.absolute)
        c->x.target.proxy_authorization = (struct str){ c->parent->authorization, c->parent->authorization_n };
    c->x.deadline_ms = c->e->loop.now_ms + EXCHANGE_STALL_MS;
    exchange_go(&c->x);
    if (!c->x.asking)
        http_event(c, false, false);
}

void
http_failed(struct conn *c, const struct answer *answer)
{
    c->state = CONN_EXCHANGE;
    exchange_refuse(&c->x, answer);
    if (!c->x.asking)
        http_event(c, false, false);
}

static void
late(struct conn *c)
{
    uint64_t vault = inject_deadline(&c->inject);

    if (vault != 0 && c->e->loop.now_ms >= vault) {
        inject_late(&c->inject);
        refuse_secret(c);
    } else {
        exchange_timeout(&c->x);
    }
    http_event(c, false, false);
}

static void
again(struct conn *c)
{
    exchange_ask_again(&c->x);
    http_event(c, false, false);
}

static void
refused(struct conn *c, uint32_t question, const struct decide_request *request, const struct decide_verdict *verdict)
{
    (void)question;
    conn_http_refuse(c, request, verdict);
    http_event(c, false, false);
}

static void
client(struct conn *c, uint32_t events)
{
    (void)events;
    http_event(c, true, false);
}

static void
server(struct conn *c, uint32_t events)
{
    (void)events;
    http_event(c, false, true);
}

static bool
leads_out(const struct conn *c)
{
    return c->server.fd >= 0 || exchange_asks(&c->x);
}

const struct conn_stage stage_exchange = {
    .client = client, .server = server, .late = late, .again = again, .refused = refused, .leads_out = leads_out,
    .free = conn_http_free,
};
