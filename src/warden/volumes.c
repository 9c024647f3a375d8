/* warden/volumes.c: durable workspaces
 *
 * A volume is a folder that one sandbox at a time has as its workspace and that stays when the sandbox goes. Here is
 * what there is and whose; folders are made, bound and removed by keepers, for this process opens no file. A volume is
 * on record before its folder is made and until nothing of that is left, so that whatever dies in between, the next
 * warden finishes it.
 *
 * One that none has had for its retention is removed. How long that is counts on the monotonic clock, so that setting
 * the host's clock removes nothing; only the time between two wardens is told by the wall clock, and is never less
 * than none.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "proto/edge_gate.h"
#include "warden/approvals.h"
#include "warden/record.h"
#include "warden/volumes.h"

#define TURN_MS       250
#define SAVE_MS       60000         /* and so long a removal that failed is not tried again */

int
volume_put(struct warden *w, const struct volume *v, struct err *err)
{
    return state_put_volume(w->state, &v->r, v->policy != NULL ? v->policy : "", v->removed, err);
}

static void
volume_saved(struct warden *w, const struct volume *v)
{
    struct err err = ERR_INIT;

    if (volume_put(w, v, &err) < 0)
        log_say(LEVEL_ERROR, "%s [%s]", err.msg, err.code);
}

static void
save_all(struct warden *w)
{
    for (size_t i = 0; i < w->volumes->n; i++)
        volume_saved(w, &w->volumes->v[i]);
    (void)state_volume_clock_set(w->state, time_steady(w), NULL);
    w->volumes->save_ms = clock_ms();
}

/* --- what there is ------------------------------------------------------------------------------------------------ */

static void
load_one(void *ctx, const struct edge_volume *r, const char *policy, bool removed)
{
    struct volumes *all = ctx;
    char *name = strdup(r->name), *text = strdup(policy);

    if (name == NULL || text == NULL || all->n == VOLUMES_MAX) {
        free(name);
        free(text);
        return;
    }
    all->v[all->n] = (struct volume){ .r = *r, .policy = text, .removed = removed };
    all->v[all->n++].r.name = name;
}

int
volumes_load(struct warden *w, struct err *err)
{
    struct volumes *all = w->volumes = calloc(1, sizeof(*all));
    uint64_t now = time_steady(w), at;

    if (all == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (state_volumes(w->state, load_one, all, err) < 0 || state_volume_clock(w->state, &at, err) < 0)
        return -1;
    for (size_t i = 0; i < all->n && at > 0 && now > at; i++)
        all->v[i].r.unused_ms += now - at;
    all->turn_ms = all->save_ms = clock_ms();
    if (all->n > 0)
        save_all(w);
    return 0;
}

struct volume *
volume_of_id(const struct warden *w, const char *id)
{
    for (size_t i = 0; i < w->volumes->n; i++)
        if (strcmp(w->volumes->v[i].r.id, id) == 0)
            return &w->volumes->v[i];
    return NULL;
}

/* Whose workspace it is, or with @probes is to be: a probe has none yet. */
static const struct box *
user_of(const struct warden *w, const char *id, bool probes)
{
    for (const struct box *b = w->boxes; b != NULL; b = b->next)
        if (!b->sweeps && (probes || !b->probe) && strcmp(b->r.volume, id) == 0)
            return b;
    return NULL;
}

int
volume_is_free(const struct warden *w, const char *id, const struct box *b, struct err *err)
{
    const struct volume *v = id[0] != '\0' ? volume_of_id(w, id) : NULL;
    const struct box *user = id[0] != '\0' ? user_of(w, id, false) : NULL;

    if (id[0] == '\0')
        return 0;
    if (v == NULL || v->removed) {
        err_set(err, ERR_DENIED, "volume.gone", "its volume was removed");
        return err_hint(err, "make another sandbox; its files went with the volume");
    }
    if (user == NULL || user == b)
        return 0;
    err_set(err, ERR_DENIED, "volume.busy", "the sandbox %s has this volume", user->r.id);
    return err_hint(err, "one sandbox at a time has a volume: end that one first, or take it again (reattach)");
}

/* --- making ------------------------------------------------------------------------------------------------------- */

static int
room_for_one(const struct warden *w, const char *owner, struct err *err)
{
    size_t own = 0;

    for (size_t i = 0; i < w->volumes->n; i++)
        own += strcmp(w->volumes->v[i].r.owner, owner) == 0 ? 1 : 0;
    if (w->volumes->n < VOLUMES_MAX && (owner[0] == '\0' || own < VOLUMES_EACH))
        return 0;
    err_set(err, ERR_LIMIT, "volume.too-many", "this caller has %zu volumes; the limit is %d, and %d of all",
            own, VOLUMES_EACH, VOLUMES_MAX);
    return err_hint(err, "DELETE /v1/volumes/{id} removes one");
}

struct volume *
volume_of_name(const struct warden *w, const char *owner, enum volume_kind kind, const char *name)
{
    for (size_t i = 0; i < w->volumes->n; i++) {
        struct volume *v = &w->volumes->v[i];
        if (!v->removed && v->r.kind == kind && strcmp(v->r.owner, owner) == 0 && strcmp(v->r.name, name) == 0)
            return v;
    }
    return NULL;
}

static void
volume_forget(struct warden *w, struct volume *v)
{
    struct volumes *all = w->volumes;

    (void)state_forget_volume(w->state, v->r.id, NULL);
    free((void *)(uintptr_t)v->r.name);
    free(v->policy);
    *v = all->v[--all->n];
}

struct volume *
volume_new(struct warden *w, const struct edge_volume *r, const char *policy, bool removed, struct err *err)
{
    struct volumes *all = w->volumes;
    struct volume *v = &all->v[all->n];

    if (room_for_one(w, r->owner, err) < 0)
        return NULL;
    *v = (struct volume){ .r = *r, .removed = removed };
    v->r.name = strdup(r->name);
    v->policy = policy != NULL ? strdup(policy) : NULL;
    all->n++;
    if (v->r.name == NULL || (policy != NULL && v->policy == NULL))
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
    else if (volume_put(w, v, err) == 0) {
        if (all->n == 1)
            save_all(w);        /* from here on there is something to count */
        return v;
    }
    volume_forget(w, v);
    return NULL;
}

int
volume_take(struct warden *w, const char *owner, const char *name, uint32_t keep_s, char id[EDGE_ID + 1],
            bool *made, struct err *err)
{
    struct volume *v = volume_of_name(w, owner, VOLUME_WORKSPACE, name);
    struct edge_volume r = { .created_ms = clock_wall_ms(), .name = name,
                             .keep_s = keep_s != EDGE_KEEP_SAME ? keep_s : EDGE_KEEP_USUAL };

    *made = v == NULL;
    memcpy(r.owner, owner, sizeof(r.owner));
    if (v == NULL && new_id(r.id) < 0)
        return err_set(err, ERR_SYSTEM, "memory", "no random numbers");
    if (v == NULL && (v = volume_new(w, &r, NULL, false, err)) == NULL)
        return -1;
    memcpy(id, v->r.id, sizeof(v->r.id));
    return 0;
}

void
volume_not_taken(struct warden *w, const char *id)
{
    struct volume *v = volume_of_id(w, id);

    if (v != NULL)
        volume_forget(w, v);
}

void
volume_taken(struct box *b)
{
    struct volume *v = b->r.volume[0] != '\0' ? volume_of_id(b->w, b->r.volume) : NULL;

    if (v == NULL || v->removed)
        return;
    if (b->keep_s != EDGE_KEEP_SAME)
        v->r.keep_s = b->keep_s;
    v->r.unused_ms = 0;
    volume_saved(b->w, v);
}

/* --- removing ----------------------------------------------------------------------------------------------------- */

void
volume_say_sweep(struct box *b)
{
    struct edge_only_id m;

    memcpy(m.id, b->r.volume, sizeof(m.id));
    b->asked.sweep = true;
    box_say(b, EDGE_SWEEP, EDGE_SWEEP_SHAPE(), &m);
}

int
volume_on_swept(struct warden *w, const struct nothing *m)
{
    struct volume *v = volume_of_id(w, w->heard->r.volume);

    (void)m;
    if (!w->heard->asked.sweep)
        return -1;
    if (v != NULL && v->removed && !v->making) {
        warden_note_id(w, "", v->r.kind == VOLUME_WORKSPACE ? "volume" : "template", "%s was removed", v->r.id);
        volume_forget(w, v);
    }
    w->heard->stop_ms = clock_ms();
    return 0;
}

static bool
sweeping(const struct warden *w)
{
    for (const struct box *b = w->boxes; b != NULL; b = b->next)
        if (b->sweeps)
            return true;
    return false;
}

/* One after the other: it is the disk that takes its time. The kill switch starts nothing. */
static void
sweep_one(struct warden *w, uint64_t now)
{
    if (!w->settled || w->closing || w->stop_all.ticket != 0 || sweeping(w))
        return;
    for (size_t i = 0; i < w->volumes->n; i++) {
        struct volume *v = &w->volumes->v[i];
        if (!v->removed || v->making || now < v->again_ms || user_of(w, v->r.id, true) != NULL ||
            template_is_held(w, v->r.id))
            continue;
        v->again_ms = now + SAVE_MS;
        (void)box_sweeper(w, v->r.id);
        return;
    }
}

/* --- time --------------------------------------------------------------------------------------------------------- */

static void
pass(struct warden *w, struct volume *v, uint64_t ms)
{
    if (v->removed)
        return;
    v->r.unused_ms = user_of(w, v->r.id, true) != NULL || template_is_wanted(w, v->r.id) ? 0 : v->r.unused_ms + ms;
    if (!w->settled || v->r.keep_s == 0 || v->r.unused_ms < (uint64_t)v->r.keep_s * 1000)
        return;
    v->removed = true;
    if (v->r.kind == VOLUME_WORKSPACE)
        warden_note_id(w, "", "volume", "%s was not used for %u s", v->r.id, v->r.keep_s);
    volume_saved(w, v);
}

static uint64_t
until_next(const struct warden *w)
{
    uint64_t wait = SAVE_MS;

    for (size_t i = 0; i < w->volumes->n; i++) {
        const struct volume *v = &w->volumes->v[i];
        uint64_t keep_ms = (uint64_t)v->r.keep_s * 1000;
        if (v->removed)
            wait = wait < 1000 ? wait : 1000;
        else if (v->r.keep_s > 0 && template_is_wanted(w, v->r.id))
            ;       /* a turn comes when that is over */
        else if (v->r.keep_s > 0)
            wait = keep_ms <= v->r.unused_ms ? TURN_MS
                   : keep_ms - v->r.unused_ms < wait ? keep_ms - v->r.unused_ms : wait;
    }
    return wait < TURN_MS ? TURN_MS : wait;
}

void
volumes_turn(struct warden *w)
{
    struct volumes *all = w->volumes;
    uint64_t now = clock_ms(), ms = clock_since(now, all->turn_ms);

    if (all->n == 0) {
        loop_at(&w->loop, &all->next, 0);
        return;
    }
    for (size_t i = 0; i < all->n && ms >= TURN_MS; i++)
        pass(w, &all->v[i], ms);
    if (ms >= TURN_MS)
        all->turn_ms = now;
    if (clock_since(now, all->save_ms) >= SAVE_MS)
        save_all(w);
    sweep_one(w, now);
    loop_at(&w->loop, &all->next, now + until_next(w));
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

static void
tell(struct warden *w, const struct volume *v)
{
    const struct box *user = user_of(w, v->r.id, false);
    struct edge_volume r = v->r;

    if (user != NULL)
        memcpy(r.box, user->r.id, sizeof(r.box));
    ANSWER(w, w->asker, EDGE_VOLUME, .volume = r);
}

bool
volume_is_reached(const struct warden *w, const struct volume *v)
{
    const char *owner = who_owner(&w->who);

    return owner == NULL || strcmp(owner, v->r.owner) == 0;
}

void
volumes_tell_all(struct warden *w, enum volume_kind kind)
{
    uint32_t n = 0;

    for (size_t i = 0; i < w->volumes->n; i++) {
        const struct volume *v = &w->volumes->v[i];
        if (v->removed || v->r.kind != kind || !volume_is_reached(w, v))
            continue;
        tell(w, v);
        n++;
    }
    answer_end(w, w->asker, n, false);
}

const char *
volume_name(const struct warden *w, const char *id)
{
    const struct volume *v = volume_of_id(w, id);

    return w->who.role == EDGE_AUDITOR || v == NULL || v->removed || v->r.kind != VOLUME_WORKSPACE ||
           !volume_is_reached(w, v) ? NULL : v->r.name;
}

int
volume_remove(struct warden *w, struct volume *v, struct err *err)
{
    v->removed = true;
    if (volume_put(w, v, err) < 0) {
        v->removed = false;
        return -1;
    }
    warden_note_id(w, "", v->r.kind == VOLUME_WORKSPACE ? "volume" : "template", "%s is to be removed", v->r.id);
    tell(w, v);
    sweep_one(w, clock_ms());
    return 0;
}

static int
take_away(struct warden *w, const char *id, struct err *err)
{
    struct volume *v = volume_of_id(w, id);

    if (w->who.role == EDGE_AUDITOR)
        return who_may_not(w->who.role, err);
    if (v == NULL || v->removed || v->r.kind != VOLUME_WORKSPACE || !volume_is_reached(w, v)) {
        if (v != NULL && !volume_is_reached(w, v))
            who_refused(w, "asked for the volume %s", id);
        err_set(err, ERR_NOT_FOUND, "volume.not-found", "there is no volume \"%s\"", id);
        return err_hint(err, "GET /v1/volumes lists them");
    }
    if (volume_is_free(w, id, NULL, err) < 0)
        return -1;
    if (user_of(w, id, true) != NULL) {
        err_set(err, ERR_DENIED, "volume.busy", "a sandbox is being made that is to have this volume");
        return err_hint(err, "try again when that was answered");
    }
    return volume_remove(w, v, err);
}

int
asked_volumes(struct warden *w, const struct ask_id *m)
{
    struct err err = ERR_INIT;

    if (m->id[0] == '\0')
        volumes_tell_all(w, VOLUME_WORKSPACE);
    else if (!record_asked(w, NULL, m->id, NULL) && take_away(w, m->id, &err) < 0)
        answer_no(w, w->asker, &err);
    return 0;
}

/* A volume, and all that is in it. Of one that is another's, or none, its handler says so. */
int
deed_volumes(struct warden *w, const struct ask_id *m, struct deed *out, struct err *err)
{
    const char *name = volume_name(w, m->id);

    if (name == NULL)
        return 0;
    return deed_make(w, "volume_remove", "", json_pack("{s:s, s:s}", "volume", m->id, "name", name), "", 0, out,
                     err) < 0 ? -1 : 1;
}
