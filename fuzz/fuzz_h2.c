/* HTTP/2 between a client and a server in memory: whatever both say, a request reaches the server only when it was let
 * out, for the one host, and with a head that the strict parser reads; and nothing is held beyond the ceiling
 *
 * Input: one byte (bit 0: a filter; bit 1: the owner takes its time; bits 2-4: how much is read at once; bit 5: no
 * preface is put in front; bit 6: no server), two bytes of length, that many bytes of the client, then those of the
 * server. Who asks for a path that begins with "/n" is refused. */
#include "fuzz.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include <nghttp2/nghttp2.h>

#include "egress/h2.h"

#define STEPS 2048

enum { CLIENT = 100, SERVER = 101 };

struct side {
    const uint8_t *p;
    size_t n;
};

static struct side from_client, from_server;
static struct buf to_client, to_server;
static unsigned turn, n_asked, n_released, n_made;
static uint8_t mode;
static uint64_t clock_ms;
static struct buf client_bytes, server_bytes;

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
    if (take == 0)
        return 0;
    memcpy(p, side->p, take);
    side->p += take;
    side->n -= take;
    return (ssize_t)take;
}

ssize_t
stream_send(struct stream *s, const void *p, size_t n)
{
    struct buf *to = s->fd == CLIENT ? &to_client : &to_server;

    FUZZ_ASSERT((s->fd == CLIENT || s->fd == SERVER) && n > 0);
    if (++turn % 5 == 0) {
        errno = EAGAIN;
        return -1;
    }
    n = turn % 2 == 0 && n > 1 ? n / 2 : n;
    FUZZ_ASSERT(buf_append(to, p, n) == 0);
    return (ssize_t)n;
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

static int
edit_head(void *ctx, const struct http1_head *head, const struct buf *whole, struct exchange_edit *edit)
{
    (void)ctx;
    (void)whole;
    edit->add[edit->n_add++] = (struct http1_add){ STR_LIT("X-Filter"), STR_LIT("yes") };
    edit->drop[edit->n_drop++] = STR_LIT("cookie");
    edit->body = EXCHANGE_BODY_STREAM;
    edit->refuse = "filter";
    return str_eq_c(head->path, "/f") ? -1 : 0;
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

static int
edit_trailer(void *ctx, const struct http1_head *trailer, struct exchange_edit *edit)
{
    (void)ctx;
    edit->drop[edit->n_drop++] = STR_LIT("x-drop");
    return http1_find(trailer, STR_LIT("x-no"), NULL) != NULL ? -1 : 0;
}

static const struct exchange_filter filter = {
    .request_head = edit_head, .request_body = doubled, .request_trailer = edit_trailer,
    .response_head = edit_answer, .response_body = doubled, .response_trailer = edit_trailer,
};

static void
decide(struct h2_stream *s, const struct http1_head *head)
{
    static const struct answer no = { .status = 403, .phrase = "Forbidden", .reason = "no", .detail = "" };

    if (head->path.n > 1 && head->path.p[1] == 'n')
        h2_refuse(s, &no);
    else if (head->path.n > 1 && head->path.p[1] == 'r')
        h2_reset(s, NGHTTP2_REFUSED_STREAM);
    else
        h2_go(s);
}

static void
on_request(struct h2_stream *s, const struct http1_head *head)
{
    FUZZ_ASSERT(head->method.n > 0 && !str_eq_c(head->method, "CONNECT") && head->authority.host.n > 0);
    if (h2_stream_ctx(s) == NULL)
        n_made++;
    h2_set_ctx(s, &n_asked);
    if (mode & 1)
        h2_set_filter(s, &filter, NULL);
    n_asked++;
    if ((mode & 2) == 0 || n_asked % 2 == 0)
        decide(s, head);
}

static void
on_released(struct h2_stream *s)
{
    n_released += h2_stream_ctx(s) != NULL;
}

static void
on_fault(struct h2 *h, const char *word, bool server)
{
    (void)h;
    (void)server;
    FUZZ_ASSERT(word != NULL && word[0] != '\0');
}

static const struct h2_owner owner = { on_request, on_released, on_fault };

static bool
any(const struct h2_stream *s)
{
    (void)s;
    return true;
}

/* --- what the server got ------------------------------------------------------------------------------------------ */

static int
on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_n,
          const uint8_t *value, size_t value_n, uint8_t flags, void *ctx)
{
    (void)session;
    (void)flags;
    (void)ctx;
    for (size_t i = 0; i < name_n; i++)
        FUZZ_ASSERT(name[i] > ' ' && name[i] < 0x7f && !(name[i] >= 'A' && name[i] <= 'Z'));
    for (size_t i = 0; i < value_n; i++)
        FUZZ_ASSERT(value[i] != '\r' && value[i] != '\n' && value[i] != '\0');
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST && name_n == 10 && memcmp(name, ":authority", 10) == 0)
        FUZZ_ASSERT(value_n == 2 && memcmp(value, "ok", 2) == 0);
    FUZZ_ASSERT(!(name_n == 4 && memcmp(name, "host", 4) == 0));
    return 0;
}

/* What nghttp2 as the server would say of our frames. */
static void
check_server(void)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_session *session;

    FUZZ_ASSERT(nghttp2_session_callbacks_new(&callbacks) == 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    FUZZ_ASSERT(nghttp2_session_server_new(&session, callbacks, NULL) == 0);
    nghttp2_session_callbacks_del(callbacks);
    if (to_server.n > 0)
        FUZZ_ASSERT(nghttp2_session_mem_recv(session, to_server.p, to_server.n) >= 0);
    nghttp2_session_del(session);
}

static void
put(struct buf *b, const char *p, size_t n)
{
    FUZZ_ASSERT(buf_append(b, p, n) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char settings[] = "\0\0\0\4\0\0\0\0\0";
    struct stream client = { .fd = CLIENT }, server = { .fd = SERVER };
    enum h2_result result = H2_LIVE;
    struct h2 *h;
    size_t n;

    if (size < 3)
        return 0;
    mode = data[0];
    n = (size_t)data[1] << 8 | data[2];
    n = n < size - 3 ? n : size - 3;
    client_bytes = server_bytes = to_client = to_server = (struct buf)BUF_INIT(64u << 20);
    if ((mode & 32) == 0) {
        put(&client_bytes, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
        put(&client_bytes, settings, sizeof(settings) - 1);
        put(&server_bytes, settings, sizeof(settings) - 1);
    }
    put(&client_bytes, (const char *)data + 3, n);
    put(&server_bytes, (const char *)data + 3 + n, size - 3 - n);
    from_client = (struct side){ client_bytes.p, client_bytes.n };
    from_server = (struct side){ server_bytes.p, server_bytes.n };
    n_asked = n_released = n_made = turn = 0;
    clock_ms = 1;
    if (mode & 64)
        server.fd = -1;
    h = h2_new(&owner, NULL, &client, &server, STR_LIT("ok"), 443, &clock_ms);
    FUZZ_ASSERT(h != NULL);
    for (int i = 0; i < STEPS && result == H2_LIVE; i++) {
        result = h2_step(h, true, i > 2 && h2_server_lives(h));
        if (mode & 2)
            h2_ask_again(h, any);
        if (i % 64 == 63) {
            clock_ms += EXCHANGE_STALL_MS;
            h2_timeout(h);
        }
    }
    h2_free(h);
    FUZZ_ASSERT(n_released == n_made);
    check_server();
    buf_free(&to_client);
    buf_free(&to_server);
    buf_free(&client_bytes);
    buf_free(&server_bytes);
    return 0;
}
