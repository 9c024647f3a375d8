/* The HTTP exchange over two streams in memory: whatever client and server say, a server connection carries exactly the
 * requests that were let out, each whole and of known length, and the client gets one answer to each request, in order
 *
 * Input: one byte (bit 0: a filter; bit 1: the owner takes its time; bits 2-4: how much is read at once; bit 5: a
 * parent proxy; bit 6: server connections were another exchange's, and may become the next one's; bit 7: a while ago),
 * two bytes of length, that many bytes of the client, then those of the server. Who asks for another
 * host than "ok" is refused; of who asks for /see, the owner wants to see the body first. */
#include "fuzz.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "egress/exchange.h"

#define CONNECTIONS 64
#define REQUESTS    256
#define STEPS       4096
#define SEEN_MAX    32      /* bytes of a body that the owner sees */

enum { CLIENT = 100, SERVER = 101 };

struct side {
    const uint8_t *p;
    size_t n;
};

static struct side from_client, from_server;
static struct buf to_client, to_server[CONNECTIONS];
static unsigned n_connections, n_requests, turn;
static char methods[REQUESTS][HTTP1_METHOD_MAX];
static size_t method_n[REQUESTS];
static uint8_t mode;
static uint64_t clock_ms;
static bool fresh;          /* the owner was told to dial */

/* --- streams in memory -------------------------------------------------------------------------------------------- */

ssize_t
stream_recv(struct stream *s, void *p, size_t n)
{
    static const size_t most[] = { 1, 2, 7, 64, 1000, 4096, 65536, 1u << 20 };
    struct side *side = s->fd == CLIENT ? &from_client : &from_server;
    size_t take = side->n < n ? side->n : n;

    FUZZ_ASSERT(s->fd == CLIENT || s->fd == SERVER);
    if (take > most[mode >> 2 & 7])
        take = most[mode >> 2 & 7];
    if (side->n > 0 && ++turn % 3 == 0) {
        errno = EAGAIN;
        return -1;
    }
    memcpy(p, side->p, take);
    side->p += take;
    side->n -= take;
    return (ssize_t)take;
}

ssize_t
stream_send(struct stream *s, const void *p, size_t n)
{
    struct buf *to = s->fd == CLIENT ? &to_client : &to_server[n_connections - 1];

    FUZZ_ASSERT(s->fd == CLIENT || s->fd == SERVER);
    if (++turn % 5 == 0) {
        errno = EAGAIN;
        return -1;
    }
    n = turn % 2 == 0 && n > 1 ? n / 2 : n;
    FUZZ_ASSERT(buf_append(to, p, n) == 0);
    return (ssize_t)n;
}

int
stream_finish(struct stream *s)
{
    (void)s;
    return 0;
}

uint32_t
stream_events(const struct stream *s, bool want_in, bool want_out)
{
    (void)s;
    return (want_in ? (uint32_t)EPOLLIN : 0) | (want_out ? (uint32_t)EPOLLOUT : 0);
}

bool
stream_pending(const struct stream *s)
{
    (void)s;
    return false;
}

/* --- owner and filter --------------------------------------------------------------------------------------------- */

static void
open_server(struct exchange *x)
{
    if (x->server.fd >= 0)
        return;
    FUZZ_ASSERT(n_connections < CONNECTIONS);
    x->server.fd = SERVER;
    x->lends = (mode & 64) != 0;
    x->server_used = x->lends && !fresh;
    x->rested_ms = x->server_used;
    fresh = false;
    n_connections++;
}

static void
go(struct exchange *x)
{
    if (n_connections == CONNECTIONS && x->server.fd < 0) {
        exchange_free(x);
        return;
    }
    open_server(x);
    exchange_go(x);
}

static void
on_request(struct exchange *x, const struct http1_head *head)
{
    static const struct answer no = { .status = 403, .phrase = "Forbidden", .reason = "no", .detail = "" };
    enum exchange_gather how;
    struct str body;

    if (n_requests == REQUESTS) {
        exchange_free(x);
        return;
    }
    how = exchange_gathered(x, &body);
    if (how == EXCHANGE_NOT_GATHERED) {
        memcpy(methods[n_requests], head->method.p, head->method.n);
        method_n[n_requests++] = head->method.n;
    }
    FUZZ_ASSERT((how == EXCHANGE_GATHERED) <= (body.n <= SEEN_MAX && str_eq_c(head->path, "/see")));
    if (head->form == HTTP1_AUTHORITY) {
        exchange_leave(x);
        return;
    }
    if (!http1_equal(head->authority.host, STR_LIT("ok"))) {
        exchange_refuse(x, &no);
        return;
    }
    if (how == EXCHANGE_TOO_LONG) {
        exchange_refuse(x, &no);
        return;
    }
    if (how == EXCHANGE_NOT_GATHERED && x->has_body && str_eq_c(head->path, "/see")) {
        exchange_collect(x, SEEN_MAX);
        return;
    }
    x->target = (struct exchange_target){ .scheme = HTTP1_SCHEME_HTTP, .host = STR_LIT("ok"), .port = 80,
                                          .absolute = (mode & 32) != 0 };
    if ((mode & 2) == 0)
        go(x);
}

static void
on_fault(struct exchange *x, enum http1_result result)
{
    (void)x;
    FUZZ_ASSERT(result != HTTP1_OK && result != HTTP1_MORE);
}

static void
on_hang_up(struct exchange *x)
{
    x->server.fd = -1;
}

static void
on_dial(struct exchange *x)
{
    fresh = true;
    if ((mode & 2) == 0)
        go(x);
}

static const struct exchange_owner owner = { on_request, on_fault, on_hang_up, on_dial };

static int
edit_head(void *ctx, const struct http1_head *head, const struct buf *whole, struct exchange_edit *edit)
{
    (void)ctx;
    edit->add[edit->n_add++] = (struct http1_add){ STR_LIT("X-Filter"), STR_LIT("yes") };
    edit->drop[edit->n_drop++] = STR_LIT("cookie");
    edit->body = whole == NULL && head->query.n > 1 ? EXCHANGE_BODY_WHOLE : EXCHANGE_BODY_STREAM;
    edit->refuse = "filter";
    return str_eq_c(head->path, "/no") ? -1 : 0;
}

static int
edit_answer(void *ctx, const struct http1_head *head, struct exchange_edit *edit)
{
    (void)ctx;
    edit->body = head->status == 201 ? EXCHANGE_BODY_PASS : EXCHANGE_BODY_STREAM;
    return head->status == 599 ? -1 : 0;
}

/* Doubles every byte, in pieces. */
static int
doubled(void *ctx, struct str data, bool last, struct buf *out, size_t *used)
{
    (void)ctx;
    (void)last;
    *used = data.n < 1000 ? data.n : 1000;
    for (size_t i = 0; i < *used; i++)
        if (buf_append(out, data.p + i, 1) < 0 || buf_append(out, data.p + i, 1) < 0)
            return -1;
    return 0;
}

static const struct exchange_filter filter = { edit_head, doubled, edit_answer, doubled };

/* --- what came of it ---------------------------------------------------------------------------------------------- */

/* Whether the body of @head ends within @n bytes at @p; *@used is where. */
static bool
body_ends(const struct http1_head *head, const uint8_t *p, size_t n, size_t *used)
{
    struct http1_body body;
    enum http1_result result = http1_body_begin(&body, head, EXCHANGE_BODY_MAX);

    FUZZ_ASSERT(result == HTTP1_OK);
    *used = 0;
    if (head->framing == HTTP1_BODY_NONE || (head->framing == HTTP1_BODY_LENGTH && head->body_length == 0))
        return true;
    while (*used < n) {
        struct str data;
        size_t took;
        result = http1_body_next(&body, p + *used, n - *used, &data, &took);
        *used += took;
        if (result == HTTP1_OK)
            return true;
        /* an unchanged body passes up to the byte that is wrong, and the connection ends there */
        if (result != HTTP1_MORE)
            return false;
    }
    return false;
}

static void
check_server(const struct buf *b)
{
    static struct http1_head head;
    size_t at = 0, used;

    while (at < b->n) {
        enum http1_result result = http1_parse_request(b->p + at, b->n - at, &head);
        if (result == HTTP1_MORE)
            return;
        FUZZ_ASSERT(result == HTTP1_OK);
        FUZZ_ASSERT(str_eq_c(head.host.host, "ok") && str_eq_c(head.authority.host, "ok"));
        FUZZ_ASSERT(http1_find(&head, STR_LIT("proxy-authorization"), NULL) == NULL);
        at += head.length;
        if (str_eq_c(head.path, "/see") && head.framing != HTTP1_BODY_NONE)
            FUZZ_ASSERT(head.framing == HTTP1_BODY_LENGTH && head.body_length <= SEEN_MAX);
        if (head.upgrade.n > 0) {
            FUZZ_ASSERT(str_eq_c(head.upgrade, "websocket"));
            return;         /* what follows may be raw */
        }
        if (!body_ends(&head, b->p + at, b->n - at, &used))
            return;
        at += used;
    }
}

/* What the next exchange may have has carried whole requests, and no body. */
static void
check_rested(const struct buf *b)
{
    static struct http1_head head;
    size_t at = 0;

    while (at < b->n) {
        FUZZ_ASSERT(http1_parse_request(b->p + at, b->n - at, &head) == HTTP1_OK);
        FUZZ_ASSERT(head.framing == HTTP1_BODY_NONE || (head.framing == HTTP1_BODY_LENGTH && head.body_length == 0));
        FUZZ_ASSERT(head.upgrade.n == 0 && head.keep_alive);
        at += head.length;
    }
}

static void
check_client(bool whole)
{
    static struct http1_head head;
    size_t at = 0, used;

    for (unsigned i = 0; at < to_client.n;) {
        struct str method = i < n_requests ? (struct str){ methods[i], method_n[i] } : STR_LIT("GET");
        enum http1_result result = http1_parse_response(to_client.p + at, to_client.n - at, method, &head);
        if (result == HTTP1_MORE && !whole)
            return;
        FUZZ_ASSERT(result == HTTP1_OK && i <= n_requests);
        at += head.length;
        if (head.tunnel || head.framing == HTTP1_BODY_UNTIL_CLOSE)
            return;
        if (head.status < 200)
            continue;
        if (!body_ends(&head, to_client.p + at, to_client.n - at, &used)) {
            FUZZ_ASSERT(!whole);
            return;
        }
        at += used;
        i++;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct exchange x;
    enum exchange_result result = EXCHANGE_LIVE;
    size_t n;

    if (size < 3)
        return 0;
    mode = data[0];
    n = (size_t)data[1] << 8 | data[2];
    n = n < size - 3 ? n : size - 3;
    from_client = (struct side){ data + 3, n };
    from_server = (struct side){ data + 3 + n, size - 3 - n };
    n_connections = n_requests = turn = 0;
    clock_ms = mode & 128 ? 1 + EXCHANGE_FRESH_MS : 1;
    fresh = false;
    to_client = (struct buf)BUF_INIT(64u << 20);
    for (size_t i = 0; i < CONNECTIONS; i++)
        to_server[i] = (struct buf)BUF_INIT(64u << 20);
    exchange_init(&x, &owner, NULL, CLIENT, &clock_ms);
    if (mode & 1)
        x.filter = &filter;
    for (int i = 0; i < STEPS && result == EXCHANGE_LIVE; i++) {
        uint32_t client, server;
        if (exchange_asks(&x))
            go(&x);
        result = exchange_step(&x, true, x.server.fd >= 0);
        client = exchange_client_events(&x);
        server = exchange_server_events(&x);
        if (result == EXCHANGE_LIVE && !exchange_asks(&x) && client == 0 && server == 0)
            exchange_timeout(&x);       /* nothing would wake it */
    }
    if (result != EXCHANGE_FREED && exchange_rests(&x))
        check_rested(&to_server[n_connections - 1]);
    for (unsigned i = 0; i < n_connections; i++) {
        check_server(&to_server[i]);
        buf_free(&to_server[i]);
    }
    check_client(result == EXCHANGE_DONE);
    buf_free(&to_client);
    exchange_free(&x);
    return 0;
}
