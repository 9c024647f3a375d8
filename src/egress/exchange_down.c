/* egress/exchange_down.c: answers, from the server's bytes to the client (see exchange.h) */
#include "egress/exchange_priv.h"

#include <string.h>

#include "base/cleanup.h"

static void
bad_answer(struct exchange *x, const char *detail)
{
    exchange_fail(x, 502, "Bad Gateway", "http-response", detail);
}

/* @edit may be NULL. @framing NONE with a length: what a HEAD would have had. */
static int
write_head(struct exchange *x, const struct http1_head *head, const struct exchange_edit *edit,
           enum http1_framing framing, uint64_t length)
{
    struct http1_head less;
    struct http1_response_out r = { .status = head->status, .reason = head->reason,
                                    .method = { x->method, x->method_n } };

    if (edit != NULL && (edit->n_drop > EXCHANGE_EDITS_MAX || edit->n_add > EXCHANGE_EDITS_MAX))
        return -1;
    head = strip_head(x->strip, head, &less);
    r.out = (struct http1_out){ .from = head, .framing = framing, .body_length = length };
    if (edit != NULL) {
        r.out.drop = edit->drop;
        r.out.n_drop = edit->n_drop;
        r.out.add = edit->add;
        r.out.n_add = edit->n_add;
    }
    if (head->status == 101)
        r.out.upgrade = STR_LIT("websocket");
    else if (head->status >= 200 && x->closing)
        r.out.connection = HTTP1_CONN_CLOSE;
    else if (head->status >= 200 && x->client_10)
        r.out.connection = HTTP1_CONN_KEEP_ALIVE;
    return http1_write_response(&x->down.out, &r);
}

static bool
ask_filter(struct exchange *x, const struct http1_head *head, struct exchange_edit *edit)
{
    memset(edit, 0, sizeof(*edit));
    if (x->filter->response_head == NULL || x->filter->response_head(x->filter_ctx, head, edit) == 0)
        return true;
    exchange_fail(x, 502, "Bad Gateway", edit->refuse != NULL ? edit->refuse : "filter",
                  edit->detail != NULL ? edit->detail : "");
    return false;
}

static void
interim(struct exchange *x, const struct http1_head *head)
{
    /* what nobody looks into does not pass */
    const struct http1_head bare = { .status = head->status, .minor = head->minor };

    if (++x->interim > EXCHANGE_INTERIM_MAX)
        bad_answer(x, "too many 1xx answers");
    else if (!x->client_10 && write_head(x, x->filter != NULL ? &bare : head, NULL, HTTP1_BODY_NONE, 0) < 0)
        bad_answer(x, "an answer that cannot be passed on");
}

static void
upgraded(struct exchange *x, const struct http1_head *head)
{
    struct exchange_edit edit;

    if (!x->upgrade || x->request != REQUEST_DONE || !http1_equal(head->upgrade, STR_LIT("websocket"))) {
        bad_answer(x, "101 to a request that asked for no WebSocket");
        return;
    }
    if (x->filter != NULL && !ask_filter(x, head, &edit))
        return;
    if (write_head(x, head, x->filter != NULL ? &edit : NULL, HTTP1_BODY_NONE, 0) < 0) {
        bad_answer(x, "an answer that cannot be passed on");
        return;
    }
    x->look_raw = x->filter != NULL && edit.raw;
    x->request = REQUEST_RAW;
    x->response = RESPONSE_RAW;
}

/* The whole answer is out, or on its way. */
static void
answer_ends(struct exchange *x)
{
    x->response = RESPONSE_DONE;
    x->server_used = true;
    x->ended_ms = *x->now_ms;
    if (!x->server_keeps || x->last || x->up.broken || (x->closing && !exchange_rests(x)))
        exchange_hang_up(x);
}

/* How the body goes out: as it came, unless the filter changes its length or the client is too old for chunks. */
static enum http1_framing
framing_out(const struct exchange *x, const struct http1_head *head, bool longer)
{
    if (head->framing == HTTP1_BODY_NONE)
        return HTTP1_BODY_NONE;
    if (head->framing == HTTP1_BODY_CHUNKED || (longer && head->framing == HTTP1_BODY_LENGTH))
        return x->client_10 ? HTTP1_BODY_UNTIL_CLOSE : HTTP1_BODY_CHUNKED;
    return head->framing;
}

static void
final(struct exchange *x, const struct http1_head *head)
{
    struct exchange_edit edit;
    enum http1_framing framing;
    bool filter = x->filter != NULL, filtered, told;
    uint64_t length = head->body_length;

    if (filter && !ask_filter(x, head, &edit))
        return;
    filtered = filter && head->framing != HTTP1_BODY_NONE && edit.body != EXCHANGE_BODY_PASS &&
               x->filter->response_body != NULL;
    framing = framing_out(x, head, filtered && edit.body != EXCHANGE_BODY_SAME);
    if (exchange_body_begin(&x->down, head, framing, filtered) != HTTP1_OK) {
        bad_answer(x, http1_word(HTTP1_BODY_TOO_LARGE));
        return;
    }
    /* trailers pass with the framing, and may be what is stripped */
    x->down.raw = x->down.raw && (x->strip == NULL || x->strip->n == 0);
    x->server_keeps = head->keep_alive;
    x->spoilt |= head->status == 401;       /* credentials are asked for */
    x->closing = !x->client_keeps || x->request != REQUEST_DONE || framing == HTTP1_BODY_UNTIL_CLOSE;
    /* what a body would have had, to HEAD and 304 */
    told = framing == HTTP1_BODY_NONE && head->length_stated && head->status != 204;
    if (told)
        length = head->stated_length;
    if (write_head(x, head, filter ? &edit : NULL, told ? HTTP1_BODY_LENGTH : framing, length) < 0) {
        bad_answer(x, "an answer that cannot be passed on");
        return;
    }
    x->response = RESPONSE_BODY;
    if (head->framing == HTTP1_BODY_NONE || (head->framing == HTTP1_BODY_LENGTH && head->body_length == 0 && !filtered))
        answer_ends(x);
}

static size_t
take_head(struct exchange *x, const uint8_t *p, size_t n)
{
    struct http1_head head;
    enum http1_result result;

    x->answered = true;
    if (!http1_worth_parsing(p, n, x->seen_down, HTTP1_HEAD_MAX))
        return 0;
    result = http1_parse_response(p, n, (struct str){ x->method, x->method_n }, &head);
    x->seen_down = result == HTTP1_MORE ? n : 0;
    if (result == HTTP1_MORE)
        return 0;
    if (result != HTTP1_OK)
        bad_answer(x, http1_word(result));
    else if (head.status == 101)
        upgraded(x, &head);
    else if (head.status < 200)
        interim(x, &head);
    else
        final(x, &head);
    return result == HTTP1_OK ? head.length : n;
}

static void
pass(struct exchange *x, enum http1_result result)
{
    if (result == HTTP1_OK)
        answer_ends(x);
    else if (result != HTTP1_MORE)
        exchange_break(x);
}

void
exchange_resume_response(struct exchange *x)
{
    pass(x, exchange_body_resume(x, &x->down));
}

size_t
exchange_take_response(struct exchange *x, const uint8_t *p, size_t n)
{
    size_t at = 0, used;

    while (at < n && x->result == EXCHANGE_LIVE) {
        switch (x->response) {
        case RESPONSE_HEAD:
            used = take_head(x, p + at, n - at);
            break;
        case RESPONSE_BODY:
            pass(x, exchange_body_pass(x, &x->down, p + at, n - at, &used));
            break;
        case RESPONSE_RAW:
            exchange_put_raw(x, &x->down, p + at, n - at);
            return n;
        default:
            /* an answer to nothing that was asked */
            exchange_hang_up(x);
            return n;
        }
        if (used == 0)
            return at;
        at += used;
    }
    return at;
}

void
exchange_server_ended(struct exchange *x, bool properly)
{
    enum http1_result result;

    x->down.eof = true;
    switch (x->response) {
    case RESPONSE_HEAD:
        if (!x->answered && x->server_used && x->again.n > 0 && x->request == REQUEST_DONE) {
            exchange_hang_up(x);
            x->request = REQUEST_AGAIN;
            x->asking = true;
            x->owner->dial(x);
            x->asking = false;
            break;
        }
        exchange_fail(x, 502, "Bad Gateway", "unreachable", "the server ended the connection before it had answered");
        break;
    case RESPONSE_BODY:
        result = properly ? exchange_body_close(x, &x->down) : HTTP1_BODY_CUT;
        x->server_keeps = false;
        pass(x, result);
        break;
    case RESPONSE_RAW:
        if (!properly)
            exchange_break(x);
        break;
    case RESPONSE_NONE:
    case RESPONSE_DONE:
        exchange_hang_up(x);
        break;
    }
}
