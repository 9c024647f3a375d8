/* front/ask.c: questions to the warden, and its answers */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "audit/audit.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "front/ask_priv.h"
#include "wire/table.h"

#define FRAME_MAX ASK_FRAME_MAX
#define AT_ONCE   256       /* answers of one round */

/* --- questions ---------------------------------------------------------------------------------------------------- */

uint32_t
ask_ticket(struct front *f)
{
    do
        f->tickets++;
    while (f->tickets == 0);
    return f->tickets;
}

/* Whether somebody may have to approve it, for which it can wait. */
static bool
is_gated(uint8_t type)
{
    return type == EDGE_ASK_CREATE || type == EDGE_ASK_DELETE || type == EDGE_ASK_RECOVER || type == EDGE_ASK_OP ||
           type == EDGE_ASK_GATE || type == EDGE_ASK_CHANGE || type == EDGE_ASK_EXPOSE ||
           type == EDGE_ASK_VOLUMES || type == EDGE_ASK_TOKEN;
}

size_t
ask_begin(struct request *r, struct buf *b, uint8_t type, const struct answers *answers)
{
    size_t at = frame_begin(b, type, is_gated(type) && r->async ? EDGE_ASYNC : 0, 0);

    r->ticket = ask_ticket(r->f);
    r->asked = type;
    r->answers = answers;
    buf_append(b, r->trace_bytes, EDGE_TRACE);
    buf_put_be32(b, r->ticket);
    if (type != EDGE_ASK_WHO)
        buf_put_be32(b, r->who);
    return at;
}

int
ask_post(struct front *f, struct buf *b)
{
    if (packet_queue_send(&f->to_warden, f->warden, b, -1) < 0)
        return -1;
    if (packet_queue_waits(&f->to_warden))
        (void)front_watch(f, f->warden, &f->watch_warden, EPOLLIN | EPOLLOUT, false);
    return 0;
}

void
ask_send(struct request *r, struct buf *b, size_t at)
{

    if (frame_end(b, at) < 0) {
        r->ticket = 0;
        reply_error(r, MHD_HTTP_CONTENT_TOO_LARGE, "http.request-too-large", "docs/daemon.md has the limits",
                    "what is asked takes more than the %zu bytes that one question can have", b->max);
        return;
    }
    if (ask_post(r->f, b) < 0) {
        r->ticket = 0;
        reply_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, "serve.busy", "try again", "the daemon is busy");
    }
}

void
ask_simple(struct request *r, uint8_t type, const char *id, const struct answers *answers)
{
    cleanup_buf struct buf b = BUF_INIT(512);
    size_t at = ask_begin(r, &b, type, answers);

    if (id != NULL)
        wire_put_cstr(&b, id, EDGE_NAME_MAX);
    ask_send(r, &b, at);
}

void
ask_list(struct request *r, bool all, uint16_t limit, const char *prefix, const char *label, const char *after,
         const char *workspace, const struct answers *answers)
{
    cleanup_buf struct buf b = BUF_INIT(FRAME_MAX);
    size_t at = ask_begin(r, &b, EDGE_ASK_LIST, answers);

    buf_put_u8(&b, all);
    buf_put_be16(&b, limit);
    wire_put_cstr(&b, prefix, EDGE_NAME_MAX);
    wire_put_cstr(&b, label, EDGE_LABELS_MAX);
    wire_put_cstr(&b, after, EDGE_CURSOR_MAX);
    wire_put_cstr(&b, workspace, EDGE_WORKSPACE_MAX);
    ask_send(r, &b, at);
}

void
ask_events(struct request *r, uint16_t limit, const char *id, const struct answers *answers)
{
    cleanup_buf struct buf b = BUF_INIT(512);
    size_t at = ask_begin(r, &b, EDGE_ASK_EVENTS, answers);

    buf_put_be16(&b, limit);
    wire_put_cstr(&b, id, EDGE_NAME_MAX);
    ask_send(r, &b, at);
}

/* A command is told the trace that its client spoke of, unless it is told one. */
static const struct edge_op *
traced(const struct request *r, const struct edge_op *op)
{
    static struct edge_op with;     /* 16 KiB, and there is one thread */
    static char variable[12 + TRACE_TEXT + 1] = "TRACEPARENT=";

    if (!r->trace_given || op->kind != OP_EXEC || op->n_env == EDGE_WORDS_MAX)
        return op;
    for (size_t i = 0; i < op->n_env; i++)
        if (strncmp(op->env[i], variable, 12) == 0)
            return op;
    trace_print(&r->trace, variable + 12);
    with = *op;
    with.env[with.n_env++] = variable;
    return &with;
}

/* As they are sent, each behind its length. */
static size_t
words_bytes(const struct edge_op *op)
{
    size_t n = 0;

    for (size_t i = 0; i < op->n_argv; i++)
        n += strlen(op->argv[i]) + 4;
    for (size_t i = 0; i < op->n_env; i++)
        n += strlen(op->env[i]) + 4;
    return n;
}

void
ask_op(struct request *r, const char *id, const struct edge_op *op, const struct answers *answers,
       const struct op_answers *said)
{
    cleanup_buf struct buf b = BUF_INIT(EDGE_OP_MAX);
    size_t words = words_bytes(op), at;

    if (words > EDGE_WORDS_BYTES) {
        reply_error(r, MHD_HTTP_CONTENT_TOO_LARGE, "exec.too-long", "give what is longer over stdin, or write it to a "
                    "file (PUT .../files/...) and run that", "the words and variables of the command have %zu bytes; "
                    "at most %d are taken", words, EDGE_WORDS_BYTES);
        return;
    }
    at = ask_begin(r, &b, EDGE_ASK_OP, answers);
    r->op_answers = said;
    wire_put_cstr(&b, id, EDGE_NAME_MAX);
    edge_op_put(&b, traced(r, op));
    ask_send(r, &b, at);
}

void
ask_run(struct request *r, const struct edge_run_ask *ask, const struct answers *answers,
        const struct op_answers *said)
{
    cleanup_buf struct buf b = BUF_INIT(512);
    size_t at = ask_begin(r, &b, EDGE_ASK_RUN, answers);

    r->op_answers = said;
    wire_put_cstr(&b, r->id, EDGE_NAME_MAX);
    edge_run_ask_put(&b, ask);
    ask_send(r, &b, at);
}

void
ask_who(struct request *r, enum edge_credential kind, const char *text, const struct answers *answers)
{
    cleanup_buf struct buf b = BUF_INIT(256);
    size_t at = ask_begin(r, &b, EDGE_ASK_WHO, answers);

    buf_put_u8(&b, (uint8_t)kind);
    wire_put_cstr(&b, text, EDGE_CREDENTIAL_MAX);
    ask_send(r, &b, at);
    if (b.p != NULL)
        explicit_bzero(b.p, b.cap);
}

void
ask_token(struct request *r, enum edge_token_ask what, enum edge_role role, uint64_t lives, const char *name_or_id,
          const struct answers *answers)
{
    cleanup_buf struct buf b = BUF_INIT(256);
    size_t at = ask_begin(r, &b, EDGE_ASK_TOKEN, answers);

    buf_put_u8(&b, (uint8_t)what);
    if (what == TOKEN_MAKE) {
        buf_put_u8(&b, (uint8_t)role);
        buf_put_be64(&b, lives);
    }
    if (what != TOKEN_LIST)
        wire_put_cstr(&b, name_or_id, EDGE_NAME_MAX);
    ask_send(r, &b, at);
}

void
ask_follow(struct request *r, uint16_t limit, uint64_t after, const char *id, const struct answers *answers)
{
    cleanup_buf struct buf b = BUF_INIT(512);
    size_t at = ask_begin(r, &b, EDGE_ASK_FOLLOW, answers);

    buf_put_be16(&b, limit);
    buf_put_be64(&b, after);
    wire_put_cstr(&b, id, EDGE_NAME_MAX);
    ask_send(r, &b, at);
}

/* What was asked to go on without an end has to be told. */
static void
unfollow(struct request *r)
{
    uint8_t room[FRAME_HEADER + EDGE_TRACE + 8];
    struct buf b = BUF_INIT_IN(room, sizeof(room));
    size_t at = frame_begin(&b, EDGE_ASK_UNFOLLOW, 0, 0);

    buf_append(&b, r->trace_bytes, EDGE_TRACE);
    buf_put_be32(&b, r->ticket);
    buf_put_be32(&b, r->who);
    ask_send(r, &b, at);
}

void
ask_drop(struct request *r)
{
    if (r->ticket != 0 && r->answers != NULL && r->answers->following != NULL)
        unfollow(r);
    if (r->ticket != 0 && (is_gated(r->asked) || r->ticket == r->followed))
        ask_cancel(r);
    r->ticket = 0;
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

struct request *
ask_whose(struct front *f, uint32_t ticket)
{
    for (struct request *r = f->requests; r != NULL && ticket != 0; r = r->next)
        if (r->ticket == ticket && !r->dead)
            return r;
    return NULL;
}

void
ask_over(struct request *r)
{
    r->ticket = 0;
}

static int
on_box(void *ctx, const struct frame *f)
{
    struct heard *h = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct request *r = ask_whose(h->f, wire_be32(&in));
    struct edge_box box;
    const char *key;

    if (!proto_get_some(&in, &edge_box_shape, &box))
        return -1;
    key = f->type == EDGE_BOX ? wire_cstr(&in, EDGE_CREDENTIAL_MAX, NULL) : "";
    if (!wire_done(&in))
        return -1;
    if (r == NULL)
        return 0;
    memcpy(r->key, key, strlen(key) + 1);
    if (f->type == EDGE_ITEM) {
        if (r->answers->item == NULL)
            return -1;
        r->answers->item(r, &box);
        return 0;
    }
    if (r->answers->box == NULL)
        return -1;
    ask_over(r);
    r->answers->box(r, &box);
    http_wake(r);
    return 0;
}

static int
on_event(void *ctx, const struct frame *f)
{
    struct heard *h = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct request *r = ask_whose(h->f, wire_be32(&in));
    struct edge_event event;

    if (!edge_event_get(&in, &event) || (r != NULL && r->answers->event == NULL))
        return -1;
    if (r != NULL)
        r->answers->event(r, &event);
    return 0;
}

static int
on_policy(void *ctx, const struct frame *f)
{
    struct heard *h = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct request *r = ask_whose(h->f, wire_be32(&in));
    uint8_t last = wire_u8(&in);
    size_t n;
    const uint8_t *p = packet_get_bytes(&in, EDGE_CHUNK, &n);

    if (!wire_done(&in) || last > 1 || (r != NULL && r->answers->piece == NULL))
        return -1;
    if (r == NULL)
        return 0;
    if (last != 0)
        ask_over(r);
    r->answers->piece(r, p, n, last != 0);
    if (r->ticket == 0)
        http_wake(r);
    return 0;
}

static int
on_line(void *ctx, const struct frame *f)
{
    struct heard *h = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct request *r = ask_whose(h->f, wire_be32(&in));

    if (in.bad || (r != NULL && r->answers->line == NULL))
        return -1;
    if (r != NULL)
        r->answers->line(r, in.p, in.n);
    return 0;
}

static int
on_following(void *ctx, const struct frame *f)
{
    struct heard *h = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct request *r = ask_whose(h->f, wire_be32(&in));

    if (!wire_done(&in) || (r != NULL && r->answers->following == NULL))
        return -1;
    if (r == NULL)
        return 0;
    r->answers->following(r);
    http_wake(r);
    return 0;
}

static int
on_end(void *ctx, const struct frame *f)
{
    struct heard *h = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct request *r = ask_whose(h->f, wire_be32(&in));
    uint32_t count = wire_be32(&in);
    uint8_t more = wire_u8(&in);

    if (!wire_done(&in) || (r != NULL && r->answers->end == NULL))
        return -1;
    if (r == NULL)
        return 0;
    ask_over(r);
    r->answers->end(r, count, more != 0);
    http_wake(r);
    return 0;
}

static int
on_granted(void *ctx, const struct frame *f)
{
    struct heard *h = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct request *r = ask_whose(h->f, wire_be32(&in));

    if (!wire_done(&in) || h->fd < 0 || (r != NULL && r->op_answers == NULL))
        return -1;
    if (r == NULL)
        return 0;       /* its socket is closed, which ends it */
    ask_over(r);
    if (op_take(r, take_fd(&h->fd)) < 0)
        reply_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, "serve.busy", "try again", "the daemon is busy");
    else if (r->answers->granted != NULL)
        r->answers->granted(r);
    http_wake(r);
    return 0;
}

static int
on_no(void *ctx, const struct frame *f)
{
    struct heard *h = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct request *r = ask_whose(h->f, wire_be32(&in));
    struct err err;

    if (!packet_get_err(&in, &err))
        return -1;
    if (r == NULL)
        return 0;
    ask_over(r);
    if (r->answers->no != NULL)
        r->answers->no(r, &err);
    else
        reply_err(r, &err);
    http_wake(r);
    return 0;
}

static int
on_who(void *ctx, const struct frame *f)
{
    struct heard *h = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct request *r = ask_whose(h->f, wire_be32(&in));
    uint32_t who = wire_be32(&in);
    uint8_t role = wire_u8(&in);
    uint64_t until = wire_be64(&in);
    const char *box;

    box = wire_cstr(&in, EDGE_ID, NULL);
    if (!wire_done(&in) || who == 0 || role == EDGE_NOBODY || role >= EDGE_ROLES ||
        (box[0] != '\0' && !edge_is_id(box)) || (r != NULL && r->answers->who == NULL))
        return -1;
    if (r == NULL)
        return 0;
    ask_over(r);
    r->who = who;
    r->role = (enum edge_role)role;
    r->until_ms = until;
    memcpy(r->role_box, box, strlen(box) + 1);
    r->answers->who(r);
    http_wake(r);
    return 0;
}

/* Of a list, or the answer itself. */
static int
on_token(void *ctx, const struct frame *f)
{
    struct heard *h = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct request *r = ask_whose(h->f, wire_be32(&in));
    struct edge_token token;
    const char *text;

    if (!proto_get_some(&in, &edge_token_shape, &token))
        return -1;
    text = wire_cstr(&in, EDGE_CREDENTIAL_MAX, NULL);
    if (!wire_done(&in) || (r != NULL && r->answers->token == NULL))
        return -1;
    if (r == NULL)
        return 0;
    if (r->answers->end == NULL)
        ask_over(r);
    r->answers->token(r, &token, text);
    if (r->answers->end == NULL)
        http_wake(r);
    return 0;
}

static int
on_stats(void *ctx, const struct frame *f)
{
    struct heard *h = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct request *r = ask_whose(h->f, wire_be32(&in));

    if (in.bad || (r != NULL && r->answers->stats == NULL))
        return -1;
    if (r == NULL)
        return 0;
    ask_over(r);
    r->answers->stats(r, in.p, in.n);
    http_wake(r);
    return 0;
}

static int
on_usage(void *ctx, const struct frame *f)
{
    struct heard *h = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct request *r = ask_whose(h->f, wire_be32(&in));
    const char *id = wire_cstr(&in, EDGE_ID, NULL);
    struct edge_usage u;

    if (!edge_usage_get(&in, &u) || !edge_is_id(id) || (r != NULL && r->answers->usage == NULL))
        return -1;
    if (r != NULL)
        r->answers->usage(r, id, &u);
    return 0;
}

static int
on_epochs(void *ctx, const struct frame *f)
{
    struct heard *h = ctx;

    (void)f;
    if (h->fd < 0 || h->f->epochs != NULL)
        return -1;
    h->f->epochs = epochs_map(h->fd);
    return h->f->epochs != NULL ? 0 : -1;
}

static const struct msg_rule warden_rules[] = {
    /* type          once   flags states min max length         handler */
    { EDGE_BOX,      false, 0,    1,     80, EDGE_MESSAGE_MAX,  on_box },
    { EDGE_ITEM,     false, 0,    1,     80, EDGE_MESSAGE_MAX,  on_box },
    { EDGE_EVENT,    false, 0,    1,     35, 4096,              on_event },
    { EDGE_LINE,     false, 0,    1,     5,  AUDIT_LINE_MAX,    on_line },
    { EDGE_FOLLOWING, false, 0,   1,     4,  4,                 on_following },
    { EDGE_END,      false, 0,    1,     9,  9,                 on_end },
    { EDGE_GRANTED,  false, 0,    1,     4,  4,                 on_granted },
    { EDGE_NO,       false, 0,    1,     24, 4096,              on_no },
    { EDGE_WHO,      false, 0,    1,     22, 22 + EDGE_ID,      on_who },
    { EDGE_TOKEN,    false, 0,    1,     31, 512,               on_token },
    { EDGE_GATE,     false, 0,    1,     29, 1024,              ask_on_gate },
    { EDGE_APPROVAL, false, 0,    1,     90, EDGE_MESSAGE_MAX,  ask_on_approval },
    { EDGE_GRANT,    false, 0,    1,     46, 1024,              ask_on_grant },
    { EDGE_POLICY,   false, 0,    1,     9,  9 + EDGE_CHUNK,    on_policy },
    { EDGE_STATS,    false, 0,    1,     4,  EDGE_MESSAGE_MAX,  on_stats },
    { EDGE_USAGE,    false, 0,    1,     45, edge_usage_MOST + 64, on_usage },
    { EDGE_VOLUME,   false, 0,    1,     44, 400,               ask_on_volume },
    { EDGE_PORT,     false, 0,    1,     114, 256,              ask_on_port },
    { EDGE_EPOCHS,   false, 0,    1,     0,  0,                 on_epochs },
    { EDGE_PONG,     false, 0,    1,     0,  0,                 late_on_pong },
};

int
ask_hear(struct front *f)
{
    struct msg_gate gate = { .rules = warden_rules, .n_rules = ARRAY_LEN(warden_rules),
                             .state = 1 };

    for (int i = 0; i < AT_ONCE; i++) {
        struct heard h = { .f = f, .fd = -1 };
        struct frame frame;
        enum msg_verdict verdict;
        int r = packet_receive(f->warden, f->in, sizeof(f->in), &frame, &h.fd, MSG_DONTWAIT);
        if (r < 0 && errno == EAGAIN)
            return 0;
        if (r <= 0)
            return -1;
        late_heard(f);
        verdict = msg_dispatch(&gate, &frame, &h);
        close_fd(&h.fd);
        if (verdict != MSG_OK)
            return -1;
    }
    return 0;
}
