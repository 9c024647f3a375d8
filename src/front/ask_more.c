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

    if (!edge_get_volume(&in, &v) || !wire_done(&in) || (r != NULL && r->answers->volume == NULL))
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
