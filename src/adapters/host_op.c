/* adapters/host_op.c: an operation's socket, whose other end is a sandbox's keeper (proto/edge_keeper.h)
 *
 * What comes there was said by the sandbox or by whoever took its keeper over: judged by a table.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "adapters/host.h"
#include "base/array.h"
#include "base/io.h"
#include "wire/table.h"

#define AT_ONCE 32

/* Each refuses what its operation does not say. The last one ends it. */
#define SAID(number, name, member, last, ...) \
    static int \
    on_##name(struct hosted *h, const number##_IS *m) \
    { \
        if (h->v.op_answers->member == NULL) \
            return -1; \
        if (last) \
            host_op_drop(h); \
        h->v.op_answers->member(&h->v, __VA_ARGS__); \
        return 0; \
    }

SAID(EDGE_OUT, out, out, false, false, m->bytes, m->n_bytes)
SAID(EDGE_ERR, err, out, false, true, m->bytes, m->n_bytes)
SAID(EDGE_RICH, rich, rich, false, m->bytes, m->n_bytes, m->last)
SAID(EDGE_RUN, run, run, false, m)
SAID(EDGE_RUN_OUT, run_out, run_out, false, m)
SAID(EDGE_EXIT, exited, exit, true, m->flags, m->code, m->ms)
SAID(EDGE_DONE, done, done, true, m->count)
SAID(EDGE_FAILED, failed, failed, true, &m->why)

static int
on_entry(struct hosted *h, const struct edge_entry *m)
{
    if (h->v.op_answers->entry == NULL)
        return -1;
    /* the first one may be what a path names, which is longer than a name */
    h->entry_bytes += h->n_entries++ > 0 ? strlen(m->name) : 0;
    if (h->n_entries > EDGE_ENTRIES_MAX || h->entry_bytes > EDGE_ENTRY_BYTES)
        return -1;
    h->v.op_answers->entry(&h->v, m->mode, m->size, m->mtime_ns, m->name);
    return 0;
}

#define HEARS(R) \
    R(EDGE_OUT, on_out, false, 1) \
    R(EDGE_ERR, on_err, false, 1) \
    R(EDGE_ENTRY, on_entry, false, 1) \
    R(EDGE_RICH, on_rich, false, 1) \
    R(EDGE_RUN, on_run, false, 1) \
    R(EDGE_RUN_OUT, on_run_out, false, 1) \
    R(EDGE_EXIT, on_exited, false, 1) \
    R(EDGE_DONE, on_done, false, 1) \
    R(EDGE_FAILED, on_failed, false, 1)
PROTO_RULES(keeper_rules, HEARS)

/* It ended without a last word. */
static void
broke_off(struct hosted *h)
{
    struct err err = { .kind = ERR_SYSTEM, .code = "sandbox.gone", .msg = "the sandbox ended under the operation",
                       .hint = "GET /v1/sandboxes/{id} says why" };

    host_op_drop(h);
    h->v.op_answers->failed(&h->v, &err);
}

/* What it is given, as far as it takes it. One that has gone has said why, which is read. */
static void
give(struct hosted *h)
{
    while (h->input.n > 0) {
        struct edge_bytes m = { .bytes = h->input.p, .n_bytes = h->input.n < EDGE_CHUNK ? h->input.n : EDGE_CHUNK };
        if (proto_send(h->op.fd, EDGE_IN, EDGE_IN_SHAPE(), &m, -1) < 0)
            return;
        buf_consume(&h->input, m.n_bytes);
    }
    if (h->input_end && (proto_send(h->op.fd, EDGE_IN_END, EDGE_IN_END_SHAPE(), NULL, -1) == 0 || errno != EAGAIN))
        h->input_end = false;
}

static void
on_op(struct watch *w, uint32_t events)
{
    struct hosted *h = w->owner;
    struct msg_gate gate = { .rules = keeper_rules, .n_rules = ARRAY_LEN(keeper_rules), .state = 1 };

    if ((events & EPOLLOUT) != 0)
        give(h);
    for (int i = 0; i < AT_ONCE && h->op.fd >= 0 && (events & ~(uint32_t)EPOLLOUT) != 0 &&
         h->out.bytes < HOST_STREAM_MAX; i++) {
        struct frame f;
        int got = packet_receive(h->op.fd, hosting.in, sizeof(hosting.in), &f, NULL, MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN)
            break;
        if (got <= 0 || msg_dispatch(&gate, &f, h) != MSG_OK) {
            broke_off(h);
            break;
        }
    }
    host_flow(h);
}

void
host_op_take(struct hosted *h, int fd)
{
    h->op = (struct watch){ .fd = fd, .ready = on_op, .owner = h };
    h->n_entries = h->entry_bytes = 0;
    if (io_set_nonblock(fd, true) < 0 || loop_watch(&hosting.loop, &h->op, EPOLLIN) < 0)
        hosting.ended = true;
}

void
host_op_drop(struct hosted *h)
{
    loop_drop(&hosting.loop, &h->op);
}
