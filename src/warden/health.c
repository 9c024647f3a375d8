/* warden/health.c: what time does to sandboxes: their limits, and looks at their health */
#include "base/clock.h"
#include "warden/warden.h"

#define BOXES_MS   20   /* between two looks at all sandboxes, */
#define BOXES_EACH 8    /* and a millisecond more for so many of them */
#define EXACT_MS   250  /* is exact enough for limits in seconds */

static void
look_at(struct box *b, uint64_t now)
{
    if (b->edge.fd < 0 || b->r.paused || (b->r.state != BOX_READY && b->r.state != BOX_DEGRADED))
        return;
    if (b->asked_ms > 0 && clock_since(now, b->asked_ms) >= WARDEN_LATE_MS && b->r.state == BOX_READY) {
        warden_note(b->w, b, "health_check", "its keeper does not answer");
        box_state(b, BOX_DEGRADED, "its keeper does not answer");
    }
    if (b->asked_ms == 0 && now >= b->check_ms) {
        b->asked_ms = now;
        b->check_ms = now + WARDEN_CHECK_MS;
        box_say_short(b, EDGE_CHECK);
    }
}

/* A keeper that hangs closes no socket. One that is to end has a deadline of its own (stop_ms). */
static void
hears(struct box *b)
{
    bool makes = b->r.state == BOX_INITIALIZING || b->r.state == BOX_RECOVERING;

    if (b->edge.fd < 0 || b->r.state == BOX_STOPPING || b->parked ||
        (!makes && b->asked_ms == 0 && b->asked.pauses == 0)) {
        b->owes = 0;
        return;
    }
    b->owes++;
    if (b->owes % WARDEN_WAKE == 0)
        (void)launcher_say(b->w, EDGE_KEEPER_LATE, b->r.id);
    if (b->owes == (makes ? WARDEN_MAKING : WARDEN_HUNG)) {
        warden_note(b->w, b, "health_check", "its keeper does not answer: it is killed");
        (void)launcher_say(b->w, EDGE_SHOOT, b->r.id);
    }
}

/* Nothing is due to those that wait (pool.c). */
static bool
something_lasts(const struct warden *w)
{
    const struct box *b = w->boxes;

    while (b != NULL && b->parked)
        b = b->next;
    return b != NULL;
}

/* Not at every event: there may be a thousand sandboxes, and a thousand events a second. */
void
boxes_turn(struct warden *w)
{
    uint64_t now = clock_ms(), rest = BOXES_MS + w->n_boxes / BOXES_EACH;
    uint64_t steady = time_steady(w);
    bool look = now >= w->look_ms;

    if (clock_since(now, w->boxes_ms) < rest) {
        loop_at(&w->loop, &w->boxes_look, something_lasts(w) ? w->boxes_ms + rest : 0);
        return;
    }
    w->boxes_ms = now;
    if (look)
        w->look_ms = now + WARDEN_LOOK_MS;

    for (struct box *b = w->boxes, *next; b != NULL; b = next) {
        bool lives = b->r.state == BOX_READY || b->r.state == BOX_DEGRADED;
        next = b->next;
        if (lives && recovery_life_is_over(b))
            box_stop(b, "its maximum lifetime was over");
        else if (lives && b->r.idle_s > 0 && b->ops == 0 && !b->asked.still &&
                 steady >= b->r.used_at + (uint64_t)b->r.idle_s * 1000)
            box_stop(b, "it was idle for too long");
        if (b->stop_ms > 0 && clock_since(now, b->stop_ms) >= WARDEN_STOP_MS) {
            b->stop_ms = now;
            (void)launcher_say(w, EDGE_SHOOT, b->r.id);
        }
        if (look)
            hears(b);
        look_at(b, now);    /* after that: nobody is late with what is only asked now */
        recovery_turn(b, now);
    }
    reattach_turn(w);
    loop_at(&w->loop, &w->boxes_look, something_lasts(w) ? now + EXACT_MS : 0);
}
