/* egress/h2.h: HTTP/2 between a client and one server: two sessions, and the streams that pass from one to the other
 *
 * Theory: both ends of an opened TLS connection speak HTTP/2 (conn_tls.c saw to that), so nothing is translated. Each
 * request is read whole, decided on by itself, and made again from its parsed pieces as a stream of the other session
 * (h2_head.h); its body, the answer, interim answers, trailers, resets and the end of either side follow it. A stream
 * that is refused gets its answer here; the others go on.
 *
 *      stream of the client ─► head ─► owner.request ─┬─► h2_refuse: answered here
 *                                                     └─► h2_go ─► filter ─► stream to the server
 *      client ◄── filter ◄── answer's head, body, trailers ◄──┘
 *
 * Back-pressure: a sender gets its stream's window back only for what the other side took, so a stream holds at most
 * its two windows, and one that nobody reads holds up no other. The window of the connection is given back at once.
 *
 * nghttp2 reads and writes the frames; h2_guard.h counts them before. No server push (refused), no CONNECT, extended or
 * not, no priorities; 1xx pass without their fields, Trailer fields do not pass (trailers do). It never blocks and has
 * no clock, like exchange.h.
 *
 * Memory of one connection at most, apart from nghttp2's own tables: H2_MEMORY_MAX.
 */
#ifndef CLOCHE_EGRESS_H2_H
#define CLOCHE_EGRESS_H2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "egress/answer.h"
#include "egress/exchange.h"
#include "egress/h2_head.h"
#include "egress/stream.h"

#define H2_STREAMS_MAX   128            /* at a time, of one connection */
#define H2_WINDOW        65535          /* bytes of body that a stream's sender may be ahead, in either direction */
#define H2_WINDOW_LARGE  (1u << 20)     /* ... while few streams carry bodies: */
#define H2_EXTRA_MAX     (8u << 20)     /* bytes of such larger windows, of one connection */
#define H2_EXTRA_ALL_MAX (64u << 20)    /* ... of all */
#define H2_STEP          (64 * 1024)    /* filtered, or written, at once */
#define H2_QUEUE_MAX     256            /* frames that wait for the server; with more, new streams are refused */
#define H2_ANSWERS_MAX   16384          /* ... for the client; one that reads none of them is cut off */

/* Two windows and what a filter makes of them, and a head, of each stream; the larger windows; both sockets' output.
 * Twice the windows: before what waits there may be as much that went. */
#define H2_MEMORY_MAX (H2_STREAMS_MAX * (2 * (2 * H2_WINDOW + 2 * H2_STEP) + 2 * HTTP1_HEAD_MAX) + \
                       2 * H2_EXTRA_MAX + 4 * H2_STEP)

struct h2;
struct h2_stream;

/* None of them may free the struct h2. */
struct h2_owner {
    /* A request wants to go out; @head is valid during the call only. The owner decides, and calls, now or later,
     * h2_go(), h2_refuse() or h2_reset(); or, now, h2_collect(). */
    void (*request)(struct h2_stream *s, const struct http1_head *head);
    /* The stream is over, or the connection: its ctx is to be freed, its filter not used any more. */
    void (*released)(struct h2_stream *s);
    /* The peer (the server, if @server) does what is not HTTP/2, or too much of it: @word for the log. What becomes of
     * the stream or the connection is settled here. */
    void (*fault)(struct h2 *h, const char *word, bool server);
};

enum h2_result {
    H2_LIVE,
    H2_DONE,                    /* over, in order */
    H2_BROKEN,                  /* over, and something is missing */
};

/* @client, @server: streams under TLS, borrowed; @server.fd -1: there is none, and every request is to be refused.
 * @now_ms: the loop's clock, borrowed. @host, @port: where all requests go; borrowed. NULL: no memory. */
struct h2 *h2_new(const struct h2_owner *owner, void *ctx, const struct stream *client, const struct stream *server,
                  struct str host, uint16_t port, const uint64_t *now_ms);
void h2_free(struct h2 *h);     /* NULL is fine */
void *h2_ctx(const struct h2 *h);
/* What answers lose, behind the filters; borrowed. */
void h2_set_strip(struct h2 *h, const struct strip *strip);

/* Do what can be done now. @client, @server: an event came for that socket (else it is not read from). */
enum h2_result h2_step(struct h2 *h, bool client, bool server);
uint32_t h2_client_events(const struct h2 *h);
uint32_t h2_server_events(const struct h2 *h);      /* 0 when there is no server any more */
uint64_t h2_deadline_ms(const struct h2 *h);
/* It has passed: then call h2_step() and see. */
void h2_timeout(struct h2 *h);
/* No further requests (GOAWAY); what is under way goes on. */
void h2_drain(struct h2 *h);
bool h2_server_lives(const struct h2 *h);
bool h2_client_ended(const struct h2 *h);

/* --- a stream ----------------------------------------------------------------------------------------------------- */

struct h2 *h2_of(const struct h2_stream *s);
void h2_set_filter(struct h2_stream *s, const struct exchange_filter *filter, void *filter_ctx);
void h2_set_ctx(struct h2_stream *s, void *ctx);
void *h2_stream_ctx(const struct h2_stream *s);

/* In owner.request, of a request that has a body, once: collect that, at most @max bytes (less than H2_WINDOW), and
 * call owner.request again. Then h2_gathered() says what came of it, as exchange_gathered() does; trailers make it
 * TOO_LONG. */
void h2_collect(struct h2_stream *s, size_t max);
enum exchange_gather h2_gathered(const struct h2_stream *s, struct str *body);
/* The owner's word on it. After a call outside of owner.request, h2_step() has to be called. */
void h2_go(struct h2_stream *s);
void h2_refuse(struct h2_stream *s, const struct answer *answer);
/* It ends without an answer, with that HTTP/2 error code. */
void h2_reset(struct h2_stream *s, uint32_t code);
/* Call owner.request anew for each stream that waits for the owner's word and for which @which says so. */
void h2_ask_again(struct h2 *h, bool (*which)(const struct h2_stream *s));
/* Call @fn for each stream that waits. */
void h2_each_waiting(struct h2 *h, void (*fn)(struct h2_stream *s, void *arg), void *arg);

#endif
