/* warden/boxes_ahead.c: those that nobody has asked for: made ahead, and how one becomes somebody's (pool.c says
 * which one); and keepers that remove volumes */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "warden/spans.h"
#include "warden/warden.h"

/* Its record is @r's from now on. -1: no memory, and it is as it was. */
static int
becomes(struct box *b, const struct edge_box *r)
{
    const char **own[] = { &b->r.name, &b->r.labels, &b->r.policy, &b->r.facts, &b->r.detail, &b->r.workspace,
                           &b->r.print, &b->r.how };
    const char *const new[] = { r->name, r->labels, r->policy, r->facts, r->detail, r->workspace, r->print, r->how };
    char *texts[ARRAY_LEN(own)];
    struct edge_box is = *r;
    bool all = true;

    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        all = (texts[i] = strdup(new[i])) != NULL && all;
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        free(all ? (void *)(uintptr_t)*own[i] : texts[i]);
    if (!all)
        return -1;
    b->r = is;
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        *own[i] = texts[i];
    b->ahead = b->parked = b->probe = false;
    b->kind = NULL;
    return 0;
}

/* It was complete before; what failed is that it could not be said whose it is. */
static int
not_taken(struct box *b)
{
    box_unrecord(b->w, b->r.id);
    b->ahead = b->probe = true;
    box_stop(b, "it could not be given away");
    return -1;
}

int
box_take(struct box *b, const struct edge_box *r, struct asker to, unsigned how, struct err *err)
{
    struct keep_take m;
    struct warden *w = b->w;

    if (box_may(w, r, err) < 0)
        return -1;
    if (becomes(b, r) < 0)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (box_wait(b, WAIT_MADE, to, err) < 0 || state_put(w->state, &b->r, err) < 0)
        return not_taken(b);
    b->once = (how & BOX_ONCE) != 0;
    b->again = b->anew = true;
    b->taken_ms = clock_ms();
    b->asked_for_us = clock_us();
    span_asked_for(b);
    call_asked_for(b);
    b->owes = 0;
    b->waiters->keyed = (how & BOX_KEYED) != 0;
    if ((how & BOX_FLEETING) != 0)
        b->maker = to;
    memcpy(m.owner, b->r.owner, sizeof(m.owner));
    box_say(b, EDGE_TAKE, EDGE_TAKE_SHAPE(), &m);
    warden_note(w, b, "container_start", "asked for");
    return 0;
}

int
box_ahead(struct warden *w, struct pool_key *kind, const char *policy, uint8_t bounds)
{
    struct edge_box r = { .state = BOX_INITIALIZING, .bounds = bounds, .name = "", .labels = "", .policy = policy,
                          .facts = "", .detail = "", .workspace = "", .print = "", .how = "" };
    struct box *b;

    if (new_id(r.id) < 0 || (b = box_new(w, &r)) == NULL)
        return -1;
    b->probe = b->ahead = true;
    b->kind = kind;
    pool_enter(b);
    if (launcher_say(w, EDGE_SPAWN, b->r.id) == 0)
        return 0;
    box_take_out(b);
    return -1;
}

int
box_sweeper(struct warden *w, const char *volume)
{
    struct edge_box r = { .state = BOX_INITIALIZING, .name = "", .labels = "", .policy = "", .facts = "", .detail = "",
                          .workspace = "", .print = "", .how = "" };
    struct box *b;

    memcpy(r.volume, volume, sizeof(r.volume));
    if (new_id(r.id) < 0 || (b = box_new(w, &r)) == NULL)
        return -1;
    b->probe = b->sweeps = true;
    w->n_sweepers++;
    if (launcher_say(w, EDGE_SPAWN, b->r.id) == 0)
        return 0;
    box_take_out(b);
    return -1;
}
