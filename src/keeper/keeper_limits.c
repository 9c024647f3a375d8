/* keeper/keeper_limits.c: limits of one command inside the sandbox's (docs/daemon.md) */
#include <inttypes.h>

#include "keeper/keeper.h"

static int
wider(const char *name, uint64_t asked, uint64_t most, struct err *err)
{
    if (most == 0 || asked <= most)
        return 0;
    err_set(err, ERR_USAGE, "limits.wider", "limits.%s of the command is %" PRIu64 ", the sandbox's own is %" PRIu64,
            name, asked, most);
    return err_hint(err, "a command's limits are no wider than its sandbox's");
}

int
limits_begin(struct op *o, const struct edge_op *want, struct guest_exec *x, struct err *err)
{
    const struct sandbox_command_limits own = { .memory = want->memory, .cpu_milli = want->cpu_milli,
                                                .pids = want->pids };
    const struct policy_limits *most = &o->k->limits;

    if (wider("memory", own.memory, most->memory.v, err) < 0 ||
        wider("cpus", own.cpu_milli, most->cpu_milli.v, err) < 0 ||
        wider("pids", own.pids, most->pids.v, err) < 0 || wider("output", want->output, most->output.v, err) < 0 ||
        (want->timed && wider("time", want->timeout_ms, most->time_ms.v, err) < 0))
        return -1;
    if (own.memory == 0 && own.cpu_milli == 0 && own.pids == 0)
        return 0;
    return sandbox_command_begin(o->k->l.sb, &own, &o->own, x->joins, &x->n_joins, err);
}

void
limits_sent(struct op *o)
{
    if (o->own != NULL)
        sandbox_command_sent(o->k->l.sb, o->own);
}

/* Something of it that was killed need not be the command itself. */
uint8_t
limits_flags(struct op *o, bool killed)
{
    struct sandbox_command_end end;
    uint8_t flags = 0;

    if (o->own == NULL)
        return 0;
    sandbox_command_look(o->k->l.sb, o->own, &end);
    if (end.oom_kills > 0)
        flags |= (killed ? EDGE_OOM : 0) | (end.own_memory ? EDGE_OWN_MEMORY : 0);
    return flags | (end.own_pids ? EDGE_OWN_PIDS : 0);
}

void
limits_end(struct op *o)
{
    if (o->own != NULL)
        sandbox_command_end(o->k->l.sb, o->own);
    o->own = NULL;
}
