/* egress/conn.h: one connection out of the sandbox, from its first byte to its last
 *
 *   FIRST      its first bytes say where it wants to go         conn_first.c, conn_port.c
 *   ASKING     nothing but a rule is missing: somebody is asked   conn_ask.c
 *   RESOLVING  the name is asked for, the answers are judged    conn_dial.c
 *   DIALLING   one address after the other
 *   PARENT     a parent proxy was asked to dial                 conn_parent.c
 *   INNER      a tunnel is open: what begins inside must not contradict what was asked for
 *   LEAF, TLS_UP, TLS_DOWN   its TLS is opened: certificate, server's handshake, client's         conn_tls.c
 *   RELAY      bytes pass
 *   H2         the same in HTTP/2, many at a time               conn_h2.c
 *   EXCHANGE   requests and answers pass, each request decided by itself; it may dial in between   conn_http.c
 *   LINGER     refused: the answer is out, what the client still sends is read away, so that it can read the answer
 *   ENDED      to be freed after this round
 */
#ifndef CLOCHE_EGRESS_CONN_H
#define CLOCHE_EGRESS_CONN_H

#include <sys/types.h>

#include "base/buf.h"
#include "egress/egress.h"
#include "egress/exchange.h"
#include "egress/inject.h"
#include "egress/relay.h"
#include "egress/socks5.h"

#define CONN_FIRST_MS  15000                        /* to say where it wants to go */
#define CONN_FIRST_MAX (HTTP1_HEAD_MAX + 4096)      /* bytes that are kept while nothing is decided */
#define CONN_LOOK_MAX  (CONN_FIRST_MAX - 16384)     /* ... from which on no more is read while bytes are looked at */
#define CONN_ANSWER    43                           /* bytes up to the random number in a ServerHello's record */

enum conn_state { CONN_FIRST, CONN_ASKING, CONN_RESOLVING, CONN_DIALLING, CONN_PARENT, CONN_INNER, CONN_LEAF,
                  CONN_TLS_UP, CONN_TLS_DOWN, CONN_RELAY, CONN_EXCHANGE, CONN_H2, CONN_LINGER, CONN_ENDED };

/* What is still looked at of bytes that pass (conn_look.c). */
enum conn_look { LOOK_NONE, LOOK_LINE, LOOK_ANSWER, LOOK_HELLO };

struct h2;

/* How success and failure are told to the client. */
enum conn_speech { SPEECH_NONE, SPEECH_HTTP, SPEECH_CONNECT, SPEECH_SOCKS, SPEECH_TLS };

/* Decide again, from what is kept of the connection's beginning. */
typedef void conn_again(struct conn *c);

struct conn {
    struct egress *e;
    struct conn *prev, *next;
    enum capture_listener came;
    enum conn_state state;
    enum conn_speech speech;
    uint64_t deadline_ms;
    struct watch client, server;
    struct buf in;              /* from the client, not passed on yet */
    size_t seen;                /* of it: looked at already */
    enum conn_look look;        /* RELAY: */
    size_t may;                 /* ... so much of @in may pass */
    uint8_t answer[CONN_ANSWER];        /* ... the server's first bytes */
    size_t answer_n;
    bool client_eof;
    struct ip meant;            /* transparent: where the connection was made to */
    bool held;                  /* ... and it is a fake address whose name is counted as live */
    struct host host;           /* who is asked for, when that is known */
    uint16_t port;
    conn_again *again;          /* ASKING: when there is an answer to */
    uint32_t question;          /* that one */
    enum decide_via asked_via;
    struct ip asked_ip;         /* family 0: a name */
    bool approved;              /* that host and port, by somebody who was asked */
    struct host approved_host;
    uint16_t approved_port;
    const char *approved_all;   /* ... also for each request on it that is asked about for this reason; NULL: none */
    bool socks_greeted;
    bool up_broken;             /* the server takes nothing more; what it still says counts */
    bool inspect;               /* a rule has to see every request */
    bool tls;                   /* TLS is opened: c->server is to be under it, and so is the client */
    uint32_t ticket;            /* for the certificate, at the vault */
    struct tls_end *client_tls, *server_tls;
    unsigned offered;           /* to the server: versions of HTTP */
    uint64_t dialled_ms;        /* the server's end was ready */
    uint64_t rested_ms;         /* it was kept in the pool since then; 0: it was dialled for this connection */
    uint32_t lent_secrets;      /* ids of those that others have had on it */
    bool fresh;                 /* the next one has to be dialled */
    bool any_request;           /* one came */
    bool failed;                /* ... and the server was not to be had: */
    struct answer failure;      /* the answer to the first request */
    char failure_detail[256], failure_rule[256];
    struct inject inject;
    struct inject_told secrets_told;
    bool narrow;                /* of the request that waits for its secrets (exchange.h) */
    bool http;                  /* x lives: what is to be said to the client goes through it */
    struct h2 *h2;              /* H2: its streams */
    bool h2_waits;              /* ... one of them waits for the answer to @question */
    uint32_t h2_used;           /* ... ids of secrets that any of them has had */
    bool one_host;              /* ... and no request may leave c->host and c->port */
    struct exchange x;
    struct swap *page;          /* the answer may be the parent's own page: it is searched for what that was told */
    bool page_behind;           /* ... behind inject's search */
    struct ip addresses[RESOLVE_MAX];
    size_t n_addresses, next_address;
    struct parent *parent;      /* that is dialled instead; NULL: none */
    struct buf reply;           /* its answer so far */
    struct relay up, down;
};

/* conn.c */
void conn_end(struct conn *c);
/* No, for the stable @reason: answered as the client's protocol can. */
void conn_refuse(struct conn *c, const char *reason, const char *detail, struct str rule);
/* The far end did not work out: @saved_errno says how. */
void conn_unreachable(struct conn *c, int saved_errno, const char *why);
/* Write @n bytes of ours to the client: few, and nothing waits before them. */
int conn_say(struct conn *c, const void *p, size_t n);
/* The server takes no more: what was on its way to it is dropped. */
void conn_up_broken(struct conn *c);
/* Read what is there into c->in, once. How many bytes came (0: none now, or the end), or -1. */
ssize_t conn_read(struct conn *c);
/* Let the bytes pass, first those that were read already. */
void conn_relay(struct conn *c);

/* The way to c->host is open. */
void conn_established(struct conn *c);
void conn_on_server(struct watch *w, uint32_t events);

/* conn_dial.c */
/* The decision was yes: find addresses and dial. @literal: the one address, instead of a name to resolve. */
void conn_go(struct conn *c, const struct ip *literal);
/* Dial c->addresses, one after the other; the next one, for the last did not answer. */
void conn_dial(struct conn *c);
void conn_dial_next(struct conn *c, int saved_errno);

/* conn_parent.c: c->server leads to c->parent: ask it to dial; something came of it. */
void parent_connect(struct conn *c);
void parent_replied(struct conn *c);
/* c->host is a parent proxy itself: refused. */
bool parent_refuses(struct conn *c);
/* One of c->addresses is a parent's: @verdict becomes a denial. */
void parent_judge(struct conn *c, struct decide_verdict *verdict);
/* Look up where c->parent is, and dial it. */
void parent_find(struct conn *c);

/* conn_page.c: of exchanges of plain HTTP where a parent is told who asks. Its context is the connection. */
extern const struct exchange_filter conn_page_filter;
void conn_page_free(struct conn *c);

/* conn_buffers.c: give a socket its share of the buffers; give all of them theirs, when the number of connections calls
 * for it. */
void conn_limit_buffers(const struct egress *e, int fd);
void conn_share_buffers(struct egress *e);

/* conn_first.c: more first bytes are here, or the client is done. Inner: in the tunnel. */
void conn_first(struct conn *c);
void conn_inner(struct conn *c);
/* A protocol that cannot be read: passed on, unless a rule wants to see requests. */
void conn_opaque(struct conn *c);

/* In bytes that pass there was a request after all. */
void conn_hidden_request(struct conn *c);
/* A ClientHello that follows the first one is at @p, or its beginning. True: it may pass. Else it is incomplete, or
 * refused. */
bool conn_hello_again(struct conn *c, const uint8_t *p, size_t n);

/* conn_look.c. line: c->in begins an unknown protocol; false: it is a request. answer: c->in may begin with
 * a ClientHello. up, down: bytes of the client's or, of LOOK_ANSWER, of the server's may be there; -1: broken. wants:
 * more of the client's. */
bool conn_look_line(struct conn *c);
void conn_look_answer(struct conn *c);
void conn_look_up(struct conn *c);
int conn_look_down(struct conn *c);
bool conn_look_wants(const struct conn *c);

/* Whether what has passed on @fd is a part yet. While it is, closing the socket resets the connection, also when the
 * kernel closes it because this process died: where the end of a connection is the end of the data, nothing else
 * tells a part from the whole. */
void conn_part(int fd, bool part);
/* Nothing more is said: read away what still comes, then end. */
void conn_linger(struct conn *c);
/* Wait so long for what comes next. */
void conn_patience(struct conn *c, uint64_t ms);

/* conn_port.c: a connection to a port that a rule names has come; it says something, and a rule wants to look at it. */
void conn_port_arrived(struct conn *c);
void conn_port_first(struct conn *c);

/* conn_ask.c: decide() and its entry in the log. False: the connection waits now, and @again is called when there is an
 * answer, with everything as it is now. */
bool conn_decide(struct conn *c, const struct decide_request *request, struct decide_verdict *out, conn_again *again);
/* Somebody who was asked said yes to that host and port for this connection: it may be dialled. What may be requested
 * there conn_decide() says. */
bool conn_approved(const struct conn *c, const struct host *host, uint16_t port);

/* conn_http.c: the client speaks HTTP from c->in on; in a tunnel c->server is there already. */
void http_first(struct conn *c);
void http_dialled(struct conn *c);
/* Both ends of an opened TLS connection are ready, or c->failed. */
void http_intercepted(struct conn *c);
/* What the sandbox asked for goes nowhere. */
void http_failed(struct conn *c, const struct answer *answer);
void http_event(struct conn *c, bool client, bool server);
void http_timeout(struct conn *c);
/* A request waited for somebody's decision (conn_ask.c): it is decided on again; or refused. */
void http_again(struct conn *c);
void http_refused(struct conn *c, const struct decide_request *request, const struct decide_verdict *verdict);

/* conn_request.c: the 403 for a request that was not allowed, or whose secret may not go. */
/* What @head's request asks of an MCP server, for decide(), into @room; NULL where no rule is about that. @how, @body:
 * as exchange_gathered() has them. */
const struct mcp_message *conn_read_mcp(const struct conn *c, const struct http1_head *head, enum exchange_gather how,
                                        struct str body, struct mcp_message *room);
struct answer conn_answer(const struct conn *c, const struct decide_request *request,
                          const struct decide_verdict *verdict);
struct answer conn_answer_secret(const struct conn *c, const struct inject *inject);
/* For the log: of a secret (inject.h); that the client's or the server's bytes are no HTTP. */
void conn_note_secret(struct conn *c, const char *reason, const char *name, bool critical);
void conn_note_scrubbed(struct conn *c, const char *name);
void conn_note_fault(struct conn *c, const char *word);
/* That is where the connection leads to. */
bool conn_same_place(const struct conn *c, const struct host *host, uint16_t port);

/* conn_h2.c: both ends of an opened TLS connection agreed on HTTP/2; or the client did, and c->failed. */
void conn_h2_begin(struct conn *c);
void conn_h2_event(struct conn *c, bool client, bool server);
void conn_h2_timeout(struct conn *c);
/* What waited for somebody's decision is decided on again; or refused. */
void conn_h2_again(struct conn *c);
/* Of its streams those that wait for the answer to @question: whether there are any, and others; those that it is yes
 * for are decided on again; those that it is no for. */
bool conn_h2_waits_for(const struct conn *c, uint32_t question, bool *others);
void conn_h2_granted(struct conn *c);
void conn_h2_refused(struct conn *c, uint32_t question, const struct decide_request *request,
                     const struct decide_verdict *verdict);
void conn_h2_free(struct conn *c);

/* conn_tls.c */
/* Whether TLS to c->host and c->port has to be opened. */
bool tls_wanted(const struct conn *c);
/* c->in begins with a proper ClientHello for c->host; in a tunnel c->server is there already. */
void tls_begin(struct conn *c);
/* c->server is connected: now TLS with it. */
void tls_dialled(struct conn *c);
/* c->server and c->server_tls came from the pool, where TLS is opened. */
void tls_reused(struct conn *c);
/* The versions of HTTP that c's server may choose among (tls_end.h). */
unsigned tls_offered(const struct conn *c);
/* It goes nowhere: the client is told when its handshake is done. */
void tls_failed(struct conn *c, const struct answer *answer);
void tls_drop_server(struct conn *c);
void tls_event(struct conn *c);
void tls_timeout(struct conn *c);
/* The client left without a request. */
void tls_left(struct conn *c);
/* What it holds of TLS and secrets; close: says so to the client first, where there is TLS. */
void tls_free(struct conn *c);
void tls_close(struct conn *c);

#endif
