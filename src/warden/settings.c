/* warden/settings.c: what the launcher says of the configuration: the gate's rules, and behind them the limits, whose
 * answer is that to both
 *
 * The rules are judged here, by whoever uses them, so a configuration may be refused here that the launcher took for
 * good. Then nothing of it counts, and the launcher says the former one again.
 */
#include "base/cleanup.h"
#include "gate/gate.h"
#include "warden/approvals.h"

/* They are in no file that could be opened here. Ill-formed ones end the start; later the former ones stay. */
int
settings_on_rules(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    const char *name = wire_cstr(&in, EDGE_PATH_MAX, NULL);
    const uint8_t *text, *defaults;
    struct err err = ERR_INIT;
    size_t n;

    text = packet_get_bytes(&in, GATE_FILE_MAX, &n);
    defaults = wire_bytes(&in, SHA256_SIZE);
    if (!wire_done(&in))
        return -1;
    sha256_text(defaults, w->approvals->defaults);
    w->bad_rules = err;
    if (gate_set(w, name, n > 0 ? text : NULL, n, &err) == 0) {
        if (!w->settled)
            gate_counts(w);        /* by these it starts */
        return 0;
    }
    if (w->settled)
        w->bad_rules = err;
    else
        warden_refuse(w, &err);
    return 0;
}

static int
say_unsettled(struct warden *w)
{
    cleanup_buf struct buf frame = BUF_INIT(8192);
    size_t at = frame_begin(&frame, EDGE_UNSETTLED, 0, 0);

    packet_put_err(&frame, &w->bad_rules);
    return launcher_send(w, &frame, at);
}

/* For sandboxes that come; those that live keep what they were made with. */
int
settings_on_limits(void *ctx, const struct frame *f)
{
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct warden *w = ctx;
    uint32_t max = wire_be32(&in), each = wire_be32(&in), idle_s = wire_be32(&in), life_s = wire_be32(&in);
    struct edge_recovery recovery;

    if (!edge_get_recovery_plan(&in, &recovery) || !wire_done(&in) || max == 0 || each == 0)
        return -1;
    if (w->bad_rules.kind != ERR_NONE)
        return say_unsettled(w);
    w->max_boxes = max;
    w->max_per_agent = each;
    w->default_idle_s = idle_s;
    w->default_life_s = life_s;
    w->default_recovery = recovery;
    return launcher_say(w, EDGE_LIMITED, NULL);
}

int
settings_on_counts(void *ctx, const struct frame *f)
{
    (void)f;
    gate_counts(ctx);
    return 0;
}
