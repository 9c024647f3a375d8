/* warden/ask.c: what the fronts ask for, and the answers
 *
 * Each question has a ticket that its front chose; each gets one last answer. A front is the process that reads
 * strangers' bytes: it may ask for what a client may ask for, in the forms below, and for nothing else. Who the client
 * is and whether it may ask that was judged before (who.c); which sandboxes it reaches is judged here.
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "warden/approvals.h"
#include "proto/edge_gate.h"
#include "warden/record.h"

/* --- finding ------------------------------------------------------------------------------------------------------ */

int
not_found(const char *id, struct err *err)
{
    err_set(err, ERR_NOT_FOUND, "sandbox.not-found", id[0] != '\0' ? "there is no sandbox \"%.64s\""
                                                                   : "there is no default sandbox%s", id);
    return err_hint(err, "GET /v1/sandboxes lists them; one that has stopped (?state=all), or whose name is not its "
                    "alone, is known by its id");
}

/* A name is its maker's. Who reaches others' sandboxes has one of theirs by its name where that can be no other one:
 * an agent that takes the name of a sandbox that its asker had, or that another agent has, gets nothing for it. */
static bool
means_one(struct warden *w, const char *name, size_t others)
{
    return others == 1 && (who_owner(&w->who) != NULL || !state_named(w->state, w->who.id, name));
}

struct box *
living(struct warden *w, const char *id)
{
    struct box *found = NULL;
    size_t others = 0;

    if (id[0] == '\0' && w->who.role == EDGE_KEY)
        id = w->who.box;
    found = box_of_id(w, id);
    if (found != NULL && !found->probe && who_reaches(&w->who, &found->r))
        return found;
    found = NULL;
    for (struct box *b = w->boxes; b != NULL; b = b->next) {
        bool own = strcmp(b->r.owner, w->who.id) == 0;
        if (b->probe || !who_reaches(&w->who, &b->r))
            continue;
        if (id[0] == '\0' ? b->r.is_default && own : own && strcmp(b->r.name, id) == 0)
            return b;
        if (id[0] != '\0' && strcmp(b->r.name, id) == 0) {
            found = b;
            others++;
        }
    }
    return means_one(w, id, others) ? found : NULL;
}

struct reach { struct warden *w; state_box_fn *fn; void *ctx; bool by_id, found; };

static void
reach(void *ctx, const struct edge_box *r)
{
    struct reach *found = ctx;

    if (!who_reaches(&found->w->who, r)) {
        if (found->by_id)       /* a name may be another's too by chance */
            who_refused(found->w, "asked for %s", r->id);
        return;
    }
    if (!found->by_id && who_owner(&found->w->who) == NULL && strcmp(r->owner, found->w->who.id) != 0)
        return;                 /* living() says which of others' a name means */
    found->found = true;
    found->fn(found->ctx, r);
}

int
find_record(struct warden *w, const char *id, state_box_fn *fn, void *ctx, struct err *err)
{
    struct reach found = { .w = w, .fn = fn, .ctx = ctx, .by_id = edge_is_id(id) };
    int r;

    if (id[0] == '\0' && w->who.role == EDGE_KEY)
        id = w->who.box;
    r = id[0] != '\0' ? state_find(w->state, id, reach, &found, err)
                      : state_find_default(w->state, w->who.id, reach, &found, err);
    return r > 0 ? found.found : r;
}

static void
not_usable(void *ctx, const struct edge_box *r)
{
    struct err *err = ctx;

    err_set(err, ERR_DENIED, "sandbox.state", "the sandbox is %s", box_state_name(r->state));
    err_hint(err, "GET /v1/sandboxes/%s says why", r->id);
}

struct box *
usable(struct warden *w, const char *id, struct err *err)
{
    struct box *b = living(w, id);

    if (b == NULL) {
        /* one that has stopped is there, but of no use */
        if (find_record(w, id, not_usable, err, NULL) <= 0)
            not_found(id, err);
        return NULL;
    }
    if (b->r.state != BOX_READY && b->r.state != BOX_DEGRADED) {
        err_set(err, ERR_DENIED, "sandbox.state", "the sandbox is %s", box_state_name(b->r.state));
        err_hint(err, "GET /v1/sandboxes/%s shows its state", b->r.id);
        return NULL;
    }
    return b;
}

struct box *
usable_now(struct warden *w, const char *id, struct err *err)
{
    struct box *b = usable(w, id, err);

    if (b != NULL && b->r.paused)
        err_set(err, ERR_DENIED, "sandbox.paused", "the sandbox is paused; resume it first");
    return b;
}

/* Answered when @what has come, or now when too many wait: false. */
static bool
wait_or_no(struct box *b, enum wait_for what, struct asker to)
{
    struct err err = ERR_INIT;

    if (box_wait(b, what, to, &err) == 0)
        return true;
    answer_no(b->w, to, &err);
    return false;
}

struct told { struct warden *w; struct asker to; uint8_t type; };

static void
tell_box(void *ctx, const struct edge_box *r)
{
    const struct told *t = ctx;
    struct edge_box shown = *r;

    if (t->type == EDGE_ITEM)
        shown.policy = "";      /* the largest part of it, and there may be hundreds */
    if (t->type == EDGE_ITEM)
        ANSWER(t->w, t->to, EDGE_ITEM, .box = shown);
    else
        answer_box(t->w, t->to, &shown, NULL);
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

int
new_id(char out[EDGE_ID + 1])
{
    uint8_t raw[EDGE_ID / 2];

    if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
        return -1;
    str_hex(raw, sizeof(raw), out);
    return 0;
}

static int
create_box(struct warden *w, const struct edge_create *c, struct edge_box *r, struct err *err)
{
    struct box *ahead = pool_find(w, c, r);
    char name[EDGE_ID + 16];
    unsigned how;

    if (ahead != NULL)
        memcpy(r->id, ahead->r.id, sizeof(r->id));
    else if (new_id(r->id) < 0)
        return err_sys(err, errno, "serve.random", "getrandom");
    if (c->key != NULL && state_once_put(w->state, w->who.id, c->key, c->body, r->id, time_steady(w),
                                          err) < 0)
        return -1;
    if (r->name[0] == '\0') {
        memcpy(name, "sandbox-", 8);
        memcpy(name + 8, r->id, 12);
        name[20] = '\0';
        r->name = name;
    }
    how = (r->is_default ? 0 : BOX_KEYED) | ((c->flags & EDGE_REATTACH) != 0 ? BOX_PROBE : 0) |
          ((c->flags & EDGE_FLEETING) != 0 ? BOX_FLEETING : 0) | ((c->flags & EDGE_ONCE) != 0 ? BOX_ONCE : 0);
    if ((ahead != NULL ? box_take(ahead, r, w->asker, how, err) : box_create(w, r, w->asker, how, err)) == 0) {
        pool_asked(w, c, r, ahead != NULL);
        return 0;
    }
    if (c->key != NULL)
        (void)state_once_forget(w->state, r->id, NULL);
    return -1;
}

/* One that is refused changes nothing of its volume. */
static int
create(struct warden *w, const struct edge_create *c, struct edge_box *r, struct err *err)
{
    bool made = false;
    struct box *b;

    if (c->volume[0] != '\0' && volume_take(w, r->owner, c->volume, c->keep_s, r->volume, &made, err) < 0)
        return -1;
    if (create_box(w, c, r, err) < 0) {
        if (made)
            volume_not_taken(w, r->volume);
        return -1;
    }
    if (made)
        warden_note_id(w, "", "volume", "%s was made", r->volume);
    b = box_of_id(w, r->id);
    b->keep_s = c->keep_s;
    if (!b->probe)
        volume_taken(b);
    return 0;
}

/* Answered when the caller has made one with that key already: with that one, as it is now (its own key was told
 * then). -1 only with @err. */
static int
repeated(struct warden *w, const struct edge_create *c, bool *answered, struct err *err)
{
    struct told t = { .w = w, .to = w->asker, .type = EDGE_BOX };
    char id[EDGE_ID + 1];
    struct box *b;
    bool same;
    int r = c->key != NULL ? state_once_find(w->state, w->who.id, c->key, c->body, time_steady(w), id, &same,
                                             err) : 0;

    *answered = false;
    if (r <= 0)
        return r;
    if (!same) {
        err_set(err, ERR_USAGE, "idempotency.conflict", "this Idempotency-Key was sent with another request");
        return err_hint(err, "a key belongs to one request, and to its repetitions, for 24 hours");
    }
    b = box_of_id(w, id);       /* it may be a probe yet; the key is its caller's own */
    if (b != NULL && (b->r.state == BOX_INITIALIZING || b->r.state == BOX_RECOVERING)) {
        if (box_wait(b, WAIT_MADE, w->asker, err) < 0)
            return -1;
    } else if (b != NULL) {
        answer_box(w, w->asker, &b->r, NULL);
    } else {
        r = find_record(w, id, tell_box, &t, err);
        if (r < 0)
            return -1;
        if (r == 0) {
            err_set(err, ERR_DENIED, "idempotency.gone", "this Idempotency-Key made a sandbox that was removed");
            return err_hint(err, "make another one with another key");
        }
    }
    *answered = true;
    return 0;
}

int
asked_create(struct warden *w, const struct edge_create *m)
{
    struct edge_box r = { .state = BOX_INITIALIZING, .created_ms = clock_wall_ms(), .facts = "", .detail = "",
                          .print = "", .how = "" };
    struct err err = ERR_INIT;
    bool answered = false;
    struct box *b;

    r.name = m->name;
    r.labels = m->labels;
    r.policy = m->policy;
    r.workspace = m->workspace;
    memcpy(r.owner, w->who.id, sizeof(r.owner));
    r.bounds = gate_bounds(w);
    r.used_ms = r.created_ms;
    r.used_at = time_steady(w);
    r.is_default = (m->flags & EDGE_DEFAULT) != 0;
    r.persists = (m->flags & EDGE_PERSISTS) != 0 && m->volume[0] != '\0';
    r.idle_s = box_limit(&r, m->idle_s, w->default_idle_s);
    r.life_s = r.asked_s = box_limit(&r, m->life_s, w->default_life_s);
    r.recovery = recovery_asked(w, &m->recovery);
    if (r.is_default && (b = living(w, "")) != NULL) {
        if (b->r.state == BOX_INITIALIZING || b->r.state == BOX_RECOVERING)
            (void)wait_or_no(b, WAIT_MADE, w->asker);
        else
            answer_box(w, w->asker, &b->r, NULL);
    } else if (repeated(w, m, &answered, &err) < 0 ||
               (!answered && (template_base(w, m->base, &r, &err) < 0 ||
                              (!record_create(w, &r) && create(w, m, &r, &err) < 0)))) {
        count_not_created(&w->counts, err.code);
        answer_no(w, w->asker, &err);
    }
    return 0;
}

int
asked_get(struct warden *w, const struct ask_box *m)
{
    struct told t = { .w = w, .to = w->asker, .type = EDGE_BOX };
    struct err err = ERR_INIT;
    const struct box *b;

    b = living(w, m->id);
    if (b != NULL)
        answer_box(w, t.to, &b->r, NULL);
    else if (find_record(w, m->id, tell_box, &t, &err) <= 0) {
        if (err.kind == ERR_NONE)
            not_found(m->id, &err);
        answer_no(w, t.to, &err);
    }
    return 0;
}

int
asked_list(struct warden *w, const struct ask_list *m)
{
    struct told t = { .w = w, .to = w->asker, .type = EDGE_ITEM };
    char after[EDGE_ID + 1] = "";
    struct state_query q = { .owner = who_owner(&w->who), .all = m->all, .limit = m->limit, .prefix = m->prefix,
                             .label = m->label, .workspace = m->workspace, .after = after };
    struct err err = ERR_INIT;
    bool more;
    int n;

    (void)edge_cursor(m->after, after, &q.after_ms);
    n = state_list(w->state, &q, tell_box, &t, &more, &err);
    if (n < 0)
        answer_no(w, t.to, &err);
    else
        answer_end(w, t.to, (uint32_t)n, more);
    return 0;
}

void
record_is_there(void *ctx, const struct edge_box *r)
{
    (void)ctx;
    (void)r;
}

int
asked_delete(struct warden *w, const struct ask_box *m)
{
    struct told t = { .w = w, .to = w->asker, .type = EDGE_BOX };
    struct err err = ERR_INIT;
    struct box *b;

    b = living(w, m->id);
    if (b != NULL) {
        if (record_asked(w, b, m->id, NULL))
            return 0;
        if (wait_or_no(b, WAIT_GONE, t.to))
            box_stop(b, "deleted");
        return 0;
    }
    /* one that has stopped already: its record goes */
    if (edge_is_id(m->id) && record_asked(w, NULL, m->id, "forget"))
        return 0;
    if (edge_is_id(m->id) && find_record(w, m->id, record_is_there, NULL, &err) > 0) {
        epoch_next(&w->epochs->defaults);
        epoch_next(&w->epochs->credentials);    /* its key goes too */
        if (find_record(w, m->id, tell_box, &t, &err) > 0 && state_forget(w->state, m->id, &err) == 0)
            return 0;
    }
    if (err.kind == ERR_NONE)
        not_found(m->id, &err);
    answer_no(w, t.to, &err);
    return 0;
}

static int
pause_it(struct warden *w, const char *id, bool paused)
{
    struct err err = ERR_INIT;
    struct box *b = usable(w, id, &err);

    if (b == NULL)
        answer_no(w, w->asker, &err);
    else if (b->r.paused == paused)
        answer_box(w, w->asker, &b->r, NULL);
    else if (record_asked(w, b, id, NULL))
        return 0;
    else if (wait_or_no(b, WAIT_PAUSED, w->asker))
        box_say_short(b, paused ? EDGE_PAUSE : EDGE_RESUME);
    return 0;
}

int
asked_pause(struct warden *w, const struct ask_box *m)
{
    return pause_it(w, m->id, true);
}

int
asked_resume(struct warden *w, const struct ask_box *m)
{
    return pause_it(w, m->id, false);
}

struct revive { struct warden *w; struct err *err; };

static void
revive(void *ctx, const struct edge_box *r)
{
    const struct revive *v = ctx;

    (void)box_revive(v->w, r, v->w->asker, v->err);
}

int
asked_recover(struct warden *w, const struct ask_box *m)
{
    struct err err = ERR_INIT;
    struct revive v = { .w = w, .err = &err };
    struct box *b;

    b = living(w, m->id);
    if ((b == NULL || b->r.state != BOX_RECOVERING || recovery_waits(b)) &&
        record_asked(w, b, m->id, NULL))
        return 0;
    if (b != NULL && (b->r.state == BOX_RECOVERING || box_recover(b, &err) == 0)) {
        (void)wait_or_no(b, WAIT_MADE, w->asker);
        return 0;
    }
    if (b == NULL && find_record(w, m->id, revive, &v, &err) <= 0 && err.kind == ERR_NONE)
        not_found(m->id, &err);
    if (err.kind != ERR_NONE)
        answer_no(w, w->asker, &err);
    return 0;
}

/* --- operations --------------------------------------------------------------------------------------------------- */

/* What the operation is was decided here and goes to the keeper from here: on the socket itself only its streams are
 * spoken. */
static int
grant(struct warden *w, struct box *b, const uint8_t *op, size_t n, struct err *err)
{
    char who[EDGE_WHO_MAX + 1];
    struct keep_op m = { .number = record_operation(w), .by = who, .op = op, .n_op = n };

    who_text(w, &w->who, who);
    memcpy(m.caller, w->who.id, sizeof(m.caller));
    if (box_grant(w, b, EDGE_OP, EDGE_OP_SHAPE(), &m, err) < 0)
        return -1;
    b->asked.results++;
    b->asked.said++;
    return 0;
}

int
grant_op(struct warden *w, struct box *b, const struct edge_op *op, struct err *err)
{
    cleanup_buf struct buf said = BUF_INIT(EDGE_OP_BYTES);

    if (edge_op_put(&said, op) < 0)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    return grant(w, b, said.p, said.n, err);
}

static void
note_denied(void *w, const struct edge_box *r)
{
    warden_note_id(w, r->id, "exec_denied", "the sandbox is %s", box_state_name(r->state));
}

int
asked_op(struct warden *w, const struct ask_op *m)
{
    static struct edge_op op;       /* 16 KiB, and there is one thread */
    struct wire_in in = wire_in_of(m->op, m->n_op);
    struct err err = ERR_INIT;
    struct box *b;

    if (!edge_op_get(&in, &op) || op_is_wardens(op.kind))
        return -1;
    b = usable_now(w, m->id, &err);
    if (err.kind == ERR_NONE)
        (void)edge_cwd_well(&op, &err);
    if (err.kind == ERR_NONE && record_op(w, b, &op))
        return 0;
    if (err.kind == ERR_NONE && grant(w, b, m->op, m->n_op, &err) == 0) {
        if (op.kind == OP_EXEC)
            warden_note(w, b, "exec", "%s%s", op.argv[0], op.n_argv > 1 ? " ..." : "");
        return 0;
    }
    count_op(&w->counts, &(struct edge_op_result){ .kind = op.kind, .result = RESULT_REFUSED });
    answer_no(w, w->asker, &err);
    if (op.kind == OP_EXEC && err_is(&err, "sandbox.state"))   /* it is there, if not among the living */
        (void)find_record(w, m->id, note_denied, w, &err);
    else if (op.kind == OP_EXEC)
        warden_note(w, b, "exec_denied", "%s", err.msg);
    return 0;
}

#define BROWSERS_MAX 64         /* starts after which no connection was asked for... */
#define BROWSERS_MS  90000      /* ... and none will be any more: a start takes at most 60 s */

/* Each start for a connection is the permission for one. */
static int
count_browsers(struct box *b, uint32_t what, struct err *err)
{
    uint64_t now = clock_ms();

    if (what == BROWSER_ONLY)
        return 0;
    if (b->browsers > 0 && clock_since(now, b->browsers_ms) >= BROWSERS_MS)
        b->browsers = 0;
    if (what == BROWSER_CONNECT && b->browsers == 0)
        return err_set(err, ERR_DENIED, "browser.none", "a connection is asked for after a start");
    if (what == BROWSER_START && b->browsers >= BROWSERS_MAX) {
        err_set(err, ERR_LIMIT, "browser.busy", "%d requests wait for the browser of this sandbox already",
                BROWSERS_MAX);
        return err_hint(err, "let some of them end, and ask again");
    }
    return 0;
}

static void
browser_granted(struct box *b, uint32_t what)
{
    if (what == BROWSER_CONNECT)
        b->browsers--;
    if (what == BROWSER_START) {
        b->browsers++;
        b->browsers_ms = clock_ms();
    }
}

int
asked_browser(struct warden *w, const struct ask_browser *m)
{
    static struct edge_op op;       /* 16 KiB, and there is one thread */
    struct err err = ERR_INIT;
    struct box *b = usable_now(w, m->id, &err);

    if (err.kind == ERR_NONE)
        (void)count_browsers(b, m->what, &err);
    if (err.kind == ERR_NONE && record_asked(w, b, b->r.id, m->what == BROWSER_CONNECT ? "connect" : "start"))
        return 0;
    if (err.kind == ERR_NONE) {
        op = (struct edge_op){ .kind = OP_BROWSER, .path = b->r.id,
                               .offset = m->what == BROWSER_CONNECT ? BROWSER_CONNECT : BROWSER_START };
        if (grant_op(w, b, &op, &err) == 0) {
            browser_granted(b, m->what);
            return 0;
        }
    }
    answer_no(w, w->asker, &err);
    return 0;
}

int
asked_stop_all(struct warden *w, const struct nothing *m)
{
    (void)m;
    if (w->stop_all.ticket != 0)        /* another one asked: both mean the same */
        answer_end(w, w->stop_all, w->stop_all_n, true);
    w->stop_all = w->asker;
    w->stop_all_n = (uint32_t)box_count(w);
    box_kill_all(w);
    box_all_gone(w);
    return 0;
}
