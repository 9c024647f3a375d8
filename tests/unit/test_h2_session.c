/* HTTP/2 from a client to a server through h2.h: three parties, two pairs of sockets, a clock that is set by hand. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <nghttp2/nghttp2.h>

#include "egress/h2.h"

#define BODY ((size_t)4 << 20)      /* bytes of the server's answer */
#define FACTOR 4                    /* a byte of it is so many for the client */
#define ROUNDS 200000
#define HOUR_MS 3600000u

/* A peer of ours. */
struct peer {
    nghttp2_session *s;
    int fd;
    int32_t id;                 /* of the one stream */
    size_t sent, got;           /* bytes of body */
    size_t gate;                /* ... that are sent for now */
    size_t owed;                /* ... of which the sender has not been told that they were read */
    bool bad, ended;
    bool silent;                /* it answers nothing */
};

struct parties {
    struct peer client, server;
    struct h2 *h;
    struct h2_stream *asked;
    int inner[2];               /* our ends of the pairs */
    uint64_t now_ms;
    bool ask;                   /* requests wait for h2_go() */
    bool fault;
};

static const struct exchange_filter quadruple;

/* --- in the middle ------------------------------------------------------------------------------------------------ */

static void
on_request(struct h2_stream *s, const struct http1_head *head)
{
    struct parties *p = h2_ctx(h2_of(s));

    (void)head;
    p->asked = s;
    if (p->ask)
        return;
    h2_set_filter(s, &quadruple, p);
    h2_go(s);
}

static void
on_released(struct h2_stream *s)
{
    (void)s;
}

static void
on_fault(struct h2 *h, const char *word, bool server)
{
    struct parties *p = h2_ctx(h);

    (void)word;
    (void)server;
    p->fault = true;
}

static const struct h2_owner owner = { .request = on_request, .released = on_released, .fault = on_fault };

static int
response_head(void *ctx, const struct http1_head *head, struct exchange_edit *edit)
{
    (void)ctx;
    (void)head;
    edit->body = EXCHANGE_BODY_STREAM;
    return 0;
}

/* As unpacking does, a step at a time. */
static int
response_body(void *ctx, struct str data, bool last, struct buf *out, size_t *used)
{
    (void)ctx;
    (void)last;
    *used = data.n < 4096 ? data.n : 4096;
    for (size_t i = 0; i < *used; i++)
        for (int k = 0; k < FACTOR; k++)
            if (buf_put_u8(out, (uint8_t)data.p[i]) < 0)
                return -1;
    return 0;
}

static const struct exchange_filter quadruple = { .response_head = response_head, .response_body = response_body };

/* --- peers -------------------------------------------------------------------------------------------------------- */

static uint8_t
byte_at(size_t at)
{
    return (uint8_t)(at * 7 + (at >> 11));
}

static ssize_t
send_some(nghttp2_session *s, const uint8_t *p, size_t n, int flags, void *ctx)
{
    struct peer *peer = ctx;
    ssize_t sent = send(peer->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);

    (void)s;
    (void)flags;
    return sent >= 0 ? sent : errno == EAGAIN ? (ssize_t)NGHTTP2_ERR_WOULDBLOCK
                                              : (ssize_t)NGHTTP2_ERR_CALLBACK_FAILURE;
}

static ssize_t
recv_some(nghttp2_session *s, uint8_t *p, size_t n, int flags, void *ctx)
{
    struct peer *peer = ctx;
    ssize_t got = recv(peer->fd, p, n, MSG_DONTWAIT);

    (void)s;
    (void)flags;
    if (got < 0)
        return errno == EAGAIN ? NGHTTP2_ERR_WOULDBLOCK : NGHTTP2_ERR_CALLBACK_FAILURE;
    return got > 0 ? got : (ssize_t)NGHTTP2_ERR_EOF;
}

static ssize_t
read_body(nghttp2_session *s, int32_t id, uint8_t *p, size_t n, uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
    struct peer *peer = ctx;
    size_t left = peer->gate - peer->sent;

    (void)s;
    (void)source;
    peer->id = id;
    if (left == 0)
        return NGHTTP2_ERR_DEFERRED;
    n = n < left ? n : left;
    for (size_t i = 0; i < n; i++)
        p[i] = byte_at(peer->sent + i);
    peer->sent += n;
    if (peer->sent == BODY)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

/* nghttp2 copies both: they are only not const for it. */
#define NV(name, value) \
    { (uint8_t *)(uintptr_t)(name), (uint8_t *)(uintptr_t)(value), sizeof(name) - 1, sizeof(value) - 1, 0 }

static int
on_frame(nghttp2_session *s, const nghttp2_frame *frame, void *ctx)
{
    struct peer *peer = ctx;
    const nghttp2_nv head[] = { NV(":status", "200") };
    nghttp2_data_provider body = { .read_callback = read_body };

    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST && !peer->silent)
        return nghttp2_submit_response(s, frame->hd.stream_id, head, 1, &body);
    return 0;
}

static int
on_data(nghttp2_session *s, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *ctx)
{
    struct peer *peer = ctx;

    (void)flags;
    (void)id;
    for (size_t i = 0; i < n; i++)
        peer->bad |= p[i] != byte_at((peer->got + i) / FACTOR);
    peer->got += n;
    peer->owed += n;
    return nghttp2_session_consume_connection(s, n);
}

static int
on_close(nghttp2_session *s, int32_t id, uint32_t code, void *ctx)
{
    struct peer *peer = ctx;

    (void)s;
    (void)id;
    peer->ended = true;
    peer->bad |= code != NGHTTP2_NO_ERROR;
    return 0;
}

static void
peer_open(struct peer *peer, bool client)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;

    assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
    assert_int_equal(nghttp2_option_new(&option), 0);
    nghttp2_option_set_no_auto_window_update(option, client);
    nghttp2_session_callbacks_set_send_callback(callbacks, send_some);
    nghttp2_session_callbacks_set_recv_callback(callbacks, recv_some);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    assert_int_equal(client ? nghttp2_session_client_new2(&peer->s, callbacks, peer, option)
                            : nghttp2_session_server_new2(&peer->s, callbacks, peer, option), 0);
    assert_int_equal(nghttp2_submit_settings(peer->s, NGHTTP2_FLAG_NONE, NULL, 0), 0);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
}

static void
begin(struct parties *p)
{
    const nghttp2_nv head[] = { NV(":method", "GET"), NV(":scheme", "https"), NV(":authority", "ok.example.org"),
                                NV(":path", "/") };
    int client[2], server[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, client), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, server), 0);
    p->client.fd = client[0];
    p->server.fd = server[0];
    p->inner[0] = client[1];
    p->inner[1] = server[1];
    p->now_ms = 1000;
    peer_open(&p->client, true);
    peer_open(&p->server, false);
    p->h = h2_new(&owner, p, &(struct stream){ .fd = client[1] }, &(struct stream){ .fd = server[1] },
                  STR_LIT("ok.example.org"), 443, &p->now_ms);
    assert_non_null(p->h);
    p->client.id = nghttp2_submit_request(p->client.s, NULL, head, 4, NULL, NULL);
    assert_true(p->client.id > 0);
}

/* Everybody does what can be done now. */
static enum h2_result
go_round(struct parties *p)
{
    for (int i = 0; i < 2; i++) {
        struct peer *peer = i == 0 ? &p->client : &p->server;
        assert_int_equal(nghttp2_session_send(peer->s), 0);
        assert_int_equal(nghttp2_session_recv(peer->s), 0);
    }
    return h2_step(p->h, true, true);
}

static void
finish(struct parties *p)
{
    h2_free(p->h);
    nghttp2_session_del(p->client.s);
    nghttp2_session_del(p->server.s);
    close(p->client.fd);
    close(p->server.fd);
    close(p->inner[0]);
    close(p->inner[1]);
}

/* --- a filter that takes bodies in parts, and a client that stops reading for a while ----------------------------- */

/* The first @early bytes pass the filter as they come. Then the server is faster than the client, who stops as soon as
 * the server has got window back for what the filter took: as much comes at once, and nothing goes. */
static void
stop_at_refill(size_t early)
{
    struct parties p = { .server.gate = early };
    size_t before = 0, still = 0;
    bool stopped = false;

    begin(&p);
    for (int i = 0; i < ROUNDS && !p.client.ended; i++) {
        assert_int_equal(go_round(&p), H2_LIVE);
        assert_false(p.fault);
        if (p.server.gate < BODY && p.client.got == early * FACTOR) {
            p.server.gate = BODY;
            assert_int_equal(nghttp2_session_resume_data(p.server.s, p.server.id), 0);
        }
        still = p.server.sent == before ? still + 1 : 0;
        before = p.server.sent;
        stopped |= p.server.sent > H2_WINDOW_LARGE;
        if (stopped && still < 10)
            continue;
        (void)nghttp2_session_consume_stream(p.client.s, p.client.id, p.client.owed);
        p.client.owed = 0;
    }
    assert_true(p.client.ended && !p.client.bad);
    assert_int_equal(p.client.got, BODY * FACTOR);
    finish(&p);
}

static void
test_a_reader_that_stops(void **state)
{
    (void)state;
    for (size_t early = 1 << 15; early < H2_WINDOW_LARGE / 2; early *= 2)
        stop_at_refill(early);
}

/* --- time --------------------------------------------------------------------------------------------------------- */

static void
test_a_question_takes_its_time(void **state)
{
    struct parties p = { .ask = true, .server.silent = true };

    (void)state;
    begin(&p);
    for (int i = 0; i < ROUNDS && p.asked == NULL; i++)
        assert_int_equal(go_round(&p), H2_LIVE);
    p.now_ms += HOUR_MS;
    assert_true(h2_deadline_ms(p.h) > p.now_ms);
    h2_timeout(p.h);
    assert_int_equal(go_round(&p), H2_LIVE);
    /* yes: from now on the server has the time that a server has */
    h2_go(p.asked);
    assert_true(h2_deadline_ms(p.h) > p.now_ms);
    h2_timeout(p.h);
    assert_int_equal(go_round(&p), H2_LIVE);
    p.now_ms = h2_deadline_ms(p.h);
    h2_timeout(p.h);
    assert_int_equal(h2_step(p.h, false, false), H2_BROKEN);
    finish(&p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_reader_that_stops),
        cmocka_unit_test(test_a_question_takes_its_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
