/* warden/count.c: see count.h */
#include "warden/count.h"

#include <string.h>

#include "base/log.h"
#include "warden/warden.h"

void
count_not_created(struct counts *c, const char *code)
{
    size_t i;

    for (i = 0; i < c->n_failed && strcmp(c->failed[i].code, code) != 0; i++)
        ;
    if (i == COUNT_CODES || strlen(code) > ERR_CODE_MAX) {
        c->other_failed++;
        return;
    }
    if (i == c->n_failed) {
        memcpy(c->failed[i].code, code, strlen(code) + 1);
        c->n_failed++;
    }
    c->failed[i].n++;
}

void
count_op(struct counts *c, const struct edge_op_result *r)
{
    c->ops[r->kind][r->result]++;
    c->in += r->in;
    c->out += r->out;
    if (r->kind == OP_EXEC && r->result != RESULT_REFUSED)
        histogram_add(&c->exec, r->us);
}

static void
put_sandboxes(const struct warden *w, struct buf *b)
{
    uint64_t states[BOX_STATES] = { 0 };

    for (const struct box *x = w->boxes; x != NULL; x = x->next)
        states[x->r.state] += !x->ahead;
    for (int i = BOX_INITIALIZING; i < BOX_STATES; i++)
        if (i != BOX_STOPPED)       /* those are records */
            stats_put_value(b, STAT_SANDBOXES, box_state_name((enum box_state)i), "", states[i]);
    stats_put_value(b, STAT_SANDBOXES_MAX, "", "", w->max_boxes);
}

static void
put_operations(const struct warden *w, struct buf *b)
{
    const struct counts *c = &w->counts;
    uint64_t running = 0;

    for (int kind = 1; kind < OP_KINDS; kind++)
        for (int result = 0; result < RESULTS; result++)
            if (c->ops[kind][result] > 0)
                stats_put_value(b, STAT_OPERATIONS, op_name((enum op_kind)kind),
                                op_end_name((enum op_end)result), c->ops[kind][result]);
    for (const struct box *x = w->boxes; x != NULL; x = x->next)
        running += x->ops;
    stats_put_value(b, STAT_RUNNING, "", "", running);
    stats_put_histogram(b, STAT_EXEC_SECONDS, "", "", &c->exec);
    stats_put_value(b, STAT_OPERATION_BYTES, "in", "", c->in);
    stats_put_value(b, STAT_OPERATION_BYTES, "out", "", c->out);
}

/* What the keepers use, as of when each was last asked. */
static uint64_t
keepers(const struct warden *w, enum stats_family which)
{
    uint64_t all = 0;

    for (const struct box *x = w->boxes; x != NULL; x = x->next) {
        struct wire_in in = wire_in_of(x->use.p, x->use.n);
        struct edge_usage u;
        if (x->use.n > 0 && edge_usage_get(&in, &u))
            all += which == STAT_PROCESS_RSS ? u.keeper_rss : u.keeper_cpu_us;
    }
    return all;
}

int
count_put(const struct warden *w, struct buf *b)
{
    const struct counts *c = &w->counts;

    put_sandboxes(w, b);
    stats_put_value(b, STAT_CREATED, "", "", c->created);
    for (size_t i = 0; i < c->n_failed; i++)
        stats_put_value(b, STAT_CREATE_FAILED, c->failed[i].code, "", c->failed[i].n);
    if (c->other_failed > 0)
        stats_put_value(b, STAT_CREATE_FAILED, "other", "", c->other_failed);
    stats_put_histogram(b, STAT_CREATE_SECONDS, "", "", &c->create);
    pool_put(w, b);
    put_operations(w, b);
    stats_put_value(b, STAT_KEEPER_DEATHS, "", "", c->keeper_deaths);
    stats_put_value(b, STAT_RECOVERIES, "", "", c->recoveries);
    stats_put_value(b, STAT_RESTARTS, "warden", "", c->wardens);
    stats_put_value(b, STAT_RESTARTS, "front", "", c->fronts);
    stats_put_value(b, STAT_REFUSED, "", "", c->refused);
    stats_put_value(b, STAT_AUDIT_FAILED, "", "", c->audit_failed);
    process_stats_put(b, "launcher", &w->above, STAT_PROCESS_RSS);
    process_stats_put(b, "warden", &w->self, STAT_PROCESS_RSS);
    stats_put_value(b, STAT_PROCESS_RSS, "keepers", "", keepers(w, STAT_PROCESS_RSS));
    process_stats_put(b, "launcher", &w->above, STAT_PROCESS_CPU);
    process_stats_put(b, "warden", &w->self, STAT_PROCESS_CPU);
    return stats_put_value(b, STAT_LOG_DROPPED, "warden", "", log_dropped());
}
