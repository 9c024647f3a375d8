/* egress/exchange.h: HTTP/1.1 requests and their answers between a client and the servers that it asks for
 *
 * Theory: every request of a client connection is read whole, decided on by itself, and written again from its parsed
 * pieces; its body goes out exactly as long as it was announced, and only then the next head is looked at. So what
 * follows a request reaches nobody as part of it, and a connection that was opened for one request is no way for
 * another. One request is under way at a time. What the client sends ahead (pipelining) is kept, bounded, and judged in
 * its turn.
 *
 * The exchange knows bytes and messages; where a request may go, and the connection to there, is its owner's. Both ends
 * are streams (stream.h), so it does not matter whether they are under TLS. It never blocks and has no clock: the owner
 * calls exchange_step() when something happened at a socket, watches for exchange_events() and keeps the deadline.
 *
 *      bytes of the client ─► head ─► owner.request ─┬─► exchange_refuse: answered here
 *                                                    └─► exchange_go ─► filter.request_head ─► server
 *                              body ─────────────────────► filter.request_body ──────────────► server
 *      client ◄── filter.response_head, filter.response_body ◄── bytes of the server
 *
 * An owner that cannot decide on the head alone has the body collected (exchange_collect) and is asked once more.
 * Nothing of the request is on its way before its word.
 *
 * Responses: 1xx pass (not to HTTP/1.0; without their fields where there is a filter), 101 only when an upgrade to
 * WebSocket was passed on, and then the rest is raw bytes in both directions. A final answer that comes before the
 * request's body has ended ends the connection behind it: whether the client still sends that body is not known.
 * Behind a body that servers are known to overlook (GET's, say) the server connection ends, for such a server would
 * take it for the next request. A kept server connection that turns out to have ended is replaced once, for a request
 * without body whose method may be repeated and of whose answer no byte has come.
 *
 * Server connections may outlive the exchange and serve another client's (pool.h), unless that could get what is not
 * its own: a body has passed, which a server may have taken for a request whose answer is still to come; an upgrade was
 * asked for; or credentials were, which may be the connection's (NTLM, Negotiate; RFC 4559 §6). A request that may not
 * be repeated (RFC 9110 §9.2.2) goes out on such a one only while it is fresh.
 */
#ifndef CLOCHE_EGRESS_EXCHANGE_H
#define CLOCHE_EGRESS_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "egress/answer.h"
#include "wire/http1.h"
#include "egress/stream.h"
#include "egress/strip.h"

#define EXCHANGE_EARLY_MAX (HTTP1_HEAD_MAX + 64 * 1024)  /* bytes kept of what is not a whole head, or was sent ahead */
#define EXCHANGE_WHOLE_MAX (4u << 20)       /* a body that a filter wants to see whole */
#define EXCHANGE_OUT_MAX (EXCHANGE_WHOLE_MAX + (1u << 20))  /* bytes that the other end has not taken yet */
#define EXCHANGE_EDITS_MAX 32
#define EXCHANGE_INTERIM_MAX 64             /* 1xx answers to one request */
#define EXCHANGE_BODY_MAX ((uint64_t)1 << 40)
#define EXCHANGE_HEAD_MS 15000              /* for a head, from its first byte to its last */
#define EXCHANGE_IDLE_MS 120000             /* between two requests */
#define EXCHANGE_STALL_MS 600000            /* within one, without a byte in either direction */
#define EXCHANGE_FRESH_MS 1000              /* that long after an answer no server has closed a connection yet */

struct exchange;

/* --- the filter -------------------------------------------------------------------------------------------------- */

enum exchange_body {
    EXCHANGE_BODY_PASS,         /* as it comes, with the framing it came with */
    EXCHANGE_BODY_SAME,         /* through the filter, which keeps its length: it goes out as it was announced */
    EXCHANGE_BODY_STREAM,       /* through the filter as it comes; its length may change, so it goes out chunked */
    EXCHANGE_BODY_WHOLE,        /* requests only: collected first, filtered in one piece, sent with its new length */
};

/* What is to be done with one message. Comes zeroed but for @text, is read when the callback has returned. Everything
 * that it points to lives until then: in the message's own bytes, in @text, or with the filter. */
struct exchange_edit {
    struct str drop[EXCHANGE_EDITS_MAX];    /* names of fields that are not passed on, whatever their case */
    size_t n_drop;
    struct http1_add add[EXCHANGE_EDITS_MAX];   /* written by http1_write_*, which checks name and value again */
    size_t n_add;
    bool new_target;            /* requests: these instead of the head's. Nothing is decided anew: whoever changes the
                                 * path answers for it */
    struct str path, query;
    enum exchange_body body;
    bool wait;                  /* with @whole: not yet. The request waits like one that the owner was asked about, and
                                 * the filter is called again, likewise, after exchange_go() */
    bool raw;                   /* answers of status 101: what follows passes through raw_up and raw_down */
    bool no_upgrade;            /* requests: the WebSocket handshake goes out without its Upgrade */
    const char *refuse;         /* with -1: stable word and text for people, static */
    const char *detail;
};

/* What an interception does to what passes. Each pointer may be NULL: then nothing is done. A callback that returns -1
 * refuses: the client gets 403 (request) or 502 (response) with edit.refuse, or is cut off when an answer has begun.
 * Callbacks may not call back into the exchange. */
struct exchange_filter {
    /* A request that was allowed, before it is written. After EXCHANGE_BODY_WHOLE it is called a second time, with the
     * body as request_body made it in @whole (else NULL) and a fresh edit, whose @body is not looked at. When a
     * connection that had ended is replaced, what is sent again are the same bytes; it is not called anew. */
    int (*request_head)(void *ctx, const struct http1_head *head, const struct buf *whole, struct exchange_edit *edit);
    /* Bytes of its body, without framing, if edit.body said so: take *@used of @data and append what becomes of them to
     * @out. What was not taken comes again, in front, when @out has been sent: so a filter whose output grows (a
     * decoder) stops when it has made some 64 KiB. It may keep bytes back until it knows more. @last: nothing follows
     * @data; called once more with no data when the end was not known earlier. -1 refuses. */
    int (*request_body)(void *ctx, struct str data, bool last, struct buf *out, size_t *used);
    /* A final answer (not 1xx; 101 comes here). */
    int (*response_head)(void *ctx, const struct http1_head *head, struct exchange_edit *edit);
    int (*response_body)(void *ctx, struct str data, bool last, struct buf *out, size_t *used);
    /* After an upgrade, if edit.raw said so: take all of @data, of the client (up) or the server (down), and append
     * what becomes of it to @out, not much more than came. -1 ends the connection. */
    int (*raw_up)(void *ctx, struct str data, struct buf *out);
    int (*raw_down)(void *ctx, struct str data, struct buf *out);
    /* HTTP/2 only: the fields behind a body, when all of that has been through. -1 cuts the stream off. */
    int (*request_trailer)(void *ctx, const struct http1_head *trailer, struct exchange_edit *edit);
    int (*response_trailer)(void *ctx, const struct http1_head *trailer, struct exchange_edit *edit);
};

/* --- the owner --------------------------------------------------------------------------------------------------- */

struct exchange_owner {
    /* A request wants to go out; @head is valid during the call only. The owner decides, and calls, now or later,
     * exchange_go(), exchange_refuse() or exchange_leave(); or, now, exchange_collect(). */
    void (*request)(struct exchange *x, const struct http1_head *head);
    /* The client's bytes are no request: log it. The answer and the end are the exchange's. */
    void (*fault)(struct exchange *x, enum http1_result result);
    /* The server connection in x->server is of no more use: close it. */
    void (*hang_up)(struct exchange *x);
    /* The connection had ended before it answered: make another to the same place, then exchange_go(), or
     * exchange_refuse(). */
    void (*dial)(struct exchange *x);
};

/* Where the request that exchange_go() lets out is sent. Borrowed until that request's answer has ended. */
struct exchange_target {
    enum http1_scheme scheme;
    struct str host;            /* without brackets */
    uint16_t port;
    bool narrow;                /* not every request may go there: a server that takes a body for a request is not
                                 * to be given the time */
    bool absolute;              /* to a parent proxy: absolute form */
    struct str proxy_authorization;     /* for that; may be empty */
};

enum exchange_request {
    REQUEST_HEAD, REQUEST_ASKED, REQUEST_COLLECT, REQUEST_GATHER, REQUEST_GATHERED, REQUEST_GO, REQUEST_REFUSED,
    REQUEST_WHOLE, REQUEST_HELD, REQUEST_BODY, REQUEST_DONE, REQUEST_AGAIN, REQUEST_RAW, REQUEST_LEFT,
};
enum exchange_response { RESPONSE_NONE, RESPONSE_HEAD, RESPONSE_BODY, RESPONSE_DONE, RESPONSE_RAW };

/* Whether the owner sees the body of the request that it is asked about. */
enum exchange_gather { EXCHANGE_NOT_GATHERED, EXCHANGE_GATHERED, EXCHANGE_TOO_LONG };

/* One direction. */
struct exchange_way {
    struct buf in;              /* came, and is not understood yet */
    struct buf out;             /* understood, and not taken by the other end yet */
    struct buf held;            /* body that the filter has not taken yet */
    struct http1_body body;
    enum http1_framing framing; /* that it goes out with */
    bool filtered, raw;         /* raw: framing bytes pass with it */
    bool body_done;             /* the last of it has come */
    bool eof;                   /* nothing more comes */
    bool held_last;             /* ... and what is held is the end of it */
    bool broken;                /* the other end takes nothing more: what comes is dropped */
    bool finished;              /* the other end was told that nothing follows */
    uint64_t moved;             /* bytes that came or went */
};

enum exchange_result {
    EXCHANGE_LIVE,
    EXCHANGE_DONE,              /* over, in order: all is said, close the client connection behind it */
    EXCHANGE_BROKEN,            /* over, and the client must not take what it got for whole: reset */
    EXCHANGE_LEFT,              /* exchange_leave() was called */
    EXCHANGE_FREED,             /* a callback freed it: touch nothing */
};

/* Fields are the exchange's, but for the two streams, which the owner sets (fd -1 when there is no server), and with
 * the server's: */
struct exchange {
    struct stream client, server;
    bool lends;                 /* it may serve another exchange afterwards */
    bool server_used;           /* it has carried an answer before; the exchange goes on with this one */
    uint64_t rested_ms;         /* of another exchange, which ended then; 0: it has not, or is this one's by now */
    uint64_t ended_ms;          /* the last answer on it, whosever it was */
    struct exchange_target target;      /* set by the owner before exchange_go() */
    const struct exchange_owner *owner;
    const struct exchange_filter *filter;   /* NULL: none. The owner may change it between requests, and in request() */
    void *ctx, *filter_ctx;
    const struct strip *strip;  /* what answers lose, behind the filter; NULL: nothing */
    const uint64_t *now_ms;
    uint64_t deadline_ms;
    enum exchange_request request;
    enum exchange_response response;
    struct exchange_way up, down;
    struct buf whole;           /* a request body that is being collected, or waits, as it is to be sent */
    struct buf again;           /* a request's head that may have to be sent, or written, a second time */
    size_t gather_max;          /* bytes of body that the owner wants to see */
    enum exchange_gather gathered;
    size_t seen;                /* bytes of up.in, and */
    size_t seen_down;           /* of down.in that were parsed in vain */
    size_t head_length;         /* of the request that is asked about */
    char method[HTTP1_METHOD_MAX];
    size_t method_n;
    unsigned interim;
    bool client_10, client_keeps, has_body, upgrade, expects;
    bool last;                  /* the server connection ends behind it */
    bool server_keeps;
    bool spoilt;                /* the server connection may not serve another exchange */
    bool answered;              /* bytes of the answer came */
    bool closing;               /* the client connection ends behind this answer */
    bool asking;                /* in owner.request or owner.dial: the step goes on afterwards */
    bool look_raw;              /* the filter sees what follows an upgrade */
    bool ready;                 /* the step ended although the next request is here */
    enum exchange_result result;
};

/* --- its life ---------------------------------------------------------------------------------------------------- */

/* @now_ms: the loop's clock, borrowed. */
void exchange_init(struct exchange *x, const struct exchange_owner *owner, void *ctx, int client_fd,
                   const uint64_t *now_ms);
void exchange_free(struct exchange *x);     /* also in a callback: the step that is under way ends then */

/* The owner's word on the request that was asked about. exchange_go: x->server is open to x->target. After a call
 * outside of owner.request, exchange_step() has to be called. */
void exchange_go(struct exchange *x);
void exchange_refuse(struct exchange *x, const struct answer *answer);
/* In owner.request, of a request that has a body, once: collect that, at most @max bytes, and call owner.request again.
 * Then exchange_gathered() says what came of it; of TOO_LONG only exchange_refuse() is left. */
void exchange_collect(struct exchange *x, size_t max);
enum exchange_gather exchange_gathered(const struct exchange *x, struct str *body);
/* The owner put its word off: owner.request is called with that request once more, in exchange_step(). */
void exchange_ask_again(struct exchange *x);
/* It is no request of an exchange (CONNECT): its head is dropped and what came behind it stays in x->up.in. */
void exchange_leave(struct exchange *x);
/* Close the server connection, which leads to another place than the next request, say. */
void exchange_hang_up(struct exchange *x);
/* Nothing is under way on x->server, the last answer on it ended in order, and another exchange may have it. */
bool exchange_rests(const struct exchange *x);
/* A request waits for the owner's word. */
bool exchange_asks(const struct exchange *x);

/* Do what can be done now. @client, @server: an event came for that socket (else it is not read from). */
enum exchange_result exchange_step(struct exchange *x, bool client, bool server);
/* What to watch for at either socket. */
uint32_t exchange_client_events(const struct exchange *x);
uint32_t exchange_server_events(const struct exchange *x);
/* x->deadline_ms has passed: then call exchange_step() and see. */
void exchange_timeout(struct exchange *x);

#endif
