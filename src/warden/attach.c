/* warden/attach.c: people's ways into sandboxes, with an editor or by the desktop (docs/attach.md, docs/desktop.md)
 *
 * A ticket (ticket.h) is bound to one sandbox, to its workspace as it was then, to who asked for it, to a mode and to
 * a moment by which it must be used. Nothing is kept of it: it says all itself, under a key that only this warden has
 * and that ends with it. It opens one session, once. A session has a credential of its own, of the role "attach", which
 * is good for connections to that one sandbox and for nothing else, until its time is over, it is ended, or its sandbox
 * or the token of whom it is ends. What a connection may do is its keeper's and its guest's to see to: they are told
 * the mode with each. Openings, refusals and ends are in the record, with who and which mode.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "warden/record.h"
#include "warden/ticket.h"

#define SESSIONS_EACH 8         /* of one sandbox */
#define SESSIONS_MAX  256
#define TUNNELS       16        /* connections of one session at once */
#define USED          1024      /* tickets that were used, and whose moment has not passed */
#define LOOK_MS       1000

struct session {
    struct session *next;
    struct edge_attach r;       /* @workspace is looked up when it is told */
    char person[EDGE_ID + 1];
    uint8_t hash[SHA256_SIZE];  /* of its credential */
    uint64_t tunnels[TUNNELS];  /* numbers of its connections' operations, and 1; 0 a free place */
};

struct attaches {
    uint8_t key[SHA256_SIZE];
    struct session *sessions;
    struct session *ended;      /* whose connections' ends have not come */
    size_t n;
    struct { char id[EDGE_ID + 1], person[EDGE_ID + 1]; uint64_t until_ms; } used[USED];
};

int
attach_begin(struct warden *w, struct err *err)
{
    w->attaches = calloc(1, sizeof(*w->attaches));
    if (w->attaches == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (getrandom(w->attaches->key, sizeof(w->attaches->key), 0) != (ssize_t)sizeof(w->attaches->key))
        return err_sys(err, errno, "serve.random", "getrandom");
    return 0;
}

static const char *
mode_of(const struct edge_attach *r)
{
    return edge_attach_mode(r->screen, r->writes);
}

/* --- tickets ------------------------------------------------------------------------------------------------------ */

/* The sandbox's workspace in its present life: after a recovery it is another one. */
static void
workspace_of(const struct box *b, char out[EDGE_ID + 1])
{
    struct str place = edge_line(b->r.facts, "workspace");
    cleanup_buf struct buf text = BUF_INIT(256UL * 1024);
    uint8_t hash[SHA256_SIZE];

    buf_printf(&text, "%s\n%llu\n%s\n%s\n", b->r.id, (unsigned long long)b->r.started_ms, b->r.volume, b->r.workspace);
    if (place.p != NULL)
        buf_append(&text, place.p, place.n);
    buf_printf(&text, "\n%s", b->r.policy);
    sha256_of(text.p, text.n, hash);
    str_hex(hash, EDGE_ID / 2, out);
}

/* False: @i is where it can be noted; USED: there is no room, of which nobody has more than a quarter. */
static bool
was_used(const struct warden *w, const struct ticket *t, size_t *i)
{
    const struct attaches *a = w->attaches;
    uint64_t now = time_now(w);
    size_t own = 0;

    *i = USED;
    for (size_t k = 0; k < USED; k++) {
        if (strcmp(a->used[k].id, t->id) == 0)
            return true;
        if (a->used[k].until_ms < now)
            *i = k;
        else
            own += strcmp(a->used[k].person, t->person) == 0;
    }
    if (own >= USED / 4)
        *i = USED;
    return false;
}

/* --- what is told ------------------------------------------------------------------------------------------------- */

/* Of what the sandbox is, for who has its address. */
static void
answer_attach(struct warden *w, const struct box *b, const struct edge_attach *r, const char *text)
{
    struct str place = edge_line(b->r.facts, "workspace"), user = edge_line(b->r.facts, "user");
    char workspace[EDGE_PATH_MAX + 1];
    struct edge_attach said = *r;

    snprintf(workspace, sizeof(workspace), "%.*s", (int)place.n, place.n > 0 ? place.p : "");
    snprintf(said.user, sizeof(said.user), "%.*s", (int)user.n, user.n > 0 ? user.p : "");
    said.workspace = workspace;
    said.until_ms = time_on_wall(w, r->until_ms);
    ANSWER(w, w->asker, EDGE_ATTACHED, .attach = said, .text = text);
}

/* Where the record is required, the question waits for its entry: true. */
static bool
recorded(struct warden *w, struct box *b, const char *summary, const char *id, const char *mode)
{
    struct audit_entry e;

    record_begin(w, &e, summary);
    audit_put_cstr(&e, "attach_mode", mode);
    if (id[0] != '\0')
        audit_put_cstr(&e, "session", id);
    return record_first(w, b, &e);
}

static void
refuse(struct warden *w, struct box *b, const struct err *why)
{
    char by[EDGE_WHO_MAX + 1];

    who_text(w, &w->who, by);
    if (b != NULL)      /* else it is none of who asks */
        warden_note(w, b, "attach_refused", "%s: %s [%s]", by, why->msg, why->code);
    answer_no(w, w->asker, why);
}

int
asked_attach(struct warden *w, const struct ask_attach *m)
{
    struct ticket t = { .writes = m->writes, .screen = m->screen, .seconds = m->seconds };
    char text[EDGE_TICKET_MAX + 1], by[EDGE_WHO_MAX + 1];
    struct edge_attach r = { .writes = m->writes, .screen = m->screen, .seconds = m->seconds };
    struct err err = ERR_INIT;
    struct box *b = usable(w, m->id, &err);

    if (b != NULL && recorded(w, b, "a ticket for a person was asked for", "", mode_of(&r)))
        return 0;
    if (b == NULL || new_id(t.id) < 0) {
        if (b != NULL)
            err_sys(&err, errno, "serve.random", "getrandom");
        answer_no(w, w->asker, &err);
        return 0;
    }
    memcpy(t.box, b->r.id, sizeof(t.box));
    memcpy(t.person, w->who.id, sizeof(t.person));
    workspace_of(b, t.workspace);
    t.until_ms = time_now(w) + m->within * 1000UL;
    if (ticket_write(w->attaches->key, &t, text) < 0) {
        err_set(&err, ERR_SYSTEM, "memory", "out of memory");
        answer_no(w, w->asker, &err);
        return 0;
    }
    who_text(w, &w->who, by);
    memcpy(r.id, t.id, sizeof(r.id));
    memcpy(r.box, t.box, sizeof(r.box));
    memcpy(r.who, by, sizeof(r.who));
    r.until_ms = t.until_ms;
    warden_note(w, b, "attach_ticket", "%s, %s, by %s", t.id, mode_of(&r), by);
    answer_attach(w, b, &r, text);
    explicit_bzero(text, sizeof(text));
    return 0;
}

/* --- sessions ----------------------------------------------------------------------------------------------------- */

static timer_fn on_look;

static void
look_soon(struct warden *w)
{
    w->attach_look.due = on_look;
    w->attach_look.owner = w;
    loop_at(&w->loop, &w->attach_look, clock_ms() + LOOK_MS);
}

static bool
has_tunnels(const struct session *s)
{
    for (size_t i = 0; i < TUNNELS; i++)
        if (s->tunnels[i] != 0)
            return true;
    return false;
}

static void
end_at(struct warden *w, struct session **at, const char *why)
{
    struct session *s = *at;
    struct box *b = box_of_id(w, s->r.box);

    *at = s->next;
    w->attaches->n--;
    warden_note_id(w, s->r.box, "attach_over", "%s, %s, of %s: %s", s->r.id, mode_of(&s->r), s->r.who, why);
    if (b != NULL)
        ends_session(b, s->r.id);
    explicit_bzero(s->hash, sizeof(s->hash));
    if (b != NULL && has_tunnels(s)) {
        s->next = w->attaches->ended;
        w->attaches->ended = s;
    } else {
        free(s);
    }
}

static void
forget_ended(struct warden *w)
{
    for (struct session **at = &w->attaches->ended; *at != NULL;) {
        struct session *s = *at;
        if (has_tunnels(s) && box_of_id(w, s->r.box) != NULL) {
            at = &s->next;
        } else {
            *at = s->next;
            free(s);
        }
    }
}

void
attach_end(struct warden *w, const char *box)
{
    for (struct session **at = &w->attaches->sessions; *at != NULL;) {
        if (strcmp((*at)->r.box, box) == 0)
            end_at(w, at, "the sandbox ended");
        else
            at = &(*at)->next;
    }
}

/* It opens no more than who it is, and than the token by which its sandbox was made. */
static bool
is_orphaned(const struct warden *w, const struct session *s, uint64_t *until)
{
    const struct box *b = box_of_id(w, s->r.box);
    uint64_t ends[2] = { 0, 0 };

    *until = s->r.until_ms;
    if (b == NULL || !owner_lives(w, s->person, &ends[0]) || !owner_lives(w, b->r.owner, &ends[1]))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (ends[i] > 0 && ends[i] < *until)
            *until = ends[i];
    return false;
}

static void
on_look(struct timer *t)
{
    struct warden *w = t->owner;
    uint64_t now = time_now(w), until;

    for (struct session **at = &w->attaches->sessions; *at != NULL;) {
        bool orphaned = is_orphaned(w, *at, &until);
        if (!orphaned && now < until)
            at = &(*at)->next;
        else
            end_at(w, at, orphaned || until < (*at)->r.until_ms ? "its sandbox or somebody's token is gone"
                                                                : "its time is over");
    }
    forget_ended(w);
    if (w->attaches->sessions != NULL || w->attaches->ended != NULL)
        look_soon(w);
}

bool
attach_who(struct warden *w, const uint8_t hash[SHA256_SIZE], struct who *who, uint64_t *until)
{
    const struct session *found = NULL;
    uint64_t over;

    for (const struct session *s = w->attaches->sessions; s != NULL; s = s->next)
        if (mem_same(s->hash, hash, SHA256_SIZE))
            found = s;
    if (found == NULL || is_orphaned(w, found, &over) || time_now(w) >= over)
        return false;
    who->role = EDGE_ATTACH;
    memcpy(who->id, found->r.id, sizeof(who->id));
    memcpy(who->box, found->r.box, sizeof(who->box));
    *until = over;
    return true;
}

/* Whether @text opens a session of @b now, for who asks. 0, or -1 with @err. */
static int
judge(struct warden *w, const struct box *b, const char *text, struct ticket *t, size_t *place, struct err *err)
{
    char workspace[EDGE_ID + 1];

    if (!ticket_read(w->attaches->key, text, t)) {
        err_set(err, ERR_DENIED, "attach.ticket", "that is no ticket of this daemon's");
        return err_hint(err, "it ends with the daemon that made it; `cloche attach` makes another one");
    }
    if (strcmp(t->box, b->r.id) != 0)
        return err_set(err, ERR_DENIED, "attach.sandbox", "the ticket is for another sandbox");
    if (strcmp(t->person, w->who.id) != 0)
        return err_set(err, ERR_DENIED, "attach.person", "the ticket is somebody else's");
    if (time_now(w) >= t->until_ms)
        return err_set(err, ERR_DENIED, "attach.late", "the ticket was not used in time");
    workspace_of(b, workspace);
    if (strcmp(t->workspace, workspace) != 0)
        return err_set(err, ERR_DENIED, "attach.workspace", "the ticket is for another workspace: the sandbox was made "
                       "anew, or changed");
    if (was_used(w, t, place))
        return err_set(err, ERR_DENIED, "attach.used", "the ticket was used already");
    return 0;
}

static int
room_for_one(const struct warden *w, const struct box *b, size_t place, struct err *err)
{
    size_t n = 0, own = 0;

    for (const struct session *s = w->attaches->sessions; s != NULL; s = s->next) {
        n += strcmp(s->r.box, b->r.id) == 0;
        own += strcmp(s->person, w->who.id) == 0;
    }
    if (n < SESSIONS_EACH && own < SESSIONS_MAX / 4 && w->attaches->n < SESSIONS_MAX && place < USED)
        return 0;
    return err_set(err, ERR_LIMIT, "attach.too-many", "%zu editors are attached to this sandbox (%zu to all); the "
                   "limit is %d", n, w->attaches->n, SESSIONS_EACH);
}

static int
open_session(struct warden *w, struct box *b, const struct ticket *t, size_t place, struct err *err)
{
    struct session *s = calloc(1, sizeof(*s));
    char text[EDGE_CREDENTIAL_MAX + 1];

    if (s == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (credential_new(EDGE_ATTACH, text, s->hash) < 0) {
        free(s);
        return err_sys(err, errno, "serve.random", "getrandom");
    }
    memcpy(w->attaches->used[place].id, t->id, sizeof(t->id));
    memcpy(w->attaches->used[place].person, t->person, sizeof(t->person));
    w->attaches->used[place].until_ms = t->until_ms;
    s->r = (struct edge_attach){ .writes = t->writes, .screen = t->screen, .open = true, .seconds = t->seconds,
                                 .workspace = "", .until_ms = time_now(w) + t->seconds * 1000UL };
    memcpy(s->r.id, t->id, sizeof(s->r.id));
    memcpy(s->r.box, t->box, sizeof(s->r.box));
    memcpy(s->person, t->person, sizeof(s->person));
    who_text(w, &w->who, s->r.who);
    s->next = w->attaches->sessions;
    w->attaches->sessions = s;
    w->attaches->n++;
    look_soon(w);
    warden_note(w, b, "attach_opened", "%s, %s, by %s", s->r.id, mode_of(&s->r), s->r.who);
    answer_attach(w, b, &s->r, text);
    explicit_bzero(text, sizeof(text));
    return 0;
}

int
asked_attach_open(struct warden *w, const struct ask_attach_open *m)
{
    struct err err = ERR_INIT;
    struct box *b = usable(w, m->id, &err);
    struct ticket t;
    size_t place = USED;

    if (b == NULL || judge(w, b, m->ticket, &t, &place, &err) < 0 || room_for_one(w, b, place, &err) < 0) {
        refuse(w, b, &err);
        return 0;
    }
    if (!recorded(w, b, "a person is let in", t.id, edge_attach_mode(t.screen, t.writes)) &&
        open_session(w, b, &t, place, &err) < 0)
        answer_no(w, w->asker, &err);
    return 0;
}

static struct session *
session_of(const struct warden *w, const char *id)
{
    for (struct session *s = w->attaches->sessions; s != NULL; s = s->next)
        if (strcmp(s->r.id, id) == 0)
            return s;
    return NULL;
}

int
asked_sessions(struct warden *w, const struct ask_box *m)
{
    struct err err = ERR_INIT;
    const struct box *b = living(w, m->id);
    uint32_t n = 0;

    if (b == NULL && find_record(w, m->id, record_is_there, NULL, &err) <= 0) {
        if (err.kind == ERR_NONE)
            not_found(m->id, &err);
        answer_no(w, w->asker, &err);
        return 0;
    }
    for (const struct session *s = w->attaches->sessions; s != NULL && b != NULL; s = s->next) {
        if (strcmp(s->r.box, b->r.id) != 0)
            continue;
        answer_attach(w, b, &s->r, "");
        n++;
    }
    answer_end(w, w->asker, n, false);
    return 0;
}

int
asked_detach(struct warden *w, const struct ask_detach *m)
{
    struct session **at = &w->attaches->sessions;
    char why[EDGE_WHO_MAX + 16], by[EDGE_WHO_MAX + 1];
    struct err err = ERR_INIT;
    struct box *b = usable(w, m->id, &err);

    while (*at != NULL && strcmp((*at)->r.id, m->which) != 0)
        at = &(*at)->next;
    if (b != NULL && (*at == NULL || strcmp((*at)->r.box, b->r.id) != 0)) {
        err_set(&err, ERR_NOT_FOUND, "attach.none", "no editor is attached to this sandbox by that id");
        err_hint(&err, "GET /v1/sandboxes/%s/attach lists them", b->r.id);
    }
    if (err.kind != ERR_NONE) {
        answer_no(w, w->asker, &err);
        return 0;
    }
    if (record_asked(w, b, b->r.id, NULL))
        return 0;
    who_text(w, &w->who, by);
    snprintf(why, sizeof(why), "ended by %s", by);
    answer_attach(w, b, &(*at)->r, "");
    end_at(w, at, why);
    return 0;
}

/* --- connections -------------------------------------------------------------------------------------------------- */

int
asked_session(struct warden *w, const struct ask_box *m)
{
    const struct session *s = session_of(w, w->who.id);
    struct err err = ERR_INIT;
    const struct box *b = usable(w, m->id, &err);

    if (b != NULL && s == NULL)         /* it was looked up for this question */
        return -1;
    if (b != NULL)
        answer_attach(w, b, &s->r, "");
    else
        answer_no(w, w->asker, &err);
    return 0;
}

static int
connect_it(struct warden *w, struct box *b, struct session *s, const struct edge_op *op, struct err *err)
{
    cleanup_buf struct buf said = BUF_INIT(2 * EDGE_OP_BYTES);
    struct keep_op m = { .number = record_operation(w), .by = s->r.who };
    uint64_t *place = NULL;

    for (size_t i = 0; i < TUNNELS; i++)
        if (s->tunnels[i] == 0)
            place = &s->tunnels[i];
    if (place == NULL)
        return err_set(err, ERR_LIMIT, "attach.busy", "%d connections of this session are open; that is the limit",
                       TUNNELS);
    if (edge_op_put(&said, op) < 0)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    memcpy(m.caller, s->r.id, sizeof(m.caller));
    m.op = said.p;
    m.n_op = said.n;
    if (box_grant(w, b, EDGE_OP, EDGE_OP_SHAPE(), &m, err) < 0)
        return -1;
    b->asked.results++;
    b->asked.said++;
    *place = m.number + 1;
    warden_note(w, b, "attach_connected", "%s, %s, of %s", s->r.id, mode_of(&s->r), s->r.who);
    return 0;
}

static int
connect_editor(struct warden *w, struct box *b, struct session *s, const struct ask_tunnel *keys, struct err *err)
{
    static struct edge_op op;       /* 16 KiB, and there is one thread */
    uint64_t now = time_now(w);

    op = (struct edge_op){ .kind = OP_ATTACH, .flags = s->r.writes ? OP_WRITES : 0, .path = s->r.id, .n_argv = 2,
                           .timeout_ms = s->r.until_ms > now ? s->r.until_ms - now : 1 };
    op.argv[0] = keys->host_key;
    op.argv[1] = keys->user_key;
    return connect_it(w, b, s, &op, err);
}

/* Whether the session is of that kind: 0 or -1 with @err. */
static int
is_for(const struct session *s, bool screen, struct err *err)
{
    if (s->r.screen == screen)
        return 0;
    return err_set(err, ERR_DENIED, "attach.mode", "this session is for %s", s->r.screen ? "the desktop"
                                                                                         : "an editor");
}

int
asked_tunnel(struct warden *w, const struct ask_tunnel *m)
{
    struct session *s = session_of(w, w->who.id);
    struct err err = ERR_INIT;
    struct box *b = usable_now(w, m->id, &err);

    if (!edge_attach_keys_well(m->host_key, m->user_key) || (b != NULL && s == NULL))
        return -1;
    if (err.kind == ERR_NONE && is_for(s, false, &err) == 0 &&
        recorded(w, b, "an editor connects", s->r.id, mode_of(&s->r)))
        return 0;
    if (err.kind == ERR_NONE && connect_editor(w, b, s, m, &err) == 0)
        return 0;
    refuse(w, b, &err);
    return 0;
}

/* A session for the desktop has the mode that its ticket had, or looks; who has another credential says one. */
int
asked_desktop(struct warden *w, const struct ask_desktop *m)
{
    static struct edge_op op;       /* 16 KiB, and there is one thread */
    struct session *s = w->who.role == EDGE_ATTACH ? session_of(w, w->who.id) : NULL;
    struct err err = ERR_INIT;
    struct box *b = usable_now(w, m->id, &err);

    if (b != NULL && s == NULL && w->who.role == EDGE_ATTACH)
        return -1;
    if (err.kind == ERR_NONE && s != NULL && is_for(s, true, &err) == 0 && m->control && !s->r.writes)
        err_set(&err, ERR_DENIED, "attach.mode", "this session is for looking");
    if (err.kind == ERR_NONE && recorded(w, b, "somebody comes to the desktop", s != NULL ? s->r.id : "",
                                         edge_attach_mode(true, m->control)))
        return 0;
    if (err.kind == ERR_NONE) {
        op = (struct edge_op){ .kind = OP_DESKTOP, .flags = m->control ? OP_WRITES : 0, .path = b->r.id };
        if ((s != NULL ? connect_it(w, b, s, &op, &err) : grant_op(w, b, &op, &err)) == 0)
            return 0;
    }
    refuse(w, b, &err);
    return 0;
}

/* A keeper turned it away; what else ends one is the record's of operations. */
static bool
was_busy(const char *error)
{
    return strcmp(error, "ports.busy") == 0 || strcmp(error, "sandbox.busy") == 0 || strcmp(error, "serve.op") == 0;
}

/* Of that sandbox; @m NULL: all. */
static void
closed(struct warden *w, struct session *first, const char *box, const struct keep_op_said *m, const char *how)
{
    for (struct session *s = first; s != NULL; s = s->next) {
        for (size_t i = 0; i < TUNNELS && strcmp(s->r.box, box) == 0; i++) {
            if (s->tunnels[i] == 0 || (m != NULL && s->tunnels[i] != m->number + 1))
                continue;
            s->tunnels[i] = 0;
            if (m != NULL && was_busy(m->error))
                warden_note_id(w, box, "attach_refused", "session %s, of %s: too much is open [%s]", s->r.id, s->r.who,
                               m->error);
            warden_note_id(w, box, "attach_closed", "%s, %s, of %s, %s", s->r.id, mode_of(&s->r), s->r.who, how);
        }
    }
}

void
attach_closed(struct warden *w, const char *box, const struct keep_op_said *m, const char *why)
{
    char how[32];

    snprintf(how, sizeof(how), "after %llu s", m != NULL ? (unsigned long long)(m->ms / 1000) : 0ULL);
    closed(w, w->attaches->sessions, box, m, m != NULL ? how : why);
    closed(w, w->attaches->ended, box, m, m != NULL ? how : why);
}
