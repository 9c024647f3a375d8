/* adapters/docker/run.c: the main command of a container: start, stop, signals, the size of its terminal (docker.h) */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "adapters/docker/docker.h"
#include "base/clock.h"
#include "proto/edge_limits.h"
#include "wire/json_text.h"

#define STOP_S   10             /* until a stop kills, where nothing is said */
#define STOP_MAX 3600
#define SIDE_MAX 4096

/* An operation, cleared; used at once, for there is one. */
static struct edge_op *
an_exec(void)
{
    static struct edge_op op;

    memset(&op, 0, sizeof(op));
    op.kind = OP_EXEC;
    op.path = "";
    return &op;
}

/* --- start -------------------------------------------------------------------------------------------------------- */

static void
on_begun(struct visit *r, const struct edge_run *run)
{
    struct docked *d = docked_find(r->of_docker->id);

    if (d == NULL)
        return;
    d->run = run->number;
    d->ended = false;
    d->flags = d->code = 0;
    d->bytes[0] = d->bytes[1] = 0;
    docked_over(d, run);
}

static void
on_running(struct visit *r, uint64_t count)
{
    struct docked *d = docked_find(r->of_docker->id);

    (void)count;
    visit_empty(r, HTTP_NO_CONTENT);
    if (d != NULL)
        docker_started(d);
}

/* In words by which Docker's own client knows 126 and 127. */
static void
on_failed(struct visit *r, const struct err *err)
{
    struct docked *d = docked_find(r->of_docker->id);
    uint32_t code = edge_shells_code(err);
    struct err told = *err;

    if (code != 0)
        snprintf(told.msg, sizeof(told.msg), "%.300s: %s", err->msg, code == 127 ? "executable file not found in $PATH"
                                                                                 : "permission denied");
    visit_err(r, &told);
    if (d != NULL)
        docker_not_started(d, code != 0 ? code : 125);
}

static const struct visit_answers plain = { .no = on_failed };
static const struct visit_op_answers begins = { .run = on_begun, .done = on_running, .failed = on_failed };

static void
size_of(const json_t *body, struct edge_op *op)
{
    const json_t *size = json_object_get(json_object_get(body, "HostConfig"), "ConsoleSize");
    json_int_t rows, cols;

    if (size == NULL)
        size = json_object_get(body, "ConsoleSize");
    rows = json_integer_value(json_array_get(size, 0));
    cols = json_integer_value(json_array_get(size, 1));
    op->rows = rows >= 1 && rows <= SIDE_MAX ? (uint16_t)rows : 24;
    op->cols = cols >= 1 && cols <= SIDE_MAX ? (uint16_t)cols : 80;
}

void
docker_terminal(const json_t *body, struct edge_op *op)
{
    bool named = false;

    op->flags |= OP_PTY | OP_STDIN;
    for (size_t i = 0; i < op->n_env; i++)
        named = named || strncmp(op->env[i], "TERM=", 5) == 0;
    if (!named && op->n_env < EDGE_WORDS_MAX)
        op->env[op->n_env++] = "TERM=xterm";
    size_of(body, op);
}

static void
start_it(struct visit *r, struct docked *d)
{
    struct edge_op *op = an_exec();
    json_t *keep = NULL;
    const char *term = NULL;

    if (docked_runs(d)) {
        visit_empty(r, HTTP_NOT_MODIFIED);
        return;
    }
    if (d->paused) {
        docker_refuse(r, HTTP_CONFLICT, "cannot start a paused container, try unpause instead: %.64s", d->id);
        return;
    }
    op->flags = OP_BACKGROUND | (d->stdin_open ? OP_STDIN : 0);
    for (size_t i = 0; i < json_array_size(json_object_get(d->body, "Env")); i++) {
        const char *text = json_cstr(json_array_get(json_object_get(d->body, "Env"), i));
        if (text != NULL && strncmp(text, "TERM=", 5) == 0)
            term = text;
    }
    if (term != NULL)
        op->env[op->n_env++] = term;
    if (d->tty)
        docker_terminal(d->body, op);
    op->timeout_ms = EDGE_TIME_MAX_MS;
    if (docker_words(r, d, op, &keep))
        visit_op(r, d->id, op, &plain, &begins);
    else
        docker_not_started(d, 125);
    json_decref(keep);
}

void
docker_start(struct visit *r)
{
    char room[128];
    bool bad = false;

    if (visit_query(r, "checkpoint", room, sizeof(room), &bad) != NULL && room[0] != '\0')
        docker_refuse(r, HTTP_NOT_OFFERED, "%s", "checkpoints: POST /v1/sandboxes/{id}/snapshot");
    else
        docker_with(r, r->path_id, start_it);
}

/* --- signals ------------------------------------------------------------------------------------------------------ */

static void
on_one(struct visit *r, const struct edge_run *run)
{
    struct docked *d = docked_find(r->of_docker->id);

    if (d != NULL)
        docked_over(d, run);
}

static void
on_signalled(struct visit *r, uint64_t count)
{
    struct docker *k = r->of_docker;
    struct docked *d = docked_find(k->id);

    (void)count;
    if (k->what != DOCKER_STOP) {
        visit_empty(r, HTTP_NO_CONTENT);
        return;
    }
    k->discard = true;
    if (d != NULL) {
        k->had[0] = d->bytes[0];
        k->had[1] = d->bytes[1];
    }
    docker_follow(r);
}

/* One that has ended meanwhile is stopped. */
static void
on_not_signalled(struct visit *r, const struct err *err)
{
    if (r->of_docker->what == DOCKER_STOP && (err_is(err, "exec.ended") || err_is(err, "exec.unknown")))
        on_signalled(r, 0);
    else
        visit_err(r, err);
}

static const struct visit_answers asks = { .no = on_not_signalled };
static const struct visit_op_answers signals = { .run = on_one, .done = on_signalled, .failed = on_not_signalled };

static void
send_signal(struct visit *r, uint8_t signal)
{
    struct docker *k = r->of_docker;

    visit_run(r, k->id, &(struct edge_run_ask){ .what = RUN_SIGNAL, .number = k->number, .signal = signal, .role = "",
                                                .text = "" }, &asks, &signals);
}

static void
on_late(struct timer *t)
{
    struct visit *r = t->owner;

    visit_drop(r);
    send_signal(r, SIGKILL);
    visit_flow(r);
}

static void
stop_it(struct visit *r, struct docked *d)
{
    struct docker *k = r->of_docker;
    const json_t *usual = json_object_get(d->body, "StopTimeout");
    uint64_t seconds = json_is_integer(usual) && json_integer_value(usual) <= STOP_MAX
                       ? (uint64_t)json_integer_value(usual) : STOP_S;

    (void)docker_number(r, "t", STOP_MAX, &seconds);
    if (!docked_runs(d)) {
        visit_empty(r, HTTP_NOT_MODIFIED);
        return;
    }
    if (d->paused) {
        docker_refuse(r, HTTP_CONFLICT, "Container %.64s is paused. Unpause the container before stopping or killing",
                      d->id);
        return;
    }
    k->what = DOCKER_STOP;
    k->number = d->run;
    k->late = (struct timer){ .due = on_late, .owner = r };
    if (seconds > 0 && k->signal != SIGKILL)
        visits_at(&k->late, clock_ms() + seconds * 1000);
    send_signal(r, seconds == 0 ? SIGKILL : k->signal != 0 ? k->signal : d->stop_signal);
}

/* The signal that the query names, or none. False: said. */
static bool
signal_asked(struct visit *r)
{
    struct docker *k = docker_of(r);
    char room[24];
    bool bad = false;
    const char *name = visit_query(r, "signal", room, sizeof(room), &bad);

    if (k == NULL)
        return false;
    k->signal = name != NULL && name[0] != '\0' ? docker_signal(name) : 0;
    if (!bad && (name == NULL || name[0] == '\0' || k->signal != 0))
        return true;
    docker_refuse(r, HTTP_BAD_REQUEST, "Invalid signal: %.20s", name != NULL ? name : "");
    return false;
}

void
docker_stop(struct visit *r)
{
    uint64_t seconds;

    if (!signal_asked(r))
        return;
    if (!docker_number(r, "t", STOP_MAX, &seconds))
        docker_refuse(r, HTTP_BAD_REQUEST, "%s", "t is a number of seconds from 0 to 3600");
    else
        docker_with(r, r->path_id, stop_it);
}

static void
kill_it(struct visit *r, struct docked *d)
{
    struct docker *k = r->of_docker;

    k->number = d->run;
    if (!docked_runs(d) || d->paused)
        docker_refuse(r, HTTP_CONFLICT, "Container %.64s is %s", d->id, d->paused ? "paused" : "not running");
    else if (k->signal == 0 || k->signal == SIGKILL) {
        k->signal = SIGKILL;
        stop_it(r, d);
    } else
        send_signal(r, k->signal);
}

void
docker_kill(struct visit *r)
{
    if (signal_asked(r))
        docker_with(r, r->path_id, kill_it);
}

/* --- the terminal's size ------------------------------------------------------------------------------------------ */

static void
on_sized(struct visit *r, uint64_t count)
{
    (void)count;
    visit_empty(r, HTTP_OK);
}

static void
on_any(struct visit *r, const struct edge_run *run)
{
    (void)r;
    (void)run;
}

static const struct visit_answers sizes = { .no = visit_err };
static const struct visit_op_answers sized = { .run = on_any, .done = on_sized, .failed = visit_err };

void
docker_size(struct visit *r, uint64_t number)
{
    struct edge_run_ask ask = { .what = RUN_RESIZE, .number = number, .role = "", .text = "" };
    uint64_t rows = 0, cols = 0;

    if (!docker_number(r, "h", SIDE_MAX, &rows) || !docker_number(r, "w", SIDE_MAX, &cols)) {
        docker_refuse(r, HTTP_BAD_REQUEST, "%s", "h and w are numbers from 1 to 4096");
    } else if (rows == 0 || cols == 0) {
        visit_empty(r, HTTP_OK);        /* clients whose own terminal has no size say so */
    } else {
        ask.rows = (uint16_t)rows;
        ask.cols = (uint16_t)cols;
        visit_run(r, r->of_docker->id, &ask, &sizes, &sized);
    }
}

static void
resize_it(struct visit *r, struct docked *d)
{
    if (docked_runs(d))
        docker_size(r, d->run);
    else
        docker_refuse(r, HTTP_CONFLICT, "Container %.64s is not running", d->id);
}

void
docker_resize(struct visit *r)
{
    docker_with(r, r->path_id, resize_it);
}
