/* tests/lib/bad_adapter.c: a cloche-adapter that was taken over: what it does is in the query of GET /api/sandbox/status */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/array.h"
#include "proto/edge_adapter.h"
#include "proto/edge_launcher.h"

static uint8_t in[EDGE_ROOM];

static void
send_raw(int fd, uint8_t type, const void *p, size_t n)
{
    struct buf b = BUF_INIT(EDGE_ROOM);
    size_t at = frame_begin(&b, type, 0, 0);

    buf_append(&b, p, n);
    if (frame_end(&b, at) == 0)
        (void)packet_send(fd, &b, -1);
    buf_free(&b);
}

static void
ask(int fd, uint8_t number, const struct shape *shape, const void *m)
{
    struct buf b = BUF_INIT(EDGE_MESSAGE_MAX);

    if (proto_put(&b, shape, m) == 0)
        (void)proto_send(fd, EDGE_VISIT_ASK, EDGE_VISIT_ASK_SHAPE(),
                         &(struct adapt_ask){ .number = number, .message = b.p, .n_message = b.n }, -1);
    buf_free(&b);
}

static void
answer(int fd, const char *text)
{
    (void)proto_send(fd, EDGE_ANSWER_HEAD, EDGE_ANSWER_HEAD_SHAPE(), &(struct adapt_head){ .status = 200,
                     .size = strlen(text), .body = (const uint8_t *)text, .n_body = strlen(text) }, -1);
}

/* The deeds. Each ends with what it heard, if the front lets it. */
static void
a_token(int fd)
{
    ask(fd, EDGE_ASK_TOKEN, EDGE_ASK_TOKEN_SHAPE(), &(struct ask_token){ .what = TOKEN_MAKE, .role = EDGE_OPERATOR, .text = "mine" });
}

static void
stop_all(int fd)
{
    ask(fd, EDGE_ASK_STOP_ALL, EDGE_ASK_STOP_ALL_SHAPE(), NULL);
}

static void
another_caller(int fd)
{
    ask(fd, EDGE_ASK_WHO, EDGE_ASK_WHO_SHAPE(), &(struct ask_who){ .kind = EDGE_BEARER, .text = "x" });
}

static void
a_connection(int fd)
{
    struct buf b = BUF_INIT(EDGE_OP_MAX);
    struct edge_op op = { .kind = OP_CONNECT, .offset = 80, .path = "0123456789abcdef0123456789abcdef" };

    if (edge_op_put(&b, &op) == 0)
        ask(fd, EDGE_ASK_OP, EDGE_ASK_OP_SHAPE(), &(struct ask_op){ .id = "victim", .op = b.p, .n_op = b.n });
    buf_free(&b);
}

static void
no_message(int fd)
{
    (void)proto_send(fd, EDGE_VISIT_ASK, EDGE_VISIT_ASK_SHAPE(),
                     &(struct adapt_ask){ .number = EDGE_ASK_GET, .message = (const uint8_t *)"\xff\xff\xff\xff", .n_message = 4 }, -1);
}

/* So many that two are open at once, however fast they are answered. */
static void
many_questions(int fd)
{
    for (int i = 0; i < 500; i++)
        ask(fd, EDGE_ASK_GET, EDGE_ASK_GET_SHAPE(), &(struct ask_box){ .id = "victim" });
}

static void
two_answers(int fd)
{
    (void)proto_send(fd, EDGE_ANSWER_HEAD, EDGE_ANSWER_HEAD_SHAPE(), &(struct adapt_head){ .status = 200, .size = 1 << 20 }, -1);
    answer(fd, "{}");
}

static void
no_header(int fd)
{
    (void)proto_send(fd, EDGE_ANSWER_HEAD, EDGE_ANSWER_HEAD_SHAPE(), &(struct adapt_head){ .status = 200, .size = 2, .n_puts = 1,
                     .puts = { "X-A: b\r\nSet-Cookie: c=d" }, .body = (const uint8_t *)"{}", .n_body = 2 }, -1);
}

static void
no_type(int fd)
{
    send_raw(fd, 1, "x", 1);
}

static void
of_somebody_elses(int fd)
{
    ask(fd, EDGE_ASK_GET, EDGE_ASK_GET_SHAPE(), &(struct ask_box){ .id = "victim" });
}

static const struct { const char *name; void (*deed)(int fd); } deeds[] = {
    { "token", a_token }, { "stop-all", stop_all }, { "who", another_caller }, { "connect", a_connection },
    { "no-message", no_message }, { "many-questions", many_questions }, { "two-answers", two_answers }, { "no-header", no_header },
    { "no-type", no_type }, { "others", of_somebody_elses },
};

static void
visit(int fd, const char *query)
{
    struct frame f;
    const char *said = "{\"heard\": 0}";

    (void)fcntl(fd, F_SETFL, 0);        /* it waits */
    for (size_t i = 0; i < ARRAY_LEN(deeds); i++)
        if (strcmp(query, deeds[i].name) == 0)
            deeds[i].deed(fd);
    if (strcmp(query, "two-answers") != 0 && strcmp(query, "no-header") != 0 && strcmp(query, "no-type") != 0 &&
        packet_receive(fd, in, sizeof(in), &f, NULL, 0) > 0)
        said = f.type == EDGE_BOX ? "{\"heard\": \"box\"}" : f.type == EDGE_NO ? "{\"heard\": \"no\"}" : "{\"heard\": \"other\"}";
    answer(fd, said);
    close(fd);
}

/* It answers no ping: the test is over before that matters. */
int
main(void)
{
    for (;;) {
        struct adapt_visit m;
        struct frame f;
        int fd = -1;
        static uint8_t first[EDGE_ROOM];
        if (packet_receive(3, first, sizeof(first), &f, &fd, 0) <= 0)
            return 0;
        struct wire_in w = wire_in_of(f.payload, f.length);
        if (f.type == EDGE_VISIT && adapt_visit_get(&w, &m))
            visit(fd, m.query);
    }
}
