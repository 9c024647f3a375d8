/* warden/gate_end.c: what was approved, and what waits to be, ends with what it was asked under
 *
 * Who approves looks at a question, at the rule that asks it and at what the sandbox may do. When one of these is
 * another one, nobody has approved what would be done now. So what is about one rule ends with any change of it
 * (gate_rule); what is about one sandbox with any change of its policy; and what is about no sandbox, or all of a
 * caller's, with any change of what sandboxes get without asking. While a change is under way nothing that was approved
 * before is used.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "warden/approvals.h"

static const char policy_changed[] = "the sandbox's policy was changed since: ask again";

/* Whether that is under way ("": no). */
static bool
gate_policy_changes(const struct warden *w, const char *id)
{
    const struct box *b = id[0] != '\0' ? box_of_id(w, id) : NULL;

    return b != NULL && b->change.policy != NULL;
}

static bool
same_rule(const struct warden *w, const struct approval *a)
{
    const char *now = gate_rule(w, a->r.tool, a->r.rule);

    /* "": there is no such rule (any more), and what it was to a former process is not known */
    return (now[0] != '\0' || strcmp(a->r.tool, APPROVAL_NETWORK) == 0) && strcmp(a->rule_digest, now) == 0;
}

bool
gate_stands(const struct warden *w, const struct approval *a)
{
    return same_rule(w, a) && !gate_policy_changes(w, a->r.box);
}

/* --- grants ------------------------------------------------------------------------------------------------------- */

struct ended { char id[EDGE_ID + 1], box[EDGE_ID + 1]; const char *why; };

struct ending {
    const struct warden *w;
    const char *box;                /* whose policy was changed; NULL: it is the configuration that was, */
    bool defaults;                  /* and in it what sandboxes get without asking */
    size_t n;
    struct ended g[STATE_GRANTS_MAX];
};

static const char *
why_over(const struct ending *e, const struct edge_grant *g)
{
    if (e->box != NULL)
        return strcmp(g->box, e->box) == 0 ? "its sandbox's policy was changed" : NULL;
    if (strcmp(g->rule_digest, gate_rule(e->w, g->tool, g->rule)) != 0)
        return "its rule is not what it was";
    return e->defaults && g->box[0] == '\0' ? "what sandboxes get by the daemon's settings was changed" : NULL;
}

static void
note_over(void *ctx, const struct edge_grant *g)
{
    struct ending *e = ctx;
    const char *why = why_over(e, g);

    if (why == NULL || e->n == STATE_GRANTS_MAX)
        return;
    e->g[e->n].why = why;
    memcpy(e->g[e->n].id, g->id, sizeof(g->id));
    memcpy(e->g[e->n++].box, g->box, sizeof(g->box));
}

/* 0; -1 with @err: some are still on record. */
static int
end_grants(struct warden *w, const char *box, bool defaults, struct err *err)
{
    cleanup_free struct ending *e = calloc(1, sizeof(*e));
    int r;

    if (e == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    e->w = w;
    e->box = box;
    e->defaults = defaults;
    r = state_grants(w->approvals->store, note_over, e, err) < 0 ? -1 : 0;
    for (size_t i = 0; i < e->n; i++) {
        if (state_grant_forget(w->approvals->store, e->g[i].id, err) == 0)
            warden_note_id(w, e->g[i].box, "gate_revoked", "grant %s: %s", e->g[i].id, e->g[i].why);
        else
            r = -1;
    }
    return r;
}

/* Of the sandbox @id, on record; approvals too, where that was not possible when each ended (end_approvals). */
static int
end_on_record(struct warden *w, const char *id, struct err *err)
{
    struct state_gate *store = w->approvals->store;
    int r = end_grants(w, id, false, err);

    /* those of a caller for all sandboxes stand, but for this one */
    return state_grants_void(store, id, err) < 0 || state_approvals_void(store, id, policy_changed, err) < 0 ? -1 : r;
}

static void
judged_by_these(struct warden *w)
{
    struct approvals *q = w->approvals;
    struct state_judged now;
    struct err err = ERR_INIT;

    snprintf(now.rules, sizeof(now.rules), "%s", gate_rule_digest(q->gate, ""));
    memcpy(now.defaults, q->defaults, sizeof(now.defaults));
    if (state_judged_put(q->store, &now, &err) < 0)
        log_say(LEVEL_ERROR, "%s [%s]", err.msg, err.code);
}

int
gate_grants_settle(struct box *b, struct err *err)
{
    if (b->grants_over && end_on_record(b->w, b->r.id, err) < 0)
        return -1;
    b->grants_over = false;
    return 0;
}

bool
gate_grants_count(struct warden *w, const char *id)
{
    struct box *b = id[0] != '\0' ? box_of_id(w, id) : NULL;

    if (w->approvals->grants_over) {
        if (end_grants(w, NULL, true, NULL) < 0)
            return false;
        w->approvals->grants_over = false;
        judged_by_these(w);
    }
    if (b != NULL && b->grants_over && box_put(b, NULL) < 0)    /* which settles that first */
        return false;
    return b == NULL || b->change.policy == NULL;
}

/* --- approvals ---------------------------------------------------------------------------------------------------- */

/* What waits, and what was approved and not used yet; one whose question is heard right now is used. A connection that
 * waits is the sandbox's cloche-egress's, which judges it by the new policy, and ends it where that is about it. */
static void
end_approvals(struct warden *w, const char *box, bool defaults)
{
    for (struct approval *a = w->approvals->open, *next; a != NULL; a = next) {
        const char *why = NULL;
        next = a->next;
        if (a->r.used || (box != NULL && a->net != 0))
            continue;
        if (box != NULL)
            why = strcmp(a->r.box, box) == 0 ? policy_changed : NULL;
        else if (!same_rule(w, a))
            why = "the gate's rules were changed since: ask again";
        else if (defaults && a->r.box[0] == '\0')
            why = "the daemon's settings were changed since: ask again";
        if (why != NULL)
            approval_refuse(w, a, APPROVAL_DENIED, "", "", why);
    }
}

int
gate_policy_changed(struct warden *w, const char *id, struct err *err)
{
    struct box *b = box_of_id(w, id);
    int r;

    end_approvals(w, id, false);
    passes_end(w, id);
    r = end_on_record(w, id, err);
    if (b != NULL)
        b->grants_over = r < 0;
    return r;
}

void
gate_counts(struct warden *w)
{
    struct approvals *q = w->approvals;
    struct state_judged was;
    struct err err = ERR_INIT;
    bool others;

    if (state_judged(q->store, &was, &err) < 0)
        log_say(LEVEL_ERROR, "%s [%s]", err.msg, err.code);     /* then it is another one */
    for (struct approval *a = q->open; a != NULL; a = a->next)  /* of a former process, by rules that may be these */
        if (a->rule_digest[0] == '\0' && strcmp(was.rules, gate_rule_digest(q->gate, "")) == 0)
            snprintf(a->rule_digest, sizeof(a->rule_digest), "%s", gate_rule(w, a->r.tool, a->r.rule));
    others = q->grants_over || strcmp(was.defaults, q->defaults) != 0;
    end_approvals(w, NULL, others);
    q->grants_over = end_grants(w, NULL, others, &err) < 0 && others;
    if (q->grants_over)     /* nor is it on record that there are others, so that the next start ends them */
        log_say(LEVEL_ERROR, "grants that are over are still on record: %s [%s]", err.msg, err.code);
    else
        judged_by_these(w);
}
