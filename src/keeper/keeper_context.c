/* keeper/keeper_context.c: contexts: processes that run code for one call after the other, and keep its variables
 *
 * A context is a command in the background whose program is a driver of ours (context_drivers.h). It is told MARK NUL
 * CODE NUL on its standard input, and what it writes is told apart by context_scan.c: the code's output, pieces of
 * results, the end of the call. The mark is new for each call. All that is in the sandbox, the driver too, is
 * a stranger: one that lies changes what its own callers see, one that says what cannot be is killed, one that
 * says nothing more is interrupted and then killed when the call's time is up, or nobody waits for it any more.
 *
 * An interrupt is for the call that runs, and must not strike the next one. It is bound to its call by order: it is
 * sent between the beginning and the end that the call's process has said (one that comes sooner waits for the
 * beginning, one that comes later is none), and the guest sends a signal before it writes what was said after it. So
 * when a driver has read a call's code, no signal for an earlier one is still to come; between the code's end and
 * there, one may. Who may be struck then, and by what is noted of a signal, differs:
 *   Python  blocks SIGINT until the next call's code is there, and drops what came.
 *   bash    ignores it until then. What it noted before it drops too: traps, and what would end the next `wait`.
 *   Node    can do neither, and would die. Before it leaves what SIGINT interrupts it asks (S, one byte) and is told
 *           that byte, and whether one was sent (S, byte, 0 or 1, NUL). From there on none is, in this call:
 *           interrupts are words (I, the digits of the mark, NUL), which say which call they are for.
 * Time that is over, and a client that goes, are interrupts like any other; when the code has ended they are nothing.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/array.h"
#include "base/clock.h"
#include "keeper/context_drivers.h"
#include "keeper/keeper.h"

#define LATE_US 1000000         /* stderr's word that the call has ended, after stdout's */
#define START_US 20000000       /* an interpreter, however short the grace is: no code is there yet to interrupt */

static const struct context_driver {
    const char *language;
    const char *const words[6];
    const char *driver;
    bool asks;                  /* it asks before SIGINT would harm it, and is sent one for a call at most */
    int also;                   /* what its own process gets behind SIGINT; 0: nothing */
} drivers[] = {
    { "python", { "python3", "-c" }, context_python, false, 0 },
    /* Node cannot duplicate descriptors */
    { "javascript", { "sh", "-c", "exec 3<&0 4>&1 5>&2 </dev/null; exec node -e \"$0\"" }, context_node, true, 0 },
    { "shell", { "bash", "-c" }, context_shell, false, SIGURG },
};

static size_t
contexts(const struct keeper_live *k)
{
    size_t n = 0;

    for (size_t i = 0; i < EDGE_RUNS_MAX && k->runs[i] != NULL; i++)
        n += k->runs[i]->context != NULL;
    return n;
}

size_t
context_idle(const struct keeper_live *k)
{
    size_t n = 0;

    for (size_t i = 0; i < EDGE_RUNS_MAX && k->runs[i] != NULL; i++)
        n += k->runs[i]->context != NULL && k->runs[i]->op != NULL && k->runs[i]->context->call == NULL;
    return n;
}

void
context_free(struct run *run)
{
    struct context *c = run->context;

    if (c == NULL)
        return;
    if (c->call != NULL)
        c->call->within = NULL;
    buf_free(&c->say);
    buf_free(&c->start);
    free(c);
    run->context = NULL;
}

/* --- beginning ---------------------------------------------------------------------------------------------------- */

static const struct context_driver *
words_of(const char *language, const char **argv, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(drivers); i++) {
        size_t n = 0;
        if (strcmp(drivers[i].language, language) != 0)
            continue;
        for (; drivers[i].words[n] != NULL; n++)
            argv[n] = drivers[i].words[n];
        argv[n] = drivers[i].driver;
        argv[n + 1] = NULL;
        return &drivers[i];
    }
    err_set(err, ERR_USAGE, "context.language", "there are no contexts of that language");
    err_hint(err, "python, javascript, shell");
    return NULL;
}

int
context_begin(struct op *o, const struct edge_op *want, struct guest_exec *x, struct err *err)
{
    static const char *argv[ARRAY_LEN(drivers[0].words) + 2];
    const struct context_driver *driver = words_of(want->argv[0], argv, err);
    struct context *c;

    if (driver == NULL)
        return -1;
    if (o->run->context == NULL && contexts(o->k) >= CONTEXTS_MAX) {
        err_set(err, ERR_LIMIT, "context.many", "the sandbox has %d contexts; that is the limit", CONTEXTS_MAX);
        return err_hint(err, "DELETE one of them");
    }
    c = o->run->context != NULL ? o->run->context : calloc(1, sizeof(*c));
    if (c == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (o->run->context == NULL) {
        c->start = (struct buf)BUF_INIT(EDGE_OP_BYTES);
        o->run->context = c;
        if (edge_op_put(&c->start, want) < 0)
            return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    }
    c->broken = c->again = c->began = false;
    c->driver = driver;
    x->argv = argv;
    x->flags &= (uint8_t)~MSG_EXEC_NO_STDIN;
    x->window = OP_WINDOW;
    o->deadline_us = 0;         /* time is a call's */
    return 0;
}

void
context_started(struct keeper_live *k, struct run *run)
{
    asker_again(k, run);
}

void
context_failed(struct keeper_live *k, struct run *run, const struct err *why)
{
    struct op *call = run->context->call;

    asker_not_again(k, run, why);
    if (call == NULL)
        return;
    run->context->call = NULL;
    call->within = NULL;
    op_say_failed(call, why);
    op_ended(call);
}

/* What it was begun with. NULL: there was no memory for that. */
static const struct edge_op *
start_of(const struct context *c)
{
    static struct edge_op want;     /* 16 KiB, and there is one thread */
    struct wire_in in = wire_in_of(c->start.p, c->start.n);

    return edge_op_get(&in, &want) ? &want : NULL;
}

static int
begin_again(struct keeper_live *k, struct run *run, struct err *err)
{
    const struct edge_op *want = start_of(run->context);

    run->context->again = false;
    if (want == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    return op_begin_again(k, run, want, err);
}

int
context_restart(struct keeper_live *k, struct run *run, struct err *err)
{
    if (run->ending)
        return err_set(err, ERR_DENIED, "context.ends", "the context is about to end");
    if (run->op == NULL)
        return begin_again(k, run, err);
    run->context->again = true;
    op_signal(run->op, SIGKILL);
    return 0;
}

/* --- a call ------------------------------------------------------------------------------------------------------- */

/* Its driver gets @digits, the mark without its first byte. */
static int
new_mark(struct context *c)
{
    uint8_t random[(CONTEXT_MARK - 1) / 2];
    char digits[CONTEXT_MARK];

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return -1;
    str_hex(random, sizeof(random), digits);
    for (size_t i = 0; i < 2; i++)
        context_scan_begin(&c->scan[i], digits);
    return buf_append(&c->say, digits, CONTEXT_MARK);
}

int
context_dead(struct err *err)
{
    err_set(err, ERR_DENIED, "context.dead", "the context's process has ended");
    return err_hint(err, "POST .../restart begins it anew, without its variables");
}

int
context_call(struct op *o, const struct edge_op *want, struct err *err)
{
    struct run *run = run_find(o->k, want->context);
    struct context *c = run != NULL ? run->context : NULL;
    const struct edge_op *start;

    if (c == NULL)
        return err_set(err, ERR_NOT_FOUND, "context.unknown", "there is no such context");
    if (strcmp(run->name, want->argv[0]) != 0)
        return err_set(err, ERR_USAGE, "context.language", "the context is not one of that language");
    if (run->op == NULL || c->again)
        return context_dead(err);
    if (c->call != NULL || c->said < c->say.n) {
        err_set(err, ERR_DENIED, "context.busy", "code runs in the context");
        return err_hint(err, "wait for it, or POST .../interrupt");
    }
    buf_free(&c->say);
    c->say = (struct buf)BUF_INIT(EDGE_OP_MAX + 256);
    c->said = 0;
    start = start_of(c);
    if (start == NULL || new_mark(c) < 0 || buf_append(&c->say, want->argv[1], strlen(want->argv[1]) + 1) < 0) {
        buf_free(&c->say);
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    }
    transcript_hide(o, start);
    c->over[0] = c->over[1] = c->interrupted = c->signalled = c->left = c->told = false;
    c->call = o;
    o->within = run;
    o->channel = run->op->channel;
    context_feed(o->k, run, false);
    return 0;
}

void
context_feed(struct keeper_live *k, struct run *run, bool gone)
{
    struct context *c = run->context;
    size_t taken = 1;

    if (gone) {                 /* it reads nothing any more */
        c->broken = true;
        op_signal(run->op, SIGKILL);
    }
    while (taken > 0 && c->said < c->say.n && !c->broken &&
           guest_client_stdin(k->l.client, run->op->channel, c->say.p + c->said, c->say.n - c->said, &taken, NULL) == 0)
        c->said += taken;
}

/* False: it reads nothing of what it is told. */
static bool
tell(struct keeper_live *k, struct run *run, char kind, const char *text, size_t n)
{
    struct context *c = run->context;

    if (c->said == c->say.n) {
        buf_free(&c->say);
        c->say = (struct buf)BUF_INIT(EDGE_OP_MAX + 256);
        c->said = 0;
    }
    if (buf_put_u8(&c->say, (uint8_t)kind) < 0 || buf_append(&c->say, text, n) < 0 || buf_put_u8(&c->say, 0) < 0)
        return false;
    context_feed(k, run, false);
    return true;
}

/* --- what it says ------------------------------------------------------------------------------------------------- */

static void
call_over(struct op *call, uint8_t flags, uint8_t code)
{
    struct run *run = call->within;
    struct edge_run told = run_told(run);

    run->context->call = NULL;
    told.state &= (uint8_t)~RUN_BUSY;
    op_say(call, EDGE_RUN, EDGE_RUN_SHAPE(), &told);
    op_exited(call, flags, code);
    call->within = NULL;
    op_ended(call);
}

/* Its driver leaves what SIGINT interrupts: none is sent from here on. */
static bool
take_question(struct op *o, uint8_t number)
{
    struct context *c = o->run->context;
    const char answer[] = { (char)number, c->signalled ? '1' : '0' };

    if (!c->driver->asks)
        return false;
    c->left = true;
    return number != 0 && tell(o->k, o->run, 'S', answer, sizeof(answer));
}

static void
take_result(struct op *call, const struct scan_piece *piece)
{
    if (call == NULL)
        return;
    call->passed[1] += piece->n;        /* it is no output: fronts bound results */
    PROTO_SAY(op_say, call, EDGE_RICH, .last = piece->last, .bytes = piece->p, .n_bytes = piece->n);
}

/* While code runs. */
static void
interrupt(struct keeper_live *k, struct run *run)
{
    struct context *c = run->context;

    if (!c->left && !(c->driver->asks && c->signalled)) {
        c->signalled = true;
        op_signal(run->op, SIGINT);
        if (c->driver->also != 0)
            (void)guest_client_signal(k->l.client, run->op->channel, c->driver->also, SIGNAL_LEADER, NULL);
    } else if (c->left && !c->told) {
        c->told = tell(k, run, 'I', c->scan[0].mark + 1, CONTEXT_MARK - 1);
    }
}

void
context_output(struct op *o, size_t stream, const uint8_t *p, size_t n)
{
    struct run *run = o->run;
    struct context *c = run->context;
    struct scan_piece piece;

    while ((piece = context_scan_next(&c->scan[stream], &p, &n)).kind != SCAN_NONE) {
        if (piece.kind == SCAN_BROKEN || (stream == 1 && (piece.kind == SCAN_RESULT || piece.kind == SCAN_ASKED)) ||
            (piece.kind == SCAN_ASKED && !take_question(o, *piece.p))) {
            c->broken = true;
            op_signal(o, SIGKILL);
            return;
        }
        if (piece.kind == SCAN_OUTPUT && c->call != NULL)
            op_output(c->call, stream, piece.p, piece.n);
        else if (piece.kind == SCAN_RESULT)
            take_result(c->call, &piece);
        if (piece.kind != SCAN_END)
            continue;
        c->over[stream] = true;
        c->code = stream == 0 ? piece.code : c->code;
        c->over_us = stream == 0 ? clock_us() : c->over_us;
    }
    c->began = c->began || c->scan[0].at != SCAN_BEFORE;
    if (c->interrupted && c->scan[0].at == SCAN_WITHIN) {
        c->interrupted = false;
        interrupt(o->k, run);
    }
    if (c->call != NULL && c->over[0] && c->over[1])
        call_over(c->call, 0, c->code);
}

bool
context_holds(const struct run *run)
{
    return run->context->call != NULL && packet_queue_waits(&run->context->call->out);
}

void
context_ended(struct keeper_live *k, struct run *run)
{
    struct context *c = run->context;
    struct err err = ERR_INIT;

    buf_free(&c->say);
    c->said = 0;
    if (c->call != NULL)
        call_over(c->call, run->flags, run->code);
    if (run->ending)
        run_free(k, run);
    else if (c->again && !k->ending && begin_again(k, run, &err) < 0)
        context_failed(k, run, &err);
}

/* --- a call's end ------------------------------------------------------------------------------------------------- */

/* One that is about to begin would die of it, and of one that waits, or has ended, there is nothing to interrupt. */
void
context_interrupt(struct run *run)
{
    struct context *c = run->context;

    if (c->call == NULL || run->op == NULL)
        return;
    if (c->scan[0].at == SCAN_BEFORE)
        c->interrupted = true;
    else if (c->scan[0].at == SCAN_WITHIN)
        interrupt(c->call->k, run);
}

void
context_signal(struct op *call, int signo)
{
    if (signo == SIGTERM || signo == SIGINT)
        context_interrupt(call->within);
    else if (call->within->op != NULL)
        op_signal(call->within->op, signo);
}

void
context_cancel(struct op *call)
{
    context_signal(call, SIGINT);
    if (call->kill_us == 0)
        call->kill_us = clock_us() + call->k->limits.grace_ms.v * 1000;
}

void
context_leave(struct op *call)
{
    if (call->within != NULL && call->within->context != NULL && call->within->context->call == call)
        call->within->context->call = NULL;
}

bool
context_time(struct op *call, uint64_t now)
{
    const struct context *c = call->within->context;

    if (c->interrupted && !c->began && call->kill_us > 0 && clock_since(now, call->begin_us) < START_US)
        call->kill_us = now + call->k->limits.grace_ms.v * 1000 + 1;
    if (c->over[0] && clock_since(now, c->over_us) >= LATE_US)
        call_over(call, 0, c->code);
    return c->over[0];
}
