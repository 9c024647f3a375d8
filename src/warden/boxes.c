/* warden/boxes.c: the life of each sandbox (see warden.h)
 *
 *     (none) ── create ──► initializing ──► ready ◄──► degraded
 *                               │             │            │  recover
 *                               ▼             ▼            ▼
 *                            (none)       stopping ──► stopped ──► recovering ──► ready
 *
 * Stopping ends when the keeper's edge does: with it everything that there was of the sandbox is gone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "warden/approvals.h"
#include "warden/spans.h"

#define RESERVED 8          /* one of so many sandboxes is no agent's */

void
box_text(const char **text, const char *new)
{
    char *copy = strdup(new);

    if (copy == NULL)
        return;
    free((void *)(uintptr_t)*text);
    *text = copy;
}

static const char *
or_empty(const char *text)
{
    return text != NULL ? text : "";
}

static int
put(struct box *b, int (*how)(struct state *, const struct edge_box *, struct err *), struct err *err)
{
    struct edge_box r = b->r;

    if (b->probe)
        return 0;
    if (gate_grants_settle(b, err) < 0)     /* none stands on record beside a policy that it was not given under */
        return -1;
    r.name = or_empty(r.name);
    r.labels = or_empty(r.labels);
    r.policy = or_empty(r.policy);
    r.facts = or_empty(r.facts);
    r.detail = or_empty(r.detail);
    return how(b->w->state, &r, err);
}

int
box_put(struct box *b, struct err *err)
{
    return put(b, state_put, err);
}

void
box_store(struct box *b)
{
    struct err err = ERR_INIT;

    if (put(b, state_put_soon, &err) < 0)
        log_say(LEVEL_ERROR, "%s [%s]", err.msg, err.code);
}

static void
used_now(struct box *b)
{
    b->r.used_ms = clock_wall_ms();
    b->r.used_at = time_steady(b->w);
}

void
box_used(struct box *b)
{
    used_now(b);
    box_store(b);
}

void
box_touched(struct box *b)
{
    struct err err = ERR_INIT;

    used_now(b);
    if (!b->probe && state_used_soon(b->w->state, b->r.id, b->r.used_ms, b->r.used_at, &err) < 0)
        log_say(LEVEL_ERROR, "%s [%s]", err.msg, err.code);
}

void
box_state(struct box *b, enum box_state state, const char *detail)
{
    enum box_state was = b->r.state;

    b->r.state = state;
    if (state == BOX_READY && b->r.started_ms == 0) {
        b->r.started_ms = clock_wall_ms();
        if (b->r.begun_at == 0)
            b->r.begun_at = time_steady(b->w);
    }
    if (state == BOX_STOPPED)
        b->r.ended_ms = clock_wall_ms();
    if (state == BOX_STOPPING || state == BOX_STOPPED)
        b->r.recovery.next_ms = b->recover_ms = 0;
    box_text(&b->r.detail, detail);
    box_store(b);
    if (b->r.is_default)
        epoch_next(&b->w->epochs->defaults);
    if (state != BOX_READY && state != BOX_DEGRADED) {
        ports_end(b->w, b->r.id);
        attach_end(b->w, b->r.id);
    }
    if (was != state)
        warden_note(b->w, b, "state_change", "%s to %s%s%s", box_state_name(was), box_state_name(state),
                    detail[0] != '\0' ? ": " : "", detail);
}

/* --- making and forgetting ---------------------------------------------------------------------------------------- */

void
box_unrecord(struct warden *w, const char *id)
{
    epoch_next(&w->epochs->credentials);
    (void)state_forget(w->state, id, NULL);
    (void)state_once_forget(w->state, id, NULL);
}

bool
box_same_key(const struct box *b, const struct edge_box *r)
{
    return r->workspace[0] != '\0' && !b->tries && strcmp(b->r.owner, r->owner) == 0 &&
           strcmp(b->r.workspace, r->workspace) == 0;
}

/* Names are their owner's: whoever asks does not learn which ones others use. A probe may find its name free yet. */
static bool
taken(const struct warden *w, const struct edge_box *r, bool as_default, bool probe)
{
    for (const struct box *b = w->boxes; b != NULL; b = b->next)
        if (strcmp(b->r.id, r->id) != 0 && !b->tries && strcmp(b->r.owner, r->owner) == 0 &&
            !(probe && box_same_key(b, r)) &&
            (as_default ? b->r.is_default : strcmp(b->r.name, r->name) == 0))
            return true;
    return false;
}

static int
name_taken(const struct edge_box *r, struct err *err)
{
    err_set(err, ERR_DENIED, "sandbox.name-taken", "a sandbox \"%s\" lives already", r->name);
    return err_hint(err, "names are free again when their sandbox has stopped");
}

/* Whether an agent made it, or a token that is no more. */
static bool
is_agents(const struct warden *w, const struct box *b)
{
    const struct token *t = token_of(w, b->r.owner);

    return t != NULL ? t->r.role == EDGE_AGENT : b->r.owner[0] != '\0';
}

/* An agent has its share, and all of them leave a few, so that they do not take what others, and the owner, need. */
static int
room_for_agent(const struct warden *w, size_t own, struct err *err)
{
    size_t agents = 0, most = w->max_boxes - w->max_boxes / RESERVED;

    for (const struct box *b = w->boxes; b != NULL; b = b->next)
        agents += !b->sweeps && !b->ahead && is_agents(w, b) ? 1 : 0;
    if (own >= w->max_per_agent) {
        err_set(err, ERR_LIMIT, "sandbox.too-many", "%zu sandboxes of this agent live; the limit of each is %zu", own,
                w->max_per_agent);
        return err_hint(err, "delete one, or raise it: cloche serve --max-sandboxes-per-agent");
    }
    if (agents < most)
        return 0;
    err_set(err, ERR_LIMIT, "sandbox.too-many", "%zu sandboxes of agents live; the limit of all agents is %zu", agents,
            most);
    return err_hint(err, "delete one, or raise it: cloche serve --max-sandboxes");
}

/* @id: of the token that it is for ("": the owner); @agent: that is an agent's. */
static int
room_for(const struct warden *w, const struct edge_box *r, const char *id, bool agent, bool probe, struct err *err)
{
    size_t own = 0, same = 0, probes = 0, live = box_count(w);

    for (const struct box *b = w->boxes; b != NULL; b = b->next) {
        own += !b->sweeps && !b->ahead && strcmp(b->r.owner, id) == 0 ? 1 : 0;
        same += box_same_key(b, r) ? 1 : 0;
        probes += b->probe && !b->sweeps && !b->ahead ? 1 : 0;
    }
    if (probe && same > 0 && probes == 0)
        return 0;       /* in the end there is one in the place of another */
    if (live >= w->max_boxes) {
        err_set(err, ERR_LIMIT, "sandbox.too-many", "%zu sandboxes live; the limit is %zu", live, w->max_boxes);
        return err_hint(err, "delete one, or raise it: cloche serve --max-sandboxes");
    }
    return agent ? room_for_agent(w, own, err) : 0;
}

static int
room_for_one(const struct warden *w, const struct edge_box *r, bool probe, struct err *err)
{
    return room_for(w, r, w->who.id, w->who.role == EDGE_AGENT, probe, err);
}

int
box_may(const struct warden *w, const struct edge_box *r, struct err *err)
{
    if (w->closing)
        return err_set(err, ERR_DENIED, "serve.closing", "cloche serve is ending");
    return taken(w, r, false, false) ? name_taken(r, err) : room_for_one(w, r, false, err);
}

uint32_t
box_limit(const struct edge_box *r, uint32_t asked, uint32_t daemons)
{
    if (asked == 0 || ((r->bounds & EDGE_BOUNDED) != 0 && daemons != 0 && asked > daemons))
        return daemons;
    return asked;
}

int
box_create(struct warden *w, const struct edge_box *r, struct asker to, unsigned how, struct err *err)
{
    bool probe = (how & BOX_PROBE) != 0;
    struct box *b;

    if (w->closing)
        return err_set(err, ERR_DENIED, "serve.closing", "cloche serve is ending");
    if (taken(w, r, false, probe))
        return name_taken(r, err);
    if (r->is_default && taken(w, r, true, false)) {
        err_set(err, ERR_DENIED, "sandbox.name-taken", "another default sandbox lives already");
        return err_hint(err, "POST /api/sandbox/stop ends it");
    }
    if (room_for_one(w, r, probe, err) < 0 || (!probe && volume_is_free(w, r->volume, NULL, err) < 0) ||
        template_is_there(w, r->base, err) < 0)
        return -1;
    if (box_count(w) + pool_count(w) >= w->max_boxes)
        pool_make_room(w);
    b = box_new(w, r);
    if (b == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    b->probe = probe;
    b->tries = (how & BOX_TRIAL) != 0;
    b->once = (how & BOX_ONCE) != 0;
    /* before anything is made: whatever happens from here on, the record says that there may be something */
    if (box_wait(b, WAIT_MADE, to, err) < 0 || (!probe && state_put(w->state, r, err) < 0) ||
        launcher_say(w, EDGE_SPAWN, b->r.id) < 0) {
        if (err->kind == ERR_NONE)
            err_set(err, ERR_SYSTEM, "serve.launcher", "the launcher does not answer");
        if (r->state == BOX_INITIALIZING)
            box_unrecord(w, r->id);
        box_take_out(b);
        return -1;
    }
    b->waiters->keyed = (how & BOX_KEYED) != 0;
    span_asked_for(b);
    call_asked_for(b);
    if ((how & (BOX_FLEETING | BOX_TRIAL)) != 0)
        b->maker = to;
    if (!probe)
        warden_note(w, b, "container_start", "asked for");
    return 0;
}

int
box_record(struct box *b, struct err *err)
{
    if (b->w->closing)
        return err_set(err, ERR_DENIED, "serve.closing", "cloche serve is ending");
    if (taken(b->w, &b->r, false, false))
        return name_taken(&b->r, err);
    if (volume_is_free(b->w, b->r.volume, b, err) < 0)
        return -1;
    if (state_put(b->w->state, &b->r, err) < 0)
        return -1;
    b->probe = false;
    volume_taken(b);
    warden_note(b->w, b, "container_start", "asked for");
    return 0;
}

int
box_revive(struct warden *w, const struct edge_box *r, struct asker to, struct err *err)
{
    struct edge_box again = *r;

    again.state = BOX_RECOVERING;
    again.paused = false;
    again.started_ms = again.ended_ms = 0;
    again.recovery.used = 0;
    again.recovery.began_ms = again.recovery.next_ms = 0;
    again.recovery.given_up = false;
    again.used_ms = clock_wall_ms();
    again.used_at = time_steady(w);
    again.begun_at = again.tried_at = 0;
    again.life_s = again.asked_s;       /* what the former life was given besides is over with it */
    again.detail = "made anew";
    return box_create(w, &again, to, 0, err);
}

int
box_edge(struct box *b, int fd)
{
    b->edge = (struct watch){ .fd = fd, .ready = warden_on_box, .owner = b };
    b->gate = keep_gate;
    b->check_ms = clock_ms() + WARDEN_CHECK_MS;
    b->asked_ms = 0;
    b->ops = 0;
    b->asked = (struct box_asked){ .make = false };
    if (warden_watch(b->w, &b->edge, &b->out) == 0)
        return 0;
    box_lost(b);
    return -1;
}

void
box_adopt(struct warden *w, const struct edge_box *r, int fd)
{
    struct box *b = box_new(w, r);

    if (b == NULL) {
        close(fd);
        return;
    }
    b->r.recovery.next_ms = 0;          /* is judged anew */
    if (box_edge(b, fd) < 0)
        return;
    b->asked.still = true;
    if (b->r.state == BOX_STOPPING)     /* a keeper that hangs says nothing */
        b->stop_ms = clock_ms();
    if (b->r.state == BOX_RECOVERING) { /* there is nothing in it to keep */
        b->by_itself = b->again = true;
        (void)launcher_say(w, EDGE_SHOOT, b->r.id);
    }
}

void
box_all_gone(struct warden *w)
{
    struct asker to = w->stop_all;

    if (to.ticket != 0 && box_count(w) == 0) {
        w->stop_all.ticket = 0;
        answer_end(w, to, w->stop_all_n, false);
    }
    if (w->closing && w->n_boxes == 0)
        (void)launcher_say(w, EDGE_QUIET, NULL);
}

/* --- ending ------------------------------------------------------------------------------------------------------- */

void
box_stop(struct box *b, const char *why)
{
    b->again = false;
    if (b->r.state == BOX_STOPPING)
        return;
    box_text(&b->why, why);
    if (b->probe)
        b->r.state = BOX_STOPPING;      /* nothing was, and nothing is said */
    else
        box_state(b, BOX_STOPPING, why);
    b->stop_ms = clock_ms();
    if (b->once)
        pool_call_over(b->w);
    box_say_short(b, EDGE_STOP);
}

void
box_kill_all(struct warden *w)
{
    warden_note(w, NULL, "state_change", "kill switch: %zu sandboxes", box_count(w));
    pool_drain(w, "kill switch");
    for (struct box *b = w->boxes; b != NULL; b = b->next)
        box_stop(b, "kill switch");
}

void
box_lost(struct box *b)
{
    struct wire_in in = wire_in_of(b->not_made.p, b->not_made.n);
    struct warden *w = b->w;
    struct err err = ERR_INIT;
    struct err why;

    if (b->edge.fd >= 0) {
        loop_drop(&w->loop, &b->edge);
        /* one that closed its edge and lives on would keep a sandbox that nobody can end */
        (void)launcher_say(w, EDGE_SHOOT, b->r.id);
    }
    packet_queue_clear(&b->out);
    err_set(&err, ERR_SYSTEM, "sandbox.gone", "the sandbox ended meanwhile");
    life_gone(b, &err);
    template_lost(b, &err);
    net_box_gone(w, b->r.id);
    attach_closed(w, b->r.id, NULL, "its keeper ended");
    b->taken_ms = 0;
    if (b->ahead)
        pool_gone(b, b->not_made.n > 0 && packet_get_err(&in, &why) ? &why : NULL);
    if (b->again && !w->closing) {
        box_unheard_answers(b, &err);
        box_make_again(b);
        return;
    }
    if (b->not_made.n > 0 && !b->ahead && b->r.state != BOX_STOPPING && packet_get_err(&in, &why)) {
        box_not_spawned(b, &why);
        return;
    }
    if (b->probe) {
        box_text(&b->r.detail, b->why != NULL ? b->why : "its keeper ended");
        (void)state_once_forget(w->state, b->r.id, NULL);
        box_gone_answers(b);
        box_take_out(b);
        box_all_gone(w);
        reattach_turn(w);
        return;
    }
    w->counts.keeper_deaths += b->why == NULL;
    if (recovery_after_end(b)) {
        box_unheard_answers(b, &err);
        return;
    }
    b->r.paused = false;
    box_state(b, b->returns ? BOX_RECOVERING : BOX_STOPPED,
              b->why != NULL ? b->why : "its keeper ended: it was destroyed");
    span_ended(b);
    warden_note(w, b, "container_stop", "%s", b->r.detail);
    box_gone_answers(b);
    box_take_out(b);
    box_all_gone(w);
    reattach_turn(w);
}

void
box_not_spawned(struct box *b, const struct err *why)
{
    struct warden *w = b->w;

    if (b->ahead) {
        pool_gone(b, why);
        box_take_out(b);
        box_all_gone(w);
        return;
    }
    warden_note(w, b, "error", "not made: %s [%s]", why->msg, why->code);
    count_not_created(&w->counts, why->code);
    span_made(b, why);
    for (struct waiter *one; (one = b->waiters) != NULL;) {
        b->waiters = one->next;
        answer_no_text(w, one->to, why);
        free(one);
    }
    box_text(&b->why, why->msg);
    if (b->r.state == BOX_RECOVERING && recovery_after_end(b))
        return;
    if (b->r.state == BOX_RECOVERING)
        box_state(b, BOX_STOPPED, b->why != NULL ? b->why : why->msg);
    else
        box_unrecord(w, b->r.id);   /* it never was */
    box_take_out(b);
    box_all_gone(w);
}

static void
lost_row(void *ctx, const struct edge_box *r)
{
    struct edge_box *out = ctx;

    *out = *r;
    out->name = strdup(r->name);
    out->labels = strdup(r->labels);
    out->policy = strdup(r->policy);
    out->facts = strdup(r->facts);
    out->detail = "";
    out->workspace = strdup(r->workspace);
    out->print = strdup(r->print);
}

/* One that was there when the last daemon ended, however that was, and is to be there again. The launcher has ended
 * what was left of it. */
static bool
returns(const struct box *b)
{
    return b->r.persists && (b->r.state == BOX_READY || b->r.state == BOX_DEGRADED || b->r.state == BOX_RECOVERING) &&
           !recovery_life_is_over(b);
}

/* Whoever may not make it today does not have it again: the settings of today hold. What its policy may be its keeper
 * judges, as always. */
static int
may_return(struct warden *w, struct edge_box *r, struct err *err)
{
    const struct token *t = token_of(w, r->owner);
    uint64_t until;

    if (!owner_lives(w, r->owner, &until))
        return err_set(err, ERR_DENIED, "auth.expired", "not made anew: the token of who made it is over");
    if (room_for(w, r, r->owner, t != NULL && t->r.role == EDGE_AGENT, false, err) < 0)
        return err_wrap(err, "not made anew");
    if ((r->bounds & EDGE_BOUNDED) == 0)
        return 0;
    r->idle_s = box_limit(r, r->idle_s, w->default_idle_s);
    r->life_s = box_limit(r, r->life_s, w->default_life_s);
    r->asked_s = box_limit(r, r->asked_s, w->default_life_s);
    return 0;
}

/* Nobody keeps it any more. Where that came to be while this daemon was without a warden it may be made anew. */
static void
find_lost(struct box *b, const struct err *no)
{
    struct warden *w = b->w;

    b->r.recovery.next_ms = 0;          /* is judged anew */
    b->by_itself = b->r.state == BOX_RECOVERING;
    if (w->counts.wardens > 0 && recovery_after_end(b))
        return;
    if (returns(b) && no->kind != ERR_NONE) {
        box_text(&b->why, no->msg);
    } else if (returns(b)) {
        b->by_itself = false;
        b->returns = true;
        box_state(b, BOX_RECOVERING, "made anew: cloche serve was started again");
        box_make_again(b);
        return;
    }
    box_state(b, BOX_STOPPED, b->why != NULL ? b->why : EDGE_WHY_KILLED);
    warden_note(w, b, "container_stop", "%s", b->r.detail);
    box_take_out(b);        /* the row after which the search goes on is no longer listed, but it is there */
}

void
box_find_lost(struct warden *w)
{
    struct state_query q = { .prefix = "", .label = "", .after = "", .workspace = "", .limit = 1 };
    char after[EDGE_ID + 1] = "";

    for (;;) {
        struct edge_box r = { .name = NULL };
        struct err no = ERR_INIT;
        struct box *b = NULL;
        bool more;
        q.after = after;
        if (state_list(w->state, &q, lost_row, &r, &more, NULL) <= 0)
            return;
        memcpy(after, r.id, sizeof(after));
        if (box_of_id(w, r.id) == NULL && r.persists)
            (void)may_return(w, &r, &no);
        if (box_of_id(w, r.id) == NULL && r.name != NULL && r.labels != NULL && r.policy != NULL && r.facts != NULL &&
            r.workspace != NULL && r.print != NULL && (b = box_new(w, &r)) != NULL) {
            find_lost(b, &no);
        }
        free((void *)(uintptr_t)r.name);
        free((void *)(uintptr_t)r.labels);
        free((void *)(uintptr_t)r.policy);
        free((void *)(uintptr_t)r.facts);
        free((void *)(uintptr_t)r.workspace);
        free((void *)(uintptr_t)r.print);
    }
}
