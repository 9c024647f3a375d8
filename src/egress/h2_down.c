/* egress/h2_down.c: answers, from the server's session to the client's (see h2.h) */
#include "egress/h2_priv.h"

#include <stdio.h>
#include <string.h>

void
h2_bad_answer(struct h2_stream *s, const char *detail)
{
    const struct answer answer = { .status = 502, .phrase = "Bad Gateway", .reason = "http-response",
                                   .detail = detail, .host = s->h->host, .port = s->h->port };

    h2_refuse(s, &answer);
}

/* Without its fields: nobody looks into them. */
static void
interim(struct h2_stream *s, const struct http1_head *head)
{
    char status[8];
    const int n = snprintf(status, sizeof(status), "%u", head->status);
    nghttp2_nv nv = { .name = (uint8_t *)(uintptr_t)":status", .namelen = 7, .value = (uint8_t *)status,
                      .valuelen = (size_t)n };

    if (++s->interim > EXCHANGE_INTERIM_MAX)
        h2_bad_answer(s, "too many 1xx answers");
    else if (s->down_id >= 0)
        (void)nghttp2_submit_headers(s->h->client.s, NGHTTP2_FLAG_NONE, s->down_id, NULL, &nv, 1, NULL);
}

/* False: it was refused. */
static bool
ask_filter(struct h2_stream *s, const struct http1_head *head, struct exchange_edit *edit)
{
    const struct answer answer = { .status = 502, .phrase = "Bad Gateway", .host = s->h->host, .port = s->h->port };
    struct answer said = answer;

    if (s->filter == NULL || s->filter->response_head == NULL ||
        s->filter->response_head(s->filter_ctx, head, edit) == 0)
        return true;
    said.reason = edit->refuse != NULL ? edit->refuse : "filter";
    said.detail = edit->detail != NULL ? edit->detail : "";
    h2_refuse(s, &said);
    return false;
}

static void
final(struct h2_stream *s, const struct http1_head *head, bool end)
{
    nghttp2_data_provider body = { .source = { .ptr = &s->down }, .read_callback = h2_way_read };
    struct exchange_edit edit = { .n_drop = 0 };
    struct h2_fields fields = { .n = 0 };
    nghttp2_nv nv[H2_FIELDS_MAX];
    struct http1_head less;
    bool filtered;
    int r;

    if (!ask_filter(s, head, &edit))
        return;
    head = strip_head(s->h->strip, head, &less);
    filtered = s->filter != NULL && s->filter->response_body != NULL && edit.body != EXCHANGE_BODY_PASS && !end;
    if (s->down_id < 0 || h2_fields_response(&fields, head, &edit, edit.body != EXCHANGE_BODY_STREAM) < 0) {
        h2_fields_free(&fields);
        h2_bad_answer(s, "an answer that cannot be passed on");
        return;
    }
    r = nghttp2_submit_response(s->h->client.s, s->down_id, nv, h2_nv(&fields, nv), end ? NULL : &body);
    h2_fields_free(&fields);
    s->answered = true;
    s->bodiless = head->framing == HTTP1_BODY_NONE;
    if (r != 0)
        h2_reset(s, NGHTTP2_INTERNAL_ERROR);
    else if (!end)
        h2_way_open(s, &s->down, filtered);
}

void
h2_response_head(struct h2_stream *s, const struct h2_block *b, bool end)
{
    struct buf text = BUF_INIT(2 * HTTP1_HEAD_MAX);
    struct http1_head head;
    enum http1_result result;

    if (s->phase != H2_SENT)
        return;
    if (s->answered) {
        if (s->down.dropped)
            return;
        result = h2_block_trailer(b, &s->down.trailer, &head);
        if (result != HTTP1_OK) {
            s->h->owner->fault(s->h, http1_word(result), true);
            h2_reset(s, NGHTTP2_INTERNAL_ERROR);
        }
        return;
    }
    result = h2_block_response(b, end, (struct str){ s->method, s->method_n }, &text, &head);
    if (result != HTTP1_OK)
        h2_bad_answer(s, http1_word(result));
    else if (head.status < 200 && end)
        h2_bad_answer(s, "an interim answer that ends");
    else if (head.status < 200)
        interim(s, &head);
    else
        final(s, &head, end);
    buf_free(&text);
}
