/* front/op.c: an operation's socket, whose other end is a sandbox's keeper (proto/edge.h)
 *
 * What comes there was said by the sandbox or by whoever took its keeper over: bytes to be shown, judged by a table.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/array.h"
#include "base/io.h"
#include "front/front.h"
#include "front/live.h"
#include "wire/table.h"

#define AT_ONCE   32
#define OP_BECOMES (6UL * EDGE_CHUNK)    /* one message as text in JSON */

static void
on_op(struct watch *w, uint32_t events)
{
    struct request *r = w->owner;

    if (!r->dead)
        op_hear(r, events);
}

int
op_take(struct request *r, int fd)
{
    r->op_over = false;
    r->op = (struct watch){ .fd = fd, .ready = on_op, .owner = r };
    if (io_set_nonblock(fd, true) == 0 && loop_watch(&r->f->loop, &r->op, EPOLLIN) == 0)
        return 0;
    loop_drop(&r->f->loop, &r->op);
    return -1;
}

void
op_drop(struct request *r)
{
    loop_drop(&r->f->loop, &r->op);
    r->op_over = true;
}

/* Where what it says goes on as it comes, by how much waits for the client. */
static bool
op_listens(struct request *r)
{
    if (!r->stream)
        return true;
    if (r->out.n >= FRONT_STREAM_MAX)
        return false;
    if (waits_room(r, OP_BECOMES))
        return true;
    r->f->pressed = true;
    return false;
}

void
op_flow(struct request *r)
{
    uint32_t events = 0;

    waits_count(r);
    audit_flow(r);
    if (r->op.fd < 0)
        return;
    if (op_listens(r))
        events |= EPOLLIN;
    if (r->live != NULL ? live_wants_out(r) : r->in.n > 0 || r->in_end || r->full || visit_waits(r))
        events |= EPOLLOUT;
    /* that its other end has gone is told whether it is listened to or not: once, and not for as long as what came
     * before waits for the client */
    if ((events & EPOLLIN) == 0)
        events |= EPOLLET;
    (void)loop_watch(&r->f->loop, &r->op, events);
}

/* --- what it says ------------------------------------------------------------------------------------------------- */

static int
on_out(struct request *r, const struct edge_bytes *m)
{
    if (r->op_answers->out == NULL)
        return -1;
    r->op_answers->out(r, false, m->bytes, m->n_bytes);
    return 0;
}

static int
on_err(struct request *r, const struct edge_bytes *m)
{
    if (r->op_answers->out == NULL)
        return -1;
    r->op_answers->out(r, true, m->bytes, m->n_bytes);
    return 0;
}

static int
on_entry(struct request *r, const struct edge_entry *m)
{
    if (r->op_answers->entry == NULL)
        return -1;
    /* the first one may be what a path names, which is longer than a name */
    r->entry_bytes += r->n_entries++ > 0 ? strlen(m->name) : 0;
    if (r->n_entries > EDGE_ENTRIES_MAX || r->entry_bytes > EDGE_ENTRY_BYTES)
        return -1;
    r->op_answers->entry(r, m->mode, m->size, m->mtime_ns, m->name);
    return 0;
}

static int
on_exit_message(struct request *r, const struct edge_exit *m)
{
    if (r->op_answers->exit == NULL)
        return -1;
    r->op_over = true;
    r->op_answers->exit(r, m->flags, m->code, m->ms);
    return 0;
}

static int
on_done(struct request *r, const struct edge_count *m)
{
    if (r->op_answers->done == NULL)
        return -1;
    r->op_over = true;
    r->op_answers->done(r, m->count);
    return 0;
}

static int
on_failed(struct request *r, const struct edge_why *m)
{
    r->op_over = true;
    r->op_answers->failed(r, &m->why);
    return 0;
}

static int
on_taken(struct request *r, const struct edge_number *m)
{
    if (r->op_answers->taken == NULL)
        return -1;
    r->op_answers->taken(r, m->number);
    return 0;
}

static int
on_rich(struct request *r, const struct edge_rich *m)
{
    if (r->op_answers->rich == NULL)
        return -1;
    r->op_answers->rich(r, m->bytes, m->n_bytes, m->last);
    return 0;
}

static int
on_run(struct request *r, const struct edge_run *run)
{
    if (r->op_answers->run == NULL || json_array_size(r->list) >= EDGE_RUNS_MAX)
        return -1;
    r->op_answers->run(r, run);
    return 0;
}

static int
on_run_out(struct request *r, const struct edge_run_out *m)
{
    if (r->op_answers->run_out == NULL)
        return -1;
    return r->op_answers->run_out(r, m->stream, m->at, m->bytes, m->n_bytes) ? 0 : -1;
}

static int
on_file_change(struct request *r, const struct edge_change *c)
{
    return r->op_answers->change != NULL && r->op_answers->change(r, c) ? 0 : -1;
}

/* Each refuses what its operation does not say. */
#define HEARS(R) \
    R(EDGE_OUT, on_out, false, 1) \
    R(EDGE_ERR, on_err, false, 1) \
    R(EDGE_ENTRY, on_entry, false, 1) \
    R(EDGE_EXIT, on_exit_message, false, 1) \
    R(EDGE_DONE, on_done, false, 1) \
    R(EDGE_FAILED, on_failed, false, 1) \
    R(EDGE_TAKEN, on_taken, false, 1) \
    R(EDGE_RICH, on_rich, false, 1) \
    R(EDGE_RUN, on_run, false, 1) \
    R(EDGE_RUN_OUT, on_run_out, false, 1) \
    R(EDGE_FILE_CHANGE, on_file_change, false, 1)
PROTO_RULES(keeper_rules, HEARS)

/* It ended without a last word. */
static void
broke_off(struct request *r)
{
    struct err err = { .kind = ERR_SYSTEM, .code = "sandbox.gone",
                       .msg = "the sandbox ended under the operation",
                       .hint = "GET /v1/sandboxes/{id} says why" };

    op_drop(r);
    r->op_answers->failed(r, &err);
}

void
op_send(struct request *r)
{
    while (r->in.n > 0) {
        size_t n = op_upload(r, r->in.p, r->in.n);
        if (n == 0)
            return;
        buf_consume(&r->in, n);
    }
    if (r->in_end) {
        r->in_end = false;
        op_upload_end(r);
    }
}

bool
op_receive(struct request *r, struct msg_gate *gate)
{
    for (int i = 0; i < AT_ONCE && r->op.fd >= 0 && !r->op_over && op_listens(r); i++) {
        struct frame f;
        int got = packet_receive(r->op.fd, r->f->in, sizeof(r->f->in), &f, NULL, MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN)
            break;
        if (got <= 0 || msg_dispatch(gate, &f, r) != MSG_OK)
            return false;
        waits_count(r);
    }
    return true;
}

void
op_hear(struct request *r, uint32_t events)
{
    struct msg_gate gate = { .rules = keeper_rules, .n_rules = ARRAY_LEN(keeper_rules),
                             .state = 1 };

    if ((events & EPOLLOUT) != 0) {
        bool waited = r->full;
        r->full = false;
        if (r->live != NULL)
            live_send(r);
        else
            op_send(r);
        if (waited)
            http_wake(r);
    }
    if ((events & ~(uint32_t)EPOLLOUT) != 0 && !op_receive(r, &gate))
        broke_off(r);
    if (r->op_over)
        op_drop(r);
    op_flow(r);
    if (r->op_answers->wake != NULL)
        r->op_answers->wake(r);
    else if (r->response != NULL)
        http_wake(r);
}

/* --- what it is told ---------------------------------------------------------------------------------------------- */

size_t
op_upload(struct request *r, const uint8_t *p, size_t n)
{
    size_t done = 0;

    while (r->op.fd >= 0 && done < n) {
        size_t take = n - done < EDGE_CHUNK ? n - done : EDGE_CHUNK;
        struct edge_bytes m = { .bytes = p + done, .n_bytes = take };
        if (proto_send(r->op.fd, EDGE_IN, EDGE_IN_SHAPE(), &m, -1) < 0)
            break;      /* full: again when there is room. Gone: it has said why, which is read */
        done += take;
    }
    return done;
}

void
op_upload_end(struct request *r)
{
    if (r->op.fd < 0 || r->in.n > 0) {
        r->in_end = r->in_end || r->response == NULL;       /* when it is granted, and behind what came before */
        op_flow(r);
        return;
    }
    if (proto_send(r->op.fd, EDGE_IN_END, EDGE_IN_END_SHAPE(), NULL, -1) < 0 && errno == EAGAIN) {
        r->in_end = true;
        op_flow(r);
    }
}
