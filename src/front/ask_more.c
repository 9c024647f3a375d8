/* front/ask_more.c: the warden's edge, where it is about the audit record, transcripts and volumes (see ask_priv.h) */
#include <string.h>

#include "base/cleanup.h"
#include "front/ask_priv.h"

void
ask_audit(struct request *r, bool follow, uint32_t types, uint32_t severities, uint64_t since_ms, uint64_t after,
          uint16_t limit, const char *id, const struct answers *answers)
{
    cleanup_buf struct buf b = BUF_INIT(512);
    size_t at = ask_begin(r, &b, EDGE_ASK_AUDIT, answers);

    buf_put_u8(&b, follow);
    buf_put_be32(&b, types);
    buf_put_be32(&b, severities);
    buf_put_be64(&b, since_ms);
    buf_put_be64(&b, after);
    buf_put_be16(&b, limit);
    wire_put_cstr(&b, id, EDGE_NAME_MAX);
    ask_send(r, &b, at);
}

void
ask_transcript(struct request *r, const char *id, uint64_t offset, const struct answers *answers,
               const struct op_answers *said)
{
    cleanup_buf struct buf b = BUF_INIT(512);
    size_t at = ask_begin(r, &b, EDGE_ASK_TRANSCRIPT, answers);

    r->op_answers = said;
    wire_put_cstr(&b, id, EDGE_NAME_MAX);
    buf_put_be64(&b, offset);
    ask_send(r, &b, at);
}

/* Of a list there are more, and its end. */
int
ask_on_volume(void *ctx, const struct frame *f)
{
    struct heard *h = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct request *r = ask_whose(h->f, wire_be32(&in));
    struct edge_volume v;

    if (!edge_volume_get(&in, &v) || (r != NULL && r->answers->volume == NULL))
        return -1;
    if (r == NULL)
        return 0;
    if (r->answers->end == NULL)
        ask_over(r);
    r->answers->volume(r, &v);
    if (r->ticket == 0)
        http_wake(r);
    return 0;
}

/* --- policies ----------------------------------------------------------------------------------------------------- */

/* False: it is answered. */
static bool
policy_fits(struct request *r, const char *policy)
{
    size_t n = strlen(policy);

    if (n <= EDGE_POLICY_MAX)
        return true;
    reply_error(r, MHD_HTTP_CONTENT_TOO_LARGE, "policy.too-long", "long lists, and what all sandboxes share, belong "
                "into the daemon's --settings", "the policy has %zu bytes as JSON; at most %d are taken", n,
                EDGE_POLICY_MAX);
    return false;
}

void
ask_create(struct request *r, const struct edge_create *create, const struct answers *answers)
{
    cleanup_buf struct buf b = BUF_INIT(ASK_FRAME_MAX);
    size_t at;

    if (!policy_fits(r, create->policy))
        return;
    at = ask_begin(r, &b, EDGE_ASK_CREATE, answers);
    edge_create_put(&b, create);
    ask_send(r, &b, at);
}

void
ask_change(struct request *r, const char *id, const uint8_t *was, const char *policy, const struct answers *answers)
{
    cleanup_buf struct buf b = BUF_INIT(ASK_FRAME_MAX);
    size_t at;

    if (!policy_fits(r, policy))
        return;
    at = ask_begin(r, &b, EDGE_ASK_CHANGE, answers);
    wire_put_cstr(&b, id, EDGE_NAME_MAX);
    buf_append(&b, was, EDGE_HASH);
    wire_put_cstr(&b, policy, EDGE_POLICY_MAX);
    ask_send(r, &b, at);
}
