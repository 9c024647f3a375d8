/* keeper/keeper_record.c: what a keeper says for the audit record: results of operations, decisions about the network
 *
 * The warden writes it, as this keeper's word about this sandbox (warden/record.h).
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "keeper/keeper.h"
#include "warden/entry.h"

static void
say_entry(void *ctx, const struct audit_entry *e)
{
    cleanup_buf struct buf entry = BUF_INIT(ENTRY_BYTES_MAX);

    if (entry_put(&entry, e) == 0)
        PROTO_SAY(keeper_say, ctx, EDGE_NOTED, .entry = entry.p, .n_entry = entry.n);
}

void
keeper_say_masks(struct keeper_live *k)
{
    cleanup_buf struct buf prints = BUF_INIT(MASKS_MAX * mask_MOST);
    struct keep_masks m = { .all = k->masks.all };

    for (size_t i = 0; i < k->masks.n; i++)
        (void)mask_put(&prints, &k->masks.v[i]);
    memcpy(m.key, k->masks.key, sizeof(m.key));
    m.prints = prints.p;
    m.n_prints = prints.n;
    if (buf_ok(&prints))
        keeper_say(k, EDGE_MASKS, EDGE_MASKS_SHAPE(), &m);
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
    const struct op_result *r = &o->result;

    transcript_end(&o->k->transcript, o);
    edits_after(o);
    if (o->as == OP_CONNECT)
        return;     /* the warden counts them */
    PROTO_SAY(keeper_say, o->k, EDGE_OP_SAID, .number = o->number, .kind = o->as, .flags = r->flags, .code = r->code,
              .ms = (clock_us() - o->begin_us) / 1000, .bytes = r->bytes, .error = r->error);
}
