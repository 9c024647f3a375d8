/* keeper/keeper_file.c: file requests of clients (keeper_op.c has what they share with commands) */
#include "keeper/keeper.h"

int
file_ask_piece(struct op *o, struct err *err)
{
    struct msg_file m = { .path = o->path, .offset = o->offset,
                          .length = o->whole || o->left > OP_PIECE ? OP_PIECE : o->left };

    return guest_client_file(o->k->l.client, MSG_FILE_READ, &m, &o->channel, err);
}

int
file_begin(struct op *o, const struct edge_op *want, struct err *err)
{
    static const uint8_t types[OP_KINDS] = {
        [OP_READ] = MSG_FILE_READ, [OP_WRITE] = MSG_FILE_WRITE, [OP_LIST] = MSG_FILE_LIST, [OP_STAT] = MSG_FILE_STAT,
        [OP_REMOVE] = MSG_FILE_REMOVE, [OP_MKDIR] = MSG_FILE_MKDIR,
    };
    struct msg_file m = { .path = o->path, .mode = want->mode };

    if (want->kind == OP_READ) {
        o->offset = want->offset;
        o->left = want->length;
        o->whole = want->length == 0;
        return file_ask_piece(o, err);
    }
    if (want->kind == OP_WRITE) {
        m.flags = MSG_FILE_CREATE | ((want->flags & OP_EXCLUSIVE) != 0 ? MSG_FILE_EXCLUSIVE : MSG_FILE_TRUNCATE);
        o->writes = true;
    }
    if ((want->flags & OP_PARENTS) != 0)
        m.flags |= MSG_FILE_PARENTS;
    if (want->kind == OP_REMOVE && (want->flags & OP_RECURSIVE) != 0)
        m.flags |= MSG_FILE_RECURSIVE;
    return guest_client_file(o->k->l.client, types[want->kind], &m, &o->channel, err);
}

/* --- what the guest says ------------------------------------------------------------------------------------------ */

static void
say_entry(struct op *o, const struct msg_file_info *info, const char *name)
{
    PROTO_SAY(op_say, o, EDGE_ENTRY, .mode = info->mode, .size = info->size, .mtime_ns = info->mtime_ns, .name = name);
}

static void
say_done(struct op *o, uint64_t count)
{
    o->result.bytes = count;
    PROTO_SAY(op_say_last, o, EDGE_DONE, .count = count);
}

static void
on_entries(struct op *o, struct wire_in in)
{
    struct msg_file_info info;
    struct err err = ERR_INIT;

    while (msg_next_entry(&in, &info)) {
        if (++o->count <= EDGE_ENTRIES_MAX) {
            say_entry(o, &info, info.name);
            continue;
        }
        if (o->count > EDGE_ENTRIES_MAX + 1)
            return;
        err_set(&err, ERR_LIMIT, "files.too-many-entries", "%s has more than %d entries", o->path, EDGE_ENTRIES_MAX);
        op_say_failed(o, &err);
        op_cancel_file(o);
    }
}

/* One piece of a file is through: the next one when the front has this, or the end. */
static void
piece_done(struct op *o, uint64_t bytes)
{
    struct err err = ERR_INIT;

    o->offset += bytes;
    o->count += bytes;
    if (!o->whole)
        o->left -= bytes < o->left ? bytes : o->left;
    if (o->edge.fd < 0 || bytes < OP_PIECE || (!o->whole && o->left == 0)) {
        say_done(o, o->count);
        op_ended(o);
    } else if (!packet_queue_waits(&o->out) && file_ask_piece(o, &err) < 0) {
        op_say_failed(o, &err);
        op_ended(o);
    } else if (packet_queue_waits(&o->out)) {
        o->channel = 0;         /* asked for by op_turn() when the queue is empty */
        o->in_end = true;
    }
}

void
file_event(struct op *o, const struct guest_event *ev)
{
    struct err err = ERR_INIT;

    switch (ev->type) {
    case GUEST_FILE_DATA:
        op_pass_on(o, EDGE_OUT, ev->data.p, ev->data.n);
        break;
    case GUEST_FILE_ENTRIES:
        on_entries(o, ev->entries);
        break;
    case GUEST_FILE_INFO:
        say_entry(o, &ev->info, o->path);
        say_done(o, 1);
        op_ended(o);
        break;
    case GUEST_FILE_DONE:
        if (o->kind == OP_READ) {
            piece_done(o, ev->count);
            break;
        }
        if (o->count <= EDGE_ENTRIES_MAX)
            say_done(o, ev->count);
        op_ended(o);
        break;
    case GUEST_FILE_FAILED:
        (void)guest_file_err(&ev->file_error, o->path, &err);
        if (o->count <= EDGE_ENTRIES_MAX || o->kind != OP_LIST)
            op_say_failed(o, &err);
        op_ended(o);
        break;
    default:
        break;
    }
}
