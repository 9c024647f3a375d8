/* warden/gate.c: which questions wait for somebody's approval (approvals.h; docs/gate.md) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "warden/approvals.h"
#include "warden/record.h"

/* --- the rules ---------------------------------------------------------------------------------------------------- */

int
gate_open(struct warden *w, struct err *err)
{
    struct approvals *q = calloc(1, sizeof(*q));

    w->approvals = q;
    if (q == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    json_object_seed(0);        /* opens a file, which is not possible later */
    q->gate = gate_new("built-in", NULL, 0, err);
    q->store = q->gate != NULL ? state_gate_open(w->state, err) : NULL;
    if (q->store == NULL)
        return -1;
    return approvals_load(w, err);
}

const char *
gate_rule(const struct warden *w, const char *tool, const char *rule)
{
    return strcmp(tool, APPROVAL_NETWORK) == 0 ? "" : gate_rule_digest(w->approvals->gate, rule);
}

int
gate_set(struct warden *w, const char *name, const void *data, size_t n, struct err *err)
{
    struct gate *g = gate_new(name, data, n, err);

    if (g == NULL)
        return -1;
    gate_free(w->approvals->gate);
    w->approvals->gate = g;
    if (gate_is_off(g) || strcmp(gate_levels(g), "LOW") != 0)
        log_say(LEVEL_NOTICE, "%s%s", gate_is_off(g)
                ? "the gate is off: agents do what they ask for" : "the gate approves without asking: ",
                gate_is_off(g) ? "" : gate_levels(g));
    if (gate_is_off(g))
        warden_note(w, NULL, "gate", "off: nobody is asked about anything");
    else
        warden_note(w, NULL, "gate", "%zu rules; approved without asking: %s; judged: what %s for", gate_n_rules(g),
                    gate_levels(g), gate_for_all(g) ? "everybody asks" : "agents ask");
    return 0;
}

/* --- judging ------------------------------------------------------------------------------------------------------ */

bool
gate_judges(const struct warden *w)
{
    return w->who.role == EDGE_AGENT || w->who.role == EDGE_KEY || gate_for_all(w->approvals->gate);
}

uint8_t
gate_bounds(const struct warden *w)
{
    if (w->who.role != EDGE_AGENT)
        return 0;
    return gate_is_off(w->approvals->gate) ? EDGE_BOUNDED : EDGE_BOUNDED | EDGE_JUDGED;
}

static bool
is_granted(struct warden *w, const char *caller, const struct deed *d, const char *rule)
{
    const char *digest = gate_rule(w, d->tool, rule);

    return rule[0] != '\0' && gate_grants_count(w, d->box) &&
           state_granted(w->approvals->store, caller, d->tool, rule, digest, d->box, time_now(w), NULL) > 0;
}

/* Somebody said no to exactly this a moment ago. */
static bool
said_no(struct warden *w, const struct deed *d, struct edge_verdict *out)
{
    char principal[EDGE_CALLER_MAX + 1];

    principal_of(w, &w->who, principal);
    for (size_t i = 0; i < DENIALS_MAX; i++) {
        const struct denial *n = &w->approvals->denials[i];
        if (clock_ms() < n->until_ms && strcmp(n->principal, principal) == 0 && strcmp(n->digest, d->digest) == 0) {
            memcpy(out->approval, n->id, sizeof(out->approval));
            memcpy(out->reason, n->reason, sizeof(out->reason));
            out->says = GATE_DENIED;
            return true;
        }
    }
    return false;
}

static enum gate_says
wait_for(struct warden *w, struct approval *a, bool async, struct edge_verdict *out, struct err *err)
{
    uint64_t now = clock_ms();

    out->risk = a->r.risk;
    out->rule = a->r.rule;
    if (!async && approval_hold(w, a) < 0) {
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
        return out->says = GATE_DENIED;
    }
    memcpy(out->approval, a->r.id, sizeof(out->approval));
    out->timeout_s = a->until_ms > now ? (uint32_t)((a->until_ms - now + 999) / 1000) : 1;
    return out->says = GATE_WAIT;
}

/* What is decided about exactly this already, or waits to be: no rule has to be asked. */
static bool
is_known(struct warden *w, const char *caller, const struct deed *d, bool async, struct edge_verdict *out,
         struct err *err)
{
    struct approval *a = approval_find(w, caller, d, APPROVAL_APPROVED);

    if (a != NULL && gate_stands(w, a)) {       /* while nobody waited for it */
        out->says = approval_use(w, a, err) == 0 ? GATE_ALLOWED : GATE_DENIED;
        return true;
    }
    if (said_no(w, d, out))
        return true;
    a = approval_find(w, caller, d, APPROVAL_PENDING);
    if (a == NULL || (!async && a->to.ticket != 0) || is_granted(w, caller, d, a->r.rule))
        return false;
    (void)wait_for(w, a, async, out, err);
    return true;
}

int
gate_settled(struct warden *w, const struct deed *d, const char *rule)
{
    char caller[EDGE_CALLER_MAX + 1];
    struct edge_verdict v;

    caller_of(&w->who, caller);
    if (is_granted(w, caller, d, rule))
        return 1;
    return said_no(w, d, &v) ? -1 : 0;
}

/* What texts cost to search is paid by who asks, so that nobody's keep the warden from everybody else. The files that a
 * call brings along, and those that it wants back, are judged as if each were written or read by itself; the strictest
 * verdict stands. */
static void
judge(struct warden *w, const struct deed *d, struct gate_verdict *v)
{
    struct approvals *q = w->approvals;
    struct caller_tank *t = &q->tanks[0];
    char principal[EDGE_CALLER_MAX + 1];
    struct place_room room;
    const struct gate_place at = deed_place(w, d->box, &room);
    const json_t *file;

    principal_of(w, &w->who, principal);
    for (size_t i = 0; i < TANKS_MAX; i++) {
        if (strcmp(q->tanks[i].principal, principal) == 0) {
            t = &q->tanks[i];
            break;
        }
        if (q->tanks[i].tank.at_ms < t->tank.at_ms)
            t = &q->tanks[i];
    }
    if (strcmp(t->principal, principal) != 0) {
        *t = (struct caller_tank){ .tank = { .at_ms = 0 } };
        memcpy(t->principal, principal, sizeof(t->principal));
    }
    gate_judge(q->gate, d->tool, d->params, &at, gate_tank_at(&t->tank, clock_ms()), v);
    gate_tank_take(&t->tank, v->cost);
    for (size_t i = 0; (file = deed_file(d, i)) != NULL; i++) {
        struct gate_verdict of;
        gate_judge(q->gate, "code_write_file", file, &at, gate_tank_at(&t->tank, clock_ms()), &of);
        gate_tank_take(&t->tank, of.cost);
        if (gate_stricter(&of, v))
            *v = of;
    }
    for (size_t i = 0; (file = deed_wants(d, i)) != NULL; i++) {
        json_t *params = json_pack("{s:O}", "file_path", file);
        struct gate_verdict of;
        gate_judge(q->gate, "code_read_file", params, &at, gate_tank_at(&t->tank, clock_ms()), &of);
        gate_tank_take(&t->tank, of.cost);
        json_decref(params);
        if (gate_stricter(&of, v))
            *v = of;
    }
}

static enum gate_says
decide(struct warden *w, const struct deed *d, bool async, struct edge_verdict *out, struct err *err)
{
    struct approvals *q = w->approvals;
    char caller[EDGE_CALLER_MAX + 1], who[160];
    struct gate_verdict v;
    struct approval *a;
    int tried;

    *out = (struct edge_verdict){ .says = GATE_ALLOWED, .rule = "" };
    if (!gate_judges(w) || gate_is_off(q->gate))
        return GATE_ALLOWED;
    caller_of(&w->who, caller);
    if (q->approved != NULL && q->approved->to.front == w->asker.front && q->approved->to.ticket == w->asker.ticket &&
        strcmp(q->approved->r.caller, caller) == 0 && strcmp(q->approved->r.digest, d->digest) == 0) {
        q->approved = NULL;
        return GATE_ALLOWED;
    }
    if ((q->pass != NULL && pass_covers(q->pass, d)) || is_known(w, caller, d, async, out, err))
        return out->says;
    judge(w, d, &v);
    out->risk = v.risk;
    out->rule = v.rule;
    who_text(w, &w->who, who);
    if (!v.ask) {
        if (v.risk > GATE_LOW)
            warden_note_id(w, d->box, "gate_allowed", "%s by %s: %s, rule %s, sha256 %s", d->tool, who,
                        gate_risk_name(v.risk), v.rule, d->digest);
        return GATE_ALLOWED;
    }
    if (is_granted(w, caller, d, v.rule)) {
        warden_note_id(w, d->box, "gate_allowed", "%s by %s: %s, rule %s, by a standing grant, sha256 %s",
                    d->tool, who, gate_risk_name(v.risk), v.rule, d->digest);
        return GATE_ALLOWED;
    }
    if (async && d->once) {
        err_set(err, ERR_LIMIT, "gate.too-large", "a file of more than %d bytes can be approved only while its request "
                "waits", EDGE_SEEN_MAX);
        err_hint(err, "ask without Prefer: respond-async, or write it in parts");
        return out->says = GATE_DENIED;
    }
    tried = trial_begin(w, d, err);
    if (tried != 0)
        return out->says = tried < 0 ? GATE_DENIED : GATE_ASIDE;
    a = approval_new(w, d, &v, 0, err);
    return a != NULL ? wait_for(w, a, async, out, err) : (out->says = GATE_DENIED);
}

enum gate_says
gate_decide(struct warden *w, const struct deed *d, bool async, struct edge_verdict *out, struct err *err)
{
    enum gate_says says = decide(w, d, async, out, err);

    if (says == GATE_ALLOWED && w->approvals->pass != NULL)
        pass_made(w->approvals->pass, d);
    return says;
}

/* What is heard again when it is on record was let through the first time. */
bool
gate_is_on(struct warden *w)
{
    return gate_judges(w) && !gate_is_off(w->approvals->gate) && !record_again(w);
}

bool
gate_holds(struct warden *w, int r, struct deed *d, struct err *err)
{
    bool async = (w->question->flags & EDGE_ASYNC) != 0, held;
    struct edge_verdict v;

    if (r == 0)
        return false;
    if (r < 0) {
        answer_no(w, w->asker, err);
        return true;
    }
    held = gate_decide(w, d, async, &v, err) != GATE_ALLOWED;
    if (v.says == GATE_DENIED && err->kind != ERR_NONE) {
        answer_no(w, w->asker, err);
    } else if (v.says == GATE_DENIED) {
        err_set(err, ERR_DENIED, "gate.denied", "not approved: %s", v.reason);
        err_hint(err, v.rule[0] != '\0' ? "rule %s (docs/gate.md)" : "no rule is about this%s (docs/gate.md)", v.rule);
        answer_no(w, w->asker, err);
    } else if (v.says == GATE_WAIT && async) {
        ANSWER(w, w->asker, EDGE_GATE, .verdict = v);
    }
    deed_free(d);
    return held;
}
