/* front/visit_time.c: a stream on which nothing goes on, and whose caller may have none to go on with (visit.c) */
#include <string.h>

#include "base/clock.h"
#include "front/visit_priv.h"

static void
on_approval(struct request *r, const struct edge_approval *a)
{
    (void)r;
    (void)a;
}

static void
on_still_good(struct request *r, uint32_t count, bool more)
{
    (void)r;
    (void)count;
    (void)more;
}

static void
on_ended(struct request *r, const struct err *err)
{
    if (strncmp(err->code, "auth.", 5) != 0)
        return;
    stream_refuse(r, err);
    op_drop(r);
}

/* What a command or a question of it does is ended by who does it (warden/ends.c). Any caller may ask this. */
static void
look(struct request *r)
{
    static const struct answers still = { .approval = on_approval, .end = on_still_good, .no = on_ended };
    uint64_t epoch = r->f->epochs != NULL ? atomic_load(&r->f->epochs->credentials) : 0;
    uint32_t who = r->who;

    if (r->visit->who == 0 || r->ticket != 0 || r->visit->granted ||
        (epoch == r->visit->epoch && (r->until_ms == 0 || clock_wall_ms() < r->until_ms)))
        return;
    r->who = r->visit->who;     /* not the call's own: that is judged no more */
    ask_approvals(r, false, 0, 1, "", "", &still);
    r->who = who;
    r->visit->look = r->ticket;
    if (r->ticket != 0)
        r->visit->epoch = epoch;
}

void
visit_time(struct front *f)
{
    for (struct request *r = f->requests; r != NULL; r = r->next)
        if (r->visit != NULL && !r->dead && r->stream && !r->stream_end)
            look(r);
}
