/* warden/pool.c: sandboxes that are made ahead, each complete, with an interpreter that waits in it
 *
 * What waits is nobody's: it is in memory only, in no list and no record, counts against nobody's share, and has no
 * owner, name, label or transcript before it is taken. It is taken once, by a request for the same policy and language,
 * becomes that caller's sandbox in every respect (boxes.c), and ends as every other one does. A request that finds none
 * makes its own, and so does one whose keeper does not give what it has.
 *
 * How many wait is a question of demand: none before the first request of a kind, then one, one more with each request
 * that found none, and fewer as time passes without. A policy that a caller wrote is a kind of its own for each caller,
 * and so is each agent's: nobody learns that others run something from an answer's speed, or from when a process began.
 */
#include "warden/pool.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "warden/warden.h"

#define KEYS_MAX   64           /* kinds that are known at once */
#define AT_ONCE    2            /* are made */
#define FILL_MS    5            /* after a request: it has the processors first */
#define CALL_MS    50           /* so too a call, which runs as long; one that is over sooner is waited for no longer */
#define BUSY_MS    1000         /* one that is due, and has to wait for a place, is looked at again */
#define FEWER_MS   10000        /* without a request that found none: one less */
#define SLOW_MS    1000         /* one that takes longer to be made holds up no other one */
#define PARK_MS    20000        /* to be made, beyond what its keeper gives what it waits for (pool_on_step()) */
#define TAKE_MS    2000         /* to be given */
#define HOLD_MS    1000UL       /* after one that could not be made, and twice that after each further one in turn */
#define HOLD_MAX   300000UL
#define GUESS      (16UL * 1024 * 1024)     /* bytes of one whose like has never been */

struct pool_key {
    struct pool_key *next;
    char language[LANGUAGE_TEXT_MAX + 1], owner[EDGE_ID + 1];
    char *policy;
    uint8_t bounds;
    size_t want;
    uint64_t asked_ms, missed_ms;       /* the last request; the last that found none, or change of @want */
    uint64_t fill_ms;                   /* none is made before, */
    uint64_t call_ms;                   /* nor before that: the call that took one has the processors first */
    unsigned failed;                    /* in turn */
    uint64_t memory;                    /* of the last one; 0 not known */
};

/* --- what there is ------------------------------------------------------------------------------------------------ */

static bool
ends(const struct box *b)
{
    return b->r.state == BOX_STOPPING;
}

void
pool_enter(struct box *b)
{
    b->pool_next = b->w->pool.boxes;
    b->w->pool.boxes = b;
}

void
pool_leave(struct box *b)
{
    struct box **at = &b->w->pool.boxes;

    while (*at != NULL && *at != b)
        at = &(*at)->pool_next;
    if (*at != NULL)
        *at = b->pool_next;
}

size_t
pool_count(const struct warden *w)
{
    size_t n = 0;

    for (const struct box *b = w->pool.boxes; b != NULL; b = b->pool_next)
        n += b->ahead;
    return n;
}

/* Of @k, or of all: those that wait, or are to. */
static size_t
count(const struct warden *w, const struct pool_key *k, bool parked)
{
    size_t n = 0;

    for (const struct box *b = w->pool.boxes; b != NULL; b = b->pool_next)
        n += b->ahead && !ends(b) && (k == NULL || b->kind == k) && b->parked == parked;
    return n;
}

/* Those that wait, and those that are being made. */
static size_t
have(const struct warden *w, const struct pool_key *k)
{
    return count(w, k, true) + count(w, k, false);
}

static uint64_t
waits_ms(const struct box *b)
{
    return clock_since(clock_us(), b->asked_for_us) / 1000;
}

/* Those that are being made for long. */
static size_t
slow(const struct warden *w)
{
    size_t n = 0;

    for (const struct box *b = w->pool.boxes; b != NULL; b = b->pool_next)
        n += b->ahead && !ends(b) && !b->parked && waits_ms(b) >= SLOW_MS;
    return n;
}

static uint64_t
guess(const struct pool_key *k)
{
    return k != NULL && k->memory > 0 ? k->memory : GUESS;
}

static uint64_t
memory(const struct warden *w)
{
    uint64_t all = 0;

    for (const struct box *b = w->pool.boxes; b != NULL; b = b->pool_next)
        all += !b->ahead ? 0 : b->parked && b->holds > 0 ? b->holds : guess(b->kind);
    return all;
}

static void
end(struct box *b, const char *why)
{
    if (!ends(b))
        box_stop(b, why);
}

static void
forget(struct warden *w, struct pool_key *k, const char *why)
{
    struct pool_key **at = &w->pool.keys;

    for (struct box *b = w->pool.boxes; b != NULL; b = b->pool_next) {
        if (!b->ahead || b->kind != k)
            continue;
        end(b, why);
        b->kind = NULL;
    }
    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    w->pool.n_keys--;
    free(k->policy);
    free(k);
}

void
pool_drain(struct warden *w, const char *why)
{
    while (w->pool.keys != NULL)
        forget(w, w->pool.keys, why);
}

void
pool_owner_gone(struct warden *w, const char *owner)
{
    for (struct pool_key *k = w->pool.keys, *next; k != NULL; k = next) {
        next = k->next;
        if (strcmp(k->owner, owner) == 0 && owner[0] != '\0')
            forget(w, k, "its caller's credential is none any more");
    }
}

static uint64_t
asked(const struct box *b)
{
    return b->kind != NULL ? b->kind->asked_ms : 0;
}

/* Those of a kind that is of that owner. */
static size_t
places(const struct warden *w, const char *owner)
{
    size_t n = 0;

    for (const struct box *b = w->pool.boxes; b != NULL; b = b->pool_next)
        n += b->ahead && !ends(b) && b->kind != NULL && strcmp(b->kind->owner, owner) == 0;
    return n;
}

/* One of the owner who has most of them ends, with one more of @mine: the one whose like was asked for the longest ago.
 * So nobody's kinds take every place of others. NULL: for a client's. Whether one ends. */
static bool
make_room(struct warden *w, const struct pool_key *mine)
{
    size_t own = mine != NULL ? places(w, mine->owner) + 1 : 0, most = 0;
    struct box *oldest = NULL;

    for (struct box *b = w->pool.boxes; b != NULL; b = b->pool_next) {
        if (!b->ahead || ends(b) || b->kind == NULL)
            continue;
        size_t n = mine != NULL && strcmp(mine->owner, b->kind->owner) == 0 ? own : places(w, b->kind->owner);
        if (n > most || (n == most && asked(b) < asked(oldest))) {
            oldest = b;
            most = n;
        }
    }
    if (oldest == NULL || (most <= own && mine != NULL && asked(oldest) >= mine->asked_ms))
        return false;
    end(oldest, "its place is needed");
    return true;
}

void
pool_make_room(struct warden *w)
{
    (void)make_room(w, NULL);
}

/* --- demand ------------------------------------------------------------------------------------------------------- */

/* What the daemon gives without being asked is the same for all who may see what others run: not for agents. */
static const char *
owner_of(const struct edge_box *r)
{
    return r->policy[0] != '\0' || (r->bounds & EDGE_BOUNDED) != 0 ? r->owner : "";
}

/* Of the owner who would have most, with one more of @owner's: the one that was asked for the longest ago. */
static struct pool_key *
least_needed(const struct warden *w, const char *owner)
{
    struct pool_key *oldest = NULL;
    size_t most = 0;

    for (struct pool_key *k = w->pool.keys; k != NULL; k = k->next) {
        size_t n = strcmp(k->owner, owner) == 0;
        for (const struct pool_key *o = w->pool.keys; o != NULL; o = o->next)
            n += strcmp(o->owner, k->owner) == 0;
        if (n > most || (n == most && k->asked_ms < oldest->asked_ms)) {
            oldest = k;
            most = n;
        }
    }
    return oldest;
}

static struct pool_key *
new_key(struct warden *w, const struct edge_create *c, const struct edge_box *r)
{
    struct pool_key *k = calloc(1, sizeof(*k));

    if (k == NULL || (k->policy = strdup(r->policy)) == NULL) {
        free(k);
        return NULL;
    }
    if (w->pool.n_keys >= KEYS_MAX)
        forget(w, least_needed(w, owner_of(r)), "others are asked for");
    memcpy(k->language, c->language, strlen(c->language) + 1);
    memcpy(k->owner, owner_of(r), strlen(owner_of(r)) + 1);
    k->bounds = r->bounds;
    k->missed_ms = clock_ms();
    k->next = w->pool.keys;
    w->pool.keys = k;
    w->pool.n_keys++;
    return k;
}

static struct pool_key *
key_of(const struct warden *w, const struct edge_create *c, const struct edge_box *r)
{
    struct pool_key *k = w->pool.keys;

    while (k != NULL && (k->bounds != r->bounds || strcmp(k->language, c->language) != 0 ||
                         strcmp(k->owner, owner_of(r)) != 0 || strcmp(k->policy, r->policy) != 0))
        k = k->next;
    return k;
}

static bool
is_for(const struct warden *w, const struct edge_create *c, const struct edge_box *r)
{
    return c->language[0] != '\0' && w->pool.is.max > 0 && !w->closing && r->workspace[0] == '\0' && !r->is_default &&
           c->volume[0] == '\0' && c->base[0] == '\0' && (c->flags & EDGE_REATTACH) == 0;
}

struct box *
pool_find(const struct warden *w, const struct edge_create *c, const struct edge_box *r)
{
    const struct pool_key *k = is_for(w, c, r) ? key_of(w, c, r) : NULL;
    struct box *b = k != NULL ? w->pool.boxes : NULL;

    while (b != NULL && (!b->ahead || b->kind != k || !b->parked || ends(b)))
        b = b->pool_next;
    return b;
}

void
pool_asked(struct warden *w, const struct edge_create *c, const struct edge_box *r, bool found)
{
    uint64_t now = clock_ms();
    struct pool_key *k;

    if (!is_for(w, c, r) || ((k = key_of(w, c, r)) == NULL && (k = new_key(w, c, r)) == NULL))
        return;
    k->asked_ms = now;
    if (k->fill_ms < now + FILL_MS)
        k->fill_ms = now + FILL_MS;
    /* of several in turn only the first puts it off */
    if (found && (c->flags & EDGE_ONCE) != 0 && have(w, k) + 1 >= k->want)
        k->call_ms = now + CALL_MS;
    if (!found) {
        k->want += k->want < w->pool.is.max;
        k->missed_ms = now;
    }
    ++*(found ? &w->pool.taken : &w->pool.missed);
}

void
pool_call_over(struct warden *w)
{
    uint64_t soon = clock_ms() + FILL_MS;

    for (struct pool_key *k = w->pool.keys; k != NULL; k = k->next)
        if (k->call_ms > soon)
            k->call_ms = soon;
}

/* --- making ------------------------------------------------------------------------------------------------------- */

static void
hold(struct pool_key *k)
{
    uint64_t ms = k->failed < 10 ? HOLD_MS << k->failed : HOLD_MAX;

    k->failed++;
    k->fill_ms = clock_ms() + (ms < HOLD_MAX ? ms : HOLD_MAX);
}

void
pool_gone(struct box *b, const struct err *why)
{
    struct pool_key *k = b->kind;

    if (k == NULL || ends(b))
        return;
    if (why != NULL)
        log_say(LEVEL_INFO, "no sandbox is made ahead for %s: %s [%s]", k->language, why->msg, why->code);
    b->w->pool.lost += b->parked;
    hold(k);
}

/* How long that takes is a question of its engine: a machine starts in seconds of a processor. All of it together is
 * bounded as for every keeper that makes a sandbox (health.c). */
int
pool_on_step(struct warden *w, const struct keep_step *next)
{
    struct box *b = w->heard;

    if (!b->ahead || !b->asked.make || b->parked)
        return -1;
    b->step_ms = waits_ms(b) + next->seconds * 1000UL;
    return 0;
}

int
pool_on_parked(struct warden *w, const struct edge_count *held)
{
    struct box *b = w->heard;

    if (!b->ahead || !b->asked.make || b->parked)
        return -1;
    if (ends(b))
        return 0;
    b->parked = true;
    b->holds = held->count;
    histogram_add(&w->pool.fill, clock_us() - b->asked_for_us);
    if (b->kind == NULL)
        return 0;
    b->kind->memory = held->count;
    b->kind->failed = 0;
    return 0;
}

static uint64_t
memory_max(const struct warden *w)
{
    return (uint64_t)w->pool.is.memory * 1024 * 1024;
}

static bool
has_room(const struct warden *w, const struct pool_key *k)
{
    return pool_count(w) < w->pool.is.max && memory(w) + guess(k) <= memory_max(w);
}

static bool
is_due(const struct warden *w, const struct pool_key *k, uint64_t now)
{
    size_t n = have(w, k);

    return now >= k->fill_ms && now >= k->call_ms && n < k->want &&
           (n > 0 ? has_room(w, k) : guess(k) <= memory_max(w));
}

/* Of the owner who has fewest: so whoever asks for ever new kinds does not keep others from having one. */
static struct pool_key *
most_due(const struct warden *w, uint64_t now)
{
    struct pool_key *found = NULL;
    size_t fewest = SIZE_MAX;

    for (struct pool_key *k = w->pool.keys; k != NULL; k = k->next) {
        size_t n = is_due(w, k, now) ? places(w, k->owner) : SIZE_MAX;
        if (n < fewest) {
            found = k;
            fewest = n;
        }
    }
    return found;
}

/* Of a kind of which there is none, one takes the place of another one; meanwhile nobody else takes that. */
static void
make_due(struct warden *w, uint64_t now)
{
    struct pool_key *k;

    while (!w->closing && count(w, NULL, false) - slow(w) < AT_ONCE && box_count(w) + pool_count(w) < w->max_boxes &&
           (k = most_due(w, now)) != NULL) {
        if (!has_room(w, k)) {
            if (pool_count(w) > count(w, NULL, true) + slow(w) || make_room(w, k))
                return;
            k->fill_ms = now + BUSY_MS;
        } else if (box_ahead(w, k, k->policy, k->bounds) < 0) {
            hold(k);
        }
    }
}

/* Demand falls. */
static bool
is_over(const struct warden *w, struct pool_key *k, uint64_t now)
{
    if (clock_since(now, k->asked_ms) >= (uint64_t)w->pool.is.idle_s * 1000)
        return true;
    if (k->want <= 1 || clock_since(now, k->missed_ms) < FEWER_MS)
        return false;
    k->want--;
    k->missed_ms = now;
    for (struct box *b = w->pool.boxes; b != NULL && count(w, k, true) > k->want; b = b->pool_next)
        if (b->ahead && b->kind == k && b->parked)
            end(b, "fewer are asked for");
    return false;
}

/* Who was told something, and does not answer, is ended: then a request makes its own. */
static void
look_at(struct box *b, uint64_t now)
{
    bool late = b->taken_ms > 0 ? clock_since(now, b->taken_ms) >= TAKE_MS
                                : b->ahead && !b->parked && !ends(b) && waits_ms(b) >= b->step_ms + PARK_MS;

    if (!late)
        return;
    b->taken_ms = b->step_ms = 0;
    b->asked_for_us = clock_us();
    (void)launcher_say(b->w, EDGE_SHOOT, b->r.id);
}

/* The next thing that is due to @k. */
static uint64_t
due(const struct warden *w, const struct pool_key *k)
{
    uint64_t over = k->asked_ms + (uint64_t)w->pool.is.idle_s * 1000, fewer = k->missed_ms + FEWER_MS;
    uint64_t fill = k->fill_ms > k->call_ms ? k->fill_ms : k->call_ms;

    if (k->want > 1 && fewer < over)
        over = fewer;
    return have(w, k) < k->want && fill < over ? fill : over;
}

static void
wait_for_next(struct warden *w, uint64_t now)
{
    uint64_t next = 0;

    for (const struct pool_key *k = w->pool.keys; k != NULL; k = k->next) {
        uint64_t at = due(w, k);
        at = at > now ? at : now + BUSY_MS;
        next = next == 0 || at < next ? at : next;
    }
    loop_at(&w->loop, &w->pool.next, next);
}

/* Those that are somebody's, and whose keeper has said so. */
static void
leave(struct warden *w)
{
    for (struct box *b = w->pool.boxes, *next; b != NULL; b = next) {
        next = b->pool_next;
        if (!b->ahead && b->taken_ms == 0)
            pool_leave(b);
    }
}

void
pool_turn(struct warden *w)
{
    uint64_t now = clock_ms();

    for (struct box *b = w->pool.boxes; b != NULL; b = b->pool_next)
        look_at(b, now);
    leave(w);
    for (struct pool_key *k = w->pool.keys, *next; k != NULL; k = next) {
        next = k->next;
        if (is_over(w, k, now))
            forget(w, k, "it was not asked for");
    }
    make_due(w, now);
    wait_for_next(w, now);
}

const char *
pool_language(const struct box *b)
{
    return b->kind != NULL ? b->kind->language : "";
}

int
pool_on_settings(struct warden *w, const struct launch_pool *m)
{
    w->pool.is = *m;
    pool_drain(w, "the configuration was read again");
    return 0;
}

void
pool_put(const struct warden *w, struct buf *b)
{
    stats_put_value(b, STAT_POOL, "parked", "", count(w, NULL, true));
    stats_put_value(b, STAT_POOL, "starting", "", count(w, NULL, false));
    stats_put_value(b, STAT_POOL_ASKED, "hit", "", w->pool.taken);
    stats_put_value(b, STAT_POOL_ASKED, "miss", "", w->pool.missed);
    stats_put_value(b, STAT_POOL_LOST, "", "", w->pool.lost);
    stats_put_histogram(b, STAT_POOL_SECONDS, "", "", &w->pool.fill);
}
