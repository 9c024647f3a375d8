/* egress/conn_tls.c: a connection whose TLS is opened: a rule about requests or a secret concerns its host, or all is
 *
 *      ClientHello ─► LEAF: a certificate for the name ─► (resolve, dial) ─► TLS_UP: the server proves who it is
 *                  ─► TLS_DOWN: the client is answered ─► EXCHANGE over both (conn_http.c), or H2 (conn_h2.c)
 *
 * The server comes first: when it cannot be reached or is not who it should be, the client still gets a handshake, and
 * then an answer in HTTP that says why. Bytes are never passed on unread here.
 *
 * The version of HTTP is the server's choice among those that the client offered, so both ends speak the same and
 * nothing is translated.
 */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "egress/tls_end.h"
#include "egress/tls_hello.h"
#include "egress/stages.h"
#include "vault/client.h"

#define HANDSHAKE_MS 15000

bool
tls_wanted(const struct conn *c)
{
    const struct egress *e = c->e;

    return c->inspect || c->open || (e->vault != NULL && vault_client_known(e->vault, &c->host) != 0);
}

/* Before there is a handshake: the alert that says no. */
static void
refuse_hello(struct conn *c, const char *reason, const char *detail)
{
    c->tls = false;
    c->speech = SPEECH_TLS;
    conn_deny(c, DECIDE_TLS_SNI, reason, detail);
}

/* What the client can speak, as its ClientHello says; HTTP/1.1 when it says nothing. An exchange that is under way
 * stays what it is: its ClientHello is gone. */
static unsigned
offers(const struct conn *c)
{
    struct tls_hello hello;

    if (c->http || tls_hello_parse(c->in.p, c->in.n, &hello) != TLS_HELLO_OK || !hello.alpn_h2)
        return TLS_ALPN_HTTP11;
    return TLS_ALPN_H2 | (hello.alpn_http11 ? (unsigned)TLS_ALPN_HTTP11 : 0);
}

/* Until the client asks for something, which may be after the rules were replaced: nothing of theirs is borrowed. */
static void
keep_failure(struct conn *c, const struct answer *answer)
{
    size_t n = answer->rule.n < sizeof(c->failure_rule) ? answer->rule.n : sizeof(c->failure_rule);

    if (answer->rule.p != c->failure_rule && n > 0)
        memcpy(c->failure_rule, answer->rule.p, n);
    if (answer->detail != c->failure_detail)
        snprintf(c->failure_detail, sizeof(c->failure_detail), "%s", answer->detail);
    c->failure = *answer;
    c->failure.rule = (struct str){ c->failure_rule, n };
    c->failure.detail = c->failure_detail;
}

unsigned
tls_offered(const struct conn *c)
{
    /* HTTP/1.1 too, where the client speaks nothing but HTTP/2: the answer that says so comes from here then */
    return offers(c) | TLS_ALPN_HTTP11;
}

/* --- the client's end --------------------------------------------------------------------------------------------- */

/* Its handshake is done. */
static void
agreed(struct conn *c)
{
    bool h2 = tls_alpn_chosen(c->client_tls) == TLS_ALPN_H2;

    if (!c->failed && h2 != (tls_alpn_chosen(c->server_tls) == TLS_ALPN_H2)) {
        conn_note(c, DECIDE_TLS_SNI, "tls-client-handshake",
                  "the client took another version of HTTP than it had offered");
        conn_end(c);
    } else {
        way_agreed(c, h2);
    }
}

static void
accept_step(struct conn *c)
{
    switch (tls_handshake(c->client_tls)) {
    case TLS_DONE:
        agreed(c);
        break;
    case TLS_AGAIN:
        if (loop_watch(&c->e->loop, &c->client, tls_events(c->client_tls, true, true)) < 0)
            conn_end(c);
        break;
    case TLS_FAILED:
        conn_note(c, DECIDE_TLS_SNI, tls_reason(c->client_tls), tls_detail(c->client_tls));
        conn_end(c);
        break;
    }
}

/* The server took HTTP/1.1, and the client speaks HTTP/2 alone. */
static void
no_common_version(struct conn *c)
{
    const struct answer answer = { .status = 502, .phrase = "Bad Gateway", .reason = "upstream-no-h2",
                                   .detail = "the client speaks HTTP/2 only, and the server does not speak it",
                                   .host = { c->host.name, c->host.n }, .port = c->port };

    conn_note(c, DECIDE_TLS_SNI, answer.reason, answer.detail);
    keep_failure(c, &answer);
    c->failed = true;
    conn_drop_server(c);
}

/* What the client is answered with. */
static enum tls_alpn
version(struct conn *c)
{
    unsigned offered = offers(c);

    if (!c->failed && tls_alpn_chosen(c->server_tls) == TLS_ALPN_H2)
        return TLS_ALPN_H2;
    if (offered & TLS_ALPN_HTTP11)
        return TLS_ALPN_HTTP11;
    if (!c->failed)
        no_common_version(c);
    return TLS_ALPN_H2;
}

static void
accept_client(struct conn *c)
{
    c->state = CONN_TLS_DOWN;
    conn_patience(c, HANDSHAKE_MS);
    c->client_tls = tls_server_new(c->e->tls, c->client.fd, &c->host, c->in.p, c->in.n, version(c));
    if (c->client_tls == NULL || loop_watch(&c->e->loop, &c->server, 0) < 0) {
        conn_end(c);
        return;
    }
    buf_free(&c->in);
    accept_step(c);
}

void
tls_failed(struct conn *c, const struct answer *answer)
{
    if (c->state == CONN_TLS_DOWN || c->client_tls != NULL) {
        conn_end(c);
        return;
    }
    keep_failure(c, answer);
    c->failed = true;
    loop_drop(&c->e->loop, &c->server);
    accept_client(c);
}

/* --- the server's end --------------------------------------------------------------------------------------------- */

/* The server is not who it should be, or speaks no TLS that we do. */
static void
bad_server(struct conn *c, bool slow)
{
    const char *reason = slow ? "upstream-tls" : tls_reason(c->server_tls);
    struct answer answer = { .status = slow ? 504 : 502, .phrase = slow ? "Gateway Timeout" : "Bad Gateway",
                             .reason = reason, .detail = slow ? "TLS with the server took too long"
                                                              : tls_detail(c->server_tls),
                             .host = { c->host.name, c->host.n }, .port = c->port };

    conn_note(c, DECIDE_TLS_SNI, reason, answer.detail);
    keep_failure(c, &answer);       /* its detail goes with the server's end */
    answer = c->failure;
    conn_drop_server(c);
    conn_fail(c, &answer, SOCKS5_HOST_UNREACHABLE);
}

void
tls_up_again(struct conn *c)
{
    if (c->http)
        way_again(c);
    else
        accept_client(c);
}

static void
connect_step(struct conn *c)
{
    switch (tls_handshake(c->server_tls)) {
    case TLS_DONE:
        c->dialled_ms = c->e->loop.now_ms;
        tls_up_again(c);
        break;
    case TLS_AGAIN:
        if (loop_watch(&c->e->loop, &c->server, tls_events(c->server_tls, true, true)) < 0)
            conn_end(c);
        break;
    case TLS_FAILED: bad_server(c, false); break;
    }
}

void
tls_up_begin(struct conn *c)
{
    c->state = CONN_TLS_UP;
    conn_patience(c, HANDSHAKE_MS);
    tls_end_free(c->server_tls);
    c->offered = tls_offered(c);
    c->server_tls = tls_client_new(c->e->tls, c->server.fd, &c->host, c->port, c->offered);
    if (c->server_tls == NULL || loop_watch(&c->e->loop, &c->client, 0) < 0)
        conn_end(c);
    else
        connect_step(c);
}

/* --- the certificate ---------------------------------------------------------------------------------------------- */

/* In a tunnel the server is there already; if it is one that was kept, this client has to want the same of it. */
static void
leaf_is_there(struct conn *c)
{
    if (c->server_tls != NULL &&
        (c->offered != tls_offered(c) || c->e->loop.now_ms - c->rested_ms >= POOL_IDLE_MS))
        conn_drop_server(c);
    if (c->server_tls != NULL)
        tls_up_again(c);
    else if (c->server.fd >= 0)
        tls_up_begin(c);
    else
        way_dial(c);
}

static void
on_leaf(void *ctx, const struct vault_leaf *leaf, const struct err *why)
{
    struct conn *c = ctx;
    struct err err = ERR_INIT;

    c->ticket = 0;
    if (leaf == NULL)
        refuse_hello(c, "vault-leaf", why->msg);
    else if (tls_leaf_put(c->e->tls, &c->host, leaf->certificate, leaf->certificate_n, leaf->key, leaf->key_n,
                          leaf->renew_ms, &err) < 0)
        refuse_hello(c, "vault-leaf", err.msg);
    else
        leaf_is_there(c);
}

void
tls_begin(struct conn *c)
{
    struct err err = ERR_INIT;

    if (c->e->vault == NULL || c->e->tls == NULL) {
        refuse_hello(c, "cannot-inspect", "a rule asks for more than can be seen in this connection");
        return;
    }
    c->tls = true;
    c->speech = SPEECH_NONE;
    if (tls_leaf_have(c->e->tls, &c->host, c->e->loop.now_ms)) {
        leaf_is_there(c);
        return;
    }
    c->state = CONN_LEAF;
    conn_patience(c, HANDSHAKE_MS);
    c->ticket = vault_ask_leaf(c->e->vault, &c->host, on_leaf, c, &err);
    if (c->ticket == 0)
        refuse_hello(c, "vault-leaf", err.msg);
    else if (loop_watch(&c->e->loop, &c->client, 0) < 0 || loop_watch(&c->e->loop, &c->server, 0) < 0)
        conn_end(c);
}

/* --- the stages --------------------------------------------------------------------------------------------------- */

static void
leaf_late(struct conn *c)
{
    vault_forget(c->e->vault, c->ticket);
    c->ticket = 0;
    refuse_hello(c, "vault-leaf", "the vault does not answer");
}

static void
server_ready(struct conn *c, uint32_t events)
{
    (void)events;
    connect_step(c);
}

static void
server_late(struct conn *c)
{
    bad_server(c, true);
}

static void
client_ready(struct conn *c, uint32_t events)
{
    (void)events;
    accept_step(c);
}

static void
client_late(struct conn *c)
{
    conn_note(c, DECIDE_TLS_SNI, "tls-client-handshake", "TLS with the client took too long");
    conn_end(c);
}

static void
conn_tls_free(struct conn *c)
{
    if (c->ticket != 0)
        vault_forget(c->e->vault, c->ticket);
    c->ticket = 0;
    tls_end_free(c->client_tls);
    tls_end_free(c->server_tls);
    c->client_tls = c->server_tls = NULL;
}

const struct conn_stage stage_leaf = { .late = leaf_late, .leads_out = stage_leads_out, .free = conn_tls_free };
const struct conn_stage stage_tls_up = { .server = server_ready, .late = server_late, .leads_out = stage_leads_out };
const struct conn_stage stage_tls_down = { .client = client_ready, .late = client_late, .leads_out = stage_leads_out };
