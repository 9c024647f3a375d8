/* warden/edge_watch.c: what keepers say of their sandboxes' use, of changes of files, and of how operations ended (see
 * edge.h)
 */
#include <string.h>

#include "warden/edge.h"

int
edge_put_usage(struct buf *b, const struct edge_usage *u)
{
    buf_put_be64(b, u->memory);
    buf_put_be64(b, u->cpu_us);
    buf_put_be64(b, u->keeper_rss);
    buf_put_be64(b, u->keeper_cpu_us);
    buf_put_be32(b, u->pids);
    buf_put_be32(b, u->ops);
    buf_put_u8(b, (uint8_t)u->n_running);
    for (size_t i = 0; i < u->n_running; i++)
        wire_put_cstr(b, u->running[i], EDGE_RUNNING_NAME);
    return buf_ok(b) ? 0 : -1;
}

bool
edge_get_usage(struct wire_in *in, struct edge_usage *u)
{
    u->memory = wire_be64(in);
    u->cpu_us = wire_be64(in);
    u->keeper_rss = wire_be64(in);
    u->keeper_cpu_us = wire_be64(in);
    u->pids = wire_be32(in);
    u->ops = wire_be32(in);
    u->n_running = wire_u8(in);
    if (u->n_running > EDGE_RUNNING_MAX)
        in->bad = true;
    for (size_t i = 0; !in->bad && i < u->n_running; i++)
        u->running[i] = wire_cstr(in, EDGE_RUNNING_NAME, NULL);
    return !in->bad;
}

int
edge_put_change(struct buf *b, const struct edge_change *c)
{
    buf_put_u8(b, (uint8_t)c->kind);
    buf_put_u8(b, c->directory);
    wire_put_cstr(b, c->path, EDGE_PATH_MAX);
    wire_put_cstr(b, c->from, EDGE_PATH_MAX);
    return buf_ok(b) ? 0 : -1;
}

/* What is said of the watch as a whole names no path, and only what was renamed has a former one. */
bool
edge_get_change(struct wire_in *in, struct edge_change *c)
{
    uint8_t kind = wire_u8(in), directory = wire_u8(in);

    c->path = wire_cstr(in, EDGE_PATH_MAX, NULL);
    c->from = wire_cstr(in, EDGE_PATH_MAX, NULL);
    if (!wire_done(in) || kind >= EDGE_CHANGE_KINDS || directory > 1)
        return false;
    c->kind = (enum edge_change_kind)kind;
    c->directory = directory != 0;
    return (kind == EDGE_CHANGE_NONE ||
            (c->path[0] == '\0') == (kind == EDGE_CHANGE_WATCHING || kind == EDGE_CHANGE_OVERFLOW)) &&
           (c->from[0] == '\0') == (kind != EDGE_CHANGE_RENAMED);
}

const char *
op_end_name(enum op_end result)
{
    static const char *const names[RESULTS] = {
        "ok", "nonzero", "signaled", "timed_out", "failed", "canceled", "refused",
    };

    return names[result];
}

int
edge_put_op_result(struct buf *b, const struct edge_op_result *r)
{
    buf_put_u8(b, (uint8_t)r->kind);
    buf_put_u8(b, (uint8_t)r->result);
    buf_put_be64(b, r->us);
    buf_put_be64(b, r->in);
    return buf_put_be64(b, r->out);
}

bool
edge_get_op_result(struct wire_in *in, struct edge_op_result *r)
{
    uint8_t kind = wire_u8(in), result = wire_u8(in);

    r->us = wire_be64(in);
    r->in = wire_be64(in);
    r->out = wire_be64(in);
    if (in->bad || kind == 0 || kind >= OP_KINDS || result >= RESULTS)
        return false;
    r->kind = (enum op_kind)kind;
    r->result = (enum op_end)result;
    return true;
}
