/* egress/conn.h: one connection out of the sandbox, from its first byte to its last
 *
 *   FIRST      its first bytes say where it wants to go         conn_first.c, conn_http.c
 *   ASKING     nothing but a rule is missing: somebody is asked        conn_ask.c
 *   RESOLVING  the name is asked for, the answers are judged    conn.c
 *   DIALLING   one address after the other
 *   INNER      a tunnel is open: what begins inside must not contradict what was asked for
 *   RELAY      bytes pass
 *   LINGER     refused: the answer is out, what the client still sends is read away, so that it can read the answer
 *   ENDED      to be freed after this round
 */
#ifndef CLOCHE_EGRESS_CONN_H
#define CLOCHE_EGRESS_CONN_H

#include <sys/types.h>

#include "base/buf.h"
#include "egress/egress.h"
#include "egress/http1.h"
#include "egress/relay.h"
#include "egress/socks5.h"

#define CONN_FIRST_MS  15000                        /* to say where it wants to go */
#define CONN_FIRST_MAX (HTTP1_HEAD_MAX + 4096)      /* bytes that are kept while nothing is decided */

enum conn_state {
    CONN_FIRST, CONN_ASKING, CONN_RESOLVING, CONN_DIALLING, CONN_INNER, CONN_RELAY, CONN_LINGER, CONN_ENDED
};

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
    bool socks_greeted;
    bool up_broken;             /* the server takes nothing more; what it still says counts */
    bool is_head;               /* an answer of ours has no body */
    bool plain_http;            /* one request, then the answer until its end */
    size_t may_go;              /* ... bytes of @in that are head or body and not sent yet */
    struct http1_body body;
    bool body_done;
    struct ip addresses[RESOLVE_MAX];
    size_t n_addresses, next_address;
    struct relay up, down;
};

/* conn.c */
void conn_end(struct conn *c);
/* The decision was yes: find addresses and dial. @literal: the one address, instead of a name to resolve. */
void conn_go(struct conn *c, const struct ip *literal);
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

/* conn_buffers.c: give a socket its share of the buffers; give all of them theirs, when the number of connections calls
 * for it. */
void conn_limit_buffers(const struct egress *e, int fd);
void conn_share_buffers(struct egress *e);

/* conn_first.c: more first bytes are here, or the client is done. Inner: in the tunnel. */
void conn_first(struct conn *c);
void conn_inner(struct conn *c);

/* conn_ask.c: decide() and its entry in the log. False: the connection waits now, and @again is called when there is an
 * answer, with everything as it is now. */
bool conn_decide(struct conn *c, const struct decide_request *request, struct decide_verdict *out, conn_again *again);

/* conn_http.c */
void http_first(struct conn *c);
/* After the upstream request's head went out: pass the body on, and nothing behind it. */
int http_pass_body(struct conn *c);

#endif
