/* warden/life.c: the policy of a sandbox that lives, and how long it lives
 *
 * What it is held to is told by its keeper, and a change of it is judged there: both pass through here unread. On
 * record is what the keeper took; one that a lost warden had begun is taken back by the next one.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/sha256.h"
#include "warden/approvals.h"
#include "warden/record.h"

static void
say_change(struct box *b, uint32_t number, const char *policy)
{
    b->asked.changes++;
    PROTO_SAY(box_say, b, EDGE_CHANGE, .number = number, .policy = policy);
}

/* --- what it is held to ------------------------------------------------------------------------------------------- */

int
asked_policy(struct warden *w, const struct ask_box *m)
{
    struct err err = ERR_INIT;
    struct box *b;

    b = usable(w, m->id, &err);
    if (b == NULL || box_wait(b, WAIT_SHOWN, w->asker, &err) < 0) {
        answer_no(w, w->asker, &err);
        return 0;
    }
    b->waiters->number = ++w->numbers;
    b->asked.shows++;
    PROTO_SAY(box_say, b, EDGE_SHOW, .number = b->waiters->number);
    return 0;
}

/* A piece of it, to whoever asked, unless that one has gone. */
int
life_on_shown(struct warden *w, const struct keep_shown *m)
{
    struct box *b = w->heard;
    struct waiter **at = &b->waiters, *one;

    if (b->asked.shows == 0)
        return -1;
    b->asked.shows -= m->last;
    while ((one = *at) != NULL && (one->what != WAIT_SHOWN || one->number != m->number))
        at = &one->next;
    if (one == NULL)
        return 0;
    one->bytes += m->n_json;
    if (one->bytes > EDGE_SHOWN_MAX || (m->n_json == 0 && !m->last))
        return -1;
    ANSWER(w, one->to, EDGE_POLICY, .last = m->last, .json = m->json, .n_json = m->n_json);
    if (m->last) {
        *at = one->next;
        free(one);
    }
    return 0;
}

/* --- changes ------------------------------------------------------------------------------------------------------ */

static bool
is_revision(const char *policy, const uint8_t *hash)
{
    uint8_t own[SHA256_SIZE];

    sha256_of(policy, strlen(policy), own);
    return memcmp(own, hash, sizeof(own)) == 0;
}

static int
stale(struct err *err)
{
    err_set(err, ERR_DENIED, "policy.stale", "the policy was changed meanwhile");
    return err_hint(err, "GET it again, and change what is there now");
}

struct change { struct warden *w; const uint8_t *was; const char *policy; struct err *err; };

/* Of one that has stopped any policy may be put on record; whether it is one is said when it is recovered. */
static void
change_record(void *ctx, const struct edge_box *r)
{
    const struct change *c = ctx;
    struct edge_box new = *r;

    if (r->state != BOX_STOPPED) {
        err_set(c->err, ERR_DENIED, "sandbox.state", "the sandbox is %s", box_state_name(r->state));
        return;
    }
    if (!is_revision(r->policy, c->was)) {
        stale(c->err);
        return;
    }
    new.policy = c->policy;
    /* in this order: whatever ends us in between, no grant is left that was given under another policy */
    if (gate_policy_changed(c->w, r->id, c->err) == 0 && state_put(c->w->state, &new, c->err) == 0) {
        warden_note_id(c->w, r->id, "state_change", "the policy for its next life was changed");
        answer_box(c->w, c->w->asker, &new, NULL);
    }
}

static int
change_living(struct box *b, const struct change *c)
{
    if (b->r.state != BOX_READY && b->r.state != BOX_DEGRADED) {
        err_set(c->err, ERR_DENIED, "sandbox.state", "the sandbox is %s", box_state_name(b->r.state));
        return err_hint(c->err, "GET /v1/sandboxes/%s shows its state", b->r.id);
    }
    if (b->change.policy != NULL)
        return err_set(c->err, ERR_LIMIT, "sandbox.busy", "another change of the policy is under way");
    if (!is_revision(b->r.policy, c->was))
        return stale(c->err);
    b->change.policy = strdup(c->policy);
    if (b->change.policy == NULL)
        return err_set(c->err, ERR_SYSTEM, "memory", "out of memory");
    b->change.number = ++b->w->numbers;
    b->change.to = b->w->asker;
    say_change(b, b->change.number, c->policy);
    return 0;
}

int
asked_change(struct warden *w, const struct ask_change *m)
{
    struct err err = ERR_INIT;
    struct change c = { .w = w, .was = m->was, .policy = m->policy, .err = &err };
    struct box *b;

    b = living(w, m->id);
    if (record_asked(w, b, m->id, NULL))
        return 0;
    if (b != NULL)
        (void)change_living(b, &c);
    else if (find_record(w, m->id, change_record, &c, &err) <= 0 && err.kind == ERR_NONE)
        not_found(m->id, &err);
    if (err.kind != ERR_NONE)
        answer_no(w, w->asker, &err);
    return 0;
}

static void
forget_change(struct box *b)
{
    free(b->change.policy);
    b->change = (struct box_change){ .policy = NULL };
}

int
life_on_changed(struct warden *w, const struct keep_changed *m)
{
    struct box *b = w->heard;
    struct err why = ERR_INIT;

    if (!keep_answers(&b->asked.changes))
        return -1;
    if (b->change.policy == NULL || b->change.number != m->number)
        return 0;
    if (m->done) {
        bool other = strcmp(b->r.policy, b->change.policy) != 0;
        box_text(&b->r.policy, b->change.policy);
        reattach_changed(b);
        if (other && gate_policy_changed(w, b->r.id, &why) < 0)     /* the keeper has taken it: there is no way back */
            log_say(LEVEL_ERROR, "grants that are over are still on record: %s [%s]", why.msg, why.code);
        box_used(b);
        warden_note(w, b, "state_change", "its policy was changed");
        answer_box(w, b->change.to, &b->r, NULL);
    } else {
        warden_note(w, b, "state_change", "its policy was not changed: %s", m->why.msg);
        answer_no_text(w, b->change.to, &m->why);
    }
    forget_change(b);
    return 0;
}

void
life_adopted(struct box *b)
{
    say_change(b, ++b->w->numbers, b->r.policy);
}

void
life_gone(struct box *b, const struct err *why)
{
    if (b->change.policy != NULL)
        answer_no(b->w, b->change.to, why);
    forget_change(b);
}

/* --- how long it lives -------------------------------------------------------------------------------------------- */

uint32_t
life_with(const struct box *b, uint32_t seconds)
{
    const uint64_t lived_s = b->r.begun_at > 0 ? clock_since(time_steady(b->w), b->r.begun_at) / 1000 : 0;
    const uint64_t all_s = lived_s + seconds;

    return box_limit(&b->r, all_s < EDGE_SECONDS_MAX ? (uint32_t)all_s : EDGE_SECONDS_MAX, b->w->default_life_s);
}

static int
life_put(struct box *b, uint32_t life_s, struct err *err)
{
    const uint32_t former = b->r.life_s;

    b->r.life_s = life_s;
    if (box_put(b, err) == 0)
        return 0;
    b->r.life_s = former;
    return -1;
}

int
asked_life(struct warden *w, const struct ask_life *m)
{
    struct err err = ERR_INIT;
    struct box *b = usable(w, m->id, &err);
    char by[EDGE_WHO_MAX + 1];
    uint32_t life_s;

    if (b == NULL) {
        answer_no(w, w->asker, &err);
        return 0;
    }
    if (record_asked(w, b, m->id, NULL))
        return 0;
    life_s = life_with(b, m->seconds);
    if (life_put(b, life_s, &err) < 0) {
        answer_no(w, w->asker, &err);
        return 0;
    }
    who_text(w, &w->who, by);
    warden_note(w, b, "lifetime_changed", "%u more seconds were asked for by %s: %u in all", m->seconds, by, life_s);
    answer_box(w, w->asker, &b->r, NULL);
    return 0;
}
