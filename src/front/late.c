/* front/late.c: a warden that does not answer
 *
 * What was asked of it would wait for ever, and a client of it. So while requests wait, a warden that has said nothing
 * for a moment is asked whether it is there (EDGE_PING), and when it does not say so for some looks, what it has not
 * read is refused: 503, try again. What it has read before (it reads in order, so an answer to EDGE_PING says so of all
 * that was asked earlier) may wait for somebody's approval, for minutes, and a moment of a busy machine is no reason to
 * take that back: it stays until the warden has been silent for longer than the launcher lets it be, which asks it too,
 * and ends one that stays like that. Looks are counted, a second apart, and not time: while this process was stopped
 * itself, nobody was late.
 *
 * GET /ready asks the same question. A warden that cannot put on record what happens says so then.
 */
#include "base/clock.h"
#include "front/ask_priv.h"

#define LOOKS      4        /* without a word: it is late */
#define LOOKS_READ 20       /* and whoever ends one that hangs (launcher_pulse.c) hangs as well */

static void
ping(struct front *f)
{
    uint8_t room[FRAME_HEADER];
    struct buf frame = BUF_INIT_IN(room, sizeof(room));

    if (f->late.owed)
        return;
    f->late.owed = proto_frame(&frame, EDGE_PING, EDGE_PING_SHAPE(), NULL) == 0 && ask_post(f, &frame) == 0;
    f->late.asked += f->late.owed;
    f->late.looks = 0;
}

static bool
waits(const struct request *r)
{
    return r->ticket != 0 && !r->dead && r->response == NULL;
}

/* Whether the warden is known to have read what it asks. */
static bool
is_read(const struct request *r)
{
    return r->f->late.answered > r->pings;
}

static bool
is_in_vain(const struct request *r)
{
    return late_is(r->f) && (!is_read(r) || r->f->late.looks >= LOOKS_READ);
}

void
late_begins(struct request *r)
{
    r->pings = r->f->late.asked;
}

static void
late_refuse(struct request *r)
{
    const struct err err = { .kind = ERR_SYSTEM, .code = "serve.warden.late",
                             .msg = "the daemon's process that judges requests does not answer",
                             .hint = "try again; what was asked may still be done" };
    const struct answers *answers = r->answers;

    ask_drop(r);
    if (answers != NULL && answers->no != NULL)
        answers->no(r, &err);
    else
        reply_err(r, &err);
    http_wake(r);
}

void
late_heard(struct front *f)
{
    f->late.owed = false;
    f->late.looks = 0;
    f->late.heard_ms = clock_ms();
}

/* After all that was said has been heard. */
void
late_time(struct front *f)
{
    bool any = false, unread = false;

    if (f->late.owed)
        f->late.looks++;
    for (struct request *r = f->requests; r != NULL; r = r->next) {
        if (!waits(r))
            continue;
        any = true;
        unread |= !is_read(r);
        if (is_in_vain(r))
            late_refuse(r);
    }
    if (unread || (any && clock_since(clock_ms(), f->late.heard_ms) >= FRONT_SECOND_MS))
        ping(f);
}

bool
late_is(const struct front *f)
{
    return f->late.owed && f->late.looks >= LOOKS;
}

/* --- GET /ready --------------------------------------------------------------------------------------------------- */

static const struct answers ready_answers = { .no = reply_err };

void
late_ready(struct request *r)
{
    struct front *f = r->f;

    r->ticket = ask_ticket(f);
    late_begins(r);
    r->asked = EDGE_PING;
    r->answers = &ready_answers;
    if (late_is(f))
        late_refuse(r);
    else
        ping(f);
}

/* @why: NULL when all is well. */
static int
answered(struct front *f, const struct err *why)
{
    struct err err = ERR_INIT;

    f->late.answered++;
    for (struct request *r = f->requests; r != NULL; r = r->next) {
        if (!waits(r) || r->asked != EDGE_PING)
            continue;
        ask_over(r);
        if (why != NULL) {
            err_set(&err, why->kind, "serve.state.behind", "%s: what happens waits in memory for its record [%s]",
                    why->msg, why->code);
            err_hint(&err, "%s", why->hint);
            reply_err(r, &err);
        } else {
            reply_json(r, MHD_HTTP_OK, json_pack("{s:s}", "status", "ready"));
        }
        http_wake(r);
    }
    return 0;
}

int
late_on_pong(struct heard *h, const struct nothing *m)
{
    (void)m;
    return answered(h->f, NULL);
}

int
late_on_behind(struct heard *h, const struct edge_why *m)
{
    return answered(h->f, &m->why);
}
