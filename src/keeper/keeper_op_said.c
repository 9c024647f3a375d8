/* keeper/keeper_op_said.c: what a sandbox's guest says of commands and file requests (see keeper_op.c) */
#include <signal.h>
#include <string.h>

#include "keeper/keeper.h"

/* Whether it is a channel of the guest's with bytes in both directions, and not a file request. */
bool
op_is_stream(const struct op *o)
{
    return o->kind == OP_EXEC || o->kind == OP_CONNECT || o->kind == OP_ATTACH;
}

/* Credit for what the front has. */
void
op_give_back(struct op *o)
{
    static const enum msg_stream streams[2] = { MSG_STREAM_OUT, MSG_STREAM_ERR };

    if (o->within != NULL) {        /* what came for it is its context's */
        if (o->within->op != NULL)
            op_give_back(o->within->op);
        return;
    }
    if (!op_is_stream(o) || o->channel == 0 || (o->run != NULL ? run_holds(o) : packet_queue_waits(&o->out)))
        return;
    for (size_t i = 0; i < 2; i++)
        if (o->owed[i] > 0 && guest_client_window(o->k->l.client, o->channel, streams[i], o->owed[i], NULL) == 0)
            o->owed[i] = 0;
}

void
op_pass_on(struct op *o, uint8_t type, const uint8_t *p, size_t n)
{
    for (size_t take; n > 0 && o->edge.fd >= 0; p += take, n -= take) {
        take = n < EDGE_CHUNK ? n : EDGE_CHUNK;
        o->passed[1] += take;
        op_say(o, type, &edge_bytes_shape, &(struct edge_bytes){ .bytes = p, .n_bytes = take });
    }
}

void
op_output(struct op *o, size_t i, const uint8_t *p, size_t n)
{
    uint64_t room = o->limit == 0 ? UINT64_MAX : o->bytes[i] >= o->limit ? 0 : o->limit - o->bytes[i];

    o->bytes[i] += n;
    transcript_output(&o->k->transcript, o, i, p, n);
    if (n > room)
        o->cut[i] = true;
    if (o->run != NULL)
        run_output(o, i, p, n);
    else
        op_pass_on(o, i == 0 ? EDGE_OUT : EDGE_ERR, p, n < room ? n : (size_t)room);
}

static void
on_output(struct op *o, size_t i, const uint8_t *p, size_t n)
{
    o->owed[i] += (uint32_t)n;
    if (o->run != NULL && o->run->context != NULL)
        context_output(o, i, p, n);
    else
        op_output(o, i, p, n);
    op_give_back(o);
}

static struct op *
op_of(struct keeper_live *k, uint16_t channel, bool stream)
{
    for (size_t i = 0; i < KEEPER_OPS_MAX; i++)
        if (k->ops[i] != NULL && k->ops[i]->channel == channel && op_is_stream(k->ops[i]) == stream &&
            k->ops[i]->within == NULL)
            return k->ops[i];
    return NULL;
}

/* A shell's word for a command of its own that was killed is 128 and the signal. */
static uint8_t
exit_flags(struct op *o, const struct msg_exit *end)
{
    bool signaled = (end->flags & MSG_EXIT_SIGNALED) != 0;
    bool killed = end->status == (signaled ? SIGKILL : 128 + SIGKILL);
    uint8_t flags = limits_flags(o, killed);

    if (killed && (flags & EDGE_OOM) == 0 && keeper_short_of_memory(o->k))
        flags |= EDGE_OOM;
    return flags | (signaled ? EDGE_SIGNALED : 0);
}

static void
exec_event(struct op *o, const struct guest_event *ev)
{
    struct err err = ERR_INIT;

    if (park_answer(o, ev))
        return;
    switch (ev->type) {
    case GUEST_STDOUT:
        on_output(o, 0, ev->data.p, ev->data.n);
        break;
    case GUEST_STDERR:
        on_output(o, 1, ev->data.p, ev->data.n);
        break;
    case GUEST_STDIN_READY:
        if (o->run != NULL && o->run->context != NULL) {
            context_feed(o->k, o->run, ev->stdin_gone);
        } else if (o->run != NULL) {
            asker_stdin(o->k, o->run, ev->stdin_gone);
        } else if (ev->stdin_gone) {
            if (o->live)
                live_taken(o, o->in_n - o->in_at);
            o->in_n = o->in_at = 0;
        }
        break;
    case GUEST_STARTED:
        if (o->kind == OP_CONNECT)
            o->deadline_us = 0;
        else
            run_started(o);
        if (o->run != NULL && o->run->context != NULL) {
            op_tell_end(o);        /* it is none of the operations that run: those are its calls */
            context_started(o->k, o->run);
        }
        break;
    case GUEST_EXEC_FAILED:
        if (o->kind == OP_CONNECT) {
            port_failed(o, &ev->exec_failed);
            break;
        }
        if (o->kind == OP_ATTACH) {
            attach_failed(o, &ev->exec_failed);
            break;
        }
        (void)guest_exec_failed_err(&ev->exec_failed, o->name, o->path, &err);
        if (o->run != NULL && o->run->context != NULL)
            context_failed(o->k, o->run, &err);
        run_failed(o);
        op_say_failed(o, &err);
        op_ended(o);
        break;
    case GUEST_EXIT:
        if (o->viewer == NULL || !o->said)      /* or why it was ended is what there is to tell of it */
            op_exited(o, exit_flags(o, &ev->exit), ev->exit.status & 0xff);
        op_ended(o);
        break;
    default:
        break;
    }
}

bool
op_event(struct keeper_live *k, const struct guest_event *ev)
{
    bool file = ev->type >= GUEST_FILE_DATA && ev->type <= GUEST_FILE_FAILED;
    struct op *o = ev->channel != 0 ? op_of(k, ev->channel, !file) : NULL;

    if (o == NULL)
        return false;
    if (file && o->kind == OP_WATCH)
        watch_event(o, ev);
    else if (file)
        file_event(o, ev);
    else
        exec_event(o, ev);
    return true;
}
