/* warden/keep.c: what keepers and the launcher say
 *
 * A keeper parses what the sandbox's guest says; its word is about its own sandbox and no other. The launcher is the
 * process that started this one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "warden/approvals.h"
#include "warden/entry.h"
#include "warden/record.h"
#include "warden/spans.h"
#include "warden/sign.h"

/* --- to keepers -------------------------------------------------------------------------------------------------- */

int
box_send(struct box *b, uint8_t type, const struct shape *shape, const void *m, int fd)
{
    if (b->edge.fd < 0) {
        close_fd(&fd);
        return -1;
    }
    warden_flush(b->w);
    if (proto_queue(&b->out, b->edge.fd, type, shape, m, fd) < 0)
        return -1;      /* its end is noticed where it is read */
    (void)warden_watch(b->w, &b->edge, &b->out);
    return 0;
}

void
box_say(struct box *b, uint8_t type, const struct shape *shape, const void *m)
{
    (void)box_send(b, type, shape, m, -1);
}

void
box_say_short(struct box *b, uint8_t type)
{
    unsigned *asked = type == EDGE_PAUSE || type == EDGE_RESUME ? &b->asked.pauses
                      : type == EDGE_CHECK ? &b->asked.checks
                      : type == EDGE_USE ? &b->asked.uses : NULL;

    box_say(b, type, &nothing_shape, NULL);
    if (asked != NULL)
        ++*asked;
}

/* --- keepers ------------------------------------------------------------------------------------------------------ */

bool
keep_answers(unsigned *asked)
{
    if (*asked == 0)
        return false;
    --*asked;
    return true;
}

/* Those that wait for it are told @r; @err: that it cannot be used. */
static void
made_answers(struct box *b, const struct edge_box *r, const struct err *err)
{
    char key[EDGE_CREDENTIAL_MAX + 1];

    for (struct waiter **at = &b->waiters, *one; (one = *at) != NULL;) {
        if (one->what != WAIT_MADE) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        if (err != NULL)
            answer_no(b->w, one->to, err);
        else
            answer_box(b->w, one->to, r, one->keyed && r == &b->r ? box_new_key(b, key, NULL) : NULL);
        explicit_bzero(key, sizeof(key));
        free(one);
    }
}

void
keep_made(struct box *b)
{
    if (b->r.state != BOX_INITIALIZING && b->r.state != BOX_RECOVERING)
        return;         /* it was told to stop meanwhile */
    if (!b->by_itself)              /* then nobody has used it */
        box_touched(b);
    b->by_itself = false;
    b->w->counts.created++;
    histogram_add(&b->w->counts.create, clock_us() - b->asked_for_us);
    span_made(b, NULL);
    box_state(b, BOX_READY, "");
    call_made(b);
    made_answers(b, &b->r, NULL);
    box_text(&b->r.how, "");
    reattach_turn(b->w);
}

void
keep_refused(struct box *b, const struct err *err)
{
    made_answers(b, NULL, err);
}

void
keep_found(struct box *b, const struct edge_box *r)
{
    made_answers(b, r, NULL);
}

static int
on_made(struct warden *w, const struct keep_made *m)
{
    struct box *b = w->heard;

    if (!b->asked.make)
        return -1;
    if (b->r.state != BOX_INITIALIZING && b->r.state != BOX_RECOVERING)
        return 0;       /* it was told to stop meanwhile */
    if (b->again && b->taken_ms == 0)
        return 0;       /* it was too late, and is killed: another one is made */
    b->again = false;       /* of one that was made ahead: it was given */
    b->taken_ms = 0;
    record_mode(w, b, edge_line(m->facts, "mode"));
    box_text(&b->r.facts, m->facts);
    if (!record_made(w, b))
        keep_made(b);
    return 0;
}

/* Nothing is left of it when its keeper has ended, which is when this is passed on. */
static int
on_not_made(struct warden *w, const struct edge_why *m)
{
    struct box *b = w->heard;

    if ((!b->asked.make && !b->asked.print && !b->asked.sweep) || b->r.state == BOX_READY || b->r.state == BOX_DEGRADED)
        return -1;
    if (b->r.state == BOX_STOPPING)
        return 0;       /* nor was it wanted any more */
    b->stop_ms = clock_ms();
    return packet_put_err(&b->not_made, &m->why);
}

void
keep_make(struct box *b)
{
    struct keep_make m = { .bounds = b->r.bounds, .policy = b->r.policy };
    char id[EDGE_ID + 1];

    if (b->sweeps)
        return volume_say_sweep(b);
    if ((b->r.workspace[0] != '\0' || b->tries) && !b->printed)
        return reattach_ask(b);
    /* a life of its own in each recovery: what the former one left (a copy-on-write state, a log) has its id */
    memcpy(id, b->r.id, sizeof(id));
    if ((b->r.state == BOX_RECOVERING || b->anew) && new_id(id) < 0)
        return box_stop(b, "no random numbers");
    m.id = id;
    m.parks = pool_language(b);
    memcpy(m.volume, b->r.volume, sizeof(m.volume));
    memcpy(m.owner, b->r.owner, sizeof(m.owner));
    memcpy(m.base, b->r.base, sizeof(m.base));
    b->asked.make = true;
    box_say(b, EDGE_MAKE, EDGE_MAKE_SHAPE(), &m);
}

/* An adopted one says how far it was. */
static int
on_still(struct warden *w, const struct keep_still *m)
{
    struct box *b = w->heard;

    if (!b->asked.still)
        return -1;
    b->asked.still = false;     /* whether it is idle is known from here on */
    b->ops += m->ops + m->asks;
    b->asked.results += m->ops;
    b->asked.said += m->ops;
    b->r.paused = m->paused;
    if (b->r.state == BOX_STOPPING || w->closing) {
        b->stop_ms = clock_ms();
        box_say_short(b, EDGE_STOP);
    } else if (m->made && !b->again) {
        box_text(&b->r.facts, m->facts);
        if (b->r.state != BOX_READY)
            box_state(b, BOX_READY, "");
        warden_note(w, b, "state_change", "adopted by a new warden");
        life_adopted(b);
    } else if (!b->again) {
        keep_make(b);
    }
    return 0;
}

static void
paused_answers(struct box *b, const struct err *no)
{
    for (struct waiter **at = &b->waiters, *one; (one = *at) != NULL;) {
        if (one->what != WAIT_PAUSED) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        if (no != NULL)
            answer_no_text(b->w, one->to, no);
        else
            answer_box(b->w, one->to, &b->r, NULL);
        free(one);
    }
}

static int
on_paused(struct warden *w, const struct edge_yes *paused)
{
    struct box *b = w->heard;

    if (!keep_answers(&b->asked.pauses))
        return -1;
    b->owes = 0;
    b->r.paused = paused->yes;
    b->asked_ms = 0;
    box_used(b);
    warden_note(w, b, "state_change", paused->yes ? "paused" : "resumed");
    paused_answers(b, NULL);
    return 0;
}

static int
on_not_paused(struct warden *w, const struct edge_why *m)
{
    if (!keep_answers(&w->heard->asked.pauses))
        return -1;
    w->heard->owes = 0;
    paused_answers(w->heard, &m->why);
    return 0;
}

static int
on_healthy(struct warden *w, const struct edge_yes *healthy)
{
    struct box *b = w->heard;

    if (!keep_answers(&b->asked.checks))
        return -1;
    b->asked_ms = 0;
    b->owes = 0;
    if (!healthy->yes && b->r.state == BOX_READY && !b->r.paused) {
        warden_note(w, b, "health_check", "the guest does not answer");
        box_state(b, BOX_DEGRADED, "the guest does not answer");
    } else if (healthy->yes && b->r.state == BOX_DEGRADED) {
        warden_note(w, b, "health_check", "the guest answers again");
        box_state(b, BOX_READY, "");
    }
    return 0;
}

static int
on_op_ended(struct warden *w, const struct nothing *m)
{
    struct box *b = w->heard;

    (void)m;
    if (!keep_answers(&b->ops))
        return -1;
    /* one that was turned away has no result */
    if (b->asked.results > b->ops)
        b->asked.results = b->ops;
    if (b->asked.said > b->ops)
        b->asked.said = b->ops;
    if (b->ops == 0)
        attach_closed(w, b->r.id, NULL, "its keeper did not say how");
    box_touched(b);
    return 0;
}

static int
on_gone(struct warden *w, const struct keep_gone *m)
{
    struct box *b = w->heard;

    if (b->ahead || b->again) {     /* nobody's yet, or made anew; what comes of it is box_lost()'s */
        b->stop_ms = clock_ms();
        return 0;
    }
    if (b->why == NULL)
        box_text(&b->why, m->why);
    if (b->r.state != BOX_STOPPING && b->r.state != BOX_RECOVERING) {
        b->returns = b->r.persists && !m->died && strcmp(m->why, EDGE_WHY_KILLED) == 0;
        if (!m->died || !recovery_after_end(b))
            box_state(b, b->returns ? BOX_RECOVERING : BOX_STOPPING, b->why);
        b->stop_ms = clock_ms();
    }
    return 0;
}

#define HEARS_KEEPER(R) \
    R(EDGE_MADE, on_made, true, 1) \
    R(EDGE_NOT_MADE, on_not_made, true, 1) \
    R(EDGE_STEP, pool_on_step, false, 1) \
    R(EDGE_PARKED, pool_on_parked, true, 1) \
    R(EDGE_PRINT, reattach_on_print, false, 1) \
    R(EDGE_SWEPT, volume_on_swept, true, 1) \
    R(EDGE_STILL, on_still, true, 1) \
    R(EDGE_PAUSED, on_paused, false, 1) \
    R(EDGE_NOT_PAUSED, on_not_paused, false, 1) \
    R(EDGE_HEALTHY, on_healthy, false, 1) \
    R(EDGE_OP_ENDED, on_op_ended, false, 1) \
    R(EDGE_MASKS, record_on_masks, false, 1) \
    R(EDGE_NOTED, record_on_noted, false, 1) \
    R(EDGE_OP_SAID, record_on_op_said, false, 1) \
    R(EDGE_GONE, on_gone, true, 1) \
    R(EDGE_SHOWN, life_on_shown, false, 1) \
    R(EDGE_CHANGED, life_on_changed, false, 1) \
    R(EDGE_COPIED, template_on_copied, false, 1) \
    R(EDGE_NOT_COPIED, template_on_not_copied, false, 1) \
    R(EDGE_USED, watch_on_used, false, 1) \
    R(EDGE_OP_RESULT, watch_on_op_result, false, 1) \
    R(EDGE_NET_ASK, net_on_ask, false, 1) \
    R(EDGE_NET_OVER, net_on_over, false, 1)
PROTO_RULES(keep_rules, HEARS_KEEPER)
const struct msg_gate keep_gate = { .rules = keep_rules, .n_rules = ARRAY_LEN(keep_rules), .state = 1 };

/* --- the launcher ------------------------------------------------------------------------------------------------- */

int
launcher_send(struct warden *w, uint8_t type, const struct shape *shape, const void *m)
{
    warden_flush(w);
    if (proto_queue(&w->to_launcher, w->launcher.fd, type, shape, m, -1) < 0)
        return -1;
    (void)warden_watch(w, &w->launcher, &w->to_launcher);
    return 0;
}

int
launcher_say(struct warden *w, uint8_t type, const char *id)
{
    struct edge_only_id m;

    if (id == NULL)
        return launcher_send(w, type, &nothing_shape, NULL);
    memcpy(m.id, id, sizeof(m.id));
    return launcher_send(w, type, &edge_only_id_shape, &m);
}

static int
on_spawned(struct warden *w, const struct edge_only_id *m)
{
    struct box *b = box_of_id(w, m->id);
    struct err err = ERR_INIT;

    if (w->passed == PACKET_FULL) {
        if (b != NULL && b->edge.fd < 0) {
            err_sys(&err, EMFILE, "serve.start", "the warden");
            box_not_spawned(b, &err);
        }
        return launcher_say(w, EDGE_SHOOT, m->id);
    }
    if (w->passed < 0)
        return -1;
    if (b == NULL)
        return launcher_say(w, EDGE_SHOOT, m->id);  /* nobody waits for it any more */
    if (b->edge.fd >= 0)
        return 0;       /* its socket is closed, and it goes */
    if (box_edge(b, take_fd(&w->passed)) < 0)
        return 0;
    if (b->r.state == BOX_STOPPING)
        box_say_short(b, EDGE_STOP);
    else
        keep_make(b);
    return 0;
}

static int
on_not_spawned(struct warden *w, const struct launch_not_spawned *m)
{
    struct box *b = box_of_id(w, m->id);

    if (b != NULL && b->edge.fd < 0)
        box_not_spawned(b, &m->why);
    return 0;
}

struct adopt { struct warden *w; int fd; };

static void
adopt(void *ctx, const struct edge_box *r)
{
    struct adopt *a = ctx;

    if (r->state != BOX_STOPPED)
        box_adopt(a->w, r, take_fd(&a->fd));
}

/* One without a record is not kept. A second one of the same id is not either: its socket closes, so that it ends, but
 * it cannot be shot by that id without the first. */
static int
on_adopt(struct warden *w, const struct edge_only_id *m)
{
    struct adopt a = { .w = w, .fd = -1 };

    if (w->passed == -1)
        return -1;
    if (box_of_id(w, m->id) != NULL)
        return 0;
    if (w->passed == PACKET_FULL)
        return launcher_say(w, EDGE_SHOOT, m->id);
    a.fd = take_fd(&w->passed);
    (void)state_find(w->state, m->id, adopt, &a, NULL);
    if (a.fd >= 0) {
        close_fd(&a.fd);
        return launcher_say(w, EDGE_SHOOT, m->id);
    }
    return 0;
}

static int
on_adopted_all(struct warden *w, const struct nothing *m)
{
    (void)m;
    if (launcher_say(w, EDGE_READY, NULL) < 0)      /* before it is asked for keepers */
        return -1;
    box_find_lost(w);
    w->settled = true;
    volumes_turn(w);
    return 0;
}

/* By which the front knows that it is heard, too. */
static void
say_epochs(struct warden *w, uint32_t front)
{
    answer(w, (struct asker){ .front = front }, EDGE_EPOCHS, &nothing_shape, NULL,
           fcntl(w->epochs_fd, F_DUPFD_CLOEXEC, 0));
}

static int
on_front(struct warden *w, const struct launch_front *m)
{
    uint32_t which = (m->flags & EDGE_STRANGERS) != 0 ? 1 : 0;
    struct front_edge *e = &w->fronts[which];

    if (w->passed < 0)
        return -1;
    loop_drop(&w->loop, &e->edge);
    packet_queue_clear(&e->out);
    approvals_front_gone(w, which);
    sign_front_gone(w, which);
    if (w->stop_all.front == which)
        w->stop_all.ticket = 0;
    for (struct box *b = w->boxes; b != NULL; b = b->next) {
        if (b->once && b->maker.front == which && b->maker.ticket != 0)
            box_stop(b, "who asked for it is gone");
        box_forget_waiters(b, which);       /* their tickets were the former front's */
    }
    record_front_gone(w, which);
    watch_front_lost(w, which);
    memset(&e->handles, 0, sizeof(e->handles));
    e->owner = which == 0;
    e->edge = (struct watch){ .fd = take_fd(&w->passed), .ready = warden_on_front, .owner = e };
    if (warden_watch(w, &e->edge, &e->out) < 0)
        return -1;
    say_epochs(w, which);
    return 0;
}

static int
on_restarts(struct warden *w, const struct launch_restarts *m)
{
    w->counts.wardens = m->wardens;
    w->counts.fronts = m->fronts;
    return 0;
}

static int
on_scribe(struct warden *w, const struct nothing *m)
{
    (void)m;
    if (w->passed < 0)
        return -1;
    record_scribe(w, take_fd(&w->passed));
    return 0;
}

static int
on_close(struct warden *w, const struct nothing *m)
{
    (void)m;
    w->closing = true;
    pool_drain(w, "cloche serve ended");
    for (struct box *b = w->boxes; b != NULL; b = b->next) {
        b->returns = b->r.persists && b->r.state != BOX_STOPPING && b->r.state != BOX_INITIALIZING;
        box_stop(b, "cloche serve ended");
    }
    box_all_gone(w);
    return 0;
}

static int
on_kill(struct warden *w, const struct nothing *m)
{
    (void)m;
    box_kill_all(w);
    return launcher_say(w, EDGE_KILLED, NULL);
}

static int
on_ping(struct warden *w, const struct nothing *m)
{
    (void)m;
    return launcher_say(w, EDGE_PONG, NULL);
}

#define HEARS_LAUNCHER(R) \
    R(EDGE_SPAWNED, on_spawned, false, 1) \
    R(EDGE_NOT_SPAWNED, on_not_spawned, false, 1) \
    R(EDGE_ADOPT, on_adopt, false, 1) \
    R(EDGE_ADOPTED_ALL, on_adopted_all, true, 1) \
    R(EDGE_FRONT, on_front, false, 1) \
    R(EDGE_SCRIBE, on_scribe, false, 1) \
    R(EDGE_WEBHOOK, hook_on_edge, false, 1) \
    R(EDGE_EXPORT, span_on_edge, false, 1) \
    R(EDGE_SIGNER, sign_on_edge, false, 1) \
    R(EDGE_NO_LANGUAGE, settings_on_no_language, false, 1) \
    R(EDGE_LANGUAGE, settings_on_language, false, 1) \
    R(EDGE_RULES, settings_on_rules, false, 1) \
    R(EDGE_COUNTS, settings_on_counts, false, 1) \
    R(EDGE_CLOSE, on_close, true, 1) \
    R(EDGE_KILL, on_kill, false, 1) \
    R(EDGE_LIMITS, settings_on_limits, false, 1) \
    R(EDGE_RESTARTS, on_restarts, false, 1) \
    R(EDGE_POOL, pool_on_settings, false, 1) \
    R(EDGE_PING, on_ping, false, 1)
PROTO_RULES(launch_table, HEARS_LAUNCHER)
const struct msg_gate launch_gate = { .rules = launch_table, .n_rules = ARRAY_LEN(launch_table), .state = 1 };
