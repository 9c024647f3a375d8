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
#define WAITS_GATED true
#define WAITS_WAITS true
#define WAITS_FREE  false
#define WAITS(number, value, message, name, roles, gate, ...) case number: return WAITS_##gate;
static bool
is_gated(uint8_t type)
{
    switch (type) {
    EDGE_QUESTIONS(WAITS)
    default: return false;
    }
}

int
ask_frame(struct request *r, struct buf *b, uint8_t type, uint32_t ticket, const struct proto_part *message, size_t n)
{
    struct edge_head head = { .caller = { .ticket = ticket, .who = r->who } };
    struct proto_part parts[3] = { { &edge_head_shape, &head } };

    memcpy(head.trace, r->trace_bytes, EDGE_TRACE);
    trace_bytes(r->trace.span, EDGE_SPAN, head.span);
    head.sampled = r->trace.sampled;
    for (size_t i = 0; i < n; i++)
        parts[i + 1] = message[i];
    return proto_frame_of(b, type, is_gated(type) && r->async ? EDGE_ASYNC : 0, parts, n + 1);
}

static void
ask_begin(struct request *r, uint8_t type, const struct answers *answers)
{
    r->ticket = ask_ticket(r->f);
    late_begins(r);
    r->asked = type;
    r->answers = answers;
}

int
ask_post(struct front *f, struct buf *b)
{
    if (packet_queue_send(&f->to_warden, f->warden.fd, b, -1) < 0)
        return -1;
    if (packet_queue_waits(&f->to_warden))
        (void)loop_watch(&f->loop, &f->warden, EPOLLIN | EPOLLOUT);
    return 0;
}

static void
ask_send(struct request *r, struct buf *b, uint8_t type, const struct proto_part *message, size_t n)
{
    if (ask_frame(r, b, type, r->ticket, message, n) < 0) {
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
ask(struct request *r, uint8_t type, const struct shape *shape, const void *m, const struct answers *answers)
{
    uint8_t room[PROTO_ROOM];
    cleanup_buf struct buf b = BUF_INIT_IN(room, ASK_FRAME_MAX);

    ask_begin(r, type, answers);
    ask_send(r, &b, type, &(const struct proto_part){ shape, m }, 1);
    if (type == EDGE_ASK_WHO)
        explicit_bzero(b.p, b.n);
}

/* A command is told the trace that its client spoke of, unless it is told one. */
static const struct edge_op *
traced(const struct request *r, const struct edge_op *op)
{
    static struct edge_op with;     /* 16 KiB, and there is one thread */
    static char variable[12 + TRACE_TEXT + 1] = "TRACEPARENT=";

    if (!r->trace_given || op->kind != OP_EXEC || op->context > EDGE_CONTEXT_NEW ||
        op->n_env == EDGE_WORDS_MAX)
        return op;
    for (size_t i = 0; i < op->n_env; i++)
        if (strncmp(op->env[i], variable, 12) == 0)
            return op;
    trace_print(&r->trace, variable + 12);
    with = *op;
    with.env[with.n_env++] = variable;
    return &with;
}

bool
ask_words_fit(struct request *r, const struct edge_op *op)
{
    struct err err = ERR_INIT;

    if (edge_words_fit(op, &err))
        return true;
    reply_error(r, MHD_HTTP_CONTENT_TOO_LARGE, err.code, err.hint, "%s", err.msg);
    return false;
}

void
ask_op(struct request *r, const char *id, const struct edge_op *op, const struct answers *answers,
       const struct op_answers *said)
{
    cleanup_buf struct buf b = BUF_INIT(EDGE_OP_MAX);
    const struct ask_box box = { .id = id };

    if (!ask_words_fit(r, op))
        return;
    ask_begin(r, EDGE_ASK_OP, answers);
    r->op_answers = said;
    ask_send(r, &b, EDGE_ASK_OP,    /* as struct ask_op */
             (const struct proto_part[]){ { &ask_box_shape, &box }, { &edge_op_shape, traced(r, op) } }, 2);
}

void
ask_run(struct request *r, const struct edge_run_ask *what, const struct answers *answers,
        const struct op_answers *said)
{
    r->op_answers = said;
    ASK(r, EDGE_ASK_RUN, answers, .id = r->id, .ask = *what);
}

/* What was asked to go on without an end has to be told. */
static void
unfollow(struct request *r)
{
    uint8_t room[FRAME_HEADER + edge_head_MOST];
    struct buf b = BUF_INIT_IN(room, sizeof(room));

    ask_send(r, &b, EDGE_ASK_UNFOLLOW, NULL, 0);
}

void
ask_drop(struct request *r)
{
    if (r->ticket != 0 && r->answers != NULL && r->answers->following != NULL)
        unfollow(r);
    if (r->ticket != 0 && (is_gated(r->asked) || r->ticket == r->followed))
        ask_cancel(r, r->ticket);
    r->ticket = 0;
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

/* Whose question has that ticket: NULL when nobody waits for it any more. */
static struct request *
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

/* An answer, for @member of struct answers: one that was not to be expected ends the warden's edge. The @last one of a
 * question is the end of it. */
#define ANSWER(number, member, last_, ...) \
    static int \
    on_##member(struct heard *h, const number##_IS *m) \
    { \
        struct request *r = ask_whose(h->f, m->ticket); \
        bool last; \
        if (r == NULL || r->answers->member == NULL) \
            return r == NULL ? 0 : -1; \
        last = last_; \
        if (last) \
            ask_over(r); \
        r->answers->member(r, __VA_ARGS__); \
        if (last) \
            http_wake(r); \
        return 0; \
    }

ANSWER(EDGE_ITEM, item, false, &m->box)
ANSWER(EDGE_EVENT, event, false, &m->event)
ANSWER(EDGE_LINE, line, false, m->line, m->n_line)
ANSWER(EDGE_APPROVAL, approval, false, &m->approval)
ANSWER(EDGE_GRANT, grant, false, &m->grant)
ANSWER(EDGE_USAGE, usage, false, m->id, &m->usage)
ANSWER(EDGE_POLICY, piece, m->last, m->json, m->n_json, m->last)
ANSWER(EDGE_STATS, stats, true, m->samples, m->n_samples)
ANSWER(EDGE_SIGNED, signed_, true, m->done, m->json)
ANSWER(EDGE_SIGN_ITEM, sign_item, false, m->done, m->json)
ANSWER(EDGE_END, end, true, m->count, m->more)
/* of a list, or the answer itself */
ANSWER(EDGE_TOKEN, token, r->answers->end == NULL, &m->token, m->text)
ANSWER(EDGE_VOLUME, volume, r->answers->end == NULL, &m->volume)
ANSWER(EDGE_ATTACHED, attached, r->answers->end == NULL, &m->attach, m->text)
ANSWER(EDGE_PORT, port, r->asked == EDGE_ASK_EXPOSE || r->asked == EDGE_ASK_UNEXPOSE, &m->port, m->capability)

static int
on_box(struct heard *h, const struct tell_box *m)
{
    struct request *r = ask_whose(h->f, m->ticket);

    if (r == NULL || r->answers->box == NULL)
        return r == NULL ? 0 : -1;
    memcpy(r->key, m->key, strlen(m->key) + 1);
    ask_over(r);
    r->answers->box(r, &m->box);
    http_wake(r);
    return 0;
}

static int
on_following(struct heard *h, const struct tell_ticket *m)
{
    struct request *r = ask_whose(h->f, m->ticket);

    if (r == NULL || r->answers->following == NULL)
        return r == NULL ? 0 : -1;
    r->answers->following(r);
    http_wake(r);
    return 0;
}

static int
on_granted(struct heard *h, const struct tell_ticket *m)
{
    struct request *r = ask_whose(h->f, m->ticket);
    struct err err = ERR_INIT;

    if (h->fd == -1 || (r != NULL && r->op_answers == NULL && r->visit == NULL))
        return -1;
    if (r == NULL)
        return 0;       /* its socket is closed, which ends it */
    ask_over(r);
    if (h->fd == PACKET_FULL) {
        err_sys(&err, EMFILE, "serve.op", "the front");
        (r->answers->no != NULL ? r->answers->no : reply_err)(r, &err);
    } else if (r->visit != NULL) {
        visit_granted(r, take_fd(&h->fd));
    } else if (op_take(r, take_fd(&h->fd)) < 0) {
        reply_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, "serve.busy", "try again", "the daemon is busy");
    } else if (r->answers->granted != NULL) {
        r->answers->granted(r);
    }
    http_wake(r);
    return 0;
}

static int
on_no(struct heard *h, const struct tell_no *m)
{
    struct request *r = ask_whose(h->f, m->ticket);

    if (r == NULL)
        return 0;
    ask_over(r);
    if (r->answers->no != NULL)
        r->answers->no(r, &m->why);
    else
        reply_err(r, &m->why);
    http_wake(r);
    return 0;
}

static int
on_who(struct heard *h, const struct tell_who *m)
{
    struct request *r = ask_whose(h->f, m->ticket);

    if (r == NULL || r->answers->who == NULL)
        return r == NULL ? 0 : -1;
    ask_over(r);
    r->who = m->who;
    r->role = m->role;
    r->until_ms = m->until_ms;
    memcpy(r->role_box, m->box, strlen(m->box) + 1);
    r->answers->who(r);
    http_wake(r);
    return 0;
}

/* Whether it may be done: the answer to ask_gate(), and to what is not to wait for that. */
static int
on_gate(struct heard *h, const struct tell_gate *m)
{
    struct request *r = ask_whose(h->f, m->ticket);

    if (r == NULL)
        return 0;
    ask_over(r);
    if (m->verdict.pass != 0)
        r->who = m->verdict.pass;
    if (r->answers->gate != NULL)
        r->answers->gate(r, &m->verdict);
    else
        reply_waits(r, &m->verdict);
    http_wake(r);
    return 0;
}

static int
on_epochs(struct heard *h, const struct nothing *m)
{
    (void)m;
    if (h->fd < 0 || h->f->epochs != NULL)
        return -1;
    h->f->epochs = epochs_map(h->fd);
    return h->f->epochs != NULL ? 0 : -1;
}

#define HEARS(R) \
    R(EDGE_BOX, on_box, false, 1) \
    R(EDGE_ITEM, on_item, false, 1) \
    R(EDGE_EVENT, on_event, false, 1) \
    R(EDGE_LINE, on_line, false, 1) \
    R(EDGE_FOLLOWING, on_following, false, 1) \
    R(EDGE_END, on_end, false, 1) \
    R(EDGE_GRANTED, on_granted, false, 1) \
    R(EDGE_NO, on_no, false, 1) \
    R(EDGE_WHO, on_who, false, 1) \
    R(EDGE_TOKEN, on_token, false, 1) \
    R(EDGE_GATE, on_gate, false, 1) \
    R(EDGE_APPROVAL, on_approval, false, 1) \
    R(EDGE_GRANT, on_grant, false, 1) \
    R(EDGE_POLICY, on_piece, false, 1) \
    R(EDGE_STATS, on_stats, false, 1) \
    R(EDGE_USAGE, on_usage, false, 1) \
    R(EDGE_VOLUME, on_volume, false, 1) \
    R(EDGE_PORT, on_port, false, 1) \
    R(EDGE_ATTACHED, on_attached, false, 1) \
    R(EDGE_SIGNED, on_signed_, false, 1) \
    R(EDGE_SIGN_ITEM, on_sign_item, false, 1) \
    R(EDGE_EPOCHS, on_epochs, false, 1) \
    R(EDGE_HEARD, late_on_pong, false, 1) \
    R(EDGE_BEHIND, late_on_behind, false, 1)
PROTO_RULES(warden_rules, HEARS)

int
ask_hear(struct front *f)
{
    struct msg_gate gate = { .rules = warden_rules, .n_rules = ARRAY_LEN(warden_rules),
                             .state = 1 };

    for (int i = 0; i < AT_ONCE; i++) {
        struct heard h = { .f = f, .fd = -1 };
        struct frame frame;
        enum msg_verdict verdict;
        int r = packet_receive(f->warden.fd, f->in, sizeof(f->in), &frame, &h.fd, MSG_DONTWAIT);
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
