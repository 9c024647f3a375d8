/* warden/ends.c: what ends with a credential
 *
 * Each question is judged by what its credential opens then (who.c). What an answered one left going on, a command
 * that somebody waits for, an upload, a watch, output that is followed, is ended here when its credential opens nothing
 * any more. It is the keepers that end it, who were told whose each is: a front that was taken over cannot keep it.
 * Events, the record and approvals that are followed are follow.c's; ports are looked at by ports.c. What a sandbox has
 * without anybody who waits for it, the sandbox itself and its commands in the background, stays for operators.
 */
#include <string.h>

#include "base/clock.h"
#include "warden/approvals.h"

#define LATE_MS 60000       /* the host's clock may be set */

static void
tell(struct box *b, const char caller[EDGE_ID + 1])
{
    struct edge_only_id m;

    memcpy(m.id, caller, sizeof(m.id));
    if (b->ops > 0)
        box_say(b, EDGE_CALLER_ENDED, EDGE_CALLER_ENDED_SHAPE(), &m);
}

void
ends_key(struct box *b)
{
    struct who key = { .role = EDGE_KEY };

    memcpy(key.id, b->r.id, sizeof(key.id));
    memcpy(key.box, b->r.id, sizeof(key.box));
    tell(b, key.id);
    approvals_caller_ended(b->w, &key);
}

void
ends_session(struct box *b, const char id[EDGE_ID + 1])
{
    epoch_next(&b->w->epochs->credentials);
    tell(b, id);
}

void
ends_token(struct warden *w, const struct edge_token *gone)
{
    struct who who = { .role = gone->role };

    memcpy(who.id, gone->id, sizeof(who.id));
    follow_look(w);
    pool_owner_gone(w, gone->id);
    approvals_caller_ended(w, &who);
    if (gone->role == EDGE_OPERATOR)
        lent_keys_end(w);
    for (struct box *b = w->boxes; b != NULL; b = b->next) {
        tell(b, gone->id);
        if (strcmp(b->r.owner, gone->id) == 0)
            ends_key(b);
    }
}

static void
on_ends(struct timer *timer)
{
    struct warden *w = timer->owner;
    uint64_t now = time_now(w);
    bool some = false;

    for (size_t i = 0; i < w->n_tokens; i++) {
        struct token *t = &w->tokens[i];
        bool over = t->r.expires_ms > 0 && now >= t->r.expires_ms;
        if (over && !t->over) {
            ends_token(w, &t->r);
            some = true;
        }
        t->over = over;
    }
    if (some) {
        epoch_next(&w->epochs->credentials);    /* a front goes by clocks of its own */
        time_seen(w, true);
    }
    ends_next(w);
}

void
ends_next(struct warden *w)
{
    uint64_t now = time_now(w), next = LATE_MS;     /* the time is put on record now and then */

    w->ends.due = on_ends;
    w->ends.owner = w;
    for (size_t i = 0; i < w->n_tokens; i++) {
        const struct token *t = &w->tokens[i];
        uint64_t left = t->r.expires_ms > now ? t->r.expires_ms - now : 0;
        if (t->r.expires_ms == 0 || t->over)
            continue;
        next = left < next ? left : next;
    }
    loop_at(&w->loop, &w->ends, clock_ms() + next);
}
