/* adapters/docker/attach.c: what a command says, to who attaches, waits, or reads its log; and what its end brings
 *
 * A container that is to be removed when it ends is removed by whichever visit hears of that first; the others that
 * wait for it are told by that one, or take its place when its client goes. See docker.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/docker/docker.h"
#include "base/clock.h"
#include "wire/json_text.h"

#define SETTLE_MS 25            /* between the head of a hijacked stream and what is behind it */

/* --- to the client ------------------------------------------------------------------------------------------------ */

static void
put_piece(struct visit *r, bool is_err, const void *p, size_t n)
{
    uint8_t head[DOCKER_FRAME];
    struct docker *k = r->of_docker;

    docker_frame(head, is_err, (uint32_t)n);
    if (k->tail_kept) {
        visit_keep(r, &r->out, &r->cut_out, head, sizeof(head));
        visit_keep(r, &r->out, &r->cut_out, p, n);
        return;
    }
    if (!k->tty)
        visit_add(r, head, sizeof(head));
    visit_add(r, p, n);
}

/* The last lines of what was collected. */
static void
tell_tail(struct visit *r)
{
    struct docker *k = r->of_docker;
    size_t at = docker_tail(r->out.p, r->out.n, k->tail), n;

    k->tail_kept = false;
    if (!k->tty)
        visit_add(r, r->out.p + at, r->out.n - at);
    for (; k->tty && at + DOCKER_FRAME <= r->out.n; at += DOCKER_FRAME + n) {
        const uint8_t *p = r->out.p + at;
        n = (size_t)p[4] << 24 | (size_t)p[5] << 16 | (size_t)p[6] << 8 | p[7];
        if (n > r->out.n - at - DOCKER_FRAME)
            break;
        visit_add(r, p + DOCKER_FRAME, n);
    }
    buf_free(&r->out);
}

static bool
has_all(const struct docker *k)
{
    return k->had[0] >= k->until[0] && k->had[1] >= k->until[1];
}

/* What was there when it came has been told. */
static void
caught_up(struct visit *r)
{
    struct docker *k = r->of_docker;

    if (!has_all(k))
        return;
    if (k->tail_kept)
        tell_tail(r);
    if (!k->bounded)
        return;
    visit_drop(r);
    visit_close(r);
}

static void
on_out(struct visit *r, const struct edge_run_out *out)
{
    struct docker *k = r->of_docker;
    char gap[96];

    if (!k->known)
        return;
    if (out->at > k->had[out->stream] && !k->discard && k->what != DOCKER_LOGS) {
        snprintf(gap, sizeof(gap), "\r\n[cloche: %llu bytes came faster than they were read, and are not kept]\r\n",
                 (unsigned long long)(out->at - k->had[out->stream]));
        put_piece(r, true, gap, strlen(gap));
    }
    k->had[out->stream] = out->at + out->n_bytes;
    if (!k->discard && (out->stream == 0 ? k->out : k->err))
        put_piece(r, out->stream == 1, out->bytes, out->n_bytes);
    if (k->what == DOCKER_LOGS)
        caught_up(r);
}

/* --- its end ------------------------------------------------------------------------------------------------------ */

void
docker_conclude(struct visit *r)
{
    struct docker *k = r->of_docker;
    json_t *said;
    char *text;

    k->phase = DOCKER_IDLE;
    k->over = true;
    switch (k->what) {
    case DOCKER_STOP:
    case DOCKER_OTHER:
        visit_empty(r, HTTP_NO_CONTENT);
        return;
    case DOCKER_WAIT:
        said = json_pack("{s:i}", "StatusCode", (int)k->code);
        text = said != NULL ? json_dumps(said, JSON_COMPACT) : NULL;
        json_decref(said);
        if (text != NULL)
            visit_add(r, text, strlen(text));
        free(text);
        visit_close(r);
        return;
    default:
        visit_close(r);
    }
}

/* Each other visit of that container in that phase. */
static void
each(const char *id, enum docker_phase phase, const struct visit *but, void (*fn)(struct visit *r))
{
    for (struct visit *v = adapters_visits, *next; v != NULL; v = next) {
        next = v->next;
        if (v == but || v->of_docker == NULL || v->of_docker->phase != phase || strcmp(v->of_docker->id, id) != 0)
            continue;
        fn(v);
        visit_flow(v);
    }
}

static void
on_deleted(struct visit *r, const struct edge_box *box)
{
    (void)box;
    docked_forget(r->of_docker->id);
    docker_conclude(r);
    each(r->of_docker->id, DOCKER_WAITS_REMOVED, r, docker_conclude);
    each(r->of_docker->id, DOCKER_WAITS_START, r, docker_conclude);
}

static void
on_not_deleted(struct visit *r, const struct err *err)
{
    struct docked *d = docked_find(r->of_docker->id);
    const bool gone = err->kind == ERR_NOT_FOUND;

    if (d != NULL)
        d->deleting = false;
    if (r->of_docker->what == DOCKER_OTHER && !gone)
        visit_err(r, err);
    else
        on_deleted(r, NULL);
}

static const struct visit_answers deletes = { .box = on_deleted, .no = on_not_deleted };

/* Another visit reads what its main command said, to the end. */
static bool
is_read(const struct visit *but, const char *id)
{
    for (const struct visit *v = adapters_visits; v != NULL; v = v->next)
        if (v != but && v->of_docker != NULL && v->of_docker->phase == DOCKER_FOLLOWS && !v->of_docker->over &&
            v->of_docker->what != DOCKER_EXEC && strcmp(v->of_docker->id, id) == 0)
            return true;
    return false;
}

/* One that ends by itself does that when all have read what it said: the last of them asks. */
void
docker_delete(struct visit *r)
{
    struct docker *k = r->of_docker;
    struct docked *d = docked_find(k->id);

    if (d == NULL) {
        docker_conclude(r);
        return;
    }
    if (d->deleting || (k->what != DOCKER_OTHER && is_read(r, k->id))) {
        k->phase = DOCKER_WAITS_REMOVED;
        return;
    }
    d->deleting = true;
    k->phase = DOCKER_DELETES;
    VISIT_ASK(r, EDGE_ASK_DELETE, &deletes, .id = k->id);
}

/* Who waits for the end of its sandbox and has not asked for it, since @r read: asks now. */
static void
hand_on(struct visit *r)
{
    struct docked *d = docked_find(r->of_docker->id);

    if (d != NULL && d->remove && d->ended && !d->deleting && !is_read(r, d->id))
        each(r->of_docker->id, DOCKER_WAITS_REMOVED, r, docker_delete);     /* the first asks, the others wait on */
}

/* The main command has ended, of which @r is told; or another one has. */
static void
ended(struct visit *r)
{
    struct docker *k = r->of_docker;
    struct docked *d = docked_find(k->id);

    if (k->over)
        return;
    k->over = true;
    if (k->tail_kept)
        tell_tail(r);
    if (k->what == DOCKER_EXEC || k->what == DOCKER_LOGS) {
        docker_conclude(r);
        hand_on(r);
    } else if (d != NULL && d->remove) {
        docker_delete(r);
    } else if (k->what == DOCKER_WAIT && k->removed && d != NULL) {
        k->phase = DOCKER_WAITS_REMOVED;
    } else {
        docker_conclude(r);
    }
}

static void
on_over(struct visit *r, uint64_t count)
{
    (void)count;
    ended(r);
}

static void
on_exec_over(struct visit *r, const struct docked *d, const struct edge_run *run)
{
    json_t *exec = json_object_get(d->execs, r->of_docker->exec);

    if (exec != NULL)
        json_object_set_new(exec, "code", json_integer(docker_code(run->flags, run->code)));
}

/* First what it is, before its output; behind that once more, when it has ended. */
static void
on_run(struct visit *r, const struct edge_run *run)
{
    struct docker *k = r->of_docker;
    struct docked *d = docked_find(k->id);

    if (d != NULL && run->number == d->run)
        docked_over(d, run);
    if (!k->known) {
        k->known = true;
        k->until[0] = run->bytes[0];
        k->until[1] = run->bytes[1];
        if (k->what == DOCKER_LOGS)
            caught_up(r);
        return;
    }
    k->code = docker_code(run->flags, run->code);
    if (d != NULL && k->what == DOCKER_EXEC)
        on_exec_over(r, d, run);
}

/* Its sandbox has ended under it, or its record is no more. */
static void
on_failed(struct visit *r, const struct err *err)
{
    struct docker *k = r->of_docker;
    struct docked *d = docked_find(k->id);
    char text[ERR_MSG_MAX + 4];

    if (!visit_answered(r) && !err_is(err, "sandbox.gone")) {
        visit_err(r, err);
        return;
    }
    k->code = 137;
    if (d != NULL && err_is(err, "sandbox.gone"))
        docked_forget(k->id);
    snprintf(text, sizeof(text), "%s\r\n", err->msg);
    if (k->what == DOCKER_ATTACH || k->what == DOCKER_EXEC || k->what == DOCKER_LOGS)
        put_piece(r, true, text, strlen(text));
    ended(r);
}

/* --- following ---------------------------------------------------------------------------------------------------- */

static const struct visit_answers plain = { .no = on_failed };
static const struct visit_op_answers follows = { .run = on_run, .run_out = on_out, .done = on_over,
                                                 .failed = on_failed };

static void
follow(struct visit *r)
{
    struct docker *k = r->of_docker;

    k->phase = DOCKER_FOLLOWS;
    k->known = false;
    visit_run(r, k->id, &(struct edge_run_ask){ .what = RUN_FOLLOW, .number = k->number, .at = { k->had[0], k->had[1] },
                                                .role = "", .text = "" }, &plain, &follows);
}

static void
follow_now(struct visit *r)
{
    struct docker *k = r->of_docker;

    if (k->in)
        visit_feed(r, k->id, k->number, follow);
    else
        follow(r);
}

static void
on_settled(struct timer *t)
{
    struct visit *r = t->owner;

    follow_now(r);
    visit_flow(r);
}

/* docker-py reads the head of an answer with a buffer, and loses what is behind it in there. */
void
docker_follow(struct visit *r)
{
    struct docker *k = r->of_docker;
    uint64_t at = k->opened_ms + SETTLE_MS;

    k->phase = DOCKER_FOLLOWS;
    if (k->opened_ms == 0 || clock_ms() >= at) {
        follow_now(r);
    } else {
        k->late = (struct timer){ .due = on_settled, .owner = r };
        visits_at(&k->late, at);
    }
}

static const char *started_id;      /* whose visits go on, and with which command: used at once */
static uint64_t started_run;

static void
go_on(struct visit *r)
{
    r->of_docker->number = started_run;
    docker_follow(r);
}

void
docker_started(struct docked *d)
{
    char id[EDGE_ID + 1];

    memcpy(id, d->id, sizeof(id));
    started_id = id;
    started_run = d->run;
    each(started_id, DOCKER_WAITS_START, NULL, go_on);
    started_id = NULL;
}

static uint32_t not_started_code;

static void
give_up(struct visit *r)
{
    r->of_docker->code = not_started_code;
    ended(r);
}

void
docker_not_started(struct docked *d, uint32_t code)
{
    char id[EDGE_ID + 1];

    memcpy(id, d->id, sizeof(id));
    not_started_code = code;
    each(id, DOCKER_WAITS_START, NULL, give_up);
}

void
docker_gone(struct visit *r)
{
    struct docker *k = r->of_docker;
    struct docked *d = k != NULL ? docked_find(k->id) : NULL;

    if (k == NULL)
        return;
    visits_at(&k->late, 0);
    if (k->phase == DOCKER_DELETES && d != NULL)
        d->deleting = false;
    k->phase = DOCKER_IDLE;
    hand_on(r);
    r->of_docker = NULL;
    free(k);
}

/* --- attach ------------------------------------------------------------------------------------------------------- */

uint8_t
docker_stream_type(const struct visit *r, bool tty)
{
    return tty || r->number < 42 ? ADAPT_RAW : ADAPT_FRAMES;
}

void
docker_open_stream(struct visit *r)
{
    struct docker *k = r->of_docker;
    const char *upgrade = visit_header(r, "Upgrade");

    k->opened_ms = clock_ms();
    if (upgrade != NULL && strcmp(upgrade, "tcp") == 0) {
        visit_upgrade(r, docker_stream_type(r, k->tty));
    } else {
        k->in = false;      /* nothing comes from it */
        visit_stream_of(r, docker_stream_type(r, k->tty));
    }
}

static void
attach(struct visit *r, struct docked *d)
{
    struct docker *k = r->of_docker;

    if (d->paused) {
        docker_refuse(r, HTTP_CONFLICT, "Container %.64s is paused, unpause the container before attach", d->id);
        return;
    }
    k->tty = d->tty;
    k->in = k->in && (d->stdin_open || d->tty);
    docker_open_stream(r);
    k->phase = DOCKER_WAITS_START;
    if (!docked_runs(d))
        return;
    k->number = d->run;
    if (!k->force) {        /* what it said before is not asked for */
        k->had[0] = d->bytes[0];
        k->had[1] = d->bytes[1];
    }
    docker_follow(r);
}

static bool
streams_asked(struct visit *r)
{
    struct docker *k = docker_of(r);

    if (k == NULL)
        return false;
    k->in = docker_flag(r, "stdin", false);
    k->out = docker_flag(r, "stdout", false);
    k->err = docker_flag(r, "stderr", false);
    return true;
}

void
docker_attach(struct visit *r)
{
    if (!streams_asked(r))
        return;
    r->of_docker->what = DOCKER_ATTACH;
    r->of_docker->force = docker_flag(r, "logs", false);
    if (!docker_flag(r, "stream", false))
        docker_refuse(r, HTTP_NOT_OFFERED, "%s", "attach without stream: docker logs");
    else
        docker_with(r, r->path_id, attach);
}

/* --- logs --------------------------------------------------------------------------------------------------------- */

static void
logs(struct visit *r, struct docked *d)
{
    struct docker *k = r->of_docker;

    k->tty = d->tty;
    k->number = d->run;
    if (d->paused) {
        docker_refuse(r, HTTP_CONFLICT, "Container %.64s is paused, unpause the container before reading", d->id);
        return;
    }
    visit_stream_of(r, docker_stream_type(r, k->tty));
    if (d->run != 0)
        docker_follow(r);
    else if (k->bounded)
        visit_close(r);
    else
        k->phase = DOCKER_WAITS_START;
}

void
docker_logs(struct visit *r)
{
    char room[24];
    bool bad = false;
    const char *tail = visit_query(r, "tail", room, sizeof(room), &bad);
    uint64_t since = 0, until = 0;
    struct docker *k;

    if (!streams_asked(r))
        return;
    k = r->of_docker;
    k->in = false;
    k->what = DOCKER_LOGS;
    k->bounded = !docker_flag(r, "follow", false);
    k->tail_kept = tail != NULL && tail[0] != '\0' && strcmp(tail, "all") != 0;
    if (bad || (k->tail_kept && !str_parse_u64(str_of(tail), UINT32_MAX, &k->tail)))
        docker_refuse(r, HTTP_BAD_REQUEST, "%s", "tail is a number of lines, or all");
    else if (!k->out && !k->err)
        docker_refuse(r, HTTP_BAD_REQUEST, "%s", "Bad parameters: you must choose at least one stream");
    else if (docker_flag(r, "timestamps", false) || !docker_number(r, "since", UINT64_MAX / 2, &since) || since > 0 ||
             !docker_number(r, "until", UINT64_MAX / 2, &until) || until > 0)
        docker_refuse(r, HTTP_NOT_OFFERED, "%s", "when a line came is not kept: timestamps, since and until are none "
                      "here");
    else
        docker_with(r, r->path_id, logs);
}

/* --- wait --------------------------------------------------------------------------------------------------------- */

static void
wait_for(struct visit *r, struct docked *d)
{
    struct docker *k = r->of_docker;

    visit_stream_of(r, ADAPT_JSON);
    k->code = d->ended ? docker_code(d->flags, d->code) : 0;
    k->number = d->run;
    k->had[0] = d->bytes[0];
    k->had[1] = d->bytes[1];
    k->discard = true;
    if (docked_runs(d) && !d->paused)
        docker_follow(r);
    else if (k->force)                      /* the next end */
        k->phase = DOCKER_WAITS_START;
    else if (k->removed && d->run != 0)
        k->phase = DOCKER_WAITS_REMOVED;
    else if (k->removed)
        k->phase = DOCKER_WAITS_START;
    else
        ended(r);
}

void
docker_wait(struct visit *r)
{
    char room[24];
    bool bad = false;
    const char *condition = visit_query(r, "condition", room, sizeof(room), &bad);
    struct docker *k = docker_of(r);

    if (k == NULL)
        return;
    k->what = DOCKER_WAIT;
    k->force = condition != NULL && strcmp(condition, "next-exit") == 0;
    k->removed = condition != NULL && strcmp(condition, "removed") == 0;
    if (bad || (condition != NULL && condition[0] != '\0' && !k->force && !k->removed &&
                strcmp(condition, "not-running") != 0))
        docker_refuse(r, HTTP_BAD_REQUEST, "invalid condition: \"%.20s\"", condition != NULL ? condition : "");
    else
        docker_with(r, r->path_id, wait_for);
}
