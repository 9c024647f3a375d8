/* egress/h2_session.c: nghttp2's callbacks, for both sessions of a connection (see h2.h)
 *
 * A session knows its stream of ours as user data. Callbacks may submit frames to either session; nothing is sent or
 * read from within one.
 */
#include "egress/h2_priv.h"

#include <string.h>

#define SEND_HEAD_MAX (8 * HTTP1_HEAD_MAX)      /* bytes of a head that we write: values may be longer than they were */

static struct h2_end *
end_of(struct h2 *h, nghttp2_session *session)
{
    return session == h->client.s ? &h->client : &h->server;
}

static struct h2_stream *
stream_of(nghttp2_session *session, int32_t id)
{
    return id > 0 ? nghttp2_session_get_stream_user_data(session, id) : NULL;
}

/* --- heads -------------------------------------------------------------------------------------------------------- */

static bool
takes_streams(const struct h2 *h)
{
    if (h->draining || h->result != H2_LIVE || h->n_streams >= H2_STREAMS_MAX)
        return false;
    return h->server.s == NULL || nghttp2_session_get_outbound_queue_size(h->server.s) < H2_QUEUE_MAX;
}

static int
on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct h2 *h = ctx;
    struct h2_end *end = end_of(h, session);
    int32_t id = frame->hd.stream_id;
    struct h2_stream *s = stream_of(session, id);
    enum h2_kind kind;

    if (end->in_block)
        h2_block_free(&end->block);
    end->in_block = false;
    if (frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    if (end == &h->client && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        s = takes_streams(h) ? h2_stream_new(h, id) : NULL;
        if (s == NULL) {
            h2_rst(end, h, id, NGHTTP2_REFUSED_STREAM);
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        }
        (void)nghttp2_session_set_stream_user_data(session, id, s);
        kind = H2_REQUEST;
    } else if (s == NULL) {
        return 0;
    } else {
        kind = end == &h->client || s->answered ? H2_TRAILER : H2_RESPONSE;
    }
    h2_block_begin(&end->block, kind);
    end->in_block = true;
    return 0;
}

static int
on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_n,
          const uint8_t *value, size_t value_n, uint8_t flags, void *ctx)
{
    struct h2_end *end = end_of(ctx, session);

    (void)frame;
    (void)flags;
    if (end->in_block)
        h2_block_field(&end->block, (struct str){ (const char *)name, name_n },
                       (struct str){ (const char *)value, value_n });
    return 0;
}

/* nghttp2 would pass over it; what is wrong is not to be read differently by anybody. */
static int
on_invalid_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_n,
                  const uint8_t *value, size_t value_n, uint8_t flags, void *ctx)
{
    struct h2_end *end = end_of(ctx, session);

    (void)on_header(session, frame, name, name_n, value, value_n, flags, ctx);
    if (end->in_block && end->block.fault == HTTP1_OK)
        end->block.fault = HTTP1_BAD_NAME;
    return 0;
}

static void
on_headers(struct h2 *h, struct h2_end *end, struct h2_stream *s, const nghttp2_frame *frame)
{
    bool last = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;

    if (!end->in_block)
        return;
    end->in_block = false;
    if (s == NULL || s->phase == H2_DEAD)
        ;
    else if (end->block.kind == H2_REQUEST)
        h2_request_head(s, &end->block, last);
    else if (end == &h->client)
        h2_request_trailer(s, &end->block);
    else
        h2_response_head(s, &end->block, last);
    h2_block_free(&end->block);
}

/* --- what comes --------------------------------------------------------------------------------------------------- */

/* Whether what @end says of it still counts: behind an answer of ours the server's does not. */
static bool
is_live(const struct h2_stream *s, const struct h2_end *end)
{
    return s->phase != H2_DEAD && (end == &s->h->client || s->phase == H2_SENT);
}

static int
on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct h2 *h = ctx;
    struct h2_end *end = end_of(h, session);
    struct h2_stream *s = stream_of(session, frame->hd.stream_id);
    bool last = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;

    if (frame->hd.type == NGHTTP2_HEADERS)
        on_headers(h, end, s, frame);
    if (frame->hd.type == NGHTTP2_GOAWAY && end == &h->server)
        h2_drain(h);
    /* the head itself may have changed what becomes of it */
    s = stream_of(session, frame->hd.stream_id);
    if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) && last && s != NULL && is_live(s, end))
        h2_way_end(s, end == &h->client ? &s->up : &s->down);
    return 0;
}

static int
on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *ctx)
{
    struct h2 *h = ctx;
    struct h2_end *end = end_of(h, session);
    struct h2_stream *s = stream_of(session, id);

    (void)flags;
    /* one stream that nobody reads may not hold up the others: memory is bounded by the streams' windows */
    (void)nghttp2_session_consume_connection(session, n);
    if (s == NULL || !is_live(s, end)) {
        (void)nghttp2_session_consume_stream(session, id, n);
        return 0;
    }
    if (end == &h->server && (!s->answered || s->bodiless)) {
        h2_bad_answer(s, "a body that belongs to no answer");
        return 0;
    }
    return h2_way_take(s, end == &h->client ? &s->up : &s->down, p, n) < 0 ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

/* --- how streams end ---------------------------------------------------------------------------------------------- */

static void
client_closed(struct h2_stream *s, uint32_t code)
{
    struct h2 *h = s->h;

    s->down_id = -1;
    h2_way_drop(s, &s->down);
    if (s->up_id >= 0 && (!s->up.eof || !s->down.sent || code != NGHTTP2_NO_ERROR))
        h2_rst(&h->server, h, s->up_id, code == NGHTTP2_NO_ERROR ? (uint32_t)NGHTTP2_CANCEL : code);
    if (s->phase == H2_ASKED || s->phase == H2_OPENING)
        s->phase = H2_DEAD;
}

static void
server_closed(struct h2_stream *s, uint32_t code)
{
    struct h2 *h = s->h;

    s->up_id = -1;
    h2_way_drop(s, &s->up);
    if (s->phase == H2_DEAD || s->down_id < 0)
        return;
    if (s->phase == H2_REFUSED || (code == NGHTTP2_NO_ERROR && s->down.eof)) {
        /* the answer is whole; when it is out, a client that still sends is told to stop */
        if (s->down.sent && !s->up.eof)
            h2_rst(&h->client, h, s->down_id, NGHTTP2_NO_ERROR);
        return;
    }
    s->phase = H2_DEAD;
    h2_rst(&h->client, h, s->down_id, code == NGHTTP2_NO_ERROR ? (uint32_t)NGHTTP2_INTERNAL_ERROR : code);
}

static int
on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *ctx)
{
    struct h2 *h = ctx;
    struct h2_end *end = end_of(h, session);
    struct h2_stream *s = stream_of(session, id);

    if (s == NULL)
        return 0;
    (void)nghttp2_session_set_stream_user_data(session, id, NULL);
    if (end == &h->client)
        client_closed(s, code);
    else
        server_closed(s, code);
    h2_stream_try_free(s);
    return 0;
}

/* --- what is sent ------------------------------------------------------------------------------------------------- */

/* nghttp2 ends a session by itself when the peer breaks the rules of frames. */
static void
on_goaway_sent(struct h2 *h, const struct h2_end *end, uint32_t code)
{
    const char *word = code == NGHTTP2_ENHANCE_YOUR_CALM ? "h2-small-flood" : "h2-protocol";

    if (code == NGHTTP2_NO_ERROR || h->result != H2_LIVE)
        return;
    if (end == &h->client)
        h2_fault(h, word, false);
    else
        h->owner->fault(h, word, true);
}

static int
on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct h2 *h = ctx;
    struct h2_end *end = end_of(h, session);
    struct h2_stream *s = stream_of(session, frame->hd.stream_id);
    bool content = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    const char *word = NULL;

    if (frame->hd.type == NGHTTP2_DATA)
        h2_guard_sent(&end->guard);
    if (frame->hd.type == NGHTTP2_GOAWAY)
        on_goaway_sent(h, end, frame->goaway.error_code);
    if (frame->hd.type == NGHTTP2_RST_STREAM && end == &h->client) {
        if (h->resets > 0)
            h->resets--;
        else
            word = h2_guard_reset(&end->guard, *h->now_ms);
    }
    if (word != NULL)
        h2_fault(h, word, false);
    if (!content || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0 || s == NULL)
        return 0;
    (end == &h->client ? &s->down : &s->up)->sent = true;
    if (end == &h->client && s->up_id < 0 && !s->up.eof && s->phase != H2_DEAD)
        h2_rst(end, h, s->down_id, NGHTTP2_NO_ERROR);       /* RFC 9113 §8.1 */
    return 0;
}

static int
on_frame_not_send(nghttp2_session *session, const nghttp2_frame *frame, int error, void *ctx)
{
    struct h2 *h = ctx;
    struct h2_end *end = end_of(h, session);
    int32_t id = frame->hd.stream_id;

    if (frame->hd.type == NGHTTP2_RST_STREAM && end == &h->client && h->resets > 0)
        h->resets--;
    if (frame->hd.type != NGHTTP2_HEADERS || error == NGHTTP2_ERR_STREAM_CLOSED || error == NGHTTP2_ERR_STREAM_CLOSING)
        return 0;
    /* an answer's, or trailers: the stream is there, and on_stream_close() will hear of its end */
    if (end == &h->client || frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
        struct h2_stream *s = stream_of(session, id);
        if (s != NULL)
            h2_reset(s, NGHTTP2_INTERNAL_ERROR);
        return 0;
    }
    for (struct h2_stream *s = h->streams, *next; s != NULL; s = next) {
        next = s->next;
        if (s->up_id != id)
            continue;
        (void)nghttp2_session_set_stream_user_data(session, id, NULL);
        server_closed(s, NGHTTP2_REFUSED_STREAM);
        h2_stream_try_free(s);
    }
    return 0;
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

static void
set_callbacks(nghttp2_session_callbacks *to)
{
    nghttp2_session_callbacks_set_on_begin_headers_callback(to, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(to, on_header);
    nghttp2_session_callbacks_set_on_invalid_header_callback(to, on_invalid_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(to, on_frame_recv);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(to, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(to, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(to, on_frame_send);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(to, on_frame_not_send);
}

static int
settings(struct h2_end *end, bool client)
{
    const nghttp2_settings_entry entries[] = {
        { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, client ? H2_STREAMS_MAX : 0 },
        { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, H2_WINDOW },
        { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP1_HEAD_MAX },
        { NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
    };

    /* a server says nothing about push */
    if (nghttp2_submit_settings(end->s, NGHTTP2_FLAG_NONE, entries, client ? 3 : 4) != 0)
        return -1;
    return nghttp2_session_set_local_window_size(end->s, NGHTTP2_FLAG_NONE, 0, (int32_t)(8 * H2_WINDOW_LARGE)) == 0
           ? 0 : -1;
}

int
h2_session_open(struct h2 *h, struct h2_end *end)
{
    bool client = end == &h->client;
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    int r = -1;

    if (nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0) {
        set_callbacks(callbacks);
        nghttp2_option_set_no_auto_window_update(option, 1);
        nghttp2_option_set_no_closed_streams(option, 1);
        nghttp2_option_set_max_send_header_block_length(option, SEND_HEAD_MAX);
        r = client ? nghttp2_session_server_new2(&end->s, callbacks, h, option)
                   : nghttp2_session_client_new2(&end->s, callbacks, h, option);
    }
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    return r != 0 ? -1 : settings(end, client);
}
