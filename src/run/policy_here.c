/* run/policy_here.c: what a policy that is right asks for and this host, for this user, will refuse at every start */
#include <stdio.h>

#include "engine/engine.h"
#include "program/say.h"
#include "run/policy_here.h"

bool
policy_refused_here(const struct policy *p, struct err *why)
{
    static struct engine_report report;     /* large */
    const struct promise_state *cpu = &report.promises[PROMISE_CPU_LIMIT];

    if (p->mode.v == MODE_OFF || p->fallback.v != FALLBACK_REFUSE || p->limits.cpu_milli.v == 0 ||
        p->limits.cpu_milli.from.kind < ORIGIN_FILE || engine_probe(p, &report, NULL) < 0 || cpu->state == ENFORCED)
        return false;
    err_set(why, ERR_UNSUPPORTED, "wall.cpu.unsupported", "the CPU limit needs a cgroup, which is not there for this "
            "user: every start is refused (%s)", cpu->why_not);
    err_hint(why, "run inside a delegated cgroup (systemd-run --user --scope -p Delegate=yes cloche ...), leave the "
             "limit out, or say `fallback: warn`");
    return true;
}

void
policy_warn_here(const char *file, const struct err *why)
{
    cli_warn("%s: %s; %s  [%s]", file, why->msg, why->hint, why->code);
}
