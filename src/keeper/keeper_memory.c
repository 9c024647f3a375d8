/* keeper/keeper_memory.c: a sandbox that holds more than it may: its commands end, and it stays */
#include <signal.h>

#include "base/clock.h"
#include "keeper/keeper.h"

#define BUSY_US      100000     /* between two looks at memory while something runs */
#define IDLE_US      1000000
#define OVER_US      10000000   /* memory that stays above the limit that long is held by no command */
#define OOM_TOLD_US  2000000    /* an end by SIGKILL this soon after one for want of memory is that one */

/* Nobody puts a look off: a thousand short commands are looked at as one long one is. Where nothing lived since the
 * last one, nor does before what is begun now, that need not wait for one. */
void
keeper_look_soon(struct keeper_live *k, uint64_t now)
{
    if (k->still || k->sample_us > now + BUSY_US)
        k->sample_us = now + BUSY_US;
    k->still = false;
}

void
keeper_look_at_memory(struct keeper_live *k, uint64_t now)
{
    bool alone;

    if (k->still || now < k->sample_us)
        return;
    k->sample_us = now + (op_count(k) > 0 ? BUSY_US : IDLE_US);
    vault_look(&k->l);
    /* asked before it is looked at: it is so afterwards too, until something is begun in it */
    alone = op_count(k) == 0 && k->l.vault == NULL && sandbox_alone(k->l.sb);
    if (!sandbox_over_memory(k->l.sb)) {
        k->over_us = 0;
        k->still = alone;
        return;
    }
    if (k->over_us == 0)
        k->over_us = now;
    /* what runs ends, and the sandbox stays with its files, unless that does not help */
    if (clock_since(now, k->over_us) < OVER_US) {
        k->oom_us = now;
        (void)guest_client_kill_all(k->l.client, SIGKILL, NULL);
        return;
    }
    k->l.memory = true;
    keeper_gone(k, "its memory limit was reached");
}

bool
keeper_short_of_memory(struct keeper_live *k)
{
    struct sandbox_usage usage;
    bool killed;

    sandbox_usage(k->l.sb, &usage);
    killed = usage.oom_kills > k->oom_kills;
    k->oom_kills = usage.oom_kills;
    return killed || (k->oom_us > 0 && clock_since(clock_us(), k->oom_us) < OOM_TOLD_US);
}
