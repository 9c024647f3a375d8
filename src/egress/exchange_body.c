/* egress/exchange_body.c: bodies, from one end to the other (see exchange.h)
 *
 * A body that nobody changes passes with its own framing bytes, each of which the decoder has judged (http1.h): so
 * trailers pass too. One that a filter changes, or that an HTTP/1.0 client cannot read, is framed anew and its trailers
 * are dropped.
 */
#include "egress/exchange_priv.h"

#define DIRECT 4096         /* so many bytes are worth a system call of their own rather than a copy */

void
exchange_put(struct exchange *x, struct exchange_way *w, const void *p, size_t n)
{
    struct stream *to = w == &x->up ? &x->server : &x->client;
    ssize_t sent = 0;

    if (w->broken || n == 0)
        return;
    if (w->out.n == 0 && n >= DIRECT) {
        sent = stream_send(to, p, n);
        sent = sent < 0 ? 0 : sent;         /* what is wrong, the next attempt says too */
        w->moved += (uint64_t)sent;
    }
    if (buf_append(&w->out, (const uint8_t *)p + sent, n - (size_t)sent) < 0)
        exchange_break(x);
}

void
exchange_put_raw(struct exchange *x, struct exchange_way *w, const void *p, size_t n)
{
    struct buf made = BUF_INIT(EXCHANGE_OUT_MAX / 2);
    struct str data = { p, n };

    if (!x->look_raw) {
        exchange_put(x, w, p, n);
        return;
    }
    if ((w == &x->up ? x->filter->raw_up(x->filter_ctx, data, &made)
                     : x->filter->raw_down(x->filter_ctx, data, &made)) < 0 || !buf_ok(&made))
        exchange_break(x);
    else
        exchange_put(x, w, made.p, made.n);
    buf_free(&made);
}

enum http1_result
exchange_body_begin(struct exchange_way *w, const struct http1_head *head, enum http1_framing out, bool filtered)
{
    w->framing = out;
    w->filtered = filtered;
    w->raw = !filtered && out == head->framing;
    w->body_done = w->held_last = false;
    return http1_body_begin(&w->body, head, EXCHANGE_BODY_MAX);
}

static void
put_data(struct exchange *x, struct exchange_way *w, struct str data)
{
    if (data.n == 0 || w->broken)
        return;
    if (w->framing != HTTP1_BODY_CHUNKED)
        exchange_put(x, w, data.p, data.n);
    else if (http1_write_chunk(&w->out, data) < 0)
        exchange_break(x);
}

/* Through the filter; what it does not take is held. */
static enum http1_result
put_filtered(struct exchange *x, struct exchange_way *w, struct str data, bool last)
{
    struct buf made = BUF_INIT(EXCHANGE_OUT_MAX / 2);
    enum http1_result result = HTTP1_MORE;
    size_t used = 0;
    int r = w == &x->up ? x->filter->request_body(x->filter_ctx, data, last, &made, &used)
                        : x->filter->response_body(x->filter_ctx, data, last, &made, &used);

    if (r < 0 || !buf_ok(&made) || used > data.n || (used < data.n && used == 0 && made.n == 0)) {
        exchange_break(x);
        result = HTTP1_BODY_CUT;
    } else {
        put_data(x, w, (struct str){ (const char *)made.p, made.n });
        w->held_last = used < data.n && last;
        if (used < data.n && buf_append(&w->held, data.p + used, data.n - used) < 0)
            exchange_break(x);
    }
    buf_free(&made);
    return result;
}

/* All of it has come, and none is held. */
static enum http1_result
end_body(struct exchange *x, struct exchange_way *w)
{
    if (!w->raw && w->framing == HTTP1_BODY_CHUNKED && !w->broken && http1_write_last_chunk(&w->out) < 0)
        exchange_break(x);
    return HTTP1_OK;
}

static enum http1_result
one_piece(struct exchange *x, struct exchange_way *w, struct str data, bool last)
{
    w->body_done = last;
    if (w->filtered && (data.n > 0 || last))
        return put_filtered(x, w, data, last);
    if (!w->raw)
        put_data(x, w, data);
    return HTTP1_MORE;
}

enum http1_result
exchange_body_pass(struct exchange *x, struct exchange_way *w, const uint8_t *p, size_t n, size_t *used)
{
    enum http1_result result = HTTP1_MORE;

    *used = 0;
    while (*used < n && !w->body_done && (!w->filtered || !exchange_waits(w)) && x->result == EXCHANGE_LIVE) {
        struct str data;
        size_t took;

        result = http1_body_next(&w->body, p + *used, n - *used, &data, &took);
        if (result != HTTP1_OK && result != HTTP1_MORE)
            return result;
        *used += took;
        result = one_piece(x, w, data, result == HTTP1_OK);
        if (result != HTTP1_MORE)
            return result;
    }
    if (w->raw)
        exchange_put(x, w, p, *used);
    return w->body_done && w->held.n == 0 ? end_body(x, w) : HTTP1_MORE;
}

enum http1_result
exchange_body_resume(struct exchange *x, struct exchange_way *w)
{
    struct buf held = w->held;
    enum http1_result result;

    w->held = (struct buf)BUF_INIT(EXCHANGE_CHUNK);
    result = put_filtered(x, w, (struct str){ (const char *)held.p, held.n }, w->body_done);
    buf_free(&held);
    return result == HTTP1_MORE && w->body_done && w->held.n == 0 ? end_body(x, w) : result;
}

enum http1_result
exchange_body_close(struct exchange *x, struct exchange_way *w)
{
    enum http1_result result = http1_body_end(&w->body);

    if (result != HTTP1_OK)
        return result;
    w->body_done = true;
    /* what is held already comes before the end; exchange_body_resume() then says that it is the last */
    if (w->held.n > 0)
        return HTTP1_MORE;
    if (w->filtered && put_filtered(x, w, (struct str){ "", 0 }, true) != HTTP1_MORE)
        return HTTP1_BODY_CUT;
    return w->held.n == 0 ? end_body(x, w) : HTTP1_MORE;
}
