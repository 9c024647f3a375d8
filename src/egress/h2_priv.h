/* egress/h2_priv.h: what the files of HTTP/2 share */
#ifndef CLOCHE_EGRESS_H2_PRIV_H
#define CLOCHE_EGRESS_H2_PRIV_H

#include <nghttp2/nghttp2.h>

#include "egress/h2.h"
#include "egress/h2_guard.h"

/* Bytes that are taken from the front. */
struct h2_queue {
    struct buf b;
    size_t at;
};

/* One direction of a stream. */
struct h2_way {
    bool up;                    /* to the server */
    struct h2_queue held;       /* came, and the filter has not taken it, or nothing is decided yet */
    struct h2_queue out;        /* goes out next */
    size_t owed;                /* bytes of window that its sender has not got back */
    size_t extra;               /* bytes by which its window is larger than H2_WINDOW */
    struct buf trailer;         /* as a head's text; empty: none */
    bool filtered;
    bool open;                  /* its head is out */
    bool eof;                   /* its sender has ended it */
    bool fed;                   /* all of it is in @out */
    bool dropped;               /* what comes is thrown away */
    bool sent;                  /* its end is out */
};

/* A request: asked about, then on its way or refused. DEAD: it was reset, and only its streams' ends are waited for. */
enum h2_phase { H2_OPENING, H2_ASKED, H2_SENT, H2_REFUSED, H2_DEAD };

struct h2_stream {
    struct h2 *h;
    struct h2_stream *prev, *next;
    void *ctx;
    const struct exchange_filter *filter;
    void *filter_ctx;
    int32_t down_id, up_id;     /* towards the client, the server; -1: none */
    enum h2_phase phase;
    bool answered;              /* the final answer's head is out */
    bool bodiless;              /* ... and no body may follow it */
    bool te;
    bool ended;                 /* the request has no body */
    unsigned interim;
    char method[HTTP1_METHOD_MAX];
    size_t method_n;
    struct buf text;            /* of the request's head, while it is asked about */
    bool collects;              /* its owner waits for the body */
    size_t gather_max;
    enum exchange_gather gathered;
    struct h2_way up, down;
};

/* One session and its socket. */
struct h2_end {
    nghttp2_session *s;         /* NULL: none (any more) */
    struct stream stream;
    struct h2_queue out;
    struct h2_guard guard;
    struct h2_block block;      /* the head that is being read */
    bool in_block;
    bool eof, broken;
};

struct h2 {
    const struct h2_owner *owner;
    void *ctx;
    struct str host;
    uint16_t port;
    const uint64_t *now_ms;
    const struct strip *strip;
    struct h2_end client, server;
    struct h2_stream *streams;
    size_t n_streams;
    size_t extra;               /* of all its streams' windows */
    unsigned resets;            /* on their way to the client, and meant by us */
    uint64_t moved_ms;          /* when something last came, was let go or refused, or ended */
    bool draining;              /* no more streams */
    bool said_goaway;
    bool any;                   /* bytes of the client have come */
    enum h2_result result;
};

/* h2_session.c: with callbacks; 0 or -1. */
int h2_session_open(struct h2 *h, struct h2_end *end);

/* h2.c */
struct h2_stream *h2_stream_new(struct h2 *h, int32_t id);
/* Once neither session knows it. */
void h2_stream_try_free(struct h2_stream *s);
void h2_rst(struct h2_end *end, struct h2 *h, int32_t id, uint32_t code);
void h2_fault(struct h2 *h, const char *word, bool server);

/* h2_up.c, h2_down.c: a head is complete in @b. @end: no body follows. */
void h2_request_head(struct h2_stream *s, const struct h2_block *b, bool end);
void h2_request_trailer(struct h2_stream *s, const struct h2_block *b);
/* More of the body is held. */
void h2_request_body(struct h2_stream *s);
void h2_response_head(struct h2_stream *s, const struct h2_block *b, bool end);
void h2_bad_answer(struct h2_stream *s, const char *detail);
/* @fields as nghttp2 wants them. How many. */
size_t h2_nv(const struct h2_fields *fields, nghttp2_nv *out);

/* h2_way.c */
void h2_way_init(struct h2_way *w, bool up);
void h2_way_free(struct h2_stream *s, struct h2_way *w);
/* Bytes of body came. */
int h2_way_take(struct h2_stream *s, struct h2_way *w, const uint8_t *p, size_t n);
/* It has ended at its sender. */
void h2_way_end(struct h2_stream *s, struct h2_way *w);
/* Its head is out: what is held goes on. */
void h2_way_open(struct h2_stream *s, struct h2_way *w, bool filtered);
/* Nothing of it is wanted any more. */
void h2_way_drop(struct h2_stream *s, struct h2_way *w);
ssize_t h2_way_read(nghttp2_session *session, int32_t id, uint8_t *out, size_t n, uint32_t *flags,
                    nghttp2_data_source *source, void *ctx);

size_t h2_queue_n(const struct h2_queue *q);
void h2_queue_take(struct h2_queue *q, size_t n);

static inline struct h2_end *
h2_source(const struct h2_stream *s, const struct h2_way *w)
{
    return w->up ? &s->h->client : &s->h->server;
}

static inline struct h2_end *
h2_sink(const struct h2_stream *s, const struct h2_way *w)
{
    return w->up ? &s->h->server : &s->h->client;
}

#endif
