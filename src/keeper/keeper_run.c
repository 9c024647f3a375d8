/* keeper/keeper_run.c: commands that go on without their client (see keeper.h)
 *
 * Such a command is an operation whose output goes into its log instead of to the front. Its record is told to whoever
 * may use the sandbox, until the sandbox ends. There are EDGE_RUNS_MAX of them: a new one pushes out the oldest that
 * has ended. Nobody's slowness stops a command for good: who follows it holds its output back for as long as it goes
 * on reading, and misses some of it otherwise, which it is told. Who begins it has as long to begin to follow it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "keeper/keeper.h"

#define HOLD_US 2000000          /* for somebody who reads nothing, or not yet */

struct run *
run_find(const struct keeper_live *k, uint64_t number)
{
    for (size_t i = 0; i < EDGE_RUNS_MAX && k->runs[i] != NULL; i++)
        if (k->runs[i]->number == number)
            return k->runs[i];
    return NULL;
}

void
run_free(struct keeper_live *k, struct run *run)
{
    size_t i = 0;

    while (i < EDGE_RUNS_MAX && k->runs[i] != run)
        i++;
    if (i == EDGE_RUNS_MAX)
        return;
    memmove(&k->runs[i], &k->runs[i + 1], (EDGE_RUNS_MAX - 1 - i) * sizeof(k->runs[0]));
    k->runs[EDGE_RUNS_MAX - 1] = NULL;
    if (run->op != NULL)
        run->op->run = NULL;
    asker_gone(k, run);
    context_free(run);
    run_log_free(&run->log);
    free(run);
}

void
run_free_all(struct keeper_live *k)
{
    while (k->runs[0] != NULL)
        run_free(k, k->runs[0]);
}

/* A place behind the newest. */
static struct run **
place(struct keeper_live *k)
{
    size_t n = 0;

    while (n < EDGE_RUNS_MAX && k->runs[n] != NULL)
        n++;
    for (size_t i = 0; n == EDGE_RUNS_MAX && i < n; i++) {
        if (k->runs[i]->op == NULL) {
            run_free(k, k->runs[i]);
            n--;
        }
    }
    return n < EDGE_RUNS_MAX ? &k->runs[n] : NULL;
}

int
run_begin(struct op *o, const struct edge_op *want, struct err *err)
{
    struct run **at = place(o->k), *run = at != NULL ? calloc(1, sizeof(*run)) : NULL;

    if (at == NULL)     /* there are as many places as operations; unless one of those has no end */
        return err_set(err, ERR_LIMIT, "sandbox.busy", "%d commands run in the background; that is the limit",
                       EDGE_RUNS_MAX);
    if (run == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    run->op = o;
    run->number = o->number;
    run->begun_ms = clock_wall_ms();
    run->begun_us = o->begin_us;
    run->pty = o->pty;
    run->stdin_open = (want->flags & OP_STDIN) != 0;    /* a context's is the calls' */
    snprintf(run->name, sizeof(run->name), "%s", o->name);
    o->run = *at = run;
    return 0;
}

void
run_again(struct run *run, struct op *o)
{
    run->op = o;
    run->begun_ms = clock_wall_ms();
    run->begun_us = o->begin_us;
    run->ended_ms = run->ms = 0;
    run->flags = run->code = 0;
    run->ending = false;
}

struct edge_run
run_told(const struct run *run)
{
    bool ended = run->op == NULL;
    struct edge_run r = {
        .number = run->number, .flags = run->flags, .code = run->code, .begun_ms = run->begun_ms,
        .ended_ms = run->ended_ms, .ms = ended ? run->ms : (clock_us() - run->begun_us) / 1000, .name = run->name,
        .state = (uint8_t)((ended ? RUN_ENDED : 0) | (run->ending && !ended ? RUN_ENDING : 0) |
                           (run->stdin_open ? RUN_STDIN : 0) | (run->pty ? RUN_TERMINAL : 0) |
                           (run->context != NULL ? RUN_CONTEXT : 0) |
                           (run->context != NULL && run->context->call != NULL ? RUN_BUSY : 0)),
    };

    for (size_t i = 0; i < 2; i++) {
        r.bytes[i] = run->log.at[i];
        r.gone[i] = run_log_oldest(&run->log, (uint8_t)i);
    }
    return r;
}

/* Who began it is told its number. */
void
run_started(struct op *o)
{
    struct edge_run told;

    if (o->run == NULL || o->run->told)
        return;
    o->run->told = true;
    if (o->edge.fd < 0)
        return;
    told = run_told(o->run);
    if (proto_queue(&o->out, o->edge.fd, EDGE_RUN, EDGE_RUN_SHAPE(), &told, -1) == 0)
        PROTO_SAY(op_say, o, EDGE_DONE, .count = 1);
}

void
run_output(struct op *o, size_t stream, const uint8_t *p, size_t n)
{
    o->passed[1] += n;
    if (o->run == NULL)
        return;
    (void)run_log_add(&o->run->log, (uint8_t)stream, p, n);
    asker_output(o->k, o->run);
}

void
run_failed(struct op *o)
{
    if (o->run != NULL)
        run_free(o->k, o->run);
}

void
run_ended(struct op *o, uint8_t flags, uint8_t code)
{
    struct run *run = o->run;

    if (run == NULL)
        return;
    run->flags = flags;
    run->code = code;
    run->ended_ms = clock_wall_ms();
    run->ms = (clock_us() - run->begun_us) / 1000;
    run->stdin_open = false;
    run->op = NULL;
    run_started(o);         /* unless its guest said so before */
    o->run = NULL;
    asker_ended(o->k, run);
    if (run->context != NULL)
        context_ended(o->k, run);
}

/* Half of what is kept: of bytes, or of pieces, which are small ones where the streams change with each write. */
static bool
is_far(const struct run_log *log, const struct run_reader *at)
{
    const uint64_t piece = at->piece > log->first ? at->piece : log->first;

    return run_log_left(log, at) > RUN_LOG_BYTES / 2 || log->next - piece > RUN_LOG_PIECES / 2;
}

bool
run_holds(const struct op *o)
{
    uint64_t now = clock_us();

    if (o->run != NULL && o->run->context != NULL)
        return context_holds(o->run);
    if (o->run != NULL && !o->run->followed && clock_since(now, o->run->begun_us) < HOLD_US &&
        is_far(&o->run->log, &(struct run_reader){ .piece = 0 }))
        return true;
    for (size_t i = 0; i < RUN_ASKERS_MAX && o->run != NULL; i++) {
        const struct run_asker *a = o->k->askers[i];
        if (a != NULL && a->run == o->run && a->what == RUN_FOLLOW && clock_since(now, a->moved_us) < HOLD_US &&
            is_far(&o->run->log, &a->reader))
            return true;
    }
    return false;
}
