/* warden/templates.c: templates: files of one sandbox that others begin with
 *
 * A sandbox's keeper copies its files (keeper/keeper_snapshot.c) into a folder that is kept as those of volumes are
 * (volumes.c): on record as removed until all of it is there, so that a copy that was cut off is swept, by this warden
 * or by the next one. It has no files of the new sandbox's own: id, key, ports, secrets and network are each one's, and
 * policies are judged anew by whoever makes it.
 *
 * One that was made for forks has no name, and goes with the last of them; or when none was made within a minute.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "proto/edge_gate.h"
#include "warden/approvals.h"
#include "warden/record.h"
#include "warden/volumes.h"

#define FORK_KEEP_S 60
#define USED_KEEP_S 1

static bool
is_template(const struct volume *v)
{
    return !v->removed && v->r.kind != VOLUME_WORKSPACE;
}

static bool
begins(const struct box *b)
{
    return b->r.state == BOX_INITIALIZING || (b->r.state == BOX_RECOVERING && !recovery_waits(b));
}

bool
template_is_read(const struct warden *w, const char *id)
{
    for (const struct box *b = w->boxes; b != NULL; b = b->next)
        if (begins(b) && strcmp(b->r.base, id) == 0)
            return true;
    return false;
}

bool
template_is_held(const struct warden *w, const char *id)
{
    for (const struct box *b = w->boxes; b != NULL; b = b->next)
        if ((begins(b) || b->edge.fd >= 0) && strcmp(b->r.base, id) == 0)
            return true;
    return false;
}

bool
template_is_wanted(const struct warden *w, const char *id)
{
    for (const struct box *b = w->boxes; b != NULL; b = b->next)
        if (strcmp(b->r.base, id) == 0)
            return true;
    return false;
}

/* --- finding one -------------------------------------------------------------------------------------------------- */

/* Whether its name may mean @v to who reaches others' too: an agent that takes the name of a template that its owner
 * had, or that somebody mistypes, puts its own files and policy in that one's place. */
static bool
is_trusted(const struct warden *w, const struct volume *v)
{
    const struct token *t = token_of(w, v->r.owner);

    return v->r.owner[0] == '\0' || (t != NULL && t->r.role == EDGE_OPERATOR);
}

/* That of another one's who is no agent, if there is one alone. */
static struct volume *
find_others(const struct warden *w, const char *name)
{
    struct volume *found = NULL;

    for (size_t i = 0; i < w->volumes->n; i++) {
        struct volume *v = &w->volumes->v[i];
        if (v->removed || v->r.kind != VOLUME_TEMPLATE || strcmp(v->r.name, name) != 0 || !is_trusted(w, v))
            continue;
        if (found != NULL)
            return NULL;
        found = v;
    }
    return found;
}

/* What the caller may use of that id, or of that name, its own first. */
static struct volume *
find(const struct warden *w, const char *name)
{
    struct volume *v = edge_is_id(name) ? volume_of_id(w, name) : volume_of_name(w, w->who.id, VOLUME_TEMPLATE, name);

    if (v == NULL && who_owner(&w->who) == NULL && !edge_is_id(name))
        v = find_others(w, name);
    return v == NULL || !is_template(v) || !volume_is_reached(w, v) ? NULL : v;
}

static struct volume *
found(const struct warden *w, const char *name, struct err *err)
{
    struct volume *v = find(w, name);

    if (v == NULL) {
        err_set(err, ERR_NOT_FOUND, "template.not-found", "there is no template \"%s\"", name);
        err_hint(err, "GET /v1/templates lists them");
    }
    return v;
}

const char *
template_policy(const struct warden *w, const char *name)
{
    const struct volume *v = find(w, name);

    return v == NULL ? NULL : v->policy != NULL ? v->policy : "";
}

int
template_base(const struct warden *w, const char *name, struct edge_box *r, struct err *err)
{
    struct volume *v = name[0] != '\0' ? found(w, name, err) : NULL;

    if (name[0] == '\0')
        return 0;
    if (v == NULL)
        return -1;
    if (v->r.kind == VOLUME_FORK)
        v->r.keep_s = USED_KEEP_S;
    memcpy(r->base, v->r.id, sizeof(r->base));
    if (r->policy[0] == '\0' && v->policy != NULL)
        r->policy = v->policy;
    return 0;
}

int
template_is_there(const struct warden *w, const char *id, struct err *err)
{
    const struct volume *v = id[0] != '\0' ? volume_of_id(w, id) : NULL;

    if (id[0] == '\0' || (v != NULL && is_template(v)))
        return 0;
    err_set(err, ERR_DENIED, "template.gone", "the template that it began with was removed");
    return err_hint(err, "make another sandbox");
}

/* --- making one --------------------------------------------------------------------------------------------------- */

static int
make(struct warden *w, struct box *b, const char *name, struct err *err)
{
    struct edge_volume r = { .kind = name[0] != '\0' ? VOLUME_TEMPLATE : VOLUME_FORK, .created_ms = clock_wall_ms(),
                             .keep_s = name[0] != '\0' ? 0 : FORK_KEEP_S, .name = name };
    struct edge_only_id m;
    struct volume *v;

    if (b->copy.id[0] != '\0') {
        err_set(err, ERR_LIMIT, "sandbox.busy", "the files of this sandbox are being copied already");
        return err_hint(err, "try again when that is over");
    }
    memcpy(r.owner, w->who.id, sizeof(r.owner));
    if (name[0] != '\0' && volume_of_name(w, r.owner, VOLUME_TEMPLATE, name) != NULL) {
        err_set(err, ERR_DENIED, "template.exists", "there is a template \"%s\" already", name);
        return err_hint(err, "remove it, or take another name");
    }
    if (new_id(r.id) < 0)
        return err_set(err, ERR_SYSTEM, "memory", "no random numbers");
    if (name[0] == '\0')
        r.name = r.id;
    v = volume_new(w, &r, b->r.policy, true, err);
    if (v == NULL)
        return -1;
    v->making = true;
    b->copy.to = w->asker;
    memcpy(b->copy.id, r.id, sizeof(b->copy.id));
    memcpy(m.id, r.id, sizeof(m.id));
    b->asked.copies++;
    box_say(b, EDGE_SNAPSHOT, EDGE_SNAPSHOT_SHAPE(), &m);
    return 0;
}

int
asked_snapshot(struct warden *w, const struct ask_snapshot *m)
{
    struct err err = ERR_INIT;
    struct box *b = usable(w, m->id, &err);

    if (b == NULL)
        answer_no(w, w->asker, &err);
    else if (!record_asked(w, b, m->id, NULL) && make(w, b, m->name, &err) < 0)
        answer_no(w, w->asker, &err);
    return 0;
}

/* What was being made of @b's files; NULL: nothing. */
static struct volume *
made_of(struct box *b)
{
    struct volume *v = b->copy.id[0] != '\0' ? volume_of_id(b->w, b->copy.id) : NULL;

    b->copy.id[0] = '\0';
    if (v != NULL)
        v->making = false;
    return v;
}

int
template_on_copied(struct warden *w, const struct keep_copied *m)
{
    struct box *b = w->heard;
    struct err err = ERR_INIT;
    struct edge_volume r;
    struct volume *v;

    if (!keep_answers(&b->asked.copies) || (v = made_of(b)) == NULL)
        return -1;
    v->removed = false;
    v->r.bytes = m->bytes;
    box_used(b);
    if (volume_put(w, v, &err) < 0) {
        v->removed = true;
        if (b->copy.to.ticket != 0)
            answer_no(w, b->copy.to, &err);
        return 0;
    }
    warden_note(w, b, "template", "%s was made of it", v->r.id);
    r = v->r;
    r.paused_us = m->us;
    if (b->copy.to.ticket != 0)
        ANSWER(w, b->copy.to, EDGE_VOLUME, .volume = r);
    return 0;
}

int
template_on_not_copied(struct warden *w, const struct edge_why *m)
{
    struct box *b = w->heard;

    if (!keep_answers(&b->asked.copies))
        return -1;
    (void)made_of(b);       /* what there is of it is swept */
    if (b->copy.to.ticket != 0)
        answer_no_text(w, b->copy.to, &m->why);
    return 0;
}

void
template_lost(struct box *b, const struct err *why)
{
    bool waits = b->copy.id[0] != '\0' && b->copy.to.ticket != 0;

    (void)made_of(b);
    if (waits)
        answer_no(b->w, b->copy.to, why);
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

static int
take_away(struct warden *w, const char *name, struct err *err)
{
    struct volume *v;

    if (w->who.role == EDGE_AUDITOR)
        return who_may_not(w->who.role, err);
    v = found(w, name, err);
    if (v == NULL)
        return -1;
    if (template_is_read(w, v->r.id)) {
        err_set(err, ERR_DENIED, "template.busy", "a sandbox that begins with this template is being made");
        return err_hint(err, "try again when that was answered");
    }
    return volume_remove(w, v, err);
}

int
asked_templates(struct warden *w, const struct ask_box *m)
{
    struct err err = ERR_INIT;

    if (m->id[0] == '\0')
        volumes_tell_all(w, VOLUME_TEMPLATE);
    else if (!record_asked(w, NULL, m->id, NULL) && take_away(w, m->id, &err) < 0)
        answer_no(w, w->asker, &err);
    return 0;
}

int
deed_templates(struct warden *w, const struct ask_box *m, struct deed *out, struct err *err)
{
    if (m->id[0] == '\0' || w->who.role == EDGE_AUDITOR || template_policy(w, m->id) == NULL)
        return 0;
    return deed_make(w, "template_remove", "", json_pack("{s:s}", "template", m->id), "", 0, out, err) < 0 ? -1 : 1;
}
