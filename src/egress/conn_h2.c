/* egress/conn_h2.c: HTTP/2 in TLS that is opened (conn_tls.c): the owner of its streams (h2.h)
 *
 * Each stream is a request that is decided on by itself, like one of HTTP/1.1 (conn_http.c); all of them go to the one
 * host that the connection was made to. A stream that somebody is asked about waits while the others go on.
 */
#include <stdlib.h>
#include <string.h>

#include "egress/h2.h"
#include "egress/stages.h"

/* What is ours of a stream. */
struct h2_request {
    struct conn *c;
    struct h2_stream *s;
    bool waits;                 /* for somebody's decision */
    uint32_t question;          /* ... about this */
    struct inject inject;
};

static void
conn_h2_refuse(struct h2_stream *s, const struct conn *c, const struct decide_request *request,
       const struct decide_verdict *verdict)
{
    const struct answer answer = conn_answer(c, request, verdict);

    h2_refuse(s, &answer);
}

static void
deny(struct h2_stream *s, struct conn *c, const struct decide_request *request, const char *reason, const char *detail)
{
    const struct decide_verdict verdict = { .kind = DECIDE_DENY, .reason = reason, .detail = detail };

    log_decision(c->e, request, &verdict);
    conn_h2_refuse(s, c, request, &verdict);
}

/* --- secrets ------------------------------------------------------------------------------------------------------ */

static void
refuse_secret(struct h2_request *r)
{
    const struct answer answer = conn_answer_secret(r->c, &r->inject);

    h2_refuse(r->s, &answer);
}

static void h2_event(struct conn *c, bool client, bool server);

/* The vault has answered what on_request() asked it. */
static void
on_lease(void *ctx)
{
    struct h2_request *r = ctx;
    struct conn *c = r->c;
    const char *detail;

    c->h2_used |= r->inject.used;
    if (inject_refused(&r->inject, &detail) != NULL)
        refuse_secret(r);
    else
        h2_go(r->s);
    h2_event(c, false, false);
}

static void
on_secret(void *ctx, const char *reason, const char *name, bool critical)
{
    struct h2_request *r = ctx;

    conn_note_secret(r->c, reason, name, critical);
}

static void
on_scrubbed(void *ctx, const char *name)
{
    struct h2_request *r = ctx;

    conn_note_scrubbed(r->c, name);
}

static const struct inject_owner secrets = { .ready = on_lease, .note = on_secret, .scrubbed = on_scrubbed };

static void
go_with_secrets(struct h2_request *r, const struct http1_head *head)
{
    struct conn *c = r->c;
    const struct binding_request place = { .tls = true, .host = c->host, .port = c->port, .method = head->method,
                                           .path = head->path };
    enum inject_result result = inject_request(&r->inject, head, &place);

    c->h2_used |= r->inject.used;
    switch (result) {
    case INJECT_GO: h2_go(r->s); break;
    case INJECT_WAIT: break;
    case INJECT_REFUSE: refuse_secret(r); break;
    }
}

/* --- the streams' owner ------------------------------------------------------------------------------------------- */

static struct h2_request *
request_of(struct conn *c, struct h2_stream *s)
{
    struct h2_request *r = h2_stream_ctx(s);

    if (r != NULL)
        return r;
    r = calloc(1, sizeof(*r));
    if (r == NULL)
        return NULL;
    r->c = c;
    r->s = s;
    inject_init(&r->inject, c->e->vault, &secrets, r, &c->secrets_told, &c->e->loop.now_ms);
    r->inject.trailers = true;
    h2_set_ctx(s, r);
    if (c->e->vault != NULL)
        h2_set_filter(s, &inject_filter, &r->inject);
    return r;
}

static void
on_request(struct h2_stream *s, const struct http1_head *head)
{
    struct conn *c = h2_ctx(h2_of(s));
    struct h2_request *r = request_of(c, s);
    struct decide_request request = { .via = DECIDE_HTTP, .host = head->authority.host, .port = head->authority.port,
                                      .method = head->method, .path = head->path, .query = head->query,
                                      .meant = meant_of(head) };
    struct decide_verdict verdict;
    struct mcp_message message;
    struct str body;
    enum exchange_gather how = h2_gathered(s, &body);
    struct host host;

    c->any_request = true;
    if (c->failed) {
        h2_refuse(s, &c->failure);
        h2_drain(h2_of(s));     /* the next connection tries again */
        return;
    }
    if (r == NULL) {
        h2_reset(s, 7);         /* REFUSED_STREAM: nothing was done for it */
        return;
    }
    if (request.port == 0)
        request.port = 443;
    r->waits = false;
    if (host_canonical(request.host, &host) != HOST_OK || !conn_same_place(c, &host, request.port)) {
        deny(s, c, &request, "http-name-mismatch", "the request names another host than the connection was made to");
        return;
    }
    request.mcp = conn_read_mcp(c, head, how, body, &message);
    r->inject.judged = how != EXCHANGE_NOT_GATHERED;
    if (!conn_decide(c, &request, &verdict)) {
        r->waits = true;
        r->question = c->question;
    } else if (verdict.unread && how == EXCHANGE_NOT_GATHERED)
        h2_collect(s, MCP_BODY_MAX);
    else if (verdict.kind != DECIDE_ALLOW)
        conn_h2_refuse(s, c, &request, &verdict);
    else
        go_with_secrets(r, head);
}

static void
on_released(struct h2_stream *s)
{
    struct h2_request *r = h2_stream_ctx(s);

    if (r == NULL)
        return;
    inject_free(&r->inject);
    free(r);
}

static void
on_fault(struct h2 *h, const char *word, bool server)
{
    (void)server;
    conn_note_fault(h2_ctx(h), word);
}

static const struct h2_owner owner = { .request = on_request, .released = on_released, .fault = on_fault };

/* --- the connection ----------------------------------------------------------------------------------------------- */

void
h2_begin(struct conn *c)
{
    const struct stream client = { .fd = c->client.fd, .tls = c->client_tls };
    const struct stream server = { .fd = c->server.fd, .tls = c->server_tls };

    c->any_request = false;     /* CONNECT was one */
    c->one_host = true;
    c->state = CONN_H2;
    c->h2 = h2_new(&owner, c, &client, &server, (struct str){ c->host.name, c->host.n }, c->port,
                   &c->e->loop.now_ms);
    if (c->h2 == NULL) {
        conn_end(c);
        return;
    }
    h2_set_strip(c->h2, &c->e->strip);
    h2_event(c, true, false);
}

static void
note_deadline(struct h2_stream *s, void *arg)
{
    const struct h2_request *r = h2_stream_ctx(s);
    uint64_t vault = r != NULL ? inject_deadline(&r->inject) : 0, *at = arg;

    if (vault != 0 && vault < *at)
        *at = vault;
}

/* Of what is waited for, the first that is late. */
static uint64_t
deadline(const struct conn *c)
{
    uint64_t at = h2_deadline_ms(c->h2);

    h2_each_waiting(c->h2, note_deadline, &at);
    return at;
}

static void
h2_event(struct conn *c, bool client, bool server)
{
    struct loop *loop = &c->e->loop;

    if (h2_step(c->h2, client, server) == H2_LIVE) {
        if (c->server.fd >= 0 && !h2_server_lives(c->h2))
            conn_drop_server(c);
        c->deadline_ms = deadline(c);
        if (loop_watch(loop, &c->client, h2_client_events(c->h2)) < 0 ||
            (c->server.fd >= 0 && loop_watch(loop, &c->server, h2_server_events(c->h2)) < 0))
            conn_end(c);
        return;
    }
    /* whatever is missing, its stream has not ended: the client sees that without a reset */
    if (!c->any_request)
        conn_note_left(c);
    c->client_eof = h2_client_ended(c->h2);
    conn_linger(c);
}

static void
refuse_late(struct h2_stream *s, void *arg)
{
    struct h2_request *r = h2_stream_ctx(s);
    uint64_t vault = r != NULL ? inject_deadline(&r->inject) : 0;
    const uint64_t *now_ms = arg;

    if (vault == 0 || *now_ms < vault)
        return;
    inject_late(&r->inject);
    refuse_secret(r);
}

static void
late(struct conn *c)
{
    h2_each_waiting(c->h2, refuse_late, &c->e->loop.now_ms);
    h2_timeout(c->h2);
    h2_event(c, false, false);
}

static bool
is_waiting(const struct h2_stream *s)
{
    const struct h2_request *r = h2_stream_ctx(s);

    return r != NULL && r->waits;
}

struct tally {
    uint32_t question;
    bool any, others;
};

static void
count(struct h2_stream *s, void *arg)
{
    const struct h2_request *r = h2_stream_ctx(s);
    struct tally *t = arg;

    if (!is_waiting(s))
        return;
    t->any |= r->question == t->question;
    t->others |= r->question != t->question;
}

static bool
waits_for(const struct conn *c, uint32_t question, bool *others)
{
    struct tally t = { .question = question };

    h2_each_waiting(c->h2, count, &t);
    *others = t.others;
    return t.any;
}

/* By the yes that is being carried out. */
static bool
is_granted(const struct h2_stream *s)
{
    const struct h2_request *r = h2_stream_ctx(s);

    return is_waiting(s) && r->c->e->granted != NULL && r->question == r->c->e->granted->id;
}

static void
again(struct conn *c)
{
    h2_ask_again(c->h2, c->e->granted != NULL ? is_granted : is_waiting);
    h2_event(c, false, false);
}

struct denial {
    uint32_t question;
    const struct decide_request *request;
    const struct decide_verdict *verdict;
};

static void
refuse_waiting(struct h2_stream *s, void *arg)
{
    const struct denial *d = arg;
    const struct h2_request *r = h2_stream_ctx(s);

    if (is_waiting(s) && r->question == d->question)
        conn_h2_refuse(s, r->c, d->request, d->verdict);
}

static void
refused(struct conn *c, uint32_t question, const struct decide_request *request, const struct decide_verdict *verdict)
{
    struct denial d = { question, request, verdict };

    h2_each_waiting(c->h2, refuse_waiting, &d);
    h2_event(c, false, false);
}

static void
client(struct conn *c, uint32_t events)
{
    (void)events;
    h2_event(c, true, false);
}

static void
server(struct conn *c, uint32_t events)
{
    (void)events;
    h2_event(c, false, true);
}

static void
conn_h2_free(struct conn *c)
{
    c->e->n_waiting -= c->h2_waits;
    c->h2_waits = false;
    h2_free(c->h2);
    c->h2 = NULL;
}

const struct conn_stage stage_h2 = {
    .client = client, .server = server, .late = late, .again = again, .refused = refused, .waits_for = waits_for,
    .leads_out = stage_leads_out, .free = conn_h2_free,
};
