/* keeper/keeper_ask.c: connections of the sandbox that wait for a decision are asked about in the daemon's queue
 *
 * cloche-egress holds them and knows when their time is over; what is said of them goes to the warden, and its answer
 * back. While there is no warden they wait, and the next one is told of all that still do.
 */
#include "keeper/keeper.h"

#include <string.h>

#include "base/clock.h"

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

    if (port < 1 || port > UINT16_MAX || id < 1 || id > UINT32_MAX)
        return;
    PROTO_SAY(keeper_say, k, EDGE_NET_ASK, .number = (uint32_t)id, .port = (uint16_t)port,
              .ms = ms < EDGE_NET_MS_MAX ? (uint32_t)ms : EDGE_NET_MS_MAX, .narrow = net_ask_is_narrow(q), .host = host,
              .method = method, .path = path);
}

static void
ask_over(void *ctx, const struct net_question *q)
{
    PROTO_SAY(keeper_say, ctx, EDGE_NET_OVER,
              .number = (uint32_t)json_integer_value(json_object_get(q->event, "id")));
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
keeper_on_net_answer(struct keeper_live *k, const struct keep_net_answer *m)
{
    if (k->l.net != NULL)
        net_ask_answer(k->l.net, m->number, !m->allow ? ASK_NO : m->scope == SCOPE_ONCE ? ASK_YES : ASK_HOST,
                       m->scope == SCOPE_SANDBOX);
    return 0;
}
