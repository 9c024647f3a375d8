/* keeper/keeper_record.c: what a keeper says for the audit record: results of operations, decisions about the network
 *
 * The warden writes it, as this keeper's word about this sandbox (warden/record.h).
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "keeper/keeper.h"
#include "warden/entry.h"

static void
say_entry(void *ctx, const struct audit_entry *e)
{
    cleanup_buf struct buf frame = BUF_INIT(ENTRY_BYTES_MAX + FRAME_HEADER);
    size_t at = frame_begin(&frame, EDGE_NOTED, 0, 0);

    if (entry_put(&frame, e) == 0)
        keeper_say(ctx, &frame, at);
}

void
keeper_say_masks(struct keeper_live *k)
{
    cleanup_buf struct buf frame = BUF_INIT(EDGE_MASKS_MAX + FRAME_HEADER);
    size_t at = frame_begin(&frame, EDGE_MASKS, 0, 0);

    buf_append(&frame, k->masks.key, sizeof(k->masks.key));
    buf_put_u8(&frame, k->masks.all);
    for (size_t i = 0; i < k->masks.n; i++) {
        const struct mask *m = &k->masks.v[i];
        wire_put_cstr(&frame, m->name, MASK_NAME);
        buf_put_be32(&frame, m->n);
        buf_put_be64(&frame, m->roll);
        buf_append(&frame, m->sum, sizeof(m->sum));
    }
    keeper_say(k, &frame, at);
}

int
keeper_record_begin(struct keeper_live *k, struct err *err)
{
    masks_init(&k->masks);
    run_audit_masks(&k->masks, k->l.s->policy);
    vault_masks(&k->l, &k->masks);
    keeper_say_masks(k);
    k->l.audit = run_audit_remote(&k->masks, &k->r, say_entry, k);
    if (k->l.audit == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    run_audit_warnings(k->l.audit);
    return 0;
}

void
keeper_record_end(struct op *o)
{
    cleanup_buf struct buf frame = BUF_INIT(256);
    size_t at = frame_begin(&frame, EDGE_OP_SAID, 0, 0);
    const struct op_result *r = &o->result;

    transcript_end(&o->k->transcript, o);
    if (o->kind == OP_CONNECT)
        return;     /* the warden counts them */
    buf_put_be64(&frame, o->number);
    buf_put_u8(&frame, (uint8_t)o->kind);
    buf_put_u8(&frame, r->flags);
    buf_put_be32(&frame, r->code);
    buf_put_be64(&frame, (clock_us() - o->begin_us) / 1000);
    buf_put_be64(&frame, r->bytes);
    wire_put_cstr(&frame, r->error, ERR_CODE_MAX);
    keeper_say(o->k, &frame, at);
}
