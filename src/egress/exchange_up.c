/* egress/exchange_up.c: requests, from the client's bytes to the server (see exchange.h) */
#include "egress/exchange_priv.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

static const struct str websocket = { "websocket", 9 };

/* What has to be known of it when its head is gone. */
static void
remember(struct exchange *x, const struct http1_head *head)
{
    struct str rest = head->upgrade, protocol;

    memcpy(x->method, head->method.p, head->method.n);
    x->method_n = head->method.n;
    x->head_length = head->length;
    x->client_10 = head->minor == 0;
    x->client_keeps = head->keep_alive;
    x->has_body = head->framing == HTTP1_BODY_CHUNKED || head->body_length > 0;
    x->expects = head->expect_continue;
    /* of what is asked for, WebSocket alone passes; h2c would be a second way to say requests */
    x->upgrade = false;
    while (http1_list_next(&rest, &protocol))
        x->upgrade |= http1_equal(protocol, websocket);
    x->upgrade = x->upgrade && !x->has_body && str_eq_c(head->method, "GET");
}

/* A body that the server may overlook, and take for a request of its own. */
static bool
may_be_overlooked(const struct exchange *x)
{
    static const char *const methods[] = { "POST", "PUT", "PATCH" };
    struct str method = { x->method, x->method_n };

    if (!x->has_body || x->target.narrow)
        return x->has_body;
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (str_eq_c(method, methods[i]))
            return false;
    return true;
}

/* RFC 9110 §9.2.2; a body is gone once it was sent. */
static bool
is_repeatable(const struct exchange *x)
{
    static const char *const methods[] = { "GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE" };
    struct str method = { x->method, x->method_n };

    if (x->has_body)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (str_eq_c(method, methods[i]))
            return true;
    return false;
}

static void
refuse_by_filter(struct exchange *x, const struct exchange_edit *edit)
{
    exchange_fail(x, 403, "Forbidden", edit->refuse != NULL ? edit->refuse : "filter",
                  edit->detail != NULL ? edit->detail : "");
}

/* Credentials that are the request's, and nobody else's on the same connection; of others that is not known. */
static bool
is_stateless(struct str credentials)
{
    static const char *const schemes[] = { "basic", "bearer", "token", "digest", "aws4-hmac-sha256" };
    struct str scheme = credentials;

    for (scheme.n = 0; scheme.n < credentials.n && scheme.p[scheme.n] != ' ';)
        scheme.n++;
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
        if (http1_equal(scheme, str_of(schemes[i])))
            return true;
    return false;
}

/* Whether the server may tie @head's credentials to the connection that they come on. */
static bool
is_bound(const struct http1_head *head, const struct exchange_edit *edit)
{
    const struct str name = STR_LIT("authorization");
    const struct http1_field *field;
    size_t at = 0;

    while ((field = http1_find(head, name, &at)) != NULL)
        if (!is_stateless(field->value))
            return true;
    for (size_t i = 0; edit != NULL && i < edit->n_add; i++)
        if (http1_equal(edit->add[i].name, name) && !is_stateless(edit->add[i].value))
            return true;
    return false;
}

static int
write_head(struct exchange *x, const struct http1_head *head, const struct exchange_edit *edit,
           enum http1_framing framing, uint64_t length)
{
    struct str drop[EXCHANGE_EDITS_MAX + 2];
    struct http1_add add[EXCHANGE_EDITS_MAX + 1];
    size_t n_drop = edit != NULL ? edit->n_drop : 0, n_add = edit != NULL ? edit->n_add : 0;
    bool upgrade = x->upgrade && (edit == NULL || !edit->no_upgrade);
    struct http1_request_out r = {
        .method = head->method,
        .form = head->form == HTTP1_ASTERISK ? HTTP1_ASTERISK : x->target.absolute ? HTTP1_ABSOLUTE : HTTP1_ORIGIN,
        .scheme = x->target.scheme,
        .host = x->target.host,
        .port = x->target.port,
        .path = edit != NULL && edit->new_target ? edit->path : head->path,
        .query = edit != NULL && edit->new_target ? edit->query : head->query,
    };

    if (n_drop > EXCHANGE_EDITS_MAX || n_add > EXCHANGE_EDITS_MAX)
        return -1;
    if (n_drop > 0)
        memcpy(drop, edit->drop, n_drop * sizeof(drop[0]));
    if (n_add > 0)
        memcpy(add, edit->add, n_add * sizeof(add[0]));
    /* we have said "continue" ourselves */
    if (x->request == REQUEST_WHOLE || x->request == REQUEST_HELD || x->gathered != EXCHANGE_NOT_GATHERED)
        drop[n_drop++] = STR_LIT("expect");
    /* TRACE with "Max-Forwards: 0" the parent itself would answer, with all that it was sent */
    if (x->target.proxy_authorization.n > 0)
        drop[n_drop++] = STR_LIT("max-forwards");
    if (x->target.proxy_authorization.n > 0)
        add[n_add++] = (struct http1_add){ STR_LIT("Proxy-Authorization"), x->target.proxy_authorization };
    if (r.path.n == 0 && r.form != HTTP1_ASTERISK)
        r.path = STR_LIT("/");
    x->upgrade = upgrade;
    x->spoilt |= x->has_body || upgrade || is_bound(head, edit);
    x->last = (!x->client_keeps && !(x->lends && !x->spoilt)) || may_be_overlooked(x);
    r.out = (struct http1_out){ .from = head, .drop = drop, .n_drop = n_drop, .add = add, .n_add = n_add,
                                .framing = framing, .body_length = length,
                                .connection = x->last && !upgrade ? HTTP1_CONN_CLOSE : HTTP1_CONN_DEFAULT };
    if (upgrade)
        r.out.upgrade = websocket;
    return http1_write_request(&x->up.out, &r);
}

/* The head is out: an answer may come. */
static void
sent(struct exchange *x, bool body)
{
    x->request = body ? REQUEST_BODY : REQUEST_DONE;
    x->response = RESPONSE_HEAD;
    x->rested_ms = 0;
    x->interim = 0;
    x->answered = false;
}

/* A body that somebody wants whole, which is @state: its head is kept, and written when the body is known. */
static void
collect(struct exchange *x, const uint8_t *p, enum exchange_request state)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";

    buf_reset(&x->again);
    buf_reset(&x->whole);
    if (buf_append(&x->again, p, x->head_length) < 0) {
        exchange_break(x);
        return;
    }
    if (x->expects)
        exchange_put(x, &x->down, go_on, sizeof(go_on) - 1);
    x->request = state;
}

static bool
ask_filter(struct exchange *x, const struct http1_head *head, const struct buf *whole, struct exchange_edit *edit)
{
    memset(edit, 0, sizeof(*edit));
    if (x->filter->request_head == NULL || x->filter->request_head(x->filter_ctx, head, whole, edit) == 0)
        return true;
    refuse_by_filter(x, edit);
    return false;
}

/* The request at @p is let out. */
static void
exchange_up_begin(struct exchange *x, const struct http1_head *head, const uint8_t *p)
{
    struct exchange_edit edit;
    enum http1_framing framing = head->framing;
    bool filtered = false, filter = x->filter != NULL;

    if (filter && !ask_filter(x, head, NULL, &edit))
        return;
    filtered = filter && x->has_body && edit.body != EXCHANGE_BODY_PASS && x->filter->request_body != NULL;
    if (filtered && edit.body != EXCHANGE_BODY_SAME)
        framing = edit.body == EXCHANGE_BODY_STREAM ? HTTP1_BODY_CHUNKED : HTTP1_BODY_LENGTH;
    if (exchange_body_begin(&x->up, head, framing, filtered) != HTTP1_OK) {
        exchange_fail(x, 413, "Content Too Large", http1_word(HTTP1_BODY_TOO_LARGE), "");
        return;
    }
    if (filtered && edit.body == EXCHANGE_BODY_WHOLE) {
        x->up.filtered = false;
        collect(x, p, REQUEST_WHOLE);
        return;
    }
    if (write_head(x, head, filter ? &edit : NULL, framing, head->body_length) < 0) {
        exchange_fail(x, 403, "Forbidden", "http-rewrite", "the request cannot be passed on");
        return;
    }
    buf_reset(&x->again);
    if (x->server_used && is_repeatable(x))
        buf_append(&x->again, x->up.out.p, x->up.out.n);
    sent(x, x->has_body);
}

/* The whole body is filtered: write the head, send both. */
void
exchange_send_whole(struct exchange *x)
{
    struct exchange_edit edit;
    struct http1_head head;

    if (http1_parse_request(x->again.p, x->again.n, &head) != HTTP1_OK) {
        exchange_break(x);
        return;
    }
    if (!ask_filter(x, &head, &x->whole, &edit))
        return;
    if (edit.wait) {
        x->request = REQUEST_HELD;
        return;
    }
    if (write_head(x, &head, &edit, HTTP1_BODY_LENGTH, x->whole.n) < 0) {
        exchange_fail(x, 403, "Forbidden", "http-rewrite", "the request cannot be passed on");
        return;
    }
    exchange_put(x, &x->up, x->whole.p, x->whole.n);
    buf_free(&x->whole);
    buf_free(&x->again);
    sent(x, false);
}

/* The whole body, through the filter. What the owner has decided on stays as it is. False: it is refused. */
static bool
filter_bytes(struct exchange *x)
{
    cleanup_buf struct buf made = BUF_INIT(EXCHANGE_WHOLE_MAX);
    const char *all = x->whole.n > 0 ? (const char *)x->whole.p : "";
    size_t at = 0, used;

    do {
        size_t before = made.n;
        used = 0;
        if (x->filter->request_body(x->filter_ctx, (struct str){ all + at, x->whole.n - at }, true,
                                    &made, &used) < 0 || !buf_ok(&made) || used > x->whole.n - at ||
            (used == 0 && at < x->whole.n && made.n == before)) {
            exchange_fail(x, 403, "Forbidden", "filter", "the body cannot be passed on");
            return false;
        }
        at += used;
    } while (at < x->whole.n);
    if (x->gathered != EXCHANGE_NOT_GATHERED && !str_eq((struct str){ (const char *)made.p, made.n },
                                                        (struct str){ all, x->whole.n })) {
        exchange_fail(x, 403, "Forbidden", "filter", "the body was decided on as it is");
        return false;
    }
    buf_free(&x->whole);
    x->whole = made;
    made = (struct buf)BUF_INIT(0);
    return true;
}

static void
ask_owner(struct exchange *x, const struct http1_head *head)
{
    x->request = REQUEST_ASKED;
    x->asking = true;
    x->owner->request(x, head);
    x->asking = false;
}

/* What the owner wanted to see is here, as far as it goes. */
static void
gathered(struct exchange *x, enum exchange_gather how)
{
    x->gathered = how;
    x->request = REQUEST_GATHERED;
    exchange_follow_gathered(x);
}

static bool
is_enough(struct exchange *x)
{
    if (x->request != REQUEST_GATHER || x->whole.n <= x->gather_max)
        return false;
    gathered(x, EXCHANGE_TOO_LONG);
    return true;
}

static size_t
take_whole(struct exchange *x, const uint8_t *p, size_t n)
{
    size_t at = 0;

    while (at < n) {
        struct str data;
        size_t used;
        enum http1_result result = http1_body_next(&x->up.body, p + at, n - at, &data, &used);

        at += used;
        if ((result != HTTP1_OK && result != HTTP1_MORE)) {
            x->owner->fault(x, result);
            exchange_fail(x, http1_answer(result), "Bad Request", http1_word(result), "");
            break;
        }
        if (buf_append(&x->whole, data.p, data.n) < 0) {
            exchange_fail(x, 413, "Content Too Large", http1_word(HTTP1_BODY_TOO_LARGE), "to be looked at whole");
            break;
        }
        if (is_enough(x))
            break;
        if (result == HTTP1_OK && x->request == REQUEST_GATHER)
            gathered(x, EXCHANGE_GATHERED);
        else if (result == HTTP1_OK && filter_bytes(x))
            exchange_send_whole(x);
        if (result == HTTP1_OK)
            break;
    }
    return at;
}

static size_t
take_body(struct exchange *x, const uint8_t *p, size_t n)
{
    size_t used;
    enum http1_result result = exchange_body_pass(x, &x->up, p, n, &used);

    if (result == HTTP1_OK) {
        x->request = REQUEST_DONE;
    } else if (result != HTTP1_MORE && x->result == EXCHANGE_LIVE) {
        /* the server must not take what it has got for whole */
        x->owner->fault(x, result);
        if (x->result == EXCHANGE_LIVE)
            exchange_fail(x, http1_answer(result), "Bad Request", http1_word(result), "");
        used = n;
    }
    return used;
}

void
exchange_resume_request(struct exchange *x)
{
    if (exchange_body_resume(x, &x->up) == HTTP1_OK)
        x->request = REQUEST_DONE;
}

/* Whether a kept connection has ended, or says something that nobody asked for. */
static bool
server_is_gone(struct exchange *x)
{
    uint8_t byte;

    return stream_recv(&x->server, &byte, 1) >= 0 || errno != EAGAIN;
}

/* A kept connection may have ended while it was kept, and while the owner took its time; what goes out once only may
 * not go out on such a one, nor on another exchange's that is not fresh. */
static void
replace_ended(struct exchange *x)
{
    bool old = x->rested_ms != 0 && *x->now_ms - x->rested_ms >= EXCHANGE_FRESH_MS, once = !is_repeatable(x);

    /* of another exchange's, what came since could be taken for this one's answer: repeatable or not */
    if (x->request != REQUEST_GO || !x->server_used || (!once && x->rested_ms == 0) ||
        !((once && old) || server_is_gone(x)))
        return;
    exchange_hang_up(x);
    x->request = REQUEST_ASKED;
    x->asking = true;
    x->owner->dial(x);
    x->asking = false;
}

/* The request whose body the owner has seen is let out: through the filter, like one that comes as it is sent. */
static void
begin_gathered(struct exchange *x, const struct http1_head *head)
{
    struct exchange_edit edit;
    bool filter = x->filter != NULL, filtered;
    size_t before = x->up.out.n;

    if (filter && !ask_filter(x, head, NULL, &edit))
        return;
    filtered = filter && edit.body != EXCHANGE_BODY_PASS && x->filter->request_body != NULL;
    if (filtered && edit.body == EXCHANGE_BODY_WHOLE) {
        x->request = REQUEST_WHOLE;
        if (filter_bytes(x))
            exchange_send_whole(x);
        return;
    }
    if (write_head(x, head, filter ? &edit : NULL, HTTP1_BODY_LENGTH, x->whole.n) < 0) {
        exchange_fail(x, 403, "Forbidden", "http-rewrite", "the request cannot be passed on");
        return;
    }
    if (filtered && !filter_bytes(x)) {
        x->up.out.n = before;
        return;
    }
    exchange_put(x, &x->up, x->whole.p, x->whole.n);
    buf_free(&x->whole);
    buf_free(&x->again);
    sent(x, false);
}

void
exchange_follow_gathered(struct exchange *x)
{
    struct http1_head head;

    if (x->request != REQUEST_GATHERED && x->request != REQUEST_GO)
        return;
    if (http1_parse_request(x->again.p, x->again.n, &head) != HTTP1_OK) {
        exchange_break(x);
        return;
    }
    if (x->request == REQUEST_GATHERED)
        ask_owner(x, &head);
    if (x->result == EXCHANGE_LIVE)
        replace_ended(x);
    if (x->result == EXCHANGE_LIVE && x->request == REQUEST_GO && x->gathered == EXCHANGE_GATHERED)
        begin_gathered(x, &head);
    else if (x->result == EXCHANGE_LIVE && x->request == REQUEST_GO)
        exchange_break(x);      /* nobody may let out what was not seen whole */
}

/* Its body is to be collected first. */
static void
begin_gathering(struct exchange *x, const struct http1_head *head, const uint8_t *p)
{
    if (exchange_body_begin(&x->up, head, HTTP1_BODY_LENGTH, false) != HTTP1_OK)
        exchange_fail(x, 413, "Content Too Large", http1_word(HTTP1_BODY_TOO_LARGE), "");
    else
        collect(x, p, REQUEST_GATHER);
}

/* What the owner said about the request at @p. How many bytes are done with. */
static size_t
follow(struct exchange *x, const struct http1_head *head, const uint8_t *p)
{
    switch (x->request) {
    case REQUEST_GO:
        exchange_up_begin(x, head, p);
        return x->head_length;
    case REQUEST_COLLECT:
        begin_gathering(x, head, p);
        return x->head_length;
    case REQUEST_REFUSED:
        x->request = REQUEST_DONE;
        return x->head_length;
    case REQUEST_LEFT:
        x->result = EXCHANGE_LEFT;
        return x->head_length;
    default:
        return 0;
    }
}

static size_t
take_head(struct exchange *x, const uint8_t *p, size_t n)
{
    struct http1_head head;
    enum http1_result result;

    if (x->request == REQUEST_HEAD && !http1_worth_parsing(p, n, x->seen, HTTP1_HEAD_MAX))
        return 0;
    result = http1_parse_request(p, n, &head);
    if (result == HTTP1_MORE) {
        x->seen = n;
        return 0;
    }
    x->seen = 0;
    if (result != HTTP1_OK) {
        x->method_n = x->head_length = 0;
        x->owner->fault(x, result);
        if (x->result == EXCHANGE_LIVE)
            exchange_fail(x, http1_answer(result), "Bad Request", http1_word(result),
                          "the request is not plain HTTP/1.1");
        return n;
    }
    if (x->request == REQUEST_HEAD) {
        remember(x, &head);
        ask_owner(x, &head);
    }
    if (x->result == EXCHANGE_LIVE)
        replace_ended(x);
    if (x->result != EXCHANGE_LIVE)
        return 0;
    return follow(x, &head, p);
}

size_t
exchange_take_request(struct exchange *x, const uint8_t *p, size_t n)
{
    size_t at = 0;

    while (at < n && x->result == EXCHANGE_LIVE) {
        size_t before = at;
        switch (x->request) {
        case REQUEST_HEAD:
            if (x->down.out.n > 0)      /* answers that nobody reads do not pile up */
                return at;
            at += take_head(x, p + at, n - at);
            break;
        case REQUEST_GO:
        case REQUEST_REFUSED:
            if (x->gathered != EXCHANGE_NOT_GATHERED)
                return at;
            at += take_head(x, p + at, n - at);
            break;
        case REQUEST_GATHER:
        case REQUEST_WHOLE: at += take_whole(x, p + at, n - at); break;
        case REQUEST_BODY: at += take_body(x, p + at, n - at); break;
        case REQUEST_RAW:
            exchange_put_raw(x, &x->up, p + at, n - at);
            return n;
        case REQUEST_ASKED:
        case REQUEST_COLLECT:
        case REQUEST_GATHERED:
        case REQUEST_AGAIN:
        case REQUEST_HELD:
        case REQUEST_DONE:
        case REQUEST_LEFT: return at;
        }
        if (at == before)
            return at;
    }
    return at;
}

void
exchange_client_ended(struct exchange *x)
{
    x->up.eof = true;
    /* elsewhere a whole request is under way, whose answer is still wanted */
    if (x->request == REQUEST_BODY || x->request == REQUEST_WHOLE || x->request == REQUEST_GATHER)
        exchange_break(x);
}
