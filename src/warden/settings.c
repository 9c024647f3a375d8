/* warden/settings.c: what the launcher says of the configuration: the gate's rules, and behind them the limits, whose
 * answer is that to both
 *
 * The rules are judged here, by whoever uses them, so a configuration may be refused here that the launcher took for
 * good. Then nothing of it counts, and the launcher says the former one again.
 */
#include "gate/gate.h"
#include "warden/approvals.h"

int
settings_on_no_language(struct warden *w, const struct nothing *m)
{
    (void)w;
    (void)m;
    gate_no_languages();
    return 0;
}

int
settings_on_language(struct warden *w, const struct launch_language *m)
{
    (void)w;
    return gate_language(m->name, m->alias) ? 0 : -1;
}

/* They are in no file that could be opened here. Ill-formed ones end the start; later the former ones stay. */
int
settings_on_rules(struct warden *w, const struct launch_rules *m)
{
    struct err err = ERR_INIT;

    pool_drain(w, "the configuration was read again");
    sha256_text(m->defaults, w->approvals->defaults);
    w->bad_rules = err;
    if (gate_set(w, m->name, m->n_text > 0 ? m->text : NULL, m->n_text, &err) == 0) {
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

/* For sandboxes that come; those that live keep what they were made with. */
int
settings_on_limits(struct warden *w, const struct launch_limits *m)
{
    if (w->bad_rules.kind != ERR_NONE)
        return PROTO_SAY(launcher_send, w, EDGE_UNSETTLED, .why = w->bad_rules);
    w->max_boxes = m->max;
    w->max_per_agent = m->each;
    w->default_idle_s = m->idle_s;
    w->default_life_s = m->life_s;
    w->default_recovery = (struct edge_recovery){ .after_s = m->after_s, .tries = m->tries, .window_s = m->window_s };
    return launcher_say(w, EDGE_LIMITED, NULL);
}

int
settings_on_counts(struct warden *w, const struct nothing *m)
{
    (void)m;
    gate_counts(w);
    return 0;
}
