/* egress/conn_request.c: what is said and logged about one request, in whatever version of HTTP it came */
#include <string.h>

#include "egress/conn.h"
#include "egress/tls_hello.h"

const struct mcp_message *
conn_read_mcp(const struct conn *c, const struct http1_head *head, enum exchange_gather how, struct str body,
              struct mcp_message *room)
{
    if (!c->e->rules->mcp)
        return NULL;
    if (how == EXCHANGE_TOO_LONG)
        mcp_fault(room, "the body is too large to be looked at, or has trailers");
    else if (how == EXCHANGE_GATHERED)
        mcp_read(head, body, room);
    else
        mcp_read_head(head, room);
    return room;
}

void
conn_judged(struct conn *c, const struct decide_verdict *verdict)
{
    c->host = verdict->host;
    c->inspect = verdict->inspect;
    c->open = verdict->open;
    c->clear = verdict->clear;
}

struct answer
conn_answer(const struct conn *c, const struct decide_request *request, const struct decide_verdict *verdict)
{
    const struct host *host = &verdict->host;
    bool malformed = strcmp(verdict->reason, "path-moves") == 0;

    return (struct answer){
        .status = malformed ? 400 : 403, .phrase = malformed ? "Bad Request" : "Forbidden",
        .reason = verdict->reason, .detail = verdict->detail,
        .rule = verdict->rule, .port = request->port, .srt = c->e->rules->srt,
        .host = host->n > 0 ? (struct str){ host->name, host->n } : request->host,
    };
}

struct answer
conn_answer_secret(const struct conn *c, const struct inject *inject)
{
    const char *detail, *reason = inject_refused(inject, &detail);
    bool slow = strcmp(reason, "vault-slow") == 0;

    return (struct answer){ .status = slow ? 503 : 403, .phrase = slow ? "Service Unavailable" : "Forbidden",
                            .reason = reason, .detail = detail, .rule = { "", 0 },
                            .host = { c->host.name, c->host.n }, .port = c->port };
}

void
conn_note_secret(struct conn *c, const char *reason, const char *name, bool critical)
{
    const struct decide_request request = { .via = DECIDE_HTTP, .host = { c->host.name, c->host.n }, .port = c->port };
    const struct decide_verdict verdict = { .kind = reason != NULL ? DECIDE_DENY : DECIDE_ALLOW, .reason = reason,
                                            .detail = "" };

    log_secret(c->e, &request, &verdict, name, critical);
}

void
conn_note_scrubbed(struct conn *c, const char *name)
{
    const struct decide_request request = { .via = DECIDE_HTTP, .host = { c->host.name, c->host.n }, .port = c->port };
    const struct decide_verdict verdict = { .kind = DECIDE_ALLOW, .reason = "secret-scrubbed", .detail = "" };

    log_secret(c->e, &request, &verdict, name, false);
}

void
conn_note(struct conn *c, enum decide_via via, const char *reason, const char *detail)
{
    const struct decide_request request = { .via = via, .host = { c->host.name, c->host.n }, .port = c->port };
    const struct decide_verdict verdict = { .kind = DECIDE_DENY, .reason = reason, .detail = detail };

    log_decision(c->e, &request, &verdict);
}

void
conn_deny(struct conn *c, enum decide_via via, const char *reason, const char *detail)
{
    conn_note(c, via, reason, detail);
    conn_refuse(c, reason, detail, (struct str){ "", 0 });
}

void
conn_note_fault(struct conn *c, const char *word)
{
    conn_note(c, DECIDE_HTTP, word, "");
}

void
conn_note_left(struct conn *c)
{
    conn_note(c, DECIDE_TLS_SNI, "tls-client-refused",
              "the client left without a request: it may accept certain certificates only");
}

bool
conn_same_place(const struct conn *c, const struct host *host, uint16_t port)
{
    return c->port == port && c->host.n == host->n && memcmp(c->host.name, host->name, host->n) == 0;
}

bool
conn_may_wait(const struct conn *c)
{
    return !c->client_eof && c->in.n < CONN_FIRST_MAX;
}

const char *
conn_hello_fault(const struct conn *c, const struct tls_hello *hello, const char **detail)
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
    if (c->host.n != hello->sni_n || memcmp(c->host.name, hello->sni, hello->sni_n) != 0)
        return "tls-name-mismatch";
    return NULL;
}
