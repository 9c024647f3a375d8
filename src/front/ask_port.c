/* front/ask_port.c: questions to the warden about ports that are exposed, and its answers */
#include <string.h>

#include "base/cleanup.h"
#include "front/ask_priv.h"

void
ask_expose(struct request *r, const char *id, uint16_t port, uint32_t seconds, const char *name,
           const struct answers *answers)
{
    cleanup_buf struct buf b = BUF_INIT(512);
    size_t at = ask_begin(r, &b, EDGE_ASK_EXPOSE, answers);

    wire_put_cstr(&b, id, EDGE_NAME_MAX);
    buf_put_be16(&b, port);
    buf_put_be32(&b, seconds);
    wire_put_cstr(&b, name, EDGE_NAME_MAX);
    ask_send(r, &b, at);
}

void
ask_unexpose(struct request *r, const char *id, const char *which, const struct answers *answers)
{
    cleanup_buf struct buf b = BUF_INIT(512);
    size_t at = ask_begin(r, &b, EDGE_ASK_UNEXPOSE, answers);

    wire_put_cstr(&b, id, EDGE_NAME_MAX);
    wire_put_cstr(&b, which, EDGE_ID);
    ask_send(r, &b, at);
}

void
ask_preview(struct request *r, const char *capability, const struct answers *answers, const struct op_answers *said)
{
    cleanup_buf struct buf b = BUF_INIT(512);
    size_t at = ask_begin(r, &b, EDGE_ASK_PREVIEW, answers);

    r->op_answers = said;
    wire_put_cstr(&b, capability, EDGE_CAPABILITY);
    ask_send(r, &b, at);
}

int
ask_on_port(void *ctx, const struct frame *f)
{
    struct heard *h = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct request *r = ask_whose(h->f, wire_be32(&in));
    struct edge_port port;
    const char *capability;

    if (!proto_get_some(&in, &edge_port_shape, &port))
        return -1;
    capability = wire_cstr(&in, EDGE_CAPABILITY, NULL);
    if (!wire_done(&in) || (capability[0] != '\0' && !edge_is_capability(capability)) ||
        (r != NULL && r->answers->port == NULL))
        return -1;
    if (r == NULL)
        return 0;
    if (r->asked != EDGE_ASK_EXPOSE && r->asked != EDGE_ASK_UNEXPOSE) {
        r->answers->port(r, &port, "");
        return 0;
    }
    ask_over(r);
    r->answers->port(r, &port, capability);
    http_wake(r);
    return 0;
}
