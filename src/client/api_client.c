/* client/api_client.c: see api_client.h */
#include "client/api_client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/array.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "base/sha1.h"
#include "program/state.h"
#include "wire/http1.h"

#define PIECE       65536
#define INTERIM_MAX 8       /* heads of 1xx in front of an answer */

static const char token_hint[] = "CLOCHE_TOKEN is for what `cloche token create` printed; without it you are the owner";

/* --- where -------------------------------------------------------------------------------------------------------- */

static int
put_socket(struct api *api, const char *path, struct err *err)
{
    if (strncmp(path, "unix:", 5) == 0)
        path += 5;
    if (strncmp(path, "tcp:", 4) == 0 || strstr(path, "://") != NULL) {
        err_set(err, ERR_USAGE, "api.socket", "%s is not a path of a unix socket", path);
        return err_hint(err, "these verbs ask over the daemon's unix socket, also where it listens on TCP");
    }
    if (path[0] != '\0' && snprintf(api->socket, sizeof(api->socket), "%s", path) < (int)sizeof(api->socket))
        return 0;
    return err_set(err, ERR_USAGE, "api.socket", "the socket's path is empty or too long");
}

static bool
is_word(const char *text)
{
    while (*text > ' ' && *text < 0x7f)
        text++;
    return *text == '\0';
}

int
api_init(struct api *api, struct err *err)
{
    return api_open(api, NULL, NULL, err);
}

int
api_open(struct api *api, const char *socket, const char *token, struct err *err)
{
    char folder[PATH_MAX];

    memset(api, 0, sizeof(*api));
    if (socket == NULL)
        socket = getenv("CLOCHE_SOCKET");
    if (token == NULL)
        token = getenv("CLOCHE_TOKEN");
    if (token != NULL && (strlen(token) >= sizeof(api->token) || !is_word(token))) {
        err_set(err, ERR_USAGE, "api.token", "CLOCHE_TOKEN holds no token");
        return err_hint(err, "%s", token_hint);
    }
    snprintf(api->token, sizeof(api->token), "%s", token != NULL ? token : "");
    api->named = socket != NULL && socket[0] != '\0';
    if (api->named)
        return put_socket(api, socket, err);
    if (state_dir_path(folder, err) < 0)
        return -1;
    if (snprintf(api->socket, sizeof(api->socket), "%s/serve/api.sock", folder) >= (int)sizeof(api->socket))
        return err_set(err, ERR_USAGE, "api.socket", "the state folder's path is too long");
    return 0;
}

int
api_flag_socket(void *at, const char *value, struct err *err)
{
    struct api *api = at;

    api->named = true;
    return put_socket(api, value, err);
}

int
api_escape(struct buf *path, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";

    for (; *text != '\0'; text++) {
        if (strchr(plain, *text) != NULL)
            buf_put_u8(path, (uint8_t)*text);
        else
            buf_printf(path, "%%%02X", (unsigned)(unsigned char)*text);
    }
    return buf_nul(path);
}

/* --- one request -------------------------------------------------------------------------------------------------- */

static int
late(struct err *err)
{
    return err_set(err, ERR_LIMIT, "api.time", "the daemon has not answered in the time that the caller gave");
}

/* Milliseconds until then, for poll(2): -1 no limit, 0 it is over. */
static int
patience(uint64_t until_ms)
{
    uint64_t now;

    if (until_ms == 0)
        return -1;
    now = clock_ms();
    return until_ms <= now ? 0 : (int)(until_ms - now < INT_MAX ? until_ms - now : INT_MAX);
}

/* connect(2), which waits while the daemon has others waiting, waits no longer than that either. */
static void
limit_connect(uint64_t until_ms, int fd)
{
    int ms = patience(until_ms);
    struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 + 1 };

    if (ms >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));     /* a unix socket has it */
}

/* A folder may have a longer path than an address of a socket. */
static int
reach(const struct api *api, uint64_t until_ms, struct err *err)
{
    const char *slash = strrchr(api->socket, '/'), *name = slash != NULL ? slash + 1 : api->socket;
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), dir = -1;
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    char folder[PATH_MAX] = ".";

    if (slash != NULL)
        snprintf(folder, sizeof(folder), "%.*s/", (int)(slash - api->socket), api->socket);
    dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        limit_connect(until_ms, fd);
    if (fd >= 0 && dir >= 0 && snprintf(to.sun_path, sizeof(to.sun_path), "/proc/self/fd/%d/%s", dir, name) <
        (int)sizeof(to.sun_path) && connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0)
        return take_fd(&fd);
    if (errno == EAGAIN && until_ms != 0)
        return late(err);
    if (errno == EACCES || errno == EPERM) {
        err_sys(err, errno, "api.down", "no way to the cloche serve at %s", api->socket);
        return err_hint(err, "its socket is for the user who started it; be that one, or name yours with --socket");
    }
    err_sys(err, errno, "api.down", "no cloche serve answers at %s", api->socket);
    return err_hint(err, "start it (`cloche serve`), or name its socket with --socket or CLOCHE_SOCKET");
}

int
api_reach(const struct api *api, struct err *err)
{
    return reach(api, 0, err);
}

/* All of it, or -1 with errno: EAGAIN where the caller's time is over. One send(2) of much waits anew for each part of
 * it, so that it is poll(2) that waits. */
static int
send_all(uint64_t until_ms, int fd, const uint8_t *p, size_t n)
{
    struct pollfd out = { .fd = fd, .events = POLLOUT };

    while (n > 0) {
        int ms = patience(until_ms);
        ssize_t r;
        if (ms == 0) {
            errno = EAGAIN;
            return -1;
        }
        r = send(fd, p, n, MSG_NOSIGNAL | (ms > 0 ? MSG_DONTWAIT : 0));
        if (r < 0 && errno == EAGAIN) {
            (void)poll(&out, 1, ms);        /* whatever it says: the time is looked at again */
            continue;
        }
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            return -1;
        p += r;
        n -= (size_t)r;
    }
    return 0;
}

int
api_send(int fd, const uint8_t *p, size_t n)
{
    return send_all(0, fd, p, n);
}

/* @key: of a WebSocket that is asked for; NULL none. */
static int
say(const struct api *api, int fd, const struct api_call *call, const char *key, struct err *err)
{
    cleanup_buf struct buf out = BUF_INIT(API_ANSWER_MAX);
    char bearer[sizeof(api->token) + 8];
    const char *query = strchrnul(call->path, '?');
    struct http1_add add[] = {
        { STR_LIT("Accept"), str_of(call->accept) },
        { STR_LIT("Content-Type"), str_of(call->type) },
        { .name = { NULL, 0 } }, { .name = { NULL, 0 } },
    };
    struct http1_request_out req = {
        .method = str_of(call->method), .form = HTTP1_ORIGIN, .scheme = HTTP1_SCHEME_HTTP, .host = STR_LIT("localhost"),
        .port = 80, .path = { call->path, (size_t)(query - call->path) }, .query = str_of(query),
        .out = { .add = add, .n_add = 2, .framing = HTTP1_BODY_NONE, .connection = HTTP1_CONN_CLOSE },
    };
    int r;

    if (strcmp(call->method, "GET") != 0) {
        req.out.framing = HTTP1_BODY_LENGTH;
        req.out.body_length = call->body.n;
    }
    if (key != NULL) {          /* in the place of Content-Type, for there is none */
        req.out.connection = HTTP1_CONN_DEFAULT;
        req.out.upgrade = STR_LIT("websocket");
        add[1] = (struct http1_add){ STR_LIT("Sec-WebSocket-Key"), str_of(key) };
        add[req.out.n_add++] = (struct http1_add){ STR_LIT("Sec-WebSocket-Version"), STR_LIT("13") };
    }
    if (api->token[0] != '\0') {
        snprintf(bearer, sizeof(bearer), "Bearer %s", api->token);
        add[req.out.n_add++] = (struct http1_add){ STR_LIT("Authorization"), str_of(bearer) };
    }
    if (http1_write_request(&out, &req) < 0)
        return err_set(err, ERR_USAGE, "api.request", "the request cannot be written: %s %s", call->method, call->path);
    r = send_all(call->until_ms, fd, out.p, out.n);
    if (r == 0 && call->body.n > 0)
        r = send_all(call->until_ms, fd, (const uint8_t *)call->body.p, call->body.n);
    explicit_bzero(out.p, out.n);
    explicit_bzero(bearer, sizeof(bearer));
    if (r < 0 && errno == EAGAIN)
        return late(err);
    /* one that was refused before it was through has its answer there to be read */
    return r < 0 && errno != EPIPE && errno != ECONNRESET ? err_sys(err, errno, "api.cut", "send the request") : 0;
}

bool
api_nobody_reads(void)
{
    struct pollfd out = { .fd = STDOUT_FILENO };

    return poll(&out, 1, 0) > 0 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

/* Until something comes from @fd; false when nobody reads what we print any more, as no write tells meanwhile. */
static bool
await(int fd)
{
    struct pollfd p[2] = { { .fd = fd, .events = POLLIN }, { .fd = STDOUT_FILENO } };

    while (p[0].revents == 0 && p[1].revents == 0)
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            break;
    return (p[1].revents & (POLLERR | POLLHUP)) == 0;
}

/* More of what the daemon says behind @in: how many bytes, 0 at the end, -1 with @err. */
static ssize_t
more(uint64_t until_ms, int fd, struct buf *in, struct err *err)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    ssize_t r;

    while (until_ms != 0) {
        int ms = patience(until_ms);
        r = ms > 0 ? poll(&p, 1, ms) : 0;       /* over is over, also where there is always something to read */
        if (r == 0)
            return late(err);
        if (r > 0)
            break;
        if (errno != EINTR)
            return err_sys(err, errno, "api.cut", "the daemon's answer");
    }
    if (buf_reserve(in, PIECE) < 0)
        return err_set(err, ERR_LIMIT, "api.answer", "the daemon's answer is too long");
    do
        r = recv(fd, in->p + in->n, PIECE, 0);
    while (r < 0 && errno == EINTR);
    if (r < 0)
        return err_sys(err, errno, "api.cut", "the daemon's answer");
    in->n += (size_t)r;
    return r;
}

/* The head of the answer, and behind it in @in what has come of the body. */
static int
hear_head(const struct api_call *call, int fd, struct buf *in, struct http1_head *head, struct err *err)
{
    enum http1_result result = HTTP1_MORE;
    unsigned interim = 0;

    for (;;) {
        if (in->n > 0)
            result = http1_parse_response(in->p, in->n, str_of(call->method), head);
        if (result == HTTP1_OK && head->status >= 200 && head->status < 300 && head->framing == HTTP1_BODY_UNTIL_CLOSE)
            return err_set(err, ERR_PROTOCOL, "api.answer", "an answer that does not say where it ends");
        if (result == HTTP1_OK && (head->status >= 200 || head->status == 101))
            return 0;
        if (result == HTTP1_OK && ++interim <= INTERIM_MAX) {       /* 100 */
            buf_consume(in, head->length);
            result = HTTP1_MORE;
            continue;
        }
        if (result == HTTP1_OK)
            return err_set(err, ERR_PROTOCOL, "api.answer", "an answer of the daemon's that does not begin");
        if (result != HTTP1_MORE)
            return err_set(err, ERR_PROTOCOL, "api.answer", "not an answer of cloche serve: %s", http1_word(result));
        ssize_t r = more(call->until_ms, fd, in, err);
        if (r < 0)
            return -1;
        if (r == 0)
            return err_set(err, ERR_PROTOCOL, "api.cut", "the daemon ended the connection without an answer");
    }
}

/* The body, each piece to the call's function. 0 at its end, what that returned, or -1 with @err; with @shown, which is
 * that it prints what comes, API_UNREAD when nobody reads that any more. */
static int
hear_body(const struct api_call *call, int fd, struct buf *in, const struct http1_head *head, bool shown,
          struct err *err)
{
    struct http1_body body;
    enum http1_result result = http1_body_begin(&body, head, UINT64_MAX);
    bool whole = head->framing == HTTP1_BODY_NONE;

    while (!whole && (result == HTTP1_OK || result == HTTP1_MORE)) {
        struct str data;
        size_t used;
        ssize_t r;
        int said;
        while (in->n > 0 && !whole) {
            result = http1_body_next(&body, in->p, in->n, &data, &used);
            if (result != HTTP1_OK && result != HTTP1_MORE)
                break;
            said = data.n > 0 ? call->fn(call->ctx, data.p, data.n) : 0;
            if (said != 0)
                return said;
            buf_consume(in, used);
            whole = result == HTTP1_OK;
        }
        if (whole || (result != HTTP1_OK && result != HTTP1_MORE))
            break;
        if (shown && !await(fd))
            return API_UNREAD;
        r = more(call->until_ms, fd, in, err);
        if (r < 0)
            return -1;
        if (r == 0) {
            result = http1_body_end(&body);
            whole = result == HTTP1_OK;
            if (shown && !whole)        /* of a daemon that stops, which is nobody's mistake */
                return err_set(err, ERR_SYSTEM, "api.cut", "the daemon ended the stream");
            break;
        }
    }
    return whole ? 0 : err_set(err, ERR_PROTOCOL, "api.cut", "the daemon's answer ended early: %s", http1_word(result));
}

static int
keep(void *ctx, const void *p, size_t n)
{
    return buf_append(ctx, p, n);
}

static enum err_kind
kind_of(unsigned status)
{
    return status == 404 ? ERR_NOT_FOUND : status == 401 || status == 403 || status == 409 ? ERR_DENIED
           : status == 429 ? ERR_LIMIT : status == 501 ? ERR_UNSUPPORTED : status < 500 ? ERR_USAGE : ERR_SYSTEM;
}

/* The daemon's hints are for who speaks HTTP. Where a verb's user is helped by something else: that. */
static const char *
hint_of(const char *code, const char *detail)
{
    static const struct { const char *code, *hint; } rows[] = {
        { "auth.malformed", token_hint }, { "auth.unknown", token_hint }, { "auth.expired", token_hint },
        { "sandbox.not-found", "`cloche ps` lists them" }, { "volume.request", "`cloche volume ls` lists them" },
        { "template.not-found", "`cloche template ls` lists them" },
        { "volume.not-found", "`cloche volume ls` lists them" }, { "ports.none", "`cloche ports SANDBOX` lists them" },
        { "sandbox.state", "`cloche events --sandbox ID` says why" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].code, code) == 0)
            return rows[i].hint;
    return detail;
}

int
api_error(const json_t *said, enum err_kind kind, struct err *err)
{
    const char *message = json_string_value(json_object_get(said, "error"));
    const char *detail = json_string_value(json_object_get(said, "detail"));
    const char *name = json_string_value(json_object_get(said, "code"));

    if (name == NULL)
        name = "api.answer";
    err_set(err, kind, name, "%s", message != NULL ? message : "the daemon refuses, and does not say why");
    detail = hint_of(name, detail);
    return detail != NULL ? err_hint(err, "%s", detail) : -1;
}

/* The daemon's words. */
static int
refused(unsigned status, const struct buf *body, struct err *err)
{
    json_t *said = body->n > 0 ? json_loadb((const char *)body->p, body->n, JSON_REJECT_DUPLICATES, NULL) : NULL;

    if (json_is_string(json_object_get(said, "error")))
        api_error(said, kind_of(status), err);
    else
        err_set(err, kind_of(status), "api.status", "the daemon answered with status %u", status);
    json_decref(said);
    return -1;
}

/* What a server says that has understood the question for a WebSocket with that key (RFC 6455, 4.2.2). */
static bool
accepts(const struct http1_head *head, const char *key)
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    const struct http1_field *said = http1_find(head, STR_LIT("Sec-WebSocket-Accept"), NULL);
    uint8_t digest[SHA1_SIZE], room[64];
    struct buf want = BUF_INIT_IN(room, sizeof(room));
    struct sha1 s;

    sha1_begin(&s);
    sha1_add(&s, key, strlen(key));
    sha1_add(&s, guid, strlen(guid));
    sha1_end(&s, digest);
    return base64_put(&want, digest, sizeof(digest)) == 0 && said != NULL && said->value.n == want.n &&
           memcmp(said->value.p, want.p, want.n) == 0;
}

/* Ask, and read the answer to where its body begins. A descriptor, when its status is 2xx; with
 * @key 101. */
static int
api_client_begin(const struct api *api, const struct api_call *call, const char *key, struct buf *in,
                 struct http1_head *head, struct err *err)
{
    cleanup_buf struct buf why = BUF_INIT(65536);
    struct api_call reason = { .fn = keep, .ctx = &why, .until_ms = call->until_ms };
    cleanup_close int fd = reach(api, call->until_ms, err);

    if (fd < 0 || say(api, fd, call, key, err) < 0 || hear_head(call, fd, in, head, err) < 0)
        return -1;
    if (head->status >= 300) {
        buf_consume(in, head->length);
        (void)hear_body(&reason, fd, in, head, false, NULL);
        return refused(head->status, &why, err);
    }
    if ((head->status == 101) != (key != NULL) || (key != NULL && !accepts(head, key)))
        return err_set(err, ERR_PROTOCOL, "api.answer", "the daemon answered with status %u", head->status);
    buf_consume(in, head->length);      /* of the head only its numbers are of use from here on */
    return take_fd(&fd);
}

/* A GET without a body. */
static struct api_call
get(const char *path, const char *accept)
{
    return (struct api_call){ .method = "GET", .path = path, .accept = accept, .type = "application/json" };
}

/* @shown: as of hear_body. */
static int
ask(const struct api *api, const struct api_call *call, bool shown, struct err *err)
{
    cleanup_buf struct buf in = BUF_INIT(HTTP1_HEAD_MAX + 2 * PIECE);
    struct http1_head head;
    cleanup_close int fd = api_client_begin(api, call, NULL, &in, &head, err);

    return fd < 0 ? -1 : hear_body(call, fd, &in, &head, shown, err);
}

int
api_call(const struct api *api, const struct api_call *call, struct err *err)
{
    return ask(api, call, false, err);
}

int
api_ask(const struct api *api, const char *method, const char *path, const json_t *body, json_t **out, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(API_ANSWER_MAX);
    cleanup_free char *asked = body != NULL ? json_dumps(body, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    struct api_call call = {
        .method = method, .path = path, .accept = "application/json", .type = "application/json",
        .body = { asked, asked != NULL ? strlen(asked) : 0 }, .fn = keep, .ctx = &text,
    };
    json_t *said = NULL;
    json_error_t why;

    if (out != NULL)
        *out = NULL;
    if (body != NULL && asked == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (api_call(api, &call, err) < 0)
        return buf_ok(&text) ? -1 : err_set(err, ERR_LIMIT, "api.answer", "the daemon's answer is too long");
    if (text.n > 0) {
        said = json_loadb((const char *)text.p, text.n, JSON_REJECT_DUPLICATES, &why);
        if (said == NULL)
            return err_set(err, ERR_PROTOCOL, "api.answer", "the daemon's answer is no JSON: %s", why.text);
    }
    explicit_bzero(text.p, text.n);     /* it may have been a token */
    if (out != NULL)
        *out = said;
    else
        json_decref(said);
    return 0;
}

int
api_bytes(const struct api *api, const char *path, api_bytes_fn *fn, void *ctx, struct err *err)
{
    struct api_call call = get(path, "*/*");

    call.fn = fn;
    call.ctx = ctx;
    return api_call(api, &call, err);
}

int
api_upgrade(const struct api *api, const char *path, struct buf *in, struct err *err)
{
    uint8_t random[16], room[32];
    struct buf key = BUF_INIT_IN(room, sizeof(room));
    struct api_call call = get(path, "*/*");
    struct http1_head head;
    cleanup_close int fd = -1;

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random) ||
        base64_put(&key, random, sizeof(random)) < 0 || buf_nul(&key) < 0)
        return err_set(err, ERR_SYSTEM, "api.random", "no random numbers");
    fd = api_client_begin(api, &call, (const char *)key.p, in, &head, err);
    return fd >= 0 ? take_fd(&fd) : -1;
}

struct feed {
    struct sse sse;
    sse_fn *fn;
    void *ctx;
    bool too_long;
};

static int
feed(void *ctx, const void *p, size_t n)
{
    struct feed *f = ctx;
    int r = sse_feed(&f->sse, p, n, f->fn, f->ctx);

    f->too_long = r < 0;
    return r;
}

/* Each event of the answer to @fn. */
static int
ask_events(const struct api *api, struct api_call call, bool shown, sse_fn *fn, void *ctx, struct err *err)
{
    struct feed f = { .sse = SSE_INIT, .fn = fn, .ctx = ctx };
    int r;

    call.fn = feed;
    call.ctx = &f;
    r = ask(api, &call, shown, err);
    sse_free(&f.sse);
    return r < 0 && f.too_long ? err_set(err, ERR_LIMIT, "api.answer", "an event of the daemon's is too long") : r;
}

int
api_events(const struct api *api, const char *path, sse_fn *fn, void *ctx, struct err *err)
{
    return ask_events(api, get(path, "text/event-stream"), true, fn, ctx, err);
}

int
api_call_events(const struct api *api, const struct api_call *call, sse_fn *fn, void *ctx, struct err *err)
{
    return ask_events(api, *call, false, fn, ctx, err);
}
