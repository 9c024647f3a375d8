/* keeper/keeper_ask.c: connections of the sandbox that wait for a decision are asked about in the daemon's queue
 *
 * cloche-egress holds them and knows when their time is over; what is said of them goes to the warden, and its answer
 * back. While there is no warden they wait, and the next one is told of all that still do.
 */
#include "keeper/keeper.h"

#include <string.h>

#include "base/clock.h"
#include "proto/edge_gate.h"

static void
ask(void *ctx, const struct net_question *q)
{
    struct keeper_live *k = ctx;
    const char *host = json_string_value(json_object_get(q->event, "host"));
    json_int_t port = json_integer_value(json_object_get(q->event, "port"));
    json_int_t id = json_integer_value(json_object_get(q->event, "id"));
    uint64_t now = clock_us(), ms = q->until_us > now ? (q->until_us - now + 999) / 1000 : 1;
    const char *method = json_string_value(json_object_get(q->event, "method"));
    const char *path = json_string_value(json_object_get(q->event, "path"));
    uint8_t room[EDGE_HOST_MAX + EDGE_METHOD_MAX + EDGE_ASKED_MAX + 64];
    struct buf frame = BUF_INIT_IN(room, sizeof(room));
    size_t at = frame_begin(&frame, EDGE_NET_ASK, 0, 0);

    if (port < 1 || port > UINT16_MAX || id < 1 || id > UINT32_MAX)
        return;
    buf_put_be32(&frame, (uint32_t)id);
    buf_put_be16(&frame, (uint16_t)port);
    buf_put_be32(&frame, ms < EDGE_NET_MS_MAX ? (uint32_t)ms : EDGE_NET_MS_MAX);
    buf_put_u8(&frame, net_ask_is_narrow(q));
    wire_put_cstr(&frame, host, EDGE_HOST_MAX);
    wire_put_cstr(&frame, method != NULL ? method : "", EDGE_METHOD_MAX);
    wire_put_cstr(&frame, path != NULL ? path : "", EDGE_ASKED_MAX);
    keeper_say(k, &frame, at);
}

static void
ask_over(void *ctx, const struct net_question *q)
{
    uint8_t room[32];
    struct buf frame = BUF_INIT_IN(room, sizeof(room));
    size_t at = frame_begin(&frame, EDGE_NET_OVER, 0, 0);

    buf_put_be32(&frame, (uint32_t)json_integer_value(json_object_get(q->event, "id")));
    keeper_say(ctx, &frame, at);
}

void
keeper_ask_begin(struct keeper_live *k)
{
    if (k->l.net == NULL)
        return;
    k->l.net->keeper = k;
    k->l.net->ask = ask;
    k->l.net->ask_over = ask_over;
}

void
keeper_ask_again(struct keeper_live *k)
{
    for (size_t i = 0; k->l.net != NULL && i < NET_QUESTIONS_MAX; i++)
        if (k->l.net->questions[i].event != NULL)
            ask(k, &k->l.net->questions[i]);
}

int
keeper_on_net_answer(void *ctx, const struct frame *f)
{
    struct keeper_live *k = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    uint32_t number = wire_be32(&in);
    uint8_t allow = wire_u8(&in), scope = wire_u8(&in);

    if (!wire_done(&in) || allow > 1 || scope < SCOPE_ONCE || scope > SCOPE_CALLER)
        return -1;
    if (k->l.net != NULL)
        net_ask_answer(k->l.net, number, allow == 0 ? NET_NO : scope == SCOPE_ONCE ? NET_YES : NET_HOST,
                       scope == SCOPE_SANDBOX);
    return 0;
}
