/* warden/recovery.c: sandboxes that are made anew: because somebody asked for it, or by themselves
 *
 * By itself: where its record says so (edge_box.recovery) one that is degraded for too long, or whose keeper or guest
 * died, is destroyed and made anew under its id, as POST .../recover does it. A window of time has a number of such
 * tries, and the pause before each is longer than the last one. When all are used it stays as it is, and its record
 * says so, until somebody recovers it, or it is well again by itself and the window is over.
 *
 * What its owner, a limit of its own, or the daemon ended is not made anew, nor is one that is paused. The clocks of
 * its life and of its idleness go on: nobody has used it.
 *
 * One whose keeper is gone waits in memory, "recovering". A warden that comes after one that died finds its record.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "warden/record.h"

struct edge_recovery
recovery_asked(const struct warden *w, const struct edge_recovery *asked)
{
    const struct edge_recovery *own = &w->default_recovery;
    struct edge_recovery r = { .after_s = asked->after_s != 0 ? asked->after_s : own->after_s };

    if (r.after_s == 0 || r.after_s == EDGE_RECOVER_NEVER)
        return (struct edge_recovery){ .after_s = 0 };
    r.tries = asked->tries != 0 ? asked->tries : own->tries;
    r.window_s = asked->window_s != 0 ? asked->window_s : own->window_s;
    return r;
}

/* --- making it anew ----------------------------------------------------------------------------------------------- */

static void
start_over(struct box *b, const char *detail)
{
    box_state(b, BOX_RECOVERING, detail);
    b->again = true;
    b->stop_ms = clock_ms();
    box_say_short(b, EDGE_STOP);
}

int
box_recover(struct box *b, struct err *err)
{
    struct edge_recovery *r = &b->r.recovery;

    if (b->r.state != BOX_DEGRADED) {
        err_set(err, ERR_DENIED, "sandbox.state", "recovery is for a sandbox that is degraded or stopped; this is %s",
                box_state_name(b->r.state));
        return err_hint(err, "delete it and create another one, if that is what is meant");
    }
    *r = (struct edge_recovery){ .after_s = r->after_s, .tries = r->tries, .window_s = r->window_s };
    b->recover_ms = 0;
    b->by_itself = false;
    start_over(b, "made anew");
    return 0;
}

void
box_make_again(struct box *b)
{
    b->again = b->waits = false;
    b->asked_for_us = clock_us();
    b->use_asked_ms = 0;
    buf_reset(&b->use);
    b->stop_ms = b->asked_ms = 0;
    b->r.paused = false;
    free((void *)(uintptr_t)b->why);
    b->why = NULL;
    buf_reset(&b->not_made);
    b->ops = 0;
    b->printed = false;
    b->r.ended_ms = 0;
    if (b->by_itself) {
        box_store(b);
    } else {
        b->r.started_ms = 0;
        if (!b->returns)        /* its life goes on, as far as its limit is about */
            b->r.begun_at = 0;
        b->returns = false;
        box_used(b);
    }
    if (launcher_say(b->w, EDGE_SPAWN, b->r.id) < 0)
        box_lost(b);
}

/* --- by itself ---------------------------------------------------------------------------------------------------- */

bool
recovery_life_is_over(const struct box *b)
{
    return b->r.life_s > 0 && b->r.begun_at > 0 &&
           time_steady(b->w) >= b->r.begun_at + (uint64_t)b->r.life_s * 1000;
}

static uint64_t
window_age(const struct box *b)
{
    return clock_since(time_steady(b->w), b->r.tried_at);
}

/* When the next one is due. False: there is none left. */
static bool
schedule(struct box *b, bool gone)
{
    struct edge_recovery *r = &b->r.recovery;
    uint64_t now = clock_ms(), wait = (uint64_t)recovery_wait_s(r, window_age(b), gone) * 1000;

    if (r->given_up)
        return false;
    if (wait > 0) {
        b->recover_ms = now + wait;
        r->next_ms = clock_wall_ms() + wait;
        return true;
    }
    r->given_up = true;
    warden_note(b->w, b, "recovery", "given up: %u within %u seconds were used", r->used, r->window_s);
    return false;
}

static void
given_up_text(const struct box *b, const char *why, char out[EDGE_DETAIL_MAX])
{
    const struct edge_recovery *r = &b->r.recovery;

    snprintf(out, EDGE_DETAIL_MAX,
             "%.700s; not recovered by itself any more: %u recoveries within %u seconds were used", why, r->used,
             r->window_s);
}

bool
recovery_waits(const struct box *b)
{
    return b->waits && b->r.state == BOX_RECOVERING;
}

/* One that was heard to end, and now has, is scheduled already. */
bool
recovery_after_end(struct box *b)
{
    bool told = b->r.state == BOX_RECOVERING && b->recover_ms > 0;
    bool lived = b->r.state == BOX_READY || b->r.state == BOX_DEGRADED ||
                 (b->r.state == BOX_RECOVERING && b->by_itself);
    char text[EDGE_DETAIL_MAX];

    if (b->w->closing || b->probe || b->r.recovery.after_s == 0 || !(lived || told) || b->r.paused ||
        recovery_life_is_over(b))
        return false;
    if (!told) {
        const char *why = b->why != NULL ? b->why : "its keeper ended";
        if (!schedule(b, true)) {
            given_up_text(b, why, text);
            box_text(&b->why, text);
            return false;
        }
        box_state(b, BOX_RECOVERING, why);
    }
    if (b->edge.fd < 0) {
        b->waits = true;
        b->ops = 0;
        b->stop_ms = b->asked_ms = 0;
        buf_reset(&b->not_made);
    }
    return true;
}

/* Destroying it and making it anew is privileged: not while that cannot be put on record. */
static void
recovery_begin(struct box *b)
{
    struct edge_recovery *r = &b->r.recovery;
    char text[EDGE_DETAIL_MAX];

    if (!record_can(b->w, b))
        return;
    if (recovery_used(r, window_age(b)) == 0) {
        r->used = 0;
        r->began_ms = clock_wall_ms();
        b->r.tried_at = time_steady(b->w);
    }
    r->used++;
    r->next_ms = b->recover_ms = 0;
    b->by_itself = true;
    b->w->counts.recoveries++;
    warden_note(b->w, b, "recovery", "%u of %u within %u seconds: %.700s", r->used, r->tries, r->window_s, b->r.detail);
    snprintf(text, sizeof(text), "made anew by itself: %.900s", b->r.detail);
    if (!b->waits) {
        start_over(b, text);
        return;
    }
    box_state(b, BOX_RECOVERING, text);
    box_make_again(b);
}

static void
turn_waiting(struct box *b, uint64_t now)
{
    if (b->r.state == BOX_STOPPING)
        box_lost(b);            /* there is nothing to wait for */
    else if (recovery_life_is_over(b))
        box_stop(b, "its maximum lifetime was over");
    else if (now >= b->recover_ms)
        recovery_begin(b);
}

static void
turn_degraded(struct box *b, uint64_t now)
{
    char text[EDGE_DETAIL_MAX];

    if (b->recover_ms > 0) {
        if (now >= b->recover_ms)
            recovery_begin(b);
        return;
    }
    if (b->r.recovery.given_up)
        return;
    if (!schedule(b, false)) {
        given_up_text(b, b->r.detail, text);
        box_text(&b->r.detail, text);
    }
    box_store(b);
}

void
recovery_turn(struct box *b, uint64_t now)
{
    struct edge_recovery *r = &b->r.recovery;

    if (b->waits) {
        turn_waiting(b, now);
    } else if (r->after_s == 0 || b->w->closing || b->r.state == BOX_RECOVERING) {
        return;
    } else if (b->r.state == BOX_DEGRADED && !b->r.paused) {
        turn_degraded(b, now);
    } else if (b->recover_ms > 0) {
        r->next_ms = b->recover_ms = 0;         /* it is well again, or paused */
        box_store(b);
    } else if (r->given_up && b->r.state == BOX_READY && recovery_used(r, window_age(b)) == 0) {
        r->given_up = false;
        box_store(b);
    }
}
