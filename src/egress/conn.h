/* egress/conn.h: one connection out of the sandbox, from its first byte to its last
 *
 *   FIRST      its first bytes say where it wants to go         conn_first.c
 *   ASKING     nothing but a rule is missing: somebody is asked   conn_ask.c
 *   RESOLVING  the name is asked for, the answers are judged    conn_dial.c
 *   DIALLING   one address after the other
 *   PARENT     a parent proxy was asked to dial                 conn_parent.c
 *   INNER      a tunnel is open: what begins inside must not contradict what was asked for      conn_inner.c
 *   LEAF, TLS_UP, TLS_DOWN   its TLS is opened: certificate, server's handshake, client's         conn_tls.c
 *   RELAY      bytes pass                                       conn_relay.c
 *   EXCHANGE   requests and answers pass, each request decided by itself; it may dial in between   conn_http.c
 *   H2         the same in HTTP/2, many at a time               conn_h2.c
 *   LINGER     refused: the answer is out, what the client still sends is read away, so that it can read the answer
 *   ENDED      to be freed after this round
 *
 * These are its stages (way.h). Each has its file, none knows another, and way.c says which follows on which.
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
                  CONN_TLS_UP, CONN_TLS_DOWN, CONN_RELAY, CONN_EXCHANGE, CONN_H2, CONN_LINGER, CONN_ENDED,
                  CONN_STATES };

/* What is still looked at of bytes that pass (conn_look.c). */
enum conn_look { LOOK_NONE, LOOK_LINE, LOOK_ANSWER, LOOK_HELLO };

struct h2;
struct tls_hello;

/* How success and failure are told to the client. */
enum conn_speech { SPEECH_NONE, SPEECH_HTTP, SPEECH_CONNECT, SPEECH_SOCKS, SPEECH_TLS };

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
    enum conn_state asked_in;   /* ASKING: the stage to go back to, when there is an answer to */
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
    bool open, clear;           /* likewise, for the whole sandbox; what is not looked into may not pass (decide.h) */
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
    bool host_port;             /* the addresses are the host's loopback, at a port that a rule has opened */
    struct buf reply;           /* its answer so far */
    struct relay up, down;
};

/* --- for every stage ---------------------------------------------------------------------------------------------- */

/* conn.c */
void conn_end(struct conn *c);
/* Nothing more is said: read away what still comes, then end. */
void conn_linger(struct conn *c);
/* Wait so long for what comes next. */
void conn_patience(struct conn *c, uint64_t ms);
/* Write @n bytes of ours to the client: few, and nothing waits before them. */
int conn_say(struct conn *c, const void *p, size_t n);
/* Read what is there into c->in, once. How many bytes came (0: none now, or the end), or -1. */
ssize_t conn_read(struct conn *c);
/* Close c->server, and its TLS. */
void conn_drop_server(struct conn *c);
/* Whether what has passed on @fd is a part yet. While it is, closing the socket resets the connection, also when the
 * kernel closes it because this process died: where the end of a connection is the end of the data, nothing else
 * tells a part from the whole. */
void conn_part(int fd, bool part);

/* way.c: no, for the stable @reason: answered as the client's protocol can. The far end did not work out: @saved_errno
 * says how. Either, in the caller's words, and in SOCKS5's. */
void conn_refuse(struct conn *c, const char *reason, const char *detail, struct str rule);
void conn_unreachable(struct conn *c, int saved_errno, const char *why);
void conn_fail(struct conn *c, const struct answer *answer, enum socks5_code code);
void conn_on_client(struct watch *w, uint32_t events);
void conn_on_server(struct watch *w, uint32_t events);

/* conn_buffers.c: give a socket its share of the buffers; give all of them theirs, when the number of connections calls
 * for it. */
void conn_limit_buffers(const struct egress *e, int fd);
void conn_share_buffers(struct egress *e);

/* conn_ask.c: decide() and its entry in the log. False: the connection waits now, and its stage decides again when
 * there is an answer, with everything as it is then. */
bool conn_decide(struct conn *c, const struct decide_request *request, struct decide_verdict *out);
/* Somebody who was asked said yes to that host and port for this connection: it may be dialled. What may be requested
 * there conn_decide() says. */
bool conn_approved(const struct conn *c, const struct host *host, uint16_t port);
/* It leads to the host of @verdict, and is looked into as that says. */
void conn_judged(struct conn *c, const struct decide_verdict *verdict);

/* conn_request.c: what is said and logged. */
/* More first bytes may come, and find room. */
bool conn_may_wait(const struct conn *c);
/* Log that c->host is denied; and refuse. */
void conn_note(struct conn *c, enum decide_via via, const char *reason, const char *detail);
void conn_deny(struct conn *c, enum decide_via via, const char *reason, const char *detail);
/* What is wrong with a ClientHello for the name in c->host, or NULL. */
const char *conn_hello_fault(const struct conn *c, const struct tls_hello *hello, const char **detail);
/* What @head's request asks of an MCP server, for decide(), into @room; NULL where no rule is about that. @how, @body:
 * as exchange_gathered() has them. */
const struct mcp_message *conn_read_mcp(const struct conn *c, const struct http1_head *head, enum exchange_gather how,
                                        struct str body, struct mcp_message *room);
/* The 403 for a request that was not allowed, or whose secret may not go. */
struct answer conn_answer(const struct conn *c, const struct decide_request *request,
                          const struct decide_verdict *verdict);
struct answer conn_answer_secret(const struct conn *c, const struct inject *inject);
/* For the log: of a secret (inject.h); that the client's or the server's bytes are no HTTP; that the client left
 * without a request. */
void conn_note_secret(struct conn *c, const char *reason, const char *name, bool critical);
void conn_note_scrubbed(struct conn *c, const char *name);
void conn_note_fault(struct conn *c, const char *word);
void conn_note_left(struct conn *c);
/* That is where the connection leads to. */
bool conn_same_place(const struct conn *c, const struct host *host, uint16_t port);

/* conn_tls.c: whether TLS to c->host and c->port has to be opened; the versions of HTTP that c's server may choose
 * among (tls_end.h). */
bool tls_wanted(const struct conn *c);
unsigned tls_offered(const struct conn *c);

/* --- parts of a stage --------------------------------------------------------------------------------------------- */

/* conn_page.c: of exchanges of plain HTTP where a parent is told who asks. Its context is the connection. */
extern const struct exchange_filter conn_page_filter;
void conn_page_free(struct conn *c);

/* conn_look.c: of the relay. line: c->in begins an unknown protocol; false: it is a request. answer: c->in may begin
 * with a ClientHello. up, down: bytes of the client's or, of LOOK_ANSWER, of the server's may be there; -1: broken.
 * wants: more of the client's. */
bool conn_look_line(struct conn *c);
void conn_look_answer(struct conn *c);
void conn_look_up(struct conn *c);
int conn_look_down(struct conn *c);
bool conn_look_wants(const struct conn *c);

#endif
