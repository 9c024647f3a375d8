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

/* --- to keepers -------------------------------------------------------------------------------------------------- */

int
box_say(struct box *b, struct buf *frame, int fd)
{
    if (b->edge.fd < 0) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    if (packet_queue_send(&b->out, b->edge.fd, frame, fd) < 0)
        return -1;      /* its end is noticed where it is read */
    (void)warden_watch(b->w, &b->edge, &b->out);
    return 0;
}

void
box_say_short(struct box *b, uint8_t type)
{
    unsigned *asked = type == EDGE_PAUSE || type == EDGE_RESUME ? &b->asked.pauses
                      : type == EDGE_CHECK ? &b->asked.checks
                      : type == EDGE_USE ? &b->asked.uses : NULL;
    uint8_t room[64];
    struct buf frame = BUF_INIT_IN(room, sizeof(room));

    if (frame_end(&frame, frame_begin(&frame, type, 0, 0)) == 0)
        (void)box_say(b, &frame, -1);
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

static bool
facts_well(const char *facts)
{
    return facts[0] == '\0' || (facts[0] == '\n' && facts[strlen(facts) - 1] == '\n');
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
        box_used(b);
    b->by_itself = false;
    b->w->counts.created++;
    histogram_add(&b->w->counts.create, clock_us() - b->asked_for_us);
    box_state(b, BOX_READY, "");
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
on_made(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;
    struct box *b = w->heard;
    struct wire_in in = wire_in_of(f->payload, f->length);
    const char *facts = wire_cstr(&in, EDGE_FACTS_MAX, NULL);

    if (!wire_done(&in) || !facts_well(facts) || !b->asked.make)
        return -1;
    if (b->r.state != BOX_INITIALIZING && b->r.state != BOX_RECOVERING)
        return 0;       /* it was told to stop meanwhile */
    box_text(&b->r.facts, facts);
    if (!record_made(w, b))
        keep_made(b);
    return 0;
}

/* Nothing is left of it when its keeper has ended, which is when this is passed on. */
static int
on_not_made(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;
    struct box *b = w->heard;
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct err why;

    if (!packet_get_err(&in, &why) || (!b->asked.make && !b->asked.print && !b->asked.sweep) ||
        b->r.state == BOX_READY || b->r.state == BOX_DEGRADED)
        return -1;
    if (b->r.state == BOX_STOPPING)
        return 0;       /* nor was it wanted any more */
    b->stop_ms = clock_ms();
    return buf_append(&b->not_made, f->payload, f->length);
}

void
keep_make(struct box *b)
{
    cleanup_buf struct buf frame = BUF_INIT(EDGE_POLICY_MAX + 256);
    size_t at = frame_begin(&frame, EDGE_MAKE, 0, 0);
    char id[EDGE_ID + 1];

    if (b->sweeps)
        return volume_say_sweep(b);
    if ((b->r.workspace[0] != '\0' || b->tries) && !b->printed)
        return reattach_ask(b);
    /* a life of its own in each recovery: what the former one left (a copy-on-write state, a log) has its id */
    memcpy(id, b->r.id, sizeof(id));
    if (b->r.state == BOX_RECOVERING && new_id(id) < 0)
        return box_stop(b, "no random numbers");
    wire_put_cstr(&frame, id, EDGE_ID);
    buf_put_u8(&frame, b->r.bounds);
    wire_put_cstr(&frame, b->r.policy, EDGE_POLICY_MAX);
    edge_put_id(&frame, b->r.volume);
    b->asked.make = true;
    if (frame_end(&frame, at) == 0)
        (void)box_say(b, &frame, -1);
}

/* An adopted one says how far it was. */
static int
on_still(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;
    struct box *b = w->heard;
    struct wire_in in = wire_in_of(f->payload, f->length);
    uint8_t made = wire_u8(&in), paused = wire_u8(&in);
    uint32_t ops = wire_be32(&in), asks = wire_be32(&in);
    const char *facts = wire_cstr(&in, EDGE_FACTS_MAX, NULL);

    if (!wire_done(&in) || made > 1 || paused > 1 || ops > EDGE_OPS_MAX ||
        asks > EDGE_OPS_MAX || !facts_well(facts) || !b->asked.still)
        return -1;
    b->asked.still = false;     /* whether it is idle is known from here on */
    b->ops += ops + asks;
    b->asked.results += ops;
    b->asked.said += ops;
    b->r.paused = paused != 0;
    if (b->r.state == BOX_STOPPING || w->closing) {
        b->stop_ms = clock_ms();
        box_say_short(b, EDGE_STOP);
    } else if (made != 0 && !b->again) {
        box_text(&b->r.facts, facts);
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
on_paused(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;
    struct box *b = w->heard;
    struct wire_in in = wire_in_of(f->payload, f->length);
    uint8_t paused = wire_u8(&in);

    if (!wire_done(&in) || paused > 1 || !keep_answers(&b->asked.pauses))
        return -1;
    b->owes = 0;
    b->r.paused = paused != 0;
    b->asked_ms = 0;
    box_used(b);
    warden_note(w, b, "state_change", paused != 0 ? "paused" : "resumed");
    paused_answers(b, NULL);
    return 0;
}

static int
on_not_paused(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct err why;

    if (!packet_get_err(&in, &why) || !keep_answers(&w->heard->asked.pauses))
        return -1;
    w->heard->owes = 0;
    paused_answers(w->heard, &why);
    return 0;
}

static int
on_healthy(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;
    struct box *b = w->heard;
    struct wire_in in = wire_in_of(f->payload, f->length);
    uint8_t healthy = wire_u8(&in);

    if (!wire_done(&in) || healthy > 1 || !keep_answers(&b->asked.checks))
        return -1;
    b->asked_ms = 0;
    b->owes = 0;
    if (healthy == 0 && b->r.state == BOX_READY && !b->r.paused) {
        warden_note(w, b, "health_check", "the guest does not answer");
        box_state(b, BOX_DEGRADED, "the guest does not answer");
    } else if (healthy != 0 && b->r.state == BOX_DEGRADED) {
        warden_note(w, b, "health_check", "the guest answers again");
        box_state(b, BOX_READY, "");
    }
    return 0;
}

static int
on_op_ended(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;
    struct box *b = w->heard;

    (void)f;
    if (!keep_answers(&b->ops))
        return -1;
    /* one that was turned away has no result */
    if (b->asked.results > b->ops)
        b->asked.results = b->ops;
    if (b->asked.said > b->ops)
        b->asked.said = b->ops;
    box_used(b);
    if (b->once && b->ops == 0)
        box_stop(b, "its one operation has ended");
    return 0;
}

static int
on_gone(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    uint8_t died = wire_u8(&in);
    const char *why = wire_cstr(&in, EDGE_DETAIL_MAX, NULL);
    struct box *b = w->heard;

    if (!wire_done(&in) || died > 1)
        return -1;
    if (b->why == NULL)
        box_text(&b->why, why);
    if (b->r.state != BOX_STOPPING && b->r.state != BOX_RECOVERING) {
        if (died == 0 || !recovery_after_end(b))
            box_state(b, BOX_STOPPING, b->why);
        b->stop_ms = clock_ms();
    }
    return 0;
}

const struct msg_rule keep_rules[] = {
    /* type            once   flags states min  max length           handler */
    { EDGE_MADE,       true,  0,    1,     5,   5 + EDGE_FACTS_MAX,  on_made },
    { EDGE_NOT_MADE,   true,  0,    1,     20,  PACKET_ERR_MAX,      on_not_made },
    { EDGE_PRINT,      false, 0,    1,     6,   5 + EDGE_PRINT_MAX,  reattach_on_print },
    { EDGE_SWEPT,      true,  0,    1,     0,   0,                   volume_on_swept },
    { EDGE_STILL,      true,  0,    1,     15,  15 + EDGE_FACTS_MAX, on_still },
    { EDGE_PAUSED,     false, 0,    1,     1,   1,                   on_paused },
    { EDGE_NOT_PAUSED, false, 0,    1,     20,  PACKET_ERR_MAX,      on_not_paused },
    { EDGE_HEALTHY,    false, 0,    1,     1,   1,                   on_healthy },
    { EDGE_OP_ENDED,   false, 0,    1,     0,   0,                   on_op_ended },
    { EDGE_MASKS,      false, 0,    1,     33,  EDGE_MASKS_MAX,      record_on_masks },
    { EDGE_NOTED,      false, 0,    1,     8,   ENTRY_BYTES_MAX,     record_on_noted },
    { EDGE_OP_SAID,    false, 0,    1,     35,  35 + ERR_CODE_MAX,   record_on_op_said },
    { EDGE_GONE,       true,  0,    1,     6,   6 + EDGE_DETAIL_MAX, on_gone },
    { EDGE_SHOWN,      false, 0,    1,     9,   9 + EDGE_CHUNK,      life_on_shown },
    { EDGE_CHANGED,    false, 0,    1,     5,   5 + PACKET_ERR_MAX,  life_on_changed },
    { EDGE_USED,       false, 0,    1,     41,  edge_usage_MOST,      watch_on_used },
    { EDGE_OP_RESULT,  false, 0,    1,     26,  26,                  watch_on_op_result },
    { EDGE_NET_ASK,    false, 0,    1,     27,  26 + EDGE_HOST_MAX + EDGE_METHOD_MAX + EDGE_ASKED_MAX, net_on_ask },
    { EDGE_NET_OVER,   false, 0,    1,     4,   4,                   net_on_over },
};
const size_t keep_n_rules = ARRAY_LEN(keep_rules);

/* --- the launcher ------------------------------------------------------------------------------------------------- */

int
launcher_send(struct warden *w, struct buf *frame, size_t at)
{
    if (frame_end(frame, at) < 0 || packet_queue_send(&w->to_launcher, w->launcher.fd, frame, -1) < 0)
        return -1;
    (void)warden_watch(w, &w->launcher, &w->to_launcher);
    return 0;
}

int
launcher_say(struct warden *w, uint8_t type, const char *id)
{
    uint8_t room[128];
    struct buf frame = BUF_INIT_IN(room, sizeof(room));
    size_t at = frame_begin(&frame, type, 0, 0);

    if (id != NULL)
        wire_put_cstr(&frame, id, EDGE_ID);
    return launcher_send(w, &frame, at);
}

static const char *
id_of(const struct frame *f)
{
    struct wire_in in = wire_in_of(f->payload, f->length);
    const char *id = wire_cstr(&in, EDGE_ID, NULL);

    return wire_done(&in) && edge_is_id(id) ? id : NULL;
}

static int
on_spawned(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;
    const char *id = id_of(f);
    struct box *b = id != NULL ? box_of_id(w, id) : NULL;

    if (id == NULL || w->passed < 0)
        return -1;
    if (b == NULL)
        return launcher_say(w, EDGE_SHOOT, id);     /* nobody waits for it any more */
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
on_not_spawned(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    const char *id = wire_cstr(&in, EDGE_ID, NULL);
    struct err why;
    struct box *b;

    if (!packet_get_err(&in, &why) || !edge_is_id(id))
        return -1;
    b = box_of_id(w, id);
    if (b != NULL && b->edge.fd < 0)
        box_not_spawned(b, &why);
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
on_adopt(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;
    const char *id = id_of(f);
    struct adopt a = { .w = w, .fd = -1 };

    if (id == NULL || w->passed < 0)
        return -1;
    if (box_of_id(w, id) != NULL)
        return 0;
    a.fd = take_fd(&w->passed);
    (void)state_find(w->state, id, adopt, &a, NULL);
    if (a.fd >= 0) {
        close_fd(&a.fd);
        return launcher_say(w, EDGE_SHOOT, id);
    }
    return 0;
}

static int
on_adopted_all(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;

    (void)f;
    box_find_lost(w);
    w->settled = true;
    volumes_turn(w);
    return launcher_say(w, EDGE_READY, NULL);
}

/* By which the front knows that it is heard, too. */
static void
say_epochs(struct warden *w, uint32_t front)
{
    answer(w, (struct asker){ .front = front }, EDGE_EPOCHS, &nothing_shape, NULL,
           fcntl(w->epochs_fd, F_DUPFD_CLOEXEC, 0));
}

static int
on_front(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;

    struct wire_in in = wire_in_of(f->payload, f->length);
    uint8_t flags = wire_u8(&in);
    uint32_t which = (flags & EDGE_STRANGERS) != 0 ? 1 : 0;
    struct front_edge *e = &w->fronts[which];

    if (!wire_done(&in) || (flags & ~EDGE_STRANGERS) != 0 || w->passed < 0)
        return -1;
    loop_drop(&w->loop, &e->edge);
    packet_queue_clear(&e->out);
    approvals_front_gone(w, which);
    if (w->stop_all.front == which)
        w->stop_all.ticket = 0;
    for (struct box *b = w->boxes; b != NULL; b = b->next)
        box_forget_waiters(b, which);       /* their tickets were the former front's */
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
on_restarts(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);

    w->counts.wardens = wire_be32(&in);
    w->counts.fronts = wire_be32(&in);
    return wire_done(&in) ? 0 : -1;
}

static int
on_scribe(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;

    (void)f;
    if (w->passed < 0)
        return -1;
    record_scribe(w, take_fd(&w->passed));
    return 0;
}

static int
on_close(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;

    (void)f;
    w->closing = true;
    for (struct box *b = w->boxes; b != NULL; b = b->next)
        box_stop(b, "cloche serve ended");
    box_all_gone(w);
    return 0;
}

static int
on_kill(void *ctx, const struct frame *f)
{
    (void)f;
    box_kill_all(ctx);
    return launcher_say(ctx, EDGE_KILLED, NULL);
}

static int
on_ping(void *ctx, const struct frame *f)
{
    (void)f;
    return launcher_say(ctx, EDGE_PONG, NULL);
}

const struct msg_rule launch_rules[] = {
    /* type              once   flags states min  max length               handler */
    { EDGE_SPAWNED,      false, 0,    1,     37,  37,                      on_spawned },
    { EDGE_NOT_SPAWNED,  false, 0,    1,     57,  37 + PACKET_ERR_MAX,     on_not_spawned },
    { EDGE_ADOPT,        false, 0,    1,     37,  37,                      on_adopt },
    { EDGE_ADOPTED_ALL,  true,  0,    1,     0,   0,                       on_adopted_all },
    { EDGE_FRONT,        false, 0,    1,     1,   1,                       on_front },
    { EDGE_SCRIBE,       false, 0,    1,     0,   0,                       on_scribe },
    { EDGE_WEBHOOK,      false, 0,    1,     0,   0,                       hook_on_edge },
    { EDGE_RULES,        false, 0,    1,     41,  41 + EDGE_PATH_MAX + GATE_FILE_MAX, settings_on_rules },
    { EDGE_COUNTS,       false, 0,    1,     0,   0,                       settings_on_counts },
    { EDGE_CLOSE,        true,  0,    1,     0,   0,                       on_close },
    { EDGE_KILL,         false, 0,    1,     0,   0,                       on_kill },
    { EDGE_LIMITS,       false, 0,    1,     28,  28,                      settings_on_limits },
    { EDGE_RESTARTS,     false, 0,    1,     8,   8,                       on_restarts },
    { EDGE_PING,         false, 0,    1,     0,   0,                       on_ping },
};
const size_t launch_n_rules = ARRAY_LEN(launch_rules);
