/* egress/h2.c: see h2.h */
#include "egress/h2_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 16           /* a fast pair of peers gives way to the others after so many reads */
#define READ_N (64 * 1024)

/* What was just read: nghttp2 copies what it keeps. */
static uint8_t scratch[READ_N];

/* --- life --------------------------------------------------------------------------------------------------------- */

static int
end_open(struct h2 *h, struct h2_end *end, const struct stream *stream)
{
    end->stream = *stream;
    h2_guard_init(&end->guard, end == &h->client, *h->now_ms);
    return h2_session_open(h, end);
}

static void
end_close(struct h2_end *end)
{
    nghttp2_session_del(end->s);
    end->s = NULL;
    buf_free(&end->out.b);
    end->out.at = 0;
    if (end->in_block)
        h2_block_free(&end->block);
    end->in_block = false;
    end->stream = (struct stream){ .fd = -1 };
}

struct h2 *
h2_new(const struct h2_owner *owner, void *ctx, const struct stream *client, const struct stream *server,
       struct str host, uint16_t port, const uint64_t *now_ms)
{
    struct h2 *h = calloc(1, sizeof(*h));

    if (h == NULL)
        return NULL;
    *h = (struct h2){ .owner = owner, .ctx = ctx, .host = host, .port = port, .now_ms = now_ms, .moved_ms = *now_ms,
                      .client = { .out = { .b = BUF_INIT(4 * H2_STEP) } },
                      .server = { .out = { .b = BUF_INIT(4 * H2_STEP) }, .stream = { .fd = -1 } } };
    if (end_open(h, &h->client, client) < 0 || (server->fd >= 0 && end_open(h, &h->server, server) < 0)) {
        h2_free(h);
        return NULL;
    }
    return h;
}

static void
stream_free(struct h2_stream *s)
{
    struct h2 *h = s->h;

    if (s->prev != NULL)
        s->prev->next = s->next;
    else
        h->streams = s->next;
    if (s->next != NULL)
        s->next->prev = s->prev;
    h->n_streams--;
    h->moved_ms = *h->now_ms;
    h->owner->released(s);
    h2_way_free(s, &s->up);
    h2_way_free(s, &s->down);
    buf_free(&s->text);
    free(s);
}

void
h2_free(struct h2 *h)
{
    if (h == NULL)
        return;
    end_close(&h->client);
    end_close(&h->server);
    while (h->streams != NULL)
        stream_free(h->streams);
    free(h);
}

void
h2_set_strip(struct h2 *h, const struct strip *strip)
{
    h->strip = strip;
}

void *
h2_ctx(const struct h2 *h)
{
    return h->ctx;
}

struct h2_stream *
h2_stream_new(struct h2 *h, int32_t id)
{
    struct h2_stream *s = calloc(1, sizeof(*s));

    if (s == NULL)
        return NULL;
    *s = (struct h2_stream){ .h = h, .down_id = id, .up_id = -1, .text = BUF_INIT(2 * HTTP1_HEAD_MAX),
                             .next = h->streams };
    h2_way_init(&s->up, true);
    h2_way_init(&s->down, false);
    if (h->streams != NULL)
        h->streams->prev = s;
    h->streams = s;
    h->n_streams++;
    return s;
}

void
h2_stream_try_free(struct h2_stream *s)
{
    if (s->down_id < 0 && s->up_id < 0)
        stream_free(s);
}

/* --- faults and ends ---------------------------------------------------------------------------------------------- */

void
h2_rst(struct h2_end *end, struct h2 *h, int32_t id, uint32_t code)
{
    if (end->s != NULL && id > 0 && nghttp2_submit_rst_stream(end->s, NGHTTP2_FLAG_NONE, id, code) == 0 &&
        end == &h->client)
        h->resets++;
}

void
h2_reset(struct h2_stream *s, uint32_t code)
{
    struct h2 *h = s->h;

    if (s->phase == H2_DEAD)
        return;
    s->phase = H2_DEAD;
    h->moved_ms = *h->now_ms;
    h2_way_drop(s, &s->up);
    h2_way_drop(s, &s->down);
    buf_free(&s->text);
    if (s->down_id >= 0)
        h2_rst(&h->client, h, s->down_id, code);
    if (s->up_id >= 0)
        h2_rst(&h->server, h, s->up_id, NGHTTP2_CANCEL);
}

void
h2_drain(struct h2 *h)
{
    h->draining = true;
}

/* Behind the answers that are whole already: some clients read nothing after a GOAWAY. */
static void
say_goaway(struct h2 *h)
{
    if (!h->draining || h->said_goaway)
        return;
    for (const struct h2_stream *s = h->streams; s != NULL; s = s->next)
        if (s->down_id >= 0 && s->down.eof && !s->down.sent && s->phase != H2_DEAD)
            return;
    h->said_goaway = true;
    (void)nghttp2_submit_goaway(h->client.s, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(h->client.s),
                                NGHTTP2_NO_ERROR, NULL, 0);
}

/* @word for the log, and the connection ends: the client is told, but nothing is waited for. */
void
h2_fault(struct h2 *h, const char *word, bool server)
{
    if (h->result != H2_LIVE)
        return;
    h->owner->fault(h, word, server);
    h->result = H2_BROKEN;
    if (!server)
        (void)nghttp2_session_terminate_session(h->client.s, NGHTTP2_ENHANCE_YOUR_CALM);
}

bool
h2_server_lives(const struct h2 *h)
{
    return h->server.s != NULL;
}

bool
h2_client_ended(const struct h2 *h)
{
    return h->client.eof;
}

/* The server is not there any more: who waits for it is told. */
static void
h2_server_gone(struct h2 *h)
{
    const struct answer answer = { .status = 502, .phrase = "Bad Gateway", .reason = "unreachable",
                                   .detail = "the server ended the connection before it had answered",
                                   .host = h->host, .port = h->port };

    if (h->server.s == NULL)
        return;
    end_close(&h->server);
    h2_drain(h);
    for (struct h2_stream *s = h->streams, *next; s != NULL; s = next) {
        bool whole = s->down.eof;
        next = s->next;
        s->up_id = -1;
        h2_way_drop(s, &s->up);
        if (s->down_id < 0)
            h2_stream_try_free(s);
        else if (s->phase == H2_SENT && !s->answered)
            h2_refuse(s, &answer);
        else if (s->phase == H2_OPENING || s->phase == H2_ASKED)
            h2_reset(s, NGHTTP2_REFUSED_STREAM);
        else if (s->phase == H2_SENT && !whole)
            h2_reset(s, NGHTTP2_INTERNAL_ERROR);
    }
}

/* --- the sockets -------------------------------------------------------------------------------------------------- */

static void
broken(struct h2 *h, struct h2_end *end)
{
    end->broken = true;
    if (end == &h->server)
        h2_server_gone(h);
    else if (h->result == H2_LIVE)
        h->result = H2_BROKEN;
}

/* Frames into the buffer. */
static int
fetch(struct h2_end *end)
{
    while (h2_queue_n(&end->out) < H2_STEP) {
        const uint8_t *p;
        ssize_t n = nghttp2_session_mem_send(end->s, &p);
        if (n == 0)
            return 0;
        if (n < 0 || buf_append(&end->out.b, p, (size_t)n) < 0)
            return -1;
    }
    return 0;
}

static void
flush(struct h2 *h, struct h2_end *end)
{
    while (end->s != NULL && !end->broken) {
        ssize_t n;
        if (fetch(end) < 0) {
            broken(h, end);
            return;
        }
        if (end->s == NULL || h2_queue_n(&end->out) == 0)
            return;
        n = stream_send(&end->stream, end->out.b.p + end->out.at, h2_queue_n(&end->out));
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0) {
            broken(h, end);
            return;
        }
        h2_queue_take(&end->out, (size_t)n);
    }
}

static const char *
word_of(ssize_t error)
{
    switch (error) {
    case NGHTTP2_ERR_BAD_CLIENT_MAGIC: return "h2-preface";
    case NGHTTP2_ERR_FLOODED: return "h2-small-flood";
    default: return "h2-protocol";
    }
}

/* One read. True when there may be more. */
static bool
fill(struct h2 *h, struct h2_end *end)
{
    bool server = end == &h->server;
    ssize_t n = stream_recv(&end->stream, scratch, sizeof(scratch)), used;
    const char *word;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        end->eof = true;
        if (server)
            h2_server_gone(h);
        else if (h->result == H2_LIVE)
            h->result = h->n_streams == 0 ? H2_DONE : H2_BROKEN;
        return false;
    }
    h->moved_ms = *h->now_ms;
    h->any |= !server;
    word = h2_guard_feed(&end->guard, scratch, (size_t)n, *h->now_ms);
    if (word == NULL) {
        used = nghttp2_session_mem_recv(end->s, scratch, (size_t)n);
        word = used < 0 ? word_of(used) : NULL;
    }
    if (word == NULL && !server && nghttp2_session_get_outbound_queue_size(end->s) > H2_ANSWERS_MAX)
        word = "h2-small-flood";
    if (word != NULL && server) {
        h->owner->fault(h, word, true);
        h2_server_gone(h);
    } else if (word != NULL) {
        h2_fault(h, word, false);
    }
    return h->result == H2_LIVE && end->s != NULL && ((size_t)n == sizeof(scratch) || stream_pending(&end->stream));
}

/* Whether a session has nothing more to say or to hear. */
static bool
is_over(const struct h2_end *end)
{
    return end->s != NULL && nghttp2_session_want_read(end->s) == 0 && nghttp2_session_want_write(end->s) == 0 &&
           h2_queue_n(&end->out) == 0;
}

enum h2_result
h2_step(struct h2 *h, bool client, bool server)
{
    for (int round = 0; round < ROUNDS && h->result == H2_LIVE; round++) {
        flush(h, &h->server);
        flush(h, &h->client);
        client = client && h->result == H2_LIVE && fill(h, &h->client);
        server = server && h->result == H2_LIVE && h->server.s != NULL && fill(h, &h->server);
        if (!client && !server)
            break;
    }
    /* what came of it goes out, and what that set off */
    for (int round = 0; round < 2 && h->result == H2_LIVE; round++) {
        flush(h, &h->server);
        flush(h, &h->client);
    }
    if (h->result == H2_LIVE && is_over(&h->server))
        h2_server_gone(h);
    if (h->result == H2_LIVE) {
        flush(h, &h->client);
        say_goaway(h);
    }
    if (!h->client.broken && h->result != H2_DONE)
        flush(h, &h->client);           /* BROKEN: says why */
    if (h->result == H2_LIVE && is_over(&h->client))
        h->result = H2_DONE;
    return h->result;
}

static uint32_t
events(const struct h2_end *end)
{
    if (end->s == NULL)
        return 0;
    /* what is in memory already wakes nobody: that the socket can be written to does */
    return stream_events(&end->stream, !end->eof, h2_queue_n(&end->out) > 0 || stream_pending(&end->stream) ||
                                                  nghttp2_session_want_write(end->s) != 0);
}

uint32_t
h2_client_events(const struct h2 *h)
{
    return events(&h->client);
}

uint32_t
h2_server_events(const struct h2 *h)
{
    return events(&h->server);
}

/* --- time --------------------------------------------------------------------------------------------------------- */

static bool
is_slow(const struct h2_guard *g, uint64_t now_ms)
{
    return g->in_block && now_ms >= g->block_ms + EXCHANGE_HEAD_MS;
}

/* A stream waits for the owner's word (not for its client's body), who knows for how long: nothing is stalled by
 * that. */
static bool
is_asked_about(const struct h2 *h)
{
    for (const struct h2_stream *s = h->streams; s != NULL; s = s->next)
        if (s->phase == H2_ASKED && !s->collects)
            return true;
    return false;
}

uint64_t
h2_deadline_ms(const struct h2 *h)
{
    uint64_t at = is_asked_about(h) ? UINT64_MAX
                  : h->moved_ms + (!h->any ? EXCHANGE_HEAD_MS : h->n_streams == 0 ? EXCHANGE_IDLE_MS
                                                                                  : EXCHANGE_STALL_MS);
    const struct h2_guard *guards[] = { &h->client.guard, &h->server.guard };

    for (int i = 0; i < 2; i++)
        if (guards[i]->in_block && guards[i]->block_ms + EXCHANGE_HEAD_MS < at)
            at = guards[i]->block_ms + EXCHANGE_HEAD_MS;
    return at;
}

void
h2_timeout(struct h2 *h)
{
    if (h->result != H2_LIVE || *h->now_ms < h2_deadline_ms(h))
        return;
    if (is_slow(&h->client.guard, *h->now_ms)) {
        h2_fault(h, "http-slow", false);
    } else if (h->server.s != NULL && is_slow(&h->server.guard, *h->now_ms)) {
        h->owner->fault(h, "http-slow", true);
        h2_server_gone(h);
    } else if (h->n_streams > 0) {
        h->result = H2_BROKEN;
    } else if (!h->draining) {
        h2_drain(h);
        h->moved_ms = *h->now_ms;       /* for the client to go */
    } else {
        h->result = H2_DONE;
    }
}
