/* keeper/keeper_run_ask.c: questions of clients about commands in the background, each with a socket of its own
 *
 * Who may ask, and of which sandbox, was judged by the warden before the socket existed. Nobody is waited for: what a
 * front does not take waits in its question's queue, and of output no more than a piece does; the rest stays in the
 * command's log, from where it may be pushed out.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "keeper/keeper.h"

#define END_US 10000000     /* beyond the grace, for a guest to say that a command has ended */

/* --- its end ------------------------------------------------------------------------------------------------------ */

static void
asker_free(struct run_asker *a)
{
    struct keeper_live *k = a->k;

    for (size_t i = 0; i < RUN_ASKERS_MAX; i++)
        if (k->askers[i] == a)
            k->askers[i] = NULL;
    packet_queue_clear(&a->out);
    loop_drop(&k->loop, &a->edge);
    free(a);
    KEEPER_SAY_SHORT(k, EDGE_OP_ENDED);
}

size_t
asker_count(const struct keeper_live *k)
{
    size_t n = 0;

    for (size_t i = 0; i < RUN_ASKERS_MAX; i++)
        n += k->askers[i] != NULL;
    return n;
}

/* --- saying ------------------------------------------------------------------------------------------------------- */

static void
say(struct run_asker *a, uint8_t type, const struct shape *shape, const void *m)
{
    if (proto_queue(&a->out, a->edge.fd, type, shape, m, -1) < 0)
        a->over = true;     /* it is gone, or without its rest of no use */
}

static void
say_run(struct run_asker *a, const struct run *run)
{
    const struct edge_run told = run_told(run);

    say(a, EDGE_RUN, EDGE_RUN_SHAPE(), &told);
}

static void
say_done(struct run_asker *a, uint64_t count)
{
    PROTO_SAY(say, a, EDGE_DONE, .count = count);
    a->over = true;
}

static void
say_failed(struct run_asker *a, const struct err *err)
{
    PROTO_SAY(say, a, EDGE_FAILED, .why = *err);
    a->over = true;
}

static void
say_no(struct run_asker *a, enum err_kind kind, const char *code, const char *text)
{
    struct err err = ERR_INIT;

    err_set(&err, kind, code, "%s", text);
    say_failed(a, &err);
}

static void
say_ended(struct run_asker *a)
{
    say_run(a, a->run);
    say_done(a, 1);
}

/* What there is for one who follows, as long as the socket takes it. */
static void
pump(struct run_asker *a)
{
    while (!a->over && a->run != NULL && !packet_queue_waits(&a->out)) {
        const uint8_t *p;
        uint8_t stream;
        uint64_t position;
        size_t n = run_log_read(&a->run->log, &a->reader, EDGE_CHUNK, &stream, &position, &p);
        if (n == 0) {
            if (a->run->op == NULL)
                say_ended(a);
            return;
        }
        PROTO_SAY(say, a, EDGE_RUN_OUT, .stream = stream, .at = position, .bytes = p, .n_bytes = n);
        a->moved_us = clock_us();
    }
}

/* As much of what came as the command takes. */
static void
feed(struct run_asker *a)
{
    struct op *o = a->run != NULL ? a->run->op : NULL;

    if (a->over || a->run == NULL)
        return;
    if (o == NULL) {            /* it has ended, and had read all that it was given, or not */
        if (a->in_at < a->in_n)
            say_no(a, ERR_DENIED, "exec.ended", "the command has ended");
        else if (a->in_end)
            say_done(a, a->count);
        return;
    }
    while (a->in_at < a->in_n) {
        size_t taken = 0;
        if (guest_client_stdin(o->k->l.client, o->channel, a->in + a->in_at, a->in_n - a->in_at, &taken, NULL) < 0 ||
            taken == 0)
            return;
        a->in_at += taken;
        a->count += taken;
        o->passed[0] += taken;
    }
    if (!a->in_end)
        return;
    if (a->last) {
        (void)guest_client_close_stdin(o->k->l.client, o->channel, NULL);
        a->run->stdin_open = false;
    }
    say_done(a, a->count);
}

/* --- what happens to a command ------------------------------------------------------------------------------------ */

static void
of_run(struct keeper_live *k, struct run *run, void (*fn)(struct run_asker *a))
{
    for (size_t i = 0; i < RUN_ASKERS_MAX; i++)
        if (k->askers[i] != NULL && k->askers[i]->run == run && !k->askers[i]->over)
            fn(k->askers[i]);
}

static void
pump_follower(struct run_asker *a)
{
    if (a->what == RUN_FOLLOW)
        pump(a);
}

static void
feed_writer(struct run_asker *a)
{
    if (a->what == RUN_INPUT)
        feed(a);
}

static void
refuse_writer(struct run_asker *a)
{
    if (a->what == RUN_INPUT)
        say_no(a, ERR_DENIED, "exec.stdin-closed", "the command's stdin is closed");
}

static void
tell_end(struct run_asker *a)
{
    if (a->what == RUN_FOLLOW)
        pump(a);
    else if (a->what == RUN_END)
        say_ended(a);
    else if (a->what == RUN_INPUT)
        feed(a);
}

static void
forget(struct run_asker *a)
{
    if (a->run->context != NULL)
        say_no(a, ERR_NOT_FOUND, "context.unknown", "the context was removed");
    else
        say_no(a, ERR_NOT_FOUND, "exec.unknown", "the command's record was removed");
}

void
asker_output(struct keeper_live *k, struct run *run)
{
    of_run(k, run, pump_follower);
}

void
asker_stdin(struct keeper_live *k, struct run *run, bool closed)
{
    if (closed)
        run->stdin_open = false;
    of_run(k, run, closed ? refuse_writer : feed_writer);
}

void
asker_ended(struct keeper_live *k, struct run *run)
{
    of_run(k, run, tell_end);
}

static void
tell_again(struct run_asker *a)
{
    if (a->what == RUN_RESTART)
        say_ended(a);
}

void
asker_again(struct keeper_live *k, struct run *run)
{
    of_run(k, run, tell_again);
}

void
asker_not_again(struct keeper_live *k, struct run *run, const struct err *why)
{
    for (size_t i = 0; i < RUN_ASKERS_MAX; i++) {
        struct run_asker *a = k->askers[i];
        if (a != NULL && a->run == run && a->what == RUN_RESTART && !a->over)
            say_failed(a, why);
    }
}

void
asker_gone(struct keeper_live *k, struct run *run)
{
    of_run(k, run, forget);
    for (size_t i = 0; i < RUN_ASKERS_MAX; i++)
        if (k->askers[i] != NULL && k->askers[i]->run == run)
            k->askers[i]->run = NULL;
}

static watch_fn on_front;

/* --- questions ---------------------------------------------------------------------------------------------------- */

static void
keeper_run_ask_list(struct run_asker *a)
{
    uint64_t n = 0;

    for (; n < EDGE_RUNS_MAX && a->k->runs[n] != NULL; n++)
        say_run(a, a->k->runs[n]);
    say_done(a, n);
}

static void
begin_follow(struct run_asker *a, const struct edge_run_ask *ask)
{
    if (ask->at[0] > a->run->log.at[0] || ask->at[1] > a->run->log.at[1]) {
        say_no(a, ERR_USAGE, "exec.position", "the command has not written so much");
        return;
    }
    a->reader = (struct run_reader){ .at = { ask->at[0], ask->at[1] } };
    a->run->followed = true;
    a->moved_us = clock_us();
    say_run(a, a->run);
    pump(a);
}

static void
begin_input(struct run_asker *a, const struct edge_run_ask *ask)
{
    if (!a->run->stdin_open)
        return refuse_writer(a);
    for (size_t i = 0; i < RUN_ASKERS_MAX; i++) {
        const struct run_asker *other = a->k->askers[i];
        if (other != NULL && other != a && other->run == a->run && other->what == RUN_INPUT && !other->over)
            return say_no(a, ERR_DENIED, "exec.stdin-busy", "another request writes to the command's stdin");
    }
    a->last = ask->last;
}

/* SIGTERM, after the grace SIGKILL. Told again it goes on with what was begun. */
static void
begin_end(struct run_asker *a)
{
    struct run *run = a->run;
    struct op *o = run->op;
    uint64_t now = clock_us(), grace = a->k->limits.grace_ms.v * 1000;

    if (o == NULL) {        /* it has ended before: its record goes, when that is said */
        a->run = NULL;
        say_run(a, run);
        say_done(a, 1);
        run_free(a->k, run);
        return;
    }
    a->moved_us = now + grace + END_US;
    if (run->ending)
        return;
    run->ending = true;
    o->deadline_us = 0;
    o->kill_us = o->kill_us > 0 ? o->kill_us : now + grace;
    op_signal(o, SIGTERM);
}

static void
begin_restart(struct run_asker *a)
{
    struct err err = ERR_INIT;

    a->moved_us = clock_us() + END_US;
    if (context_restart(a->k, a->run, &err) < 0)
        say_failed(a, &err);
}

static void
steer(struct run_asker *a, const struct edge_run_ask *ask)
{
    struct op *o = a->run->op;
    struct err err = ERR_INIT;

    if (o == NULL && a->run->context != NULL && context_dead(&err) < 0)
        return say_failed(a, &err);
    if (o == NULL)
        return say_no(a, ERR_DENIED, "exec.ended", "the command has ended");
    if (ask->what == RUN_SIGNAL && ask->signal == SIGINT && a->run->context != NULL)
        context_interrupt(a->run);
    else if (ask->what == RUN_SIGNAL)
        op_signal(o, ask->signal);
    else if (!a->run->pty)
        return say_no(a, ERR_DENIED, "exec.no-terminal", "the command has no terminal");
    else
        (void)guest_client_resize(o->k->l.client, o->channel, ask->rows, ask->cols, NULL);
    say_ended(a);
}

static void
keeper_run_ask_begin(struct run_asker *a, const struct edge_run_ask *ask)
{
    if (ask->what == RUN_LIST)
        return keeper_run_ask_list(a);
    a->run = run_find(a->k, ask->number);
    if (a->run != NULL && (a->run->context != NULL) != ask->context)
        a->run = NULL;
    if (a->run == NULL && ask->context)
        return say_no(a, ERR_NOT_FOUND, "context.unknown", "there is no such context");
    if (a->run == NULL)
        return say_no(a, ERR_NOT_FOUND, "exec.unknown", "there is no such command in the background");
    switch (ask->what) {
    case RUN_FOLLOW: return begin_follow(a, ask);
    case RUN_INPUT: return begin_input(a, ask);
    case RUN_END: return begin_end(a);
    case RUN_RESTART: return begin_restart(a);
    case RUN_GET: return say_ended(a);
    default: return steer(a, ask);
    }
}

static void
take_message(struct run_asker *a, const struct keep_run_ask *m)
{
    struct err err = ERR_INIT;

    if (transcript_message(&a->k->transcript, m, &err) < 0)
        say_failed(a, &err);
    else
        say_done(a, m->ask.number);
}

int
asker_on_ask(struct keeper_live *k, const struct keep_run_ask *m)
{
    struct err err = ERR_INIT;
    struct run_asker *a;
    size_t i;

    if (keeper_is_full(k, NULL, 0))
        return 0;
    if (k->passed < 0)
        return -1;
    for (i = 0; i < RUN_ASKERS_MAX && k->askers[i] != NULL; i++)
        ;
    a = i < RUN_ASKERS_MAX && io_set_nonblock(k->passed, true) == 0 ? calloc(1, sizeof(*a)) : NULL;
    if (a == NULL) {
        err_set(&err, ERR_LIMIT, "sandbox.busy", "%d requests about commands wait; that is the limit", RUN_ASKERS_MAX);
        keeper_turn_away(k, take_fd(&k->passed), NULL, 0, &err);
        return 0;
    }
    a->k = k;
    a->what = m->ask.what;
    memcpy(a->caller, m->caller, sizeof(a->caller));
    a->edge = (struct watch){ .fd = take_fd(&k->passed), .ready = on_front, .owner = a };
    a->out = (struct packet_queue)PACKET_QUEUE_INIT(OP_QUEUE_MAX);
    k->askers[i] = a;
    if (m->ask.what == RUN_MESSAGE)
        take_message(a, m);
    else
        keeper_run_ask_begin(a, &m->ask);
    if (a->over && !packet_queue_waits(&a->out))
        asker_free(a);
    return 0;
}

/* --- what the front says ------------------------------------------------------------------------------------------ */

static int
on_in(struct run_asker *a, const struct edge_bytes *m)
{
    if (a->in_end)
        return -1;
    memcpy(a->in, m->bytes, m->n_bytes);
    a->in_n = m->n_bytes;
    a->in_at = 0;
    feed(a);
    return 0;
}

static int
on_in_end(struct run_asker *a, const struct nothing *m)
{
    (void)m;
    if (a->in_end)
        return -1;
    a->in_end = true;
    feed(a);
    return 0;
}

enum asker_state { ST_LISTENS = 1, ST_TAKES = 2 };

#define HEARS(R) R(EDGE_IN, on_in, false, ST_TAKES) R(EDGE_IN_END, on_in_end, false, ST_TAKES)
PROTO_RULES(front_rules, HEARS)

static bool
is_full(const struct run_asker *a)
{
    return a->in_at < a->in_n;
}

void
asker_watch(struct run_asker *a)
{
    keeper_watch_edge(a->k, &a->edge, is_full(a), &a->out);
}

static void
on_front(struct watch *w, uint32_t events)
{
    struct run_asker *a = w->owner;
    static uint8_t room[EDGE_CHUNK + FRAME_HEADER + 1];
    struct msg_gate gate = { .rules = front_rules, .state = a->what == RUN_INPUT ? ST_TAKES : ST_LISTENS,
                             .n_rules = ARRAY_LEN(front_rules) };
    struct frame f;

    if ((events & EPOLLOUT) != 0 && packet_queue_flush(&a->out, a->edge.fd) < 0)
        return asker_free(a);
    pump_follower(a);
    while ((events & ~(uint32_t)EPOLLOUT) != 0 && !is_full(a) && !a->over) {
        int r = packet_receive(a->edge.fd, room, sizeof(room), &f, NULL, MSG_DONTWAIT);
        if (r < 0 && errno == EAGAIN)
            break;
        if (r <= 0 || msg_dispatch(&gate, &f, a) != MSG_OK)
            return asker_free(a);
    }
    if ((events & (EPOLLHUP | EPOLLERR)) != 0 || (a->over && !packet_queue_waits(&a->out)))
        asker_free(a);
}

/* --- time --------------------------------------------------------------------------------------------------------- */

void
asker_time(struct keeper_live *k, uint64_t now)
{
    for (size_t i = 0; i < RUN_ASKERS_MAX; i++) {
        struct run_asker *a = k->askers[i];
        if (a == NULL)
            continue;
        feed_writer(a);
        if ((a->what == RUN_END || a->what == RUN_RESTART) && !a->over && now >= a->moved_us)
            say_ended(a);       /* its guest does not say that it ended: what there is to be said */
        if (a->over && !packet_queue_waits(&a->out))
            asker_free(a);
    }
}

void
asker_free_all(struct keeper_live *k)
{
    for (size_t i = 0; i < RUN_ASKERS_MAX; i++) {
        struct run_asker *a = k->askers[i];
        if (a == NULL)
            continue;
        if (!a->over)
            say_no(a, ERR_SYSTEM, "sandbox.gone", "the sandbox ended");
        (void)packet_queue_flush(&a->out, a->edge.fd);
        asker_free(a);
    }
}

void
asker_caller_ended(struct keeper_live *k, const char *caller, const struct err *why)
{
    for (size_t i = 0; i < RUN_ASKERS_MAX; i++) {
        struct run_asker *a = k->askers[i];
        if (a == NULL || strcmp(a->caller, caller) != 0)
            continue;
        packet_queue_clear(&a->out);
        if (!a->over)
            say_failed(a, why);
        asker_free(a);
    }
}
