/* front/preview.c: /preview/CAPABILITY/...: a server in a sandbox, reached from outside (docs/daemon.md)
 *
 * Whoever has the capability needs no credential, and what it opens is one port of one sandbox. Each request has a
 * connection of its own to the server, which the sandbox's guest makes. The request is written anew from what
 * libmicrohttpd read, the answer is read by the strict codec of wire/http1.h and written anew by libmicrohttpd: nothing
 * is copied through, but for bodies, and for a WebSocket after its handshake. What of both passes is in
 * preview_rules.h. Nobody waits for anybody: bodies stop where their reader does.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "front/live.h"
#include "front/preview_priv.h"

#define IN_MAX     (128UL * 1024)       /* bytes for the server that it did not take */
#define IN_PIECE   (16UL * 1024)
#define EARLY_MAX  (1024UL * 1024)      /* bytes of an answer before the request is through */
#define EARLY_FREE (64UL * 1024)        /* of them those that are not counted... */
#define EARLY_ALL  (16UL * 1024 * 1024) /* ... in what all such answers have together */
#define HEAD_MAX   (16UL * 1024)        /* of an answer */
#define TEXT_MAX   (2UL * 1024 * 1024)  /* of what a browser answers; Chromium's longest, json/protocol, has 1.6 MB */
#define INTERIM    8                    /* answers of 1xx before the answer */
#define HEAD_MS    120000               /* for an answer to begin, once the server has what there is of the request */
#define BODY_MS    600000               /* of silence in it */
#define TUNNEL_MS  3600000UL            /* of silence on a WebSocket */
#define LAST_MS    10000                /* for the client to take the last words */

static const char sandboxed[] = "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads";

bool
preview_is(const struct request *r)
{
    return r->preview != NULL;
}

static bool
is_host_form(const struct request *r, char capability[EDGE_CAPABILITY + 1])
{
    const char *host = MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
    struct str rest;

    return preview_host(str_of(host), capability, &rest);
}

const struct route *
preview_route(struct request *r)
{
    if (!is_host_form(r, r->id))
        return NULL;
    r->host_form = true;
    for (size_t i = 0; i < preview_n_routes; i++) {
        if (strcmp(preview_routes[i].method, r->method) == 0)
            return &preview_routes[i];
        route_allow(r, preview_routes[i].method);
    }
    r->early = MHD_HTTP_METHOD_NOT_ALLOWED;
    r->early_code = "http.method";
    r->early_why = "a preview has other methods";
    return NULL;
}

/* --- ends --------------------------------------------------------------------------------------------------------- */

void
preview_over(struct request *r)
{
    r->preview->state = PREVIEW_OVER;
    r->preview->heard_ms = clock_ms();
    ask_drop(r);
    op_drop(r);
}

/* After the answer's head it can only be broken off. */
void
preview_fail(struct request *r, unsigned status, const char *code, const char *hint, const char *why)
{
    struct preview *p = r->preview;

    if (p->state == PREVIEW_OVER)
        return;
    preview_over(r);
    if (r->up.fd >= 0 || r->upgraded != NULL)
        return;                         /* what is there is still told */
    if (r->response == NULL) {
        reply_error(r, status, code, hint, "%s", why);
        if (r->response != NULL && (status == 503 || status == 504))
            (void)MHD_add_response_header(r->response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
        return;
    }
    stream_break(r);
}

void
preview_fail_err(struct request *r, const struct err *err)
{
    static const struct { const char *code; unsigned status; } codes[] = {
        { "preview.none", 404 }, { "ports.closed", 404 }, { "ports.refused", 502 }, { "ports.connect", 502 },
        { "sandbox.gone", 502 }, { "ports.network", 502 }, { "ports.reserved", 502 }, { "ports.timeout", 504 },
    };
    unsigned status = r->route->open ? 503 : status_of(err);     /* a preview's visitor may try again */

    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (strcmp(codes[i].code, err->code) == 0)
            status = codes[i].status;
    preview_fail(r, status, err->code, err->hint, err->msg);
}

static void
bad_answer(struct request *r, const char *word)
{
    char text[128];

    snprintf(text, sizeof(text), "the sandbox's server does not answer in HTTP (%s)", word);
    preview_fail(r, MHD_HTTP_BAD_GATEWAY, "preview.answer", "", text);
}

/* --- the request -------------------------------------------------------------------------------------------------- */

static void
end_body(struct request *r)
{
    struct preview *p = r->preview;

    if (p->ended)
        return;
    p->ended = true;
    if (p->framing == HTTP1_BODY_CHUNKED)
        (void)http1_write_last_chunk(&r->in);
}

static void
on_port(struct request *r, const struct edge_port *port, const char *capability)
{
    (void)capability;
    r->preview->port = port->port;
}

static void
on_granted(struct request *r)
{
    struct preview *p = r->preview;

    p->state = PREVIEW_WAITS;
    p->heard_ms = clock_ms();
    if (p->port == 0 || !preview_write_head(r)) {
        preview_fail(r, MHD_HTTP_BAD_REQUEST, "preview.request", "", "this request cannot be passed on as it is");
        return;
    }
    if (r->whole)
        end_body(r);
    op_send(r);
    op_flow(r);
}

/* Whether more is taken for the server: it has a ceiling, and behind the first piece so has all that waits. */
static bool
takes(const struct request *r)
{
    return upgrade_listens(r, IN_MAX, IN_PIECE);
}

size_t
preview_upload(struct request *r, const uint8_t *bytes, size_t n)
{
    struct preview *p = r->preview;

    if (p == NULL || p->state == PREVIEW_OVER || (r->op.fd < 0 && r->ticket == 0))
        return n;                       /* nobody is there to take it, or will be */
    if (p->state == PREVIEW_ASKED || !takes(r))
        return 0;
    n = n < IN_PIECE ? n : IN_PIECE;
    if ((p->framing == HTTP1_BODY_CHUNKED ? http1_write_chunk(&r->in, (struct str){ (const char *)bytes, n })
                                          : buf_append(&r->in, bytes, n)) < 0)
        return 0;
    p->heard_ms = clock_ms();
    op_send(r);
    return n;
}

void
preview_upload_end(struct request *r)
{
    struct preview *p = r->preview;

    if (p == NULL || p->state == PREVIEW_ASKED || p->state == PREVIEW_OVER)
        return;
    end_body(r);
    /* now it is heard by how much waits for the client */
    r->stream = r->stream || (p->state == PREVIEW_BODY && !p->browser);
    op_send(r);
    op_flow(r);
}

/* --- the answer --------------------------------------------------------------------------------------------------- */

static void
add_field(struct request *r, struct str name, struct str value)
{
    cleanup_free char *n = str_to_cstr(name), *v = str_to_cstr(value);

    if (n != NULL && v != NULL && v[0] != '\0')
        (void)MHD_add_response_header(r->response, n, v);
}

static void
add_fields(struct request *r, const struct http1_head *head)
{
    const struct preview *p = r->preview;

    for (size_t i = 0; i < head->n_fields; i++) {
        const struct http1_field *f = &head->fields[i];
        cleanup_buf struct buf place = BUF_INIT(2 * HEAD_MAX);
        if (f->hop || http1_is_hop(f->name) || !preview_goes_out(f->name, p->host_form))
            continue;
        if (!http1_equal(f->name, STR_LIT("location")))
            add_field(r, f->name, f->value);
        else if (preview_location(f->value, p->root, p->port, &place) == 0)
            add_field(r, f->name, str_of((const char *)place.p));
    }
    (void)MHD_add_response_header(r->response, "X-Content-Type-Options", "nosniff");
    (void)MHD_add_response_header(r->response, "Referrer-Policy", "no-referrer");
    if (!p->host_form) {
        /* what is shown at our own address is of no origin, so that it is nobody to us; nor does it stay there */
        (void)MHD_add_response_header(r->response, "Content-Security-Policy", sandboxed);
        if (http1_find(head, STR_LIT("cache-control"), NULL) == NULL)
            (void)MHD_add_response_header(r->response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    }
}

static void
finish(struct request *r)
{
    if (r->preview->browser)
        return browser_answer(r);
    preview_over(r);
    stream_close(r);
}

/* It is not counted any more: it ends, or goes to its client as any stream does. */
static void
let_go(struct request *r)
{
    r->f->early -= r->preview->early;
    r->preview->early = 0;
}

/* Nothing of an answer is taken before its request is through, and who asks and who answers may be the same: what is
 * kept of all of them is bounded. False: there is no room. */
static bool
keep_early(struct request *r)
{
    size_t n = r->out.n > EARLY_FREE ? r->out.n - EARLY_FREE : 0;

    let_go(r);
    if (r->out.n > EARLY_MAX || n > EARLY_ALL - r->f->early)
        return false;
    r->preview->early = n;
    r->f->early += n;
    return true;
}

static void
take_body(struct request *r, const uint8_t *bytes, size_t n)
{
    struct preview *p = r->preview;
    enum http1_result result = HTTP1_MORE;

    if (r->whole)
        let_go(r);
    while (result == HTTP1_MORE && n > 0) {
        struct str data = { "", 0 };
        size_t used = 0;
        result = http1_body_next(&p->body, bytes, n, &data, &used);
        if (p->browser && !browser_keep(r, data))
            return;
        if (data.n > 0 && !p->browser)
            stream_add(r, data.p, data.n);
        bytes += used;
        n -= used;
    }
    if (result == HTTP1_OK) {
        finish(r);
    } else if (result != HTTP1_MORE) {
        bad_answer(r, http1_word(result));
    } else if (!r->whole && !keep_early(r)) {
        buf_free(&r->out);
        preview_fail(r, MHD_HTTP_BAD_GATEWAY, "preview.early", "",
             "the server answers more than is kept before it has the request");
    }
}

static const struct upgraded tunnel;

static void
begin_tunnel(struct request *r, const struct http1_head *head)
{
    struct preview *p = r->preview;

    if (!p->websocket || !http1_equal(head->upgrade, STR_LIT("websocket"))) {
        bad_answer(r, "an upgrade that nobody asked for");
        return;
    }
    p->state = PREVIEW_TUNNEL;
    upgrade_reply(r, &tunnel);
    r->stream = true;                   /* it is heard by how much waits for the client */
    for (size_t i = 0; i < head->n_fields; i++)
        if (http1_equal(head->fields[i].name, STR_LIT("sec-websocket-protocol")) ||
            http1_equal(head->fields[i].name, STR_LIT("sec-websocket-extensions")))
            add_field(r, head->fields[i].name, head->fields[i].value);
}

static bool
has_parts(const struct http1_head *head)
{
    for (size_t i = 0; i < head->n_fields; i++)
        if (http1_equal(head->fields[i].name, STR_LIT("content-type")) && preview_has_parts(head->fields[i].value))
            return true;
    return false;
}

static void
begin_answer(struct request *r, const struct http1_head *head)
{
    struct preview *p = r->preview;
    bool empty = head->framing == HTTP1_BODY_NONE;
    uint64_t size = head->length_stated && head->framing != HTTP1_BODY_CHUNKED ? head->stated_length
                                                                                : MHD_SIZE_UNKNOWN;

    if (http1_body_begin(&p->body, head, INT64_MAX) != HTTP1_OK) {
        bad_answer(r, "its length");
        return;
    }
    if (has_parts(head)) {
        bad_answer(r, "parts that have fields of their own");
        return;
    }
    p->state = PREVIEW_BODY;
    if (p->browser) {
        if (browser_begin(r, head) && (empty || (head->framing == HTTP1_BODY_LENGTH && head->body_length == 0)))
            finish(r);
        return;
    }
    if (empty && (strcmp(r->method, MHD_HTTP_METHOD_HEAD) != 0 || head->status == 204 || head->status == 304))
        reply_empty(r, head->status);
    else
        reply_stream_bare(r, head->status, size);
    if (r->response == NULL)
        return;
    r->stream = r->stream && r->whole;  /* until then it is heard all the same (EARLY_MAX) */
    add_fields(r, head);
    if (empty || (head->framing == HTTP1_BODY_LENGTH && head->body_length == 0))
        finish(r);
}

/* More of the answer's head, and maybe of what follows it. */
static void
take_head(struct request *r, const uint8_t *bytes, size_t n)
{
    static struct http1_head head;      /* there is one thread */
    struct preview *p = r->preview;
    enum http1_result result;

    if (buf_append(&p->head, bytes, n) < 0)
        return bad_answer(r, http1_word(HTTP1_HEAD_TOO_LARGE));
    while (p->state == PREVIEW_WAITS) {
        if (!http1_worth_parsing(p->head.p, p->head.n, p->seen, HEAD_MAX))
            return;
        p->seen = p->head.n;
        result = http1_parse_response_max(p->head.p, p->head.n, HEAD_MAX, str_of(r->method), &head);
        if (result == HTTP1_MORE)
            return;
        if (result != HTTP1_OK)
            return bad_answer(r, http1_word(result));
        if (head.status < 200 && head.status != 101) {
            if (++p->interim > INTERIM)
                return bad_answer(r, "interim answers without end");
            buf_consume(&p->head, head.length);
            p->seen = 0;
            continue;
        }
        if (head.status == 101)
            begin_tunnel(r, &head);
        else
            begin_answer(r, &head);
    }
    if (p->state == PREVIEW_TUNNEL)
        stream_add(r, p->head.p + head.length, p->head.n - head.length);
    else if (p->state == PREVIEW_BODY)
        take_body(r, p->head.p + head.length, p->head.n - head.length);
    buf_reset(&p->head);
}

static void
on_out(struct request *r, bool is_err, const uint8_t *bytes, size_t n)
{
    struct preview *p = r->preview;

    if (is_err)
        return bad_answer(r, "");
    p->heard_ms = clock_ms();
    if (p->state == PREVIEW_WAITS)
        take_head(r, bytes, n);
    else if (p->state == PREVIEW_BODY)
        take_body(r, bytes, n);
    else if (p->state == PREVIEW_TUNNEL)
        stream_add(r, bytes, n);
}

/* The server has closed; @code: or broken off. */
static void
on_closed(struct request *r, uint8_t flags, uint32_t code, uint64_t ms)
{
    struct preview *p = r->preview;

    (void)flags;
    (void)ms;
    if (p->state == PREVIEW_TUNNEL)
        preview_over(r);
    else if (p->state == PREVIEW_BODY && code == 0 && http1_body_end(&p->body) == HTTP1_OK)
        finish(r);
    else if (p->state == PREVIEW_BODY)
        bad_answer(r, http1_word(HTTP1_BODY_CUT));
    else
        preview_fail(r, MHD_HTTP_BAD_GATEWAY, "preview.closed", "",
             "the sandbox's server closed the connection without an answer");
}

/* --- a WebSocket, whose frames are its ends' business ------------------------------------------------------------- */

static void
settle(struct request *r)
{
    (void)upgrade_send(r);
    if (r->preview->state == PREVIEW_OVER && r->out.n == 0)
        return upgrade_end(r);
    op_flow(r);
    upgrade_watch(r, (r->preview->state == PREVIEW_TUNNEL && takes(r) ? EPOLLIN : (uint32_t)EPOLLRDHUP) |
                         (r->out.n > 0 ? (uint32_t)EPOLLOUT : 0));
}

static void
tunnel_begin(struct request *r, const uint8_t *bytes, size_t n)
{
    if (n > 0 && buf_append(&r->in, bytes, n) < 0)
        return upgrade_end(r);
    r->bytes_in += n;
    op_send(r);
    settle(r);
}

static void
tunnel_hear(struct request *r, uint32_t events)
{
    static uint8_t room[IN_PIECE];
    ssize_t n;

    if ((events & (EPOLLERR | EPOLLHUP)) != 0 ||
        ((events & EPOLLRDHUP) != 0 && (r->up.events & EPOLLIN) == 0))
        return upgrade_end(r);
    if ((events & EPOLLIN) != 0 && takes(r)) {
        n = upgrade_read(r, room, sizeof(room));
        if (n < 0)
            return;
        if (n > 0) {
            r->preview->heard_ms = clock_ms();
            if (buf_append(&r->in, room, (size_t)n) < 0)
                return upgrade_end(r);
            op_send(r);
        }
    }
    settle(r);
}

static void
tunnel_time(struct request *r, uint64_t now)
{
    const struct preview *p = r->preview;

    if (clock_since(now, p->heard_ms) >= (p->state == PREVIEW_OVER ? LAST_MS : TUNNEL_MS))
        upgrade_end(r);
}

static const struct upgraded tunnel = { .begin = tunnel_begin, .hear = tunnel_hear, .time = tunnel_time };

static void
wake(struct request *r)
{
    if (r->up.fd >= 0)
        settle(r);
    else if (r->response != NULL)
        http_wake(r);
}

/* --- the route ---------------------------------------------------------------------------------------------------- */

const struct answers preview_answers = { .port = on_port, .granted = on_granted, .no = preview_fail_err };
const struct op_answers preview_said = { .out = on_out, .exit = on_closed, .failed = preview_fail_err, .wake = wake };

struct preview *
preview_new(struct request *r)
{
    struct preview *p = calloc(1, sizeof(*p));

    if (p == NULL) {
        r->f->ended = true;
        return NULL;
    }
    r->preview = p;
    p->head = (struct buf)BUF_INIT(HEAD_MAX + EDGE_CHUNK);
    p->text = (struct buf)BUF_INIT(TEXT_MAX);
    p->heard_ms = clock_ms();
    return p;
}

static void
preview_begin(struct request *r)
{
    struct preview *p = preview_new(r);
    char place[PREVIEW_ROOT + 2];

    if (p == NULL)
        return;
    p->host_form = r->host_form;
    if (!preview_target(str_of(r->uri), p->host_form, &p->target)) {
        preview_fail(r, MHD_HTTP_NOT_FOUND, "preview.none", "", "there is nothing at this address (any more)");
        return;
    }
    if (!p->host_form)
        snprintf(p->root, sizeof(p->root), "%.*s", (int)PREVIEW_ROOT, r->uri);
    if (!edge_is_capability(p->host_form ? r->id : p->root + PREVIEW_PATH_N)) {
        preview_fail(r, MHD_HTTP_NOT_FOUND, "preview.none", "", "there is nothing at this address (any more)");
        return;
    }
    if (p->target.bare) {
        /* so that what its pages name relative to themselves is below it */
        preview_over(r);
        reply_empty(r, MHD_HTTP_PERMANENT_REDIRECT);
        snprintf(place, sizeof(place), "%s/", p->root);
        reply_location(r, place);
        return;
    }
    if (!preview_upgrades(r))
        return;
    r->op_answers = &preview_said;
    ASK(r, EDGE_ASK_PREVIEW, &preview_answers, .capability = p->host_form ? r->id : p->root + PREVIEW_PATH_N);
}

void
preview_free(struct request *r)
{
    if (r->preview == NULL)
        return;
    let_go(r);
    buf_free(&r->preview->head);
    buf_free(&r->preview->text);
    free(r->preview);
    r->preview = NULL;
}

static bool
is_timed(const struct request *r)
{
    return !r->dead && r->preview != NULL && r->up.fd < 0 &&
           r->preview->state != PREVIEW_ASKED && r->preview->state != PREVIEW_OVER;
}

/* Whoever the silence is of: the server, or a client that does not go on with what it sends or takes. */
void
preview_time(struct front *f)
{
    uint64_t now = clock_ms();

    for (struct request *r = f->requests; r != NULL; r = r->next) {
        if (!is_timed(r) ||
            clock_since(now, r->preview->heard_ms) <
                (r->preview->state == PREVIEW_WAITS || r->preview->browser ? HEAD_MS : BODY_MS))
            continue;
        preview_fail(r, MHD_HTTP_GATEWAY_TIMEOUT, "preview.timeout", "", "the sandbox's server does not answer");
        http_wake(r);
    }
}

const struct route preview_routes[] = {
    { "GET",     "/preview/{}/~", preview_begin, .upload = true, .open = true, .foreign = true },
    { "HEAD",    "/preview/{}/~", preview_begin, .upload = true, .open = true, .foreign = true },
    { "POST",    "/preview/{}/~", preview_begin, .upload = true, .open = true, .foreign = true },
    { "PUT",     "/preview/{}/~", preview_begin, .upload = true, .open = true, .foreign = true },
    { "PATCH",   "/preview/{}/~", preview_begin, .upload = true, .open = true, .foreign = true },
    { "DELETE",  "/preview/{}/~", preview_begin, .upload = true, .open = true, .foreign = true },
    { "OPTIONS", "/preview/{}/~", preview_begin, .upload = true, .open = true, .foreign = true },
};
const size_t preview_n_routes = ARRAY_LEN(preview_routes);
