/* adapters/host.c: visits: what the front says on their sockets, and what is said to it (proto/edge_adapter.h) */
#include "adapters/host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "wire/json_text.h"
#include "wire/table.h"

#define AT_ONCE      32
#define ANSWER_ALWAYS 16384     /* bytes of one that there is always room for */

struct hosting hosting = { .waits = { .max = HOST_WAITS_MAX } };

struct hosted *
host_of(const struct visit *v)
{
    return (struct hosted *)(uintptr_t)v;
}

void
visit_no_memory(struct visit *v)
{
    (void)v;
    hosting.ended = true;
}

void
visits_at(struct timer *t, uint64_t at_ms)
{
    loop_at(&hosting.loop, t, at_ms);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static bool
has_room(const struct hosted *h, size_t n)
{
    return hold_has(&hosting.waits, h->v.caller, h->v.caller == HOLD_NOBODY && !h->v.strangers, n);
}

static void
count(struct hosted *h, size_t held)
{
    hold_count(&hosting.waits, h->v.caller, h->v.held, held);
    h->v.held = held;
}

/* What waits to be said is kept as well. */
static void
count_queue(struct hosted *h)
{
    hold_count(&hosting.waits, h->v.caller, h->queued, h->out.bytes);
    h->queued = h->out.bytes;
}

bool
visit_room(struct visit *v, size_t n)
{
    if (!has_room(host_of(v), n))
        return false;
    count(host_of(v), v->held + n);
    return true;
}

void
visit_keep(struct visit *v, struct buf *into, bool *cut, const uint8_t *p, size_t n)
{
    size_t room = into->max - into->n, take = n < room ? n : room, had = into->cap;

    if (*cut)
        return;         /* what came behind a hole would be taken for what came next */
    *cut = !has_room(host_of(v), take) || buf_append(into, p, take) < 0 || take < n;
    count(host_of(v), v->held + into->cap - had);
}

/* --- what is said ------------------------------------------------------------------------------------------------- */

/* One that cannot be told has gone, which is noticed where it is read. */
static int
queue(struct hosted *h, uint8_t type, const struct shape *shape, const void *m)
{
    return h->link.fd >= 0 ? proto_queue(&h->out, h->link.fd, type, shape, m, -1) : -1;
}

void
host_say(struct hosted *h, uint8_t type, const struct shape *shape, const void *m)
{
    if (queue(h, type, shape, m) == 0)
        host_flow(h);
}
#define SAY(h, number, ...) PROTO_SAY(host_say, h, number, __VA_ARGS__)

/* As much of a long answer as goes on its way now. */
static void
say_text(struct hosted *h)
{
    while (h->text_at < h->text_n && !packet_queue_waits(&h->out)) {
        size_t left = h->text_n - h->text_at;
        struct edge_bytes m = { .bytes = (const uint8_t *)h->text + h->text_at,
                                .n_bytes = left < EDGE_CHUNK ? left : EDGE_CHUNK };
        if (queue(h, EDGE_OUT, EDGE_OUT_SHAPE(), &m) < 0)
            return;
        h->text_at += m.n_bytes;
        if (h->text_at == h->text_n)
            (void)PROTO_SAY(queue, h, EDGE_DONE, .count = 0);
    }
}

void
host_flow(struct hosted *h)
{
    bool waits;

    if (h->link.fd < 0)
        return;
    if (packet_queue_waits(&h->out))
        (void)packet_queue_flush(&h->out, h->link.fd);
    say_text(h);
    count_queue(h);
    waits = packet_queue_waits(&h->out) || h->text_at < h->text_n;
    (void)loop_watch(&hosting.loop, &h->link, EPOLLIN | (waits ? EPOLLOUT : 0));
    if (h->op.fd < 0)
        return;
    (void)loop_watch(&hosting.loop, &h->op, (h->out.bytes < HOST_STREAM_MAX ? EPOLLIN : EPOLLET) |
                     (h->input.n > 0 || h->input_end ? EPOLLOUT : 0));
}

/* --- the answer --------------------------------------------------------------------------------------------------- */

void
visit_put(struct visit *v, const char *name, const char *value)
{
    struct hosted *h = host_of(v);

    if (h->n_puts < ADAPT_PUTS)
        snprintf(h->puts[h->n_puts++], sizeof(h->puts[0]), "%s: %s", name, value);
}

static void
say_head(struct hosted *h, unsigned status, uint64_t size, const void *p, size_t n)
{
    struct adapt_head m = { .status = (uint16_t)status, .type = h->type, .keyed = h->keyed, .size = size,
                            .n_puts = h->n_puts, .body = p, .n_body = n };

    for (size_t i = 0; i < h->n_puts; i++)
        m.puts[i] = h->puts[i];
    h->answered = true;
    h->over = size != ADAPT_STREAM;
    host_say(h, EDGE_ANSWER_HEAD, EDGE_ANSWER_HEAD_SHAPE(), &m);
}

/* What the answer was made of need not be there any more. */
static void
release(struct hosted *h)
{
    buf_free(&h->v.out);
    buf_free(&h->v.err_out);
    count(h, 0);
}

static void
refuse(struct hosted *h, unsigned status, const char *code, const char *detail, const char *text)
{
    h->answered = h->over = true;
    SAY(h, EDGE_ANSWER_NO, .status = (uint16_t)status, .code = code, .detail = detail, .text = text);
}

/* All of an answer: text[0..n), taken; NULL: no memory. */
static void
answer(struct hosted *h, unsigned status, char *text, size_t n)
{
    static const char none[] = "{\"error\":\"out of memory\",\"code\":\"memory\"}";

    if (h->answered) {
        free(text);
        return;
    }
    release(h);
    if (text == NULL) {
        h->type = ADAPT_JSON;
        say_head(h, HTTP_INTERNAL, sizeof(none) - 1, none, sizeof(none) - 1);
    } else if (n > ANSWER_ALWAYS && !has_room(h, n)) {
        refuse(h, HTTP_UNAVAILABLE, "http.busy", "read the answers that wait for you, and ask again",
               "there is no room for the answer: too much waits for this caller's clients");
    } else if (n > EDGE_CHUNK) {
        count(h, n);
        h->text = text;
        h->text_n = n;
        h->text_at = EDGE_CHUNK;
        say_head(h, status, n, text, EDGE_CHUNK);
        return;
    } else {
        say_head(h, status, n, text, n);
    }
    free(text);
}

void
visit_json(struct visit *v, unsigned status, json_t *body)
{
    char *text = body != NULL ? json_dumps(body, JSON_COMPACT | JSON_DIGITS) : NULL;

    json_decref(body);
    answer(host_of(v), status, text, text != NULL ? strlen(text) : 0);
}

void
visit_png(struct visit *v, const void *p, size_t n)
{
    char *copy = malloc(n);

    if (copy != NULL)
        memcpy(copy, p, n);
    host_of(v)->type = ADAPT_PNG;
    answer(host_of(v), HTTP_OK, copy, n);
}

void
visit_empty(struct visit *v, unsigned status)
{
    if (!host_of(v)->answered)
        say_head(host_of(v), status, 0, "", 0);
}

void
visit_err(struct visit *v, const struct err *err)
{
    struct hosted *h = host_of(v);

    if (h->answered)
        return;
    release(h);
    h->answered = h->over = true;
    SAY(h, EDGE_ANSWER_ERR, .why = *err);
}

void
visit_stream_of(struct visit *v, uint8_t type)
{
    if (host_of(v)->answered)
        return;
    host_of(v)->type = type;
    say_head(host_of(v), HTTP_OK, ADAPT_STREAM, "", 0);
}

void
visit_stream(struct visit *v)
{
    visit_stream_of(v, ADAPT_EVENTS);
}

bool
visit_answered(const struct visit *v)
{
    return host_of(v)->answered;
}

void
visit_keyed(struct visit *v)
{
    host_of(v)->keyed = true;
}

void
visit_refuse(struct visit *v, unsigned status, const char *code, const char *detail, const char *text)
{
    if (host_of(v)->answered)
        return;
    release(host_of(v));
    refuse(host_of(v), status, code, detail, text);
}

/* There is no room for all of it. What came behind a hole would be taken for what came next: nothing comes. */
static void
cut_stream(struct hosted *h)
{
    packet_queue_clear(&h->out);
    visit_break(&h->v);
}

void
visit_add(struct visit *v, const void *p, size_t n)
{
    struct hosted *h = host_of(v);

    if (!h->over && n > ANSWER_ALWAYS && !has_room(h, n))
        cut_stream(h);
    for (size_t at = 0, take; at < n && !h->over; at += take) {
        struct edge_bytes m = { .bytes = (const uint8_t *)p + at };
        take = m.n_bytes = n - at < EDGE_CHUNK ? n - at : EDGE_CHUNK;
        if (queue(h, EDGE_OUT, EDGE_OUT_SHAPE(), &m) < 0)
            cut_stream(h);
        host_flow(h);
    }
}

void
visit_close(struct visit *v)
{
    if (!host_of(v)->over)
        SAY(host_of(v), EDGE_DONE, .count = 0);
    host_of(v)->over = true;
}

void
visit_break(struct visit *v)
{
    if (!host_of(v)->over)
        SAY(host_of(v), EDGE_ANSWER_BREAK, .none = 0);
    host_of(v)->over = true;
}

/* --- what is heard ------------------------------------------------------------------------------------------------ */

/* An answer that nobody waits for any more was under way. The last one ends its question. */
#define ANSWER(number, member, last, ...) \
    static int \
    on_##member(struct hosted *h, const number##_IS *m) \
    { \
        struct visit *v = &h->v; \
        if (!h->asks) \
            return 0; \
        if (v->answers->member == NULL) \
            return -1; \
        if (last) \
            h->asks = false; \
        v->answers->member(v, __VA_ARGS__); \
        return 0; \
    }

ANSWER(EDGE_BOX, box, true, &m->box)
ANSWER(EDGE_ITEM, item, false, &m->box)
ANSWER(EDGE_EVENT, event, false, &m->event)
ANSWER(EDGE_END, end, true, m->count, m->more)
ANSWER(EDGE_GATE, gate, true, &m->verdict)
ANSWER(EDGE_SIGNED, signed_, true, m->done, json_loads(m->json, 0, NULL))
ANSWER(EDGE_SIGN_ITEM, sign_item, false, m->done, json_loads(m->json, 0, NULL))
ANSWER(EDGE_SHOWN_PORT, port, true, json_loadb((const char *)m->json, m->n_json, 0, NULL))

static int
on_no(struct hosted *h, const struct tell_no *m)
{
    if (!h->asks)
        return 0;
    h->asks = false;
    if (h->v.answers->no != NULL)
        h->v.answers->no(&h->v, &m->why);
    else
        visit_err(&h->v, &m->why);
    return 0;
}

static int passed = -1;         /* what came with the message at hand */

static int
on_granted(struct hosted *h, const struct tell_ticket *m)
{
    (void)m;
    struct err err = ERR_INIT;

    if (passed == -1 || h->v.op_answers == NULL)
        return -1;
    if (!h->asks)
        return 0;       /* its socket is closed, which ends it */
    h->asks = false;
    if (passed == PACKET_FULL) {
        err_sys(&err, EMFILE, "serve.op", "the adapter");
        if (h->v.answers->no != NULL)
            h->v.answers->no(&h->v, &err);
        else
            visit_err(&h->v, &err);
        return 0;
    }
    host_op_take(h, take_fd(&passed));
    if (h->v.answers->granted != NULL)
        h->v.answers->granted(&h->v);
    h->input_end = h->has_input;
    h->has_input = false;
    host_flow(h);
    return 0;
}

/* All of it is there. */
static void
begin(struct hosted *h)
{
    h->begun = true;
    h->v.body = (struct str){ (const char *)h->body.p, h->body.n };
    adapters_begin(&h->v);
    h->v.body = (struct str){ NULL, 0 };        /* it was read */
    buf_free(&h->body);
}

static int
on_in(struct hosted *h, const struct edge_bytes *m)
{
    return !h->begun && buf_append(&h->body, m->bytes, m->n_bytes) == 0 ? 0 : -1;
}

static int
on_in_end(struct hosted *h, const struct nothing *m)
{
    (void)m;
    if (h->begun)
        return -1;
    begin(h);
    return 0;
}

#define HEARS(R) \
    R(EDGE_IN, on_in, false, 1) \
    R(EDGE_IN_END, on_in_end, true, 1) \
    R(EDGE_BOX, on_box, false, 1) \
    R(EDGE_ITEM, on_item, false, 1) \
    R(EDGE_EVENT, on_event, false, 1) \
    R(EDGE_END, on_end, false, 1) \
    R(EDGE_GATE, on_gate, false, 1) \
    R(EDGE_SIGNED, on_signed_, false, 1) \
    R(EDGE_SIGN_ITEM, on_sign_item, false, 1) \
    R(EDGE_SHOWN_PORT, on_port, false, 1) \
    R(EDGE_GRANTED, on_granted, false, 1) \
    R(EDGE_NO, on_no, false, 1)
PROTO_RULES(front_rules, HEARS)

/* Its client is gone, or has its answer. */
static void
leave(struct hosted *h)
{
    for (struct hosted **at = &hosting.all; *at != NULL; at = &(*at)->next) {
        if (*at != h)
            continue;
        *at = h->next;
        break;
    }
    if (h->begun)
        adapters_gone(&h->v);
    host_op_drop(h);
    loop_drop(&hosting.loop, &h->link);
    count(h, 0);
    packet_queue_clear(&h->out);
    count_queue(h);
    for (size_t i = 0; i < ADAPT_N_HEADERS; i++)
        free(h->headers[i]);
    free(h->query);
    free(h->text);
    buf_free(&h->body);
    buf_free(&h->input);
    free(h);
}

static void
on_link(struct watch *w, uint32_t events)
{
    struct hosted *h = w->owner;
    struct msg_gate gate = { .rules = front_rules, .n_rules = ARRAY_LEN(front_rules), .state = 1 };

    for (int i = 0; i < AT_ONCE && (events & ~(uint32_t)EPOLLOUT) != 0; i++) {
        enum msg_verdict verdict;
        struct frame f;
        int got;
        passed = -1;
        got = packet_receive(h->link.fd, hosting.in, sizeof(hosting.in), &f, &passed, MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN)
            break;
        verdict = got > 0 ? msg_dispatch(&gate, &f, h) : MSG_UNKNOWN;
        close_fd(&passed);
        if (verdict != MSG_OK) {
            leave(h);
            return;
        }
    }
    host_flow(h);
}

/* NULL: no memory. */
static char **
copy_headers(struct hosted *h, const struct adapt_visit *m)
{
    for (size_t i = 0; i < m->n_headers; i++) {
        if (m->headers[i][0] == '\0')
            continue;
        h->headers[i] = strdup(m->headers[i] + 1);
        if (h->headers[i] == NULL)
            return NULL;
    }
    return h->headers;
}

int
host_visit(const struct adapt_visit *m, int fd)
{
    struct hosted *h = m->row < VISIT_ROWS ? calloc(1, sizeof(*h)) : NULL;
    cleanup_close int link = fd;

    if (h == NULL)
        return -1;
    h->v = (struct visit){ .row = m->row, .no_room = (m->flags & ADAPT_NO_ROOM) != 0,
                           .strangers = (m->flags & ADAPT_STRANGERS) != 0, .tls = (m->flags & ADAPT_TLS) != 0,
                           .has_address = (m->flags & ADAPT_ADDRESS) != 0, .async = (m->flags & ADAPT_ASYNC) != 0,
                           .who = m->who, .caller = m->caller };
    h->op.fd = -1;
    h->out = (struct packet_queue)PACKET_QUEUE_INIT(2 * VISIT_RESULT_MAX);
    h->body = h->input = (struct buf)BUF_INIT(HOST_BODY_MAX);
    h->query = strdup(m->query);
    memcpy(h->v.path_id, m->id, strlen(m->id) + 1);
    h->link = (struct watch){ .fd = take_fd(&link), .ready = on_link, .owner = h };
    h->next = hosting.all;
    hosting.all = h;
    if (h->query == NULL || copy_headers(h, m) == NULL || buf_append(&h->body, m->body, m->n_body) < 0 ||
        loop_watch(&hosting.loop, &h->link, EPOLLIN) < 0)
        return -1;
    if ((m->flags & ADAPT_WHOLE) != 0)
        begin(h);
    return 0;
}
