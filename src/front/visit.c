/* front/visit.c: requests that cloche-adapter answers (proto/edge_adapter.h)
 *
 * Each has a socket of its own, which is kept as an operation's is: the body goes there, the answer comes from there,
 * and its end cancels. What the adapter asks is decoded here, so that nothing but a question that is well reaches the
 * warden, in the name of this request's caller. It has one open at a time, as a client's request has.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "adapters/routes.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "front/front.h"
#include "front/preview.h"
#include "front/visit_priv.h"
#include "proto/edge_adapter.h"

/* --- what is remembered ------------------------------------------------------------------------------------------- */

#define FLAGS(method, path, function, flags) flags,
static const uint8_t flags_of[] = { VISIT_ROUTES(FLAGS) };

static bool
is_remembered(const struct request *r)
{
    return (flags_of[r->route - adapter_routes] & VISIT_REMEMBERED) != 0 && r->query[0] == '\0';
}

/* Asked for far more often than it changes: remembered until the warden counts on (warden/epoch.h). */
static bool
told_before(struct request *r, uint64_t *epoch)
{
    const struct told_status *s = is_remembered(r) ? who_status(r) : NULL;

    if (s == NULL)
        return false;
    *epoch = atomic_load(&r->f->epochs->defaults);
    if (s->text == NULL || s->epoch != *epoch)
        return false;
    reply_text(r, MHD_HTTP_OK, "application/json", s->text, s->n);
    return true;
}

static void
remember(struct request *r, const uint8_t *p, size_t n)
{
    struct told_status *s = r->status == MHD_HTTP_OK && is_remembered(r) ? who_status(r) : NULL;

    if (s == NULL)
        return;
    free(s->text);
    *s = (struct told_status){ .text = malloc(n), .epoch = r->visit->epoch };
    if (s->text == NULL)
        return;
    memcpy(s->text, p, n);
    s->n = n;
}

/* --- what the adapter is told ------------------------------------------------------------------------------------- */

bool
visit_waits(const struct request *r)
{
    return r->visit != NULL && packet_queue_waits(&r->visit->out);
}

size_t
visit_held(const struct request *r)
{
    return r->visit != NULL ? r->visit->out.bytes : 0;
}

/* @fd is taken. One that cannot be told is broken; its end is noticed where it is read. */
static void
say(struct request *r, uint8_t type, const struct shape *shape, const void *m, int fd)
{
    if (r->op.fd < 0)
        close_fd(&fd);
    else if (proto_queue(&r->visit->out, r->op.fd, type, shape, m, fd) < 0)
        (void)shutdown(r->op.fd, SHUT_RDWR);
    op_flow(r);
}
#define SAY(r, number, ...) say(r, number, number##_SHAPE(), &(const number##_IS){ __VA_ARGS__ }, -1)

static void
on_box(struct request *r, const struct edge_box *box)
{
    /* from here on it is for us to end, and not for the warden: the adapter may hear of it too late */
    if (r->visit->makes)
        memcpy(r->visit->made, box->id, sizeof(r->visit->made));
    r->visit->makes = false;
    SAY(r, EDGE_BOX, .box = *box, .key = "");
}

static void
on_item(struct request *r, const struct edge_box *box)
{
    SAY(r, EDGE_ITEM, .box = *box);
}

static void
on_event(struct request *r, const struct edge_event *event)
{
    SAY(r, EDGE_EVENT, .event = *event);
}

static void
on_end(struct request *r, uint32_t count, bool more)
{
    SAY(r, EDGE_END, .count = count, .more = more);
}

static void
on_port(struct request *r, const struct edge_port *p, const char *capability)
{
    json_t *json = json_of_port(r, p, capability);
    cleanup_free char *text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);
    SAY(r, EDGE_SHOWN_PORT, .json = (const uint8_t *)(text != NULL ? text : "{}"), .n_json = text != NULL ? strlen(text)
                                                                                                         : 2);
}

static void
on_gate(struct request *r, const struct edge_verdict *v)
{
    struct edge_verdict told = *v;

    told.pass = 0;          /* the call's handle is ours to use */
    if (r->visit->hears)
        SAY(r, EDGE_GATE, .verdict = told);
    else
        reply_waits(r, v);
}

static void
on_signed(struct request *r, bool done, const char *json)
{
    SAY(r, EDGE_SIGNED, .done = done, .json = json);
}

static void
on_sign_item(struct request *r, bool done, const char *json)
{
    SAY(r, EDGE_SIGN_ITEM, .done = done, .json = json);
}

static void
on_no(struct request *r, const struct err *err)
{
    SAY(r, EDGE_NO, .why = *ended_of(r, err));
}

static const struct answers answers = { .box = on_box, .item = on_item, .event = on_event, .end = on_end,
                                        .port = on_port, .gate = on_gate, .signed_ = on_signed,
                                        .sign_item = on_sign_item, .no = on_no };

void
visit_granted(struct request *r, int fd)
{
    r->visit->granted = true;
    say(r, EDGE_GRANTED, EDGE_GRANTED_SHAPE(), &(const struct tell_ticket){ .ticket = 0 }, fd);
}

/* --- what it asks ------------------------------------------------------------------------------------------------- */

/* What could not be asked was said to the client; where its stream has begun already, that ends: no answer comes. */
static int
asked(struct request *r)
{
    if (r->ticket == 0 && r->stream && !r->stream_end) {
        stream_break(r);
        op_drop(r);
    }
    return 0;
}

#define FORWARD(number) \
    case number: { \
        static number##_IS q; \
        if (!proto_get(&in, number##_SHAPE(), &q)) \
            return -1; \
        ask(r, number, number##_SHAPE(), &q, &answers); \
        return asked(r); \
    }

static int
ask_for_box(struct request *r, struct wire_in in)
{
    static EDGE_ASK_CREATE_IS q;

    if (!proto_get(&in, EDGE_ASK_CREATE_SHAPE(), &q))
        return -1;
    r->visit->makes = (q.flags & EDGE_FLEETING) != 0;
    ask(r, EDGE_ASK_CREATE, EDGE_ASK_CREATE_SHAPE(), &q, &answers);
    return asked(r);
}

/* Another one, for the client alone (ADAPT_KEY): it takes none away from anybody. */
static int
ask_for_key(struct request *r, struct wire_in in)
{
    static EDGE_ASK_KEY_IS q;

    if (!proto_get(&in, EDGE_ASK_KEY_SHAPE(), &q) || !q.more)
        return -1;
    ask(r, EDGE_ASK_KEY, EDGE_ASK_KEY_SHAPE(), &q, &answers);
    return asked(r);
}

/* As a route asks for it: its words are counted, and it is told its trace. */
static int
ask_for_op(struct request *r, struct wire_in in)
{
    static struct edge_op op;
    static struct ask_op q;

    if (!ask_op_get(&in, &q))
        return -1;
    in = wire_in_of(q.op, q.n_op);
    if (!edge_op_get(&in, &op))
        return -1;
    if (op_is_wardens(op.kind) || op.kind == OP_WATCH)
        return -1;
    ask_op(r, q.id, &op, &answers, NULL);
    return asked(r);
}

static int
on_ask(struct request *r, const struct adapt_ask *m)
{
    struct wire_in in = wire_in_of(m->message, m->n_message);

    if (r->ticket != 0 && r->ticket == r->visit->look)
        r->ticket = 0;          /* ours: this one tells the same */
    if (r->ticket != 0)
        return -1;
    r->visit->hears = m->hears;
    r->async = m->async;
    switch (m->number) {
    case EDGE_ASK_CREATE: return ask_for_box(r, in);
    FORWARD(EDGE_ASK_GET)
    FORWARD(EDGE_ASK_LIST)
    FORWARD(EDGE_ASK_DELETE)
    FORWARD(EDGE_ASK_RECOVER)
    FORWARD(EDGE_ASK_PAUSE)
    FORWARD(EDGE_ASK_RESUME)
    FORWARD(EDGE_ASK_LIFE)
    case EDGE_ASK_KEY: return ask_for_key(r, in);
    FORWARD(EDGE_ASK_EVENTS)
    FORWARD(EDGE_ASK_GATE)
    FORWARD(EDGE_ASK_EXPOSE)
    FORWARD(EDGE_ASK_RUN)
    FORWARD(EDGE_ASK_SIGN)
    FORWARD(EDGE_ASK_SIGN_TEXT)
    FORWARD(EDGE_ASK_SIGN_DECIDE)
    FORWARD(EDGE_ASK_SIGN_LOOK)
    case EDGE_ASK_OP: return ask_for_op(r, in);
    default: return -1;
    }
}

static int
on_drop(struct request *r, const struct nothing *m)
{
    (void)m;
    ask_drop(r);
    return 0;
}

static int
on_told(struct request *r, const struct nothing *m)
{
    (void)m;
    r->visit->made[0] = '\0';
    return 0;
}

/* --- what it answers ---------------------------------------------------------------------------------------------- */

/* "NAME: VALUE": one of those that adapters' answers have, in visible characters. */
static const char *
put_name(const char *put)
{
    static const char *const names[] = { "Allow", "Mcp-Session-Id", "X-Accel-Buffering", "X-Next-Token" };
    size_t n = strcspn(put, ":");

    for (const char *p = put; *p != '\0'; p++)
        if (*p < ' ' || *p > '~')
            return NULL;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strlen(names[i]) == n && strncmp(names[i], put, n) == 0 && strncmp(put + n, ": ", 2) == 0)
            return names[i];
    return NULL;
}

static bool
head_well(const struct request *r, const struct adapt_head *m)
{
    for (size_t i = 0; i < m->n_puts; i++)
        if (put_name(m->puts[i]) == NULL)
            return false;
    if (m->size == ADAPT_STREAM)
        return r->response == NULL && m->type >= ADAPT_EVENTS && !m->keyed;
    return r->response == NULL && m->n_body <= m->size && (!m->keyed || m->n_body == m->size);
}

/* Its body, with the key that came with the sandbox in its places. */
static void
reply_keyed(struct request *r, const struct adapt_head *m, const char *type)
{
    static const char mark[] = ADAPT_KEY;
    struct buf b = BUF_INIT(EDGE_CHUNK * 4);
    const uint8_t *at = m->body, *end = at + m->n_body, *next;
    int bad = 0;

    for (; (next = memmem(at, (size_t)(end - at), mark, sizeof(mark) - 1)) != NULL; at = next + sizeof(mark) - 1) {
        bad |= buf_append(&b, at, (size_t)(next - at));
        bad |= buf_puts(&b, r->key);
    }
    bad |= buf_append(&b, at, (size_t)(end - at));
    if (bad == 0)
        reply_text(r, m->status, type, b.p, b.n);
    else
        reply_error(r, MHD_HTTP_INTERNAL_SERVER_ERROR, "memory", "", "there is no room for the answer");
    if (b.p != NULL)
        explicit_bzero(b.p, b.n);
    buf_free(&b);
}

static int
on_head(struct request *r, const struct adapt_head *m)
{
    static const char *const types[] = ADAPT_TYPE_NAMES;
    const char *type = types[m->type];

    if (!head_well(r, m))
        return -1;
    if (m->size == ADAPT_STREAM) {
        reply_stream(r, type);
        http_watch_peer(r, true);
        r->visit->epoch = r->epoch;
    } else if (m->size == 0) {
        reply_empty(r, m->status);
    } else if (m->keyed) {
        reply_keyed(r, m, type);
    } else if (m->n_body == m->size) {
        reply_text(r, m->status, type, m->body, m->n_body);
        remember(r, m->body, m->n_body);
    } else {
        reply_stream_of(r, m->status, type, m->size);
        stream_add(r, m->body, m->n_body);
    }
    reply_hints(r);
    for (size_t i = 0; i < m->n_puts && r->response != NULL; i++)
        (void)MHD_add_response_header(r->response, put_name(m->puts[i]), strchr(m->puts[i], ':') + 2);
    if (!r->stream)
        op_drop(r);
    return 0;
}

static int
on_out(struct request *r, const struct edge_bytes *m)
{
    if (!r->stream)
        return -1;
    if (!r->stream_end)
        stream_add(r, m->bytes, m->n_bytes);
    return 0;
}

static int
on_done(struct request *r, const struct edge_count *m)
{
    (void)m;
    if (!r->stream)
        return -1;
    stream_close(r);
    op_drop(r);
    return 0;
}

static int
on_break(struct request *r, const struct nothing *m)
{
    (void)m;
    if (!r->stream)
        return -1;
    stream_break(r);
    op_drop(r);
    return 0;
}

static int
on_err(struct request *r, const struct edge_why *m)
{
    reply_err(r, &m->why);
    op_drop(r);
    return 0;
}

static int
on_refuse(struct request *r, const struct adapt_refuse *m)
{
    reply_error(r, m->status, m->code, m->detail, "%s", m->text);
    op_drop(r);
    return 0;
}

#define HEARS(R) \
    R(EDGE_ANSWER_HEAD, on_head, false, 1) \
    R(EDGE_OUT, on_out, false, 1) \
    R(EDGE_DONE, on_done, false, 1) \
    R(EDGE_ANSWER_BREAK, on_break, false, 1) \
    R(EDGE_ANSWER_ERR, on_err, false, 1) \
    R(EDGE_ANSWER_NO, on_refuse, false, 1) \
    R(EDGE_VISIT_ASK, on_ask, false, 1) \
    R(EDGE_VISIT_DROP, on_drop, false, 1) \
    R(EDGE_VISIT_TOLD, on_told, false, 1)
PROTO_RULES(adapter_rules, HEARS)

static void
refuse(struct request *r)
{
    reply_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, "serve.adapter", "try again",
                "the daemon's process that speaks this protocol is not there");
}

/* The adapter has gone, or says what it may not say. */
static void
broke_off(struct request *r)
{
    op_drop(r);
    ask_drop(r);
    if (r->response == NULL)
        refuse(r);
    else if (!r->stream_end)
        stream_break(r);
}

static void
send_body(struct request *r)
{
    op_send(r);
    if (r->in.n == 0)
        buf_free(&r->in);
}

static void
on_visit(struct watch *w, uint32_t events)
{
    struct request *r = w->owner;
    struct msg_gate gate = { .rules = adapter_rules, .n_rules = ARRAY_LEN(adapter_rules), .state = 1 };

    if (r->dead)
        return;
    if ((events & EPOLLOUT) != 0) {
        send_body(r);
        (void)packet_queue_flush(&r->visit->out, r->op.fd);
    }
    if ((events & ~(uint32_t)EPOLLOUT) != 0 && !op_receive(r, &gate))
        broke_off(r);
    op_flow(r);
    if (r->response != NULL)
        http_wake(r);
}

/* --- its life ----------------------------------------------------------------------------------------------------- */

/* Of an upload commas are no values. */
static bool
is_json(const struct request *r)
{
    const uint8_t flags = flags_of[r->route - adapter_routes];

    return (flags & VISIT_BOX_KEY) == 0 || (flags & (VISIT_JSON | VISIT_RPC_STREAM)) != 0;
}

static int
hand_over(struct request *r, int theirs)
{
    static const char *const names[] = ADAPT_HEADERS;
    static char room[ADAPT_VALUES_MAX];
    struct front *f = r->f;
    struct adapt_visit m = { .row = (uint8_t)(r->route - adapter_routes), .who = r->who, .caller = r->caller,
                             .id = r->id, .query = r->query, .n_headers = ARRAY_LEN(names) };
    size_t used = 0;

    m.flags = (uint8_t)((f->strangers ? ADAPT_STRANGERS : 0) | (f->tls ? ADAPT_TLS : 0) |
                        (ports_have_address(r) ? ADAPT_ADDRESS : 0) | (r->async ? ADAPT_ASYNC : 0) |
                        (r->body.n > 0 && is_json(r) && !http_json_room(r) ? ADAPT_NO_ROOM : 0));
    if (r->body.n <= EDGE_CHUNK) {
        m.flags |= ADAPT_WHOLE;
        m.body = r->body.p;
        m.n_body = r->body.n;
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *value = MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, names[i]);
        m.headers[i] = "";
        if (value == NULL)
            continue;
        m.headers[i] = room + used;
        used += (size_t)snprintf(room + used, sizeof(room) - used, "+%s", value) + 1;
        if (used > sizeof(room)) {
            close_fd(&theirs);
            return -1;
        }
    }
    if (proto_queue(&f->to_adapter, f->adapter.fd, EDGE_VISIT, EDGE_VISIT_SHAPE(), &m, theirs) < 0)
        return -1;
    if (packet_queue_waits(&f->to_adapter))
        (void)loop_watch(&f->loop, &f->adapter, EPOLLIN | EPOLLOUT);
    return 0;
}

static void
begin(struct request *r)
{
    uint64_t epoch = 0;
    int pair[2];

    if (told_before(r, &epoch))
        return;
    /* of each that waits to be handed over a descriptor is kept, whether its client is there still or not */
    if (r->f->adapter.fd < 0 || r->f->to_adapter.n >= r->f->max_links ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
        refuse(r);
        return;
    }
    r->visit = calloc(1, sizeof(*r->visit));
    if (r->visit == NULL) {
        r->f->ended = true;
        close(pair[0]);
        close(pair[1]);
        return;
    }
    *r->visit = (struct visiting){ .who = r->who, .epoch = epoch, .out = PACKET_QUEUE_INIT(EDGE_QUEUE_MAX) };
    r->op = (struct watch){ .fd = pair[0], .ready = on_visit, .owner = r };
    if (hand_over(r, pair[1]) < 0 || loop_watch(&r->f->loop, &r->op, EPOLLIN) < 0) {
        op_drop(r);
        refuse(r);
        return;
    }
    if (r->body.n <= EDGE_CHUNK)
        return;
    buf_free(&r->in);
    r->in = r->body;
    r->body = (struct buf)BUF_INIT(FRONT_BODY_MAX);
    r->in_end = true;
    send_body(r);
    op_flow(r);
}

#define ROUTE(method, path, function, flags) \
    { method, path, begin, false, false, .endless = ((flags) & VISIT_ENDLESS) != 0, \
      .credential = ((flags) & VISIT_API_KEY) != 0 ? CREDENTIAL_API_KEY : ((flags) & VISIT_BOX_KEY) != 0 \
                    ? CREDENTIAL_BOX_KEY : CREDENTIAL_OURS, \
      .words = ((flags) & VISIT_RPC) != 0 ? WORDS_RPC : ((flags) & VISIT_RPC_STREAM) != 0 ? WORDS_RPC_STREAM \
               : ((flags) & (VISIT_API_KEY | VISIT_BOX_KEY)) != 0 ? WORDS_E2B : WORDS_OURS },
const struct route adapter_routes[] = { VISIT_ROUTES(ROUTE) };
const size_t adapter_n_routes = ARRAY_LEN(adapter_routes);

/* A sandbox that nobody knows of ends; that is not waited for. */
void
visit_over(struct request *r)
{
    static const struct answers none = { .no = NULL };

    if (r->visit == NULL)
        return;
    if (r->visit->made[0] != '\0')
        ASK(r, EDGE_ASK_DELETE, &none, .id = r->visit->made);
    r->ticket = 0;
    packet_queue_clear(&r->visit->out);
    free(r->visit);
    r->visit = NULL;
}

bool
visit_leaves(const struct request *r)
{
    return r->visit != NULL && (flags_of[r->route - adapter_routes] & VISIT_LEAVES) != 0;
}
