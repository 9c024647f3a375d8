/* warden/watch.c: for those who look on: numbers, what sandboxes use, events as they happen
 *
 * What a sandbox uses only its keeper knows, and it is asked when somebody wants to know. One that does not answer
 * within WAIT_MS is told as it was last.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "warden/warden.h"

#define WAIT_MS       1000
#define FRESH_MS      200       /* an answer that is no older need not be asked for again */
#define ASKED_MAX     64        /* questions that wait at once, ... */
#define ASKED_EACH    8         /* ... of one credential (the owner has none), ... */
#define ASKED_AGENTS  32        /* ... and of agents: the rest is kept for those who look after them */

struct event_follower {
    struct event_follower *next;
    struct asker to;
    struct proof proof;         /* of who it is */
    struct who who;             /* as they were then: what they may is judged anew */
    char id[EDGE_ID + 1];       /* "": of all that it may see */
};

/* A question that waits for keepers. */
struct usage_asked {
    struct usage_asked *next;
    struct asker to;
    struct who who;
    uint8_t what;               /* EDGE_ASK_STATS or EDGE_ASK_USAGE */
    char id[EDGE_ID + 1];       /* of one; "": of all */
    uint64_t until_ms;
};

/* --- usage and numbers -------------------------------------------------------------------------------------------- */

static void
tell_stats(struct warden *w, struct asker to)
{
    cleanup_buf struct buf b = BUF_INIT(EDGE_MESSAGE_MAX - 4);

    if (count_put(w, &b) == 0)
        ANSWER(w, to, EDGE_STATS, .samples = b.p, .n_samples = b.n);
}

static void
tell_usage(struct warden *w, const struct usage_asked *a)
{
    uint32_t n = 0;

    for (const struct box *x = w->boxes; x != NULL; x = x->next) {
        struct wire_in in = wire_in_of(x->use.p, x->use.n);
        struct tell_usage m = { .ticket = a->to.ticket, .id = x->r.id };
        if (x->use.n == 0 || !who_reaches(&a->who, &x->r) || (a->id[0] != '\0' && strcmp(a->id, x->r.id) != 0) ||
            !edge_usage_get(&in, &m.usage))
            continue;
        answer(w, a->to, EDGE_USAGE, EDGE_USAGE_SHAPE(), &m, -1);
        n++;
    }
    answer_end(w, a->to, n, false);
}

/* Whoever is late is not waited for by the next one either. */
static bool
all_said(const struct warden *w, uint64_t now)
{
    for (const struct box *x = w->boxes; x != NULL; x = x->next)
        if (x->use_asked_ms > 0 && clock_since(now, x->use_asked_ms) < WAIT_MS)
            return false;
    return true;
}

void
usage_turn(struct warden *w)
{
    uint64_t now, next = 0;
    bool all;

    if (w->usage_asked == NULL)
        return;
    now = clock_ms();
    all = all_said(w, now);
    for (struct usage_asked **at = &w->usage_asked, *a; (a = *at) != NULL;) {
        if (!all && now < a->until_ms) {
            next = next == 0 || a->until_ms < next ? a->until_ms : next;
            at = &a->next;
            continue;
        }
        *at = a->next;
        if (a->what == EDGE_ASK_STATS)
            tell_stats(w, a->to);
        else
            tell_usage(w, a);
        free(a);
    }
    loop_at(&w->loop, &w->usage_late, next);
    if (next == 0)
        return;
    /* and is asked again after a while */
    for (struct box *x = w->boxes; x != NULL; x = x->next)
        if (x->use_asked_ms > 0 && clock_since(now, x->use_asked_ms) >= 10 * WAIT_MS)
            x->use_asked_ms = 0;
}

static bool
room_for_one(const struct warden *w)
{
    size_t all = 0, agents = 0, own = 0;

    for (const struct usage_asked *o = w->usage_asked; o != NULL; o = o->next) {
        all++;
        agents += o->who.role == EDGE_AGENT ? 1 : 0;
        own += strcmp(o->who.id, w->who.id) == 0 ? 1 : 0;
    }
    return all < ASKED_MAX && (w->who.id[0] == '\0' || own < ASKED_EACH) &&
           (w->who.role != EDGE_AGENT || agents < ASKED_AGENTS);
}

static int
ask_keepers(struct warden *w, uint8_t what, const char *id)
{
    uint64_t now = clock_ms();
    struct usage_asked *a = calloc(1, sizeof(*a));
    struct err err = ERR_INIT;

    if (a == NULL || !room_for_one(w)) {
        free(a);
        err_set(&err, ERR_LIMIT, "serve.busy", "too many ask already what is used");
        err_hint(&err, "try again");
        answer_no(w, w->asker, &err);
        return 0;
    }
    a->to = w->asker;
    a->who = w->who;
    a->what = what;
    a->until_ms = now + WAIT_MS;
    memcpy(a->id, id, strlen(id) + 1);
    a->next = w->usage_asked;
    w->usage_asked = a;
    for (struct box *x = w->boxes; x != NULL; x = x->next) {
        if (x->use_asked_ms > 0 || x->edge.fd < 0 || (x->r.state != BOX_READY && x->r.state != BOX_DEGRADED) ||
            (x->use.n > 0 && clock_since(now, x->use_ms) < FRESH_MS))
            continue;
        x->use_asked_ms = now;
        box_say_short(x, EDGE_USE);
    }
    usage_turn(w);
    return 0;
}

int
asked_stats(struct warden *w, const struct nothing *m)
{
    (void)m;
    return ask_keepers(w, EDGE_ASK_STATS, "");
}

int
asked_usage(struct warden *w, const struct ask_box *m)
{
    struct err err = ERR_INIT;
    const struct box *b;

    if (m->id[0] == '\0')
        return ask_keepers(w, EDGE_ASK_USAGE, "");
    b = living(w, m->id);
    if (b != NULL)
        return ask_keepers(w, EDGE_ASK_USAGE, b->r.id);
    if (find_record(w, m->id, record_is_there, NULL, &err) > 0) {
        answer_end(w, w->asker, 0, false);      /* it is there, and uses nothing any more */
    } else {
        if (err.kind == ERR_NONE)
            not_found(m->id, &err);
        answer_no(w, w->asker, &err);
    }
    return 0;
}

int
watch_on_used(struct warden *w, const struct edge_usage *u)
{
    struct box *b = w->heard;

    if (!keep_answers(&b->asked.uses))
        return -1;
    b->use_asked_ms = 0;
    b->use_ms = clock_ms();
    buf_reset(&b->use);
    if (edge_usage_put(&b->use, u) < 0)
        buf_reset(&b->use);
    usage_turn(w);
    return 0;
}

int
watch_on_op_result(struct warden *w, const struct edge_op_result *r)
{
    if (!keep_answers(&w->heard->asked.results))
        return -1;
    count_op(&w->counts, r);
    return 0;
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static void
tell_event(struct warden *w, struct asker to, const struct edge_event *event)
{
    ANSWER(w, to, EDGE_EVENT, .event = *event);
}

/* A token that was revoked meanwhile sees nothing more; what it was is judged anew for each event. */
static bool
still_may(struct warden *w, const struct event_follower *f, const struct box *box, struct err *err)
{
    struct who who;

    return who_still(w, f->to.front, &f->proof, EDGE_ASK_FOLLOW, &who, err) == 0 &&
           (box != NULL ? who_reaches(&who, &box->r) : who_owner(&who) == NULL);
}

void
watch_event(struct warden *w, const struct edge_event *event)
{
    const struct box *box = event->id[0] != '\0' ? box_of_id(w, event->id) : NULL;

    for (struct event_follower **at = &w->followers, *f; (f = *at) != NULL;) {
        struct err err = ERR_INIT;
        bool may = (f->id[0] == '\0' || strcmp(f->id, event->id) == 0) && still_may(w, f, box, &err);
        if (may)
            tell_event(w, f->to, event);
        if (err.kind == ERR_NONE) {
            at = &f->next;
            continue;
        }
        *at = f->next;
        answer_no(w, f->to, &err);
        free(f);
    }
}

void
watch_judge(struct warden *w, struct follow_count *c)
{
    for (struct event_follower **at = &w->followers, *f; (f = *at) != NULL;) {
        struct err err = ERR_INIT;
        struct who who;
        if (who_still(w, f->to.front, &f->proof, EDGE_ASK_FOLLOW, &who, &err) == 0) {
            follow_counts(w, &f->who, &f->proof, c);
            at = &f->next;
            continue;
        }
        *at = f->next;
        answer_no(w, f->to, &err);
        free(f);
    }
}

struct since { struct warden *w; uint64_t after; };       /* of this number on */

static void
tell_since(void *ctx, const struct edge_event *event)
{
    struct since *s = ctx;

    if (event->number > s->after)
        tell_event(s->w, s->w->asker, event);
}

void
watch_unfollow(struct warden *w)
{
    for (struct event_follower **at = &w->followers, *f; (f = *at) != NULL; at = &f->next) {
        if (f->to.front != w->asker.front || f->to.ticket != w->asker.ticket)
            continue;
        *at = f->next;
        free(f);
        return;
    }
}

static int
follow(struct warden *w, const char *id, struct err *err)
{
    struct event_follower *f = calloc(1, sizeof(*f));
    struct follow_count n = { .all = 0 };

    if (f == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    for (const struct event_follower *o = w->followers; o != NULL; o = o->next)
        follow_counts(w, &o->who, &o->proof, &n);
    if (follow_may(w, &n, "events.too-many", err) < 0) {
        free(f);
        return -1;
    }
    f->to = w->asker;
    f->proof = w->proof;
    f->who = w->who;
    memcpy(f->id, id, strlen(id) + 1);
    f->next = w->followers;
    w->followers = f;
    follow_look(w);
    return 0;
}

int
asked_events(struct warden *w, const struct ask_events *m)
{
    struct since s = { .w = w };
    char id[EDGE_ID + 1] = "";
    struct err err = ERR_INIT;
    int n = -1;

    if (m->id[0] == '\0' || whose_record(w, m->id, id, &err) == 0)
        n = state_events(w->state, id, who_owner(&w->who), m->limit, tell_since, &s, &err);
    if (n < 0)
        answer_no(w, w->asker, &err);
    else
        answer_end(w, w->asker, (uint32_t)n, false);
    return 0;
}

int
asked_follow(struct warden *w, const struct ask_follow *m)
{
    struct since s = { .w = w, .after = m->after };
    char id[EDGE_ID + 1] = "";
    struct err err = ERR_INIT;

    if ((m->id[0] != '\0' && whose_record(w, m->id, id, &err) < 0) || follow(w, id, &err) < 0 ||
        (m->limit > 0 && state_events(w->state, id, who_owner(&w->who), m->limit, tell_since, &s, &err) < 0)) {
        watch_unfollow(w);
        answer_no(w, w->asker, &err);
    } else {
        ANSWER(w, w->asker, EDGE_FOLLOWING);
    }
    return 0;
}

void
watch_front_lost(struct warden *w, uint32_t front)
{
    for (struct event_follower **at = &w->followers, *f; (f = *at) != NULL;) {
        if (f->to.front != front) {
            at = &f->next;
            continue;
        }
        *at = f->next;
        free(f);
    }
    for (struct usage_asked **at = &w->usage_asked, *a; (a = *at) != NULL;) {
        if (a->to.front != front) {
            at = &a->next;
            continue;
        }
        *at = a->next;
        free(a);
    }
}
