/* egress/h2_way.c: bodies of HTTP/2 streams, from one session to the other, with their windows (see h2.h)
 *
 *      DATA ─► held ─► filter ─► out ─► DATA of the other session
 *
 * What went out is given back to its sender as window, but never for bytes that the filter has not taken: so @held is
 * at most the window, and @out what the filter makes of one step.
 */
#include "egress/h2_priv.h"

#include <string.h>

static size_t extra_all;        /* bytes of larger windows, of all connections */

/* --- bytes in order ----------------------------------------------------------------------------------------------- */

size_t
h2_queue_n(const struct h2_queue *q)
{
    return q->b.n - q->at;
}

void
h2_queue_take(struct h2_queue *q, size_t n)
{
    q->at += n;
    if (q->at == q->b.n) {
        q->at = 0;
        buf_free(&q->b);
    } else if (q->at > q->b.n / 2) {
        buf_consume(&q->b, q->at);
        q->at = 0;
    }
}

/* Behind the others. What was taken from the front does not count against the ceiling. -1: no room, or no memory. */
static int
h2_queue_add(struct h2_queue *q, const uint8_t *p, size_t n)
{
    if (q->at > 0 && q->b.n + n > q->b.max) {
        buf_consume(&q->b, q->at);
        q->at = 0;
    }
    return buf_append(&q->b, p, n);
}

/* --- windows ------------------------------------------------------------------------------------------------------ */

static int32_t
source_id(const struct h2_stream *s, const struct h2_way *w)
{
    return w->up ? s->down_id : s->up_id;
}

static int32_t
sink_id(const struct h2_stream *s, const struct h2_way *w)
{
    return w->up ? s->up_id : s->down_id;
}

/* @n bytes more are done with. */
static void
give_back(struct h2_stream *s, struct h2_way *w, size_t n)
{
    struct h2_end *from = h2_source(s, w);
    size_t free_n = w->owed > h2_queue_n(&w->held) ? w->owed - h2_queue_n(&w->held) : 0;
    int32_t id = source_id(s, w);

    n = n < free_n ? n : free_n;
    if (h2_queue_n(&w->out) == 0)
        n = free_n;
    w->owed -= n;
    if (n > 0 && id >= 0 && from->s != NULL && !w->eof)
        (void)nghttp2_session_consume_stream(from->s, id, n);
}

/* A body came: its window may be larger while few have one. */
static void
enlarge(struct h2_stream *s, struct h2_way *w)
{
    struct h2 *h = s->h;
    size_t more = H2_WINDOW_LARGE - H2_WINDOW;

    if (w->extra > 0 || h->extra + more > H2_EXTRA_MAX || extra_all + more > H2_EXTRA_ALL_MAX)
        return;
    if (nghttp2_session_set_local_window_size(h2_source(s, w)->s, NGHTTP2_FLAG_NONE, source_id(s, w),
                                              (int32_t)H2_WINDOW_LARGE) != 0)
        return;
    w->extra = more;
    h->extra += more;
    extra_all += more;
}

static void
shrink(struct h2_stream *s, struct h2_way *w)
{
    s->h->extra -= w->extra;
    extra_all -= w->extra;
    w->extra = 0;
}

/* --- its life ----------------------------------------------------------------------------------------------------- */

void
h2_way_init(struct h2_way *w, bool up)
{
    *w = (struct h2_way){ .up = up, .held = { .b = BUF_INIT(H2_WINDOW_LARGE + H2_WINDOW) },
                          .out = { .b = BUF_INIT(2 * H2_WINDOW_LARGE) }, .trailer = BUF_INIT(HTTP1_HEAD_MAX) };
}

static void
empty(struct h2_way *w)
{
    buf_free(&w->held.b);
    buf_free(&w->out.b);
    buf_free(&w->trailer);
    w->held.at = w->out.at = 0;
}

void
h2_way_free(struct h2_stream *s, struct h2_way *w)
{
    empty(w);
    shrink(s, w);
}

void
h2_way_drop(struct h2_stream *s, struct h2_way *w)
{
    w->dropped = true;
    empty(w);
    give_back(s, w, w->owed);
}

static void
fail(struct h2_stream *s)
{
    h2_reset(s, NGHTTP2_INTERNAL_ERROR);
}

/* Through the filter, as far as it goes. */
static int
feed(struct h2_stream *s, struct h2_way *w)
{
    while (!w->fed && (h2_queue_n(&w->held) > 0 || w->eof) && h2_queue_n(&w->out) < H2_STEP) {
        size_t n = h2_queue_n(&w->held), before = w->out.b.n, used = 0;
        struct str data = { n > 0 ? (const char *)w->held.b.p + w->held.at : "", n };
        int r = w->up ? s->filter->request_body(s->filter_ctx, data, w->eof, &w->out.b, &used)
                      : s->filter->response_body(s->filter_ctx, data, w->eof, &w->out.b, &used);
        if (r < 0 || !buf_ok(&w->out.b) || used > n || (used == 0 && n > 0 && w->out.b.n == before))
            return -1;
        if (used > 0)
            h2_queue_take(&w->held, used);
        w->fed = w->eof && used == n;
    }
    return 0;
}

/* Bring on what can be brought on. @wake: the other session waits for it. */
static int
pump(struct h2_stream *s, struct h2_way *w, bool wake)
{
    struct h2_end *to = h2_sink(s, w);

    if (!w->open || w->dropped)
        return 0;
    if (w->filtered) {
        if (feed(s, w) < 0)
            return -1;
    } else {
        w->fed = w->eof;
    }
    if (h2_queue_n(&w->out) == 0)
        give_back(s, w, w->owed);
    if (wake && to->s != NULL && sink_id(s, w) >= 0 && (h2_queue_n(&w->out) > 0 || w->fed))
        (void)nghttp2_session_resume_data(to->s, sink_id(s, w));
    return 0;
}

int
h2_way_take(struct h2_stream *s, struct h2_way *w, const uint8_t *p, size_t n)
{
    bool straight = w->open && !w->filtered;

    w->owed += n;
    if (w->dropped) {
        give_back(s, w, n);
        return 0;
    }
    enlarge(s, w);
    /* more than the window: nghttp2 would have seen to that */
    if (h2_queue_add(straight ? &w->out : &w->held, p, n) < 0)
        return -1;
    if (pump(s, w, true) < 0)
        fail(s);
    if (w->up)
        h2_request_body(s);
    return 0;
}

void
h2_way_end(struct h2_stream *s, struct h2_way *w)
{
    w->eof = true;
    if (pump(s, w, true) < 0)
        fail(s);
    if (w->up)
        h2_request_body(s);
}

void
h2_way_open(struct h2_stream *s, struct h2_way *w, bool filtered)
{
    w->open = true;
    w->filtered = filtered;
    if (!filtered && h2_queue_n(&w->held) > 0) {
        struct h2_queue held = w->held;
        size_t max = w->out.b.max;
        w->held = w->out;
        w->out = held;
        w->out.b.max = max;
    }
    if (pump(s, w, true) < 0)
        fail(s);
}

/* --- what the other session sends --------------------------------------------------------------------------------- */

static int
send_trailer(struct h2_stream *s, struct h2_way *w)
{
    struct exchange_edit edit = { .n_drop = 0 };
    struct h2_fields fields = { .n = 0 };
    nghttp2_nv nv[H2_FIELDS_MAX];
    struct http1_head head, less;
    int (*ask)(void *, const struct http1_head *, struct exchange_edit *) =
        s->filter == NULL ? NULL : w->up ? s->filter->request_trailer : s->filter->response_trailer;
    int r = -1;

    if (http1_parse_response(w->trailer.p, w->trailer.n, STR_LIT("GET"), &head) != HTTP1_OK ||
        (ask != NULL && ask(s->filter_ctx, &head, &edit) < 0))
        return -1;
    if (h2_fields_trailer(&fields, w->up ? &head : strip_head(s->h->strip, &head, &less), &edit) == 0)
        r = nghttp2_submit_trailer(h2_sink(s, w)->s, sink_id(s, w), nv, h2_nv(&fields, nv));
    h2_fields_free(&fields);
    return r == 0 ? 0 : -1;
}

ssize_t
h2_way_read(nghttp2_session *session, int32_t id, uint8_t *out, size_t n, uint32_t *flags, nghttp2_data_source *source,
            void *ctx)
{
    struct h2_way *w = source->ptr;
    struct h2_stream *s = nghttp2_session_get_stream_user_data(session, id);
    size_t take;

    (void)ctx;
    if (s == NULL)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    take = h2_queue_n(&w->out) < n ? h2_queue_n(&w->out) : n;
    if (take > 0) {
        memcpy(out, w->out.b.p + w->out.at, take);
        h2_queue_take(&w->out, take);
        give_back(s, w, take);
    }
    if (pump(s, w, false) < 0) {
        fail(s);
        return NGHTTP2_ERR_DEFERRED;
    }
    if (w->fed && h2_queue_n(&w->out) == 0) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (w->trailer.n > 0) {
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            if (send_trailer(s, w) < 0) {
                fail(s);
                return NGHTTP2_ERR_DEFERRED;
            }
        }
        return (ssize_t)take;
    }
    return take > 0 ? (ssize_t)take : NGHTTP2_ERR_DEFERRED;
}
