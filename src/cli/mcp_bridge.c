/* cli/mcp_bridge.c: lines to requests, answers to lines (see mcp.h) */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "cli/mcp.h"
#include "wire/http1.h"

#define PIECE 65536
#define META  "io.modelcontextprotocol/"

/* A message that was passed on and whose answer is not through. */
struct call {
    int fd;
    json_t *id;                 /* NULL: it has no answer */
    bool initializes, stateless;
    bool headed, events;
    unsigned status;
    struct buf in, text;
    struct http1_body body;
    struct sse sse;
    struct call *next;
};

struct bridge {
    const struct api *api;
    struct call *calls;
    struct buf in;
    bool skipping;              /* the rest of a line that is too long */
    bool over;
    char session[64];           /* what initialize brought; "" none */
    char version[32];
};

/* --- saying ------------------------------------------------------------------------------------------------------- */

static void
say_line(struct bridge *b, const void *p, size_t n)
{
    if (io_write_full(STDOUT_FILENO, p, n) < 0 || io_write_full(STDOUT_FILENO, "\n", 1) < 0)
        b->over = true;         /* nobody reads */
}

static void
say_error(struct bridge *b, json_t *id, int code, const char *why)
{
    json_t *message = json_pack("{s:s, s:O?, s:{s:i, s:s}}", "jsonrpc", "2.0", "id", id, "error", "code", code,
                                "message", why);
    cleanup_free char *text = json_dumps(message, JSON_COMPACT);

    if (text != NULL)
        say_line(b, text, strlen(text));
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
        say_line(b, line, strlen(line));
        answers = answers && id != NULL;
    } else if (c->id != NULL) {
        say_error(b, c->id, -32603, why != NULL ? why : "the daemon's answer is no message");
        answers = true;
    }
    if (answers) {
        json_decref(c->id);
        c->id = NULL;
    }
    json_decref(message);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

static void
call_free(struct bridge *b, struct call *c)
{
    struct call **at = &b->calls;

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    close_fd(&c->fd);
    json_decref(c->id);
    buf_free(&c->in);
    buf_free(&c->text);
    sse_free(&c->sse);
    free(c);
}

/* A value for a header: as it is, or in base64 where it is more than plain text. */
static void
put_value(struct buf *out, const char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = strlen(text);
    bool plain = n > 0 && text[0] != ' ' && text[n - 1] != ' ' && strncmp(text, "=?", 2) != 0;

    for (size_t i = 0; i < n && plain; i++)
        plain = text[i] >= 0x20 && text[i] < 0x7f;
    if (plain) {
        buf_puts(out, text);
        return;
    }
    buf_puts(out, "=?base64?");
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)(uint8_t)text[i] << 16 | (i + 1 < n ? (uint32_t)(uint8_t)text[i + 1] << 8 : 0) |
                     (i + 2 < n ? (uint8_t)text[i + 2] : 0);
        buf_put_u8(out, (uint8_t)digits[v >> 18]);
        buf_put_u8(out, (uint8_t)digits[v >> 12 & 63]);
        buf_put_u8(out, (uint8_t)(i + 1 < n ? digits[v >> 6 & 63] : '='));
        buf_put_u8(out, (uint8_t)(i + 2 < n ? digits[v & 63] : '='));
    }
    buf_puts(out, "?=");
}

struct headers {
    struct http1_add add[8];
    size_t n;
    struct buf name;            /* Mcp-Name's value */
    char bearer[160];
};

static void
add(struct headers *h, const char *name, const char *value)
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

    add(h, "Accept", "application/json, text/event-stream");
    add(h, "Content-Type", "application/json");
    if (b->api->token[0] != '\0') {
        snprintf(h->bearer, sizeof(h->bearer), "Bearer %s", b->api->token);
        add(h, "Authorization", h->bearer);
    }
    if (version != NULL) {
        add(h, "MCP-Protocol-Version", version);
        add(h, "Mcp-Method", method != NULL ? method : "");
        if (name != NULL) {
            put_value(&h->name, name);
            h->add[h->n++] = (struct http1_add){ STR_LIT("Mcp-Name"), { (const char *)h->name.p, h->name.n } };
        }
    } else if (b->session[0] != '\0') {
        add(h, "Mcp-Session-Id", b->session);
        if (b->version[0] != '\0')
            add(h, "MCP-Protocol-Version", b->version);
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

static void
pass_on(struct bridge *b, json_t *message, const char *line, size_t n)
{
    const char *method = json_string_value(json_object_get(message, "method"));
    json_t *id = json_object_get(message, "id");
    struct call *c = calloc(1, sizeof(*c));
    struct err err = ERR_INIT;

    if (c == NULL) {
        b->over = true;
        return;
    }
    c->fd = api_reach(b->api, &err);
    c->id = method != NULL ? json_incref(id) : NULL;
    c->initializes = method != NULL && strcmp(method, "initialize") == 0;
    c->stateless = version_of(message) != NULL;
    c->in = (struct buf)BUF_INIT(HTTP1_HEAD_MAX + 2 * PIECE);
    c->text = (struct buf)BUF_INIT(API_ANSWER_MAX);
    c->sse = (struct sse)SSE_INIT;
    c->next = b->calls;
    b->calls = c;
    if (c->fd >= 0 && send_call(b, c->fd, message, line, n) == 0)
        return;
    if (c->id != NULL)
        say_error(b, c->id, -32603, c->fd < 0 ? err.msg : "the message cannot be passed on to the daemon");
    call_free(b, c);
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
    if (c->initializes && session != NULL && session->value.n < sizeof(b->session))
        snprintf(b->session, sizeof(b->session), "%.*s", (int)session->value.n, session->value.p);
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
    char why[128];

    if (!c->events && c->text.n > 0 && c->id != NULL)
        say_message(b, c, (const char *)c->text.p, c->text.n);
    if (c->id != NULL) {
        snprintf(why, sizeof(why), "the daemon did not answer (status %u)", c->status);
        say_error(b, c->id, -32603, why);
    }
    call_free(b, c);
}

static void
hear_call(struct bridge *b, struct call *c)
{
    int whole = 0;
    ssize_t r = buf_reserve(&c->in, PIECE) < 0 ? 0 : recv(c->fd, c->in.p + c->in.n, PIECE, MSG_DONTWAIT);

    if (r < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (r > 0)
        c->in.n += (size_t)r;
    if (r > 0 && !c->headed)
        whole = hear_head(b, c) < 0 ? -1 : 0;
    if (c->headed && whole == 0)
        whole = hear_body(b, c);
    if (r <= 0 || whole != 0)
        end_call(b, c);
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

/* In the form without sessions a call is cancelled by leaving it. */
static void
cancel(struct bridge *b, const json_t *message)
{
    const json_t *id = json_object_get(json_object_get(message, "params"), "requestId");

    for (struct call *c = b->calls, *next; c != NULL; c = next) {
        next = c->next;
        if (c->stateless && c->id != NULL && id != NULL && json_equal(c->id, id))
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

static void
hear_stdin(struct bridge *b)
{
    const uint8_t *end;
    ssize_t r;

    if (buf_reserve(&b->in, PIECE) < 0) {
        say_error(b, NULL, -32600, "the line is too long");
        buf_free(&b->in);
        b->in = (struct buf)BUF_INIT(MCP_LINE_MAX + PIECE);
        b->skipping = true;
        return;
    }
    r = read(STDIN_FILENO, b->in.p + b->in.n, PIECE);
    if (r < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (r <= 0) {
        b->over = true;
        return;
    }
    b->in.n += (size_t)r;
    while (b->in.n > 0 && (end = memchr(b->in.p, '\n', b->in.n)) != NULL && !b->over) {
        size_t n = (size_t)(end - b->in.p);
        if (!b->skipping)
            on_line(b, (const char *)b->in.p, n);
        b->skipping = false;
        buf_consume(&b->in, n + 1);
    }
    if (b->skipping)
        buf_reset(&b->in);
}

int
mcp_bridge(const struct api *api, int signals, struct err *err)
{
    struct bridge b = { .api = api, .in = BUF_INIT(MCP_LINE_MAX + PIECE) };
    struct pollfd fds[MCP_CALLS_MAX + 66];
    struct call *who[MCP_CALLS_MAX + 66];

    while (!b.over) {
        nfds_t n = 2;
        bool room;
        fds[0] = (struct pollfd){ .fd = signals, .events = POLLIN };
        for (struct call *c = b.calls; c != NULL && n < sizeof(fds) / sizeof(fds[0]); c = c->next) {
            who[n] = c;
            fds[n++] = (struct pollfd){ .fd = c->fd, .events = POLLIN };
        }
        /* notifications and answers are calls too, for a moment: no more lines while there are too many */
        room = n < sizeof(fds) / sizeof(fds[0]) - 1;
        fds[1] = (struct pollfd){ .fd = room ? STDIN_FILENO : -1, .events = POLLIN };
        if (poll(fds, n, -1) < 0 && errno != EINTR) {
            err_sys(err, errno, "mcp.poll", "poll");
            break;
        }
        if (fds[0].revents != 0)
            break;
        for (nfds_t i = 2; i < n; i++)
            if (fds[i].revents != 0)
                hear_call(&b, who[i]);
        if (fds[1].revents != 0)
            hear_stdin(&b);
    }
    while (b.calls != NULL)
        call_free(&b, b.calls);
    buf_free(&b.in);
    return err->kind == ERR_NONE ? 0 : -1;
}
