/* keeper/keeper_op.c: commands and file requests of clients, between the front's sockets and the guest
 *
 * What an operation is was settled by the warden before its socket existed; here come only its streams. Nobody is
 * waited for: what the front does not take waits in its operation's queue, and credit goes back to the guest when the
 * front has it, so that a slow client slows its own command and no other.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "keeper/keeper.h"

#define OVER_US 30000000        /* for the guest to end what it was told to end */

/* --- its end ------------------------------------------------------------------------------------------------------ */

static void
op_free(struct op *o)
{
    struct keeper_live *k = o->k;

    for (size_t i = 0; i < KEEPER_OPS_MAX; i++)
        if (k->ops[i] == o)
            k->ops[i] = NULL;
    park_forget(o);
    context_leave(o);
    run_failed(o);      /* unless it has ended, its record was of nothing */
    limits_end(o);
    packet_queue_clear(&o->out);
    loop_drop(&k->loop, &o->edge);
    desktop_free(o);
    free(o->path);
    free(o->name);
    free(o);
}

size_t
op_count(const struct keeper_live *k)
{
    size_t n = 0;

    for (size_t i = 0; i < KEEPER_OPS_MAX; i++)
        n += k->ops[i] != NULL;
    return n;
}

size_t
op_untold(const struct keeper_live *k)
{
    size_t n = 0;

    for (size_t i = 0; i < KEEPER_OPS_MAX; i++)
        n += k->ops[i] != NULL && !k->ops[i]->told;
    return n;
}

void
op_say(struct op *o, uint8_t type, const struct shape *shape, const void *m)
{
    if (o->edge.fd >= 0 && proto_queue(&o->out, o->edge.fd, type, shape, m, -1) < 0)
        (void)shutdown(o->edge.fd, SHUT_RDWR);       /* noticed where it is read */
}

void
op_say_last(struct op *o, uint8_t type, const struct shape *shape, const void *m)
{
    if (o->said)
        return;
    o->said = true;
    transcript_end(&o->k->transcript, o);
    op_say(o, type, shape, m);
}

void
op_say_failed(struct op *o, const struct err *err)
{
    memcpy(o->result.error, err->code, sizeof(o->result.error));
    o->how = RESULT_FAILED;
    PROTO_SAY(op_say_last, o, EDGE_FAILED, .why = *err);
}

/* Each operation's end is said once: the warden counts. */
void
op_tell_end(struct op *o)
{
    if (o->told)
        return;
    op_say_result(o);
    KEEPER_SAY_SHORT(o->k, EDGE_OP_ENDED);
    o->told = true;
}

/* The guest knows it no more. What is still to be sent keeps it until it is sent. */
void
op_ended(struct op *o)
{
    op_tell_end(o);
    o->channel = 0;
    if (!packet_queue_waits(&o->out))
        op_free(o);
}

/* --- the sandbox has ended under it ------------------------------------------------------------------------------- */

void
op_exited(struct op *o, uint8_t flags, uint32_t code)
{
    o->how = o->timed_out ? RESULT_TIMED_OUT : (flags & EDGE_SIGNALED) != 0 ? RESULT_SIGNALED
             : code != 0 ? RESULT_NONZERO : RESULT_OK;
    flags |= o->timed_out ? EDGE_TIMED_OUT : 0;
    flags |= (uint8_t)((o->cut[0] ? EDGE_OUT_CUT : 0) | (o->cut[1] ? EDGE_ERR_CUT : 0));
    o->result = (struct op_result){ .flags = flags, .code = code, .bytes = o->bytes[0] + o->bytes[1] };
    if (o->run != NULL) {
        transcript_end(&o->k->transcript, o);
        run_ended(o, flags, (uint8_t)code);
        return;
    }
    PROTO_SAY(op_say_last, o, EDGE_EXIT, .flags = flags, .code = code, .ms = (clock_us() - o->begin_us) / 1000);
}

void
op_free_all(struct keeper_live *k)
{
    struct err err = ERR_INIT;

    err_set(&err, ERR_SYSTEM, "sandbox.gone", "the sandbox ended");
    for (size_t i = 0; i < KEEPER_OPS_MAX; i++) {
        struct op *o = k->ops[i];
        if (o == NULL)
            continue;
        if (o->channel != 0 && o->kind == OP_EXEC)
            op_exited(o, EDGE_SIGNALED | (k->l.memory ? EDGE_OOM : 0), SIGKILL);
        else if (o->channel != 0)
            op_say_failed(o, &err);
        if (o->channel != 0 && !o->told)
            op_say_result(o);
        (void)packet_queue_flush(&o->out, o->edge.fd);
        op_free(o);
    }
    asker_free_all(k);
    run_free_all(k);
}

static watch_fn on_front;

/* --- beginning ---------------------------------------------------------------------------------------------------- */

static struct op *
new_op(struct keeper_live *k, const struct edge_op *want, const struct keep_op *m, int fd)
{
    struct op *o;
    size_t i;

    for (i = 0; i < KEEPER_OPS_MAX && k->ops[i] != NULL; i++)
        ;
    if (i == KEEPER_OPS_MAX || (o = calloc(1, sizeof(*o))) == NULL)
        return NULL;
    o->k = k;
    o->kind = o->as = want->kind;
    o->number = m->number;
    memcpy(o->caller, m->caller, sizeof(o->caller));
    o->live = want->kind == OP_ATTACH || (want->flags & OP_LIVE) != 0;
    o->pty = want->kind == OP_EXEC && (want->flags & OP_PTY) != 0;
    o->behind = want->kind == OP_EXEC && (want->flags & OP_BACKGROUND) != 0;
    o->edge = (struct watch){ .fd = fd, .ready = on_front, .owner = o };
    o->out = (struct packet_queue)PACKET_QUEUE_INIT(OP_QUEUE_MAX);
    o->begin_us = clock_us();
    o->path = strdup(want->path);
    o->name = strdup(want->kind == OP_EXEC ? want->argv[0] : "");
    k->ops[i] = o;
    if (o->path != NULL && o->name != NULL)
        return o;
    o->edge.fd = -1;         /* still the caller's */
    op_free(o);
    return NULL;
}

static int
begin_exec(struct op *o, const struct edge_op *want, struct err *err)
{
    struct keeper_live *k = o->k;
    cleanup_free const char **env = keeper_environment(k, want);
    struct guest_exec x = GUEST_EXEC_INIT;
    uint64_t ms = want->timeout_ms != 0 ? want->timeout_ms : k->limits.time_ms.v;
    int r;

    if (env == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if ((want->flags & OP_BACKGROUND) != 0 && o->run == NULL && run_begin(o, want, err) < 0)
        return -1;
    x.argv = want->argv;
    x.env = env;
    x.cwd = want->path;
    x.umask = 022;
    x.window = o->run != NULL ? RUN_WINDOW : OP_WINDOW;
    x.flags = (o->run != NULL ? 0 : MSG_EXEC_QUIET) | ((want->flags & OP_STDIN) != 0 ? 0 : MSG_EXEC_NO_STDIN);
    x.stdio = o->pty ? EXEC_STDIO_PTY : EXEC_STDIO_STREAM;
    x.rows = want->rows;
    x.cols = want->cols;
    o->in_end = (want->flags & OP_STDIN) == 0;
    /* a screen that is cut is no screen any more, and a log has a ceiling of its own */
    o->limit = o->pty || o->run != NULL ? 0 : want->output > 0 ? want->output : k->limits.output.v;
    o->deadline_us = ms > 0 ? o->begin_us + ms * 1000 : 0;
    if (want->context > EDGE_CONTEXT_NEW)
        return context_call(o, want, err);
    if (want->context == EDGE_CONTEXT_NEW && context_begin(o, want, &x, err) < 0)
        return -1;
    if (park_exec(o, want, env))
        return 0;
    if ((want->flags & OP_LIMITS) != 0 && limits_begin(o, want, &x, err) < 0)
        return -1;
    r = guest_client_exec(k->l.client, &x, &o->channel, err);
    limits_sent(o);
    return r;
}

int
op_begin_again(struct keeper_live *k, struct run *run, const struct edge_op *want, struct err *err)
{
    struct op *o = new_op(k, want, &(const struct keep_op){ .number = run->number }, -1);

    if (o == NULL)
        return err_set(err, ERR_LIMIT, "sandbox.busy", "%d operations run in this sandbox; that is the limit",
                       KEEPER_OPS_MAX);
    o->told = true;             /* it is nobody's, as it was */
    o->run = run;
    run_again(run, o);
    if (begin_exec(o, want, err) == 0)
        return 0;
    run->op = NULL;
    o->run = NULL;
    o->channel = 0;
    op_free(o);
    return -1;
}

static int
begin(struct op *o, const struct edge_op *want, struct err *err)
{
    switch (want->kind) {
    case OP_EXEC: return begin_exec(o, want, err);
    case OP_CONNECT: return port_begin(o, want, err);
    case OP_ATTACH: return attach_begin(o, want, err);
    case OP_BROWSER: return browser_begin(o, want, err);
    case OP_DESKTOP: return desktop_begin(o, want, err);
    case OP_WATCH: return watch_begin(o, want, err);
    default: return file_begin(o, want, err);
    }
}

void
op_begin(struct keeper_live *k, const struct edge_op *want, const struct keep_op *m, int fd)
{
    struct err err = ERR_INIT;
    struct op *o = new_op(k, want, m, fd);

    if (o == NULL) {
        err_set(&err, ERR_LIMIT, "sandbox.busy", "%d operations run in this sandbox; that is the limit",
                KEEPER_OPS_MAX);
        keeper_turn_away(k, fd, m, (uint8_t)want->kind, &err);
        return;
    }
    k->park.touched = k->park.touched || want->kind == OP_WRITE;
    if (!op_is_wardens(want->kind))
        transcript_begin(&k->transcript, o, want, m->by);
    if (io_set_nonblock(fd, true) < 0 || begin(o, want, &err) < 0) {
        run_failed(o);
        op_say_failed(o, &err);
        o->channel = 0;
        op_ended(o);
    }
}

/* --- what the front says ------------------------------------------------------------------------------------------ */

/* SIGKILL spares nobody: of a terminal the group in front is not all. */
void
op_signal(struct op *o, int signo)
{
    if (o->within != NULL)
        return context_signal(o, signo);
    (void)guest_client_signal(o->k->l.client, o->channel, signo, SIGNAL_GROUP, NULL);
    if (o->pty && signo == SIGKILL)
        (void)guest_client_signal(o->k->l.client, o->channel, signo, SIGNAL_LEADER, NULL);
    if (signo == SIGKILL && o->over_us == 0)
        o->over_us = clock_us();
}

void
op_cancel_file(struct op *o)
{
    (void)guest_client_file_cancel(o->k->l.client, o->channel, NULL);
    if (o->over_us == 0)
        o->over_us = clock_us();
}

/* The client is gone: nothing of its command goes on for it, unless that was agreed. */
void
op_cancel(struct op *o)
{
    loop_drop(&o->k->loop, &o->edge);
    packet_queue_clear(&o->out);
    o->in_n = o->in_at = 0;
    if (o->channel == 0) {
        op_tell_end(o);        /* of one that reads, between two pieces */
        op_free(o);
    } else if (o->within != NULL) {
        context_cancel(o);
        op_give_back(o);
    } else if (op_is_stream(o)) {
        if (!o->behind)
            op_signal(o, SIGKILL);
        op_give_back(o);
    } else {
        op_cancel_file(o);
    }
}

/* As much of what came as the guest takes. */
static void
feed(struct op *o)
{
    struct guest_client *c = o->k->l.client;

    if (!park_feed(o))
        return;
    while (o->channel != 0 && (o->in_at < o->in_n || desktop_more(o))) {
        size_t taken = 0;
        int r = op_is_stream(o)
                    ? guest_client_stdin(c, o->channel, o->in + o->in_at, o->in_n - o->in_at, &taken, NULL)
                    : guest_client_file_chunk(c, o->channel, o->in + o->in_at, o->in_n - o->in_at, &taken, NULL);
        if (r < 0 || taken == 0)
            return;
        transcript_written(&o->k->transcript, o, o->in + o->in_at, taken);
        o->in_at += taken;
        o->passed[0] += taken;
        if (o->live)
            live_taken(o, taken);
    }
    if (o->in_end_due && o->in_at == o->in_n) {
        o->in_end_due = false;
        (void)guest_client_close_stdin(c, o->channel, NULL);
    }
}

static bool
takes_input(const struct op *o)
{
    return o->channel != 0 && !o->in_end && (op_is_stream(o) || o->writes);
}

static int
on_in(struct op *o, const struct edge_bytes *m)
{
    if (!takes_input(o))
        return o->channel == 0 ? 0 : -1;        /* it has ended: a race, no error */
    if (o->viewer != NULL) {
        desktop_in(o, m->bytes, m->n_bytes);
        feed(o);
        return 0;
    }
    if (m->n_bytes > sizeof(o->in) - (o->in_n - o->in_at))
        return -1;              /* of a live one: more than it was told that there is room for */
    memmove(o->in, o->in + o->in_at, o->in_n - o->in_at);
    o->in_n -= o->in_at;
    memcpy(o->in + o->in_n, m->bytes, m->n_bytes);
    o->in_n += m->n_bytes;
    o->in_at = 0;
    feed(o);
    return 0;
}

static int
on_in_end(struct op *o, const struct nothing *m)
{
    (void)m;
    if (!takes_input(o))
        return o->channel == 0 ? 0 : -1;
    o->in_end = true;
    if ((o->live && o->in_at < o->in_n) || o->k->park.op == o) {
        o->in_end_due = true;
        return 0;
    }
    return op_is_stream(o) ? guest_client_close_stdin(o->k->l.client, o->channel, NULL)
                              : guest_client_file_end(o->k->l.client, o->channel, NULL);
}

enum op_state { ST_PLAIN = 1, ST_LIVE = 2, ST_BEHIND = 4 };

#define HEARS(R) \
    R(EDGE_IN, on_in, false, ST_PLAIN | ST_LIVE) \
    R(EDGE_IN_END, on_in_end, false, ST_PLAIN | ST_LIVE) \
    R(EDGE_RESIZE, live_on_resize, false, ST_LIVE) \
    R(EDGE_SIGNAL, live_on_signal, false, ST_LIVE)
PROTO_RULES(front_rules, HEARS)

void
op_watch(struct op *o)
{
    bool full = !o->live && o->in_at < o->in_n;     /* what is live is paced by TAKEN, so that signals pass */

    keeper_watch_edge(o->k, &o->edge, full, &o->out);
}

static void
on_front(struct watch *w, uint32_t events)
{
    struct op *o = w->owner;
    static uint8_t room[EDGE_CHUNK + FRAME_HEADER + 1];
    struct msg_gate gate = { .rules = front_rules, .state = o->live ? ST_LIVE : o->behind ? ST_BEHIND : ST_PLAIN,
                             .n_rules = ARRAY_LEN(front_rules) };
    struct err err = ERR_INIT;
    struct frame f;

    if ((events & EPOLLOUT) != 0 && packet_queue_flush(&o->out, o->edge.fd) < 0)
        return op_cancel(o);
    if ((events & EPOLLOUT) != 0 && !packet_queue_waits(&o->out)) {
        op_give_back(o);
        watch_give_back(o);
        if (o->channel == 0 && o->kind == OP_READ && o->in_end) {
            o->in_end = false;
            if (file_ask_piece(o, &err) < 0) {
                op_say_failed(o, &err);
                return op_ended(o);
            }
        } else if (o->channel == 0) {
            return op_free(o);
        }
    }
    while ((events & ~(uint32_t)EPOLLOUT) != 0 && (o->live || o->in_at == o->in_n)) {
        int r = packet_receive(o->edge.fd, room, sizeof(room), &f, NULL, MSG_DONTWAIT);
        if (r < 0 && errno == EAGAIN)
            return;
        if (r <= 0 || msg_dispatch(&gate, &f, o) != MSG_OK)
            return op_cancel(o);
    }
    if ((events & EPOLLHUP) != 0)
        op_cancel(o);
}

/* --- time --------------------------------------------------------------------------------------------------------- */

void
op_time(struct op *o, uint64_t now)
{
    if (o->in_at < o->in_n || o->in_end_due || o->k->park.op == o)
        feed(o);
    if (o->channel == 0 || !op_is_stream(o))
        return;
    if (o->within != NULL && context_time(o, now))
        return;
    park_time(o, now);
    if (o->run != NULL)
        op_give_back(o);
    if (o->kind == OP_CONNECT && o->deadline_us > 0 && now >= o->deadline_us)
        return port_late(o);
    if (o->deadline_us > 0 && now >= o->deadline_us) {
        o->deadline_us = 0;
        o->timed_out = true;
        o->kill_us = now + o->k->limits.grace_ms.v * 1000;
        op_signal(o, SIGTERM);
    }
    if (o->kill_us > 0 && now >= o->kill_us) {
        o->kill_us = 0;
        op_signal(o, SIGKILL);
    }
}

void
op_shift(struct op *o, uint64_t us)
{
    o->deadline_us += o->deadline_us > 0 ? us : 0;
    o->kill_us += o->kill_us > 0 ? us : 0;
    o->over_us += o->over_us > 0 ? us : 0;
}

/* Output that somebody does not take holds the end up too. */
bool
op_overdue(struct op *o, uint64_t now)
{
    if (o->over_us == 0 || o->channel == 0)
        return false;
    if (packet_queue_waits(&o->out) || (o->run != NULL && run_holds(o)))
        o->over_us = now;
    return clock_since(now, o->over_us) >= OVER_US;
}
