/* warden/follow.c: who follows something: how many may, and for how long
 *
 * A follower asked once, and is told of what comes until it goes. What it is told is judged each time by whoever tells
 * it; here those are found whose credential was revoked, or is over, while there was nothing to tell.
 */
#include <string.h>

#include "base/clock.h"
#include "warden/warden.h"

#define LOOK_MS 1000

void
follow_counts(const struct warden *w, const struct who *one, const struct proof *by, struct follow_count *c)
{
    c->all++;
    c->agents += one->role == EDGE_AGENT ? 1 : 0;
    c->own += strcmp(one->id, w->who.id) == 0 ? 1 : 0;
    c->judged = c->judged || by->is;
}

int
follow_may(const struct warden *w, const struct follow_count *c, const char *code, struct err *err)
{
    if (w->who.id[0] != '\0' && c->own >= FOLLOW_EACH)
        err_set(err, ERR_LIMIT, code, "%zu clients follow with this credential; the limit is %d", c->own, FOLLOW_EACH);
    else if (w->who.role == EDGE_AGENT && c->agents >= FOLLOW_AGENTS)
        err_set(err, ERR_LIMIT, code, "%zu clients of agents follow; the limit is %d", c->agents, FOLLOW_AGENTS);
    else if (c->all >= FOLLOW_MAX)
        err_set(err, ERR_LIMIT, code, "%zu clients follow; the limit is %d", c->all, FOLLOW_MAX);
    else
        return 0;
    return err_hint(err, "end one of them, or ask for the list now and then");
}

static void
on_follow(struct timer *t)
{
    struct warden *w = t->owner;
    struct follow_count c = { .all = 0 };

    watch_judge(w, &c);
    record_judge(w, &c);
    approvals_judge(w, &c);
    if (c.judged)
        loop_at(&w->loop, t, clock_ms() + LOOK_MS);
}

void
follow_look(struct warden *w)
{
    w->follow.due = on_follow;
    w->follow.owner = w;
    loop_at(&w->loop, &w->follow, clock_ms());
}
