/* egress/h2_up.c: requests, from the client's session to the server's (see h2.h) */
#include "egress/h2_priv.h"

#include <stdio.h>
#include <string.h>

size_t
h2_nv(const struct h2_fields *fields, nghttp2_nv *out)
{
    for (size_t i = 0; i < fields->n; i++) {
        const struct h2_field *f = &fields->v[i];
        /* nghttp2 copies both: they are only not const for it */
        out[i] = (nghttp2_nv){ .name = (uint8_t *)(uintptr_t)f->name.p, .value = (uint8_t *)(uintptr_t)f->value.p,
                               .namelen = f->name.n, .valuelen = f->value.n,
                               .flags = f->secret ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE };
    }
    return fields->n;
}

struct h2 *
h2_of(const struct h2_stream *s)
{
    return s->h;
}

void
h2_set_filter(struct h2_stream *s, const struct exchange_filter *filter, void *filter_ctx)
{
    s->filter = filter;
    s->filter_ctx = filter_ctx;
}

void
h2_set_ctx(struct h2_stream *s, void *ctx)
{
    s->ctx = ctx;
}

void *
h2_stream_ctx(const struct h2_stream *s)
{
    return s->ctx;
}

/* --- asking ------------------------------------------------------------------------------------------------------- */

/* Answered here, with what HTTP/1.1 would be answered. */
static void
h2_up_refuse(struct h2_stream *s, unsigned status, const char *phrase, const char *reason, const char *detail)
{
    const struct answer answer = { .status = status, .phrase = phrase, .reason = reason,
                                   .detail = detail != NULL ? detail : "", .host = s->h->host, .port = s->h->port };

    h2_refuse(s, &answer);
}

void
h2_request_head(struct h2_stream *s, const struct h2_block *b, bool end)
{
    struct http1_head head;
    enum http1_result result = h2_block_request(b, end, &s->text, &head);

    s->te = b->te;
    s->ended = end;
    if (result == HTTP1_OK) {
        memcpy(s->method, head.method.p, head.method.n);
        s->method_n = head.method.n;
        s->phase = H2_ASKED;
        s->h->owner->request(s, &head);
        return;
    }
    s->phase = H2_ASKED;
    s->h->owner->fault(s->h, http1_word(result), false);
    h2_up_refuse(s, http1_answer(result), "Bad Request", http1_word(result), "the request is not plain HTTP/2");
}

static bool
read_again(struct h2_stream *s, struct http1_head *head)
{
    return s->phase == H2_ASKED && http1_parse_request(s->text.p, s->text.n, head) == HTTP1_OK;
}

void
h2_ask_again(struct h2 *h, bool (*which)(const struct h2_stream *s))
{
    struct http1_head head;

    for (struct h2_stream *s = h->streams; s != NULL; s = s->next)
        if (which(s) && read_again(s, &head))
            h->owner->request(s, &head);
}

void
h2_collect(struct h2_stream *s, size_t max)
{
    s->gather_max = max;
    s->collects = s->phase == H2_ASKED && !s->ended && s->gathered == EXCHANGE_NOT_GATHERED;
}

enum exchange_gather
h2_gathered(const struct h2_stream *s, struct str *body)
{
    const struct h2_queue *held = &s->up.held;
    size_t n = h2_queue_n(held);

    *body = (struct str){ n > 0 ? (const char *)held->b.p + held->at : "", n };
    return s->gathered;
}

void
h2_request_body(struct h2_stream *s)
{
    bool long_ = h2_queue_n(&s->up.held) > s->gather_max || s->up.trailer.n > 0;
    struct http1_head head;

    if (!s->collects || s->phase != H2_ASKED || (!long_ && !s->up.eof))
        return;
    s->collects = false;
    s->gathered = long_ ? EXCHANGE_TOO_LONG : EXCHANGE_GATHERED;
    if (read_again(s, &head))
        s->h->owner->request(s, &head);
    else
        h2_reset(s, NGHTTP2_INTERNAL_ERROR);
}

void
h2_each_waiting(struct h2 *h, void (*fn)(struct h2_stream *s, void *arg), void *arg)
{
    for (struct h2_stream *s = h->streams; s != NULL; s = s->next)
        if (s->phase == H2_ASKED)
            fn(s, arg);
}

/* --- going -------------------------------------------------------------------------------------------------------- */

static bool
ask_filter(struct h2_stream *s, const struct http1_head *head, struct exchange_edit *edit)
{
    int r = s->filter == NULL || s->filter->request_head == NULL
            ? 0 : s->filter->request_head(s->filter_ctx, head, NULL, edit);

    if (r == 0 && edit->body == EXCHANGE_BODY_WHOLE)
        r = -1;         /* a stream is never collected */
    if (r < 0)
        h2_up_refuse(s, 403, "Forbidden", edit->refuse != NULL ? edit->refuse : "filter", edit->detail);
    return r == 0;
}

static int
submit(struct h2_stream *s, const struct http1_head *head, const struct exchange_edit *edit)
{
    struct h2 *h = s->h;
    const struct h2_target to = { .host = h->host, .port = h->port, .te = s->te };
    nghttp2_data_provider body = { .source = { .ptr = &s->up }, .read_callback = h2_way_read };
    struct h2_fields fields = { .n = 0 };
    nghttp2_nv nv[H2_FIELDS_MAX];
    int32_t id = -1;

    if (h2_fields_request(&fields, head, edit, &to, edit->body != EXCHANGE_BODY_STREAM) < 0) {
        h2_up_refuse(s, 403, "Forbidden", "http-rewrite", "the request cannot be passed on");
        h2_fields_free(&fields);
        return -1;
    }
    id = nghttp2_submit_request(h->server.s, NULL, nv, h2_nv(&fields, nv), s->ended ? NULL : &body, s);
    h2_fields_free(&fields);
    if (id < 0) {
        h2_reset(s, NGHTTP2_REFUSED_STREAM);
        return -1;
    }
    s->up_id = id;
    return 0;
}

void
h2_go(struct h2_stream *s)
{
    struct h2 *h = s->h;
    struct exchange_edit edit = { .n_drop = 0 };
    struct http1_head head;

    if (!read_again(s, &head))
        return;
    if (s->collects || s->gathered == EXCHANGE_TOO_LONG) {      /* nobody may let out what was not seen whole */
        h2_reset(s, NGHTTP2_INTERNAL_ERROR);
        return;
    }
    if (h->server.s == NULL || nghttp2_session_check_request_allowed(h->server.s) == 0) {
        h2_drain(h);
        h2_reset(s, NGHTTP2_REFUSED_STREAM);
        return;
    }
    if (!ask_filter(s, &head, &edit) || submit(s, &head, &edit) < 0)
        return;
    s->phase = H2_SENT;
    h->moved_ms = *h->now_ms;
    buf_free(&s->text);
    if (!s->ended)
        h2_way_open(s, &s->up, s->filter != NULL && s->filter->request_body != NULL &&
                               edit.body != EXCHANGE_BODY_PASS);
}

void
h2_request_trailer(struct h2_stream *s, const struct h2_block *b)
{
    struct h2 *h = s->h;
    struct http1_head head;
    enum http1_result result;
    const char *word;

    if (s->up.dropped)
        return;
    result = h2_block_trailer(b, &s->up.trailer, &head);
    if (result == HTTP1_OK)
        return;
    h->owner->fault(h, http1_word(result), false);
    h2_reset(s, NGHTTP2_PROTOCOL_ERROR);
    word = h2_guard_reset(&h->client.guard, *h->now_ms);       /* the client made us */
    if (word != NULL)
        h2_fault(h, word, false);
}

/* --- refusing ----------------------------------------------------------------------------------------------------- */

/* The answer's head, with its body in @s->down. */
static int
submit_answer(struct h2_stream *s, struct buf *text)
{
    struct str method = { s->method, s->method_n };
    nghttp2_data_provider body = { .source = { .ptr = &s->down }, .read_callback = h2_way_read };
    struct h2_fields fields = { .n = 0 };
    nghttp2_nv nv[H2_FIELDS_MAX];
    struct http1_head head;
    int r = -1;

    if (http1_parse_response(text->p, text->n, method, &head) == HTTP1_OK &&
        h2_fields_response(&fields, &head, NULL, true) == 0 &&
        buf_append(&s->down.out.b, text->p + head.length, text->n - head.length) == 0) {
        s->down.open = s->down.eof = s->down.fed = true;
        r = nghttp2_submit_response(s->h->client.s, s->down_id, nv, h2_nv(&fields, nv),
                                    text->n > head.length ? &body : NULL);
    }
    h2_fields_free(&fields);
    return r == 0 ? 0 : -1;
}

void
h2_refuse(struct h2_stream *s, const struct answer *answer)
{
    struct buf text = BUF_INIT(ANSWER_MAX);
    bool is_head = s->method_n == 4 && memcmp(s->method, "HEAD", 4) == 0;

    if (s->phase == H2_DEAD || s->phase == H2_REFUSED || s->down_id < 0)
        return;
    if (s->answered || answer_write(&text, answer, is_head, true) < 0) {
        buf_free(&text);
        h2_reset(s, NGHTTP2_INTERNAL_ERROR);
        return;
    }
    if (s->up_id >= 0)
        h2_rst(&s->h->server, s->h, s->up_id, NGHTTP2_CANCEL);
    s->phase = H2_REFUSED;
    s->h->moved_ms = *s->h->now_ms;
    s->answered = true;
    h2_way_drop(s, &s->up);
    buf_free(&s->text);
    if (submit_answer(s, &text) < 0)
        h2_reset(s, NGHTTP2_INTERNAL_ERROR);
    buf_free(&text);
}
