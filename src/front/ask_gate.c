/* front/ask_gate.c: questions to the warden about what somebody has to approve, and its answers */
#include <stdlib.h>

#include "base/cleanup.h"
#include "front/ask_priv.h"

void
ask_gate(struct request *r, const char *id, const char *tool, const json_t *params, bool hold,
         const struct answers *answers)
{
    cleanup_buf struct buf b = BUF_INIT(ASK_FRAME_MAX);
    char *text = json_dumps(params, JSON_COMPACT);
    size_t at;

    r->async = !hold;
    at = ask_begin(r, &b, EDGE_ASK_GATE, answers);
    wire_put_cstr(&b, id, EDGE_NAME_MAX);
    wire_put_cstr(&b, tool, GATE_NAME_MAX);
    wire_put_cstr(&b, text != NULL ? text : "", EDGE_OP_MAX);
    free(text);
    ask_send(r, &b, at);
}

void
ask_approvals(struct request *r, bool follow, unsigned state, uint16_t limit, const char *id, const char *after,
              const struct answers *answers)
{
    cleanup_buf struct buf b = BUF_INIT(256);
    size_t at = ask_begin(r, &b, EDGE_ASK_APPROVALS, answers);

    r->followed = follow ? r->ticket : 0;
    buf_put_u8(&b, follow);
    buf_put_u8(&b, (uint8_t)state);
    buf_put_be16(&b, limit);
    wire_put_cstr(&b, id, EDGE_ID);
    wire_put_cstr(&b, after, EDGE_CURSOR_MAX);
    ask_send(r, &b, at);
}

void
ask_decide(struct request *r, const struct edge_decision *d, const struct answers *answers)
{
    cleanup_buf struct buf b = BUF_INIT(1024);
    size_t at = ask_begin(r, &b, EDGE_ASK_DECIDE, answers);

    edge_decision_put(&b, d);
    ask_send(r, &b, at);
}

/* Nobody waits for what was asked: so nobody is asked to approve it either. */
void
ask_cancel(struct request *r)
{
    uint8_t room[64];
    struct buf b = BUF_INIT_IN(room, sizeof(room));
    size_t at = frame_begin(&b, EDGE_ASK_CANCEL, 0, 0);

    buf_append(&b, r->trace_bytes, EDGE_TRACE);
    buf_put_be32(&b, ask_ticket(r->f));
    buf_put_be32(&b, r->who);
    buf_put_be32(&b, r->ticket);
    if (frame_end(&b, at) == 0 && packet_queue_send(&r->f->to_warden, r->f->warden, &b, -1) == 0 &&
        packet_queue_waits(&r->f->to_warden))
        (void)front_watch(r->f, r->f->warden, &r->f->watch_warden, EPOLLIN | EPOLLOUT, false);
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

/* Whether it may be done: the answer to ask_gate(), and to what is not to wait for that. */
int
ask_on_gate(void *ctx, const struct frame *f)
{
    struct heard *h = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct request *r = ask_whose(h->f, wire_be32(&in));
    struct edge_verdict v;

    if (!edge_verdict_get(&in, &v))
        return -1;
    if (r == NULL)
        return 0;
    ask_over(r);
    if (v.pass != 0)
        r->who = v.pass;
    if (r->answers->gate != NULL)
        r->answers->gate(r, &v);
    else
        reply_waits(r, &v);
    http_wake(r);
    return 0;
}

int
ask_on_approval(void *ctx, const struct frame *f)
{
    struct heard *h = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct request *r = ask_whose(h->f, wire_be32(&in));
    struct edge_approval a;

    if (!edge_approval_get(&in, &a) || (r != NULL && r->answers->approval == NULL))
        return -1;
    if (r != NULL)
        r->answers->approval(r, &a);
    return 0;
}

int
ask_on_grant(void *ctx, const struct frame *f)
{
    struct heard *h = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct request *r = ask_whose(h->f, wire_be32(&in));
    struct edge_grant g;

    if (!edge_grant_get(&in, &g) || (r != NULL && r->answers->grant == NULL))
        return -1;
    if (r != NULL)
        r->answers->grant(r, &g);
    return 0;
}
