/* cli/mcp_bridge.c: lines to requests, answers to lines (see mcp.h) */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/mcp.h"
#include "wire/http1.h"

#define PIECE 65536
#define META  "io.modelcontextprotocol/"

/* A message that was passed on and whose answer is not through. */
struct call {
    struct watch daemon;        /* none: it waits for a session to be begun anew */
    json_t *id;                 /* NULL: it has no answer */
    bool initializes;
    bool renews;                /* and nobody asked for it but us */
    bool again;                 /* it was passed on a second time */
    bool headed, events;
    unsigned status;
    unsigned turn;              /* of the session that it was said in; 0 none */
    struct buf line;            /* what it was, while it may have to be said again */
    struct buf in, text;
    struct http1_body body;
    struct sse sse;
    struct call *next;
};

struct bridge {
    const struct api *api;
    struct loop loop;           /* by poll: stdin may be a file */
    struct watch input, output;
    struct timer grace;
    struct call *calls;
    struct mcp_lines lines;
    bool over;                  /* a signal came, or there is no memory; with @err it is a failure */
    struct err *err;
    char session[64];           /* what initialize brought; "" none */
    char version[32];
    unsigned turn;              /* which session that is */
    struct buf beginning;       /* the client's initialize: the daemon may forget the session, and who speaks over
                                   stdin knows of none */
};

/* --- saying ------------------------------------------------------------------------------------------------------- */

static void
say_error(struct bridge *b, json_t *id, int code, const char *why)
{
    json_t *message = json_pack("{s:s, s:O?, s:{s:i, s:s}}", "jsonrpc", "2.0", "id", id, "error", "code", code,
                                "message", why);
    cleanup_free char *text = json_dumps(message, JSON_COMPACT);

    if (text != NULL)
        mcp_lines_say(&b->lines, text, strlen(text));
    json_decref(message);
}

/* What the daemon said: a message is one line, anything else (who may not ask is told so in other words) an error. */
static void
say_message(struct bridge *b, struct call *c, const char *text, size_t n)
{
    /* a command may have said anything */
    json_t *message = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    json_t *id = json_object_get(message, "id");
    cleanup_free char *line = message != NULL ? json_dumps(message, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    const char *version = json_string_value(json_object_get(json_object_get(message, "result"), "protocolVersion"));
    const char *why = json_string_value(json_object_get(message, "error"));
    bool answers = json_object_get(message, "method") == NULL;

    if (c->initializes && version != NULL)
        snprintf(b->version, sizeof(b->version), "%s", version);
    if (line != NULL && json_is_string(json_object_get(message, "jsonrpc"))) {
        mcp_lines_say(&b->lines, line, strlen(line));
        answers = answers && id != NULL;
    } else if (c->id != NULL) {
        say_error(b, c->id, -32603, why != NULL ? why : "the daemon's answer is not a message");
        answers = true;
    }
    if (answers) {
        json_decref(c->id);
        c->id = NULL;
    }
    json_decref(message);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

static watch_fn on_answer;

static struct call *
call_new(struct bridge *b)
{
    struct call *c = calloc(1, sizeof(*c));

    if (c == NULL) {
        b->over = true;
        return NULL;
    }
    c->daemon = (struct watch){ .fd = -1, .ready = on_answer, .owner = b };
    c->line = (struct buf)BUF_INIT(MCP_LINE_MAX);
    c->in = (struct buf)BUF_INIT(HTTP1_HEAD_MAX + 2 * PIECE);
    c->text = (struct buf)BUF_INIT(API_ANSWER_MAX);
    c->sse = (struct sse)SSE_INIT;
    c->next = b->calls;
    b->calls = c;
    return c;
}

static void
call_free(struct bridge *b, struct call *c)
{
    struct call **at = &b->calls;

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    loop_drop(&b->loop, &c->daemon);
    json_decref(c->id);
    buf_free(&c->line);
    buf_free(&c->in);
    buf_free(&c->text);
    sse_free(&c->sse);
    free(c);
}

/* A value for a header: as it is, or in base64 where it is more than plain text. */
static void
put_value(struct buf *out, const char *text)
{
    size_t n = strlen(text);
    bool plain = n > 0 && text[0] != ' ' && text[n - 1] != ' ' && strncmp(text, "=?", 2) != 0;

    for (size_t i = 0; i < n && plain; i++)
        plain = text[i] >= 0x20 && text[i] < 0x7f;
    if (plain) {
        buf_puts(out, text);
        return;
    }
    buf_puts(out, "=?base64?");
    (void)base64_put(out, text, n);
    buf_puts(out, "?=");
}

struct headers {
    struct http1_add add[8];
    size_t n;
    struct buf name;            /* Mcp-Name's value */
    char bearer[160];
};

static void
mcp_bridge_add(struct headers *h, const char *name, const char *value)
{
    h->add[h->n++] = (struct http1_add){ str_of(name), str_of(value) };
}

/* What the message says about itself, again as headers: in the form without sessions, or of our session. */
static void
fill(const struct bridge *b, const json_t *message, const char *version, struct headers *h)
{
    const char *method = json_string_value(json_object_get(message, "method"));
    const json_t *params = json_object_get(message, "params");
    const char *name = method == NULL ? NULL : json_string_value(json_object_get(
        params, strcmp(method, "resources/read") == 0 ? "uri" : "name"));

    mcp_bridge_add(h, "Accept", "application/json, text/event-stream");
    mcp_bridge_add(h, "Content-Type", "application/json");
    if (b->api->token[0] != '\0') {
        snprintf(h->bearer, sizeof(h->bearer), "Bearer %s", b->api->token);
        mcp_bridge_add(h, "Authorization", h->bearer);
    }
    if (version != NULL) {
        mcp_bridge_add(h, "MCP-Protocol-Version", version);
        mcp_bridge_add(h, "Mcp-Method", method != NULL ? method : "");
        if (name != NULL) {
            put_value(&h->name, name);
            h->add[h->n++] = (struct http1_add){ STR_LIT("Mcp-Name"), { (const char *)h->name.p, h->name.n } };
        }
    } else if (b->session[0] != '\0') {
        mcp_bridge_add(h, "Mcp-Session-Id", b->session);
        if (b->version[0] != '\0')
            mcp_bridge_add(h, "MCP-Protocol-Version", b->version);
    }
}

/* What says of itself which version it is, NULL: nothing. */
static const char *
version_of(const json_t *message)
{
    const json_t *meta = json_object_get(json_object_get(message, "params"), "_meta");

    return json_string_value(json_object_get(meta, META "protocolVersion"));
}

static int
send_call(const struct bridge *b, int fd, const json_t *message, const char *line, size_t n)
{
    struct headers h = { .n = 0, .name = BUF_INIT(4096) };
    cleanup_buf struct buf out = BUF_INIT(MCP_LINE_MAX + HTTP1_HEAD_MAX);
    struct http1_request_out req = {
        .method = STR_LIT("POST"), .form = HTTP1_ORIGIN, .scheme = HTTP1_SCHEME_HTTP, .host = STR_LIT("localhost"),
        .port = 80, .path = STR_LIT("/mcp"),
        .out = { .framing = HTTP1_BODY_LENGTH, .body_length = n, .connection = HTTP1_CONN_CLOSE },
    };
    int r = -1;

    fill(b, message, version_of(message), &h);
    req.out.add = h.add;
    req.out.n_add = h.n;
    if (buf_ok(&h.name) && http1_write_request(&out, &req) == 0 && buf_append(&out, line, n) == 0)
        r = api_send(fd, out.p, out.n);
    if (out.p != NULL)
        explicit_bzero(out.p, out.n);
    explicit_bzero(h.bearer, sizeof(h.bearer));
    buf_free(&h.name);
    return r;
}

/* @message may be NULL where it is in our session. */
static void
pass(struct bridge *b, struct call *c, const json_t *message, const char *line, size_t n)
{
    struct err err = ERR_INIT;

    c->daemon.fd = api_reach(b->api, &err);
    if (c->daemon.fd >= 0 && send_call(b, c->daemon.fd, message, line, n) == 0)
        return;
    if (c->id != NULL)
        say_error(b, c->id, -32603, c->daemon.fd < 0 ? err.msg : "the message cannot be passed on to the daemon");
    call_free(b, c);
}

static void
pass_on(struct bridge *b, json_t *message, const char *line, size_t n)
{
    const char *method = json_string_value(json_object_get(message, "method"));
    struct call *c = call_new(b);

    if (c == NULL)
        return;
    c->id = method != NULL ? json_incref(json_object_get(message, "id")) : NULL;
    c->initializes = c->id != NULL && strcmp(method, "initialize") == 0;
    if (c->initializes) {
        buf_reset(&b->beginning);
        (void)buf_append(&b->beginning, line, n);
    } else if (version_of(message) == NULL && b->session[0] != '\0') {
        c->turn = b->turn;
        if (c->id != NULL)
            (void)buf_append(&c->line, line, n);
    }
    pass(b, c, message, line, n);
}

/* --- sessions that were forgotten --------------------------------------------------------------------------------- */

static void
say_again(struct bridge *b, struct call *c)
{
    c->turn = b->turn;
    pass(b, c, NULL, (const char *)c->line.p, c->line.n);
}

/* There is another one, or there will be none. */
static void
renewed(struct bridge *b)
{
    for (struct call *c = b->calls, *next; c != NULL; c = next) {
        next = c->next;
        if (!c->again || c->daemon.fd >= 0)
            continue;
        if (c->turn != b->turn) {
            say_again(b, c);
            continue;
        }
        say_error(b, c->id, -32603, "the daemon has forgotten this session, and does not start a new one");
        call_free(b, c);
    }
}

/* The daemon knows no such session any more (it has another front now, or had too many): what was said in it was not
 * done. It is said again in the next one, once. @c may be gone afterwards. */
static void
begin_anew(struct bridge *b, struct call *c)
{
    struct call *n;

    loop_drop(&b->loop, &c->daemon);
    buf_reset(&c->in);
    c->headed = false;
    c->again = true;
    if (c->turn != b->turn) {           /* there is one already */
        say_again(b, c);
        return;
    }
    for (n = b->calls; n != NULL; n = n->next)
        if (n->renews)
            return;
    n = call_new(b);
    if (n == NULL)
        return;
    n->initializes = n->renews = true;
    n->daemon.fd = api_reach(b->api, &(struct err)ERR_INIT);
    if (n->daemon.fd >= 0 && send_call(b, n->daemon.fd, NULL, (const char *)b->beginning.p, b->beginning.n) == 0)
        return;
    call_free(b, n);
    renewed(b);
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

struct hearer {
    struct bridge *b;
    struct call *c;
};

static int
on_event(void *ctx, const char *name, const char *id, const char *data, size_t n)
{
    struct hearer *h = ctx;

    (void)name;
    (void)id;
    if (n > 0)
        say_message(h->b, h->c, data, n);
    return 0;
}

/* 0 more is to come, 1 the head is there, -1 it is none. */
static int
hear_head(struct bridge *b, struct call *c)
{
    struct http1_head head;
    enum http1_result r = http1_parse_response(c->in.p, c->in.n, STR_LIT("POST"), &head);
    const struct http1_field *type, *session;

    if (r == HTTP1_MORE)
        return 0;
    if (r != HTTP1_OK || http1_body_begin(&c->body, &head, UINT64_MAX) != HTTP1_OK)
        return -1;
    type = http1_find(&head, STR_LIT("Content-Type"), NULL);
    session = http1_find(&head, STR_LIT("Mcp-Session-Id"), NULL);
    c->headed = true;
    c->status = head.status;
    c->events = type != NULL && str_starts(type->value, STR_LIT("text/event-stream"));
    if (c->initializes && session != NULL && session->value.n < sizeof(b->session)) {
        snprintf(b->session, sizeof(b->session), "%.*s", (int)session->value.n, session->value.p);
        b->turn++;
    }
    buf_consume(&c->in, head.length);
    return 1;
}

/* 0 more is to come, 1 it is whole, -1 it is broken. */
static int
hear_body(struct bridge *b, struct call *c)
{
    struct hearer h = { b, c };

    while (c->in.n > 0) {
        struct str data;
        size_t used;
        enum http1_result r = http1_body_next(&c->body, c->in.p, c->in.n, &data, &used);
        if (r != HTTP1_OK && r != HTTP1_MORE)
            return -1;
        if (data.n > 0 && (c->events ? sse_feed(&c->sse, data.p, data.n, on_event, &h)
                                     : buf_append(&c->text, data.p, data.n)) < 0)
            return -1;
        buf_consume(&c->in, used);
        if (r == HTTP1_OK)
            return 1;
    }
    return 0;
}

static void
end_call(struct bridge *b, struct call *c)
{
    bool renews = c->renews;
    char why[128];

    if (!c->events && c->text.n > 0 && c->id != NULL)
        say_message(b, c, (const char *)c->text.p, c->text.n);
    if (c->id != NULL) {
        snprintf(why, sizeof(why), "the daemon did not answer (status %u)", c->status);
        say_error(b, c->id, -32603, why);
    }
    call_free(b, c);
    if (renews)
        renewed(b);
}

static bool
is_forgotten(const struct call *c)
{
    return c->headed && c->status == 404 && c->turn != 0 && !c->again && c->id != NULL && c->line.n > 0;
}

static void
on_answer(struct watch *w, uint32_t events)
{
    struct call *c = (struct call *)w;
    struct bridge *b = w->owner;
    int whole = 0;
    ssize_t r;

    (void)events;
    if (mcp_lines_waiting(&b->lines) >= MCP_WAITING)
        return;
    r = buf_reserve(&c->in, PIECE) < 0 ? 0 : recv(w->fd, c->in.p + c->in.n, PIECE, MSG_DONTWAIT);
    if (r < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (r > 0)
        c->in.n += (size_t)r;
    if (r > 0 && !c->headed)
        whole = hear_head(b, c) < 0 ? -1 : 0;
    if (is_forgotten(c)) {
        begin_anew(b, c);
        return;
    }
    if (c->headed)
        buf_free(&c->line);
    if (c->headed && whole == 0)
        whole = hear_body(b, c);
    if (r <= 0 || whole != 0)
        end_call(b, c);
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

/* A call is cancelled by leaving it, in both forms: the notification, which comes to the daemon on a connection of its
 * own, could be there before it. Nobody waits for its answer any more, but for that of `initialize`. */
static void
cancel(struct bridge *b, const json_t *message)
{
    const json_t *id = json_object_get(json_object_get(message, "params"), "requestId");

    for (struct call *c = b->calls, *next; c != NULL; c = next) {
        next = c->next;
        if (!c->initializes && c->id != NULL && id != NULL && json_equal(c->id, id))
            call_free(b, c);
    }
}

static size_t
count(const struct bridge *b)
{
    size_t n = 0;

    for (const struct call *c = b->calls; c != NULL; c = c->next)
        n++;
    return n;
}

static void
on_line(struct bridge *b, const char *line, size_t n)
{
    json_t *message;
    const char *method;

    if (n > 0 && line[n - 1] == '\r')
        n--;
    if (n == 0)
        return;
    message = json_loadb(line, n, JSON_REJECT_DUPLICATES, NULL);
    method = json_string_value(json_object_get(message, "method"));
    if (message == NULL)
        say_error(b, NULL, -32700, "the line is not valid JSON");
    else if (!json_is_object(message))
        say_error(b, NULL, -32600, "one line is one message, an object");
    else if (count(b) >= MCP_CALLS_MAX && method != NULL && json_object_get(message, "id") != NULL)
        say_error(b, json_object_get(message, "id"), -32603, "too many calls at once; try again");
    else {
        if (method != NULL && strcmp(method, "notifications/cancelled") == 0)
            cancel(b, message);
        pass_on(b, message, line, n);
    }
    json_decref(message);
}

/* No further line before a session is there that it may be for; nor while there is too much at once: notifications and
 * answers are calls too, for a moment. */
static bool
takes_lines(const struct bridge *b)
{
    for (const struct call *c = b->calls; c != NULL; c = c->next)
        if (c->initializes)
            return false;
    return !b->over && mcp_lines_waiting(&b->lines) < MCP_WAITING && count(b) < MCP_CALLS_MAX + 64;
}

static void
take_lines(struct bridge *b)
{
    size_t n;
    int r;

    while (takes_lines(b) && (r = mcp_lines_next(&b->lines, &n)) != 0) {
        if (r < 0) {
            say_error(b, NULL, -32600, "the line is too long");
            continue;
        }
        on_line(b, (const char *)b->lines.in.p, n);
        mcp_lines_taken(&b->lines, n);
    }
}

/* --- the loop ----------------------------------------------------------------------------------------------------- */

static void
on_signal(struct signals *s, int number)
{
    struct bridge *b = s->watch.owner;

    if (number == SIGCHLD)
        err_set(b->err, ERR_SYSTEM, "mcp.daemon", "the daemon that was started has ended");
    b->over = true;
    loop_break(&b->loop);
}

static void
on_stdout(struct watch *w, uint32_t events)
{
    struct bridge *b = w->owner;

    if ((events & EPOLLOUT) != 0)
        mcp_lines_flush(&b->lines);
    else
        b->lines.gone = true;
}

static void
on_stdin(struct watch *w, uint32_t events)
{
    (void)events;
    mcp_lines_hear(&((struct bridge *)w->owner)->lines);
}

static void
on_grace(struct timer *t)
{
    ((struct bridge *)t->owner)->over = true;
}

/* What can be taken is looked at. */
static void
look(struct bridge *b)
{
    size_t waiting = mcp_lines_waiting(&b->lines);

    (void)loop_watch(&b->loop, &b->output, waiting > 0 ? EPOLLOUT : EPOLLERR);
    for (struct call *c = b->calls; c != NULL; c = c->next)
        (void)loop_watch(&b->loop, &c->daemon, waiting < MCP_WAITING ? EPOLLIN : 0);
    (void)loop_watch(&b->loop, &b->input, !b->lines.ended && takes_lines(b) ? EPOLLIN : 0);
}

static bool
is_through(const struct bridge *b)
{
    return b->lines.ended && b->calls == NULL && mcp_lines_waiting(&b->lines) == 0;
}

int
mcp_bridge(const struct api *api, struct signals *signals, struct err *err)
{
    struct bridge b = { .api = api, .beginning = BUF_INIT(MCP_LINE_MAX), .err = err,
                        .input = { .fd = STDIN_FILENO, .ready = on_stdin, .owner = &b },
                        .output = { .fd = STDOUT_FILENO, .ready = on_stdout, .owner = &b },
                        .grace = { .due = on_grace, .owner = &b } };

    mcp_lines_open(&b.lines);
    loop_init_polled(&b.loop);
    signals->came = on_signal;
    signals->watch.owner = &b;
    (void)loop_watch(&b.loop, &signals->watch, EPOLLIN);
    while (!b.over && !b.lines.gone) {
        take_lines(&b);
        if (is_through(&b))
            break;
        if (b.lines.ended && b.grace.at_ms == 0)
            loop_at(&b.loop, &b.grace, clock_ms() + MCP_GRACE_MS);
        look(&b);
        b.over = loop_round(&b.loop, -1, err) < 0 || b.over;
    }
    while (b.calls != NULL)
        call_free(&b, b.calls);
    mcp_lines_free(&b.lines);
    buf_free(&b.beginning);
    return err->kind == ERR_NONE ? 0 : -1;
}
